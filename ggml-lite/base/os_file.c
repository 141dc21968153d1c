/* os_file.h: the part that is the same on all systems. */
#include "os_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "os_file_impl.h"
#include "os_parts.h"

/* One read() or write() moves at most this much: some systems refuse more than 2^31 - 1. */
#define IO_CHUNK ((size_t)1 << 30)

/* Fails with "<what>: <text of the errno>". strerror() of glibc (since 2.32), musl and macOS may be
 * called from any thread. */
static ggl_status fail_errno(ggl_error *err, const char *what, int number) {
    return number == ENOMEM ? ggl_fail(err, GGL_NOMEM, "%s: out of memory", what)
                            : ggl_fail(err, GGL_IO, "%s: %s", what, strerror(number));
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
    char *data = ggl_os_pages_new(size);
    if (!data)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the file's %zu bytes", size);
    *m = (os_map){.data = data, .size = size};
    for (size_t at = 0; at < size;) {
        size_t n = size - at < IO_CHUNK ? size - at : IO_CHUNK;
        const int64_t got = ggl_os_read(fd, data + at, n);
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
    os_stat st;
    if (!ggl_os_stat_fd(fd, &st))
        return fail_errno(err, "its size and kind cannot be read", errno);
    if (st.kind == OS_FOLDER)
        return ggl_fail(err, GGL_IO, "is a directory, not a file");
    if (st.kind != OS_FILE)
        return ggl_fail(err, GGL_IO,
                        "is not a regular file but a device or a pipe, which cannot be read at any "
                        "place: write what it gives to a file, and open that");
    if (st.size == 0)
        return ggl_fail(err, GGL_FORMAT, "the file is empty");
    if (st.size > SIZE_MAX / 2)
        return ggl_fail(err, GGL_LIMIT, "the file's %llu bytes do not fit into an address space",
                        (unsigned long long)st.size);

    const size_t size = (size_t)st.size;
    if (p->no_mmap) {
        ggl_status s = map_read(m, fd, size, err);
        m->modified = st.modified;
        return s;
    }
    void *data = ggl_os_pages_map(fd, size, p->populate);
    if (!data)
        return fail_errno(err, "cannot be mapped", errno);
    *m = (os_map){.data = data, .size = size, .mapped = true, .modified = st.modified};
    if (!ggl_os_parts_add(data, size, fd)) {
        ggl_os_pages_free(data, size, true);
        *m = (os_map){0};
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    if (p->willneed)
        ggl_os_map_will_need(data, size);
    return GGL_OK;
}

ggl_status ggl_os_map_open(os_map *m, const char *path, const os_map_params *p, ggl_error *err) {
    *m = (os_map){0};
    const int fd = ggl_os_open(path, OS_READ | OS_NO_WAIT); /* a pipe is refused at once */
    if (fd < 0)
        return fail_errno(err, "cannot be opened", errno);
    ggl_status s = map_fd(m, fd, p, err);
    const bool is_kept = m->mapped; /* the file's parts have the descriptor */
    if (s == GGL_OK && m->mapped && !list_mapped(m, path))
        s = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s != GGL_OK)
        ggl_os_map_close(m);
    if (!is_kept)
        ggl_os_close(fd);
    return s;
}

void ggl_os_map_close(os_map *m) {
    if (m->size > 0) {
        unlist_mapped(m);
        ggl_os_parts_remove(m->data);
        ggl_os_pages_free((void *)(uintptr_t)m->data, m->size, m->mapped);
    }
    *m = (os_map){0};
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
            ggl_os_remove(path);
    }
}

static ggl_status fail_new(ggl_error *err, int number) {
    if (number == ENOENT)
        return ggl_fail(err, GGL_IO, "cannot be written: its folder does not exist");
    if (number == ENOMEM)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    return fail_errno(err, "cannot be written", number);
}

/* --- files that were left behind ------------------------------------------------------------- */

/* Who writes a temporary file holds a lock of it, which ends with the process however that ends. */
static bool lock(int fd) {
    return ggl_os_lock(fd, true, false);
}

/* Locks a temporary file that was just created. False: another process has seen it without a lock, and removes it. Where the file system
 * has no locks, nobody removes anything. */
