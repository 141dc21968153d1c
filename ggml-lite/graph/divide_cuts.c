#include "divide_cuts.h"

#include <math.h>
#include <string.h>

#include "ggl/internal/types.h"

enum { MOST_SOURCES = 32 }; /* bits of rule.parts */

/* --- where parts begin ------------------------------------------------------------------------- */

/* Writes the first of n things of each part, in proportion to the shares, in multiples of `unit`. */
static void cut_by_share(const cuts *c, int64_t n, int64_t unit, int64_t times, int64_t *first) {
    double before = 0, sum = 0;
    for (int i = 0; i < c->n_parts; i++)
        sum += c->share[i];
    for (int i = 0; i < c->n_parts; i++) {
        const int64_t at = (int64_t)((double)n * before / sum / (double)unit + 0.5) * unit;
        first[i] = (at > n ? n : at) * times;
        before += c->share[i];
    }
    first[c->n_parts] = n * times;
}

static bool same_cuts(const cuts *c, const int64_t *a, const int64_t *b) {
    return memcmp(a, b, ((size_t)c->n_parts + 1) * sizeof *a) == 0;
}

static bool copy_cuts(const cuts *c, int64_t *to, const int64_t *from) {
    memcpy(to, from, ((size_t)c->n_parts + 1) * sizeof *to);
    return true;
}

/* True if at least two parts have elements. */
static bool has_parts(const cuts *c, const int64_t *first) {
    int n = 0;
    for (int i = 0; i < c->n_parts; i++)
        n += first[i] < first[i + 1];
    return n > 1;
}

const ggl_tensor *ggl_cut_leaf(const ggl_tensor *t, int64_t *first) {
    *first = 0;
    if (t->op == GGL_OP_SPLIT && t->src[SPLIT_X]->n_dims == t->n_dims &&
        t->num[SPLIT_DIM] == t->n_dims - 1) {
        *first = (int64_t)t->num[SPLIT_FIRST];
        t = t->src[SPLIT_X];
    }
    const bool is_leaf = (t->op == GGL_OP_WEIGHT || t->op == GGL_OP_CONST) && t->data;
    return is_leaf && (t->n_dims > 1 || (t->n_dims == 1 && ggl_type_get(t->type)->block == 1))
               ? t
               : NULL;
}

/* Returns the bytes of n elements of a leaf along its last dimension. */
static size_t bytes_of(const ggl_tensor *leaf, int64_t n) {
    return leaf->size / (size_t)leaf->ne[leaf->n_dims - 1] * (size_t)n;
}

/* True if each part of t can read what it needs of s, which is whole: all of it, as it has no such dimension, or elements that lie
 * together. */
static bool has_for_parts(const ggl_tensor *t, const ggl_tensor *s) {
    int64_t first;
    const int last = t->n_dims - 1;
    return s->n_dims <= last || s->ne[last] == 1 ||
           (t->scope == 0 && s->n_dims == t->n_dims && ggl_cut_leaf(s, &first));
}

/* --- operators --------------------------------------------------------------------------------- */

static bool is_divisible(const cuts *c, const ggl_tensor *t) {
    if (t->op != GGL_OP_LINEAR || !ggl_is_batched(t) || t->n_dims == 0)
        return false;
    int64_t first;
    const ggl_tensor *w = t->src[LINEAR_W], *bias = t->src[LINEAR_BIAS],
                     *leaf = ggl_cut_leaf(w, &first);
    const bool heads = c->at[t->id].heads > 0;
    return leaf && leaf->op == GGL_OP_WEIGHT && w->n_dims == 2 &&
           (heads || (bytes_of(leaf, w->ne[1]) >= c->least && w->ne[1] >= c->unit * c->n_parts)) &&
           (!bias || (bias->n_dims == 1 && ggl_cut_leaf(bias, &first)));
}

static bool cut_linear(cuts *c, const ggl_tensor *t, int64_t *first) {
    const int heads = c->at[t->id].heads;
    if (!is_divisible(c, t))
        return false;
    if (heads > 0)
        cut_by_share(c, heads, 1, t->ne[0] / heads, first);
    else
        cut_by_share(c, t->ne[0], c->unit, 1, first);
    c->at[t->id].dim = 0;
    return has_parts(c, first);
}

