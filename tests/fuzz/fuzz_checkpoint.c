/* llama2.c's files: the length of a tokenizer.bin (one byte), the tokenizer.bin, and a checkpoint. All tensors of a checkpoint that opens
 * must be there to the last byte. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/checkpoint.h"
#include "convert/sentence_pieces.h"

static void read_tokenizer(const uint8_t *data, size_t size) {
    sentence_pieces p;
    ggl_error err = {0};
    const ggl_status s = llm_sentence_pieces_read_bin(&p, data, size, &err);
    size_t sum = 0;
    for (int64_t i = 0; s == GGL_OK && i < p.n; i++)
        for (size_t k = 0; k < p.piece[i].n; k++)
            sum += (unsigned char)p.piece[i].s[k];
    if ((s == GGL_OK && (p.n < 3 || sum == SIZE_MAX)) || (s != GGL_OK && !err.msg[0]))
        abort();
    llm_sentence_pieces_fini(&p);
}

static void read_checkpoint(const uint8_t *data, size_t size) {
    llm_safetensors *st;
    llm_json *config;
    ggl_error err = {0};
    unsigned sum = 0;
    const ggl_str file = {(const char *)data, size};
    const ggl_status s = llm_checkpoint_open(&st, &config, "checkpoint", NULL, &file, &err);
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
    const size_t n = size == 0 ? 0 : data[0] < size - 1 ? data[0] : size - 1;
    if (size == 0)
        return 0;
    read_tokenizer(data + 1, n);
    read_checkpoint(data + 1 + n, size - 1 - n);
    return 0;
}

/* Writes n numbers of 32 bits to *to, and moves it behind them. */
static void put(uint8_t **to, const int32_t *x, int n) {
    memcpy(*to, x, (size_t)n * sizeof *x);
    *to += (size_t)n * sizeof *x;
}

/* A tokenizer of three pieces, and checkpoint k: versions 0, 1 and 2, with dim 4, 1 layer, 1 head and 2 tokens. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char tokenizer[] = "\5\0\0\0"
                                    "\0\0\0\0\5\0\0\0<unk>"
                                    "\0\0\0\0\5\0\0\0\n<s>\n"
                                    "\0\0\200\277\1\0\0\0 ";
    enum { DIM = 4, HIDDEN = 8, VOCAB = 2, SEQ = 2, N = sizeof tokenizer - 1 };
    enum { MATRICES = VOCAB * DIM + 4 * DIM * DIM + 3 * DIM * HIDDEN, VECTORS = 3 * DIM };
    const int32_t head[] = {DIM, HIDDEN, 1, 1, 1, VOCAB, SEQ}, group = DIM;
    const size_t sizes[] = {28 + 4 * (MATRICES + VECTORS + SEQ * DIM),
                            256 + 4 * (MATRICES + VECTORS),
                            256 + 4 * VECTORS + MATRICES + MATRICES / DIM * 4};
    if (k >= 3)
        return false;
    *size = 1 + N + sizes[k];
    uint8_t *to = *data = calloc(*size, 1);
    if (!to)
        abort();
    *to++ = N;
    memcpy(to, tokenizer, N);
    to += N;
    if (k > 0) {
        memcpy(to, "24ka", 4);
        to += 4;
        put(&to, &(int32_t){k}, 1);
    }
    put(&to, head, 7);
    if (k > 0)
        *to++ = 1;
    if (k == 2)
        put(&to, &group, 1);
    return true;
}
