/* The slots of a batch that is smaller than its recording. Dispatches of a recording compute all
 * tokens of its bucket. The tokens after the batch's end have whatever an earlier batch left in
 * the inputs: their results are not used, but they must not write to stores. So the first dispatch
 * of such a recording copies the slots to the arena, with -1 for tokens after the end, and the
 * other dispatches use this copy. Operators write nothing for slot -1. */
#ifndef VULKAN_SLOTS_H
#define VULKAN_SLOTS_H

#include "recording.h"

enum { VK_MAX_SLOTS = 4 };

typedef struct vk_slots {
    int n; /* slot inputs that stores of the segment use; -1: one of them cannot be copied */
    int64_t n_max;
    ggl_operand from[VK_MAX_SLOTS], to[VK_MAX_SLOTS];
} vk_slots;

/* Finds the slots that the segment's nodes use. The copies begin at *arena_size, which grows. */
ggl_status ggl_vk_slots_find(vk_slots *s, const ggl_segment *segment, size_t *arena_size,
                             ggl_error *err);
/* Lets operand o read the copy (or, if not `copied`, the input) if it is one of the slots. */
void ggl_vk_slots_use(const vk_slots *s, ggl_operand *o, bool copied);
/* Emits the copies for e->n tokens. */
ggl_status ggl_vk_slots_emit(const vk_slots *s, vk_emit *e, ggl_error *err);

#endif
