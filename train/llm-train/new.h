/* The commands of llm-train that make models: a new one, and one with more tokens. */
#ifndef TOOLS_TRAIN_NEW_H
#define TOOLS_TRAIN_NEW_H

#include "common/args.h"

/* The commands; argv[0] is the name. They return the exit code. */
int train_new(int argc, char **argv);
int train_add_tokens(int argc, char **argv);
extern const args_command train_commands[]; /* of llm-train */

#endif
