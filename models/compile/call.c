/* Calls of functions, in three ways:
 *
 *     inline     a def: the body's nodes become nodes of the caller
 *     one node   an op of the prelude: the body belongs to a CALL node, which a backend may run
 *                by its name
 *     recurrent  a function with a state: also a CALL node, whose body runs token after token. If it
 *                is an op of the descriptor, backends are told the name "own:NAME"
 *
 * A CALL node's sources are the arguments that are tensors, in the order of the parameters;
 * num[] holds those that are numbers, for kernels. An op called with any other argument (a
 * weight with a bias or factor, none) is expanded inline instead. */
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "rotate.h"

/* A call in progress. */
typedef struct call {
    arch_eval *ev;
    const arch_expr *e;
    const arch_fn *fn;
    arch_frame frame;
    ggl_tensor *src[ARCH_MAX_ARGS];
    double num[ARCH_MAX_ARGS];
    int n_src, n_num;
    bool plain; /* all arguments are tensors or numbers */
} call;

static void bind_param(call *c, int k, const arch_value *v) {
    c->frame.local[k] = (arch_slot){.v = *v, .bound = true, .place = c->e->place};
}

/* Evaluates the arguments in the order of the text, so that nodes are made in that order. */
static bool bind_args(call *c) {
    const arch_expr *e = c->e;
    const arch_fn *fn = c->fn;
    for (int k = 0; k < e->n_arg; k++) {
        int i = e->arg[k].name ? 0 : k;
        while (e->arg[k].name && strcmp(fn->param[i].name, e->arg[k].name) != 0)
            i++;
        arch_value v = llm_arch_eval_expr(c->ev, e->arg[k].value);
        if (v.kind == VAL_FAIL)
            return false;
        bind_param(c, i, &v);
    }
    return true;
}

static bool bind_defaults(call *c) {
    for (int k = 0; k < c->fn->n_param; k++) {
        if (c->frame.local[k].bound)
            continue;
        arch_value v = llm_arch_eval_expr(c->ev, c->fn->param[k].fallback);
        if (v.kind == VAL_FAIL)
            return false;
        bind_param(c, k, &v);
    }
    return true;
}

/* Splits the arguments into the CALL node's sources and numbers. */
static void sort_args(call *c) {
    c->plain = true;
    for (int k = 0; k < c->fn->n_param; k++) {
        const arch_value *v = &c->frame.local[k].v;
        if (v->kind == VAL_TENSOR && !v->bias && !v->factor)
            c->src[c->n_src++] = v->t;
        else if (v->kind == VAL_NUMBER)
            c->num[c->n_num++] = v->num;
        else
            c->plain = false;
    }
}

