#include "ggl/internal/disk_left.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"

/* The innermost of the path's folders that exists; the path is changed. NULL: none does. */
static const char *folder_of(char *path, os_stat *s) {
    for (char *slash; (slash = ggl_os_last_separator(path));) {
        slash[slash == path] = '\0';
        if (ggl_os_stat(path, s))
            return path;
        if (slash == path)
            return NULL;
    }
    return ggl_os_stat(".", s) ? "." : NULL;
}

static bool measure(char *path, uint64_t *bytes, uint64_t *disk) {
    os_stat s;
    const char *there = ggl_os_stat(path, &s) ? path : folder_of(path, &s);
    if (!there || !(s.kind == OS_FILE || s.kind == OS_FOLDER) || !ggl_os_disk_left(there, bytes))
        return false;
    *disk = s.disk;
    return true;
}

bool ggl_disk_left(const char *path, uint64_t *bytes, uint64_t *disk) {
    const size_t n = strlen(path) + 1;
    const char *given = getenv("GGL_DISK_LEFT");
    uint64_t number = 0;
    char *end, *copy = ggl_calloc(n, 1);
    if (!copy)
        return false;
    memcpy(copy, path, n);
    const bool known = measure(copy, bytes, &number);
    ggl_free(copy);
    if (disk)
        *disk = number;
    const double told = given ? strtod(given, &end) : 0;
    if (known && told > 0 && !*end)
        *bytes = told < (double)UINT64_MAX ? (uint64_t)told : UINT64_MAX;
    return known;
}
