#include "queue.h"

#include "ggl/internal/os_clock.h"
#include "pace.h"
#include "profile.h"

ggl_status ggl_vk_new_commands(vk_backend *b, VkCommandBuffer *out, ggl_error *err) {
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = b->device->commands,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkResult r = b->f.AllocateCommandBuffers(b->device->device, &info, out);
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "a command buffer");
}

enum {
    DEVICE_STAGES = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    DEVICE_WRITES = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    DEVICE_READS = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT
};

static void barrier(vk_backend *b, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used) {
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = used};
    b->f.CmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

ggl_status ggl_vk_begin_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkResult r = b->f.BeginCommandBuffer(commands, &info);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "recording");
    barrier(b, commands, DEVICE_STAGES | VK_PIPELINE_STAGE_HOST_BIT,
            DEVICE_WRITES | VK_ACCESS_HOST_WRITE_BIT, DEVICE_STAGES, DEVICE_READS | DEVICE_WRITES);
    return GGL_OK;
}

ggl_status ggl_vk_end_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err) {
    barrier(b, commands, DEVICE_STAGES, DEVICE_WRITES, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    VkResult r = b->f.EndCommandBuffer(commands);
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "recording");
}

ggl_status ggl_vk_end_part(vk_backend *b, VkCommandBuffer commands, ggl_error *err) {
    VkResult r = b->f.EndCommandBuffer(commands);
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "recording");
}

void ggl_vk_transfer_barrier(vk_backend *b, VkCommandBuffer commands) {
    barrier(b, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
}

ggl_status ggl_vk_submit(vk_backend *b, VkCommandBuffer before, const VkCommandBuffer *commands,
                         size_t n, uint64_t *number, ggl_error *err) {
    vk_device *d = b->device;
    const uint64_t next = d->submitted + 1;
    ggl_status st = next > VK_IN_FLIGHT ? ggl_vk_wait_for(b, next - VK_IN_FLIGHT, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    VkFence fence = d->fence[next % VK_IN_FLIGHT];
    const uint64_t begin = ggl_os_clock();
    VkResult r = b->f.ResetFences(d->device, 1, &fence);
    for (size_t i = 0; i < n && r == VK_SUCCESS; i++) {
        const bool two = i == 0 && before;
        const VkCommandBuffer run[2] = {two ? before : commands[i], commands[i]};
        const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                   .commandBufferCount = two ? 2 : 1,
                                   .pCommandBuffers = run};
        r = b->f.QueueSubmit(d->queue, 1, &info, i == n - 1 ? fence : 0);
    }
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, b->base.name);
    d->submission[next % VK_IN_FLIGHT] = (vk_submission){.begin = begin};
    b->n_submissions += n;
    *number = d->submitted = next;
    return GGL_OK;
}

ggl_status ggl_vk_break(vk_backend *b, const ggl_error *why, ggl_error *err) {
    ggl_error *broken = &b->device->broken;
    if (broken->status == GGL_OK)
        *broken = *why;
    if (err)
        *err = *broken;
    return broken->status;
}

ggl_status ggl_vk_wait_for(vk_backend *b, uint64_t number, ggl_error *err) {
    /* A device that does not respond in STEPS * STEP seconds is an error. */
    enum { STEP = 10, STEPS = 60 };
    vk_device *d = b->device;
    if (number <= d->done)
        return GGL_OK;
    if (d->broken.status != GGL_OK)
        return ggl_vk_break(b, &d->broken, err);
    VkResult r = VK_TIMEOUT;
    for (int i = 0; i < STEPS && r == VK_TIMEOUT; i++)
        r = b->f.WaitForFences(d->device, 1, &d->fence[number % VK_IN_FLIGHT], VK_TRUE,
                               STEP * UINT64_C(1000000000));
    if (r != VK_SUCCESS) {
        ggl_error why;
        why.status = ggl_vk_fail(&why, r, b->base.name);
        return ggl_vk_break(b, &why, err);
    }
    const uint64_t now = ggl_os_clock();
    ggl_status st = GGL_OK;
    ggl_vk_pace_ended(b, number, now);
    for (uint64_t i = d->done + 1; i <= number && st == GGL_OK; i++)
        st = ggl_vk_profile_tell(b, &d->submission[i % VK_IN_FLIGHT], now, err);
    d->done = number;
    return st;
}
