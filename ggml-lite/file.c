/* ggl/file.h: the public face of os_file.h. */
#include "ggl/file.h"

#include "os_file.h"

ggl_status ggl_file_map_open(ggl_file_map *m, const char *path, ggl_error *err) {
    os_map map;
    const os_map_params params = {0};
    ggl_status s = os_map_open(&map, path, &params, err);
    *m = (ggl_file_map){map.data, map.size};
    return s == GGL_OK ? s : ggl_within(err, s, "%s", path);
}

void ggl_file_map_close(ggl_file_map *m) {
    os_map map = {.data = m->data, .size = m->size};
    os_map_close(&map);
    *m = (ggl_file_map){0};
}
