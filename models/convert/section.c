/* Convert sections: makes the keys, then a recipe for each weight that the descriptor declares.
 * The descriptor's evaluator evaluates the expressions, so names, layer numbers and keys work as
 * in the descriptor; section_expr.c handles those with source tensors. */
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const arch_convert *llm_arch_find_convert(const llm_arch *arch, ggl_str name) {
    for (const arch_convert *c = arch->convert; c; c = c->next)
        for (int k = 0; k < c->n_name; k++)
            if (strlen(c->name[k]) == name.n && memcmp(c->name[k], name.s, name.n) == 0)
                return c;
    return NULL;
}

void llm_arch_conversion_fini(arch_conversion *c) {
    for (size_t i = 0; i < c->n_tensor; i++)
        llm_recipe_drop(c->tensor[i].recipe);
    ggl_free(c->key);
    ggl_free(c->tensor);
    ggl_free(c->ignored);
    ggl_free(c->fault);
    ggl_free(c->note);
    ggl_arena_fini(&c->arena);
}

/* "{e}" within stack(..), and "{config.x}". */
static bool convert_number(const arch_eval *ev, const char *name, double *out) {
    static const char config[] = "config.";
    if (strncmp(name, config, sizeof config - 1) == 0) {
        const char *key = name + (sizeof config - 1);
        const json_value *v = llm_json_get(ev->conv->inner, key);
        v = v ? v : llm_json_get(ev->conv->config, key);
        v = v && v->kind == JSON_ARRAY && v->n == 1 ? &v->item[0] : v;
        *out = v && v->kind == JSON_NUMBER ? v->number : -1;
        return *out >= 0 && *out <= ARCH_MAX_DIM && *out == floor(*out);
    }
    if (!ev->conv->stacking || strcmp(name, "e") != 0)
        return false;
    *out = (double)ev->conv->e;
    return true;
}

/* --- the keys as a source --------------------------------------------------------------------- */

const converted_key *llm_arch_converted_key(const arch_conversion *c, const char *name) {
    for (size_t i = 0; i < c->n_key; i++)
        if (strcmp(c->key[i].name, name) == 0)
            return &c->key[i];
    return NULL;
}

/* The hook made_by. */
static const arch_expr *convert_made_by(const arch_eval *ev, const char *key) {
    const converted_key *k = llm_arch_converted_key(ev->conv, key);
    return k ? k->line->expr : NULL;
}

static bool keys_find(void *ctx, const char *name, llm_arch_key *out) {
    const arch_conversion *c = ctx;
    const converted_key *k = llm_arch_converted_key(c, name);
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
    int line, column;
    llm_arch_line_col(c->section->place, &line, &column);
    snprintf(c->source_name, sizeof c->source_name, "the convert section in %.200s:%d",
             c->arch->text.name, line);
    return (llm_arch_source){.ctx = c,
                             .name = c->source_name,
                             .find_key = keys_find,
                             .get_item = keys_item,
                             .find_tensor = no_tensor,
                             .key_at = keys_at};
}

/* --- hints for missing keys and names --------------------------------------------------------- */

static const char *convert_absent_hint(const arch_eval *ev, const char *key) {
    const arch_conversion *c = ev->conv;
    const size_t n = strlen(ev->family);
    if (strncmp(key, ev->family, n) != 0 || key[n] != '.')
        return "'?? value' sets its default";
    for (const arch_mapping *m = c->section->map; m; m = m->next)
        if (m->kind == MAP_KEY && !m->whole && strcmp(m->name, key + n + 1) == 0)
            return c->keys_done ? "its line gives none for this folder"
                                : "its line is further down";
    return "the section has no line for it";
}

/* Returns the key of a global, as in n_head = .attention.head_count, or NULL. */
static const arch_expr *key_of_name(const llm_arch *arch, int slot) {
    for (const arch_stmt *s = arch->body; s; s = s->next) {
        const arch_expr *e = s->kind == ST_ASSIGN && s->n_target == 1 && s->target[0].slot == slot
                                 ? s->expr[0]
                                 : NULL;
        while (e && e->kind == EX_OR_ELSE)
            e = e->a;
        if (e && e->kind == EX_KEY && !e->whole)
            return e;
    }
    return NULL;
}

