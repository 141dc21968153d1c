/* Turns primitives into nodes. An operator's parameters come from its row in ops.def; this file
 * handles the few calls that do not give exactly one node: split, concat, t[i], the bias of
 * linear, and values known at compile time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "rotate.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/math.h"

/* --- nodes ------------------------------------------------------------------------------------ */

ggl_tensor *llm_arch_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src, int n_src,
                          const double *num, int n_num) {
    ggl_tensor *turned[3]; /* the sources of a product */
    if (op == GGL_OP_LINEAR) {
        memcpy(turned, src, (size_t)n_src * sizeof *turned);
        if (!(turned[0] = llm_arch_rotate_input(ev, p, src[0], src[1])))
            return NULL;
        src = turned;
    }
    ggl_tensor *t = llm_arch_plain_node(ev, p, op, src, n_src, num, n_num);
    ggl_tensor *in_place = t ? llm_arch_rotate_output(ev, p, t) : NULL;
    return in_place ? llm_arch_adapted(ev, p, t, in_place) : NULL;
}

ggl_tensor *llm_arch_reshape(arch_eval *ev, arch_place p, ggl_tensor *x, int n, const int64_t *ne,
                             const char *const *dim_name) {
    double num[GGL_MAX_DIMS] = {0};
    for (int d = 0; d < n && d < GGL_MAX_DIMS; d++)
        num[d] = (double)ne[d];
    ggl_tensor *t = llm_arch_node(ev, p, GGL_OP_RESHAPE, &x, 1, num, n);
    for (int d = 0; t && dim_name && d < n; d++)
        if (dim_name[d])
            ggl_tensor_set_dim_name(ev->g, t, d, dim_name[d]);
    return t;
}

