/* The pool of expressions over bytes: construction, with the simplifications that keep the number
 * of derivatives finite and small. */
#include "pool.h"

#include <string.h>

#include "ggl/alloc.h"

static int32_t failed(llm_bx_pool *p, ggl_status st) {
    if (p->status == GGL_OK)
        p->status = st;
    return LLM_BX_NONE;
}

size_t llm_bx_pool_size(const llm_bx_pool *p) {
    return p->cap_nodes * sizeof *p->node + p->cap_args * sizeof *p->arg +
           p->cap_sets * sizeof *p->set + p->cap_rules * sizeof *p->rule +
           p->n_buckets * sizeof *p->bucket + p->cap_scratch * sizeof *p->scratch;
}

void llm_bx_pool_fini(llm_bx_pool *p) {
    llm_budget_give_back(&p->use, llm_bx_pool_size(p), 1);
    const llm_budget use = p->use;
    ggl_free(p->node);
    ggl_free(p->arg);
    ggl_free(p->set);
    ggl_free(p->rule);
    ggl_free(p->bucket);
    ggl_free(p->scratch);
    *p = (llm_bx_pool){.use = use};
}

bool llm_bx_grow(llm_bx_pool *p, void *array, size_t *cap, size_t n, size_t size) {
    const ggl_status st = llm_budget_grow(&p->use, array, cap, n, size);
    if (st != GGL_OK)
        failed(p, st);
    return st == GGL_OK;
}

/* Copies n elements to an array that is empty. */
static bool copy_array(llm_bx_pool *p, void *to, size_t *cap, const void *from, size_t n,
                       size_t size) {
    if (!llm_bx_grow(p, to, cap, n, size))
        return false;
    if (n > 0)
        memcpy(*(void **)to, from, n * size);
    return true;
}

