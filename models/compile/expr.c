/* Turns expressions into values. Numbers, keys and the presence of tensors are evaluated at
 * once; tensor expressions become nodes of the graph. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/math.h"
#include "ggl/internal/number.h"

/* --- names ------------------------------------------------------------------------------------ */

static bool is_name(const char *name, ggl_str text) {
    return strlen(name) == text.n && memcmp(name, text.s, text.n) == 0;
}

/* Returns the slot of a name visible here, or NULL if it has no value; reports nothing. */
static arch_slot *find_slot(arch_eval *ev, int local, int global) {
    const arch_frame *f = ev->frame;
    if (f && local >= 0 && f->local[local].bound)
        return &f->local[local];
    if (global < 0 || !ev->global[global].bound)
        return NULL;
    bool is_layer = ev->layer_name && strcmp(ev->arch->global[global], ev->layer_name) == 0;
    if (f && ev->global[global].in_layer && !is_layer)
        return NULL; /* a def sees only top-level names and the layer's number */
    return &ev->global[global];
}

/* True if the statement, or one within it, assigns to the name. */
static bool assigns(const arch_stmt *s, int global) {
    for (int k = 0; k < s->n_target; k++)
        if (s->target[k].slot == global)
            return true;
    for (int k = 0; k < s->n_arm; k++)
        for (const arch_stmt *x = s->arm[k].body; x; x = x->next)
            if (assigns(x, global))
                return true;
    return false;
}

/* The stage, of the top-level statements s, that alone assigns to the name; NULL: there is none, or others do, too. */
static const arch_stmt *stage_with(const arch_stmt *s, int global) {
    const arch_stmt *found = NULL;
    for (; s; s = s->next) {
        if (!assigns(s, global))
            continue;
        if (s->kind != ST_STAGE)
            return NULL;
        found = found ? found : s;
    }
    return found;
}

arch_slot *llm_arch_lookup(arch_eval *ev, const arch_expr *e) {
    const arch_stmt *stage;
    arch_slot *s = find_slot(ev, e->local, e->global);
    if (s)
        return s;
    if (e->global >= 0 && ev->global[e->global].bound)
        llm_arch_error(ev, e->place,
                       "'%s' is a name of a layer: pass it to the function as an argument",
                       e->name);
    else if (ev->convert && ev->convert->unbound(ev, e))
        return NULL;
    else if (e->global >= 0 && !ev->stage && (stage = stage_with(ev->arch->body, e->global)))
        llm_arch_error(ev, e->place, "'%s' has no value here: names of the stage %s end with it",
                       e->name, stage->target[0].name);
    else if (e->global >= 0 && ev->layer < 0 && ev->n_layer > 0)
        llm_arch_error(ev, e->place, "'%s' has no value here: names of a layer end with it",
                       e->name);
    else
        llm_arch_error(
            ev, e->place,
            "'%s' has no value here: it is assigned further down, or in a branch that is not taken",
            e->name);
    return NULL;
}

static arch_value eval_name(arch_eval *ev, const arch_expr *e) {
    double x;
    if (ev->vary_name && strcmp(ev->vary_name, e->name) == 0)
        return ev->vary_value;
    if (ev->convert && e->local < 0 &&
        /* `e` in stack(..), unless a function has a local of that name */
        ev->convert->number(ev, e->name, &x))
        return llm_arch_number(x);
    arch_slot *s = llm_arch_lookup(ev, e);
    return s ? s->v : ARCH_FAIL;
}

/* The arm of a choice that was not taken; `from` is the value of the arm taken. */
typedef struct arm {
    arch_eval *ev;
    const ggl_tensor *from;
} arm;

static void add_edge(arm *a, ggl_tensor *to) {
    if (to && to != a->from)
        (void)llm_arch_add_edge(a->ev, a->from, to); /* failing, it sets ev->status */
}

static void visit_read(void *ctx, arch_expr *e) {
    arm *a = ctx;
    if (!llm_arch_step(a->ev, e->place, 1))
        return;
    arch_slot *s = e->kind == EX_NAME ? find_slot(a->ev, e->local, e->global) : NULL;
    if (!s || s->v.kind != VAL_TENSOR ||
        !llm_arch_step(a->ev, e->place, 10)) /* edges take memory, so they cost more */
        return;
    add_edge(a, s->v.t);
    add_edge(a, s->v.bias);
    add_edge(a, s->v.factor);
}

