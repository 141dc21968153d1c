/* With a pre-tokenizer: byte-level BPE, with 256 characters for the bytes, merges of two
 * letters, and names that occur in no text. "wordpiece": WordPiece, with the special tokens
 * at their published ids, letters and names. Else: SentencePiece, with <unk>, <s>, </s>, 256 bytes
 * and pieces. */
#include "vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 }; /* tokenizer.ggml.token_type */
enum { N_LETTERS = 26, N_PAIRS = N_LETTERS * N_LETTERS, PIECE = 24 };

typedef struct vocab {
    int64_t n;
    char (*text)[PIECE];
    ggl_str *piece;
    float *score;
    int32_t *type;
} vocab;

static bool vocab_init(vocab *v, int64_t n) {
    size_t m = (size_t)n;
    *v = (vocab){.n = n,
                 .text = calloc(m, sizeof *v->text),
                 .piece = calloc(m, sizeof *v->piece),
                 .score = calloc(m, sizeof *v->score),
                 .type = calloc(m, sizeof *v->type)};
    return v->text && v->piece && v->score && v->type;
}

static void vocab_fini(vocab *v) {
    free(v->text);
    free(v->piece);
    free(v->score);
    free(v->type);
}

static void put_u32(ggl_gguf_writer *w, const char *key, uint32_t x) {
    ggl_gguf_put(w, key, GGL_GGUF_U32, false, &x, 1);
}

static bool is_wordpiece(const bench_shape *s) {
    return strcmp(s->pre, "wordpiece") == 0;
}

static void put_pieces(ggl_gguf_writer *w, const bench_shape *s, vocab *v) {
    for (int64_t i = 0; i < v->n; i++)
        v->piece[i] = (ggl_str){v->text[i], strlen(v->text[i])};
    ggl_gguf_put_string(w, "tokenizer.ggml.model", s->tokenizer, strlen(s->tokenizer));
    if (s->pre[0] && !is_wordpiece(s))
        ggl_gguf_put_string(w, "tokenizer.ggml.pre", s->pre, strlen(s->pre));
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v->piece, (uint64_t)v->n);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, v->type, (uint64_t)v->n);
}

/* --- SentencePiece ---------------------------------------------------------------------------- */

static void put_spm(ggl_gguf_writer *w, const bench_shape *s, vocab *v) {
    static const char *const control[] = {"<unk>", "<s>", "</s>"};
    for (int64_t i = 0; i < v->n; i++) {
        char *t = v->text[i];
        int64_t k = i - 3 - 256, pair = k - 1 - N_LETTERS;
        v->type[i] = i == 0 ? UNKNOWN : i < 3 ? CONTROL : i < 3 + 256 ? BYTE : NORMAL;
        v->score[i] = k < 0 ? 0 : (float)-k;
        if (i < 3)
            snprintf(t, PIECE, "%s", control[i]);
        else if (k < 0)
            snprintf(t, PIECE, "<0x%02X>", (unsigned)(i - 3));
        else if (k == 0)
            snprintf(t, PIECE, "\xe2\x96\x81"); /* stands for a space */
        else if (k <= N_LETTERS)
            snprintf(t, PIECE, "%c", (char)('a' + k - 1));
        else if (pair < N_PAIRS)
            snprintf(t, PIECE, "%c%c", (char)('a' + pair / N_LETTERS),
                     (char)('a' + pair % N_LETTERS));
        else
            snprintf(t, PIECE, "\xe2\x96\x81w%" PRId64, i);
    }
    put_pieces(w, s, v);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, v->score, (uint64_t)v->n);
    put_u32(w, "tokenizer.ggml.bos_token_id", 1);
    put_u32(w, "tokenizer.ggml.eos_token_id", 2);
    put_u32(w, "tokenizer.ggml.unknown_token_id", 0);
}

/* --- byte-level BPE --------------------------------------------------------------------------- */

