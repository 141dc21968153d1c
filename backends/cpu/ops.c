/* Which operators and composites this backend has. */
#include "cpu.h"

static const cpu_op *const by_op[GGL_OP_COUNT] = {
    [GGL_OP_ADD] = &cpu_op_binary,     [GGL_OP_SUB] = &cpu_op_binary,
    [GGL_OP_MUL] = &cpu_op_binary,     [GGL_OP_DIV] = &cpu_op_binary,
    [GGL_OP_POW] = &cpu_op_binary,     [GGL_OP_MOD] = &cpu_op_binary,
    [GGL_OP_EQ] = &cpu_op_binary,      [GGL_OP_NE] = &cpu_op_binary,
    [GGL_OP_LT] = &cpu_op_binary,      [GGL_OP_LE] = &cpu_op_binary,
    [GGL_OP_GT] = &cpu_op_binary,      [GGL_OP_GE] = &cpu_op_binary,
    [GGL_OP_MIN] = &cpu_op_binary,     [GGL_OP_MAX] = &cpu_op_binary,
    [GGL_OP_WHERE] = &cpu_op_where,    [GGL_OP_CAST] = &cpu_op_cast,
    [GGL_OP_EXP] = &cpu_op_unary,      [GGL_OP_LOG] = &cpu_op_unary,
    [GGL_OP_SQRT] = &cpu_op_unary,     [GGL_OP_FLOOR] = &cpu_op_unary,
    [GGL_OP_ABS] = &cpu_op_unary,      [GGL_OP_TANH] = &cpu_op_unary,
    [GGL_OP_ERF] = &cpu_op_unary,      [GGL_OP_SIGMOID] = &cpu_op_unary,
    [GGL_OP_SIN] = &cpu_op_unary,      [GGL_OP_COS] = &cpu_op_unary,
    [GGL_OP_SUM] = &cpu_op_sum,        [GGL_OP_AMAX] = &cpu_op_amax,
    [GGL_OP_RANK] = &cpu_op_rank,      [GGL_OP_TOPK] = &cpu_op_topk,
    [GGL_OP_PICK] = &cpu_op_pick,      [GGL_OP_RESHAPE] = &cpu_op_copy,
    [GGL_OP_SPLIT] = &cpu_op_split,    [GGL_OP_CONCAT] = &cpu_op_concat,
    [GGL_OP_REPEAT] = &cpu_op_repeat,  [GGL_OP_TRANSPOSE] = &cpu_op_transpose,
    [GGL_OP_LINEAR] = &cpu_op_linear,  [GGL_OP_ROPE_HALF] = &cpu_op_rope,
    [GGL_OP_ROPE_PAIR] = &cpu_op_rope, [GGL_OP_CACHE] = &cpu_op_cache,
    [GGL_OP_ATTEND] = &cpu_op_attend,  [GGL_OP_STATE] = &cpu_op_state,
    [GGL_OP_KEEP] = &cpu_op_keep,      [GGL_OP_IOTA] = &cpu_op_iota,
};

static const cpu_op *const by_composite[GGL_COMPOSITE_COUNT] = {
    [GGL_COMPOSITE_RELU] = &cpu_op_unary,
    [GGL_COMPOSITE_SILU] = &cpu_op_unary,
    [GGL_COMPOSITE_GELU] = &cpu_op_unary,
    [GGL_COMPOSITE_GELU_ERF] = &cpu_op_unary,
    [GGL_COMPOSITE_GELU_QUICK] = &cpu_op_unary,
    [GGL_COMPOSITE_SOFTPLUS] = &cpu_op_unary,
    [GGL_COMPOSITE_SOFTMAX] = &cpu_op_softmax,
    [GGL_COMPOSITE_RMS] = &cpu_op_rms,
    [GGL_COMPOSITE_CENTER] = &cpu_op_center,
    [GGL_COMPOSITE_L2] = &cpu_op_l2,
    [GGL_COMPOSITE_NORMALISED] = &cpu_op_normalised,
    [GGL_COMPOSITE_WEIGHTED] = &cpu_op_weighted,
    [GGL_COMPOSITE_RECENT] = &cpu_op_recent,
    [GGL_COMPOSITE_SHORT_CONV] = &cpu_op_conv,
    [GGL_COMPOSITE_GATED_DELTA_RULE] = &cpu_op_recur,
    [GGL_COMPOSITE_SSM_SCAN] = &cpu_op_recur,
    [GGL_COMPOSITE_GATED_LINEAR_ATTENTION] = &cpu_op_recur,
    [GGL_COMPOSITE_WKV6] = &cpu_op_recur,
    [GGL_COMPOSITE_WKV7] = &cpu_op_recur,
};

const cpu_op *cpu_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? by_composite[ggl_composite_of(node)] : by_op[node->op];
}

bool cpu_in_place(const ggl_tensor *node) {
    const cpu_op *op = cpu_op_of(node);
    return op && op->in_place;
}

const char *cpu_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const cpu_backend *c = (const cpu_backend *)b;
    if (node->op == GGL_OP_LINEAR)
        return c->k.product[node->src[1]->type].rows ? NULL
                                                     : "no product with weights of this type";
    return node->op <= GGL_OP_PARAM || cpu_op_of(node) ? NULL : "there is no kernel for it";
}