void llm_arch_mark_read(arch_eval *ev, const arch_expr *e, const arch_value *taken) {
    arm a = {ev, taken->kind == VAL_TENSOR ? taken->t : NULL};
    llm_arch_walk_expr((arch_expr *)e, visit_read, &a); /* visit_read does not write to e */
}

/* In a line of a section: returns the slot of a name in braces within the function that declares the weight, or NULL. */
static const arch_slot *slot_of_weight(const arch_eval *ev, ggl_str name) {
    const arch_frame *f = ev->texts;
    for (int k = 0; f && k < f->fn->n_local; k++)
        if (is_name(f->fn->local[k], name) && f->local[k].bound)
            return &f->local[k];
    return NULL;
}

/* Returns the slot of a name in braces, "{l}", or NULL if it has no value. */
static arch_slot *slot_named(arch_eval *ev, ggl_str name) {
    const arch_frame *f = ev->frame;
    const llm_arch *a = ev->arch;
    int local = -1, global = -1;
    for (int k = 0; f && k < f->fn->n_local; k++)
        if (is_name(f->fn->local[k], name))
            local = k;
    for (int k = 0; k < a->n_global; k++)
        if (is_name(a->global[k], name))
            global = k;
    return find_slot(ev, local, global);
}

static bool is_count(const arch_slot *s) {
    return s && s->v.kind == VAL_NUMBER && s->v.num >= 0 && s->v.num <= ARCH_MAX_DIM &&
           s->v.num == floor(s->v.num);
}

/* Finds a name's whole number >= 0. False: no such number. */
static bool number_named(arch_eval *ev, ggl_str name, double *out) {
    char text[ARCH_MAX_NAME + 1];
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.s);
    if (ev->convert && ev->convert->number(ev, text, out))
        return true;
    const arch_slot *s = slot_named(ev, name);
    if (!is_count(s))
        s = slot_of_weight(ev, name);
    if (!is_count(s))
        return false;
    *out = s->v.num;
    return true;
}

/* Finds a name's text, of letters that names of tensors have. {NULL, 0}: no such text. */
static ggl_str text_named(arch_eval *ev, ggl_str name) {
    const arch_slot *s = slot_of_weight(ev, name);
    if (!s)
        s = slot_named(ev, name);
    if (!s || s->v.kind != VAL_STRING || s->v.str.n > ARCH_MAX_NAME)
        return (ggl_str){NULL, 0};
    for (size_t i = 0; i < s->v.str.n; i++)
        if (!isalnum((unsigned char)s->v.str.s[i]) && !memchr("._-", s->v.str.s[i], 3))
            return (ggl_str){NULL, 0};
    return s->v.str;
}

static int shown_length(const char *from, const char *end) {
    return end - from < ARCH_MAX_NAME ? (int)(end - from) : ARCH_MAX_NAME;
}

/* Adds up the terms of "n_layer + i". False: *bad is a term that is not a whole number. */
static bool sum_named(arch_eval *ev, const char *s, const char *end, double *sum, ggl_str *bad) {
    double sign = 1, x;
    for (*sum = 0; llm_arch_next_term(&s, end, bad); s++) {
        size_t n_digits = 0;
        while (n_digits < bad->n && isdigit((unsigned char)bad->s[n_digits]))
            n_digits++;
        if (bad->n > 0 && bad->n < 10 && n_digits == bad->n)
            x = ggl_number_value(bad->s, bad->n);
        else if (bad->n > ARCH_MAX_NAME || !number_named(ev, *bad, &x))
            return false;
        *sum += sign * x;
        sign = *s == '-' ? -1 : 1;
    }
    return true;
}

bool llm_arch_lacks_number(arch_eval *ev, const char *s, arch_place p) {
    const int64_t cost = 1 + ev->arch->n_global / 8;
    for (const char *end; (s = strchr(s, '{')) && (end = strchr(s, '}')); s = end + 1) {
        double x;
        ggl_str bad;
        if (!llm_arch_step(ev, p, cost * (1 + (end - s) / 2)))
            return false;
        if (sum_named(ev, s + 1, end, &x, &bad))
            continue;
        for (int k = 0; k < ev->arch->n_global; k++)
            if (is_name(ev->arch->global[k], bad))
                return !find_slot(ev, -1, k);
    }
    return false;
}

