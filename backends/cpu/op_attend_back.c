/* attend_back: the gradients of attention by queries, keys, values, sinks, biases, and products with rows of relative positions;
 * docs/numeric.md, section 6 defines its arithmetic. Keys and values are those of the batch, which holds whole sequences; a sequence
 * is the elements with one slot, in the order of the batch.
 *
 * A unit is a head of the keys in one sequence. It takes PAIRS of its queries (an element and a head of the queries) at a time:
 * their scores with all keys that one of them sees are computed again, and the products of their gradients with all values; then
 * each product of these with rows is a chain (kernels.h). So what is kept is PAIRS rows as long as the sequence, and the
 * sequence's keys and values, packed, but nothing with its length squared. */
#include <math.h>
#include <string.h>

#include "columns.h"
#include "compiler.h"
#include "ggl/internal/graph.h"

enum {
    PAIRS = 24,
    APART =
        16 /* floats between rows as long as the sequence, which may be a power of two: they would compete for the same
                  lines of the cache */
};
_Static_assert(PAIRS % CPU_CHAIN_ROWS == 0, "whole groups of rows");

static int64_t slot_of(const cpu_task *t, int64_t l) {
    const cpu_view *slot = &t->src[ATTEND_BACK_SLOT];
    return *(const int32_t *)(slot->p + (size_t)l * slot->nb[3]);
}

static int64_t pos_of(const cpu_task *t, int64_t l) {
    const cpu_view *pos = &t->src[ATTEND_BACK_POS];
    return *(const int32_t *)(pos->p + (size_t)l * pos->nb[3]);
}

/* Returns the floats of a thread's scratch for a sequence of n elements. */
static size_t scratch_floats(int64_t d, int64_t e, int64_t n) {
    return (size_t)(d * n + (d + e + 3 * PAIRS + 1) * (n + APART) + PAIRS * (d + e) + n);
}

static ggl_status back_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_tensor *t = s->node;
    const int64_t n = ggl_cpu_compiler_n_max(c), d = s->src[ATTEND_BACK_Q].ne[0],
                  e = s->src[ATTEND_BACK_V].ne[0];
    for (int k = 0; k < s->n_src; k++) {
        const bool is_index = k == ATTEND_BACK_POS || k == ATTEND_BACK_SLOT || k == ATTEND_BACK_END;
        if (s->src[k].region >= 0 && s->src[k].type != (is_index ? GGL_I32 : GGL_F32))
            return ggl_fail(err, GGL_UNSUPPORTED, "attend_back supports only f32 values");
    }
    s->attend.scale =
        (float)(isnan(t->num[ATTEND_BACK_SCALE]) ? 1 / sqrt((double)d) : t->num[ATTEND_BACK_SCALE]);
    s->attend.window = ggl_attend_window(t);
    s->attend.cap = isnan(t->num[ATTEND_BACK_CAP]) ? 0 : (float)t->num[ATTEND_BACK_CAP];
    s->attend.most = (int)c->s->n_slots;
    s->shared_size = ggl_cpu_lists_size(n, c->s->n_slots);
    if (s->src[ATTEND_BACK_REL_ROW].region >= 0)
        s->shared_size += (size_t)s->src[ATTEND_BACK_REL_ROW].ne[0] * sizeof(int32_t);
    s->thread_size = scratch_floats(d, e, n) * sizeof(float);
    return GGL_OK;
}

static bool back_alone(const ggl_step *s) {
    (void)s;
    return true; /* the lists of elements by slot are in the shared scratch */
}

static cpu_lists sequences(const cpu_task *t) {
    return ggl_cpu_lists_at(t->shared, t->n, t->step->attend.most);
}

/* The row of relative positions for each distance -m .. m, which are in the shared scratch behind the lists. */
static int32_t *relative_rows(const cpu_task *t) {
    return (int32_t *)(t->shared + ggl_cpu_lists_size(t->n, t->step->attend.most));
}

/* Returns how many rows of relative positions there are; 0: none. */
static int64_t n_relative(const cpu_task *t) {
    const cpu_view *by_query = &t->src[ATTEND_BACK_Q_REL], *by_key = &t->src[ATTEND_BACK_K_REL];
    return by_query->p ? by_query->ne[0] : by_key->p ? by_key->ne[0] : 0;
}

