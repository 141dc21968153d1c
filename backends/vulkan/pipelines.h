/* Compute pipelines: one per shader and set of specialization constants, created when a plan is
 * compiled and kept until the backend is closed. */
#ifndef VULKAN_PIPELINES_H
#define VULKAN_PIPELINES_H

#include "device.h"

ggl_status ggl_vk_pipelines_open(vk_backend *b, ggl_error *err);
/* Writes the pipeline cache to its file, if it has grown. */
void ggl_vk_pipelines_close(vk_backend *b);

/* Notes the pipeline of a call as one to make. */
ggl_status ggl_vk_pipeline_note(vk_backend *b, const vk_call *c, ggl_error *err);
/* Makes all that were noted, on several threads, as a driver may take a second for one; or forgets them. */
ggl_status ggl_vk_pipelines_make(vk_backend *b, ggl_error *err);
void ggl_vk_pipelines_forget(vk_backend *b);
/* Returns the pipeline of a call, which is created if necessary. No other one is noted. */
ggl_status ggl_vk_pipeline_of(vk_backend *b, const vk_call *c, VkPipeline *out, ggl_error *err);
VkPipelineLayout ggl_vk_layout_of(const vk_backend *b, int n_bind);
VkDescriptorSetLayout ggl_vk_set_layout_of(const vk_backend *b, int n_bind);

#endif