const char *llm_arch_expand(arch_eval *ev, const char *s, arch_place p) {
    char buf[512];
    size_t n = 0;
    while (*s && n + ARCH_MAX_NAME < sizeof buf) {
        const char *end = *s == '{' ? strchr(s, '}') : NULL;
        if (!end) {
            buf[n++] = *s++;
            continue;
        }
        double x;
        ggl_str bad;
        const int64_t cost = 1 + ev->arch->n_global / 8; /* names are searched one by one */
        if (!llm_arch_step(ev, p, cost * (1 + (end - s) / 2)))
            return NULL;
        if (!sum_named(ev, s + 1, end, &x, &bad)) {
            const bool sum = bad.n != (size_t)(end - s - 1);
            const ggl_str text = sum ? (ggl_str){NULL, 0} : text_named(ev, bad);
            if (text.s) {
                memcpy(buf + n, text.s, text.n);
                n += text.n;
                s = end + 1;
                continue;
            }
            llm_arch_error(ev, p, "%.*s%s%s%.*s%s must be the name of a whole number",
                           sum ? shown_length(s, end + 1) : 0, s, sum ? ": " : "", sum ? "'" : "'{",
                           shown_length(bad.s, bad.s + bad.n), bad.s, sum ? "'" : "}'");
            return NULL;
        }
        if (!(x >= 0 && x <= ARCH_MAX_DIM)) {
            llm_arch_error(ev, p, "%.*s is %.0f, which cannot be the number of a layer or tensor",
                           shown_length(s, end + 1), s, x);
            return NULL;
        }
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%.0f", x);
        s = end + 1;
    }
    const char *out = ggl_arena_strndup(&ev->arena, buf, n);
    if (!out)
        llm_arch_nomem(ev);
    return out;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Returns a VAL_NONE that says which key is missing. */
static arch_value absent_key(arch_eval *ev, const char *name) {
    char buf[1024];
    snprintf(buf, sizeof buf, "key %s is missing in %s", name, ev->src->name);
    arch_value v = llm_arch_none(llm_arch_strdup(ev, buf));
    if (!v.text)
        return ARCH_FAIL;
    v.absent_key = true;
    v.key = name;
    return v;
}

static bool is_zero(const arch_value *v) {
    return (v->kind == VAL_NUMBER && v->num == 0) || (v->kind == VAL_BOOL && !v->flag);
}

/* True if the value of a key is 0, false, or a list of nothing else, and known_keys.arch says
 * that this means absence. Looks in the table last, because most models never need it. */
static bool means_absent(arch_eval *ev, const arch_expr *e, const char *name,
                         const llm_arch_key *key) {
    if (e->whole || ev->arch->text.prelude || key->type == LLM_ARCH_STRING || key->n == 0)
        return false;
    arch_value v = llm_arch_key_value(ev, name, key, 0);
    if (!is_zero(&v) || !llm_arch_means_absent(ev, name))
        return false;
    if (key->is_list) {
        const arch_value list = {
            .kind = VAL_LIST, .key = name, .list_key = *key, .n = (size_t)key->n};
        v = llm_arch_one_of(ev, e, &list);
    }
    return is_zero(&v);
}

bool llm_arch_was_read(const arch_eval *ev, ggl_str key) {
    return ev->n_read_key > 0 && ggl_index_find(&ev->read_key_index, ev->read_key, key) != SIZE_MAX;
}

/* Notes that a key of the source was evaluated. False: out of memory, reported. */
static bool note_read(arch_eval *ev, const char *name) {
    const ggl_str key = {name, strlen(name)};
    if (!ev->src->is_changed || llm_arch_was_read(ev, key))
        return true;
    if (!llm_arch_push(ev, &ev->read_key, &ev->cap_read_key, ev->n_read_key + 1,
                       sizeof *ev->read_key))
        return false;
    if (arch_index_room(&ev->read_key_index, ev->read_key, ev->n_read_key + 1, sizeof *ev->read_key,
                        NULL) != GGL_OK)
        return llm_arch_nomem(ev), false;
    ev->read_key[ev->n_read_key] = key;
    ggl_index_put(&ev->read_key_index, ev->read_key, ev->n_read_key++);
    return true;
}

static arch_value eval_key(arch_eval *ev, const arch_expr *e) {
    char buf[512];
    llm_arch_key key = {0};
    snprintf(buf, sizeof buf, "%s%s%s", e->whole ? "" : ev->family, e->whole ? "" : ".", e->name);
    const char *name = llm_arch_intern(ev, buf);
    if (!name && !(name = llm_arch_strdup(ev, buf)))
        return ARCH_FAIL;
    if (!ev->src->find_key(ev->src->ctx, name, &key))
        return absent_key(ev, name);
    if (!note_read(ev, name))
        return ARCH_FAIL;
    if (means_absent(ev, e, name, &key))
        return absent_key(ev, name);
    if (ev->status != GGL_OK)
        return ARCH_FAIL;
    if (key.is_list)
        return (arch_value){.kind = VAL_LIST, .key = name, .list_key = key, .n = (size_t)key.n};
    arch_value v = llm_arch_key_value(ev, name, &key, 0);
    if (v.kind == VAL_NUMBER && !e->whole) {
        snprintf(buf, sizeof buf, ".%s", e->name);
        v.text = llm_arch_intern(ev, buf);
    }
    return v;
}

/* --- operators -------------------------------------------------------------------------------- */

static arch_value eval_list(arch_eval *ev, const arch_expr *e) {
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)e->n_arg + 1, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    for (int k = 0; k < e->n_arg; k++) {
        item[k] = llm_arch_eval_expr(ev, e->arg[k].value);
        if (item[k].kind == VAL_FAIL)
            return ARCH_FAIL;
        if (item[k].kind == VAL_TENSOR || item[k].kind == VAL_CACHE)
            return llm_arch_error(ev, e->arg[k].value->place,
                                  "a list contains numbers and strings, not tensors");
    }
    return (arch_value){.kind = VAL_LIST, .item = item, .n = (size_t)e->n_arg};
}

