/* Which type a tensor of a written model gets. */
#ifndef TOOLS_BENCH_TYPES_H
#define TOOLS_BENCH_TYPES_H

#include "ggl/gguf.h"

/* The type that `name` ("q4_0") asks of matrices. GGL_NOT_FOUND: there is none of that name that
 * can be written; lists those that can. */
GGL_NODISCARD ggl_status bench_type_find(const char *name, ggl_type *out, ggl_error *err);
/* Of one tensor: 1-D tensors are f32; rows that are no whole number of blocks become q8_0, or else
 * f16. Mixes of types would be told apart here, by the tensor's name. */
ggl_type bench_type_of(ggl_type wanted, const char *tensor, int n_dims, const int64_t *ne);

#endif
