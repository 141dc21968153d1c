/* Keywords for all types: type, enum, const, and those that combine schemas. */
#include <stdlib.h>

#include "schema_seen.h"

/* --- type, enum, const ------------------------------------------------------------------------ */

/* What `type` permits: bits of types; INTEGER: of numbers only whole ones. */
enum { INTEGER = 1 << N_TYPES };

static unsigned type_bits(schema *s, const word_use *u, const json_value *v) {
    static const struct {
        const char *name;
        unsigned bits;
    } row[] = {{"null", TYPE_BIT(TYPE_NULL)},     {"boolean", TYPE_BIT(TYPE_BOOL)},
               {"number", TYPE_BIT(TYPE_NUMBER)}, {"integer", INTEGER},
               {"string", TYPE_BIT(TYPE_STRING)}, {"array", TYPE_BIT(TYPE_ARRAY)},
               {"object", TYPE_BIT(TYPE_OBJECT)}};
    for (size_t i = 0; v->kind == JSON_STRING && i < sizeof row / sizeof *row; i++)
        if (llm_json_is(v, row[i].name))
            return row[i].bits;
    if (v->kind == JSON_STRING)
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "'%.*s' is not a type",
                        (int)(v->n < 80 ? v->n : 80), v->s);
    else
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a string or an array of strings");
    return 0;
}

static unsigned all_type_bits(schema *s, const word_use *u) {
    unsigned bits = 0;
    if (u->value->kind != JSON_ARRAY)
        return type_bits(s, u, u->value);
    for (uint32_t i = 0; i < u->value->n; i++)
        bits |= type_bits(s, u, &u->value->item[i]);
    return bits;
}

SCALARS(type) {
    const unsigned bits = all_type_bits(s, u);
    if (u->type == TYPE_NUMBER && !(bits & TYPE_BIT(TYPE_NUMBER)) && (bits & INTEGER))
        return u->negated ? s->fraction : s->integer;
    const bool has = (bits & TYPE_BIT(u->type)) != 0;
    return has != u->negated ? s->universe[u->type] : LLM_EXPR_NONE;
}

CASES(type) {
    const bool has = (all_type_bits(s, u) & TYPE_BIT(u->type)) != 0;
    return has != u->negated ? llm_cases_one(s, NULL) : NULL;
}

static bool is_list(schema *s, const word_use *u) {
    if (u->value->kind != JSON_ARRAY)
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be an array");
    return u->value->kind == JSON_ARRAY;
}

/* The values' union in one step: enumerations may be long. `all`: numbers in all their spellings. */
static int32_t any_value(schema *s, const word_use *u, bool all) {
    int32_t *part = llm_schema_alloc(s, (size_t)u->value->n + 1, sizeof *part), n = 0;
    for (uint32_t i = 0; part && i < u->value->n; i++) {
        const literal lit = {.node = &u->value->item[i], .is_value = true};
        const bool is_number = lit.node->kind == JSON_NUMBER && u->type == TYPE_NUMBER;
        const int32_t e = is_number && all ? llm_schema_number(s, lit.node, true)
                                           : llm_schema_scalars(s, lit, u->type);
        if (e != LLM_EXPR_NONE)
            part[n++] = e;
    }
    return part ? llm_expr_alt(s->g, part, n) : LLM_EXPR_NONE;
}

SCALARS(enumeration) {
    if (!is_list(s, u))
        return LLM_EXPR_NONE;
    const int32_t any = any_value(s, u, u->negated);
    return u->negated ? llm_set_not(s, u->type, any) : any;
}

CASES(enumeration) {
    if (!is_list(s, u))
        return NULL;
    const cases *all = llm_cases_one(s, NULL);
    case_list any = {0};
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        const literal lit = {.node = &u->value->item[i], .is_value = true, .negated = u->negated};
        const cases *c = llm_schema_cases(s, lit, u->type);
        if (u->negated)
            all = llm_cases_and(s, u, all, c);
        else
            llm_cases_add(s, &any, c);
    }
    return u->negated ? all : any.first;
}