/* The letter k of a string. */
static arch_value letter_of(arch_eval *ev, const arch_expr *e, ggl_str s, int64_t k) {
    if (k < 0 || (uint64_t)k >= s.n)
        return llm_arch_error(ev, e->b->place,
                              "there is no letter %" PRId64 " in a string of %zu letters", k, s.n);
    return (arch_value){.kind = VAL_STRING, .str = {s.s + k, 1}};
}

static arch_value eval_index(arch_eval *ev, const arch_expr *e) {
    if (ev->convert && e->a->kind == EX_FIELD && ev->convert->numbered(ev, e->a))
        return ev->convert->field(ev, e);
    arch_value t = llm_arch_eval_expr(ev, e->a);
    if (t.kind == VAL_FAIL)
        return t;
    arch_value i = llm_arch_eval_expr(ev, e->b);
    if (i.kind == VAL_FAIL)
        return i;
    if (t.kind == VAL_TENSOR && t.is_stage)
        return llm_arch_pick_row(ev, e, &t, &i);
    if (t.kind == VAL_TENSOR)
        return llm_arch_pick(ev, e, &t, &i);
    bool one_for_all =
        t.key && (t.kind == VAL_NUMBER || t.kind == VAL_STRING || t.kind == VAL_BOOL);
    if (t.kind == VAL_LIST || t.kind == VAL_STRING || one_for_all) {
        int64_t k;
        if (!llm_arch_want_whole(ev, e->b, &i, -ARCH_MAX_DIM, ARCH_MAX_DIM, &k))
            return ARCH_FAIL;
        return one_for_all            ? t
               : t.kind == VAL_STRING ? letter_of(ev, e, t.str, k)
                                      : llm_arch_list_item(ev, e, &t, k);
    }
    if (t.kind == VAL_NONE && t.absent_key)
        return t; /* for .k[l] ?? other */
    char text[256];
    return llm_arch_error(ev, e->a->place, "a list or tensor is expected before '[': %s",
                          llm_arch_value_text(&t, text, sizeof text));
}

static arch_value eval_part(arch_eval *ev, const arch_expr *e) {
    arch_value v = llm_arch_eval_expr(ev, e->a);
    char text[256];
    if (v.kind == VAL_FAIL)
        return v;
    if (strcmp(e->name, "bias") != 0)
        return llm_arch_place_of(ev, e, &v);
    if (v.kind == VAL_NONE)
        return v;
    if (v.kind != VAL_TENSOR)
        return llm_arch_error(ev, e->mark, "only weights have a bias: %s",
                              llm_arch_value_text(&v, text, sizeof text));
    return v.bias ? llm_arch_tensor_value(v.bias) : llm_arch_none("the weight has no bias");
}

