/* os_file.h for POSIX. */
#include "os_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "os_parts.h"

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

/* One read() or write() moves at most this much: some systems refuse more than 2^31 - 1. */
#define IO_CHUNK ((size_t)1 << 30)

/* Fails with "<what>: <text of the errno>". strerror() of glibc (since 2.32), musl and macOS may be
 * called from any thread. */
static ggl_status fail_errno(ggl_error *err, const char *what, int number) {
    return ggl_fail(err, number == ENOMEM ? GGL_NOMEM : GGL_IO, "%s: %s", what, strerror(number));
}

/* --- files to read ---------------------------------------------------------------------------- */

/* A mapped file, for the handler of the signal that a page causes which the file no longer has. Entries form a list that
 * only grows, and free ones are used again: so the handler can read them without a lock. */
typedef struct mapped_file {
    _Atomic uintptr_t from; /* 0: the entry is free; RESERVED: it is being filled in */
    _Atomic size_t size;    /* 0: not filled in */
    char *path;
    struct mapped_file *next;
} mapped_file;

enum { RESERVED = 1 }; /* no page begins there */

static _Atomic(mapped_file *) mapped_files;

/* Returns an entry that is reserved for the caller; NULL: out of memory. */
static mapped_file *reserve_entry(void) {
    for (mapped_file *f = atomic_load(&mapped_files); f; f = f->next) {
        uintptr_t is_free = 0;
        if (atomic_compare_exchange_strong(&f->from, &is_free, RESERVED))
            return f;
    }
    mapped_file *f = ggl_calloc(1, sizeof *f);
    if (!f)
        return NULL;
    atomic_store(&f->from, RESERVED);
    f->next = atomic_load(&mapped_files);
    while (!atomic_compare_exchange_weak(&mapped_files, &f->next, f))
        ;
    return f;
}

static void free_entry(mapped_file *f) {
    atomic_store(&f->size, 0);
    ggl_free(f->path);
    f->path = NULL;
    atomic_store(&f->from, 0);
}

/* Lists a mapped file; false: out of memory. */
static bool list_mapped(const os_map *m, const char *path) {
    const size_t n = strlen(path) + 1;
    mapped_file *f = reserve_entry();
    if (!f)
        return false;
    f->path = ggl_calloc(n, 1);
    if (!f->path) {
        free_entry(f);
        return false;
    }
    memcpy(f->path, path, n);
    atomic_store(&f->from, (uintptr_t)m->data);
    atomic_store(&f->size, m->size);
    return true;
}

static void unlist_mapped(const os_map *m) {
    for (mapped_file *f = atomic_load(&mapped_files); f; f = f->next)
        if (atomic_load(&f->from) == (uintptr_t)m->data) {
            free_entry(f);
            return;
        }
}

const char *ggl_os_map_path(const void *address, os_map *of) {
    *of = (os_map){0};
    for (mapped_file *f = atomic_load(&mapped_files); f; f = f->next) {
        const size_t size = atomic_load(&f->size);
        const uintptr_t from = atomic_load(&f->from);
        if ((uintptr_t)address - from >= size)
            continue;
        *of = (os_map){.data = (const void *)from, .size = size, .mapped = true};
        return f->path;
    }
    return NULL;
}

/* Reads the whole file into new pages. */
static ggl_status map_read(os_map *m, int fd, size_t size, ggl_error *err) {
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the file's %zu bytes", size);
    *m = (os_map){.data = data, .size = size};
    for (size_t at = 0; at < size;) {
        size_t n = size - at < IO_CHUNK ? size - at : IO_CHUNK;
        ssize_t got = read(fd, data + at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, "cannot be read", errno);
        if (got == 0)
            return ggl_fail(err, GGL_IO, "shrank while it was read, from %zu bytes to %zu", size,
                            at);
        at += (size_t)got;
    }
    return GGL_OK;
}