static int64_t list_of(const cpu_task *t, int64_t l) {
    const int64_t slot = slot_of(t, l);
    return slot >= 0 && slot < t->step->attend.most ? slot : -1;
}

static void back_begin(cpu_task *t) {
    cpu_lists l = sequences(t);
    const double n = (double)t->n,
                 size = (double)(t->src[ATTEND_BACK_Q].ne[0] + t->src[ATTEND_BACK_V].ne[0]);
    ggl_cpu_lists_sort(&l, t->n, list_of, t);
    t->unit.n_picked = l.n_active;
    t->n_units = l.n_active * t->src[ATTEND_BACK_K].ne[1];
    t->cost = 3 * size * n / (double)cpu_max(l.n_active, 1) * n *
              (double)(t->src[ATTEND_BACK_Q].ne[1] / t->src[ATTEND_BACK_K].ne[1]);
    const cpu_view *row = &t->src[ATTEND_BACK_REL_ROW];
    for (int64_t i = 0; row->p && i < row->ne[0]; i++)
        relative_rows(t)[i] =
            (int32_t)ggl_relative_row((double)((const float *)row->p)[i], n_relative(t));
}

/* --- a head of a sequence ------------------------------------------------------------------ */

typedef struct work {
    const cpu_task *t;
    const int32_t *order; /* the elements of the sequence */
    int64_t n, g;         /* how many; the head of the keys */
    int64_t h, per;       /* heads of queries, and how many of them share a head of keys */
    int64_t d, e;
    int64_t step; /* n + APART */
    struct {
        int64_t k, v, sinks, bias, q_rel, k_rel;
    } first;                   /* where gradients begin in an element's result */
    bool in_order;             /* each element has the position after that of the one before */
    float *keys, *keys_across; /* [n][d], and [d][step] */
    float *values_across;      /* [e][step] */
    float *share, *dshare;     /* [PAIRS][step]: shares of attention; gradients of scores */
    float *slope;  /* [PAIRS][step]: with a cap, how a score changes with what it is made of */
    float *temp;   /* [n] */
    float *q, *dy; /* [PAIRS][d], [PAIRS][e] */
    int32_t *pos;  /* [n] */
} work;

/* The gradients of an element in its result, after `offset` numbers. */
static float *result(const work *w, int64_t at, int64_t offset) {
    return (float *)(w->t->dst.p + (size_t)w->order[at] * w->t->dst.nb[3]) + offset;
}
static float *dq_of(const work *w, int64_t at, int64_t head) {
    return result(w, at, head * w->d);
}
static float *dk_of(const work *w, int64_t at) {
    return result(w, at, w->first.k + w->g * w->d);
}
static float *dv_of(const work *w, int64_t at) {
    return result(w, at, w->first.v + w->g * w->e);
}
static float *dsink_of(const work *w, int64_t at, int64_t head) {
    return result(w, at, w->first.sinks + head);
}
static float *dbias_of(const work *w, int64_t at, int64_t head) {
    return result(w, at, w->first.bias + head * w->t->src[ATTEND_BACK_BIAS].ne[0]);
}
static float *dq_rel_of(const work *w, int64_t at, int64_t head) {
    return result(w, at, w->first.q_rel + head * n_relative(w->t));
}
static float *dk_rel_of(const work *w, int64_t at) {
    return result(w, at, w->first.k_rel + w->g * n_relative(w->t));
}

static bool by_bias(const cpu_task *t) {
    return t->step->node->num[ATTEND_BACK_BY_BIAS] != 0;
}

/* Sets where the gradients of each source begin in an element's result. */
static void divide_result(work *w) {
    const cpu_task *t = w->t;
    const int64_t groups = w->h / w->per;
    w->first.k = w->h * w->d;
    w->first.v = w->first.k + groups * w->d;
    w->first.sinks = w->first.v + groups * w->e;
    w->first.bias = w->first.sinks + (t->src[ATTEND_BACK_SINKS].p ? w->h : 0);
    w->first.q_rel = w->first.bias + (by_bias(t) ? w->h * t->src[ATTEND_BACK_BIAS].ne[0] : 0);
    w->first.k_rel = w->first.q_rel + (t->src[ATTEND_BACK_Q_REL].p ? w->h * n_relative(t) : 0);
}

/* Where a row of numbers of the distances -most .. most has that of a distance. */
static int64_t place_of(int64_t most, int64_t far) {
    return most + (far < -most ? -most : far > most ? most : far);
}

