/* The table of keywords, and the values of a schema as the conjunction of its keywords. */
#include "schema_seen.h"

#include <stdlib.h>

typedef struct word {
    const char *name;
    unsigned types; /* those it restricts; 0: an annotation */
    int32_t (*scalars)(schema *s, const word_use *u);
    const cases *(*cases)(schema *s, const word_use *u);
    bool first; /* evaluated before the others, as it often leaves no value */
} word;

#define NUM TYPE_BIT(TYPE_NUMBER)
#define STR TYPE_BIT(TYPE_STRING)
#define ARR TYPE_BIT(TYPE_ARRAY)
#define OBJ TYPE_BIT(TYPE_OBJECT)

/* Sorted by name. */
static const word words[] = {
    {"$anchor", 0, NULL, NULL, false},
    {"$comment", 0, NULL, NULL, false},
    {"$defs", 0, NULL, NULL, false},
    {"$dynamicAnchor", 0, NULL, NULL, false},
    {"$dynamicRef", TYPES_ALL, llm_scalars_ref, llm_cases_ref, false},
    {"$id", 0, NULL, NULL, false},
    {"$recursiveAnchor", 0, NULL, NULL, false},
    {"$recursiveRef", TYPES_ALL, llm_scalars_ref, llm_cases_ref, false},
    {"$ref", TYPES_ALL, llm_scalars_ref, llm_cases_ref, false},
    {"$schema", 0, NULL, NULL, false},
    {"$vocabulary", 0, NULL, NULL, false},
    {"additionalItems", ARR, NULL, llm_cases_items, false},
    {"additionalProperties", OBJ, NULL, llm_cases_properties, false},
    {"allOf", TYPES_ALL, llm_scalars_all_of, llm_cases_all_of, false},
    {"anyOf", TYPES_ALL, llm_scalars_any_of, llm_cases_any_of, false},
    {"const", TYPES_ALL, llm_scalars_constant, llm_cases_constant, true},
    {"contains", ARR, NULL, llm_cases_contains, false},
    {"contentEncoding", 0, NULL, NULL, false},
    {"contentMediaType", 0, NULL, NULL, false},
    {"contentSchema", 0, NULL, NULL, false},
    {"default", 0, NULL, NULL, false},
    {"definitions", 0, NULL, NULL, false},
    {"dependencies", OBJ, NULL, llm_cases_dependent, false},
    {"dependentRequired", OBJ, NULL, llm_cases_dependent, false},
    {"dependentSchemas", OBJ, NULL, llm_cases_dependent, false},
    {"deprecated", 0, NULL, NULL, false},
    {"description", 0, NULL, NULL, false},
    {"else", 0, NULL, NULL, false}, /* read with "if" */
    {"enum", TYPES_ALL, llm_scalars_enumeration, llm_cases_enumeration, true},
    {"example", 0, NULL, NULL, false},
    {"examples", 0, NULL, NULL, false},
    {"exclusiveMaximum", NUM, llm_scalars_bound, NULL, false},
    {"exclusiveMinimum", NUM, llm_scalars_bound, NULL, false},
    {"format", STR, llm_scalars_format, NULL, false},
    {"id", 0, NULL, NULL, false},
    {"if", TYPES_ALL, llm_scalars_if_then, llm_cases_if_then, false},
    {"items", ARR, NULL, llm_cases_items, false},
    {"maxContains", 0, NULL, NULL, false}, /* read with "contains" */
    {"maxItems", ARR, NULL, llm_cases_count, false},
    {"maxLength", STR, llm_scalars_length, NULL, false},
    {"maxProperties", OBJ, NULL, llm_cases_count, false},
    {"maximum", NUM, llm_scalars_bound, NULL, false},
    {"minContains", 0, NULL, NULL, false},
    {"minItems", ARR, NULL, llm_cases_count, false},
    {"minLength", STR, llm_scalars_length, NULL, false},
    {"minProperties", OBJ, NULL, llm_cases_count, false},
    {"minimum", NUM, llm_scalars_bound, NULL, false},
    {"multipleOf", NUM, llm_scalars_multiple, NULL, false},
    {"not", TYPES_ALL, llm_scalars_not_of, llm_cases_not_of, false},
    {"oneOf", TYPES_ALL, llm_scalars_one_of, llm_cases_one_of, false},
    {"pattern", STR, llm_scalars_pattern, NULL, false},
    {"patternProperties", OBJ, NULL, llm_cases_properties, false},
    {"prefixItems", ARR, NULL, llm_cases_items, false},
    {"properties", OBJ, NULL, llm_cases_properties, false},
    {"propertyNames", OBJ, NULL, llm_cases_names, false},
    {"readOnly", 0, NULL, NULL, false},
    {"required", OBJ, NULL, llm_cases_required, false},
    {"then", 0, NULL, NULL, false},
    {"title", 0, NULL, NULL, false},
    {"type", TYPES_ALL, llm_scalars_type, llm_cases_type, true},
    {"unevaluatedItems", ARR, NULL, llm_cases_unevaluated, false},
    {"unevaluatedProperties", OBJ, NULL, llm_cases_unevaluated, false},
    {"uniqueItems", ARR, NULL, llm_cases_unique, false},
    {"writeOnly", 0, NULL, NULL, false},
};

