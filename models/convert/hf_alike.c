/* Which tokens of a byte-level vocabulary are alike: those that differ in case, accents, forms of Unicode or spaces alone, as the steps of the library
 * `tokenizers` fold them (NFKC, NFD, StripAccents, Lowercase, spaces joined, Strip). */
#include <string.h>

#include "common/utf8.h"
#include "ggl/internal/alloc.h"
#include "hf_tokenizer_impl.h"
#include "text/byte_spelling.h"
#include "text/steps.h"

static const char folds[] =
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"NFD\"}, "
    "{\"type\": \"StripAccents\"}, "
    "{\"type\": \"Lowercase\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"[ "
    "\\\\t\\\\r\\\\n]+\"}, \"content\": \" \"}, "
    "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"^ $\"}, \"content\": \"\\ue000\"}, "
    "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}, "
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\\ue000\"}, \"content\": \" \"}]}";

/* Tokens by what they have in common. */
typedef struct alike {
    ggl_arena arena;
    step_list fold;
    step_memory memory;
    step_text text[2];
    int bytes[0x180]; /* of characters of byte-level vocabularies; -1: it stands for none */
    ggl_str *key;     /* [n_keys]: those of the kinds so far */
    size_t n_keys;
    ggl_index index;
} alike;

/* Writes the bytes of a byte-level token; a token with another character stands for itself. Returns their number. */
static size_t spelled(const alike *a, ggl_str piece, char *out) {
    size_t n = 0;
    for (ggl_str left = piece; left.n > 0;) {
        const uint32_t c = llm_take_char(&left);
        if (c >= 0x180 || a->bytes[c] < 0) {
            memcpy(out, piece.s, piece.n);
            return piece.n;
        }
        out[n++] = (char)a->bytes[c];
    }
    return n;
}

/* True if no character is broken, and none is the one that stands for broken ones. */
static bool is_text(const char *s, size_t n) {
    bool whole = true;
    for (ggl_str left = {s, n}; left.n > 0 && whole;) {
        const uint32_t c = llm_take_char(&left);
        whole = c < 0x110000 && c != 0xfffd;
    }
    return whole;
}

/* Finds the number of the token's kind. */
static ggl_status kind_of(alike *a, ggl_str piece, char *buf, size_t *kind, ggl_error *err) {
    ggl_str key = {buf, spelled(a, piece, buf)};
    step_line line = {0};
    if (!is_text(key.s, key.n))
        key = piece;
    else if (llm_steps_normalize(&a->fold, &a->memory, &(step_line){.s = key.s, .n = key.n},
                                 a->text, &line, err) != GGL_OK)
        return err->status;
    else if (line.n > 0)
        key = (ggl_str){line.s, line.n};
    *kind = ggl_index_find(&a->index, a->key, key);
    if (*kind != SIZE_MAX)
        return GGL_OK;
    const char *own = ggl_arena_strndup(&a->arena, key.s, key.n);
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    a->key[ *kind = a->n_keys++] = (ggl_str){own, key.n};
    ggl_index_put(&a->index, a->key, *kind);
    return GGL_OK;
}

static ggl_status begin_alike(alike *a, int64_t n, ggl_error *err) {
    llm_json *json = NULL;
    char s[2];
    for (int c = 0; c < 0x180; c++)
        a->bytes[c] = -1;
    for (unsigned b = 0; b < 256; b++) {
        ggl_str one = {s, llm_spell_byte(b, s)};
        a->bytes[llm_take_char(&one)] = (int)b;
    }
    ggl_status st = llm_json_parse(&json, folds, sizeof folds - 1, "folds", err);
    step_reader r = {.arena = &a->arena, .err = err};
    if (st == GGL_OK)
        st = llm_steps_read_normalizer(&a->fold, &r, &json->root);
    llm_json_free(json); /* steps copy their strings */
    if (st == GGL_OK && !(a->key = ggl_calloc((size_t)n, sizeof *a->key)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    return st == GGL_OK
               ? ggl_index_init(&a->index, (size_t)n, sizeof *a->key, GGL_INDEX_STRINGS, err)
               : st;
}

static ggl_status find_alike(alike *a, const llm_hf_tokenizer *t, int64_t n, int32_t *item,
                             ggl_error *err) {
    size_t longest = 1, cap = 0;
    char *buf = NULL;
    for (int64_t i = 0; i < n; i++)
        longest = t->piece[i].n > longest ? t->piece[i].n : longest;
    if (!ggl_grow(&buf, &cap, longest, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s = GGL_OK;
    for (int64_t i = 0; i < n && s == GGL_OK; i++) {
        size_t kind = 0;
        if (i < t->n_ids) /* the others are in no text */
            s = kind_of(a, t->piece[i], buf, &kind, err);
        item[i] = (int32_t)kind;
    }
    ggl_free(buf);
    return s;
}

ggl_status llm_hf_tokens_alike(const char *folder, const json_value *config, int64_t n,
                               int32_t *kind, int64_t *n_kinds, ggl_error *err) {
    alike *a = ggl_calloc(1, sizeof *a);
    llm_hf_tokenizer *t = NULL;
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const llm_hf_vocab vocab = {.n = n};
    ggl_status s = llm_hf_tokenizer_open(&t, folder, config, &vocab, err);
    if (s == GGL_OK && (!t || !t->bytes))
        s = ggl_fail(err, GGL_UNSUPPORTED, "%s",
                     t ? "the tokenizer is not byte-level BPE" : "the folder has no tokenizer");
    s = s == GGL_OK ? begin_alike(a, n, err) : s;
    s = s == GGL_OK ? find_alike(a, t, n, kind, err) : s;
    *n_kinds = (int64_t)a->n_keys;
    llm_hf_tokenizer_free(t);
    llm_step_memory_fini(&a->memory);
    ggl_free(a->text[0].s);
    ggl_free(a->text[1].s);
    ggl_index_fini(&a->index);
    ggl_free(a->key);
    ggl_arena_fini(&a->arena);
    ggl_free(a);
    return s;
}
