/* cache and attend: writes rows to the stores, and attends to them. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/math.h"
#include "reference.h"

/* Returns the page that holds a position of a slot. `pages` is the table, absent for rings. */
static char *page_at(const step_args *a, const ggl_store *s, const view *pages, int64_t slot,
                     int64_t pos) {
    const int32_t *table =
        pages->data ? (const int32_t *)(pages->data + (size_t)slot * pages->nb[1]) : NULL;
    return ggl_ref_store(a, s) +
           (size_t)ggl_store_page(s, table, slot, pos) * a->store_loc[s->id].step;
}

void ggl_ref_cache(const step_args *a) {
    const int64_t n = a->src[CACHE_POS].ne[3];
    for (int part = 0; part < 2; part++) {
        const ggl_store *s = a->node->store[part];
        if (!s)
            continue;
        const view *x = &a->src[part];
        for (int64_t l = 0; l < n; l++) { /* rows may be the same for the whole batch */
            const int64_t pos = (int64_t)ggl_ref_get(&a->src[CACHE_POS], 0, 0, 0, l),
                          slot = (int64_t)ggl_ref_get(&a->src[CACHE_SLOT], 0, 0, 0, l);
            for (int64_t j = 0; j < x->ne[1]; j++) {
                for (int64_t i = 0; i < x->ne[0]; i++)
                    a->stored[i] = (float)ggl_ref_get(x, i, j, 0, l);
                ggl_store_put(s, page_at(a, s, &a->src[CACHE_PAGE], slot, pos), pos, j, a->stored);
            }
        }
    }
}

/* The query heads of one token that share a head of the store. They read the same rows, so each row
 * is decoded once for all of them. */
typedef struct share {
    int64_t l, head, n_head; /* token; first query head, number of query heads */
    int64_t g;               /* head of the store */
    int64_t slot, pos, end; /* end: rows of the slot that see each other; 0: see ggl_visible_rows */
    int64_t first,
        n_pos;     /* positions first .. first + n_pos - 1 are visible; or n_pos chosen ones */
    double *query; /* [n_head][query dimensions] */
    double *score; /* [n_head][n_pos] */
    double *total; /* [n_head]: sums of exp(score - max) */
    double *out;   /* [n_head][value dimensions] */
    double *key;   /* [query dimensions]: a key, with relative positions */
} share;

/* Returns how many doubles of scratch ggl_ref_attend needs. */
int64_t ggl_ref_attend_scratch(const ggl_tensor *node) {
    const ggl_tensor *q = node->src[ATTEND_Q], *kv = node->src[ATTEND_KV];
    const int64_t n_head = q->ne[1] / kv->store[0]->ne[1],
                  chosen = node->src[ATTEND_CHOSEN] ? node->src[ATTEND_CHOSEN]->ne[0] : 0,
                  most = chosen > kv->store[0]->n_pos ? chosen : kv->store[0]->n_pos;
    return n_head * (q->ne[0] + most + 1 + node->ne[0]) + q->ne[0];
}

/* Returns which of a token's lists of chosen positions head g of the store has. */
static int64_t list_of(const view *chosen, int64_t g) {
    return chosen->ne[1] == 1 ? 0 : g;
}

/* Returns the number of rows of head g that token l reads by the positions that were chosen for it. */
static int64_t n_chosen(const step_args *a, int64_t g, int64_t l) {
    const view *v = &a->src[ATTEND_CHOSEN];
    int64_t n = 0;
    while (n < v->ne[0] && !(ggl_ref_get(v, n, list_of(v, g), 0, l) < 0))
        n++;
    return n > 0 ? n : 1;
}

/* Returns the position of the p-th row that a token sees. */
static int64_t position_of(const step_args *a, const share *s, int64_t p) {
    const view *v = &a->src[ATTEND_CHOSEN];
    return v->data
               ? ggl_chosen_position((float)ggl_ref_get(v, p, list_of(v, s->g), 0, s->l), s->pos)
               : s->first + p;
}

