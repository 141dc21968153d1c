#include "pickle.h"

#include <stdio.h>
#include <string.h>

#include "common/little_endian.h"
#include "common/text_file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"

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

bool llm_pickle_is_name(const char *name) {
    static const char *const ends[] = {".pth", ".pt", ".ckpt"};
    bool is = strncmp(name, "pytorch_model", 13) == 0 &&
              (ggl_ends_with(name, ".bin") || ggl_ends_with(name, ".bin.index.json"));
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        is = is || ggl_ends_with(name, ends[k]);
    return is;
}

const char *llm_pickle_in(const char *folder, char *buf, size_t size) {
    os_folder *dir = ggl_os_folder_open(folder);
    bool found = false;
    for (const char *e; dir && (e = ggl_os_folder_next(dir));)
        /* the first by name, so that the message does not depend on the folder's order */
        if (llm_pickle_is_name(e) && (!found || strcmp(e, buf) < 0)) {
            snprintf(buf, size, "%s", e);
            found = true;
        }
    if (dir)
        ggl_os_folder_close(dir);
    return found ? buf : NULL;
}

const char *llm_pickle_advice(const char *name, char buf[LLM_PICKLE_ADVICE]) {
    const char *slash = strrchr(name, '/');
    char from[80] = "FILE", to[80] = "model.safetensors";
    int part, n_parts;
    const bool is_part =
        sscanf(slash ? slash + 1 : name, "pytorch_model-%5d-of-%5d.bin", &part, &n_parts) == 2;
    if (is_part) {
        snprintf(from, sizeof from, "\"pytorch_model-%05d-of-%05d.bin\"", part, n_parts);
        snprintf(to, sizeof to, "model-%05d-of-%05d.safetensors", part, n_parts);
    }
    snprintf(buf, LLM_PICKLE_ADVICE,
             "a pickle can run programs when it is read, so it is not opened; take the safetensors "
             "version of the model, or make one with PyTorch%s: "
             "safetensors.torch.save_file(torch.load(%s, weights_only=True), \"%s\")",
             is_part ? ", in the same way for each part" : "", from, to);
    return buf;
}
