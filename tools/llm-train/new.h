/* llm-train new: a model that has learned nothing yet. */
#ifndef TOOLS_TRAIN_NEW_H
#define TOOLS_TRAIN_NEW_H

#include "common/args.h"

/* The command; argv[0] is its name. Returns the exit code. */
int train_new(int argc, char **argv);
extern const args_command train_commands[]; /* of llm-train */

#endif