/* For an operator whose elements depend only on those of its sources that have the same index along the last dimension. */
static bool cut_element(cuts *c, const ggl_tensor *t, int64_t *first) {
    const int last = t->n_dims - 1;
    const int64_t *from = NULL;
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *s = t->src[k];
        const int64_t *f = ggl_cut_of(c, s);
        if (s && f &&
            (s->n_dims != t->n_dims || s->ne[last] != t->ne[last] ||
             (from && !same_cuts(c, f, from))))
            return false;
        if (s && !f && !has_for_parts(t, s))
            return false;
        from = f ? f : from;
    }
    return from && copy_cuts(c, first, from);
}

/* For an operator that works along an earlier dimension, such as the sum over each row. */
static bool cut_row(cuts *c, const ggl_tensor *t, int64_t *first) {
    const int along =
        t->op == GGL_OP_CONCAT ? CONCAT_DIM : 0; /* SUM_DIM, AMAX_DIM and SPLIT_DIM, too */
    for (int k = 0; k < t->n_src; k++)
        if (!ggl_cut_of(c, t->src[k]) || t->src[k]->n_dims != t->n_dims ||
            !(t->num[along] < t->n_dims - 1))
            return false;
    return cut_element(c, t, first);
}

static bool cut_reshape(cuts *c, const ggl_tensor *t, int64_t *first) {
    const ggl_tensor *x = t->src[RESHAPE_X];
    const int64_t *from = ggl_cut_of(c, x);
    if (!from || !ggl_is_batched(t) || t->n_dims == 0)
        return false;
    const int64_t before = x->ne[x->n_dims - 1], now = t->ne[t->n_dims - 1];
    for (int i = 0; i <= c->n_parts; i++) {
        const double at = (double)from[i] * (double)now / (double)before;
        if (at != floor(at) || (int64_t)at * before != from[i] * now)
            return false;
        first[i] = (int64_t)at;
    }
    return true;
}

static bool cut_rope(cuts *c, const ggl_tensor *t, int64_t *first) {
    const int64_t *from = t->n_dims > 1 ? ggl_cut_of(c, t->src[0]) : NULL;
    return from && copy_cuts(c, first, from);
}

static void keep_whole(cuts *c, const ggl_tensor *cache) {
    c->again |= !c->at[cache->id].stays_whole;
    c->at[cache->id].stays_whole = true;
}

static bool cut_cache(cuts *c, const ggl_tensor *t, int64_t *first) {
    const ggl_tensor *k = t->src[CACHE_K], *v = t->src[CACHE_V];
    const int64_t *of_k = ggl_cut_of(c, k), *of_v = ggl_cut_of(c, v);
    const bool is = !c->at[t->id].stays_whole && t->store[1] && of_k && of_v && k->n_dims == 2 &&
                    v->n_dims == 2 && same_cuts(c, of_k, of_v);
    if (!is)
        keep_whole(c, t);
    return is && copy_cuts(c, first, of_k);
}

static bool cut_heads(const cuts *c, const ggl_tensor *t, const int64_t *of_kv, int64_t *first) {
    const ggl_tensor *q = t->src[ATTEND_Q], *k = t->src[ATTEND_KV]->src[CACHE_K];
    const int64_t *of_q = ggl_cut_of(c, q);
    int64_t at;
    for (int i = ATTEND_SINKS; i <= ATTEND_ALIBI; i++)
        if (t->src[i] && (t->src[i]->n_dims != 1 || !ggl_cut_leaf(t->src[i], &at)))
            return false;
    if (!of_q || q->n_dims != 2 || t->n_dims != 2 || q->ne[1] % k->ne[1] != 0 ||
        t->src[ATTEND_BIAS] || t->src[ATTEND_CHOSEN] || t->src[ATTEND_REL_K] ||
        t->src[ATTEND_REL_Q] || t->src[ATTEND_REL_ROW])
        return false;
    for (int i = 0; i <= c->n_parts; i++)
        if (of_q[i] != of_kv[i] * (q->ne[1] / k->ne[1]))
            return false;
    return copy_cuts(c, first, of_q);
}

