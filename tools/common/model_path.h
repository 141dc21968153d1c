/* What to say about a path that should be a model: a folder, a part of one, a file that is not there. */
#ifndef TOOLS_MODEL_PATH_H
#define TOOLS_MODEL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/internal/os_fs.h"
#include "tool_path.h"

/* Refuses a folder that is no model, and a part of one, with what to give instead. Returns -1 for all
 * else, or the exit code after a message. */
int model_path_check(const char *tool, const tool_path *p);

/* True for USER/REPO and USER/REPO:QUANT, if it is not the path of a file in a folder that exists. */
bool model_path_is_repo(const char *s);

/* Reports an input that cannot be read, and why (an errno), with the file or download that was probably
 * meant. Returns 1. */
int model_path_missing(const char *tool, const tool_path *p, int error);

/* Finds the file whose name is nearest to that of one that is not there, in its folder. False: none is near. */
bool model_path_near(const char *path, char near[OS_MOST_PATH]);

/* Writes the command that makes a GGUF file of a folder or checkpoint; returns it. */
enum { MODEL_PATH_COMMAND = 4200 };
const char *model_path_convert(const char *path, char *command, size_t size);

/* Refuses what a tool that wants a GGUF file would have to convert, with llm-convert's command.
 * p->flag may be NULL. kind: what p->path is; whole: what is converted, p->path itself or the folder
 * that it is in. Returns 1. */
int model_path_refuse(const char *tool, const tool_path *p, const char *kind, const char *whole);

#endif
