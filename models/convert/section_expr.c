/* Turns mappings into recipes: a tensor made from source tensors, or a constant. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/fold.h"
#include "ggl/sched.h"
#include "packed.h"

/* --- source tensors --------------------------------------------------------------------------- */

/* Makes a recipe with n_part parts, of the shape of `like`, which becomes the first part if
 * n_part > 0. */
static recipe *new_recipe(arch_eval *ev, recipe_kind kind, recipe *like, int n_part) {
    recipe *r = ggl_arena_alloc(&ev->conv->arena, 1, sizeof *r);
    recipe **part = ggl_arena_alloc(&ev->conv->arena, (size_t)n_part + 1, sizeof *part);
    if (!r || !part)
        return llm_arch_nomem(ev), NULL;
    if (like)
        *r = *like;
    r->kind = kind;
    r->part = part;
    r->n_part = n_part;
    r->held = NULL;
    r->matrix = 0;
    r->dim = r->n_dims - 1;
    if (n_part > 0)
        part[0] = like;
    return r;
}

/* Copies a source's shape without dimensions of 1, except the last, on which functions act by
 * default. Of more than four dimensions, the innermost are joined. */
static void take_shape(recipe *r, const st_tensor *t) {
    const int last = t->n_dims - 1;
    int n = 0;
    for (int d = 0; d < t->n_dims; d++)
        n += t->ne[d] != 1 || d == last;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = 1;
    int at = n > GGL_MAX_DIMS ? GGL_MAX_DIMS - n : 0; /* below 0: joined to the first */
    for (int d = 0; d < t->n_dims; d++) {
        if (t->ne[d] == 1 && d < last)
            continue;
        r->ne[at > 0 ? at : 0] *= t->ne[d];
        at++;
    }
    r->n_dims = n < 1 ? 1 : n < GGL_MAX_DIMS ? n : GGL_MAX_DIMS;
}

/* Makes the recipe of a source tensor. *out stays NULL if the folder lacks it. It lacks those of a
 * stage's layers, "mtp.{nth}", while other layers are made: where that leaves a weight without a
 * source, missing_source reports the name. */
static bool make_source(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    if (llm_arch_lacks_number(ev, e->name, e->place))
        return ev->status == GGL_OK;
    const char *stem = llm_arch_expand(ev, e->name, e->place);
    if (!stem)
        return false;
    st_tensor *t = llm_arch_convert_find_source(ev->conv, stem, is_bias);
    if (!t)
        return true;
    const bool whole = ev->conv->whole_numbers,
               bytes = ev->conv->bytes && strcmp(t->dtype, "I8") == 0;
    recipe *r = new_recipe(ev,
                           whole   ? RECIPE_WHOLE
                           : bytes ? RECIPE_BYTES
                                   : RECIPE_SOURCE,
                           NULL, 0);
    if (whole && strcmp(t->dtype, "I32") != 0 && strcmp(t->dtype, "I64") != 0)
        return llm_arch_error(ev, e->place, "tensor %s has the type %s: I32 or I64 is expected",
                              t->name.s, t->dtype),
               false;
    if (!r)
        return false;
    take_shape(r, t);
    if (t->type < 0 && !whole && !bytes && !llm_arch_convert_unpack(ev, e, r, t))
        return false;
    llm_arch_convert_use(ev->conv, t);
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
    arch_value v = llm_arch_eval_expr(ev, e->arg[k].value);
    return v.kind != VAL_FAIL &&
           llm_arch_want_whole(ev, e->arg[k].value, &v, min, ARCH_MAX_DIM, out);
}

/* Reads `dim`, argument k of a call, by default the last dimension. A bias lacks its weight's
 * first dimension, so its dimensions count from 1; *none: the bias lacks the given one. */
static bool dim_arg(arch_eval *ev, const arch_expr *e, int k, bool is_bias, int n_dims, int *dim,
                    bool *none) {
    int64_t x = n_dims - 1 + is_bias;
    const bool given = k < e->n_arg;
    if (given && !whole_arg(ev, e, k, 0, &x))
        return false;
    x -= is_bias;
    *none = x < 0;
    *dim = (int)x;
    if (x >= n_dims)
        llm_arch_error(ev, e->arg[k].value->place,
                       "dimension %" PRId64 " of a tensor that has %d, counted from 0", x + is_bias,
                       n_dims + is_bias);
    return x < n_dims;
}

