/* The models that are linked into llm-cli and llm-server, by name. */
#ifndef TOOLS_BUILTIN_H
#define TOOLS_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct builtin_model {
    const char *name; /* as -m has it */
    const void *data;
    size_t size;
} builtin_model;

/* Looks up "builtin:stories", which NULL stands for, too, or "builtin:chat". False: it is the path of
 * a file. *out has no name if it begins with "builtin:" but there is no such model. */
bool builtin_find(const char *name, builtin_model *out);

#endif
