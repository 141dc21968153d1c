/* Element types. Each is a row of types.def; ggl_type_get returns its properties.
 *
 *     const ggl_type_info *t = ggl_type_get(GGL_Q8_0);
 *     size_t row_size = ggl_row_size(GGL_Q8_0, 4096);      // 4352 bytes
 *     t->to_float(row, values, 4096);
 *
 * Threads: the table does not change; any number may use it at the same time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
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
    GGL_TYPE_LIMIT /* one more than the last row's number: the size of tables by type */
} ggl_type;

enum {
    GGL_TYPE_COUNT = 0
#define TYPE(id, NAME, name) +1
#include "ggl/types.def"
};

/* The numbers that a quantized type stores for each 32 elements, besides their codes. */
typedef enum ggl_type_form {
    GGL_PLAIN,       /* not quantized */
    GGL_SCALE,       /* a scale */
    GGL_SCALE_MIN,   /* a scale and a minimum */
    GGL_SCALE16,     /* a scale for each half */
    GGL_SCALE16_MIN, /* a scale and a minimum for each half */
} ggl_type_form;

/* 32 elements of a quantized row, unpacked: element i is s[h] * q[i] - m[h] with h = i / 16.
 * The product is exact in f32; the difference is rounded once. In forms without a minimum m is +0,
 * and the difference is exact. In forms without halves s[0] == s[1] and m[0] == m[1]. This defines
 * every format: to_float is built on it, and so is the CPU's arithmetic (docs/numeric.md). If rows have a scale of
 * their own (row_meta), s is what the block stores, which the reader multiplies by ggl_row_scale. */
typedef struct ggl_codes {
    int8_t q[32];
    float s[2], m[2];
} ggl_codes;

enum { GGL_MAX_DIRECTIONS = 64 };
/* Tells an encoder of the activations that a matrix is multiplied with: how large they are, and which vary together. */
typedef struct ggl_importance {
    /* [n], for each element that is encoded: the mean of the squared activations that meet its column, in any unit. Numbers
     * that are negative or not finite count as 0. */
    const float *mean;
    /* The mean product of the activations of columns i != j is about sum_d dir[i][d] * dir[j][d], in any unit, perhaps another one than
     * that of `mean`. dir: [n_col][n_dir]. own[n_col]: what the mean square of a column's activations is above sum_d dir[i][d]^2, in this unit;
     * not negative. All are finite. The elements that are encoded must be whole rows of n_col. */
    const float *dir, *own;
    /* [n_col]: own, and the sum of the squares. 0: nothing is known of the column. */
    const float *power;
    int64_t n_col;
    int n_dir; /* a multiple of 4, at most GGL_MAX_DIRECTIONS; 0: no directions are known */
} ggl_importance;

typedef struct ggl_type_info {
    ggl_type type;
    const char *name; /* "q8_0" */
    const char *text; /* a short description */
    int64_t block;    /* elements in a block */
    size_t size;      /* bytes of a block */
    /* Bytes before the blocks of each row of a matrix: an f16 (2) or f32 (4) by which the scales of the whole row
     * are multiplied; 0: none. The bytes of a row are ggl_row_size(type, n), not blocks times `size`. */
    size_t row_meta;
    bool quantized;
    ggl_type_form form;
    /* Decode and encode n elements, a whole number of blocks; of types with row_meta, the first n elements of one row.
     * to_float is exact for all types except f64, i32 and i64, which it rounds to nearest even, those with minima, and
     * those with an f32 scale for each row. from_float rounds
     * as the format's published encoder does; it is NULL for types with codebooks, which
     * only from_float_weighted encodes. */
    void (*to_float)(const void *src, float *dst, int64_t n);
    void (*from_float)(const float *src, void *dst, int64_t n);
    /* Unpacks elements 32*k .. 32*k + 31 of one block; NULL if not quantized. */
    void (*unpack)(const void *block, int k, ggl_codes *out);
    /* Encodes n elements, a whole number of blocks, such that products with the
     * row change little (docs/types.md says how). of: NULL if all are equally important. NULL for
     * types whose encoder does not use importance. */
    void (*from_float_weighted)(const float *src, const ggl_importance *of, void *dst, int64_t n);
} ggl_type_info;

/* True for types of weights that products read; the others are numbers of tables and files. */
static inline bool ggl_type_has_products(ggl_type type) {
    return type != GGL_I32 && type != GGL_I64 && type != GGL_F64;
}

/* Returns the properties of the type; NULL for an unknown number (which may come from a file). */
GGL_API const ggl_type_info *ggl_type_get(int id);
/* Returns the type with that name ("q8_0", in small or capital letters), or NULL. */
GGL_API const ggl_type_info *ggl_type_find(const char *name);

/* Returns the bytes of a row of n elements; of types without row_meta, also those of several rows. n must be a whole
 * number of blocks, and their size must fit into size_t. */
GGL_API size_t ggl_row_size(ggl_type type, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