ggl_tensor *llm_arch_split_one(arch_eval *ev, arch_place p, ggl_tensor *x, int dim, int64_t first,
                               int64_t size, const char *dim_name) {
    ggl_tensor *t =
        llm_arch_node(ev, p, GGL_OP_SPLIT, &x, 1, (double[]){dim, (double)first, (double)size}, 3);
    if (t && dim_name)
        ggl_tensor_set_dim_name(ev->g, t, dim, dim_name);
    return t;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static double n_add(double a, double b) {
    return a + b;
}
static double n_sub(double a, double b) {
    return a - b;
}
static double n_mul(double a, double b) {
    return a * b;
}
static double n_div(double a, double b) {
    return a / b;
}
static double n_mod(double a, double b) {
    return a - b * floor(a / b);
}
static double n_min(double a, double b) {
    return a < b || isnan(a) ? a : b;
}
static double n_max(double a, double b) {
    return a > b || isnan(a) ? a : b;
}
static double n_eq(double a, double b) {
    return a == b;
}
static double n_ne(double a, double b) {
    return a != b;
}
static double n_lt(double a, double b) {
    return a < b;
}
static double n_le(double a, double b) {
    return a <= b;
}
static double n_gt(double a, double b) {
    return a > b;
}
static double n_ge(double a, double b) {
    return a >= b;
}

/* Operators that are evaluated on numbers; all others turn a number into a constant tensor. */
static double (*const of_one[GGL_OP_COUNT])(double) = {
    [GGL_OP_EXP] = ggl_exp, [GGL_OP_LOG] = ggl_log,
    [GGL_OP_SQRT] = sqrt,   [GGL_OP_FLOOR] = floor,
    [GGL_OP_ABS] = fabs,    [GGL_OP_TANH] = ggl_tanh,
    [GGL_OP_ERF] = ggl_erf, [GGL_OP_SIGMOID] = ggl_sigmoid,
    [GGL_OP_SIN] = ggl_sin, [GGL_OP_COS] = ggl_cos,
};
static double (*const of_two[GGL_OP_COUNT])(double, double) = {
    [GGL_OP_ADD] = n_add,   [GGL_OP_SUB] = n_sub, [GGL_OP_MUL] = n_mul, [GGL_OP_DIV] = n_div,
    [GGL_OP_POW] = ggl_pow, [GGL_OP_MOD] = n_mod, [GGL_OP_MIN] = n_min, [GGL_OP_MAX] = n_max,
    [GGL_OP_EQ] = n_eq,     [GGL_OP_NE] = n_ne,   [GGL_OP_LT] = n_lt,   [GGL_OP_LE] = n_le,
    [GGL_OP_GT] = n_gt,     [GGL_OP_GE] = n_ge,
};

static bool is_comparison(ggl_op op) {
    return op >= GGL_OP_EQ && op <= GGL_OP_GE;
}

/* --- values in and out ------------------------------------------------------------------------ */

/* Gives the value of a node that reads a weight with a factor this factor, if it only moves the weight, or leaves it out where the
 * factor is applied. False: the node computes with the weight otherwise, reported. */
static bool keeps_factor(arch_eval *ev, arch_place p, const ggl_tensor *t, int k,
                         const arch_value *in, arch_value *out) {
    if (t->op == GGL_OP_PICK && k == 0)
        return true;
    const bool moves = t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT ||
                       t->op == GGL_OP_TRANSPOSE || t->op == GGL_OP_CAST;
    if (moves && ggl_count(in->factor) == 1) {
        out->factor = in->factor;
        return true;
    }
    const ggl_tensor *f = in->factor;
    while (f->op != GGL_OP_WEIGHT && f->n_src > 0) /* a view of it */
        f = f->src[0];
    llm_arch_error(ev, p,
                   "the file has the factor %s, but what the model computes here with the weight "
                   "beside it is no product and no lookup of rows",
                   f->name ? f->name : "of a weight");
    return false;
}

/* Wraps a node's result in a value. `in`: the values that the node reads. An index that is only
 * moved (reshaped, split, picked) stays an index. */
static arch_value result_of(arch_eval *ev, arch_place p, ggl_tensor *t, const arch_value *const *in,
                            int n_in) {
    if (!t)
        return ARCH_FAIL;
    arch_value v = llm_arch_tensor_value(t);
    if (t->op == GGL_OP_CACHE) {
        v.kind = VAL_CACHE;
        return v;
    }
    if (t->op == GGL_OP_TOPK || t->op == GGL_OP_NGRAMS) {
        v.range = t->op == GGL_OP_TOPK ? t->src[TOPK_X]->ne[0] : (int64_t)t->num[NGRAMS_ROWS];
        v.exact_range = true;
        return v;
    }
    for (int k = 0; k < n_in; k++)
        if (in[k] && in[k]->factor && !keeps_factor(ev, p, t, k, in[k], &v))
            return ARCH_FAIL;
    for (int k = 0; k < n_in; k++) {
        const bool is_rope = t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR;
        if (!in[k] || !in[k]->range || (t->op == GGL_OP_PICK && k == 1) ||
            (is_rope && k == ROPE_HALF_AT))
            continue;
        if (t->type != GGL_I32 && !in[k]->number_too)
            return llm_arch_error(ev, p,
                                  "an index into %" PRId64 " is not a number: use it to pick, t[i]",
                                  in[k]->range);
        if (t->type == GGL_I32) {
            v.range = in[k]->range;
            v.exact_range = in[k]->exact_range;
            v.number_too = in[k]->number_too;
        }
    }
    return v;
}

arch_value llm_arch_infix(arch_eval *ev, const arch_expr *e, const arch_value *a,
                          const arch_value *b) {
    char left[200], right[200];
    if (a->kind == VAL_NUMBER && b->kind == VAL_NUMBER) {
        double x = of_two[e->op](a->num, b->num);
        if (is_comparison(e->op))
            return llm_arch_bool(x != 0);
        arch_value v = llm_arch_number(x);
        v.text = llm_arch_join_text(ev, e->name, a, b);
        return v;
    }
    bool tensors = a->kind == VAL_TENSOR || b->kind == VAL_TENSOR;
    if (tensors && (a->kind == VAL_TENSOR || a->kind == VAL_NUMBER) &&
        (b->kind == VAL_TENSOR || b->kind == VAL_NUMBER)) {
        ggl_tensor *src[2] = {llm_arch_want_tensor(ev, e->a->place, a, "the value here"),
                              llm_arch_want_tensor(ev, e->b->place, b, "the value here")};
        ggl_tensor *t =
            src[0] && src[1] ? llm_arch_node(ev, e->mark, e->op, src, 2, NULL, 0) : NULL;
        return result_of(ev, e->mark, t, (const arch_value *[]){a, b}, 2);
    }
    if (llm_arch_comparable(a, b) && (e->op == GGL_OP_EQ || e->op == GGL_OP_NE))
        return llm_arch_bool(llm_arch_equal(a, b) == (e->op == GGL_OP_EQ));
    const arch_value *bad = a->kind == VAL_NUMBER || a->kind == VAL_TENSOR ||
                                    (a->kind == VAL_STRING && b->kind == VAL_NONE)
                                ? b
                                : a;
    if (bad->kind == VAL_NONE) {
        const char *hint = llm_arch_absent_hint(ev, bad);
        return llm_arch_error_hint(ev, GGL_FORMAT, bad == a ? e->a->place : e->b->place, hint,
                                   "%s: no operand for '%s'",
                                   bad->text ? bad->text : "its value is none", e->name);
    }
    return llm_arch_error_hint(ev, GGL_FORMAT, e->mark, llm_arch_binding_hint(ev, e),
                               "'%s' of %s and %s: left %s, right %s", e->name,
                               llm_arch_kind_text(a), llm_arch_kind_text(b),
                               llm_arch_value_text(a, left, sizeof left),
                               llm_arch_value_text(b, right, sizeof right));
}

/* --- t[i] ------------------------------------------------------------------------------------- */

/* Returns t times a weight's factor. */
static ggl_tensor *times_factor(arch_eval *ev, arch_place p, ggl_tensor *t, ggl_tensor *factor) {
    return t ? llm_arch_node(ev, p, GGL_OP_MUL, (ggl_tensor *[]){t, factor}, 2, NULL, 0) : NULL;
}

/* Returns factors of matrices as [1, n], which is picked as they are. */
static ggl_tensor *factor_rows(arch_eval *ev, arch_place p, ggl_tensor *factor) {
    const int64_t ne[2] = {1, ggl_count(factor)};
    return factor->n_dims == 1 ? llm_arch_reshape(ev, p, factor, 2, ne, NULL) : factor;
}

/* t[i] for a number i: a view of one slice of the last dimension. */
static ggl_tensor *pick_number(arch_eval *ev, const arch_expr *e, ggl_tensor *t, int64_t i) {
    int last = t->n_dims - 1;
    ggl_tensor *one = llm_arch_split_one(ev, e->mark, t, last, i, 1, NULL);
    return one ? llm_arch_reshape(ev, e->mark, one, last, t->ne, t->dim_name) : NULL;
}

/* Gives what an index picked of t its factor: rows of a matrix are multiplied by it, matrices keep theirs. */
static arch_value with_factor_picked(arch_eval *ev, const arch_expr *e, arch_value v,
                                     const arch_value *t, const arch_value *i) {
    if (!t->factor)
        return v;
    if (t->t->n_dims < 3)
        return llm_arch_tensor_value(times_factor(ev, e->mark, v.t, t->factor));
    v.factor = t->factor;
    if (ggl_count(t->factor) > 1 && (v.factor = factor_rows(ev, e->mark, t->factor)))
        v.factor =
            llm_arch_node(ev, e->mark, GGL_OP_PICK, (ggl_tensor *[]){v.factor, i->t}, 2, NULL, 0);
    return v.factor ? v : ARCH_FAIL;
}

arch_value llm_arch_pick(arch_eval *ev, const arch_expr *e, const arch_value *t,
                         const arch_value *i) {
    char shape[128], text[256];
    ggl_shape_text(t->t, shape, sizeof shape);
    if (t->t->n_dims == 0)
        return llm_arch_error(ev, e->a->place, "a single number has no elements to pick");
    int last = t->t->n_dims - 1;
    int64_t n = t->t->ne[last], k;
    arch_value v = ARCH_FAIL;
    if (i->kind == VAL_NUMBER) {
        if (!llm_arch_want_whole(ev, e->b, i, 0, (double)(n - 1), &k))
            return v;
        v = result_of(ev, e->mark, pick_number(ev, e, t->t, k), &t, 1);
        if (v.kind != VAL_FAIL && t->bias && !(v.bias = pick_number(ev, e, t->bias, k)))
            return ARCH_FAIL;
        v.factor = t->factor;
        if (v.kind != VAL_FAIL && t->factor && ggl_count(t->factor) > 1 &&
            !((v.factor = factor_rows(ev, e->mark, t->factor)) &&
              (v.factor = pick_number(ev, e, v.factor, k))))
            return ARCH_FAIL;
        return v;
    }
    if (i->kind != VAL_TENSOR || !i->range)
        return llm_arch_error_hint(
            ev, GGL_FORMAT, e->b->place,
            e->b->kind == EX_BINARY
                ? "for t[pos + n]: before, rest = split(t, n, .., dim = 1), then "
                  "rest[pos]"
                : NULL,
            "t[i] needs an index: token, pos, a result of topk or ngrams, or a whole number; %s",
            llm_arch_value_text(i, text, sizeof text));
    if (i->number_too && i->range > n)
        return llm_arch_error_hint(ev, GGL_SHAPE, e->mark, NULL,
                                   "there are n_ctx = %" PRId64
                                   " positions, but %s has only %" PRId64
                                   " in its last dimension: use a context of at most that size",
                                   i->range, shape, n);
    if (i->exact_range ? i->range != n : i->range > n)
        return llm_arch_error_hint(ev, GGL_SHAPE, e->mark, NULL,
                                   "this index is into %" PRId64 ", but %s has %" PRId64
                                   " in its last dimension",
                                   i->range, shape, n);
    v = result_of(ev, e->mark,
                  llm_arch_node(ev, e->mark, GGL_OP_PICK, (ggl_tensor *[]){t->t, i->t}, 2, NULL, 0),
                  &t, 1);
    if (v.kind != VAL_FAIL && t->bias &&
        !(v.bias =
              llm_arch_node(ev, e->mark, GGL_OP_PICK, (ggl_tensor *[]){t->bias, i->t}, 2, NULL, 0)))
        return ARCH_FAIL;
    return v.kind == VAL_FAIL ? v : with_factor_picked(ev, e, v, t, i);
}

arch_value llm_arch_pick_row(arch_eval *ev, const arch_expr *e, const arch_value *stage,
                             const arch_value *i) {
    int64_t row;
    if (ev->arch->has_tokens)
        return llm_arch_error(ev, e->mark,
                              "a row of a stage that tokens read: only attention reads it there");
    if (!llm_arch_want_whole(ev, e->b, i, -1, INT32_MAX, &row))
        return ARCH_FAIL;
    int k = 0;
    while (k < ev->n_picked && ev->picked[k] != row)
        k++;
    if (k == ARCH_MAX_PICKS)
        return llm_arch_error(ev, e->mark, "more than %d rows are picked", ARCH_MAX_PICKS);
    ev->picked[k] = row;
    ev->n_picked = k < ev->n_picked ? ev->n_picked : k + 1;
    /* a view of its own, which belongs to the picked row */
    ggl_tensor *t =
        llm_arch_reshape(ev, e->mark, stage->t, stage->t->n_dims, stage->t->ne, stage->t->dim_name);
    if (!t || !llm_arch_set_rows(ev, t, ROWS_PICKED + k))
        return ARCH_FAIL;
    return llm_arch_tensor_value(t);
}

/* --- calls of operators ----------------------------------------------------------------------- */

/* The evaluated arguments of a call, by parameter. */
typedef struct args {
    arch_eval *ev;
    const arch_expr *e;
    arch_sig sig;
    /* of all arguments, in order */
    arch_value *value;
    /* Parameter i has the n[i] arguments from first[i] on. */
    int first[ARCH_MAX_SIG], n[ARCH_MAX_SIG];
} args;

/* Evaluates the arguments of a call and assigns them to its parameters. False: reported. */
static bool eval_args(args *a, arch_eval *ev, const arch_expr *e, arch_sig sig) {
    *a = (args){
        .ev = ev, .e = e, .sig = sig, .value = ggl_calloc((size_t)e->n_arg + 1, sizeof *a->value)};
    if (!a->value)
        return llm_arch_nomem(ev), false;
    int at = 0;
    for (int k = 0; k < e->n_arg; k++) {
        int i = at;
        if (e->arg[k].name)
            for (i = 0; strcmp(sig.param[i].name, e->arg[k].name) != 0;)
                i++;
        else
            at += !sig.param[i].variadic;
        if (a->n[i]++ == 0)
            a->first[i] = k;
        a->value[k] = llm_arch_eval_expr(ev, e->arg[k].value);
        const bool takes_list = e->callee == CALL_BUILTIN && e->builtin == FN_SIZE;
        if (!takes_list)
            a->value[k] = llm_arch_one_of(ev, e->arg[k].value, &a->value[k]);
        if (a->value[k].kind == VAL_FAIL)
            return false;
    }
    return true;
}

static const arch_expr *arg_expr(const args *a, int i, int k) {
    return a->e->arg[a->first[i] + k].value;
}

/* True if argument i is omitted, the literal none, or an absent optional weight. An absent key
 * does not count, because the descriptor must state its default. */
static bool is_absent(args *a, int i) {
    if (a->n[i] == 0)
        return true;
    const arch_value *v = &a->value[a->first[i]];
    return v->kind == VAL_NONE && a->sig.param[i].optional && !v->absent_key;
}

/* True for parameters that take whole numbers: sizes, counts and dimensions, but not factors. */
static bool is_whole(const char *name) {
    return strcmp(name, "mag") != 0 && strcmp(name, "scale") != 0 && strcmp(name, "cap") != 0 &&
           strcmp(name, "x") != 0;
}

/* Reads argument k of parameter i as a number in the parameter's range. */
static bool get_number(args *a, int i, int k, double *out) {
    const arch_value *v = &a->value[a->first[i] + k];
    const arch_expr *e = arg_expr(a, i, k);
    int64_t whole;
    if (!is_whole(a->sig.param[i].name))
        return llm_arch_want_number(a->ev, e, v, out);
    bool is_dim = strcmp(a->sig.param[i].name, "dim") == 0 || strlen(a->sig.param[i].name) == 1;
    double min = is_dim && a->sig.param[i].optional ? 0 : 1,
           max = min == 0 ? GGL_MAX_DIMS - 1 : ARCH_MAX_DIM;
    if (strcmp(a->sig.param[i].name, "k") == 0)
        max = ARCH_MAX_K;
    if (!llm_arch_want_whole(a->ev, e, v, min, max, &whole))
        return false;
    *out = (double)whole;
    return true;
}

/* Reads argument k of parameter i as a tensor; attend's second one as a cache. */
static ggl_tensor *get_tensor(args *a, int i, int k) {
    const arch_value *v = &a->value[a->first[i] + k];
    char what[64], text[256];
    if (a->e->callee == CALL_OP && (a->e->op == GGL_OP_ATTEND || a->e->op == GGL_OP_CHOOSE_ROWS) &&
        i == 1) {
        if (v->kind == VAL_CACHE)
            return v->t;
        llm_arch_error(a->ev, arg_expr(a, i, k)->place, "%s needs a result of cache(k, v): %s",
                       a->e->name, llm_arch_value_text(v, text, sizeof text));
        return NULL;
    }
    snprintf(what, sizeof what, "'%s' of %s", a->sig.param[i].name, a->sig.name);
    return llm_arch_want_tensor(a->ev, arg_expr(a, i, k)->place, v, what);
}

/* Evaluates exp(2), min(1, b) and where(true, a, b) at compile time. False: it is a node. */
static bool fold_numbers(args *a, arch_value *out) {
    ggl_op op = a->e->op;
    const arch_value *v[3] = {NULL};
    int n = a->e->n_arg;
    for (int k = 0; k < n && k < 3; k++)
        v[k] = &a->value[a->first[k]];
    if (op == GGL_OP_WHERE && v[0]->kind == VAL_BOOL) {
        *out = *v[v[0]->flag ? 1 : 2];
        return true;
    }
    if (n == 1 && of_one[op] && v[0]->kind == VAL_NUMBER)
        *out = llm_arch_number(of_one[op](v[0]->num));
    else if (n == 2 && of_two[op] && v[0]->kind == VAL_NUMBER && v[1]->kind == VAL_NUMBER)
        *out = llm_arch_number(of_two[op](v[0]->num, v[1]->num));
    else
        return false;
    return true;
}

/* Names the result's dimensions after the expressions of the sizes in the call. */
static void name_sizes(args *a, ggl_tensor *t) {
    for (int i = 0; i < a->sig.n_param; i++) {
        const char *name = a->sig.param[i].name;
        bool gives = a->sig.param[i].number &&
                     (a->sig.param[i].variadic || strcmp(name, "k") == 0 || strcmp(name, "n") == 0);
        for (int k = 0; gives && k < a->n[i] && k < t->n_dims; k++) {
            const char *text = a->value[a->first[i] + k].text;
            if (text)
                ggl_tensor_set_dim_name(a->ev->g, t, k, text);
            else
                t->dim_name[k] = NULL;
        }
    }
}

/* Refuses attention in a function that has a state. */
static bool allowed_here(arch_eval *ev, const arch_expr *e) {
    if (ev->in_recurrent &&
        (e->op == GGL_OP_CACHE || e->op == GGL_OP_ATTEND || e->op == GGL_OP_CHOOSE_ROWS)) {
        llm_arch_error(ev, e->mark, "%s is not allowed in a function with a state", e->name);
        return false;
    }
    if (ev->stage && !ev->over && e->op == GGL_OP_CHOOSE_ROWS) {
        llm_arch_error(ev, e->mark, "%s is of tokens that see those before them, not of a stage",
                       e->name);
        return false;
    }
    if (ev->stage && (ev->arch->has_tokens || ev->over) && ev->n_guess_block == 0 &&
        e->op == GGL_OP_STATE) {
        llm_arch_error(ev, e->mark,
                       ev->over ? "a stage that guesses cannot have a state: wrong guesses could "
                                  "not be taken back"
                                : "a stage whose rows tokens read cannot have a state");
        return false;
    }
    return true;
}

/* In a block that guesses, which has the input "end", a window reaches half of its width back: returns the one that reaches as far as `window` does in
 * a graph without. Forward, an element sees up to its end, which is nearer than that. */
static double window_back(double window) {
    return window > 1 ? 2 * window - 2 : window;
}

/* What attend's argument `within` is to an element that sees from pos + 1 - window on, or all of its picture's rows (together = 3); without a window up to itself. NULL: reported. */
static ggl_tensor *within_of(arch_eval *ev, arch_place p, double window) {
    const bool has_window = window > 0;
    const double number[] = {has_window ? INFINITY : 0, has_window ? 1 - window : 1};
    const int64_t one = 1;
    ggl_tensor *src[] = {llm_arch_input(ev, p, "pos", GGL_I32, 0, NULL),
                         ggl_graph_const(ev->g, 0, NULL, &number[1])};
    ggl_tensor *ends[] = {NULL, NULL}, *fixed = ggl_graph_const(ev->g, 1, &one, &number[0]),
               *moving =
                   src[0] && src[1] ? llm_arch_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0) : NULL;
    if (moving && has_window && ev->given_together == 3) {
        ggl_tensor *both[] = {moving, llm_arch_input(ev, p, "begin", GGL_I32, 0, NULL)};
        moving = both[1] ? llm_arch_node(ev, p, GGL_OP_MIN, both, 2, NULL, 0) : NULL;
    }
    moving = moving ? llm_arch_reshape(ev, p, moving, 1, &one, NULL) : NULL;
    if (!fixed || !moving)
        return NULL;
    ends[has_window] = fixed;
    ends[!has_window] = moving;
    return llm_arch_node(ev, p, GGL_OP_CONCAT, ends, 2, (double[]){0}, 1);
}

