/* The pool of a grammar's expressions. Nodes are found again by a hash of their contents, so that equal
 * expressions have equal indices. */
#include "expr.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "text/unicode.h"

#define LAST_CHAR 0x10ffffu

static int32_t failed(llm_exprs *g, ggl_status st) {
    if (g->status == GGL_OK)
        g->status = st;
    return LLM_EXPR_NONE;
}

bool llm_exprs_grow(llm_exprs *g, void *array, size_t *cap, size_t n, size_t size) {
    const ggl_status st = llm_budget_grow(&g->use, array, cap, n, size);
    if (st != GGL_OK)
        failed(g, st);
    return st == GGL_OK;
}

size_t llm_exprs_size(const llm_exprs *g) {
    return g->cap_nodes * sizeof *g->node + g->cap_args * sizeof *g->arg +
           g->cap_ranges * sizeof *g->range + g->cap_rules * sizeof *g->rule +
           g->n_buckets * sizeof *g->bucket;
}

void llm_exprs_fini(llm_exprs *g) {
    for (size_t i = 0; i < g->n_rules; i++)
        ggl_free(g->rule[i].name);
    ggl_free(g->node);
    ggl_free(g->arg);
    ggl_free(g->range);
    ggl_free(g->rule);
    ggl_free(g->bucket);
    *g = (llm_exprs){0};
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* A node that may not be in the pool yet, with what its `first` and `n` stand for. */
typedef struct draft {
    llm_expr e;
    const int32_t *arg;
    const llm_char_range *range;
} draft;

static bool has_args(llm_expr_kind k) {
    return k >= LLM_EXPR_KIND_SEQ && k <= LLM_EXPR_KIND_MEMBERS;
}

static uint32_t hash(const draft *d) {
    uint32_t h = 2166136261u;
    const uint32_t head[] = {
        d->e.kind,          d->e.kind == LLM_EXPR_KIND_RULE ? (uint32_t)d->e.first : 0,
        (uint32_t)d->e.n,   (uint32_t)d->e.min,
        (uint32_t)d->e.max, (uint32_t)d->e.required};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        h = (h ^ head[i]) * 16777619u;
    for (int32_t i = 0; has_args(d->e.kind) && i < d->e.n; i++)
        h = (h ^ (uint32_t)d->arg[i]) * 16777619u;
    for (int32_t i = 0; d->e.kind == LLM_EXPR_KIND_CLASS && i < d->e.n; i++)
        h = ((h ^ d->range[i].first) * 16777619u ^ d->range[i].last) * 16777619u;
    return h ^ h >> 15;
}

static bool equal(const llm_exprs *g, const draft *d, int32_t node) {
    const llm_expr *e = &g->node[node];
    if (e->kind != d->e.kind || e->n != d->e.n || e->min != d->e.min || e->max != d->e.max ||
        e->required != d->e.required)
        return false;
    if (has_args(e->kind))
        return memcmp(&g->arg[e->first], d->arg, (size_t)e->n * sizeof *d->arg) == 0;
    if (e->kind == LLM_EXPR_KIND_CLASS)
        return memcmp(&g->range[e->first], d->range, (size_t)e->n * sizeof *d->range) == 0;
    return e->first == d->e.first;
}

static draft draft_of(const llm_exprs *g, int32_t node) {
    draft d = {.e = g->node[node]};
    if (has_args(d.e.kind))
        d.arg = &g->arg[d.e.first];
    if (d.e.kind == LLM_EXPR_KIND_CLASS)
        d.range = &g->range[d.e.first];
    return d;
}

static size_t free_bucket(const llm_exprs *g, uint32_t h) {
    size_t b = h & (g->n_buckets - 1);
    while (g->bucket[b])
        b = (b + 1) & (g->n_buckets - 1);
    return b;
}

/* Makes room for one more node in the table and its hash. The first call also makes NONE and EMPTY,
 * which are never looked up. */
static bool reserve(llm_exprs *g) {
    if (g->n_nodes >= LLM_EXPR_MAX_NODES) {
        failed(g, GGL_LIMIT);
        return false;
    }
    if (!llm_exprs_grow(g, &g->node, &g->cap_nodes, g->n_nodes + 3, sizeof *g->node))
        return false;
    if (g->n_nodes == 0) {
        g->node[LLM_EXPR_EMPTY].kind = LLM_EXPR_KIND_EMPTY;
        g->node[LLM_EXPR_EMPTY].nullable = true;
        g->n_nodes = 2;
    }
    if (2 * g->n_nodes < g->n_buckets)
        return true;
    size_t n = g->n_buckets ? 2 * g->n_buckets : 256;
    const ggl_status st = llm_budget_take(&g->use, n - g->n_buckets, sizeof *g->bucket);
    int32_t *bucket = st == GGL_OK ? ggl_calloc(n, sizeof *bucket) : NULL;
    if (!bucket) {
        failed(g, st == GGL_OK ? GGL_NOMEM : st);
        return false;
    }
    ggl_free(g->bucket);
    g->bucket = bucket;
    g->n_buckets = n;
    for (int32_t i = 2; i < (int32_t)g->n_nodes; i++) {
        draft d = draft_of(g, i);
        g->bucket[free_bucket(g, hash(&d))] = i;
    }
    return true;
}

/* Copies what the node refers to into the pool. The source may be in the pool itself. */
static bool store(llm_exprs *g, draft *d) {
    const size_t n = (size_t)d->e.n;
    const bool is_args = has_args(d->e.kind);
    if (!is_args && d->e.kind != LLM_EXPR_KIND_CLASS)
        return true;
    if (is_args) {
        const bool inside = g->arg && d->arg >= g->arg && d->arg < g->arg + g->n_args;
        const size_t at = inside ? (size_t)(d->arg - g->arg) : 0;
        if (!llm_exprs_grow(g, &g->arg, &g->cap_args, g->n_args + n, sizeof *g->arg))
            return false;
        memcpy(&g->arg[g->n_args], inside ? &g->arg[at] : d->arg, n * sizeof *g->arg);
        d->e.first = (int32_t)g->n_args;
        g->n_args += n;
        return g->n_args < INT32_MAX;
    }
    if (!llm_exprs_grow(g, &g->range, &g->cap_ranges, g->n_ranges + n, sizeof *g->range))
        return false;
    memcpy(&g->range[g->n_ranges], d->range, n * sizeof *g->range);
    d->e.first = (int32_t)g->n_ranges;
    g->n_ranges += n;
    return g->n_ranges < INT32_MAX;
}

static bool is_nullable(const llm_exprs *g, const draft *d) {
    const bool any = d->e.kind == LLM_EXPR_KIND_ALT;
    switch (d->e.kind) {
    case LLM_EXPR_KIND_SEQ:
    case LLM_EXPR_KIND_AND:
    case LLM_EXPR_KIND_ALT:
        for (int32_t i = 0; i < d->e.n; i++)
            if (g->node[d->arg[i]].nullable == any)
                return any;
        return !any;
    case LLM_EXPR_KIND_REPEAT:
        return d->e.min == 0 || g->node[d->arg[0]].nullable;
    case LLM_EXPR_KIND_NOT:
        return !g->node[d->arg[0]].nullable;
    case LLM_EXPR_KIND_MEMBERS:
        return d->e.min == 0 && d->e.required == 0;
    case LLM_EXPR_KIND_MULTIPLE: {
        const llm_multiple m = llm_expr_as_multiple(&d->e);
        return llm_multiple_len(&m) == 0;
    }
    default:
        return false;
    }
}

/* Finds or adds the node. */
static int32_t intern(llm_exprs *g, draft d) {
    llm_exprs_count(g, 1 + (has_args(d.e.kind) ? (uint64_t)d.e.n / 4 : 0));
    if (g->status != GGL_OK || !reserve(g))
        return LLM_EXPR_NONE;
    size_t b = hash(&d) & (g->n_buckets - 1);
    for (; g->bucket[b]; b = (b + 1) & (g->n_buckets - 1))
        if (equal(g, &d, g->bucket[b]))
            return g->bucket[b];
    d.e.nullable = is_nullable(g, &d);
    if (!store(g, &d))
        return failed(g, GGL_NOMEM);
    g->node[g->n_nodes] = d.e;
    g->bucket[b] = (int32_t)g->n_nodes;
    return (int32_t)g->n_nodes++;
}

/* --- characters ------------------------------------------------------------------------------- */

/* Sorts ranges by their first character (shell sort: short, and no recursion). */
static void sort_ranges(llm_char_range *r, size_t n) {
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < n; i++) {
            llm_char_range x = r[i];
            size_t k = i;
            for (; k >= gap && r[k - gap].first > x.first; k -= gap)
                r[k] = r[k - gap];
            r[k] = x;
        }
}

