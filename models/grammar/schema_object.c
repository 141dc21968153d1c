/* Objects: a case's facets become the members that an object may have. */
#include "schema_members.h"
#include "schema_seen.h"

/* A set of names that the names of a class are in, or that none of them is in. */
typedef struct known {
    int32_t names;
    bool in;
    const struct known *next;
} known;

/* Names that no facet spells out, and what their values must fit. */
typedef struct rest_class {
    int32_t names; /* decoded */
    literal *lit;
    size_t n;
    bool fresh; /* no pattern of the source at hand matches */
    const struct known *known;
    struct rest_class *next;
} rest_class;

typedef struct view {
    schema *s;
    const facet *facets;
    member_table table;
    rest_class *rest;
    int64_t min, max;
    const json_value *count_node; /* the schema with minProperties */
} view;

/* --- members ---------------------------------------------------------------------------------- */

static member *member_of(view *v, ggl_str name) {
    return llm_member_of(v->s, &v->table, name);
}

static void require_literal(view *v, member *m, literal lit) {
    if (m)
        llm_lits_add(v->s, &m->lits, lit);
}

/* Marks the members that the facets name as those of a source. */
static void mark_seen(view *v, const facet *seen, uint32_t stamp) {
    for (const facet *f = seen; f && v->s->status == GGL_OK; f = f->next) {
        const json_value *names = llm_schema_table(v->s, f->node, "properties");
        llm_exprs_count(v->s->g, 1 + (names ? names->n / 4 : 0));
        for (uint32_t i = 0; names && i < names->n; i++) {
            member *m = member_of(v, json_name(names, i));
            if (m && stamp > 0)
                m->source = stamp;
        }
    }
}

static bool name_fits(schema *s, const json_value *node, ggl_str pattern, ggl_str name) {
    const int32_t e = llm_schema_pattern(s, node, "patternProperties", pattern);
    return llm_expr_matches(s->g, e, name);
}

/* The names that a facet mentions become members, in order. */
static void collect_names(view *v, const facet *f) {
    const bool has_table = f->kind == FACET_PROPERTIES || (f->kind == FACET_EXTRA && !f->by_seen);
    const json_value *names = has_table ? llm_schema_table(v->s, f->node, "properties") : NULL;
    if (f->kind == FACET_VALUE_OBJECT || (f->kind == FACET_EXTRA && f->value_names))
        names = f->node;
    for (uint32_t i = 0; names && i < names->n && v->s->status == GGL_OK; i++) {
        member *m = member_of(v, json_name(names, i));
        if (m && f->kind == FACET_VALUE_OBJECT)
            m->required = true;
    }
    mark_seen(v, f->seen, 0);
    if (f->kind == FACET_HAS || f->kind == FACET_PROPERTY) {
        member *m = member_of(v, f->name);
        if (m && f->kind == FACET_HAS)
            m->required = true;
    }
}

/* What a schema's properties, patternProperties and additionalProperties say of the members. */
static void apply_properties(view *v, const json_value *node, uint32_t stamp) {
    schema *s = v->s;
    const json_value *table = llm_schema_table(s, node, "properties");
    const json_value *patterns = llm_schema_table(s, node, "patternProperties");
    const json_value *others = llm_json_get(node, "additionalProperties");
    for (uint32_t i = 0; table && i < table->n && s->status == GGL_OK; i++) {
        member *m = member_of(v, json_name(table, i));
        require_literal(v, m, (literal){.node = &table->item[i]});
        if (m)
            m->source = stamp;
    }
    for (size_t k = 0; k < v->table.n && s->status == GGL_OK; k++) {
        member *m = &v->table.m[k];
        bool named = m->source == stamp;
        for (uint32_t i = 0; patterns && i < patterns->n; i++)
            if (name_fits(s, node, json_name(patterns, i), m->name)) {
                require_literal(v, m, (literal){.node = &patterns->item[i]});
                named = true;
            }
        if (!named && others)
            require_literal(v, m, (literal){.node = others});
    }
}

static bool matches_seen(schema *s, const facet *seen, ggl_str name) {
    for (const facet *f = seen; f; f = f->next) {
        const json_value *patterns = llm_schema_table(s, f->node, "patternProperties");
        for (uint32_t i = 0; patterns && i < patterns->n; i++)
            if (name_fits(s, f->node, json_name(patterns, i), name))
                return true;
    }
    return false;
}

