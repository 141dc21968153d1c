/* Arrays: a case's facets become the items that an array may have. */
#include "counts.h"
#include "same.h"
#include "schema_members.h"
#include "unique.h"

typedef struct view {
    schema *s;
    lits *item; /* [n] the first items */
    size_t n;
    lits rest; /* all others */
    int64_t min, max;
    const facet *some[LLM_COUNTS_MOST], *unique;
    int32_t n_some;
} view;

/* The schemas of the first items (NULL: none), and that of the others (NULL: any). */
static const json_value *prefix_of(const json_value *node, const json_value **others) {
    const json_value *prefix = llm_json_get_kind(node, "prefixItems", JSON_ARRAY);
    const json_value *items = llm_json_get(node, "items");
    *others = items;
    if (prefix || !items || items->kind != JSON_ARRAY)
        return prefix;
    *others = llm_json_get(node, "additionalItems"); /* until draft 2019-09 */
    return items;
}

/* How many first items a facet speaks of. */
static size_t prefix_length(const facet *f) {
    const json_value *others;
    if (f->kind == FACET_ITEMS) {
        const json_value *prefix = prefix_of(f->node, &others);
        return prefix ? prefix->n : 0;
    }
    return f->kind == FACET_ITEM          ? (size_t)f->n + 1
           : f->kind == FACET_EACH        ? (size_t)f->n
           : f->kind == FACET_VALUE_ARRAY ? f->node->n
                                          : 0;
}

static void apply_items(view *v, const json_value *node) {
    const json_value *others, *prefix = prefix_of(node, &others);
    const size_t n = prefix ? prefix->n : 0;
    for (size_t i = 0; i < v->n; i++) {
        if (i < n)
            llm_lits_add(v->s, &v->item[i], (literal){.node = &prefix->item[i]});
        else if (others)
            llm_lits_add(v->s, &v->item[i], (literal){.node = others});
    }
    if (others)
        llm_lits_add(v->s, &v->rest, (literal){.node = others});
}

static void at_least(view *v, int64_t n) {
    v->min = n > v->min ? n : v->min;
}
static void at_most(view *v, int64_t n) {
    v->max = v->max == LLM_EXPR_MANY || n < v->max ? n : v->max;
}

static void add_some(view *v, const facet *f) {
    if (v->n_some < LLM_COUNTS_MOST)
        v->some[v->n_some] = f;
    v->n_some++;
}

static void apply_facet(view *v, const facet *f) {
    switch (f->kind) {
    case FACET_ITEMS:
        apply_items(v, f->node);
        break;
    case FACET_ITEM:
        llm_lits_add(v->s, &v->item[f->n], f->lit);
        break;
    case FACET_VALUE_ARRAY:
        for (uint32_t i = 0; i < f->node->n; i++)
            llm_lits_add(v->s, &v->item[i], (literal){.node = &f->node->item[i], .is_value = true});
        at_least(v, f->node->n);
        at_most(v, f->node->n);
        break;
    case FACET_EACH:
        for (size_t i = (size_t)f->n; i < v->n; i++)
            llm_lits_add(v->s, &v->item[i], f->lit);
        llm_lits_add(v->s, &v->rest, f->lit);
        break;
    case FACET_MIN:
        at_least(v, f->n);
        break;
    case FACET_MAX:
        at_most(v, f->n);
        break;
    case FACET_SOME:
        add_some(v, f);
        break;
    case FACET_UNIQUE:
        v->unique = f;
        break;
    default:
        break;
    }
}

static bool open_view(view *v, schema *s, const facet *facets) {
    *v = (view){.s = s, .max = LLM_EXPR_MANY};
    for (const facet *f = facets; f; f = f->next) {
        const size_t n = prefix_length(f);
        if (n > SCHEMA_MAX_ITEMS) {
            llm_schema_fail(s, GGL_LIMIT, f->node, NULL,
                            "an array has more than %d items of its own", SCHEMA_MAX_ITEMS);
            return false;
        }
        v->n = n > v->n ? n : v->n;
    }
    v->item = llm_schema_alloc(s, v->n + 1, sizeof *v->item);
    if (!v->item)
        return false;
    for (const facet *f = facets; f; f = f->next)
        apply_facet(v, f);
    return s->status == GGL_OK;
}

