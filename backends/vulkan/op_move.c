/* Operators that move elements, and may convert their type. */
#include <string.h>

#include "shaders/kinds.h"
#include "vulkan.h"

enum { LOCAL = 128, PER_INVOCATION = 4 };

/* Returns how elements of type `from` are converted to `to`; -1: not supported. */
static int conversion(ggl_type from, ggl_type to) {
    if (from == to)
        return ggl_type_get(from)->size == 4 ? FROM_WORD : -1;
    if (to != GGL_F32)
        return -1;
    return from == GGL_I32    ? FROM_I32
           : from == GGL_F16  ? FROM_F16
           : from == GGL_BF16 ? FROM_BF16
                              : -1;
}

static ggl_status no_conversion(const ggl_operand *from, const ggl_operand *to, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED, "a move of %s to %s values",
                    ggl_type_get(from->type)->name, ggl_type_get(to->type)->name);
}

static const char *refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    return conversion(node->src[0]->type, node->type) >= 0 ? NULL
                                                           : "values of this type cannot be moved";
}

typedef struct move {
    const ggl_operand *x, *y;
    int64_t ne[GGL_MAX_DIMS];                                       /* extents */
    uint32_t first, y_stride[GGL_MAX_DIMS], x_stride[GGL_MAX_DIMS]; /* first: offset in y */
} move;

static ggl_status emit_move(vk_emit *e, const move *m, ggl_error *err) {
    const int from = conversion(m->x->type, m->y->type);
    const int64_t count = ggl_extents(m->ne, 0, GGL_MAX_DIMS, 1);
    if (from < 0)
        return no_conversion(m->x, m->y, err);
    vk_call c = {.shader = VK_SHADER_MOVE,
                 VK_SPEC(move, .local = LOCAL, .from = (uint32_t)from),
                 .groups = {ggl_vk_groups(count, LOCAL * PER_INVOCATION)}};
    vk_push_move *p = VK_PUSH(&c, move);
    p->count = (uint32_t)count;
    for (int d = 0; d < 3; d++)
        p->ne[d] = (uint32_t)m->ne[d];
    p->y_at = ggl_vk_bind(e, &c, m->y, true) + m->first;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        p->y_stride[d] = m->y_stride[d];
    p->x_at = ggl_vk_bind(e, &c, m->x, false);
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        p->x_stride[d] = m->x_stride[d];
    return ggl_vk_dispatch(e, &c, err);
}

/* Describes a move from x to all elements of y, repeating x along its dimensions of 1. */
static move to_all(const vk_emit *e, const ggl_operand *x) {
    move m = {.x = x, .y = &e->step->dst};
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        m.ne[d] = ggl_vk_extent(e, m.y, d);
        m.y_stride[d] = ggl_vk_stride(e, m.y, d);
        m.x_stride[d] = ggl_vk_stride(e, x, d);
    }
    return m;
}

/* Copies the elements in order to another shape; loops over x's shape, as y is dense. */
static ggl_status emit_copy(vk_emit *e, ggl_error *err) {
    move m = to_all(e, &e->step->src[0]);
    uint32_t next = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        if (d < GGL_BATCH_DIM || m.y->ne[d] != GGL_N)
            m.ne[d] = ggl_vk_extent(e, m.x, d);
        m.y_stride[d] = next;
        next *= (uint32_t)m.ne[d];
    }
    if (ggl_extents(m.ne, 0, GGL_MAX_DIMS, 1) != ggl_vk_count(e, m.y))
        return ggl_fail(err, GGL_UNSUPPORTED, "a copy of %lld elements to %lld",
                        (long long)ggl_vk_count(e, m.x), (long long)ggl_vk_count(e, m.y));
    return emit_move(e, &m, err);
}

static ggl_status emit_repeat(vk_emit *e, ggl_error *err) {
    const move m = to_all(e, &e->step->src[0]);
    return emit_move(e, &m, err);
}

static ggl_status emit_transpose(vk_emit *e, ggl_error *err) {
    const int a = (int)e->step->node->num[TRANSPOSE_A], b = (int)e->step->node->num[TRANSPOSE_B];
    move m = to_all(e, &e->step->src[0]);
    m.x_stride[a] = ggl_vk_stride(e, m.x, b);
    m.x_stride[b] = ggl_vk_stride(e, m.x, a);
    return emit_move(e, &m, err);
}

static ggl_status emit_concat(vk_emit *e, ggl_error *err) {
    const int dim = (int)e->step->node->num[CONCAT_DIM];
    ggl_status st = GGL_OK;
    for (uint32_t i = 0, first = 0; i < 2 && st == GGL_OK; i++) {
        move m = to_all(e, &e->step->src[i]);
        const size_t step = e->step->dst.nb[dim] / e->step->dst.nb[0];
        m.ne[dim] = ggl_vk_extent(e, m.x, dim);
        m.first = first;
        first += (uint32_t)m.ne[dim] * (uint32_t)step;
        st = emit_move(e, &m, err);
    }
    return st;
}

const vk_op ggl_vk_op_copy = {.emit = emit_copy, .refuses = refuses};
const vk_op ggl_vk_op_repeat = {.emit = emit_repeat, .refuses = refuses};
const vk_op ggl_vk_op_transpose = {.emit = emit_transpose, .refuses = refuses};
const vk_op ggl_vk_op_concat = {.emit = emit_concat, .refuses = refuses};
