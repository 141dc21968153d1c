/* Convert sections. What is known when a key or weight is mapped is what stands in the descriptor: names, layer numbers, keys;
 * the descriptor's own evaluator evaluates it. Only expressions with source tensors are this file's. */
#include "arch_convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/math.h"
#include "ggl/sched.h"

const arch_convert *arch_find_convert(const llm_arch *arch, ggl_str name) {
    for (const arch_convert *c = arch->convert; c; c = c->next)
        for (int k = 0; k < c->n_name; k++)
            if (strlen(c->name[k]) == name.n && memcmp(c->name[k], name.s, name.n) == 0)
                return c;
    return NULL;
}

void arch_conversion_fini(arch_conversion *c) {
    for (size_t i = 0; i < c->n_tensor; i++)
        recipe_drop(c->tensor[i].recipe);
    ggl_free(c->key);
    ggl_free(c->tensor);
    ggl_arena_fini(&c->arena);
}

/* --- config.a.b ------------------------------------------------------------------------------- */

static bool find_field(arch_eval *ev, const arch_expr *e, const json_value **out) {
    if (e->kind == EX_NAME && strcmp(e->name, "config") == 0) {
        *out = ev->conv->config;
        return true;
    }
    if (e->kind != EX_FIELD) {
        arch_error(ev, e->place, "values have no parts, but config: config.a.b");
        return false;
    }
    if (!find_field(ev, e->a, out))
        return false;
    *out = json_get(*out, e->name); /* of null, too: absent */
    return true;
}

static arch_value from_json(const json_value *v) {
    switch (v->kind) {
    case JSON_NUMBER:
        return arch_number(v->number);
    case JSON_BOOL:
        return arch_bool(v->flag);
    case JSON_STRING:
        return (arch_value){.kind = VAL_STRING, .str = v->str};
    default:
        return arch_none(NULL);
    }
}

static arch_value from_json_array(arch_eval *ev, const arch_expr *e, const json_value *v) {
    arch_value *item = ggl_arena_alloc(&ev->arena, v->of.n + 1, sizeof *item);
    if (!item)
        return arch_nomem(ev);
    if (!arch_step(ev, e->place, (int64_t)v->of.n))
        return ARCH_FAIL;
    for (size_t i = 0; i < v->of.n; i++)
        item[i] = from_json(&v->of.item[i]);
    return (arch_value){.kind = VAL_LIST, .item = item, .n = v->of.n};
}

arch_value arch_convert_field(arch_eval *ev, const arch_expr *e) {
    const json_value *v;
    char quote[128], text[192];
    if (!ev->conv)
        return arch_error(ev, e->place, "'config' is there in a convert section only");
    if (!find_field(ev, e, &v))
        return ARCH_FAIL;
    arch_quote(e->place, quote, sizeof quote);
    if (v && v->kind == JSON_ARRAY)
        return from_json_array(ev, e, v);
    if (v && v->kind == JSON_OBJECT)
        return arch_error(ev, e->place, "%s is an object in config.json: one of its values is wanted", quote);
    if (v && v->kind != JSON_NULL)
        return from_json(v);
    snprintf(text, sizeof text, "%s is missing in config.json", quote);
    arch_value none = arch_none(arch_strdup(ev, text));
    none.absent_key = true;
    return none.text ? none : ARCH_FAIL;
}

arch_value arch_convert_has(arch_eval *ev, const arch_expr *e) {
    const json_value *v;
    return find_field(ev, e, &v) ? arch_bool(v && v->kind != JSON_NULL) : ARCH_FAIL;
}

bool arch_convert_number(const arch_eval *ev, const char *name, double *out) {
    if (!ev->conv->stacking || strcmp(name, "e") != 0)
        return false;
    *out = (double)ev->conv->e;
    return true;
}

/* --- the keys as a source --------------------------------------------------------------------- */

const converted_key *arch_converted_key(const arch_conversion *c, const char *name) {
    for (size_t i = 0; i < c->n_key; i++)
        if (strcmp(c->key[i].name, name) == 0)
            return &c->key[i];
    return NULL;
}

