/* The tables of the operators and composites that this backend has. */
#include "cpu.h"

static const cpu_op *const by_op[GGL_OP_COUNT] = {
    [GGL_OP_ADD] = &ggl_cpu_op_binary,     [GGL_OP_SUB] = &ggl_cpu_op_binary,
    [GGL_OP_MUL] = &ggl_cpu_op_binary,     [GGL_OP_DIV] = &ggl_cpu_op_binary,
    [GGL_OP_POW] = &ggl_cpu_op_binary,     [GGL_OP_MOD] = &ggl_cpu_op_binary,
    [GGL_OP_EQ] = &ggl_cpu_op_binary,      [GGL_OP_NE] = &ggl_cpu_op_binary,
    [GGL_OP_LT] = &ggl_cpu_op_binary,      [GGL_OP_LE] = &ggl_cpu_op_binary,
    [GGL_OP_GT] = &ggl_cpu_op_binary,      [GGL_OP_GE] = &ggl_cpu_op_binary,
    [GGL_OP_MIN] = &ggl_cpu_op_binary,     [GGL_OP_MAX] = &ggl_cpu_op_binary,
    [GGL_OP_WHERE] = &ggl_cpu_op_where,    [GGL_OP_CAST] = &ggl_cpu_op_cast,
    [GGL_OP_EXP] = &ggl_cpu_op_unary,      [GGL_OP_LOG] = &ggl_cpu_op_unary,
    [GGL_OP_SQRT] = &ggl_cpu_op_unary,     [GGL_OP_FLOOR] = &ggl_cpu_op_unary,
    [GGL_OP_ABS] = &ggl_cpu_op_unary,      [GGL_OP_TANH] = &ggl_cpu_op_unary,
    [GGL_OP_ERF] = &ggl_cpu_op_unary,      [GGL_OP_SIGMOID] = &ggl_cpu_op_unary,
    [GGL_OP_SIN] = &ggl_cpu_op_unary,      [GGL_OP_COS] = &ggl_cpu_op_unary,
    [GGL_OP_SUM] = &ggl_cpu_op_sum,        [GGL_OP_AMAX] = &ggl_cpu_op_amax,
    [GGL_OP_RANK] = &ggl_cpu_op_rank,      [GGL_OP_TOPK] = &ggl_cpu_op_topk,
    [GGL_OP_PICK] = &ggl_cpu_op_pick,      [GGL_OP_RESHAPE] = &ggl_cpu_op_copy,
    [GGL_OP_SPLIT] = &ggl_cpu_op_split,    [GGL_OP_CONCAT] = &ggl_cpu_op_concat,
    [GGL_OP_REPEAT] = &ggl_cpu_op_repeat,  [GGL_OP_TRANSPOSE] = &ggl_cpu_op_transpose,
    [GGL_OP_LINEAR] = &ggl_cpu_op_linear,  [GGL_OP_ROPE_HALF] = &ggl_cpu_op_rope,
    [GGL_OP_ROPE_PAIR] = &ggl_cpu_op_rope, [GGL_OP_CACHE] = &ggl_cpu_op_cache,
    [GGL_OP_ATTEND] = &ggl_cpu_op_attend,  [GGL_OP_STATE] = &ggl_cpu_op_state,
    [GGL_OP_KEEP] = &ggl_cpu_op_keep,      [GGL_OP_IOTA] = &ggl_cpu_op_iota,
};

static const cpu_op *const by_composite[GGL_COMPOSITE_COUNT] = {
    [GGL_COMPOSITE_RELU] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_SILU] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_GELU] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_GELU_ERF] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_GELU_QUICK] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_SOFTPLUS] = &ggl_cpu_op_unary,
    [GGL_COMPOSITE_SOFTMAX] = &ggl_cpu_op_softmax,
    [GGL_COMPOSITE_RMS] = &ggl_cpu_op_rms,
    [GGL_COMPOSITE_CENTER] = &ggl_cpu_op_center,
    [GGL_COMPOSITE_L2] = &ggl_cpu_op_l2,
    [GGL_COMPOSITE_NORMALISED] = &ggl_cpu_op_normalised,
    [GGL_COMPOSITE_WEIGHTED] = &ggl_cpu_op_weighted,
    [GGL_COMPOSITE_RECENT] = &ggl_cpu_op_recent,
    [GGL_COMPOSITE_SHORT_CONV] = &ggl_cpu_op_conv,
    [GGL_COMPOSITE_GATED_DELTA_RULE] = &ggl_cpu_op_recur,
    [GGL_COMPOSITE_SSM_SCAN] = &ggl_cpu_op_recur,
    [GGL_COMPOSITE_GATED_LINEAR_ATTENTION] = &ggl_cpu_op_recur,
    [GGL_COMPOSITE_WKV6] = &ggl_cpu_op_recur,
    [GGL_COMPOSITE_WKV7] = &ggl_cpu_op_recur,
};

const cpu_op *ggl_cpu_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? by_composite[ggl_composite_of(node)] : by_op[node->op];
}

bool ggl_cpu_in_place(const ggl_tensor *node) {
    const cpu_op *op = ggl_cpu_op_of(node);
    return op && op->in_place;
}

const char *ggl_cpu_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const cpu_backend *c = (const cpu_backend *)b;
    if (node->op == GGL_OP_LINEAR)
        return c->k.product[node->src[1]->type].rows ? NULL
                                                     : "no product with weights of this type";
    return node->op <= GGL_OP_PARAM || ggl_cpu_op_of(node) ? NULL : "there is no kernel for it";
}