/* Returns the index of the argument `dim = ..`, or n_arg if there is none. */
static int named_dim(const arch_expr *e) {
    return e->n_arg - (e->n_arg > 0 && e->arg[e->n_arg - 1].name != NULL);
}

/* pairs(x, n), regroup(x, a, b), rows(x, from, n): rearranges rows along `dim`. */
static bool make_part(arch_eval *ev, const arch_expr *e, recipe_kind kind, bool is_bias,
                      recipe **out) {
    char shape[128];
    int64_t x, y = 0;
    int dim = 0;
    bool none = false;
    recipe *a = NULL;
    if (!llm_arch_convert_make(ev, e->arg[0].value, is_bias, &a) ||
        !whole_arg(ev, e, 1, kind == RECIPE_ROWS ? 0 : 1, &x) ||
        (kind != RECIPE_PAIRS && !whole_arg(ev, e, 2, 1, &y)))
        return false;
    *out = a;
    if (!a || !dim_arg(ev, e, named_dim(e), is_bias, a->n_dims, &dim, &none) || none)
        return ev->status == GGL_OK;
    int64_t rows = a->ne[dim], by = kind == RECIPE_PAIRS ? 2 * x : x * y;
    if (kind == RECIPE_ROWS && x + y > rows)
        return llm_arch_error(ev, e->mark,
                              "rows %" PRId64 " to %" PRId64 " of %s, which has %" PRId64 " rows",
                              x, x + y - 1, shape_text(a, shape, sizeof shape), rows),
               false;
    if (kind != RECIPE_ROWS && rows % by != 0)
        return llm_arch_error(ev, e->mark,
                              "the %" PRId64 " rows of %s are not a multiple of %" PRId64, rows,
                              shape_text(a, shape, sizeof shape), by),
               false;
    if (!(*out = new_recipe(ev, kind, a, 1)))
        return false;
    (*out)->dim = dim;
    (*out)->x = x;
    (*out)->y = y;
    if (kind == RECIPE_ROWS)
        (*out)->ne[dim] = y;
    return true;
}

/* transpose(x, a = 0, b = 1): exchanges two dimensions. */
static bool make_transpose(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *a = NULL;
    int64_t x[2] = {0, 1};
    if (!llm_arch_convert_make(ev, e->arg[0].value, is_bias, &a) ||
        (e->n_arg == 3 && !(whole_arg(ev, e, 1, 0, &x[0]) && whole_arg(ev, e, 2, 0, &x[1]))))
        return false;
    *out = a;
    if (!a)
        return true;
    const int64_t lo = (x[0] < x[1] ? x[0] : x[1]) - is_bias,
                  hi = (x[0] < x[1] ? x[1] : x[0]) - is_bias;
    /* a bias lacks dimension 0 */
    if (lo < 0 || lo == hi || (e->n_arg == 1 && a->n_dims == 1))
        return true;
    if (hi >= a->n_dims)
        return llm_arch_error(ev, e->mark,
                              "dimension %" PRId64 " of a tensor that has %d, counted from 0",
                              hi + is_bias, a->n_dims + is_bias),
               false;
    if (a->kind == RECIPE_PACKED && a->packed->of_linear)
        return llm_arch_error(ev, e->mark,
                              "tensor %s was transposed when it was quantized, and this line "
                              "transposes it, too: convert the "
                              "folder of the original weights",
                              a->source->name.s),
               false;
    if (!(*out = new_recipe(ev, RECIPE_TRANSPOSE, a, 1)))
        return false;
    (*out)->dim = (int)lo;
    (*out)->x = hi;
    (*out)->ne[lo] = a->ne[hi];
    (*out)->ne[hi] = a->ne[lo];
    return true;
}

/* reshape(x, a, b, ..). A bias gets the shape without its first dimension, if that has as many
 * numbers. */
