/* Reads values of config.json for a convert section: `config.a.b`, the value itself, `generation.a`, a
 * value of generation_config.json beside it, `target.a`, a key of the model for which it guesses, `processor.a`, one of the files that say how pictures are prepared, and `rope.x`, which hides the different forms of the rotation's parameters:
 *
 *     rope_theta, rope_scaling: {type or rope_type, ..}                 transformers up to 4
 *     rope_parameters: {rope_theta, rope_type, ..}                      transformers 5
 *     rope_parameters: {full_attention: {..}, sliding_attention: {..}}  per kind of layer:
 *                                                                       rope.full_attention.x */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/file.h"
#include "ggl/internal/math.h"
#include "ggl/internal/show.h"
#include "packed.h"

/* Values whose names in config.json differ from those after `rope.`. `outside`: names outside of
 * the objects, in older files. */
static const struct {
    const char *name, *key, *outside[ARCH_ROPE_NAMES];
} rope_names[] = {
    {"theta", "rope_theta", {"rope_theta", "rotary_emb_base"}},
    {"type", "rope_type", {NULL}},
    {"original", "original_max_position_embeddings", {"original_max_position_embeddings"}},
    {"partial_rotary_factor",
     "partial_rotary_factor",
     {"partial_rotary_factor", "rotary_pct", "rope_pct"}},
};
#define N_ROPE_NAMES (sizeof rope_names / sizeof *rope_names)

#define SLIDING "sliding_attention"
/* theta of the sliding layers in files without an object per kind of layer */
#define LOCAL_THETA "rope_local_base_freq"

const char *llm_arch_rope_key(const char *name, const char *const **outside) {
    static const char *const none[ARCH_ROPE_NAMES] = {NULL};
    for (size_t k = 0; k < N_ROPE_NAMES; k++)
        if (strcmp(rope_names[k].name, name) == 0) {
            *outside = rope_names[k].outside;
            return rope_names[k].key;
        }
    *outside = none;
    return name;
}

void llm_arch_convert_plain_numbers(json_value *v) {
    static const struct {
        const char *text;
        double number;
    } special[] = {{"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}};
    if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT)
        return;
    const json_value *written =
        v->kind == JSON_OBJECT && v->n == 1 ? llm_json_get(v, "__float__") : NULL;
    for (size_t k = 0; written && k < sizeof special / sizeof *special; k++)
        if (llm_json_is(written, special[k].text)) {
            *v = (json_value){.kind = JSON_NUMBER, .number = special[k].number};
            return;
        }
    for (size_t i = 0; i < v->n; i++)
        llm_arch_convert_plain_numbers((json_value *)&v->item[i]);
}

/* --- config.a.b ------------------------------------------------------------------------------- */

int llm_arch_field_path(const arch_expr *e, const char **name, int most, const char **root) {
    int n = 0, k = 0;
    const arch_expr *x = e;
    for (; x->kind == EX_FIELD; x = x->a)
        n++;
    *root = x->kind == EX_NAME ? x->name : "";
    for (x = e; x->kind == EX_FIELD; x = x->a, k++)
        if (n - 1 - k < most)
            name[n - 1 - k] = x->name;
    return n;
}

/* Counts the steps of a look-up in an object, whose names are compared one by one. False: too
 * many. */
static bool count_steps(arch_eval *ev, const arch_expr *e, const json_value *v) {
    return llm_arch_step(ev, e->place, v && v->kind == JSON_OBJECT ? 1 + (int64_t)v->n / 32 : 1);
}

static bool same_json(const json_value *a, const json_value *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JSON_BOOL:
        return a->flag == b->flag;
    case JSON_NUMBER:
        return a->number == b->number;
    case JSON_STRING:
        return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    case JSON_ARRAY:
        for (size_t i = 0; i < a->n && i < b->n; i++)
            if (a->item[i].kind >= JSON_ARRAY || !same_json(&a->item[i], &b->item[i]))
                return false;
        return a->n == b->n;
    default:
        return false;
    }
}

const json_value *llm_arch_convert_root(const arch_conversion *c) {
    return c->inner ? c->inner : c->config;
}

static bool is_there(const json_value *v) {
    return v && v->kind != JSON_NULL;
}

/* Finds config.x in the object of the `within` line, else beside it. False: the two differ,
 * reported. A text part may name a class of its own; that of the whole has chosen the section. */