/* In a graph whose given rows see each other, elements see up to the input "end", and a window would reach to both sides: has `within` in its place. Where rows
 * see each other in windows alone, it ends what is seen without one. */
static bool see_together(arch_eval *ev, const args *a, ggl_tensor **src, double *num) {
    const double window = num[ATTEND_WINDOW];
    int k = 0;
    if (!(window > 0) && ev->given_together != 2)
        return true;
    for (int i = 0; strcmp(a->sig.param[i].name, "within") != 0; i++)
        k += !a->sig.param[i].number;
    if (src[k]) {
        llm_arch_error(ev, a->e->mark,
                       "attend has no argument `within` beside a window where given rows see each "
                       "other, and none at all if they do in windows alone (together = 2)");
        return false;
    }
    if (window > 0)
        num[ATTEND_WINDOW] = 1 << 30; /* still one with a window, which ends nothing */
    src[k] = within_of(ev, a->e->mark, window);
    return src[k] != NULL;
}

/* The product of src[0] and the weight src[1] times its factor, plus the bias src[2], which may be NULL. */
static ggl_tensor *factored_product(arch_eval *ev, arch_place p, ggl_tensor *const *src,
                                    ggl_tensor *factor) {
    if (ggl_count(factor) > 1 && !(factor = factor_rows(ev, p, factor)))
        return NULL;
    ggl_tensor *both[3] = {src[0], src[1], NULL};
    ggl_tensor *t =
        times_factor(ev, p, llm_arch_node(ev, p, GGL_OP_LINEAR, both, 3, NULL, 0), factor);
    return t && src[2] ? llm_arch_node(ev, p, GGL_OP_ADD, (ggl_tensor *[]){t, src[2]}, 2, NULL, 0)
                       : t;
}

