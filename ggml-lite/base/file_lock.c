#include "ggl/internal/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"

struct ggl_file_lock {
    int fd;
    char path[]; /* of the lock's file */
};

/* True for a file that may be a lock, which has no contents: another one of that name is somebody's. */
static bool is_empty(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == 0;
}

/* True if the open file is still the one at the path: its owner may have removed it before we had its lock. */
static bool is_at(int fd, const char *path) {
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Opens and locks the file. -1: errno; EWOULDBLOCK: another one has the lock. */
static int take(const char *path) {
    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path))
            return fd;
        const int why = errno, gone = !is_at(fd, path);
        if (!gone && why != EWOULDBLOCK && is_empty(fd))
            unlink(path);
        close(fd);
        errno = why;
        if (!gone)
            return -1;
    }
}

ggl_status ggl_file_lock_open(ggl_file_lock **out, const char *path, ggl_error *err) {
    static const char end[] = ".lock";
    const size_t n = strlen(path);
    struct stat s;
    *out = NULL;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
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
    if (is_at(l->fd, l->path) && is_empty(l->fd))
        unlink(
            l->path); /* before it is unlocked: who has opened it meanwhile sees that it is gone */
    close(l->fd);
    ggl_free(l);
}