static bool cut_attend(cuts *c, const ggl_tensor *t, int64_t *first) {
    const ggl_tensor *kv = t->src[ATTEND_KV];
    const int64_t *of_kv = ggl_cut_of(c, kv);
    const bool is = of_kv && cut_heads(c, t, of_kv, first);
    if (of_kv && !is)
        keep_whole(c, kv);
    return is;
}

/* --- experts ----------------------------------------------------------------------------------- */

static bool find_one(cuts *c, const ggl_tensor *t);
static bool find_in_body(cuts *c, const ggl_body *b);
static void forget(cuts *c, const ggl_body *b);

/* Of a product with matrices that an index picks from a stack: each part has some of the experts, and computes the columns of these.
 * An index out of range picks no matrix. */
static bool cut_picked(const cuts *c, const ggl_tensor *t, int64_t *first) {
    const ggl_tensor *pick = t->src[LINEAR_W], *stack = pick->src[PICK_T],
                     *index = pick->src[PICK_I], *own = ggl_experts_of(c, t->src[LINEAR_X]);
    int64_t at;
    const ggl_tensor *leaf = stack->n_dims == 3 ? ggl_cut_leaf(stack, &at) : NULL;
    if (!leaf || leaf->op != GGL_OP_WEIGHT || index->n_dims != 1 || t->n_dims != 2 ||
        t->ne[1] != index->ne[0] || (own && own != index) || stack->ne[2] < c->n_parts)
        return false;
    if (!own && bytes_of(leaf, index->ne[0]) < c->least)
        return false;
    cut_by_share(c, stack->ne[2], 1, 1, first);
    return has_parts(c, first) && (!own || same_cuts(c, first, c->at[t->src[LINEAR_X]->id].first));
}

/* A body's params are columns of experts where those are that they stand for. */
static bool cut_body_by_experts(cuts *c, const ggl_tensor *t) {
    const ggl_body *b = t->body;
    bool ok = !b->recurrent && !t->keeps_state;
    for (int k = 0; k < t->n_src && ok; k++)
        if (ggl_experts_of(c, t->src[k])) {
            c->at[b->param[k]->id] = c->at[t->src[k]->id];
            c->at[b->param[k]->id].part = NULL;
        }
    if (ok && find_in_body(c, b) && ggl_experts_of(c, b->result))
        return true;
    forget(c, b);
    return false;
}

/* Sets *experts and the cuts of t, whose columns do not mix. False: it is not divided among experts. */
static bool cut_experts(cuts *c, const ggl_tensor *t, bool is_element, int64_t *first,
                        const ggl_tensor **experts) {
    const ggl_tensor *from = NULL;
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *by = ggl_experts_of(c, t->src[k]);
        if (by && (t->src[k]->n_dims != 2 || (from && by != ggl_experts_of(c, from))))
            return false;
        from = by ? t->src[k] : from;
    }
    if (t->op == GGL_OP_LINEAR && t->src[LINEAR_W]->gather) {
        *experts = t->src[LINEAR_W]->src[PICK_I];
        return (!from || from == t->src[LINEAR_X]) && cut_picked(c, t, first);
    }
    const bool is_row = (t->op == GGL_OP_SUM || t->op == GGL_OP_AMAX || t->op == GGL_OP_SPLIT) &&
                        t->num[SPLIT_DIM] == 0;
    if (!from || t->n_dims != 2 || t->ne[1] != from->ne[1])
        return false;
    *experts = ggl_experts_of(c, from);
    return (is_element || is_row || (t->op == GGL_OP_CALL && cut_body_by_experts(c, t))) &&
           copy_cuts(c, first, c->at[from->id].first);
}

/* --- calls -------------------------------------------------------------------------------------- */

/* Finds the cuts in a body whose params have theirs. False: a node that reads what is cut needs all of it, and in a body nothing is
 * joined. */
static bool find_in_body(cuts *c, const ggl_body *b) {
    bool ok = true;
    for (int i = 0; i < b->n_node && ok; i++) {
        const ggl_tensor *n = b->node[i];
        bool reads = false;
        for (int k = 0; k < n->n_src; k++)
            reads |= ggl_cut_of(c, n->src[k]) || ggl_experts_of(c, n->src[k]);
        ok = !reads || find_one(c, n);
    }
    return ok;
}

