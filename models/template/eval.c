/* Expressions: their values, as Python computes them. */
#include <math.h>
#include <string.h>

#include "run.h"

/* --- variables -------------------------------------------------------------------------------- */

tv llm_run_variable(run *r, int id) {
    const binding *b = &r->local[id];
    if (b->scope > r->outside)
        return b->value;
    if (r->global[id].kind != TV_UNDEFINED)
        return r->global[id];
    const ggl_str name = r->t->names[id].text;
    const tv_builtin *builtin = llm_tv_global(name);
    if (!builtin)
        return tv_undefined(name);
    tv f = {.kind = TV_FUNCTION, .function = llm_tv_alloc(&r->h, 1, sizeof(tv_function))};
    f.function->builtin = builtin;
    return f;
}

void llm_run_set(run *r, int id, tv value) {
    binding *b = &r->local[id];
    if (r->scope == 0) {
        r->global[id] = value;
        return;
    }
    if (b->scope != r->scope) {
        if (r->n_undo == r->cap_undo) {
            size_t cap = r->cap_undo * 2 + 16;
            undo *bigger = llm_tv_alloc(&r->h, cap, sizeof *bigger);
            if (r->n_undo)
                memcpy(bigger, r->undo, r->n_undo * sizeof *bigger);
            r->undo = bigger;
            r->cap_undo = cap;
        }
        r->undo[r->n_undo++] = (undo){id, *b};
    }
    *b = (binding){value, r->scope};
}

size_t llm_run_enter(run *r) {
    r->scope++;
    return r->n_undo;
}

void llm_run_leave(run *r, size_t mark) {
    r->scope--;
    while (r->n_undo > mark) {
        r->n_undo--;
        r->local[r->undo[r->n_undo].id] = r->undo[r->n_undo].was;
    }
}

/* --- comparisons ------------------------------------------------------------------------------ */

static bool holds(tv_heap *h, int op, tv a, tv b) {
    static const char *const text[] = {"==", "!=", "<", "<=", ">", ">="};
    if (op == TN_IN || op == TN_NOT_IN)
        return llm_tv_contains(h, b, a) == (op == TN_IN);
    if (op == TN_EQ || op == TN_NE)
        return llm_tv_equal(h, a, b) == (op == TN_EQ);
    if (a.kind == TV_UNDEFINED || b.kind == TV_UNDEFINED)
        llm_tv_no_operation(h, text[op], a, b);
    if ((a.kind == TV_FLOAT && isnan(a.number)) || (b.kind == TV_FLOAT && isnan(b.number)))
        return false;
    const int c = llm_tv_compare(h, a, b, text[op]);
    return op == TN_LT ? c < 0 : op == TN_LE ? c <= 0 : op == TN_GT ? c > 0 : c >= 0;
}