static bool convert_unbound(arch_eval *ev, const arch_expr *e) {
    if (ev->conv->keys_done || e->global < 0)
        return false;
    const arch_expr *key = key_of_name(ev->arch, e->global);
    if (key)
        llm_arch_error(ev, e->place,
                       "'%s' has no value yet when keys are made: use the key of a line above, .%s",
                       e->name, key->name);
    else
        llm_arch_error(
            ev, e->place,
            "'%s' has no value yet when keys are made: use config.x, or keys of lines above",
            e->name);
    return true;
}

/*  */
/* --- keys ------------------------------------------------------------------------------------- */

static bool put_item(arch_eval *ev, const arch_mapping *m, const arch_value *v, llm_arch_type *type,
                     llm_arch_item *item) {
    char text[256];
    *type = v->kind == VAL_STRING ? LLM_ARCH_STRING
            : v->kind == VAL_BOOL ? LLM_ARCH_BOOL
                                  : LLM_ARCH_NUMBER;
    *item = (llm_arch_item){v->num, v->flag, v->str};
    if (v->kind == VAL_NUMBER && isfinite(v->num))
        return true;
    if (v->kind == VAL_STRING || v->kind == VAL_BOOL)
        return true;
    llm_arch_error(ev, m->expr->place,
                   "a key must be a number, a string, true or false, or a list of these: %s",
                   llm_arch_value_text(v, text, sizeof text));
    return false;
}

static bool put_key(arch_eval *ev, const arch_mapping *m, const arch_value *v) {
    arch_conversion *c = ev->conv;
    bool is_list = v->kind == VAL_LIST;
    size_t n = is_list ? v->n : 1;
    llm_arch_item *item = ggl_arena_alloc(&c->arena, n + 1, sizeof *item);
    const char *name = ggl_arena_printf(&c->arena, "%s%s%s", m->whole ? "" : ev->family,
                                        m->whole ? "" : ".", m->name);
    llm_arch_type type = LLM_ARCH_NUMBER, first = type;
    if (!item || !name || !ggl_grow(&c->key, &c->cap_key, c->n_key + 1, sizeof *c->key))
        return llm_arch_nomem(ev), false;
    for (size_t i = 0; i < n; i++) {
        const arch_value x = is_list ? llm_arch_list_item(ev, m->expr, v, (int64_t)i) : *v;
        if (x.kind == VAL_FAIL || !put_item(ev, m, &x, &type, &item[i]))
            return false;
        first = i ? first : type;
        if (type != first)
            return llm_arch_error(ev, m->expr->place, "the list's elements have different types"),
                   false;
        if (type == LLM_ARCH_STRING && /* it outlives the evaluator */
            !(item[i].string.s = ggl_arena_strndup(&c->arena, item[i].string.s, item[i].string.n)))
            return llm_arch_nomem(ev), false;
    }
    c->key[c->n_key++] = (converted_key){name, {type, is_list, n, item}, m};
    return true;
}

/* Evaluates a key line and adds the key, unless it has no value. False: reported. */
static bool convert_key(arch_eval *ev, const arch_mapping *m) {
    ev->conv->making = m;
    ev->conv->made = m->name;
    arch_value v = llm_arch_eval_expr(ev, m->expr);
    if (v.kind == VAL_FAIL)
        return false;
    if (v.kind != VAL_NONE)
        return put_key(ev, m, &v);
    if (v.absent_key)
        llm_arch_error_hint(
            ev, GGL_FORMAT, m->expr->place,
            llm_arch_convert_lacks_file(ev, m->expr)
                ? NULL
                : "write '?? none' if .x may be absent, or '?? value' for a default",
            "%s", v.text);
    return !v.absent_key;
}

/* arch <- "qwen3moe": chooses one of the header's names. Without such a line the first one is
 * used. */