/* Applies an OTHERS facet to the members. */
static void apply_others(view *v, const facet *f, uint32_t stamp) {
    mark_seen(v, f->seen, stamp);
    for (size_t k = 0; k < v->table.n && v->s->status == GGL_OK; k++)
        if (v->table.m[k].source != stamp && !matches_seen(v->s, f->seen, v->table.m[k].name))
            require_literal(v, &v->table.m[k], f->lit);
}

static void apply_value(view *v, const json_value *value, uint32_t stamp) {
    for (uint32_t i = 0; i < value->n; i++) {
        member *m = member_of(v, json_name(value, i));
        require_literal(v, m, (literal){.node = &value->item[i], .is_value = true});
        if (m)
            m->source = stamp;
    }
    for (size_t k = 0; k < v->table.n; k++)
        if (v->table.m[k].source != stamp)
            require_literal(v, &v->table.m[k], (literal){.node = &v->s->never});
}

static void apply_names(view *v, literal lit) {
    const int32_t set = llm_schema_scalars(v->s, lit, TYPE_STRING);
    for (size_t k = 0; k < v->table.n; k++)
        if (!llm_expr_matches(v->s->g, set, v->table.m[k].name))
            require_literal(v, &v->table.m[k], (literal){.node = &v->s->never});
}

static void apply_facet(view *v, const facet *f, uint32_t stamp) {
    switch (f->kind) {
    case FACET_PROPERTIES:
        apply_properties(v, f->node, stamp);
        break;
    case FACET_VALUE_OBJECT:
        apply_value(v, f->node, stamp);
        break;
    case FACET_PROPERTY:
        require_literal(v, member_of(v, f->name), f->lit);
        break;
    case FACET_NAMES:
        apply_names(v, f->lit);
        break;
    case FACET_OTHERS:
        apply_others(v, f, stamp);
        break;
    case FACET_MIN:
        v->min = f->n > v->min ? f->n : v->min;
        break;
    case FACET_MAX:
        v->max = v->max == LLM_EXPR_MANY || f->n < v->max ? f->n : v->max;
        break;
    default:
        break;
    }
}

static void open_view(view *v, schema *s, const facet *facets) {
    *v = (view){.s = s, .facets = facets, .max = LLM_EXPR_MANY};
    if (!llm_members_widen(s, &v->table))
        return;
    for (const facet *f = facets; f; f = f->next)
        collect_names(v, f);
    uint32_t stamp = 0;
    for (const facet *f = facets; f && s->status == GGL_OK; f = f->next)
        apply_facet(v, f, ++stamp);
}

bool llm_object_is_never(schema *s, const facet *facets) {
    view v;
    if (!facets || !facets->next)
        return false;
    open_view(&v, s, facets);
    int64_t n_required = 0;
    for (size_t i = 0; i < v.table.n && s->status == GGL_OK; i++) {
        n_required += v.table.m[i].required;
        if (v.table.m[i].required &&
            llm_schema_is_never(s, v.table.m[i].lits.lit, v.table.m[i].lits.n))
            return true;
    }
    return v.max != LLM_EXPR_MANY && (v.max < n_required || v.max < v.min);
}

/* --- other names ------------------------------------------------------------------------------ */

/* Adds a condition to a class; false: nothing fits it any more. */
static bool class_literal(schema *s, rest_class *c, literal lit) {
    size_t cap = c->n; /* lists are shared between classes: always copied */
    literal *own = llm_schema_alloc(s, cap + 1, sizeof *own);
    if (!own)
        return false;
    if (c->n > 0)
        memcpy(own, c->lit, c->n * sizeof *own);
    own[c->n++] = lit;
    c->lit = own;
    return !llm_schema_is_never(s, c->lit, c->n);
}

