/* Values: their names in messages, their conversions, and the expression that gave a number. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"

arch_value llm_arch_bool(bool b) {
    return (arch_value){.kind = VAL_BOOL, .flag = b};
}
arch_value llm_arch_tensor_value(ggl_tensor *t) {
    return (arch_value){.kind = t ? VAL_TENSOR : VAL_FAIL, .t = t};
}
arch_value llm_arch_none(const char *missing) {
    return (arch_value){.kind = VAL_NONE, .text = missing};
}

const char *llm_arch_kind_text(const arch_value *v) {
    static const char *const text[] = {"an error",
                                       "none",
                                       "a number",
                                       "true or false",
                                       "a string",
                                       "a list",
                                       "a tensor",
                                       "a cache",
                                       "rows, which only a stage over them reads",
                                       "the rows of an input"};
    return v->kind == VAL_TENSOR && v->range ? "an index" : text[v->kind];
}

const char *llm_arch_value_text(const arch_value *v, char *buf, size_t size) {
    char what[160];
    switch (v->kind) {
    case VAL_NONE:
        snprintf(buf, size, "%s", v->text ? v->text : "its value is none");
        return buf;
    case VAL_NUMBER:
        snprintf(what, sizeof what, "the number %.12g", v->num);
        break;
    case VAL_BOOL:
        snprintf(what, sizeof what, "%s", v->flag ? "true" : "false");
        break;
    case VAL_STRING:
        snprintf(what, sizeof what, "the string \"%.*s\"",
                 (int)ggl_utf8_cut(v->str.s, v->str.n, 80), v->str.s);
        break;
    case VAL_LIST:
        snprintf(what, sizeof what, "a list of %zu%s%s%s", v->n, v->text ? ", of which " : "",
                 v->text ? v->text : "", v->key ? ": pick one with [i]" : "");
        break;
    case VAL_TENSOR: {
        char shape[128];
        snprintf(what, sizeof what, "%s %s", v->range ? "an index" : "a tensor",
                 ggl_shape_text(v->t, shape, sizeof shape));
        break;
    }
    default:
        snprintf(what, sizeof what, "%s", llm_arch_kind_text(v));
    }
    if (v->key)
        snprintf(buf, size, "key %s is %s", v->key, what);
    else
        snprintf(buf, size, "it is %s", what);
    return buf;
}

/* --- the expression a number came from -------------------------------------------------------- */

#define MAX_WORD   256
#define MAX_JOINED 40 /* longer expressions do not help in a message */
#define MAX_WORDS  8192

/* Returns the only copy of a text; descriptors make few different ones. */
const char *llm_arch_intern(arch_eval *ev, const char *s) {
    ggl_index *x = &ev->word_index;
    const ggl_str key = {s, strlen(s)};
    if (!x->slots) {
        ev->word = ggl_arena_alloc(&ev->arena, MAX_WORDS, sizeof *ev->word);
        if (!ev->word || ggl_index_init(x, MAX_WORDS, sizeof *ev->word, GGL_INDEX_STRINGS, NULL))
            return llm_arch_nomem(ev), NULL;
    }
    size_t i = ggl_index_find(x, ev->word, key);
    if (i != SIZE_MAX)
        return ev->word[i].s;
    if (x->n == MAX_WORDS || key.n > MAX_WORD)
        return NULL; /* the dimension then has no name */
    const char *copy = llm_arch_strdup(ev, s);
    if (!copy)
        return NULL;
    i = x->n;
    ev->word[i] = (ggl_str){copy, key.n};
    ggl_index_put(x, ev->word, i);
    return copy;
}

static const char *operand_text(const arch_value *v, bool product, char *buf, size_t size) {
    if (!v->text)
        snprintf(buf, size, "%.6g", v->num);
    else if (product && strchr(v->text, ' '))
        snprintf(buf, size, "(%s)", v->text);
    else
        snprintf(buf, size, "%s", v->text);
    return buf;
}

/* Writes "a*b*c" without the factor f. False: s does not begin or end with it. */
static bool without_factor(const char *s, const char *f, char *buf, size_t size) {
    size_t n = strlen(s), m = strlen(f);
    if (n <= m + 1 || n >= size || strchr(s, ' ') || strchr(s, '/') || strchr(s, '('))
        return false;
    if (strncmp(s, f, m) == 0 && s[m] == '*') {
        strcpy(buf, s + m + 1);
        return true;
    }
    if (strcmp(s + n - m, f) == 0 && s[n - m - 1] == '*') {
        memcpy(buf, s, n - m - 1);
        buf[n - m - 1] = 0;
        return true;
    }
    return false;
}

const char *llm_arch_join_text(arch_eval *ev, const char *op, const arch_value *a,
                               const arch_value *b) {
    char left[64], right[64], buf[160];
    if (!a->text && !b->text)
        return NULL;
    bool product = op[0] == '*' || op[0] == '/' || op[0] == '%';
    operand_text(a, product, left, sizeof left);
    operand_text(b, product, right, sizeof right);
    if (strcmp(op, "/") == 0 && without_factor(left, right, buf, sizeof buf))
        return llm_arch_intern(ev, buf);
    if (strcmp(op, "*") == 0 || strcmp(op, "/") == 0)
        snprintf(buf, sizeof buf, "%s%s%s", left, op, right);
    else
        snprintf(buf, sizeof buf, "%s %s %s", left, op, right);
    return strlen(buf) <= MAX_JOINED ? llm_arch_intern(ev, buf) : NULL;
}