static bool find_outermost(arch_eval *ev, const arch_expr *e, const json_value **out) {
    const json_value *in = llm_json_get(ev->conv->inner, e->name),
                     *beside = llm_json_get(ev->conv->config, e->name);
    if (!count_steps(ev, e, ev->conv->config) || !count_steps(ev, e, ev->conv->inner))
        return false;
    if (is_there(beside) && strcmp(e->name, "architectures") == 0)
        in = NULL;
    *out = is_there(in) ? in : beside;
    if (is_there(in) && is_there(beside) && in->kind != JSON_OBJECT && !same_json(in, beside)) {
        char own[80], other[80];
        llm_arch_convert_value_text(in, own, sizeof own);
        llm_arch_convert_value_text(beside, other, sizeof other);
        llm_arch_error(ev, e->place,
                       "config.json has two different values of %s, in the model's own object and "
                       "outside it: %s and %s; either may be right",
                       e->name, own, other);
        return false;
    }
    return true;
}

static bool find_config(arch_eval *ev, const arch_expr *e, const json_value **out);

/* Finds config.a[i]: an element of a list, or the value of the name "i" in an object that has numbers as
 * names, where there may be gaps. */
static bool find_element(arch_eval *ev, const arch_expr *e, const json_value **out) {
    char quote[128], name[24];
    int64_t i;
    if (!find_config(ev, e->a, out))
        return false;
    if (!is_there(*out))
        return true;
    arch_value v = llm_arch_eval_expr(ev, e->b);
    if (v.kind == VAL_FAIL || !llm_arch_want_whole(ev, e->b, &v, 0, (double)ARCH_MAX_DIM, &i))
        return false;
    if ((*out)->kind == JSON_OBJECT) {
        snprintf(name, sizeof name, "%" PRId64, i);
        if (!count_steps(ev, e, *out))
            return false;
        *out = llm_json_get(*out, name);
        return true;
    }
    const bool fits = (*out)->kind == JSON_ARRAY && (uint64_t)i < (*out)->n;
    if (!fits)
        llm_arch_error(ev, e->place, "%s is %s in config.json, so it has no element %" PRId64,
                       llm_arch_quote(e->a->place, quote, sizeof quote),
                       llm_json_kind_text((*out)->kind), i);
    else
        *out = &(*out)->item[i];
    return fits;
}

/* Finds processor.x in the first object that has it. */
static bool find_processor(arch_eval *ev, const arch_expr *e, const json_value **out) {
    *out = NULL;
    for (int k = 0; k < ARCH_PROCESSORS && !is_there(*out); k++) {
        if (!count_steps(ev, e, ev->conv->processor[k]))
            return false;
        *out = llm_json_get(ev->conv->processor[k], e->name);
    }
    return true;
}

static bool is_root(const arch_expr *e, const char *name) {
    return e->kind == EX_NAME && strcmp(e->name, name) == 0;
}

/* Finds processor.a.b in the value of processor.a, which older files have as one number for both sides of a picture. False: it has no parts, reported. */
static bool find_in_processor(arch_eval *ev, const arch_expr *e, const json_value **out) {
    char quote[128];
    const bool is_side = strcmp(e->name, "height") == 0 || strcmp(e->name, "width") == 0 ||
                         strcmp(e->name, "shortest_edge") == 0;
    if (!is_there(*out) || (*out)->kind == JSON_OBJECT || (is_side && (*out)->kind == JSON_NUMBER))
        return true;
    llm_arch_error(ev, e->a->place, "%s is %s, but it should have '%s'",
                   llm_arch_quote(e->a->place, quote, sizeof quote),
                   llm_json_kind_text((*out)->kind), e->name);
    return false;
}

