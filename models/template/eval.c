/* Expressions: their values, as Python computes them. */
#include <math.h>
#include <string.h>

#include "run.h"

/* --- variables -------------------------------------------------------------------------------- */

tv run_variable(run *r, int id) {
    const binding *b = &r->local[id];
    if (b->scope > r->outside)
        return b->value;
    if (r->global[id].kind != TV_UNDEFINED)
        return r->global[id];
    const ggl_str name = r->t->names[id].text;
    const tv_builtin *builtin = tv_global(name);
    if (!builtin)
        return tv_undefined(name);
    tv f = {.kind = TV_FUNCTION, .function = tv_alloc(&r->h, 1, sizeof(tv_function))};
    f.function->builtin = builtin;
    return f;
}

void run_set(run *r, int id, tv value) {
    binding *b = &r->local[id];
    if (r->scope == 0) {
        r->global[id] = value;
        return;
    }
    if (b->scope != r->scope) {
        if (r->n_undo == r->cap_undo) {
            size_t cap = r->cap_undo * 2 + 16;
            undo *bigger = tv_alloc(&r->h, cap, sizeof *bigger);
            if (r->n_undo)
                memcpy(bigger, r->undo, r->n_undo * sizeof *bigger);
            r->undo = bigger;
            r->cap_undo = cap;
        }
        r->undo[r->n_undo++] = (undo){id, *b};
    }
    *b = (binding){value, r->scope};
}

size_t run_enter(run *r) {
    r->scope++;
    return r->n_undo;
}

void run_leave(run *r, size_t mark) {
    r->scope--;
    while (r->n_undo > mark) {
        r->n_undo--;
        r->local[r->undo[r->n_undo].id] = r->undo[r->n_undo].was;
    }
}

/* --- arithmetic ------------------------------------------------------------------------------- */

_Noreturn static void no_operation(tv_heap *h, const char *op, tv a, tv b) {
    const tv u = a.kind == TV_UNDEFINED ? a : b;
    if (u.kind == TV_UNDEFINED)
        tv_fail(h, GGL_FORMAT, "'%.*s' is undefined, and %s needs a value", (int)u.text.n, u.text.s,
                op);
    tv_fail(h, GGL_FORMAT, "%s does not work with %s and %s", op, tv_kind_text(a), tv_kind_text(b));
}

/* Python's // and %: the quotient is rounded down, and the rest has the divisor's sign. */
static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool power(int64_t a, int64_t b, int64_t *out) {
    for (*out = 1; b > 0; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(*out, a, out))
            return false;
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            return false;
    }
    return true;
}

static tv integers(tv_heap *h, int op, int64_t a, int64_t b) {
    int64_t c = 0;
    bool fits = true;
    if ((op == '/' || op == 'f' || op == '%') && b == 0)
        tv_fail(h, GGL_FORMAT, "division by zero");
    if (op == '/')
        return tv_float((double)a / (double)b);
    if (op == 'p' && b < 0)
        return tv_float(pow((double)a, (double)b));
    if ((op == 'f' || op == '%') && b == -1)
        fits = op == '%' || !__builtin_sub_overflow((int64_t)0, a, &c);
    else if (op == 'f')
        c = floor_div(a, b);
    else if (op == '%')
        c = a - b * floor_div(a, b);
    else
        fits = op == '+'   ? !__builtin_add_overflow(a, b, &c)
               : op == '-' ? !__builtin_sub_overflow(a, b, &c)
               : op == '*' ? !__builtin_mul_overflow(a, b, &c)
                           : power(a, b, &c);
    if (!fits)
        tv_fail(h, GGL_LIMIT, "the result is not an integer of 64 bits");
    return tv_int(c);
}

static tv numbers(tv_heap *h, int op, double a, double b) {
    if ((op == '/' || op == 'f' || op == '%') && b == 0)
        tv_fail(h, GGL_FORMAT, "division by zero");
    return tv_float(op == '+'   ? a + b
                    : op == '-' ? a - b
                    : op == '*' ? a * b
                    : op == '/' ? a / b
                    : op == 'f' ? floor(a / b)
                    : op == '%' ? a - b * floor(a / b)
                                : pow(a, b));
}

/* A string or list, `times` times. */
static tv repeated(tv_heap *h, tv v, int64_t times) {
    if (v.kind == TV_STRING) {
        tv_text t = {0};
        for (; times > 0 && v.text.n > 0; times--)
            tv_put(h, &t, v.text.s, v.text.n);
        return tv_str(tv_done(&t));
    }
    tv list = tv_new_list(h, v.kind);
    for (; times > 0 && v.list->n > 0; times--)
        for (size_t i = 0; i < v.list->n; i++)
            tv_push(h, list, v.list->at[i]);
    return list;
}

