/* os_library.h for POSIX. */
#include "ggl/internal/os_library.h"
#include "ggl/internal/text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ggl_os_library_is_name(const char *name) {
#ifdef __APPLE__
    if (ggl_ends_with(name, ".dylib"))
        return true;
#endif
    return ggl_ends_with(name, ".so") && strcmp(name, ".so") != 0;
}

void *ggl_os_library_open(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *ggl_os_library_open_for_ever(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

void *ggl_os_library_find(void *library, const char *name) {
    return dlsym(library, name);
}

void ggl_os_library_close(void *library) {
    dlclose(library);
}

const char *ggl_os_library_error(void) {
    return dlerror();
}

bool ggl_os_library_of(const void *address, char *out, size_t size) {
    Dl_info info;
    char *path = dladdr(address, &info) && info.dli_fname ? realpath(info.dli_fname, NULL) : NULL;
    const bool found = path && snprintf(out, size, "%s", path) < (int)size;
    free(path);
    if (!found)
        out[0] = '\0';
    return found;
}
