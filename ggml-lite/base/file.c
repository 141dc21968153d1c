/* Implements ggl/internal/file.h by the functions of os_file.h. */
#include "ggl/internal/file.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "ggl/alloc.h"
#include "os_file.h"
#include "ggl/internal/os_fs.h"

ggl_status ggl_file_map_open_how(ggl_file_map *m, const char *path, const ggl_file_how *how,
                                 ggl_error *err) {
    os_map map;
    os_map_params params = {0};
    if (how)
        params = (os_map_params){how->no_mmap, how->populate, how->willneed};
    ggl_status s = ggl_os_map_open(&map, path, &params, err);
    *m = (ggl_file_map){map.data, map.size, map.mapped, map.modified};
    return s == GGL_OK ? s : ggl_within(err, s, "%s", path);
}

ggl_status ggl_file_map_open(ggl_file_map *m, const char *path, ggl_error *err) {
    return ggl_file_map_open_how(m, path, NULL, err);
}

void ggl_file_map_close(ggl_file_map *m) {
    os_map map = {.data = m->data, .size = m->size, .mapped = m->mapped};
    ggl_os_map_close(&map);
    *m = (ggl_file_map){0};
}

void ggl_file_map_drop(const ggl_file_map *m, const void *data, size_t size) {
    const uintptr_t begin = (uintptr_t)m->data, at = (uintptr_t)data;
    /* memory that is not of the file would become zeros */
    if (m->mapped && at >= begin && at - begin < m->size && size <= m->size - (at - begin))
        ggl_os_map_drop(data, size);
}

const char *ggl_file_at(const void *address, ggl_file_map *of) {
    os_map map;
    const char *path = ggl_os_map_path(address, &map);
    if (of)
        *of = (ggl_file_map){.data = map.data, .size = map.size, .mapped = path != NULL};
    return path;
}

bool ggl_file_exists(const char *path) {
    return ggl_os_exists(path);
}

/* --- files to write --------------------------------------------------------------------------- */

struct ggl_new_file {
    os_new_file file;
    FILE *stream; /* on a duplicate of file.fd, as both are closed */
    int error;    /* the first errno that was noted */
    char path[];
};

ggl_status ggl_new_file_open(ggl_new_file **out, const char *path, ggl_error *err) {
    size_t n = strlen(path) + 1;
    ggl_new_file *f = *out = ggl_calloc(sizeof *f + n, 1);
    if (!f)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    memcpy(f->path, path, n);
    ggl_status s = ggl_os_new_file_open(&f->file, path, err);
    if (s == GGL_OK) {
        f->stream = ggl_os_new_file_stream(&f->file);
        if (!f->stream)
            s = ggl_fail(err, GGL_IO, "cannot be written: %s", strerror(errno));
    }
    if (s == GGL_OK)
        return GGL_OK;
    ggl_new_file_discard(f);
    *out = NULL;
    return *path ? ggl_within(err, s, "%s", path) : s;
}

ggl_status ggl_new_file_check(const char *path, ggl_error *err) {
    ggl_status s = ggl_os_new_file_check(path, err);
    return s == GGL_OK || !*path ? s : ggl_within(err, s, "%s", path);
}

FILE *ggl_new_file_stream(ggl_new_file *f) {
    return f->stream;
}

void ggl_new_file_note(ggl_new_file *f) {
    if (!f->error && ferror(f->stream))
        f->error = errno ? errno : EIO;
}

int ggl_new_file_error(const ggl_new_file *f) {
    return f->error;
}

bool ggl_new_file_is(const ggl_new_file *f, const char *path) {
    return ggl_os_new_file_is(&f->file, path);
}

ggl_status ggl_new_file_commit(ggl_new_file *f, ggl_error *err) {
    errno = 0;
    (void)fflush(f->stream);
    ggl_new_file_note(f);
    errno = 0;
    if (fclose(f->stream) != 0 && !f->error)
        f->error = errno ? errno : EIO;
    f->stream = NULL;
    ggl_status s = f->error ? ggl_fail(err, GGL_IO, "cannot be written: %s", strerror(f->error))
                            : ggl_os_new_file_commit(&f->file, err);
    if (s != GGL_OK)
        s = ggl_within(err, s, "%s", f->path);
    ggl_new_file_discard(f);
    return s;
}

void ggl_new_file_discard(ggl_new_file *f) {
    if (!f)
        return;
    if (f->stream)
        fclose(f->stream);
    ggl_os_new_file_discard(&f->file);
    ggl_free(f);
}

void ggl_new_file_remove_all(void) {
    ggl_os_new_file_remove_all();
}
