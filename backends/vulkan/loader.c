#include "loader.h"

#include <string.h>

#include "ggl/internal/os_library.h"

enum { GLOBAL, INSTANCE, DEVICE, OPTIONAL };

static const struct {
    int level;
    const char *name;
    size_t at; /* offset in vk_functions */
} function[] = {
#define FUNCTION(level, result, name, parameters) {level, "vk" #name, offsetof(vk_functions, name)},
#include "functions.def"
#undef FUNCTION
};
enum { N_FUNCTION = sizeof function / sizeof *function };

/* Looks up a function by name, in an instance or device `of`. */
typedef PFN_vkVoidFunction lookup(const vk_functions *f, const void *of, const char *name);

static PFN_vkVoidFunction of_instance(const vk_functions *f, const void *of, const char *name) {
    VkInstance instance = (VkInstance)(uintptr_t)of;
    return f->GetInstanceProcAddr(instance, name);
}

static PFN_vkVoidFunction of_device(const vk_functions *f, const void *of, const char *name) {
    VkDevice device = (VkDevice)(uintptr_t)of;
    return f->GetDeviceProcAddr(device, name);
}

static ggl_status load_level(vk_functions *f, int level, lookup *find, const void *of,
                             ggl_error *err) {
    for (int i = 0; i < N_FUNCTION; i++) {
        if (function[i].level != level)
            continue;
        PFN_vkVoidFunction found = find(f, of, function[i].name);
        if (!found && level != OPTIONAL)
            return ggl_fail(err, GGL_UNSUPPORTED, "the Vulkan driver has no %s", function[i].name);
        memcpy((char *)f + function[i].at, &found, sizeof found);
    }
    return GGL_OK;
}

/* The names of Vulkan's library. macOS has no Vulkan of its own: its loader, or MoltenVK alone, is in
 * the folders of the SDK or of Homebrew, which the system does not search. */
static const char *const library[] = {
#ifdef __APPLE__
    "libvulkan.1.dylib",
    "libMoltenVK.dylib",
    "/usr/local/lib/libvulkan.1.dylib",
    "/usr/local/lib/libMoltenVK.dylib",
    "/opt/homebrew/lib/libvulkan.1.dylib",
    "/opt/homebrew/lib/libMoltenVK.dylib",
#elif defined _WIN32
    "vulkan-1.dll",
#else
    "libvulkan.so.1",
#endif
};

ggl_status ggl_vk_load_library(vk_functions *f, ggl_error *err) {
    const char *why = NULL;
    for (size_t i = 0; i < sizeof library / sizeof *library && !f->library; i++) {
        /* It stays loaded when the backend is closed, as an instance of it is kept (instance.c). */
        f->library = ggl_os_library_open_for_ever(library[i]);
        const char *reason = f->library ? NULL : ggl_os_library_error();
        why = why ? why : reason; /* of the first name: the one that is expected */
    }
    if (!f->library)
        return ggl_fail(err, GGL_UNSUPPORTED, "no Vulkan library: %s",
                        why ? why : "it cannot be opened");
    void *entry = ggl_os_library_find(f->library, "vkGetInstanceProcAddr");
    if (!entry)
        return ggl_fail(err, GGL_UNSUPPORTED, "the Vulkan library has no vkGetInstanceProcAddr");
    memcpy(&f->GetInstanceProcAddr, &entry, sizeof entry);
    return load_level(f, GLOBAL, of_instance, NULL, err);
}

ggl_status ggl_vk_load_instance(vk_functions *f, VkInstance instance, ggl_error *err) {
    return load_level(f, INSTANCE, of_instance, instance, err);
}

ggl_status ggl_vk_load_device(vk_functions *f, VkDevice device, ggl_error *err) {
    ggl_status st = load_level(f, DEVICE, of_device, device, err);
    return st == GGL_OK ? load_level(f, OPTIONAL, of_device, device, err) : st;
}

void ggl_vk_unload_library(vk_functions *f) {
    if (f->library)
        ggl_os_library_close(f->library);
    f->library = NULL;
}