static const float *row_of(const work *w, int k, int64_t at, int64_t head) {
    const cpu_view *v = &w->t->src[k];
    return (const float *)(v->p + (size_t)head * v->nb[1] + (size_t)w->order[at] * v->nb[3]);
}

/* Packs keys and values, clears their gradients, and looks at the positions. */
static void begin_sequence(work *w) {
    w->in_order = true;
    for (int64_t j = 0; j < w->n; j++) {
        w->pos[j] = (int32_t)pos_of(w->t, w->order[j]);
        w->in_order &= w->pos[j] == w->pos[0] + j;
        const float *k = row_of(w, ATTEND_BACK_K, j, w->g), *v = row_of(w, ATTEND_BACK_V, j, w->g);
        memcpy(w->keys + j * w->d, k, (size_t)w->d * sizeof *k);
        for (int64_t i = 0; i < w->d; i++)
            w->keys_across[i * w->step + j] = k[i];
        for (int64_t i = 0; i < w->e; i++)
            w->values_across[i * w->step + j] = v[i];
        memset(dk_of(w, j), 0, (size_t)w->d * sizeof *k);
        memset(dv_of(w, j), 0, (size_t)w->e * sizeof *v);
        if (w->t->src[ATTEND_BACK_K_REL].p)
            memset(dk_rel_of(w, j), 0, (size_t)n_relative(w->t) * sizeof *k);
    }
}

/* The elements lo .. hi - 1 of the sequence; of these, an element sees those at the positions of `v`. */
typedef struct range {
    int64_t lo, hi;
    ggl_visible v;
} range;

/* Returns the shortest range of what element `at` sees. */
static range seen_by(const work *w, int64_t at) {
    const cpu_task *t = w->t;
    const int64_t l = w->order[at];
    const cpu_view *end = &t->src[ATTEND_BACK_END], *within = &t->src[ATTEND_BACK_WITHIN];
    range r = {0, w->n, {0}};
    r.v = ggl_visible_within(
        ggl_visible_rows(pos_of(t, l), slot_of(t, l), t->step->attend.window,
                         end->p ? *(const int32_t *)(end->p + (size_t)l * end->nb[3]) : 0),
        within->p
            ? (const float *)(within->p + (within->ne[3] == 1 ? 0 : (size_t)l * within->nb[3]))
            : NULL);
    if (w->in_order) { /* as for almost all texts */
        const int64_t first = w->pos[0];
        r.hi = cpu_max(cpu_min(r.v.end - first, w->n), 0);
        r.lo = cpu_min(cpu_max(r.v.first - first, 0), r.hi);
        return r;
    }
    for (; r.lo < r.hi; r.lo++) {
        const int64_t p = w->pos[r.lo];
        if (p >= r.v.first && p < r.v.end)
            break;
    }
    for (; r.lo < r.hi; r.hi--) {
        const int64_t p = w->pos[r.hi - 1];
        if (p >= r.v.first && p < r.v.end)
            break;
    }
    return r;
}

/* to[c][j] = the products of row c of `rows`, `length` long, with column j of `across`, for `n_rows` rows and lo <= j < hi. */
static void multiply(const work *w, float *to, const float *rows, int64_t length, int n_rows,
                     const float *across, int64_t lo, int64_t hi) {
    float *y[CPU_CHAIN_ROWS];
    const float *b[CPU_CHAIN_ROWS];
    for (int c = 0; c < n_rows; c += CPU_CHAIN_ROWS) {
        const int n_y = n_rows - c < CPU_CHAIN_ROWS ? n_rows - c : CPU_CHAIN_ROWS;
        for (int e = 0; e < n_y; e++) {
            y[e] = to + (c + e) * w->step + lo;
            memset(y[e], 0, (size_t)(hi - lo) * sizeof *to);
            b[e] = rows + (c + e) * length;
        }
        w->t->b->k.chains(y, n_y, across + lo, w->step, b, 1, length, hi - lo);
    }
}

/* By what some pairs (of an element and a head) find their rows of relative positions. */
typedef struct relatives {
    const int32_t *row; /* [2 * most + 1]: the row for each distance */
    int64_t most;
    int64_t pos[PAIRS], at[PAIRS], head[PAIRS];
    bool by_query, by_key; /* products of queries, of keys */
} relatives;