static ggl_status map_fd(os_map *m, int fd, const os_map_params *p, ggl_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail_errno(err, "its size and kind cannot be read", errno);
    if (S_ISDIR(st.st_mode))
        return ggl_fail(err, GGL_IO, "is a directory, not a file");
    if (!S_ISREG(st.st_mode))
        return ggl_fail(err, GGL_IO,
                        "is not a regular file (a device or a pipe), so it cannot be mapped");
    if (st.st_size == 0)
        return ggl_fail(err, GGL_FORMAT, "the file is empty");
    if ((uintmax_t)st.st_size > SIZE_MAX / 2)
        return ggl_fail(err, GGL_LIMIT, "the file's %jd bytes do not fit into an address space",
                        (intmax_t)st.st_size);

    size_t size = (size_t)st.st_size;
#ifdef __APPLE__
    const struct timespec when = st.st_mtimespec;
#else
    const struct timespec when = st.st_mtim;
#endif
    const int64_t modified = (int64_t)when.tv_sec * 1000000000 + when.tv_nsec;
    if (p->no_mmap) {
        ggl_status s = map_read(m, fd, size, err);
        m->modified = modified;
        return s;
    }
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | (p->populate ? MAP_POPULATE : 0), fd, 0);
    if (data == MAP_FAILED)
        return fail_errno(err, "cannot be mapped", errno);
    *m = (os_map){.data = data, .size = size, .mapped = true, .modified = modified};
    if (!ggl_os_parts_add(data, size, fd)) {
        munmap(data, size);
        *m = (os_map){0};
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    if (p->willneed)
        (void)madvise(data, size, MADV_WILLNEED); /* only advice, so a failure does not matter */
    return GGL_OK;
}

ggl_status ggl_os_map_open(os_map *m, const char *path, const os_map_params *p, ggl_error *err) {
    *m = (os_map){0};
    /* O_NONBLOCK: refuse a pipe without waiting for it; has no effect on regular files */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(err, "cannot be opened", errno);
    ggl_status s = map_fd(m, fd, p, err);
    const bool is_kept = m->mapped; /* the file's parts have the descriptor */
    if (s == GGL_OK && m->mapped && !list_mapped(m, path))
        s = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s != GGL_OK)
        ggl_os_map_close(m);
    if (!is_kept)
        close(fd);
    return s;
}

void ggl_os_map_close(os_map *m) {
    if (m->size > 0) {
        unlist_mapped(m);
        ggl_os_parts_remove(m->data);
        munmap((void *)(uintptr_t)m->data, m->size);
    }
    *m = (os_map){0};
}