/* Writes the character that stands for a byte: itself if visible, else one from U+0100 on. */
static void byte_piece(int byte, char *out) {
    int hidden = 0;
    for (int b = 0; b <= byte; b++) {
        bool visible = (b > ' ' && b < 0x7f) || (b > 0xa0 && b != 0xad);
        if (b == byte) {
            unsigned c = visible ? (unsigned)b : 256u + (unsigned)hidden;
            if (c < 0x80)
                snprintf(out, PIECE, "%c", (char)c);
            else
                snprintf(out, PIECE, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)));
        }
        hidden += !visible;
    }
}

static bool put_merges(ggl_gguf_writer *w, int64_t n) {
    char(*text)[4] = calloc((size_t)n + 1, sizeof *text);
    ggl_str *merge = calloc((size_t)n + 1, sizeof *merge);
    for (int64_t i = 0; text && merge && i < n; i++) {
        snprintf(text[i], sizeof *text, "%c %c", (char)('a' + i / N_LETTERS),
                 (char)('a' + i % N_LETTERS));
        merge[i] = (ggl_str){text[i], 3};
    }
    if (text && merge)
        ggl_gguf_put_strings(w, "tokenizer.ggml.merges", merge, (uint64_t)n);
    bool ok = text && merge;
    free(text);
    free(merge);
    return ok;
}

static bool put_bpe(ggl_gguf_writer *w, const bench_shape *s, vocab *v) {
    int64_t last = v->n - 1, n_pairs = last - 256 < N_PAIRS ? last - 256 : N_PAIRS;
    for (int64_t i = 0; i < v->n; i++) {
        char *t = v->text[i];
        v->type[i] = i == last ? CONTROL : NORMAL;
        if (i == last)
            snprintf(t, PIECE, "<|endoftext|>");
        else if (i < 256)
            byte_piece((int)i, t);
        else if (i - 256 < n_pairs)
            snprintf(t, PIECE, "%c%c", (char)('a' + (i - 256) / N_LETTERS),
                     (char)('a' + (i - 256) % N_LETTERS));
        else
            snprintf(t, PIECE, "\xc4\xa0w%" PRId64, i); /* a word with its space */
    }
    put_pieces(w, s, v);
    put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)last);
    put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)last);
    return put_merges(w, n_pairs);
}

/* --- WordPiece -------------------------------------------------------------------------------- */

static void put_wordpiece(ggl_gguf_writer *w, const bench_shape *s, vocab *v) {
    static const struct {
        int64_t id;
        const char *text, *key;
    } special[] = {{0, "[PAD]", "padding"},
                   {100, "[UNK]", "unknown"},
                   {101, "[CLS]", "cls"},
                   {102, "[SEP]", "seperator"}, /* as the key is spelled in published files */
                   {103, "[MASK]", "mask"}};
    for (int64_t i = 0; i < v->n; i++) {
        char *t = v->text[i];
        int64_t k = i - 104;
        v->type[i] = NORMAL;
        if (k >= 0 && k < N_LETTERS) /* at the beginning of a word */
            snprintf(t, PIECE, "\xe2\x96\x81%c", (char)('a' + k));
        else if (k >= 0 && k < 2 * N_LETTERS)
            snprintf(t, PIECE, "%c", (char)('a' + k - N_LETTERS));
        else
            snprintf(t, PIECE, "\xe2\x96\x81w%" PRId64, i);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        char key[64];
        snprintf(v->text[special[i].id], PIECE, "%s", special[i].text);
        v->type[special[i].id] = CONTROL;
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", special[i].key);
        put_u32(w, key, (uint32_t)special[i].id);
    }
    put_pieces(w, s, v);
}

ggl_status bench_vocab_put(ggl_gguf_writer *w, const bench_shape *s, ggl_error *err) {
    vocab v;
    if (s->n_vocab < 288)
        return ggl_fail(err, GGL_USAGE,
                        "a vocabulary of %" PRId64 " tokens; at least 288 are needed for the bytes",
                        s->n_vocab);
    bool ok = vocab_init(&v, s->n_vocab);
    if (ok && is_wordpiece(s))
        put_wordpiece(w, s, &v);
    else if (ok && s->pre[0])
        ok = put_bpe(w, s, &v);
    else if (ok)
        put_spm(w, s, &v);
    vocab_fini(&v);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for the vocabulary");
}