static bool make_reshape(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *a = NULL;
    char shape[128];
    int64_t ne[GGL_MAX_DIMS] = {1, 1, 1, 1}, count = 1;
    const int n = e->n_arg - 1 - is_bias;
    if (!llm_arch_convert_make(ev, e->arg[0].value, is_bias, &a))
        return false;
    for (int d = 0; d < n; d++)
        if (!whole_arg(ev, e, d + 1 + is_bias, 1, &ne[d]))
            return false;
    for (int d = 0; d < n; d++)
        count = count > (int64_t)1 << 50 ? count : count * ne[d];
    *out = a;
    if (!a)
        return true;
    if (count != llm_recipe_count(a) || n < 1) {
        llm_arch_error(
            ev, e->mark, "%s%s has %" PRId64 " numbers, but the new shape has %" PRId64 "%s",
            is_bias ? "the bias " : "", shape_text(a, shape, sizeof shape), llm_recipe_count(a),
            count, is_bias ? ": write a line for it, NAME.bias <- .." : "");
        return false;
    }
    if (!(*out = new_recipe(ev, RECIPE_RESHAPE, a, 1)))
        return false;
    (*out)->n_dims = n;
    memcpy((*out)->ne, ne, sizeof ne);
    return true;
}

/* Checks that two shapes are equal in all dimensions except `but`; -1: in all. False: reported. */
static bool fits(arch_eval *ev, const arch_expr *e, const recipe *first, const recipe *r, int but) {
    char a[128], b[128];
    bool same = first->n_dims == r->n_dims;
    for (int d = 0; d < first->n_dims; d++)
        same = same && (d == but || first->ne[d] == r->ne[d]);
    if (!same)
        llm_arch_error(ev, e->mark, "%s of %s and %s", e->name, shape_text(first, a, sizeof a),
                       shape_text(r, b, sizeof b));
    return same;
}

/* Returns the leftmost string of an expression, or NULL. */
static const arch_expr *first_string(const arch_expr *e) {
    if (e->kind == EX_STRING)
        return e;
    const arch_expr *s = e->kind == EX_HAS ? NULL : e->a ? first_string(e->a) : NULL;
    if (!s && e->b)
        s = first_string(e->b);
    for (int k = 0; !s && k < e->n_arg; k++)
        s = first_string(e->arg[k].value);
    return s;
}

const char *llm_arch_convert_source_name(arch_eval *ev, const arch_expr *e, bool is_bias) {
    arch_conversion *c = ev->conv;
    const arch_expr *s = first_string(e);
    const bool outside = s && !c->stacking;
    /* {e} stands for the first */
    if (outside) {
        c->stacking = true;
        c->e = 0;
    }
    const char *stem = s ? llm_arch_expand(ev, s->name, s->place) : NULL;
    if (outside)
        c->stacking = false;
    const char *end = stem ? strrchr(stem, '.') : NULL;
    if (!stem || c->own_bias || (end && strcmp(end, ".weight") == 0))
        return stem;
    char name[600];
    snprintf(name, sizeof name, "%s.%s", stem, is_bias ? "bias" : "weight");
    return llm_arch_strdup(ev, name);
}

/* True if all parts exist. False if none does, or with an error if some are missing. */
static bool all_or_none(arch_eval *ev, const arch_expr *e, recipe *const *part, int n,
                        bool is_bias) {
    const bool stack = e->name[0] == 's';
    int n_there = 0, first = -1;
    for (int k = 0; k < n; k++) {
        n_there += part[k] != NULL;
        first = !part[k] && first < 0 ? k : first;
    }
    if (n_there == 0 || n_there == n)
        return n_there == n;
    ev->conv->stacking |= stack;
    ev->conv->e = stack ? first : ev->conv->e;
    const char *name = llm_arch_convert_source_name(ev, e->arg[stack ? 0 : first].value, is_bias);
    ev->conv->stacking &= !stack;
    if (ev->status == GGL_OK)
        llm_arch_error(ev, e->mark, "%d of the %d tensors %s missing in the folder: %s%s",
                       n - n_there, n, n - n_there == 1 ? "is" : "are", name ? name : "?",
                       n - n_there == 1 ? "" : " is the first");
    return false;
}

