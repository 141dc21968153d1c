/* Norms of rows (op_rows.c), for the operators that compute one together with something else. */
#ifndef VULKAN_ROWS_H
#define VULKAN_ROWS_H

#include "vulkan.h"

/* The links of a chain: the sum of x and an addend, its norm, the norm's weight, its rounding. All
 * but the norm may be absent. */
typedef struct vk_norm {
    const ggl_step *add, *norm, *mul, *round;
} vk_norm;

vk_norm ggl_vk_norm_of(const ggl_step *step, int n_links);
/* Returns how many of n steps belong to the norm that begins with the first; 0 if that is no
 * norm. */
int ggl_vk_norm_links(const ggl_step *step, int n);
/* Returns the kind of the norm (shaders/kinds.h). */
uint32_t ggl_vk_norm_kind(const vk_norm *l);
/* Returns the number that a norm adds, or 0. */
float ggl_vk_norm_eps(const vk_norm *l);
/* Returns the result that is not rounded; region -1: only the rounded one is stored. */
const ggl_operand *ggl_vk_normed(const vk_norm *l);
/* Returns `result`, or, if it is absent, another operand that the chain stores: the validation
 * layer assumes that a shader writes every buffer that it may write. */
const ggl_operand *ggl_vk_stored(const vk_norm *l, const ggl_operand *result);
/* Returns the size of a workgroup that computes a row of n elements: at most 256, which group.glsl has room for. */
uint32_t ggl_vk_row_local(const vk_backend *b, int64_t n);

#endif