static bool keys_find(void *ctx, const char *name, llm_arch_key *out) {
    const arch_conversion *c = ctx;
    const converted_key *k = arch_converted_key(c, name);
    if (k)
        *out = k->key;
    else if (c->family && strcmp(name, "general.architecture") == 0)
        *out = (llm_arch_key){LLM_ARCH_STRING, false, 1, &c->family_item};
    else
        return false;
    return true;
}

static bool keys_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    (void)ctx;
    *out = ((const llm_arch_item *)key->handle)[i];
    return true;
}

static bool keys_at(void *ctx, size_t i, ggl_str *name) {
    const arch_conversion *c = ctx;
    if (i >= c->n_key)
        return false;
    *name = (ggl_str){c->key[i].name, strlen(c->key[i].name)};
    return true;
}

static bool no_tensor(void *ctx, llm_arch_tensor *t) {
    (void)ctx;
    (void)t;
    return false;
}

static llm_arch_source keys_source(arch_conversion *c) {
    return (llm_arch_source){.ctx = c,
                             .name = "config.json",
                             .find_key = keys_find,
                             .get_item = keys_item,
                             .find_tensor = no_tensor,
                             .key_at = keys_at};
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool put_item(arch_eval *ev, const arch_mapping *m, const arch_value *v, llm_arch_type *type, llm_arch_item *item) {
    char text[256];
    *type = v->kind == VAL_STRING ? LLM_ARCH_STRING : v->kind == VAL_BOOL ? LLM_ARCH_BOOL : LLM_ARCH_NUMBER;
    *item = (llm_arch_item){v->num, v->flag, v->str};
    if (v->kind == VAL_NUMBER && isfinite(v->num))
        return true;
    if (v->kind == VAL_STRING || v->kind == VAL_BOOL)
        return true;
    arch_error(ev, m->expr->place, "a key is a number, a string, true or false, or a list of these: %s",
               arch_value_text(v, text, sizeof text));
    return false;
}

static bool put_key(arch_eval *ev, const arch_mapping *m, const arch_value *v) {
    arch_conversion *c = ev->conv;
    bool is_list = v->kind == VAL_LIST;
    size_t n = is_list ? v->n : 1;
    llm_arch_item *item = ggl_arena_alloc(&c->arena, n + 1, sizeof *item);
    const char *name = ggl_arena_printf(&c->arena, "%s.%s", ev->family, m->name);
    llm_arch_type type = LLM_ARCH_NUMBER, first = type;
    if (!item || !name || !ggl_grow(&c->key, &c->cap_key, c->n_key + 1, sizeof *c->key))
        return arch_nomem(ev), false;
    for (size_t i = 0; i < n; i++) {
        if (!put_item(ev, m, is_list ? &v->item[i] : v, &type, &item[i]))
            return false;
        first = i ? first : type;
        if (type != first)
            return arch_error(ev, m->expr->place, "the list's elements are of different kinds"), false;
        if (type == LLM_ARCH_STRING && /* it outlives the evaluator */
            !(item[i].string.s = ggl_arena_strndup(&c->arena, item[i].string.s, item[i].string.n)))
            return arch_nomem(ev), false;
    }
    c->key[c->n_key++] = (converted_key){name, {type, is_list, n, item}};
    return true;
}

static bool convert_key(arch_eval *ev, const arch_mapping *m) {
    arch_value v = arch_eval_expr(ev, m->expr);
    if (v.kind == VAL_FAIL)
        return false;
    if (v.kind != VAL_NONE)
        return put_key(ev, m, &v);
    if (v.absent_key)
        arch_error_hint(ev, GGL_FORMAT, m->expr->place, "'?? none' if .x may be absent, '?? value' for another", "%s", v.text);
    return !v.absent_key;
}

/* arch <- "qwen3moe": one of the header's names; the first without such a line. */
static bool convert_family(arch_eval *ev, const arch_mapping *m) {
    char text[256];
    arch_value v = arch_eval_expr(ev, m->expr);
    if (v.kind == VAL_FAIL)
        return false;
    for (int k = 0; k < ev->arch->n_family; k++)
        if (v.kind == VAL_STRING && strlen(ev->arch->family[k]) == v.str.n &&
            memcmp(ev->arch->family[k], v.str.s, v.str.n) == 0) {
            ev->family = ev->arch->family[k];
            ev->global[SLOT_ARCH].v.str = (ggl_str){ev->family, v.str.n};
            return true;
        }
    arch_error(ev, m->expr->place, "'arch' is one of the descriptor's own names, in quotes: %s",
               arch_value_text(&v, text, sizeof text));
    return false;
}

static bool run_keys(arch_eval *ev) {
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next)
        if (m->kind == MAP_ARCH && !convert_family(ev, m))
            return false;
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next) {
        if (m->kind == MAP_REQUIRE && !arch_run(ev, m->require))
            return false;
        if (m->kind == MAP_KEY && !convert_key(ev, m))
            return false;
    }
    ev->conv->family = ev->family;
    ev->conv->family_item.string = (ggl_str){ev->family, strlen(ev->family)};
    return true;
}

