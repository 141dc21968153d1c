/* A file's bytes, mapped: for formats other than GGUF.
 *
 *     ggl_file_map m;
 *     if (ggl_file_map_open(&m, "model.safetensors", &err) == GGL_OK) {
 *         .. m.data[0 .. m.size) ..
 *         ggl_file_map_close(&m);
 *     }
 */
#ifndef GGL_FILE_H
#define GGL_FILE_H

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
GGL_API GGL_NODISCARD ggl_status ggl_file_map_open(ggl_file_map *m, const char *path, ggl_error *err);
GGL_API void ggl_file_map_close(ggl_file_map *m);

#ifdef __cplusplus
}
#endif
#endif
