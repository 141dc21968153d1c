/* Files of formats other than GGUF: mapped for reading, or written.
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
 */
#ifndef GGL_FILE_H
#define GGL_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_file_map { /* all zeros: nothing is held */
    const void *data;
    size_t size;
} ggl_file_map;

/* Maps a regular file, read-only; it must not shrink meanwhile. GGL_IO, GGL_FORMAT (it is empty), GGL_LIMIT, GGL_NOMEM;
 * on failure *m holds nothing. The message begins with the path. */
GGL_API GGL_NODISCARD ggl_status ggl_file_map_open(ggl_file_map *m, const char *path,
                                                   ggl_error *err);
GGL_API void ggl_file_map_close(ggl_file_map *m);

/* A file that is being written. A regular file appears under its name, in place of one that was
 * there, only when it is complete and on the disk; until then it is PATH.tmp-PID-K. Links are
 * followed. A device or a pipe is written as it is. The rights are those that the umask leaves. */
typedef struct ggl_new_file ggl_new_file;

/* GGL_USAGE: the path is empty, or is where standard output or error goes. GGL_IO: no such folder, a directory, a disk, no permission.
 * GGL_NOMEM. The message begins with the path. On failure *f is NULL. */
GGL_API GGL_NODISCARD ggl_status ggl_new_file_open(ggl_new_file **f, const char *path,
                                                   ggl_error *err);
/* Whether ggl_new_file_open would work now. Leaves nothing; opens no device and no pipe. */
GGL_API GGL_NODISCARD ggl_status ggl_new_file_check(const char *path, ggl_error *err);
/* The stream to write to: fully buffered, and owned by f. */
GGL_API FILE *ggl_new_file_stream(ggl_new_file *f);
/* Keeps errno if the stream has failed for the first time since it was opened: a caller that writes
 * much calls this after each piece, so that commit can say why. */
GGL_API void ggl_new_file_note(ggl_new_file *f);
/* errno of the first failure that was noted; 0: none. */
GGL_API int ggl_new_file_error(const ggl_new_file *f);
/* Whether path leads to the same file. */
GGL_API bool ggl_new_file_is(const ggl_new_file *f, const char *path);
/* Flushes, and gives the file its name. GGL_IO: not all was written, and nothing is left (of a
 * device or a pipe: what it has taken). Frees f in any case. */
GGL_API GGL_NODISCARD ggl_status ggl_new_file_commit(ggl_new_file *f, ggl_error *err);
GGL_API void ggl_new_file_discard(ggl_new_file *f); /* removes it; NULL is fine */
/* Removes all files of this process that are not complete. For the handler of a signal that ends
 * the process: calls nothing but unlink. */
GGL_API void ggl_new_file_remove_all(void);

#ifdef __cplusplus
}
#endif
#endif
