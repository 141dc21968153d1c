/* Derivatives of expressions over bytes, the calls that come first, and shortest lengths. */
#include <string.h>

#include "ggl/internal/alloc.h"
#include "pool.h"

/* --- derivatives ------------------------------------------------------------------------------ */

/* Narrows the span to the bytes around b that are all in the set, or all not: up to the nearest bits that differ from that of b. */
static void narrow(const llm_byte_set *set, unsigned b, llm_byte_span *span) {
    const uint64_t same = llm_byte_in(set, b) ? UINT64_MAX : 0, below = (UINT64_C(1) << b % 64) - 1;
    unsigned k = b / 64, k_last = span->last / 64, k_first = span->first / 64;
    uint64_t other = (set->w[k] ^ same) & ~below;
    while (other == 0 && k < k_last)
        other = set->w[++k] ^ same;
    if (other != 0 && k * 64 + (unsigned)__builtin_ctzll(other) <= span->last)
        span->last = k * 64 + (unsigned)__builtin_ctzll(other) - 1;
    k = b / 64;
    other = (set->w[k] ^ same) & below;
    while (other == 0 && k > k_first)
        other = set->w[--k] ^ same;
    if (other != 0 && k * 64 + 63 - (unsigned)__builtin_clzll(other) >= span->first)
        span->first = k * 64 + 64 - (unsigned)__builtin_clzll(other);
}

static int32_t derive(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span);

/* Derivatives of a sequence: of its first part, and of those after parts that may be empty. They are
 * collected, and become alternatives once. */
static int32_t derive_seq(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span) {
    const size_t base = p->n_scratch;
    for (;;) {
        int32_t head = e, tail = LLM_BX_EMPTY;
        if (p->node[e].kind == LLM_BX_KIND_SEQ) {
            e = llm_bx_seq(p, LLM_BX_EMPTY, e); /* so that the first part is no sequence */
            head = p->node[e].a;
            tail = p->node[e].b;
        }
        const int32_t d = llm_bx_seq(p, derive(p, head, b, span), tail);
        if (d != LLM_BX_NONE)
            llm_bx_push(p, d);
        if (tail == LLM_BX_EMPTY || !p->node[head].nullable || p->status != GGL_OK)
            return llm_bx_alt_from(p, base);
        e = tail;
    }
}

/* Derivatives of the parts of ALT or AND. */
static int32_t derive_list(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span) {
    enum { FEW = 64 };
    const llm_bx x = p->node[e];
    int32_t few[FEW], *part = x.b <= FEW ? few : ggl_calloc((size_t)x.b, sizeof *part);
    int32_t n = 0, result = LLM_BX_NONE;
    if (!part) {
        p->status = GGL_NOMEM;
        return LLM_BX_NONE;
    }
    for (int32_t i = 0; i < x.b; i++) {
        const int32_t d = derive(p, p->arg[x.a + i], b, span);
        if (d != LLM_BX_NONE || x.kind == LLM_BX_KIND_AND)
            part[n++] = d;
        if (d == LLM_BX_NONE && x.kind == LLM_BX_KIND_AND)
            break;
    }
    if (x.kind == LLM_BX_KIND_ALT)
        result = n == 0 ? LLM_BX_NONE : n == 1 ? part[0] : llm_bx_alt(p, part, n);
    else if (part[n - 1] != LLM_BX_NONE)
        result = llm_bx_and(p, part, n);
    if (part != few)
        ggl_free(part);
    return result;
}

static int32_t derive_multiple(llm_bx_pool *p, const llm_bx *e, unsigned b, llm_byte_span *span) {
    static const llm_byte_set used = {{0x03ff400000000000}}; /* '.' and digits */
    const llm_multiple m = llm_bx_as_multiple(e);
    llm_multiple next;
    if (llm_byte_in(&used, b))
        *span = (llm_byte_span){b, b};
    else
        narrow(&used, b, span);
    return llm_multiple_after(&m, b, &next) ? llm_bx_multiple(p, &next) : LLM_BX_NONE;
}

