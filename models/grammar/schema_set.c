/* Sets of texts and lists of cases: unions, intersections, complements. */
#include "ggl/internal/steps.h"
#include "schema_impl.h"

/* --- sets ------------------------------------------------------------------------------------- */

/* True if e is any character, min to max times. */
static bool is_length(const schema *s, int32_t e) {
    const llm_expr *x = &s->g->node[e];
    return x->kind == LLM_EXPR_KIND_REPEAT && s->g->arg[x->first] == llm_expr_any_char(s->g);
}

static int32_t and_lengths(schema *s, int32_t a, int32_t b) {
    const llm_expr x = s->g->node[a], y = s->g->node[b];
    const int32_t min = x.min > y.min ? x.min : y.min;
    const int32_t max = x.max == LLM_EXPR_MANY   ? y.max
                        : y.max == LLM_EXPR_MANY ? x.max
                        : x.max < y.max          ? x.max
                                                 : y.max;
    if (max != LLM_EXPR_MANY && max < min)
        return LLM_EXPR_NONE;
    return llm_expr_repeat(s->g, llm_expr_any_char(s->g), min, max);
}

int32_t llm_set_and(schema *s, schema_type t, int32_t a, int32_t b) {
    llm_exprs *g = s->g;
    if (a == LLM_EXPR_NONE || b == LLM_EXPR_NONE || g->status != GGL_OK)
        return LLM_EXPR_NONE;
    if (a == b || b == s->universe[t])
        return a;
    if (a == s->universe[t])
        return b;
    if (llm_expr_is_list(g, a))
        return llm_expr_list_filter(g, a, b, true);
    if (llm_expr_is_list(g, b))
        return llm_expr_list_filter(g, b, a, true);
    if (is_length(s, a) && is_length(s, b))
        return and_lengths(s, a, b);
    return llm_expr_and(g, (int32_t[]){a, b}, 2);
}

int32_t llm_set_or(schema *s, schema_type t, int32_t a, int32_t b) {
    if (a == s->universe[t] || b == s->universe[t])
        return s->universe[t];
    return llm_expr_alt2(s->g, a, b);
}

int32_t llm_set_or_all(schema *s, schema_type t, const int32_t *set, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (set[i] == s->universe[t])
            return set[i];
    return llm_expr_alt(s->g, set, n);
}

/* Lists of texts and lengths are joined one after another; all other sets at the end. */
int32_t llm_set_and_all(schema *s, schema_type t, int32_t *set, int32_t n) {
    int32_t all = s->universe[t], m = 0;
    for (int32_t i = 0; i < n && all != LLM_EXPR_NONE && s->g->status == GGL_OK; i++) {
        const bool simple = set[i] == LLM_EXPR_NONE || set[i] == s->universe[t] ||
                            llm_expr_is_list(s->g, set[i]) || is_length(s, set[i]);
        if (simple)
            all = llm_set_and(s, t, all, set[i]);
        else if (m == 0 || set[m - 1] != set[i])
            set[m++] = set[i];
    }
    if (m == 0 || all == LLM_EXPR_NONE || s->g->status != GGL_OK)
        return all;
    for (int32_t i = 0; llm_expr_is_list(s->g, all) && i < m; i++)
        all = llm_set_and(s, t, all, set[i]);
    if (llm_expr_is_list(s->g, all))
        return all;
    const int32_t others = m == 1 ? set[0] : llm_expr_and(s->g, set, m);
    return llm_set_and(s, t, all, others);
}

int32_t llm_set_not(schema *s, schema_type t, int32_t a) {
    llm_exprs *g = s->g;
    const int32_t all = t == TYPE_NUMBER ? s->plain_number : s->universe[t];
    if (a == LLM_EXPR_NONE || g->status != GGL_OK)
        return s->universe[t];
    if (a == s->universe[t] || a == all)
        return LLM_EXPR_NONE;
    if (llm_expr_is_list(g, all))
        return llm_expr_list_filter(g, all, a, false);
    const int32_t other = llm_expr_not(g, a);
    return t == TYPE_STRING ? other : llm_expr_and(g, (int32_t[]){all, other}, 2);
}

/* --- cases ------------------------------------------------------------------------------------ */

static cases *cases_new(schema *s, const facet *f, const cases *next) {
    cases *c = llm_schema_alloc(s, 1, sizeof *c);
    GGL_STEPS(1);
    if (!c)
        return NULL;
    c->facets = f;
    c->next = next;
    return c;
}

