/* Tools that are a set of commands, "llm-gguf check FILE". */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "arg_table.h"

/* Runs the command that argv[1] names, of spec->commands, or answers --help and the like for the whole tool. on_file: what a
 * tool does without a command, if argv[1] may be a file; NULL: a command must be there. Returns what main returns. */
int args_run_command(const args_spec *spec, int (*on_file)(int argc, char **argv), int argc,
                     char **argv);

#endif
