#include "pipelines.h"

#include <string.h>

#include "pipeline_cache.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_thread.h"
#include "shader_table.h"
#include "threads.h"
#include "trim.h"

typedef struct pipeline {
    VkPipeline pipeline; /* NULL: it was noted, but not made yet */
    vk_shader shader;
    uint32_t spec[VK_MAX_SPEC];
    int n_spec, n_bind;
    bool full_subgroups;
    bool noted; /* it is in the list of those to make */
    struct pipeline *next, *next_noted;
} pipeline;

struct vk_pipelines {
    VkDescriptorSetLayout set[VK_MAX_BIND + 1]; /* indexed by the number of bindings */
    VkPipelineLayout layout[VK_MAX_BIND + 1];
    pipeline *of[VK_SHADER_COUNT];
    pipeline *noted, **noted_end; /* those to make next, in order; where the next one is appended */
    VkPipelineCache cache;
    size_t kept; /* bytes of the cache that were read from the file */
};

static VkResult create_layout(vk_backend *b, int n) {
    VkDescriptorSetLayoutBinding binding[VK_MAX_BIND];
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                      .size = VK_MAX_PUSH * 4};
    for (int i = 0; i < n; i++)
        binding[i] =
            (VkDescriptorSetLayoutBinding){.binding = (uint32_t)i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = (uint32_t)n,
        .pBindings = binding};
    VkResult r =
        b->f.CreateDescriptorSetLayout(b->device->device, &set, NULL, &b->pipelines->set[n]);
    if (r != VK_SUCCESS)
        return r;
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &b->pipelines->set[n],
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
    return b->f.CreatePipelineLayout(b->device->device, &info, NULL, &b->pipelines->layout[n]);
}

static VkResult create_cache(vk_backend *b) {
    size_t size = 0;
    void *kept = ggl_vk_cache_read(b, &size);
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .initialDataSize = size,
                                      .pInitialData = kept};
    VkPipelineCache *cache = &b->pipelines->cache;
    VkResult r = b->f.CreatePipelineCache(b->device->device, &info, NULL, cache);
    ggl_free(kept);
    b->pipelines->kept = size;
    if (r == VK_SUCCESS || !kept)
        return r;
    b->pipelines->kept = 0;
    info.initialDataSize = 0; /* the driver rejects the data */
    info.pInitialData = NULL;
    return b->f.CreatePipelineCache(b->device->device, &info, NULL, cache);
}

ggl_status ggl_vk_pipelines_open(vk_backend *b, ggl_error *err) {
    b->pipelines = ggl_calloc(1, sizeof *b->pipelines);
    if (!b->pipelines)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    VkResult r = create_cache(b);
    for (int n = 1; n <= (int)b->limits.n_bind && r == VK_SUCCESS; n++)
        r = create_layout(b, n);
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "pipelines");
}

/* Writes the pipeline cache to its file if it has grown. */
static void keep_cache(vk_backend *b) {
    VkPipelineCache cache = b->pipelines->cache;
    size_t size = 0;
    void *data = NULL;
    if (ggl_vk_cache_is_wanted() &&
        b->f.GetPipelineCacheData(b->device->device, cache, &size, NULL) == VK_SUCCESS &&
        size > b->pipelines->kept)
        data = ggl_calloc(1, size);
    if (data && b->f.GetPipelineCacheData(b->device->device, cache, &size, data) == VK_SUCCESS)
        ggl_vk_cache_write(b, data, size);
    ggl_free(data);
}

void ggl_vk_pipelines_close(vk_backend *b) {
    vk_pipelines *p = b->pipelines;
    VkDevice d = b->device->device;
    if (!p)
        return;
    for (int i = 0; i < VK_SHADER_COUNT; i++) {
        for (pipeline *at = p->of[i], *next; at; at = next) {
            next = at->next;
            if (at->pipeline)
                b->f.DestroyPipeline(d, at->pipeline, NULL);
            ggl_free(at);
        }
    }
    for (int n = 1; n <= VK_MAX_BIND; n++) {
        if (p->layout[n])
            b->f.DestroyPipelineLayout(d, p->layout[n], NULL);
        if (p->set[n])
            b->f.DestroyDescriptorSetLayout(d, p->set[n], NULL);
    }
    if (p->cache) {
        keep_cache(b);
        b->f.DestroyPipelineCache(d, p->cache, NULL);
    }
    ggl_free(p);
    b->pipelines = NULL;
}

VkPipelineLayout ggl_vk_layout_of(const vk_backend *b, int n_bind) {
    return b->pipelines->layout[n_bind];
}

VkDescriptorSetLayout ggl_vk_set_layout_of(const vk_backend *b, int n_bind) {
    return b->pipelines->set[n_bind];
}

/* Creates the shader's module with the code that the pipeline's constants leave of it. */
static VkResult create_module(vk_backend *b, const pipeline *p, VkShaderModule *out) {
    const uint32_t *code = (const uint32_t *)(const void *)shader[p->shader].code;
    uint32_t *trimmed;
    const size_t n = ggl_vk_trim(code, *shader[p->shader].size / 4, p->spec, p->n_spec, &trimmed);
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n * 4, .pCode = trimmed};
    if (n == 0)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    VkResult r = b->f.CreateShaderModule(b->device->device, &info, NULL, out);
    ggl_free(trimmed);
    return r;
}

