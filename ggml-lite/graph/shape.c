/* Shape rules: one function for each rule of ops.def. Each sets n_dims and ne[0..2] of y from its
 * sources and numbers and returns true, or sets the graph's error and returns false. ne[3] of a
 * value is the batch, which the caller has set. Only weights and views of them have a fourth
 * dimension of their own. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "graph_impl.h"

#define TEXT(t) ggl_shape_text(t, (char[256]){0}, 256)

/* Sets the graph's error to "<name of y's operator> <message>"; returns false. */
static bool fail(ggl_graph *g, const ggl_tensor *y, const char *fmt, ...) GGL_PRINTF(3, 4);
static bool fail(ggl_graph *g, const ggl_tensor *y, const char *fmt, ...) {
    ggl_error e = {0};
    va_list args;
    va_start(args, fmt);
    (void)ggl_failv(&e, GGL_SHAPE, fmt, args);
    va_end(args);
    const char *name = ggl_op_get(y->op).name;
    const bool in_brackets = name[0] == '<' && name[1] >= 'a'; /* "<concat>", not "<" or "<=" */
    const bool word = in_brackets || (name[0] >= 'a' && name[0] <= 'z');
    if (y->op == GGL_OP_PICK)
        ggl_graph_fail(g, GGL_SHAPE, "t[i] %s", e.msg);
    else if (in_brackets)
        ggl_graph_fail(g, GGL_SHAPE, "%.*s %s", (int)strlen(name) - 2, name + 1, e.msg);
    else
        ggl_graph_fail(g, GGL_SHAPE, word ? "%s %s" : "'%s' %s", name, e.msg);
    return false;
}

/* Gives y the shape of x. */
static bool like(ggl_tensor *y, const ggl_tensor *x) {
    y->n_dims = x->n_dims;
    memcpy(y->ne, x->ne, (x->n_dims > GGL_BATCH_DIM ? 4 : 3) * sizeof *y->ne);
    return true;
}

/* Sets *out to y's number k; fails if that is not a whole number in lo..hi. `what` names it. */
static bool whole(ggl_graph *g, const ggl_tensor *y, int k, const char *what, int64_t lo,
                  int64_t hi, int64_t *out) {
    double v = y->num[k];
    *out = 1;
    if (!(v == floor(v)) || v < (double)lo || v > (double)hi)
        return fail(g, y, "with %s = %g: a whole number from %" PRId64 " to %" PRId64 " is needed",
                    what, v, lo, hi);
    *out = (int64_t)v;
    return true;
}

static bool shape_leaf(ggl_graph *g, ggl_tensor *y) {
    ggl_graph_fail(g, GGL_USAGE, "%s is not an operator that can be applied",
                   ggl_op_get(y->op).name);
    return false;
}

static bool shape_call(ggl_graph *g, ggl_tensor *y) {
    return shape_leaf(g, y);
}

static bool shape_broadcast(ggl_graph *g, ggl_tensor *y) {
    for (int i = 0; i < y->n_src; i++) {
        const ggl_tensor *x = y->src[i];
        for (int d = 0; d < x->n_dims; d++) {
            if (y->ne[d] != 1 && x->ne[d] != 1 && x->ne[d] != y->ne[d]) {
                return y->n_src == 2 ? fail(g, y, "of %s and %s", TEXT(y->src[0]), TEXT(y->src[1]))
                                     : fail(g, y, "of %s, %s and %s", TEXT(y->src[0]),
                                            TEXT(y->src[1]), TEXT(y->src[2]));
            }
            if (x->ne[d] != 1)
                y->ne[d] = x->ne[d];
        }
        if (x->n_dims > y->n_dims)
            y->n_dims = x->n_dims;
    }
    return true;
}

static bool shape_same(ggl_graph *g, ggl_tensor *y) {
    (void)g;
    return like(y, y->src[0]);
}

static bool shape_reduce(ggl_graph *g, ggl_tensor *y) {
    int64_t dim;
    const ggl_tensor *x = y->src[0];
    if (x->n_dims == 0)
        return fail(g, y, "of one number");
    if (!whole(g, y, 0, "dim", 0, x->n_dims - 1, &dim))
        return false;
    like(y, x);
    y->ne[dim] = 1;
    y->n_dims -= dim == x->n_dims - 1;
    return true;
}

