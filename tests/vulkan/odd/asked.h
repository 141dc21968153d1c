/* How a test finds what the backend has asked the imitated library for. */
#ifndef ODD_ASKED_H
#define ODD_ASKED_H

#include <dlfcn.h>
#include <string.h>

#include "odd.h"

/* Returns NULL if the backend has loaded another library. */
static inline const odd_asked *odd_find_asked(void) {
    odd_asked_fn *fn = NULL;
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD),
         *at = library ? dlsym(library, ODD_ASKED) : NULL;
    memcpy(&fn, &at, sizeof fn);
    return fn ? fn() : NULL;
}

#endif