bool llm_array_is_never(schema *s, const facet *facets) {
    view v;
    if (!facets || !facets->next || !open_view(&v, s, facets))
        return false;
    for (int32_t i = 0; i < v.n_some && i < LLM_COUNTS_MOST; i++)
        at_least(&v, v.some[i]->least > 0 ? v.some[i]->n + v.some[i]->least : 0);
    if (v.max != LLM_EXPR_MANY && v.max < v.min)
        return true;
    for (size_t i = 0; i < v.n && (int64_t)i < v.min; i++)
        if (llm_schema_is_never(s, v.item[i].lit, v.item[i].n))
            return true;
    return (int64_t)v.n < v.min && llm_schema_is_never(s, v.rest.lit, v.rest.n);
}

/* --- expressions ------------------------------------------------------------------------------ */

static int32_t brackets(schema *s, int32_t items) {
    llm_exprs *g = s->g;
    const int32_t open = llm_expr_range(g, '[', '['), close = llm_expr_range(g, ']', ']');
    if (items == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    return llm_expr_seq(g, (int32_t[]){open, s->space, items, s->space, close}, 5);
}

/* min to max items with commas between them. */
static int32_t list_of(schema *s, int32_t item, int64_t min, int64_t max) {
    const llm_members m = {
        .rest = item, .comma = s->comma, .min = (int32_t)min, .max = (int32_t)max};
    return llm_expr_members(s->g, &m);
}

/* The first items, each optional once there are enough, then the rest. */
static int32_t items_expr(view *v) {
    schema *s = v->s;
    llm_exprs *g = s->g;
    const int64_t n = (int64_t)v->n;
    const int32_t rest = v->max == LLM_EXPR_MANY || v->max > n
                             ? llm_schema_values(s, v->rest.lit, v->rest.n)
                             : LLM_EXPR_NONE;
    const int64_t most = v->max == LLM_EXPR_MANY ? LLM_EXPR_MANY : v->max > n ? v->max - n : 0;
    if (n == 0)
        return list_of(s, rest, v->min, v->max);
    int32_t after = llm_expr_repeat(g, llm_expr_seq2(g, s->comma, rest),
                                    v->min > n ? (int32_t)(v->min - n) : 0, (int32_t)most);
    for (int64_t i = n - 1; i >= 0 && s->status == GGL_OK; i--) {
        const bool fits = v->max == LLM_EXPR_MANY || i < v->max;
        const int32_t one =
            fits ? llm_schema_values(s, v->item[i].lit, v->item[i].n) : LLM_EXPR_NONE;
        after = llm_expr_seq3(g, i > 0 ? s->comma : LLM_EXPR_EMPTY, one, after);
        if (i >= v->min)
            after = llm_expr_optional(g, after);
    }
    return after;
}

/* Item `at` of a view that counts. */
static int32_t counted_item(void *ctx, int64_t at, unsigned fit, unsigned unfit) {
    const view *v = ctx;
    const lits *own = at < (int64_t)v->n ? &v->item[at] : &v->rest;
    lits all = {0};
    for (size_t i = 0; i < own->n; i++)
        llm_lits_add(v->s, &all, own->lit[i]);
    for (int32_t i = 0; i < v->n_some; i++) {
        literal lit = v->some[i]->lit;
        if (unfit >> i & 1)
            lit.negated = !lit.negated;
        if ((fit | unfit) >> i & 1)
            llm_lits_add(v->s, &all, lit);
    }
    return llm_schema_values(v->s, all.lit, all.n);
}

/* Arrays in which numbers of items fit conditions. */
static int32_t some_expr(view *v) {
    llm_count count[LLM_COUNTS_MOST];
    llm_counts c = {.count = count,
                    .n = v->n_some,
                    .n_first = (int64_t)v->n,
                    .min = v->min,
                    .max = v->max,
                    .comma = v->s->comma,
                    .item = counted_item,
                    .ctx = v};
    int32_t e = LLM_EXPR_NONE;
    for (int32_t i = 0; i < v->n_some && i < LLM_COUNTS_MOST; i++)
        count[i] = (llm_count){v->some[i]->n, v->some[i]->least, v->some[i]->most};
    if (!llm_counted_items(&e, v->s->g, &c))
        llm_schema_fail(v->s, GGL_UNSUPPORTED, v->some[0]->node, "contains",
                        "its counts (or those of the negation of items), together with minItems, "
                        "maxItems and first items, make too many states");
    return e;
}

/* --- different items -------------------------------------------------------------------------- */

enum { MOST_VALUES = 1 << 10 };

/* A value of a type; arrays and objects have a node, numbers a spelling. */
typedef struct value {
    schema_type t;
    int32_t text; /* decoded */
    ggl_str spelling;
    const json_value *node;
} value;

typedef struct different {
    view *v;
    value *value; /* [MOST_VALUES] */
    int32_t n;
    int32_t *text; /* [MOST_VALUES] scratch */
} different;

/* The text of a number, which is an expression of single characters. */
static ggl_str spelling_of(schema *s, int32_t text) {
    const llm_expr e = s->g->node[text];
    const bool is_seq = e.kind == LLM_EXPR_KIND_SEQ;
    const size_t n = is_seq ? (size_t)e.n : 1;
    char *out = llm_schema_alloc(s, n, 1);
    for (size_t i = 0; out && i < n; i++) {
        const int32_t one = is_seq ? s->g->arg[e.first + (int32_t)i] : text;
        out[i] = (char)s->g->range[s->g->node[one].first].first;
    }
    return (ggl_str){out, out ? n : 0};
}

static bool are_same(schema *s, const value *a, const value *b) {
    uint64_t steps = 0;
    if (a->t != b->t)
        return false;
    const bool same = a->t == TYPE_NUMBER ? llm_same_number(a->spelling, b->spelling)
                      : a->node           ? llm_same_value(a->node, b->node, &steps)
                                          : a->text == b->text;
    llm_exprs_count(s->g, steps);
    return same;
}

/* Adds a choice of a value, or another text of a value that is there already. Returns false if there are too
 * many. */
static bool add_choice(different *d, llm_choices *c, const value *x, int32_t expr) {
    schema *s = d->v->s;
    int32_t k = 0;
    llm_exprs_count(s->g, 1 + (uint64_t)d->n / 4);
    while (k < d->n && !are_same(s, &d->value[k], x))
        k++;
    if (k == MOST_VALUES)
        return false;
    int32_t i = k == d->n ? c->n : 0; /* a new value has no choice yet */
    while (i < c->n && c->choice[i].value != k)
        i++;
    if (k == d->n)
        d->value[d->n++] = *x;
    const int32_t all = i < c->n ? llm_expr_alt2(s->g, c->choice[i].expr, expr) : expr;
    c->choice[i] = (llm_choice){.value = k, .expr = all};
    c->n += i == c->n;
    return true;
}

/* Lists the single texts of a set. Returns false if they are not few. */
static bool list_set(different *d, schema_type t, int32_t set, int32_t *n) {
    llm_exprs *g = d->v->s->g;
    if (!llm_expr_is_list(g, set))
        return t == TYPE_NUMBER &&
               llm_expr_texts(g, set, "+-.0123456789eE", d->text, n, MOST_VALUES);
    const llm_expr e = g->node[set];
    const bool is_alt = set != LLM_EXPR_NONE && e.kind == LLM_EXPR_KIND_ALT;
    const int32_t count = set == LLM_EXPR_NONE ? 0 : is_alt ? e.n : 1;
    for (int32_t i = 0; i < count && i < MOST_VALUES; i++)
        d->text[(*n)++] = is_alt ? g->arg[e.first + i] : set;
    return count <= MOST_VALUES;
}

static bool few_scalars(different *d, const lits *l, schema_type t, llm_choices *c) {
    schema *s = d->v->s;
    int32_t set = s->universe[t], n = 0;
    for (size_t i = 0; i < l->n; i++)
        set = llm_set_and(s, t, set, llm_schema_scalars(s, l->lit[i], t));
    bool few = list_set(d, t, set, &n);
    for (int32_t i = 0; i < n && few && s->g->status == GGL_OK; i++) {
        value x = {.t = t, .text = d->text[i]};
        if (t == TYPE_NUMBER)
            x.spelling = spelling_of(s, x.text);
        few = add_choice(d, c, &x, t == TYPE_STRING ? llm_schema_string(s, x.text) : x.text);
    }
    return few;
}

/* Arrays and objects are few if each is a value of an enumeration. */
static bool few_cases(different *d, const lits *l, schema_type t, llm_choices *out) {
    schema *s = d->v->s;
    const cases *c = llm_cases_one(s, NULL);
    const word_use u = {.node = d->v->unique->node, .type = t};
    for (size_t i = 0; i < l->n && c; i++)
        c = llm_cases_and(s, &u, c, llm_schema_cases(s, l->lit[i], t));
    for (; c && s->status == GGL_OK; c = c->next) {
        const facet *f = c->facets;
        while (f && f->kind != FACET_VALUE_ARRAY && f->kind != FACET_VALUE_OBJECT)
            f = f->next;
        const value x = {.t = t, .node = f ? f->node : NULL};
        if (!f || !add_choice(d, out, &x,
                              t == TYPE_ARRAY ? llm_schema_array(s, c->facets)
                                              : llm_schema_object(s, c->facets)))
            return false;
    }
    return true;
}

/* Lists the values that fit all conditions. Returns false if they are not few. */
static bool few_values(different *d, const lits *l, llm_choices *c) {
    c->choice = llm_schema_alloc(d->v->s, MOST_VALUES + 1, sizeof *c->choice);
    bool few = c->choice && d->value && d->text;
    for (schema_type t = 0; t < TYPE_ARRAY && few; t++)
        few = few_scalars(d, l, t, c);
    for (schema_type t = TYPE_ARRAY; t < N_TYPES && few; t++)
        few = few_cases(d, l, t, c);
    return few && d->v->s->status == GGL_OK;
}

/* True if no value fits both. */
static bool are_apart(schema *s, const lits *a, const lits *b) {
    lits both = {0};
    for (size_t i = 0; i < a->n; i++)
        llm_lits_add(s, &both, a->lit[i]);
    for (size_t i = 0; i < b->n; i++)
        llm_lits_add(s, &both, b->lit[i]);
    return llm_schema_is_never(s, both.lit, both.n);
}

/* If no other item can have one of item k's many values, gives the item one value that stands for
 * them, and returns true. */
static bool stands_alone(different *d, int64_t k, int64_t n, llm_choices *c) {
    const view *v = d->v;
    const lits *own = k < (int64_t)v->n ? &v->item[k] : &v->rest;
    bool ok = c->choice && d->n < MOST_VALUES && v->n <= SCHEMA_MAX_APART;
    for (int64_t i = 0; i < n && ok; i++)
        ok = i == k || are_apart(v->s, own, i < (int64_t)v->n ? &v->item[i] : &v->rest);
    if (!ok || (v->max != n && !are_apart(v->s, own, &v->rest)))
        return false;
    c->n = 0;
    c->choice[c->n++] = (llm_choice){d->n, llm_schema_values(v->s, own->lit, own->n)};
    d->value[d->n++] = (value){.t = N_TYPES, .text = (int32_t)k};
    return true;
}

/* Arrays of different items, if the values of each are few, or apart from those of the others. */
static int32_t unique_expr(view *v) {
    schema *s = v->s;
    different d = {.v = v,
                   .value = llm_schema_alloc(s, MOST_VALUES + 1, sizeof *d.value),
                   .text = llm_schema_alloc(s, MOST_VALUES + 1, sizeof *d.text)};
    /* the one item of the rest is like a first item */
    const int64_t n =
        v->max != LLM_EXPR_MANY && v->max <= (int64_t)v->n + 1 ? v->max : (int64_t)v->n;
    llm_choices *first = llm_schema_alloc(s, (size_t)n + 1, sizeof *first);
    llm_unique u = {
        .first = first, .n_first = (int32_t)n, .min = v->min, .max = v->max, .comma = s->comma};
    bool few = first && (v->max == n || few_values(&d, &v->rest, &u.rest));
    for (int64_t k = 0; k < n && few && s->status == GGL_OK; k++) {
        const lits *own = k < (int64_t)v->n ? &v->item[k] : &v->rest;
        few = few_values(&d, own, &first[k]) || stands_alone(&d, k, n, &first[k]);
    }
    int32_t e = LLM_EXPR_NONE;
    u.n_values = d.n;
    if (!few || !llm_unique_items(&e, s->g, &u))
        llm_schema_fail(s, GGL_UNSUPPORTED, v->unique->node, "uniqueItems",
                        "is supported only for at most one item, and for few values: null, true, "
                        "false, those of an enum or const, and integers between bounds");
    return e;
}

int32_t llm_schema_array(schema *s, const facet *facets) {
    view v;
    if (!open_view(&v, s, facets))
        return LLM_EXPR_NONE;
    for (const facet *f = facets; f; f = f->next)
        if (f->kind == FACET_REFUSED) {
            llm_schema_fail(s, GGL_UNSUPPORTED, f->node, f->name.s, "%s", f->why);
            return LLM_EXPR_NONE;
        }
    if (v.max != LLM_EXPR_MANY && v.max < v.min)
        return LLM_EXPR_NONE;
    const bool repeats = v.unique && (v.max == LLM_EXPR_MANY || v.max > 1);
    if (repeats && v.n_some > 0) {
        llm_schema_fail(s, GGL_UNSUPPORTED, v.unique->node, "uniqueItems",
                        "together with contains (or the negation of items) is not supported");
        return LLM_EXPR_NONE;
    }
    return brackets(s, v.n_some > 0 ? some_expr(&v) : repeats ? unique_expr(&v) : items_expr(&v));
}

/* --- keywords --------------------------------------------------------------------------------- */

static const cases *refused(schema *s, const word_use *u, const char *why) {
    return llm_cases_one(s, &(facet){.kind = FACET_REFUSED,
                                     .node = u->node,
                                     .name = {u->word, strlen(u->word)},
                                     .why = why});
}

/* The cases, and what they evaluate, if that is asked for. */
static const cases *traced(schema *s, const word_use *u, const cases *c, const facet *seen) {
    return u->traced ? llm_cases_and(s, u, c, llm_cases_one(s, seen)) : c;
}

/* Arrays with an item that does not fit its schema. */
static const cases *not_items(schema *s, const word_use *u) {
    const json_value *others, *prefix = prefix_of(u->node, &others);
    const bool is_prefix = u->value == prefix;
    case_list all = {0};
    for (uint32_t i = 0; is_prefix && i < prefix->n; i++) {
        const facet long_enough = {.kind = FACET_MIN, .n = (int64_t)i + 1};
        const facet wrong = {
            .kind = FACET_ITEM, .n = i, .lit = {.node = &prefix->item[i], .negated = true}};
        llm_cases_add(
            s, &all, llm_cases_and(s, u, llm_cases_one(s, &long_enough), llm_cases_one(s, &wrong)));
    }
    const literal lit = {.node = u->value, .negated = true};
    if (is_prefix || u->value != others || llm_schema_is_never(s, &lit, 1))
        return all.first;
    return llm_cases_one(s, &(facet){.kind = FACET_SOME,
                                     .node = u->node,
                                     .n = prefix ? prefix->n : 0,
                                     .least = 1,
                                     .most = LLM_EXPR_MANY,
                                     .lit = lit});
}

CASES(items) {
    const bool is_list = u->value->kind == JSON_ARRAY;
    if (strcmp(u->word, "prefixItems") == 0 && !is_list) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be an array of schemas");
        return NULL;
    }
    if (u->negated)
        return not_items(s, u);
    const json_value *others, *prefix = prefix_of(u->node, &others);
    const facet own = {.kind = FACET_ITEMS, .node = u->node};
    const facet seen = {.kind = others ? FACET_SEEN_ALL : FACET_SEEN_ITEMS,
                        .n = !others && prefix ? prefix->n : 0};
    return traced(s, u, llm_cases_one(s, &own), &seen);
}