/* Appends a range, cut around the surrogates. */
static size_t put_range(llm_char_range *out, size_t n, uint32_t first, uint32_t last) {
    if (last > LAST_CHAR)
        last = LAST_CHAR;
    if (first < 0xd800 && first <= last)
        out[n++] = (llm_char_range){first, last < 0xd800 ? last : 0xd7ff};
    if (last > 0xdfff && first <= last)
        out[n++] = (llm_char_range){first > 0xdfff ? first : 0xe000, last};
    return n;
}

/* Joins sorted ranges that overlap or touch. Returns their number. */
static size_t join_ranges(llm_char_range *r, size_t n) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (m > 0 && r[i].first <= r[m - 1].last + 1) {
            if (r[i].last > r[m - 1].last)
                r[m - 1].last = r[i].last;
        } else {
            r[m++] = r[i];
        }
    }
    return m;
}

int32_t llm_expr_class(llm_exprs *g, const llm_char_range *range, int32_t n, bool negated) {
    llm_char_range *work = ggl_calloc(2 * ((size_t)n + 1), 2 * sizeof *work);
    if (!work)
        return failed(g, GGL_NOMEM);
    llm_char_range *out = work + 2 * ((size_t)n + 1);
    llm_exprs_count(g, (uint64_t)n);
    size_t m = 0;
    for (int32_t i = 0; i < n; i++)
        m = put_range(work, m, range[i].first, range[i].last);
    sort_ranges(work, m);
    m = join_ranges(work, m);
    if (negated) {
        uint32_t next = 0;
        size_t n_out = 0;
        for (size_t i = 0; i < m; i++) {
            if (work[i].first > next)
                n_out = put_range(out, n_out, next, work[i].first - 1);
            next = work[i].last + 1;
        }
        m = put_range(out, n_out, next, LAST_CHAR);
        memcpy(work, out, m * sizeof *work);
    }
    draft d = {.e = {.kind = LLM_EXPR_KIND_CLASS, .n = (int32_t)m}, .range = work};
    int32_t e = m == 0 ? LLM_EXPR_NONE : intern(g, d);
    ggl_free(work);
    return e;
}