static bool convert_family(arch_eval *ev, const arch_mapping *m) {
    char text[256];
    arch_value v = llm_arch_eval_expr(ev, m->expr);
    if (v.kind == VAL_FAIL)
        return false;
    for (int k = 0; k < ev->arch->n_family; k++)
        if (v.kind == VAL_STRING && strlen(ev->arch->key_family[k]) == v.str.n &&
            memcmp(ev->arch->key_family[k], v.str.s, v.str.n) == 0) {
            ev->family = ev->arch->key_family[k];
            ev->global[SLOT_ARCH].v.str = (ggl_str){ev->family, v.str.n};
            return true;
        }
    llm_arch_error(ev, m->expr->place,
                   "'arch' must be one of the descriptor's own names, in quotes: %s",
                   llm_arch_value_text(&v, text, sizeof text));
    return false;
}

static bool convert_forgive(arch_eval *ev);

/* note cond, "text": keeps the text if the condition holds. False: reported. */
static bool run_note(arch_eval *ev, const arch_mapping *m) {
    arch_conversion *c = ev->conv;
    bool yes = false;
    arch_value v = llm_arch_eval_expr(ev, m->expr);
    if (v.kind == VAL_FAIL || !llm_arch_want_bool(ev, m->expr, &v, &yes) || !yes)
        return ev->status == GGL_OK;
    if (!ggl_grow(&c->note, &c->cap_note, c->n_note + 1, sizeof *c->note))
        return llm_arch_nomem(ev), false;
    c->note[c->n_note++] = m->require->string; /* owned by the descriptor */
    return true;
}

static bool run_line(arch_eval *ev, const arch_mapping *m) {
    if (m->kind == MAP_NOTE)
        return run_note(ev, m) || convert_forgive(ev);
    if (m->kind == MAP_REQUIRE)
        return llm_arch_run(ev, m->require) || convert_forgive(ev);
    if (m->kind != MAP_KEY || convert_key(ev, m))
        return true;
    ev->conv->no_keys = true;
    return convert_forgive(ev);
}

/* Runs the lines: `within` and `only` first, then `arch`, then keys, notes and requires. */
static bool run_keys(arch_eval *ev) {
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next)
        if ((m->kind == MAP_WITHIN && !llm_arch_convert_within(ev, m)) ||
            (m->kind == MAP_ONLY && m->expr && !llm_arch_convert_has_value(ev, m)))
            return false;
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next)
        if (m->kind == MAP_ARCH && !convert_family(ev, m) && !convert_forgive(ev))
            return false;
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next)
        if (!run_line(ev, m))
            return false;
    ev->conv->keys_done = true;
    ev->conv->family = ev->family;
    ev->conv->family_item.string = (ggl_str){ev->family, strlen(ev->family)};
    return true;
}

static bool convert_weight(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t);

static bool convert_size(arch_eval *ev, llm_arch_tensor *t);
static bool convert_finish(arch_eval *ev);

static const arch_converter arch_conversion_ops = {
    .field = llm_arch_convert_field,
    .numbered = llm_arch_convert_numbered,
    .has = llm_arch_convert_has,
    .call = llm_arch_convert_call,
    .number = convert_number,
    .weight = convert_weight,
    .size = convert_size,
    .forgive = convert_forgive,
    .absent_hint = convert_absent_hint,
    .unbound = convert_unbound,
    .value = llm_arch_convert_value,
    .made_by = convert_made_by,
    .walk = llm_arch_convert_walk,
    .finish = convert_finish,
};