/* Arrays of which `least` to `most` items fit the keyword's schema. */
static const cases *some_items(schema *s, const word_use *u, int64_t least, int64_t most) {
    facet f = {.kind = FACET_SOME,
               .node = u->node,
               .least = least,
               .most = most,
               .lit = {.node = u->value}};
    if (most != LLM_EXPR_MANY && most < least)
        return NULL;
    if (most == 0)
        f = (facet){
            .kind = FACET_EACH, .node = u->node, .lit = {.node = u->value, .negated = true}};
    const bool any = least == 0 && most == LLM_EXPR_MANY;
    const facet seen = {.kind = FACET_SEEN_SOME, .node = u->node, .lit = {.node = u->value}};
    const cases *c = any ? llm_cases_one(s, NULL) : llm_cases_one(s, &f);
    return s->draft < 2020 ? c : traced(s, u, c, &seen); /* until then, it evaluated nothing */
}

/* The count of a keyword beside `contains`; absent: `usual`. */
static int64_t count_beside(schema *s, const word_use *u, const char *word, int64_t usual) {
    const word_use other = {.node = u->node, .word = word, .value = llm_json_get(u->node, word)};
    int64_t n = usual;
    if (other.value)
        (void)llm_schema_count(s, &other, &n);
    return n;
}

CASES(contains) {
    const int64_t least = count_beside(s, u, "minContains", 1);
    const int64_t most = count_beside(s, u, "maxContains", LLM_EXPR_MANY);
    if (!u->negated || s->status != GGL_OK)
        return some_items(s, u, least, most);
    const cases *fewer = least > 0 ? some_items(s, u, 0, least - 1) : NULL;
    const cases *more = most != LLM_EXPR_MANY ? some_items(s, u, most + 1, LLM_EXPR_MANY) : NULL;
    return llm_cases_or(s, fewer, more);
}

CASES(unique) {
    if (u->value->kind != JSON_BOOL) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be true or false");
        return NULL;
    }
    if (!u->value->flag)
        return u->negated ? NULL : llm_cases_one(s, NULL);
    if (u->negated)
        return refused(s, u, "its negation (by not, oneOf or if) is not supported");
    return llm_cases_one(s, &(facet){.kind = FACET_UNIQUE, .node = u->node});
}
