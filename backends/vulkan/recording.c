#include "recording.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "pipelines.h"

enum { VK_POOL_SETS = 256 };

ggl_status ggl_vk_recording_open(vk_recording *r, int n_regions, ggl_error *err) {
    if (!r->id)
        r->id = ggl_calloc((size_t)n_regions, sizeof *r->id);
    return r->id ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a recording");
}

void ggl_vk_recording_close(vk_backend *b, vk_recording *r) {
    VkDevice d = b->device->device;
    for (size_t i = 0; i < r->n_parts_made; i++)
        b->f.FreeCommandBuffers(d, b->device->commands, 1, &r->part[i]);
    ggl_free(r->part);
    for (size_t i = 0; i < r->n_pool; i++)
        b->f.DestroyDescriptorPool(d, r->pool[i], NULL);
    ggl_vk_profile_close(b, &r->profile);
    ggl_free(r->pool);
    ggl_free(r->id);
    *r = (vk_recording){0};
}

/* Begins the next command buffer, which is made if there is none yet. */
static ggl_status begin_part(vk_backend *b, vk_recording *r, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (r->n_part == r->n_parts_made) {
        if (!ggl_grow(&r->part, &r->cap_part, r->n_part + 1, sizeof *r->part))
            return ggl_fail(err, GGL_NOMEM, "out of memory for a recording");
        st = ggl_vk_new_commands(b, &r->part[r->n_part], err);
        if (st != GGL_OK)
            return st;
        r->n_parts_made++;
    }
    r->commands = r->part[r->n_part++];
    r->part_cost = (vk_cost){0};
    r->touched.n = 0;
    r->bound = 0;
    return ggl_vk_begin_commands(b, r->commands, err);
}

ggl_status ggl_vk_recording_begin(vk_backend *b, vk_recording *r, ggl_error *err) {
    for (size_t i = 0; i < r->n_pool; i++)
        b->f.ResetDescriptorPool(b->device->device, r->pool[i], 0);
    r->pool_at = 0;
    r->n_part = 0;
    r->cost = (vk_cost){0};
    r->limit = ggl_vk_pace_limit(b);
    return begin_part(b, r, err);
}

ggl_status ggl_vk_recording_end(vk_backend *b, vk_recording *r, ggl_error *err) {
    return ggl_vk_end_commands(b, r->commands, err);
}

ggl_status ggl_vk_recording_charge(vk_backend *b, vk_recording *r, vk_cost cost, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (r->part_cost.most > 0 && r->part_cost.most + cost.most > r->limit) {
        st = ggl_vk_end_part(b, r->commands, err);
        if (st == GGL_OK)
            st = begin_part(b, r, err);
    }
    r->part_cost.most += cost.most;
    r->cost.most += cost.most;
    r->cost.least += cost.least;
    return st;
}

/* --- barriers --------------------------------------------------------------------------------- */

/* True if a call must wait for calls since the last barrier. */
static bool conflicts(const vk_touches *touched, const vk_binding *b) {
    for (int i = 0; i < touched->n; i++) {
        const vk_touched *t = &touched->at[i];
        if (t->region == b->region && (t->write || b->write) && t->begin < b->offset + b->size &&
            b->offset < t->end)
            return true;
    }
    return false;
}

/* True if a binding can conflict with another one. Weights and constants cannot, as they are only
 * read. */
static bool counts(const vk_binding *b) {
    return b->region == VK_COUNTERS ||
           (b->region >= 0 && (b->region < GGL_REGION_REPACKED || b->kept || b->write));
}

bool ggl_vk_needs_barrier(vk_touches *t, const vk_call *c) {
    bool wait = t->n + c->n_bind > VK_MAX_TOUCHED;
    for (int i = 0; i < c->n_bind && !wait; i++)
        wait = counts(&c->bind[i]) && conflicts(t, &c->bind[i]);
    if (wait)
        t->n = 0;
    for (int i = 0; i < c->n_bind; i++) {
        const vk_binding *x = &c->bind[i];
        if (counts(x))
            t->at[t->n++] = (vk_touched){x->region, x->offset, x->offset + x->size, x->write};
    }
    return wait;
}