static bool shape_topk(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[0];
    if (x->n_dims != 1)
        return fail(g, y, "of %s: one dimension is needed", TEXT(x));
    y->n_dims = 1;
    int64_t most = x->ne[0] < 1024 ? x->ne[0] : 1024;
    return whole(g, y, 0, "k", 1, most, &y->ne[0]);
}

static bool shape_ngrams(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[NGRAMS_X], *by = y->src[NGRAMS_BY], *into = y->src[NGRAMS_INTO],
                     *first = y->src[NGRAMS_FIRST];
    int64_t rows;
    if (x->n_dims != 1 || x->ne[0] < 2)
        return fail(g, y, "of %s: a row of two numbers at least is needed", TEXT(x));
    if (by->n_dims != 2 || by->ne[0] != GGL_N_DIGITS || by->ne[1] != x->ne[0])
        return fail(g, y, "of %s with factors %s: four digits of each are needed", TEXT(x),
                    TEXT(by));
    if (into->n_dims != 2 || into->ne[0] != GGL_N_DIGITS || first->n_dims != 2 ||
        first->ne[0] != GGL_N_DIGITS || first->ne[1] != into->ne[1])
        return fail(g, y, "into %s from %s: four digits of each are needed, and as many of both",
                    TEXT(into), TEXT(first));
    if (into->ne[1] % (x->ne[0] - 1) != 0)
        return fail(g, y, "into %s: its results do not divide among %" PRId64 " lengths",
                    TEXT(into), x->ne[0] - 1);
    y->n_dims = 1;
    y->ne[0] = into->ne[1];
    return whole(g, y, NGRAMS_ROWS, "rows", 1, INT32_MAX, &rows);
}

static bool shape_pick(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *t = y->src[PICK_T], *i = y->src[PICK_I];
    if (i->type != GGL_I32 || i->n_dims > 1)
        return fail(g, y, "with i %s: an index, or a list of them, is needed", TEXT(i));
    if (t->n_dims == 0)
        return fail(g, y, "of one number");
    y->n_dims = t->n_dims - 1 + i->n_dims;
    for (int d = 0; d < t->n_dims - 1; d++)
        y->ne[d] = t->ne[d];
    if (i->n_dims)
        y->ne[t->n_dims - 1] = i->ne[0];
    return true;
}

/* Gives y the shape that its numbers list. */
static bool sizes(ggl_graph *g, ggl_tensor *y) {
    y->n_dims = y->n_num;
    if (y->n_num > GGL_MAX_DIMS)
        return fail(g, y, "to %d dimensions; at most %d are supported", y->n_num, GGL_MAX_DIMS);
    for (int d = 0; d < y->n_num; d++) {
        int64_t n;
        if (!whole(g, y, d, "a size", 1, INT32_MAX, &n))
            return false;
        if (d < GGL_BATCH_DIM || !ggl_is_batched(y))
            y->ne[d] = n;
    }
    return true;
}

static bool shape_reshape(ggl_graph *g, ggl_tensor *y) {
    if (!sizes(g, y))
        return false;
    double n = 1; /* the product of four numbers below 2^31 may overflow int64_t */
    for (int d = 0; d < y->n_num; d++)
        n *= y->num[d];
    if (n != (double)ggl_count(y->src[0]))
        return fail(g, y, "of %s to %s: %" PRId64 " elements against %.0f", TEXT(y->src[0]),
                    TEXT(y), ggl_count(y->src[0]), n);
    return true;
}

static bool shape_state(ggl_graph *g, ggl_tensor *y) {
    return sizes(g, y);
}

static bool shape_repeat(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[0];
    if (!sizes(g, y))
        return false;
    for (int d = 0; d < x->n_dims; d++)
        if (d >= y->n_dims || (x->ne[d] != 1 && x->ne[d] != y->ne[d]))
            return fail(g, y, "of %s to %s", TEXT(x), TEXT(y));
    return true;
}

static bool shape_split(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[0];
    int64_t dim, first, size;
    if (x->n_dims == 0)
        return fail(g, y, "of one number");
    if (!whole(g, y, 0, "dim", 0, x->n_dims - 1, &dim) ||
        !whole(g, y, 1, "first", 0, x->ne[dim] - 1, &first) ||
        !whole(g, y, 2, "size", 1, x->ne[dim] - first, &size))
        return false;
    like(y, x);
    y->ne[dim] = size;
    return true;
}

