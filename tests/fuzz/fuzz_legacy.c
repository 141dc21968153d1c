/* Speech models in ggml's format before GGUF: the header, tensors, and the tokenizer that is made of the tokens. All tensors of a file that
 * opens must be there to the last byte. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/hf_tokenizer.h"
#include "convert/legacy.h"

static void read_tokens(const uint8_t *data, int64_t n_vocab) {
    llm_hf_tokenizer *t;
    ggl_error err = {0};
    const ggl_status s = llm_hf_tokenizer_open_legacy(&t, data, n_vocab, &err);
    if ((s == GGL_OK) != (t != NULL) || (s != GGL_OK && !err.msg[0]))
        abort();
    llm_hf_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llm_safetensors *st;
    llm_json *config;
    ggl_error err = {0};
    unsigned sum = 0;
    const ggl_str file = {(const char *)data, size};
    const ggl_status s = llm_legacy_open(&st, &config, "model", NULL, &file, &err);
    if ((s == GGL_OK) != (st != NULL) || (s == GGL_OK) != (config != NULL) ||
        (s != GGL_OK && !err.msg[0]))
        abort();
    for (size_t i = 0; st && i < st->n_tensor; i++)
        for (size_t k = 0; k < st->tensor[i].size; k++)
            sum += ((const unsigned char *)st->tensor[i].data)[k];
    if (sum == 1 && llm_safetensors_find(st, "no such name"))
        abort(); /* uses the sum */
    if (s == GGL_OK)
        read_tokens(data, (int64_t)llm_json_get(&config->root, "n_vocab")->number);
    llm_safetensors_close(st);
    llm_json_free(config);
    return 0;
}

/* Appends n bytes. */
static void put(uint8_t **to, const void *x, size_t n) {
    memcpy(*to, x, n);
    *to += n;
}

/* A header, one band, tokens of which two follow from those before, and two tensors, of f32 and of blocks. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    enum { N_BIN = 201, N_TOKENS = 7, VOCAB = N_TOKENS + 1608 };
    static const int32_t head[] = {VOCAB, 4, 2, 1, 1, 4, 2, 1, 1, 1, 2008, 1, N_BIN};
    static const char *const token[N_TOKENS] = {"a", "b", "c", "ab", "abc", "", "ab"};
    static const int32_t plain[] = {1, 1, 0, 2}, blocks[] = {2, 2, 6, 32, 1};
    static const uint8_t zeros[4 * N_BIN] = {0};
    if (k >= 1)
        return false;
    uint8_t *to = *data = calloc(4096, 1);
    if (!to)
        abort();
    put(&to, "lmgg", 4);
    put(&to, head, sizeof head);
    put(&to, zeros, sizeof zeros);
    put(&to, &(int32_t){N_TOKENS}, 4);
    for (int i = 0; i < N_TOKENS; i++) {
        put(&to, &(int32_t){(int32_t)strlen(token[i])}, 4);
        put(&to, token[i], strlen(token[i]));
    }
    put(&to, plain, sizeof plain);
    put(&to, "x", 1);
    put(&to, zeros, 8);
    put(&to, blocks, sizeof blocks);
    put(&to, "yz", 2);
    put(&to, zeros, 22);
    *size = (size_t)(to - *data);
    return true;
}
