/* Plans: a program's steps with their operators, and recordings of them that are replayed. */
#ifndef VULKAN_PLAN_H
#define VULKAN_PLAN_H

#include "device.h"

ggl_status ggl_vk_plan_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                               ggl_error *err);
ggl_status ggl_vk_plan_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                           ggl_error *err);
void ggl_vk_plan_free(ggl_backend *b, ggl_plan *p);
void ggl_vk_plan_describe(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size);

#endif