static bool shape_concat(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *a = y->src[0], *b = y->src[1];
    int64_t dim;
    int n_dims = a->n_dims > b->n_dims ? a->n_dims : b->n_dims;
    if (!whole(g, y, 0, "dim", 0, n_dims > 0 ? n_dims - 1 : 0, &dim))
        return false;
    y->n_dims = n_dims > 0 ? n_dims : 1;
    for (int d = 0; d < y->n_dims; d++) {
        if (d != dim && a->ne[d] != b->ne[d])
            return fail(g, y, "of %s and %s along dimension %" PRId64, TEXT(a), TEXT(b), dim);
        y->ne[d] = d == dim ? a->ne[d] + b->ne[d] : a->ne[d];
    }
    return y->ne[dim] <= INT32_MAX || fail(g, y, "of %s and %s: too long", TEXT(a), TEXT(b));
}

static bool shape_transpose(ggl_graph *g, ggl_tensor *y) {
    int64_t a, b;
    if (!whole(g, y, 0, "a", 0, 2, &a) || !whole(g, y, 1, "b", 0, 2, &b))
        return false;
    like(y, y->src[0]);
    y->ne[a] = y->src[0]->ne[b];
    y->ne[b] = y->src[0]->ne[a];
    int64_t last = a > b ? a : b;
    if (y->n_dims <= last)
        y->n_dims = (int)last + 1;
    return true;
}

static bool shape_linear(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[LINEAR_X], *w = y->src[LINEAR_W], *bias = y->src[LINEAR_BIAS];
    if (w->n_dims < 2 || x->n_dims < 1 || x->ne[0] != w->ne[0] ||
        (!ggl_is_batched(w) && w->n_dims == 4 && ggl_is_batched(x)))
        return fail(g, y, "of %s with the matrix %s", TEXT(x), TEXT(w));
    y->ne[0] = w->ne[1];
    y->n_dims = x->n_dims > w->n_dims - 1 ? x->n_dims : w->n_dims - 1;
    for (int d = 1; d < 3; d++) {
        int64_t c = x->ne[d], b = d + 1 == GGL_BATCH_DIM && ggl_is_batched(w) ? 1 : w->ne[d + 1];
        if (c != b && c != 1 && b != 1)
            return fail(g, y, "of %s with the matrices %s", TEXT(x), TEXT(w));
        y->ne[d] = c != 1 ? c : b;
    }
    for (int d = 0; bias && d < bias->n_dims; d++)
        if (bias->ne[d] != y->ne[d] && (d == 0 || bias->ne[d] != 1))
            return fail(g, y, "with the bias %s added to %s", TEXT(bias), TEXT(y));
    return true;
}

/* dy [out, C..], w [in, out, B..] to [in, B or C ..]: linear the other way round. */
static bool shape_linear_back(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *dy = y->src[LINEAR_BACK_DY], *w = y->src[LINEAR_BACK_W];
    int64_t bf16;
    if (!whole(g, y, LINEAR_BACK_BF16, "bf16", 0, 1, &bf16))
        return false;
    if (w->n_dims < 2 || w->n_dims > 3 || dy->n_dims < 1 || dy->ne[0] != w->ne[1])
        return fail(g, y, "of %s with the matrix %s", TEXT(dy), TEXT(w));
    if (dy->ne[1] != w->ne[2] && dy->ne[1] != 1 && w->ne[2] != 1)
        return fail(g, y, "of %s with the matrices %s", TEXT(dy), TEXT(w));
    like(y, dy);
    y->ne[0] = w->ne[0];
    y->ne[1] = dy->ne[1] != 1 ? dy->ne[1] : w->ne[2];
    y->n_dims = dy->n_dims > w->n_dims - 1 ? dy->n_dims : w->n_dims - 1;
    return true;
}

