/* The reference backend: all operators in double precision, in plain loops, on one thread. It has
 * no kernels for composites, whose bodies are run instead. Other backends are measured against it,
 * and it is an example of a small backend. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "ggl/internal/op_args.h"
#include "ggl/internal/turns.h"
#include "../common/host_memory.h"
#include "ggl/program.h"

/* An operand with its address: element (i, j, k, l) at data + j nb[1] + k nb[2] + l nb[3]; rows are
 * dense. */
typedef struct view {
    char *data; /* NULL: absent */
    ggl_type type;
    int64_t ne[GGL_MAX_DIMS]; /* ne[3] is the size of the batch, not GGL_N */
    size_t nb[GGL_MAX_DIMS];
} view;

enum { REF_ROWS = 8 }; /* rows that a product decodes and multiplies together */

typedef struct step_args {
    const ggl_tensor *node;
    view dst, src[GGL_MAX_SRC];
    ggl_buffer *const *region; /* of the run */
    const ggl_loc *store_loc;
    const ggl_turns *turns; /* of the loop that the step is in */
    bool f32;               /* sums of products are f32, as values between operators are */
    double *row;            /* scratch: REF_ROWS + 1 times the longest row */
    float *stored;          /* scratch: a row of a store */
    double *attend; /* scratch of as many doubles as ggl_ref_attend_scratch() and its like return */
} step_args;

typedef void ref_fn(const step_args *a);

/* elements.c: returns the first byte of a store. */
char *ggl_ref_store(const step_args *a, const ggl_store *s);
/* Read an element of any type as a number, and write a number to a float or i32 element. Dimensions
 * of size 1 broadcast when read. */
double ggl_ref_get(const view *v, int64_t i, int64_t j, int64_t k, int64_t l);
void ggl_ref_set(const view *v, int64_t i, int64_t j, int64_t k, int64_t l, double x);
/* Reads the whole row (j, k, l). */
void ggl_ref_get_row(const view *v, int64_t j, int64_t k, int64_t l, double *row);

/* Loops over all elements (i, j, k, l) of v. */
#define FOR_EACH(v)                                                                                \
    for (int64_t l = 0; l < (v).ne[3]; l++)                                                        \
        for (int64_t k = 0; k < (v).ne[2]; k++)                                                    \
            for (int64_t j = 0; j < (v).ne[1]; j++)                                                \
                for (int64_t i = 0; i < (v).ne[0]; i++)

/* Returns the function of the operator; NULL for leaves and calls. */
ref_fn *ggl_ref_op(ggl_op op);

/* Declares the functions of ops.def; some appear in several rows. */
#define OP(ID, fn) ref_fn fn;
#include "ops.def"
/* attend.c */
int64_t ggl_ref_attend_scratch(const ggl_tensor *node);
/* choose_rows.c */
int64_t ggl_ref_choose_rows_scratch(const ggl_tensor *node);
/* attend_back.c */
int64_t ggl_ref_attend_back_scratch(const ggl_tensor *node, int64_t n);

#endif
