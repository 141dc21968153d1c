/* Counts the words of texts.
 *
 * Spellings of special tokens divide a text. What is between them is cut into parts of about a MiB, at the end of a line where
 * a pre-tokenizer would not see beyond it; threads cut these into words and count them, each part by itself. Then the counts
 * are added in the order of the parts, so that the words have one order for any number of threads. */
#include <string.h>

#include "common/work_share.h"
#include "ggl/internal/show.h"
#include "text/unicode.h"
#include "trainer_impl.h"

enum {
    PART = 1 << 20,     /* bytes of a part, if there is a line that ends there */
    PARTS_AT_ONCE = 64, /* parts whose words are in memory before they are added */
    LONGEST_WORD = 4096 /* bytes of a word of UNIGRAM */
};

/* A piece of a text. */
typedef struct part {
    const char *s;
    size_t n;
    bool begins; /* a special token or nothing is before it, so that a space is put there */
    train_words words;
    ggl_status status;
    ggl_error err;
} part;

typedef struct parts {
    const llm_tokenizer_trainer *t;
    part part[PARTS_AT_ONCE];
    size_t n;
} parts;

ggl_status llm_vocabulary_words_init(train_words *x, ggl_error *err) {
    *x = (train_words){0};
    return ggl_index_init(&x->by_text, 1024, sizeof *x->w, GGL_INDEX_STRINGS, err);
}

void llm_vocabulary_words_fini(train_words *x) {
    ggl_arena_fini(&x->arena);
    ggl_free(x->w);
    ggl_index_fini(&x->by_text);
    *x = (train_words){0};
}

/* Adds to the count of a word. */
static ggl_status add_word(train_words *x, ggl_str s, int64_t count) {
    const size_t known = ggl_index_find(&x->by_text, x->w, s);
    if (known != SIZE_MAX) {
        x->w[known].count += count;
        return GGL_OK;
    }
    char *copy = ggl_arena_strndup(&x->arena, s.s, s.n);
    const ggl_status st = ggl_index_reserve(&x->by_text, x->w, x->n + 1, NULL);
    if (!copy || !ggl_grow(&x->w, &x->cap, x->n + 1, sizeof *x->w))
        return GGL_NOMEM;
    if (st != GGL_OK)
        return st;
    x->w[x->n] = (train_word){{copy, s.n}, count};
    (void)ggl_index_put(&x->by_text, x->w, x->n);
    x->n++;
    return GGL_OK;
}

/* --- the words of a part ---------------------------------------------------------------------- */

static bool is_white(const char *s, size_t n) {
    const size_t len = ggl_utf8_length(s, n);
    return len > 0 && (llm_unicode_properties(llm_unicode_decode(s, len)) & UNICODE_WHITE);
}

static ggl_status count_word(void *ctx, const char *s, size_t n) {
    part *p = ctx;
    return add_word(&p->words, (ggl_str){s, n}, 1);
}

/* Where words only have white space between them. */
static ggl_status count_black_word(void *ctx, const char *s, size_t n) {
    return is_white(s, n) ? GGL_OK : count_word(ctx, s, n);
}

/* Of UNIGRAM: cuts long words, between characters. */
static ggl_status count_pieces(void *ctx, const char *s, size_t n) {
    ggl_status st = GGL_OK;
    while (n > 0 && st == GGL_OK) {
        size_t cut = n <= LONGEST_WORD ? n : ggl_utf8_cut(s, n, LONGEST_WORD);
        cut = cut > 0 ? cut : LONGEST_WORD; /* there is no character */
        st = count_word(ctx, s, cut);
        s += cut;
        n -= cut;
    }
    return st;
}

static ggl_status split_words(const llm_tokenizer_trainer *t, part *p, const char *s, size_t n) {
    ggl_status (*const count)(void *, const char *, size_t) = t->p.kind == LLM_VOCABULARY_UNIGRAM
                                                                  ? count_pieces
                                                              : t->pre.drop_white ? count_black_word
                                                                                  : count_word;
    return llm_pretok_split(t->split, t->n_split, s, n, count, p, &p->err);
}

