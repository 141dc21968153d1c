/* os_library.h for systems without shared libraries. */
#include "ggl/internal/os_library.h"

bool ggl_os_library_is_name(const char *name) {
    (void)name;
    return false;
}

void *ggl_os_library_open(const char *path) {
    (void)path;
    return NULL;
}

void *ggl_os_library_open_for_ever(const char *path) {
    return ggl_os_library_open(path);
}

void *ggl_os_library_find(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}

void ggl_os_library_close(void *library) {
    (void)library;
}

const char *ggl_os_library_error(void) {
    return "this system has no shared libraries";
}

bool ggl_os_library_of(const void *address, char *out, size_t size) {
    (void)address, (void)size;
    out[0] = '\0';
    return false;
}