int32_t llm_expr_range(llm_exprs *g, uint32_t first, uint32_t last) {
    return llm_expr_class(g, &(llm_char_range){first, last}, 1, false);
}

/* --- compounds -------------------------------------------------------------------------------- */

/* A list of parts under construction. */
typedef struct list {
    int32_t *id;
    size_t n, cap;
} list;

static bool push(llm_exprs *g, list *l, int32_t id) {
    llm_exprs_count(g, 1);
    if (!ggl_grow(&l->id, &l->cap, l->n + 1, sizeof *l->id))
        return false;
    l->id[l->n++] = id;
    return true;
}

/* Appends a part, or the parts of a part of the same kind. */
static bool push_flat(llm_exprs *g, list *l, llm_expr_kind kind, int32_t id) {
    const llm_expr e = g->n_nodes ? g->node[id] : (llm_expr){0};
    if (e.kind != kind)
        return push(g, l, id);
    for (int32_t i = 0; i < e.n; i++)
        if (!push(g, l, g->arg[e.first + i]))
            return false;
    return true;
}

static int32_t finish_list(llm_exprs *g, list *l, llm_expr_kind kind, int32_t empty) {
    int32_t e = l->n == 0 ? empty
                : l->n == 1
                    ? l->id[0]
                    : intern(g, (draft){.e = {.kind = kind, .n = (int32_t)l->n}, .arg = l->id});
    ggl_free(l->id);
    return e;
}

int32_t llm_expr_seq(llm_exprs *g, const int32_t *part, int32_t n) {
    list l = {0};
    for (int32_t i = 0; i < n && g->status == GGL_OK; i++) {
        if (part[i] == LLM_EXPR_NONE) {
            ggl_free(l.id);
            return LLM_EXPR_NONE;
        }
        if (part[i] != LLM_EXPR_EMPTY && !push_flat(g, &l, LLM_EXPR_KIND_SEQ, part[i]))
            failed(g, GGL_NOMEM);
    }
    return finish_list(g, &l, LLM_EXPR_KIND_SEQ, LLM_EXPR_EMPTY);
}