/* Sets *first and *n to the whole pages in [data, data + size); false if there are none. */
static bool inner_pages(const void *data, size_t size, void **first, size_t *n) {
    long page = sysconf(_SC_PAGESIZE);
    uintptr_t mask = (uintptr_t)(page > 0 ? page : 4096) - 1;
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
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t mask = (uintptr_t)(page > 0 ? page : 4096) - 1, from = (uintptr_t)data & ~mask;
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
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t mask = (uintptr_t)(page > 0 ? page : 4096) - 1;
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

bool ggl_os_file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* --- files to write --------------------------------------------------------------------------- */

/* The paths of this process's temporary files, which the handler of a signal removes. */
enum { MAX_TEMPORARY = 32 };
static _Atomic(const char *) temporary[MAX_TEMPORARY];

/* Replaces the entry `old` by `new_`; NULL is a free entry. If there is no such entry, does
 * nothing. */
static void replace_temporary(const char *old, const char *new_) {
    for (int i = 0; i < MAX_TEMPORARY; i++) {
        const char *expected = old;
        if (atomic_compare_exchange_strong(&temporary[i], &expected, new_))
            return;
    }
}

void ggl_os_new_file_remove_all(void) {
    for (int i = 0; i < MAX_TEMPORARY; i++) {
        const char *path = atomic_load(&temporary[i]);
        if (path)
            unlink(path);
    }
}

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
static char *resolve(const char *path) {
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

static ggl_status fail_new(ggl_error *err, int number) {
    if (number == ENOENT)
        return ggl_fail(err, GGL_IO, "cannot be written: its folder does not exist");
    if (number == ENOMEM)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    return fail_errno(err, "cannot be written", number);
}

/* Gives the new file the permissions of the one that it will replace and, as far as the system allows,
 * its group and owner. If the group cannot be kept, its members get no more than everybody. */
static void keep_rights(int fd, const struct stat *old) {
    struct stat own;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &own) != 0)
        return;
    if (old->st_gid != own.st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | (mode & 07) << 3;
    if (fchmod(fd, mode) != 0)
        return;
    if (old->st_uid != own.st_uid && fchown(fd, old->st_uid, (gid_t)-1) != 0)
        errno = 0; /* only root may give files away */
}

/* --- files that were left behind ------------------------------------------------------------- */

/* Who writes a temporary file holds a lock of it, which ends with the process however that ends. */
static bool lock(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Locks a temporary file that was just created. False: another process has seen it without a lock, and removes it. Where the file system
 * has no locks, nobody removes anything. */
static bool claim(int fd) {
    struct stat s;
    if (!lock(fd) && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &s) != 0 || s.st_nlink > 0;
}

/* True for "NAME.tmp-PID-K". */
static bool is_temporary(const char *entry, const char *name, size_t n) {
    static const char mark[] = ".tmp-", digits[] = "0123456789";
    if (strncmp(entry, name, n) != 0 || strncmp(entry + n, mark, sizeof mark - 1) != 0)
        return false;
    const char *pid = entry + n + sizeof mark - 1;
    const size_t n_pid = strspn(pid, digits);
    if (n_pid == 0 || pid[n_pid] != '-')
        return false;
    const char *k = pid + n_pid + 1;
    return *k && k[strspn(k, digits)] == '\0';
}

static void remove_unlocked(int folder, const char *name) {
    struct stat s;
    const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && lock(fd))
        unlinkat(folder, name, 0);
    close(fd);
}

/* Removes the temporary files of the target, a real path, whose writers were killed. folder: room for the target and a dot. */
static void remove_left_behind(const char *target, char *folder, size_t size) {
    const char *name = strrchr(target, '/') + 1;
    snprintf(folder, size, "%.*s.", (int)(name - target), target);
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_temporary(e->d_name, name, strlen(name)))
            remove_unlocked(dirfd(d), e->d_name);
    if (d)
        closedir(d);
}

/* --- creating and finishing files --------------------------------------------------------------- */

/* Creates target.tmp-PID-K with the first free K. Does not use mkstemp(), because a new file should
 * get the permissions of the umask, not 0600. A file that replaces another is private at first, so
 * that users who must not read the old one cannot open it. */
static ggl_status new_file_create(os_new_file *f, ggl_error *err) {
    size_t n = strlen(f->target) + 64;
    struct stat old;
    const bool replaces = stat(f->target, &old) == 0;
    f->temp = ggl_calloc(n, 1);
    if (!f->temp)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    remove_left_behind(f->target, f->temp, n);
    for (int k = 0; k < 1000; k++) {
        snprintf(f->temp, n, "%s.tmp-%ld-%d", f->target, (long)getpid(), k);
        f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
        if (f->fd >= 0 && !claim(f->fd)) {
            close(f->fd);
            f->fd = -1;
            errno = EEXIST;
        }
        if (f->fd >= 0) {
            replace_temporary(NULL, f->temp);
            if (replaces)
                keep_rights(f->fd, &old);
            return GGL_OK;
        }
        if (errno != EEXIST)
            break;
    }
    f->temp[0] = '\0'; /* discard must not remove it: it was not created, or by another process */
    return fail_new(err, errno);
}

/* Fails if the path exists and cannot, or must not, be written. *through: it is a device or a pipe,
 * which is written directly. */