SCALARS(constant) {
    const literal lit = {.node = u->value, .is_value = true, .negated = u->negated};
    return llm_schema_scalars(s, lit, u->type);
}

CASES(constant) {
    const literal lit = {.node = u->value, .is_value = true, .negated = u->negated};
    return llm_schema_cases(s, lit, u->type);
}

/* --- allOf, anyOf, not, $ref ------------------------------------------------------------------ */

static bool is_schema_list(schema *s, const word_use *u) {
    const bool fits = u->value->kind == JSON_ARRAY && u->value->n > 0;
    if (!fits)
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be an array of schemas");
    return fits;
}

/* The sets of all schemas of the list are collected, and joined once. */
static int32_t each_scalars(schema *s, const word_use *u, bool every) {
    if (!is_schema_list(s, u))
        return LLM_EXPR_NONE;
    int32_t n = 0, *set = llm_schema_alloc(s, u->value->n, sizeof *set);
    for (uint32_t i = 0; set && i < u->value->n && s->status == GGL_OK; i++) {
        const literal lit = {.node = &u->value->item[i], .negated = u->negated};
        set[n++] = llm_schema_scalars(s, lit, u->type);
    }
    return !set    ? LLM_EXPR_NONE
           : every ? llm_set_and_all(s, u->type, set, n)
                   : llm_set_or_all(s, u->type, set, n);
}

static literal branch(const word_use *u, uint32_t i, bool negated) {
    return (literal){
        .node = &u->value->item[i], .negated = negated, .traced = u->traced && !negated};
}

/* Adds the cases of values that are in both lists, where each case evaluates something that the other does not.
 * Otherwise the case that evaluates more permits these values already. */
static void add_both(schema *s, const word_use *u, case_list *l, const cases *a, const cases *b) {
    for (const cases *x = a; x; x = x->next)
        for (const cases *y = b; y && s->status == GGL_OK; y = y->next) {
            const cases one = {.facets = x->facets}, other = {.facets = y->facets};
            if (llm_seen_adds(s, x->facets, y->facets) && llm_seen_adds(s, y->facets, x->facets))
                llm_cases_add(s, l, llm_cases_and(s, u, &one, &other));
        }
}

/* The union of traced cases: values that fit several schemas have what all of these evaluate. */
static const cases *any_traced(schema *s, const word_use *u) {
    case_list all = {0};
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        const cases *c = llm_schema_cases(s, branch(u, i, false), u->type);
        case_list both = {0};
        add_both(s, u, &both, all.first, c);
        llm_cases_add(s, &all, c);
        llm_cases_add(s, &all, both.first);
    }
    return all.first;
}

static const cases *each_cases(schema *s, const word_use *u, bool every) {
    const cases *all = llm_cases_one(s, NULL);
    case_list any = {0};
    if (!is_schema_list(s, u))
        return NULL;
    if (u->traced && !every)
        return any_traced(s, u);
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        const cases *c = llm_schema_cases(s, branch(u, i, u->negated), u->type);
        if (every)
            all = llm_cases_and(s, u, all, c);
        else
            llm_cases_add(s, &any, c);
    }
    return every ? all : any.first;
}

SCALARS(all_of) {
    return each_scalars(s, u, !u->negated);
}
CASES(all_of) {
    return each_cases(s, u, !u->negated);
}
SCALARS(any_of) {
    return each_scalars(s, u, u->negated);
}
CASES(any_of) {
    return each_cases(s, u, u->negated);
}

SCALARS(not_of) {
    return llm_schema_scalars(s, (literal){.node = u->value, .negated = !u->negated}, u->type);
}
CASES(not_of) {
    return llm_schema_cases(s, (literal){.node = u->value, .negated = !u->negated}, u->type);
}