/* --- what is wanted --------------------------------------------------------------------------- */

static const char *short_text(const arch_value *v, char buf[64]) {
    if (v->kind == VAL_NUMBER)
        snprintf(buf, 64, "%.12g", v->num);
    else
        snprintf(buf, 64, "%s", v->kind == VAL_BOOL ? v->flag ? "true" : "false" : "?");
    return buf;
}

/* Reports that `e` has another kind of value than wanted; returns false. */
static bool not_that(arch_eval *ev, const arch_expr *e, const arch_value *v, const char *wanted) {
    char quote[64], what[256];
    if (v->kind == VAL_FAIL)
        return false;
    const char *hint = llm_arch_absent_hint(ev, v);
    if (v->kind == VAL_NONE && v->text)
        llm_arch_error_hint(ev, GGL_FORMAT, e->place, hint, "%s, but %s is expected here", v->text,
                            wanted);
    else
        llm_arch_error(ev, e->place, "%s is expected here, but '%s' is not: %s", wanted,
                       llm_arch_quote(e->place, quote, sizeof quote),
                       llm_arch_value_text(v, what, sizeof what));
    return false;
}

/* True if only a function of the prelude mentions the key. (If the descriptor does too, the
 * recorded place is the descriptor's.) */
static bool is_of_prelude(const arch_eval *ev, const char *key) {
    const size_t n = strlen(ev->family);
    const bool own = strncmp(key, ev->family, n) == 0 && key[n] == '.';
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        if (k->whole ? strcmp(k->name, key) == 0 : own && strcmp(k->name, key + n + 1) == 0)
            return k->place.text->prelude;
    return false;
}

const char *llm_arch_absent_hint(const arch_eval *ev, const arch_value *v) {
    if (v->absent_key && v->key && ev->src->lacks_key)
        ev->src->lacks_key(ev->src->ctx, v->key);
    if (!v->absent_key || (!ev->convert && v->key && is_of_prelude(ev, v->key)))
        return NULL;
    return ev->convert && v->key ? ev->convert->absent_hint(ev, v->key)
                                 : "'?? value' sets its default";
}

const char *llm_arch_binding_hint(arch_eval *ev, const arch_expr *e) {
    char buf[200], key[64], left[64], right[64];
    const arch_expr *a = e->a;
    const bool compares = e->kind == EX_IN || (e->op >= GGL_OP_EQ && e->op <= GGL_OP_GE);
    if (!compares || a->kind != EX_OR_ELSE || a->in_brackets)
        return NULL;
    snprintf(buf, sizeof buf, "'\?\?' binds tighter than '%s': %s \?\? (%s %s %s)", e->name,
             llm_arch_quote(a->a->place, key, sizeof key),
             llm_arch_quote(a->b->place, left, sizeof left), e->name,
             llm_arch_quote(e->b->place, right, sizeof right));
    return llm_arch_strdup(ev, buf);
}

arch_value llm_arch_one_of(arch_eval *ev, const arch_expr *e, const arch_value *v) {
    char text[2][64], what[200];
    if (v->kind != VAL_LIST || v->item || v->n == 0 || v->list_key.type == LLM_ARCH_STRING ||
        v->text)
        return *v;
    const arch_value first = llm_arch_key_value(ev, v->key, &v->list_key, 0);
    for (size_t i = 1; i < v->n; i++) {
        const arch_value x = llm_arch_key_value(ev, v->key, &v->list_key, i);
        if (!llm_arch_step(ev, e->place, 1))
            return ARCH_FAIL;
        if (llm_arch_equal(&first, &x))
            continue;
        arch_value unlike = *v;
        snprintf(what, sizeof what, "[0] is %s and [%zu] is %s", short_text(&first, text[0]), i,
                 short_text(&x, text[1]));
        unlike.text = llm_arch_strdup(ev, what);
        return unlike;
    }
    return first;
}

bool llm_arch_want_number(arch_eval *ev, const arch_expr *e, const arch_value *value, double *out) {
    const arch_value one = llm_arch_one_of(ev, e, value), *v = &one;
    if (v->kind != VAL_NUMBER)
        return not_that(ev, e, v, "a number");
    *out = v->num;
    return true;
}

/* True for truth values, and for 0 and 1 from a key, because some converters write those
 * instead. */
static bool is_truth(const arch_value *v) {
    return v->kind == VAL_BOOL || (v->kind == VAL_NUMBER && v->key && (v->num == 0 || v->num == 1));
}

static bool truth(const arch_value *v) {
    return v->kind == VAL_BOOL ? v->flag : v->num != 0;
}

