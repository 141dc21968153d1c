/* os_fs.h for POSIX, and for the part of it that WASI has. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef __wasi__
#include <sys/file.h>
#include <sys/statvfs.h>
#endif

#include "ggl/internal/os_fs.h"

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

/* --- what is there ---------------------------------------------------------------------------- */

static os_kind kind_of(mode_t mode) {
    return S_ISREG(mode)    ? OS_FILE
           : S_ISDIR(mode)  ? OS_FOLDER
           : S_ISFIFO(mode) ? OS_PIPE
           : S_ISSOCK(mode) ? OS_SOCKET
           : S_ISLNK(mode)  ? OS_LINK
           : S_ISBLK(mode)  ? OS_DISK
                            : OS_DEVICE;
}

static bool to_stat(int code, const struct stat *s, os_stat *out) {
    *out = (os_stat){0};
    if (code != 0)
        return false;
    *out = (os_stat){.kind = kind_of(s->st_mode),
                     .size = s->st_size > 0 ? (uint64_t)s->st_size : 0,
                     .modified = (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec,
                     .disk = (uint64_t)s->st_dev,
                     .id = (uint64_t)s->st_ino,
                     .n_names = (uint64_t)s->st_nlink};
    return true;
}

bool ggl_os_stat(const char *path, os_stat *out) {
    struct stat s;
    return to_stat(stat(path, &s), &s, out);
}

bool ggl_os_stat_link(const char *path, os_stat *out) {
    struct stat s;
    return to_stat(lstat(path, &s), &s, out);
}

bool ggl_os_stat_fd(int fd, os_stat *out) {
    struct stat s;
    return to_stat(fstat(fd, &s), &s, out);
}

bool ggl_os_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool ggl_os_may_read(const char *path) {
    return access(path, R_OK) == 0;
}

bool ggl_os_may_use_folder(const char *path) {
    return faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) == 0;
}

bool ggl_os_disk_left(const char *path, uint64_t *bytes) {
#ifdef __wasi__
    (void)path, (void)bytes;
    return false;
#else
    struct statvfs v;
    if (statvfs(path, &v) != 0 || v.f_blocks == 0)
        return false;
    *bytes = (uint64_t)v.f_bavail * v.f_frsize;
    return true;
#endif
}

/* --- descriptors ------------------------------------------------------------------------------ */

int ggl_os_open(const char *path, int flags) {
    static const struct {
        int flag, is;
    } of[] = {{OS_CREATE, O_CREAT},
              {OS_NEW, O_EXCL},
              {OS_APPEND, O_APPEND},
              {OS_NO_LINK, O_NOFOLLOW},
              {OS_NO_WAIT, O_NONBLOCK}};
    int how = (flags & (OS_READ | OS_WRITE)) == (OS_READ | OS_WRITE) ? O_RDWR
              : flags & OS_WRITE                                     ? O_WRONLY
                                                                     : O_RDONLY;
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        how |= flags & of[k].flag ? of[k].is : 0;
    return open(path, how | O_CLOEXEC | O_NOCTTY, flags & OS_PRIVATE ? 0600 : 0666);
}

int ggl_os_close(int fd) {
    return close(fd);
}

int64_t ggl_os_read(int fd, void *to, size_t n) {
    return read(fd, to, n);
}

int64_t ggl_os_write(int fd, const void *from, size_t n) {
    return write(fd, from, n);
}

int64_t ggl_os_read_at(int fd, void *to, size_t n, int64_t at) {
    return pread(fd, to, n, (off_t)at);
}

int64_t ggl_os_seek(int fd, int64_t at, int whence) {
    return lseek(fd, (off_t)at, whence);
}

bool ggl_os_truncate(int fd, int64_t size) {
    return ftruncate(fd, (off_t)size) == 0;
}

bool ggl_os_sync(int fd) {
    return fsync(fd) == 0;
}

bool ggl_os_let_wait(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

bool ggl_os_lock(int fd, bool alone, bool waits) {
#ifdef __wasi__
    (void)fd, (void)alone, (void)waits;
    errno = ENOTSUP;
    return false;
#else
    return flock(fd, (alone ? LOCK_EX : LOCK_SH) | (waits ? 0 : LOCK_NB)) == 0;
#endif
}

/* --- streams ---------------------------------------------------------------------------------- */

FILE *ggl_os_fopen(const char *path, const char *mode) {
    char how[8];
    snprintf(how, sizeof how, "%se", mode); /* close it in programs that are started */
    return fopen(path, how);
}

FILE *ggl_os_fdopen(int fd, const char *mode) {
    return fdopen(fd, mode);
}

FILE *ggl_os_tmpfile(void) {
#ifdef __wasi__
    errno = ENOTSUP;
    return NULL;
#else
    return tmpfile();
#endif
}

int ggl_os_fileno(FILE *f) {
    return fileno(f);
}

bool ggl_os_drop_stream(FILE *f) {
    return freopen("/dev/null", "r+", f) != NULL;
}

bool ggl_os_fseek(FILE *f, int64_t at, int whence) {
    return fseeko(f, (off_t)at, whence) == 0;
}

int64_t ggl_os_ftell(FILE *f) {
    return ftello(f);
}

int ggl_os_getc(FILE *f) {
    return getc_unlocked(f);
}

int ggl_os_putc(int c, FILE *f) {
    return putc_unlocked(c, f);
}

/* --- names ------------------------------------------------------------------------------------ */

bool ggl_os_remove(const char *path) {
    return unlink(path) == 0;
}

bool ggl_os_rename(const char *from, const char *to) {
    return rename(from, to) == 0;
}

bool ggl_os_make_folder(const char *path, bool is_private) {
    return mkdir(path, is_private ? 0700 : 0777) == 0;
}

bool ggl_os_remove_folder(const char *path) {
    return rmdir(path) == 0;
}

bool ggl_os_touch(const char *path) {
    return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

#ifdef __wasi__ /* it has no realpath(): links are its own, and the path becomes an absolute one */
char *ggl_os_real_path(const char *path) {
    char folder[OS_MOST_PATH] = "";
    if (path[0] != '/' && !getcwd(folder, sizeof folder))
        return NULL;
    const size_t n = strlen(folder), size = n + strlen(path) + 2;
    char *all = malloc(size);
    if (all)
        snprintf(all, size, "%s%s%s", folder, n > 0 && folder[n - 1] != '/' ? "/" : "", path);
    return all;
}
#else
char *ggl_os_real_path(const char *path) {
    return realpath(path, NULL);
}
#endif

bool ggl_os_current_folder(char *out, size_t size) {
    return getcwd(out, size) != NULL;
}

bool ggl_os_is_absolute(const char *path) {
    return path[0] == '/';
}

bool ggl_os_separates(char c) {
    return c == '/';
}

const char *ggl_os_name_rule(const char *path) {
    (void)path; /* all bytes but the separator may be in names */
    return NULL;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* A folder is what opendir() returns. */
os_folder *ggl_os_folder_open(const char *path) {
    return (os_folder *)opendir(path);
}

const char *ggl_os_folder_next(os_folder *f) {
    for (const struct dirent *e; (e = readdir((DIR *)f));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return e->d_name;
    return NULL;
}

bool ggl_os_folder_stat(const os_folder *f, const char *name, os_stat *out) {
    struct stat s;
    return to_stat(fstatat(dirfd((DIR *)(uintptr_t)f), name, &s, 0), &s, out);
}

void ggl_os_folder_close(os_folder *f) {
    if (f)
        closedir((DIR *)f);
}