bool llm_bx_pool_copy(llm_bx_pool *to, const llm_bx_pool *from) {
    const llm_bx_pool empty = {.use = to->use, .all_text = from->all_text};
    *to = empty;
    if (copy_array(to, &to->node, &to->cap_nodes, from->node, from->n_nodes, sizeof *to->node) &&
        copy_array(to, &to->arg, &to->cap_args, from->arg, from->n_args, sizeof *to->arg) &&
        copy_array(to, &to->set, &to->cap_sets, from->set, from->n_sets, sizeof *to->set) &&
        copy_array(to, &to->rule, &to->cap_rules, from->rule, from->n_rules, sizeof *to->rule) &&
        copy_array(to, &to->bucket, &to->n_buckets, from->bucket, from->n_buckets,
                   sizeof *to->bucket)) {
        to->n_nodes = from->n_nodes;
        to->n_args = from->n_args;
        to->n_sets = from->n_sets;
        to->n_rules = from->n_rules;
        to->n_searches = from->n_searches;
        to->n_visits = from->n_visits;
        to->n_covers = from->n_covers;
        return true;
    }
    return false;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool has_list(uint8_t kind) {
    return kind == LLM_BX_KIND_ALT || kind == LLM_BX_KIND_AND || kind >= LLM_BX_KIND_TABLE;
}

/* A node that may not be in the pool yet. For ALT and AND, its parts are the topmost b of the
 * scratch; for BYTES, `set` is its set. */
typedef struct draft {
    llm_bx e;
    const llm_byte_set *set;
} draft;

static uint32_t mix(uint32_t h, uint32_t x) {
    return (h ^ x) * 0x9e3779b1u ^ h >> 15;
}

/* The scratch from `base` on; NULL: there never was one. */
static int32_t *scratch_from(const llm_bx_pool *p, size_t base) {
    return p->scratch ? p->scratch + base : NULL;
}

static const int32_t *parts_of(const llm_bx_pool *p, const draft *d) {
    const int32_t *all = d->e.a < 0 ? p->scratch : p->arg;
    const size_t at = d->e.a < 0 ? p->n_scratch - (size_t)d->e.b : (size_t)d->e.a;
    return all ? all + at : NULL; /* no parts yet */
}

static uint32_t hash(const llm_bx_pool *p, const draft *d) {
    uint32_t h = mix(d->e.kind, (uint32_t)d->e.b);
    if (d->e.kind == LLM_BX_KIND_BYTES) {
        for (int i = 0; i < 4; i++)
            h = mix(mix(h, (uint32_t)d->set->w[i]), (uint32_t)(d->set->w[i] >> 32));
    } else if (has_list(d->e.kind)) {
        const int32_t *part = parts_of(p, d);
        for (int32_t i = 0; i < d->e.b; i++)
            h = mix(h, (uint32_t)part[i]);
    } else {
        h = mix(mix(mix(h, (uint32_t)d->e.a), (uint32_t)d->e.min), (uint32_t)d->e.max);
    }
    return h ^ h >> 16;
}

static bool equal(const llm_bx_pool *p, const draft *d, int32_t node) {
    const llm_bx *e = &p->node[node];
    if (e->kind != d->e.kind || e->b != d->e.b)
        return false;
    if (e->kind == LLM_BX_KIND_BYTES)
        return memcmp(&p->set[e->a], d->set, sizeof *d->set) == 0;
    if (has_list(e->kind))
        return e->b == 0 ||
               memcmp(&p->arg[e->a], parts_of(p, d), (size_t)e->b * sizeof *p->arg) == 0;
    return e->a == d->e.a && e->min == d->e.min && e->max == d->e.max;
}

static bool rehash(llm_bx_pool *p) {
    size_t n = p->n_buckets ? 2 * p->n_buckets : 512;
    const ggl_status st = llm_budget_take(&p->use, n - p->n_buckets, sizeof *p->bucket);
    int32_t *bucket = st == GGL_OK ? ggl_calloc(n, sizeof *bucket) : NULL;
    if (!bucket) {
        failed(p, st == GGL_OK ? GGL_NOMEM : st);
        return false;
    }
    ggl_free(p->bucket);
    p->bucket = bucket;
    p->n_buckets = n;
    for (int32_t i = LLM_BX_EMPTY + 1; i < (int32_t)p->n_nodes; i++) {
        draft d = {.e = p->node[i]};
        if (d.e.kind == LLM_BX_KIND_BYTES)
            d.set = &p->set[d.e.a];
        size_t at = hash(p, &d) & (n - 1);
        while (bucket[at])
            at = (at + 1) & (n - 1);
        bucket[at] = i;
    }
    return true;
}

/* Makes room for a node and its hash; the first call also makes NONE and EMPTY. */
static bool reserve(llm_bx_pool *p) {
    if (p->n_nodes >= LLM_BX_MAX_NODES) {
        failed(p, GGL_LIMIT);
        return false;
    }
    if (!llm_bx_grow(p, &p->node, &p->cap_nodes, p->n_nodes + 4, sizeof *p->node))
        return false;
    if (p->n_nodes == 0) {
        p->node[LLM_BX_NONE] = (llm_bx){.kind = LLM_BX_KIND_NONE, .min_len = LLM_BX_DEAD};
        p->node[LLM_BX_EMPTY] = (llm_bx){.kind = LLM_BX_KIND_EMPTY, .nullable = true};
        p->n_nodes = 3;
    }
    return 2 * p->n_nodes < p->n_buckets || rehash(p);
}

bool llm_bx_pool_init(llm_bx_pool *p) {
    return reserve(p);
}

/* Moves the draft's parts, or set, to the pool. */
static bool store(llm_bx_pool *p, draft *d) {
    if (d->e.kind == LLM_BX_KIND_BYTES) {
        const llm_byte_set set = *d->set;
        if (!llm_bx_grow(p, &p->set, &p->cap_sets, p->n_sets + 1, sizeof *p->set))
            return false;
        p->set[p->n_sets] = set;
        d->e.a = (int32_t)p->n_sets++;
    } else if (has_list(d->e.kind)) {
        const size_t n = (size_t)d->e.b;
        if (p->n_args + n >= INT32_MAX ||
            !llm_bx_grow(p, &p->arg, &p->cap_args, p->n_args + n, sizeof *p->arg))
            return false;
        memcpy(&p->arg[p->n_args], &p->scratch[p->n_scratch - n], n * sizeof *p->arg);
        d->e.a = (int32_t)p->n_args;
        p->n_args += n;
    }
    return true;
}

/* What a node inherits from its parts: height and has_call. */
static void inherit(const llm_bx_pool *p, llm_bx *e) {
    int32_t pair[2] = {e->a, e->b};
    const int32_t *part = has_list(e->kind) ? &p->arg[e->a] : pair;
    int32_t n = e->kind == LLM_BX_KIND_SEQ ? 2
                : e->kind == LLM_BX_KIND_REPEAT || e->kind == LLM_BX_KIND_NOT ||
                        e->kind == LLM_BX_KIND_MEMBERS
                    ? 1
                : has_list(e->kind) ? e->b
                                    : 0;
    if (e->kind == LLM_BX_KIND_TABLE)
        part = llm_bx_table_parts(p, e, &n);
    e->has_call = e->calls_first = e->kind == LLM_BX_KIND_CALL;
    for (int32_t i = 0; i < n && e->kind != LLM_BX_KIND_SET; i++) {
        const llm_bx *x = &p->node[part[i]];
        /* what follows in a sequence is walked without recursion */
        const unsigned h = x->height + (e->kind == LLM_BX_KIND_SEQ && i == 1 ? 0u : 1u);
        e->height = h > e->height ? (uint16_t)h : e->height;
        e->has_call = e->has_call || x->has_call;
        const bool first = e->kind != LLM_BX_KIND_SEQ || i == 0 || p->node[e->a].nullable;
        e->calls_first = e->calls_first || (first && x->calls_first);
    }
}

/* The bytes that no text of a node exceeds. */
static int32_t longest(const llm_bx_pool *p, const llm_bx *e) {
    int64_t most = e->kind == LLM_BX_KIND_AND ? LLM_BX_ENDLESS : 0;
    switch ((llm_bx_kind)e->kind) {
    case LLM_BX_KIND_BYTES:
        return 1;
    case LLM_BX_KIND_SEQ:
        most = (int64_t)p->node[e->a].max_len + p->node[e->b].max_len;
        break;
    case LLM_BX_KIND_REPEAT:
        most = e->max < 0 ? LLM_BX_ENDLESS : (int64_t)p->node[e->a].max_len * e->max;
        break;
    case LLM_BX_KIND_ALT:
    case LLM_BX_KIND_AND:
        for (int32_t i = 0; i < e->b; i++) {
            const int32_t len = p->node[p->arg[e->a + i]].max_len;
            most = (len < most) == (e->kind == LLM_BX_KIND_AND) ? len : most;
        }
        break;
    default:
        return LLM_BX_ENDLESS;
    }
    return most < LLM_BX_ENDLESS ? (int32_t)most : LLM_BX_ENDLESS;
}

/* Finds or adds the node. e.nullable must be set. */
static int32_t intern(llm_bx_pool *p, draft d) {
    llm_bx_count(p, has_list(d.e.kind) ? 1 + (uint64_t)d.e.b / 4 : 1);
    if (p->status != GGL_OK || !reserve(p))
        return LLM_BX_NONE;
    size_t at = hash(p, &d) & (p->n_buckets - 1);
    for (; p->bucket[at]; at = (at + 1) & (p->n_buckets - 1))
        if (equal(p, &d, p->bucket[at]))
            return p->bucket[at];
    if (!store(p, &d))
        return failed(p, GGL_NOMEM);
    inherit(p, &d.e);
    d.e.max_len = longest(p, &d.e);
    if (d.e.height > LLM_BX_MAX_HEIGHT)
        return failed(p, GGL_LIMIT);
    const int32_t id = (int32_t)p->n_nodes++;
    p->node[id] = d.e;
    p->bucket[at] = id;
    llm_bx_measure(p, id);
    return id;
}

static int32_t push(llm_bx_pool *p, int32_t id) {
    if (!llm_bx_grow(p, &p->scratch, &p->cap_scratch, p->n_scratch + 1, sizeof *p->scratch))
        return LLM_BX_NONE;
    p->scratch[p->n_scratch++] = id;
    return id;
}

/* --- bytes, sequences, repeats ---------------------------------------------------------------- */

int32_t llm_bx_bytes(llm_bx_pool *p, const llm_byte_set *set) {
    if (!(set->w[0] | set->w[1] | set->w[2] | set->w[3]))
        return LLM_BX_NONE;
    return intern(p, (draft){.e = {.kind = LLM_BX_KIND_BYTES}, .set = set});
}

int32_t llm_bx_range(llm_bx_pool *p, unsigned first, unsigned last) {
    llm_byte_set set = {{0}};
    for (unsigned b = first; b <= last; b++)
        set.w[b >> 6] |= (uint64_t)1 << (b & 63);
    return llm_bx_bytes(p, &set);
}

static int32_t pair(llm_bx_pool *p, int32_t a, int32_t b) {
    const bool nullable = p->node[a].nullable && p->node[b].nullable;
    return intern(p, (draft){.e = {.kind = LLM_BX_KIND_SEQ, .nullable = nullable, .a = a, .b = b}});
}

/* The first part of a sequence, or e itself. */
static int32_t head_of(const llm_bx_pool *p, int32_t e) {
    return p->node[e].kind == LLM_BX_KIND_SEQ ? p->node[e].a : e;
}

/* What follows the first part. */
static int32_t tail_of(const llm_bx_pool *p, int32_t e) {
    return p->node[e].kind == LLM_BX_KIND_SEQ ? p->node[e].b : LLM_BX_EMPTY;
}

/* An expression that is no sequence, as a number of times that something is there. */
typedef struct run {
    int32_t what, min, max;
} run;

static run run_of(const llm_bx_pool *p, int32_t e) {
    const llm_bx *x = &p->node[e];
    return x->kind == LLM_BX_KIND_REPEAT ? (run){x->a, x->min, x->max} : (run){e, 1, 1};
}

/* No text here has 2 GiB, so a larger maximum counts as no maximum. */
static int32_t cut_max(int64_t max) {
    return max > INT32_MAX ? -1 : (int32_t)max;
}

/* Joins repetitions of the same part: x{a,b} x{c,d} = x{a+c,b+d}. Otherwise, a row of optional parts would
 * have a state for each subset of the remaining ones. Returns false if they do not join. */
static bool join_runs(llm_bx_pool *p, int32_t a, int32_t b, int32_t *joined) {
    const run x = run_of(p, a), y = run_of(p, b);
    const int64_t min = (int64_t)x.min + y.min;
    if (x.what != y.what || p->node[b].kind == LLM_BX_KIND_SEQ || min > INT32_MAX)
        return false;
    const int64_t max = (int64_t)x.max + y.max;
    *joined = llm_bx_repeat(p, x.what, (int32_t)min, x.max < 0 || y.max < 0 ? -1 : cut_max(max));
    return true;
}

int32_t llm_bx_seq(llm_bx_pool *p, int32_t a, int32_t b) {
    int32_t joined;
    if (a == LLM_BX_NONE || b == LLM_BX_NONE || p->status != GGL_OK)
        return LLM_BX_NONE;
    if (b == LLM_BX_EMPTY)
        return a;
    if (a == LLM_BX_EMPTY) { /* the first part of b may be a sequence itself */
        if (p->node[b].kind != LLM_BX_KIND_SEQ || p->node[p->node[b].a].kind != LLM_BX_KIND_SEQ)
            return b;
        a = p->node[b].a;
        b = p->node[b].b;
    }
    /* Sequences lean right, but only as far as their first part needs: what comes later is taken
     * apart when it comes first. */
    while (p->node[a].kind == LLM_BX_KIND_SEQ && p->status == GGL_OK) {
        b = pair(p, p->node[a].b, b);
        a = p->node[a].a;
    }
    if (p->status == GGL_OK && join_runs(p, a, head_of(p, b), &joined))
        return llm_bx_seq(p, joined, tail_of(p, b));
    return p->status == GGL_OK ? pair(p, a, b) : LLM_BX_NONE;
}

/* Repeats of repeats, (x{a,b}){min,max} = x{a min,b max}, where no number between is missing: a is 0
 * or 1. */
static bool join_counts(const llm_bx_pool *p, int32_t *what, int32_t *min, int32_t *max) {
    const llm_bx *x = &p->node[*what];
    if (x->kind != LLM_BX_KIND_REPEAT || x->min > 1)
        return false;
    *min *= x->min;
    *max = x->max < 0 || *max < 0 ? -1 : cut_max((int64_t)*max * x->max);
    *what = x->a;
    return true;
}

int32_t llm_bx_repeat(llm_bx_pool *p, int32_t a, int32_t min, int32_t max) {
    if (a == LLM_BX_EMPTY || max == 0)
        return LLM_BX_EMPTY;
    if (a == LLM_BX_NONE)
        return min == 0 ? LLM_BX_EMPTY : LLM_BX_NONE;
    if (min != 1 || max != 1)
        join_counts(p, &a, &min, &max);
    if (p->node[a].nullable)
        min = 0;
    if (min == 1 && max == 1)
        return a;
    const llm_bx e = {.kind = LLM_BX_KIND_REPEAT,
                      .nullable = min == 0,
                      .a = a,
                      .min = min,
                      .max = max < 0 ? -1 : max};
    return intern(p, (draft){.e = e});
}

int32_t llm_bx_call_rule(llm_bx_pool *p, int32_t rule) {
    const llm_bx e = {.kind = LLM_BX_KIND_CALL, .nullable = p->rule[rule].nullable, .a = rule};
    return intern(p, (draft){.e = e});
}

int32_t llm_bx_multiple(llm_bx_pool *p, const llm_multiple *m) {
    const llm_bx e = {.kind = LLM_BX_KIND_MULTIPLE,
                      .nullable = llm_multiple_len(m) == 0,
                      .a = m->modulus,
                      .min = m->rest,
                      .max = m->places};
    return intern(p, (draft){.e = e});
}

/* --- members ---------------------------------------------------------------------------------- */

int32_t llm_bx_add_list(llm_bx_pool *p, uint8_t kind, const int32_t *arg, int32_t n) {
    const size_t base = p->n_scratch;
    for (int32_t i = 0; i < n && p->status == GGL_OK; i++)
        push(p, arg[i]);
    const int32_t e = intern(p, (draft){.e = {.kind = kind, .a = -1, .b = n}});
    p->n_scratch = base;
    return e;
}

int32_t llm_bx_add_members(llm_bx_pool *p, int32_t table, int32_t used, int32_t count,
                           bool nullable) {
    const llm_bx e = {
        .kind = LLM_BX_KIND_MEMBERS, .nullable = nullable, .a = table, .b = used, .min = count};
    return intern(p, (draft){.e = e});
}

/* --- alternatives ----------------------------------------------------------------------------- */

/* Appends a part to the scratch, or the parts of a part of the same kind. */
static void push_flat(llm_bx_pool *p, uint8_t kind, int32_t id) {
    if (p->node[id].kind != kind) {
        push(p, id);
        return;
    }
    for (int32_t i = 0; i < p->node[id].b; i++)
        push(p, p->arg[p->node[id].a + i]);
}

/* The order of parts: those that begin alike are neighbours. */
static bool before(const llm_bx_pool *p, int32_t x, int32_t y) {
    const int32_t hx = head_of(p, x), hy = head_of(p, y);
    return hx != hy ? hx < hy : x < y;
}

/* Another order: repeats of the same before the same are neighbours, the smallest minimum first. */
static bool before_as_run(const llm_bx_pool *p, int32_t x, int32_t y) {
    const int32_t tx = tail_of(p, x), ty = tail_of(p, y);
    const run rx = run_of(p, head_of(p, x)), ry = run_of(p, head_of(p, y));
    return rx.what != ry.what ? rx.what < ry.what
           : tx != ty         ? tx < ty
           : rx.min != ry.min ? rx.min < ry.min
                              : x < y;
}

typedef bool is_before(const llm_bx_pool *p, int32_t x, int32_t y);

/* The end of the ascending parts of s[0..n) that begin at `from`. */
static size_t run_end(const llm_bx_pool *p, const int32_t *s, size_t from, size_t n,
                      is_before *before_it) {
    size_t end = from + 1;
    while (end < n && !before_it(p, s[end], s[end - 1]))
        end++;
    return end < n ? end : n;
}

/* Merges neighbouring ascending parts of s[0..n) into `to`. Returns how many are left. */
static size_t merge_pairs(const llm_bx_pool *p, const int32_t *s, int32_t *to, size_t n,
                          is_before *before_it) {
    size_t n_left = 0;
    for (size_t a = 0, b, end; a < n; a = end, n_left++) {
        b = run_end(p, s, a, n, before_it);
        end = b < n ? run_end(p, s, b, n, before_it) : n;
        size_t i = a, k = b;
        for (size_t out = a; out < end; out++)
            to[out] = k == end || (i < b && !before_it(p, s[k], s[i])) ? s[i++] : s[k++];
    }
    return n_left;
}

/* Sorts the scratch from `base` on, and removes what is there twice, and NONE. It mostly consists of a few
 * lists that ascend already. */
static void sort_by(llm_bx_pool *p, size_t base, is_before *before_it) {
    enum { PER_STEP = 4 };
    size_t n = p->n_scratch - base, m = 0;
    if (!llm_bx_grow(p, &p->scratch, &p->cap_scratch, p->n_scratch + n, sizeof *p->scratch))
        return;
    int32_t *s = scratch_from(p, base);
    for (bool sorted = n < 2; !sorted && p->status == GGL_OK;) {
        llm_bx_count(p, 1 + n / PER_STEP);
        sorted = merge_pairs(p, s, s + n, n, before_it) == 1;
        memcpy(s, s + n, n * sizeof *s);
    }
    for (size_t i = 0; i < n; i++)
        if (s[i] != LLM_BX_NONE && (m == 0 || s[m - 1] != s[i]))
            s[m++] = s[i];
    p->n_scratch = base + m;
}

static void sort_parts(llm_bx_pool *p, size_t base) {
    sort_by(p, base, before);
}

/* Alternatives that differ in how often they repeat: x{a,b} y | x{c,d} y = x{a,d} y, if no number between
 * is missing. */
static void unite_runs(llm_bx_pool *p, size_t base) {
    size_t n_runs = 0, out = base;
    for (size_t i = base; i < p->n_scratch; i++)
        n_runs += p->node[head_of(p, p->scratch[i])].kind == LLM_BX_KIND_REPEAT;
    if (n_runs == 0 || p->n_scratch - base < 2)
        return;
    sort_by(p, base, before_as_run);
    const size_t end = p->n_scratch;
    for (size_t i = base, k; i < end && p->status == GGL_OK; i = k) {
        const int32_t part = p->scratch[i], tail = tail_of(p, part);
        run x = run_of(p, head_of(p, part));
        for (k = i + 1; k < end && tail_of(p, p->scratch[k]) == tail; k++) {
            const run y = run_of(p, head_of(p, p->scratch[k]));
            if (y.what != x.what || (x.max >= 0 && y.min > x.max && y.min - x.max > 1))
                break;
            x.max = x.max < 0 || y.max < 0 ? -1 : x.max > y.max ? x.max : y.max;
        }
        p->scratch[out++] =
            k == i + 1 ? part : llm_bx_seq(p, llm_bx_repeat(p, x.what, x.min, x.max), tail);
    }
    p->n_scratch = out;
}

/* Takes optional parts apart: x{0,1} is x, or the empty text. */
static void split_optional(llm_bx_pool *p, size_t base) {
    const size_t end = p->n_scratch;
    bool found = false;
    for (size_t i = base; end - base > 1 && i < end; i++) {
        const llm_bx x = p->node[p->scratch[i]];
        if (x.kind != LLM_BX_KIND_REPEAT || x.min > 0 || x.max != 1)
            continue;
        p->scratch[i] = LLM_BX_NONE; /* sorting removes it */
        push_flat(p, LLM_BX_KIND_ALT, x.a);
        found = true;
    }
    if (found)
        push(p, LLM_BX_EMPTY);
}

/* Removes alternatives that equal another one with an empty beginning: x y | y = x y if x may be empty. */
static void drop_covered(llm_bx_pool *p, size_t base) {
    const size_t n = p->n_scratch - base;
    if (n < 2)
        return;
    const uint32_t mark = ++p->n_covers;
    for (size_t i = base; i < base + n && p->status == GGL_OK; i++)
        for (int32_t e = p->scratch[i]; p->node[e].kind == LLM_BX_KIND_SEQ;) {
            if (!p->node[p->node[e].a].nullable)
                break;
            e = llm_bx_seq(p, LLM_BX_EMPTY, p->node[e].b);
            if (p->status != GGL_OK || p->node[e].cover == mark)
                break;
            p->node[e].cover = mark;
            llm_bx_count(p, 1);
        }
    size_t m = base;
    for (size_t i = base; i < base + n; i++)
        if (p->node[p->scratch[i]].cover != mark)
            p->scratch[m++] = p->scratch[i];
    p->n_scratch = m;
}

enum { FACTOR_DEPTH = 32 };

static int32_t finish_alt(llm_bx_pool *p, size_t base, int depth);

/* Replaces parts that begin alike, x r | x s, by x (r | s). The scratch is sorted. */
static void factor(llm_bx_pool *p, size_t base, int depth) {
    size_t out = base, end = p->n_scratch;
    for (size_t i = base, k; i < end && p->status == GGL_OK; i = k) {
        const int32_t head = head_of(p, p->scratch[i]);
        for (k = i + 1; k < end && head_of(p, p->scratch[k]) == head; k++)
            ;
        int32_t joined = p->scratch[i];
        if (k > i + 1) {
            for (size_t j = i; j < k; j++) {
                const int32_t x = p->scratch[j];
                push_flat(p, LLM_BX_KIND_ALT, x == head ? LLM_BX_EMPTY : p->node[x].b);
            }
            joined = llm_bx_seq(p, head, finish_alt(p, end, depth + 1));
        }
        p->scratch[out++] = joined;
    }
    p->n_scratch = out;
}

/* Joins parts that are single bytes, and drops EMPTY if another part has it. */
static void join_bytes(llm_bx_pool *p, size_t base) {
    llm_byte_set all = {{0}};
    int32_t *s = scratch_from(p, base);
    size_t n = p->n_scratch - base, m = 0, n_bytes = 0;
    bool nullable = false;
    for (size_t i = 0; i < n; i++) {
        const llm_bx *e = &p->node[s[i]];
        nullable = nullable || (e->nullable && s[i] != LLM_BX_EMPTY);
        n_bytes += e->kind == LLM_BX_KIND_BYTES;
        for (int k = 0; k < 4 && e->kind == LLM_BX_KIND_BYTES; k++)
            all.w[k] |= p->set[e->a].w[k];
    }
    for (size_t i = 0; i < n; i++) {
        const bool joins = n_bytes > 1 && p->node[s[i]].kind == LLM_BX_KIND_BYTES;
        if (!joins && !(nullable && s[i] == LLM_BX_EMPTY))
            s[m++] = s[i];
    }
    p->n_scratch = base + m;
    if (n_bytes > 1)
        push(p, llm_bx_bytes(p, &all));
}

/* True if two neighbours of the scratch begin alike. */
static bool shares_heads(const llm_bx_pool *p, size_t base) {
    for (size_t i = base + 1; i < p->n_scratch; i++)
        if (head_of(p, p->scratch[i]) == head_of(p, p->scratch[i - 1]))
            return true;
    return false;
}

/* Removes EMPTY. Returns false if it is not there. */
static bool take_empty(llm_bx_pool *p, size_t base) {
    for (size_t i = base; i < p->n_scratch; i++)
        if (p->scratch[i] == LLM_BX_EMPTY) {
            memmove(p->scratch + i, p->scratch + i + 1,
                    (p->n_scratch - i - 1) * sizeof *p->scratch);
            p->n_scratch--;
            return true;
        }
    return false;
}

/* Makes alternatives of parts that are as simple as they get. With EMPTY they are a part that is
 * optional. */
static int32_t join(llm_bx_pool *p, size_t base) {
    join_bytes(p, base);
    const bool optional = take_empty(p, base);
    const size_t n = p->n_scratch - base;
    if (n == 0)
        return optional ? LLM_BX_EMPTY : LLM_BX_NONE;
    int32_t e = p->scratch[base];
    if (n > 1) {
        draft d = {.e = {.kind = LLM_BX_KIND_ALT, .a = -1, .b = (int32_t)n}};
        for (size_t i = base; i < p->n_scratch; i++)
            d.e.nullable = d.e.nullable || p->node[p->scratch[i]].nullable;
        e = intern(p, d);
    }
    return optional ? llm_bx_repeat(p, e, 0, 1) : e;
}

/* Makes alternatives of the scratch from `base` on, and removes them from it. What factoring made of a
 * list is remembered: lists of shared parts come up again, within each other even. */
static int32_t finish_alt(llm_bx_pool *p, size_t base, int depth) {
    int32_t e, list = LLM_BX_NONE;
    unite_runs(p, base);
    split_optional(p, base);
    drop_covered(p, base);
    sort_parts(p, base);
    if (depth < FACTOR_DEPTH && shares_heads(p, base)) {
        const int32_t n = (int32_t)(p->n_scratch - base);
        list = intern(p, (draft){.e = {.kind = LLM_BX_KIND_LIST, .a = -1, .b = n}});
    }
    if (list != LLM_BX_NONE && p->node[list].min) {
        e = p->node[list].min;
    } else {
        if (list != LLM_BX_NONE)
            factor(p, base, depth);
        e = join(p, base);
        if (list != LLM_BX_NONE && p->status == GGL_OK)
            p->node[list].min = e;
    }
    p->n_scratch = base;
    return p->status == GGL_OK ? e : LLM_BX_NONE;
}

int32_t llm_bx_alt(llm_bx_pool *p, const int32_t *part, int32_t n) {
    const size_t base = p->n_scratch;
    for (int32_t i = 0; i < n && p->status == GGL_OK; i++)
        push_flat(p, LLM_BX_KIND_ALT, part[i]);
    return finish_alt(p, base, 0);
}

void llm_bx_push(llm_bx_pool *p, int32_t part) {
    push(p, part);
}

int32_t llm_bx_alt_from(llm_bx_pool *p, size_t base) {
    const size_t end = p->n_scratch;
    int32_t e = end > base ? p->scratch[base] : LLM_BX_NONE;
    for (size_t i = base; end - base > 1 && i < end && p->status == GGL_OK; i++)
        push_flat(p, LLM_BX_KIND_ALT, p->scratch[i]);
    if (end - base > 1)
        e = finish_alt(p, end, 0);
    p->n_scratch = base;
    return p->status == GGL_OK ? e : LLM_BX_NONE;
}

int32_t llm_bx_alt2(llm_bx_pool *p, int32_t a, int32_t b) {
    return a == b || b == LLM_BX_NONE ? a
           : a == LLM_BX_NONE         ? b
                                      : llm_bx_alt(p, (int32_t[]){a, b}, 2);
}

/* --- and, not --------------------------------------------------------------------------------- */

int32_t llm_bx_not(llm_bx_pool *p, int32_t a) {
    if (p->status != GGL_OK)
        return LLM_BX_NONE;
    if (p->node[a].kind == LLM_BX_KIND_NOT)
        return p->node[a].a;
    const llm_bx e = {.kind = LLM_BX_KIND_NOT, .nullable = !p->node[a].nullable, .a = a};
    return intern(p, (draft){.e = e});
}

/* NOT has sequences of bytes that are no texts, and MULTIPLE has digits that the vocabulary may lack. */
static bool has_only_texts(const llm_bx_pool *p, int32_t x) {
    return p->node[x].kind != LLM_BX_KIND_NOT && p->node[x].kind != LLM_BX_KIND_MULTIPLE;
}

/* A part that leaves the others as they are: NOT of nothing, and all texts if another part is there that has
 * only texts. */
static bool is_neutral(const llm_bx_pool *p, int32_t x, size_t n_positive) {
    const llm_bx *e = &p->node[x];
    return (e->kind == LLM_BX_KIND_NOT && e->a == LLM_BX_NONE) ||
           (x == p->all_text && n_positive > 1);
}

/* True if the scratch from `base` on holds NONE, or x and NOT x. */
static bool contradicts(const llm_bx_pool *p, size_t base) {
    for (size_t i = base; i < p->n_scratch; i++) {
        const llm_bx *e = &p->node[p->scratch[i]];
        if (e->kind == LLM_BX_KIND_NONE)
            return true;
        for (size_t k = base; e->kind == LLM_BX_KIND_NOT && k < p->n_scratch; k++)
            if (p->scratch[k] == e->a)
                return true;
    }
    return false;
}

static int32_t finish_and(llm_bx_pool *p, size_t base) {
    if (contradicts(p, base))
        return LLM_BX_NONE;
    sort_parts(p, base);
    int32_t *s = scratch_from(p, base);
    size_t n = p->n_scratch - base, m = 0, n_positive = 0;
    draft d = {.e = {.kind = LLM_BX_KIND_AND, .nullable = true, .a = -1}};
    bool empty = false;
    for (size_t i = 0; i < n; i++) {
        n_positive += has_only_texts(p, s[i]);
        d.e.nullable = d.e.nullable && p->node[s[i]].nullable;
        empty = empty || s[i] == LLM_BX_EMPTY;
    }
    if (empty)
        return d.e.nullable ? LLM_BX_EMPTY : LLM_BX_NONE;
    for (size_t i = 0; i < n; i++)
        if (!is_neutral(p, s[i], n_positive) || (m == 0 && i == n - 1))
            s[m++] = s[i];
    p->n_scratch = base + m;
    d.e.b = (int32_t)m;
    return m == 1 ? s[0] : intern(p, d);
}

int32_t llm_bx_and(llm_bx_pool *p, const int32_t *part, int32_t n) {
    const size_t base = p->n_scratch;
    for (int32_t i = 0; i < n && p->status == GGL_OK; i++)
        push_flat(p, LLM_BX_KIND_AND, part[i]);
    const int32_t e = p->status == GGL_OK ? finish_and(p, base) : LLM_BX_NONE;
    p->n_scratch = base;
    return p->status == GGL_OK ? e : LLM_BX_NONE;
}
