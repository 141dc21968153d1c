/* Reads from an importance matrix what concerns one tensor. */
#ifndef TOOLS_IMPORTANCE_READ_H
#define TOOLS_IMPORTANCE_READ_H

#include "measure/imatrix.h"
#include "quant/encode.h"

/* Sets *out to the importance of n_mat matrices with n_col columns, from matrix `first` of the entry on, for
 * llm_quant_importance_fini. The entry must fit (imatrix_fits). GGL_NOMEM. */
GGL_NODISCARD ggl_status importance_read(const imatrix_entry *e, int64_t n_col, int64_t first,
                                         int64_t n_mat, quant_importance *out, ggl_error *err);

/* True if the entry has directions that are used for such a weight. */
bool importance_has_directions(const imatrix_entry *e, int64_t n_col, int64_t n_mat);

#endif
