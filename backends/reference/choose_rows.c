/* choose_rows: the positions of the groups of rows with the largest scores. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "reference.h"

/* Returns the score of the key at the position: the sum over heads of w[h] times what is above 0 of the query's product with it; without w,
 * the product of head `head`. */
static double score_of_key(const step_args *a, const ggl_store *s, int64_t l, int64_t head,
                           int64_t pos) {
    const view *q = &a->src[CHOOSE_ROWS_Q], *pages = &a->src[CHOOSE_ROWS_PAGE],
               *w = &a->src[CHOOSE_ROWS_W];
    const int64_t slot = (int64_t)ggl_ref_get(&a->src[CHOOSE_ROWS_SLOT], 0, 0, 0, l);
    const int32_t *table =
        pages->data ? (const int32_t *)(pages->data + (size_t)slot * pages->nb[1]) : NULL;
    double sum = 0;
    ggl_store_get(s,
                  ggl_ref_store(a, s) +
                      (size_t)ggl_store_page(s, table, slot, pos) * a->store_loc[s->id].step,
                  pos, 0, a->stored);
    for (int64_t h = w->data ? 0 : head; h < (w->data ? q->ne[1] : head + 1); h++) {
        double x = 0;
        for (int64_t i = 0; i < q->ne[0]; i++)
            x += ggl_ref_get(q, i, h, 0, l) * (double)a->stored[i];
        sum += w->data ? ggl_ref_get(w, h, 0, 0, l) * (x > 0 ? x : 0) : x;
    }
    return sum;
}

/* Returns the score of the group for a token at pos: that of its last key, or the largest of those that the token sees; NaN only if all are. */
static double score_of(const step_args *a, const ggl_store *s, int64_t l, int64_t head, int64_t pos,
                       int64_t group) {
    const int64_t every = (int64_t)a->node->num[CHOOSE_ROWS_EVERY], first = group * every,
                  last = first + every - 1;
    if (!ggl_choice_is_of_all(a->node))
        return score_of_key(a, s, l, head, last);
    double most = NAN;
    for (int64_t p = first; p <= last && p <= pos; p++) {
        const double x = score_of_key(a, s, l, head, p);
        most = isnan(most) || x > most ? x : most;
    }
    return most;
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

/* Writes the positions that head `head` of token l chooses. */
static void choose(const step_args *a, int64_t l, int64_t head) {
    const ggl_store *s = a->node->src[CHOOSE_ROWS_KV]->store[0];
    const int64_t every = (int64_t)a->node->num[CHOOSE_ROWS_EVERY],
                  pos = (int64_t)ggl_ref_get(&a->src[CHOOSE_ROWS_POS], 0, 0, 0, l);
    const ggl_choice of = ggl_choice_at(a->node, pos);
    int64_t at = 0;
    for (int64_t i = 0; i < of.n; i++)
        a->attend[i] = score_of(a, s, l, head, pos, i);
    for (int64_t p = 0; p <= pos; p++)
        if (p / every >= of.n || is_chosen(a->attend, of.n, p / every, of.best))
            ggl_ref_set(&a->dst, at++, head, 0, l, (double)p);
    while (at < a->dst.ne[0])
        ggl_ref_set(&a->dst, at++, head, 0, l, -1);
}

void ggl_ref_choose_rows(const step_args *a) {
    for (int64_t l = 0; l < a->dst.ne[3]; l++)
        for (int64_t head = 0; head < a->dst.ne[1]; head++)
            choose(a, l, head);
}