const cases *llm_cases_one(schema *s, const facet *f) {
    facet *own = NULL;
    if (f) {
        own = llm_schema_alloc(s, 1, sizeof *own);
        if (!own)
            return NULL;
        *own = *f;
        own->next = NULL;
    }
    return cases_new(s, own, NULL);
}

const cases *llm_cases_of(schema *s, const facet *all) {
    return cases_new(s, all, NULL);
}

static size_t n_cases(const cases *c) {
    size_t n = 0;
    for (; c; c = c->next)
        n++;
    return n;
}

static bool is_any(const cases *c) {
    return c && !c->facets && !c->next;
}

void llm_cases_add(schema *s, case_list *l, const cases *c) {
    if (is_any(l->first)) /* one any-value case swallows the others */
        return;
    if (is_any(c)) {
        *l = (case_list){.first = c, .n = 1};
        return;
    }
    for (; c; c = c->next) {
        if (l->n >= SCHEMA_MAX_CASES) {
            llm_schema_fail(s, GGL_UNSUPPORTED, NULL, NULL, "the schema has more than %d cases",
                            SCHEMA_MAX_CASES);
            return;
        }
        cases *copy = cases_new(s, c->facets, NULL);
        if (!copy)
            return;
        if (l->last)
            l->last->next = copy;
        else
            l->first = copy;
        l->last = copy;
        l->n++;
    }
}

const cases *llm_cases_or(schema *s, const cases *a, const cases *b) {
    case_list l = {0};
    if (!a || !b || a == b)
        return a ? a : b;
    llm_cases_add(s, &l, a);
    llm_cases_add(s, &l, b);
    return l.first;
}

static bool same_facet(const facet *a, const facet *b) {
    return a->kind == b->kind && a->node == b->node && a->n == b->n && a->least == b->least &&
           a->most == b->most && a->why == b->why && a->seen == b->seen &&
           a->lit.node == b->lit.node && a->lit.is_value == b->lit.is_value &&
           a->lit.negated == b->lit.negated && a->name.n == b->name.n &&
           (a->name.n == 0 || memcmp(a->name.s, b->name.s, a->name.n) == 0);
}

static bool has_facet(schema *s, const facet *list, const facet *f) {
    enum { PER_STEP = 8 };
    uint64_t n = 0;
    for (; list && !same_facet(list, f); list = list->next)
        n++;
    llm_exprs_count(s->g, n / PER_STEP);
    return list != NULL;
}

/* The facets of a, then those of b that a lacks; a's tail is shared where b adds nothing. */
static const facet *join(schema *s, const facet *a, const facet *b) {
    const facet *first = NULL;
    const facet **end = &first;
    if (!a || !b)
        return a ? a : b;
    for (const facet *f = a; f; f = f->next) {
        facet *copy = llm_schema_alloc(s, 1, sizeof *copy);
        if (!copy)
            return NULL;
        *copy = *f;
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
    }
    for (const facet *f = b; f; f = f->next) {
        if (has_facet(s, a, f))
            continue;
        facet *copy = llm_schema_alloc(s, 1, sizeof *copy);
        if (!copy)
            return NULL;
        *copy = *f;
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
    }
    return first;
}

bool llm_case_is_never(schema *s, schema_type t, const facet *f) {
    return t == TYPE_OBJECT ? llm_object_is_never(s, f) : llm_array_is_never(s, f);
}

const cases *llm_cases_and(schema *s, const word_use *u, const cases *a, const cases *b) {
    if (!a || !b || s->status != GGL_OK)
        return NULL;
    if (!a->facets && !a->next)
        return b;
    if (!b->facets && !b->next)
        return a;
    if (n_cases(a) * n_cases(b) > SCHEMA_MAX_CASES) {
        llm_schema_fail(s, GGL_UNSUPPORTED, u->node, u->word,
                        "together with the other keywords there are more than %d cases",
                        SCHEMA_MAX_CASES);
        return NULL;
    }
    const cases *all = NULL;
    const cases **end = &all;
    for (const cases *x = a; x; x = x->next)
        for (const cases *y = b; y; y = y->next) {
            cases *c = llm_schema_alloc(s, 1, sizeof *c);
            const facet *f = join(s, x->facets, y->facets);
            if (!c || s->status != GGL_OK)
                return NULL;
            c->facets = f;
            if (llm_case_is_never(s, u->type, f))
                continue;
            *end = c;
            end = &c->next;
        }
    return all;
}
