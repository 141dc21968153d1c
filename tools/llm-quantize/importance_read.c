#include "importance_read.h"

#include "measure/imatrix_sketch.h"
#include "ggl/internal/alloc.h"

ggl_status importance_read(const imatrix_entry *e, int64_t n_col, int64_t first, int64_t n_mat,
                           quant_importance *out, ggl_error *err) {
    size_t n = 0;
    *out = (quant_importance){0};
    if (ggl_size_mul((uint64_t)n_mat, (uint64_t)n_col, &n))
        out->mean = ggl_calloc(n, sizeof *out->mean);
    for (int64_t m = 0; out->mean && m < n_mat; m++)
        llm_imatrix_mean(e, n_col, first + m, out->mean + m * n_col);
    if (out->mean && importance_has_directions(e, n_col, n_mat)) {
        out->n_dir = e->n_sketch;
        out->dir = ggl_calloc(n * (size_t)e->n_sketch, sizeof *out->dir);
        out->own = ggl_calloc(n, sizeof *out->own);
        out->power = ggl_calloc(n, sizeof *out->power);
        if (out->dir && out->own && out->power)
            llm_imatrix_directions(e, out->dir, out->own, out->power);
    }
    if (out->mean && ((out->dir && out->own && out->power) || out->n_dir == 0))
        return GGL_OK;
    llm_quant_importance_fini(out);
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

bool importance_has_directions(const imatrix_entry *e, int64_t n_col, int64_t n_mat) {
    return e->sketch && n_mat == 1 && e->n_col == n_col && n_col <= QUANT_MAX_ROW;
}
