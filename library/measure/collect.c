#include "collect.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "imatrix_sketch.h"
#include "ggl/internal/alloc.h"

/* How the rows of a value x [n_col, c1, c2], and an index of matrices [k], meet a weight. A product broadcasts
 * these dimensions, so row (i1, i2) of x is i1 % c1 + c1 * (i2 % c2) for i1 < d1, i2 < d2. */
typedef struct layout {
    int64_t n_col;          /* of a row */
    int64_t c1, c2, d1, d2; /* rows of x, and rows that are multiplied, along two dimensions */
    int64_t k;      /* indices for each element of the batch; 0: the weight is not picked from */
    int64_t m1, m2; /* matrices along these dimensions, if all are used */
    int64_t n_mat;  /* of the weight that the sums are for */
} layout;

/* A value whose rows are summed. */
typedef struct seen {
    const ggl_tensor *node, *x, *index; /* node: where they are collected */
    layout l;
    int i_x, i_index;  /* operands of the node; i_index -1: no index */
    bool index_varies; /* the index is batched */
    bool has_sketch;
} seen;

/* Sums over all rows that one value has had. For experts (k > 0) there is a count for each matrix; where each
 * matrix sees its own rows of every element, one for all. */
typedef struct sums {
    double *sum2;                 /* [n_mat][n_col] */
    int64_t *count;               /* [n_counts] */
    double *sketch;               /* [n_col][n_sketch + 1], for one matrix; else NULL */
    size_t n, n_counts, n_sketch; /* of these numbers */
} sums;

struct collected {
    sums *of; /* [n] */
    size_t n;
};

/* A weight whose products read these sums. */
typedef struct use {
    const ggl_tensor *weight;
    size_t i_seen;
} use;

struct collector {
    ggl_watch watch;
    bool output;
    int n_sketch;
    float *sign; /* of columns 0 .. n_sign - 1 (imatrix_signs) */
    int64_t n_sign;
    ggl_status status; /* of making the lists */
    collected *to;     /* where sums go; NULL: nowhere */
    seen *seen;
    use *use;
    const ggl_tensor **missed;
    size_t n_seen, cap_seen, n_uses, cap_uses, n_missed, cap_missed;
};

/* --- the products of a graph ------------------------------------------------------------------ */

static bool is_output(const ggl_tensor *weight) {
    return strcmp(weight->name, "output.weight") == 0 ||
           strcmp(weight->name, "token_embd.weight") == 0;
}

