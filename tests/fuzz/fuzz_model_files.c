/* Models in files of other programs: CTranslate2's model.bin, and ONNX. All tensors of a file that opens must be there to the last byte. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/ctranslate2.h"
#include "convert/lone.h"

typedef ggl_status open_file(llm_safetensors **out, llm_json **config, const char *path,
                             const ggl_file_how *how, const ggl_str *bytes, ggl_error *err);

static void open_as(open_file *open, const char *path, const uint8_t *data, size_t size) {
    llm_safetensors *st;
    llm_json *config;
    ggl_error err = {0};
    unsigned sum = 0;
    const ggl_str file = {(const char *)data, size};
    const ggl_status s = open(&st, &config, path, NULL, &file, &err);
    if ((s == GGL_OK) != (st != NULL) || (s == GGL_OK) != (config != NULL) ||
        (s != GGL_OK && !err.msg[0]))
        abort();
    for (size_t i = 0; st && i < st->n_tensor; i++)
        for (size_t k = 0; k < st->tensor[i].size; k++)
            sum += ((const unsigned char *)st->tensor[i].data)[k];
    if (sum == 1 && llm_safetensors_find(st, "no such name"))
        abort(); /* uses the sum */
    llm_safetensors_close(st);
    llm_json_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_as(llm_ctranslate2_open, "model.bin", data, size);
    open_as(llm_lone_open, "model.onnx", data, size);
    return 0;
}

static void put(uint8_t **to, const void *x, size_t n) {
    memcpy(*to, x, n);
    *to += n;
}

static void put_text(uint8_t **to, const char *text) {
    const uint16_t n = (uint16_t)(strlen(text) + 1);
    put(to, &n, 2);
    put(to, text, n);
}

static void put_variable(uint8_t **to, const char *name, const void *table, size_t n_table,
                         size_t n) {
    static const uint8_t zeros[64] = {0};
    put_text(to, name);
    put(to, table, n_table);
    put(to, zeros, n);
}

/* A model.bin with a matrix of integers, its divisors, a number and a second name. */
static void make_bin(uint8_t **to) {
    static const uint32_t version = 6, counts[] = {3, 4}, one = 1;
    put(to, &version, 4);
    put_text(to, "AnySpec");
    put(to, counts, sizeof counts);
    put_variable(to, "a/layer_0/w", "\2\2\0\0\0\3\0\0\0\1\6\0\0\0", 14, 6);
    put_variable(to, "a/layer_0/w_scale", "\1\2\0\0\0\0\10\0\0\0", 10, 8);
    put_variable(to, "a/layer_1/b", "\1\4\0\0\0\4\10\0\0\0", 10, 8);
    put_variable(to, "a/n", "\0\2\2\0\0\0", 6, 2);
    put(to, &one, 4);
    put_text(to, "a/other");
    put_text(to, "a/layer_0/w");
}

/* An ONNX file with an initializer, a shape, and a constant in a graph of a node. */
static void make_onnx(uint8_t **to) {
    static const char file[] = "\x08\x08\x3a\x47"
                               "\x2a\x13\x08\x02\x08\x01\x10\x01\x42\x01w\x4a\x08________"
                               "\x2a\x0f\x08\x01\x10\x07\x42\x01s\x4a\x08________"
                               "\x0a\x1f\x2a\x1d\x32\x1b\x0a\x19\x12\x01o\x2a\x14\x2a\x12\x0a\x02"
                               "\x02\x01\x10\x0a\x42\x00\x4a\x04____\x20\x00\x20\x00";
    put(to, file, sizeof file - 1);
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    if (k >= 2)
        return false;
    uint8_t *to = *data = calloc(1024, 1);
    if (!to)
        abort();
    if (k == 0)
        make_bin(&to);
    else
        make_onnx(&to);
    *size = (size_t)(to - *data);
    return true;
}
