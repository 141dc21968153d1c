/* Which operators and composites this backend has. A composite has the name, the sources and the
 * shapes that the prelude gives it; one of another form, or with sources that are not f32, runs as
 * its body says. */
#include <string.h>

#include "vulkan.h"

static const vk_op *const by_op[GGL_OP_COUNT] = {
#define OP(ID, op) [GGL_OP_##ID] = &op,
#define COMPOSITE(name, n_src, n_num, recurrent, fits, op)
#include "ops.def"
#undef OP
#undef COMPOSITE
};

static bool any_shape(const ggl_tensor *t) {
    (void)t;
    return true;
}

static bool has_shape(const ggl_tensor *t, int n_dims, int64_t n0, int64_t n1) {
    return t->n_dims == n_dims && t->ne[0] == n0 && (n_dims < 2 || t->ne[1] == n1);
}

const ggl_store *vk_state_of(const ggl_tensor *t) {
    const ggl_store *s = NULL;
    for (int i = 0; i < t->body->n_node; i++)
        if (t->body->node[i]->op == GGL_OP_STATE) {
            if (s)
                return NULL;
            s = t->body->node[i]->store[0];
        }
    return s;
}

static bool is_state(const ggl_store *s, int64_t n0, int64_t n1, int64_t n2) {
    return s && s->type == GGL_F32 && s->ne[0] == n0 && s->ne[1] == n1 && s->ne[2] == n2;
}

static bool is_recent(const ggl_tensor *t) {
    const int64_t n = t->src[0]->ne[0];
    return t->src[0]->n_dims == 1 && t->n_dims == 2 && t->ne[0] == n &&
           is_state(vk_state_of(t), n, t->ne[1] - 1, 1);
}

static bool is_delta(const ggl_tensor *t) {
    ggl_tensor *const *x = t->src;
    const int64_t dk = x[0]->ne[0], dv = x[2]->ne[0], h = x[0]->ne[1];
    return has_shape(x[0], 2, dk, h) && has_shape(x[1], 2, dk, h) && has_shape(x[2], 2, dv, h) &&
           has_shape(x[3], 1, h, 1) && has_shape(x[4], 1, h, 1) &&
           is_state(vk_state_of(t), dk, dv, h);
}

static bool is_scan(const ggl_tensor *t) {
    ggl_tensor *const *x = t->src;
    const int64_t d = x[0]->ne[0], h = x[0]->ne[1], n = x[3]->ne[0];
    return has_shape(x[0], 2, d, h) && has_shape(x[1], 1, h, 1) && has_shape(x[2], 1, h, 1) &&
           has_shape(x[3], 2, n, h) && has_shape(x[4], 2, n, h) &&
           is_state(vk_state_of(t), n, d, h);
}

static bool any_row(const ggl_tensor *t) {
    return t->src[0]->n_dims > 0;
}

static bool is_weighted(const ggl_tensor *t) {
    const ggl_tensor *y = t->src[0], *w = t->src[1];
    return y->n_dims == 2 && w->n_dims == 1 && w->ne[0] == y->ne[1];
}

static const struct {
    const char *name;
    int n_src, n_num;
    bool recurrent;
    bool (*fits)(const ggl_tensor *t);
    const vk_op *op;
} composite[] = {
#define OP(ID, op)
#define COMPOSITE(name, n_src, n_num, recurrent, fits, op)                                         \
    {#name, n_src, n_num, recurrent, fits, &op},
#include "ops.def"
#undef OP
#undef COMPOSITE
};

static const vk_op *composite_of(const ggl_tensor *t) {
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

const vk_op *vk_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? composite_of(node) : by_op[node->op];
}

bool vk_in_place(const ggl_tensor *node) {
    const vk_op *op = vk_op_of(node);
    return op && op->in_place;
}

const char *vk_refuses_all_but_f32(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]->type != GGL_F32)
            return "it takes f32 values only";
    return NULL;
}

const char *vk_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const vk_op *op = vk_op_of(node);
    if (!op)
        return "there is no kernel for it";
    return op->refuses ? op->refuses((const vk_backend *)b, node) : NULL;
}
