/* The commands of llm-bench. */
#ifndef TOOLS_BENCH_TOOL_H
#define TOOLS_BENCH_TOOL_H

#include "common/args.h"

/* Each command gets its own arguments: argv[0] is "llm-bench make", for example. Returns the
 * exit code. bench_measure is what llm-bench does without a command; its help lists the commands. */
int bench_measure(int argc, char **argv, const args_command *commands);
int bench_conform(int argc, char **argv);
int bench_make(int argc, char **argv);
int bench_ops(int argc, char **argv);
int bench_serve(int argc, char **argv);

#endif
