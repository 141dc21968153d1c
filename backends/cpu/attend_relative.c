/* What relative positions add to scores (docs/numeric.md, section 6): the row of the distance in rel_k times the query, and that in
 * rel_q times the key. A row is multiplied with 64 queries or keys side by side, once for all pairs of that distance. */
#include "attend.h"

/* The table of rows; it has one for all heads, or one for each head of the store. */
static const cpu_view *any_table(const cpu_task *t) {
    return &t->src[t->src[ATTEND_REL_K].p ? ATTEND_REL_K : ATTEND_REL_Q];
}

int64_t ggl_cpu_attend_relative_floats(const cpu_step *s) {
    const ggl_operand *row = &s->src[ATTEND_REL_ROW], *k = &s->src[ATTEND_REL_K],
                      *q = &s->src[ATTEND_REL_Q];
    if (row->region < 0)
        return 0;
    const int64_t n_rows = k->region >= 0 ? k->ne[1] : q->ne[1];
    return (row->ne[0] + 15) / 16 * 16 + (s->src[ATTEND_Q].ne[0] + 2 * n_rows) * GGL_PAGE;
}

/* Returns m + the distance of the key at position j, at most m on both sides. */
static int64_t place_of(int64_t m, int64_t distance) {
    return m + cpu_max(-m, cpu_min(m, distance));
}

/* Sets the rows of all distances that the group sees, and the first and last of these rows. */
static void find_rows(group *g) {
    const cpu_view *map = &g->t->src[ATTEND_REL_ROW];
    const int64_t m = map->ne[0] / 2, n_rows = any_table(g->t)->ne[1];
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int q = 0; q < g->n; q++) {
        least = cpu_min(least, g->from[q] - g->pos[q]);
        most = cpu_max(most, g->end[q] - 1 - g->pos[q]);
    }
    g->relative.first_row = INT64_MAX;
    g->relative.last_row = 0;
    for (int64_t i = place_of(m, least); i <= place_of(m, most); i++) {
        const int64_t row = ggl_relative_row((double)((const float *)map->p)[i], n_rows);
        g->relative.row[i] = (int32_t)row;
        g->relative.first_row = cpu_min(g->relative.first_row, row);
        g->relative.last_row = cpu_max(g->relative.last_row, row);
    }
}

/* Sets out[r] to the table's row first + r times the columns panel[d][64], for rows first .. last. */
static void multiply(const group *g, const cpu_view *table, int64_t first, int64_t last,
                     const float *panel, float (*out)[GGL_PAGE]) {
    const char *rows = table->p + (table->ne[2] == 1 ? 0 : (size_t)g->store_head * table->nb[2]);
    for (int64_t r = first; r <= last; r += CPU_TILE, out += CPU_TILE) {
        const float *row[CPU_TILE];
        const int n = (int)cpu_min(CPU_TILE, last - r + 1);
        for (int i = 0; i < n; i++)
            row[i] = (const float *)(rows + (size_t)(r + i) * table->nb[1]);
        g->t->b->k.panel_scores(out, row, n, panel, table->ne[0]);
    }
}

void ggl_cpu_attend_relative_begin(group *g, float *memory) {
    const cpu_view *table = any_table(g->t), *rel_k = &g->t->src[ATTEND_REL_K];
    const int64_t d = table->ne[0];
    g->relative.row = (int32_t *)memory;
    g->relative.queries = memory + (g->t->src[ATTEND_REL_ROW].ne[0] + 15) / 16 * 16;
    g->relative.by_query = g->relative.queries + d * GGL_PAGE;
    g->relative.by_key = g->relative.by_query + table->ne[1] * GGL_PAGE;
    find_rows(g);
    if (!rel_k->p)
        return;
    for (int64_t i = 0; i < d; i++)
        for (int q = 0; q < GGL_PAGE; q++)
            g->relative.queries[i * GGL_PAGE + q] = q < g->n ? g->query[q][i] : 0;
    multiply(g, rel_k, g->relative.first_row, g->relative.last_row, g->relative.queries,
             (float(*)[GGL_PAGE])g->relative.by_query);
}