static bool claim(int fd) {
    os_stat s;
    if (!lock(fd) && errno == EWOULDBLOCK)
        return false;
    return !ggl_os_stat_fd(fd, &s) || s.n_names > 0;
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

static void remove_unlocked(const char *path) {
    os_stat s;
    const int fd = ggl_os_open(path, OS_WRITE | OS_NO_LINK | OS_NO_WAIT);
    if (fd < 0)
        return;
    const bool is_left = ggl_os_stat_fd(fd, &s) && s.kind == OS_FILE && lock(fd);
    if (is_left)
        ggl_os_remove_open(fd, path);
    ggl_os_close(fd);
}

/* Removes the temporary files of the target, a real path, whose writers were killed. path: room for the target and what its temporary files
 * have more. */
static void remove_left_behind(const char *target, char *path, size_t size) {
    const char *name = ggl_os_last_separator(target) + 1;
    const int n_folder = (int)(name - target);
    snprintf(path, size, "%.*s.", n_folder, target);
    os_folder *d = ggl_os_folder_open(path);
    for (const char *e; d && (e = ggl_os_folder_next(d));)
        if (is_temporary(e, name, strlen(name)) &&
            snprintf(path, size, "%.*s%s", n_folder, target, e) < (int)size)
            remove_unlocked(path);
    ggl_os_folder_close(d);
}

/* --- creating and finishing files --------------------------------------------------------------- */

/* Creates target.tmp-PID-K with the first free K. Does not use mkstemp(), because a new file should
 * get the permissions of the umask, not 0600. A file that replaces another is private at first, so
 * that users who must not read the old one cannot open it. */
static ggl_status new_file_create(os_new_file *f, ggl_error *err) {
    size_t n = strlen(f->target) + 64;
    const bool replaces = ggl_os_exists(f->target);
    f->temp = ggl_calloc(n, 1);
    if (!f->temp)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    remove_left_behind(f->target, f->temp, n);
    for (int k = 0; k < 1000; k++) {
        snprintf(f->temp, n, "%s.tmp-%ld-%d", f->target, ggl_os_pid(), k);
        f->fd = ggl_os_open(f->temp, OS_WRITE | OS_CREATE | OS_NEW | (replaces ? OS_PRIVATE : 0));
        if (f->fd >= 0 && !claim(f->fd)) {
            ggl_os_close(f->fd);
            f->fd = -1;
            errno = EEXIST;
        }
        if (f->fd >= 0) {
            replace_temporary(NULL, f->temp);
            if (replaces)
                ggl_os_keep_rights(f->fd, f->target);
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
    os_stat st;
    *through = false;
    if (!*path)
        return ggl_fail(err, GGL_USAGE, "the path of a file to write is empty");
    const char *rule = ggl_os_name_rule(path);
    if (rule)
        return ggl_fail(err, GGL_USAGE, "cannot be written: %s", rule);
    if (!ggl_os_stat(path, &st))
        return errno == ENOENT ? GGL_OK : fail_new(err, errno);
    *through = st.kind == OS_DEVICE || st.kind == OS_PIPE;
    for (int fd = 1; fd <= 2 && st.kind == OS_FILE; fd++) {
        os_stat other;
        if (ggl_os_stat_fd(fd, &other) && ggl_os_is_same(&other, &st))
            return ggl_fail(err, GGL_USAGE, "is the file of standard %s; give another one",
                            fd == 1 ? "output" : "error");
    }
    if (st.kind != OS_FILE && !*through)
        return ggl_fail(err, GGL_IO, "is %s, not a file that can be written",
                        st.kind == OS_FOLDER ? "a directory"
                        : st.kind == OS_DISK ? "a disk (a block device)"
                                             : "a socket");
    return ggl_os_may_write(path) ? GGL_OK : fail_new(err, errno);
}

ggl_status ggl_os_new_file_open(os_new_file *f, const char *path, ggl_error *err) {
    *f = (os_new_file){.fd = -1};
    bool through;
    ggl_status s = new_file_examine(path, &through, err);
    if (s != GGL_OK)
        return s;
    f->target = ggl_os_resolve(path);
    if (through) { /* not by f->target: /dev/stdout may be a pipe, which has no real path */
        f->fd = ggl_os_open(path, OS_WRITE);
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
    int fd = ggl_os_duplicate(f->fd);
    if (fd < 0 && errno == ENOSYS) /* nothing was written by the other one yet */
        fd = ggl_os_open(f->temp ? f->temp : f->target, OS_WRITE);
    FILE *stream = fd >= 0 ? ggl_os_fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !stream)
        ggl_os_close(fd);
    return stream;
}

bool ggl_os_new_file_is(const os_new_file *f, const char *path) {
    if (!f->temp) /* a device or a pipe */
        return ggl_os_is_at(f->fd, path);
    char *other = ggl_os_resolve(path);
    const bool same = other && strcmp(f->target, other) == 0;
    ggl_free(other);
    return same;
}

ggl_status ggl_os_new_file_write(os_new_file *f, const void *data, size_t n, ggl_error *err) {
    const char *p = data;
    while (n > 0) {
        const int64_t put = ggl_os_write(f->fd, p, n < IO_CHUNK ? n : IO_CHUNK);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_errno(err, "cannot be written", errno);
        p += put;
        n -= (size_t)put;
    }
    return GGL_OK;
}

ggl_status ggl_os_new_file_commit(os_new_file *f, ggl_error *err) {
    ggl_status s = GGL_OK;
    const int locked = ggl_os_hold(f->fd); /* until it has its name */
    if (f->temp && !ggl_os_sync(f->fd))
        s = fail_errno(err, "cannot be flushed to the disk", errno);
    if (ggl_os_close(f->fd) != 0 && s == GGL_OK)
        s = fail_errno(err, "cannot be closed", errno);
    f->fd = -1;
    if (s == GGL_OK && f->temp && !ggl_os_rename(f->temp, f->target))
        s = errno == EBUSY
                ? ggl_fail(err, GGL_IO,
                           "the file that is there cannot be replaced, as a program has "
                           "it open; end that program, or write to another name")
                : fail_errno(err, "the finished file cannot be renamed to its name", errno);
    if (locked >= 0)
        ggl_os_close(locked);
    if (s == GGL_OK && f->temp) {
        replace_temporary(f->temp, NULL);
        ggl_free(f->temp);
        f->temp = NULL; /* it is the target now, so discard must not remove it */
        ggl_os_sync_folder_of(f->target);
    }
    ggl_os_new_file_discard(f);
    return s;
}

void ggl_os_new_file_discard(os_new_file *f) {
    if (f->fd >= 0)
        ggl_os_close(f->fd);
    if (f->temp && f->temp[0]) {
        ggl_os_remove(f->temp);
        replace_temporary(f->temp, NULL);
    }
    ggl_free(f->temp);
    ggl_free(f->target);
    *f = (os_new_file){.fd = -1};
}