ggl_status arch_convert_keys(arch_conversion *c, ggl_error *err) {
    llm_arch_source src = keys_source(c);
    arch_eval ev = {.arch = c->arch, .src = &src, .err = err, .layer = -1, .conv = c, .family = c->arch->family[0]};
    ev.arena.limit = c->arena.limit = ARCH_MAX_MEMORY;
    ev.g = ggl_graph_new(NULL); /* for an expression that is no number after all */
    bool ok = ev.g && arch_eval_init(&ev) && run_keys(&ev);
    ggl_graph_free(ev.g);
    arch_eval_fini(&ev);
    if (!ok && ev.status == GGL_OK)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", c->arch->text.name);
    return ev.status;
}

/* --- source tensors --------------------------------------------------------------------------- */

/* What a mapping makes; r NULL: nothing, as it may be. Errors are in ev. */
static bool make(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out);

static recipe *new_recipe(arch_eval *ev, recipe_kind kind, recipe *like, int n_part) {
    recipe *r = ggl_arena_alloc(&ev->conv->arena, 1, sizeof *r);
    recipe **part = ggl_arena_alloc(&ev->conv->arena, (size_t)n_part + 1, sizeof *part);
    if (!r || !part)
        return arch_nomem(ev), NULL;
    if (like)
        *r = *like;
    r->kind = kind;
    r->part = part;
    r->n_part = n_part;
    r->held = NULL;
    if (n_part > 0)
        part[0] = like;
    return r;
}

/* Dimensions of 1 go, but the last stays what functions act on. */
static bool take_shape(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t) {
    int last = t->n_dims - 1;
    r->n_dims = 0;
    for (int d = 0; d < 4; d++)
        r->ne[d] = 1;
    for (int d = 0; d < t->n_dims; d++) {
        if (t->ne[d] == 1 && d < last)
            continue;
        if (r->n_dims == GGL_MAX_DIMS) {
            arch_error(ev, e->place, "tensor %s has more than 4 dimensions", t->name.s);
            return false;
        }
        r->ne[r->n_dims++] = t->ne[d];
    }
    if (r->n_dims == 0)
        r->n_dims = 1;
    return true;
}

/* "stem" is stem.weight or stem.bias, or, of a weight, the whole name. */
static bool make_source(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    char name[600];
    const char *stem = arch_expand(ev, e->name, e->place);
    if (!stem)
        return false;
    snprintf(name, sizeof name, "%s.%s", stem, is_bias ? "bias" : "weight");
    st_tensor *t = llm_safetensors_find(ev->conv->source, name);
    if (!t && !is_bias)
        t = llm_safetensors_find(ev->conv->source, stem);
    if (!t)
        return true;
    if (t->type < 0) {
        arch_error(ev, e->place, "tensor %s has the type %s; what becomes a weight is F32, F16, BF16 or F64", t->name.s,
                   t->dtype);
        return false;
    }
    recipe *r = new_recipe(ev, RECIPE_SOURCE, NULL, 0);
    if (!r || !take_shape(ev, e, r, t))
        return false;
    t->used = true;
    r->source = t;
    *out = r;
    return true;
}

