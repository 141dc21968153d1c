#include "logits_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "log_softmax.h"

static const char magic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
enum { HEAD = 8 + 3 * 4 };

int64_t llm_logits_scored(int64_t n_ctx) {
    return n_ctx - 1 - n_ctx / 2;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Computes the size of a file with that head. False: too large. */
static bool file_size(const logits_head *h, size_t *tokens, size_t *size) {
    size_t rows;
    if (!ggl_size_mul((uint64_t)h->n_chunk, (uint64_t)h->n_ctx, tokens) ||
        !ggl_size_mul(*tokens, 4, tokens) ||
        !ggl_size_mul((uint64_t)h->n_chunk, (uint64_t)llm_logits_scored(h->n_ctx), &rows) ||
        !ggl_size_mul(rows, 2 * (uint64_t)llm_log_probs_size(h->n_vocab), &rows))
        return false;
    return ggl_size_add(HEAD, *tokens, size) && ggl_size_add(*size, rows, size);
}

static ggl_status read_head(logits_reader *r, size_t *tokens, ggl_error *err) {
    const uint8_t *p = r->map.data;
    uint32_t n_ctx;
    int32_t n_vocab, n_chunk;
    size_t size;
    if (r->map.size < HEAD || memcmp(p, magic, sizeof magic) != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "is not a file of log-probabilities: it does not begin with '_logits_'");
    memcpy(&n_ctx, p + 8, 4);
    memcpy(&n_vocab, p + 12, 4);
    memcpy(&n_chunk, p + 16, 4);
    if (n_ctx < 4 || n_ctx > 1 << 30 || n_vocab < 1 || n_chunk < 1)
        return ggl_fail(err, GGL_FORMAT,
                        "the header says %" PRId32 " chunks of %" PRIu32
                        " tokens and a vocabulary of %" PRId32 ", which is impossible",
                        n_chunk, n_ctx, n_vocab);
    r->head = (logits_head){.n_ctx = n_ctx, .n_vocab = n_vocab, .n_chunk = n_chunk};
    if (!file_size(&r->head, tokens, &size) || size != r->map.size)
        return ggl_fail(err, GGL_FORMAT,
                        "has %zu bytes, but not those of %" PRId32 " chunks of %" PRIu32
                        " tokens with a vocabulary of %" PRId32
                        ": it is incomplete, or not a file of log-probabilities",
                        r->map.size, n_chunk, n_ctx, n_vocab);
    return GGL_OK;
}

static ggl_status read_tokens(logits_reader *r, size_t size, ggl_error *err) {
    const uint8_t *p = (const uint8_t *)r->map.data + HEAD;
    r->token = ggl_calloc(size, 1);
    if (!r->token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", size / 4);
    memcpy(r->token, p, size);
    for (size_t i = 0; i < size / 4; i++)
        if (r->token[i] < 0 || r->token[i] >= r->head.n_vocab)
            return ggl_fail(err, GGL_FORMAT,
                            "token %zu is %" PRId32 ", outside of the vocabulary of %" PRId64, i,
                            r->token[i], r->head.n_vocab);
    r->rows = p + size;
    return GGL_OK;
}

ggl_status llm_logits_open(logits_reader *r, const char *path, ggl_error *err) {
    size_t tokens = 0;
    *r = (logits_reader){0};
    ggl_status s = ggl_file_map_open(&r->map, path, err);
    if (s != GGL_OK)
        return s;
    s = read_head(r, &tokens, err);
    if (s == GGL_OK)
        s = read_tokens(r, tokens, err);
    if (s == GGL_OK)
        return GGL_OK;
    llm_logits_close(r);
    return ggl_within(err, s, "%s", path);
}

void llm_logits_close(logits_reader *r) {
    ggl_free(r->token);
    ggl_file_map_close(&r->map);
    *r = (logits_reader){0};
}

bool llm_logits_row(const logits_reader *r, int64_t chunk, int64_t k, uint16_t *row) {
    size_t size = 2 * (size_t)llm_log_probs_size(r->head.n_vocab);
    size_t at = (size_t)(chunk * llm_logits_scored(r->head.n_ctx) + k);
    memcpy(row, r->rows + at * size, size);
    return llm_log_probs_valid(row, r->head.n_vocab);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put(logits_writer *w, const void *data, size_t n) {
    if (!ggl_new_file_error(w->file) && fwrite(data, 1, n, ggl_new_file_stream(w->file)) != n)
        ggl_new_file_note(w->file);
}

ggl_status llm_logits_begin(logits_writer *w, const char *path, const logits_head *h,
                            const int32_t *token, ggl_error *err) {
    ggl_status s = ggl_new_file_open(&w->file, path, err);
    if (s != GGL_OK)
        return s;
    const uint32_t n_ctx = (uint32_t)h->n_ctx;
    const int32_t n[2] = {(int32_t)h->n_vocab, (int32_t)h->n_chunk};
    put(w, magic, sizeof magic);
    put(w, &n_ctx, 4);
    put(w, n, sizeof n);
    put(w, token, (size_t)(h->n_chunk * h->n_ctx) * 4);
    return s;
}

void llm_logits_put(logits_writer *w, const uint16_t *row, int64_t n) {
    put(w, row, (size_t)n * 2);
}

ggl_status llm_logits_end(logits_writer *w, ggl_error *err) {
    ggl_status s = ggl_new_file_commit(w->file, err);
    w->file = NULL;
    return s;
}

void llm_logits_abort(logits_writer *w) {
    ggl_new_file_discard(w->file);
    w->file = NULL;
}
