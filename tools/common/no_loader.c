/* The dynamic loader of programs that are linked statically: it loads nothing, and says so. glibc's own would need the shared
 * libraries of the very version that was linked. Callers print dlerror(). */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode) {
    (void)file, (void)mode;
    return NULL;
}

void *dlsym(void *object, const char *name) {
    (void)object, (void)name;
    return NULL;
}

int dlclose(void *object) {
    (void)object;
    return 0;
}

char *dlerror(void) {
    static char text[] = "this program is linked statically and loads no shared libraries";
    return text;
}

int dladdr(const void *address, Dl_info *of) {
    (void)address;
    *of = (Dl_info){0};
    return 0;
}