static arch_value eval_in(arch_eval *ev, const arch_expr *e) {
    arch_value x = llm_arch_eval_expr(ev, e->a), list = {0};
    bool found = false;
    if (x.kind != VAL_FAIL)
        list = llm_arch_eval_expr(ev, e->b);
    if (x.kind == VAL_FAIL || list.kind == VAL_FAIL)
        return ARCH_FAIL;
    char text[256];
    x = llm_arch_one_of(ev, e->a, &x);
    if (list.kind != VAL_LIST)
        return llm_arch_error(ev, e->b->place, "a list is expected after 'in': %s",
                              llm_arch_value_text(&list, text, sizeof text));
    if (x.kind == VAL_NONE || x.kind == VAL_TENSOR || x.kind == VAL_CACHE || x.kind == VAL_LIST)
        return llm_arch_error(ev, e->a->place, "a number or string is expected before 'in': %s",
                              llm_arch_value_text(&x, text, sizeof text));
    if (!llm_arch_step(ev, e->mark, (int64_t)list.n))
        return ARCH_FAIL;
    arch_value other = {0};
    /* Items that cannot be compared with x. A list may mix kinds, as [true, 4], but from language
     * 2 on at least one item must fit. */
    size_t n_other = 0;
    for (size_t k = 0; k < list.n; k++) {
        arch_value item =
            list.item ? list.item[k] : llm_arch_key_value(ev, list.key, &list.list_key, k);
        if (llm_arch_comparable(&x, &item))
            found |= llm_arch_equal(&x, &item);
        else if (n_other++ == 0)
            other = item;
    }
    if (n_other > 0 && n_other == list.n && ev->arch->language >= 2)
        return llm_arch_error_hint(ev, GGL_FORMAT, e->mark, llm_arch_binding_hint(ev, e),
                                   "'in' of %s and a list with %s: left %s", llm_arch_kind_text(&x),
                                   llm_arch_kind_text(&other),
                                   llm_arch_value_text(&x, text, sizeof text));
    return llm_arch_bool(found);
}

static arch_value eval_logic(arch_eval *ev, const arch_expr *e) {
    bool a, b;
    arch_value v = llm_arch_eval_expr(ev, e->a);
    if (v.kind == VAL_FAIL || !llm_arch_want_bool(ev, e->a, &v, &a))
        return ARCH_FAIL;
    if (e->kind == EX_NOT)
        return llm_arch_bool(!a);
    if (a == (e->kind == EX_OR))
        return llm_arch_bool(a);
    v = llm_arch_eval_expr(ev, e->b);
    return v.kind != VAL_FAIL && llm_arch_want_bool(ev, e->b, &v, &b) ? llm_arch_bool(b)
                                                                      : ARCH_FAIL;
}

static arch_value eval_choice(arch_eval *ev, const arch_expr *e) {
    bool yes;
    if (e->kind == EX_OR_ELSE) {
        arch_value v = llm_arch_eval_expr(ev, e->a);
        if (v.kind == VAL_NONE)
            return llm_arch_eval_expr(ev, e->b);
        if (v.kind != VAL_FAIL)
            llm_arch_mark_read(ev, e->b, &v);
        return v;
    }
    arch_value c = llm_arch_eval_expr(ev, e->c);
    if (c.kind == VAL_FAIL || !llm_arch_want_bool(ev, e->c, &c, &yes))
        return ARCH_FAIL;
    arch_value v = llm_arch_eval_expr(ev, yes ? e->a : e->b);
    if (v.kind != VAL_FAIL)
        llm_arch_mark_read(ev, yes ? e->b : e->a, &v);
    return v;
}

static arch_value eval_binary(arch_eval *ev, const arch_expr *e) {
    arch_value a = llm_arch_eval_expr(ev, e->a);
    if (a.kind == VAL_FAIL)
        return a;
    arch_value b = llm_arch_eval_expr(ev, e->b);
    if (b.kind == VAL_FAIL)
        return b;
    a = llm_arch_one_of(ev, e->a, &a);
    b = llm_arch_one_of(ev, e->b, &b);
    return a.kind == VAL_FAIL || b.kind == VAL_FAIL ? ARCH_FAIL : llm_arch_infix(ev, e, &a, &b);
}

