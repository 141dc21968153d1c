#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/internal/alloc.h"

/* Opens a file for reading. Refuses devices, as they may not end. Pipes are read to their end;
 * one without a writer is opened without waiting, and found empty. */
static FILE *open_text(const char *path, bool *pipe, ggl_error *err) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool known = fd >= 0 && fstat(fd, &st) == 0;
    *pipe = known && S_ISFIFO(st.st_mode);
    const bool fits = known && (*pipe || S_ISREG(st.st_mode));
    const bool waits = fits && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0;
    FILE *f = waits ? fdopen(fd, "rb") : NULL;
    if (f)
        return f;
    if (!known || fits)
        ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
    else
        ggl_fail(err, GGL_IO, "%s: %s", path,
                 S_ISDIR(st.st_mode) ? "is a directory, not a file" : "is a device, not a file");
    if (fd >= 0)
        close(fd);
    return NULL;
}

ggl_status llm_read_text_file(const char *path, size_t most, char **text, size_t *n,
                              ggl_error *err) {
    *text = NULL;
    *n = 0;
    bool pipe;
    FILE *f = open_text(path, &pipe, err);
    if (!f)
        return GGL_IO;
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
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    const size_t n = f ? fread(buf, 1, size, f) : 0;
    if (f)
        fclose(f);
    return n;
}

bool llm_is_lfs_pointer(const void *data, size_t n) {
    const size_t n_pointer = strlen(LLM_LFS_POINTER);
    return n >= n_pointer && memcmp(data, LLM_LFS_POINTER, n_pointer) == 0;
}