static bool make_concat(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *part[ARCH_MAX_ARGS] = {NULL};
    const int n = named_dim(e);
    int dim = 0;
    bool none = false;
    for (int k = 0; k < n; k++)
        if (!llm_arch_convert_make(ev, e->arg[k].value, is_bias, &part[k]))
            return false;
    if (!all_or_none(ev, e, part, n, is_bias) ||
        !dim_arg(ev, e, n, is_bias, part[0]->n_dims, &dim, &none))
        return ev->status == GGL_OK;
    if (none)
        return llm_arch_error(
                   ev, e->mark,
                   "matrices side by side give no bias: write a line for it, NAME.bias <- .."),
               false;
    recipe *r = new_recipe(ev, RECIPE_JOIN, part[0], n);
    if (!r)
        return false;
    r->dim = dim;
    for (int k = 1; k < n; k++) {
        if (!fits(ev, e, part[0], part[k], dim))
            return false;
        r->part[k] = part[k];
        r->ne[dim] += part[k]->ne[dim];
        if (r->ne[dim] > (int64_t)1 << 50)
            return llm_arch_error(ev, e->mark, "the result of concat is too large"), false;
    }
    *out = r;
    return true;
}

/* Makes x for e = 0 .. n - 1 of a stack, dim -1, or of shards, which may be longer or shorter in dimension dim of the first. *part is NULL if none is there. */
static bool make_each(arch_eval *ev, const arch_expr *e, bool is_bias, bool shards, recipe ***part,
                      int *n) {
    arch_conversion *c = ev->conv;
    int64_t most;
    if (c->stacking)
        return llm_arch_error(ev, e->mark, "a stack in a stack is not allowed"), false;
    if (!whole_arg(ev, e, 1, 1, &most) || !llm_arch_step(ev, e->place, most))
        return false;
    if (most > ARCH_MAX_LAYERS)
        return llm_arch_error(ev, e->mark, "%s of more than %d is not allowed",
                              shards ? "a number of shards" : "a stack", ARCH_MAX_LAYERS),
               false;
    *n = (int)most;
    recipe **all = *part = ggl_arena_alloc(&c->arena, (size_t)most, sizeof *all);
    if (!all)
        return llm_arch_nomem(ev), false;
    bool ok = true;
    c->stacking = true;
    for (c->e = 0; c->e < most && ok; c->e++)
        ok = llm_arch_convert_make(ev, e->arg[0].value, is_bias, &all[c->e]) &&
             (c->e == 0 || !all[0] || !all[c->e] ||
              fits(ev, e, all[0], all[c->e], shards ? all[0]->n_dims - 1 : -1));
    c->stacking = false;
    if (!ok || !all_or_none(ev, e, all, *n, is_bias))
        *part = NULL;
    return ev->status == GGL_OK;
}

static bool make_stack(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe **part;
    int n;
    if (!make_each(ev, e, is_bias, false, &part, &n) || !part)
        return ev->status == GGL_OK;
    if (part[0]->n_dims == GGL_MAX_DIMS)
        return llm_arch_error(ev, e->mark, "a stack of tensors of 4 dimensions is not allowed"),
               false;
    recipe *r = new_recipe(ev, RECIPE_JOIN, part[0], 1);
    if (!r)
        return false;
    r->part = part;
    r->n_part = n;
    r->dim = r->n_dims;
    r->ne[r->n_dims++] = n;
    *out = r;
    return true;
}

/* shards(x, n): the rows of x for e = 0 .. n - 1, one after the other. */
static bool make_shards(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe **part;
    int n;
    if (!make_each(ev, e, is_bias, true, &part, &n) || !part)
        return ev->status == GGL_OK;
    recipe *r = new_recipe(ev, RECIPE_JOIN, part[0], 1);
    if (!r)
        return false;
    r->part = part;
    r->n_part = n;
    r->dim = r->n_dims - 1;
    for (int k = 1; k < n; k++)
        r->ne[r->dim] += part[k]->ne[r->dim];
    if (r->ne[r->dim] > (int64_t)1 << 50)
        return llm_arch_error(ev, e->mark, "the result of shards is too large"), false;
    *out = r;
    return true;
}

/* A function of each number, which changes no bias. */
static bool make_mapped(arch_eval *ev, const arch_expr *e, recipe_kind kind, bool is_bias,
                        recipe **out) {
    recipe *a = NULL;
    if (!llm_arch_convert_make(ev, e->arg[0].value, is_bias, &a))
        return false;
    *out = a && !is_bias ? new_recipe(ev, kind, a, 1) : a;
    return !a || *out;
}

