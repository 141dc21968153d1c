/* os_file.h and os_file_impl.h for POSIX. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_process.h"
#include "os_file.h"
#include "os_file_impl.h"
#include "os_parts.h"

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

/* --- pages ------------------------------------------------------------------------------------ */

void *ggl_os_pages_new(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *ggl_os_pages_map(int fd, size_t size, bool populate) {
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | (populate ? MAP_POPULATE : 0), fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

void ggl_os_pages_free(void *p, size_t size, bool mapped) {
    (void)mapped;
    munmap(p, size);
}

/* Sets *first and *n to the whole pages in [data, data + size); false if there are none. */
static bool inner_pages(const void *data, size_t size, void **first, size_t *n) {
    const uintptr_t mask = ggl_os_page_size() - 1;
    uintptr_t from = ((uintptr_t)data + mask) & ~mask, to = ((uintptr_t)data + size) & ~mask;
    *first = (void *)from;
    *n = to > from ? to - from : 0;
    return *n > 0;
}

void ggl_os_map_drop(const void *data, size_t size) {
    void *first;
    size_t n;
    if (inner_pages(data, size, &first, &n))
        ggl_os_parts_drop(first, n);
}

void ggl_os_map_will_need(const void *data, size_t size) {
    const uintptr_t mask = ggl_os_page_size() - 1, from = (uintptr_t)data & ~mask;
    (void)madvise((void *)from, (uintptr_t)data + size - from, MADV_WILLNEED);
}

bool ggl_os_map_touch(const void *data) {
#ifdef RUSAGE_THREAD
    struct rusage before, after;
    const bool is_known = getrusage(RUSAGE_THREAD, &before) == 0;
    (void)*(const volatile char *)data;
    return !is_known || getrusage(RUSAGE_THREAD, &after) != 0 || after.ru_majflt > before.ru_majflt;
#else
    (void)data;
    return true;
#endif
}

bool ggl_os_map_is_present(const void *data) {
    const uintptr_t mask = ggl_os_page_size() - 1;
#ifdef __APPLE__
    char found = 0;
#else
    unsigned char found = 0;
#endif
    return mincore((void *)((uintptr_t)data & ~mask), 1, &found) != 0 || (found & 1);
}

bool ggl_os_map_lock(const os_map *m) {
    return m->size == 0 || mlock(m->data, m->size) == 0;
}

/* --- files to write --------------------------------------------------------------------------- */

/* Returns folder[0..n_folder) and name, with one '/' between them; NULL: out of memory, in
 * errno. */
static char *join(const char *folder, size_t n_folder, const char *name) {
    size_t n_name = strlen(name);
    char *path = ggl_calloc(n_folder + n_name + 2, 1);
    if (!path) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(path, folder, n_folder);
    if (n_folder > 0 && folder[n_folder - 1] != '/')
        path[n_folder++] = '/';
    memcpy(path + n_folder, name, n_name);
    return path;
}

/* Returns path with the real path of its folder; the file need not exist. NULL on failure:
 * errno. */
static char *real_in_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = join(path, slash ? (size_t)(slash - path) + 1 : 0, ".");
    char *real = folder ? realpath(folder, NULL) : NULL;
    char *all = real ? join(real, strlen(real), slash ? slash + 1 : path) : NULL;
    free(real);
    ggl_free(folder);
    return all;
}

/* Returns the real path of the file that path leads to, following links, even to a file that does
 * not exist yet. NULL on failure: errno. */
char *ggl_os_resolve(const char *path) {
    char *at = real_in_folder(path);
    for (int depth = 0; at && depth < 40; depth++) {
        char link[4096];
        ssize_t n = readlink(at, link, sizeof link - 1);
        if (n < 0)
            return at; /* not a link */
        link[n] = '\0';
        const char *slash = strrchr(at, '/');
        char *next = link[0] == '/' ? join("", 0, link) : join(at, (size_t)(slash - at) + 1, link);
        ggl_free(at);
        at = next ? real_in_folder(next) : NULL;
        ggl_free(next);
    }
    if (at)
        errno = ELOOP;
    ggl_free(at);
    return NULL;
}

/* Gives the new file the permissions of the one that it will replace and, as far as the system allows,
 * its group and owner. If the group cannot be kept, its members get no more than everybody. */
void ggl_os_keep_rights(int fd, const char *path) {
    struct stat own, old;
    if (stat(path, &old) != 0 || fstat(fd, &own) != 0)
        return;
    mode_t mode = old.st_mode & 0777;
    if (old.st_gid != own.st_gid && fchown(fd, (uid_t)-1, old.st_gid) != 0)
        mode = (mode & 0707) | (mode & 07) << 3;
    if (fchmod(fd, mode) != 0)
        return;
    if (old.st_uid != own.st_uid && fchown(fd, old.st_uid, (gid_t)-1) != 0)
        errno = 0; /* only root may give files away */
}

bool ggl_os_may_write(const char *path) {
    return access(path, W_OK) == 0;
}

void ggl_os_remove_open(int fd, const char *path) {
    (void)fd;
    unlink(path);
}

int ggl_os_duplicate(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int ggl_os_hold(int fd) {
    return ggl_os_duplicate(fd);
}

/* Flushes the folder of path (which it changes), so that the rename reaches the disk. Some file
 * systems cannot flush a folder; that is no error. */
void ggl_os_sync_folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0'; /* the folder of "/x" is "/" */
    int fd = open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}