static bool find_config(arch_eval *ev, const arch_expr *e, const json_value **out) {
    if (is_root(e, "config")) {
        *out = ev->conv->config;
        return true;
    }
    if (is_root(e, "generation")) {
        *out = ev->conv->generation;
        return true;
    }
    if (is_root(e, "target")) {
        *out = ev->conv->target;
        return true;
    }
    if (e->kind == EX_INDEX)
        return find_element(ev, e, out);
    if (e->kind == EX_FIELD && is_root(e->a, "processor"))
        return find_processor(ev, e, out);
    if (e->kind == EX_FIELD && ev->conv->inner && is_root(e->a, "config"))
        return find_outermost(ev, e, out);
    if (e->kind != EX_FIELD) {
        llm_arch_error(
            ev, e->place,
            "only config, generation, target, processor and rope have parts: config.a.b, "
            "rope.theta");
        return false;
    }
    const char *root;
    if (!find_config(ev, e->a, out) || !count_steps(ev, e, *out) ||
        (llm_arch_field_path(e, NULL, 0, &root) > 1 && strcmp(root, "processor") == 0 &&
         !find_in_processor(ev, e, out)))
        return false;
    if (strcmp(root, "processor") != 0 || !is_there(*out) || (*out)->kind != JSON_NUMBER)
        *out = llm_json_get(*out, e->name); /* of an absent or null object: NULL */
    return true;
}

/* --- rope.x ----------------------------------------------------------------------------------- */

typedef struct rope_search {
    arch_eval *ev;
    const arch_expr *e;
    const char *key, *layer; /* layer: the wanted kind of layer; NULL: any */
    const json_value *found; /* NULL: not found so far */
    const char *where;       /* where it was found, for messages */
} rope_search;

/* Considers the value at another place. False: it differs from the one already found, reported. */
static bool try_place(rope_search *s, const json_value *v, const char *where) {
    if (!v || v->kind == JSON_NULL)
        return true;
    if (s->found && !same_json(s->found, v)) {
        char first[80], second[80];
        llm_arch_convert_value_text(s->found, first, sizeof first);
        llm_arch_convert_value_text(v, second, sizeof second);
        llm_arch_error(s->ev, s->e->place,
                       "config.json has two different values of %s, in %s and in %s: %s and %s; "
                       "either may be right",
                       s->key, s->where, where, first, second);
        return false;
    }
    if (!s->found) {
        s->found = v;
        s->where = where;
    }
    return true;
}

/* Returns the normal name of a rope type: "default" if absent, and for "mrope", whose sections are a value of their own; "longrope" for its old
 * name "su". */
static const json_value *normal_type(const json_value *v) {
    static const json_value none = {.kind = JSON_STRING, .n = 7, .s = "default"};
    static const json_value longrope = {.kind = JSON_STRING, .n = 8, .s = "longrope"};
    return !v || llm_json_is(v, "mrope") ? &none : llm_json_is(v, "su") ? &longrope : v;
}

/* Considers an object's value. The type may be named rope_type or type. */
static bool try_object(rope_search *s, const json_value *box, const char *where) {
    const json_value *v = llm_json_get(box, s->key);
    const json_value *old = strcmp(s->key, "rope_type") == 0 ? llm_json_get(box, "type") : NULL;
    if (!v || v->kind == JSON_NULL)
        v = old;
    else if (old && old->kind != JSON_NULL && !same_json(normal_type(v), normal_type(old))) {
        llm_arch_error(
            s->ev, s->e->place,
            "%s in config.json has different values of rope_type and type: either may be right",
            where);
        return false;
    }
    return try_place(s, v, where);
}

/* Checks that a box has either an object per kind of layer (*nested) or values for all of them,
 * not both. */
static bool check_box(rope_search *s, const json_value *box, const char *name, bool *nested) {
    ggl_str object = {NULL, 0}, value = {NULL, 0};
    for (size_t i = 0; box && i < box->n; i++) {
        const json_value *v = &box->item[i];
        if (v->kind == JSON_OBJECT && v->n > 0)
            object = json_name(box, i);
        else if (v->kind != JSON_OBJECT && v->kind != JSON_NULL)
            value = json_name(box, i);
    }
    *nested = object.s != NULL;
    if (object.s && value.s)
        llm_arch_error(s->ev, s->e->place,
                       "%s in config.json has values for one kind of layers ('%.*s') and values "
                       "outside of it ('%.*s'): either may be right",
                       name, (int)ggl_utf8_cut(object.s, object.n, 60), object.s,
                       (int)ggl_utf8_cut(value.s, value.n, 60), value.s);
    return !object.s || !value.s;
}