/* a < b < c: each operand is evaluated once, and those after a false comparison not at all. */
static tv comparison(run *r, const tn *t) {
    tv a = llm_run_eval(r, t->a);
    for (const tn *c = t->b; c; c = c->next) {
        tv b = llm_run_eval(r, c->a);
        if (!holds(&r->h, c->op, a, b))
            return tv_bool(false);
        a = b;
    }
    return tv_bool(true);
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Adds the elements of a spread list or dict to the arguments. */
static void spread(run *r, tv_given *g, int op, tv v) {
    if (op == '*') {
        const tv_list *list = llm_tv_elements(&r->h, v);
        for (size_t i = 0; i < list->n; i++)
            llm_tv_push(&r->h, (tv){.kind = TV_LIST, .list = &g->by_place}, list->at[i]);
        return;
    }
    if (v.kind != TV_DICT)
        llm_tv_fail(&r->h, GGL_FORMAT, "** needs a dict, not %s", llm_tv_kind_text(v));
    for (size_t i = 0; i < v.dict->n; i++)
        llm_tv_dict_set(&r->h, g->by_name, v.dict->item[i].key, v.dict->item[i].value);
}

tv_given llm_run_args(run *r, const tn *args) {
    tv_given g = {0};
    if (args)
        g.by_name = llm_tv_new_dict(&r->h).dict;
    for (const tn *a = args; a; a = a->next) {
        tv v = llm_run_eval(r, a->a);
        if (a->op)
            spread(r, &g, a->op, v);
        else if (a->name.n)
            llm_tv_dict_set(&r->h, g.by_name, tv_str(a->name), v);
        else
            llm_tv_push(&r->h, (tv){.kind = TV_LIST, .list = &g.by_place}, v);
    }
    return g;
}

tv llm_run_call(run *r, tv fn, const tv_given *g, tv caller) {
    if (fn.kind == TV_MACRO)
        return llm_run_macro(r, fn.macro, g, caller);
    if (fn.kind == TV_FUNCTION)
        return llm_tv_call_builtin(&r->h, fn.function->builtin,
                                   fn.function->self.kind == TV_UNDEFINED ? "function" : "method",
                                   fn.function->self, g);
    if (fn.kind == TV_UNDEFINED)
        llm_tv_fail(&r->h, GGL_FORMAT, "'%.*s' is undefined, and cannot be called", (int)fn.text.n,
                    fn.text.s);
    llm_tv_fail(&r->h, GGL_FORMAT, "%s cannot be called", llm_tv_kind_text(fn));
}

tv llm_run_filters(run *r, const tn *filters, tv value) {
    if (!filters)
        return value;
    llm_tv_enter(&r->h);
    value = llm_run_filters(r, filters->a, value);
    tv_leave(&r->h);
    const tv_given g = llm_run_args(r, filters->b);
    r->h.line = filters->line;
    if (!filters->builtin)
        llm_tn_unknown(&r->h, filters);
    return llm_tv_call_builtin(&r->h, filters->builtin, "filter", value, &g);
}

/* --- expressions ------------------------------------------------------------------------------ */

static tv collection(run *r, const tn *t) {
    tv v = t->kind == TN_DICT ? llm_tv_new_dict(&r->h)
                              : llm_tv_new_list(&r->h, t->kind == TN_LIST ? TV_LIST : TV_TUPLE);
    for (const tn *e = t->a; e; e = e->next) {
        if (t->kind == TN_DICT) {
            tv key = llm_run_eval(r, e->a);
            llm_tv_dict_set(&r->h, v.dict, key, llm_run_eval(r, e->b));
        } else {
            llm_tv_push(&r->h, v, llm_run_eval(r, e));
        }
    }
    return v;
}

static tv slice(run *r, const tn *t) {
    tv object = llm_run_eval(r, t->a), bound[3];
    const tn *node[3] = {t->b, t->c, t->d};
    const tv *given[3] = {NULL};
    for (int i = 0; i < 3; i++)
        if (node[i]) {
            bound[i] = llm_run_eval(r, node[i]);
            given[i] = bound[i].kind == TV_NONE ? NULL : &bound[i];
        }
    return llm_tv_slice(&r->h, object, given[0], given[1], given[2]);
}

/* a | name(..) and a is name(..) */
static tv builtin(run *r, const tn *t) {
    if (!t->builtin)
        llm_tn_unknown(&r->h, t);
    tv self = llm_run_eval(r, t->a);
    const tv_given g = llm_run_args(r, t->b);
    r->h.line = t->line;
    return llm_tv_call_builtin(&r->h, t->builtin, t->kind == TN_FILTER ? "filter" : "test", self,
                               &g);
}

static tv call(run *r, const tn *t) {
    tv fn = llm_run_eval(r, t->a);
    const tv_given g = llm_run_args(r, t->b);
    r->h.line = t->line;
    return llm_run_call(r, fn, &g, tv_none());
}

static tv eval(run *r, const tn *t) {
    tv a;
    switch (t->kind) {
    case TN_CONST:
        return t->value;
    case TN_NAME:
        return llm_run_variable(r, t->id);
    case TN_LIST:
    case TN_TUPLE:
    case TN_DICT:
        return collection(r, t);
    case TN_ATTR:
        return llm_tv_attribute(&r->h, llm_run_eval(r, t->a), t->name);
    case TN_INDEX:
        a = llm_run_eval(r, t->a);
        return llm_tv_element(&r->h, a, llm_run_eval(r, t->b));
    case TN_SLICE:
        return slice(r, t);
    case TN_CALL:
        return call(r, t);
    case TN_FILTER:
    case TN_TEST:
        return builtin(r, t);
    case TN_NOT:
        return tv_bool(!llm_tv_truth(llm_run_eval(r, t->a)));
    case TN_NEGATE:
        return llm_tv_negated(&r->h, llm_run_eval(r, t->a));
    case TN_PLUS:
        a = llm_run_eval(r, t->a);
        (void)llm_tv_want_number(&r->h, a, "the operand of +");
        return a.kind == TV_BOOL ? tv_int(a.truth) : a;
    case TN_BINARY:
        a = llm_run_eval(r, t->a);
        return llm_tv_binary(&r->h, t->op, a, llm_run_eval(r, t->b));
    case TN_COMPARE:
        return comparison(r, t);
    case TN_AND:
        a = llm_run_eval(r, t->a);
        return llm_tv_truth(a) ? llm_run_eval(r, t->b) : a;
    case TN_OR:
        a = llm_run_eval(r, t->a);
        return llm_tv_truth(a) ? a : llm_run_eval(r, t->b);
    case TN_COND:
        return llm_tv_truth(llm_run_eval(r, t->b)) ? llm_run_eval(r, t->a)
               : t->c                              ? llm_run_eval(r, t->c)
                                                   : tv_undefined((ggl_str){"", 0});
    default:
        llm_tv_fail(&r->h, GGL_FORMAT, "this is no expression"); /* the parser makes no such tree */
    }
}

tv llm_run_eval(run *r, const tn *t) {
    llm_tv_step(&r->h, 1);
    llm_tv_enter(&r->h);
    r->h.line = t->line;
    tv v = eval(r, t);
    tv_leave(&r->h);
    return v;
}
