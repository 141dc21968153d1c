/* The compiler of JSON schemas, between its files.
 *
 * A schema is compiled for each of JSON's types on its own. The valid values of a scalar type are a
 * regular set of texts, and keywords become operations on such sets. The valid arrays (objects) are
 * the union of cases; a case is a conjunction of facets, such as "has the property a" or "the
 * property b is valid under this schema". What a facet says of an element is compiled later, as a rule of
 * its own, so that schemas may be recursive. Negation is pushed down to the keywords. */
#ifndef LLM_GRAMMAR_SCHEMA_IMPL_H
#define LLM_GRAMMAR_SCHEMA_IMPL_H

#include "common/json.h"
#include "expr_text.h"
#include "ggl/alloc.h"
#include "schema.h"

typedef enum schema_type {
    TYPE_NULL,
    TYPE_BOOL,
    TYPE_NUMBER,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_OBJECT,
    N_TYPES
} schema_type;

#define TYPE_BIT(t) (1u << (t))
enum { TYPES_ALL = (1 << N_TYPES) - 1, TYPES_SCALAR = (1 << TYPE_ARRAY) - 1 };

/* A condition on a value: it is valid under a schema, or equal to a value, or fits an any_literal; or, if
 * `negated`, not. The cases of a traced schema also say what it evaluates (schema_seen.h). */
typedef struct literal {
    const json_value *node;
    bool is_value, is_any, negated, traced;
} literal;

/* One of n conditions holds; the node of a literal is its `head`. */
typedef struct any_literal {
    json_value head;
    const literal *lit;
    size_t n;
} any_literal;

typedef enum facet_kind {
    FACET_PROPERTIES, /* properties, patternProperties, additionalProperties of the schema `node` */
    FACET_PROPERTY,   /* the property `name`, if there is one, fits `lit` */
    FACET_HAS,        /* there is a property `name` */
    FACET_EXTRA,      /* a property that `node` does not name fits `lit` */
    FACET_NAMES,      /* all names fit `lit` */
    FACET_MIN,        /* at least n elements */
    FACET_MAX,        /* at most n elements */
    FACET_VALUE_OBJECT, /* the properties of the value `node`, and no others */
    FACET_VALUE_ARRAY,  /* the items of the value `node`, and no others */
    FACET_ITEMS,        /* items and what is related, of the schema `node` */
    FACET_ITEM,         /* the n-th item, if there is one, fits `lit` */
    FACET_EACH,         /* all items from n on fit `lit` */
    FACET_SOME,         /* `least` to `most` items from n on fit `lit` */
    FACET_UNIQUE,       /* no two items are equal */
    FACET_OTHERS,       /* properties that no facet of `seen` names fit `lit` */
    /* what is evaluated; no condition: */
    FACET_SEEN,       /* properties that properties and patternProperties of `node` name */
    FACET_SEEN_ITEMS, /* the first n items */
    FACET_SEEN_SOME,  /* items that fit `lit` */
    FACET_SEEN_ALL,
    FACET_REFUSED /* what can't be guaranteed: keyword `name` of `node`, `why` */
} facet_kind;

typedef struct facet {
    facet_kind kind;
    literal lit;
    const json_value *node;
    ggl_str name;
    int64_t n;
    int64_t least, most; /* most LLM_EXPR_MANY: no limit */
    const char *why;
    bool value_names; /* EXTRA: `node` is a value, not a schema */
    bool by_seen;     /* EXTRA: a property that no facet of `seen` names, in place of `node` */
    const struct facet *seen; /* OTHERS, EXTRA */
    const struct facet *next;
} facet;

/* A list of cases; NULL: no value at all. */
typedef struct cases {
    const facet *facets; /* NULL: any value */
    const struct cases *next;
} cases;

/* A part of the document with a URI of its own. */
typedef struct resource {
    ggl_str uri; /* without fragment */
    const json_value *node;
} resource;

typedef struct anchor {
    int32_t resource;
    ggl_str name;
    const json_value *node;
    bool is_dynamic;
} anchor;

/* A map from a pointer and some bits to a value. */
typedef struct ptr_entry {
    const void *key;
    unsigned bits;
    const void *value;
} ptr_entry;
typedef struct ptr_map {
    ptr_entry *entry;
    size_t n, cap;
} ptr_map;

/* A conjunction of literals, whose values became a rule. */
typedef struct conjunction {
    literal *lit;
    size_t n;
    bool busy; /* what follows is being found out */
    int32_t scalars;
    const cases *shapes[2];   /* arrays, objects */
    int32_t rule;             /* -1: not needed yet */
    struct conjunction *next; /* of the same hash */
} conjunction;