static rest_class *class_copy(schema *s, const rest_class *c, int32_t names) {
    rest_class *copy = llm_schema_alloc(s, 1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *c;
    copy->next = NULL;
    copy->names = llm_set_and(s, TYPE_STRING, c->names, names);
    copy->fresh = true;
    return copy->names == LLM_EXPR_NONE ? NULL : copy;
}

static const known *find_known(const rest_class *c, int32_t names) {
    const known *k = c->known;
    while (k && k->names != names)
        k = k->next;
    return k;
}

/* The names of a class that are in the set (or not); NULL if none. */
static rest_class *class_part(schema *s, const rest_class *c, int32_t names, bool in) {
    const known *k = find_known(c, names);
    if (k && k->in != in)
        return NULL;
    const int32_t set = k    ? s->universe[TYPE_STRING]
                        : in ? names
                             : llm_set_not(s, TYPE_STRING, names);
    rest_class *part = class_copy(s, c, set);
    known *own = k || !part ? NULL : llm_schema_alloc(s, 1, sizeof *own);
    if (own) {
        *own = (known){.names = names, .in = in, .next = c->known};
        part->known = own;
    }
    if (part)
        part->fresh = c->fresh && !in;
    return part;
}

/* Splits each class into the names that match a pattern, which must fit `lit`, and the others. */
static void split(view *v, int32_t names, literal lit) {
    schema *s = v->s;
    rest_class *all = NULL, **end = &all;
    for (rest_class *c = v->rest; c && s->status == GGL_OK; c = c->next) {
        rest_class *in = class_part(s, c, names, true);
        rest_class *out = class_part(s, c, names, false);
        if (in && class_literal(s, in, lit)) {
            *end = in;
            end = &in->next;
        }
        if (out) {
            *end = out;
            end = &out->next;
        }
    }
    v->rest = all;
}

/* Adds a condition to the classes, or to those that no pattern of this source matched. */
static void restrict_rest(view *v, literal lit, bool fresh_only) {
    rest_class *all = NULL, **end = &all;
    for (rest_class *c = v->rest, *next; c; c = next) {
        next = c->next;
        c->next = NULL;
        if ((fresh_only && !c->fresh) || class_literal(v->s, c, lit)) {
            *end = c;
            end = &c->next;
        }
    }
    v->rest = all;
}

static void rest_of_properties(view *v, const json_value *node) {
    schema *s = v->s;
    const json_value *patterns = llm_schema_table(s, node, "patternProperties");
    const json_value *others = llm_json_get(node, "additionalProperties");
    for (rest_class *c = v->rest; c; c = c->next)
        c->fresh = true;
    if (patterns && patterns->n > SCHEMA_MAX_PATTERNS) {
        llm_schema_fail(s, GGL_UNSUPPORTED, node, "patternProperties",
                        "more than %d patterns are not supported", SCHEMA_MAX_PATTERNS);
        return;
    }
    for (uint32_t i = 0; patterns && i < patterns->n && s->status == GGL_OK; i++)
        split(v, llm_schema_pattern(s, node, "patternProperties", json_name(patterns, i)),
              (literal){.node = &patterns->item[i]});
    if (others)
        restrict_rest(v, (literal){.node = others}, true);
}

static void rest_of_others(view *v, const facet *others) {
    schema *s = v->s;
    for (rest_class *c = v->rest; c; c = c->next)
        c->fresh = true;
    for (const facet *f = others->seen; f && s->status == GGL_OK; f = f->next) {
        const json_value *patterns = llm_schema_table(s, f->node, "patternProperties");
        for (uint32_t i = 0; patterns && i < patterns->n && s->status == GGL_OK; i++)
            split(v, llm_schema_pattern(s, f->node, "patternProperties", json_name(patterns, i)),
                  (literal){.node = &s->always});
    }
    restrict_rest(v, others->lit, true);
}

/* The names that no member has. */
static int32_t other_names(const view *v) {
    llm_exprs *g = v->s->g;
    int32_t *name = llm_schema_alloc(v->s, v->table.n + 1, sizeof *name);
    if (!name || v->table.n == 0)
        return v->s->universe[TYPE_STRING];
    for (size_t i = 0; i < v->table.n; i++)
        name[i] = llm_expr_text(g, v->table.m[i].name);
    return llm_expr_not(g, llm_expr_alt(g, name, (int32_t)v->table.n));
}

/* Finds the classes of names that no member has. */
static void open_rest(view *v) {
    schema *s = v->s;
    v->rest = llm_schema_alloc(s, 1, sizeof *v->rest);
    if (!v->rest)
        return;
    v->rest->names = other_names(v);
    for (const facet *f = v->facets; f && v->rest && s->status == GGL_OK; f = f->next) {
        if (f->kind == FACET_PROPERTIES)
            rest_of_properties(v, f->node);
        else if (f->kind == FACET_OTHERS)
            rest_of_others(v, f);
        else if (f->kind == FACET_VALUE_OBJECT)
            v->rest = NULL;
        else if (f->kind == FACET_NAMES) {
            const int32_t set = llm_schema_scalars(s, f->lit, TYPE_STRING);
            rest_class *all = NULL, **end = &all;
            for (rest_class *c = v->rest; c; c = c->next)
                if ((*end = class_copy(s, c, set)))
                    end = &(*end)->next;
            v->rest = all;
        }
    }
}

/* --- expressions ------------------------------------------------------------------------------ */

static int32_t pair(schema *s, int32_t names, const literal *lit, size_t n) {
    const int32_t value = llm_schema_values(s, lit, n);
    if (value == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    return llm_expr_seq3(s->g, llm_schema_string(s, names), s->colon, value);
}

/* Members with other names; `with` is one more condition, if not NULL. */
static int32_t rest_pair(view *v, const literal *with) {
    int32_t all = LLM_EXPR_NONE;
    for (rest_class *c = v->rest; c && v->s->status == GGL_OK; c = c->next) {
        rest_class own = *c;
        if (!with || class_literal(v->s, &own, *with))
            all = llm_expr_alt2(v->s->g, all, pair(v->s, own.names, own.lit, own.n));
    }
    return all;
}

static int32_t braces(schema *s, int32_t members) {
    llm_exprs *g = s->g;
    const int32_t open = llm_expr_range(g, '{', '{'), close = llm_expr_range(g, '}', '}');
    if (members == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    return llm_expr_seq(g, (int32_t[]){open, s->space, members, s->space, close}, 5);
}

/* Objects of the view's members; `extra`: one more that is required, LLM_EXPR_EMPTY: none. */
static int32_t view_expr(view *v, int32_t extra) {
    schema *s = v->s;
    int32_t *expr = llm_schema_alloc(s, v->table.n + 1, sizeof *expr);
    bool *required = llm_schema_alloc(s, v->table.n + 1, sizeof *required);
    int32_t n = 0, n_required = 0;
    if (!expr || !required)
        return LLM_EXPR_NONE;
    for (size_t i = 0; i < v->table.n && s->status == GGL_OK; i++) {
        const member *m = &v->table.m[i];
        expr[n] = pair(s, llm_expr_text(s->g, m->name), m->lits.lit, m->lits.n);
        required[n] = m->required;
        if (expr[n] == LLM_EXPR_NONE && m->required)
            return LLM_EXPR_NONE;
        n_required += m->required;
        n += expr[n] != LLM_EXPR_NONE;
    }
    if (extra != LLM_EXPR_EMPTY) {
        expr[n] = extra;
        required[n++] = true;
        n_required++;
    }
    const llm_members all = {.member = expr,
                             .required = required,
                             .n = n,
                             .rest = rest_pair(v, NULL),
                             .comma = s->comma,
                             .min = (int32_t)v->min,
                             .max = (int32_t)v->max};
    if (all.min > n_required && all.min > 1 && all.rest != LLM_EXPR_NONE) {
        llm_schema_fail(s, GGL_UNSUPPORTED, v->count_node, "minProperties",
                        "more than the required properties, and more than 1, can't be guaranteed "
                        "where names may be repeated that the schema does not list");
        return LLM_EXPR_NONE;
    }
    return braces(s, llm_expr_members(s->g, &all));
}

/* The case without one of its facets, and with two more: the name is there and fits the facet. */
static const facet *settle(schema *s, const facet *all, const facet *extra, ggl_str name) {
    const facet *out = NULL;
    for (const facet *f = all; f; f = f->next) {
        facet *copy = f == extra ? NULL : llm_schema_alloc(s, 1, sizeof *copy);
        if (!copy)
            continue;
        *copy = *f;
        copy->next = out;
        out = copy;
    }
    facet *two = llm_schema_alloc(s, 2, sizeof *two);
    if (!two)
        return out;
    two[0] = (facet){.kind = FACET_HAS, .name = name, .next = &two[1]};
    two[1] = (facet){.kind = FACET_PROPERTY, .name = name, .lit = extra->lit, .next = out};
    return two;
}

/* Objects with a member that a schema does not list: one of the others, or one with another name. */
static int32_t extra_expr(view *v, const facet *extra) {
    schema *s = v->s;
    int32_t all = LLM_EXPR_NONE;
    const char *word = extra->by_seen ? "unevaluatedProperties" : "additionalProperties";
    if (llm_facet_has_patterns(s, extra)) {
        llm_schema_fail(s, GGL_UNSUPPORTED, extra->node, "patternProperties",
                        "its negation (by not, oneOf or if) is not supported");
        return all;
    }
    for (size_t i = 0; i < v->table.n && s->status == GGL_OK; i++)
        if (!llm_facet_names(s, extra, v->table.m[i].name)) {
            const facet *f = settle(s, v->facets, extra, v->table.m[i].name);
            if (!llm_object_is_never(s, f))
                all = llm_expr_alt2(s->g, all, llm_schema_object(s, f));
        }
    const int32_t other = rest_pair(v, &extra->lit);
    const bool always = !extra->lit.is_value && extra->lit.node->kind == JSON_BOOL &&
                        extra->lit.node->flag != extra->lit.negated;
    if (other != LLM_EXPR_NONE && !always) { /* a later member of the same name would replace it */
        llm_schema_fail(s, GGL_UNSUPPORTED, extra->node, word,
                        "its negation (by not, oneOf or if) is only supported if it is false");
        return LLM_EXPR_NONE;
    }
    for (const facet *f = extra->next; f && other != LLM_EXPR_NONE; f = f->next)
        if (f->kind == FACET_EXTRA) {
            llm_schema_fail(s, GGL_UNSUPPORTED, extra->node, word,
                            "two negations at once (by not, oneOf or if) are not supported");
            return LLM_EXPR_NONE;
        }
    return other == LLM_EXPR_NONE ? all : llm_expr_alt2(s->g, all, view_expr(v, other));
}

int32_t llm_schema_object(schema *s, const facet *facets) {
    view v;
    open_view(&v, s, facets);
    if (s->status == GGL_OK)
        open_rest(&v);
    for (const facet *f = facets; f && s->status == GGL_OK; f = f->next) {
        if (f->kind == FACET_REFUSED)
            llm_schema_fail(s, GGL_UNSUPPORTED, f->node, f->name.s, "%s", f->why);
        if (f->kind == FACET_MIN)
            v.count_node = f->node;
        if (f->kind == FACET_EXTRA)
            return extra_expr(&v, f);
    }
    return s->status == GGL_OK ? view_expr(&v, LLM_EXPR_EMPTY) : LLM_EXPR_NONE;
}

/* --- keywords --------------------------------------------------------------------------------- */

/* Objects with the property, and a value that fits the literal. */
static const cases *has_property(schema *s, const word_use *u, ggl_str name, literal lit) {
    const facet has = {.kind = FACET_HAS, .name = name};
    const facet fits = {.kind = FACET_PROPERTY, .name = name, .lit = lit};
    return llm_cases_and(s, u, llm_cases_one(s, &has), llm_cases_one(s, &fits));
}

/* The list with one more facet; NULL: the status is set. */
static const facet *with_facet(schema *s, const facet *all, facet f) {
    facet *own = llm_schema_alloc(s, 1, sizeof *own);
    if (!own)
        return NULL;
    *own = f;
    own->next = all;
    return own;
}

/* The three keywords together, which are one facet. */
static const cases *properties_cases(schema *s, const word_use *u) {
    const facet own = {.kind = FACET_PROPERTIES, .node = u->node};
    const bool all = llm_json_get(u->node, "additionalProperties") != NULL;
    facet seen = {.kind = all ? FACET_SEEN_ALL : FACET_SEEN, .node = all ? NULL : u->node};
    const facet *list = u->traced ? with_facet(s, NULL, seen) : NULL;
    return llm_cases_of(s, with_facet(s, list, own));
}

CASES(properties) {
    const bool is_table = strcmp(u->word, "additionalProperties") != 0;
    if (is_table && !llm_schema_table(s, u->node, u->word))
        return NULL;
    if (!u->negated)
        return properties_cases(s, u);
    if (!is_table) {
        if (u->value->kind == JSON_BOOL && u->value->flag)
            return NULL;
        return llm_cases_one(s, &(facet){.kind = FACET_EXTRA,
                                         .node = u->node,
                                         .lit = {.node = u->value, .negated = true}});
    }
    case_list all = {0};
    for (uint32_t i = 0; i < u->value->n; i++) {
        const literal lit = {.node = &u->value->item[i], .negated = true};
        if (u->word[0] == 'p' && u->word[1] == 'a' && !llm_schema_is_never(s, &lit, 1))
            return llm_cases_one(
                s, &(facet){.kind = FACET_REFUSED,
                            .node = u->node,
                            .name = {u->word, strlen(u->word)},
                            .why = "its negation (by not, oneOf or if) is not supported"});
        if (u->word[1] == 'r' && !llm_schema_is_never(s, &lit, 1))
            llm_cases_add(s, &all, has_property(s, u, json_name(u->value, i), lit));
    }
    return all.first;
}

/* Names in an array: all of them are there; or, negated, one is not. */
static const cases *names_cases(schema *s, const word_use *u, const json_value *names,
                                bool negated) {
    const facet *every = NULL;
    case_list any = {0};
    if (names->kind != JSON_ARRAY) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be an array of strings");
        return NULL;
    }
    for (uint32_t k = 0; k < names->n && s->status == GGL_OK; k++) {
        const uint32_t i = negated ? k : names->n - 1 - k; /* facets are put in front */
        if (names->item[i].kind != JSON_STRING) {
            llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be an array of strings");
            return NULL;
        }
        const facet f = {.kind = negated ? FACET_PROPERTY : FACET_HAS,
                         .name = json_str(&names->item[i]),
                         .lit = {.node = negated ? &s->never : NULL}};
        if (negated)
            llm_cases_add(s, &any, llm_cases_one(s, &f));
        else
            every = with_facet(s, every, f);
    }
    return negated ? any.first : llm_cases_of(s, every);
}

CASES(required) {
    if (u->value->kind == JSON_BOOL) /* draft 3: said by the property itself */
        return llm_cases_one(s, &(facet){.kind = FACET_REFUSED,
                                         .node = u->node,
                                         .name = {u->word, strlen(u->word)},
                                         .why = "must be an array of strings"});
    return names_cases(s, u, u->value, u->negated);
}

CASES(count) {
    int64_t n;
    if (!llm_schema_count(s, u, &n))
        return NULL;
    const bool is_min = (u->word[1] == 'i') != u->negated;
    n += !u->negated ? 0 : is_min ? 1 : -1;
    if (n < 0)
        return NULL;
    return llm_cases_one(s,
                         &(facet){.kind = is_min ? FACET_MIN : FACET_MAX, .n = n, .node = u->node});
}

CASES(names) {
    if (u->negated)
        return llm_cases_one(
            s, &(facet){.kind = FACET_REFUSED,
                        .node = u->node,
                        .name = {u->word, strlen(u->word)},
                        .why = "its negation (by not, oneOf or if) is not supported"});
    return llm_cases_one(s, &(facet){.kind = FACET_NAMES, .lit = {.node = u->value}});
}

/* What a property's presence demands: names, or a schema for the whole object. */
static const cases *demand(schema *s, const word_use *u, const json_value *v, bool negated) {
    if (v->kind == JSON_ARRAY && strcmp(u->word, "dependentSchemas") != 0)
        return names_cases(s, u, v, negated);
    const literal lit = {.node = v, .negated = negated, .traced = u->traced};
    return llm_schema_cases(s, lit, TYPE_OBJECT);
}

CASES(dependent) {
    if (!llm_schema_table(s, u->node, u->word))
        return NULL;
    const cases *all = llm_cases_one(s, NULL);
    case_list any = {0};
    for (uint32_t i = 0; i < u->value->n && s->status == GGL_OK; i++) {
        const facet has = {.kind = FACET_HAS, .name = json_name(u->value, i)};
        const facet lacks = {.kind = FACET_PROPERTY, .name = has.name, .lit = {.node = &s->never}};
        const cases *then = llm_cases_and(s, u, llm_cases_one(s, &has),
                                          demand(s, u, &u->value->item[i], u->negated));
        if (u->negated)
            llm_cases_add(s, &any, then);
        else
            all = llm_cases_and(s, u, all, llm_cases_or(s, llm_cases_one(s, &lacks), then));
    }
    return u->negated ? any.first : all;
}

/* Without negation, the keyword is applied after all others (schema_words.c). Its negation needs to know what is
 * evaluated where the others hold; where they do not, the schema is invalid without it. */
CASES(unevaluated) {
    const cases *own = u->negated ? llm_schema_traced(s, u->node, u->type) : NULL;
    if (!u->negated)
        return llm_cases_one(s, NULL);
    if (!own || (u->value->kind == JSON_BOOL && u->value->flag))
        return NULL;
    if (!own->next)
        return llm_seen_violated(s, u->node, u->type, own->facets, (literal){.node = u->value});
    return llm_cases_one(
        s, &(facet){.kind = FACET_REFUSED,
                    .node = u->node,
                    .name = {u->word, strlen(u->word)},
                    .why = "its negation (by not, oneOf or if) is not supported where what is "
                           "evaluated depends on the value"});
}
