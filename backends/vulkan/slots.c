#include "slots.h"

#include "ggl/internal/alloc.h"

enum { LOCAL = 64 };

static bool same_place(const ggl_operand *a, const ggl_operand *b) {
    return a->type == b->type && a->region == b->region && a->offset == b->offset;
}

/* Returns the slot of a node that uses a store; region -1: the node uses none. */
static ggl_operand slot_of(const ggl_segment *s, const ggl_tensor *node) {
    const ggl_tensor *slot = node->op == GGL_OP_CACHE    ? node->src[CACHE_SLOT]
                             : node->op == GGL_OP_ATTEND ? node->src[ATTEND_SLOT]
                             : node->op == GGL_OP_STATE  ? node->src[0]
                                                         : NULL;
    if (node->op == GGL_OP_CALL && node->body)
        return ggl_step_slot(s, &(ggl_step){.node = node});
    if (!slot)
        return (ggl_operand){.region = -1};
    return (ggl_operand){.type = GGL_I32,
                         .region = s->loc[slot->id].region,
                         .offset = s->loc[slot->id].offset,
                         .ne = {1, 1, 1, ggl_is_batched(slot) ? GGL_N : 1},
                         .nb = {4, 4, 4, 4}};
}

/* True if the node, or a node of its body, uses a store. Attention does, too: it would else read rows
 * for tokens after the end of the batch, at positions that are those of an earlier batch. */
static bool uses_store(const ggl_tensor *node) {
    bool uses = node->op == GGL_OP_CACHE || ggl_cache_of(node) || node->op == GGL_OP_STATE;
    for (int i = 0; node->body && i < node->body->n_node && !uses; i++)
        uses = uses_store(node->body->node[i]);
    return uses;
}

static void add(vk_slots *s, const ggl_operand *slot) {
    for (int i = 0; i < s->n; i++)
        if (same_place(&s->from[i], slot))
            return;
    const bool fits = s->n < VK_MAX_SLOTS && slot->region >= 0 && slot->ne[GGL_BATCH_DIM] == GGL_N;
    if (fits)
        s->from[s->n++] = *slot;
    else
        s->n = -1;
}

ggl_status ggl_vk_slots_find(vk_slots *s, const ggl_segment *segment, size_t *arena_size,
                             ggl_error *err) {
    *s = (vk_slots){.n_max = segment->n_max};
    for (int i = 0; i < segment->n_node && s->n >= 0; i++)
        if (uses_store(segment->node[i])) {
            const ggl_operand slot = slot_of(segment, segment->node[i]);
            add(s, &slot);
        }
    for (int i = 0; i < s->n; i++) {
        s->to[i] = s->from[i];
        s->to[i].region = GGL_REGION_ARENA;
        if (!ggl_size_align(*arena_size, VK_BUFFER_ALIGN, &s->to[i].offset) ||
            !ggl_size_add(s->to[i].offset, (size_t)s->n_max * sizeof(int32_t), arena_size))
            return ggl_fail(err, GGL_LIMIT, "the values between nodes are too large");
    }
    return GGL_OK;
}

void ggl_vk_slots_use(const vk_slots *s, ggl_operand *o, bool copied) {
    for (int i = 0; i < s->n; i++)
        if (same_place(o, copied ? &s->from[i] : &s->to[i])) {
            const ggl_operand *place = copied ? &s->to[i] : &s->from[i];
            o->region = place->region;
            o->offset = place->offset;
            return;
        }
}

ggl_status ggl_vk_slots_emit(const vk_slots *s, vk_emit *e, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n && st == GGL_OK; i++) {
        vk_call c = {.shader = VK_SHADER_SLOTS, VK_SPEC(slots, LOCAL)};
        c.bind[c.n_bind++] = (vk_binding){.region = VK_BATCH_SIZE, .size = sizeof(uint32_t)};
        vk_push_slots *p = VK_PUSH(&c, slots);
        p->n = (uint32_t)e->n;
        p->from_at = ggl_vk_bind(e, &c, &s->from[i], false);
        p->to_at = ggl_vk_bind(e, &c, &s->to[i], true);
        c.groups[0] = ggl_vk_groups(e->n, LOCAL);
        st = ggl_vk_dispatch(e, &c, err);
    }
    return st;
}
