/* What the tests of the Vulkan backend share. A machine without a driver skips them. */
#ifndef VULKAN_TEST_H
#define VULKAN_TEST_H

#include "ggl/backends.h"
#include "test.h"

/* NULL: told, or there is no device and the case is skipped. */
TEST_UNUSED static ggl_backend *vulkan_open(const char *mask) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    const ggl_backend_params params = {.mask = mask};
    setenv("GGL_VULKAN_CACHE", "", 0); /* nothing is left behind */
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
