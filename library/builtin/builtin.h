/* The models that are linked into the library, llm-cli and llm-server, by name. */
#ifndef LLM_BUILTIN_H
#define LLM_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct llm_builtin {
    const char *name; /* as -m has it */
    const void *data;
    size_t size;
} llm_builtin;

/* Looks up "builtin:stories", which NULL stands for, too, or "builtin:chat". False: it is the path of
 * a file. *out has no name if it begins with "builtin:" but there is no such model. */
bool llm_builtin_find(const char *name, llm_builtin *out);

#endif