/* An adapter's weights are not the model's. */
static bool is_adapters(const ggl_tensor *weight) {
    return strstr(weight->name, ".lora_") != NULL;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Sets *l for a product of x with w, a weight, a view of one, or the stack that an index picks from. False: the
 * columns, or matrices, of the weight are not those of w. */
static bool lay_out(const ggl_tensor *x, const ggl_tensor *w, const ggl_tensor *index, layout *l) {
    const ggl_tensor *root = w->view_of;
    const int64_t n_root = ggl_extents(root->ne, 2, GGL_MAX_DIMS, 1),
                  n_w = ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
    *l = (layout){
        .n_col = w->ne[0], .c1 = x->ne[1], .c2 = x->ne[2], .n_mat = n_root, .m1 = 1, .m2 = 1};
    if (w->ne[0] != root->ne[0] || (n_root > 1 && n_root != n_w))
        return false;
    l->k = index ? ggl_count(index) : 0;
    if (!index && n_root > 1) {
        l->m1 = w->ne[2];
        l->m2 = w->ne[3];
    }
    l->d1 = larger(l->c1, index ? l->k : w->ne[2]);
    l->d2 = larger(l->c2, index ? 1 : w->ne[3]);
    return true;
}

static bool same_layout(const layout *a, const layout *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

/* Makes the signs of at least n columns. False: out of memory. */
static bool make_signs(collector *c, int64_t n) {
    if (n <= c->n_sign)
        return true;
    ggl_free(c->sign);
    c->n_sign = 0;
    c->sign = ggl_calloc((size_t)n * (size_t)c->n_sketch, sizeof *c->sign);
    if (!c->sign)
        return false;
    llm_imatrix_signs(c->sign, n, c->n_sketch);
    c->n_sign = n;
    return true;
}

/* Returns the entry of x and index with this layout, which is made if needed; SIZE_MAX: out of
 * memory. */
static size_t seen_of(collector *c, seen s) {
    for (size_t i = 0; i < c->n_seen; i++)
        if (c->seen[i].x == s.x && c->seen[i].index == s.index && same_layout(&c->seen[i].l, &s.l))
            return i;
    s.has_sketch = c->n_sketch > 0 && s.l.n_mat == 1 && s.l.k == 0;
    if ((s.has_sketch && !make_signs(c, s.l.n_col)) ||
        !ggl_grow(&c->seen, &c->cap_seen, c->n_seen + 1, sizeof *c->seen))
        return SIZE_MAX;
    c->seen[c->n_seen] = s;
    return c->n_seen++;
}

static bool add_use(collector *c, const ggl_tensor *weight, size_t i_seen) {
    for (size_t i = 0; i < c->n_uses; i++)
        if (c->use[i].weight == weight && c->use[i].i_seen == i_seen)
            return true; /* parts of a weight: its queries, its keys */
    if (!ggl_grow(&c->use, &c->cap_uses, c->n_uses + 1, sizeof *c->use))
        return false;
    c->use[c->n_uses++] = (use){weight, i_seen};
    return true;
}

static bool add_missed(collector *c, const ggl_tensor *weight) {
    for (size_t i = 0; i < c->n_missed; i++)
        if (c->missed[i] == weight)
            return true;
    if (!ggl_grow(&c->missed, &c->cap_missed, c->n_missed + 1, sizeof *c->missed))
        return false;
    c->missed[c->n_missed++] = weight;
    return true;
}

/* The bodies that a product is in, from the inside out, and the node at the top. */
typedef struct nest {
    const ggl_tensor *call;
    const struct nest *outer;
} nest;

/* Returns the value outside of all bodies that x is, perhaps in another shape; NULL: it is made in one of them.
 * *k: which operand of the outermost call it is. */
static const ggl_tensor *outside(const ggl_tensor *x, const nest *in, int *k) {
    for (; in; in = in->outer) {
        while (x->op == GGL_OP_RESHAPE && x->scope)
            x = x->src[0];
        if (x->op != GGL_OP_PARAM)
            return x->scope ? NULL : x;
        int i = 0;
        while (i < in->call->body->n_param && in->call->body->param[i] != x)
            i++;
        if (i == in->call->body->n_param)
            return NULL;
        *k = i;
        x = in->call->src[i];
    }
    return x;
}

/* Notes the product `t`, which is in these bodies of the node (in NULL: it is the node). */
static bool add_product(collector *c, const ggl_tensor *node, const ggl_tensor *t, const nest *in) {
    const ggl_tensor *w = ggl_read(t, 1), *index = ggl_n_reads(t) > 3 ? ggl_read(t, 3) : NULL,
                     *weight = w ? w->view_of : NULL;
    seen s = {.node = node, .i_x = 0, .i_index = index ? 3 : -1};
    if (!weight || !weight->name || is_adapters(weight) || (!c->output && is_output(weight)))
        return true;
    s.x = outside(t->src[0], in, &s.i_x);
    s.index = index ? outside(index, in, &s.i_index) : NULL;
    const bool has_index = s.index && (s.index->computed || s.index->op == GGL_OP_INPUT);
    if (s.x && !ggl_is_batched(s.x) && !(has_index && ggl_is_batched(s.index)))
        return true; /* a constant of the model */
    if (!s.x || (index && !has_index) || !ggl_is_batched(s.x) || s.x->type != GGL_F32 ||
        !lay_out(t->src[0], w, index, &s.l))
        return add_missed(c, weight);
    s.index_varies = s.index && ggl_is_batched(s.index);
    const size_t i = seen_of(c, s);
    return i != SIZE_MAX && add_use(c, weight, i);
}

static bool add_all(collector *c, const ggl_tensor *node, const ggl_tensor *t, const nest *in) {
    bool ok = t->op != GGL_OP_LINEAR || add_product(c, node, t, in);
    const nest inner = {t, in};
    for (int i = 0; t->body && i < t->body->n_node && ok; i++)
        ok = add_all(c, node, t->body->node[i], &inner);
    return ok;
}

static bool wants(void *ctx, const ggl_tensor *node) {
    collector *c = ctx;
    const size_t n = c->n_seen;
    if (c->status == GGL_OK && !add_all(c, node, node, NULL))
        c->status = GGL_NOMEM;
    return c->n_seen > n;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Adds the squares of n rows, `step` numbers apart, to sum2[n_col]. Sums are in the order of the rows; several
 * are added at once only to spare memory accesses. */
static void add_rows(double *sum2, const float *x, int64_t n_col, int64_t n, int64_t step) {
    for (; n >= 4; n -= 4, x += 4 * step) {
        const float *a = x, *b = x + step, *c = b + step, *d = c + step;
        for (int64_t i = 0; i < n_col; i++) {
            double s = sum2[i];
            s += (double)a[i] * (double)a[i];
            s += (double)b[i] * (double)b[i];
            s += (double)c[i] * (double)c[i];
            s += (double)d[i] * (double)d[i];
            sum2[i] = s;
        }
    }
    for (; n > 0; n--, x += step)
        for (int64_t i = 0; i < n_col; i++)
            sum2[i] += (double)x[i] * (double)x[i];
}

/* Returns the row of x [n_col, c1, c2] that is multiplied as row (i1, i2). */
static const float *row_at(const layout *l, const float *x, int64_t i1, int64_t i2) {
    return x + (i1 % l->c1 + l->c1 * (i2 % l->c2)) * l->n_col;
}

/* Rows of one element of the batch, each for the expert that was chosen for it. */
static void add_experts(const layout *l, sums *s, const float *x, const int32_t *index) {
    for (int64_t i2 = 0; i2 < l->d2; i2++)
        for (int64_t i1 = 0; i1 < l->d1; i1++) {
            const int64_t e = index[i1 % l->k];
            if (e < 0 || e >= l->n_mat)
                continue;
            add_rows(s->sum2 + e * l->n_col, row_at(l, x, i1, i2), l->n_col, 1, 0);
            s->count[e]++;
        }
}

/* Adds n rows, `step` numbers apart, for matrix m. */
static void add_to(const collector *c, const layout *l, sums *s, int64_t m, const float *x,
                   int64_t n, int64_t step) {
    add_rows(s->sum2 + m * l->n_col, x, l->n_col, n, step);
    if (s->sketch)
        llm_imatrix_sketch_rows(s->sketch, c->sign, c->n_sketch, x, l->n_col, n, step);
}

/* Rows of n elements of the batch, each for the matrix at its place. */
static void add_matrices(const collector *c, const layout *l, sums *s, const float *x, int64_t n) {
    const int64_t size = l->n_col * l->c1 * l->c2;
    for (int64_t i2 = 0; i2 < l->d2; i2++)
        for (int64_t i1 = 0; i1 < l->d1; i1++)
            add_to(c, l, s, i1 % l->m1 + l->m1 * (i2 % l->m2), row_at(l, x, i1, i2), n, size);
    s->count[0] += n * l->d1 * l->d2 / l->n_mat;
}

/* All rows of n elements of the batch, which one matrix reads as they lie. */
static void add_plain(const collector *c, const layout *l, sums *s, const float *x, int64_t n) {
    n *= l->d1 * l->d2;
    add_to(c, l, s, 0, x, n, l->n_col);
    s->count[0] += n;
}

static void see(void *ctx, const ggl_tensor *node, const void *const *operand, int64_t n) {
    collector *c = ctx;
    for (size_t k = 0; k < c->n_seen && c->to; k++) {
        const seen *v = &c->seen[k];
        const layout *l = &v->l;
        sums *s = &c->to->of[k];
        const float *x = v->node == node ? operand[v->i_x] : NULL;
        if (!x)
            continue;
        const int32_t *index = v->i_index < 0 ? NULL : operand[v->i_index];
        for (int64_t i = 0; index && i < n; i++)
            add_experts(l, s, x + i * l->n_col * l->c1 * l->c2,
                        index + (v->index_varies ? i * l->k : 0));
        if (!index && l->n_mat == 1 && l->c1 == l->d1 && l->c2 == l->d2)
            add_plain(c, l, s, x, n);
        else if (!index)
            add_matrices(c, l, s, x, n);
    }
}

/* --- sums of a text, or of a part of it ------------------------------------------------------- */

static bool make_sums(sums *s, const collector *c, const seen *v) {
    s->n = (size_t)(v->l.n_col * v->l.n_mat);
    s->n_counts = (size_t)(v->l.k > 0 ? v->l.n_mat : 1);
    s->n_sketch = v->has_sketch ? (size_t)v->l.n_col * (size_t)(c->n_sketch + 1) : 0;
    s->sum2 = ggl_calloc(s->n, sizeof *s->sum2);
    s->count = ggl_calloc(s->n_counts, sizeof *s->count);
    s->sketch = s->n_sketch > 0 ? ggl_calloc(s->n_sketch, sizeof *s->sketch) : NULL;
    return s->sum2 && s->count && (s->sketch || s->n_sketch == 0);
}

ggl_status llm_collected_new(collected **out, const collector *c, ggl_error *err) {
    collected *d = *out = ggl_calloc(1, sizeof *d);
    bool ok = d && (d->of = ggl_calloc(c->n_seen + 1, sizeof *d->of));
    for (size_t i = 0; ok && i < c->n_seen; i++, d->n++)
        ok = make_sums(&d->of[i], c, &c->seen[i]);
    if (ok && c->status == GGL_OK)
        return GGL_OK;
    if (d && d->of && d->n < c->n_seen)
        d->n++; /* the one that is made in part */
    llm_collected_free(d);
    *out = NULL;
    return ggl_fail(err, GGL_NOMEM, "out of memory to collect sums");
}

void llm_collected_free(collected *d) {
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++) {
        ggl_free(d->of[i].sum2);
        ggl_free(d->of[i].count);
        ggl_free(d->of[i].sketch);
    }
    ggl_free(d->of);
    ggl_free(d);
}

void llm_collected_clear(collected *d) {
    for (size_t i = 0; i < d->n; i++) {
        sums *s = &d->of[i];
        memset(s->sum2, 0, s->n * sizeof *s->sum2);
        memset(s->count, 0, s->n_counts * sizeof *s->count);
        if (s->sketch)
            memset(s->sketch, 0, s->n_sketch * sizeof *s->sketch);
    }
}

void llm_collected_add(collected *d, const collected *more) {
    for (size_t i = 0; i < d->n; i++) {
        sums *s = &d->of[i];
        const sums *m = &more->of[i];
        for (size_t k = 0; k < s->n; k++)
            s->sum2[k] += m->sum2[k];
        for (size_t k = 0; k < s->n_counts; k++)
            s->count[k] += m->count[k];
        for (size_t k = 0; k < s->n_sketch; k++)
            s->sketch[k] += m->sketch[k];
    }
}

void llm_collector_into(collector *c, collected *to) {
    c->to = to;
}

bool llm_collector_same(const collector *a, const collector *b) {
    bool same = a->n_seen == b->n_seen && a->n_uses == b->n_uses;
    for (size_t i = 0; same && i < a->n_seen; i++)
        same = same_layout(&a->seen[i].l, &b->seen[i].l);
    for (size_t i = 0; same && i < a->n_uses; i++)
        same = a->use[i].i_seen == b->use[i].i_seen &&
               strcmp(a->use[i].weight->name, b->use[i].weight->name) == 0;
    return same;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Forgets the nodes of a session that was only tried. */
static void begin(void *ctx) {
    collector *c = ctx;
    c->n_seen = c->n_uses = c->n_missed = 0;
    c->status = GGL_OK;
}

ggl_status llm_collector_new(collector **out, bool output, int n_sketch, ggl_error *err) {
    collector *c = *out = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory to collect sums");
    c->output = output;
    c->n_sketch = n_sketch;
    c->watch = (ggl_watch){wants, see, c, begin};
    return GGL_OK;
}

void llm_collector_free(collector *c) {
    if (!c)
        return;
    ggl_free(c->sign);
    ggl_free(c->seen);
    ggl_free(c->use);
    ggl_free(c->missed);
    ggl_free(c);
}

const ggl_watch *llm_collector_watch(collector *c) {
    return &c->watch;
}

size_t llm_collector_n_missed(const collector *c, const char **name) {
    *name = c->n_missed > 0 ? c->missed[0]->name : "";
    return c->n_missed;
}

ggl_status llm_collector_check(const collector *c, const collected *d, ggl_error *err) {
    for (size_t k = 0; k < c->n_uses; k++) {
        const sums *s = &d->of[c->use[k].i_seen];
        for (size_t i = 0; i < s->n; i++)
            if (!(s->sum2[i] <= (double)FLT_MAX))
                return ggl_fail(err, GGL_USAGE,
                                "column %" PRId64 " of what %s is multiplied with has numbers that "
                                "are infinite or none, or too large to sum their squares",
                                (int64_t)i % c->seen[c->use[k].i_seen].l.n_col,
                                c->use[k].weight->name);
    }
    return GGL_OK;
}

static ggl_status put(const use *u, const layout *l, const sums *s, int n_sketch, imatrix *m,
                      ggl_error *err) {
    const int64_t n = l->n_col * l->n_mat, n_mat = l->k > 0 ? l->n_mat : 1;
    imatrix_entry *e = NULL;
    ggl_status st = llm_imatrix_add(m, u->weight->name, n / n_mat, n_mat, &e, err);
    if (st == GGL_OK)
        st = llm_imatrix_add_sketch(e, s->sketch ? n_sketch : 0, err);
    for (int64_t i = 0; st == GGL_OK && e->sketch && s->sketch && i < e->n_col * (e->n_sketch + 1);
         i++)
        e->sketch[i] = (float)((double)e->sketch[i] + s->sketch[i]);
    for (int64_t i = 0; i < n && st == GGL_OK; i++)
        e->sum2[i] = (float)((double)e->sum2[i] + s->sum2[i]);
    for (int64_t i = 0; i < n_mat && st == GGL_OK; i++)
        e->count[i] += s->count[i];
    return st;
}

ggl_status llm_collector_put(const collector *c, const collected *d, imatrix *m, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < c->n_uses && st == GGL_OK; k++) {
        const size_t i = c->use[k].i_seen;
        st = put(&c->use[k], &c->seen[i].l, &d->of[i], c->n_sketch, m, err);
    }
    llm_imatrix_count_chunks(m);
    return st;
}
