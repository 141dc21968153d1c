/* attend_back: the gradients of attention by queries, keys, values, sinks, biases, and products with relative positions. All rows
 * are those of the batch. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/math.h"
#include "reference.h"

/* One head of one element. */
typedef struct query {
    int64_t l, head, of; /* element, head of the query, head of the keys */
    int64_t d, e, n;     /* sizes of keys and values, elements of the batch */
    double *weight;      /* [n]: exp(score - top), then its share; 0: not visible */
    double *slope;       /* [n]: how the score changes with the product */
    double *part;        /* [n]: the product of dy and the value */
    double *q, *dy, *row;
} query;

/* Returns whether the element at index m is visible for query x. */
static bool is_visible(const step_args *a, const query *x, int64_t m) {
    const view *pos = &a->src[ATTEND_BACK_POS], *slot = &a->src[ATTEND_BACK_SLOT],
               *end = &a->src[ATTEND_BACK_END], *within = &a->src[ATTEND_BACK_WITHIN];
    float ends[2] = {0};
    for (int i = 0; within->data && i < 2; i++)
        ends[i] = (float)ggl_ref_get(within, i, 0, 0, x->l);
    const int64_t of = (int64_t)ggl_ref_get(slot, 0, 0, 0, x->l),
                  at = (int64_t)ggl_ref_get(pos, 0, 0, 0, m);
    const ggl_visible v = ggl_visible_within(
        ggl_visible_rows((int64_t)ggl_ref_get(pos, 0, 0, 0, x->l), of, ggl_attend_window(a->node),
                         end->data ? (int64_t)ggl_ref_get(end, 0, 0, 0, x->l) : 0),
        within->data ? ends : NULL);
    return (int64_t)ggl_ref_get(slot, 0, 0, 0, m) == of && at >= v.first && at < v.end;
}

