/* Private calls for types: the rows of the table, checked sizes, and single numbers.
 *
 * Threads: as ggl/types.h says. */
#ifndef GGL_INTERNAL_TYPES_H
#define GGL_INTERNAL_TYPES_H

#include "ggl/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns row k of types.def, k = 0, 1, ..; NULL past the end. */
GGL_INTERNAL_API const ggl_type_info *ggl_type_at(int k);
/* Returns the published name ("Q8_1") of a GGUF type that this library does not read, for messages;
 * NULL for any other number. */
const char *ggl_type_foreign_name(int id);

/* Sets *out to the bytes of n elements. Returns false if n is negative, not a whole number of
 * blocks, or too large. */
bool ggl_row_size_checked(ggl_type type, int64_t n, size_t *out);

/* Convert IEEE half and bfloat16. Round to nearest even; NaN stays NaN; subnormals are kept. */
GGL_INTERNAL_API float ggl_f16_to_f32(uint16_t h);
GGL_INTERNAL_API uint16_t ggl_f32_to_f16(float f);
float ggl_bf16_to_f32(uint16_t h);
uint16_t ggl_f32_to_bf16(float f);

#ifdef __cplusplus
}
#endif
#endif
