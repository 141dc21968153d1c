#include "ggl/internal/disk_left.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "ggl/alloc.h"

/* The innermost of the path's folders that exists; the path is changed. NULL: none does. */
static const char *folder_of(char *path, struct stat *s) {
    for (char *slash; (slash = strrchr(path, '/'));) {
        slash[slash == path] = '\0';
        if (stat(path, s) == 0)
            return path;
        if (slash == path)
            return NULL;
    }
    return stat(".", s) == 0 ? "." : NULL;
}

static bool measure(char *path, uint64_t *bytes, uint64_t *disk) {
    struct statvfs v;
    struct stat s;
    const char *there = stat(path, &s) == 0 ? path : folder_of(path, &s);
    if (!there || !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode)) || statvfs(there, &v) != 0 ||
        v.f_blocks == 0)
        return false;
    *bytes = (uint64_t)v.f_bavail * v.f_frsize;
    *disk = (uint64_t)s.st_dev;
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
