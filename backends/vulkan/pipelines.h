/* Compute pipelines: one for each shader and its specialisation constants, made when a plan is
 * compiled and kept until the backend is closed. */
#ifndef VULKAN_PIPELINES_H
#define VULKAN_PIPELINES_H

#include "device.h"

ggl_status ggl_vk_pipelines_open(vk_backend *b, ggl_error *err);
/* Writes the cache, if it has become larger. */
void ggl_vk_pipelines_close(vk_backend *b);

/* The call's pipeline; made, unless it is there. */
ggl_status ggl_vk_pipeline_of(vk_backend *b, const vk_call *c, VkPipeline *out, ggl_error *err);
VkPipelineLayout ggl_vk_layout_of(const vk_backend *b, int n_bind);
VkDescriptorSetLayout ggl_vk_set_layout_of(const vk_backend *b, int n_bind);

#endif
