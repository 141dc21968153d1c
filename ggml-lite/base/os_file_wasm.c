/* os_file.h and os_file_impl.h for WebAssembly, whose memory no file can be mapped into: files are read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "os_file.h"
#include "os_file_impl.h"

/* --- pages ------------------------------------------------------------------------------------ */

enum { LINE = 64 }; /* bytes to which tensors' data is aligned at most */

void *ggl_os_pages_new(size_t size) {
    void *p = ggl_aligned_calloc(LINE, size);
    if (!p)
        errno = ENOMEM;
    return p;
}

void *ggl_os_pages_map(int fd, size_t size, bool populate) {
    char *p = ggl_os_pages_new(size);
    (void)populate;
    for (size_t at = 0; p && at < size;) {
        const ssize_t got = pread(fd, p + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0) {
            at += (size_t)got;
            continue;
        }
        const int why = got < 0 ? errno : EIO; /* it has become shorter */
        ggl_aligned_free(p);
        errno = why;
        return NULL;
    }
    return p;
}

void ggl_os_pages_free(void *p, size_t size, bool mapped) {
    (void)size, (void)mapped;
    ggl_aligned_free(p);
}

void ggl_os_map_drop(const void *data, size_t size) {
    (void)data, (void)size;
}

void ggl_os_map_will_need(const void *data, size_t size) {
    (void)data, (void)size;
}

bool ggl_os_map_touch(const void *data) {
    (void)data;
    return false;
}

bool ggl_os_map_is_present(const void *data) {
    (void)data;
    return true;
}

bool ggl_os_map_lock(const os_map *m) {
    (void)m;
    return true;
}

/* --- files to write --------------------------------------------------------------------------- */

/* There is no realpath(): links are the system's, and the path only becomes an absolute one. */
char *ggl_os_resolve(const char *path) {
    char *real = ggl_os_real_path(path);
    char *copy = real ? ggl_calloc(strlen(real) + 1, 1) : NULL;
    if (copy)
        memcpy(copy, real, strlen(real));
    free(real);
    return copy;
}

bool ggl_os_may_write(const char *path) {
    return access(path, W_OK) == 0;
}

void ggl_os_keep_rights(int fd, const char *path) {
    (void)fd, (void)path; /* WASI has none */
}

void ggl_os_remove_open(int fd, const char *path) {
    (void)fd;
    ggl_os_remove(path);
}

int ggl_os_duplicate(int fd) {
    (void)fd;
    errno = ENOSYS;
    return -1;
}

int ggl_os_hold(int fd) {
    (void)fd;
    return -1;
}

void ggl_os_sync_folder_of(char *path) {
    (void)path;
}