static const char *shape_text(const recipe *r, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (int d = 0; d < r->n_dims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, d ? ", " : "", r->ne[d]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
    return buf;
}

static bool whole_arg(arch_eval *ev, const arch_expr *e, int k, double min, int64_t *out) {
    arch_value v = arch_eval_expr(ev, e->arg[k].value);
    return v.kind != VAL_FAIL && arch_want_whole(ev, e->arg[k].value, &v, min, ARCH_MAX_DIM, out);
}

/* pairs(x, n), regroup(x, a, b), rows(x, from, n) */
static bool make_rows(arch_eval *ev, const arch_expr *e, recipe_kind kind, bool is_bias, recipe **out) {
    char shape[128];
    int64_t x, y = 0;
    recipe *a = NULL;
    if (!make(ev, e->arg[0].value, is_bias, &a) || !whole_arg(ev, e, 1, kind == RECIPE_ROWS ? 0 : 1, &x) ||
        (kind != RECIPE_PAIRS && !whole_arg(ev, e, 2, 1, &y)))
        return false;
    if (!a)
        return true;
    int64_t rows = a->ne[a->n_dims - 1], by = kind == RECIPE_PAIRS ? 2 * x : x * y;
    if (kind == RECIPE_ROWS && x + y > rows)
        return arch_error(ev, e->mark, "rows %" PRId64 " to %" PRId64 " of %s, which has %" PRId64 " rows", x, x + y - 1,
                          shape_text(a, shape, sizeof shape), rows), false;
    if (kind != RECIPE_ROWS && rows % by != 0)
        return arch_error(ev, e->mark, "the %" PRId64 " rows of %s are no multiple of %" PRId64, rows,
                          shape_text(a, shape, sizeof shape), by), false;
    if (!(*out = new_recipe(ev, kind, a, 1)))
        return false;
    (*out)->x = x;
    (*out)->y = y;
    if (kind == RECIPE_ROWS)
        (*out)->ne[a->n_dims - 1] = y;
    return true;
}

static bool make_transpose(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *a = NULL;
    if (!make(ev, e->arg[0].value, is_bias, &a) || !a)
        return ev->status == GGL_OK;
    if (a->n_dims == 1) {
        *out = a;
        return true;
    }
    if (!(*out = new_recipe(ev, RECIPE_TRANSPOSE, a, 1)))
        return false;
    (*out)->ne[0] = a->ne[1];
    (*out)->ne[1] = a->ne[0];
    return true;
}

static bool fits(arch_eval *ev, const arch_expr *e, const recipe *first, const recipe *r, int n_dims) {
    char a[128], b[128];
    bool same = first->n_dims == r->n_dims;
    for (int d = 0; d < n_dims; d++)
        same = same && first->ne[d] == r->ne[d];
    if (!same)
        arch_error(ev, e->mark, "%s of %s and %s", e->name, shape_text(first, a, sizeof a), shape_text(r, b, sizeof b));
    return same;
}

/* All of them, or none. */
static bool all_or_none(arch_eval *ev, const arch_expr *e, recipe *const *part, int n) {
    int n_there = 0;
    for (int k = 0; k < n; k++)
        n_there += part[k] != NULL;
    if (n_there > 0 && n_there < n)
        arch_error(ev, e->mark, "%d of the %d tensors are missing", n - n_there, n);
    return n_there == n;
}

static bool make_concat(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *part[ARCH_MAX_ARGS] = {NULL};
    for (int k = 0; k < e->n_arg; k++)
        if (!make(ev, e->arg[k].value, is_bias, &part[k]))
            return false;
    if (!all_or_none(ev, e, part, e->n_arg))
        return ev->status == GGL_OK;
    recipe *r = new_recipe(ev, RECIPE_JOIN, part[0], e->n_arg);
    if (!r)
        return false;
    int last = r->n_dims - 1;
    for (int k = 1; k < e->n_arg; k++) {
        if (!fits(ev, e, part[0], part[k], last))
            return false;
        r->part[k] = part[k];
        r->ne[last] += part[k]->ne[last];
        if (r->ne[last] > (int64_t)1 << 50)
            return arch_error(ev, e->mark, "concat of too much"), false;
    }
    *out = r;
    return true;
}

static bool make_stack(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    arch_conversion *c = ev->conv;
    int64_t n;
    if (c->stacking)
        return arch_error(ev, e->mark, "a stack in a stack"), false;
    if (!whole_arg(ev, e, 1, 1, &n) || !arch_step(ev, e->place, n))
        return false;
    if (n > ARCH_MAX_LAYERS)
        return arch_error(ev, e->mark, "a stack of more than %d", ARCH_MAX_LAYERS), false;
    recipe **part = ggl_arena_alloc(&c->arena, (size_t)n, sizeof *part);
    if (!part)
        return arch_nomem(ev), false;
    bool ok = true;
    c->stacking = true;
    for (c->e = 0; c->e < n && ok; c->e++)
        ok = make(ev, e->arg[0].value, is_bias, &part[c->e]) && (c->e == 0 || !part[0] || !part[c->e] ||
                                                                 fits(ev, e, part[0], part[c->e], part[0]->n_dims));
    c->stacking = false;
    if (!ok || !all_or_none(ev, e, part, (int)n))
        return ev->status == GGL_OK;
    if (part[0]->n_dims == GGL_MAX_DIMS)
        return arch_error(ev, e->mark, "a stack of tensors of 4 dimensions"), false;
    recipe *r = new_recipe(ev, RECIPE_JOIN, part[0], 1);
    if (!r)
        return false;
    r->part = part;
    r->n_part = (int)n;
    r->ne[r->n_dims++] = n;
    *out = r;
    return true;
}

static bool make_exp(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *a = NULL;
    if (!make(ev, e->arg[0].value, is_bias, &a))
        return false;
    *out = a && !is_bias ? new_recipe(ev, RECIPE_EXP, a, 1) : a;
    return !a || *out;
}

static bool make_call(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    switch (e->name[0]) { /* arch_resolve.c knows these seven only */
    case 't':
        return make_transpose(ev, e, is_bias, out);
    case 'p':
        return make_rows(ev, e, RECIPE_PAIRS, is_bias, out);
    case 'r':
        return make_rows(ev, e, e->name[1] == 'e' ? RECIPE_REGROUP : RECIPE_ROWS, is_bias, out);
    case 'c':
        return make_concat(ev, e, is_bias, out);
    case 's':
        return make_stack(ev, e, is_bias, out);
    default:
        return make_exp(ev, e, is_bias, out);
    }
}

static bool is_arithmetic(const arch_expr *e) {
    return e->kind == EX_BINARY &&
           (e->op == GGL_OP_ADD || e->op == GGL_OP_SUB || e->op == GGL_OP_MUL || e->op == GGL_OP_DIV);
}

/* Whether a source tensor can come out of it. */
static bool is_source(const arch_expr *e) {
    if (e->kind == EX_STRING || (e->kind == EX_CALL && e->callee == CALL_BUILTIN && e->builtin == FN_BUILTIN_COUNT))
        return true;
    if (is_arithmetic(e) || e->kind == EX_IF || e->kind == EX_OR_ELSE)
        return is_source(e->a) || is_source(e->b);
    return false;
}

/* x + n, x - n, x * n, x / n, n + x, n * x: weights only. */
static bool make_arithmetic(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    bool left = is_source(e->a);
    const arch_expr *x = left ? e->a : e->b, *n = left ? e->b : e->a;
    bool commutes = e->op == GGL_OP_ADD || e->op == GGL_OP_MUL;
    double number;
    recipe *a = NULL;
    if ((left && is_source(e->b)) || (!left && !commutes))
        return arch_error(ev, e->mark, "a tensor and a number stand at '%s' in a conversion, the tensor first", e->name), false;
    if (!make(ev, x, is_bias, &a))
        return false;
    arch_value v = arch_eval_expr(ev, n);
    if (v.kind == VAL_FAIL || !arch_want_number(ev, n, &v, &number))
        return false;
    *out = a;
    if (!a || is_bias)
        return true;
    bool add = e->op == GGL_OP_ADD || e->op == GGL_OP_SUB;
    if (!(*out = new_recipe(ev, add ? RECIPE_ADD : RECIPE_MUL, a, 1)))
        return false;
    (*out)->number = e->op == GGL_OP_SUB ? -number : e->op == GGL_OP_DIV ? 1 / number : number;
    return true;
}

/* --- constants -------------------------------------------------------------------------------- */

static recipe *hold(arch_eval *ev, int n_dims, const int64_t *ne) {
    recipe *r = new_recipe(ev, RECIPE_HELD, NULL, 0);
    if (!r)
        return NULL;
    r->n_dims = n_dims > 0 ? n_dims : 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = d < n_dims ? ne[d] : 1;
    r->held = ggl_arena_alloc(&ev->conv->arena, (size_t)recipe_count(r), sizeof *r->held);
    return r->held ? r : (arch_nomem(ev), NULL);
}

static recipe *hold_list(arch_eval *ev, const arch_expr *e, const arch_value *v) {
    int64_t n = (int64_t)v->n;
    recipe *r = hold(ev, 1, &n);
    for (int64_t i = 0; r && i < n; i++) {
        arch_value x = arch_list_item(ev, e, v, i);
        if (x.kind != VAL_NUMBER)
            return arch_error(ev, e->place, "a list of numbers is wanted for a tensor"), NULL;
        r->held[i] = (float)x.num;
    }
    return r;
}

/* What depends on no input is folded: so something that does reads it. */
static recipe *hold_tensor(arch_eval *ev, const arch_expr *e, ggl_tensor *t) {
    if (ggl_is_batched(t))
        return arch_error(ev, e->place, "a constant is wanted, and this depends on the token"), NULL;
    if (!ev->conv->backend)
        return arch_error(ev, e->place, "there is no backend to compute this constant"), NULL;
    recipe *r = hold(ev, t->n_dims, t->ne);
    ggl_tensor *x = r ? ggl_graph_input(ev->g, "x", GGL_F32, t->n_dims, t->ne, true) : NULL;
    ggl_tensor *y = x ? ggl_binary(ev->g, GGL_OP_MUL, x, t) : NULL;
    if (y)
        ggl_graph_output(ev->g, "y", y);
    ggl_status s = !r ? ev->status : ggl_graph_finish(ev->g, ev->err);
    if (s == GGL_OK)
        s = ggl_graph_fold(ev->g, ev->conv->backend, ev->err);
    if (s != GGL_OK) {
        ev->status = s;
        return NULL;
    }
    const ggl_tensor *c = y->src[1];
    if (c->op != GGL_OP_CONST || c->type != GGL_F32 || c->size != (size_t)recipe_count(r) * sizeof *r->held)
        return arch_error(ev, e->place, "this is no constant of numbers"), NULL;
    memcpy(r->held, c->data, c->size);
    return r;
}

static recipe *hold_value(arch_eval *ev, const arch_expr *e) {
    char text[256];
    arch_value v = arch_eval_expr(ev, e);
    switch (v.kind) {
    case VAL_NUMBER: {
        recipe *r = hold(ev, 0, NULL);
        if (r)
            r->held[0] = (float)v.num;
        return r;
    }
    case VAL_LIST:
        return hold_list(ev, e, &v);
    case VAL_TENSOR:
        return hold_tensor(ev, e, v.t);
    case VAL_NONE:
        if (v.absent_key)
            arch_error_hint(ev, GGL_FORMAT, e->place, "'?? none' if the tensor may be absent", "%s", v.text);
        return NULL;
    case VAL_FAIL:
        return NULL;
    default:
        return arch_error(ev, e->place, "no tensor is made from this: %s", arch_value_text(&v, text, sizeof text)), NULL;
    }
}

/* A constant has a graph of its own, and sees of the descriptor's names those that are no tensors. */
static bool make_constant(arch_eval *ev, const arch_expr *e, recipe **out) {
    size_t n = (size_t)ev->arch->n_global;
    arch_slot *seen = ggl_calloc(n, sizeof *seen);
    ggl_graph *g = ggl_graph_new(NULL);
    arch_eval in = *ev;
    for (size_t k = 0; seen && k < n; k++)
        if (ev->global[k].v.kind != VAL_TENSOR && ev->global[k].v.kind != VAL_CACHE)
            seen[k] = ev->global[k];
    in.g = g;
    in.global = seen;
    in.frame = NULL;
    in.made = NULL;
    in.call = in.keep = NULL;
    in.read = NULL;
    in.cap_made = in.n_call = in.cap_call = in.n_keep = in.cap_keep = in.n_read = in.cap_read = 0;
    ev->conv->in_constant = true;
    recipe *r = seen && g ? hold_value(&in, e) : (arch_nomem(&in), NULL);
    ev->conv->in_constant = false;
    ggl_graph_free(g);
    ggl_free(seen);
    ggl_free(in.made);
    ggl_free(in.call);
    ggl_free(in.keep);
    ggl_free(in.read);
    ev->arena = in.arena;
    ev->steps = in.steps;
    ev->status = in.status;
    ev->word = in.word;
    ev->n_word = in.n_word;
    ev->cap_word = in.cap_word;
    *out = r;
    return ev->status == GGL_OK;
}

static bool make(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    *out = NULL;
    if (!arch_step(ev, e->place, 1))
        return false;
    if (!is_source(e))
        return is_bias || make_constant(ev, e, out);
    switch (e->kind) {
    case EX_STRING:
        return make_source(ev, e, is_bias, out);
    case EX_CALL:
        return make_call(ev, e, is_bias, out);
    case EX_BINARY:
        return make_arithmetic(ev, e, is_bias, out);
    case EX_OR_ELSE:
        return make(ev, e->a, is_bias, out) && (*out || make(ev, e->b, is_bias, out));
    default: { /* EX_IF */
        bool yes;
        arch_value c = arch_eval_expr(ev, e->c);
        return c.kind != VAL_FAIL && arch_want_bool(ev, e->c, &c, &yes) && make(ev, yes ? e->a : e->b, is_bias, out);
    }
    }
}

/* --- weights ---------------------------------------------------------------------------------- */

static const arch_mapping *find_mapping(const arch_conversion *c, const char *name) {
    const arch_mapping *m = c->section->map;
    while (m && (m->kind != MAP_WEIGHT || strcmp(m->name, name) != 0))
        m = m->next;
    return m;
}

/* The same numbers in the declared shape: but for 1s they are those. */
static bool same_shape(const recipe *r, const llm_arch_tensor *t) {
    int d = 0, k = 0;
    for (;; d++, k++) {
        while (d < r->n_dims && r->ne[d] == 1)
            d++;
        while (k < t->n_dims && t->ne[k] == 1)
            k++;
        if (d == r->n_dims || k == t->n_dims)
            return d == r->n_dims && k == t->n_dims;
        if (r->ne[d] != t->ne[k])
            return false;
    }
}

static void missing_source(arch_eval *ev, const arch_mapping *m, const char *name, const llm_arch_tensor *t) {
    char text[256];
    const arch_expr *e = m->expr;
    while (e->kind != EX_STRING && (e->a || e->n_arg > 0))
        e = e->a ? e->a : e->arg[0].value;
    const char *stem = e->kind == EX_STRING && !strstr(e->name, "{e}") ? arch_expand(ev, e->name, e->place) : NULL;
    snprintf(text, sizeof text, stem ? "; it comes from %.200s" : "", stem);
    arch_error_hint(ev, GGL_FORMAT, m->place, NULL, "nothing in the folder makes %s%s (%s)", t->name, text, name);
}

bool arch_convert_weight(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t) {
    arch_conversion *c = ev->conv;
    const char *name = s->target[0].name;
    const arch_mapping *m = find_mapping(c, name);
    recipe *r = NULL;
    if (c->in_constant)
        return arch_error(ev, s->place, "a constant of a conversion declares no weights"), false;
    if (!m && !t->optional)
        arch_error(ev, s->target[0].place, "'%s' has no line in the convert section for it", name);
    if (!m || !make(ev, m->expr, is_bias, &r))
        return false;
    if (!r) {
        if (!t->optional)
            missing_source(ev, m, is_bias ? "its bias" : "its weight", t);
        return false;
    }
    t->type = GGL_F32;
    t->data = NULL;
    if (!same_shape(r, t)) { /* the caller's error shows both */
        t->n_dims = r->n_dims;
        memcpy(t->ne, r->ne, sizeof t->ne);
        return true;
    }
    if (arch_find_weight(ev, t->name))
        return true;
    if (!ggl_grow(&c->tensor, &c->cap_tensor, c->n_tensor + 1, sizeof *c->tensor))
        return arch_nomem(ev), false;
    converted_tensor *made = &c->tensor[c->n_tensor++];
    *made = (converted_tensor){.name = ggl_arena_strndup(&c->arena, t->name, strlen(t->name)), .n_dims = t->n_dims, .recipe = r};
    memcpy(made->ne, t->ne, sizeof made->ne);
    return made->name ? true : (arch_nomem(ev), false);
}

/* --- the whole -------------------------------------------------------------------------------- */

static const ggl_tensor *weight_under(const ggl_tensor *t) {
    while (t && (t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT))
        t = t->src[0];
    return t && t->op == GGL_OP_WEIGHT ? t : NULL;
}

/* Weights that something reads otherwise than as a matrix, or by rows. */
static void mark_numbers(ggl_tensor *const *node, int n, bool *plain) {
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = node[i];
        for (int k = 0; k < t->n_src; k++) {
            const ggl_tensor *w = weight_under(t->src[k]);
            bool as_matrix = (t->op == GGL_OP_LINEAR && k == 1) || (t->op == GGL_OP_PICK && k == 0);
            if (w && !as_matrix && t->op != GGL_OP_RESHAPE && t->op != GGL_OP_SPLIT)
                plain[w->id] = true;
        }
        if (t->body)
            mark_numbers(t->body->node, t->body->n_node, plain);
    }
}

