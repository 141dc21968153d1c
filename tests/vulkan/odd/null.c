/* A device on which nothing is executed: memory is the host's, commands are counted, waiting ends at
 * once. Shaders are compiled by the machine's driver. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "odd_impl.h"

enum {
    CAPTURE_STATISTICS = 0x40,
    CAPTURE_TEXT = 0x80,
    FEATURES_OF_EXECUTABLES = 1000269000 /* a VkStructureType */
};

#define MATRIX VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME

/* Stands for pipelines where the driver may not know matrices: nothing is compiled. */
static const char not_compiled;
#define NOT_COMPILED ((VkPipeline)(uintptr_t)&not_compiled)

/* VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR. */
typedef struct executable_features {
    VkStructureType sType;
    const void *pNext;
    VkBool32 pipelineExecutableInfo;
} executable_features;

/* The last shader: a copy of its words, which the pipeline that is made of it keeps. */
static struct {
    VkShaderModule module;
    uint32_t *code;
    size_t n_words;
} last;

/* --- memory ----------------------------------------------------------------------------------- */

static void memory_properties(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties2 *m) {
    odd_real.GetPhysicalDeviceMemoryProperties2(d, m);
    m->memoryProperties.memoryTypeCount = m->memoryProperties.memoryHeapCount = 1;
    m->memoryProperties.memoryTypes[0] = (VkMemoryType){.propertyFlags = 0xf};
    m->memoryProperties.memoryHeaps[0] =
        (VkMemoryHeap){UINT64_C(64) << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
}

static void requirements(VkDevice d, VkBuffer b, VkMemoryRequirements *r) {
    odd_real.GetBufferMemoryRequirements(d, b, r);
    r->memoryTypeBits = 1;
}

static VkResult allocate(VkDevice d, const VkMemoryAllocateInfo *info,
                         const VkAllocationCallbacks *a, VkDeviceMemory *out) {
    (void)d, (void)a;
    *out = (VkDeviceMemory)calloc(1, info->allocationSize);
    return *out ? VK_SUCCESS : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void free_memory(VkDevice d, VkDeviceMemory m, const VkAllocationCallbacks *a) {
    (void)d, (void)a;
    free((void *)m);
}

static VkResult bind(VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize at) {
    (void)d, (void)b, (void)m, (void)at;
    return VK_SUCCESS;
}

static VkResult map(VkDevice d, VkDeviceMemory m, VkDeviceSize at, VkDeviceSize n,
                    VkMemoryMapFlags f, void **out) {
    (void)d, (void)at, (void)n, (void)f;
    *out = (void *)m;
    return VK_SUCCESS;
}

/* --- commands --------------------------------------------------------------------------------- */

static VkResult one_commands(VkDevice d, const VkCommandBufferAllocateInfo *info,
                             VkCommandBuffer *out) {
    static char any;
    (void)d, (void)info;
    *out = (VkCommandBuffer)(void *)&any;
    return VK_SUCCESS;
}

static VkResult one_fence(VkDevice d, const VkFenceCreateInfo *info, const VkAllocationCallbacks *a,
                          VkFence *out) {
    static char any;
    (void)d, (void)info, (void)a;
    *out = (VkFence)(void *)&any;
    return VK_SUCCESS;
}

static void count_dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
    (void)c, (void)x, (void)y, (void)z;
    odd_all_asked.n_dispatches++;
}

static void count_barrier(VkCommandBuffer c, VkPipelineStageFlags from, VkPipelineStageFlags to,
                          VkDependencyFlags f, uint32_t n, const VkMemoryBarrier *m, uint32_t n_b,
                          const VkBufferMemoryBarrier *b, uint32_t n_i,
                          const VkImageMemoryBarrier *i) {
    (void)c, (void)from, (void)to, (void)f, (void)n, (void)m, (void)n_b, (void)b, (void)n_i,
        (void)i;
    odd_all_asked.n_barriers++;
}

static VkResult count_submission(VkQueue q, uint32_t n, const VkSubmitInfo *info, VkFence f) {
    (void)q, (void)info, (void)f;
    odd_all_asked.n_submissions += n;
    return VK_SUCCESS;
}

/* Functions that do nothing; each has the parameters of the one that it stands for. */
#define IDLE(result, name, parameters, value)                                                      \
    static result idle_##name parameters {                                                         \
        return value;                                                                              \
    }
