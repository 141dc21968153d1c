/* Instance, device, queue. Queries what the device supports; the rest of the backend uses
 * vk_features and vk_limits. */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"

static const char VALIDATION[] = "VK_LAYER_KHRONOS_validation";

static bool is_wanted(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0] && strcmp(value, "0") != 0;
}

/* --- the instance ----------------------------------------------------------------------------- */

static ggl_status find_validation(const vk_functions *f, ggl_error *err) {
    VkLayerProperties *layer = NULL;
    uint32_t n = 0;
    bool found = false;
    if (f->EnumerateInstanceLayerProperties(&n, NULL) == VK_SUCCESS && n > 0)
        layer = ggl_calloc(n, sizeof *layer);
    if (layer && f->EnumerateInstanceLayerProperties(&n, layer) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            found |= strcmp(layer[i].layerName, VALIDATION) == 0;
    ggl_free(layer);
    return found ? GGL_OK
                 : ggl_fail(err, GGL_UNSUPPORTED,
                            "GGL_VULKAN_VALIDATE is set, but the layer %s is not installed",
                            VALIDATION);
}

static ggl_status create_instance(vk_backend *b, bool validate, ggl_error *err) {
    static const VkValidationFeatureEnableEXT synchronization[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    static const char *const layers[] = {VALIDATION},
                             *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                                    VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
    VkDebugUtilsMessengerCreateInfoEXT messenger = ggl_vk_messenger;
    const VkValidationFeaturesEXT more = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                          .pNext = &messenger,
                                          .enabledValidationFeatureCount = 1,
                                          .pEnabledValidationFeatures = synchronization};
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pApplicationName = "ggml-lite",
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pNext = validate ? &more : NULL,
                                       .pApplicationInfo = &app,
                                       .enabledLayerCount = validate,
                                       .ppEnabledLayerNames = layers,
                                       .enabledExtensionCount = validate ? 2 : 0,
                                       .ppEnabledExtensionNames = extensions};
    VkResult r = b->f.CreateInstance(&info, NULL, &b->device->instance);
    if (r != VK_SUCCESS)
        return ggl_fail(err, GGL_UNSUPPORTED, "no Vulkan driver (vkCreateInstance: %d)", (int)r);
    return ggl_vk_load_instance(&b->f, b->device->instance, err);
}

static ggl_status open_instance(vk_backend *b, ggl_error *err) {
    bool validate = is_wanted("GGL_VULKAN_VALIDATE");
    uint32_t version = 0;
    ggl_status st = ggl_vk_load_library(&b->f, err);
    if (st == GGL_OK &&
        (b->f.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1))
        st = ggl_fail(err, GGL_UNSUPPORTED, "the Vulkan library is older than Vulkan 1.1");
    if (st == GGL_OK && validate)
        st = find_validation(&b->f, err);
    if (st == GGL_OK)
        st = create_instance(b, validate, err);
    if (st != GGL_OK || !validate)
        return st;
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)b->f.GetInstanceProcAddr(
            b->device->instance, "vkCreateDebugUtilsMessengerEXT");
    VkResult r = create
                     ? create(b->device->instance, &ggl_vk_messenger, NULL, &b->device->messenger)
                     : VK_ERROR_EXTENSION_NOT_PRESENT;
    return r == VK_SUCCESS ? GGL_OK : ggl_vk_fail(err, r, "validation messages");
}

static void close_instance(vk_backend *b) {
    if (b->device->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy =
            (PFN_vkDestroyDebugUtilsMessengerEXT)b->f.GetInstanceProcAddr(
                b->device->instance, "vkDestroyDebugUtilsMessengerEXT");
        if (destroy)
            destroy(b->device->instance, b->device->messenger, NULL);
    }
    if (b->device->instance && b->f.DestroyInstance)
        b->f.DestroyInstance(b->device->instance, NULL);
}

/* --- choosing a device ------------------------------------------------------------------------ */

