#include "text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"

ggl_status llm_read_text_file(const char *path, size_t most, char **text, size_t *n,
                              ggl_error *err) {
    *text = NULL;
    *n = 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        return ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
    size_t cap = 0, got = 1;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && got > 0) {
        if (*n > most) {
            st = ggl_fail(err, GGL_LIMIT, "%s: longer than %zu bytes", path, most);
        } else if (!ggl_grow(text, &cap, *n + 65537, 1)) {
            st = ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
        } else {
            errno = 0;
            got = fread(*text + *n, 1, 65536, f);
            *n += got;
            if (got == 0 && ferror(f))
                st = ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
        }
    }
    fclose(f);
    if (st == GGL_OK) {
        (*text)[*n] = 0;
    } else {
        ggl_free(*text);
        *text = NULL;
    }
    return st;
}
