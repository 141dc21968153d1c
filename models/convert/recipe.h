/* How a tensor is made from those of a Hugging Face folder: a tree of rearrangements, read piece by piece, so that little of
 * a model is in memory at once. Those of rows act on the dimension `dim`; with fewer numbers before it they take longer. */
#ifndef LLM_RECIPE_H
#define LLM_RECIPE_H

#include "ggl/gguf.h"
#include "safetensors.h"

typedef enum recipe_kind {
    RECIPE_SOURCE,
    RECIPE_FP8, /* source: F8_E4M3, scale: a factor for each x numbers of each y rows */
    /* source: bytes of two numbers, 32 in a block; scale: a byte for each block, its exponent */
    RECIPE_MXFP4,
    RECIPE_WHOLE,     /* source: I32 or I64 */
    RECIPE_HELD,      /* values: a constant */
    RECIPE_TRANSPOSE, /* dimensions dim and x change places */
    RECIPE_RESHAPE,   /* the same numbers in another shape */
    RECIPE_PAIRS,     /* rows in `x` heads of halves -> adjacent pairs */
    RECIPE_REGROUP,   /* rows x * y * rest -> y * x * rest */
    RECIPE_ROWS,      /* from row x on */
    RECIPE_JOIN,      /* one after the other */
    RECIPE_EXP,
    RECIPE_ADD, /* number */
    RECIPE_MUL
} recipe_kind;

typedef struct recipe {
    recipe_kind kind;
    int n_dims;               /* at least 1 */
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    struct recipe **part;     /* what it is made of */
    int n_part;
    int dim;
    int64_t x, y;
    double number;
    const st_tensor *source, *scale;
    /* HELD: in the arena; TRANSPOSE: one matrix while it is read, freed by llm_recipe_drop */
    float *held;
    int64_t matrix; /* TRANSPOSE: which one is held, from 1; 0: none */
} recipe;

int64_t llm_recipe_count(const recipe *r);
/* The type that holds all values exactly, of F16, BF16 and F32 (which F64 is rounded to). What is packed becomes BF16, to which the
 * products of FP8 numbers and their factors are rounded. Whole numbers are I32. */
ggl_type llm_recipe_type(const recipe *r);
/* Elements first .. first + n - 1, in order. */
GGL_NODISCARD ggl_status llm_recipe_read(recipe *r, int64_t first, int64_t n, float *out,
                                         ggl_error *err);
void llm_recipe_drop(recipe *r); /* what reading held back */

#endif
