/* Shared by op_linear.c and linear_group.c. */
#ifndef VULKAN_LINEAR_H
#define VULKAN_LINEAR_H

#include "vulkan.h"

enum { VK_LINEAR_MEMBERS = 3 /* most products of a dispatch (shaders/linear.glsl) */ };

/* vk_op.joins of products. */
bool ggl_vk_linear_joins(const vk_backend *b, const ggl_step *const *member, int n,
                         const ggl_step *next);

#endif