static arch_value eval_neg(arch_eval *ev, const arch_expr *e) {
    arch_value v = llm_arch_eval_expr(ev, e->a);
    v = llm_arch_one_of(ev, e->a, &v);
    if (v.kind == VAL_NUMBER)
        return llm_arch_number(-v.num);
    if (v.kind == VAL_FAIL)
        return v;
    ggl_tensor *src[2] = {llm_arch_want_tensor(ev, e->place, &v, "the operand of '-'")};
    src[1] = src[0] ? ggl_graph_number(ev->g, -1) : NULL;
    if (!src[0] || !llm_arch_graph_ok(ev, e->mark))
        return ARCH_FAIL;
    return llm_arch_tensor_value(llm_arch_node(ev, e->mark, GGL_OP_MUL, src, 2, NULL, 0));
}

static arch_value eval_call(arch_eval *ev, const arch_expr *e) {
    int n;
    if (e->callee == CALL_BUILTIN && e->builtin >= FN_BUILTIN_COUNT)
        return ev->convert->call(ev, e);
    arch_value *v = llm_arch_call(ev, e, &n);
    if (!v)
        return ARCH_FAIL;
    if (n != 1)
        return llm_arch_error(ev, e->mark,
                              "%s gives %d results, but one is expected: name them, a, b = %s(..)",
                              e->name, n, e->name);
    return v[0];
}

static arch_value eval_one(arch_eval *ev, const arch_expr *e) {
    switch (e->kind) {
    case EX_NUMBER:
        return llm_arch_number(e->num);
    case EX_STRING:
        return (arch_value){.kind = VAL_STRING, .str = {e->name, strlen(e->name)}};
    case EX_BOOL:
        return llm_arch_bool(e->num != 0);
    case EX_NONE:
        return llm_arch_none(NULL);
    case EX_LIST:
        return eval_list(ev, e);
    case EX_NAME:
        return eval_name(ev, e);
    case EX_KEY:
        return eval_key(ev, e);
    case EX_CALL:
        return eval_call(ev, e);
    case EX_HAS: {
        if ((e->a->kind == EX_FIELD || e->a->kind == EX_STRING) && ev->convert)
            return ev->convert->has(ev, e->a);
        arch_value v = llm_arch_eval_expr(ev, e->a);
        return v.kind == VAL_FAIL ? v : llm_arch_bool(v.kind != VAL_NONE);
    }
    case EX_READS:
        return llm_arch_bool(llm_arch_reads_key(ev->reader, e->a->name));
    case EX_NAMES:
        return llm_arch_bool(llm_arch_names_key(ev->arch, e->a->name));
    case EX_LANGUAGE:
        return llm_arch_number(ev->arch->language);
    case EX_INDEX:
        return eval_index(ev, e);
    case EX_PART:
        return eval_part(ev, e);
    case EX_NEG:
        return eval_neg(ev, e);
    case EX_NOT:
    case EX_AND:
    case EX_OR:
        return eval_logic(ev, e);
    case EX_BINARY:
        return eval_binary(ev, e);
    case EX_IN:
        return eval_in(ev, e);
    case EX_OR_ELSE:
    case EX_IF:
        return eval_choice(ev, e);
    case EX_FIELD:
        return ev->convert ? ev->convert->field(ev, e)
                           : llm_arch_error(ev, e->place,
                                            "'config' and 'rope' exist only in a convert section");
    }
    return ARCH_FAIL;
}

/* Limits recursion, because nested calls of deep expressions could overflow a small stack. */
arch_value llm_arch_eval_expr(arch_eval *ev, const arch_expr *e) {
    if (!llm_arch_step(ev, e->place, 1))
        return ARCH_FAIL;
    if (ev->depth == ARCH_MAX_DEPTH)
        return llm_arch_error_hint(ev, GGL_LIMIT, e->place, NULL,
                                   "expressions and calls are nested more than %d deep in all",
                                   ARCH_MAX_DEPTH);
    ev->depth++;
    arch_value v = eval_one(ev, e);
    ev->depth--;
    return v;
}