static ggl_status new_file_examine(const char *path, bool *through, ggl_error *err) {
    struct stat st;
    *through = false;
    if (!*path)
        return ggl_fail(err, GGL_USAGE, "the path of a file to write is empty");
    if (stat(path, &st) != 0)
        return errno == ENOENT ? GGL_OK : fail_new(err, errno);
    *through = S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode);
    for (int fd = 1; fd <= 2 && S_ISREG(st.st_mode); fd++) {
        struct stat other;
        if (fstat(fd, &other) == 0 && other.st_dev == st.st_dev && other.st_ino == st.st_ino)
            return ggl_fail(err, GGL_USAGE, "is the file of standard %s; give another one",
                            fd == 1 ? "output" : "error");
    }
    if (!S_ISREG(st.st_mode) && !*through)
        return ggl_fail(err, GGL_IO, "is %s, not a file that can be written",
                        S_ISDIR(st.st_mode)   ? "a directory"
                        : S_ISBLK(st.st_mode) ? "a disk (a block device)"
                                              : "a socket");
    return access(path, W_OK) == 0 ? GGL_OK : fail_new(err, errno);
}

ggl_status ggl_os_new_file_open(os_new_file *f, const char *path, ggl_error *err) {
    *f = (os_new_file){.fd = -1};
    bool through;
    ggl_status s = new_file_examine(path, &through, err);
    if (s != GGL_OK)
        return s;
    f->target = resolve(path);
    if (through) { /* not by f->target: /dev/stdout may be a pipe, which has no real path */
        f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        s = f->fd >= 0 ? GGL_OK : fail_new(err, errno);
    } else {
        s = f->target ? new_file_create(f, err) : fail_new(err, errno);
    }
    if (s != GGL_OK)
        ggl_os_new_file_discard(f);
    return s;
}

ggl_status ggl_os_new_file_check(const char *path, ggl_error *err) {
    os_new_file f;
    bool through;
    ggl_status s = new_file_examine(path, &through, err);
    if (s != GGL_OK || through)
        return s;
    s = ggl_os_new_file_open(&f, path, err);
    if (s == GGL_OK)
        ggl_os_new_file_discard(&f);
    return s;
}

FILE *ggl_os_new_file_stream(const os_new_file *f) {
    int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
    FILE *stream = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

bool ggl_os_new_file_is(const os_new_file *f, const char *path) {
    struct stat a, b;
    if (!f->temp) /* a device or a pipe */
        return fstat(f->fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
               a.st_ino == b.st_ino;
    char *other = resolve(path);
    bool same = other && strcmp(f->target, other) == 0;
    ggl_free(other);
    return same;
}

ggl_status ggl_os_new_file_write(os_new_file *f, const void *data, size_t n, ggl_error *err) {
    const char *p = data;
    while (n > 0) {
        ssize_t put = write(f->fd, p, n < IO_CHUNK ? n : IO_CHUNK);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_errno(err, "cannot be written", errno);
        p += put;
        n -= (size_t)put;
    }
    return GGL_OK;
}

/* Flushes the folder of path (which it changes), so that the rename reaches the disk. Some file
 * systems cannot flush a folder; that is no error. */
static void flush_folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0'; /* the folder of "/x" is "/" */
    int fd = open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

ggl_status ggl_os_new_file_commit(os_new_file *f, ggl_error *err) {
    ggl_status s = GGL_OK;
    const int locked = fcntl(f->fd, F_DUPFD_CLOEXEC, 0); /* until it has its name */
    if (f->temp && fsync(f->fd) != 0)
        s = fail_errno(err, "cannot be flushed to the disk", errno);
    if (close(f->fd) != 0 && s == GGL_OK)
        s = fail_errno(err, "cannot be closed", errno);
    f->fd = -1;
    if (s == GGL_OK && f->temp && rename(f->temp, f->target) != 0)
        s = fail_errno(err, "the finished file cannot be renamed to its name", errno);
    if (locked >= 0)
        close(locked);
    if (s == GGL_OK && f->temp) {
        replace_temporary(f->temp, NULL);
        ggl_free(f->temp);
        f->temp = NULL; /* it is the target now, so discard must not remove it */
        flush_folder_of(f->target);
    }
    ggl_os_new_file_discard(f);
    return s;
}

void ggl_os_new_file_discard(os_new_file *f) {
    if (f->fd >= 0)
        close(f->fd);
    if (f->temp && f->temp[0]) {
        unlink(f->temp);
        replace_temporary(f->temp, NULL);
    }
    ggl_free(f->temp);
    ggl_free(f->target);
    *f = (os_new_file){.fd = -1};
}
