#include "schema_seen.h"

static bool is_seen(const facet *f) {
    return f->kind >= FACET_SEEN && f->kind <= FACET_SEEN_ALL;
}

static const facet *put(schema *s, const facet *list, facet f) {
    facet *own = llm_schema_alloc(s, 1, sizeof *own);
    if (!own)
        return list;
    *own = f;
    own->next = list;
    return own;
}

const cases *llm_seen_none(schema *s) {
    cases *c = llm_schema_alloc(s, 1, sizeof *c);
    if (c)
        c->facets = put(s, NULL, (facet){.kind = FACET_SEEN_ITEMS});
    return c;
}

/* True if what `f` evaluates is evaluated by a facet of the list. */
static bool covers(schema *s, const facet *list, const facet *f) {
    for (; list; list = list->next) {
        llm_exprs_count(s->g, 1);
        if (list->kind == FACET_SEEN_ALL ||
            (list->kind == f->kind && list->node == f->node && list->n >= f->n))
            return true;
    }
    return f->kind == FACET_SEEN_ITEMS && f->n == 0;
}

bool llm_seen_adds(schema *s, const facet *first, const facet *second) {
    for (; second; second = second->next)
        if (is_seen(second) && !covers(s, first, second))
            return true;
    return false;
}

/* A condition that one of the conditions of the list fits; `own` and the items that the facets name. */
static literal any_of(schema *s, const facet *seen, literal own) {
    size_t n = 1;
    for (const facet *f = seen; f; f = f->next)
        n += f->kind == FACET_SEEN_SOME;
    any_literal *any = llm_schema_alloc(s, 1, sizeof *any);
    literal *lit = llm_schema_alloc(s, n, sizeof *lit);
    if (n == 1 || !any || !lit)
        return own;
    lit[any->n++] = own;
    for (const facet *f = seen; f; f = f->next)
        if (f->kind == FACET_SEEN_SOME)
            lit[any->n++] = f->lit;
    any->lit = lit;
    return (literal){.node = &any->head, .is_any = true};
}

/* How many first items are evaluated; -1: all elements are. */
static int64_t first_items(const facet *seen) {
    int64_t n = 0;
    for (const facet *f = seen; f; f = f->next) {
        if (f->kind == FACET_SEEN_ALL)
            return -1;
        n = f->kind == FACET_SEEN_ITEMS && f->n > n ? f->n : n;
    }
    return n;
}

/* The condition on what is not evaluated, before the facets that are kept. */
static const facet *with_others(schema *s, const json_value *node, schema_type t, const facet *kept,
                                const facet *seen, literal lit) {
    facet f = {.kind = FACET_EACH, .node = node, .n = first_items(seen)};
    if (f.n < 0)
        return kept;
    if (t == TYPE_OBJECT) {
        f = (facet){.kind = FACET_OTHERS, .node = node, .seen = seen, .lit = lit};
        return put(s, kept, f);
    }
    f.lit = any_of(s, seen, lit);
    return put(s, kept, f);
}

const cases *llm_seen_violated(schema *s, const json_value *node, schema_type t, const facet *own,
                               literal lit) {
    const facet *seen = NULL;
    for (; own; own = own->next)
        if (is_seen(own))
            seen = put(s, seen, *own);
    facet f = {.kind = FACET_EXTRA, .node = node, .by_seen = true, .seen = seen, .lit = lit};
    const int64_t n = first_items(seen);
    if (n < 0)
        return NULL;
    if (t == TYPE_ARRAY)
        f = (facet){.kind = FACET_SOME,
                    .node = node,
                    .n = n,
                    .least = 1,
                    .most = LLM_EXPR_MANY,
                    .lit = any_of(s, seen, lit)};
    f.lit.negated = true;
    cases *c = llm_schema_alloc(s, 1, sizeof *c);
    if (c)
        c->facets = put(s, NULL, f);
    return c;
}

const cases *llm_seen_others(schema *s, const json_value *node, schema_type t, const cases *all,
                             literal lit, bool traced) {
    const cases *first = NULL, **end = &first;
    for (; all && s->status == GGL_OK; all = all->next) {
        const facet *kept = NULL, *seen = NULL;
        for (const facet *f = all->facets; f; f = f->next)
            if (is_seen(f))
                seen = put(s, seen, *f);
            else
                kept = put(s, kept, *f);
        cases *c = llm_schema_alloc(s, 1, sizeof *c);
        if (!c)
            return NULL;
        c->facets = with_others(s, node, t, kept, seen, lit);
        if (traced)
            c->facets = put(s, c->facets, (facet){.kind = FACET_SEEN_ALL});
        *end = c;
        end = &c->next;
    }
    return first;
}

/* --- names ------------------------------------------------------------------------------------ */

static bool table_has(schema *s, const json_value *t, ggl_str name) {
    llm_exprs_count(s->g, 1 + (t ? t->n / 16 : 0));
    for (uint32_t i = 0; t && i < t->n; i++) {
        const ggl_str other = json_name(t, i);
        if (other.n == name.n && (name.n == 0 || memcmp(other.s, name.s, name.n) == 0))
            return true;
    }
    return false;
}

bool llm_facet_names(schema *s, const facet *f, ggl_str name) {
    for (const facet *x = f->seen; x; x = x->next)
        if (table_has(s, llm_schema_table(s, x->node, "properties"), name))
            return true;
    return !f->by_seen &&
           table_has(s, f->value_names ? f->node : llm_schema_table(s, f->node, "properties"),
                     name);
}

bool llm_facet_has_patterns(schema *s, const facet *f) {
    for (const facet *x = f->seen; x; x = x->next)
        if (llm_schema_table(s, x->node, "patternProperties"))
            return true;
    return !f->by_seen && !f->value_names && llm_schema_table(s, f->node, "patternProperties");
}
