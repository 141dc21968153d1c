/* Sums, norms and order along rows (docs/numeric.md, section 3). A composite runs the operations of its body, one after the
 * other. */
#include "step.h"

#include "../backends/cpu/scalar/rows.c"
#include "ggl/internal/math.h"

/* y = x op x of the next row .., over another dimension than 0; op is + from +0, or max, with +0 added. */
static void reduce_rows(const small_op *op, char *ram, bool is_sum) {
    const small_view *y = op->view[0], *x = op->view[1];
    const int32_t dim = op->n[0];
    small_view first = *x;
    first.ne[dim] = 1;
    for (int32_t r = 0; r < small_n_rows(y); r++) {
        float *to = (float *)(void *)small_row(y, y, r, ram);
        const char *from = small_row(&first, y, r, ram);
        for (int32_t i = 0; i < y->ne[0]; i++) {
            float s = ((const float *)(const void *)from)[i] + 0.0f;
            for (int32_t j = 1; j < x->ne[dim]; j++) {
                const float a = ((const float *)(const void *)(from + j * x->nb[dim]))[i];
                s = is_sum ? s + a : max_of(s, a);
            }
            to[i] = s + 0.0f;
        }
    }
}

void small_op_sum(const small_op *op, char *ram);
void small_op_sum(const small_op *op, char *ram) {
    if (op->n[0] != 0) {
        reduce_rows(op, ram, true);
        return;
    }
    SMALL_EACH_ROW(op, 0, y, x, n) {
        *y = sum(x, n);
    }
}

void small_op_amax(const small_op *op, char *ram);
void small_op_amax(const small_op *op, char *ram) {
    if (op->n[0] != 0) {
        reduce_rows(op, ram, false);
        return;
    }
    SMALL_EACH_ROW(op, 0, y, x, n) {
        *y = amax(x, n);
    }
}

static void divide(float *y, const float *x, float by, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / by;
}

void small_op_softmax(const small_op *op, char *ram);
void small_op_softmax(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        const float m = amax(x, n);
        for (int64_t i = 0; i < n; i++)
            y[i] = ggl_expf(x[i] - m);
        divide(y, y, sum(y, n), n);
    }
}

void small_op_normalised(const small_op *op, char *ram);
void small_op_normalised(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        divide(y, x, sum(x, n), n);
    }
}

void small_op_center(const small_op *op, char *ram);
void small_op_center(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        const float mean = sum(x, n) / (float)n;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - mean;
    }
}

void small_op_rms(const small_op *op, char *ram);
void small_op_rms(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        const float mean = sum_squares(x, n) / (float)n;
        divide(y, x, sqrtf(mean + op->f[0]), n);
    }
}

void small_op_l2(const small_op *op, char *ram);
void small_op_l2(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        const float s = sum_squares(x, n), low = op->f[0];
        divide(y, x, sqrtf(s > low || s != s ? s : low), n);
    }
}

/* --- order ------------------------------------------------------------------------------------ */

/* True if x[a] ranks before x[b]: it is larger, or equal with a < b. NaN ranks last. */
static bool before(const float *x, int64_t a, int64_t b) {
    if (x[a] != x[a] || x[b] != x[b])
        return x[b] != x[b] && (x[a] == x[a] || a < b);
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

void small_op_rank(const small_op *op, char *ram);
void small_op_rank(const small_op *op, char *ram) {
    SMALL_EACH_ROW(op, 1, y, x, n) {
        for (int64_t i = 0; i < n; i++) {
            int32_t place = 0;
            for (int64_t j = 0; j < n; j++)
                place += before(x, j, i);
            y[i] = (float)place;
        }
    }
}

void small_op_topk(const small_op *op, char *ram);
void small_op_topk(const small_op *op, char *ram) {
    const float *x = (const float *)(const void *)small_data(op->view[1], ram);
    int32_t *y = (int32_t *)(void *)small_data(op->view[0], ram);
    const int32_t k = op->view[0]->ne[0];
    int32_t n = 0;
    for (int32_t i = 0; i < op->view[1]->ne[0]; i++) {
        if (n == k && !before(x, i, y[k - 1]))
            continue;
        int32_t at = n < k ? n++ : k - 1;
        for (; at > 0 && before(x, i, y[at - 1]); at--)
            y[at] = y[at - 1];
        y[at] = i;
    }
}
