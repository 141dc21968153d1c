/* Elementwise operators, with broadcasting. */
#include <math.h>

#include "ggl/internal/math.h"
#include "reference.h"

static double binary(ggl_op op, double a, double b) {
    switch (op) {
    case GGL_OP_ADD:
        return a + b;
    case GGL_OP_SUB:
        return a - b;
    case GGL_OP_MUL:
        return a * b;
    case GGL_OP_DIV:
        return a / b;
    case GGL_OP_POW:
        return ggl_pow(a, b);
    case GGL_OP_MOD:
        return a - b * floor(a / b);
    case GGL_OP_EQ:
        return a == b;
    case GGL_OP_NE:
        return a != b;
    case GGL_OP_LT:
        return a < b;
    case GGL_OP_LE:
        return a <= b;
    case GGL_OP_GT:
        return a > b;
    case GGL_OP_GE:
        return a >= b;
    case GGL_OP_MIN:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case GGL_OP_MAX:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default:
        return NAN;
    }
}

static double unary(ggl_op op, double x) {
    switch (op) {
    case GGL_OP_EXP:
        return ggl_exp(x);
    case GGL_OP_LOG:
        return ggl_log(x);
    case GGL_OP_SQRT:
        return sqrt(x);
    case GGL_OP_FLOOR:
        return floor(x);
    case GGL_OP_ABS:
        return fabs(x);
    case GGL_OP_TANH:
        return ggl_tanh(x);
    case GGL_OP_ERF:
        return ggl_erf(x);
    case GGL_OP_SIGMOID:
        return ggl_sigmoid(x);
    case GGL_OP_SIN:
        return ggl_sin(x);
    case GGL_OP_COS:
        return ggl_cos(x);
    default:
        return x; /* CAST */
    }
}

void ggl_ref_binary(const step_args *a) {
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l,
                binary(a->node->op, ggl_ref_get(&a->src[0], i, j, k, l),
                       ggl_ref_get(&a->src[1], i, j, k, l)));
}

void ggl_ref_unary(const step_args *a) {
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l, unary(a->node->op, ggl_ref_get(&a->src[0], i, j, k, l)));
}

void ggl_ref_where(const step_args *a) {
    FOR_EACH(a->dst) {
        bool c = ggl_ref_get(&a->src[0], i, j, k, l) != 0;
        ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(&a->src[c ? 1 : 2], i, j, k, l));
    }
}
