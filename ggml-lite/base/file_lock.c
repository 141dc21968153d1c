#include "ggl/internal/file_lock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"

struct ggl_file_lock {
    int fd;
    char path[]; /* of the lock's file */
};

/* True for a file that may be a lock, which has no contents: another one of that name is somebody's. */
static bool is_empty(int fd) {
    os_stat s;
    return ggl_os_stat_fd(fd, &s) && s.kind == OS_FILE && s.size == 0;
}

/* Opens and locks the file. -1: errno; EWOULDBLOCK: another one has the lock. */
static int take(const char *path) {
    for (;;) {
        const int fd = ggl_os_open(path, OS_READ | OS_WRITE | OS_CREATE | OS_NO_LINK | OS_NO_WAIT);
        if (fd < 0)
            return -1;
        if (ggl_os_lock(fd, true, false) && ggl_os_is_at(fd, path))
            return fd;
        const int why = errno, gone = !ggl_os_is_at(fd, path);
        if (!gone && why != EWOULDBLOCK && is_empty(fd))
            ggl_os_remove(path);
        ggl_os_close(fd);
        errno = why;
        if (!gone)
            return -1;
    }
}

ggl_status ggl_file_lock_open(ggl_file_lock **out, const char *path, ggl_error *err) {
    static const char end[] = ".lock";
    const size_t n = strlen(path);
    os_stat s;
    *out = NULL;
    if (ggl_os_stat(path, &s) && s.kind != OS_FILE)
        return GGL_OK;
    ggl_file_lock *l = ggl_calloc(1, sizeof *l + n + sizeof end);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(l->path, path, n);
    memcpy(l->path + n, end, sizeof end);
    l->fd = take(l->path);
    if (l->fd >= 0) {
        *out = l;
        return GGL_OK;
    }
    const bool is_taken = errno == EWOULDBLOCK;
    const ggl_status st = is_taken ? ggl_fail(err, GGL_IO,
                                              "%s is being written by another process, which has "
                                              "the lock %s; give this one another name",
                                              path, l->path)
                                   : GGL_OK;
    ggl_free(l);
    return st;
}

void ggl_file_lock_close(ggl_file_lock *l) {
    if (!l)
        return;
    if (ggl_os_is_at(l->fd, l->path) && is_empty(l->fd))
        ggl_os_remove(
            l->path); /* before it is unlocked: who has opened it meanwhile sees that it is gone */
    ggl_os_close(l->fd);
    ggl_free(l);
}
