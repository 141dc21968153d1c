#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "odd_impl.h"

#define PUBLIC             __attribute__((visibility("default")))
#define PORTABILITY_SUBSET "VK_KHR_portability_subset"

odd_asked odd_all_asked;
odd_functions odd_real;
static bool lists_portability; /* the instance asked for devices that leave out parts */
static VkPhysicalDeviceMemoryProperties real_memory;

PUBLIC odd_asked_fn odd_vulkan_asked;
const odd_asked *odd_vulkan_asked(void) {
    return &odd_all_asked;
}

bool odd_is(const char *word) {
    const char *list = getenv("ODD_VULKAN");
    const size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

/* Copies up to *n of the `have` properties to out, and sets *n; out NULL: only sets it. */
static VkResult give(const VkExtensionProperties *from, uint32_t have, uint32_t *n,
                     VkExtensionProperties *out) {
    if (!out) {
        *n = have;
        return VK_SUCCESS;
    }
    *n = *n < have ? *n : have;
    memcpy(out, from, *n * sizeof *out);
    return VK_SUCCESS;
}

/* --- the instance ----------------------------------------------------------------------------- */

/* A name of NULL stands for the instance itself; layers' own extensions are passed on. */
static VkResult instance_extensions(const char *layer, uint32_t *n, VkExtensionProperties *out) {
    VkExtensionProperties all[256];
    uint32_t have = sizeof all / sizeof *all - 1;
    if (layer || !odd_is("portability"))
        return odd_real.EnumerateInstanceExtensionProperties(layer, n, out);
    const VkResult r = odd_real.EnumerateInstanceExtensionProperties(NULL, &have, all);
    bool listed = false;
    for (uint32_t i = 0; r >= VK_SUCCESS && i < have; i++)
        listed |= !strcmp(all[i].extensionName, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    if (r >= VK_SUCCESS && !listed)
        all[have++] = (VkExtensionProperties){.extensionName = "VK_KHR_portability_enumeration"};
    return r >= VK_SUCCESS ? give(all, have, n, out) : r;
}

static VkResult create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a,
                                VkInstance *out) {
    VkInstanceCreateInfo copy = *info;
    const char *names[16];
    uint32_t n = 0;
    bool enabled = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount && n < 16; i++) {
        const char *name = info->ppEnabledExtensionNames[i];
        const bool ours = !strcmp(name, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
        enabled |= ours;
        if (!ours)
            names[n++] = name;
    }
    lists_portability = enabled && (info->flags & VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR);
    copy.flags = 0;
    copy.enabledExtensionCount = n;
    copy.ppEnabledExtensionNames = names;
    return odd_real.CreateInstance(&copy, a, out);
}

static VkResult devices(VkInstance instance, uint32_t *n, VkPhysicalDevice *out) {
    if (odd_is("portability") && !lists_portability) {
        *n = 0;
        return VK_SUCCESS;
    }
    return odd_real.EnumeratePhysicalDevices(instance, n, out);
}

/* --- the device's properties ------------------------------------------------------------------ */

static VkResult device_extensions(VkPhysicalDevice d, const char *layer, uint32_t *n,
                                  VkExtensionProperties *out) {
    static VkExtensionProperties all[1024];
    uint32_t have = sizeof all / sizeof *all - 1;
    if (layer || !(odd_is("portability") || odd_is("matrix")))
        return odd_real.EnumerateDeviceExtensionProperties(d, layer, n, out);
    const VkResult r = odd_real.EnumerateDeviceExtensionProperties(d, NULL, &have, all);
    all[have] = (VkExtensionProperties){.extensionName = PORTABILITY_SUBSET};
    if (odd_is("matrix"))
        strcpy(all[have].extensionName, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    have++;
    return r >= VK_SUCCESS ? give(all, have, n, out) : r;
}

static void properties(VkPhysicalDevice d, VkPhysicalDeviceProperties2 *p) {
    odd_real.GetPhysicalDeviceProperties2(d, p);
    if (odd_is("bindings"))
        p->properties.limits.maxPerStageDescriptorStorageBuffers = 4;
    if (odd_is("some_bindings"))
        p->properties.limits.maxDescriptorSetStorageBuffers = 13;
    if (odd_is("uncached"))
        p->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    if (odd_is("matrix"))
        odd_matrix_properties(p);
}

static void features(VkPhysicalDevice d, VkPhysicalDeviceFeatures2 *f) {
    odd_real.GetPhysicalDeviceFeatures2(d, f);
    if (odd_is("matrix"))
        odd_matrix_features(f);
}

static void memory(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties2 *m) {
    odd_real.GetPhysicalDeviceMemoryProperties2(d, m);
    real_memory = m->memoryProperties;
    if (!odd_is("uncached"))
        return;
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    m->memoryProperties.memoryTypeCount = 2;
    m->memoryProperties.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | seen;
    m->memoryProperties.memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_HOST_CACHED_BIT | seen;
    m->memoryProperties.memoryTypes[1].heapIndex = 0;
    if (!odd_is("coherent"))
        return;
    m->memoryProperties.memoryTypeCount = 3;
    m->memoryProperties.memoryTypes[2] = m->memoryProperties.memoryTypes[1];
    m->memoryProperties.memoryTypes[1].propertyFlags |= VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
}

static void families(VkPhysicalDevice d, uint32_t *n, VkQueueFamilyProperties *out) {
    VkQueueFamilyProperties one[1];
    uint32_t have = 1;
    if (!odd_is("families")) {
        odd_real.GetPhysicalDeviceQueueFamilyProperties(d, n, out);
        return;
    }
    odd_real.GetPhysicalDeviceQueueFamilyProperties(d, &have, one);
    if (out) {
        out[0] = out[1] = one[0];
        out[0].queueFlags = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
        out[1].queueFlags = VK_QUEUE_COMPUTE_BIT;
    }
    *n = 2;
}

/* --- the device ------------------------------------------------------------------------------- */

static VkResult create_device(VkPhysicalDevice d, const VkDeviceCreateInfo *info,
                              const VkAllocationCallbacks *a, VkDevice *out) {
    VkDeviceCreateInfo copy = *info;
    VkDeviceQueueCreateInfo queue = info->pQueueCreateInfos[0];
    const char *names[32];
    uint32_t n = 0;
    bool subset = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount && n < 32; i++) {
        const bool ours = !strcmp(info->ppEnabledExtensionNames[i], PORTABILITY_SUBSET);
        subset |= ours;
        if (!ours)
            names[n++] = info->ppEnabledExtensionNames[i];
    }
    if (odd_is("portability") && !subset)
        return VK_ERROR_INITIALIZATION_FAILED;
    odd_all_asked.family = queue.queueFamilyIndex;
    queue.queueFamilyIndex = odd_is("families") ? 0 : queue.queueFamilyIndex;
    copy.pQueueCreateInfos = &queue;
    copy.enabledExtensionCount = n;
    copy.ppEnabledExtensionNames = names;
    return odd_real.CreateDevice(d, &copy, a, out);
}

static void get_queue(VkDevice d, uint32_t family, uint32_t k, VkQueue *out) {
    odd_real.GetDeviceQueue(d, odd_is("families") ? 0 : family, k, out);
}

static VkResult create_pool(VkDevice d, const VkCommandPoolCreateInfo *info,
                            const VkAllocationCallbacks *a, VkCommandPool *out) {
    VkCommandPoolCreateInfo copy = *info;
    copy.queueFamilyIndex = odd_is("families") ? 0 : copy.queueFamilyIndex;
    return odd_real.CreateCommandPool(d, &copy, a, out);
}

static void requirements(VkDevice d, VkBuffer b, VkMemoryRequirements *r) {
    odd_real.GetBufferMemoryRequirements(d, b, r);
    r->memoryTypeBits = odd_is("no_memory")  ? 0
                        : odd_is("coherent") ? 7
                        : odd_is("uncached") ? 3
                                             : r->memoryTypeBits;
}

static VkResult create_buffer(VkDevice d, const VkBufferCreateInfo *info,
                              const VkAllocationCallbacks *a, VkBuffer *out) {
    const VkResult r = odd_real.CreateBuffer(d, info, a, out);
    odd_all_asked.n_buffers += r == VK_SUCCESS;
    return r;
}

static void destroy_buffer(VkDevice d, VkBuffer b, const VkAllocationCallbacks *a) {
    odd_all_asked.n_buffers--;
    odd_real.DestroyBuffer(d, b, a);
}

/* Returns the first kind of the machine's memory that the host sees, which stands for all kinds that "uncached" lists. */
static uint32_t seen_memory(void) {
    uint32_t i = 0;
    while (i + 1 < real_memory.memoryTypeCount &&
           !(real_memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
        i++;
    return i;
}

static VkResult allocate(VkDevice d, const VkMemoryAllocateInfo *info,
                         const VkAllocationCallbacks *a, VkDeviceMemory *out) {
    VkMemoryAllocateInfo copy = *info;
    if (odd_is("full") && (info->memoryTypeIndex == 0 || !odd_is("uncached"))) {
        odd_all_asked.n_refused++;
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    odd_all_asked.memory_type = info->memoryTypeIndex;
    copy.memoryTypeIndex = odd_is("uncached") ? seen_memory() : copy.memoryTypeIndex;
    return odd_real.AllocateMemory(d, &copy, a, out);
}

static VkResult submit(VkQueue q, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
    return odd_is("no_submit") ? VK_ERROR_OUT_OF_HOST_MEMORY
                               : odd_real.QueueSubmit(q, n, info, fence);
}

/* --- looking up ------------------------------------------------------------------------------- */

static PFN_vkVoidFunction find_of_device(VkDevice d, const char *name);

static const odd_wrapped wrapped[] = {
    WRAP(EnumerateInstanceExtensionProperties, instance_extensions)
        WRAP(CreateInstance, create_instance) WRAP(EnumeratePhysicalDevices, devices)
            WRAP(EnumerateDeviceExtensionProperties, device_extensions)
                WRAP(GetPhysicalDeviceProperties2, properties)
                    WRAP(GetPhysicalDeviceFeatures2, features)
                        WRAP(GetPhysicalDeviceMemoryProperties2, memory)
                            WRAP(GetPhysicalDeviceQueueFamilyProperties, families)
                                WRAP(CreateDevice, create_device) WRAP(GetDeviceQueue, get_queue)
                                    WRAP(CreateCommandPool, create_pool)
                                        WRAP(GetBufferMemoryRequirements, requirements)
                                            WRAP(AllocateMemory, allocate) WRAP(QueueSubmit, submit)
                                                WRAP(CreateBuffer, create_buffer)
                                                    WRAP(DestroyBuffer, destroy_buffer)
                                                        WRAP(GetDeviceProcAddr, find_of_device)};

/* Keeps the machine's function where the wrapper finds it. */
static void keep(const char *name, PFN_vkVoidFunction f) {
#define FUNCTION(level, result, it, parameters)                                                    \
    if (!strcmp(name, "vk" #it))                                                                   \
        memcpy(&odd_real.it, &f, sizeof f);
#include "functions.def"
#undef FUNCTION
}

static PFN_vkVoidFunction find_in(const odd_wrapped *w, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, w[i].name))
            return w[i].ours;
    return NULL;
}

/* Returns our function of that name, or the machine's, f. */
static PFN_vkVoidFunction choose(const char *name, PFN_vkVoidFunction f) {
    PFN_vkVoidFunction ours = odd_is("matrix") ? odd_matrix_function(name) : NULL;
    if (ours)
        return ours;
    if (f && odd_is("null"))
        ours = find_in(odd_null, odd_n_null, name);
    if (f && !ours)
        ours = find_in(wrapped, sizeof wrapped / sizeof *wrapped, name);
    if (ours)
        keep(name, f);
    return ours ? ours : f;
}

static PFN_vkVoidFunction find_of_device(VkDevice d, const char *name) {
    return choose(name, odd_real.GetDeviceProcAddr(d, name));
}

PUBLIC PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name);
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name) {
    if (!odd_real.GetInstanceProcAddr) {
        void *library = dlopen(REAL_VULKAN, RTLD_NOW | RTLD_LOCAL);
        void *entry = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        memcpy(&odd_real.GetInstanceProcAddr, &entry, sizeof entry);
    }
    return odd_real.GetInstanceProcAddr ? choose(name, odd_real.GetInstanceProcAddr(instance, name))
                                        : NULL;
}