/* Several threads may call it, each with its own pipeline. */
static VkResult create(vk_backend *b, pipeline *p) {
    VkShaderModule module;
    VkSpecializationMapEntry entry[VK_MAX_SPEC];
    VkResult r = create_module(b, p, &module);
    if (r != VK_SUCCESS)
        return r;
    for (int i = 0; i < p->n_spec; i++)
        entry[i] = (VkSpecializationMapEntry){(uint32_t)i, (uint32_t)i * 4, 4};
    const VkSpecializationInfo special = {.mapEntryCount = (uint32_t)p->n_spec,
                                          .pMapEntries = entry,
                                          .dataSize = (size_t)p->n_spec * 4,
                                          .pData = p->spec};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = b->limits.subgroup_size};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = p->full_subgroups ? &size : NULL,
                  .flags = p->full_subgroups
                               ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
                               : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = ggl_vk_layout_of(b, p->n_bind)};
    VkPipeline made = NULL;
    r = b->f.CreateComputePipelines(b->device->device, b->pipelines->cache, 1, &info, NULL, &made);
    b->f.DestroyShaderModule(b->device->device, module, NULL);
    p->pipeline = r == VK_SUCCESS ? made : NULL;
    return r;
}

/* Returns the pipeline of a call, which may not be made yet; NULL: out of memory. */
static pipeline *find(vk_backend *b, const vk_call *c) {
    pipeline **of = &b->pipelines->of[c->shader];
    for (pipeline *p = *of; p; p = p->next)
        if (p->n_bind == c->n_bind && p->n_spec == c->n_spec &&
            memcmp(p->spec, c->spec.word, (size_t)c->n_spec * 4) == 0)
            return p;
    pipeline *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    memcpy(p->spec, c->spec.word, sizeof p->spec);
    p->shader = c->shader;
    p->n_spec = c->n_spec;
    p->n_bind = c->n_bind;
    p->full_subgroups = c->full_subgroups;
    p->next = *of;
    *of = p;
    return p;
}

/* --- several at once -------------------------------------------------------------------------- */

typedef struct task {
    vk_backend *b;
    uintptr_t first; /* the thread that may be asked whether to go on */
    os_mutex lock;
    pipeline *next;
    uint64_t n_made;
    bool cancelled;
    VkResult r;
    vk_shader failed;
} task;

/* Takes a pipeline to make; NULL: there is none, or the others shall not be made. */
static pipeline *take(task *t) {
    const ggl_backend *b = &t->b->base;
    const bool cancelled =
        ggl_os_thread_number() == t->first && b->cancelled && b->cancelled(b->cancelled_ctx);
    ggl_os_mutex_lock(&t->lock);
    t->cancelled = t->cancelled || cancelled;
    pipeline *p = t->cancelled || t->r != VK_SUCCESS ? NULL : t->next;
    t->next = p ? p->next_noted : t->next;
    ggl_os_mutex_unlock(&t->lock);
    return p;
}

static void *make_some(void *ctx) {
    task *t = ctx;
    for (pipeline *p; (p = take(t));) {
        const VkResult r = create(t->b, p);
        ggl_os_mutex_lock(&t->lock);
        t->n_made += r == VK_SUCCESS;
        if (r != VK_SUCCESS && t->r == VK_SUCCESS) {
            t->r = r;
            t->failed = p->shader;
        }
        ggl_os_mutex_unlock(&t->lock);
    }
    return NULL;
}

static ggl_status make(vk_backend *b, pipeline *noted, int64_t n, ggl_error *err) {
    task t = {.b = b, .first = ggl_os_thread_number(), .next = noted, .r = VK_SUCCESS};
    ggl_os_mutex_init(&t.lock);
    ggl_vk_in_threads(make_some, &t, n);
    ggl_os_mutex_destroy(&t.lock);
    b->n_pipelines += t.n_made;
    if (t.r != VK_SUCCESS)
        return ggl_within(err, ggl_vk_fail(err, t.r, "pipeline"), "shader %s",
                          shader[t.failed].name);
    return t.cancelled ? ggl_fail(err, GGL_CANCELLED, "stopped while shaders were compiled")
                       : GGL_OK;
}

ggl_status ggl_vk_pipeline_note(vk_backend *b, const vk_call *c, ggl_error *err) {
    vk_pipelines *all = b->pipelines;
    pipeline *p = find(b, c);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a pipeline");
    if (p->pipeline || p->noted)
        return GGL_OK;
    p->noted = true;
    p->next_noted = NULL;
    *(all->noted ? all->noted_end : &all->noted) = p;
    all->noted_end = &p->next_noted;
    return GGL_OK;
}

/* Empties the list, and returns its beginning. */
static pipeline *take_noted(vk_backend *b, int64_t *n) {
    pipeline *noted = b->pipelines->noted;
    b->pipelines->noted = NULL;
    *n = 0;
    for (pipeline *p = noted; p; p = p->next_noted, ++*n)
        p->noted = false;
    return noted;
}

ggl_status ggl_vk_pipelines_make(vk_backend *b, ggl_error *err) {
    int64_t n;
    pipeline *noted = take_noted(b, &n);
    return n > 0 ? make(b, noted, n, err) : GGL_OK;
}

void ggl_vk_pipelines_forget(vk_backend *b) {
    int64_t n;
    take_noted(b, &n);
}

ggl_status ggl_vk_pipeline_of(vk_backend *b, const vk_call *c, VkPipeline *out, ggl_error *err) {
    pipeline *p = find(b, c);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a pipeline");
    p->next_noted = NULL;
    const ggl_status st = p->pipeline ? GGL_OK : make(b, p, 1, err);
    *out = p->pipeline;
    return st;
}
