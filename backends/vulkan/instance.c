/* The instance, and the choice of a device. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "ggl/alloc.h"
#include "settings.h"

static const char VALIDATION[] = "VK_LAYER_KHRONOS_validation";

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

/* Sets *found if the loader has the extension. */
static ggl_status find_extension(const vk_functions *f, const char *name, bool *found,
                                 ggl_error *err) {
    uint32_t n = 0;
    *found = false;
    if (f->EnumerateInstanceExtensionProperties(NULL, &n, NULL) != VK_SUCCESS || n == 0)
        return GGL_OK;
    VkExtensionProperties *e = ggl_calloc(n, sizeof *e);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    if (f->EnumerateInstanceExtensionProperties(NULL, &n, e) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            *found |= strcmp(e[i].extensionName, name) == 0;
    ggl_free(e);
    return GGL_OK;
}

/* Devices that leave out parts of Vulkan, such as those of MoltenVK on macOS, are listed only if
 * an application asks for them. Nothing that they may leave out is used here. */
static ggl_status create_instance(vk_backend *b, bool validate, ggl_error *err) {
    static const VkValidationFeatureEnableEXT synchronization[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    static const char *const layers[] = {VALIDATION};
    const char *extensions[3];
    uint32_t n = 0;
    bool partial;
    ggl_status st =
        find_extension(&b->f, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME, &partial, err);
    if (st != GGL_OK)
        return st;
    if (partial)
        extensions[n++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    if (validate) {
        extensions[n++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        extensions[n++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
    }
    VkDebugUtilsMessengerCreateInfoEXT messenger = ggl_vk_messenger;
    const VkValidationFeaturesEXT more = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                          .pNext = &messenger,
                                          .enabledValidationFeatureCount = 1,
                                          .pEnabledValidationFeatures = synchronization};
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pApplicationName = "ggml-lite",
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validate ? &more : NULL,
        .flags = partial ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &app,
        .enabledLayerCount = validate,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = n,
        .ppEnabledExtensionNames = extensions};
    VkResult r = b->f.CreateInstance(&info, NULL, &b->device->instance);
    if (r != VK_SUCCESS)
        return ggl_fail(err, GGL_UNSUPPORTED, "no Vulkan driver (vkCreateInstance: %d)", (int)r);
    return ggl_vk_load_instance(&b->f, b->device->instance, err);
}

ggl_status ggl_vk_instance_open(vk_backend *b, ggl_error *err) {
    bool validate = ggl_vk_validates();
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

/* The first instance is kept until the process ends, and the drivers with it: the library unloads them with the last one, and
 * NVIDIA's can be loaded only some 30 times in a process. True if this is the one. */
static bool keep_instance(const vk_device *d) {
    static _Atomic(VkInstance) kept;
    VkInstance none = NULL;
    return !d->messenger && atomic_compare_exchange_strong(&kept, &none, d->instance);
}

void ggl_vk_instance_close(vk_backend *b) {
    if (b->device->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy =
            (PFN_vkDestroyDebugUtilsMessengerEXT)b->f.GetInstanceProcAddr(
                b->device->instance, "vkDestroyDebugUtilsMessengerEXT");
        if (destroy)
            destroy(b->device->instance, b->device->messenger, NULL);
    }
    if (b->device->instance && b->f.DestroyInstance && !keep_instance(b->device))
        b->f.DestroyInstance(b->device->instance, NULL);
}

/* --- choosing a device ------------------------------------------------------------------------ */

/* Finds a queue family that computes; one without graphics is preferred, because a desktop that uses
 * the other one would wait for this backend, and a reset of its queue would end both. False: the
 * device has none. */
static bool find_family(const vk_functions *f, VkPhysicalDevice d, uint32_t *family,
                        uint32_t *clock_bits) {
    VkQueueFamilyProperties of[32];
    uint32_t n = sizeof of / sizeof *of;
    bool found = false;
    f->GetPhysicalDeviceQueueFamilyProperties(d, &n, of);
    for (uint32_t i = 0; i < n; i++) {
        const bool draws = of[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
        if (!(of[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || (found && draws))
            continue;
        *family = i;
        *clock_bits = of[i].timestampValidBits;
        found = true;
        if (!draws)
            break;
    }
    return found;
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

ggl_status ggl_vk_choose_device(vk_backend *b, int number, ggl_error *err) {
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
