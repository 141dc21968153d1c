/* The automaton that counts. A state is the number of items so far and, for each condition, the number of
 * those that were counted; numbers are cut where more makes no difference. Numbers never fall, so that a
 * state leads back to itself at most, and each state becomes one expression, built from those after it. */
#include "counts.h"

#include <string.h>

#include "ggl/alloc.h"

enum { MOST_STATES = 1 << 12, MOST_MOVES = 1 << 14, MOST_DEPTH = 500, UNKNOWN = -1 };

typedef struct state {
    int32_t at;                     /* items so far */
    int32_t count[LLM_COUNTS_MOST]; /* those that were counted */
} state;

typedef struct automaton {
    llm_exprs *g;
    const llm_counts *c;
    state most;     /* the largest numbers that are told apart */
    int32_t *after; /* [states] results of after() by index; UNKNOWN: not built */
} automaton;

/* Finds the largest numbers. Returns how many states there are; 0: too many. */
static int64_t measure(automaton *a) {
    const llm_counts *c = a->c;
    int64_t at = c->max, depth = 0, n = 1;
    if (at == LLM_EXPR_MANY) {
        at = c->n_first > c->min ? c->n_first : c->min;
        for (int32_t i = 0; i < c->n; i++)
            at = c->count[i].from > at ? c->count[i].from : at;
    }
    for (int32_t i = 0; i < c->n; i++) {
        const llm_count *x = &c->count[i];
        const int64_t most = x->most == LLM_EXPR_MANY ? x->least : x->most;
        depth += most;
        if (most >= MOST_STATES || (n *= most + 1) > MOST_STATES)
            return 0;
        a->most.count[i] = (int32_t)most;
    }
    if (at + depth > MOST_DEPTH || (n *= at + 1) > MOST_STATES || n << c->n > MOST_MOVES)
        return 0;
    a->most.at = (int32_t)at;
    return n;
}

static size_t index_of(const automaton *a, const state *s) {
    size_t k = (size_t)s->at;
    for (int32_t i = 0; i < a->c->n; i++)
        k = k * ((size_t)a->most.count[i] + 1) + (size_t)s->count[i];
    return k;
}

static bool may_end(const automaton *a, const state *s) {
    bool ok = s->at >= a->c->min;
    for (int32_t i = 0; i < a->c->n; i++)
        ok = ok && s->count[i] >= a->c->count[i].least;
    return ok;
}

/* Moves over an item that is counted for the conditions in `fit`, and sets *unfit to the conditions that it must
 * not fit. Returns false if there can be no such item. */
static bool move(const automaton *a, const state *from, unsigned fit, state *to, unsigned *unfit) {
    const llm_counts *c = a->c;
    *to = *from;
    *unfit = 0;
    if (from->at < a->most.at)
        to->at++;
    else if (c->max != LLM_EXPR_MANY)
        return false;
    for (int32_t i = 0; i < c->n; i++) {
        const bool counts = fit >> i & 1, is_later = from->at >= c->count[i].from;
        if (counts && (!is_later || from->count[i] == a->most.count[i]))
            return false;
        to->count[i] += counts;
        if (!counts && is_later && c->count[i].most != LLM_EXPR_MANY)
            *unfit |= 1u << i;
    }
    return true;
}

static int32_t after(automaton *a, const state *s);

/* Returns the items that leave the state, each with the texts that follow it. Sets *loop to the items that lead
 * back to the state; if it is NULL, they are returned with the others. */
static int32_t items(automaton *a, const state *s, int32_t *loop) {
    const llm_counts *c = a->c;
    int32_t part[1 << LLM_COUNTS_MOST], same[1 << LLM_COUNTS_MOST], n = 0, n_same = 0;
    for (unsigned fit = 0; fit < 1u << c->n && a->g->status == GGL_OK; fit++) {
        state to;
        unsigned unfit;
        if (!move(a, s, fit, &to, &unfit))
            continue;
        const int64_t at = s->at < c->n_first ? s->at : c->n_first;
        const int32_t item = c->item(c->ctx, at, fit, unfit);
        if (loop && index_of(a, &to) == index_of(a, s))
            same[n_same++] = item;
        else if (item != LLM_EXPR_NONE)
            part[n++] = llm_expr_seq2(a->g, item, after(a, &to));
    }
    if (loop)
        *loop = llm_expr_alt(a->g, same, n_same);
    return llm_expr_alt(a->g, part, n);
}

/* Returns the texts that may follow the item that led to state s. */
static int32_t after(automaton *a, const state *s) {
    llm_exprs *g = a->g;
    const size_t k = index_of(a, s);
    if (a->after[k] != UNKNOWN)
        return a->after[k];
    int32_t loop, e = llm_expr_seq2(g, a->c->comma, items(a, s, &loop));
    if (may_end(a, s))
        e = llm_expr_optional(g, e);
    const int32_t again = llm_expr_repeat(g, llm_expr_seq2(g, a->c->comma, loop), 0, LLM_EXPR_MANY);
    return a->after[k] = llm_expr_seq2(g, again, e);
}

bool llm_counted_items(int32_t *out, llm_exprs *g, const llm_counts *c) {
    automaton a = {.g = g, .c = c};
    const state none = {0};
    const int64_t n = c->n <= LLM_COUNTS_MOST ? measure(&a) : 0;
    if (n == 0)
        return false;
    a.after = ggl_calloc((size_t)n, sizeof *a.after);
    *out = LLM_EXPR_NONE;
    if (a.after) {
        memset(a.after, 0xff, (size_t)n * sizeof *a.after); /* UNKNOWN */
        *out = items(&a, &none, NULL);
        if (may_end(&a, &none))
            *out = llm_expr_optional(g, *out);
    } else if (g->status == GGL_OK) {
        g->status = GGL_NOMEM;
    }
    ggl_free(a.after);
    return true;
}
