#include "tokenizer_dna.h"

#include <string.h>

enum { K = 6 };

static const ggl_str OPEN = {"<dna>", 5}, CLOSE = {"</dna>", 6}, OTHER = {"<oov>", 5},
                     MARK = {"\xee\x80\x80", 3};

bool llm_dna_find(dna *d, const llm_tokenizer *t, const ggl_index *pieces) {
    d->open = llm_spellings_find(pieces, t->piece, OPEN.s, OPEN.n);
    d->close = llm_spellings_find(pieces, t->piece, CLOSE.s, CLOSE.n);
    d->other = llm_spellings_find(pieces, t->piece, OTHER.s, OTHER.n);
    return d->open >= 0 && d->close >= 0 && d->other >= 0;
}

ggl_str llm_dna_text(ggl_str piece) {
    bool marked = piece.n > MARK.n && memcmp(piece.s + piece.n - MARK.n, MARK.s, MARK.n) == 0;
    return (ggl_str){piece.s, marked ? piece.n - MARK.n : piece.n};
}

/* Returns the offset of `what` in text[0..n), or n. */
static size_t find(const char *text, size_t n, ggl_str what) {
    for (size_t i = 0; i + what.n <= n; i++)
        if (memcmp(text + i, what.s, what.n) == 0)
            return i;
    return n;
}

/* Encodes letters in groups of six; the last group is filled up with A. */
static ggl_status encode_letters(const dna *d, const llm_tokenizer *t, const ggl_index *pieces,
                                 const char *s, size_t n, llm_tokens *out, ggl_error *err) {
    ggl_status status = GGL_OK;
    for (size_t i = 0; i < n && status == GGL_OK; i += K) {
        char spelled[K + 3];
        for (size_t k = 0; k < K; k++) {
            char c = i + k < n ? s[i + k] : 'A';
            spelled[k] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        memcpy(spelled + K, MARK.s, MARK.n);
        int32_t id = llm_spellings_find(pieces, t->piece, spelled, sizeof spelled);
        status = llm_tokens_append(out, id >= 0 ? id : d->other, err);
    }
    return status;
}

ggl_status llm_dna_encode(const dna *d, const llm_tokenizer *t, const ggl_index *pieces,
                          const char *text, size_t n,
                          ggl_status (*plain)(const llm_tokenizer *t, const char *text, size_t n,
                                              const llm_stretch *how, llm_tokens *out,
                                              ggl_error *err),
                          const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    while (n > 0 && s == GGL_OK) {
        size_t open = find(text, n, OPEN);
        if (open > 0)
            s = plain(t, text, open, how, out, err);
        if (open == n || s != GGL_OK)
            break;
        text += open + OPEN.n;
        n -= open + OPEN.n;
        size_t end = find(text, n, CLOSE);
        s = llm_tokens_append(out, d->open, err);
        if (s == GGL_OK)
            s = encode_letters(d, t, pieces, text, end, out, err);
        if (s == GGL_OK && end < n)
            s = llm_tokens_append(out, d->close, err);
        end += end < n ? CLOSE.n : 0;
        text += end;
        n -= end;
    }
    return s;
}
