/* Operators on states. state and keep run in loops. The named recurrences process all tokens of
 * the batch, in order, in one dispatch. */
#include <math.h>

#include "vulkan.h"

enum { LOCAL = 64 };

/* Sets a store's position in elements: start of slot 0, stride between slots, number of slots. */
#define PLACE_STORE(p, e, s, at)                                                                   \
    ((p)->store_at = (at) / 4, (p)->slot_size = (uint32_t)((s)->slot_size / 4),                    \
     (p)->n_slots = (uint32_t)(e)->n_slots)

/* --- in loops --------------------------------------------------------------------------------- */

/* Copies x to (keep) or from the store, for the slot that an operand gives. */
static ggl_status move(vk_emit *e, const ggl_store *s, const ggl_operand *slot,
                       const ggl_operand *x, bool keep, ggl_error *err) {
    vk_call c = {.shader = keep ? VK_SHADER_KEEP : VK_SHADER_STATE, VK_SPEC(state, LOCAL)};
    const uint32_t store_at = ggl_vk_bind_store(e, &c, s, keep),
                   slot_at = ggl_vk_bind(e, &c, slot, false), x_at = ggl_vk_bind(e, &c, x, !keep);
    vk_push_state *p = VK_PUSH(&c, state);
    p->x_at = x_at;
    for (int d = 0; d < 3; d++) {
        p->n[d] = (uint32_t)s->ne[d];
        p->x_step[d] = ggl_vk_stride(e, x, d);
    }
    p->slot_at = slot_at;
    PLACE_STORE(p, e, s, store_at);
    c.groups[0] = ggl_vk_groups(ggl_extents(s->ne, 0, 3, 1), LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status state_emit(vk_emit *e, ggl_error *err) {
    return move(e, e->step->node->store[0], &e->step->src[0], &e->step->dst, false, err);
}

static ggl_status keep_emit(vk_emit *e, ggl_error *err) {
    return move(e, e->step->node->src[KEEP_STATE]->store[0], &e->step->src[KEEP_SLOT],
                &e->step->src[KEEP_X], true, err);
}

static const char *keep_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    return node->src[KEEP_X]->type != GGL_F32 ? "a state needs f32 values" : NULL;
}

const vk_op ggl_vk_op_state = {.emit = state_emit};
const vk_op ggl_vk_op_keep = {.emit = keep_emit, .refuses = keep_refuses};

/* --- named recurrences ------------------------------------------------------------------------ */

/* recent(x [n], k) -> [n, k] */
static ggl_status recent_emit(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0], *y = &e->step->dst;
    const ggl_store *s = ggl_composite_state(e->step->node);
    vk_call c = {.shader = VK_SHADER_RECENT, VK_SPEC(recent, LOCAL)};
    const uint32_t store_at = ggl_vk_bind_store(e, &c, s, true),
                   slot_at = ggl_vk_bind(e, &c, &e->slot, false),
                   x_at = ggl_vk_bind(e, &c, x, false), y_at = ggl_vk_bind(e, &c, y, true);
    vk_push_recent *p = VK_PUSH(&c, recent);
    p->n = (uint32_t)y->ne[0];
    p->k = (uint32_t)y->ne[1];
    p->n_batch = (uint32_t)ggl_vk_extent(e, y, GGL_BATCH_DIM);
    p->x_at = x_at;
    p->x_step = ggl_vk_stride(e, x, GGL_BATCH_DIM);
    p->y_at = y_at;
    p->y_step[0] = ggl_vk_stride(e, y, 1);
    p->y_step[1] = ggl_vk_stride(e, y, GGL_BATCH_DIM);
    p->slot_at = slot_at;
    p->slot_step = ggl_vk_stride(e, &e->slot, GGL_BATCH_DIM);
    PLACE_STORE(p, e, s, store_at);
    c.groups[0] = ggl_vk_groups(y->ne[0], LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

/* Emits gated_delta_rule or ssm_scan. order[k] is the source for operand k of
 * shaders/recur.comp, where row operands come before numbers. */
static ggl_status emit_recur(vk_emit *e, bool scan, const int order[5], float divisor,
                             ggl_error *err) {
    const ggl_operand *y = &e->step->dst;
    const ggl_store *s = ggl_composite_state(e->step->node);
    const ggl_tensor *const *src = (const ggl_tensor *const *)e->step->node->src;
    const ggl_tensor *decays = src[order[scan ? 4 : 3]], *shared = src[order[0]];
    const bool by_element = decays->n_dims == 2 && decays->ne[0] == s->ne[0];
    vk_call c = {.shader = VK_SHADER_RECUR,
                 VK_SPEC(recur, .local = LOCAL, .scan = scan, .by_element = by_element,
                         .group = (uint32_t)(s->ne[2] / shared->ne[1]))};
    const uint32_t store_at = ggl_vk_bind_store(e, &c, s, true),
                   slot_at = ggl_vk_bind(e, &c, &e->slot, false);
    vk_push_recur *p = VK_PUSH(&c, recur);
    uint32_t *const at[] = {p->into_at, p->out_at, p->to_at, p->first_at, p->second_at, p->y_at};
    p->n = (uint32_t)s->ne[0];
    p->n_rows = (uint32_t)s->ne[1];
    p->n_heads = (uint32_t)s->ne[2];
    p->n_batch = (uint32_t)ggl_vk_extent(e, y, GGL_BATCH_DIM);
    for (int k = 0; k < 6; k++) {
        const ggl_operand *o = k < 5 ? &e->step->src[order[k]] : y;
        const bool number = k < 5 && o->ne[1] == 1 && (k == 3 || k == 4); /* one per head */
        at[k][0] = ggl_vk_bind(e, &c, o, k == 5);
        at[k][1] = ggl_vk_stride(e, o, number ? 0 : 1);
        at[k][2] = ggl_vk_stride(e, o, GGL_BATCH_DIM);
    }
    p->slot_at = slot_at;
    p->slot_step = ggl_vk_stride(e, &e->slot, GGL_BATCH_DIM);
    PLACE_STORE(p, e, s, store_at);
    p->divisor = divisor;
    c.groups[0] = ggl_vk_groups(ggl_extents(s->ne, 1, 3, 1), LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

/* gated_delta_rule(q, k, v, g, beta) */
static ggl_status delta_emit(vk_emit *e, ggl_error *err) {
    static const int order[] = {1, 0, 2, 3, 4};
    return emit_recur(e, false, order, (float)sqrt((double)e->step->src[0].ne[0]), err);
}

/* ssm_scan(x, dt, a, b, c) */
static ggl_status scan_emit(vk_emit *e, ggl_error *err) {
    static const int order[] = {3, 4, 0, 1, 2};
    return emit_recur(e, true, order, 1, err);
}

const vk_op ggl_vk_op_recent = {.emit = recent_emit};
const vk_op ggl_vk_op_delta = {.emit = delta_emit};
const vk_op ggl_vk_op_scan = {.emit = scan_emit};