static tv joined(tv_heap *h, tv a, tv b) {
    tv list = tv_new_list(h, a.kind);
    for (size_t i = 0; i < a.list->n; i++)
        tv_push(h, list, a.list->at[i]);
    for (size_t i = 0; i < b.list->n; i++)
        tv_push(h, list, b.list->at[i]);
    return list;
}

static tv concatenated(tv_heap *h, ggl_str a, ggl_str b) {
    tv_text t = {0};
    tv_put(h, &t, a.s, a.n);
    tv_put(h, &t, b.s, b.n);
    return tv_str(tv_done(&t));
}

static tv binary(tv_heap *h, int op, tv a, tv b) {
    const bool a_repeats = a.kind == TV_STRING || tv_is_list(a),
               b_repeats = b.kind == TV_STRING || tv_is_list(b);
    if (op == '~')
        return concatenated(h, tv_to_str(h, a), tv_to_str(h, b));
    if (op == '%' && a.kind == TV_STRING)
        return tv_percent(h, a.text, b);
    if (op == '+' && a.kind == TV_STRING && b.kind == TV_STRING)
        return concatenated(h, a.text, b.text);
    if (op == '+' && tv_is_list(a) && a.kind == b.kind)
        return joined(h, a, b);
    if (op == '*' && a_repeats && (b.kind == TV_INT || b.kind == TV_BOOL))
        return repeated(h, a, tv_want_int(h, b, "a count"));
    if (op == '*' && b_repeats && (a.kind == TV_INT || a.kind == TV_BOOL))
        return repeated(h, b, tv_want_int(h, a, "a count"));
    if (!tv_is_number(a) || !tv_is_number(b)) {
        const char name[] = {(char)op, 0};
        no_operation(h, op == 'f' ? "//" : op == 'p' ? "**" : name, a, b);
    }
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT)
        return numbers(h, op, tv_want_number(h, a, ""), tv_want_number(h, b, ""));
    return integers(h, op, tv_want_int(h, a, ""), tv_want_int(h, b, ""));
}

static tv negated(tv_heap *h, tv v) {
    if (v.kind == TV_FLOAT)
        return tv_float(-v.number);
    return integers(h, '-', 0, tv_want_int(h, v, "the operand of -"));
}

/* --- comparisons ------------------------------------------------------------------------------ */

static bool holds(tv_heap *h, int op, tv a, tv b) {
    static const char *const text[] = {"==", "!=", "<", "<=", ">", ">="};
    if (op == TN_IN || op == TN_NOT_IN)
        return tv_contains(h, b, a) == (op == TN_IN);
    if (op == TN_EQ || op == TN_NE)
        return tv_equal(h, a, b) == (op == TN_EQ);
    if (a.kind == TV_UNDEFINED || b.kind == TV_UNDEFINED)
        no_operation(h, text[op], a, b);
    if ((a.kind == TV_FLOAT && isnan(a.number)) || (b.kind == TV_FLOAT && isnan(b.number)))
        return false;
    const int c = tv_compare(h, a, b, text[op]);
    return op == TN_LT ? c < 0 : op == TN_LE ? c <= 0 : op == TN_GT ? c > 0 : c >= 0;
}

/* a < b < c: each operand is evaluated once, and those after a false comparison not at all. */
static tv comparison(run *r, const tn *t) {
    tv a = run_eval(r, t->a);
    for (const tn *c = t->b; c; c = c->next) {
        tv b = run_eval(r, c->a);
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
        const tv_list *list = tv_elements(&r->h, v);
        for (size_t i = 0; i < list->n; i++)
            tv_push(&r->h, (tv){.kind = TV_LIST, .list = &g->by_place}, list->at[i]);
        return;
    }
    if (v.kind != TV_DICT)
        tv_fail(&r->h, GGL_FORMAT, "** needs a dict, not %s", tv_kind_text(v));
    for (size_t i = 0; i < v.dict->n; i++)
        tv_dict_set(&r->h, g->by_name, v.dict->item[i].key, v.dict->item[i].value);
}

tv_given run_args(run *r, const tn *args) {
    tv_given g = {0};
    if (args)
        g.by_name = tv_new_dict(&r->h).dict;
    for (const tn *a = args; a; a = a->next) {
        tv v = run_eval(r, a->a);
        if (a->op)
            spread(r, &g, a->op, v);
        else if (a->name.n)
            tv_dict_set(&r->h, g.by_name, tv_str(a->name), v);
        else
            tv_push(&r->h, (tv){.kind = TV_LIST, .list = &g.by_place}, v);
    }
    return g;
}