static int compare_word(const void *key, const void *row) {
    const ggl_str *name = key;
    const char *other = ((const word *)row)->name;
    const size_t n = strlen(other);
    const int c = memcmp(name->s, other, name->n < n ? name->n : n);
    return c ? c : name->n < n ? -1 : name->n > n;
}

static const word *find_word(ggl_str name) {
    return bsearch(&name, words, sizeof words / sizeof *words, sizeof *words, compare_word);
}

/* The i-th keyword as it restricts values of type t; NULL: it does not, or the status is set. */
static const word *word_for(schema *s, const json_value *node, uint32_t i, schema_type t,
                            word_use *u) {
    const word *w = find_word(json_name(node, i));
    u->value = &node->item[i];
    const ggl_str name = json_name(node, i);
    if (!w && !(name.n > 2 && memcmp(name.s, "x-", 2) == 0)) /* extensions, by convention */
        llm_schema_ignored(s, u->value, "not a keyword of JSON Schema; it has no effect");
    if (!w || !(w->types & TYPE_BIT(t)))
        return NULL;
    u->word = w->name;
    if (!w->scalars && !w->cases) {
        llm_schema_fail(s, GGL_UNSUPPORTED, node, w->name, "is not supported");
        return NULL;
    }
    return w;
}

/* Until draft 7, $ref hides the keywords beside it. Returns its index; -1: it does not. */
static int64_t hiding_ref(const schema *s, const json_value *node) {
    if (s->draft > 7)
        return -1;
    for (uint32_t i = 0; i < node->n; i++)
        if (ggl_str_is(json_name(node, i), "$ref") && node->item[i].kind == JSON_STRING)
            return i;
    return -1;
}

/* True if a schema is an object with keywords. False: it is true or false, and *answer is what it
 * says of every value; or after an error. */
static bool has_words(schema *s, literal lit, bool *answer) {
    *answer = lit.node->kind == JSON_BOOL && lit.node->flag != lit.negated;
    if (lit.node->kind != JSON_OBJECT && lit.node->kind != JSON_BOOL)
        llm_schema_fail(s, GGL_FORMAT, lit.node, NULL,
                        "a schema must be an object, true or false, not %s",
                        llm_json_kind_text((json_kind)lit.node->kind));
    return lit.node->kind == JSON_OBJECT;
}

static bool enter(schema *s, const json_value *node) {
    if (s->status != GGL_OK || s->g->status != GGL_OK)
        return false;
    if (s->depth >= SCHEMA_MAX_DEPTH) {
        llm_schema_fail(s, GGL_LIMIT, node, NULL,
                        "schemas are nested more than %d deep, or $ref leads back to itself",
                        SCHEMA_MAX_DEPTH);
        return false;
    }
    s->depth++;
    return true;
}

/* --- one of several conditions ---------------------------------------------------------------- */

static literal any_part(literal lit, size_t i) {
    literal part = ((const any_literal *)(const void *)lit.node)->lit[i];
    part.negated = part.negated != lit.negated;
    return part;
}

static int32_t any_scalars(schema *s, literal lit, schema_type t) {
    const size_t n = ((const any_literal *)(const void *)lit.node)->n;
    int32_t *set = llm_schema_alloc(s, n, sizeof *set);
    for (size_t i = 0; set && i < n; i++)
        set[i] = llm_schema_scalars(s, any_part(lit, i), t);
    return !set          ? LLM_EXPR_NONE
           : lit.negated ? llm_set_and_all(s, t, set, (int32_t)n)
                         : llm_set_or_all(s, t, set, (int32_t)n);
}

