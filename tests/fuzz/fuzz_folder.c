/* A whole Hugging Face folder that is opened directly: the type to quantize to (one byte), config.json, the byte 1, tokenizer.json,
 * the byte 1, model.safetensors. The descriptor is always the same. Whatever opens must be there to the last byte. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/internal/gguf.h"
#include "llm/internal/load.h"

static const char descriptor[] =
    "arch t\nlanguage 1\nd = .n\na [d, n_vocab]\nx = a[token]\nw [d, d]\nv [d, d]\ng [d, d, 2]\nb "
    "[d] ?\n"
    "x = linear(linear(x, w), v) + linear(x, g[0]) + (b if has(b) else 0)\nlogits = linear(x, a)\n"
    "convert A:\n  .vocab_size <- config.v\n  .n <- config.n\n  a <- \"a\"\n  w <- pairs(\"w\", "
    "2)\n"
    "  v <- transpose(\"v\")\n  g <- stack(\"g.{e}\", 2)\n  b <- \"b\"\n";

static char folder[] = "/tmp/fuzz-folder-XXXXXX", path[4][64];
static const char *const names[] = {"own.arch", "config.json", "tokenizer.json",
                                    "model.safetensors"};

static void clean(void) {
    for (int k = 0; k < 4; k++)
        (void)unlink(path[k]);
    (void)rmdir(folder);
}

static void put(int k, const void *data, size_t n) {
    FILE *f = fopen(path[k], "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static void begin(void) {
    static bool is_there;
    if (is_there)
        return;
    is_there = mkdtemp(folder) != NULL && atexit(clean) == 0;
    if (!is_there)
        abort();
    for (int k = 0; k < 4; k++)
        snprintf(path[k], sizeof path[k], "%s/%s", folder, names[k]);
    put(0, descriptor, sizeof descriptor - 1);
}

/* Reads every byte that the file promises. */
static void read_all(const ggl_gguf *f) {
    unsigned sum = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        for (size_t k = 0; k < t->size; k++)
            sum += ((const unsigned char *)t->data)[k];
    }
    if (sum == 1 && ggl_gguf_digest(f) == 0)
        abort(); /* uses both */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const types[] = {NULL, "q4_0", "f16", "q4_k_m"};
    const uint8_t *end = data + size, *first, *second;
    if (size < 3 || !(first = memchr(data + 1, 1, size - 1)) ||
        !(second = memchr(first + 1, 1, (size_t)(end - first - 1))))
        return 0;
    begin();
    put(1, data + 1, (size_t)(first - data - 1));
    put(2, first + 1, (size_t)(second - first - 1));
    put(3, second + 1, (size_t)(end - second - 1));
    const llm_load_params p = {.size = sizeof p,
                               .arch_path = path[0],
                               .type = types[data[0] % 4],
                               .n_threads = 1 + data[0] % 8 / 4};
    ggl_error err = {0};
    ggl_gguf *f;
    if (llm_load(&f, folder, NULL, &p, &err) == GGL_OK)
        read_all(f);
    else if (!err.msg[0] || f)
        abort();
    ggl_gguf_close(f);
    return 0;
}

/* the form of MLX's codes, for the seeds that have them */
#define FORM                                                                                       \
    "\"quantization\": {\"group_size\": 32, \"bits\": 4, \"v\": {\"group_size\": 16, \"bits\": "   \
    "8}}"
#define CONFIG "{\"architectures\": [\"A\"], \"v\": 3, \"n\": 32, " FORM "}"
#define TOKENIZER                                                                                  \
    "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": "    \
    "{\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}"

typedef struct seed_tensor {
    const char *name, *shape;
    size_t n;          /* elements */
    const char *dtype; /* NULL: that of the seed */
} seed_tensor;

static const seed_tensor plain[] = {{"a", "3, 32", 96, NULL},
                                    {"w", "32, 32", 1024, NULL},
                                    {"v", "32, 32", 1024, NULL},
                                    {"g.0", "32, 32", 1024, NULL},
                                    {"g.1", "32, 32", 1024, NULL},
                                    {"b", "32", 32, NULL},
                                    {0}};
/* The same with MLX's codes. */
#define CODES(name, words, n_word, groups, n_group)                                                \
    {name ".weight", words, n_word, "U32"}, {name ".scales", groups, n_group, NULL}, {             \
        name ".biases", groups, n_group, NULL                                                      \
    }
static const seed_tensor mlx[] = {{"a", "3, 32", 96, NULL},
                                  CODES("w", "32, 4", 128, "32, 1", 32),
                                  CODES("v", "32, 8", 256, "32, 2", 64),
                                  CODES("g.0", "32, 4", 128, "32, 1", 32),
                                  CODES("g.1", "32, 4", 128, "32, 1", 32),
                                  {"b", "32", 32, NULL},
                                  {0}};

/* Writes the header of model.safetensors, filled up with spaces; returns the bytes of its data. */
static size_t put_head(char *to, const seed_tensor *t, const char *dtype, size_t size) {
    const char *begin = to;
    size_t at = 0;
    for (int i = 0; t[i].name; i++) {
        const size_t n = t[i].n * (t[i].dtype ? 4 : size);
        to += sprintf(
            to, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%s], \"data_offsets\": [%zu, %zu]}",
            i ? ", " : "{", t[i].name, t[i].dtype ? t[i].dtype : dtype, t[i].shape, at, at + n);
        at += n;
    }
    to += sprintf(to, "}");
    while ((to - begin) % 8 != 0)
        *to++ = ' ';
    *to = 0;
    return at;
}

/* Seed k: each with another type of numbers or with codes, and another type to quantize to. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const struct {
        const char *dtype;
        size_t size;
        const seed_tensor *tensor;
    } seeds[] = {{"F32", 4, plain}, {"F16", 2, plain}, {"BF16", 2, plain},
                 {"F64", 8, plain}, {"F16", 2, mlx},   {"BF16", 2, mlx}};
    char head[2048];
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    const size_t n_data = put_head(head, seeds[k].tensor, seeds[k].dtype, seeds[k].size);
    const uint64_t n_head = strlen(head);
    const size_t n_text = 1 + strlen(CONFIG) + 1 + strlen(TOKENIZER) + 1;
    *size = n_text + 8 + n_head + n_data;
    uint8_t *out = *data = calloc(*size, 1);
    if (!out)
        abort();
    out[0] = (uint8_t)k;
    memcpy(out + 1, CONFIG "\1" TOKENIZER "\1", n_text - 1);
    memcpy(out + n_text, &n_head, 8);
    memcpy(out + n_text + 8, head, n_head);
    for (size_t i = 0; i < n_data; i++) /* small numbers of any type */
        out[n_text + 8 + n_head + i] =
            (uint8_t)(i % seeds[k].size == seeds[k].size - 1 ? 0x3c : i * 7);
    return true;
}