static const json_value *target(schema *s, const word_use *u) {
    if (u->value->kind != JSON_STRING) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a string");
        return NULL;
    }
    if (strcmp(u->word, "$recursiveRef") == 0)
        return llm_schema_recursive_target(s, u->node);
    return strcmp(u->word, "$ref") == 0 ? llm_schema_target(s, u->node, json_str(u->value))
                                        : llm_schema_dynamic_target(s, u->node, json_str(u->value));
}

SCALARS(ref) {
    const json_value *v = target(s, u);
    return v ? llm_schema_scalars(s, (literal){.node = v, .negated = u->negated}, u->type)
             : LLM_EXPR_NONE;
}
CASES(ref) {
    const json_value *v = target(s, u);
    const literal lit = {.node = v, .negated = u->negated, .traced = u->traced};
    return v ? llm_schema_cases(s, lit, u->type) : NULL;
}

/* --- oneOf ------------------------------------------------------------------------------------ */

static bool are_disjoint(schema *s, const word_use *u, uint32_t i, uint32_t k) {
    const literal a = {.node = &u->value->item[i]}, b = {.node = &u->value->item[k]};
    llm_exprs_count(s->g, 1);
    return llm_schema_are_disjoint(s, a, b, u->type);
}

/* Values that fit branch i and no other. */
static int32_t only_scalars(schema *s, const word_use *u, uint32_t i) {
    int32_t e = llm_schema_scalars(s, branch(u, i, false), u->type);
    for (uint32_t k = 0; k < u->value->n && e != LLM_EXPR_NONE && s->status == GGL_OK; k++)
        if (k != i && !are_disjoint(s, u, i, k))
            e = llm_set_and(s, u->type, e, llm_schema_scalars(s, branch(u, k, true), u->type));
    return e;
}

static const cases *only_cases(schema *s, const word_use *u, uint32_t i) {
    const cases *c = llm_schema_cases(s, branch(u, i, false), u->type);
    for (uint32_t k = 0; k < u->value->n && c && s->status == GGL_OK; k++)
        if (k != i && !are_disjoint(s, u, i, k))
            c = llm_cases_and(s, u, c, llm_schema_cases(s, branch(u, k, true), u->type));
    return c;
}

/* Values that fit branches i and k; for the negation. */
static int32_t both_scalars(schema *s, const word_use *u, uint32_t i, uint32_t k) {
    return llm_set_and(s, u->type, llm_schema_scalars(s, branch(u, i, false), u->type),
                       llm_schema_scalars(s, branch(u, k, false), u->type));
}

/* A text that a branch lists. */
typedef struct listed {
    int32_t text;
    uint32_t branch;
} listed;

static int compare_listed(const void *a, const void *b) {
    const listed *x = a, *y = b;
    return x->text != y->text      ? (x->text > y->text) - (x->text < y->text)
           : x->branch > y->branch ? 1
                                   : -(x->branch < y->branch);
}

/* How many texts the branches list, all together; -1: one is no list. */
static int64_t count_listed(schema *s, const word_use *u) {
    int64_t n = 0;
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        const int32_t e = llm_schema_scalars(s, branch(u, i, false), u->type);
        if (s->g->status != GGL_OK || !llm_expr_is_list(s->g, e))
            return -1;
        n += e == LLM_EXPR_NONE ? 0 : s->g->node[e].kind == LLM_EXPR_KIND_ALT ? s->g->node[e].n : 1;
    }
    return n;
}

/* The texts that one branch lists, and no other. Sorting finds those that two list: to compare each branch
 * with each would take long for thousands of constants. */
