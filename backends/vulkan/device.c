/* Device and queue. Queries what the device supports; the rest of the backend uses vk_features and
 * vk_limits. */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "matrix.h"
#include "settings.h"

/* --- features and limits ---------------------------------------------------------------------- */

/* The features that linear_matrix.comp needs. */
typedef struct matrix_features {
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceShaderFloat16Int8Features float16;
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
} matrix_features;

/* Structures for queries. Those that the device knows are chained. */
typedef struct answers {
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDevice8BitStorageFeatures storage8;
    VkPhysicalDeviceShaderIntegerDotProductFeatures idot;
    matrix_features matrix;
    VkPhysicalDeviceProperties2 properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    VkPhysicalDeviceMaintenance4Properties maintenance4;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT import;
    VkPhysicalDeviceShaderIntegerDotProductProperties idot_speed;
    VkPhysicalDeviceFloatControlsProperties floats;
    VkPhysicalDeviceCooperativeMatrixPropertiesKHR matrix_stages;
    VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV units_nv;
    VkPhysicalDeviceShaderCoreProperties2AMD units_amd;
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM units_arm;
} answers;

/* Extensions that are used if available. */
enum {
    EXT_STORAGE8,
    EXT_IDOT,
    EXT_DRIVER,
    EXT_BUFFER_SIZE,
    EXT_EXTERNAL,
    EXT_IMPORT,
    EXT_FD,
    EXT_DMA_BUF,
    EXT_BUDGET,
    EXT_FLOATS,
    EXT_UNITS_NV,
    EXT_UNITS_AMD,
    EXT_UNITS_ARM,
    EXT_SUBSET,
    EXT_MATRIX,
    EXT_FLOAT16,
    EXT_MEMORY_MODEL,
    EXT_SUBGROUP_SIZE,
    N_EXT
};
static const char *const extension[N_EXT] = {
    [EXT_STORAGE8] = VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
    [EXT_IDOT] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    [EXT_DRIVER] = VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME,
    [EXT_BUFFER_SIZE] = VK_KHR_MAINTENANCE_4_EXTENSION_NAME,
    [EXT_EXTERNAL] = VK_KHR_EXTERNAL_MEMORY_EXTENSION_NAME,
    [EXT_IMPORT] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    [EXT_FD] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
    [EXT_DMA_BUF] = VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
    [EXT_BUDGET] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
    [EXT_FLOATS] = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
    [EXT_UNITS_NV] = VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME,
    [EXT_UNITS_AMD] = VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME,
    [EXT_UNITS_ARM] = VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME,
    /* a device that leaves out parts of Vulkan; it has to be enabled where it is offered */
    [EXT_SUBSET] = "VK_KHR_portability_subset",
    [EXT_MATRIX] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    [EXT_FLOAT16] = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
    [EXT_MEMORY_MODEL] = VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
    [EXT_SUBGROUP_SIZE] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
};

static ggl_status find_extensions(const vk_backend *b, bool *has, ggl_error *err) {
    VkExtensionProperties *e = NULL;
    uint32_t n = 0;
    VkPhysicalDevice d = b->device->physical;
    VkResult r = b->f.EnumerateDeviceExtensionProperties(d, NULL, &n, NULL);
    if (r == VK_SUCCESS && !(e = ggl_calloc(n, sizeof *e)))
        r = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (r == VK_SUCCESS)
        r = b->f.EnumerateDeviceExtensionProperties(d, NULL, &n, e);
    for (uint32_t i = 0; i < n && r >= VK_SUCCESS; i++)
        for (int k = 0; k < N_EXT; k++)
            has[k] |= strcmp(e[i].extensionName, extension[k]) == 0;
    ggl_free(e);
    return r >= VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "extensions of the Vulkan device");
}

/* Puts a query structure at the head of a chain, if the device knows it. */
static void chain(void **head, void *structure, VkStructureType type, bool known) {
    if (!known)
        return;
    VkBaseOutStructure *s = structure;
    s->sType = type;
    s->pNext = *head;
    *head = structure;
}

