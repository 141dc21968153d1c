/* Statements, and the interface of llm/internal/template.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/params.h"
#include "parse.h"
#include "run.h"

/* How a list of statements ended. */
typedef enum ending { DONE, BREAK, CONTINUE } ending;

static ending statements(run *r, const tn *t);

/* --- output ----------------------------------------------------------------------------------- */

/* Runs the statements and returns what they print. */
static ggl_str captured(run *r, const tn *body, ending *end) {
    tv_text text = {0}, *out = r->out;
    r->out = &text;
    *end = statements(r, body);
    r->out = out;
    return llm_tv_done(&text);
}

/* --- assignments ------------------------------------------------------------------------------ */

static void assign(run *r, const tn *target, tv value) {
    if (target->kind == TN_NAME) {
        llm_run_set(r, target->id, value);
    } else if (target->kind == TN_ATTR) {
        tv object = llm_run_eval(r, target->a);
        if (object.kind != TV_NAMESPACE)
            llm_tv_fail(&r->h, GGL_FORMAT, "only attributes of a namespace can be set, not of %s",
                        llm_tv_kind_text(object));
        llm_tv_dict_set(&r->h, object.dict, tv_str(target->name), value);
    } else {
        const tv_list *list = llm_tv_elements(&r->h, value);
        size_t n = 0;
        for (const tn *t = target->a; t; t = t->next)
            n++;
        if (n != list->n)
            llm_tv_fail(&r->h, GGL_FORMAT, "%zu values cannot be assigned to %zu variables",
                        list->n, n);
        n = 0;
        for (const tn *t = target->a; t; t = t->next)
            assign(r, t, list->at[n++]);
    }
}

/* --- macros ----------------------------------------------------------------------------------- */

/* Returns the name's index if the template mentions it, else -1. */
static int mentioned(const run *r, const char *name) {
    size_t i = llm_tn_find(r->t, (ggl_str){name, strlen(name)});
    return i == SIZE_MAX ? -1 : (int)i;
}

/* Sets the macro's parameters in its scope. */
static void set_params(run *r, const tv_macro *m, const tv_given *g) {
    const ggl_str name = m->node->name;
    const int varargs = mentioned(r, "varargs"), kwargs = mentioned(r, "kwargs");
    tv rest = llm_tv_new_list(&r->h, TV_TUPLE), others = llm_tv_new_dict(&r->h);
    size_t n = 0;
    for (const tn *p = m->node->a; p; p = p->next, n++) {
        const ggl_str param = r->t->names[p->id].text;
        const tv *named = g->by_name ? llm_tv_dict_find(g->by_name, param) : NULL;
        if (named && n < g->by_place.n)
            llm_tv_fail(&r->h, GGL_FORMAT, "%.*s has two values for '%.*s'", (int)name.n, name.s,
                        (int)param.n, param.s);
        llm_run_set(r, p->id,
                    n < g->by_place.n ? g->by_place.at[n]
                    : named           ? *named
                    : p->a            ? llm_run_eval(r, p->a)
                                      : tv_undefined(param));
    }
    for (size_t i = n; i < g->by_place.n; i++)
        llm_tv_push(&r->h, rest, g->by_place.at[i]);
    for (size_t i = 0; g->by_name && i < g->by_name->n; i++) {
        bool is_param = false;
        for (const tn *p = m->node->a; p && !is_param; p = p->next)
            is_param =
                llm_tv_equal(&r->h, g->by_name->item[i].key, tv_str(r->t->names[p->id].text));
        if (!is_param)
            llm_tv_dict_set(&r->h, others.dict, g->by_name->item[i].key, g->by_name->item[i].value);
    }
    if (rest.list->n && varargs < 0)
        llm_tv_fail(&r->h, GGL_FORMAT, "%.*s takes %zu arguments, not %zu", (int)name.n, name.s, n,
                    g->by_place.n);
    if (others.dict->n && kwargs < 0)
        llm_tv_fail(&r->h, GGL_FORMAT, "%.*s has no parameter '%.*s'", (int)name.n, name.s,
                    (int)others.dict->item[0].name.n, others.dict->item[0].name.s);
    if (varargs >= 0)
        llm_run_set(r, varargs, rest);
    if (kwargs >= 0)
        llm_run_set(r, kwargs, others);
}