static int32_t only_listed(schema *s, const word_use *u, size_t n) {
    listed *l = llm_schema_alloc(s, n + 1, sizeof *l);
    int32_t *once = llm_schema_alloc(s, n + 1, sizeof *once), n_once = 0;
    size_t k = 0;
    for (uint32_t i = 0; l && once && i < u->value->n; i++) {
        const int32_t e = llm_schema_scalars(s, branch(u, i, false), u->type);
        const llm_expr *x = &s->g->node[e];
        const bool is_alt = e != LLM_EXPR_NONE && x->kind == LLM_EXPR_KIND_ALT;
        for (int32_t j = 0; e != LLM_EXPR_NONE && j < (is_alt ? x->n : 1); j++)
            l[k++] = (listed){is_alt ? s->g->arg[x->first + j] : e, i};
    }
    if (k > 1)
        qsort(l, k, sizeof *l, compare_listed);
    for (size_t i = 0, end; i < k; i = end) {
        for (end = i + 1; end < k && l[end].text == l[i].text; end++)
            ;
        if (l[end - 1].branch == l[i].branch)
            once[n_once++] = l[i].text;
    }
    return once ? llm_expr_alt(s->g, once, n_once) : LLM_EXPR_NONE;
}

SCALARS(one_of) {
    int32_t all = LLM_EXPR_NONE, n = 0;
    if (!is_schema_list(s, u))
        return all;
    const int64_t n_listed = u->negated ? -1 : count_listed(s, u);
    if (n_listed >= 0)
        return only_listed(s, u, (size_t)n_listed);
    if (u->negated) /* none, or two */
        all = each_scalars(s, u, true);
    int32_t *set = llm_schema_alloc(s, u->value->n, sizeof *set);
    for (uint32_t i = 0; set && i < u->value->n && s->status == GGL_OK; i++) {
        if (!u->negated)
            set[n++] = only_scalars(s, u, i);
        for (uint32_t k = 0; u->negated && k < i; k++)
            all = llm_set_or(s, u->type, all, both_scalars(s, u, i, k));
    }
    return u->negated || !set ? all : llm_set_or_all(s, u->type, set, n);
}

CASES(one_of) {
    case_list all = {0};
    if (!is_schema_list(s, u))
        return NULL;
    if (u->negated)
        llm_cases_add(s, &all, each_cases(s, u, true));
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        if (!u->negated)
            llm_cases_add(s, &all, only_cases(s, u, i));
        for (uint32_t k = 0; u->negated && k < i; k++)
            llm_cases_add(s, &all,
                          llm_cases_and(s, u, llm_schema_cases(s, branch(u, i, false), u->type),
                                        llm_schema_cases(s, branch(u, k, false), u->type)));
    }
    return all.first;
}

/* --- if, then, else --------------------------------------------------------------------------- */

/* The schema beside `if`; absent: true. */
static literal beside(schema *s, const word_use *u, const char *word) {
    const json_value *v = llm_json_get(u->node, word);
    return (literal){.node = v ? v : &s->always, .negated = u->negated, .traced = u->traced};
}

SCALARS(if_then) {
    const literal yes = {.node = u->value}, no = {.node = u->value, .negated = true};
    const int32_t a = llm_set_and(s, u->type, llm_schema_scalars(s, yes, u->type),
                                  llm_schema_scalars(s, beside(s, u, "then"), u->type));
    const int32_t b = llm_set_and(s, u->type, llm_schema_scalars(s, no, u->type),
                                  llm_schema_scalars(s, beside(s, u, "else"), u->type));
    return llm_set_or(s, u->type, a, b);
}

/* `if` and `branch`, unless the branch permits nothing, when `if` need not be understood. */
static const cases *guarded(schema *s, const word_use *u, literal condition, literal branch_lit) {
    const cases *c = llm_schema_cases(s, branch_lit, u->type);
    return c ? llm_cases_and(s, u, llm_schema_cases(s, condition, u->type), c) : NULL;
}

CASES(if_then) {
    const literal yes = {.node = u->value, .traced = u->traced};
    const literal no = {.node = u->value, .negated = true};
    if (!u->negated && !llm_json_get(u->node, "then") && !llm_json_get(u->node, "else"))
        return u->traced ? llm_cases_or(s, llm_schema_cases(s, yes, u->type), llm_seen_none(s))
                         : llm_cases_one(s, NULL);
    return llm_cases_or(s, guarded(s, u, yes, beside(s, u, "then")),
                        guarded(s, u, no, beside(s, u, "else")));
}