/* Considers rope_parameters or rope_scaling. *nested: it has an object per kind of layer. */
static bool try_box(rope_search *s, const char *name, bool *nested) {
    const json_value *box =
        llm_json_get_kind(llm_arch_convert_root(s->ev->conv), name, JSON_OBJECT);
    if (!count_steps(s->ev, s->e, box) || !check_box(s, box, name, nested))
        return false;
    for (size_t i = 0; *nested && i < box->n; i++) {
        ggl_str kind = json_name(box, i);
        if (!count_steps(s->ev, s->e, &box->item[i]))
            return false;
        bool wanted =
            !s->layer || (kind.n == strlen(s->layer) && memcmp(kind.s, s->layer, kind.n) == 0);
        if (wanted && !try_object(s, &box->item[i], name))
            return false;
    }
    return *nested || try_object(s, box, name);
}

static bool find_rope_value(rope_search *s, const char *const *outside) {
    const json_value *config = llm_arch_convert_root(s->ev->conv);
    bool sliding = s->layer && strcmp(s->layer, SLIDING) == 0, nested[2] = {false, false};
    if (!try_box(s, "rope_parameters", &nested[0]))
        return false;
    /* the old form does not scale sliding layers */
    if (!sliding && !try_box(s, "rope_scaling", &nested[1]))
        return false;
    if (nested[0] && s->found)
        return true;
    const json_value *local =
        sliding && strcmp(s->key, "rope_theta") == 0 ? llm_json_get(config, LOCAL_THETA) : NULL;
    if (local && local->kind != JSON_NULL)
        return try_place(s, local, LOCAL_THETA);
    for (int k = 0; k < ARCH_ROPE_NAMES && outside[k]; k++)
        if (!try_place(s, llm_json_get(config, outside[k]), outside[k]))
            return false;
    return true;
}

