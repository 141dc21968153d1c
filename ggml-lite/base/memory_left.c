#include "ggl/internal/memory_left.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 4096 };

/* A version of control groups: where it is mounted, and its files. */
typedef struct group_kind {
    const char *mount, *limit[2], *usage, *cached[2]; /* cached: keys of memory.stat */
} group_kind;

static const group_kind v1 = {"/sys/fs/cgroup/memory",
                              {"memory.limit_in_bytes"},
                              "memory.usage_in_bytes",
                              {"total_inactive_file ", "total_active_file "}};
static const group_kind v2 = {"/sys/fs/cgroup",
                              {"memory.max", "memory.high"},
                              "memory.current",
                              {"inactive_file ", "active_file "}};

/* Reads the number after `key` at the start of a line; "": at the start of the file. False: no
 * number follows, as in a file with "max". */
static bool read_number(const char *path, const char *key, double *out) {
    char line[256];
    bool found = false;
    FILE *f = ggl_os_fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        const size_t n = strlen(key);
        char *end;
        if (strncmp(line, key, n) != 0)
            continue;
        *out = strtod(line + n, &end);
        found = end > line + n && *out >= 0;
        if (!*key)
            break;
    }
    if (f)
        fclose(f);
    return found;
}

static void lower(double *least, double x) {
    x = x > 1 ? x : 1;
    if (*least < 0 || x < *least)
        *least = x;
}

/* Lowers *least to what the group at a path leaves. */
static void look_at_group(const char *root, const group_kind *k, const char *path, double *least) {
    char name[MOST_PATH];
    double limit = -1, usage, cached = 0;
    for (int i = 0; i < 2 && k->limit[i]; i++) {
        double bytes;
        snprintf(name, sizeof name, "%s%s%s/%s", root, k->mount, path, k->limit[i]);
        if (read_number(name, "", &bytes) && (limit < 0 || bytes < limit))
            limit = bytes;
    }
    if (limit < 0)
        return;
    snprintf(name, sizeof name, "%s%s%s/%s", root, k->mount, path, k->usage);
    if (!read_number(name, "", &usage))
        return;
    snprintf(name, sizeof name, "%s%s%s/memory.stat", root, k->mount, path);
    for (int i = 0; i < 2; i++) {
        double bytes;
        if (read_number(name, k->cached[i], &bytes))
            cached += bytes;
    }
    lower(least, limit - usage + cached);
}

/* The same for the group and for all groups that contain it. */
static void look_at_groups(const char *root, const group_kind *k, char *path, double *least) {
    path[strcspn(path, "\n")] = '\0';
    for (char *slash; (slash = strrchr(path, '/')); *slash = '\0')
        look_at_group(root, k, strcmp(path, "/") ? path : "", least);
    look_at_group(root, k, "", least); /* in a container, the path may be that outside of it */
}

static void look_at_all_groups(const char *root, double *least) {
    char name[MOST_PATH], line[MOST_PATH / 2];
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *f = ggl_os_fopen(name, "r");
    while (f && fgets(line, sizeof line, f)) { /* "0::/path", or "7:memory:/path" */
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (names[1] == '\0')
            look_at_groups(root, &v2, path, least);
        else if (strcmp(names + 1, "memory") == 0)
            look_at_groups(root, &v1, path, least);
    }
    if (f)
        fclose(f);
}

static size_t to_size(double x) {
    return x < (double)SIZE_MAX ? (size_t)x : SIZE_MAX;
}

size_t ggl_memory_left(const char *root) {
    char name[MOST_PATH];
    double least = -1, kib, told;
    const char *given = *root ? NULL : getenv("GGL_MEMORY_LEFT");
    char *end;
    if (given && (told = strtod(given, &end)) > 0 && !*end)
        return to_size(told);
    snprintf(name, sizeof name, "%s/proc/meminfo", root);
    if (read_number(name, "MemAvailable:", &kib))
        lower(&least, kib * 1024);
    else if (!*root && ggl_os_memory_left() > 0)
        lower(&least, (double)ggl_os_memory_left());
    look_at_all_groups(root, &least);
    return least > 0 ? to_size(least) : 0;
}

size_t ggl_memory_left_addresses(void) {
    const uint64_t limit = ggl_os_limit_addresses();
    double pages, least = -1;
    if (limit == UINT64_MAX || !read_number("/proc/self/statm", "", &pages))
        return 0;
    lower(&least, (double)limit - pages * (double)ggl_os_page_size());
    return to_size(least);
}
