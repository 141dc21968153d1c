/* Element types: one row of types.def each, found through one table.
 *
 *     const ggl_type_info *t = ggl_type_get(GGL_Q8_0);
 *     size_t row_size = ggl_row_size(GGL_Q8_0, 4096);      // 4352 bytes
 *     t->to_float(row, values, 4096);
 */
#ifndef GGL_TYPES_H
#define GGL_TYPES_H

#include <stdbool.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ggl_type {
#define TYPE(id, NAME, name) GGL_##NAME = id,
#include "ggl/types.def"
    GGL_TYPE_LIMIT = 40 /* more than any of them: for tables by type */
} ggl_type;

enum {
    GGL_TYPE_COUNT = 0
#define TYPE(id, NAME, name) +1
#include "ggl/types.def"
};

/* What 32 elements of a quantized type have besides their codes. */
typedef enum ggl_type_form {
    GGL_PLAIN,       /* not quantized */
    GGL_SCALE,       /* a scale */
    GGL_SCALE_MIN,   /* a scale and a minimum */
    GGL_SCALE16,     /* a scale for each half */
    GGL_SCALE16_MIN, /* a scale and a minimum for each half */
} ggl_type_form;

/* 32 elements of a quantized row, taken apart: with h = i / 16, element i is s[h] * q[i] - m[h].
 * The product is exact in f32; the difference is rounded once, and exact where the form has no
 * minimum (m is +0 then). A form without halves has both alike. This is the definition of every
 * format: to_float is made of it, and the CPU's products (docs/numeric.md) are defined by it. */
typedef struct ggl_codes {
    int8_t q[32];
    float s[2], m[2];
} ggl_codes;

typedef struct ggl_type_info {
    ggl_type type;
    const char *name; /* "q8_0" */
    const char *text; /* a few words on it */
    int64_t block;    /* elements in a block */
    size_t size;      /* bytes of a block */
    bool quantized;
    ggl_type_form form;
    /* n elements, a whole number of blocks. to_float is exact for every type but f64 and i32, which
     * round to nearest even, and those with minima; from_float rounds as the format's published
     * encoder does, and is NULL for what is only read (its encoders need an importance matrix). */
    void (*to_float)(const void *src, float *dst, int64_t n);
    void (*from_float)(const float *src, void *dst, int64_t n);
    /* Elements 32*k .. 32*k + 31 of one block; NULL if not quantized. */
    void (*unpack)(const void *block, int k, ggl_codes *out);
} ggl_type_info;

/* The type's row; NULL for a number that is no type known here (GGUF ids may come from a file). */
GGL_API const ggl_type_info *ggl_type_get(int id);
/* By name ("q8_0"); NULL if there is none. */
GGL_API const ggl_type_info *ggl_type_find(const char *name);
/* The k-th row for k = 0, 1, ..; NULL past the end. */
GGL_API const ggl_type_info *ggl_type_at(int k);
/* The published name of a GGUF type number that this library does not read ("Q8_1"), else NULL: for
 * messages. */
GGL_API const char *ggl_type_foreign_name(int id);

/* Bytes of n elements; n must be a whole number of blocks and n * size must not overflow (see
 * ggl_row_size_checked). */
GGL_API size_t ggl_row_size(ggl_type type, int64_t n);
/* False if n is negative, no whole number of blocks, or too large. */
GGL_API bool ggl_row_size_checked(ggl_type type, int64_t n, size_t *out);

/* IEEE half and bfloat16, round to nearest even, NaN stays NaN; subnormals are kept. */
GGL_API float ggl_f16_to_f32(uint16_t h);
GGL_API uint16_t ggl_f32_to_f16(float f);
GGL_API float ggl_bf16_to_f32(uint16_t h);
GGL_API uint16_t ggl_f32_to_bf16(float f);

#ifdef __cplusplus
}
#endif
#endif
