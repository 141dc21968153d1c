/* The models that are linked into the library and the programs, by name. */
#ifndef LLM_BUILTIN_H
#define LLM_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

typedef struct llm_builtin {
    const char *name; /* as -m has it */
    const void *data;
    size_t size;
    const char *eye; /* the name of the eye that it sees with; NULL: it sees nothing */
} llm_builtin;

/* Looks up a name such as "builtin:chat"; NULL stands for the first one, "builtin:stories". False: it is the path of
 * a file. *out has no name if it begins with "builtin:" but there is no such model. */
GGL_INTERNAL_API bool llm_builtin_find(const char *name, llm_builtin *out);

/* The eye of the model that is named; NULL: it has none, or is no built-in one. path may be NULL. */
const char *llm_builtin_eye(const char *path);

/* Fails with all names, and the one that is meant, for a name that begins with "builtin:" and is none. */
GGL_INTERNAL_API ggl_status llm_builtin_refuse(const char *name, ggl_status status, ggl_error *err);

/* Returns the eye or ear that comes with a model that is there: the built-in one of a built-in model, or a folder itself; NULL: none. *why: why that of a folder is not used; may
 * be NULL. */
const char *llm_eye_of(const char *model, ggl_error *why);

#endif