static arch_value call_op(args *a) {
    arch_eval *ev = a->ev;
    arch_value v;
    ggl_tensor *src[ARCH_MAX_SIG];
    const arch_value *in[ARCH_MAX_SIG];
    double num[ARCH_MAX_ARGS + ARCH_MAX_SIG];
    int n_src = 0, n_num = 0;
    if (!allowed_here(ev, a->e))
        return ARCH_FAIL;
    if (fold_numbers(a, &v))
        return v;
    for (int i = 0; i < a->sig.n_param; i++) {
        const arch_sig_param *p = &a->sig.param[i];
        bool absent = is_absent(a, i);
        if (p->number && absent)
            num[n_num++] = p->fallback;
        for (int k = 0; p->number && !absent && k < a->n[i]; k++)
            if (!get_number(a, i, k, &num[n_num++]))
                return ARCH_FAIL;
        if (p->number)
            continue;
        in[n_src] = absent ? NULL : &a->value[a->first[i]];
        src[n_src] = absent ? NULL : get_tensor(a, i, 0);
        if (!absent && !src[n_src])
            return ARCH_FAIL;
        if (absent && a->e->op == GGL_OP_LINEAR) /* linear adds the bias of its weight */
            src[n_src] = a->value[a->first[1]].bias;
        n_src++;
    }
    if (a->e->op == GGL_OP_ATTEND && ev->stage && ev->stage->in_block)
        num[ATTEND_WINDOW] = window_back(num[ATTEND_WINDOW]);
    if (a->e->op == GGL_OP_ATTEND && ev->given_together && ev->params && ev->params->given &&
        !ev->stage && !see_together(ev, a, src, num))
        return ARCH_FAIL;
    const bool is_read = llm_arch_is_read(ev, a->e->op, src);
    if (is_read && !llm_arch_note_read(ev, src))
        return ARCH_FAIL;
    const arch_value *factored = a->e->op == GGL_OP_LINEAR && in[1] && in[1]->factor ? in[1] : NULL;
    ggl_tensor *t = factored ? factored_product(ev, a->e->mark, src, factored->factor)
                    : is_read && ev->params && ev->params->n_reads > 0
                        ? llm_arch_attend_given(ev, a->e->mark, src, n_src, num)
                        : llm_arch_node(ev, a->e->mark, a->e->op, src, n_src, num, n_num);
    if (t)
        name_sizes(a, t);
    if (factored)
        in[1] = NULL;
    return result_of(ev, a->e->mark, t, in, n_src);
}

