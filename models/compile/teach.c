/* Changes the keys of a made-up model until a failed `require` holds: requests other values for
 * the keys in its condition through require_key, after which the caller starts the build again. */
#include <math.h>

#include "compile.h"

/* Returns the key whose value the expression is, and its current value; NULL: the expression is
 * not just a key. An absent key with a default counts. */
static const char *key_of(arch_eval *ev, const arch_expr *e, arch_value *now) {
    if (e->kind == EX_OR_ELSE) {
        const char *key = key_of(ev, e->a, now);
        if (key)
            *now = llm_arch_eval_expr(ev, e);
        return key;
    }
    if (e->kind != EX_KEY && e->kind != EX_INDEX && e->kind != EX_NAME)
        return NULL;
    *now = llm_arch_eval_expr(ev, e);
    return now->kind == VAL_TENSOR || now->kind == VAL_FAIL ? NULL : now->key;
}

static bool number_of(arch_eval *ev, const arch_expr *e, double *x) {
    const arch_value v = llm_arch_eval_expr(ev, e);
    *x = v.num;
    return v.kind == VAL_NUMBER;
}

static void require_number(arch_eval *ev, const char *key, double x) {
    ev->src->require_key(ev->src->ctx, key, &(llm_arch_item){.number = x});
}

/* Returns the value that one operand of `a op b` needs for the result x; `other` is the value of
 * the other operand. */
static double undone(ggl_op op, bool left, double other, double x) {
    switch (op) {
    case GGL_OP_ADD:
        return x - other;
    case GGL_OP_SUB:
        return left ? x + other : other - x;
    case GGL_OP_MUL:
        return x / other;
    case GGL_OP_DIV:
        return left ? x * other : other / x;
    default:
        return NAN;
    }
}

/* Returns a new a for which a % b == x: the nearest positive multiple of b, plus x. */
static double with_rest(double a, double b, double x) {
    const double times = floor(a / b + 0.5);
    return (times < 1 ? 1 : times) * b + x;
}

/* What require_key calls the engine's number that this expression names: "n_ctx", or the key of
 * n_vocab. NULL: it names none. */
static const char *engine_number(arch_eval *ev, const arch_expr *e) {
    if (e->kind != EX_NAME || e->local >= 0)
        return NULL;
    if (e->global == SLOT_N_VOCAB)
        return ggl_arena_printf(&ev->arena, "%s.vocab_size", ev->family);
    return e->global == SLOT_N_CTX ? "n_ctx" : NULL;
}

/* Changes a key in the expression, or an engine's number if `engine`, so that its value becomes x.
 * If x is not whole: up > 0 rounds up, up < 0 down, 0 leaves it. False: there is nothing that it
 * could change. */
static bool aim_one(arch_eval *ev, const arch_expr *e, double x, int up, bool engine) {
    arch_value now;
    double a, b;
    const char *key = key_of(ev, e, &now), *number = engine ? engine_number(ev, e) : NULL;
    if ((number || (key && now.kind == VAL_NUMBER)) && isfinite(x)) {
        require_number(ev, number ? number : key, up > 0 ? ceil(x) : up < 0 ? floor(x) : x);
        return true;
    }
    if (key || e->kind != EX_BINARY || !number_of(ev, e->a, &a) || !number_of(ev, e->b, &b))
        return false;
    if (e->op == GGL_OP_MOD)
        return aim_one(ev, e->a, with_rest(a, b, x), 0, engine);
    return aim_one(ev, e->a, undone(e->op, true, b, x), up, engine) ||
           aim_one(ev, e->b, undone(e->op, false, a, x), up, engine);
}

/* Makes the value of one of two expressions x or y, by a key of either if there is one. */
static void aim(arch_eval *ev, const arch_expr *a, double x, int up, const arch_expr *b, double y) {
    for (int engine = 0; engine < 2; engine++)
        if (aim_one(ev, a, x, up, engine) || (b && aim_one(ev, b, y, -up, engine)))
            return;
}

