/* --completion: a script that completes a tool's command lines. */
#ifndef TOOLS_SHELL_COMPLETION_H
#define TOOLS_SHELL_COMPLETION_H

#include "arg_table.h"

/* Prints the script for a shell, "bash", "zsh" or "fish", to stdout: flags, their values where they
 * are choices, files, models or folders, commands, and arguments without flags. For a command of a
 * tool, its part of the script. */
void shell_completion_print(const args_spec *spec, const char *shell);

#endif
