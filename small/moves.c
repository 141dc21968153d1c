/* Operators that only move elements, and the states that pass from token to token. */
#include "step.h"

/* Copies n elements of a row, as floats if the types differ. */
static void move_row(const small_view *y, const small_view *x, char *to, const char *from,
                     int32_t n) {
    if (x->type == y->type)
        memcpy(to, from, (size_t)(n / x->type->block) * x->type->size);
    else
        x->type->to_float(from, (float *)(void *)to, n);
}

/* The elements in their order, in another shape; the result is dense. */
void small_op_copy(const small_op *op, char *ram);
void small_op_copy(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1];
    char *to = small_data(y, ram);
    const size_t size = (size_t)(x->ne[0] / y->type->block) * y->type->size;
    for (int32_t r = 0; r < small_n_rows(x); r++, to += size)
        move_row(y, x, to, small_row(x, x, r, ram), x->ne[0]);
}

/* The result's rows are of numbers of 4 bytes, at strides nb[] from `from` on. */
static void strided(const small_view *y, const char *from, const int32_t nb[4], char *ram) {
    for (int32_t r = 0; r < small_n_rows(y); r++) {
        const int32_t j = r % y->ne[1], k = r / y->ne[1] % y->ne[2], l = r / y->ne[1] / y->ne[2];
        const char *row = from + j * nb[1] + k * nb[2] + l * nb[3];
        char *to = small_row(y, y, r, ram);
        for (int32_t i = 0; i < y->ne[0]; i++)
            memcpy(to + 4 * i, row + i * nb[0], 4);
    }
}

void small_op_split(const small_op *op, char *ram);
void small_op_split(const small_op *op, char *ram) {
    const small_view *x = op->view[1];
    strided(op->view[0], small_data(x, ram) + op->n[1] * x->nb[op->n[0]], x->nb, ram);
}

void small_op_repeat(const small_op *op, char *ram);
void small_op_repeat(const small_op *op, char *ram) {
    const small_view *x = op->view[1];
    int32_t nb[4];
    for (int d = 0; d < 4; d++)
        nb[d] = x->ne[d] == 1 ? 0 : x->nb[d];
    strided(op->view[0], small_data(x, ram), nb, ram);
}

void small_op_transpose(const small_op *op, char *ram);
void small_op_transpose(const small_op *op, char *ram) {
    const small_view *x = op->view[1];
    int32_t nb[4];
    memcpy(nb, x->nb, sizeof nb);
    nb[op->n[0]] = x->nb[op->n[1]];
    nb[op->n[1]] = x->nb[op->n[0]];
    strided(op->view[0], small_data(x, ram), nb, ram);
}

void small_op_concat(const small_op *op, char *ram);
void small_op_concat(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1], *z = op->view[2];
    const int32_t dim = op->n[0];
    for (int32_t r = 0; r < small_n_rows(y); r++) {
        char *to = small_row(y, y, r, ram);
        if (dim == 0) {
            memcpy(to, small_row(x, y, r, ram), (size_t)x->ne[0] * 4);
            memcpy(to + x->ne[0] * 4, small_row(z, y, r, ram), (size_t)z->ne[0] * 4);
            continue;
        }
        int32_t at[4] = {0, r % y->ne[1], r / y->ne[1] % y->ne[2], r / y->ne[1] / y->ne[2]};
        const small_view *v = at[dim] < x->ne[dim] ? x : z;
        at[dim] -= v == x ? 0 : x->ne[dim];
        const char *from = small_data(v, ram);
        for (int d = 1; d < 4; d++)
            from += v->ne[d] == 1 ? 0 : at[d] * v->nb[d];
        memcpy(to, from, (size_t)y->ne[0] * 4);
    }
}

void small_op_iota(const small_op *op, char *ram);
void small_op_iota(const small_op *op, char *ram) {
    const small_view *y = op->view[0];
    for (int32_t r = 0; r < small_n_rows(y); r++)
        for (int32_t i = 0; i < y->ne[0]; i++)
            ((float *)(void *)small_row(y, y, r, ram))[i] = (float)i;
}

/* t[i] along dimension n[0] of t; n[1]: i is a list. Out of range, floats become NaN and integers -1. */
void small_op_pick(const small_op *op, char *ram);
void small_op_pick(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1], *index = op->view[2];
    const int32_t dim = op->n[0], n0 = dim > 0 ? x->ne[0] : 1, n1 = dim > 1 ? x->ne[1] : 1,
                  n2 = dim > 2 ? x->ne[2] : 1;
    for (int32_t e = 0; e < index->ne[0]; e++) {
        const int32_t at = ((const int32_t *)(const void *)small_data(index, ram))[e];
        const bool inside = at >= 0 && at < x->ne[dim];
        for (int32_t r = 0; r < n1 * n2; r++) {
            char *to = small_data(y, ram) + (op->n[1] ? e * y->nb[dim] : 0) +
                       (dim > 1 ? r % n1 * y->nb[1] : 0) + (dim > 2 ? r / n1 * y->nb[2] : 0);
            const char *from = small_data(x, ram) + (inside ? (size_t)at * (size_t)x->nb[dim] : 0) +
                               (dim > 1 ? r % n1 * x->nb[1] : 0) +
                               (dim > 2 ? r / n1 * x->nb[2] : 0);
            if (inside)
                move_row(y, x, to, from, n0);
            else
                memset(to, 0xff, (size_t)(n0 / y->type->block) * y->type->size);
        }
    }
}

/* --- states ----------------------------------------------------------------------------------- */

void small_op_state(const small_op *op, char *ram);
void small_op_state(const small_op *op, char *ram) {
    const small_view *y = op->view[0];
    memcpy(small_data(y, ram), ram + op->store[0]->at,
           (size_t)(y->ne[0] * small_n_rows(y)) * sizeof(float));
}

/* The state is the second source's store. */
void small_op_keep(const small_op *op, char *ram);
void small_op_keep(const small_op *op, char *ram) {
    const small_view *x = op->view[2];
    char *to = ram + op->store[0]->at;
    for (int32_t r = 0; r < small_n_rows(x); r++, to += x->ne[0] * (int32_t)sizeof(float))
        memcpy(to, small_row(x, x, r, ram), (size_t)x->ne[0] * sizeof(float));
}