static const cases *any_cases(schema *s, literal lit, schema_type t) {
    const size_t n = ((const any_literal *)(const void *)lit.node)->n;
    const word_use u = {.type = t};
    const cases *all = lit.negated ? llm_cases_one(s, NULL) : NULL;
    for (size_t i = 0; i < n && s->status == GGL_OK; i++) {
        const cases *c = llm_schema_cases(s, any_part(lit, i), t);
        all = lit.negated ? llm_cases_and(s, &u, all, c) : llm_cases_or(s, all, c);
    }
    return all;
}

/* --- scalars ---------------------------------------------------------------------------------- */

static int32_t words_scalars(schema *s, literal lit, schema_type t) {
    const json_value *v = lit.node;
    const int64_t only = hiding_ref(s, v);
    int32_t all = lit.negated ? LLM_EXPR_NONE : s->universe[t];
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < v->n && s->status == GGL_OK; i++) {
            word_use u = {.node = v, .type = t, .negated = lit.negated};
            const word *w = only >= 0 && only != i ? NULL : word_for(s, v, i, t, &u);
            if (!w || !w->scalars || w->first != (pass == 0) ||
                all == (lit.negated ? s->universe[t] : LLM_EXPR_NONE))
                continue;
            const int32_t e = w->scalars(s, &u);
            all = lit.negated ? llm_set_or(s, t, all, e) : llm_set_and(s, t, all, e);
        }
    return all;
}

/* The text of a scalar value; TYPE_STRING: decoded. */
static int32_t value_text(schema *s, const json_value *v, bool all) {
    switch (v->kind) {
    case JSON_NULL:
        return s->universe[TYPE_NULL];
    case JSON_BOOL:
        return llm_expr_text(s->g, v->flag ? (ggl_str){"true", 4} : (ggl_str){"false", 5});
    case JSON_NUMBER:
        return llm_schema_number(s, v, all);
    default:
        return llm_expr_text(s->g, json_str(v));
    }
}

static int32_t value_scalars(schema *s, literal lit, schema_type t) {
    const bool same = llm_schema_type_of(lit.node) == t;
    if (!same)
        return lit.negated ? s->universe[t] : LLM_EXPR_NONE;
    const int32_t e = value_text(s, lit.node, lit.negated);
    return lit.negated ? llm_set_not(s, t, e) : e;
}

static unsigned memo_bits(literal lit, schema_type t) {
    return (unsigned)t << 2 | (unsigned)lit.is_value << 1 | lit.negated;
}

int32_t llm_schema_scalars(schema *s, literal lit, schema_type t) {
    bool answer;
    if (lit.is_value)
        return value_scalars(s, lit, t);
    if (lit.is_any)
        return any_scalars(s, lit, t);
    if (!has_words(s, lit, &answer))
        return answer ? s->universe[t] : LLM_EXPR_NONE;
    const void **slot = llm_schema_slot(s, &s->memo, lit.node, memo_bits(lit, t));
    if (slot && *slot)
        return (int32_t)(uintptr_t)*slot - 1;
    if (!enter(s, lit.node))
        return LLM_EXPR_NONE;
    const int32_t e = words_scalars(s, lit, t);
    s->depth--;
    slot = llm_schema_slot(s, &s->memo, lit.node, memo_bits(lit, t)); /* it may have moved */
    if (slot)
        *slot = (const void *)(uintptr_t)(e + 1);
    return e;
}

/* --- arrays and objects ----------------------------------------------------------------------- */

/* The value of the keyword for elements that the others do not evaluate; NULL if none. */
static const json_value *unevaluated_of(schema *s, literal lit, schema_type t) {
    const char *name = t == TYPE_ARRAY ? "unevaluatedItems" : "unevaluatedProperties";
    const json_value *v =
        lit.negated || hiding_ref(s, lit.node) >= 0 ? NULL : llm_json_get(lit.node, name);
    bool answer;
    if (v)
        (void)has_words(s, (literal){.node = v}, &answer);
    return s->status == GGL_OK ? v : NULL;
}

/* Returns the cases with the condition on members or items that are not evaluated, or, if
 * lit.traced, with those that are. */
static const cases *with_others(schema *s, literal lit, schema_type t, const cases *all,
                                const json_value *others) {
    case_list possible = {0};
    if (!others)
        return lit.traced && all && !all->facets ? llm_seen_none(s) : all;
    all = llm_seen_others(s, lit.node, t, all, (literal){.node = others}, lit.traced);
    for (const cases *c = all; c && s->status == GGL_OK; c = c->next)
        if (!llm_case_is_never(s, t, c->facets))
            llm_cases_add(s, &possible, llm_cases_of(s, c->facets));
    return possible.first;
}

