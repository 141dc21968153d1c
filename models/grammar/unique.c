/* An automaton for the first items. Its state is the number of items so far, and which values were there of
 * those that may come again. The later items are a list of members in any order (llm_expr_members). */
#include "unique.h"

#include "ggl/alloc.h"

enum { MOST_STATES = 1 << 12, BUCKETS = 2 * MOST_STATES, MOST_FIRST = 64, MOST_SHARED = 64 };

typedef struct state {
    int32_t at;    /* items so far */
    uint64_t used; /* bits of shared values */
} state;

typedef struct entry {
    state s;
    bool is_set;
    int32_t expr;
} entry;

typedef struct automaton {
    llm_exprs *g;
    const llm_unique *u;
    int32_t *bit;                   /* [n_values] of shared values; -1: it has none */
    uint64_t later[MOST_FIRST + 1]; /* shared values that may come from there on */
    entry *table;                   /* [BUCKETS] */
    int32_t n_states;
    bool is_too_large;
} automaton;

static uint64_t mask_of(const automaton *a, int32_t value) {
    return a->bit[value] < 0 ? 0 : (uint64_t)1 << a->bit[value];
}

/* Gives bits to values that may stand at several places. */
static bool number_values(automaton *a) {
    enum { NONE = -1, ONCE = -2 };
    const llm_unique *u = a->u;
    int32_t n = 0;
    for (int32_t i = 0; i < u->n_values; i++)
        a->bit[i] = NONE;
    for (int32_t k = 0; k <= u->n_first; k++) {
        const llm_choices *c = k < u->n_first ? &u->first[k] : &u->rest;
        for (int32_t i = 0; i < c->n; i++) {
            int32_t *bit = &a->bit[c->choice[i].value];
            if (*bit == ONCE && n == MOST_SHARED)
                return false;
            *bit = *bit == NONE ? ONCE : *bit == ONCE ? n++ : *bit;
        }
    }
    for (int32_t k = u->n_first; k >= 0; k--) {
        const llm_choices *c = k < u->n_first ? &u->first[k] : &u->rest;
        a->later[k] = k < u->n_first ? a->later[k + 1] : 0;
        for (int32_t i = 0; i < c->n; i++)
            a->later[k] |= mask_of(a, c->choice[i].value);
    }
    return true;
}

/* The later items without those that were there, and the comma before them. */
static int32_t rest_items(automaton *a, const state *s) {
    const llm_unique *u = a->u;
    int32_t *member = ggl_calloc((size_t)u->rest.n + 1, sizeof *member);
    bool *required = ggl_calloc((size_t)u->rest.n + 1, sizeof *required);
    llm_members m = {.member = member, .required = required, .comma = u->comma};
    int32_t e = LLM_EXPR_NONE;
    const int64_t least = u->min - s->at, fewest = s->at > 0; /* after a comma there is one */
    m.min = (int32_t)(least > fewest ? least : fewest);
    m.max = u->max == LLM_EXPR_MANY ? LLM_EXPR_MANY : (int32_t)(u->max - s->at);
    if (member && required) {
        for (int32_t i = 0; i < u->rest.n; i++)
            if (!(mask_of(a, u->rest.choice[i].value) & s->used))
                member[m.n++] = u->rest.choice[i].expr;
        e = llm_expr_members(a->g, &m);
    } else if (a->g->status == GGL_OK) {
        a->g->status = GGL_NOMEM;
    }
    ggl_free(member);
    ggl_free(required);
    if (s->at > 0)
        e = llm_expr_seq2(a->g, u->comma, e);
    return s->at > 0 && least <= 0 ? llm_expr_optional(a->g, e) : e;
}

static entry *find(automaton *a, const state *s) {
    size_t i = (size_t)((s->used ^ (uint64_t)s->at << 32) * 0x9e3779b97f4a7c15u >> 48) % BUCKETS;
    while (a->table[i].is_set && (a->table[i].s.at != s->at || a->table[i].s.used != s->used))
        i = (i + 1) % BUCKETS;
    return &a->table[i];
}

static int32_t items(automaton *a, const state *s);

/* One of the first items, and those after it. */
static int32_t first_item(automaton *a, const state *s) {
    const llm_choices *c = &a->u->first[s->at];
    int32_t *part = ggl_calloc((size_t)c->n + 1, sizeof *part), n = 0;
    if (!part) {
        if (a->g->status == GGL_OK)
            a->g->status = GGL_NOMEM;
        return LLM_EXPR_NONE;
    }
    for (int32_t i = 0; i < c->n; i++) {
        const uint64_t own = mask_of(a, c->choice[i].value);
        const state next = {s->at + 1, (s->used | own) & a->later[s->at + 1]};
        if (!(own & s->used))
            part[n++] = llm_expr_seq2(a->g, c->choice[i].expr, items(a, &next));
    }
    int32_t e = llm_expr_alt(a->g, part, n);
    ggl_free(part);
    if (s->at > 0)
        e = llm_expr_seq2(a->g, a->u->comma, e);
    return s->at >= a->u->min ? llm_expr_optional(a->g, e) : e;
}

/* Items from there on, with the comma before them. */
static int32_t items(automaton *a, const state *s) {
    entry *own = find(a, s);
    if (own->is_set || a->is_too_large || a->g->status != GGL_OK)
        return own->is_set ? own->expr : LLM_EXPR_NONE;
    if (s->at == a->u->max)
        return LLM_EXPR_EMPTY;
    if (a->n_states++ == MOST_STATES) {
        a->is_too_large = true;
        return LLM_EXPR_NONE;
    }
    const int32_t e = s->at < a->u->n_first ? first_item(a, s) : rest_items(a, s);
    *find(a, s) = (entry){.s = *s, .is_set = true, .expr = e};
    return e;
}

bool llm_unique_items(int32_t *out, llm_exprs *g, const llm_unique *u) {
    automaton a = {.g = g, .u = u};
    const state none = {0};
    if (u->n_first > MOST_FIRST)
        return false;
    a.bit = ggl_calloc((size_t)u->n_values + 1, sizeof *a.bit);
    a.table = ggl_calloc(BUCKETS, sizeof *a.table);
    if (!a.bit || !a.table)
        g->status = g->status == GGL_OK ? GGL_NOMEM : g->status;
    else if (u->n_first == 0)
        *out = rest_items(&a, &none);
    else if (!number_values(&a))
        a.is_too_large = true;
    else
        *out = items(&a, &none);
    ggl_free(a.bit);
    ggl_free(a.table);
    return !a.is_too_large;
}
