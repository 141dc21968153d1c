#include "profile.h"

#include "ggl/alloc.h"

bool ggl_vk_profiles(const vk_backend *b) {
    return b->profile && b->device->clock_bits > 0;
}

ggl_status ggl_vk_profile_open(vk_backend *b, vk_profile *p, size_t n_steps, ggl_error *err) {
    if (n_steps < p->capacity)
        return GGL_OK;
    ggl_vk_profile_close(b, p);
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = (uint32_t)n_steps + 1};
    p->node = ggl_calloc(n_steps + 1, sizeof *p->node);
    p->n = ggl_calloc(n_steps + 1, sizeof *p->n);
    p->time = ggl_calloc(n_steps + 1, sizeof *p->time);
    VkResult r = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (p->node && p->n && p->time)
        r = b->f.CreateQueryPool(b->device->device, &info, NULL, &p->pool);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "a clock for steps");
    p->capacity = info.queryCount;
    return GGL_OK;
}

void ggl_vk_profile_close(vk_backend *b, vk_profile *p) {
    if (p->pool)
        b->f.DestroyQueryPool(b->device->device, p->pool, NULL);
    ggl_free(p->node);
    ggl_free(p->n);
    ggl_free(p->time);
    *p = (vk_profile){0};
}

static void stamp(vk_backend *b, vk_profile *p, VkCommandBuffer commands) {
    b->f.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->pool, p->count);
}

void ggl_vk_profile_begin(vk_backend *b, vk_profile *p, VkCommandBuffer commands) {
    p->count = 0;
    b->f.CmdResetQueryPool(commands, p->pool, 0, p->capacity);
    stamp(b, p, commands);
}

void ggl_vk_profile_step(vk_backend *b, vk_profile *p, VkCommandBuffer commands,
                         const ggl_tensor *node, int64_t n) {
    p->node[p->count] = node;
    p->n[p->count] = n;
    p->count++;
    stamp(b, p, commands);
}

/* Returns the ticks between two timestamps, which may have wrapped around. */
static uint64_t between(const vk_backend *b, uint64_t from, uint64_t to) {
    return (to - from) & (UINT64_MAX >> (64 - b->device->clock_bits));
}

ggl_status ggl_vk_profile_tell(vk_backend *b, const vk_profile *p, ggl_error *err) {
    const double period = (double)b->device->properties.limits.timestampPeriod;
    VkResult r = b->f.GetQueryPoolResults(b->device->device, p->pool, 0, p->count + 1,
                                          (p->count + 1) * sizeof *p->time, p->time,
                                          sizeof *p->time, VK_QUERY_RESULT_64_BIT);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "times of steps");
    for (uint32_t i = 0; i < p->count; i++)
        b->profile(b->profile_ctx, p->node[i], p->n[i], false,
                   (double)between(b, p->time[i], p->time[i + 1]) * period);
    return GGL_OK;
}