/* Runs something of the section before the descriptor has names. */
static ggl_status run_before(arch_conversion *c, bool (*run)(arch_eval *ev), ggl_error *err) {
    llm_arch_source src = keys_source(c);
    arch_eval ev = {.arch = c->arch,
                    .src = &src,
                    .err = err,
                    .layer = -1,
                    .convert = &arch_conversion_ops,
                    .conv = c,
                    .family = c->arch->key_family[0]};
    ev.arena.limit = c->arena.limit = ARCH_MAX_MEMORY;
    ev.g = ggl_graph_new(NULL); /* in case an expression makes a tensor */
    bool ok = ev.g && llm_arch_eval_init(&ev) && run(&ev);
    ggl_graph_free(ev.g);
    llm_arch_known_free(ev.known);
    llm_arch_eval_fini(&ev);
    if (!ok && ev.status == GGL_OK)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", c->arch->text.name);
    return ev.status;
}

ggl_status llm_arch_convert_keys(arch_conversion *c, ggl_error *err) {
    return run_before(c, run_keys, err);
}

static bool run_condition(arch_eval *ev) {
    arch_conversion *c = ev->conv;
    arch_value v = llm_arch_eval_expr(ev, c->section->cond);
    return v.kind != VAL_FAIL && llm_arch_want_bool(ev, c->section->cond, &v, &c->applies);
}

ggl_status llm_arch_convert_applies(arch_conversion *c, bool *applies, ggl_error *err) {
    c->applies = true;
    const ggl_status s = c->section->cond ? run_before(c, run_condition, err) : GGL_OK;
    *applies = s == GGL_OK && c->applies;
    return s;
}

typedef struct key_check {
    arch_conversion *c;
    ggl_error *err;
    ggl_status status;
} key_check;

static void check_key(void *ctx, const llm_arch_judged *key) {
    key_check *k = ctx;
    const converted_key *x = k->c->key;
    char value[160];
    for (size_t i = 0; i < k->c->n_key && key->use == LLM_ARCH_UNREAD && k->status == GGL_OK;
         i++, x++) {
        if (strlen(x->name) != key->key.n || memcmp(x->name, key->key.s, key->key.n) != 0)
            continue;
        ggl_status s = llm_arch_fail(
            k->err, GGL_FORMAT, x->line->place, NULL, NULL, "key %s = %s is not read by %s%s%s",
            x->name, llm_convert_value_text(x, value, sizeof value), k->c->arch->text.name,
            key->reason ? ": " : "", key->reason ? key->reason : "");
        if (!k->c->collect || !k->err || !llm_arch_convert_add_fault(k->c, k->err->msg))
            k->status = s;
    }
}

ggl_status llm_arch_convert_check_keys(arch_conversion *c, ggl_error *err) {
    const llm_arch_source src = keys_source(c);
    key_check k = {c, err, GGL_OK};
    ggl_status s = llm_arch_judge_keys(c->arch, &src, check_key, &k, err);
    return k.status != GGL_OK ? k.status : s;
}

/* --- going on after errors -------------------------------------------------------------------- */

#define MAX_FAULTS 1000

bool llm_arch_convert_add_fault(arch_conversion *c, const char *msg) {
    for (size_t i = 0; i < c->n_fault; i++)
        if (strcmp(c->fault[i], msg) == 0)
            return true;
    const char *own = ggl_arena_strndup(&c->arena, msg, strlen(msg));
    if (!own || !ggl_grow(&c->fault, &c->cap_fault, c->n_fault + 1, sizeof *c->fault))
        return false;
    c->fault[c->n_fault++] = own;
    return true;
}

static bool convert_forgive(arch_eval *ev) {
    arch_conversion *c = ev->conv;
    if (!c->collect || !ev->err || ev->status == GGL_OK || ev->status == GGL_NOMEM ||
        ev->status == GGL_LIMIT || c->n_fault >= MAX_FAULTS)
        return false;
    if (!llm_arch_convert_add_fault(c, ev->err->msg))
        return llm_arch_nomem(ev), false;
    ev->status = GGL_OK;
    return true;
}

/* --- weights ---------------------------------------------------------------------------------- */

/* Returns the line of a weight that is declared now: the one for its prefix, or else the one
 * without a prefix. NULL: none. */