bool llm_arch_want_bool(arch_eval *ev, const arch_expr *e, const arch_value *value, bool *out) {
    const arch_value one = llm_arch_one_of(ev, e, value), *v = &one;
    if (v->kind == VAL_TENSOR) {
        llm_arch_error(
            ev, e->place,
            "this is decided while compiling, when a tensor has no value yet: use where(c, a, b)");
        return false;
    }
    if (!is_truth(v))
        return not_that(ev, e, v, "true or false");
    *out = truth(v);
    return true;
}

/* Writes "; n_head is 0" for a global that is 0, for messages about NaN; else "". */
static const char *zero_text(const arch_eval *ev, char *buf, size_t size) {
    buf[0] = 0;
    for (int k = SLOT_FIRST_FREE; k < ev->arch->n_global && !buf[0]; k++) {
        const arch_slot *s = &ev->global[k];
        if (s->bound && s->v.kind == VAL_NUMBER && s->v.num == 0)
            snprintf(buf, size, "; %s is 0", ev->arch->global[k]);
    }
    return buf;
}

bool llm_arch_want_whole(arch_eval *ev, const arch_expr *e, const arch_value *v, double min,
                         double max, int64_t *out) {
    char quote[64];
    double x = 0;
    if (!llm_arch_want_number(ev, e, v, &x))
        return false;
    if (x != floor(x) || !(x >= min && x <= max)) {
        llm_arch_quote(e->place, quote, sizeof quote);
        char zero[ARCH_MAX_NAME + 16];
        if (isnan(x))
            llm_arch_error(ev, e->place, "'%s' is nan, but a whole number is expected here%s",
                           quote, zero_text(ev, zero, sizeof zero));
        else if (x == floor(x))
            llm_arch_error_hint(ev, GGL_LIMIT, e->place, NULL,
                                "'%s' is %.12g; %.0f to %.0f is allowed here", quote, x, min, max);
        else
            llm_arch_error(ev, e->place, "'%s' is %.12g, but a whole number is expected here",
                           quote, x);
        return false;
    }
    *out = (int64_t)x;
    return true;
}

ggl_tensor *llm_arch_want_tensor(arch_eval *ev, arch_place p, const arch_value *v,
                                 const char *what) {
    char text[256];
    if (v->kind == VAL_TENSOR)
        return v->t;
    if (v->kind == VAL_NUMBER) {
        ggl_tensor *t = ggl_graph_number(ev->g, v->num);
        return llm_arch_graph_ok(ev, p) ? t : NULL;
    }
    if (v->kind != VAL_FAIL) {
        const char *hint = llm_arch_absent_hint(ev, v);
        llm_arch_error_hint(ev, GGL_FORMAT, p, hint, "%s must be a tensor or number: %s", what,
                            llm_arch_value_text(v, text, sizeof text));
    }
    return NULL;
}

bool llm_arch_comparable(const arch_value *a, const arch_value *b) {
    return (a->kind == b->kind &&
            (a->kind == VAL_STRING || a->kind == VAL_BOOL || a->kind == VAL_NUMBER)) ||
           (a->kind == VAL_BOOL && b->kind == VAL_NUMBER && b->key) ||
           (b->kind == VAL_BOOL && a->kind == VAL_NUMBER && a->key);
}

bool llm_arch_equal(const arch_value *a, const arch_value *b) {
    if (a->kind != b->kind)
        return is_truth(a) && is_truth(b) && truth(a) == truth(b);
    switch (a->kind) {
    case VAL_NUMBER:
        return a->num == b->num;
    case VAL_BOOL:
        return a->flag == b->flag;
    case VAL_STRING:
        return a->str.n == b->str.n && (a->str.n == 0 || memcmp(a->str.s, b->str.s, a->str.n) == 0);
    default:
        return a->kind == VAL_NONE;
    }
}

/* --- keys and lists --------------------------------------------------------------------------- */

arch_value llm_arch_key_value(arch_eval *ev, const char *key, const llm_arch_key *k, uint64_t i) {
    llm_arch_item item = {0};
    arch_value v = {.kind = VAL_NUMBER, .key = key};
    if (!ev->src->get_item(ev->src->ctx, k, i, &item))
        return llm_arch_none(key);
    switch (k->type) {
    case LLM_ARCH_NUMBER:
        v.num = item.number;
        break;
    case LLM_ARCH_BOOL:
        v.kind = VAL_BOOL;
        v.flag = item.flag;
        break;
    case LLM_ARCH_STRING:
        v.kind = VAL_STRING;
        v.str = item.string;
        break;
    }
    return v;
}

arch_value llm_arch_list_item(arch_eval *ev, const arch_expr *e, const arch_value *list,
                              int64_t i) {
    if (i < 0 || (uint64_t)i >= list->n) {
        char quote[64];
        return llm_arch_error_hint(ev, GGL_FORMAT, e->b->place, NULL,
                                   "'%s' is %" PRId64
                                   ", but the list%s%s has %zu elements, counted from 0",
                                   llm_arch_quote(e->b->place, quote, sizeof quote), i,
                                   list->key ? " " : "", list->key ? list->key : "", list->n);
    }
    return list->item ? list->item[i]
                      : llm_arch_key_value(ev, list->key, &list->list_key, (uint64_t)i);
}
