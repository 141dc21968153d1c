/* The compiler's core: a conjunction of conditions becomes an expression. */
#include "schema_impl.h"

#include <stdlib.h>

/* --- conjunctions ----------------------------------------------------------------------------- */

static int compare_literals(const void *a, const void *b) {
    const literal *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->is_value << 1 | x->negated) - (y->is_value << 1 | y->negated);
}

/* Copies the literals that say something, sorted, each once. False: no value fits them. */
static bool simplify(schema *s, const literal *lit, size_t n, literal **out, size_t *n_out) {
    *n_out = 0;
    *out = llm_schema_alloc(s, n + 1, sizeof **out);
    if (!*out)
        return false;
    for (size_t i = 0; i < n; i++) {
        const bool is_answer = !lit[i].is_value && lit[i].node->kind == JSON_BOOL;
        if (is_answer && lit[i].node->flag == lit[i].negated)
            return false;
        if (!is_answer)
            (*out)[(*n_out)++] = lit[i];
    }
    qsort(*out, *n_out, sizeof **out, compare_literals);
    size_t m = 0;
    for (size_t i = 0; i < *n_out; i++)
        if (m == 0 || compare_literals(&(*out)[m - 1], &(*out)[i]) != 0)
            (*out)[m++] = (*out)[i];
    *n_out = m;
    return true;
}

static size_t hash_literals(const literal *lit, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint64_t)(uintptr_t)lit[i].node ^
             (uint64_t)(lit[i].is_value << 1 | lit[i].negated)) *
            0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32) % SCHEMA_BUCKETS;
}

/* The scalar values that fit all literals, as JSON text. */
static int32_t scalars_of(schema *s, const literal *lit, size_t n) {
    int32_t all = LLM_EXPR_NONE;
    for (schema_type t = 0; t < TYPE_ARRAY; t++) {
        int32_t e = s->universe[t];
        for (size_t i = 0; i < n && e != LLM_EXPR_NONE && s->status == GGL_OK; i++)
            e = llm_set_and(s, t, e, llm_schema_scalars(s, lit[i], t));
        all = llm_expr_alt2(s->g, all, t == TYPE_STRING ? llm_schema_string(s, e) : e);
    }
    return all;
}

static const cases *cases_of(schema *s, const literal *lit, size_t n, schema_type t) {
    const cases *c = llm_cases_one(s, NULL);
    for (size_t i = 0; i < n && c && s->status == GGL_OK; i++) {
        const word_use u = {.node = lit[i].node, .type = t};
        c = llm_cases_and(s, &u, c, llm_schema_cases(s, lit[i], t));
    }
    return c;
}

/* Finds or makes the conjunction; NULL: no value fits it, or the status is set. */
static conjunction *conjunction_of(schema *s, const literal *lit, size_t n) {
    literal *own;
    size_t m;
    if (!simplify(s, lit, n, &own, &m))
        return NULL;
    conjunction **at = &s->bucket[hash_literals(own, m)];
    for (; *at; at = &(*at)->next)
        if ((*at)->n == m && (m == 0 || memcmp((*at)->lit, own, m * sizeof *own) == 0))
            return *at;
    conjunction *c = llm_schema_alloc(s, 1, sizeof *c);
    if (!c)
        return NULL;
    *c = (conjunction){.lit = own, .n = m, .rule = -1, .busy = true};
    *at = c;
    c->scalars = scalars_of(s, own, m);
    c->shapes[0] = cases_of(s, own, m, TYPE_ARRAY);
    c->shapes[1] = cases_of(s, own, m, TYPE_OBJECT);
    c->busy = false;
    return s->status == GGL_OK ? c : NULL;
}

/* Names the rule of a conjunction after its first schema. */
static int32_t make_rule(schema *s, const conjunction *c) {
    char place[200] = "#";
    const size_t end = c->n ? llm_schema_place(s, c->lit[0].node, place, 1, sizeof place) : 0;
    const ggl_str name = end ? (ggl_str){place, end} : (ggl_str){"value", 5};
    return llm_rule_new(s->g, name);
}

int32_t llm_schema_values(schema *s, const literal *lit, size_t n) {
    conjunction *c = conjunction_of(s, lit, n);
    if (!c || s->status != GGL_OK)
        return LLM_EXPR_NONE;
    if (!c->busy && !c->shapes[0] && !c->shapes[1])
        return c->scalars;
    if (c->rule < 0) {
        c->rule = make_rule(s, c);
        if (!ggl_grow(&s->queue, &s->cap_queue, s->n_queue + 1, sizeof *s->queue)) {
            llm_schema_fail(s, GGL_NOMEM, NULL, NULL, "out of memory");
            return LLM_EXPR_NONE;
        }
        s->queue[s->n_queue++] = c;
    }
    return llm_expr_rule(s->g, c->rule);
}

bool llm_schema_is_never(schema *s, const literal *lit, size_t n) {
    enum { LEVELS = 8 };
    if (s->levels >= LEVELS || s->status != GGL_OK)
        return false;
    s->levels++;
    const conjunction *c = conjunction_of(s, lit, n);
    s->levels--;
    return s->status == GGL_OK &&
           (!c || (!c->busy && c->scalars == LLM_EXPR_NONE && !c->shapes[0] && !c->shapes[1]));
}

bool llm_schema_are_disjoint(schema *s, literal a, literal b, schema_type t) {
    if (t < TYPE_ARRAY)
        return llm_set_and(s, t, llm_schema_scalars(s, a, t), llm_schema_scalars(s, b, t)) ==
               LLM_EXPR_NONE;
    return !cases_of(s, (literal[]){a, b}, 2, t);
}

/* The values of a conjunction: a union of its scalars and of all cases. */
static int32_t rule_body(schema *s, const conjunction *c) {
    size_t n = 1;
    for (int k = 0; k < 2; k++)
        for (const cases *x = c->shapes[k]; x; x = x->next)
            n++;
    int32_t *part = llm_schema_alloc(s, n, sizeof *part), *end = part;
    if (!part)
        return LLM_EXPR_NONE;
    *end++ = c->scalars;
    for (const cases *x = c->shapes[0]; x && s->status == GGL_OK; x = x->next)
        *end++ = llm_schema_array(s, x->facets);
    for (const cases *x = c->shapes[1]; x && s->status == GGL_OK; x = x->next)
        *end++ = llm_schema_object(s, x->facets);
    return llm_expr_alt(s->g, part, (int32_t)(end - part));
}

/* Gives the rules of the queue their bodies, which may queue more rules. */
void llm_schema_build_rules(schema *s) {
    while (s->n_done < s->n_queue && s->status == GGL_OK && s->g->status == GGL_OK) {
        conjunction *c = s->queue[s->n_done++];
        llm_rule_define(s->g, c->rule, rule_body(s, c));
    }
}