static bool make_exp(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_mapped(ev, e, RECIPE_EXP, is_bias, out);
}

static bool make_softplus(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_mapped(ev, e, RECIPE_SOFTPLUS, is_bias, out);
}

static bool make_ternary(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_mapped(ev, e, RECIPE_TERNARY, is_bias, out);
}

/* whole(x): integers such as indices of experts, which stay I32 whatever type the user asks for. */
static bool make_whole(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    const arch_expr *of = e->arg[0].value;
    if (of->kind != EX_STRING)
        return llm_arch_error(ev, of->place, "%s(..) needs the name of a source tensor, in quotes",
                              e->name),
               false;
    ev->conv->whole_numbers = true;
    const bool ok = llm_arch_convert_make(ev, of, is_bias, out);
    ev->conv->whole_numbers = false;
    return ok;
}

/* offsets(x): integers that are saved as their distance from their index, i + x[i], as I64. */
static bool make_offsets(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    if (!make_whole(ev, e, is_bias, out))
        return false;
    if (*out && (*out)->kind == RECIPE_WHOLE)
        (*out)->kind = RECIPE_OFFSETS;
    return true;
}

/* numbers(x): a tensor whose numbers of 8 bits, if it has such, are meant as they are, without a factor. */
static bool make_numbers(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    ev->conv->bytes = true;
    const bool ok = llm_arch_convert_make(ev, e->arg[0].value, is_bias, out);
    ev->conv->bytes = false;
    return ok;
}

static bool make_pairs(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_part(ev, e, RECIPE_PAIRS, is_bias, out);
}

static bool make_regroup(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_part(ev, e, RECIPE_REGROUP, is_bias, out);
}

static bool make_rows(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    return make_part(ev, e, RECIPE_ROWS, is_bias, out);
}

/* pick(x, whole("i")), pick(x, list): the rows of a matrix that i, or a constant, chooses. */
static bool make_pick(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    recipe *of = NULL, *chosen = NULL;
    if (!llm_arch_convert_make(ev, e->arg[0].value, is_bias, &of) ||
        !llm_arch_convert_make(ev, e->arg[1].value, is_bias, &chosen))
        return false;
    if (!of || !chosen) /* there is no source */
        return true;
    if (of->n_dims != 2 || (chosen->kind != RECIPE_WHOLE && chosen->kind != RECIPE_HELD))
        return llm_arch_error(ev, e->mark,
                              "pick(x, whole(i)) and pick(x, list) choose rows of a matrix"),
               false;
    recipe *r = *out = new_recipe(ev, RECIPE_PICK, of, 2);
    if (!r)
        return false;
    r->part[1] = chosen;
    r->n_dims = 2;
    r->ne[1] = llm_recipe_count(chosen);
    return true;
}

typedef bool make_fn(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out);

/* What makes a tensor for a call; NULL: a call gives no tensor. */
static make_fn *const makers[CONVERSION_COUNT] = {
#define TENSOR(name)                          make_##name
#define VALUE(name)                           NULL
#define CONVERSION(name, min, max, dim, what) what(name),
#include "language/conversions.def"
};

/* Returns the maker of a tensor if e calls one, else NULL. */
static make_fn *maker_of(const arch_expr *e) {
    const bool is_conversion =
        e->kind == EX_CALL && e->callee == CALL_BUILTIN && e->builtin >= FN_BUILTIN_COUNT;
    return is_conversion ? makers[e->builtin - FN_BUILTIN_COUNT] : NULL;
}

/* How a tensor x and a number n become x + n, x * n, x ** n, max(x, n) or min(x, n), with - and / as
 * other forms of the first two. x may be the second operand, but of -, / and **. */
static const struct {
    ggl_op op;
    recipe_kind kind;
    bool ordered;
    recipe_kind of_two; /* tensors; RECIPE_SOURCE: none */
} arithmetic[] = {
    {GGL_OP_ADD, RECIPE_ADD, false, RECIPE_PLUS},   {GGL_OP_SUB, RECIPE_ADD, true, RECIPE_MINUS},
    {GGL_OP_MUL, RECIPE_MUL, false, RECIPE_TIMES},  {GGL_OP_DIV, RECIPE_MUL, true, RECIPE_SOURCE},
    {GGL_OP_POW, RECIPE_POW, true, RECIPE_SOURCE},  {GGL_OP_MAX, RECIPE_MAX, false, RECIPE_SOURCE},
    {GGL_OP_MIN, RECIPE_MIN, false, RECIPE_SOURCE},
};

