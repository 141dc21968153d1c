/* Chooses the types of tensors in a written model. */
#ifndef TOOLS_SHAPE_TYPES_H
#define TOOLS_SHAPE_TYPES_H

#include "ggl/gguf.h"

/* Finds the type for matrices by name ("q4_0"). GGL_NOT_FOUND: no type of that name
 * can be written; the message lists those that can. */
GGL_NODISCARD ggl_status bench_type_find(const char *name, ggl_type *out, ggl_error *err);
/* Returns the type of a tensor: 1-D tensors are f32; rows that are not whole blocks become q8_0,
 * or f16. A mix of types would be implemented here, by the tensor's name. */
ggl_type bench_type_of(ggl_type wanted, const char *tensor, int n_dims, const int64_t *ne);

#endif