int32_t llm_expr_seq2(llm_exprs *g, int32_t a, int32_t b) {
    return llm_expr_seq(g, (int32_t[]){a, b}, 2);
}

int32_t llm_expr_seq3(llm_exprs *g, int32_t a, int32_t b, int32_t c) {
    return llm_expr_seq(g, (int32_t[]){a, b, c}, 3);
}

int32_t llm_expr_alt(llm_exprs *g, const int32_t *part, int32_t n) {
    list l = {0};
    for (int32_t i = 0; i < n && g->status == GGL_OK; i++)
        if (part[i] != LLM_EXPR_NONE && !push_flat(g, &l, LLM_EXPR_KIND_ALT, part[i]))
            failed(g, GGL_NOMEM);
    return finish_list(g, &l, LLM_EXPR_KIND_ALT, LLM_EXPR_NONE);
}

int32_t llm_expr_alt2(llm_exprs *g, int32_t a, int32_t b) {
    return a == b ? a : llm_expr_alt(g, (int32_t[]){a, b}, 2);
}

int32_t llm_expr_optional(llm_exprs *g, int32_t a) {
    return llm_expr_alt2(g, a, LLM_EXPR_EMPTY);
}

/* Repeats of repeats, (x{a,b}){min,max} = x{a min,b max}, if there is no gap between the numbers of
 * texts that k and k + 1 repeats have. Nested counts would make many more states. */
static bool join_counts(const llm_exprs *g, int32_t *what, int32_t *min, int32_t *max) {
    const llm_expr e = g->node[*what];
    const bool many = e.max == LLM_EXPR_MANY;
    if (e.kind != LLM_EXPR_KIND_REPEAT ||
        (many ? e.min > 1 && *min == 0 : (int64_t)*min * (e.max - e.min) < e.min - 1))
        return false;
    const int64_t least = (int64_t)*min * e.min, most = (int64_t)*max * e.max;
    const bool endless = many || *max == LLM_EXPR_MANY;
    if (least > INT32_MAX || (!endless && most > INT32_MAX))
        return false;
    *what = g->arg[e.first];
    *min = (int32_t)least;
    *max = endless ? LLM_EXPR_MANY : (int32_t)most;
    return true;
}

int32_t llm_expr_repeat(llm_exprs *g, int32_t a, int32_t min, int32_t max) {
    if (max == 0 || a == LLM_EXPR_EMPTY)
        return LLM_EXPR_EMPTY;
    if (a == LLM_EXPR_NONE)
        return min == 0 ? LLM_EXPR_EMPTY : LLM_EXPR_NONE;
    if (min == 1 && max == 1)
        return a;
    if (g->status == GGL_OK && join_counts(g, &a, &min, &max) && min == 1 && max == 1)
        return a;
    const llm_expr e = {.kind = LLM_EXPR_KIND_REPEAT, .n = 1, .min = min, .max = max};
    return intern(g, (draft){.e = e, .arg = &a});
}

int32_t llm_expr_and(llm_exprs *g, const int32_t *part, int32_t n) {
    list l = {0};
    for (int32_t i = 0; i < n && g->status == GGL_OK; i++) {
        if (part[i] == LLM_EXPR_NONE) {
            ggl_free(l.id);
            return LLM_EXPR_NONE;
        }
        if (!push_flat(g, &l, LLM_EXPR_KIND_AND, part[i]))
            failed(g, GGL_NOMEM);
    }
    return finish_list(g, &l, LLM_EXPR_KIND_AND, LLM_EXPR_NONE);
}

int32_t llm_expr_not(llm_exprs *g, int32_t a) {
    const llm_expr e = {.kind = LLM_EXPR_KIND_NOT, .n = 1};
    return intern(g, (draft){.e = e, .arg = &a});
}

/* Only members without name: repeats of one expression. */
static int32_t rest_only(llm_exprs *g, const llm_members *m) {
    const int32_t more = m->max == LLM_EXPR_MANY ? LLM_EXPR_MANY : m->max - 1;
    const int32_t pair = llm_expr_seq2(g, m->comma, m->rest);
    const int32_t all =
        llm_expr_seq2(g, m->rest, llm_expr_repeat(g, pair, m->min > 0 ? m->min - 1 : 0, more));
    return m->min > 0 ? all : llm_expr_optional(g, all);
}