/* Chains those of the structures that the device knows. */
static void chain_matrix(void **head, matrix_features *f, const bool *has) {
    chain(head, &f->matrix,
          (VkStructureType)VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
          has[EXT_MATRIX]);
    chain(head, &f->float16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
          has[EXT_FLOAT16]);
    chain(head, &f->memory_model, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
          has[EXT_MEMORY_MODEL]);
    chain(head, &f->subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
          has[EXT_SUBGROUP_SIZE]);
}

/* Queries the device's features and properties. */
static void ask(const vk_backend *b, const bool *has, answers *a) {
    void *features = NULL, *properties = NULL;
    chain_matrix(&features, &a->matrix, has);
    chain(&features, &a->storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, true);
    chain(&features, &a->storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
          has[EXT_STORAGE8]);
    chain(&features, &a->idot,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, has[EXT_IDOT]);
    a->features = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                              .pNext = features};
    b->f.GetPhysicalDeviceFeatures2(b->device->physical, &a->features);

    chain(&properties, &a->id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, true);
    chain(&properties, &a->subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, true);
    chain(&properties, &a->maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
          true);
    chain(&properties, &a->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
          has[EXT_BUFFER_SIZE]);
    chain(&properties, &a->driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
          has[EXT_DRIVER]);
    chain(&properties, &a->import,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT, has[EXT_IMPORT]);
    chain(&properties, &a->idot_speed,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES, has[EXT_IDOT]);
    chain(&properties, &a->floats, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
          has[EXT_FLOATS]);
    chain(&properties, &a->units_nv,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV, has[EXT_UNITS_NV]);
    chain(&properties, &a->units_amd,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD, has[EXT_UNITS_AMD]);
    chain(&properties, &a->units_arm,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM,
          has[EXT_UNITS_ARM]);
    chain(&properties, &a->matrix_stages,
          (VkStructureType)VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR,
          has[EXT_MATRIX]);
    chain(&properties, &a->subgroup_sizes,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
          has[EXT_SUBGROUP_SIZE]);
    a->properties = (VkPhysicalDeviceProperties2){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = properties};
    b->f.GetPhysicalDeviceProperties2(b->device->physical, &a->properties);
}

