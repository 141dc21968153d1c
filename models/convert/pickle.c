#include "pickle.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/little_endian.h"
#include "common/text_file.h"

enum { LOCAL_HEADER = 30 }; /* of a zip file's first entry; the name follows */

/* True for the first bytes of a zip file whose first entry is called data.pkl, in any folder. */
static bool is_zip(const unsigned char *b, size_t n) {
    if (n < LOCAL_HEADER || memcmp(b, "PK\3\4", 4) != 0)
        return false;
    const size_t n_name = (size_t)llm_little_endian(b + 26, 2), n_end = strlen("data.pkl");
    return n_name >= n_end && n_name <= n - LOCAL_HEADER &&
           memcmp(b + LOCAL_HEADER + n_name - n_end, "data.pkl", n_end) == 0;
}

/* True for the opcode PROTO with a protocol, and an opcode that pickles go on with: LONG1, FRAME, an
 * empty container, a mark or a global. */
static bool is_bare(const unsigned char *b, size_t n) {
    return n > 3 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5 && b[2] != 0 &&
           memchr("\x8a\x95}](c", b[2], 6) != NULL;
}

bool llm_pickle_is(const char *path) {
    unsigned char bytes[512];
    const size_t n = llm_read_head(path, bytes, sizeof bytes);
    return is_zip(bytes, n) || is_bare(bytes, n);
}

static bool ends_with(const char *s, const char *end) {
    const size_t n = strlen(s), n_end = strlen(end);
    return n > n_end && strcmp(s + n - n_end, end) == 0;
}

static bool is_named(const char *name) {
    static const char *const ends[] = {".pth", ".pt", ".ckpt"};
    bool is = strncmp(name, "pytorch_model", 13) == 0 &&
              (ends_with(name, ".bin") || ends_with(name, ".bin.index.json"));
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        is = is || ends_with(name, ends[k]);
    return is;
}

const char *llm_pickle_in(const char *folder, char *buf, size_t size) {
    DIR *dir = opendir(folder);
    bool found = false;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        /* the first by name, so that the message does not depend on the folder's order */
        if (is_named(e->d_name) && (!found || strcmp(e->d_name, buf) < 0)) {
            snprintf(buf, size, "%s", e->d_name);
            found = true;
        }
    if (dir)
        closedir(dir);
    return found ? buf : NULL;
}
