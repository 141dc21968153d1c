/* Rows that lie apart: those of chosen positions, and the keys by which positions are chosen. */
#include <string.h>

#include "attend.h"

/* Decodes the row of head `head` of a store at the position. */
static void decode_row(const cpu_task *t, int part, const cpu_apart *from, int64_t pos,
                       float *row) {
    const ggl_store *s = t->step->attend.kept[part].store;
    const char *page = cpu_store(t, &t->step->attend.kept[part]) +
                       (size_t)ggl_store_page(s, from->table, from->slot, pos) *
                           t->step->attend.kept[part].at.step;
    if (s->kind != GGL_STORE_VALUES || ggl_type_get(s->type)->quantized) {
        ggl_store_get(s, page, pos, from->head, row);
        return;
    }
    const size_t size = ggl_row_size(s->type, s->ne[0]);
    t->b->k.to_f32[s->type](page + (size_t)(from->head * GGL_PAGE + pos % GGL_PAGE) * size, row,
                            s->ne[0]);
}

void ggl_cpu_rows_apart(const cpu_task *t, int part, const cpu_apart *from, const int64_t *pos,
                        int n, float *rows, int64_t step) {
    const int64_t d = t->step->attend.kept[part].store->ne[0];
    for (int j = 0; j < n; j++) {
        decode_row(t, part, from, pos[j], rows + j * step);
        memset(rows + j * step + d, 0, (size_t)(step - d) * sizeof *rows);
    }
    memset(rows + n * step, 0, (size_t)((GGL_PAGE - n) * step) * sizeof *rows);
}

void ggl_cpu_rows_to_columns(const float *rows, int64_t d, float *columns) {
    enum { BLOCK = 16 }; /* rows and columns at a time, so that both stay in the L1 cache */
    for (int64_t i = 0; i < d; i += BLOCK)
        for (int from = 0; from < GGL_PAGE; from += BLOCK)
            for (int64_t k = i; k < cpu_min(d, i + BLOCK); k++)
                for (int j = from; j < from + BLOCK; j++)
                    columns[k * GGL_PAGE + j] = rows[j * d + k];
}

void ggl_cpu_attend_chosen(const group *g, int64_t first) {
    const ggl_store *ks = g->t->step->attend.kept[0].store, *vs = g->t->step->attend.kept[1].store;
    const cpu_apart from = {g->table, g->slot, g->store_head};
    const int64_t d = ks->ne[0];
    const int n = (int)cpu_min(GGL_PAGE, g->last + 1 - first);
    int64_t pos[GGL_PAGE];
    for (int j = 0; j < n; j++)
        pos[j] = ggl_chosen_position(g->chosen[first + j], g->pos[0]);
    ggl_cpu_rows_apart(g->t, 0, &from, pos, n, g->panel_rows, d);
    ggl_cpu_rows_to_columns(g->panel_rows, d, g->panel_keys);
    if (vs) {
        ggl_cpu_rows_apart(g->t, 1, &from, pos, n, g->panel_values, g->step);
        return;
    }
    for (int j = 0; j < GGL_PAGE; j++) {
        memcpy(g->panel_values + j * g->step, g->panel_rows + j * d, (size_t)g->e * sizeof(float));
        memset(g->panel_values + j * g->step + g->e, 0, (size_t)(g->step - g->e) * sizeof(float));
    }
}