static const arch_mapping *find_mapping(const arch_eval *ev, const char *name, bool bias) {
    const char *prefix = ev->stage && ev->stage->string ? ev->stage->string : ev->prefix;
    const arch_mapping *any = NULL;
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next) {
        if (m->kind != MAP_WEIGHT || m->bias != bias || strcmp(m->name, name) != 0)
            continue;
        if (m->other && prefix && strcmp(m->other, prefix) == 0)
            return m;
        any = m->other ? any : m;
    }
    return any;
}

/* True if the shapes are equal, not counting dimensions of 1. */
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

/* Returns the line for the tensor of that name, which is declared outside of layers and functions; NULL: there is none. */
static const arch_mapping *line_of_tensor(const arch_eval *ev, const arch_stmt *s,
                                          const char *prefix, const char *name) {
    const arch_mapping *found = NULL;
    char own[3 * ARCH_MAX_NAME];
    for (; s && !found; s = s->next) {
        if (s->kind == ST_PREFIX)
            prefix = s->string;
        snprintf(own, sizeof own, "%s%s.weight", prefix ? prefix : "",
                 s->kind == ST_WEIGHT ? s->target[0].name : "");
        if (s->kind == ST_WEIGHT && strcmp(s->string ? s->string : own, name) == 0)
            found = find_mapping(ev, s->target[0].name, false);
        for (int k = 0; k < s->n_arm && !found && s->kind != ST_LAYER; k++)
            found = line_of_tensor(ev, s->arm[k].body,
                                   s->kind == ST_STAGE && s->string ? s->string : prefix, name);
    }
    return found;
}

/* size("..") of a tensor that the conversion makes, maybe later: by the line that makes it. */
static bool convert_size(arch_eval *ev, llm_arch_tensor *t) {
    arch_conversion *c = ev->conv;
    const arch_mapping *m =
        c->sizing || !c->keys_done ? NULL : line_of_tensor(ev, ev->arch->body, NULL, t->name);
    recipe *r = NULL;
    if (!m)
        return false;
    const arch_mapping *making = c->making;
    const char *made = c->made;
    arch_frame *frame = ev->frame;
    ev->frame = NULL;
    c->making = m;
    c->made = ggl_arena_strndup(&c->arena, t->name, strlen(t->name));
    c->sizing = true;
    const bool ok =
        c->made ? llm_arch_convert_make(ev, m->expr, false, &r) : (llm_arch_nomem(ev), false);
    c->sizing = false;
    c->making = making;
    c->made = made;
    ev->frame = frame;
    if (!ok || !r)
        return false;
    t->n_dims = r->n_dims;
    memcpy(t->ne, r->ne, sizeof t->ne);
    return true;
}

/* True if the folder has no tensor of the layer of which it lacks this one, "model.layers.2.norm.weight". */
static bool lacks_layer(const arch_eval *ev, const char *source) {
    char number[32];
    snprintf(number, sizeof number, ".%" PRId64 ".", ev->layer);
    const char *at = source && ev->layer >= 0 ? strstr(source, number) : NULL;
    return at &&
           !llm_arch_convert_has_sources(ev->conv, source, (size_t)(at - source) + strlen(number));
}

static void missing_source(arch_eval *ev, const arch_mapping *m, const char *name,
                           const llm_arch_tensor *t, bool is_bias) {
    char text[700] = "", shown[500];
    const char *source = llm_arch_convert_source_name(ev, m->expr, is_bias);
    if (source) {
        llm_arch_convert_tensor_text(ev->conv, source, shown, sizeof shown);
        snprintf(text, sizeof text, "; it comes from %s", shown);
    }
    if (ev->status != GGL_OK)
        return;
    ev->lacks_source = true;
    ev->lacks_layer = lacks_layer(ev, source);
    llm_arch_error_hint(ev, GGL_FORMAT, m->place, NULL,
                        "nothing in the folder is the source of %s%s (%s)", t->name, text, name);
}

/* True if a model that guesses for another one may read that one's tensor. */
static bool is_lent(const arch_eval *ev, const char *name) {
    return llm_arch_is_draft(ev->arch) &&
           (llm_arch_is_of_target(name) || strcmp(name, "token_embd.weight") == 0);
}

