/* Turns words into symbols: bytes, or the characters that get tokens of their own. These are the most frequent ones, as many
 * as make up the wanted share of the texts (of equal ones, those with lower code points). NUL is none of them, as programs in C end
 * pieces there. */
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/show.h"
#include "text/unicode.h"
#include "trainer_impl.h"

enum { SPACE_MARK = 0x2581 }; /* which pieces have in place of a space */

/* A character of the texts. The key is the first member. */
typedef struct character {
    uint32_t code, number; /* number: from 1 on; 0: it gets no token */
    int64_t count;
} character;

typedef struct characters {
    character *c; /* [n] */
    size_t n, cap;
    ggl_index by_code;
    uint32_t number_of_ascii[128]; /* numbers, which are looked up most */
} characters;

void llm_vocabulary_text_fini(train_text *x) {
    ggl_free(x->code);
    ggl_free(x->count);
    ggl_free(x->token);
    ggl_free(x->at);
    ggl_free(x->weight);
    *x = (train_text){0};
}

/* Takes the next character of a word; returns its code point, or UINT32_MAX for a byte that is not UTF-8. */
static uint32_t take(ggl_str *s) {
    size_t len = ggl_utf8_length(s->s, s->n);
    const uint32_t code = len > 0 ? llm_unicode_decode(s->s, len) : UINT32_MAX;
    len = len > 0 ? len : 1;
    s->s += len;
    s->n -= len;
    return code == SPACE_MARK ? ' ' : code;
}

static size_t find_character(const characters *x, uint32_t code) {
    return ggl_index_find(&x->by_code, x->c, (ggl_str){(const char *)&code, sizeof code});
}

/* Counts the characters of the words. */
static ggl_status count_characters(const train_words *w, characters *x) {
    for (size_t i = 0; i < w->n; i++)
        for (ggl_str s = w->w[i].s; s.n > 0;) {
            const uint32_t code = take(&s);
            size_t k = code == UINT32_MAX || code == 0 ? SIZE_MAX - 1 : find_character(x, code);
            if (k == SIZE_MAX - 1)
                continue;
            if (k == SIZE_MAX) {
                if (!ggl_grow(&x->c, &x->cap, x->n + 1, sizeof *x->c) ||
                    ggl_index_reserve(&x->by_code, x->c, x->n + 1, NULL) != GGL_OK)
                    return GGL_NOMEM;
                k = x->n++;
                x->c[k] = (character){.code = code};
                (void)ggl_index_put(&x->by_code, x->c, k);
            }
            x->c[k].count += w->w[i].count;
        }
    return GGL_OK;
}