/* Returns the most rows that a token can see. */
static int64_t most_rows(const step_args *a, const ggl_store *keys) {
    const view *v = &a->src[ATTEND_CHOSEN];
    return v->data && v->ne[0] > keys->n_pos ? v->ne[0] : keys->n_pos;
}

static share share_of(const step_args *a, const ggl_store *keys, int64_t l, int64_t g) {
    const view *q = &a->src[ATTEND_Q];
    share s = {.l = l, .g = g, .n_head = q->ne[1] / keys->ne[1]};
    s.head = g * s.n_head;
    s.pos = (int64_t)ggl_ref_get(&a->src[ATTEND_POS], 0, 0, 0, l);
    s.slot = (int64_t)ggl_ref_get(&a->src[ATTEND_SLOT], 0, 0, 0, l);
    s.end = a->src[ATTEND_END].data ? (int64_t)ggl_ref_get(&a->src[ATTEND_END], 0, 0, 0, l) : 0;
    const view *within = &a->src[ATTEND_WITHIN];
    float ends[2] = {0};
    for (int i = 0; within->data && i < 2; i++)
        ends[i] = (float)ggl_ref_get(within, i, 0, 0, l);
    const ggl_visible v =
        ggl_visible_within(ggl_visible_rows(s.pos, s.slot, ggl_attend_window(a->node), s.end),
                           within->data ? ends : NULL);
    s.n_pos = v.end - v.first;
    s.n_pos = s.n_pos < keys->n_pos ? s.n_pos : keys->n_pos; /* the store holds no more */
    s.first = v.end - s.n_pos;
    if (a->src[ATTEND_CHOSEN].data) {
        s.first = 0;
        s.n_pos = n_chosen(a, g, l);
    }
    s.query = a->attend;
    s.score = s.query + s.n_head * q->ne[0];
    s.total = s.score + s.n_head * most_rows(a, keys);
    s.out = s.total + s.n_head;
    s.key = s.out + s.n_head * a->dst.ne[0];
    for (int64_t h = 0; h < s.n_head; h++)
        ggl_ref_get_row(q, s.head + h, 0, l, s.query + h * q->ne[0]);
    return s;
}

/* Returns the index of the distance among those of -m .. m, of a head's biases or of row numbers; farther ones are as m. */
static int64_t bias_of(const view *bias, int64_t distance) {
    const int64_t m = bias->ne[0] / 2;
    return m + (distance < -m ? -m : distance > m ? m : distance);
}

/* Returns the row of the distance in the tables of relative positions. */
static int64_t relative_row(const step_args *a, int64_t distance) {
    const view *row = &a->src[ATTEND_REL_ROW],
               *table = &a->src[a->src[ATTEND_REL_K].data ? ATTEND_REL_K : ATTEND_REL_Q];
    return ggl_relative_row(ggl_ref_get(row, bias_of(row, distance), 0, 0, 0), table->ne[1]);
}

/* Returns x[d] times the distance's row in the table for head g of the store; 0 without a table. */
static double relative_product(const view *table, int64_t row, int64_t g, const double *x) {
    double sum = 0;
    for (int64_t i = 0; table->data && i < table->ne[0]; i++)
        sum += x[i] * ggl_ref_get(table, i, row, table->ne[2] == 1 ? 0 : g, 0);
    return sum;
}

/* Returns what relative positions add to the product of a query and the stored key. */
static double relative(const step_args *a, const share *s, int64_t p, const double *query) {
    const int64_t row = relative_row(a, s->first + p - s->pos), d = a->src[ATTEND_Q].ne[0];
    for (int64_t i = 0; i < d; i++)
        s->key[i] = (double)a->stored[i];
    return relative_product(&a->src[ATTEND_REL_K], row, s->g, query) +
           relative_product(&a->src[ATTEND_REL_Q], row, s->g, s->key);
}