/* Makes the recipe for a weight. NULL: its line gives none, or ev has an error. */
static recipe *make_weight(arch_eval *ev, const arch_stmt *s, bool is_bias,
                           const llm_arch_tensor *t) {
    arch_conversion *c = ev->conv;
    const char *name = s->target[0].name;
    const arch_mapping *own = is_bias ? find_mapping(ev, name, true) : NULL,
                       *m = own ? own : find_mapping(ev, name, false);
    recipe *r = NULL;
    if (c->in_constant) {
        llm_arch_error(ev, s->place, "a constant of a conversion cannot declare weights");
        return NULL;
    }
    if (!m && !t->optional && !is_lent(ev, t->name))
        llm_arch_error(ev, s->target[0].place, "'%s' has no line in the convert section for it",
                       name);
    c->making = m;
    c->made = m ? ggl_arena_strndup(&c->arena, t->name, strlen(t->name)) : NULL;
    if (m && !c->made)
        return llm_arch_nomem(ev), NULL;
    c->own_bias = own != NULL;
    arch_frame *frame = ev->frame;
    /* the line sees top-level names, and of those of the function that declares the weight texts alone */
    ev->frame = NULL;
    ev->texts = frame;
    const bool made = m && llm_arch_convert_make(ev, m->expr, is_bias && !own, &r);
    ev->frame = frame;
    ev->texts = NULL;
    if (made && !r && !t->optional && !c->partial && !is_lent(ev, t->name))
        missing_source(ev, m, is_bias ? "its bias" : "its weight", t, is_bias);
    c->own_bias = false;
    return made ? r : NULL;
}

static bool convert_weight(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t) {
    arch_conversion *c = ev->conv;
    recipe *r = make_weight(ev, s, is_bias, t);
    t->type = GGL_F32;
    t->data = NULL;
    /* When errors are collected, pretends that a required weight exists with the declared shape. */
    if (!r && c->partial && ev->status == GGL_OK)
        return !t->optional;
    if (!r && ev->status == GGL_OK && is_lent(ev, t->name))
        return !t->optional;
    if (!r)
        return ev->status != GGL_OK && convert_forgive(ev) && !t->optional;
    /* the caller reports both shapes */
    if (!same_shape(r, t)) {
        t->n_dims = r->n_dims;
        memcpy(t->ne, r->ne, sizeof t->ne);
        return true;
    }
    if (llm_arch_find_weight(ev, t->name))
        return true;
    if (!ggl_grow(&c->tensor, &c->cap_tensor, c->n_tensor + 1, sizeof *c->tensor))
        return llm_arch_nomem(ev), false;
    converted_tensor *made = &c->tensor[c->n_tensor++];
    *made = (converted_tensor){
        .name = c->made, .n_dims = t->n_dims, .recipe = r, .line = c->making, .block_type = -1};
    memcpy(made->ne, t->ne, sizeof made->ne);
    return true;
}

/* Makes the tensors of `tensor("..")` lines, which an adapter has no part of; one without a source is left out. */
static bool make_others(arch_eval *ev) {
    arch_conversion *c = ev->conv;
    c->n_declared = c->n_tensor;
    for (const arch_mapping *m = c->section->map; m && !c->only_some; m = m->next) {
        recipe *r = NULL;
        c->making = m;
        c->made = m->name;
        if (m->kind != MAP_TENSOR)
            continue;
        if (!llm_arch_convert_make(ev, m->expr, false, &r) && !convert_forgive(ev))
            return false;
        if (!r)
            continue;
        if (!ggl_grow(&c->tensor, &c->cap_tensor, c->n_tensor + 1, sizeof *c->tensor))
            return llm_arch_nomem(ev), false;
        converted_tensor *made = &c->tensor[c->n_tensor++];
        *made = (converted_tensor){.name = m->name,
                                   .n_dims = r->n_dims,
                                   .recipe = r,
                                   .line = m,
                                   .only_f32 = true,
                                   .block_type = -1};
        memcpy(made->ne, r->ne, sizeof made->ne);
        while (made->n_dims > 1 && made->ne[made->n_dims - 1] == 1)
            made->n_dims--;
    }
    return true;
}