/* True if the device has all that linear_matrix.comp needs, besides matrices of a size that suits it. */
static bool has_matrix_units(const answers *a) {
    const VkPhysicalDeviceSubgroupSizeControlProperties *sizes = &a->subgroup_sizes;
    const uint32_t size = a->subgroup.subgroupSize;
    return a->matrix.matrix.cooperativeMatrix && a->matrix.float16.shaderFloat16 &&
           a->matrix.memory_model.vulkanMemoryModel &&
           a->matrix.memory_model.vulkanMemoryModelDeviceScope && /* linear_sort.comp's atomics */
           a->matrix.subgroup_size.subgroupSizeControl &&
           a->matrix.subgroup_size.computeFullSubgroups &&
           (a->matrix_stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
           (sizes->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
           sizes->minSubgroupSize <= size && size <= sizes->maxSubgroupSize;
}

static void set_features(vk_backend *b, const bool *has, const answers *a, const char *mask) {
    const VkSubgroupFeatureFlags wanted =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    const bool software = a->properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    b->features = (vk_features){
        .storage16 = a->storage16.storageBuffer16BitAccess,
        .storage8 = a->storage8.storageBuffer8BitAccess,
        .subgroup = (a->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (a->subgroup.supportedOperations & wanted) == wanted,
        .idot = a->idot.shaderIntegerDotProduct &&
                (a->idot_speed.integerDotProduct4x8BitPackedSignedAccelerated ||
                 ggl_vk_is_forced("idot")),
        .half =
            a->floats.shaderDenormPreserveFloat16 || (has[EXT_FLOATS] && ggl_vk_is_forced("half")),
        .import = has[EXT_IMPORT] && has[EXT_EXTERNAL],
        .peer = has[EXT_FD] && has[EXT_EXTERNAL],
        .map = ggl_vk_shares_memory(b),
        .budget = has[EXT_BUDGET],
        .repack = true,
        .range = true,
        .fuse = true,
        .ahead = !software || ggl_vk_is_forced("ahead"),
        .matrix = has_matrix_units(a) && (!software || ggl_vk_is_forced("matrix")),
        .pace = true,
    };
    ggl_vk_mask_features(&b->features, mask);
}

static size_t smaller(uint64_t a, uint64_t b) {
    uint64_t x = a < b ? a : b;
    return x < SIZE_MAX ? (size_t)x : SIZE_MAX;
}

/* the limit without the feature `range`; tests then need no large operands */
enum { SMALL_RANGE = 64 << 10 };

/* Returns the number of the device's units that run workgroups, or a typical one for its type. */
static uint32_t count_units(const answers *a) {
    static const uint32_t typical[] = {[VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = 16,
                                       [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = 64,
                                       [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = 64,
                                       [VK_PHYSICAL_DEVICE_TYPE_CPU] = 4};
    const uint32_t type = a->properties.properties.deviceType,
                   known = a->units_nv.shaderSMCount      ? a->units_nv.shaderSMCount
                           : a->units_arm.shaderCoreCount ? a->units_arm.shaderCoreCount
                                                          : a->units_amd.activeComputeUnitCount;
    if (known > 0)
        return known;
    return type < sizeof typical / sizeof *typical && typical[type] ? typical[type] : 16;
}

/* Returns how many storage buffers a shader can use. */
static uint32_t most_buffers(const VkPhysicalDeviceLimits *l) {
    const uint32_t of_stage = l->maxPerStageDescriptorStorageBuffers,
                   of_set = l->maxDescriptorSetStorageBuffers;
    return of_stage < of_set ? of_stage : of_set;
}

/* Vulkan promises only 4 storage buffers for a shader. */
static ggl_status check_limits(const answers *a, ggl_error *err) {
    const VkPhysicalDeviceProperties *p = &a->properties.properties;
    const uint32_t most = most_buffers(&p->limits);
    if (most >= VK_LEAST_BIND)
        return GGL_OK;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "%s: its shaders can use %u storage buffers; this backend needs %d. Use another "
        "device, such as cpu",
        p->deviceName, most, VK_LEAST_BIND);
}

/* Returns the kind of handles of memory that the device makes and takes; 0: none. */
static uint32_t shared_kind(const vk_backend *b, bool has_dma_buf) {
    const VkExternalMemoryHandleTypeFlagBits kind[] = {
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    for (int i = has_dma_buf ? 0 : 1; i < 2; i++) {
        VkExternalBufferProperties p = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
        const VkPhysicalDeviceExternalBufferInfo info = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                     VK_BUFFER_USAGE_TRANSFER_DST_BIT,
            .handleType = kind[i]};
        b->f.GetPhysicalDeviceExternalBufferProperties(b->device->physical, &info, &p);
        if ((p.externalMemoryProperties.externalMemoryFeatures & both) == both)
            return kind[i];
    }
    return 0;
}

static void set_limits(vk_backend *b, const bool *has, const answers *a) {
    const VkPhysicalDeviceLimits *l = &a->properties.properties.limits;
    b->limits = (vk_limits){
        .subgroup_size = a->subgroup.subgroupSize,
        .offset_align = (uint32_t)smaller(l->minStorageBufferOffsetAlignment, 1 << 20),
        .max_range = b->features.range ? l->maxStorageBufferRange : SMALL_RANGE,
        .shared_size = l->maxComputeSharedMemorySize,
        .local_size =
            (uint32_t)smaller(l->maxComputeWorkGroupInvocations, l->maxComputeWorkGroupSize[0]),
        .n_bind = (uint32_t)smaller(most_buffers(l), VK_MAX_BIND),
        .units = count_units(a),
        .import_align = smaller(a->import.minImportedHostPointerAlignment, SIZE_MAX),
        .shared_kind = b->features.peer ? shared_kind(b, has[EXT_DMA_BUF]) : 0,
    };
    if (b->limits.offset_align < 4)
        b->limits.offset_align = 4;
    b->base.max_buffer = smaller(a->maintenance3.maxMemoryAllocationSize, SIZE_MAX);
    if (a->maintenance4.maxBufferSize)
        b->base.max_buffer = smaller(a->maintenance4.maxBufferSize, b->base.max_buffer);
}

/* Turns the feature `matrix` off if no size of matrices suits. */
static ggl_status find_matrix(vk_backend *b, ggl_error *err) {
    return b->features.matrix ? ggl_vk_find_matrix(b, b->device->instance, b->device->physical,
                                                   &b->limits.matrix, &b->features.matrix, err)
                              : GGL_OK;
}

/* Writes "NVIDIA H200, Vulkan 1.3, 550.54.14, subgroups of 32; import storage16 ..". */
static void describe(vk_backend *b, const answers *a) {
    char *text = b->base.description;
    const size_t size = sizeof b->base.description;
    const VkPhysicalDeviceProperties *p = &a->properties.properties;
    /* a version from its highest bit: 3 bits variant, 7 major, 10 minor, 12 patch */
    int n = snprintf(text, size, "%s, Vulkan %u.%u", p->deviceName, p->apiVersion >> 22 & 0x7f,
                     p->apiVersion >> 12 & 0x3ff);
    size_t used = n > 0 ? (size_t)n : 0;
    if (a->driver.driverInfo[0] && used < size)
        used += (size_t)snprintf(text + used, size - used, ", %s", a->driver.driverInfo);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, ", subgroups of %u%s;",
                                 b->limits.subgroup_size, ggl_vk_validates() ? ", validated" : "");
    if (used < size)
        ggl_vk_list_features(&b->features, text + used, size - used);
}

bool ggl_vk_shares_memory(const vk_backend *b) {
    return b->device->type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
           b->device->type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
}

void ggl_vk_memory_left(const vk_backend *b, size_t *size, size_t *left) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = b->features.budget ? &budget : NULL};
    b->f.GetPhysicalDeviceMemoryProperties2(b->device->physical, &m);
    uint64_t all = 0, available = 0;
    for (uint32_t i = 0; i < m.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &m.memoryProperties.memoryHeaps[i];
        if (!(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || heap->size < all)
            continue;
        uint64_t limit = b->features.budget ? budget.heapBudget[i] : heap->size,
                 used = b->features.budget ? budget.heapUsage[i] : 0;
        all = heap->size;
        available = limit > used ? limit - used : 0;
    }
    *size = smaller(all, SIZE_MAX);
    *left = smaller(available, SIZE_MAX);
}

/* --- the device ------------------------------------------------------------------------------- */

static ggl_status create_device(vk_backend *b, const bool *has, ggl_error *err) {
    const vk_features *f = &b->features;
    const bool use[N_EXT] = {
        [EXT_STORAGE8] = f->storage8,
        [EXT_IDOT] = f->idot,
        [EXT_EXTERNAL] = f->import || f->peer,
        [EXT_IMPORT] = f->import,
        [EXT_BUDGET] = f->budget,
        [EXT_FLOATS] = f->half,
        [EXT_FD] = f->peer,
        [EXT_DMA_BUF] = f->peer,
        [EXT_SUBSET] = true,
        [EXT_MATRIX] = f->matrix,
        [EXT_FLOAT16] = f->matrix,
        [EXT_MEMORY_MODEL] = f->matrix,
        [EXT_SUBGROUP_SIZE] = f->matrix,
    };
    const char *name[N_EXT];
    uint32_t n = 0;
    for (int i = 0; i < N_EXT; i++)
        if (use[i] && has[i])
            name[n++] = extension[i];

    void *more = NULL;
    VkPhysicalDevice16BitStorageFeatures storage16 = {.storageBuffer16BitAccess = true};
    VkPhysicalDevice8BitStorageFeatures storage8 = {.storageBuffer8BitAccess = true};
    VkPhysicalDeviceShaderIntegerDotProductFeatures idot = {.shaderIntegerDotProduct = true};
    chain(&more, &storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
          f->storage16);
    chain(&more, &storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, f->storage8);
    chain(&more, &idot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
          f->idot);
    matrix_features matrix = {
        .matrix = {.cooperativeMatrix = true},
        .float16 = {.shaderFloat16 = true},
        .memory_model = {.vulkanMemoryModel = true, .vulkanMemoryModelDeviceScope = true},
        .subgroup_size = {.subgroupSizeControl = true, .computeFullSubgroups = true},
    };
    if (f->matrix)
        chain_matrix(&more, &matrix, has);
    const VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = more};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = b->device->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = n,
                                     .ppEnabledExtensionNames = name};
    VkResult r = b->f.CreateDevice(b->device->physical, &info, NULL, &b->device->device);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "the Vulkan device cannot be opened");
    return ggl_vk_load_device(&b->f, b->device->device, err);
}