static relatives relatives_of(const work *w, int64_t first, int n_pairs) {
    const cpu_task *t = w->t;
    relatives r = {.row = relative_rows(t),
                   .most = t->src[ATTEND_BACK_REL_ROW].ne[0] / 2,
                   .by_query = t->src[ATTEND_BACK_Q_REL].p != NULL,
                   .by_key = t->src[ATTEND_BACK_K_REL].p != NULL};
    for (int c = 0; c < n_pairs; c++) {
        r.at[c] = (first + c) / w->per;
        r.head[c] = w->g * w->per + (first + c) % w->per;
        r.pos[c] = w->pos[r.at[c]];
    }
    return r;
}

/* Returns the row for pair c and a key at position pos. */
static int32_t relative_row(const relatives *r, int c, int64_t pos) {
    return r->row[place_of(r->most, pos - r->pos[c])];
}

/* Adds what relative positions add to the products of n_pairs pairs with keys lo .. hi - 1. Keys are the outer loop: pairs read
 * neighbouring numbers of a key, and those of two keys are far apart. */
static void read_relative(const work *w, const relatives *r, int n_pairs, int64_t lo, int64_t hi) {
    const float *by_query[PAIRS], *by_key = NULL;
    for (int c = 0; c < n_pairs && r->by_query; c++)
        by_query[c] = row_of(w, ATTEND_BACK_Q_REL, r->at[c], r->head[c]);
    for (int64_t j = lo; j < hi; j++) {
        if (r->by_key)
            by_key = row_of(w, ATTEND_BACK_K_REL, j, w->g);
        for (int c = 0; c < n_pairs; c++) {
            const int32_t row = relative_row(r, c, w->pos[j]);
            float *s = &w->share[c * w->step + j];
            if (r->by_query)
                *s += by_query[c][row];
            if (r->by_key)
                *s += by_key[row];
        }
    }
}

/* Adds the gradients of the pairs' products with keys to those of what read_relative adds. */
static void add_relative(const work *w, const relatives *r, int n_pairs, int64_t lo, int64_t hi) {
    float *by_query[PAIRS], *by_key = NULL;
    for (int c = 0; c < n_pairs && r->by_query; c++)
        by_query[c] = dq_rel_of(w, r->at[c], r->head[c]);
    for (int64_t j = lo; j < hi; j++) {
        if (r->by_key)
            by_key = dk_rel_of(w, j);
        for (int c = 0; c < n_pairs; c++) {
            const int32_t row = relative_row(r, c, w->pos[j]);
            const float d = w->dshare[c * w->step + j];
            if (r->by_query)
                by_query[c][row] += d;
            if (r->by_key)
                by_key[row] += d;
        }
    }
}

/* Turns the products s[lo] .. s[hi - 1] of a query into scores; slope: what a score's gradient is multiplied with. */
static void finish_scores(const work *w, int64_t at, int64_t head, const range *r, float *s,
                          float *slope) {
    const cpu_task *t = w->t;
    const cpu_kernels *k = &t->b->k;
    const int64_t n = r->hi - r->lo, l = w->order[at], pos = pos_of(t, l);
    const cpu_view *alibi = &t->src[ATTEND_BACK_ALIBI], *bias = &t->src[ATTEND_BACK_BIAS];
    const float scale = t->step->attend.scale, cap = t->step->attend.cap;
    float *x = s + r->lo;
    k->binary[CPU_MUL](x, x, 1, &scale, 0, n);
    if (cap > 0) {
        const float one = 1;
        float *f = slope + r->lo;
        k->binary[CPU_DIV](x, x, 1, &cap, 0, n);
        k->unary[CPU_TANH](x, x, n);
        k->binary[CPU_MUL](f, x, 1, x, 1, n);
        k->binary[CPU_SUB](f, &one, 0, f, 1, n);
        k->binary[CPU_MUL](x, x, 1, &cap, 0, n);
    }
    const char *of_element =
                   alibi->p && alibi->ne[3] != 1 ? alibi->p + (size_t)l * alibi->nb[3] : alibi->p,
               *of_head = bias->p ? bias->p + (size_t)head * bias->nb[1] : NULL;
    const float *slopes = (const float *)of_element, *biases = (const float *)of_head;
    const bool all_seen = w->in_order && !alibi->p && !bias->p;
    for (int64_t j = r->lo; j < r->hi && !all_seen; j++) {
        const int64_t p = w->pos[j], far = p - pos;
        if (alibi->p) {
            const float off = slopes[head] * fabsf((float)far);
            s[j] -= off;
        }
        if (bias->p)
            s[j] += biases[place_of(bias->ne[0] / 2, far)];
        if (p < r->v.first || p >= r->v.end)
            s[j] = -INFINITY;
    }
}

