/* choose_rows: the positions of the groups of rows with the largest scores. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "reference.h"

/* Returns the sum over heads of w[h] times what is above 0 of the query's product with the key at the position. */
static double score_of(const step_args *a, const ggl_store *s, int64_t l, int64_t pos) {
    const view *q = &a->src[CHOOSE_ROWS_Q], *pages = &a->src[CHOOSE_ROWS_PAGE];
    const int64_t slot = (int64_t)ggl_ref_get(&a->src[CHOOSE_ROWS_SLOT], 0, 0, 0, l);
    const int32_t *table =
        pages->data ? (const int32_t *)(pages->data + (size_t)slot * pages->nb[1]) : NULL;
    double sum = 0;
    ggl_store_get(s,
                  ggl_ref_store(a, s) + (size_t)ggl_store_page(s, table, slot, pos) * s->page_size,
                  pos, 0, a->stored);
    for (int64_t h = 0; h < q->ne[1]; h++) {
        double x = 0;
        for (int64_t i = 0; i < q->ne[0]; i++)
            x += ggl_ref_get(q, i, h, 0, l) * (double)a->stored[i];
        sum += ggl_ref_get(&a->src[CHOOSE_ROWS_W], h, 0, 0, l) * (x > 0 ? x : 0);
    }
    return sum;
}

/* True if score x[i] is among the k largest of n; of equals the earlier, NaN last. */
static bool is_chosen(const double *x, int64_t n, int64_t i, int64_t k) {
    int64_t before = 0;
    for (int64_t j = 0; j < n && before < k; j++)
        before += x[j] > x[i] || (isnan(x[i]) && !isnan(x[j])) ||
                  (j < i && (x[j] == x[i] || (isnan(x[i]) && isnan(x[j]))));
    return before < k;
}

int64_t ggl_ref_choose_rows_scratch(const ggl_tensor *node) {
    return node->src[CHOOSE_ROWS_KV]->store[0]->n_pos;
}

void ggl_ref_choose_rows(const step_args *a) {
    const ggl_store *s = a->node->src[CHOOSE_ROWS_KV]->store[0];
    const int64_t every = (int64_t)a->node->num[CHOOSE_ROWS_EVERY],
                  k = (int64_t)a->node->num[CHOOSE_ROWS_BEST];
    for (int64_t l = 0; l < a->dst.ne[3]; l++) {
        const int64_t pos = (int64_t)ggl_ref_get(&a->src[CHOOSE_ROWS_POS], 0, 0, 0, l),
                      n = ggl_groups_whole(pos, every);
        int64_t at = 0;
        for (int64_t i = 0; i < n; i++)
            a->attend[i] = score_of(a, s, l, i * every + every - 1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < every && is_chosen(a->attend, n, i, k); j++)
                ggl_ref_set(&a->dst, at++, 0, 0, l, (double)(i * every + j));
        for (int64_t p = n * every; p <= pos; p++)
            ggl_ref_set(&a->dst, at++, 0, 0, l, (double)p);
        while (at < a->dst.ne[0])
            ggl_ref_set(&a->dst, at++, 0, 0, l, -1);
    }
}
