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

const char *vk_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const vk_op *op = vk_op_of(node);
    if (!op)
        return "there is no kernel for it";
    return op->refuses ? op->refuses((const vk_backend *)b, node) : NULL;
}