static void count_part(void *ctx, size_t i, int thread) {
    parts *x = ctx;
    part *p = &x->part[i];
    (void)thread;
    p->status = llm_vocabulary_words_init(&p->words, &p->err);
    char *spaced = NULL;
    if (p->status == GGL_OK && p->begins && !x->t->p.no_space_prefix) {
        spaced = ggl_calloc(p->n + 1, 1);
        if (!spaced) {
            p->status = GGL_NOMEM;
        } else {
            spaced[0] = ' ';
            memcpy(spaced + 1, p->s, p->n);
        }
    }
    if (p->status == GGL_OK)
        p->status = split_words(x->t, p, spaced ? spaced : p->s, p->n + (spaced != NULL));
    if (p->status == GGL_NOMEM)
        (void)llm_vocabulary_no_memory(&p->err);
    ggl_free(spaced);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Counts the words of the parts, and empties the list. */
static ggl_status count_parts(llm_tokenizer_trainer *t, parts *x, ggl_error *err) {
    ggl_status s = GGL_OK;
    if (!llm_vocabulary_go_on(t, "counting words", (size_t)t->n_bytes, 0))
        s = llm_vocabulary_cancelled(err);
    else
        llm_work_share(t->p.n_threads, x->n, count_part, x);
    for (size_t i = 0; i < x->n; i++) {
        part *p = &x->part[i];
        if (s == GGL_OK && p->status != GGL_OK)
            s = ggl_fail(err, p->status, "%s", p->err.msg);
        for (size_t k = 0; k < p->words.n && s == GGL_OK; k++)
            if ((s = add_word(&t->words, p->words.w[k].s, p->words.w[k].count)) != GGL_OK)
                s = s == GGL_NOMEM ? llm_vocabulary_no_memory(err)
                                   : ggl_fail(err, s, "the texts have more than 2^31 words");
        llm_vocabulary_words_fini(&p->words);
    }
    x->n = 0;
    return s;
}

/* True if text[i] ends a line that has an end of its own: before and after it is no white space, so that the patterns of
 * pre-tokenizers, which look ahead over white space, cut there, too. */
static bool is_seam(const char *text, size_t n, size_t i) {
    return text[i] == '\n' && i > 0 && i + 1 < n && (unsigned char)text[i - 1] > ' ' &&
           (unsigned char)text[i + 1] > ' ' && !is_white(text + i + 1, n - i - 1);
}

/* Returns the length of the next part of a text of n > 0 bytes. */
static size_t part_length(const char *text, size_t n) {
    if (n <= 2 * PART)
        return n;
    for (size_t i = PART; i < 2 * PART; i++)
        if (is_seam(text, n, i))
            return i + 1;
    const size_t cut = ggl_utf8_cut(text, n, 2 * PART);
    return cut > PART ? cut : 2 * PART;
}

/* Adds the text between two special tokens. */
static ggl_status add_stretch(llm_tokenizer_trainer *t, parts *x, const char *text, size_t n,
                              ggl_error *err) {
    ggl_status s = GGL_OK;
    for (size_t i = 0, len; i < n && s == GGL_OK; i += len) {
        len = part_length(text + i, n - i);
        x->part[x->n++] = (part){.s = text + i, .n = len, .begins = i == 0};
        if (x->n == PARTS_AT_ONCE)
            s = count_parts(t, x, err);
    }
    return s;
}

static ggl_status add_text(llm_tokenizer_trainer *t, parts *x, ggl_str text, ggl_error *err) {
    special_match *found = NULL;
    size_t n_found = 0, start = 0;
    ggl_status s =
        t->n_special == 0 || text.n == 0
            ? GGL_OK
            : llm_special_find(&t->in_text, text.s, text.n, false, &found, &n_found, err);
    while (s == GGL_OK && start <= text.n) {
        while (n_found > 0 && found[n_found - 1].at < start) /* it begins inside the previous one */
            n_found--;
        const size_t end = n_found > 0 ? found[n_found - 1].at : text.n;
        s = add_stretch(t, x, text.s + start, end - start, err);
        start = n_found > 0 ? end + t->special[found[n_found - 1].id].n : text.n + 1;
    }
    ggl_free(found);
    return s;
}

ggl_status llm_tokenizer_trainer_add(llm_tokenizer_trainer *t, const ggl_str *text, size_t n,
                                     ggl_error *err) {
    if (t->is_trained)
        return ggl_fail(err, GGL_USAGE, "the tokenizer has been trained; there is no more to add");
    parts *x = ggl_calloc(1, sizeof *x);
    if (!x)
        return llm_vocabulary_no_memory(err);
    x->t = t;
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        s = add_text(t, x, text[i], err);
        t->n_texts++;
        t->n_bytes += text[i].n;
    }
    if (s == GGL_OK)
        s = count_parts(t, x, err);
    for (size_t i = 0; i < x->n; i++)
        llm_vocabulary_words_fini(&x->part[i].words);
    ggl_free(x);
    return s;
}