void ggl_cpu_attend_decode_keys(const group *g, const char *page) {
    enum { PART = 32 };
    const ggl_store *s = g->t->step->attend.kept[0].store;
    if (!ggl_type_get(s->type)->quantized) {
        g->t->b->k.to_f32[s->type](page, g->panel_keys, s->ne[0] * GGL_PAGE);
        return;
    }
    for (int64_t i = 0; i < s->ne[0]; i += PART)
        ggl_keys_unpack(s->type, page, i, (int)cpu_min(PART, s->ne[0] - i),
                        (float(*)[GGL_PAGE])(g->panel_keys + i * GGL_PAGE));
}

/* Adds products[row - first_row][at + j * step], of the distance's row, to the scores v[j] of positions first + lo .. first + hi - 1
 * for a query at `pos`. */
static void add(const cpu_relative *r, int64_t m, int64_t first, int64_t pos, int lo, int hi,
                const float *products, int64_t first_row, int64_t at, int step, float *v) {
    const int64_t least = first + lo - pos, most = first + hi - 1 - pos;
    if (least >= -m && most <= m) {
        const int32_t *row = r->row + (m + first - pos);
        for (int j = lo; j < hi; j++)
            v[j] += products[(row[j] - first_row) * GGL_PAGE + at + j * step];
        return;
    }
    for (int j = lo; j < hi; j++)
        v[j] +=
            products[(r->row[place_of(m, first + j - pos)] - first_row) * GGL_PAGE + at + j * step];
}

/* Sets the first and last row of the distances between the group's queries and the positions first .. last. */
static void rows_of_page(const group *g, int64_t first, int64_t last, int64_t *lo, int64_t *hi) {
    const int64_t m = g->t->src[ATTEND_REL_ROW].ne[0] / 2;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int q = 0; q < g->n; q++) {
        const int64_t from = cpu_max(first, g->from[q]), to = cpu_min(last, g->end[q] - 1);
        if (from > to)
            continue;
        least = cpu_min(least, from - g->pos[q]);
        most = cpu_max(most, to - g->pos[q]);
    }
    *lo = g->relative.last_row + 1, *hi = 0;
    for (int64_t i = place_of(m, least); least <= most && i <= place_of(m, most); i++) {
        *lo = cpu_min(*lo, g->relative.row[i]);
        *hi = cpu_max(*hi, g->relative.row[i]);
    }
}

void ggl_cpu_attend_relative_add(const group *g, int64_t first, float (*w)[GGL_PAGE]) {
    const cpu_task *t = g->t;
    const cpu_relative *r = &g->relative;
    const int64_t m = t->src[ATTEND_REL_ROW].ne[0] / 2;
    int64_t first_row = 0, last_row = 0;
    if (t->src[ATTEND_REL_Q].p) {
        rows_of_page(g, first, first + GGL_PAGE - 1, &first_row, &last_row);
        multiply(g, &t->src[ATTEND_REL_Q], first_row, last_row, g->panel_keys,
                 (float(*)[GGL_PAGE])r->by_key);
    }
    for (int q = 0; q < g->n; q++) {
        const int lo = (int)cpu_max(0, cpu_min(GGL_PAGE, g->from[q] - first)),
                  hi = (int)cpu_max(0, cpu_min(GGL_PAGE, g->end[q] - first));
        if (t->src[ATTEND_REL_K].p)
            add(r, m, first, g->pos[q], lo, hi, r->by_query, r->first_row, q, 0, w[q]);
        if (t->src[ATTEND_REL_Q].p)
            add(r, m, first, g->pos[q], lo, hi, r->by_key, first_row, 0, 1, w[q]);
    }
}