static bool find_rope(arch_eval *ev, const arch_expr *e, const json_value **out) {
    const char *name[2] = {NULL, NULL}, *root;
    int n = llm_arch_field_path(e, name, 2, &root);
    const char *const *outside;
    if (n < 1 || n > 2) {
        llm_arch_error(
            ev, e->place,
            "the rotation has values rope.x, and for one kind of layers rope.full_attention.x");
        return false;
    }
    rope_search s = {.ev = ev, .e = e, .layer = n == 2 ? name[0] : NULL};
    s.key = llm_arch_rope_key(name[n - 1], &outside);
    if (!count_steps(ev, e, llm_arch_convert_root(ev->conv)) || !find_rope_value(&s, outside))
        return false;
    bool is_type = strcmp(s.key, "rope_type") == 0;
    const json_value *old =
        llm_json_get_kind(llm_arch_convert_root(ev->conv), "rope_scaling", JSON_OBJECT);
    if (is_type && !s.found && old && old->n > 0 && !(s.layer && strcmp(s.layer, SLIDING) == 0)) {
        llm_arch_error(ev, e->place,
                       "rope_scaling in config.json has no rope_type or type, so the scaling of "
                       "the rotation is unknown");
        return false;
    }
    *out = is_type ? normal_type(s.found) : s.found;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

bool llm_arch_convert_find(arch_eval *ev, const arch_expr *e, const json_value **out) {
    const char *root;
    if (llm_arch_field_path(e, NULL, 0, &root) > 0 && strcmp(root, "rope") == 0)
        return find_rope(ev, e, out);
    return find_config(ev, e, out);
}

static arch_value from_json(const json_value *v) {
    switch (v->kind) {
    case JSON_NUMBER:
        return llm_arch_number(v->number);
    case JSON_BOOL:
        return llm_arch_bool(v->flag);
    case JSON_STRING:
        return (arch_value){.kind = VAL_STRING, .str = json_str(v)};
    default:
        return llm_arch_none(NULL);
    }
}

const char *llm_arch_convert_module_file(const arch_conversion *c, ggl_str name) {
    char dense[32];
    for (const arch_mapping *m = c->section->map; m; m = m->next)
        if (m->kind == MAP_FOLDER && ggl_str_is(name, m->name))
            return m->other;
    for (int k = 0; k < c->n_dense; k++) {
        snprintf(dense, sizeof dense, "Dense_%d", k);
        if (ggl_str_is(name, dense))
            return c->dense_file[k];
    }
    return NULL;
}

void llm_arch_convert_tensor_text(const arch_conversion *c, const char *name, char *buf,
                                  size_t size) {
    static const char begin[] = "modules.";
    const char *module = name + sizeof begin - 1,
               *dot = strncmp(name, begin, sizeof begin - 1) == 0 ? strchr(module, '.') : NULL;
    const char *file =
        dot ? llm_arch_convert_module_file(c, (ggl_str){module, (size_t)(dot - module)}) : NULL;
    const int n = (int)ggl_utf8_cut(file ? dot + 1 : name, strlen(file ? dot + 1 : name), 200);
    if (file)
        snprintf(buf, size, "%.*s of the folder %.*s", n, dot + 1, (int)strcspn(file, "/"), file);
    else
        snprintf(buf, size, "%.*s", n, name);
}

const char *llm_arch_convert_folder(const arch_conversion *c, const arch_expr *e) {
    const char *name[2], *root;
    const bool is_within = llm_arch_field_path(e, name, 2, &root) > 1 &&
                           strcmp(root, "config") == 0 && strcmp(name[0], "modules") == 0;
    return is_within ? llm_arch_convert_module_file(c, (ggl_str){name[1], strlen(name[1])}) : NULL;
}

const char *llm_arch_convert_file(const arch_conversion *c, const arch_expr *e) {
    static const char *const files[][2] = {
        {"generation", "generation_config.json"},
        {"target", "the keys of the model that it guesses for"},
        {"processor", "preprocessor_config.json and processor_config.json"}};
    const char *root;
    const int n = llm_arch_field_path(e, NULL, 0, &root);
    const char *within = llm_arch_convert_folder(c, e);
    if (within)
        return within;
    for (size_t k = 0; n > 0 && k < sizeof files / sizeof *files; k++)
        if (strcmp(root, files[k][0]) == 0)
            return files[k][1];
    return "config.json";
}

static arch_value from_json_array(arch_eval *ev, const arch_expr *e, const json_value *v) {
    char quote[128];
    arch_value *item = ggl_arena_alloc(&ev->arena, v->n + 1, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    if (!llm_arch_step(ev, e->place, (int64_t)v->n))
        return ARCH_FAIL;
    for (size_t i = 0; i < v->n; i++) {
        if (v->item[i].kind >= JSON_ARRAY)
            return llm_arch_error(ev, e->place,
                                  "element %zu of %s is %s in %s: a list of numbers, "
                                  "strings or booleans is expected",
                                  i, llm_arch_quote(e->place, quote, sizeof quote),
                                  llm_json_kind_text(v->item[i].kind),
                                  llm_arch_convert_file(ev->conv, e));
        item[i] = from_json(&v->item[i]);
    }
    return (arch_value){.kind = VAL_LIST, .item = item, .n = v->n};
}

/* Makes a list of an object whose names are "0", "1", .., such as id2label; *out has no items if it is no such object. False:
 * reported. */
static bool as_list(arch_eval *ev, const arch_expr *e, const json_value *v, json_value *out) {
    *out = (json_value){.kind = JSON_ARRAY};
    if (v->n == 0 || v->n > 4096 || !llm_json_get(v, "0"))
        return true;
    json_value *item = ggl_arena_alloc(&ev->arena, v->n, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev), false;
    for (uint32_t i = 0; i < v->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%" PRIu32, i);
        const json_value *x = llm_json_get(v, name);
        if (!llm_arch_step(ev, e->place, (int64_t)v->n) || !x)
            return ev->status == GGL_OK;
        item[i] = *x;
    }
    out->item = item;
    out->n = v->n;
    return true;
}

bool llm_arch_convert_lacks_file(const arch_eval *ev, const arch_expr *e) {
    bool has = false;
    for (int k = 0; k < ARCH_PROCESSORS; k++)
        has |= ev->conv->processor[k] != NULL;
    return !has && e->kind == EX_FIELD && is_root(e->a, "processor");
}

arch_value llm_arch_convert_field(arch_eval *ev, const arch_expr *e) {
    const json_value *v;
    char quote[128], text[320];
    if (!llm_arch_convert_find(ev, e, &v))
        return ARCH_FAIL;
    llm_arch_quote(e->place, quote, sizeof quote);
    if (v && v->kind == JSON_ARRAY)
        return from_json_array(ev, e, v);
    json_value list = {.kind = JSON_ARRAY};
    if (v && v->kind == JSON_OBJECT && !as_list(ev, e, v, &list))
        return ARCH_FAIL;
    if (list.n > 0)
        return from_json_array(ev, e, &list);
    if (v && v->kind == JSON_OBJECT)
        return llm_arch_error(ev, e->place, "%s is an object in %s: one of its values is expected",
                              quote, llm_arch_convert_file(ev->conv, e));
    if (v && v->kind != JSON_NULL)
        return from_json(v);
    if (llm_arch_convert_lacks_file(ev, e))
        snprintf(text, sizeof text,
                 "the folder has neither preprocessor_config.json nor processor_config.json, which "
                 "say how pictures are prepared: %s is missing",
                 quote);
    else
        snprintf(text, sizeof text, "%s is missing in %s", quote,
                 llm_arch_convert_file(ev->conv, e));
    arch_value none = llm_arch_none(llm_arch_strdup(ev, text));
    none.absent_key = true;
    return none.text ? none : ARCH_FAIL;
}

bool llm_arch_convert_numbered(arch_eval *ev, const arch_expr *e) {
    const json_value *v;
    return llm_arch_convert_find(ev, e, &v) && v && v->kind == JSON_OBJECT;
}

bool llm_arch_convert_has_value(arch_eval *ev, const arch_mapping *m) {
    const json_value *v;
    char quote[128];
    if (!find_config(ev, m->expr, &v))
        return false;
    if (!v || v->kind == JSON_NULL)
        llm_arch_error_hint(ev, GGL_UNSUPPORTED, m->expr->place, NULL,
                            "the folder has no such part: %s is missing in config.json",
                            llm_arch_quote(m->expr->place, quote, sizeof quote));
    return ev->status == GGL_OK;
}

bool llm_arch_convert_within(arch_eval *ev, const arch_mapping *m) {
    const json_value *v;
    if (!find_config(ev, m->expr, &v))
        return false;
    if (v && v->kind == JSON_OBJECT)
        ev->conv->inner = v;
    return true;
}

/* --- values of lists and tensors -------------------------------------------------------------- */

/* list(x, n): the list of x for e = 0 .. n - 1. */
static arch_value make_list(arch_eval *ev, const arch_expr *e) {
    arch_conversion *c = ev->conv;
    char text[256];
    int64_t n;
    arch_value v = llm_arch_eval_expr(ev, e->arg[1].value);
    if (v.kind == VAL_FAIL || !llm_arch_want_whole(ev, e->arg[1].value, &v, 0, 1 << 20, &n))
        return ARCH_FAIL;
    if (c->stacking)
        return llm_arch_error(ev, e->mark, "a list in a list or stack is not allowed");
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n + 1, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    c->stacking = true;
    bool ok = true;
    for (c->e = 0; ok && c->e < n; c->e++) {
        item[c->e] = v = llm_arch_eval_expr(ev, e->arg[0].value);
        ok = v.kind == VAL_NUMBER || v.kind == VAL_BOOL || v.kind == VAL_STRING;
        if (!ok && v.kind != VAL_FAIL)
            llm_arch_error(ev, e->arg[0].value->place,
                           "an element must be a number, a string, true or false; for e = %" PRId64
                           ": %s",
                           c->e, llm_arch_value_text(&v, text, sizeof text));
    }
    c->stacking = false;
    return ok ? (arch_value){.kind = VAL_LIST, .item = item, .n = (size_t)n} : ARCH_FAIL;
}

/* has_file("name"): whether the folder has the file. */
static arch_value has_file(arch_eval *ev, const arch_expr *e) {
    const arch_expr *name = e->arg[0].value;
    if (name->kind != EX_STRING)
        return llm_arch_error(ev, name->place, "has_file(..) needs a name in quotes");
    const char *path = ggl_arena_printf(&ev->arena, "%s/%s",
                                        ev->conv->folder ? ev->conv->folder : ".", name->name);
    return path ? llm_arch_bool(ggl_file_exists(path)) : llm_arch_nomem(ev);
}

/* joined(config.x): the elements of the lists in a list, one after the other. */
static arch_value join_lists(arch_eval *ev, const arch_expr *e) {
    const arch_expr *of = e->arg[0].value;
    const json_value *v = NULL;
    char quote[128];
    size_t n = 0;
    bool are_lists = true;
    if (of->kind != EX_FIELD)
        return llm_arch_error(ev, of->place, "joined(..) needs a value config.x or generation.x");
    if (!llm_arch_convert_find(ev, of, &v))
        return ARCH_FAIL;
    if (!is_there(v))
        return llm_arch_convert_field(ev, of); /* none */
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++) {
        are_lists = are_lists && v->item[i].kind == JSON_ARRAY;
        n += v->item[i].n;
    }
    if (v->kind != JSON_ARRAY || !are_lists)
        return llm_arch_error(ev, of->place, "%s in %s is no list of lists",
                              llm_arch_quote(of->place, quote, sizeof quote),
                              llm_arch_convert_file(ev->conv, of));
    arch_value *item = ggl_arena_alloc(&ev->arena, n + 1, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    arch_value all = {.kind = VAL_LIST, .item = item};
    for (size_t i = 0; i < v->n; i++) {
        const arch_value part = from_json_array(ev, of, &v->item[i]);
        if (part.kind == VAL_FAIL)
            return part;
        for (size_t k = 0; k < part.n; k++)
            item[all.n++] = part.item[k];
    }
    return all;
}

/* Fails because the folder's tensors, which `what` needs, are not there. */
static arch_value need_source(arch_eval *ev, const arch_expr *e, const char *what) {
    ev->conv->needs_source = true;
    return llm_arch_error(ev, e->place, "%s needs the name of a tensor of the folder: %s", what,
                          ev->conv->no_source);
}

#define MAX_VALUES 65536

/* Finds the tensor that the call's argument names. NULL: *missing is the call's value, as it is missing or reported. */
static st_tensor *named_tensor(arch_eval *ev, const arch_expr *e, arch_value *missing) {
    const arch_expr *x = e->arg[0].value;
    char text[300], what[ARCH_MAX_NAME + 8];
    snprintf(what, sizeof what, "%s(..)", e->name);
    *missing = ARCH_FAIL;
    const char *stem = x->kind == EX_STRING ? llm_arch_expand(ev, x->name, x->place) : NULL;
    if (!stem)
        llm_arch_error(ev, x->place, "%s needs the name of a source tensor, in quotes", what);
    else if (!ev->conv->source)
        need_source(ev, e, what);
    if (!stem || !ev->conv->source)
        return NULL;
    st_tensor *t = llm_arch_convert_find_source(ev->conv, stem, false);
    if (t)
        return t;
    char shown[300];
    llm_arch_convert_tensor_text(ev->conv, stem, shown, sizeof shown);
    snprintf(text, sizeof text, "tensor %.260s is missing in the folder", shown);
    arch_value none = llm_arch_none(llm_arch_strdup(ev, text));
    none.absent_key = true;
    if (none.text)
        *missing = none;
    return NULL;
}

/* n_rows("tensor"), n_columns("tensor"): the tensor's last and first dimension, which no value of config.json may say. */
static arch_value count_of(arch_eval *ev, const arch_expr *e, bool of_rows) {
    arch_value missing;
    const st_tensor *t = named_tensor(ev, e, &missing);
    return t ? llm_arch_number(t->n_dims > 0 ? (double)t->ne[of_rows ? t->n_dims - 1 : 0] : 1)
             : missing;
}

/* Reads a tensor of I32 or I64, whose numbers f32 may not have. */
static bool whole_numbers(arch_eval *ev, const arch_expr *e, const st_tensor *t, int64_t n,
                          arch_value *item) {
    const size_t size = strcmp(t->dtype, "I64") == 0 ? 8 : 4;
    for (int64_t i = 0; i < n; i++) {
        int64_t x64;
        int32_t x32;
        memcpy(size == 8 ? (void *)&x64 : &x32, (const char *)t->data + (size_t)i * size, size);
        const int64_t x = size == 8 ? x64 : x32;
        if (x < -(INT64_C(1) << 53) || x > INT64_C(1) << 53) {
            llm_arch_error(ev, e->place,
                           "element %" PRId64 " of tensor %s is %" PRId64
                           ": value(..) reads whole numbers up to 2^53",
                           i, t->name.s, x);
            return false;
        }
        item[i] = llm_arch_number((double)x);
    }
    return true;
}

/* value("tensor"): the tensor's number, or the list of its numbers. */
static arch_value tensor_value(arch_eval *ev, const arch_expr *e) {
    arch_value missing;
    st_tensor *t = named_tensor(ev, e, &missing);
    if (!t)
        return missing;
    llm_arch_convert_use(ev->conv, t);
    recipe r = {.kind = RECIPE_SOURCE, .source = t};
    int64_t n = 1;
    for (int d = 0; d < t->n_dims && n <= MAX_VALUES; d++)
        n *= t->ne[d];
    if (!t->data && ev->conv->partial)
        return llm_arch_error(ev, e->place,
                              "value(..) needs the numbers of tensor %s, which an adapter lacks",
                              t->name.s);
    const bool whole = strcmp(t->dtype, "I64") == 0 || strcmp(t->dtype, "I32") == 0;
    if ((t->type < 0 && !whole) || n > MAX_VALUES || n < 1)
        return llm_arch_error(ev, e->place,
                              "tensor %s is of type %s with %" PRId64
                              " numbers: value(..) reads at most %d of F32, F16, BF16, F64, I32 or "
                              "I64",
                              t->name.s, t->dtype, n, MAX_VALUES);
    float *number = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *number);
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *item);
    if (!number || !item)
        return llm_arch_nomem(ev);
    if (!llm_arch_step(ev, e->place, n) ||
        (whole ? !whole_numbers(ev, e, t, n, item)
               : llm_recipe_read(&r, 0, n, number, ev->err) != GGL_OK))
        return ARCH_FAIL;
    for (int64_t i = 0; i < n && !whole; i++)
        item[i] = llm_arch_number((double)number[i]);
    return n == 1 ? item[0] : (arch_value){.kind = VAL_LIST, .item = item, .n = (size_t)n};
}