/* --- builtins --------------------------------------------------------------------------------- */

static bool get_dim(args *a, int i, int64_t *dim) {
    double x = 0;
    if (a->n[i] > 0 && !get_number(a, i, 0, &x))
        return false;
    *dim = (int64_t)x;
    return true;
}

/* split(x, a, b, ..): returns views that lie side by side and must make up all of x. */
static arch_value *call_split(args *a, int *n) {
    arch_eval *ev = a->ev;
    char shape[128];
    int64_t dim, first = 0;
    double size[ARCH_MAX_ARGS], sum = 0;
    ggl_tensor *x = get_tensor(a, 0, 0);
    if (!x || !get_dim(a, 2, &dim))
        return NULL;
    *n = a->n[1];
    for (int k = 0; k < *n; k++) {
        if (!get_number(a, 1, k, &size[k]))
            return NULL;
        sum += size[k];
    }
    if (dim >= x->n_dims || sum != (double)x->ne[dim])
        return llm_arch_error_hint(ev, GGL_SHAPE, a->e->mark, NULL,
                                   "the parts add up to %.0f, but dimension %" PRId64
                                   " of %s is %" PRId64,
                                   sum, dim, ggl_shape_text(x, shape, sizeof shape), x->ne[dim]),
               NULL;
    arch_value *out = *n == 1 ? &ev->one : ggl_arena_alloc(&ev->arena, (size_t)*n, sizeof *out);
    if (!out)
        return llm_arch_nomem(ev), NULL;
    ev->n_siblings++;
    for (int k = 0; k < *n; k++) {
        ggl_tensor *t = llm_arch_split_one(ev, a->e->mark, x, (int)dim, first, (int64_t)size[k],
                                           a->value[a->first[1] + k].text);
        out[k] = result_of(ev, a->e->mark, t, (const arch_value *[]){a->value}, 1);
        if (out[k].kind == VAL_FAIL)
            return NULL;
        ev->made[t->id].siblings = *n > 1 ? ev->n_siblings : 0;
        first += (int64_t)size[k];
    }
    return out;
}

