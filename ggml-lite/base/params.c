#include "ggl/internal/params.h"

#include <string.h>

/* A struct has a member besides its size, and none is larger than this. */
enum { LEAST = 2 * sizeof(size_t), MOST = 1 << 16 };

static ggl_status check_size(size_t given, size_t size, const char *name, ggl_error *err) {
    if (given == 0)
        return ggl_fail(err, GGL_USAGE,
                        "%s.size is 0: set it to sizeof(%s), which is %zu in this version", name,
                        name, size);
    /* The size of a struct that begins with a size_t is a multiple of its alignment. Any other size
     * could end within a member, such as a pointer. */
    if (given < LEAST || given > MOST || given % _Alignof(size_t) != 0)
        return ggl_fail(err, GGL_USAGE,
                        "%s.size is %zu: set it to sizeof(%s), which is %zu in this version", name,
                        given, name, size);
    return GGL_OK;
}

ggl_status ggl_params_read(void *to, size_t size, const void *from, const char *name,
                           ggl_error *err) {
    size_t given = size;
    if (from) {
        memcpy(&given, from, sizeof given);
        const ggl_status st = check_size(given, size, name, err);
        if (st != GGL_OK)
            return st;
        for (size_t i = size; i < given; i++)
            if (((const unsigned char *)from)[i])
                return ggl_fail(err, GGL_UNSUPPORTED,
                                "%s has %zu bytes in the program and %zu in this library, which is "
                                "older: the member at byte %zu is not 0, and not known here",
                                name, given, size, i);
        memcpy(to, from, given < size ? given : size);
    }
    memcpy(to, &size, sizeof size);
    return GGL_OK;
}

ggl_status ggl_params_write(void *to, const void *from, size_t size, const char *name,
                            ggl_error *err) {
    size_t given;
    memcpy(&given, to, sizeof given);
    const ggl_status st = check_size(given, size, name, err);
    if (st != GGL_OK)
        return st;
    memset(to, 0, given);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &given, sizeof given);
    return GGL_OK;
}

void ggl_params_fill(void *to, size_t given, const void *defaults, size_t size) {
    memset(to, 0, given);
    memcpy(to, defaults, given < size ? given : size);
    memcpy(to, &given, sizeof given);
}