static double product(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static int64_t distance(const step_args *a, const query *x, int64_t m) {
    return (int64_t)(ggl_ref_get(&a->src[ATTEND_BACK_POS], 0, 0, 0, m) -
                     ggl_ref_get(&a->src[ATTEND_BACK_POS], 0, 0, 0, x->l));
}

/* Where a row of numbers of the distances -most .. most has that of the element at index m. */
static int64_t place_of(const step_args *a, const view *row, const query *x, int64_t m) {
    const int64_t most = row->ne[0] / 2, far = distance(a, x, m);
    return most + (far < -most ? -most : far > most ? most : far);
}

/* Returns the row of relative positions for the element at index m. */
static int64_t relative_row(const step_args *a, const query *x, int64_t m) {
    const view *row = &a->src[ATTEND_BACK_REL_ROW],
               *of =
                   &a->src[a->src[ATTEND_BACK_Q_REL].data ? ATTEND_BACK_Q_REL : ATTEND_BACK_K_REL];
    return ggl_relative_row(ggl_ref_get(row, place_of(a, row, x, m), 0, 0, 0), of->ne[0]);
}

/* Returns what relative positions add to the product of the query and the key of the element at index m. */
static double relative(const step_args *a, const query *x, int64_t m) {
    const view *by_query = &a->src[ATTEND_BACK_Q_REL], *by_key = &a->src[ATTEND_BACK_K_REL];
    double sum = 0;
    if (by_query->data)
        sum += ggl_ref_get(by_query, relative_row(a, x, m), x->head, 0, x->l);
    if (by_key->data)
        sum += ggl_ref_get(by_key, relative_row(a, x, m), x->of, 0, m);
    return sum;
}

/* Sets x->weight[m] to the score, and x->slope[m]. */
static void score(const step_args *a, query *x, int64_t m) {
    const view *alibi = &a->src[ATTEND_BACK_ALIBI], *bias = &a->src[ATTEND_BACK_BIAS];
    const double scale = a->node->num[ATTEND_BACK_SCALE], cap = a->node->num[ATTEND_BACK_CAP],
                 factor = isnan(scale) ? 1 / sqrt((double)x->d) : scale;
    ggl_ref_get_row(&a->src[ATTEND_BACK_K], x->of, 0, m, x->row);
    double s = (product(x->q, x->row, x->d) + relative(a, x, m)) * factor;
    x->slope[m] = factor;
    if (!isnan(cap)) {
        const double t = ggl_tanh(s / cap);
        s = cap * t;
        x->slope[m] = (1 - t * t) * factor;
    }
    if (alibi->data)
        s -= ggl_ref_get(alibi, x->head, 0, 0, x->l) * fabs((double)distance(a, x, m));
    if (bias->data)
        s += ggl_ref_get(bias, place_of(a, bias, x, m), x->head, 0, 0);
    x->weight[m] = s;
}

static void add(const step_args *a, int64_t at, int64_t l, double x) {
    ggl_ref_set(&a->dst, at, 0, 0, l, ggl_ref_get(&a->dst, at, 0, 0, l) + x);
}

/* Adds ds, the gradient of the product of query and key, to those of what relative positions add to it; these begin at `first`. */
static void add_relative(const step_args *a, const query *x, int64_t first, int64_t m, double ds) {
    const view *by_query = &a->src[ATTEND_BACK_Q_REL], *by_key = &a->src[ATTEND_BACK_K_REL];
    if (by_query->data)
        add(a, first + x->head * by_query->ne[0] + relative_row(a, x, m), x->l, ds);
    first += by_query->data ? ggl_extents(by_query->ne, 0, 2, 1) : 0;
    if (by_key->data)
        add(a, first + x->of * by_key->ne[0] + relative_row(a, x, m), m, ds);
}

/* Adds what one query says of all gradients. */
static void add_query(const step_args *a, query *x, int64_t h, int64_t g) {
    const view *sinks = &a->src[ATTEND_BACK_SINKS];
    const double sink = sinks->data ? ggl_ref_get(sinks, x->head, 0, 0, x->l) : -INFINITY;
    double top = sink, total = 0, mean = 0;
    ggl_ref_get_row(&a->src[ATTEND_BACK_Q], x->head, 0, x->l, x->q);
    ggl_ref_get_row(&a->src[ATTEND_BACK_DY], x->head, 0, x->l, x->dy);
    for (int64_t m = 0; m < x->n; m++) {
        x->weight[m] = -INFINITY;
        if (!is_visible(a, x, m))
            continue;
        score(a, x, m);
        top = fmax(top, x->weight[m]);
        ggl_ref_get_row(&a->src[ATTEND_BACK_V], x->of, 0, m, x->row);
        x->part[m] = product(x->dy, x->row, x->e);
    }
    for (int64_t m = 0; m < x->n; m++)
        total += x->weight[m] = x->weight[m] == -INFINITY ? 0 : ggl_exp(x->weight[m] - top);
    total += sinks->data ? ggl_exp(sink - top) : 0;
    for (int64_t m = 0; m < x->n; m++) {
        x->weight[m] = total > 0 ? x->weight[m] / total : 0;
        mean += x->weight[m] != 0 ? x->weight[m] * x->part[m] : 0;
    }
    const view *bias = &a->src[ATTEND_BACK_BIAS];
    const bool by_bias = a->node->num[ATTEND_BACK_BY_BIAS] != 0;
    const int64_t keys = x->d * h + x->of * x->d, values = x->d * (h + g) + x->of * x->e,
                  behind = x->d * (h + g) + x->e * g, biases = behind + (sinks->data ? h : 0),
                  products = biases + (by_bias ? bias->ne[0] * h : 0);
    for (int64_t m = 0; m < x->n; m++) {
        if (x->weight[m] == 0)
            continue;
        const double ds = x->weight[m] * (x->part[m] - mean) * x->slope[m];
        ggl_ref_get_row(&a->src[ATTEND_BACK_K], x->of, 0, m, x->row);
        for (int64_t i = 0; i < x->d; i++) {
            add(a, x->head * x->d + i, x->l, ds * x->row[i]);
            add(a, keys + i, m, ds * x->q[i]);
        }
        for (int64_t i = 0; i < x->e; i++)
            add(a, values + i, m, x->weight[m] * x->dy[i]);
        add_relative(a, x, products, m, ds);
    }
    if (sinks->data)
        add(a, behind + x->head, x->l, -ggl_exp(sink - top) / total * mean);
    for (int64_t m = 0; by_bias && m < x->n; m++)
        add(a, biases + x->head * bias->ne[0] + place_of(a, bias, x, m), x->l,
            x->weight[m] == 0 ? 0 : x->weight[m] * (x->part[m] - mean));
}

/* Returns how many doubles of scratch ggl_ref_attend_back needs for batches of up to n. */
int64_t ggl_ref_attend_back_scratch(const ggl_tensor *node, int64_t n) {
    return 3 * n + 2 * node->src[ATTEND_BACK_Q]->ne[0] + 2 * node->src[ATTEND_BACK_V]->ne[0];
}

void ggl_ref_attend_back(const step_args *a) {
    const int64_t h = a->src[ATTEND_BACK_Q].ne[1], g = a->src[ATTEND_BACK_K].ne[1];
    query x = {
        .d = a->src[ATTEND_BACK_Q].ne[0], .e = a->src[ATTEND_BACK_V].ne[0], .n = a->dst.ne[3]};
    x.weight = a->attend;
    x.slope = x.weight + x.n;
    x.part = x.slope + x.n;
    x.q = x.part + x.n;
    x.dy = x.q + x.d;
    x.row = x.dy + x.e;
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l, 0);
    for (x.l = 0; x.l < x.n; x.l++)
        for (x.head = 0; x.head < h; x.head++) {
            x.of = x.head / (h / g);
            add_query(a, &x, h, g);
        }
}