/* x [in, C..], dy [out, C..] to [in, out], or [in, out, n]: one for all of the batch. */
static bool shape_outer_sum(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[OUTER_SUM_X], *dy = y->src[OUTER_SUM_DY], *i = y->src[OUTER_SUM_I],
                     *into = y->src[OUTER_SUM_INTO];
    int64_t vectors[3] = {1, 1, 1}, n = 1, bf16;
    y->ne[GGL_BATCH_DIM] = 1;
    if (!whole(g, y, OUTER_SUM_BF16, "bf16", 0, 1, &bf16))
        return false;
    for (int d = 1; d < GGL_BATCH_DIM; d++) {
        if (x->ne[d] != dy->ne[d] && x->ne[d] != 1 && dy->ne[d] != 1)
            return fail(g, y, "of %s and %s", TEXT(x), TEXT(dy));
        vectors[d] = x->ne[d] != 1 ? x->ne[d] : dy->ne[d];
    }
    if (g->body)
        return fail(g, y, "adds up the batch, which only the top level of a graph can do");
    if (x->n_dims < 1 || dy->n_dims < 1)
        return fail(g, y, "of %s and %s: rows are needed", TEXT(x), TEXT(dy));
    const bool several = !isnan(y->num[OUTER_SUM_N]);
    if (several && !whole(g, y, OUTER_SUM_N, "n", 1, INT32_MAX, &n))
        return false;
    if (i && (i->type != GGL_I32 || i->n_dims > 1 || i->ne[0] != (i->n_dims ? vectors[1] : 1) ||
              !several))
        return fail(g, y,
                    "with i %s: the index of a matrix for each of %" PRId64
                    " vectors is needed, and n, their number",
                    TEXT(i), vectors[1]);
    if (several && !i && n != vectors[1])
        return fail(g, y, "with n = %" PRId64 " for %" PRId64 " vectors, each with its matrix", n,
                    vectors[1]);
    y->ne[0] = x->ne[0];
    y->ne[1] = dy->ne[0];
    y->ne[2] = n;
    y->n_dims = several ? 3 : 2;
    if (into && (ggl_is_batched(into) || into->n_dims != y->n_dims || into->ne[0] != y->ne[0] ||
                 into->ne[1] != y->ne[1] || into->ne[2] != y->ne[2]))
        return fail(g, y, "into %s of the sum %s", TEXT(into), TEXT(y));
    return true;
}

static bool shape_rope(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->src[0], *f = y->src[1], *at = y->src[ROPE_HALF_AT];
    if (at->type != GGL_I32 || at->n_dims != 0 || !ggl_is_batched(at))
        return fail(g, y, "at %s: a whole number for each element is needed", TEXT(at));
    if (ggl_is_batched(f) || f->n_dims != 1)
        return fail(g, y, "with the frequencies %s: a constant row is needed", TEXT(f));
    if (x->n_dims < 1 || 2 * f->ne[0] > x->ne[0])
        return fail(g, y,
                    "of %s with %" PRId64 " frequencies: at most half the row's length are allowed",
                    TEXT(x), f->ne[0]);
    return like(y, x);
}

static bool shape_cache(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *k = y->src[CACHE_K], *v = y->src[CACHE_V];
    if (k->n_dims < 1 || k->n_dims > 2 || v->n_dims < 1 || v->n_dims > 2 || k->ne[1] != v->ne[1])
        return fail(g, y, "of %s and %s: [d, heads] and [e, heads] are needed", TEXT(k), TEXT(v));
    y->n_dims = 0;
    return true;
}

/* Checks the rows of an attention's relative positions: both tables have rows as long as the queries', for each head of the
 * keys or for all, and the number of a row for each distance is given. */
static bool shape_relative(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *q = y->src[ATTEND_Q], *k = y->src[ATTEND_KV]->src[CACHE_K],
                     *table[2] = {y->src[ATTEND_REL_K], y->src[ATTEND_REL_Q]},
                     *row = y->src[ATTEND_REL_ROW];
    for (int i = 0; i < 2; i++) {
        const ggl_tensor *t = table[i];
        if (t && (ggl_is_batched(t) || t->n_dims < 2 || t->n_dims > 3 || t->ne[0] != q->ne[0] ||
                  t->ne[1] > GGL_MAX_REL_ROWS || (t->ne[2] != 1 && t->ne[2] != k->ne[1])))
            return fail(g, y,
                        "with %s %s: a constant of [%" PRId64 ", n] or [%" PRId64 ", n, %" PRId64
                        "] is needed, with at most %d rows",
                        i ? "rel_q" : "rel_k", TEXT(t), q->ne[0], q->ne[0], k->ne[1],
                        GGL_MAX_REL_ROWS);
    }
    if (table[0] && table[1] && table[0]->ne[1] != table[1]->ne[1])
        return fail(g, y, "with rel_k %s and rel_q %s: their numbers of rows differ",
                    TEXT(table[0]), TEXT(table[1]));
    if (!row && (table[0] || table[1]))
        return fail(g, y,
                    "with rows of relative positions, but without rel_row, which says which "
                    "row each distance has");
    if (row && !table[0] && !table[1])
        return fail(g, y, "with rel_row, but without rel_k or rel_q, whose rows it numbers");
    if (row && (ggl_is_batched(row) || row->n_dims > 1 || row->ne[0] % 2 != 1))
        return fail(g, y,
                    "with rel_row %s: a constant of [2*m + 1] is needed, for the distances -m .. m",
                    TEXT(row));
    return true;
}

