#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "picture.h"

typedef struct bytes {
    unsigned char *data;
    size_t n, room;
} bytes;

/* Doubles the room, up to one byte more than are allowed, which shows that there are too many. */
static bool grow(bytes *b, size_t least, size_t most) {
    size_t room = b->room ? 2 * b->room : least;
    if (room > most + 1)
        room = most + 1;
    unsigned char *data = ggl_calloc(room, 1);
    if (!data)
        return false;
    if (b->n)
        memcpy(data, b->data, b->n);
    ggl_free(b->data);
    b->data = data;
    b->room = room;
    return true;
}

static ggl_status read_all(bytes *b, int fd, size_t most, const char *name, ggl_error *err) {
    os_stat about;
    size_t least = 1 << 16;
    if (!ggl_os_stat_fd(fd, &about))
        return ggl_fail(err, GGL_IO, "%s: %s", name, strerror(errno));
    if (about.kind == OS_FILE && about.size > 0)
        least = (uint64_t)about.size < most ? (size_t)about.size + 1 : most + 1;
    for (;;) {
        if (b->n == b->room && !grow(b, least, most))
            return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %zu bytes", name, 2 * b->n);
        const int64_t got = ggl_os_read(fd, b->data + b->n, b->room - b->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ggl_fail(err, GGL_IO, "%s: %s", name, strerror(errno));
        if (got == 0)
            return GGL_OK;
        b->n += (size_t)got;
        if (b->n > most)
            return ggl_fail(err, GGL_LIMIT, "%s: has more than the %zu bytes that are read", name,
                            most);
    }
}

ggl_status llm_picture_read_file(llm_picture **out, const char *path,
                                 const llm_picture_limits *limits, ggl_error *err) {
    const bool is_input = strcmp(path, "-") == 0;
    const char *name = is_input ? "standard input" : path;
    const int fd = is_input ? OS_STDIN : ggl_os_open(path, OS_READ);
    bytes b = {0};
    *out = NULL;
    if (fd < 0)
        return ggl_fail(err, GGL_IO, "%s: %s", name, strerror(errno));
    ggl_status st = read_all(
        &b, fd, (size_t)(limits && limits->bytes ? limits->bytes : LLM_PICTURE_BYTES), name, err);
    if (!is_input)
        ggl_os_close(fd);
    if (st == GGL_OK)
        st = llm_picture_read(out, b.data, b.n, name, limits, err);
    ggl_free(b.data);
    return st;
}