/* Weights were made in the order of the tensors. */
static ggl_status mark_only_f32(arch_conversion *c, const ggl_graph *g, ggl_error *err) {
    int n = ggl_graph_n_nodes(g);
    bool *plain = ggl_calloc((size_t)ggl_graph_n_ids(g), sizeof *plain);
    size_t k = 0;
    if (!plain)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        mark_numbers((ggl_tensor *[]){ggl_graph_node(g, i)}, 1, plain);
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op == GGL_OP_WEIGHT && k < c->n_tensor && strcmp(t->name, c->tensor[k].name) == 0) {
            c->tensor[k].only_f32 = plain[t->id] || c->tensor[k].n_dims < 2;
            k++;
        }
    }
    ggl_free(plain);
    return k == c->n_tensor ? GGL_OK : ggl_fail(err, GGL_USAGE, "%zu of %zu weights are in the graph", k, c->n_tensor);
}

/* "model.layers.{l}.x": any number. */
static bool pattern_of(const char *s, char *buf, size_t size) {
    size_t n = 0;
    while (*s && n + 1 < size) {
        const char *end = *s == '{' ? strchr(s, '}') : NULL;
        buf[n++] = end ? '*' : *s;
        s = end ? end + 1 : s + 1;
    }
    buf[n] = 0;
    return *s == 0;
}