static int more_frequent(const void *a, const void *b) {
    const character *x = *(character *const *)a, *y = *(character *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

static int lower_code(const void *a, const void *b) {
    const character *x = *(character *const *)a, *y = *(character *const *)b;
    return (x->code > y->code) - (x->code < y->code);
}

/* Chooses characters, and numbers them in the order of their code points. */
static ggl_status choose_characters(characters *x, double coverage, train_text *out) {
    character **by = ggl_calloc(x->n + 1, sizeof *by);
    int64_t all = 0, taken = 0;
    if (!by)
        return GGL_NOMEM;
    for (size_t i = 0; i < x->n; i++) {
        by[i] = &x->c[i];
        all += x->c[i].count;
    }
    qsort(by, x->n, sizeof *by, more_frequent);
    size_t n = 0;
    while (n < x->n && (double)taken < coverage * (double)all)
        taken += by[n++]->count;
    qsort(by, n, sizeof *by, lower_code);
    out->code = ggl_calloc(n + 1, sizeof *out->code);
    out->count = ggl_calloc(n + 1, sizeof *out->count);
    out->token = ggl_calloc(n + 1, sizeof *out->token);
    const bool ok = out->code && out->count && out->token;
    for (size_t i = 0; i < n && ok; i++) {
        by[i]->number = (uint32_t)i + 1;
        out->code[i] = by[i]->code;
        out->count[i] = by[i]->count;
        if (by[i]->code < 128)
            x->number_of_ascii[by[i]->code] = by[i]->number;
    }
    out->n_symbols = ok ? n : 0;
    ggl_free(by);
    return ok ? GGL_OK : GGL_NOMEM;
}

/* Returns the number of a character, 0: it has none. */
static uint32_t number_of(const characters *x, uint32_t code) {
    if (code < 128)
        return x->number_of_ascii[code];
    const size_t k = code == UINT32_MAX ? SIZE_MAX : find_character(x, code);
    return k == SIZE_MAX ? 0 : x->c[k].number;
}

/* Ends the word that begins at at[begin], if it has symbols. */
static bool end_word(train_text *x, size_t begin, int64_t weight) {
    if (x->n_at == begin)
        return true;
    if (!ggl_grow(&x->weight, &x->cap_weight, x->n_words + 1, sizeof *x->weight))
        return false;
    x->at[x->n_at++] = 0;
    x->weight[x->n_words++] = weight;
    return true;
}

/* Appends a word; c NULL: of bytes. A character without a token becomes those of its bytes, or with `unknown` a run of them
 * one. */
static ggl_status add_word(const characters *c, const train_word *w, bool unknown, train_text *x) {
    size_t begin = x->n_at;
    bool again = false; /* the character before has no token, either */
    /* each symbol is at least a byte, and may be followed by a 0 */
    if (!ggl_grow(&x->at, &x->cap_at, x->n_at + 2 * w->s.n + 1, sizeof *x->at))
        return GGL_NOMEM;
    for (ggl_str s = w->s; s.n > 0;) {
        const size_t before = s.n;
        uint32_t number = (unsigned char)s.s[0] + 1u;
        if (c) {
            number = number_of(c, take(&s));
        } else {
            x->count[number - 1] += w->count;
            s = (ggl_str){s.s + 1, s.n - 1};
        }
        if (number > 0) {
            x->at[x->n_at++] = number;
            again = false;
            continue;
        }
        const uint64_t n_tokens = unknown ? !again : before - s.n;
        x->n_rest += (uint64_t)w->count * n_tokens;
        again = true;
        if (!end_word(x, begin, w->count))
            return GGL_NOMEM;
        begin = x->n_at;
    }
    return !end_word(x, begin, w->count) ? GGL_NOMEM : x->n_at >= UINT32_MAX ? GGL_LIMIT : GGL_OK;
}

static ggl_status make_bytes(train_text *x) {
    x->code = ggl_calloc(256, sizeof *x->code);
    x->count = ggl_calloc(256, sizeof *x->count);
    x->token = ggl_calloc(256, sizeof *x->token);
    if (!x->code || !x->count || !x->token)
        return GGL_NOMEM;
    x->n_symbols = 256;
    for (uint32_t b = 0; b < 256; b++)
        x->code[b] = b;
    return GGL_OK;
}

ggl_status llm_vocabulary_read_symbols(const llm_tokenizer_trainer *t, train_text *x,
                                       ggl_error *err) {
    const bool is_bytes = t->p.kind == LLM_VOCABULARY_BPE;
    characters c = {0};
    *x = (train_text){0};
    ggl_status s = is_bytes ? make_bytes(x)
                            : ggl_index_init(&c.by_code, 512, sizeof *c.c, sizeof(uint32_t), NULL);
    if (s == GGL_OK && !is_bytes)
        s = count_characters(&t->words, &c);
    if (s == GGL_OK && !is_bytes)
        s = choose_characters(&c, t->p.coverage, x);
    for (size_t i = 0; i < t->words.n && s == GGL_OK; i++)
        s = add_word(is_bytes ? NULL : &c, &t->words.w[i], t->p.no_byte_fallback, x);
    ggl_free(c.c);
    ggl_index_fini(&c.by_code);
    return s == GGL_OK ? s
           : s == GGL_LIMIT
               ? ggl_fail(err, s, "the words that differ have 2^32 characters or more together")
               : llm_vocabulary_no_memory(err);
}
