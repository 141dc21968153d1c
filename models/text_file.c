#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"

/* A pipe that nobody writes to would block, and a device may never end: both are refused, as a model's file is. */
static FILE *open_regular(const char *path, ggl_error *err) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool known = fd >= 0 && fstat(fd, &st) == 0, regular = known && S_ISREG(st.st_mode);
    FILE *f = regular ? fdopen(fd, "rb") : NULL;
    if (f)
        return f;
    if (!known || regular)
        ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
    else
        ggl_fail(err, GGL_IO, "%s: %s", path,
                 S_ISDIR(st.st_mode) ? "is a directory, not a file"
                                     : "is no regular file (a device or a pipe)");
    if (fd >= 0)
        close(fd);
    return NULL;
}

ggl_status llm_read_text_file(const char *path, size_t most, char **text, size_t *n,
                              ggl_error *err) {
    *text = NULL;
    *n = 0;
    FILE *f = open_regular(path, err);
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
    if (st == GGL_OK) {
        (*text)[*n] = 0;
    } else {
        ggl_free(*text);
        *text = NULL;
    }
    return st;
}
