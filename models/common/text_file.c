#include "text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/memory_left.h"
#include "ggl/internal/os_fs.h"

/* Opens a file for reading. Refuses devices, as they may not end. Pipes are read to their end;
 * one without a writer is opened without waiting, and found empty. NULL: *s says why. */
static FILE *open_text(const char *path, bool *pipe, ggl_status *s, ggl_error *err) {
    os_stat st;
    const int fd = ggl_os_open(path, OS_READ | OS_NO_WAIT);
    const bool known = fd >= 0 && ggl_os_stat_fd(fd, &st);
    *pipe = known && st.kind == OS_PIPE;
    const bool fits = known && (*pipe || st.kind == OS_FILE);
    const bool waits = fits && ggl_os_let_wait(fd);
    FILE *f = waits ? ggl_os_fdopen(fd, "rb") : NULL;
    if (f)
        return f;
    if (!known || fits)
        *s = ggl_fail(err, errno == ENOMEM ? GGL_NOMEM : GGL_IO, "%s: %s", path, strerror(errno));
    else
        *s = ggl_fail(err, GGL_IO, "%s: %s", path,
                      st.kind == OS_FOLDER ? "is a directory, not a file"
                                           : "is a device, not a file");
    if (fd >= 0)
        ggl_os_close(fd);
    return NULL;
}

size_t llm_most_of_stream(void) {
    const size_t left = ggl_memory_left(""), most = (size_t)1 << 31;
    return left > 0 && left < most ? left : most;
}

ggl_status llm_read_text_file(const char *path, size_t most, char **text, size_t *n,
                              ggl_error *err) {
    *text = NULL;
    *n = 0;
    bool pipe;
    ggl_status st = GGL_OK;
    FILE *f = open_text(path, &pipe, &st, err);
    if (!f)
        return st;
    size_t cap = 0, got = 1;
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
    if (st == GGL_OK && pipe && *n == 0)
        st = ggl_fail(err, GGL_IO, "%s: is a pipe that nobody writes to", path);
    if (st == GGL_OK) {
        (*text)[*n] = 0;
    } else {
        ggl_free(*text);
        *text = NULL;
    }
    return st;
}

size_t llm_read_head(const char *path, void *buf, size_t size) {
    FILE *f = ggl_os_is_file(path) ? ggl_os_fopen(path, "rb") : NULL;
    const size_t n = f ? fread(buf, 1, size, f) : 0;
    if (f)
        fclose(f);
    return n;
}

bool llm_is_lfs_pointer(const void *data, size_t n) {
    const size_t n_pointer = strlen(LLM_LFS_POINTER);
    return n >= n_pointer && memcmp(data, LLM_LFS_POINTER, n_pointer) == 0;
}