/* Keeps the values that say how many layers there are: what the descriptor reads is known now. */
static bool keep_layers(arch_eval *ev) {
    char text[600];
    llm_arch_keys_of_layers(ev, true, text, sizeof text);
    ev->conv->layers = ggl_arena_strndup(&ev->conv->arena, text, strlen(text));
    return ev->conv->layers || (llm_arch_nomem(ev), false);
}

static bool convert_finish(arch_eval *ev) {
    return keep_layers(ev) && llm_arch_convert_expand_ignored(ev) && llm_arch_convert_agree(ev) &&
           make_others(ev) && llm_arch_convert_check_copies(ev);
}

/* --- building the descriptor ------------------------------------------------------------------ */

static const ggl_tensor *weight_under(const ggl_tensor *t) {
    while (t && (t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT))
        t = t->src[0];
    return t && t->op == GGL_OP_WEIGHT ? t : NULL;
}

/* Marks weights that some node reads neither as a matrix nor by rows. */
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

typedef struct router_walk {
    const ggl_tensor **stack;
    bool *seen; /* by id; each node is pushed once */
    size_t n;
} router_walk;

static void router_visit(router_walk *w, const ggl_tensor *t) {
    if (t && !w->seen[t->id]) {
        w->seen[t->id] = true;
        w->stack[w->n++] = t;
    }
}

/* Marks the matrices of the first products on each path back from an index: the routers of
 * experts. */
static void mark_routers(router_walk *w, const ggl_tensor *index, bool *plain) {
    router_visit(w, index);
    while (w->n > 0) {
        const ggl_tensor *t = w->stack[--w->n];
        const ggl_tensor *matrix = t->op == GGL_OP_LINEAR ? weight_under(t->src[1]) : NULL;
        if (matrix)
            plain[matrix->id] = true;
        for (int k = 0; t->op != GGL_OP_LINEAR && k < t->n_src; k++)
            router_visit(w, t->src[k]);
    }
}

/* Sets plain[id] for the weights that must stay f32. */
static void mark_plain(const ggl_graph *g, router_walk *w, bool *plain) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        mark_numbers(&t, 1, plain);
        /* the index chooses experts */
        if (t->op == GGL_OP_PICK && weight_under(t->src[0]))
            mark_routers(w, t->src[1], plain);
    }
}

/* How the graph reads a weight. */
enum { READ_ROWS = 1, READ_PRODUCT = 2 };

/* Adds to how[id] how nodes read the weights. */
static void mark_readers(ggl_tensor *const *node, int n, char *how) {
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = node[i], *table = t->op == GGL_OP_PICK ? t->src[0] : NULL;
        const ggl_tensor *matrix = t->op == GGL_OP_LINEAR ? t->src[1] : NULL;
        if (table && table->op == GGL_OP_WEIGHT && table->n_dims == 2)
            how[table->id] |= READ_ROWS;
        if (matrix && matrix->op == GGL_OP_WEIGHT)
            how[matrix->id] |= READ_PRODUCT;
        if (t->body)
            mark_readers(t->body->node, t->body->n_node, how);
    }
}

/* Sets by_rows and by_product of each converted tensor. */
static ggl_status mark_how(arch_conversion *c, const ggl_graph *g, ggl_error *err) {
    char *how = ggl_calloc((size_t)ggl_graph_n_ids(g) + 1, sizeof *how);
    size_t k = 0;
    if (!how)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        mark_readers(&t, 1, how);
    }
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op != GGL_OP_WEIGHT || k >= c->n_declared || strcmp(t->name, c->tensor[k].name) != 0)
            continue;
        c->tensor[k].by_rows = how[t->id] & READ_ROWS;
        c->tensor[k++].by_product = how[t->id] & READ_PRODUCT;
    }
    ggl_free(how);
    return GGL_OK;
}