int32_t llm_expr_members(llm_exprs *g, const llm_members *m) {
    list l = {0};
    llm_expr e = {.kind = LLM_EXPR_KIND_MEMBERS, .min = m->min, .max = m->max};
    bool fails = m->max != LLM_EXPR_MANY && m->max < m->min;
    bool full = push(g, &l, m->comma) && push(g, &l, m->rest);
    for (int pass = 0; pass < 2; pass++) /* the required ones first */
        for (int32_t i = 0; i < m->n && full; i++) {
            const bool none = m->member[i] == LLM_EXPR_NONE;
            fails = fails || (none && m->required[i]);
            if (!none && m->required[i] == (pass == 0)) {
                full = push(g, &l, m->member[i]);
                e.required += pass == 0;
            }
        }
    e.n = (int32_t)l.n;
    if (m->max != LLM_EXPR_MANY && m->max < e.required)
        fails = true;
    if (e.min <= e.required)
        e.min = 0;
    if (m->rest == LLM_EXPR_NONE && e.min > e.n - 2)
        fails = true;
    if (m->rest == LLM_EXPR_NONE && m->max != LLM_EXPR_MANY && m->max >= e.n - 2)
        e.max = LLM_EXPR_MANY;
    int32_t x = LLM_EXPR_NONE;
    if (!full)
        failed(g, GGL_NOMEM);
    else if (fails)
        x = LLM_EXPR_NONE;
    else if (e.max == 0 || (e.n == 2 && m->rest == LLM_EXPR_NONE))
        x = LLM_EXPR_EMPTY;
    else if (e.n == 2)
        x = rest_only(g, m);
    else if (e.n == 3 && m->rest == LLM_EXPR_NONE)
        x = e.required || e.min ? l.id[2] : llm_expr_optional(g, l.id[2]);
    else
        x = intern(g, (draft){.e = e, .arg = l.id});
    ggl_free(l.id);
    return x;
}

int32_t llm_expr_multiple(llm_exprs *g, const llm_multiple *m) {
    const llm_expr e = {
        .kind = LLM_EXPR_KIND_MULTIPLE, .min = m->modulus, .max = m->rest, .required = m->places};
    return intern(g, (draft){.e = e});
}

/* --- text ------------------------------------------------------------------------------------- */

int32_t llm_expr_text(llm_exprs *g, ggl_str text) {
    list l = {0};
    for (size_t i = 0, n; i < text.n && g->status == GGL_OK; i += n) {
        n = ggl_utf8_length(text.s + i, text.n - i);
        const uint32_t c = n > 0 ? llm_unicode_decode(text.s + i, n) : 0;
        if (n == 0 || !push(g, &l, llm_expr_range(g, c, c)))
            failed(g, n == 0 ? GGL_FORMAT : GGL_NOMEM);
    }
    return finish_list(g, &l, LLM_EXPR_KIND_SEQ, LLM_EXPR_EMPTY);
}

/* --- rules ------------------------------------------------------------------------------------ */

int32_t llm_rule_new(llm_exprs *g, ggl_str name) {
    if (g->status == GGL_OK && g->n_rules >= LLM_EXPR_MAX_RULES)
        failed(g, GGL_LIMIT);
    char *copy = g->status == GGL_OK ? ggl_calloc(name.n + 1, 1) : NULL;
    if (g->status == GGL_OK &&
        (!copy || !llm_exprs_grow(g, &g->rule, &g->cap_rules, g->n_rules + 1, sizeof *g->rule)))
        failed(g, GGL_NOMEM);
    if (g->status != GGL_OK) {
        ggl_free(copy);
        return -1;
    }
    if (name.n > 0)
        memcpy(copy, name.s, name.n);
    g->rule[g->n_rules] = (llm_rule){.name = copy, .body = -1};
    return (int32_t)g->n_rules++;
}

void llm_rule_define(llm_exprs *g, int32_t rule, int32_t body) {
    if (g->status == GGL_OK && rule >= 0)
        g->rule[rule].body = body;
}

int32_t llm_expr_rule(llm_exprs *g, int32_t rule) {
    if (rule < 0)
        return LLM_EXPR_NONE;
    return intern(g, (draft){.e = {.kind = LLM_EXPR_KIND_RULE, .first = rule}});
}
