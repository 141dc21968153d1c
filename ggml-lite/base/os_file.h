/* All file calls of the operating system that ggml-lite makes; a port needs another os_file.c.
 * Private to ggml-lite. Error messages say what failed and why; the caller puts the path before
 * them. */
#ifndef GGL_OS_FILE_H
#define GGL_OS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ggl/status.h"

/* The bytes of a file. All zeros: no file. */
typedef struct os_map {
    const void *data; /* page-aligned */
    size_t size;
    bool mapped;      /* true: the file's pages; false: memory that it was read into */
    int64_t modified; /* time of the file's last change, in ns since 1970 */
} os_map;

typedef struct os_map_params {
    bool no_mmap;  /* read into memory instead */
    bool populate; /* read every page now */
    bool willneed; /* advise the kernel to read ahead */
} os_map_params;

/* Maps (or reads) a regular file, read-only. The file must not shrink while it is mapped. GGL_IO:
 * no such file, a directory, no permission; GGL_FORMAT: it is empty; GGL_LIMIT; GGL_NOMEM. On
 * failure *m is all zeros. */
ggl_status ggl_os_map_open(os_map *m, const char *path, const os_map_params *p, ggl_error *err);
void ggl_os_map_close(os_map *m);
/* Returns the path of the mapped file in which the address lies, and sets data and size of *of; NULL: in none. Async-signal-safe. */
const char *ggl_os_map_path(const void *address, os_map *of);
/* Drops the pages that lie wholly in [data, data + size), a part of a mapped file; the system reads
 * them again when they are touched. Must not be called for a file that was read (mapped is false):
 * its bytes would be lost. Does nothing while parts of the file are claimed (os_parts.h). */
void ggl_os_map_drop(const void *data, size_t size);
/* Asks the system to read [data, data + size), a part of a mapped file, into memory. Returns before it is read, unless
 * much else is being read. */
void ggl_os_map_will_need(const void *data, size_t size);
/* Reads a byte of a mapped file; returns whether the system had to wait for the file. True, too, if it does not say. */
bool ggl_os_map_touch(const void *data);
/* Returns whether that byte of a mapped file is in memory, without reading it. True, too, if the system does not say. */
bool ggl_os_map_is_present(const void *data);
/* Locks the pages in memory; returns false if the system refuses. */
bool ggl_os_map_lock(const os_map *m);

/* A file to write. A regular file appears under its name only when it is complete; links to it are
 * followed. A device or a pipe is written directly. */
typedef struct os_new_file {
    int fd;       /* -1: no file */
    char *target; /* the real path: links are resolved */
    char *temp;   /* the temporary file, in the target's folder; NULL: a device or a pipe */
} os_new_file;

/* Opens a file for writing. GGL_USAGE: the path is empty, or standard output or error goes to it.
 * GGL_IO: no such folder, a directory, a block device, no permission. GGL_NOMEM. */
ggl_status ggl_os_new_file_open(os_new_file *f, const char *path, ggl_error *err);
/* Returns what ggl_os_new_file_open would return now. Leaves no file, and opens no device or
 * pipe. */
ggl_status ggl_os_new_file_check(const char *path, ggl_error *err);
/* Returns a stream on a duplicate of the descriptor, which the caller closes before commit or
 * discard. NULL on failure: errno has the reason. */
FILE *ggl_os_new_file_stream(const os_new_file *f);
/* Returns true if path leads to the same file. */
bool ggl_os_new_file_is(const os_new_file *f, const char *path);
ggl_status ggl_os_new_file_write(os_new_file *f, const void *data, size_t n, ggl_error *err);
/* Flushes the file to the disk and renames it to its target. Frees *f in any case; on failure the
 * temporary file is removed. */
ggl_status ggl_os_new_file_commit(os_new_file *f, ggl_error *err);
/* Closes and removes the temporary file. Does nothing after commit. */
void ggl_os_new_file_discard(os_new_file *f);
/* Removes all temporary files of the process; for the handler of a signal that ends the process. */
void ggl_os_new_file_remove_all(void);

#endif