static bool is_ignored(const arch_conversion *c, ggl_str name) {
    char pattern[512];
    for (const arch_mapping *m = c->section->map; m; m = m->next)
        if (m->kind == MAP_IGNORE && pattern_of(m->name, pattern, sizeof pattern) && arch_match(pattern, name.s, name.n))
            return true;
    return false;
}

static ggl_status check_leftovers(const arch_conversion *c, ggl_error *err) {
    const st_tensor *first = NULL;
    size_t n = 0;
    int line, column;
    for (size_t i = 0; i < c->source->n_tensor; i++) {
        const st_tensor *t = &c->source->tensor[i];
        if (t->used || is_ignored(c, t->name))
            continue;
        first = first ? first : t;
        n++;
    }
    if (!n)
        return GGL_OK;
    arch_line_col(c->section->place, &line, &column);
    char more[64] = "";
    if (n > 1)
        snprintf(more, sizeof more, " and %zu more", n - 1);
    return ggl_fail(err, GGL_FORMAT, "%s: tensor %s%s: read by no line of the convert section in %s:%d; map it or ignore it",
                    c->source->file[first->file], first->name.s, more, c->arch->text.name, line);
}

/* As the model itself will be built, in its own context. */
static int64_t context_length(const arch_conversion *c) {
    char name[2 * ARCH_MAX_NAME];
    snprintf(name, sizeof name, "%s.context_length", c->family);
    const converted_key *k = arch_converted_key(c, name);
    double n = k && k->key.type == LLM_ARCH_NUMBER && k->key.n > 0 ? ((const llm_arch_item *)k->key.handle)->number : 0;
    return n >= 1 && n <= ARCH_MAX_DIM && n == floor(n) ? (int64_t)n : 0;
}

ggl_status arch_convert_tensors(arch_conversion *c, ggl_error *err) {
    llm_arch_source src = keys_source(c);
    const llm_arch_params params = {.n_ctx = context_length(c)};
    ggl_graph *g = ggl_graph_new(NULL);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s = arch_build_with(c->arch, &src, &params, g, NULL, c, err);
    if (s == GGL_OK)
        s = mark_only_f32(c, g, err);
    if (s == GGL_OK)
        s = check_leftovers(c, err);
    ggl_graph_free(g);
    return s;
}