enum {
    SCHEMA_MAX_CASES = 1 << 14, /* cases of one list */
    SCHEMA_MAX_DEPTH = 200,     /* nested applicators */
    SCHEMA_MAX_ITEMS = 1 << 10, /* items with schemas of their own */
    SCHEMA_MAX_APART = 32,      /* items that must not be equal to any other */
    SCHEMA_MAX_PATTERNS = 8,    /* patterns of names that may overlap */
    SCHEMA_BUCKETS = 1 << 12
};

typedef struct schema {
    llm_exprs *g;
    llm_json *doc;
    const char *name;
    llm_schema_params params;
    bool hides_less; /* '<' in a JSON string is never spelled as itself */
    ggl_error *err;
    ggl_status status;
    ggl_arena arena;
    int draft;                 /* 4, 6, 7, 2019, 2020 */
    int depth, levels;         /* of nested applicators, and of elements that are looked into */
    json_value always, never;  /* the schemas true and false */
    int32_t universe[N_TYPES]; /* the scalar types' texts; strings: decoded */
    int32_t any_string;        /* JSON text of any string */
    int32_t space, comma, colon;
    int32_t integer, fraction; /* numbers: integers, all that are not; without exponents */
    int32_t plain_number;      /* all numbers, of the spellings that bounds know */
    /* strings */
    int32_t *encoded; /* [cap] by expression; 0: not yet */
    size_t n_encoded;
    int32_t encoded_text;
    /* references */
    resource *resource;
    size_t n_resources, cap_resources;
    anchor *anchor;
    size_t n_anchors, cap_anchors;
    ptr_map home;   /* objects with references: their resource, plus 1 */
    ptr_map memo;   /* scalars and cases of schemas */
    ptr_map parent; /* of each value in the document, once a message or a rule needs a place */
    conjunction **bucket;
    conjunction **queue; /* rules whose bodies are not built yet */
    size_t n_queue, cap_queue, n_done;
} schema;

/* A keyword of a schema as it restricts values of one type. */
typedef struct word_use {
    const json_value *node;  /* the schema */
    const json_value *value; /* the keyword's value */
    const char *word;
    schema_type type;
    bool negated, traced; /* see literal */
} word_use;

/* --- schema_base.c ---------------------------------------------------------------------------- */

/* Sets the status and the message: "NAME: #/place/keyword: ..". `keyword` may be NULL. */
void llm_schema_fail(schema *s, ggl_status st, const json_value *node, const char *keyword,
                     const char *fmt, ...) GGL_PRINTF(5, 6);
/* Tells the caller, once, that a keyword's value has no effect. */
void llm_schema_ignored(schema *s, const json_value *value, const char *why);
/* Writes the JSON pointer of `node` after the `at` bytes in buf. Returns its end; 0: the node is not in
 * the document, or its pointer is too long for a message. */
size_t llm_schema_place(schema *s, const json_value *node, char *buf, size_t at, size_t size);
/* Zeroed memory of the compiler; NULL and a status when out of memory. */
void *llm_schema_alloc(schema *s, size_t n, size_t size);
const void **llm_schema_slot(schema *s, ptr_map *m, const void *key, unsigned bits);
schema_type llm_schema_type_of(const json_value *v);
/* The object of schemas that is the value of a keyword; NULL: it is absent, or the status is set. */
const json_value *llm_schema_table(schema *s, const json_value *node, const char *word);
/* The value of a keyword that is a count; false: the status is set. */
bool llm_schema_count(schema *s, const word_use *u, int64_t *n);

/* --- schema.c --------------------------------------------------------------------------------- */

/* The JSON texts of the values that fit all n literals; LLM_EXPR_NONE if none. */
int32_t llm_schema_values(schema *s, const literal *lit, size_t n);
/* True if no value fits all of them; false if that is not easily seen. */
bool llm_schema_is_never(schema *s, const literal *lit, size_t n);
/* The same for two conditions on values of one type. */
bool llm_schema_are_disjoint(schema *s, literal a, literal b, schema_type t);

/* Gives the rules that are used their bodies, which may use more rules. */
void llm_schema_build_rules(schema *s);

/* --- schema_empty.c ---------------------------------------------------------------------------- */

/* If no value is valid under the document, says so in `err` with the part that is the reason: the last
 * of those that must have a value and have none. Changes nothing if that is not so. */