static int32_t derive_node(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span) {
    const llm_bx x = p->node[e];
    switch ((llm_bx_kind)x.kind) {
    case LLM_BX_KIND_BYTES:
        narrow(&p->set[x.a], b, span);
        return llm_byte_in(&p->set[x.a], b) ? LLM_BX_EMPTY : LLM_BX_NONE;
    case LLM_BX_KIND_SEQ:
        return derive_seq(p, e, b, span);
    case LLM_BX_KIND_ALT:
    case LLM_BX_KIND_AND:
        return derive_list(p, e, b, span);
    case LLM_BX_KIND_REPEAT: {
        const int32_t d = derive(p, x.a, b, span);
        const int32_t min = x.min > 0 ? x.min - 1 : 0, max = x.max > 0 ? x.max - 1 : x.max;
        return d == LLM_BX_NONE ? d : llm_bx_seq(p, d, llm_bx_repeat(p, x.a, min, max));
    }
    case LLM_BX_KIND_NOT:
        return llm_bx_not(p, derive(p, x.a, b, span));
    case LLM_BX_KIND_MEMBERS:
        return derive(p, llm_bx_unfold(p, e), b, span);
    case LLM_BX_KIND_MULTIPLE:
        return derive_multiple(p, &x, b, span);
    default:
        return LLM_BX_NONE;
    }
}

/* Parts that several others share are derived once. */
static int32_t derive(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span) {
    if (p->node[e].visit == p->n_visits)
        return p->node[e].result;
    llm_bx_count(p, 1);
    if (p->status != GGL_OK)
        return LLM_BX_NONE;
    const uint32_t visit = p->n_visits;
    const int32_t d = derive_node(p, e, b, span);
    p->node[e].visit = visit;
    p->node[e].result = d;
    return d;
}

int32_t llm_bx_derive(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span) {
    p->n_visits++;
    return derive(p, e, b, span);
}

/* --- calls ------------------------------------------------------------------------------------ */

typedef struct call_list {
    llm_bx_call *call;
    size_t n, cap;
    bool failed;
} call_list;

static void collect(llm_bx_pool *p, int32_t e, int32_t rest, call_list *l) {
    for (;;) {
        const llm_bx x = p->node[e];
        if (!x.calls_first || p->status != GGL_OK || (x.visit == p->n_visits && x.result == rest))
            return; /* the second time it would only list the same again */
        p->node[e].visit = p->n_visits;
        p->node[e].result = rest;
        if (x.kind == LLM_BX_KIND_CALL) {
            if (!llm_bx_grow(p, &l->call, &l->cap, l->n + 1, sizeof *l->call)) {
                l->failed = true;
                return;
            }
            l->call[l->n++] = (llm_bx_call){x.a, rest};
        } else if (x.kind == LLM_BX_KIND_ALT) {
            for (int32_t i = 0; i < x.b; i++)
                collect(p, p->arg[x.a + i], rest, l);
        } else if (x.kind == LLM_BX_KIND_REPEAT) {
            const int32_t min = x.min > 0 ? x.min - 1 : 0, max = x.max > 0 ? x.max - 1 : x.max;
            rest = llm_bx_seq(p, llm_bx_repeat(p, x.a, min, max), rest);
            e = x.a;
            continue;
        } else if (x.kind == LLM_BX_KIND_MEMBERS) {
            e = llm_bx_unfold(p, e);
            continue;
        } else if (x.kind == LLM_BX_KIND_SEQ) {
            if (p->node[x.a].calls_first)
                collect(p, x.a, llm_bx_seq(p, x.b, rest), l);
            if (p->node[x.a].nullable) {
                e = x.b;
                continue;
            }
        }
        return;
    }
}

bool llm_bx_calls(llm_bx_pool *p, int32_t e, llm_bx_call **out, size_t *n, size_t *cap) {
    call_list l = {*out, *n, *cap, false};
    p->n_visits++;
    collect(p, e, LLM_BX_EMPTY, &l);
    *out = l.call;
    *n = l.n;
    *cap = l.cap;
    return !l.failed && p->status == GGL_OK;
}

/* --- lengths ---------------------------------------------------------------------------------- */

/* A search of derivatives by breadth, for the nearest that may end. */
typedef struct visit {
    int32_t node, from, dist; /* from: the visit it was reached from */
} visit;