/* Returns the operation's index in `arithmetic`, and its operands; -1: it is none of these. */
static int arithmetic_of(const arch_expr *e, const arch_expr *operand[2]) {
    const bool called = e->kind == EX_CALL && e->callee == CALL_OP && e->n_arg == 2;
    if (e->kind != EX_BINARY && !called)
        return -1;
    operand[0] = called ? e->arg[0].value : e->a;
    operand[1] = called ? e->arg[1].value : e->b;
    for (int k = 0; k < (int)(sizeof arithmetic / sizeof *arithmetic); k++)
        if (arithmetic[k].op == e->op)
            return k;
    return -1;
}

/* True if the value of an expression may be a source tensor. */
static bool is_source(const arch_expr *e) {
    const arch_expr *of[2];
    if (e->kind == EX_STRING || maker_of(e))
        return true;
    if (e->kind == EX_IF || e->kind == EX_OR_ELSE)
        return is_source(e->a) || is_source(e->b);
    return arithmetic_of(e, of) >= 0 && (is_source(of[0]) || is_source(of[1]));
}

/* x * y, x + y and x - y for tensors of the same shape. Leaves a bias as it is. */
static bool make_joint(arch_eval *ev, const arch_expr *e, recipe_kind kind,
                       const arch_expr *const of[2], bool is_bias, recipe **out) {
    recipe *part[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++)
        if (!llm_arch_convert_make(ev, of[k], is_bias, &part[k]))
            return false;
    *out = part[0];
    if (is_bias || (!part[0] && !part[1]))
        return true;
    if (!part[0] || !part[1])
        return llm_arch_error(ev, of[part[0] ? 1 : 0]->place,
                              "this tensor is missing in the folder, the other one is there"),
               false;
    if (part[0]->n_dims != part[1]->n_dims ||
        memcmp(part[0]->ne, part[1]->ne, sizeof part[0]->ne) != 0)
        return llm_arch_error(ev, e->mark, "the shapes of the two tensors differ"), false;
    if (!(*out = new_recipe(ev, kind, part[0], 2)))
        return false;
    (*out)->part[1] = part[1];
    return true;
}

/* Arithmetic of a tensor and a number, or of two tensors, number by number. Leaves a bias as it is. */
static bool make_arithmetic(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    const arch_expr *of[2] = {e, e};
    const int k = arithmetic_of(e, of);
    const bool left = is_source(of[0]);
    const arch_expr *x = left ? of[0] : of[1], *n = left ? of[1] : of[0];
    double number;
    recipe *a = NULL;
    if (left && is_source(of[1]) && arithmetic[k].of_two != RECIPE_SOURCE)
        return make_joint(ev, e, arithmetic[k].of_two, of, is_bias, out);
    if ((left && is_source(of[1])) || (!left && arithmetic[k].ordered))
        return llm_arch_error(ev, e->mark, "'%s' in a conversion needs a tensor and then a number",
                              e->name),
               false;
    if (!llm_arch_convert_make(ev, x, is_bias, &a))
        return false;
    arch_value v = llm_arch_eval_expr(ev, n);
    if (v.kind == VAL_FAIL || !llm_arch_want_number(ev, n, &v, &number))
        return false;
    *out = a;
    if (!a || is_bias)
        return true;
    if (!(*out = new_recipe(ev, arithmetic[k].kind, a, 1)))
        return false;
    (*out)->number = e->op == GGL_OP_SUB ? -number : e->op == GGL_OP_DIV ? 1 / number : number;
    return true;
}

/* --- constants -------------------------------------------------------------------------------- */

/* Makes an empty constant of this shape. NULL: reported. */
static recipe *hold(arch_eval *ev, int n_dims, const int64_t *ne) {
    recipe *r = new_recipe(ev, RECIPE_HELD, NULL, 0);
    if (!r)
        return NULL;
    r->n_dims = n_dims > 0 ? n_dims : 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = d < n_dims ? ne[d] : 1;
    r->held = ggl_arena_alloc(&ev->conv->arena, (size_t)llm_recipe_count(r), sizeof *r->held);
    return r->held ? r : (llm_arch_nomem(ev), NULL);
}

