#include "pipelines.h"

#include <string.h>

#include "pipeline_cache.h"
#include "ggl/alloc.h"
#include "trim.h"

#define SHADER(ID, file, defines)                                                                  \
    extern const unsigned char ggl_vk_spirv_##ID[];                                                \
    extern const size_t ggl_vk_spirv_##ID##_size;
#include "shaders.def"
#undef SHADER

static const struct {
    const char *name;
    const unsigned char *code;
    const size_t *size;
} shader[VK_SHADER_COUNT] = {
#define SHADER(ID, file, defines) {#ID, ggl_vk_spirv_##ID, &ggl_vk_spirv_##ID##_size},
#include "shaders.def"
#undef SHADER
};

typedef struct pipeline {
    VkPipeline pipeline;
    uint32_t spec[VK_MAX_SPEC];
    int n_spec, n_bind;
    struct pipeline *next;
} pipeline;

struct vk_pipelines {
    VkDescriptorSetLayout set[VK_MAX_BIND + 1]; /* indexed by the number of bindings */
    VkPipelineLayout layout[VK_MAX_BIND + 1];
    pipeline *of[VK_SHADER_COUNT];
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

/* Creates the shader's module with the code that the call's constants leave of it. */
static VkResult create_module(vk_backend *b, const vk_call *c, VkShaderModule *out) {
    const uint32_t *code = (const uint32_t *)(const void *)shader[c->shader].code;
    uint32_t *trimmed;
    const size_t n =
        ggl_vk_trim(code, *shader[c->shader].size / 4, c->spec.word, c->n_spec, &trimmed);
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n * 4, .pCode = trimmed};
    if (n == 0)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    VkResult r = b->f.CreateShaderModule(b->device->device, &info, NULL, out);
    ggl_free(trimmed);
    return r;
}

static VkResult create(vk_backend *b, const vk_call *c, VkPipeline *out) {
    VkShaderModule module;
    VkSpecializationMapEntry entry[VK_MAX_SPEC];
    VkResult r = create_module(b, c, &module);
    if (r != VK_SUCCESS)
        return r;
    for (int i = 0; i < c->n_spec; i++)
        entry[i] = (VkSpecializationMapEntry){(uint32_t)i, (uint32_t)i * 4, 4};
    const VkSpecializationInfo special = {.mapEntryCount = (uint32_t)c->n_spec,
                                          .pMapEntries = entry,
                                          .dataSize = (size_t)c->n_spec * 4,
                                          .pData = c->spec.word};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = b->limits.subgroup_size};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = c->full_subgroups ? &size : NULL,
                  .flags = c->full_subgroups
                               ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
                               : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = ggl_vk_layout_of(b, c->n_bind)};
    r = b->f.CreateComputePipelines(b->device->device, b->pipelines->cache, 1, &info, NULL, out);
    b->f.DestroyShaderModule(b->device->device, module, NULL);
    return r;
}

ggl_status ggl_vk_pipeline_of(vk_backend *b, const vk_call *c, VkPipeline *out, ggl_error *err) {
    for (const pipeline *p = b->pipelines->of[c->shader]; p; p = p->next)
        if (p->n_bind == c->n_bind && p->n_spec == c->n_spec &&
            memcmp(p->spec, c->spec.word, (size_t)c->n_spec * 4) == 0) {
            *out = p->pipeline;
            return GGL_OK;
        }
    /* a driver may take a second for one */
    if (b->base.cancelled && b->base.cancelled(b->base.cancelled_ctx))
        return ggl_fail(err, GGL_CANCELLED, "stopped while shaders were compiled");
    pipeline *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a pipeline");
    VkResult r = create(b, c, &p->pipeline);
    if (r != VK_SUCCESS) {
        ggl_free(p);
        ggl_status st = ggl_vk_fail(err, r, "pipeline");
        return ggl_within(err, st, "shader %s", shader[c->shader].name);
    }
    memcpy(p->spec, c->spec.word, sizeof p->spec);
    p->n_spec = c->n_spec;
    p->n_bind = c->n_bind;
    p->next = b->pipelines->of[c->shader];
    b->n_pipelines++;
    b->pipelines->of[c->shader] = p;
    *out = p->pipeline;
    return GGL_OK;
}