/* Runs the body. Reports a state without `keep`, and a body that ends without `return`. */
static bool run_body(call *c) {
    arch_eval *ev = c->ev;
    llm_arch_run(ev, c->fn->body);
    for (int k = 0; k < c->fn->n_local && ev->status == GGL_OK; k++)
        if (c->frame.local[k].state && !c->frame.local[k].kept)
            llm_arch_error(ev, c->frame.local[k].place,
                           "state '%s' is never given a new value: 'keep %s = ..'", c->fn->local[k],
                           c->fn->local[k]);
    if (ev->status == GGL_OK && !c->frame.result)
        llm_arch_error(ev, c->fn->place, "'%s' ends without 'return'", c->fn->name);
    return ev->status == GGL_OK;
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* Begins the body of a CALL node: replaces tensor arguments by the body's parameters. */
static bool begin_body(call *c) {
    arch_eval *ev = c->ev;
    ggl_tensor **param = ggl_body_begin(ev->g, c->src, c->n_src);
    if (!param) {
        if (llm_arch_graph_ok(ev, c->e->mark))
            llm_arch_nomem(ev);
        return false;
    }
    for (int k = 0, i = 0; k < c->fn->n_param; k++) {
        arch_value *v = &c->frame.local[k].v;
        if (v->kind != VAL_TENSOR || v->bias || v->factor)
            continue;
        if (!llm_arch_adapt_param(ev, param[i], v->t) || !llm_arch_rotate_same(ev, param[i], v->t))
            return false;
        v->t = param[i++]; /* an index keeps its range */
    }
    return true;
}

/* Joins the results of a body into one tensor: each flattened, one after the other. A single
 * tensor stays as it is. */
static ggl_tensor *pack(call *c, int n_tensors) {
    arch_eval *ev = c->ev;
    ggl_tensor *all = NULL;
    for (int k = 0; k < c->frame.n_result; k++) {
        ggl_tensor *t = c->frame.result[k].t;
        if (c->frame.result[k].kind != VAL_TENSOR)
            continue;
        if (n_tensors == 1)
            return t;
        int64_t count = ggl_count(t);
        ggl_tensor *flat = llm_arch_reshape(ev, c->e->mark, t, 1, &count, NULL);
        all = !all || !flat ? flat
                            : llm_arch_node(ev, c->e->mark, GGL_OP_CONCAT,
                                            (ggl_tensor *[]){all, flat}, 2, (double[]){0}, 1);
        if (!all)
            return NULL;
    }
    return all;
}

/* Splits the CALL node's value into the results again, with their shapes. */
static bool unpack(call *c, ggl_tensor *all, int n_tensors) {
    arch_eval *ev = c->ev;
    int64_t first = 0;
    for (int k = 0; k < c->frame.n_result; k++) {
        arch_value *v = &c->frame.result[k];
        if (v->kind != VAL_TENSOR)
            continue;
        ggl_tensor *t = all;
        if (n_tensors > 1) {
            int64_t count = ggl_count(v->t);
            t = llm_arch_split_one(ev, c->e->mark, all, 0, first, count, NULL);
            t = t ? llm_arch_reshape(ev, c->e->mark, t, v->t->n_dims, v->t->ne, v->t->dim_name)
                  : NULL;
            first += count;
        }
        if (!t)
            return false;
        *v = (arch_value){.kind = VAL_TENSOR,
                          .t = t,
                          .range = v->range,
                          .exact_range = v->exact_range,
                          .number_too = v->number_too};
    }
    return true;
}

/* Returns the name by which backends may know the call; NULL: none, as for a call with an adapted
 * or rotated weight, which only the body handles. The descriptor's own ops have a prefix, as one may be called
 * like an op of the prelude and mean something else. */
static const char *call_name(const call *c, char *buf, size_t size) {
    if (!c->fn->op || !c->plain)
        return NULL;
    for (int k = 0; k < c->n_src; k++)
        if (llm_arch_is_adapted(c->ev, c->src[k]) || llm_arch_is_rotated(c->ev, c->src[k]))
            return NULL;
    if (c->fn->text->prelude)
        return c->fn->name;
    snprintf(buf, size, "own:%s", c->fn->name);
    return buf;
}

/* Runs the function as the body of a CALL node. */
static bool run_as_node(call *c) {
    arch_eval *ev = c->ev;
    bool recurrent = c->fn->recurrent;
    if (!begin_body(c))
        return false;
    ev->in_recurrent += recurrent;
    bool ok = run_body(c);
    ev->in_recurrent -= recurrent;
    int n_tensors = 0;
    for (int k = 0; ok && k < c->frame.n_result; k++)
        n_tensors += c->frame.result[k].kind == VAL_TENSOR;
    if (ok && n_tensors == 0) {
        llm_arch_error(ev, c->fn->place, "'%s' does not return a tensor", c->fn->name);
        return false;
    }
    ggl_tensor *result = ok ? pack(c, n_tensors) : NULL;
    if (!result)
        return false;
    char name[ARCH_MAX_NAME + 8];
    ggl_tensor *t = ggl_body_end(ev->g, call_name(c, name, sizeof name), result, c->num, c->n_num);
    if (!llm_arch_graph_ok(ev, c->e->mark) || !t)
        return false;
    if (!llm_arch_push(ev, &ev->call, &ev->cap_call, ev->n_call + 1, sizeof *ev->call))
        return false;
    ev->call[ev->n_call++] = t;
    llm_arch_note_made(ev, c->e->mark, t);
    return llm_arch_note_rows(ev, c->e->mark, t) && unpack(c, t, n_tensors);
}

/* --- the call --------------------------------------------------------------------------------- */

/* Marks the results of `a, b = f(..)` as siblings: use.c accepts them if one is used. */
static void mark_siblings(arch_eval *ev, const arch_value *v, int n) {
    ev->n_siblings++;
    for (int k = 0; n > 1 && k < n; k++)
        if (v[k].kind == VAL_TENSOR && (size_t)v[k].t->id < ev->cap_made && ev->made[v[k].t->id].t)
            ev->made[v[k].t->id].siblings = ev->n_siblings;
}

static bool run_call(call *c) {
    bool as_node =
        c->fn->recurrent || (c->fn->op && c->fn->text->prelude && c->plain && c->n_src > 0);
    return as_node ? run_as_node(c) : run_body(c);
}

/* Copies the results out of the frame to where they outlive the call. */
static arch_value *keep_results(call *c, int *n) {
    arch_eval *ev = c->ev;
    *n = c->frame.n_result;
    if (*n == 1) {
        ev->one = c->frame.result[0];
        return &ev->one;
    }
    mark_siblings(ev, c->frame.result, *n);
    arch_value *out = ggl_arena_alloc(&ev->arena, (size_t)*n, sizeof *out);
    if (!out)
        return llm_arch_nomem(ev), NULL;
    memcpy(out, c->frame.result, (size_t)*n * sizeof *out);
    return out;
}

arch_value *llm_arch_call_fn(arch_eval *ev, const arch_expr *e, int *n) {
    const arch_stmt *at = ev->at;
    arch_value *out = NULL;
    if (ev->n_frames == ARCH_MAX_CALLS)
        return llm_arch_error_hint(ev, GGL_LIMIT, e->mark, NULL,
                                   "calls are nested more than %d deep", ARCH_MAX_CALLS),
               NULL;
    if (e->fn->recurrent && ev->in_recurrent)
        return llm_arch_error(ev, e->mark,
                              "'%s' has a state, and so does the function that calls it: a "
                              "function with a state cannot call another one",
                              e->name),
               NULL;
    if (!llm_arch_step(ev, e->mark, e->fn->n_local))
        return NULL;
    call *c = ggl_calloc(1, sizeof *c);
    arch_slot *local = ggl_calloc((size_t)e->fn->n_local + 1, sizeof *local);
    if (!c || !local) {
        llm_arch_nomem(ev);
    } else {
        *c = (call){.ev = ev,
                    .e = e,
                    .fn = e->fn,
                    .frame = {.fn = e->fn, .local = local, .call = e->mark, .up = ev->frame}};
        if (bind_args(c)) {
            ev->frame = &c->frame;
            ev->n_frames++;
            bool ok = bind_defaults(c);
            sort_args(c);
            ok = ok && run_call(c);
            ev->frame = c->frame.up;
            ev->n_frames--;
            ev->at = at;
            out = ok ? keep_results(c, n) : NULL;
        }
        ggl_free(c->frame.result);
    }
    ggl_free(local);
    ggl_free(c);
    return out;
}

arch_value *llm_arch_call(arch_eval *ev, const arch_expr *e, int *n) {
    return e->callee == CALL_FN ? llm_arch_call_fn(ev, e, n) : llm_arch_call_primitive(ev, e, n);
}
