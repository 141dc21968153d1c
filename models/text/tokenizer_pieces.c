/* Functions shared by several kinds of tokenizers: scores, byte tokens, U+2581 for spaces. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "tokenizer_impl.h"

const char llm_space[3] = {'\xe2', '\x96', '\x81'};

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int llm_hex_byte(const char *s) {
    int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);
    return low < 0 ? -1 : high * 16 + low;
}

/* Returns NN for "<0xNN>", else -1. */
static int byte_spelled(ggl_str p) {
    if (p.n != 6 || memcmp(p.s, "<0x", 3) != 0 || p.s[5] != '>')
        return -1;
    return llm_hex_byte(p.s + 3);
}

ggl_status llm_read_scores(llm_tokenizer *t, const ggl_gguf *file, float **out, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, "tokenizer.ggml.scores");
    if (!v)
        return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.scores is missing");
    if (!v->is_array || v->n != (uint64_t)t->n_vocab)
        return ggl_fail(err, GGL_FORMAT,
                        "tokenizer.ggml.scores has %" PRIu64 " entr%s, for %" PRId32 " token%s",
                        v->n, v->n == 1 ? "y" : "ies", t->n_vocab, llm_amount_s(t->n_vocab));
    *out = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    for (int32_t i = 0; i < t->n_vocab; i++) {
        double score;
        if (!ggl_gguf_number(v, (uint64_t)i, &score))
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.scores is an array of %s, not of numbers",
                            ggl_gguf_type_name(v->type));
        (*out)[i] = (float)score;
        if (isnan(score))
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.scores of token %" PRId32 " is not a number", i);
    }
    return GGL_OK;
}

static ggl_status finite_scores(const llm_tokenizer *t, const float *score, ggl_error *err) {
    for (int32_t i = 0; i < t->n_vocab; i++)
        if (!isfinite(score[i]))
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.scores of token %" PRId32 " is infinite", i);
    return GGL_OK;
}

ggl_status llm_read_byte_tokens(llm_tokenizer *t, int32_t byte[256], ggl_error *err) {
    for (int b = 0; b < 256; b++)
        byte[b] = -1;
    /* backward, so that the first of equal spellings wins */
    for (int32_t id = t->n_vocab - 1; id >= 0; id--) {
        int b = byte_spelled(t->piece[id]);
        if (!t->has_types && b >= 0)
            t->type[id] = TOKEN_BYTE;
        if (t->type[id] != TOKEN_BYTE)
            continue;
        if (b < 0)
            return ggl_fail(err, GGL_FORMAT,
                            "token %" PRId32 " is a byte token, but is spelled '%.*s', not <0xNN>",
                            id, (int)(t->piece[id].n < 64 ? t->piece[id].n : 64), t->piece[id].s);
        byte[b] = id;
    }
    return GGL_OK;
}

ggl_status llm_need_bytes(llm_tokenizer *t, const int32_t byte[256], ggl_error *err) {
    for (int b = 0; b < 256; b++) {
        if (byte[b] < 0 && t->unknown < 0)
            return ggl_fail(err, GGL_FORMAT,
                            "there is neither a token for byte 0x%02X nor an unknown token", b);
        if (byte[b] < 0)
            t->type[t->unknown] = TOKEN_UNKNOWN;
    }
    return GGL_OK;
}

ggl_status llm_read_scored_pieces(llm_tokenizer *t, const ggl_gguf *file, float **score,
                                  int32_t byte[256], ggl_error *err) {
    ggl_status s = llm_read_scores(t, file, score, err);
    if (s == GGL_OK)
        s = finite_scores(t, *score, err);
    if (s == GGL_OK)
        s = llm_read_byte_tokens(t, byte, err);
    return s == GGL_OK ? llm_need_bytes(t, byte, err) : s;
}

bool llm_all_bytes(const int32_t byte[256], const char *s, size_t n) {
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = all && byte[(unsigned char)s[i]] >= 0;
    return all;
}

ggl_status llm_append_bytes(const llm_tokenizer *t, const int32_t byte[256], const char *s,
                            size_t n, llm_tokens *out, ggl_error *err) {
    if (!llm_all_bytes(byte, s, n))
        return llm_tokens_append(out, t->unknown, err);
    ggl_status status = GGL_OK;
    for (size_t i = 0; i < n && status == GGL_OK; i++)
        status = llm_tokens_append(out, byte[(unsigned char)s[i]], err);
    return status;
}

bool llm_may_be_spelled(const llm_tokenizer *t, int32_t id) {
    return t->type[id] != TOKEN_CONTROL && t->type[id] != TOKEN_UNKNOWN &&
           t->type[id] != TOKEN_BYTE && t->piece[id].n > 0;
}

ggl_str llm_spaced_text(llm_tokenizer *t, int32_t id) {
    ggl_str p = t->piece[id];
    size_t n_space = 0, n = 0;
    if (t->type[id] == TOKEN_BYTE) {
        char b = (char)byte_spelled(p);
        return (ggl_str){ggl_arena_strndup(&t->arena, &b, 1), 1};
    }
    for (size_t i = 0; i + 3 <= p.n; i++)
        n_space += memcmp(p.s + i, llm_space, 3) == 0;
    if (n_space == 0)
        return p;
    char *out = ggl_arena_alloc(&t->arena, p.n - 2 * n_space, 1);
    for (size_t i = 0; out && i < p.n;) {
        bool space = p.n - i >= 3 && memcmp(p.s + i, llm_space, 3) == 0;
        out[n++] = space ? ' ' : p.s[i];
        i += space ? 3 : 1;
    }
    return (ggl_str){out, n};
}

ggl_status llm_tokens_append(llm_tokens *out, int32_t id, ggl_error *err) {
    if (out->n == out->cap && !ggl_grow(&out->id, &out->cap, out->n + 1, sizeof *out->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", out->n + 1);
    out->id[out->n++] = id;
    return GGL_OK;
}

size_t llm_utf8_length(const char *s, size_t n) {
    size_t len = ggl_utf8_length(s, n);
    return len > 0 ? len : 1;
}

ggl_status llm_spellings_init(ggl_index *x, size_t n, ggl_error *err) {
    return ggl_index_init(x, n, sizeof(ggl_str), GGL_INDEX_STRINGS, err);
}

int32_t llm_spellings_find(const ggl_index *x, const ggl_str *strings, const char *s, size_t n) {
    size_t i = ggl_index_find(x, strings, (ggl_str){s, n});
    return i == SIZE_MAX ? -1 : (int32_t)i;
}

ggl_status llm_tokenizer_flag(const ggl_gguf *file, const char *key, bool *out, ggl_error *err) {
    double x;
    if (ggl_gguf_get_number(file, key, &x, NULL) == 1 && (x == 0 || x == 1)) {
        *out = x == 1;
        return GGL_OK;
    }
    return ggl_gguf_get_bool(file, key, out, err) < 0 ? GGL_FORMAT : GGL_OK;
}
