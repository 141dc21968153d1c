/* A recipe makes a tensor from those of a Hugging Face folder: a tree of rearrangements that is
 * read in pieces, so that only a little of a model is in memory. "Rows" are the slices along
 * dimension `dim`; they are slower the shorter they are. */
#ifndef LLM_RECIPE_H
#define LLM_RECIPE_H

#include "ggl/gguf.h"
#include "safetensors.h"

typedef enum recipe_kind {
    RECIPE_SOURCE,
    RECIPE_PACKED,    /* source: codes; packed: how they become numbers */
    RECIPE_WHOLE,     /* source: I32 or I64 */
    RECIPE_OFFSETS,   /* source: I32 or I64, to each of which its index is added */
    RECIPE_BYTES,     /* source: I8, whose numbers are meant as they are */
    RECIPE_HELD,      /* values: a constant */
    RECIPE_TRANSPOSE, /* exchanges dimensions dim and x */
    RECIPE_RESHAPE,   /* the same numbers in another shape */
    RECIPE_PAIRS,     /* rows: `x` heads of two halves -> adjacent pairs */
    RECIPE_REGROUP,   /* rows x * y * rest -> y * x * rest */
    RECIPE_ROWS,      /* ne[dim] rows from row x on */
    RECIPE_PICK,      /* the rows of part 0 that the numbers of part 1, a WHOLE, choose */
    RECIPE_JOIN,      /* parts one after the other along dim */
    RECIPE_EXP,
    RECIPE_SOFTPLUS, /* log(1 + exp(x)) */
    RECIPE_ADD, /* of each number and `number`: the sum, the product, the power, the larger, the smaller */
    RECIPE_MUL,
    RECIPE_POW,
    RECIPE_MAX,
    RECIPE_MIN,
    RECIPE_TIMES, /* part 0 times part 1, number by number */
    RECIPE_PLUS,
    RECIPE_MINUS,
    RECIPE_TERNARY /* -s, 0 or s, whichever is nearest, s: the mean of all absolute numbers. `number`: s, once `matrix` is 1; read as a number of the recipe's type */
} recipe_kind;

typedef struct recipe {
    recipe_kind kind;
    int n_dims;               /* at least 1 */
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    struct recipe **part;     /* what it is made from */
    int n_part;
    int dim;
    int64_t x, y;
    double number;
    const st_tensor *source;
    const struct packed_numbers *packed; /* PACKED: see packed.h, */
    ggl_type nearest;                    /* and the type of numbers that is nearest to them */
    /* HELD: in the arena; TRANSPOSE: the current block, freed by llm_recipe_drop */
    float *held;
    int64_t
        matrix; /* TRANSPOSE: 1 + the block in `held`; 0: none; TERNARY: 1 if `number` is known */
} recipe;

/* Returns the number of elements. */
int64_t llm_recipe_count(const recipe *r);
/* Returns the smallest type of F16, BF16 and F32 that holds all values exactly (F64 is rounded
 * to F32). PACKED have the nearest one. WHOLE is I32, OFFSETS I64, BYTES F16. */
ggl_type llm_recipe_type(const recipe *r);
/* True if numbers are codes times factors, so that they have more digits than llm_recipe_type. */
bool llm_recipe_has_factors(const recipe *r);
/* For a recipe of the kinds PAIRS, REGROUP, ROWS and JOIN: returns the element of *part that is element
 * `first`. *run: how many elements from there on are adjacent in the part, at least. */
int64_t llm_recipe_place(const recipe *r, int64_t first, const recipe **part, int64_t *run);
/* For PAIRS, REGROUP and ROWS: returns the offset in the part of a row of `size` elements. Rows are counted
 * through all outer dimensions. */
int64_t llm_recipe_row(const recipe *r, int64_t row, int64_t size);
/* Where a recipe's element is in the folder. */
typedef struct recipe_spot {
    const recipe
        *leaf; /* the recipe of the folder's tensor, leaf->source; `at`: the element in its shape */
    int64_t at, run; /* run: how many elements from there on are adjacent in both, at least */
    double factor;   /* the recipe's element is factor times the folder's */
} recipe_spot;
/* Finds element `first`. False: it is no element of the folder's times a factor, but a sum, an exponential or
 * a constant. */
bool llm_recipe_find(const recipe *r, int64_t first, recipe_spot *out);
/* recipe_read.c: reads elements first .. first + n - 1, in order. */
GGL_NODISCARD ggl_status llm_recipe_read(recipe *r, int64_t first, int64_t n, float *out,
                                         ggl_error *err);
/* recipe.c: returns the numbers where the folder's file has them, if the recipe changes neither them nor their
 * order; *from: the tensor that they belong to. NULL: they must be read. */
const void *llm_recipe_in_place(const recipe *r, const st_tensor **from);
/* Returns the type of the blocks that the tensor has there; -1: it has none, or they do not fit its rows. */
int llm_recipe_blocks(const recipe *r);
/* Returns true if reading holds something in memory (`held`, TERNARY's `number`): then one thread at a time may read. */
bool llm_recipe_holds(const recipe *r);
void llm_recipe_drop(recipe *r); /* recipe_read.c: frees what reading holds in memory */

#endif