static ggl_status create_queue(vk_backend *b, ggl_error *err) {
    vk_device *d = b->device;
    b->f.GetDeviceQueue(d->device, d->family, 0, &d->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = d->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkResult r = b->f.CreateCommandPool(d->device, &pool, NULL, &d->commands);
    for (int i = 0; i < VK_IN_FLIGHT && r == VK_SUCCESS; i++)
        r = b->f.CreateFence(d->device, &fence, NULL, &d->fence[i]);
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "the Vulkan device's queue");
}

ggl_status ggl_vk_device_open(vk_backend *b, const ggl_backend_params *params, ggl_error *err) {
    bool has[N_EXT] = {false};
    answers a = {0};
    b->device = ggl_calloc(1, sizeof *b->device);
    if (!b->device)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    ggl_status st = ggl_vk_check_settings(err);
    if (st == GGL_OK)
        st = ggl_vk_instance_open(b, err);
    if (st == GGL_OK)
        st = ggl_vk_choose_device(b, params->device, err);
    if (st == GGL_OK)
        st = find_extensions(b, has, err);
    if (st != GGL_OK)
        return st;
    ask(b, has, &a);
    b->device->properties = a.properties.properties;
    b->device->type = a.properties.properties.deviceType;
    b->base.software = b->device->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    b->device->id = a.id;
    set_features(b, has, &a, params->mask);
    set_limits(b, has, &a);
    st = find_matrix(b, err);
    if (st != GGL_OK)
        return st;
    describe(b, &a);
    ggl_vk_note_forced(&b->features, params->mask, b->device->properties.deviceName);
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    b->f.GetPhysicalDeviceMemoryProperties2(b->device->physical, &m);
    b->device->memory = m.memoryProperties;
    size_t size;
    ggl_vk_memory_left(b, &size, &b->base.memory);
    st = check_limits(&a, err);
    if (st == GGL_OK)
        st = create_device(b, has, err);
    return st == GGL_OK ? create_queue(b, err) : st;
}

void ggl_vk_device_close(vk_backend *b) {
    vk_device *d = b->device;
    if (!d)
        return;
    if (d->device && b->f.DestroyDevice) {
        if (d->commands)
            b->f.DestroyCommandPool(d->device, d->commands, NULL);
        for (int i = 0; i < VK_IN_FLIGHT; i++)
            if (d->fence[i])
                b->f.DestroyFence(d->device, d->fence[i], NULL);
        b->f.DestroyDevice(d->device, NULL);
    }
    ggl_vk_instance_close(b);
    ggl_vk_unload_library(&b->f);
    ggl_free(d);
    b->device = NULL;
}
