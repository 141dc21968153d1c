/* Shared by the tests of the Vulkan backend. They are skipped on a machine without a driver. */
#ifndef VULKAN_TEST_H
#define VULKAN_TEST_H

#include <dlfcn.h>

#include "ggl/backends.h"
#include "seed.h"
#include "test.h"

/* A case runs every so many-th of its variants: every fourth under a sanitizer, which looks at the host's code, the same for all
 * types; else as GGL_VULKAN_EACH says, for tests that repeat what another one runs; else all of them. */
static inline int vulkan_each(void) {
    const char *each = getenv("GGL_VULKAN_EACH");
    return TEST_ASAN ? 4 : each && atoi(each) > 0 ? atoi(each) : 1;
}

/* The first of the variants 0, step, 2 step, ..: another one each day, so that all have their turn. */
static inline int vulkan_first(int step) {
    return vulkan_each() > 1 ? step * (int)sample_turn((uint64_t)vulkan_each()) : 0;
}

#if TEST_ASAN
/* Drivers and layers leak memory. The loader unloads them, and then leak reports cannot name them;
 * so they are kept loaded. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libvulkan_lvp\nleak:libVkLayer\nleak:libvulkan.so\nleak:libLLVM\n";
}

__attribute__((constructor)) static void keep_libraries(void) {
    static const char *const name[] = {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        (void)dlopen(name[i], RTLD_LAZY | RTLD_NODELETE);
}
#endif

/* True if backends/vulkan/ops.def says that the operator is refused. */
static inline bool vulkan_refuses(ggl_op op) {
    static const bool refused[GGL_OP_COUNT + 1] = {
        [GGL_OP_COUNT] = true, /* C has no empty arrays */
#define REFUSED(ID) [GGL_OP_##ID] = true,
#include "../../backends/vulkan/ops.def"
    };
    return refused[op];
}

/* True if weights can have the type: shaders decode neither f8_e4m3 nor the types of forks, and products with them are refused. */
static inline bool vulkan_decodes(ggl_type type) {
    static const bool not_decoded[GGL_TYPE_LIMIT] = {
        [GGL_F8_E4M3] = true,
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)
#define QUANT_READ(id, NAME, name, block, size, form, text)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text) [id] = true,
#include "ggl/types.def"
    };
    return !not_decoded[type];
}

/* NULL: a failure was reported, or there is no device and the case is skipped. */
TEST_UNUSED static ggl_backend *vulkan_open(const char *mask) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    const ggl_backend_params params = {.size = sizeof params, .mask = mask};
    setenv("GGL_VULKAN_CACHE", "off", 0); /* no cache file is written */
    ggl_status st = ggl_backend_open(&b, "vulkan", &params, &err);
    if (st == GGL_UNSUPPORTED) {
        printf("skipped: %s\n", err.msg);
        test_skipped = true;
    } else {
        CHECK_OK(st, &err);
    }
    return b;
}

#endif
