/* Vocabularies: the trie, and what can be written with tokens. */
#include "vocab.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "text/unicode.h"

#define N_CHARS 0x110000u

static bool has_bit(const uint32_t *bits, uint32_t i) {
    return bits[i / 32] >> (i % 32) & 1;
}

static void set_bit(uint32_t *bits, uint32_t i) {
    bits[i / 32] |= (uint32_t)1 << (i % 32);
}

/* --- what can be written ---------------------------------------------------------------------- */

typedef struct survey {
    uint32_t byte[8];       /* bytes that are tokens */
    uint32_t *character;    /* characters that are tokens */
    bool has_continuations; /* all bytes within characters are tokens */
    bool has_all;           /* all bytes of UTF-8 are */
} survey;

static void look_at_tokens(survey *s, const ggl_str *text, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (text[i].n == 1)
            set_bit(s->byte, (unsigned char)text[i].s[0]);
        if (text[i].n > 0 && ggl_utf8_length(text[i].s, text[i].n) == text[i].n)
            set_bit(s->character, llm_unicode_decode(text[i].s, text[i].n));
    }
    s->has_all = s->has_continuations = true;
    for (unsigned b = 0; b < 0xf5; b++) {
        const bool used = b != 0xc0 && b != 0xc1;
        if (used && !has_bit(s->byte, b)) {
            s->has_all = false;
            s->has_continuations = s->has_continuations && (b < 0x80 || b > 0xbf);
        }
    }
}

static bool can_write(const survey *s, uint32_t c) {
    char b[4];
    if (c >= 0xd800 && c < 0xe000)
        return false;
    if (has_bit(s->character, c))
        return true;
    if (c >= 0x80 && !s->has_continuations) /* no token that ends within a character is used */
        return false;
    for (size_t i = 0, n = llm_unicode_encode(c, b); i < n; i++)
        if (!has_bit(s->byte, (unsigned char)b[i]))
            return false;
    return true;
}

