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
/* Returns what to do about such a type, ": .."; "" if nothing better is known than its name. */
const char *ggl_type_advice(int id);
/* Returns what other programs mean by a type's number, for messages; NULL if it has one meaning. */
const char *ggl_type_other_uses(int id);

/* Returns the scale of a row that begins at `row`; 1 for types without row_meta. */
float ggl_row_scale(const ggl_type_info *t, const void *row);

/* Sets *out to the bytes of a row of n elements. Returns false if n is negative, not a whole number of
 * blocks, or too large. */
bool ggl_row_size_checked(ggl_type type, int64_t n, size_t *out);
/* Returns the bytes from the beginning of a matrix, whose rows have n_row elements, to its element `at`, which begins a
 * block or is behind the last one. */
size_t ggl_bytes_before(const ggl_type_info *t, int64_t n_row, int64_t at);
/* Decodes elements first .. first + n - 1 of such a matrix, whole blocks. */
GGL_INTERNAL_API void ggl_to_float(const ggl_type_info *t, const void *data, int64_t n_row,
                                   int64_t first, int64_t n, float *dst);

/* Convert IEEE half and bfloat16. Round to nearest even; NaN stays NaN; subnormals are kept. */
GGL_INTERNAL_API float ggl_f16_to_f32(uint16_t h);
GGL_INTERNAL_API uint16_t ggl_f32_to_f16(float f);
float ggl_bf16_to_f32(uint16_t h);
uint16_t ggl_f32_to_bf16(float f);
/* The same for 8-bit floats, which have no infinity: too large numbers become NaN. */
float ggl_f8_e4m3_to_f32(uint8_t h);
uint8_t ggl_f32_to_f8_e4m3(float f);

#ifdef __cplusplus
}
#endif
#endif