static recipe *hold_list(arch_eval *ev, const arch_expr *e, const arch_value *v) {
    int64_t n = (int64_t)v->n;
    recipe *r = hold(ev, 1, &n);
    for (int64_t i = 0; r && i < n; i++) {
        arch_value x = llm_arch_list_item(ev, e, v, i);
        if (x.kind != VAL_NUMBER)
            return llm_arch_error(ev, e->place, "a list of numbers is expected for a tensor"), NULL;
        r->held[i] = (float)x.num;
    }
    return r;
}

/* Computes a constant tensor. Folding requires a reader that depends on an input, so the graph
 * gets the output x * t. */
static recipe *hold_tensor(arch_eval *ev, const arch_expr *e, ggl_tensor *t) {
    if (ggl_is_batched(t))
        return llm_arch_error(ev, e->place,
                              "a constant is expected, but this depends on the token"),
               NULL;
    if (!ev->conv->backend)
        return llm_arch_error(ev, e->place, "there is no backend to compute this constant"), NULL;
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
    if (c->op != GGL_OP_CONST || c->type != GGL_F32 ||
        c->size != (size_t)llm_recipe_count(r) * sizeof *r->held)
        return llm_arch_error(ev, e->place, "this is not a constant of numbers"), NULL;
    memcpy(r->held, c->data, c->size);
    return r;
}

/* Evaluates an expression to a constant. NULL without an error: it has no value. */
static recipe *hold_value(arch_eval *ev, const arch_expr *e) {
    char text[256];
    arch_value v = llm_arch_eval_expr(ev, e);
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
            llm_arch_error_hint(ev, GGL_FORMAT, e->place,
                                "write '?? none' if the tensor may be absent", "%s", v.text);
        return NULL;
    case VAL_FAIL:
        return NULL;
    default:
        return llm_arch_error(ev, e->place, "this does not make a tensor: %s",
                              llm_arch_value_text(&v, text, sizeof text)),
               NULL;
    }
}

/* Makes a constant in a graph of its own. It sees the descriptor's names except tensors. */
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
    in.rows_of = NULL;
    in.cap_rows_of = 0;
    in.cap_made = in.n_call = in.cap_call = in.n_keep = in.cap_keep = in.n_read = in.cap_read = 0;
    ev->conv->in_constant = true;
    recipe *r = seen && g ? hold_value(&in, e) : (llm_arch_nomem(&in), NULL);
    ev->conv->in_constant = false;
    ggl_graph_free(g);
    ggl_free(seen);
    ggl_free(in.made);
    ggl_free(in.rows_of);
    ggl_free(in.call);
    ggl_free(in.keep);
    ggl_free(in.read);
    ev->arena = in.arena;
    ev->steps = in.steps;
    ev->status = in.status;
    ev->word = in.word;
    ev->word_index = in.word_index;
    ev->known = in.known;
    *out = r;
    return ev->status == GGL_OK;
}

bool llm_arch_convert_make(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out) {
    *out = NULL;
    if (!llm_arch_step(ev, e->place, 1))
        return false;
    if (!is_source(e))
        return is_bias || make_constant(ev, e, out);
    switch (e->kind) {
    case EX_STRING:
        return make_source(ev, e, is_bias, out);
    case EX_CALL:
        return maker_of(e) ? maker_of(e)(ev, e, is_bias, out)
                           : make_arithmetic(ev, e, is_bias, out);
    case EX_BINARY:
        return make_arithmetic(ev, e, is_bias, out);
    case EX_OR_ELSE:
        return llm_arch_convert_make(ev, e->a, is_bias, out) &&
               (*out || llm_arch_convert_make(ev, e->b, is_bias, out));
    default: { /* EX_IF */
        bool yes;
        arch_value c = llm_arch_eval_expr(ev, e->c);
        return c.kind != VAL_FAIL && llm_arch_want_bool(ev, e->c, &c, &yes) &&
               llm_arch_convert_make(ev, yes ? e->a : e->b, is_bias, out);
    }
    }
}