static arch_value call_concat(args *a) {
    arch_value v;
    int64_t dim;
    ggl_tensor *all = get_tensor(a, 0, 0);
    if (!all || !get_dim(a, 1, &dim))
        return ARCH_FAIL;
    v = a->value[0].kind == VAL_TENSOR ? a->value[0] : llm_arch_tensor_value(all);
    v.bias = v.factor = NULL;
    for (int k = 1; k < a->n[0]; k++) {
        ggl_tensor *src[2] = {all, get_tensor(a, 0, k)};
        all = src[1] ? llm_arch_node(a->ev, a->e->mark, GGL_OP_CONCAT, src, 2,
                                     (double[]){(double)dim}, 1)
                     : NULL;
        const arch_value *in[2] = {&v, &a->value[k]};
        v = result_of(a->ev, a->e->mark, all, in, 2);
        if (v.kind == VAL_FAIL)
            break;
    }
    return v;
}

/* The size of a tensor of the file, by its name; no value if there is none. In a made-up model it is n_vocab. */
static arch_value size_of_file(arch_eval *ev, const arch_value *name, arch_place p, int64_t dim) {
    char text[ARCH_MAX_NAME * 2], none[sizeof text + 64];
    snprintf(text, sizeof text, "%.*s", (int)name->str.n, name->str.s);
    const char *whole = llm_arch_expand(ev, text, p);
    if (!whole)
        return ARCH_FAIL;
    llm_arch_tensor t = {.name = whole,
                         .optional = true,
                         .is_asked = true,
                         .n_dims = 1,
                         .ne = {ev->n_vocab, 1, 1, 1}};
    if (ev->convert ? ev->convert->size(ev, &t) : ev->src->find_tensor(ev->src->ctx, &t))
        return llm_arch_number(dim < t.n_dims ? (double)t.ne[dim] : 1);
    if (ev->status != GGL_OK)
        return ARCH_FAIL;
    snprintf(none, sizeof none, "tensor %s is missing in %s", whole, ev->src->name);
    const char *why = llm_arch_strdup(ev, none);
    return why ? llm_arch_none(why) : ARCH_FAIL;
}

static arch_value call_size(args *a) {
    char text[256];
    int64_t dim;
    const arch_value *x = &a->value[0];
    if (!get_dim(a, 1, &dim))
        return ARCH_FAIL;
    if (x->kind == VAL_LIST)
        return llm_arch_number((double)x->n);
    if (x->kind == VAL_NUMBER || (x->key && (x->kind == VAL_BOOL || x->kind == VAL_STRING)))
        /* one value may stand for a list in which .k[l] is the same for all l */
        return llm_arch_number(1);
    if (x->kind == VAL_STRING)
        return size_of_file(a->ev, x, a->e->arg[0].value->place, dim);
    if (x->kind != VAL_TENSOR)
        return llm_arch_error_hint(
            a->ev, GGL_FORMAT, a->e->arg[0].value->place, llm_arch_absent_hint(a->ev, x),
            "size needs a tensor or list: %s", llm_arch_value_text(x, text, sizeof text));
    bool there = dim < x->t->n_dims;
    arch_value v = llm_arch_number(there ? (double)x->t->ne[dim] : 1);
    v.text = there ? x->t->dim_name[dim] : NULL;
    return v;
}

static arch_value call_count(args *a) {
    char text[256];
    const arch_value *x = &a->value[0];
    arch_value v = llm_arch_number(1);
    if (x->kind == VAL_NUMBER)
        return v;
    if (x->kind != VAL_TENSOR)
        return llm_arch_error(a->ev, a->e->arg[0].value->place, "count needs a tensor: %s",
                              llm_arch_value_text(x, text, sizeof text));
    for (int d = 0; d < x->t->n_dims; d++) {
        arch_value f = llm_arch_number((double)x->t->ne[d]);
        f.text = x->t->dim_name[d];
        const char *joined = d ? llm_arch_join_text(a->ev, "*", &v, &f) : f.text;
        v.num *= f.num;
        v.text = joined;
    }
    return v;
}

static arch_value call_around(args *a) {
    int64_t first, k;
    const arch_value *v = a->value;
    if (!llm_arch_want_whole(a->ev, arg_expr(a, 1, 0), &v[a->first[1]], -ARCH_MAX_DIM, ARCH_MAX_DIM,
                             &first) ||
        !llm_arch_want_whole(a->ev, arg_expr(a, 2, 0), &v[a->first[2]], 1, ARCH_MAX_DIM, &k))
        return ARCH_FAIL;
    return llm_arch_around(a->ev, a->e, &v[a->first[0]], first, k);
}

static arch_value call_plane_around(args *a) {
    int64_t k;
    const arch_value *v = a->value;
    if (!llm_arch_want_whole(a->ev, arg_expr(a, 1, 0), &v[a->first[1]], 1, ARCH_MAX_DIM, &k))
        return ARCH_FAIL;
    return llm_arch_plane_around(a->ev, a->e, &v[a->first[0]], k);
}

