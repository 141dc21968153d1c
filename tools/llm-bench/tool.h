/* The commands of llm-bench. */
#ifndef TOOLS_BENCH_TOOL_H
#define TOOLS_BENCH_TOOL_H

#include "common/args.h"

/* Each command gets its own arguments: argv[0] is "llm-bench make", for example. Returns the
 * exit code. */
int bench_measure(int argc, char **argv); /* without a command */
int bench_conform(int argc, char **argv);
int bench_make(int argc, char **argv);
int bench_ops(int argc, char **argv);
int bench_serve(int argc, char **argv);

/* All of these but bench_measure, by name; ends with an empty row. */
extern const args_command bench_commands[];

#endif
