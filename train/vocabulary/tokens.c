/* The tokens with which training begins: special ones, bytes, and characters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/byte_spelling.h"
#include "text/unicode.h"
#include "trainer_impl.h"

int32_t llm_vocabulary_find_token(const llm_tokenizer_trainer *t, ggl_str s) {
    const size_t i = ggl_index_find(&t->by_text, t->token, s);
    return i == SIZE_MAX ? -1 : (int32_t)i;
}

int32_t llm_vocabulary_add_token(llm_tokenizer_trainer *t, train_token token) {
    char *copy = ggl_arena_strndup(&t->arena, token.s.s, token.s.n);
    if (!copy || !ggl_grow(&t->token, &t->cap, t->n + 1, sizeof *t->token) ||
        ggl_index_reserve(&t->by_text, t->token, t->n + 1, NULL) != GGL_OK)
        return -1;
    token.s.s = copy;
    t->token[t->n] = token;
    (void)ggl_index_put(&t->by_text, t->token, t->n);
    return (int32_t)t->n++;
}

size_t llm_vocabulary_spell(uint32_t code, char out[4]) {
    if (code == ' ') {
        memcpy(out, "\u2581", 3);
        return 3;
    }
    return llm_unicode_encode(code, out);
}

/* Adds a byte or a character, and returns its id, or -1. */
static int32_t add_base(llm_tokenizer_trainer *t, const char *s, size_t n, int32_t type,
                        uint32_t length, ggl_error *err) {
    const int32_t known = llm_vocabulary_find_token(t, (ggl_str){s, n});
    if (known >= 0) {
        (void)ggl_fail(err, GGL_USAGE,
                       "the special token '%.*s' is spelled like the token of a byte or a "
                       "character, which has to be there, too",
                       (int)n, s);
        return -1;
    }
    const int32_t id =
        llm_vocabulary_add_token(t, (train_token){.s = {s, n}, .type = type, .n = length});
    if (id < 0)
        (void)llm_vocabulary_no_memory(err);
    return id;
}

/* Adds the bytes of the kinds over characters. */
static bool add_fallback(llm_tokenizer_trainer *t, ggl_error *err) {
    bool ok = true;
    t->first_byte = (int32_t)t->n;
    for (unsigned b = 0; b < 256 && ok; b++) {
        char s[8];
        const int n = snprintf(s, sizeof s, "<0x%02X>", b);
        ok = add_base(t, s, (size_t)n, TRAINED_BYTE, 0, err) >= 0;
    }
    return ok;
}

/* Adds the symbols of the words. Bytes come in the order of their spellings, as everywhere: first those that stand for
 * themselves. */
static bool add_symbols(llm_tokenizer_trainer *t, train_text *x, ggl_error *err) {
    const bool is_bytes = t->p.kind == LLM_VOCABULARY_BPE;
    bool ok = true;
    for (int pass = 0; pass < 1 + is_bytes; pass++)
        for (size_t i = 0; i < x->n_symbols && ok; i++) {
            char s[4];
            if (is_bytes && llm_byte_is_printable(x->code[i]) != (pass == 0))
                continue;
            const size_t n =
                is_bytes ? llm_spell_byte(x->code[i], s) : llm_vocabulary_spell(x->code[i], s);
            x->token[i] = add_base(t, s, n, TRAINED_NORMAL, 1, err);
            ok = x->token[i] >= 0;
        }
    return ok;
}

ggl_status llm_vocabulary_add_base(llm_tokenizer_trainer *t, train_text *x, ggl_error *err) {
    const bool is_bytes = t->p.kind == LLM_VOCABULARY_BPE;
    const size_t n_bytes = is_bytes || t->p.no_byte_fallback ? 0 : 256;
    const size_t n = t->n_special + n_bytes + x->n_symbols;
    ggl_error why = {0};
    if (n > (size_t)t->p.n_vocab)
        return ggl_fail(err, GGL_USAGE,
                        "a vocabulary of %" PRId32
                        " tokens is too small: %zu special tokens, %zu bytes and %zu characters "
                        "need %zu%s",
                        t->p.n_vocab, t->n_special, is_bytes ? x->n_symbols : n_bytes,
                        is_bytes ? 0 : x->n_symbols, n,
                        is_bytes ? "" : "; a smaller coverage has fewer characters");
    bool ok = true;
    for (size_t i = 0; i < t->n_special && ok; i++)
        ok = llm_vocabulary_add_token(t, (train_token){.s = t->special[i],
                                                       .type = (int32_t)i == t->role[TRAIN_UNKNOWN]
                                                                   ? TRAINED_UNKNOWN
                                                                   : TRAINED_CONTROL}) >= 0;
    if (!ok)
        return llm_vocabulary_no_memory(err);
    why.status = GGL_OK;
    if ((n_bytes > 0 && !add_fallback(t, &why)) || !add_symbols(t, x, &why))
        return ggl_fail(err, why.status, "%s", why.msg);
    t->n_base = (int32_t)(t->n - t->n_special);
    return GGL_OK;
}
