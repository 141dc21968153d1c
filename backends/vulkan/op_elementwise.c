/* Elementwise operators: an element of the result from the same element of each source. */
#include <string.h>

#include "shaders/kinds.h"
#include "vulkan.h"

enum { LOCAL = 128, PER_INVOCATION = 4, LOCAL_ROUND = 32 /* blocks of 32 numbers */ };

static const int kind_of_op[GGL_OP_COUNT] = {
    [GGL_OP_EXP] = EW_EXP, [GGL_OP_LOG] = EW_LOG,         [GGL_OP_SQRT] = EW_SQRT,
    [GGL_OP_ABS] = EW_ABS, [GGL_OP_FLOOR] = EW_FLOOR,     [GGL_OP_TANH] = EW_TANH,
    [GGL_OP_ERF] = EW_ERF, [GGL_OP_SIGMOID] = EW_SIGMOID, [GGL_OP_SIN] = EW_SIN,
    [GGL_OP_COS] = EW_COS, [GGL_OP_IOTA] = EW_IOTA,       [GGL_OP_ADD] = EW_ADD,
    [GGL_OP_SUB] = EW_SUB, [GGL_OP_MUL] = EW_MUL,         [GGL_OP_DIV] = EW_DIV,
    [GGL_OP_POW] = EW_POW, [GGL_OP_MOD] = EW_MOD,         [GGL_OP_EQ] = EW_EQ,
    [GGL_OP_NE] = EW_NE,   [GGL_OP_LT] = EW_LT,           [GGL_OP_LE] = EW_LE,
    [GGL_OP_GT] = EW_GT,   [GGL_OP_GE] = EW_GE,           [GGL_OP_MIN] = EW_MIN,
    [GGL_OP_MAX] = EW_MAX, [GGL_OP_WHERE] = EW_WHERE,
};

static const int kind_of_composite[GGL_COMPOSITE_COUNT] = {
    [GGL_COMPOSITE_RELU] = EW_RELU,
    [GGL_COMPOSITE_SILU] = EW_SILU,
    [GGL_COMPOSITE_GELU] = EW_GELU,
    [GGL_COMPOSITE_GELU_ERF] = EW_GELU_ERF,
    [GGL_COMPOSITE_GELU_QUICK] = EW_GELU_QUICK,
    [GGL_COMPOSITE_SOFTPLUS] = EW_SOFTPLUS,
};

uint32_t ggl_vk_kind_of(const ggl_tensor *node) {
    return (uint32_t)(node->op == GGL_OP_CALL ? kind_of_composite[ggl_composite_of(node)]
                                              : kind_of_op[node->op]);
}

bool ggl_vk_is_unary(const ggl_tensor *node) {
    const uint32_t kind =
        ggl_vk_kind_of(node); /* 0, EW_EXP, also for a node that is not elementwise */
    return kind == EW_EXP ? node->op == GGL_OP_EXP : kind <= EW_SOFTPLUS;
}

/* True if all sources are dense and have the result's shape. */
static bool is_flat(const vk_emit *e, const ggl_operand *dst, const ggl_operand *const *src,
                    int n_src) {
    for (int i = 0; i < n_src && src[i]; i++) {
        if (!ggl_vk_is_dense(e, src[i]))
            return false;
        for (int d = 0; d < GGL_MAX_DIMS; d++)
            if (ggl_vk_extent(e, src[i], d) != ggl_vk_extent(e, dst, d))
                return false;
    }
    return true;
}

/* Begins a dispatch with the result, its shape and the sources. bound: dst, or, if that has no
 * memory, another result, which is bound in its place. */
static vk_call begin(vk_emit *e, vk_shader shader, const ggl_operand *dst, const ggl_operand *bound,
                     const ggl_operand *const *src, int n_src) {
    static const ggl_operand absent = {.region = -1};
    const int64_t count = ggl_vk_count(e, dst);
    vk_call c = {.shader = shader,
                 VK_SPEC(where, .local = LOCAL, .kind = ggl_vk_kind_of(e->step->node),
                         .flat = is_flat(e, dst, src, n_src)),
                 .groups = {ggl_vk_groups(count, LOCAL * PER_INVOCATION)}};
    vk_push_where *p = VK_PUSH(&c, where); /* all the shaders' constants begin like these */
    p->count = (uint32_t)count;
    p->y_at = ggl_vk_bind(e, &c, bound, true);
    for (int d = 0; d < 3; d++)
        p->ne[d] = (uint32_t)dst->ne[d];
    for (int i = 0; i < n_src; i++) {
        const ggl_operand *x = src[i] ? src[i] : &absent;
        p->source[i].at = ggl_vk_bind(e, &c, x, false);
        ggl_vk_strides(e, x, p->source[i].stride);
    }
    return c;
}

/* Emits a step. An absent source is bound, too. */
static ggl_status emit(vk_emit *e, vk_shader shader, int n_src, ggl_error *err) {
    const ggl_operand *src[3] = {NULL};
    for (int i = 0; i < e->step->n_src; i++)
        src[i] = &e->step->src[i];
    const vk_call c = begin(e, shader, &e->step->dst, &e->step->dst, src, n_src);
    return ggl_vk_dispatch(e, &c, err);
}

/* Emits the chain f(a) * b, which may be rounded. */
static ggl_status emit_gated(vk_emit *e, ggl_error *err) {
    const ggl_step *mul = &e->step[1], *round = ggl_vk_form_link(e->step);
    const ggl_operand *src[2] = {&e->step->src[0], ggl_vk_other(mul)},
                      *blocks = round ? &round->dst : &mul->dst;
    const bool stores = mul->dst.region >= 0;
    vk_call c = begin(e, VK_SHADER_GATED, &mul->dst, stores ? &mul->dst : blocks, src, 2);
    c.spec.gated.round = round != NULL;
    c.spec.gated.store = stores;
    c.n_spec = VK_N_SPEC(gated);
    VK_PUSH(&c, gated)->blocks_at = ggl_vk_bind(e, &c, blocks, true);
    if (round)
        c.groups[0] = ggl_vk_groups(ggl_vk_count(e, &mul->dst), 32 * LOCAL_ROUND);
    return ggl_vk_dispatch(e, &c, err);
}

static int unary_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b;
    return ggl_vk_feeds(step, n, GGL_OP_MUL) ? ggl_vk_and_form(step, n, 2) : 1;
}

static ggl_status emit_unary(vk_emit *e, ggl_error *err) {
    if (e->step->n_links > 1)
        return emit_gated(e, err);
    return emit(e, VK_SHADER_UNARY, 1, err);
}

static ggl_status emit_binary(vk_emit *e, ggl_error *err) {
    if (e->step->n_links > 1)
        return ggl_vk_emit_add_norm(e, err);
    return emit(e, VK_SHADER_BINARY, 2, err);
}

static ggl_status emit_where(vk_emit *e, ggl_error *err) {
    return emit(e, VK_SHADER_WHERE, 3, err);
}

const vk_op ggl_vk_op_unary = {.emit = emit_unary,
                               .chain = unary_chain,
                               .refuses = ggl_vk_refuses_all_but_f32,
                               .in_place = true};
const vk_op ggl_vk_op_binary = {.emit = emit_binary,
                                .chain = ggl_vk_add_norm_chain,
                                .refuses = ggl_vk_refuses_all_but_f32,
                                .in_place = true};
const vk_op ggl_vk_op_where = {
    .emit = emit_where, .refuses = ggl_vk_refuses_all_but_f32, .in_place = true};
const vk_op ggl_vk_op_iota = {.emit = emit_unary};
