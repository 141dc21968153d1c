/* What an encoding to a type does to a matrix: the error, and the weights that come back.
 *
 *     error(W, type) = sum of h[i] * (W[j][i] - W'[j][i])^2 / sum of h[i] * W[j][i]^2
 *
 * times the share of it that is left where the importance matrix knows which columns vary together, and errors cancel;
 * over rows j and columns i, W' being what is decoded again. h[i] is the mean of the squared inputs of
 * column i, from an importance matrix, or 1: this is then the share of the output's power that becomes
 * noise, if inputs are independent. */
#ifndef TOOLS_LOSS_H
#define TOOLS_LOSS_H

#include "importance_read.h"
#include "ggl/gguf.h"

/* A matrix, or a stack of them: rows of n_col elements. */
typedef struct loss_matrix {
    const ggl_gguf_tensor *tensor;
    const ggl_type_info *from;
    int64_t n_col, n_row;
    int64_t n_row_mat;   /* rows of one matrix of a stack */
    quant_importance of; /* mean NULL: none */
    bool search;         /* of llm_quant_from_float */
} loss_matrix;

/* entry: of the importance matrix, which must fit; NULL: none. search: see llm_quant_from_float. On success loss_matrix_fini frees the
 * numbers. GGL_NOMEM. */
GGL_NODISCARD ggl_status loss_matrix_init(loss_matrix *m, const ggl_gguf_tensor *t,
                                          const imatrix_entry *entry, bool search, ggl_error *err);
void loss_matrix_fini(loss_matrix *m);

/* Sets *out to the error, from a sample of the rows if there are more than a million elements.
 * INFINITY: a number cannot be encoded. The same for any number of threads. GGL_NOMEM. */
GGL_NODISCARD ggl_status loss_error(const loss_matrix *m, const ggl_type_info *type, int n_threads,
                                    double *out, ggl_error *err);
/* Writes all weights, encoded and decoded again, to `to`, in the matrix's own type (which rounds them:
 * f16 by 2^-11 at most). `to` may be the matrix's own data. */
GGL_NODISCARD ggl_status loss_replace(const loss_matrix *m, const ggl_type_info *type,
                                      int n_threads, void *to, ggl_error *err);

#endif