/* Finds a queue family that supports compute. False: the device has none. */
static bool find_family(const vk_functions *f, VkPhysicalDevice d, uint32_t *family,
                        uint32_t *clock_bits) {
    VkQueueFamilyProperties of[32];
    uint32_t n = sizeof of / sizeof *of;
    f->GetPhysicalDeviceQueueFamilyProperties(d, &n, of);
    for (uint32_t i = 0; i < n; i++)
        if (of[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            *family = i;
            *clock_bits = of[i].timestampValidBits;
            return true;
        }
    return false;
}

static VkPhysicalDeviceProperties properties_of(const vk_functions *f, VkPhysicalDevice d) {
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    f->GetPhysicalDeviceProperties2(d, &p);
    return p.properties;
}

static bool is_usable(const vk_functions *f, VkPhysicalDevice d) {
    uint32_t family, clock_bits;
    return find_family(f, d, &family, &clock_bits) &&
           properties_of(f, d).apiVersion >= VK_API_VERSION_1_1;
}

/* Moves the usable devices to the front, devices with their own memory first, else in the
 * drivers' order. Returns their number. */
static uint32_t sort_devices(const vk_functions *f, VkPhysicalDevice *d, uint32_t n) {
    static const VkPhysicalDeviceType order[] = {
        VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, VK_PHYSICAL_DEVICE_TYPE_OTHER,
        VK_PHYSICAL_DEVICE_TYPE_CPU};
    VkPhysicalDevice sorted[64];
    uint32_t kept = 0;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (uint32_t i = 0; i < n; i++)
            if (is_usable(f, d[i]) && properties_of(f, d[i]).deviceType == order[k])
                sorted[kept++] = d[i];
    memcpy(d, sorted, kept * sizeof *d);
    return kept;
}

static ggl_status choose_device(vk_backend *b, int number, ggl_error *err) {
    VkPhysicalDevice found[64];
    uint32_t n = sizeof found / sizeof *found;
    VkResult r = b->f.EnumeratePhysicalDevices(b->device->instance, &n, found);
    if (r < VK_SUCCESS)
        return ggl_fail(err, GGL_UNSUPPORTED, "no Vulkan device (vkEnumeratePhysicalDevices: %d)",
                        (int)r);
    n = sort_devices(&b->f, found, n);
    if (n == 0)
        return ggl_fail(err, GGL_UNSUPPORTED, "no Vulkan device that computes and has Vulkan 1.1");
    if (number < 0 || (uint32_t)number >= n)
        return n == 1 ? ggl_fail(err, GGL_NOT_FOUND,
                                 "there is only 1 Vulkan device, and no device %d: %s", number,
                                 properties_of(&b->f, found[0]).deviceName)
                      : ggl_fail(err, GGL_NOT_FOUND,
                                 "there are %u Vulkan devices, and no device %d", n, number);
    b->device->physical = found[number];
    if (!find_family(&b->f, found[number], &b->device->family, &b->device->clock_bits))
        return ggl_fail(err, GGL_UNSUPPORTED, "the Vulkan device has no queue that computes");
    return GGL_OK;
}

/* --- features and limits ---------------------------------------------------------------------- */

/* Structures for queries. Those that the device knows are chained. */
typedef struct answers {
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDevice8BitStorageFeatures storage8;
    VkPhysicalDeviceShaderIntegerDotProductFeatures idot;
    VkPhysicalDeviceProperties2 properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    VkPhysicalDeviceMaintenance4Properties maintenance4;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT import;
    VkPhysicalDeviceShaderIntegerDotProductProperties idot_speed;
} answers;

/* Extensions that are used if available. */
enum {
    EXT_STORAGE8,
    EXT_IDOT,
    EXT_DRIVER,
    EXT_BUFFER_SIZE,
    EXT_EXTERNAL,
    EXT_IMPORT,
    EXT_BUDGET,
    N_EXT
};
static const char *const extension[N_EXT] = {
    [EXT_STORAGE8] = VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
    [EXT_IDOT] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    [EXT_DRIVER] = VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME,
    [EXT_BUFFER_SIZE] = VK_KHR_MAINTENANCE_4_EXTENSION_NAME,
    [EXT_EXTERNAL] = VK_KHR_EXTERNAL_MEMORY_EXTENSION_NAME,
    [EXT_IMPORT] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    [EXT_BUDGET] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
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

/* Queries the device's features and properties. */
static void ask(const vk_backend *b, const bool *has, answers *a) {
    void *features = NULL, *properties = NULL;
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
    a->properties = (VkPhysicalDeviceProperties2){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = properties};
    b->f.GetPhysicalDeviceProperties2(b->device->physical, &a->properties);
}

#define FEATURE(name)                                                                              \
    { #name, offsetof(vk_features, name) }
static const struct {
    const char *name;
    size_t at; /* offset in vk_features */
} feature[] = {
    FEATURE(import),   FEATURE(subgroup), FEATURE(idot),   FEATURE(storage16),
    FEATURE(storage8), FEATURE(map),      FEATURE(budget), FEATURE(range),
};
#undef FEATURE
enum {
    N_FEATURE = sizeof feature / sizeof *feature,
    /* Features of the device, shown in its description; the others are ours. */
    N_DESCRIBED = 5
};

const char *ggl_vulkan_mask_name(int k);
const char *ggl_vulkan_mask_name(int k) {
    return k < N_FEATURE ? feature[k].name : k == N_FEATURE ? "all" : NULL;
}

static bool *feature_at(vk_features *f, int i) {
    return (bool *)((char *)f + feature[i].at);
}

/* True if a list of names, or "all", contains the name; list may be NULL. */
static bool is_in(const char *list, const char *name) {
    while (list && *list) {
        size_t n = strcspn(list, ", ");
        if ((n == 3 && memcmp(list, "all", n) == 0) ||
            (strlen(name) == n && memcmp(name, list, n) == 0))
            return true;
        list += n + (list[n] != 0);
    }
    return false;
}

/* Disables the features that a mask names. Ignores other names, because several backends share a
 * mask. */
static void take_away(vk_features *f, const char *mask) {
    for (int i = 0; i < N_FEATURE; i++)
        if (is_in(mask, feature[i].name))
            *feature_at(f, i) = false;
}

static void set_features(vk_backend *b, const bool *has, const answers *a, const char *mask) {
    const VkSubgroupFeatureFlags wanted =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    b->features = (vk_features){
        .storage16 = a->storage16.storageBuffer16BitAccess,
        .storage8 = a->storage8.storageBuffer8BitAccess,
        .subgroup = (a->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (a->subgroup.supportedOperations & wanted) == wanted,
        .idot = a->idot.shaderIntegerDotProduct &&
                (a->idot_speed.integerDotProduct4x8BitPackedSignedAccelerated ||
                 is_in(getenv("GGL_VULKAN_FORCE"), "idot")),
        .import = has[EXT_IMPORT] && has[EXT_EXTERNAL] && ggl_vk_shares_memory(b),
        .map = ggl_vk_shares_memory(b),
        .budget = has[EXT_BUDGET],
        .range = true,
    };
    take_away(&b->features, mask);
    take_away(&b->features, getenv("GGL_VULKAN_MASK"));
}

static size_t smaller(uint64_t a, uint64_t b) {
    uint64_t x = a < b ? a : b;
    return x < SIZE_MAX ? (size_t)x : SIZE_MAX;
}

/* the limit without the feature `range`; tests then need no large operands */
enum { SMALL_RANGE = 64 << 10 };

static void set_limits(vk_backend *b, const answers *a) {
    const VkPhysicalDeviceLimits *l = &a->properties.properties.limits;
    b->limits = (vk_limits){
        .subgroup_size = a->subgroup.subgroupSize,
        .offset_align = (uint32_t)smaller(l->minStorageBufferOffsetAlignment, 1 << 20),
        .max_range = b->features.range ? l->maxStorageBufferRange : SMALL_RANGE,
        .import_align = smaller(a->import.minImportedHostPointerAlignment, SIZE_MAX),
    };
    if (b->limits.offset_align < 4)
        b->limits.offset_align = 4;
    b->base.max_buffer = smaller(a->maintenance3.maxMemoryAllocationSize, SIZE_MAX);
    if (a->maintenance4.maxBufferSize)
        b->base.max_buffer = smaller(a->maintenance4.maxBufferSize, b->base.max_buffer);
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
        used += (size_t)snprintf(text + used, size - used, ", subgroups of %u;",
                                 b->limits.subgroup_size);
    for (int i = 0; i < N_DESCRIBED; i++) /* no partial names */
        if (*feature_at(&b->features, i) && used + strlen(feature[i].name) + 1 < size)
            used += (size_t)snprintf(text + used, size - used, " %s", feature[i].name);
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
        [EXT_STORAGE8] = f->storage8, [EXT_IDOT] = f->idot,     [EXT_EXTERNAL] = f->import,
        [EXT_IMPORT] = f->import,     [EXT_BUDGET] = f->budget,
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
    ggl_status st = open_instance(b, err);
    if (st == GGL_OK)
        st = choose_device(b, params->device, err);
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
    set_limits(b, &a);
    describe(b, &a);
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    b->f.GetPhysicalDeviceMemoryProperties2(b->device->physical, &m);
    b->device->memory = m.memoryProperties;
    size_t size;
    ggl_vk_memory_left(b, &size, &b->base.memory);
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
    close_instance(b);
    ggl_vk_unload_library(&b->f);
    ggl_free(d);
    b->device = NULL;
}

/* --- command buffers -------------------------------------------------------------------------- */

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

ggl_status ggl_vk_submit(vk_backend *b, VkCommandBuffer commands, uint64_t *number,
                         ggl_error *err) {
    vk_device *d = b->device;
    const uint64_t next = d->submitted + 1;
    ggl_status st = next > VK_IN_FLIGHT ? ggl_vk_wait_for(b, next - VK_IN_FLIGHT, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    VkFence fence = d->fence[next % VK_IN_FLIGHT];
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    VkResult r = b->f.ResetFences(d->device, 1, &fence);
    if (r == VK_SUCCESS)
        r = b->f.QueueSubmit(d->queue, 1, &info, fence);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, b->base.name);
    *number = d->submitted = next;
    return GGL_OK;
}

ggl_status ggl_vk_wait_for(vk_backend *b, uint64_t number, ggl_error *err) {
    /* A device that does not respond in STEPS * STEP seconds is an error. */
    enum { STEP = 10, STEPS = 60 };
    vk_device *d = b->device;
    if (number <= d->done)
        return GGL_OK;
    VkResult r = VK_TIMEOUT;
    for (int i = 0; i < STEPS && r == VK_TIMEOUT; i++)
        r = b->f.WaitForFences(d->device, 1, &d->fence[number % VK_IN_FLIGHT], VK_TRUE,
                               STEP * UINT64_C(1000000000));
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, b->base.name);
    d->done = number;
    return GGL_OK;
}