tv run_call(run *r, tv fn, const tv_given *g, tv caller) {
    if (fn.kind == TV_MACRO)
        return run_macro(r, fn.macro, g, caller);
    if (fn.kind == TV_FUNCTION)
        return tv_call_builtin(&r->h, fn.function->builtin,
                               fn.function->self.kind == TV_UNDEFINED ? "function" : "method",
                               fn.function->self, g);
    if (fn.kind == TV_UNDEFINED)
        tv_fail(&r->h, GGL_FORMAT, "'%.*s' is undefined, and cannot be called", (int)fn.text.n,
                fn.text.s);
    tv_fail(&r->h, GGL_FORMAT, "%s cannot be called", tv_kind_text(fn));
}

tv run_filters(run *r, const tn *filters, tv value) {
    if (!filters)
        return value;
    value = run_filters(r, filters->a, value);
    const tv_given g = run_args(r, filters->b);
    r->h.line = filters->line;
    return tv_call_builtin(&r->h, filters->builtin, "filter", value, &g);
}

/* --- expressions ------------------------------------------------------------------------------ */

static tv collection(run *r, const tn *t) {
    tv v = t->kind == TN_DICT ? tv_new_dict(&r->h)
                              : tv_new_list(&r->h, t->kind == TN_LIST ? TV_LIST : TV_TUPLE);
    for (const tn *e = t->a; e; e = e->next) {
        if (t->kind == TN_DICT) {
            tv key = run_eval(r, e->a);
            tv_dict_set(&r->h, v.dict, key, run_eval(r, e->b));
        } else {
            tv_push(&r->h, v, run_eval(r, e));
        }
    }
    return v;
}

static tv slice(run *r, const tn *t) {
    tv object = run_eval(r, t->a), bound[3];
    const tn *node[3] = {t->b, t->c, t->d};
    const tv *given[3] = {NULL};
    for (int i = 0; i < 3; i++)
        if (node[i]) {
            bound[i] = run_eval(r, node[i]);
            given[i] = bound[i].kind == TV_NONE ? NULL : &bound[i];
        }
    return tv_slice(&r->h, object, given[0], given[1], given[2]);
}

/* a | name(..) and a is name(..) */
static tv builtin(run *r, const tn *t) {
    tv self = run_eval(r, t->a);
    const tv_given g = run_args(r, t->b);
    r->h.line = t->line;
    return tv_call_builtin(&r->h, t->builtin, t->kind == TN_FILTER ? "filter" : "test", self, &g);
}

static tv call(run *r, const tn *t) {
    tv fn = run_eval(r, t->a);
    const tv_given g = run_args(r, t->b);
    r->h.line = t->line;
    return run_call(r, fn, &g, tv_none());
}

static tv eval(run *r, const tn *t) {
    tv a;
    switch (t->kind) {
    case TN_CONST:
        return t->value;
    case TN_NAME:
        return run_variable(r, t->id);
    case TN_LIST:
    case TN_TUPLE:
    case TN_DICT:
        return collection(r, t);
    case TN_ATTR:
        return tv_attribute(&r->h, run_eval(r, t->a), t->name);
    case TN_INDEX:
        a = run_eval(r, t->a);
        return tv_element(&r->h, a, run_eval(r, t->b));
    case TN_SLICE:
        return slice(r, t);
    case TN_CALL:
        return call(r, t);
    case TN_FILTER:
    case TN_TEST:
        return builtin(r, t);
    case TN_NOT:
        return tv_bool(!tv_truth(run_eval(r, t->a)));
    case TN_NEGATE:
        return negated(&r->h, run_eval(r, t->a));
    case TN_PLUS:
        a = run_eval(r, t->a);
        (void)tv_want_number(&r->h, a, "the operand of +");
        return a;
    case TN_BINARY:
        a = run_eval(r, t->a);
        return binary(&r->h, t->op, a, run_eval(r, t->b));
    case TN_COMPARE:
        return comparison(r, t);
    case TN_AND:
        a = run_eval(r, t->a);
        return tv_truth(a) ? run_eval(r, t->b) : a;
    case TN_OR:
        a = run_eval(r, t->a);
        return tv_truth(a) ? a : run_eval(r, t->b);
    case TN_COND:
        return tv_truth(run_eval(r, t->b)) ? run_eval(r, t->a)
               : t->c                      ? run_eval(r, t->c)
                                           : tv_undefined((ggl_str){"", 0});
    default:
        tv_fail(&r->h, GGL_FORMAT, "this is no expression"); /* the parser makes no such tree */
    }
}

tv run_eval(run *r, const tn *t) {
    tv_step(&r->h, 1);
    tv_enter(&r->h);
    r->h.line = t->line;
    tv v = eval(r, t);
    tv_leave(&r->h);
    return v;
}
