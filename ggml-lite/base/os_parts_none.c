/* os_parts.h for systems that cannot exchange parts of a mapped file: nothing can be claimed. */
#include "os_parts.h"

#include "ggl/internal/os_fs.h"

/* A mapping keeps its file, so the descriptor is not needed any more. */
bool ggl_os_parts_add(const void *data, size_t size, int fd) {
    (void)data, (void)size;
    ggl_os_close(fd);
    return true;
}

void ggl_os_parts_remove(const void *data) {
    (void)data;
}

void ggl_os_parts_drop(void *pages, size_t size) {
    (void)pages, (void)size;
}

os_parts *ggl_os_parts_claim(const void *data) {
    (void)data;
    return NULL;
}

void ggl_os_parts_release(os_parts *f) {
    (void)f;
}

bool ggl_os_part_fill(os_parts *f, const void *at, size_t size) {
    (void)f, (void)at, (void)size;
    return false;
}

void ggl_os_part_empty(os_parts *f, const void *at, size_t size) {
    (void)f, (void)at, (void)size;
}

void ggl_os_parts_alone(const void *at, size_t size, bool alone) {
    (void)at, (void)size, (void)alone;
}