typedef struct search {
    visit *at;
    size_t n, cap;
    uint32_t mark;
    int32_t best, best_len; /* visit from which an end is known, and its whole length */
} search;

enum { MAX_VISITS = 50000 };

static void see(llm_bx_pool *p, search *s, int32_t node, int32_t from, int32_t dist) {
    if (node == LLM_BX_NONE || p->node[node].mark == s->mark || p->status != GGL_OK)
        return;
    p->node[node].mark = s->mark;
    const int32_t rest = p->node[node].min_len;
    if (rest == LLM_BX_DEAD)
        return;
    if (s->n >= MAX_VISITS || !ggl_grow(&s->at, &s->cap, s->n + 1, sizeof *s->at)) {
        p->status = s->n >= MAX_VISITS ? GGL_LIMIT : GGL_NOMEM;
        return;
    }
    if (rest != LLM_BX_UNKNOWN && dist + rest < s->best_len) {
        s->best = (int32_t)s->n;
        s->best_len = dist + rest;
    }
    s->at[s->n++] = (visit){node, from, dist};
}

static void settle(llm_bx_pool *p, int32_t e) {
    search s = {.mark = ++p->n_searches, .best = -1, .best_len = LLM_BX_DEAD};
    see(p, &s, e, -1, 0);
    for (size_t i = 0; i < s.n && s.at[i].dist < s.best_len && p->status == GGL_OK; i++) {
        const visit v = s.at[i];
        if (p->node[v.node].min_len != LLM_BX_UNKNOWN)
            continue; /* its end is known */
        llm_byte_span span;
        for (unsigned b = 0; b < 256; b = span.last + 1) {
            span = (llm_byte_span){b, 255};
            see(p, &s, llm_bx_derive(p, v.node, b, &span), (int32_t)i, v.dist + 1);
        }
    }
    if (p->status == GGL_OK && s.best < 0)
        for (size_t i = 0; i < s.n; i++)
            p->node[s.at[i].node].min_len = LLM_BX_DEAD;
    for (int32_t i = s.best; p->status == GGL_OK && i >= 0; i = s.at[i].from)
        p->node[s.at[i].node].min_len = s.best_len - s.at[i].dist;
    ggl_free(s.at);
}

/* The length of a node that is no sequence. */
static int32_t len_of_part(llm_bx_pool *p, int32_t e) {
    const llm_bx x = p->node[e];
    if (x.min_len != LLM_BX_UNKNOWN)
        return x.min_len;
    if (x.kind == LLM_BX_KIND_AND || x.kind == LLM_BX_KIND_NOT) {
        settle(p, e);
        return p->status == GGL_OK ? p->node[e].min_len : LLM_BX_DEAD;
    }
    for (int32_t i = 0; x.kind == LLM_BX_KIND_ALT && i < x.b; i++)
        llm_bx_min_len(p, p->arg[x.a + i]);
    if (x.kind == LLM_BX_KIND_REPEAT)
        llm_bx_min_len(p, x.a);
    int32_t n = 0;
    for (int32_t i = 0; x.kind == LLM_BX_KIND_MEMBERS && (i == 0 || i < n); i++)
        llm_bx_min_len(p, llm_bx_table_parts(p, &x, &n)[i]);
    if (p->status == GGL_OK && x.kind == LLM_BX_KIND_MEMBERS)
        llm_bx_measure(p, x.a);
    if (p->status == GGL_OK)
        llm_bx_measure(p, e);
    return p->node[e].min_len;
}

int32_t llm_bx_min_len(llm_bx_pool *p, int32_t e) {
    int32_t sum = 0, part = e;
    while (p->node[part].min_len == LLM_BX_UNKNOWN && p->node[part].kind == LLM_BX_KIND_SEQ &&
           sum != LLM_BX_DEAD) {
        sum = llm_bx_add_len(sum, llm_bx_min_len(p, p->node[part].a));
        part = p->node[part].b;
    }
    if (sum != LLM_BX_DEAD)
        sum = llm_bx_add_len(sum, len_of_part(p, part));
    if (p->status != GGL_OK)
        return LLM_BX_DEAD;
    return p->node[e].min_len = sum;
}