/* Turns the scores of a query into shares, and, from the products ds[] of dy and the values, into gradients of the products of
 * query and keys; writes the gradient of the sink. */
static void finish_query(const work *w, int64_t at, int64_t head, const range *r, float *s,
                         float *ds, const float *slope) {
    const cpu_task *t = w->t;
    const cpu_kernels *k = &t->b->k;
    const cpu_view *sinks = &t->src[ATTEND_BACK_SINKS];
    const int64_t n = r->hi - r->lo, l = w->order[at];
    const float scale = t->step->attend.scale;
    float *x = s + r->lo, *d = ds + r->lo, sink = 0, top = k->amax(x, n);
    if (sinks->p) {
        sink =
            ((const float *)(sinks->p + (sinks->ne[3] == 1 ? 0 : (size_t)l * sinks->nb[3])))[head];
        top = sink > top ? sink : top;
    }
    k->binary[CPU_SUB](x, x, 1, &top, 0, n);
    k->unary[CPU_EXP](x, x, n);
    float total = k->sum(x, n), of_sink = sink - top;
    if (sinks->p) {
        k->unary[CPU_EXP](&of_sink, &of_sink, 1);
        total += of_sink;
    }
    k->binary[CPU_DIV](x, x, 1, &total, 0, n);
    k->binary[CPU_MUL](w->temp, x, 1, d, 1, n);
    const float mean = k->sum(w->temp, n);
    k->binary[CPU_SUB](d, d, 1, &mean, 0, n);
    k->binary[CPU_MUL](d, d, 1, x, 1, n);
    if (by_bias(t)) {
        const int64_t most = t->src[ATTEND_BACK_BIAS].ne[0] / 2;
        float *of = dbias_of(w, at, head);
        for (int64_t j = r->lo; j < r->hi; j++)
            of[place_of(most, w->pos[j] - w->pos[at])] += ds[j];
    }
    if (t->step->attend.cap > 0)
        k->binary[CPU_MUL](d, d, 1, slope + r->lo, 1, n);
    k->binary[CPU_MUL](d, d, 1, &scale, 0, n);
    if (sinks->p) {
        const float share = of_sink / total;
        *dsink_of(w, at, head) = -(share * mean);
    }
}

/* Adds the products of the pairs' gradients and rows to the gradients of elements lo .. hi - 1. */
static void add_to_rows(const work *w, float *(*row)(const work *, int64_t), const float *rows,
                        int64_t length, const float *factors, int n_pairs, int64_t lo, int64_t hi) {
    float *y[CPU_CHAIN_ROWS];
    const float *b[CPU_CHAIN_ROWS];
    for (int64_t j = lo; j < hi; j += CPU_CHAIN_ROWS) {
        const int n_y = (int)cpu_min(CPU_CHAIN_ROWS, hi - j);
        for (int c = 0; c < n_y; c++) {
            y[c] = row(w, j + c);
            b[c] = factors + j + c;
        }
        w->t->b->k.chains(y, n_y, rows, length, b, w->step, n_pairs, length);
    }
}

