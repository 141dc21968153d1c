/* Maps files for reading, and writes files that appear only when they are complete.
 *
 *     ggl_file_map m;
 *     if (ggl_file_map_open(&m, "model.safetensors", &err) == GGL_OK) {
 *         .. m.data[0 .. m.size) ..
 *         ggl_file_map_close(&m);
 *     }
 *
 *     ggl_new_file *f;
 *     if (ggl_new_file_open(&f, "plot.svg", &err) == GGL_OK) {
 *         fprintf(ggl_new_file_stream(f), ..);
 *         st = ggl_new_file_commit(f, &err);
 *     }
 *
 * Threads: a file that is written belongs to one thread at a time. */
#ifndef GGL_FILE_H
#define GGL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_file_map { /* all zeros: nothing is mapped */
    const void *data;
    size_t size;
    bool mapped;      /* true: the file's pages; false: memory that it was read into */
    int64_t modified; /* time of the file's last change, in ns since 1970 */
} ggl_file_map;

typedef struct ggl_file_how {
    bool no_mmap;  /* read into memory instead of mapping */
    bool populate; /* read every page now */
    bool willneed; /* advise the system to read ahead */
} ggl_file_how;

/* Maps a regular file, read-only; it must not shrink while it is mapped. GGL_IO, GGL_FORMAT (it is
 * empty), GGL_LIMIT, GGL_NOMEM; on failure *m is all zeros. The message begins with the path. */
GGL_NODISCARD ggl_status ggl_file_map_open(ggl_file_map *m, const char *path, ggl_error *err);
/* The same, as `how` says; NULL: the file is mapped. */
GGL_NODISCARD ggl_status ggl_file_map_open_how(ggl_file_map *m, const char *path,
                                               const ggl_file_how *how, ggl_error *err);
void ggl_file_map_close(ggl_file_map *m);
/* Returns the path with which the file was mapped in which the address lies; NULL: it lies in no mapped file. All files count
 * that the library has mapped, such as models. Async-signal-safe: who cuts a file off while it is mapped causes a SIGBUS where its
 * pages are read, and the handler can say which file that was. Valid until the file is unmapped. of: NULL, or set to where the file
 * lies (without its time). */
const char *ggl_file_at(const void *address, ggl_file_map *of);
/* Frees the memory of the whole pages in [data, data + size), a piece of a mapped file. When they are
 * touched again, the system reads them again. No effect if the file was read into memory, and on any
 * other memory. */
void ggl_file_map_drop(const ggl_file_map *m, const void *data, size_t size);
bool ggl_file_exists(const char *path); /* of any kind */

/* A file that is being written. It is named PATH.tmp-PID-K until it is complete and on the disk;
 * then it replaces the file PATH, if there is one. If the process is killed, it stays until PATH is opened for writing again: it is locked
 * while it is written, and those that are not are removed. Links are followed. A device or a pipe is
 * written directly. The file has the permissions of the file that it replaces; without one, those
 * that the umask leaves. */
typedef struct ggl_new_file ggl_new_file;

/* Opens a file for writing. GGL_USAGE: the path is empty, or standard output or error goes to it.
 * GGL_IO: no such folder, a directory, a block device, no permission. GGL_NOMEM. The message begins
 * with the path. On failure *f is NULL. */
GGL_NODISCARD ggl_status ggl_new_file_open(ggl_new_file **f, const char *path, ggl_error *err);
/* Returns what ggl_new_file_open would return now. Leaves no file, and opens no device or pipe. */
GGL_NODISCARD ggl_status ggl_new_file_check(const char *path, ggl_error *err);
/* Returns the stream to write to: fully buffered, owned by f. */
FILE *ggl_new_file_stream(ggl_new_file *f);
/* Records errno if a write to the stream has failed and nothing is recorded yet. Callers that write
 * much call this after each piece, so that ggl_new_file_commit can report the reason. */
void ggl_new_file_note(ggl_new_file *f);
/* Returns the errno that ggl_new_file_note has recorded; 0: none. */
int ggl_new_file_error(const ggl_new_file *f);
/* Returns true if path leads to the same file. */
bool ggl_new_file_is(const ggl_new_file *f, const char *path);
/* Flushes the file and gives it its final name. GGL_IO: a write has failed, and the file is removed
 * (a device or a pipe keeps what it has received). Frees f in any case. */
GGL_NODISCARD ggl_status ggl_new_file_commit(ggl_new_file *f, ggl_error *err);
void ggl_new_file_discard(ggl_new_file *f); /* removes it; NULL is fine */
/* Removes all incomplete files of this process. It calls nothing but unlink, so that the handler of
 * a signal that ends the process can call it. */
void ggl_new_file_remove_all(void);

#ifdef __cplusplus
}
#endif
#endif
