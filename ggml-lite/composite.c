/* Which composite of the prelude a call is: whoever has a kernel for one asks here. */
#include <string.h>

#include "ggl/program.h"

static bool has_shape(const ggl_tensor *t, int n_dims, int64_t n0, int64_t n1) {
    return t->n_dims == n_dims && t->ne[0] == n0 && (n_dims < 2 || t->ne[1] == n1);
}

const ggl_store *ggl_composite_state(const ggl_tensor *t) {
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
    const ggl_store *s = ggl_composite_state(t);
    int64_t n = t->src[0]->ne[0];
    return s && t->src[0]->n_dims == 1 && t->n_dims == 2 && t->ne[0] == n && s->ne[0] == n &&
           s->ne[1] == t->ne[1] - 1 && s->ne[2] == 1;
}

static bool is_delta(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    const ggl_store *s = ggl_composite_state(t);
    int64_t dk = x[0]->ne[0], dv = x[2]->ne[0], h = x[0]->ne[1];
    return s && has_shape(x[0], 2, dk, h) && has_shape(x[1], 2, dk, h) &&
           has_shape(x[2], 2, dv, h) && has_shape(x[3], 1, h, 1) && has_shape(x[4], 1, h, 1) &&
           s->ne[0] == dk && s->ne[1] == dv && s->ne[2] == h;
}

static bool is_scan(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    const ggl_store *s = ggl_composite_state(t);
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
} composite[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits)                                         \
    [GGL_COMPOSITE_##ID] = {name, n_src, n_num, recurrent, fits},
#include "ggl/composites.def"
#undef COMPOSITE
};

static bool has_form(const ggl_tensor *t, int k) {
    bool f32 = t->n_src == composite[k].n_src;
    for (int i = 0; i < t->n_src && f32; i++)
        f32 = t->src[i] && t->src[i]->type == GGL_F32;
    return f32 && t->n_num >= composite[k].n_num && t->body->recurrent == composite[k].recurrent &&
           composite[k].fits(t);
}

ggl_composite ggl_composite_of(const ggl_tensor *t) {
    for (int k = GGL_COMPOSITE_NONE + 1; t->call && k < GGL_COMPOSITE_COUNT; k++)
        if (strcmp(composite[k].name, t->call) == 0)
            return has_form(t, k) ? (ggl_composite)k : GGL_COMPOSITE_NONE;
    return GGL_COMPOSITE_NONE;
}