static void forget(cuts *c, const ggl_body *b) {
    for (int i = 0; i < b->n_param; i++)
        c->at[b->param[i]->id].first = NULL;
    for (int i = 0; i < b->n_node; i++) {
        c->at[b->node[i]->id].first = NULL;
        if (b->node[i]->body)
            forget(c, b->node[i]->body);
    }
}

/* A body's params are cut as what they stand for. What is whole, as long as those, and can be cut, is: a bias, for example. */
static bool cut_params(cuts *c, const ggl_tensor *t) {
    const ggl_tensor *like = NULL;
    int64_t first;
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *s = t->src[k];
        c->at[t->body->param[k]->id].dim = s->n_dims - 1;
        c->at[t->body->param[k]->id].first = (int64_t *)(uintptr_t)ggl_cut_of(c, s);
        like = !like && ggl_cut_of(c, s) ? s : like;
    }
    for (int k = 0; like && t->scope == 0 && k < t->n_src; k++) {
        const ggl_tensor *s = t->src[k];
        if (!ggl_cut_of(c, s) && s->n_dims == like->n_dims &&
            s->ne[s->n_dims - 1] == like->ne[like->n_dims - 1] && ggl_cut_leaf(s, &first))
            c->at[t->body->param[k]->id].first = c->at[like->id].first;
    }
    return like;
}

static bool cut_call(cuts *c, const ggl_tensor *t, int64_t *first) {
    const ggl_body *b = t->body;
    const bool ok = !b->recurrent && !t->keeps_state && t->n_src <= MOST_SOURCES &&
                    cut_params(c, t) && find_in_body(c, b);
    const int64_t *of_result = ok ? ggl_cut_of(c, b->result) : NULL;
    if (!of_result || b->result->n_dims != t->n_dims) {
        forget(c, b);
        return false;
    }
    return copy_cuts(c, first, of_result);
}

typedef bool cut_rule(cuts *c, const ggl_tensor *t, int64_t *first);

/* How an operator's value is cut if what it reads is; those of single elements are cut_element. parts: the sources that a part reads in parts. */
static const struct rule {
    ggl_op op;
    cut_rule *rule;
    uint32_t parts;
} rules[] = {
    {GGL_OP_LINEAR, cut_linear, 0},
    {GGL_OP_SUM, cut_row, 1},
    {GGL_OP_AMAX, cut_row, 1},
    {GGL_OP_SPLIT, cut_row, 1},
    {GGL_OP_CONCAT, cut_row, 3},
    {GGL_OP_RESHAPE, cut_reshape, 1},
    {GGL_OP_ROPE_HALF, cut_rope, 1},
    {GGL_OP_ROPE_PAIR, cut_rope, 1},
    {GGL_OP_CACHE, cut_cache, 1 << CACHE_K | 1 << CACHE_V},
    {GGL_OP_ATTEND, cut_attend,
     1 << ATTEND_Q | 1 << ATTEND_KV | 1 << ATTEND_SINKS | 1 << ATTEND_ALIBI},
    {GGL_OP_CALL, cut_call, UINT32_MAX},
};

static struct rule rule_of(const ggl_tensor *t) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == t->op)
            return rules[i];
    return (struct rule){
        t->op,
        ggl_op_get(t->op).kind == GGL_KIND_ELEMENT || t->op == GGL_OP_CAST ? cut_element : NULL,
        UINT32_MAX};
}

bool ggl_cut_reads_part(const ggl_tensor *t, int k) {
    return k < MOST_SOURCES && rule_of(t).parts >> k & 1;
}