/* Checks the rows of an attention that reads chosen ones alone: they have no neighbours, so nothing counts distances between them. */
static bool shape_chosen(ggl_graph *g, ggl_tensor *y) {
    static const struct {
        int src;
        const char *name;
    } others[] = {{ATTEND_ALIBI, "slopes"},
                  {ATTEND_BIAS, "a bias"},
                  {ATTEND_REL_ROW, "relative positions"},
                  {ATTEND_WITHIN, "a part of the rows"},
                  {ATTEND_END, "the ends of texts"}};
    const ggl_tensor *chosen = y->src[ATTEND_CHOSEN];
    const int64_t n_store = y->src[ATTEND_KV]->src[CACHE_K]->ne[1];
    if (chosen->n_dims > 2 || (chosen->ne[1] != 1 && chosen->ne[1] != n_store) ||
        !ggl_is_batched(chosen))
        return fail(g, y,
                    "with chosen %s: a row of positions of each element is needed, or one for each "
                    "of %" PRId64 " heads of keys",
                    TEXT(chosen), n_store);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (y->src[others[i].src])
            return fail(g, y, "to chosen rows, with %s beside them", others[i].name);
    return isnan(y->num[ATTEND_WINDOW]) || fail(g, y, "to chosen rows, with a window beside them");
}

static bool shape_attend(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *q = y->src[ATTEND_Q], *kv = y->src[ATTEND_KV];
    if (kv->op != GGL_OP_CACHE)
        return fail(g, y, "needs a cache as its second argument");
    const ggl_tensor *k = kv->src[CACHE_K], *v = kv->src[CACHE_V];
    if (q->n_dims < 1 || q->n_dims > 2 || q->ne[0] != k->ne[0] || q->ne[1] % k->ne[1] != 0)
        return fail(g, y, "of %s over keys %s", TEXT(q), TEXT(k));
    for (int i = 2; i < 4; i++)
        if (y->src[i] && (y->src[i]->n_dims > 1 || y->src[i]->ne[0] != q->ne[1]))
            return fail(g, y, "with %s %s: one number for each of %" PRId64 " heads is needed",
                        i == 2 ? "sinks" : "alibi", TEXT(y->src[i]), q->ne[1]);
    const ggl_tensor *bias = y->src[ATTEND_BIAS];
    if (bias && (ggl_is_batched(bias) || bias->n_dims > 2 || bias->ne[0] % 2 != 1 ||
                 bias->ne[1] != q->ne[1]))
        return fail(g, y,
                    "with a bias %s: a constant of [2*m + 1, %" PRId64
                    "] is needed, for the distances -m .. m of each head",
                    TEXT(bias), q->ne[1]);
    if (!shape_relative(g, y))
        return false;
    const ggl_tensor *within = y->src[ATTEND_WITHIN];
    if (within && (within->n_dims != 1 || within->ne[0] != 2))
        return fail(g, y,
                    "within %s: [2] is needed, the number of the first row that is seen and the "
                    "one behind the last",
                    TEXT(within));
    if (y->src[ATTEND_CHOSEN] && !shape_chosen(g, y))
        return false;
    if (!isnan(y->num[ATTEND_WINDOW]) &&
        (y->num[ATTEND_WINDOW] < 1 || y->num[ATTEND_WINDOW] != floor(y->num[ATTEND_WINDOW])))
        return fail(g, y, "with a window of %g: a whole number of at least 1 is needed",
                    y->num[ATTEND_WINDOW]);
    if (!isnan(y->num[ATTEND_CAP]) && !(y->num[ATTEND_CAP] > 0))
        return fail(g, y, "with a cap of %g: it must be above 0", y->num[ATTEND_CAP]);
    y->n_dims = q->n_dims;
    y->ne[0] = v->ne[0];
    y->ne[1] = q->ne[1];
    return true;
}