static bool find_spelling(llm_vocab *v, const survey *s) {
    size_t n = 0, cap = 0;
    for (uint32_t c = 0; c < N_CHARS; c++) {
        if (!can_write(s, c))
            continue;
        if (n > 0 && v->range[n - 1].last + 1 == c) {
            v->range[n - 1].last = c;
            continue;
        }
        if (!ggl_grow(&v->range, &cap, n + 1, sizeof *v->range))
            return false;
        v->range[n++] = (llm_char_range){c, c};
    }
    v->spelling = (llm_spelling){v->range, (int32_t)n};
    return true;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* What JSON strings can hold without escapes, and the letters and digits of identifiers. */
const llm_slice_set llm_slice_chars[LLM_N_SLICE_CHARS] = {
    {6,
     {{0x20, 0x21},
      {0x23, 0x5b},
      {0x5d, 0x7e},
      {0x80, 0xd7ff},
      {0xe000, 0xffff},
      {0x10000, 0x10ffff}}},
    {3, {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
};
const llm_slice llm_slices[LLM_N_SLICES] = {{0, INT32_MAX}, {0, 32},        {0, 16}, {0, 10},
                                            {0, 6},         {1, INT32_MAX}, {1, 12}, {1, 6}};

static bool in_set(const llm_slice_set *set, uint32_t c) {
    for (int32_t i = 0; i < set->n; i++)
        if (c >= set->range[i].first && c <= set->range[i].last)
            return true;
    return false;
}

/* Bit k: the text is in slice k. */
static uint8_t slices_of(ggl_str s) {
    bool in[LLM_N_SLICE_CHARS];
    int32_t n_chars = 0;
    for (int k = 0; k < LLM_N_SLICE_CHARS; k++)
        in[k] = true;
    for (size_t i = 0, n; i < s.n; i += n, n_chars++) {
        n = ggl_utf8_length(s.s + i, s.n - i);
        if (n == 0)
            return 0;
        const uint32_t c = llm_unicode_decode(s.s + i, n);
        for (int k = 0; k < LLM_N_SLICE_CHARS; k++)
            in[k] = in[k] && in_set(&llm_slice_chars[k], c);
    }
    uint8_t bits = 0;
    for (int k = 0; k < LLM_N_SLICES; k++)
        if (in[llm_slices[k].chars] && n_chars <= llm_slices[k].most)
            bits |= (uint8_t)(1u << k);
    return bits;
}

/* The slices of a node's own texts, and their tokens. */
static uint8_t own_slices(llm_vocab *v, int32_t i) {
    const llm_trie *t = &v->trie;
    uint8_t bits = 0xff;
    for (int32_t k = t->node[i].first; k < t->node[i + 1].first; k++) {
        const uint32_t id = (uint32_t)t->id[k];
        bits = slices_of(v->text[id]);
        for (int s = 0; s < LLM_N_SLICES; s++)
            if (bits >> s & 1)
                set_bit(v->slice + (size_t)s * v->n_words, id);
    }
    return bits;
}

/* Characters of set k in all texts from node i on, which is below a whole character; 0: there are
 * others. `length` is that of the character that begins here. */
static uint8_t tail_of(const llm_vocab *v, int32_t i, int k) {
    const llm_trie *t = &v->trie;
    const llm_trie_node *node = &t->node[i];
    const ggl_str s = v->text[t->id[node->first]]; /* one of the texts below */
    const size_t at = (size_t)node->depth - 1, n = ggl_utf8_length(s.s + at, s.n - at);
    if (n == 0 || !in_set(&llm_slice_chars[k], llm_unicode_decode(s.s + at, n)))
        return 0;
    if (n >
        1) /* only if all texts below share the character, which then has a node for each byte */
        for (size_t d = 1; d < n; d++, node++)
            if (node[1].first != node->first || node[1].end != node->end)
                return 0;
    uint8_t most = 0;
    for (int32_t c = (int32_t)(node - t->node) + 1; c < node->end; c = t->node[c].end) {
        const uint8_t below = t->node[c].tail[k];
        if (below == 0 || below == UINT8_MAX)
            return 0;
        most = below > most ? below : most;
    }
    return (uint8_t)(most + 1);
}

/* Finds the slices and tails of each node, from the last to the first, so that those below come
 * before. */
static bool find_slices(llm_vocab *v) {
    llm_trie *t = &v->trie;
    v->slice = ggl_calloc(LLM_N_SLICES * v->n_words, sizeof *v->slice);
    if (!v->slice)
        return false;
    for (int32_t i = t->n_nodes - 1; i >= 0; i--) {
        llm_trie_node *node = &t->node[i];
        node->slices = own_slices(v, i);
        for (int32_t c = i + 1; c < node->end; c = t->node[c].end)
            node->slices &= t->node[c].slices;
        for (int k = 0; k < LLM_N_SLICE_CHARS && i > 0; k++)
            node->tail[k] = tail_of(v, i, k);
    }
    return llm_trie_sort(t);
}

/* --- making one ------------------------------------------------------------------------------- */

static bool copy_texts(llm_vocab *v, const ggl_str *text) {
    size_t size = 1, used = 0;
    for (int32_t i = 0; i < v->n; i++)
        if (!ggl_size_add(size, text[i].n, &size))
            return false;
    v->blob = ggl_calloc(size, 1);
    v->text = ggl_calloc((size_t)v->n, sizeof *v->text);
    if (!v->blob || !v->text)
        return false;
    for (int32_t i = 0; i < v->n; i++) {
        v->text[i] = (ggl_str){v->blob + used, text[i].n};
        if (text[i].n > 0)
            memcpy(v->blob + used, text[i].s, text[i].n);
        used += text[i].n;
    }
    return true;
}

/* Makes the trie. If the bytes within characters are not all tokens, a token that ends within a
 * character might never be finished: such tokens lose their texts, so that none is ever allowed. */
static bool make_trie(llm_vocab *v, const survey *s) {
    llm_trie_text *text = ggl_calloc((size_t)v->n, sizeof *text);
    if (!text)
        return false;
    int32_t n = 0;
    for (int32_t i = 0; i < v->n; i++) {
        if (!s->has_continuations && !ggl_utf8_is_valid(v->text[i].s, v->text[i].n))
            v->text[i].n = 0;
        if (!has_bit(v->eog, (uint32_t)i))
            text[n++] = (llm_trie_text){.text = v->text[i], .id = i};
    }
    const bool ok = llm_trie_make(&v->trie, text, n);
    ggl_free(text);
    return ok;
}

static bool fill(llm_vocab *v, const ggl_str *text, const bool *is_eog) {
    survey s = {.character = ggl_calloc(N_CHARS / 32, sizeof *s.character)};
    v->n_words = ((size_t)v->n + 31) / 32;
    v->eog = ggl_calloc(v->n_words, sizeof *v->eog);
    bool ok = s.character && v->eog && copy_texts(v, text);
    for (int32_t i = 0; ok && is_eog && i < v->n; i++)
        if (is_eog[i]) {
            set_bit(v->eog, (uint32_t)i);
            v->text[i].n = 0;
        }
    if (ok) {
        look_at_tokens(&s, v->text, v->n);
        v->spells_all = s.has_all;
        ok = make_trie(v, &s) && find_slices(v) && (s.has_all || find_spelling(v, &s));
    }
    ggl_free(s.character);
    return ok;
}

ggl_status llm_vocab_from_texts(llm_vocab **out, const ggl_str *text, const bool *is_eog, int32_t n,
                                ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    if (*out)
        (*out)->n = n;
    if (*out && fill(*out, text, is_eog))
        return GGL_OK;
    llm_vocab_free(*out);
    *out = NULL;
    return ggl_fail(err, GGL_NOMEM, "out of memory for the trie of a vocabulary of %d tokens",
                    (int)n);
}

ggl_status llm_vocab_new(llm_vocab **out, const llm_tokenizer *t, ggl_error *err) {
    *out = NULL;
    const int32_t n = llm_tokenizer_n_vocab(t);
    ggl_str *text = ggl_calloc((size_t)n, sizeof *text);
    bool *is_eog = ggl_calloc((size_t)n, sizeof *is_eog);
    ggl_status st = GGL_NOMEM;
    if (text && is_eog) {
        for (int32_t i = 0; i < n; i++) {
            text[i] = llm_token_text(t, i, false);
            is_eog[i] = llm_tokenizer_is_eog(t, i);
        }
        st = llm_vocab_from_texts(out, text, is_eog, n, err);
    } else {
        ggl_fail(err, st, "out of memory for the trie of a vocabulary of %d tokens", (int)n);
    }
    ggl_free(text);
    ggl_free(is_eog);
    return st;
}

void llm_vocab_free(llm_vocab *v) {
    if (!v)
        return;
    llm_trie_fini(&v->trie);
    ggl_free(v->blob);
    ggl_free(v->text);
    ggl_free(v->eog);
    ggl_free(v->slice);
    ggl_free(v->range);
    ggl_free(v);
}

int32_t llm_vocab_n(const llm_vocab *v) {
    return v->n;
}
