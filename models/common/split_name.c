#include "split_name.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"

enum { TAIL = 20 }; /* strlen("-00001-of-00003.gguf") */

/* Reads the numbers of a part's name. False: it is no part. */
static bool read_part(const char *path, int *k, int *n) {
    const size_t len = strlen(path);
    int end = 0;
    if (len <= TAIL || ggl_case_compare(path + len - 5, ".gguf") != 0 ||
        strspn(path + len - TAIL + 1, "0123456789") != 5 ||
        sscanf(path + len - TAIL, "-%5d-of-%5d.%n", k, n, &end) != 2 || end != 16)
        return false;
    return *k >= 1 && *k <= *n;
}

int llm_split_n_parts(const char *path) {
    int k, n;
    return read_part(path, &k, &n) ? n : 1;
}

void llm_split_part_path(char *buf, size_t size, const char *path, int part) {
    int k, n;
    const size_t len = strlen(path);
    if (read_part(path, &k, &n))
        snprintf(buf, size, "%.*s-%05d-of-%05d%s", (int)(len - TAIL), path, part, n,
                 path + len - 5);
    else
        snprintf(buf, size, "%s", path);
}

bool llm_split_is_first(const char *path) {
    int k, n;
    return !read_part(path, &k, &n) || k == 1;
}