static bool shape_choose_rows(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *q = y->src[CHOOSE_ROWS_Q], *kv = y->src[CHOOSE_ROWS_KV],
                     *w = y->src[CHOOSE_ROWS_W];
    enum { MOST_POSITIONS = 1 << 24 }; /* f32 holds those below */
    int64_t k, every, own = 0;
    if (kv->op != GGL_OP_CACHE)
        return fail(g, y, "needs a cache as its second argument");
    const ggl_tensor *keys = kv->src[CACHE_K];
    if (q->n_dims < 1 || q->n_dims > 2 || q->ne[0] != keys->ne[0] || keys->ne[1] != 1)
        return fail(g, y, "of %s over keys %s: the keys have one head", TEXT(q), TEXT(keys));
    if (w && (w->n_dims > 1 || w->ne[0] != q->ne[1]))
        return fail(g, y, "with w %s: one number for each of %" PRId64 " heads is needed", TEXT(w),
                    q->ne[1]);
    if (!whole(g, y, CHOOSE_ROWS_BEST, "best", 1, MOST_POSITIONS, &k) ||
        !whole(g, y, CHOOSE_ROWS_EVERY, "every", 1, MOST_POSITIONS, &every))
        return false;
    const bool near_too = ggl_choice_is_of_all(y);
    if (near_too && !whole(g, y, CHOOSE_ROWS_NEAR, "near", 0, k, &own))
        return false;
    if (g->params.n_pos > MOST_POSITIONS || k > MOST_POSITIONS / every)
        return fail(g, y,
                    "among %" PRId64 " positions, %" PRId64 " groups of %" PRId64
                    ": at most %d positions have exact numbers",
                    g->params.n_pos, k, every, MOST_POSITIONS);
    y->n_dims = w ? 1 : q->n_dims;
    y->ne[0] = k * every + (near_too ? 0 : every - 1);
    y->ne[1] = w ? 1 : q->ne[1];
    return true;
}

/* Checks what attend_back reads of relative positions, [n, h] of queries and [n, g] of keys; sets *size to the numbers of both. */
static bool shape_products(ggl_graph *g, ggl_tensor *y, int64_t *size) {
    const ggl_tensor *of[2] = {y->src[ATTEND_BACK_Q_REL], y->src[ATTEND_BACK_K_REL]},
                     *row = y->src[ATTEND_BACK_REL_ROW];
    *size = 0;
    for (int i = 0; i < 2; i++) {
        const ggl_tensor *rows = y->src[i ? ATTEND_BACK_K : ATTEND_BACK_Q];
        if (of[i] && (!ggl_is_batched(of[i]) || of[i]->n_dims < 1 || of[i]->n_dims > 2 ||
                      of[i]->ne[1] != rows->ne[1] || of[i]->ne[0] > GGL_MAX_REL_ROWS))
            return fail(g, y, "with %s %s: [n, %" PRId64 "] is needed, with n at most %d",
                        i ? "k_rel" : "q_rel", TEXT(of[i]), rows->ne[1], GGL_MAX_REL_ROWS);
        *size += of[i] ? ggl_count(of[i]) : 0;
    }
    if (of[0] && of[1] && of[0]->ne[0] != of[1]->ne[0])
        return fail(g, y, "with q_rel %s and k_rel %s: their numbers of rows differ", TEXT(of[0]),
                    TEXT(of[1]));
    if (!row != !*size)
        return fail(g, y, "needs both products with relative positions and rel_row, or neither");
    if (row && (ggl_is_batched(row) || row->n_dims > 1 || row->ne[0] % 2 != 1))
        return fail(g, y, "with rel_row %s: a constant of [2*m + 1] is needed", TEXT(row));
    return true;
}

/* q [d, h], k [d, g], v [e, g], dy [e, h] to [d h + d g + e g], with sinks + h, with by_bias + all of the bias, with q_rel [n, h]
 * and k_rel [n, g] + all of them. */