/* given(x): the row that the caller gives in place of a token's, if it gives one, else x. */
static arch_value call_given(args *a) {
    arch_eval *ev = a->ev;
    ggl_tensor *x = get_tensor(a, 0, 0);
    char shape[128];
    if (!x)
        return ARCH_FAIL;
    if (x->n_dims != 1 || llm_arch_rows(ev, x) != ROWS_EACH || ev->stage || !ev->arch->has_tokens)
        return llm_arch_error(
            ev, a->e->mark,
            "given(x) stands for a row of each token, outside of stages, and x is "
            "%s",
            ggl_shape_text(x, shape, sizeof shape));
    if (ev->n_given > 0 && ev->n_given != x->ne[0])
        return llm_arch_error(ev, a->e->mark, "rows that are given have %lld numbers elsewhere",
                              (long long)ev->n_given);
    ev->n_given = x->ne[0];
    int64_t together = 0;
    if (!is_absent(a, 1) &&
        !llm_arch_want_whole(ev, arg_expr(a, 1, 0), &a->value[a->first[1]], 0, 3, &together))
        return ARCH_FAIL;
    int64_t added = 0;
    if (!is_absent(a, 2) &&
        !llm_arch_want_whole(ev, arg_expr(a, 2, 0), &a->value[a->first[2]], 0, 1, &added))
        return ARCH_FAIL;
    if (together && added)
        return llm_arch_error(ev, a->e->mark,
                              "rows that are added to tokens see what these see: together = 0");
    ev->given_added |= added == 1;
    if (together > ev->given_together)
        ev->given_together = (int)together;
    if (!ev->params || !ev->params->given)
        return a->value[0];
    ggl_tensor *src[] = {llm_arch_input(ev, a->e->mark, "is_given", GGL_F32, 0, NULL),
                         llm_arch_input(ev, a->e->mark, "given_row", GGL_F32, 1, x->ne), x};
    if (added && src[1])
        src[1] = llm_arch_node(ev, a->e->mark, GGL_OP_ADD, (ggl_tensor *[]){x, src[1]}, 2, NULL, 0);
    if (!src[0] || !src[1] ||
        (together && !llm_arch_input(ev, a->e->mark, "end", GGL_I32, 0, NULL)) ||
        (together == 3 && !llm_arch_input(ev, a->e->mark, "begin", GGL_I32, 0, NULL)))
        return ARCH_FAIL;
    return llm_arch_tensor_value(llm_arch_node(ev, a->e->mark, GGL_OP_WHERE, src, 3, NULL, 0));
}

/* given_more(n): n further numbers of the rows that the caller gives, zeros for a token; none if no rows are given. */
static arch_value call_given_more(args *a) {
    arch_eval *ev = a->ev;
    int64_t n;
    if (!llm_arch_want_whole(ev, arg_expr(a, 0, 0), &a->value[a->first[0]], 1, ARCH_MAX_DIM, &n))
        return ARCH_FAIL;
    if (ev->n_given == 0 || ev->n_given_more > 0 || ev->stage)
        return llm_arch_error(ev, a->e->mark,
                              "given_more(n) follows given(x), once, outside of stages");
    ev->n_given_more = n;
    if (!ev->params || !ev->params->given)
        return llm_arch_none("no rows are given");
    const double zero = 0;
    ggl_tensor *src[] = {llm_arch_input(ev, a->e->mark, "is_given", GGL_F32, 0, NULL),
                         llm_arch_input(ev, a->e->mark, "given_more", GGL_F32, 1, &n),
                         ggl_graph_const(ev->g, 0, NULL, &zero)};
    if (!src[0] || !src[1] || !src[2])
        return ARCH_FAIL;
    return llm_arch_tensor_value(llm_arch_node(ev, a->e->mark, GGL_OP_WHERE, src, 3, NULL, 0));
}

/* is_given(): 1 for a row that the caller gives, 0 for a token; none if no rows are given. */
static arch_value call_is_given(args *a) {
    arch_eval *ev = a->ev;
    if (ev->n_given == 0 || ev->stage)
        return llm_arch_error(ev, a->e->mark, "is_given() follows given(x), outside of stages");
    if (!ev->params || !ev->params->given)
        return llm_arch_none("no rows are given");
    return llm_arch_tensor_value(llm_arch_input(ev, a->e->mark, "is_given", GGL_F32, 0, NULL));
}

static arch_value call_floats(args *a) {
    int64_t rows = 0;
    if (!is_absent(a, 0) && !llm_arch_want_whole(a->ev, arg_expr(a, 0, 0), &a->value[a->first[0]],
                                                 1, ARCH_MAX_DIM, &rows))
        return ARCH_FAIL;
    return llm_arch_from_floats(a->ev, a->e, rows);
}

/* sound(..), samples(..), picture(..) and tiles(..) */
static arch_value call_medium(args *a) {
    arch_value (*const of)(arch_eval *, const arch_expr *, const arch_value *const *,
                           const arch_expr *const *) =
        a->e->builtin == FN_SOUND     ? llm_arch_from_sound
        : a->e->builtin == FN_SAMPLES ? llm_arch_from_samples
        : a->e->builtin == FN_TILES   ? llm_arch_in_tiles
                                      : llm_arch_from_picture;
    const arch_value *v[ARCH_MAX_SIG] = {NULL};
    const arch_expr *e[ARCH_MAX_SIG] = {NULL};
    for (int k = 0; k < a->sig.n_param; k++) {
        v[k] = is_absent(a, k) ? NULL : &a->value[a->first[k]];
        e[k] = v[k] ? arg_expr(a, k, 0) : a->e;
    }
    return of(a->ev, a->e, v, e);
}

/* place(x): the number of the stage's row to which x belongs. */
static arch_value call_place(args *a) {
    const ggl_tensor *x = get_tensor(a, 0, 0);
    if (!x)
        return ARCH_FAIL;
    return llm_arch_rows(a->ev, x) == ROWS_STAGE
               ? a->ev->stage_pos
               : llm_arch_error(a->ev, a->e->mark,
                                "place(x) is the number of a row of the stage that tokens read, "
                                "and x is no value of these rows");
}

/* asked("NAME"): whether the output, which is made on request alone, is wanted. */
static arch_value call_asked(args *a) {
    static const int on_request[] = {OUT_EMBEDDING, OUT_ALIGNMENT};
    const arch_value *v = &a->value[0];
    for (int k = 0; v->kind == VAL_STRING && k < 2; k++) {
        const char *name = llm_arch_output_names[on_request[k]];
        if (v->str.n == strlen(name) && memcmp(v->str.s, name, v->str.n) == 0)
            return llm_arch_bool(llm_arch_is_asked(a->ev, on_request[k]));
    }
    return llm_arch_error(a->ev, a->e->mark,
                          "asked needs the name of an output that is made on request: "
                          "\"embedding\" or \"alignment\"");
}