tv llm_run_macro(run *r, const tv_macro *m, const tv_given *g, tv caller) {
    const int outside = r->outside, line = r->h.line;
    ending end;
    llm_tv_enter(&r->h);
    r->outside = r->scope;
    const size_t mark = llm_run_enter(r);
    for (size_t i = 0; i < m->n_around; i++)
        llm_run_set(r, m->around[i].id, m->around[i].value);
    set_params(r, m, g);
    if (caller.kind == TV_MACRO)
        llm_run_set(r, mentioned(r, "caller"), caller);
    const tv text = tv_str(captured(r, m->node->c, &end));
    llm_run_leave(r, mark);
    r->outside = outside;
    r->h.line = line;
    tv_leave(&r->h);
    return text;
}

/* Notes the values that the macro's variables have where it is defined, and itself. */
static void capture(run *r, tv macro) {
    tv_macro *m = macro.macro;
    size_t n = 1;
    llm_tv_step(&r->h, r->t->n_names);
    for (size_t id = 0; id < r->t->n_names; id++)
        n += r->local[id].scope > r->outside;
    m->around = llm_tv_alloc(&r->h, n, sizeof *m->around);
    if (m->node->kind == TN_MACRO)
        m->around[m->n_around++] = (tv_captured){m->node->id, macro};
    for (size_t id = 0; id < r->t->n_names; id++)
        if (r->local[id].scope > r->outside && !(m->n_around && m->around[0].id == (int)id))
            m->around[m->n_around++] = (tv_captured){(int)id, r->local[id].value};
}

static tv new_macro(run *r, const tn *t) {
    tv v = {.kind = TV_MACRO, .macro = llm_tv_alloc(&r->h, 1, sizeof(tv_macro))};
    v.macro->node = t;
    if (r->scope > 0)
        capture(r, v);
    return v;
}

/* {% call(..) macro(..) %} body {% endcall %}: the macro can call its caller. */
static void call_block(run *r, const tn *t) {
    tv fn = llm_run_eval(r, t->b->a);
    const tv_given g = llm_run_args(r, t->b->b);
    if (fn.kind != TV_MACRO || mentioned(r, "caller") < 0)
        llm_tv_fail(&r->h, GGL_FORMAT, "{%% call %%} needs a macro that calls caller()");
    tv text = llm_run_call(r, fn, &g, new_macro(r, t));
    llm_tv_put_str(&r->h, r->out, text);
}

/* --- loops ------------------------------------------------------------------------------------ */

/* Returns the elements for which the loop's condition holds. */
static const tv_list *chosen(run *r, const tn *t, const tv_list *all) {
    tv list = llm_tv_new_list(&r->h, TV_LIST);
    for (size_t i = 0; i < all->n; i++) {
        const size_t mark = llm_run_enter(r);
        assign(r, t->a, all->at[i]);
        if (llm_tv_truth(llm_run_eval(r, t->d)))
            llm_tv_push(&r->h, list, all->at[i]);
        llm_run_leave(r, mark);
    }
    return list.list;
}

static ending loop(run *r, const tn *t) {
    const tv_list *all = llm_tv_elements(&r->h, llm_run_eval(r, t->b));
    const int id = mentioned(r, "loop");
    if (t->d)
        all = chosen(r, t, all);
    tv_loop *l = llm_tv_alloc(&r->h, 1, sizeof *l);
    *l = (tv_loop){.list = all, .outer = r->looping};
    r->looping = l;
    const bool is_empty = all->n == 0; /* which the loop may make of a list */
    for (l->i = 0; l->i < all->n; l->i++) {
        llm_tv_step(&r->h, 1);
        const size_t mark = llm_run_enter(r);
        if (id >= 0)
            llm_run_set(r, id, (tv){.kind = TV_LOOP, .loop = l});
        assign(r, t->a, all->at[l->i]);
        const ending end = statements(r, t->c);
        llm_run_leave(r, mark);
        if (end == BREAK)
            break;
    }
    r->looping = l->outer;
    return is_empty ? statements(r, t->e) : DONE;
}

/* --- statements ------------------------------------------------------------------------------- */

static ending with(run *r, const tn *t) {
    tv values = llm_tv_new_list(&r->h, TV_LIST); /* none sees the variables that are set here */
    for (const tn *set = t->a; set; set = set->next)
        llm_tv_push(&r->h, values, llm_run_eval(r, set->b));
    const size_t mark = llm_run_enter(r);
    const tv *value = values.list->at;
    for (const tn *set = t->a; set; set = set->next)
        assign(r, set->a, *value++);
    const ending end = statements(r, t->c);
    llm_run_leave(r, mark);
    return end;
}