static bool shape_attend_back(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *q = y->src[ATTEND_BACK_Q], *k = y->src[ATTEND_BACK_K],
                     *v = y->src[ATTEND_BACK_V], *dy = y->src[ATTEND_BACK_DY],
                     *one[2] = {y->src[ATTEND_BACK_SINKS], y->src[ATTEND_BACK_ALIBI]},
                     *bias = y->src[ATTEND_BACK_BIAS], *within = y->src[ATTEND_BACK_WITHIN];
    for (int i = 0; i < 4; i++)
        if (y->src[i]->n_dims < 1 || y->src[i]->n_dims > 2 || !ggl_is_batched(y->src[i]))
            return fail(g, y, "of %s, %s, %s and %s: rows of each element are needed", TEXT(q),
                        TEXT(k), TEXT(v), TEXT(dy));
    if (k->ne[0] != q->ne[0] || v->ne[0] != dy->ne[0] || k->ne[1] != v->ne[1] ||
        q->ne[1] != dy->ne[1] || q->ne[1] % k->ne[1] != 0)
        return fail(g, y, "of %s, %s, %s and %s", TEXT(q), TEXT(k), TEXT(v), TEXT(dy));
    for (int i = 0; i < 2; i++)
        if (one[i] && (one[i]->n_dims > 1 || one[i]->ne[0] != q->ne[1]))
            return fail(g, y, "with %s %s: one number for each of %" PRId64 " heads is needed",
                        i ? "alibi" : "sinks", TEXT(one[i]), q->ne[1]);
    if (bias && (ggl_is_batched(bias) || bias->n_dims > 2 || bias->ne[0] % 2 != 1 ||
                 bias->ne[1] != q->ne[1]))
        return fail(g, y, "with a bias %s", TEXT(bias));
    if (within && (within->n_dims != 1 || within->ne[0] != 2))
        return fail(g, y, "within %s: [2] is needed", TEXT(within));
    int64_t by_bias;
    if (!whole(g, y, ATTEND_BACK_BY_BIAS, "by_bias", 0, 1, &by_bias))
        return false;
    if (by_bias && !bias)
        return fail(g, y, "by a bias that is not there");
    int64_t products;
    if (!shape_products(g, y, &products))
        return false;
    y->n_dims = 1;
    y->ne[0] = ggl_count(q) + ggl_count(k) + ggl_count(v) + (one[0] ? q->ne[1] : 0) +
               (by_bias ? ggl_count(bias) : 0) + products;
    return y->ne[0] <= INT32_MAX || fail(g, y, "of %s: too large", TEXT(q));
}

static bool shape_keep(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *s = y->src[KEEP_STATE], *x = y->src[KEEP_X];
    if (s->op != GGL_OP_STATE)
        return fail(g, y, "needs a state");
    for (int d = 0; d < 3; d++)
        if (s->ne[d] != x->ne[d])
            return fail(g, y, "of %s into the state %s", TEXT(x), TEXT(s));
    y->n_dims = 0;
    return true;
}

static bool shape_iota(ggl_graph *g, ggl_tensor *y) {
    y->n_dims = 1;
    return whole(g, y, 0, "n", 1, INT32_MAX, &y->ne[0]);
}

/* True if the operator takes a tensor of four dimensions as source i_src: SPLIT, RESHAPE (without a
 * copy), PICK, and LINEAR as its matrix. */
static bool reads_four_dims(ggl_op op, int i_src) {
    return i_src == 0 ? op == GGL_OP_SPLIT || op == GGL_OP_RESHAPE || op == GGL_OP_PICK
                      : op == GGL_OP_LINEAR && i_src == 1;
}

static bool check_sources(ggl_graph *g, const ggl_tensor *y) {
    for (int i = 0; i < y->n_src; i++)
        if (y->src[i] && y->src[i]->n_dims > GGL_BATCH_DIM && !reads_four_dims(y->op, i))
            return fail(g, y, "of %s: values have at most three dimensions", TEXT(y->src[i]));
    return true;
}

/* Fails if y has four dimensions, or is made from a tensor with four, without being a view of a
 * weight. */
static bool check_result(ggl_graph *g, ggl_tensor *y) {
    const ggl_tensor *x = y->n_src > 0 ? y->src[0] : NULL;
    bool moved = y->op == GGL_OP_SPLIT || y->op == GGL_OP_RESHAPE;
    if (y->n_dims <= GGL_BATCH_DIM && !(moved && x->n_dims > GGL_BATCH_DIM))
        return true;
    ggl_facts_init(y);
    return y->view_of || fail(g, y, "of %s to %s: values have at most three dimensions",
                              x ? TEXT(x) : "", TEXT(y));
}

bool ggl_shape_infer(ggl_graph *g, ggl_tensor *y) {
    static bool (*const rule[GGL_OP_COUNT])(ggl_graph *, ggl_tensor *) = {
#define OP(ID, name, signature, rule_, result, bits, kind, text) [GGL_OP_##ID] = shape_##rule_,
#include "ggl/ops.def"
#undef OP
    };
    return check_sources(g, y) && rule[y->op](g, y) && check_result(g, y);
}