IDLE(VkResult, begin, (VkCommandBuffer c, const VkCommandBufferBeginInfo *i),
     ((void)c, (void)i, VK_SUCCESS))
IDLE(VkResult, end, (VkCommandBuffer c), ((void)c, VK_SUCCESS))
IDLE(VkResult, reset, (VkDevice d, uint32_t n, const VkFence *f),
     ((void)d, (void)n, (void)f, VK_SUCCESS))
IDLE(VkResult, wait, (VkDevice d, uint32_t n, const VkFence *f, VkBool32 all, uint64_t t),
     ((void)d, (void)n, (void)f, (void)all, (void)t, VK_SUCCESS))
IDLE(VkResult, all, (VkDevice d), ((void)d, VK_SUCCESS))
IDLE(void, fence, (VkDevice d, VkFence f, const VkAllocationCallbacks *a),
     ((void)d, (void)f, (void)a))
IDLE(void, free, (VkDevice d, VkCommandPool p, uint32_t n, const VkCommandBuffer *c),
     ((void)d, (void)p, (void)n, (void)c))
IDLE(void, bind, (VkCommandBuffer c, VkPipelineBindPoint p, VkPipeline of),
     ((void)c, (void)p, (void)of))
IDLE(void, sets,
     (VkCommandBuffer c, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t first, uint32_t n,
      const VkDescriptorSet *s, uint32_t m, const uint32_t *o),
     ((void)c, (void)p, (void)l, (void)first, (void)n, (void)s, (void)m, (void)o))
IDLE(void, push,
     (VkCommandBuffer c, VkPipelineLayout l, VkShaderStageFlags s, uint32_t at, uint32_t n,
      const void *v),
     ((void)c, (void)l, (void)s, (void)at, (void)n, (void)v))
IDLE(void, copy, (VkCommandBuffer c, VkBuffer a, VkBuffer b, uint32_t n, const VkBufferCopy *r),
     ((void)c, (void)a, (void)b, (void)n, (void)r))
IDLE(void, fill, (VkCommandBuffer c, VkBuffer b, VkDeviceSize at, VkDeviceSize n, uint32_t v),
     ((void)c, (void)b, (void)at, (void)n, (void)v))
IDLE(void, update,
     (VkDevice d, uint32_t n, const VkWriteDescriptorSet *w, uint32_t m,
      const VkCopyDescriptorSet *c),
     ((void)d, (void)n, (void)w, (void)m, (void)c))

/* --- pipelines -------------------------------------------------------------------------------- */

static VkResult create_device(VkPhysicalDevice d, const VkDeviceCreateInfo *info,
                              const VkAllocationCallbacks *a, VkDevice *out) {
    VkDeviceCreateInfo copy = *info;
    const executable_features more = {(VkStructureType)FEATURES_OF_EXECUTABLES, info->pNext, 1};
    const char *names[64];
    uint32_t n = info->enabledExtensionCount < 63 ? info->enabledExtensionCount : 63;
    const bool matrix = odd_is("matrix") && odd_matrix_remove(info);
    odd_all_asked.matrix = matrix;
    for (uint32_t i = 0, k = n, m = 0; i < k; i++)
        if (matrix && !strcmp(info->ppEnabledExtensionNames[i], MATRIX))
            n--;
        else
            names[m++] = info->ppEnabledExtensionNames[i];
    names[n++] = "VK_KHR_pipeline_executable_properties";
    copy.pNext = &more;
    copy.enabledExtensionCount = n;
    copy.ppEnabledExtensionNames = names;
    return odd_real.CreateDevice(d, &copy, a, out);
}

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of `last` and the pipelines: several threads make them */