/* Pairs first .. first + n_pairs - 1 of the sequence: pair i is head i % per of element i / per. */
static void run_pairs(const work *w, int64_t first, int n_pairs) {
    range all = {w->n, 0, {0}}, r[PAIRS];
    for (int c = 0; c < n_pairs; c++) {
        const int64_t at = (first + c) / w->per, head = w->g * w->per + (first + c) % w->per;
        r[c] = c > 0 && at == (first + c - 1) / w->per ? r[c - 1] : seen_by(w, at);
        all.lo = cpu_min(all.lo, r[c].lo);
        all.hi = cpu_max(all.hi, r[c].hi);
        memcpy(w->q + c * w->d, row_of(w, ATTEND_BACK_Q, at, head), (size_t)w->d * sizeof *w->q);
        memcpy(w->dy + c * w->e, row_of(w, ATTEND_BACK_DY, at, head), (size_t)w->e * sizeof *w->dy);
        memset(dq_of(w, at, head), 0, (size_t)w->d * sizeof *w->q);
        if (w->t->src[ATTEND_BACK_SINKS].p)
            *dsink_of(w, at, head) = 0;
        if (by_bias(w->t))
            memset(dbias_of(w, at, head), 0,
                   (size_t)w->t->src[ATTEND_BACK_BIAS].ne[0] * sizeof(float));
        if (w->t->src[ATTEND_BACK_Q_REL].p)
            memset(dq_rel_of(w, at, head), 0, (size_t)n_relative(w->t) * sizeof(float));
    }
    if (all.lo >= all.hi)
        return;
    multiply(w, w->share, w->q, w->d, n_pairs, w->keys_across, all.lo, all.hi);
    multiply(w, w->dshare, w->dy, w->e, n_pairs, w->values_across, all.lo, all.hi);
    const relatives relative = relatives_of(w, first, n_pairs);
    if (n_relative(w->t) > 0)
        read_relative(w, &relative, n_pairs, all.lo, all.hi);
    for (int c = 0; c < n_pairs; c++) {
        const int64_t at = (first + c) / w->per, head = w->g * w->per + (first + c) % w->per;
        float *s = w->share + c * w->step, *ds = w->dshare + c * w->step,
              *slope = w->slope + c * w->step;
        if (r[c].lo < r[c].hi) {
            finish_scores(w, at, head, &r[c], s, slope);
            finish_query(w, at, head, &r[c], s, ds, slope);
        }
        for (int64_t j = all.lo; j < all.hi; j++) /* what it does not see */
            if (j < r[c].lo || j >= r[c].hi)
                s[j] = ds[j] = 0;
    }
    if (n_relative(w->t) > 0)
        add_relative(w, &relative, n_pairs, all.lo, all.hi);
    float *y[CPU_CHAIN_ROWS];
    const float *b[CPU_CHAIN_ROWS];
    for (int c = 0; c < n_pairs; c += CPU_CHAIN_ROWS) {
        const int n_y = n_pairs - c < CPU_CHAIN_ROWS ? n_pairs - c : CPU_CHAIN_ROWS;
        for (int e = 0; e < n_y; e++) {
            y[e] = dq_of(w, (first + c + e) / w->per, w->g * w->per + (first + c + e) % w->per);
            b[e] = w->dshare + (c + e) * w->step + all.lo;
        }
        w->t->b->k.chains(y, n_y, w->keys + all.lo * w->d, w->d, b, 1, all.hi - all.lo, w->d);
    }
    add_to_rows(w, dk_of, w->q, w->d, w->dshare, n_pairs, all.lo, all.hi);
    add_to_rows(w, dv_of, w->dy, w->e, w->share, n_pairs, all.lo, all.hi);
}

static void back_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const cpu_lists l = sequences(t);
    const int64_t groups = t->src[ATTEND_BACK_K].ne[1];
    for (int64_t u = first; u < last; u++) {
        const int64_t slot = l.active[u / groups];
        work w = {.t = t,
                  .order = l.order + l.start[slot],
                  .n = l.start[slot + 1] - l.start[slot],
                  .g = u % groups,
                  .h = t->src[ATTEND_BACK_Q].ne[1],
                  .d = t->src[ATTEND_BACK_Q].ne[0],
                  .e = t->src[ATTEND_BACK_V].ne[0]};
        w.per = w.h / groups;
        w.keys = (float *)cpu_thread_scratch(t, thread);
        w.step = w.n + APART;
        w.keys_across = w.keys + w.d * w.n;
        w.values_across = w.keys_across + w.d * w.step;
        w.share = w.values_across + w.e * w.step;
        w.dshare = w.share + PAIRS * w.step;
        w.slope = w.dshare + PAIRS * w.step;
        w.temp = w.slope + PAIRS * w.step;
        w.q = w.temp + w.step;
        w.dy = w.q + PAIRS * w.d;
        w.pos = (int32_t *)(w.dy + PAIRS * w.e);
        divide_result(&w);
        begin_sequence(&w);
        for (int64_t c = 0; c < w.n * w.per; c += PAIRS)
            run_pairs(&w, c, (int)cpu_min(PAIRS, w.n * w.per - c));
    }
}

const cpu_op ggl_cpu_op_attend_back = {
    .compile = back_compile, .alone = back_alone, .begin = back_begin, .run = back_run};