static ending statement(run *r, const tn *t) {
    ending end = DONE;
    switch (t->kind) {
    case TN_TEXT:
        llm_tv_put(&r->h, r->out, t->value.text.s, t->value.text.n);
        return DONE;
    case TN_PRINT:
        llm_tv_put_str(&r->h, r->out, llm_run_eval(r, t->a));
        return DONE;
    case TN_IF:
        return statements(r, llm_tv_truth(llm_run_eval(r, t->a)) ? t->b : t->c);
    case TN_FOR:
        return loop(r, t);
    case TN_SET:
        assign(r, t->a, llm_run_eval(r, t->b));
        return DONE;
    case TN_SET_TEXT:
        assign(r, t->a, llm_run_filters(r, t->b, tv_str(captured(r, t->c, &end))));
        return end;
    case TN_FILTERED:
        llm_tv_put_str(&r->h, r->out, llm_run_filters(r, t->b, tv_str(captured(r, t->c, &end))));
        return end;
    case TN_WITH:
        return with(r, t);
    case TN_MACRO:
        llm_run_set(r, t->id, new_macro(r, t));
        return DONE;
    case TN_CALLER:
        call_block(r, t);
        return DONE;
    case TN_BREAK:
        return BREAK;
    case TN_CONTINUE:
        return CONTINUE;
    default:
        llm_tv_fail(&r->h, GGL_FORMAT, "this is no statement"); /* the parser makes no such tree */
    }
}

static ending statements(run *r, const tn *t) {
    ending end = DONE;
    llm_tv_enter(&r->h);
    for (; t && end == DONE; t = t->next) {
        llm_tv_step(&r->h, 1);
        r->h.line = t->line;
        end = statement(r, t);
    }
    tv_leave(&r->h);
    return end;
}

/* --- templates -------------------------------------------------------------------------------- */

enum { MOST_TEXT = 4 << 20, MOST_TREE = 512 << 20 };

/* Copies the text with all line breaks as \n, and without one at its end. */
static char *normalized(tv_heap *h, const char *text, size_t *size) {
    char *s = llm_tv_alloc(h, *size + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < *size; i++) {
        const bool cr = text[i] == '\r';
        s[n++] = cr ? '\n' : text[i];
        i += cr && i + 1 < *size && text[i + 1] == '\n';
    }
    *size = n - (n > 0 && s[n - 1] == '\n');
    return s;
}

typedef struct source {
    llm_template *t;
    const char *text;
    size_t size;
} source;

/* Parses a copy of the text into t->body; arg: a source. */
static void parse(void *arg) {
    const source *s = arg;
    size_t size = s->size;
    const char *copy = normalized(&s->t->heap, s->text, &size);
    llm_tn_parse(s->t, copy, size);
}

ggl_status llm_template_new(llm_template **out, const char *text, size_t size, const char *name,
                            ggl_error *err) {
    *out = NULL;
    if (size > MOST_TEXT)
        return ggl_fail(err, GGL_LIMIT, "%s has %zu bytes; templates have at most %d MiB", name,
                        size, MOST_TEXT >> 20);
    llm_template *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a template");
    t->heap.arena.limit = MOST_TREE;
    t->heap.max_steps = SIZE_MAX;
    t->heap.err = err;
    t->name = ggl_arena_strndup(&t->heap.arena, name, strlen(name));
    t->heap.name = t->name;
    ggl_status st = ggl_index_init(&t->by_name, 64, sizeof *t->names, GGL_INDEX_STRINGS, err);
    if (st == GGL_OK && !t->name)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a template");
    if (st == GGL_OK && !ggl_os_attempt(&t->heap.attempt, parse, &(source){t, text, size}))
        st = t->heap.status;
    if (st != GGL_OK) {
        llm_template_free(t);
        return st;
    }
    *out = t;
    return GGL_OK;
}

void llm_template_free(llm_template *t) {
    if (!t)
        return;
    llm_tv_heap_fini(&t->heap);
    ggl_index_fini(&t->by_name);
    ggl_free(t->names);
    ggl_free(t);
}

size_t llm_tn_find(const llm_template *t, ggl_str name) {
    return ggl_index_find(&t->by_name, t->names, name);
}

bool llm_template_mentions(const llm_template *t, const char *variable) {
    return llm_tn_find(t, (ggl_str){variable, strlen(variable)}) != SIZE_MAX;
}

/* Reads the variable "now". */
static void set_time(run *r, const json_value *v) {
    struct tm tm = {0};
    char text[32] = "", end;
    if (v->kind == JSON_STRING && v->n < sizeof text)
        memcpy(text, v->s, v->n);
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &end) != 6)
        llm_tv_fail(&r->h, GGL_FORMAT, "'now' must be a time such as \"2025-03-09T14:05:06\"");
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    r->h.now = ggl_os_utc_seconds(&tm);
}

void llm_run_set_global(run *r, ggl_str name, tv value) {
    const size_t id = llm_tn_find(r->t, name);
    if (id != SIZE_MAX)
        r->global[id] = value;
}

