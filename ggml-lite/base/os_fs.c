/* os_fs.h: the part that is the same on all systems. */
#include "ggl/internal/os_fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ggl_os_is_same(const os_stat *a, const os_stat *b) {
    return a->disk == b->disk && a->id == b->id;
}

bool ggl_os_is_at(int fd, const char *path) {
    os_stat a, b;
    return ggl_os_stat_fd(fd, &a) && ggl_os_stat(path, &b) && ggl_os_is_same(&a, &b);
}

bool ggl_os_is_file(const char *path) {
    os_stat s;
    return ggl_os_stat(path, &s) && s.kind == OS_FILE;
}

bool ggl_os_is_folder(const char *path) {
    os_stat s;
    return ggl_os_stat(path, &s) && s.kind == OS_FOLDER;
}

FILE *ggl_os_fopen_plain(const char *path) {
    os_stat st;
    const int fd = ggl_os_open(path, OS_READ | OS_NO_WAIT);
    FILE *f =
        fd >= 0 && ggl_os_stat_fd(fd, &st) && st.kind == OS_FILE ? ggl_os_fdopen(fd, "r") : NULL;
    if (fd >= 0 && !f)
        ggl_os_close(fd);
    return f;
}

bool ggl_os_has_separator(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ggl_os_separates(s[i]))
            return true;
    return false;
}

char *ggl_os_last_separator(const char *path) {
    const char *last = NULL;
    for (const char *s = path; *s; s++)
        if (ggl_os_separates(*s))
            last = s;
    return (char *)(uintptr_t)last;
}

void ggl_os_make_parents(const char *path, bool is_private) {
    const size_t size = strlen(path) + 1;
    char *copy = malloc(size);
    if (!copy)
        return;
    memcpy(copy, path, size);
    for (char *p = copy; *p; p++)
        if (p > copy && ggl_os_separates(*p)) {
            *p = '\0';
            (void)ggl_os_make_folder(copy, is_private);
            *p = path[p - copy];
        }
    free(copy);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a copy of the name to the list. */
static bool add_name(char ***names, size_t *n, const char *name) {
    const size_t size = strlen(name) + 1, power = *n & (*n - 1); /* 0: the list is full */
    if (power == 0) {
        char **more = realloc(*names, (*n ? *n * 2 : 1) * sizeof **names);
        if (!more)
            return false;
        *names = more;
    }
    char *copy = malloc(size);
    if (!copy)
        return false;
    memcpy(copy, name, size);
    (*names)[(*n)++] = copy;
    return true;
}

int64_t ggl_os_folder_list(const char *path, bool (*is)(const char *name), char ***names) {
    os_folder *f = ggl_os_folder_open(path);
    size_t n = 0;
    bool good = f != NULL;
    *names = NULL;
    for (const char *name; good && (name = ggl_os_folder_next(f));)
        good = (is && !is(name)) || add_name(names, &n, name);
    const int why = f ? ENOMEM : errno;
    ggl_os_folder_close(f);
    if (!good) {
        for (size_t i = 0; i < n; i++)
            free((*names)[i]);
        free(*names);
        *names = NULL;
        errno = why;
        return -1;
    }
    if (n > 1)
        qsort(*names, n, sizeof **names, by_bytes);
    return (int64_t)n;
}
