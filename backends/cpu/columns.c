/* Sorts columns by matrix: a counting sort. */
#include "columns.h"

#include <string.h>

size_t ggl_cpu_lists_size(int64_t n_columns, int64_t n_matrices) {
    return (size_t)(n_columns + 2 * n_matrices + 2) * sizeof(int32_t);
}

cpu_lists ggl_cpu_lists_at(char *memory, int64_t n_columns, int64_t n_matrices) {
    cpu_lists l = {.order = (int32_t *)memory, .n_matrices = n_matrices};
    l.start = l.order + n_columns;
    l.active = l.start + n_matrices + 1;
    return l;
}

void ggl_cpu_lists_sort(cpu_lists *l, int64_t n_columns, cpu_matrix_fn *matrix, const cpu_task *t) {
    memset(l->start, 0, (size_t)(l->n_matrices + 1) * sizeof *l->start);
    for (int64_t c = 0; c < n_columns; c++) {
        const int64_t m = matrix(t, c);
        if (m >= 0)
            l->start[m]++;
    }
    int32_t at = 0;
    for (int64_t m = 0; m <= l->n_matrices; m++) { /* turns counts into starts */
        const int32_t count = m < l->n_matrices ? l->start[m] : 0;
        l->start[m] = at;
        at += count;
    }
    for (int64_t c = 0; c < n_columns; c++) {
        const int64_t m = matrix(t, c);
        if (m >= 0)
            l->order[l->start[m]++] = (int32_t)c; /* leaves start[m] at the start of m + 1 */
    }
    for (int64_t m = l->n_matrices; m > 0; m--)
        l->start[m] = l->start[m - 1];
    l->start[0] = 0;
    l->n_active = 0;
    for (int64_t m = 0; m < l->n_matrices; m++)
        if (l->start[m + 1] > l->start[m])
            l->active[l->n_active++] = (int32_t)m;
}

bool ggl_cpu_has_index(const cpu_task *t) {
    return t->step->n_src > LINEAR_INDEX && t->src[LINEAR_INDEX].p;
}

int64_t ggl_cpu_matrix_of(const cpu_task *t, int64_t column) {
    const cpu_view *w = &t->src[LINEAR_W], *y = &t->dst, *index = &t->src[LINEAR_INDEX];
    int64_t d1 = column % y->ne[1], d2 = column / y->ne[1] % y->ne[2],
            l = column / y->ne[1] / y->ne[2];
    if (ggl_cpu_has_index(t)) {
        const char *row = index->p + (index->ne[3] == 1 ? 0 : (size_t)l * index->nb[3]);
        int64_t e = ((const int32_t *)row)[index->ne[0] == 1 ? 0 : d1];
        return e >= 0 && e < w->ne[2] ? e : -1;
    }
    int64_t outer = t->step->linear.batch_of_w ? l : d2;
    return (w->ne[2] == 1 ? 0 : d1) + (w->ne[3] == 1 ? 0 : outer) * w->ne[2];
}

bool ggl_cpu_one_matrix(const cpu_task *t) {
    return ggl_extents(t->src[LINEAR_W].ne, 2, GGL_MAX_DIMS, 1) == 1 && !ggl_cpu_has_index(t);
}
