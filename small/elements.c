/* Elementwise operators (docs/numeric.md, section 2). */
#include "step.h"

#include "../backends/cpu/scalar/elementwise.c"

#define UNARY_SLOT(NAME, of, where)                                                                \
    void small_unary_##NAME(float *y, const float *x, int64_t n);                                  \
    void small_unary_##NAME(float *y, const float *x, int64_t n) {                                 \
        unary_##NAME(y, x, n);                                                                     \
    }
#define BINARY_SLOT(NAME, where)                                                                   \
    void small_binary_##NAME(float *y, const float *a, int step_a, const float *b, int step_b,     \
                             int64_t n);                                                           \
    void small_binary_##NAME(float *y, const float *a, int step_a, const float *b, int step_b,     \
                             int64_t n) {                                                          \
        binary_##NAME(y, a, step_a, b, step_b, n);                                                 \
    }
#include "../backends/cpu/slots.def"

void small_op_unary(const small_op *op, char *ram);
void small_op_unary(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 0, y, x, n) {
        ((cpu_unary_fn *)op->kernel)(y, x, n);
    }
}

void small_op_binary(const small_op *op, char *ram);
void small_op_binary(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *a = op->view[1], *b = op->view[2];
    for (int32_t r = 0; r < small_n_rows(y); r++)
        ((cpu_binary_fn *)op->kernel)(
            (float *)(void *)small_row(y, y, r, ram),
            (const float *)(const void *)small_row(a, y, r, ram), a->ne[0] != 1,
            (const float *)(const void *)small_row(b, y, r, ram), b->ne[0] != 1, y->ne[0]);
}

void small_op_where(const small_op *op, char *ram);
void small_op_where(const small_op *op, char *ram) {
    const small_view *y = op->view[0];
    for (int32_t r = 0; r < small_n_rows(y); r++) {
        const float *x[3];
        int32_t step[3];
        for (int k = 0; k < 3; k++) {
            x[k] = (const float *)(const void *)small_row(op->view[1 + k], y, r, ram);
            step[k] = op->view[1 + k]->ne[0] != 1;
        }
        float *to = (float *)(void *)small_row(y, y, r, ram);
        for (int32_t i = 0; i < y->ne[0]; i++)
            to[i] = x[0][i * step[0]] == 0.0f ? x[2][i * step[2]] : x[1][i * step[1]];
    }
}

void small_op_cast(const small_op *op, char *ram);
void small_op_cast(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1];
    for (int32_t r = 0; r < small_n_rows(y); r++)
        x->type->to_float(small_row(x, y, r, ram), (float *)(void *)small_row(y, y, r, ram),
                          y->ne[0]);
}