void llm_schema_blame_empty(schema *s, ggl_error *err);

/* --- schema_words.c: scalars and cases of a schema, keyword by keyword ------------------------- */

int32_t llm_schema_scalars(schema *s, literal lit, schema_type t);
const cases *llm_schema_cases(schema *s, literal lit, schema_type t);
/* The cases of a schema without unevaluatedProperties and unevaluatedItems, with what they evaluate. */
const cases *llm_schema_traced(schema *s, const json_value *node, schema_type t);

/* --- schema_apply.c: keywords that combine schemas --------------------------------------------- */

#define SCALARS(name) int32_t llm_scalars_##name(schema *s, const word_use *u)
#define CASES(name)   const cases *llm_cases_##name(schema *s, const word_use *u)

SCALARS(all_of);
CASES(all_of);
SCALARS(any_of);
CASES(any_of);
SCALARS(one_of);
CASES(one_of);
SCALARS(not_of);
CASES(not_of);
SCALARS(if_then);
CASES(if_then);
SCALARS(ref);
CASES(ref);
SCALARS(type);
CASES(type);
SCALARS(enumeration);
CASES(enumeration);
SCALARS(constant);
CASES(constant);
/* schema_number.c */
SCALARS(bound);
SCALARS(multiple);
/* schema_string.c */
SCALARS(length);
SCALARS(pattern);
SCALARS(format);
/* schema_object.c */
CASES(properties);
CASES(required);
CASES(count);
CASES(names);
CASES(dependent);
CASES(unevaluated);
/* schema_array.c */
CASES(items);
CASES(contains);
CASES(unique);

/* --- schema_set.c: sets of texts, and lists of cases ------------------------------------------- */

int32_t llm_set_and(schema *s, schema_type t, int32_t a, int32_t b);
int32_t llm_set_or(schema *s, schema_type t, int32_t a, int32_t b);
/* The same for n sets. */
int32_t llm_set_and_all(schema *s, schema_type t, int32_t *set, int32_t n);
int32_t llm_set_or_all(schema *s, schema_type t, const int32_t *set, int32_t n);
/* The texts of type t that are not in a, which must have all spellings of its values. */
int32_t llm_set_not(schema *s, schema_type t, int32_t a);

/* The list of one case with one facet (NULL: any value). */
const cases *llm_cases_one(schema *s, const facet *f);
/* The list of one case with these facets. */
const cases *llm_cases_of(schema *s, const facet *all);
const cases *llm_cases_or(schema *s, const cases *a, const cases *b);
const cases *llm_cases_and(schema *s, const word_use *u, const cases *a, const cases *b);
/* True if it is certain that no value has these facets. */
bool llm_case_is_never(schema *s, schema_type t, const facet *f);

/* A union under construction, zeroed at first; `first` is its list of cases. */
typedef struct case_list {
    const cases *first;
    cases *last; /* its own; NULL: nothing more can be added */
    size_t n;
} case_list;
void llm_cases_add(schema *s, case_list *l, const cases *c);

/* --- schema_ref.c ------------------------------------------------------------------------------ */

bool llm_schema_index(schema *s);
/* The target of $ref, whose schema object is `node`; NULL: the status is set. */
const json_value *llm_schema_target(schema *s, const json_value *node, ggl_str ref);
/* The same of $dynamicRef and $recursiveRef; GGL_UNSUPPORTED if it is not the same one always. */
const json_value *llm_schema_dynamic_target(schema *s, const json_value *node, ggl_str ref);
const json_value *llm_schema_recursive_target(schema *s, const json_value *node);

/* --- the types --------------------------------------------------------------------------------- */

void llm_schema_begin_numbers(schema *s);
void llm_schema_begin_strings(schema *s);
/* The texts equal to a number: all spellings, or the usual ones. */
int32_t llm_schema_number(schema *s, const json_value *v, bool all);
/* The JSON spellings of a set of decoded texts, without the quotes. */
int32_t llm_schema_encode(schema *s, int32_t decoded);
int32_t llm_schema_string(schema *s, int32_t decoded); /* with the quotes */
/* The pattern as a set of decoded texts. */
int32_t llm_schema_pattern(schema *s, const json_value *node, const char *word, ggl_str pattern);

int32_t llm_schema_object(schema *s, const facet *f);
int32_t llm_schema_array(schema *s, const facet *f);
bool llm_object_is_never(schema *s, const facet *f);
bool llm_array_is_never(schema *s, const facet *f);

#endif