static VkResult create_module(VkDevice d, const VkShaderModuleCreateInfo *info,
                              const VkAllocationCallbacks *a, VkShaderModule *out) {
    const VkResult r = odd_real.CreateShaderModule(d, info, a, out);
    uint32_t *code = r == VK_SUCCESS ? malloc(info->codeSize) : NULL;
    if (code) {
        memcpy(code, info->pCode, info->codeSize);
        pthread_mutex_lock(&lock);
        last.module = *out;
        last.code = code;
        last.n_words = info->codeSize / sizeof *code;
        pthread_mutex_unlock(&lock);
    }
    return r;
}

static VkResult create_one(VkDevice d, VkPipelineCache cache, uint32_t n,
                           const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *a,
                           VkPipeline *out) {
    VkComputePipelineCreateInfo copy = *info;
    copy.flags |= CAPTURE_STATISTICS | CAPTURE_TEXT;
    (void)cache; /* its code would come without counts */
    const bool skip = odd_is("matrix");
    *out = NOT_COMPILED;
    const VkResult r =
        skip ? VK_SUCCESS : odd_real.CreateComputePipelines(d, NULL, n, &copy, a, out);
    if (r != VK_SUCCESS || odd_all_asked.n_pipelines == ODD_MAX_PIPELINES)
        return r;
    odd_pipeline *p = &odd_all_asked.pipeline[odd_all_asked.n_pipelines++];
    if (last.module == info->stage.module) {
        p->code = last.code;
        p->n_words = last.n_words;
    }
    const VkSpecializationInfo *s = info->stage.pSpecializationInfo;
    p->n_spec = s->mapEntryCount < ODD_MAX_SPEC ? s->mapEntryCount : ODD_MAX_SPEC;
    memcpy(p->spec, s->pData, p->n_spec * sizeof *p->spec);
    if (!skip)
        odd_count(d, *out, p);
    return r;
}

static VkResult create_pipelines(VkDevice d, VkPipelineCache cache, uint32_t n,
                                 const VkComputePipelineCreateInfo *info,
                                 const VkAllocationCallbacks *a, VkPipeline *out) {
    pthread_mutex_lock(&lock);
    const VkResult r = create_one(d, cache, n, info, a, out);
    pthread_mutex_unlock(&lock);
    return r;
}

static void destroy_pipeline(VkDevice d, VkPipeline p, const VkAllocationCallbacks *a) {
    if (p != NOT_COMPILED)
        odd_real.DestroyPipeline(d, p, a);
}

const odd_wrapped odd_null[] = {
    WRAP(GetPhysicalDeviceMemoryProperties2, memory_properties) WRAP(
        GetBufferMemoryRequirements, requirements) WRAP(AllocateMemory, allocate)
        WRAP(FreeMemory, free_memory) WRAP(BindBufferMemory, bind) WRAP(MapMemory, map) WRAP(
            AllocateCommandBuffers, one_commands) WRAP(FreeCommandBuffers, idle_free)
            WRAP(BeginCommandBuffer, idle_begin) WRAP(EndCommandBuffer, idle_end) WRAP(
                CreateFence, one_fence) WRAP(DestroyFence, idle_fence) WRAP(ResetFences, idle_reset)
                WRAP(WaitForFences, idle_wait) WRAP(DeviceWaitIdle, idle_all)
                    WRAP(QueueSubmit, count_submission) WRAP(CmdDispatch, count_dispatch)
                        WRAP(CmdPipelineBarrier, count_barrier) WRAP(CmdBindPipeline, idle_bind)
                            WRAP(CmdBindDescriptorSets, idle_sets) WRAP(CmdPushConstants, idle_push)
                                WRAP(CmdCopyBuffer, idle_copy) WRAP(CmdFillBuffer, idle_fill)
                                    WRAP(UpdateDescriptorSets, idle_update)
                                        WRAP(CreateDevice, create_device)
                                            WRAP(CreateShaderModule, create_module)
                                                WRAP(CreateComputePipelines, create_pipelines)
                                                    WRAP(DestroyPipeline, destroy_pipeline)};
const size_t odd_n_null = sizeof odd_null / sizeof *odd_null;
