/* Products with matrices (docs/numeric.md, section 4), and the columns that they read. */
#include "step.h"

#include "../backends/cpu/scalar/dot.c"
#include "../backends/cpu/scalar/quantize.c"
#include "dsp.h"

/* Round a row to the form that products with the matrix's type read. */
void small_columns_q8(char *y, const float *x, int64_t n);
void small_columns_q8(char *y, const float *x, int64_t n) {
    quantize((cpu_qblock *)(void *)y, x, n);
}

void small_columns_bf16(char *y, const float *x, int64_t n);
void small_columns_bf16(char *y, const float *x, int64_t n) {
    round_bf16((float *)(void *)y, x, n);
}

void small_op_columns(const small_op *op, char *ram);
void small_op_columns(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        ((void (*)(char *, const float *, int64_t))op->kernel)((char *)y, x, n);
    }
}

/* Multiplies n_rows rows of k elements with a column. */
typedef void rows_fn(float *y, const void *x, const char *w, size_t row_size, int32_t n_rows,
                     int64_t k);

#define ROWS_OF(name)                                                                              \
    rows_fn small_rows_##name;                                                                     \
    void small_rows_##name(float *y, const void *x, const char *w, size_t row_size,                \
                           int32_t n_rows, int64_t k) {                                            \
        rows_##name(&y, &x, 1, w, row_size, n_rows, k);                                            \
    }
ROWS_OF(f32)
ROWS_OF(f16)
ROWS_OF(bf16)
ROWS_OF(f8_e4m3)
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text) ROWS_OF(name)
#define QUANT_READ                                     QUANT
#ifdef SMALL_DSP
#define rows_q8_0(y, x, n_cols, w, row_size, n_rows, k, ahead)                                     \
    dsp_rows_q8_0(*(y), *(x), w, row_size, n_rows, k)
#define rows_q4_0(y, x, n_cols, w, row_size, n_rows, k, ahead)                                     \
    dsp_rows_q4_0(*(y), *(x), w, row_size, n_rows, k)
#endif
#include "ggl/types.def"

/* Returns the number of the matrix that column c of the result has; -1: none. n[0]: the outer index of a matrix is that of dimension 3. */
static int32_t matrix_of(const small_op *op, int32_t c, char *ram) {
    const small_view *y = op->view[0], *w = op->view[2], *index = op->view[4];
    const int32_t d1 = c % y->ne[1], d2 = c / y->ne[1] % y->ne[2], l = c / y->ne[1] / y->ne[2],
                  outer = op->n[0] ? l : d2;
    if (index) {
        const int32_t e =
            ((const int32_t *)(const void *)small_data(index, ram))[index->ne[0] == 1 ? 0 : d1];
        return e >= 0 && e < w->ne[2] ? e : -1;
    }
    return (w->ne[2] == 1 ? 0 : d1) + (w->ne[3] == 1 ? 0 : outer) * w->ne[2];
}

void small_op_linear(const small_op *op, char *ram);
void small_op_linear(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1], *w = op->view[2], *bias = op->view[3];
    for (int32_t c = 0; c < small_n_rows(y); c++) {
        float *to = (float *)(void *)small_row(y, y, c, ram);
        const int32_t m = matrix_of(op, c, ram);
        if (m < 0) {
            for (int32_t i = 0; i < y->ne[0]; i++)
                to[i] = NAN;
            continue;
        }
        const char *matrix = small_data(w, ram) + (size_t)(m % w->ne[2]) * (size_t)w->nb[2] +
                             (size_t)(m / w->ne[2]) * (size_t)w->nb[3];
        ((rows_fn *)op->kernel)(to, small_row(x, y, c, ram), matrix, (size_t)w->nb[1], y->ne[0],
                                w->ne[0]);
        if (!bias)
            continue;
        const float *b = (const float *)(const void *)small_row(bias, y, c, ram);
        for (int32_t i = 0; i < y->ne[0]; i++)
            to[i] += b[bias->ne[0] == 1 ? 0 : i];
    }
}