/* Returns the cases of all keywords, but without unevaluatedProperties and unevaluatedItems. */
static const cases *join_words(schema *s, literal lit, schema_type t) {
    const json_value *v = lit.node;
    const int64_t only = hiding_ref(s, v);
    const cases *all = lit.negated ? NULL : llm_cases_one(s, NULL);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < v->n && s->status == GGL_OK; i++) {
            word_use u = {.node = v, .type = t, .negated = lit.negated, .traced = lit.traced};
            const word *w = only >= 0 && only != i ? NULL : word_for(s, v, i, t, &u);
            if (!w || !w->cases || w->first != (pass == 0) || (!all && !lit.negated))
                continue;
            const cases *c = w->cases(s, &u);
            all = lit.negated ? llm_cases_or(s, all, c) : llm_cases_and(s, &u, all, c);
        }
    return all;
}

static const cases *words_cases(schema *s, literal lit, schema_type t) {
    const json_value *others = unevaluated_of(s, lit, t);
    literal own = lit;
    own.traced = lit.traced || others;
    return with_others(s, lit, t, join_words(s, own, t), others);
}

const cases *llm_schema_traced(schema *s, const json_value *node, schema_type t) {
    return join_words(s, (literal){.node = node, .traced = true}, t);
}

/* Arrays (objects) that are not equal to the value. */
static const cases *unlike_value(schema *s, const json_value *v, schema_type t) {
    case_list all = {0};
    const literal none = {.node = &s->never};
    for (uint32_t i = 0; i < v->n && s->status == GGL_OK; i++) {
        facet f = {.kind = t == TYPE_OBJECT ? FACET_PROPERTY : FACET_ITEM,
                   .n = t == TYPE_ARRAY ? i : 0,
                   .lit = {.node = &v->item[i], .is_value = true, .negated = true}};
        if (t == TYPE_OBJECT)
            f.name = json_name(v, i);
        const cases *other = llm_cases_one(s, &f);
        f.lit = none; /* or it is missing */
        if (t == TYPE_OBJECT)
            llm_cases_add(s, &all, llm_cases_one(s, &f));
        llm_cases_add(s, &all, other);
    }
    const facet longer =
        t == TYPE_ARRAY
            ? (facet){.kind = FACET_MIN, .n = (int64_t)v->n + 1}
            : (facet){
                  .kind = FACET_EXTRA, .node = v, .value_names = true, .lit = {.node = &s->always}};
    const facet shorter = {.kind = FACET_MAX, .n = (int64_t)v->n - 1};
    llm_cases_add(s, &all, llm_cases_one(s, &longer));
    if (t == TYPE_ARRAY && v->n > 0)
        llm_cases_add(s, &all, llm_cases_one(s, &shorter));
    return all.first;
}

static const cases *value_cases(schema *s, literal lit, schema_type t) {
    if (llm_schema_type_of(lit.node) != t)
        return lit.negated ? llm_cases_one(s, NULL) : NULL;
    if (lit.negated)
        return unlike_value(s, lit.node, t);
    return llm_cases_one(s,
                         &(facet){.kind = t == TYPE_OBJECT ? FACET_VALUE_OBJECT : FACET_VALUE_ARRAY,
                                  .node = lit.node});
}

const cases *llm_schema_cases(schema *s, literal lit, schema_type t) {
    bool answer;
    if (lit.is_value)
        return value_cases(s, lit, t);
    if (lit.is_any)
        return any_cases(s, lit, t);
    if (!has_words(s, lit, &answer))
        return !answer ? NULL : lit.traced ? llm_seen_none(s) : llm_cases_one(s, NULL);
    const unsigned bits = memo_bits(lit, t) | 1u << 8 | (unsigned)lit.traced << 10;
    const void **slot = llm_schema_slot(s, &s->memo, lit.node, bits);
    if (slot && *slot)
        return *slot == s ? NULL : *slot; /* the compiler itself stands for no case */
    if (!enter(s, lit.node))
        return NULL;
    const cases *c = words_cases(s, lit, t);
    s->depth--;
    slot = llm_schema_slot(s, &s->memo, lit.node, bits);
    if (slot)
        *slot = c ? (const void *)c : s;
    return c;
}