/* Sets the cuts of t. False: it is whole. */
static bool find_one(cuts *c, const ggl_tensor *t) {
    cut_rule *rule = rule_of(t).rule;
    cut *own = &c->at[t->id];
    bool reads = t->op == GGL_OP_LINEAR, reads_experts = reads && t->src[LINEAR_W]->gather;
    if (reads && t->scope != 0) /* in a body nothing is joined, and a product reads all of x */
        return false;
    for (int k = 0; k < t->n_src; k++) {
        reads |= ggl_cut_of(c, t->src[k]) != NULL;
        reads_experts |= ggl_experts_of(c, t->src[k]) != NULL;
    }
    int64_t *first = rule && (reads || reads_experts)
                         ? ggl_arena_alloc(&c->g->arena, (size_t)c->n_parts + 1, sizeof *first)
                         : NULL;
    if (!first)
        return false;
    own->experts = NULL;
    own->dim = t->n_dims - 1; /* of a cache -1: it has no value */
    if (reads_experts) {
        const ggl_tensor *experts = NULL;
        if (!cut_experts(c, t, rule == cut_element, first, &experts))
            return false;
        own->experts = experts;
        own->dim = CUT_EXPERTS;
    } else if (!rule(c, t, first)) {
        return false;
    }
    own->first = first;
    return true;
}

/* --- heads ------------------------------------------------------------------------------------- */

/* Visits the products from whose rows t's last dimension comes, and notes whether one is large. mark: they are cut by heads. */
static void walk(cuts *c, ggl_tensor *t, int heads, int depth, bool mark, bool *large) {
    enum { MOST_DEPTH = 64 };
    if (!t || t->id >= c->n_ids || depth > MOST_DEPTH || !ggl_is_batched(t) ||
        c->at[t->id].seen == c->n_walks)
        return;
    c->at[t->id].seen = c->n_walks;
    if (t->op == GGL_OP_LINEAR) {
        const ggl_tensor *w = t->src[LINEAR_W];
        int64_t first;
        const ggl_tensor *leaf = w->n_dims == 2 ? ggl_cut_leaf(w, &first) : NULL;
        if (t->n_dims != 1 || t->ne[0] % heads != 0 || !leaf)
            return;
        *large |= bytes_of(leaf, w->ne[1]) >= c->least;
        if (mark)
            c->at[t->id].heads = heads;
        return;
    }
    if (!rule_of(t).rule || t->op == GGL_OP_CACHE || t->op == GGL_OP_ATTEND)
        return;
    for (int k = 0; k < t->n_src; k++)
        if (ggl_cut_reads_part(t, k))
            walk(c, t->src[k], heads, depth + 1, mark, large);
}

/* Lets the products before each cache, and before the queries of its readers, be cut by its heads. */
static void find_heads(cuts *c) {
    for (int i = 0; i < c->n_ids; i++)
        c->at[i].heads = 0;
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        const ggl_tensor *t = c->g->nodes.at[i],
                         *kv = t->op == GGL_OP_ATTEND ? t->src[ATTEND_KV] : NULL;
        if (!kv || !t->needed || c->at[kv->id].stays_whole)
            continue;
        const ggl_tensor *k = kv->src[CACHE_K];
        bool large = false;
        if (k->n_dims != 2 || k->ne[1] < c->n_parts || k->ne[1] > INT32_MAX)
            continue;
        ggl_tensor *const from[] = {t->src[ATTEND_Q], kv->src[CACHE_K], kv->src[CACHE_V]};
        c->n_walks++;
        walk(c, from[0], (int)k->ne[1], 0, false, &large);
        c->n_walks++;
        for (int j = 0; j < 3 && large; j++)
            walk(c, from[j], (int)k->ne[1], 0, true, &large);
    }
}

bool ggl_cuts_find(cuts *c) {
    enum { MOST_PASSES = 8 };
    int n = 0;
    do {
        c->again = false;
        for (size_t i = 0; i < c->g->nodes.n && n == MOST_PASSES; i++)
            c->at[c->g->nodes.at[i]->id].stays_whole = true; /* no more passes */
        n++;
        find_heads(c);
        for (int i = 0; i < c->n_ids; i++)
            c->at[i].first = NULL;
        for (size_t i = 0; i < c->g->nodes.n; i++) {
            const ggl_tensor *t = c->g->nodes.at[i];
            if (t->needed && !ggl_is_leaf(t) && !t->view_of)
                (void)find_one(c, t);
        }
    } while (c->again && c->g->error.status == GGL_OK);
    return c->g->error.status == GGL_OK;
}
