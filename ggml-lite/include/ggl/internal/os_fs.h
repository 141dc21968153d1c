/* Files, folders and descriptors of the operating system. Paths are UTF-8 on every system. What fails leaves its reason in errno, which strerror() explains.
 * Descriptors and streams are not passed on to other programs. Nothing here may be called by the handler of a signal, if it does not say so.
 * Any number of threads may call all of this at the same time, but for the same os_folder. */
#ifndef GGL_INTERNAL_OS_FS_H
#define GGL_INTERNAL_OS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the longest path, and its end. */
enum { OS_MOST_PATH = 4096 };

/* --- what is there ---------------------------------------------------------------------------- */

typedef enum os_kind {
    OS_FILE,
    OS_FOLDER,
    OS_PIPE,
    OS_SOCKET,
    OS_LINK,
    OS_DISK,
    OS_DEVICE
} os_kind;

typedef struct os_stat {
    os_kind kind;
    uint64_t size;     /* bytes of a file */
    int64_t modified;  /* ns since 1970 */
    uint64_t disk, id; /* together they tell files apart */
    uint64_t n_names;  /* 0: an open file that was removed */
} os_stat;

/* Returns false if nothing is there. Links are followed, but for that of the last name in ggl_os_stat_link. */
bool ggl_os_stat(const char *path, os_stat *out);
bool ggl_os_stat_link(const char *path, os_stat *out);
bool ggl_os_stat_fd(int fd, os_stat *out);
bool ggl_os_is_same(const os_stat *a, const os_stat *b);
/* Returns true if the open file is the one at the path: somebody may have removed or replaced that. */
bool ggl_os_is_at(int fd, const char *path);
bool ggl_os_exists(const char *path);
bool ggl_os_is_file(const char *path);
bool ggl_os_is_folder(const char *path);
/* Returns true if the process may read the file, and open it; or list, change and enter the folder. */
bool ggl_os_may_read(const char *path);
bool ggl_os_may_use_folder(const char *path);

/* Sets *bytes to what this user can still write to the disk of the file or folder. */
bool ggl_os_disk_left(const char *path, uint64_t *bytes);

/* --- descriptors ------------------------------------------------------------------------------ */

enum { OS_STDIN, OS_STDOUT, OS_STDERR }; /* the descriptors of standard input, output and errors */

enum {
    OS_READ = 1,
    OS_WRITE = 2,    /* with OS_READ: both */
    OS_CREATE = 4,   /* if it is not there */
    OS_NEW = 8,      /* with OS_CREATE: and only then */
    OS_APPEND = 16,  /* each write goes to the end */
    OS_PRIVATE = 32, /* with OS_CREATE: for this user alone */
    OS_NO_LINK = 64, /* EMLINK or ELOOP if the last name is a link */
    OS_NO_WAIT = 128 /* a pipe without another end is opened at once, and its reads do not wait */
};

int ggl_os_open(const char *path, int flags); /* -1: errno */
int ggl_os_close(int fd);
/* As read, write and pread of POSIX: they return the bytes that were moved, which may be fewer; -1: errno. */
int64_t ggl_os_read(int fd, void *to, size_t n);
int64_t ggl_os_write(int fd, const void *from,
                     size_t n); /* may be called by the handler of a signal */
int64_t ggl_os_read_at(int fd, void *to, size_t n, int64_t at);
int64_t ggl_os_seek(int fd, int64_t at, int whence); /* SEEK_SET .. of stdio.h */
bool ggl_os_truncate(int fd, int64_t size);
bool ggl_os_sync(int fd); /* to the disk */
/* Lets reads of a descriptor that was opened with OS_NO_WAIT wait. */
bool ggl_os_let_wait(int fd);
/* Locks the file for this process, shared or alone, until it is closed. False: EWOULDBLOCK, another one has it; EINTR; or the file system has no locks. */
bool ggl_os_lock(int fd, bool alone, bool waits);

/* --- streams ---------------------------------------------------------------------------------- */

/* As fopen, with the modes of C11. */
FILE *ggl_os_fopen(const char *path, const char *mode);
/* Opens a plain file to read. NULL: errno, or it is none, such as a pipe, for whose writer it does not wait. */
FILE *ggl_os_fopen_plain(const char *path);
/* Makes a stream of a descriptor, which it then owns. */
FILE *ggl_os_fdopen(int fd, const char *mode);
/* Makes a stream to write and read, of a file without a name, which is gone when it is closed. NULL: errno. */
FILE *ggl_os_tmpfile(void);
int ggl_os_fileno(FILE *f);
/* Lets what is written to the stream from now on go nowhere; one that is read is at its end. */
bool ggl_os_drop_stream(FILE *f);
bool ggl_os_fseek(FILE *f, int64_t at, int whence);
int64_t ggl_os_ftell(FILE *f);
/* As getc and putc, for a stream that one thread uses. */
int ggl_os_getc(FILE *f);
int ggl_os_putc(int c, FILE *f);

/* --- names ------------------------------------------------------------------------------------ */

bool ggl_os_remove(const char *path); /* a file; may be called by the handler of a signal */
/* Replaces a file `to` at once. EBUSY: a program has `to` open, and the system keeps such files (Windows). */
bool ggl_os_rename(const char *from, const char *to);
bool ggl_os_make_folder(const char *path, bool is_private);
bool ggl_os_remove_folder(const char *path); /* an empty one */
/* Sets the time of the last change to now. */
bool ggl_os_touch(const char *path);
/* Returns the path without links, "." and "..", for free(); NULL: errno. What it names must be there. */
char *ggl_os_real_path(const char *path);
bool ggl_os_current_folder(char *out, size_t size);
/* Returns true if the path does not begin in the current folder. */
bool ggl_os_is_absolute(const char *path);
/* Returns true for a character that parts the names of a path: '/', and on Windows '\\', too. */
bool ggl_os_separates(char c);
/* Returns true if there is one in the n bytes: they are a path, and no plain name. */
bool ggl_os_has_separator(const char *s, size_t n);
/* Returns where the last separator of the path's names is; NULL: there is none. */
char *ggl_os_last_separator(const char *path);
/* Returns the rule of the system that the path's last name breaks, as the end of a message; NULL: a file may have that name. */
const char *ggl_os_name_rule(const char *path);
/* Makes the folders above the path's last name that are not there. Whoever writes there sees whether that has worked. */
void ggl_os_make_parents(const char *path, bool is_private);

/* --- folders ---------------------------------------------------------------------------------- */

/* The names of a folder, in no order, without "." and "..". */
typedef struct os_folder os_folder;
os_folder *ggl_os_folder_open(const char *path); /* NULL: errno */
const char *ggl_os_folder_next(os_folder *f); /* valid until the next call; NULL: that were all */
/* As ggl_os_stat, for a name in the folder. */
bool ggl_os_folder_stat(const os_folder *f, const char *name, os_stat *out);
void ggl_os_folder_close(os_folder *f); /* NULL is allowed */
/* Sets *names to those for which `is` (may be NULL) is true, in the order of their bytes; free each, and the list, by free(). Returns how many; -1: errno. */
int64_t ggl_os_folder_list(const char *path, bool (*is)(const char *name), char ***names);

#endif