/* Sets only_f32 of each converted tensor. Weights were made in the order of c->tensor. */
static ggl_status mark_only_f32(arch_conversion *c, const ggl_graph *g, ggl_error *err) {
    int n = ggl_graph_n_nodes(g);
    const size_t n_ids = (size_t)ggl_graph_n_ids(g);
    bool *plain = ggl_calloc(n_ids, sizeof *plain);
    router_walk w = {ggl_calloc(n_ids, sizeof *w.stack), ggl_calloc(n_ids, sizeof *w.seen), 0};
    size_t k = 0;
    bool ok = plain && w.stack && w.seen;
    if (ok)
        mark_plain(g, &w, plain);
    ggl_free(w.stack);
    ggl_free(w.seen);
    if (!ok) {
        ggl_free(plain);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op == GGL_OP_WEIGHT && k < c->n_declared &&
            strcmp(t->name, c->tensor[k].name) == 0) {
            /* four dimensions: the kernel of a convolution over pictures, which few programs read in other types */
            c->tensor[k].only_f32 =
                plain[t->id] || c->tensor[k].n_dims < 2 || c->tensor[k].n_dims > 3;
            k++;
        }
    }
    ggl_free(plain);
    return k == c->n_declared
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%zu of %zu weights are in the graph", k, c->n_declared);
}

/* Checks that guesses stand for tokens of the model, where a tensor of the file says for which. */
static ggl_status check_guess_tokens(const arch_conversion *c, const llm_arch_result *m,
                                     ggl_error *err) {
    const char *name = m->guess_token ? m->guess_token->name : "";
    ggl_status s = GGL_OK;
    size_t i = 0;
    while (i < c->n_tensor && strcmp(c->tensor[i].name, name) != 0)
        i++;
    recipe *r = i < c->n_tensor ? c->tensor[i].recipe : NULL;
    for (int64_t k = 0, n = r ? llm_recipe_count(r) : 0; k < n && s == GGL_OK; k++) {
        float id = 0;
        s = llm_recipe_read(r, k, 1, &id, err);
        if (s == GGL_OK && !(id >= 0 && (double)id < (double)m->n_vocab))
            s = ggl_fail(err, GGL_FORMAT,
                         "tensor %s: element %" PRId64 " stands for the token %.0f, but there are "
                         "%" PRId64,
                         r->source ? llm_safetensors_text(r->source) : name, k, (double)id,
                         m->n_vocab);
    }
    return s;
}

/* Returns the context to build the model with, its own; 0: unknown. */
static int64_t context_length(const arch_conversion *c) {
    char name[2 * ARCH_MAX_NAME];
    snprintf(name, sizeof name, "%s.context_length", c->family);
    const converted_key *k = llm_arch_converted_key(c, name);
    double n = k && k->key.type == LLM_ARCH_NUMBER && k->key.n > 0
                   ? ((const llm_arch_item *)k->key.handle)->number
                   : 0;
    return n >= 1 && n <= ARCH_MAX_DIM && n == floor(n) ? (int64_t)n : 0;
}

ggl_status llm_arch_convert_tensors(arch_conversion *c, ggl_error *err) {
    llm_arch_source src = keys_source(c);
    const llm_arch_params params = {.size = sizeof params, .n_ctx = context_length(c)};
    llm_arch_result made = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s =
        llm_arch_build_with(c->arch, &src, &params, g, &made, &arch_conversion_ops, c, err);
    if (s == GGL_OK && c->n_fault == 0)
        s = mark_only_f32(c, g, err);
    if (s == GGL_OK && c->n_fault == 0)
        s = mark_how(c, g, err);
    if (s == GGL_OK && c->n_fault == 0)
        s = check_guess_tokens(c, &made, err);
    if (s == GGL_OK && !c->collect && !c->only_some)
        s = llm_arch_convert_check_leftovers(c, err);
    llm_arch_result_fini(&made);
    ggl_graph_free(g);
    return s;
}
