/* Which operators and composites this backend has. A composite has the name, the sources and the
 * shapes that the prelude gives it; one of another form, or with sources that are not f32, runs as
 * its body says. */
#include <string.h>

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

/* --- composites ---------------------------------------------------------------------------- */

static bool has_shape(const ggl_tensor *t, int n_dims, int64_t n0, int64_t n1) {
    return t->n_dims == n_dims && t->ne[0] == n0 && (n_dims < 2 || t->ne[1] == n1);
}

static const ggl_store *state_of(const ggl_tensor *t) {
    const ggl_store *s = NULL;
    for (int i = 0; i < t->body->n_node; i++)
        if (t->body->node[i]->op == GGL_OP_STATE) {
            if (s)
                return NULL; /* two states: not what we know */
            s = t->body->node[i]->store[0];
        }
    return s;
}

static bool any_row(const ggl_tensor *t) {
    return t->src[0]->n_dims > 0;
}

static bool any_shape(const ggl_tensor *t) {
    (void)t;
    return true;
}

static bool is_weighted(const ggl_tensor *t) {
    const ggl_tensor *y = t->src[0], *w = t->src[1];
    return y->n_dims == 2 && has_shape(w, 1, y->ne[1], 1);
}

static bool is_recent(const ggl_tensor *t) {
    const ggl_store *s = state_of(t);
    int64_t n = t->src[0]->ne[0];
    return s && t->src[0]->n_dims == 1 && t->n_dims == 2 && t->ne[0] == n && s->ne[0] == n &&
           s->ne[1] == t->ne[1] - 1 && s->ne[2] == 1;
}

static bool is_delta(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    const ggl_store *s = state_of(t);
    int64_t dk = x[0]->ne[0], dv = x[2]->ne[0], h = x[0]->ne[1];
    return s && has_shape(x[0], 2, dk, h) && has_shape(x[1], 2, dk, h) &&
           has_shape(x[2], 2, dv, h) && has_shape(x[3], 1, h, 1) && has_shape(x[4], 1, h, 1) &&
           s->ne[0] == dk && s->ne[1] == dv && s->ne[2] == h;
}

static bool is_scan(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    const ggl_store *s = state_of(t);
    int64_t d = x[0]->ne[0], h = x[0]->ne[1], n = x[3]->ne[0];
    return s && has_shape(x[0], 2, d, h) && has_shape(x[1], 1, h, 1) && has_shape(x[2], 1, h, 1) &&
           has_shape(x[3], 2, n, h) && has_shape(x[4], 2, n, h) && s->ne[0] == n && s->ne[1] == d &&
           s->ne[2] == h;
}

static const struct {
    const char *name;
    int n_src, n_num;
    bool recurrent;
    bool (*fits)(const ggl_tensor *t);
    const cpu_op *op;
} composite[] = {
    {"relu", 1, 0, false, any_shape, &cpu_op_unary},
    {"silu", 1, 0, false, any_shape, &cpu_op_unary},
    {"gelu", 1, 0, false, any_shape, &cpu_op_unary},
    {"gelu_erf", 1, 0, false, any_shape, &cpu_op_unary},
    {"gelu_quick", 1, 0, false, any_shape, &cpu_op_unary},
    {"softplus", 1, 0, false, any_shape, &cpu_op_unary},
    {"softmax", 1, 0, false, any_row, &cpu_op_softmax},
    {"rms", 1, 1, false, any_row, &cpu_op_rms},
    {"center", 1, 0, false, any_row, &cpu_op_center},
    {"l2", 1, 1, false, any_row, &cpu_op_l2},
    {"normalised", 1, 0, false, any_row, &cpu_op_normalised},
    {"weighted", 2, 0, false, is_weighted, &cpu_op_weighted},
    {"recent", 1, 0, true, is_recent, &cpu_op_recent},
    {"gated_delta_rule", 5, 0, true, is_delta, &cpu_op_delta},
    {"ssm_scan", 5, 0, true, is_scan, &cpu_op_scan},
};

static const cpu_op *composite_of(const ggl_tensor *t) {
    for (size_t i = 0; t->call && i < sizeof composite / sizeof *composite; i++) {
        if (strcmp(composite[i].name, t->call) != 0)
            continue;
        if (t->n_src != composite[i].n_src || t->n_num < composite[i].n_num ||
            t->body->recurrent != composite[i].recurrent)
            return NULL;
        for (int k = 0; k < t->n_src; k++)
            if (!t->src[k] || t->src[k]->type != GGL_F32)
                return NULL;
        return composite[i].fits(t) ? composite[i].op : NULL;
    }
    return NULL;
}

const cpu_op *cpu_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? composite_of(node) : by_op[node->op];
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