/* Records a barrier if the call conflicts with earlier ones. */
static void wait_for_writes(vk_backend *b, vk_recording *r, const vk_call *c) {
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                    .dstAccessMask =
                                        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    if (ggl_vk_needs_barrier(&r->touched, c))
        b->f.CmdPipelineBarrier(r->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, NULL, 0,
                                NULL);
}

/* --- descriptors ------------------------------------------------------------------------------ */

static VkResult create_pool(vk_backend *b, VkDescriptorPool *out) {
    const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .descriptorCount = VK_POOL_SETS * VK_MAX_BIND};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = VK_POOL_SETS,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    return b->f.CreateDescriptorPool(b->device->device, &info, NULL, out);
}

/* Allocates a descriptor set. Pools are added when needed, and kept. */
static VkResult next_set(vk_backend *b, vk_recording *r, int n_bind, VkDescriptorSet *out) {
    const size_t pool = r->pool_at / VK_POOL_SETS;
    const VkDescriptorSetLayout layout = ggl_vk_set_layout_of(b, n_bind);
    VkResult result = VK_SUCCESS;
    if (pool == r->n_pool) {
        if (!ggl_grow(&r->pool, &r->cap_pool, pool + 1, sizeof *r->pool))
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        result = create_pool(b, &r->pool[pool]);
        if (result != VK_SUCCESS)
            return result;
        r->n_pool++;
    }
    r->pool_at++;
    const VkDescriptorSetAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = r->pool[pool],
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &layout};
    return b->f.AllocateDescriptorSets(b->device->device, &info, out);
}

/* Returns the buffer range of a binding. */
static VkDescriptorBufferInfo place(const vk_backend *b, const vk_recording *r,
                                    const vk_binding *x) {
    if (x->region == VK_CODEBOOKS)
        return (VkDescriptorBufferInfo){b->codebooks->buffer, 0, x->size};
    if (x->region == VK_BATCH_SIZE)
        return (VkDescriptorBufferInfo){r->sizes->buffer, r->size_at, x->size};
    if (x->region == VK_COUNTERS)
        return (VkDescriptorBufferInfo){b->counters->buffer, b->counters->shift + x->offset,
                                        x->size};
    if (x->region < 0)
        return (VkDescriptorBufferInfo){b->nothing->buffer, 0, VK_WHOLE_SIZE};
    const ggl_buffer *buf = r->region[x->region];
    return (VkDescriptorBufferInfo){buf->buffer, buf->shift + x->offset, x->size};
}

static VkResult bind_set(vk_backend *b, vk_recording *r, const vk_call *c) {
    VkDescriptorSet set;
    VkDescriptorBufferInfo buffer[VK_MAX_BIND];
    VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                  .descriptorCount = (uint32_t)c->n_bind,
                                  .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .pBufferInfo = buffer};
    VkResult result = next_set(b, r, c->n_bind, &set);
    if (result != VK_SUCCESS)
        return result;
    for (int i = 0; i < c->n_bind; i++)
        buffer[i] = place(b, r, &c->bind[i]);
    write.dstSet = set;
    b->f.UpdateDescriptorSets(b->device->device, 1, &write, 0, NULL);
    b->f.CmdBindDescriptorSets(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               ggl_vk_layout_of(b, c->n_bind), 0, 1, &set, 0, NULL);
    return VK_SUCCESS;
}

ggl_status ggl_vk_recording_add(vk_backend *b, vk_recording *r, const vk_call *c,
                                VkPipeline pipeline, ggl_error *err) {
    VkResult result = bind_set(b, r, c);
    if (result != VK_SUCCESS)
        return ggl_vk_fail(err, result, "recording");
    wait_for_writes(b, r, c);
    if (r->bound != pipeline)
        b->f.CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    r->bound = pipeline;
    if (c->n_push > 0)
        b->f.CmdPushConstants(r->commands, ggl_vk_layout_of(b, c->n_bind),
                              VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)c->n_push * 4, &c->push);
    b->f.CmdDispatch(r->commands, c->groups[0] ? c->groups[0] : 1, c->groups[1] ? c->groups[1] : 1,
                     c->groups[2] ? c->groups[2] : 1);
    return GGL_OK;
}
