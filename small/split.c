/* Tokens by merges of words, as models/text/tokenizer_bpe.c makes them: regular expressions cut the text, as everywhere (models/text/pretok.c), and
 * merges are found in a table of flash. */
#include "encoder.h"
#include "ggl/internal/steps.h"
#include "memory.h"
#include "../models/text/fold.h"
#include "../models/text/pretok_impl.h"

typedef struct word_run {
    small_encoder *e;
    symbol *sym; /* of the current word */
    merge_queue queue;
} word_run;

size_t llm_utf8_length(const char *s, size_t n);
size_t llm_utf8_length(const char *s, size_t n) {
    const size_t len = ggl_utf8_length(s, n);
    return len > 0 ? len : 1;
}

/* Finds what two symbols become; -1: nothing. */
static int32_t find_merge(const small_words *w, uint32_t left, uint32_t right, double *rank) {
    const uint32_t n_column = w->ranks ? 4 : 3;
    for (uint32_t low = 0, high = w->n_merges; low < high;) {
        const uint32_t middle = low + (high - low) / 2, at = n_column * middle;
        const uint32_t this = small_number(&w->merge, at),
                       this_right = small_number(&w->merge, at + 1);
        GGL_STEPS(1);
        if (this == left && this_right == right) {
            *rank = small_number(&w->merge, at + n_column - 1);
            return (int32_t)small_number(&w->merge, at + 2);
        }
        if (this < left || (this == left && this_right < right))
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static bool find_join(const void *context, const symbol *a, const symbol *b, join *j) {
    j->id =
        find_merge(((const word_run *)context)->e->w, (uint32_t)a->id, (uint32_t)b->id, &j->rank);
    return j->id >= 0;
}

/* Appends a symbol's token; one that is none becomes those of its bytes, without those that have none. In raw vocabularies one such byte
 * makes it the unknown token. */
static bool emit(word_run *r, const symbol *s, const char *word) {
    const small_words *w = r->e->w;
    if (s->id >= 0 && s->id < w->n_vocab)
        return small_append(r->e, s->id);
    return w->raw && w->unknown >= 0 ? small_append_bytes(r->e, word + s->at, s->n)
                                     : small_append_known(r->e, word + s->at, s->n);
}

static bool may_be_whole(const small_words *w, const char *word, size_t n) {
    bool newlines = w->newlines;
    for (size_t i = 0; i < n && newlines; i++)
        newlines = word[i] == '\n';
    return w->whole || newlines;
}

static bool is_white(const char *word, size_t n) {
    const size_t len = ggl_utf8_length(word, n);
    return len > 0 && small_is_white(word, len);
}

/* Cuts a word into its first symbols: bytes, or characters. Returns their number; 0: there is no memory. */
static uint32_t first_symbols(word_run *r, const char *word, size_t n) {
    const small_words *w = r->e->w;
    uint32_t count = 0;
    r->sym = ggl_calloc(n, sizeof *r->sym);
    for (size_t i = 0, len; r->sym && i < n; i += len, count++) {
        len = w->raw ? llm_utf8_length(word + i, n - i) : 1;
        const int32_t id =
            w->raw ? small_find(w, &w->pieces, word + i, len) : w->byte[(unsigned char)word[i]];
        r->sym[count] = (symbol){.at = (uint32_t)i, .n = (uint32_t)len, .id = id};
    }
    return count;
}

static bool join_word(word_run *r, const char *word, size_t n) {
    const small_words *w = r->e->w;
    if (w->drop_white && is_white(word, n))
        return true;
    const int32_t whole = may_be_whole(w, word, n) ? small_find(w, &w->pieces, word, n) : -1;
    if (whole >= 0)
        return small_append(r->e, whole);
    const uint32_t count = first_symbols(r, word, n);
    if (count == 0)
        return false;
    r->queue = (merge_queue){0};
    if (!llm_merge_all(&r->queue, r->sym, count, find_join, r))
        return false;
    for (uint32_t i = 0; i != NO_SYMBOL; i = r->sym[i].next)
        if (!emit(r, &r->sym[i], word))
            return false;
    return true;
}

static ggl_status take_word(void *context, const char *word, size_t n) {
    char *mark = small_mark();
    const bool ok = join_word(context, word, n);
    small_release(mark);
    return ok ? GGL_OK : GGL_LIMIT;
}

/* Copies a text, with spaces for U+2581; returns the bytes of the copy. */
static size_t put_spaces(const char *text, size_t n, char *out) {
    size_t used = 0;
    bool is_mark;
    for (size_t i = 0, len; i < n; i += len) {
        len = small_character(text + i, n - i, &is_mark);
        memcpy(out + used, is_mark ? " " : text + i, is_mark ? 1 : len);
        used += is_mark ? 1 : len;
    }
    return used;
}

bool small_encode_merges(small_encoder *e, const char *text, size_t n) {
    const folding fold = {NULL, e->w->lower};
    word_run r = {.e = e};
    char *changed = NULL;
    size_t cap = 0;
    if (e->w->spaced) {
        changed = ggl_calloc(n, 1);
        if (!changed)
            return false;
        n = put_spaces(text, n, changed);
    } else if (fold.lower && !llm_fold_text(&fold, text, n, &changed, &n, &cap)) {
        return false;
    }
    return llm_pretok_split(e->w->split, e->w->n_split, changed ? changed : text, n, take_word, &r,
                            NULL) == GGL_OK;
}

/* --- letters of DNA --------------------------------------------------------------------------- */

/* Returns the offset of a token's name in text[0..n), or n. */
static size_t find_name(const small_words *w, int32_t token, const char *text, size_t n) {
    size_t n_name;
    const char *name = small_string(w, token, &n_name);
    for (size_t i = 0; i + n_name <= n; i++)
        if (memcmp(text + i, name, n_name) == 0)
            return i;
    return n;
}

/* Appends the tokens of groups of six letters; A is added to the last group until it is whole. */
static bool append_letters(small_encoder *e, const char *s, size_t n) {
    enum { GROUP = 6 };
    for (size_t i = 0; i < n; i += GROUP) {
        char group[GROUP];
        for (size_t k = 0; k < GROUP; k++) {
            const char c = i + k < n ? s[i + k] : 'A';
            group[k] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        const int32_t id = small_find(e->w, &e->w->starts, group, GROUP);
        if (!small_append(e, id >= 0 ? id : e->w->dna[2]))
            return false;
    }
    return true;
}

/* As models/text/tokenizer_dna.c. */
bool small_encode_dna(small_encoder *e, const char *text, size_t n) {
    const small_words *w = e->w;
    while (n > 0) {
        const size_t open = find_name(w, w->dna[0], text, n);
        char *mark = small_mark();
        if (open > 0 && !small_encode_merges(e, text, open))
            return false;
        small_release(mark);
        if (open == n)
            break;
        size_t n_open, n_close;
        (void)small_string(w, w->dna[0], &n_open);
        (void)small_string(w, w->dna[1], &n_close);
        text += open + n_open;
        n -= open + n_open;
        size_t end = find_name(w, w->dna[1], text, n);
        if (!small_append(e, w->dna[0]) || !append_letters(e, text, end) ||
            (end < n && !small_append(e, w->dna[1])))
            return false;
        end += end < n ? n_close : 0;
        text += end;
        n -= end;
    }
    return true;
}