/* Makes an ordering such as a < b hold by changing one side. */
static void teach_order(arch_eval *ev, const arch_expr *e, ggl_op op) {
    const bool less = op == GGL_OP_LT || op == GGL_OP_LE;
    const double gap = op == GGL_OP_LE || op == GGL_OP_GE ? 0 : less ? -1 : 1;
    double a, b;
    if (number_of(ev, e->a, &a) && number_of(ev, e->b, &b))
        aim(ev, e->a, b + gap, less ? -1 : 1, e->b, a - gap);
}

/* Makes a == b hold by giving a key on one side the value of the other, of any kind. */
static void teach_equal(arch_eval *ev, const arch_expr *e) {
    const arch_expr *side[2] = {e->a, e->b};
    for (int k = 0; k < 2; k++) {
        arch_value now;
        const char *key = key_of(ev, side[k], &now);
        const arch_value other = llm_arch_eval_expr(ev, side[1 - k]);
        if (key && now.kind == other.kind && !llm_arch_equal(&now, &other)) {
            ev->src->require_key(ev->src->ctx, key,
                                 &(llm_arch_item){other.num, other.flag, other.str});
            return;
        }
    }
    double a, b;
    if (number_of(ev, e->a, &a) && number_of(ev, e->b, &b))
        aim(ev, e->a, b, 0, e->b, a);
}

/* Makes the comparison true, or false if !want. */
static void teach_comparison(arch_eval *ev, const arch_expr *e, bool want) {
    static const ggl_op opposite[][2] = {
        {GGL_OP_EQ, GGL_OP_NE}, {GGL_OP_LT, GGL_OP_GE}, {GGL_OP_GT, GGL_OP_LE}};
    ggl_op op = e->op;
    double b;
    for (int k = 0; !want && k < 6; k++)
        if (opposite[k / 2][k % 2] == e->op)
            op = opposite[k / 2][1 - k % 2];
    if (op == GGL_OP_EQ)
        teach_equal(ev, e);
    else if (op == GGL_OP_NE && number_of(ev, e->b, &b))
        aim(ev, e->a, b + 1, 0, NULL, 0);
    else if (op != GGL_OP_NE)
        teach_order(ev, e, op);
}

static bool holds(arch_eval *ev, const arch_expr *e) {
    const arch_value v = llm_arch_eval_expr(ev, e);
    return v.kind == VAL_BOOL && v.flag;
}

void llm_arch_teach(arch_eval *ev, const arch_expr *e, bool want) {
    arch_value now;
    const char *key = key_of(ev, e, &now);
    if (key && now.kind == VAL_BOOL) {
        ev->src->require_key(ev->src->ctx, key, &(llm_arch_item){.flag = want});
    } else if (e->kind == EX_NOT) {
        llm_arch_teach(ev, e->a, !want);
    } else if (e->kind == EX_AND && want) {
        llm_arch_teach(ev, e->a, true);
        llm_arch_teach(ev, e->b, true);
    } else if (e->kind == EX_AND || (e->kind == EX_OR && want)) {
        llm_arch_teach(ev, e->a, want);
    } else if (e->kind == EX_OR) { /* while the first holds, it hides the second */
        llm_arch_teach(ev, holds(ev, e->a) ? e->a : e->b, false);
    } else if (e->kind == EX_HAS && !want && (key = key_of(ev, e->a, &now)) != NULL) {
        if (now.kind != VAL_NONE)
            ev->src->require_key(ev->src->ctx, key, NULL);
    } else if (e->kind == EX_IN && want && e->b->kind == EX_LIST && e->b->n_arg > 0) {
        const arch_expr first = {
            .kind = EX_BINARY, .op = GGL_OP_EQ, .a = e->a, .b = e->b->arg[0].value};
        teach_equal(ev, &first);
    } else if (e->kind == EX_BINARY) {
        teach_comparison(ev, e, want);
    }
}