/* token_type(n): which of n types the token has, an index; with one type, the number 0. The input "type" is of the tokens that `token` is. */
static arch_value call_token_type(args *a) {
    arch_eval *ev = a->ev;
    int64_t n;
    if (!llm_arch_want_whole(ev, arg_expr(a, 0, 0), &a->value[a->first[0]], 1, ARCH_MAX_DIM, &n))
        return ARCH_FAIL;
    const arch_value *token = &ev->global[SLOT_TOKEN].v;
    if (token->kind != VAL_TENSOR)
        return llm_arch_error(ev, a->e->mark, "only tokens have types: rows of a stage have none");
    if (ev->n_token_types > 0 && ev->n_token_types != n)
        return llm_arch_error(ev, a->e->mark,
                              "tokens have one number of types: another token_type(n) has n = %lld",
                              (long long)ev->n_token_types);
    ev->n_token_types = n;
    if (n == 1)
        return llm_arch_number(0);
    const bool of_stage = strncmp(token->t->name, "stage.", strlen("stage.")) == 0;
    arch_value v = llm_arch_tensor_value(
        llm_arch_input(ev, a->e->mark, of_stage ? "stage.type" : "type", GGL_I32, 0, NULL));
    v.range = v.t ? n : 0;
    return v;
}

static arch_value call_in_turn(args *a) {
    ggl_tensor *x = get_tensor(a, 0, 0);
    return x ? llm_arch_in_turn(a->ev, a->e, x) : ARCH_FAIL;
}

/* vector(list, n): the first n numbers of a list, a constant. One value stands for a list of equal ones. */
static arch_value call_vector(args *a) {
    arch_eval *ev = a->ev;
    const arch_value *list = &a->value[a->first[0]];
    const arch_expr *e = arg_expr(a, 0, 0);
    double *number, one;
    int64_t n;
    if (!llm_arch_want_whole(ev, arg_expr(a, 1, 0), &a->value[a->first[1]], 1, ARCH_MAX_DIM, &n))
        return ARCH_FAIL;
    if (list->kind != VAL_LIST) {
        ggl_tensor *x =
            llm_arch_want_number(ev, e, list, &one) ? ggl_graph_const(ev->g, 0, NULL, &one) : NULL;
        const double size = (double)n;
        ggl_tensor *t = x ? llm_arch_node(ev, a->e->mark, GGL_OP_REPEAT, &x, 1, &size, 1) : NULL;
        return t ? llm_arch_tensor_value(t) : ARCH_FAIL;
    }
    if ((uint64_t)n > list->n)
        return llm_arch_error(ev, a->e->mark, "vector(list, %" PRId64 "): the list has %zu numbers",
                              n, list->n);
    if (4.0 * (double)n + (double)ev->const_bytes > (double)ARCH_MAX_CONST)
        return llm_arch_error(ev, a->e->mark,
                              "vector(list, %" PRId64 "): constants need more than %zu MiB", n,
                              (size_t)ARCH_MAX_CONST >> 20);
    if (!llm_arch_step(ev, a->e->mark, 1 + n / 16))
        return ARCH_FAIL;
    if (!(number = ggl_calloc((size_t)n, sizeof *number)))
        return llm_arch_nomem(ev);
    int64_t i = 0;
    for (; i < n; i++) {
        const arch_value x = llm_arch_list_item(ev, e, list, i);
        if (!llm_arch_want_number(ev, e, &x, &number[i]))
            break;
    }
    ggl_tensor *t = i == n ? ggl_graph_const(ev->g, 1, &n, number) : NULL;
    ggl_free(number);
    ev->const_bytes += 4 * (size_t)n;
    return i == n && llm_arch_graph_ok(ev, a->e->mark) && t ? llm_arch_tensor_value(t) : ARCH_FAIL;
}

static arch_value call_builtin(args *a) {
    double x;
    switch (a->e->builtin) {
    case FN_CONCAT:
        return call_concat(a);
    case FN_SIZE:
        return call_size(a);
    case FN_COUNT:
        return call_count(a);
    case FN_AROUND:
        return call_around(a);
    case FN_PLANE_AROUND:
        return call_plane_around(a);
    case FN_GIVEN:
        return call_given(a);
    case FN_GIVEN_MORE:
        return call_given_more(a);
    case FN_IS_GIVEN:
        return call_is_given(a);
    case FN_FLOATS:
        return call_floats(a);
    case FN_SOUND:
    case FN_SAMPLES:
    case FN_PICTURE:
    case FN_TILES:
        return call_medium(a);
    case FN_PLACE:
        return call_place(a);
    case FN_ASKED:
        return call_asked(a);
    case FN_TOKEN_TYPE:
        return call_token_type(a);
    case FN_VECTOR:
        return call_vector(a);
    case FN_IN_TURN:
        return call_in_turn(a);
    case FN_GUESS_BEFORE:
        return llm_arch_guess_before(a->ev, a->e);
    case FN_CEIL:
        return get_number(a, 0, 0, &x) ? llm_arch_number(ceil(x)) : ARCH_FAIL;
    case FN_LOG2:
        return get_number(a, 0, 0, &x) ? llm_arch_number(ggl_log2(x)) : ARCH_FAIL;
    default:
        return ARCH_FAIL;
    }
}

arch_value *llm_arch_call_primitive(arch_eval *ev, const arch_expr *e, int *n) {
    args a;
    arch_value *out = NULL;
    *n = 1;
    if (eval_args(&a, ev, e,
                  e->callee == CALL_OP ? llm_arch_sig_of_op(e->op)
                                       : llm_arch_sig_of_builtin(e->builtin))) {
        if (e->callee == CALL_BUILTIN && e->builtin == FN_SPLIT) {
            out = call_split(&a, n);
        } else {
            ev->one = e->callee == CALL_OP ? call_op(&a) : call_builtin(&a);
            out = ev->one.kind == VAL_FAIL ? NULL : &ev->one;
        }
    }
    ggl_free(a.value);
    return out;
}
