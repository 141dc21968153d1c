/* What the parts of llm-bench are called with. */
#ifndef TOOLS_BENCH_TOOL_H
#define TOOLS_BENCH_TOOL_H

#include "common/args.h"

/* A command gets its own arguments: argv[0] is "llm-bench make". Returns the exit code. */
int bench_measure(int argc, char **argv); /* without a command's name */
int bench_conform(int argc, char **argv);
int bench_make(int argc, char **argv);
int bench_ops(int argc, char **argv);

#endif