void llm_run_set_value(run *r, ggl_str name, const json_value *value) {
    const size_t id = llm_tn_find(r->t, name);
    if (id != SIZE_MAX)
        r->global[id] = llm_tv_from_json(&r->h, value);
    if (ggl_str_is(name, "now"))
        set_time(r, value);
}

void llm_run_set_json(run *r, const json_value *object) {
    for (size_t i = 0; i < object->n; i++)
        llm_run_set_value(r, json_name(object, i), &object->item[i]);
}

typedef struct rendering {
    run *r;
    const llm_tn_rendering *how;
    tv_text out;
} rendering;

/* Runs the template; arg: a rendering. */
static void render(void *arg) {
    rendering *w = arg;
    run *r = w->r;
    r->out = &w->out;
    r->local = llm_tv_alloc(&r->h, r->t->n_names + 1, sizeof *r->local);
    r->global = llm_tv_alloc(&r->h, r->t->n_names + 1, sizeof *r->global);
    if (w->how->given)
        llm_tv_note_origin(&r->h);
    w->how->set(r, w->how->ctx);
    (void)statements(r, r->t->body);
}

/* Copies the output to *text. */
static ggl_status copy_out(const rendering *w, char **text, size_t *size, ggl_error *err) {
    const tv_text *out = &w->out;
    *text = ggl_calloc(out->n + 1, 1);
    if (!*text || (w->how->given && !llm_tv_origins(&w->r->h, llm_tv_done(out), w->how->given))) {
        ggl_free(*text);
        *text = NULL;
        return ggl_fail(err, GGL_NOMEM, "out of memory for a rendered template");
    }
    if (out->n)
        memcpy(*text, out->s, out->n);
    *size = out->n;
    return GGL_OK;
}

ggl_status llm_tn_render(const llm_template *t, const llm_tn_rendering *how, char **text,
                         size_t *size, ggl_error *err) {
    run *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a template");
    r->t = t;
    r->h = (tv_heap){.err = err,
                     .name = t->name,
                     .refuses_bare = how->refuses_bare,
                     .max_steps = how->max_steps ? how->max_steps : 50000000,
                     .arena.limit = how->max_memory ? how->max_memory : (size_t)256 << 20};
    rendering w = {.r = r, .how = how};
    ggl_status st = GGL_OK;
    if (ggl_os_attempt(&r->h.attempt, render, &w)) {
        st = copy_out(&w, text, size, err);
    } else {
        st = r->h.status;
        if (how->failed)
            how->failed(r, how->ctx);
    }
    llm_tv_heap_fini(&r->h);
    ggl_free(r);
    return st;
}

/* Texts of JSON objects, parsed. */
typedef struct documents {
    const llm_template_params *p;
    llm_json **doc; /* [p->n_vars] */
} documents;

static ggl_status read_documents(documents *d, ggl_error *err) {
    for (size_t i = 0; i < d->p->n_vars; i++) {
        const ggl_status st =
            llm_json_parse(&d->doc[i], d->p->vars[i].s, d->p->vars[i].n, "variables", err);
        if (st != GGL_OK)
            return st;
        if (d->doc[i]->root.kind != JSON_OBJECT)
            return ggl_fail(err, GGL_FORMAT, "variables: this is %s, not an object",
                            llm_json_kind_text((json_kind)d->doc[i]->root.kind));
    }
    return GGL_OK;
}

static void set_documents(run *r, void *ctx) {
    const documents *d = ctx;
    for (size_t i = 0; i < d->p->n_vars; i++)
        llm_run_set_json(r, &d->doc[i]->root);
}

ggl_status llm_template_render(const llm_template *t, const llm_template_params *params,
                               char **text, size_t *size, ggl_error *err) {
    llm_template_params own = {.size = sizeof own};
    documents d = {.p = &own};
    *text = NULL;
    *size = 0;
    const ggl_status is_read = GGL_READ_PARAMS(llm_template_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    d.doc = ggl_calloc(own.n_vars, sizeof(llm_json *));
    const llm_tn_rendering how = {.set = set_documents,
                                  .ctx = &d,
                                  .max_steps = own.max_steps,
                                  .max_memory = own.max_memory,
                                  .refuses_bare = own.refuses_bare};
    ggl_status st =
        d.doc ? read_documents(&d, err) : ggl_fail(err, GGL_NOMEM, "out of memory for a template");
    if (st == GGL_OK)
        st = llm_tn_render(t, &how, text, size, err);
    for (size_t i = 0; d.doc && i < own.n_vars; i++)
        llm_json_free(d.doc[i]);
    ggl_free(d.doc);
    return st;
}