static void scores(const step_args *a, const ggl_store *keys, const share *s) {
    const view *alibi = &a->src[ATTEND_ALIBI], *bias = &a->src[ATTEND_BIAS];
    int64_t d = a->src[ATTEND_Q].ne[0];
    double scale = a->node->num[ATTEND_SCALE], cap = a->node->num[ATTEND_CAP];
    for (int64_t p = 0; p < s->n_pos; p++) {
        const int64_t pos = position_of(a, s, p);
        const char *page = page_at(a, keys, &a->src[ATTEND_PAGE], s->slot, pos);
        ggl_store_get(keys, page, pos, s->g, a->stored);
        for (int64_t h = 0; h < s->n_head; h++) {
            double x = 0;
            for (int64_t i = 0; i < d; i++)
                x += s->query[h * d + i] * (double)a->stored[i];
            if (a->src[ATTEND_REL_ROW].data)
                x += relative(a, s, p, s->query + h * d);
            x *= isnan(scale) ? 1 / sqrt((double)d) : scale;
            if (!isnan(cap))
                x = cap * ggl_tanh(x / cap);
            if (alibi->data)
                x -= ggl_ref_get(alibi, s->head + h, 0, 0, s->l) *
                     fabs((double)(s->pos - s->first - p));
            if (bias->data)
                x += ggl_ref_get(bias, bias_of(bias, s->first + p - s->pos), s->head + h, 0, 0);
            s->score[h * s->n_pos + p] = x;
        }
    }
}

/* Turns head h's scores x[p] into exp(x[p] - max); returns their sum, including the sink's term. */
static double exponents(const step_args *a, const share *s, int64_t h) {
    const view *sinks = &a->src[ATTEND_SINKS];
    double *x = s->score + h * s->n_pos, total = 0;
    double sink = sinks->data ? ggl_ref_get(sinks, s->head + h, 0, 0, s->l) : -INFINITY, top = sink;
    for (int64_t p = 0; p < s->n_pos; p++)
        top = fmax(top, x[p]);
    for (int64_t p = 0; p < s->n_pos; p++)
        total += x[p] = ggl_exp(x[p] - top);
    return sinks->data ? total + ggl_exp(sink - top) : total;
}

static void add_values(const step_args *a, const ggl_store *values, const share *s) {
    int64_t e = a->dst.ne[0];
    for (int64_t i = 0; i < s->n_head * e; i++)
        s->out[i] = 0;
    for (int64_t p = 0; p < s->n_pos; p++) {
        const int64_t pos = position_of(a, s, p);
        const char *page = page_at(a, values, &a->src[ATTEND_PAGE], s->slot, pos);
        ggl_store_get(values, page, pos, s->g, a->stored);
        for (int64_t h = 0; h < s->n_head; h++) {
            double weight = s->score[h * s->n_pos + p];
            for (int64_t i = 0; i < e; i++)
                s->out[h * e + i] += weight * (double)a->stored[i];
        }
    }
}

/* Softmax over the visible positions of the token's own slot. */
void ggl_ref_attend(const step_args *a) {
    const ggl_tensor *kv = a->node->src[ATTEND_KV];
    const ggl_store *keys = kv->store[0], *values = kv->store[1] ? kv->store[1] : keys;
    int64_t e = a->dst.ne[0];
    for (int64_t l = 0; l < a->dst.ne[3]; l++)
        for (int64_t g = 0; g < keys->ne[1]; g++) {
            const share s = share_of(a, keys, l, g);
            scores(a, keys, &s);
            for (int64_t h = 0; h < s.n_head; h++)
                s.total[h] = exponents(a, &s, h);
            add_values(a, values, &s);
            for (int64_t h = 0; h < s.n_head; h++)
                for (int64_t i = 0; i < e; i++)
                    ggl_ref_set(&a->dst, i, s.head + h, 0, l, s.out[h * e + i] / s.total[h]);
        }
}
