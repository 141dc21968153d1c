/* The operating system's file calls, all of them that ggml-lite makes: a port is another os_file.c.
 * Private to ggml-lite. Messages name what failed and why, without the path, which the caller puts
 * before. */
#ifndef GGL_OS_FILE_H
#define GGL_OS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ggl/status.h"

/* The bytes of a file. All zeros: nothing is held. */
typedef struct os_map {
    const void *data; /* page-aligned */
    size_t size;
    bool mapped;      /* the file's pages; false: memory that it was read into */
    int64_t modified; /* when the file was, in ns since 1970 */
} os_map;

typedef struct os_map_params {
    bool no_mmap;  /* read into memory instead */
    bool populate; /* bring every page in now */
    bool willneed; /* ask for read-ahead */
} os_map_params;

/* Maps (or reads) a regular file, read-only. GGL_IO: no such file, a directory, no permission,
 * empty..; GGL_NOMEM. On failure *m holds nothing. The file must not shrink while it is mapped. */
ggl_status ggl_os_map_open(os_map *m, const char *path, const os_map_params *p, ggl_error *err);
void ggl_os_map_close(os_map *m);
/* Gives the pages of a part of a mapped file back to the system, which reads them again when they
 * are touched: those that lie wholly in it. Not of one that was read (no_mmap), whose bytes would
 * be gone. */
void ggl_os_map_drop(const void *data, size_t size);
bool ggl_os_map_lock(const os_map *m); /* keeps it in memory; false if the system declines */

bool ggl_os_file_exists(const char *path);

/* A file to write. A regular file appears under its name only when it is complete; links to it are
 * followed. A device or a pipe is written as it is. */
typedef struct os_new_file {
    int fd;       /* -1: nothing is held */
    char *target; /* links resolved, in the folder's real path */
    char *temp;   /* beside the target; NULL: a device or a pipe, written directly */
} os_new_file;

/* GGL_USAGE: the path is empty. GGL_IO: no such folder, a directory, a disk, no permission.
 * GGL_NOMEM. */
ggl_status ggl_os_new_file_open(os_new_file *f, const char *path, ggl_error *err);
/* Whether ggl_os_new_file_open would work now; leaves nothing. Opens no device and no pipe. */
ggl_status ggl_os_new_file_check(const char *path, ggl_error *err);
/* A stream on a descriptor of its own, the caller's to close before commit or discard; NULL: errno.
 */
FILE *ggl_os_new_file_stream(const os_new_file *f);
/* Whether path leads to the same file. */
bool ggl_os_new_file_is(const os_new_file *f, const char *path);
ggl_status ggl_os_new_file_write(os_new_file *f, const void *data, size_t n, ggl_error *err);
/* Flushes to the disk and renames. Whether it works or not, *f holds nothing afterwards. */
ggl_status ggl_os_new_file_commit(os_new_file *f, ggl_error *err);
/* Removes the temporary file. Of no effect after commit. */
void ggl_os_new_file_discard(os_new_file *f);
/* Removes all temporary files of the process. For a signal handler that then ends the process. */
void ggl_os_new_file_remove_all(void);

#endif