/* n_parts(rows, factors, block): in how many parts a matrix was saved whose rows have so many factors. */
static arch_value n_parts(arch_eval *ev, const arch_expr *e) {
    int64_t n[3];
    for (int k = 0; k < 3; k++) {
        const arch_expr *x = e->arg[k].value;
        const arch_value v = llm_arch_eval_expr(ev, x);
        if (v.kind == VAL_FAIL ||
            !llm_arch_want_whole(ev, x, &v, k == 1 ? 0 : 1, (double)ARCH_MAX_DIM, &n[k]))
            return ARCH_FAIL;
    }
    return llm_arch_number((double)llm_packed_parts(n[0], n[1], n[2]));
}

/* Calls a function that gives no tensor: list, value, n_rows, n_columns, joined, n_parts, or exp of a number. Those of source
 * tensors are in section_expr.c. */
arch_value llm_arch_convert_call(arch_eval *ev, const arch_expr *e) {
    double x;
    const int which = e->builtin - FN_BUILTIN_COUNT;
    if (which == CONVERSION_list)
        return make_list(ev, e);
    if (which == CONVERSION_value)
        return tensor_value(ev, e);
    if (which == CONVERSION_n_rows || which == CONVERSION_n_columns)
        return count_of(ev, e, which == CONVERSION_n_rows);
    if (which == CONVERSION_has_file)
        return has_file(ev, e);
    if (which == CONVERSION_joined)
        return join_lists(ev, e);
    if (which == CONVERSION_n_parts)
        return n_parts(ev, e);
    if (which == CONVERSION_tokens_alike)
        return llm_arch_convert_alike(ev, e);
    if (which == CONVERSION_primes)
        return llm_arch_convert_primes(ev, e);
    if (which == CONVERSION_drawn)
        return llm_arch_convert_drawn(ev, e);
    if (which != CONVERSION_exp)
        return llm_arch_error(ev, e->mark, "%s(..) is allowed only where a source tensor is",
                              e->name);
    arch_value v = llm_arch_eval_expr(ev, e->arg[0].value);
    return v.kind != VAL_FAIL && llm_arch_want_number(ev, e->arg[0].value, &v, &x)
               ? llm_arch_number(ggl_exp(x))
               : ARCH_FAIL;
}

arch_value llm_arch_convert_has(arch_eval *ev, const arch_expr *e) {
    const json_value *v;
    if (e->kind == EX_STRING) {
        const char *name = llm_arch_expand(ev, e->name, e->place);
        return name ? llm_arch_bool(ev->conv->source &&
                                    llm_arch_convert_find_source(ev->conv, name, false) != NULL)
                    : ARCH_FAIL;
    }
    return llm_arch_convert_find(ev, e, &v) ? llm_arch_bool(v && v->kind != JSON_NULL) : ARCH_FAIL;
}
