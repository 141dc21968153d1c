/* Tokens by merges of words, as models/text/tokenizer_bpe.c makes them: regular expressions cut the text, as everywhere (models/text/pretok.c), and
 * merges are found in a table of flash. */
#include "encoder.h"
#include "ggl/internal/alloc.h"
#include "../models/text/pretok_impl.h"
#include "../models/text/unicode.h"

typedef struct word_run {
    small_encoder *e;
    symbol *sym;
    size_t cap_sym;
    merge_queue queue;
} word_run;

size_t llm_utf8_length(const char *s, size_t n);
size_t llm_utf8_length(const char *s, size_t n) {
    const size_t len = ggl_utf8_length(s, n);
    return len > 0 ? len : 1;
}

static const small_merge *find_merge(const small_words *w, uint32_t left, uint32_t right) {
    for (uint32_t low = 0, high = w->n_merges; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        const small_merge *m = &w->merge[middle];
        if (m->left == left && m->right == right)
            return m;
        if (m->left < left || (m->left == left && m->right < right))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool consider(word_run *r, uint32_t left) {
    if (left == NO_SYMBOL || r->sym[left].next == NO_SYMBOL)
        return true;
    const symbol *a = &r->sym[left], *b = &r->sym[a->next];
    const small_merge *m = find_merge(r->e->w, (uint32_t)a->id, (uint32_t)b->id);
    return !m ||
           llm_merge_queue_push(&r->queue, (join){m->rank, left, a->n + b->n, (int32_t)m->id});
}

/* Appends a symbol's token; one that is none becomes those of its bytes, without those that have none. */
static bool emit(word_run *r, const symbol *s, const char *word) {
    const small_words *w = r->e->w;
    if (s->id >= 0 && s->id < w->n_vocab)
        return small_append(r->e, s->id);
    for (uint32_t i = 0; i < s->n; i++) {
        const int32_t id = w->byte[(unsigned char)word[s->at + i]];
        if (id >= 0 && id < w->n_vocab && !small_append(r->e, id))
            return false;
    }
    return true;
}

static bool may_be_whole(const small_words *w, const char *word, size_t n) {
    bool newlines = w->newlines;
    for (size_t i = 0; i < n && newlines; i++)
        newlines = word[i] == '\n';
    return w->whole || newlines;
}

static bool is_white(const char *word, size_t n) {
    const size_t len = ggl_utf8_length(word, n);
    return len > 0 && (llm_unicode_properties(llm_unicode_decode(word, len)) & UNICODE_WHITE);
}

static bool join_word(word_run *r, const char *word, size_t n) {
    const small_words *w = r->e->w;
    if (w->drop_white && is_white(word, n))
        return true;
    const int32_t whole = may_be_whole(w, word, n) ? small_find(w, word, n) : -1;
    if (whole >= 0)
        return small_append(r->e, whole);
    if (!ggl_grow(&r->sym, &r->cap_sym, n, sizeof *r->sym))
        return false;
    for (uint32_t i = 0; i < n; i++)
        r->sym[i] = (symbol){i, 1, i > 0 ? i - 1 : NO_SYMBOL, i + 1 < n ? i + 1 : NO_SYMBOL,
                             w->byte[(unsigned char)word[i]]};
    r->queue.n = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!consider(r, i))
            return false;
    while (r->queue.n > 0) {
        const join j = llm_merge_queue_pop(&r->queue);
        if (llm_merge_symbols(r->sym, &j) &&
            (!consider(r, r->sym[j.left].prev) || !consider(r, j.left)))
            return false;
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = r->sym[i].next)
        if (!emit(r, &r->sym[i], word))
            return false;
    return true;
}

static ggl_status take_word(void *context, const char *word, size_t n) {
    return join_word(context, word, n) ? GGL_OK : GGL_LIMIT;
}

bool small_encode_merges(small_encoder *e, const char *text, size_t n, bool goes_on) {
    word_run r = {.e = e};
    (void)goes_on;
    return llm_pretok_split(e->w->split, e->w->n_split, text, n, take_word, &r, NULL) == GGL_OK;
}
