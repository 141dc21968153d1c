/* A query and a document, as rerankers read them. */
#include <string.h>

#include "tokenizer_impl.h"

/* The rest of a form, and what was made of its beginning. */
typedef struct filling {
    ggl_str rest;
    char *text;
    size_t n, cap;
} filling;

static bool append(filling *f, ggl_str s) {
    if (s.n > SIZE_MAX - f->n || !ggl_grow(&f->text, &f->cap, f->n + s.n, 1))
        return false;
    if (s.n > 0)
        memcpy(f->text + f->n, s.s, s.n);
    f->n += s.n;
    return true;
}

/* Takes a name from the beginning of the rest, if it is there. */
static bool takes(filling *f, const char *name) {
    const size_t n = strlen(name);
    if (n > f->rest.n || memcmp(name, f->rest.s, n) != 0)
        return false;
    f->rest = (ggl_str){f->rest.s + n, f->rest.n - n};
    return true;
}

/* Appends what the beginning of the rest stands for. False: out of memory. */
static bool fill(filling *f, ggl_str query, ggl_str document) {
    if (takes(f, "{query}"))
        return append(f, query);
    if (takes(f, "{document}"))
        return append(f, document);
    const char *next = memchr(f->rest.s + 1, '{', f->rest.n - 1);
    const size_t n = next ? (size_t)(next - f->rest.s) : f->rest.n;
    const ggl_str text = {f->rest.s, n};
    f->rest = (ggl_str){f->rest.s + n, f->rest.n - n};
    return append(f, text);
}

/* Names within the query and the document stand for nothing. */
static ggl_status tokenize_form(const llm_tokenizer *t, ggl_str query, ggl_str document,
                                llm_tokens *out, ggl_error *err) {
    filling f = {.rest = t->pair_form};
    bool good = true;
    while (good && f.rest.n > 0)
        good = fill(&f, query, document);
    const ggl_status st = good ? llm_tokenize(t, f.text, f.n, LLM_TOKENIZE_SPECIAL, out, err)
                               : ggl_fail(err, GGL_NOMEM, "out of memory for a query and a text");
    ggl_free(f.text);
    return st;
}

/* True if texts end with what also stands between two, as with wordpieces or, in other kinds, a token of that name. Else two
 * ends are between them. */
static bool ends_by_separator(const llm_tokenizer *t) {
    return t->kind == &llm_tokenizer_wordpiece || ggl_str_is(llm_token_piece(t, t->eos), "[SEP]");
}

ggl_status llm_tokenize_pair(const llm_tokenizer *t, ggl_str query, ggl_str document,
                             llm_tokens *out, ggl_error *err) {
    if (t->pair_form.n > 0)
        return tokenize_form(t, query, document, out, err);
    ggl_status st = llm_tokenize(t, query.s, query.n, LLM_TOKENIZE_BOS, out, err);
    if (st != GGL_OK)
        return st;
    const size_t second = out->n;
    st = llm_tokenize(t, document.s, document.n, LLM_TOKENIZE_BOS, out, err);
    if (st != GGL_OK || out->n == second || out->id[second] != t->bos)
        return st;
    if (t->eos >= 0 && !ends_by_separator(t)) {
        out->id[second] = t->eos;
        return GGL_OK;
    }
    memmove(out->id + second, out->id + second + 1, (out->n - second - 1) * sizeof *out->id);
    out->n--;
    return GGL_OK;
}

/* The pair with an empty document has the same end, which is what follows a document. */
ggl_status llm_cut_pair(const llm_tokenizer *t, ggl_str query, llm_tokens *pair, size_t n_max,
                        ggl_error *err) {
    llm_tokens none = {0};
    if (pair->n <= n_max)
        return GGL_OK;
    ggl_status st = llm_tokenize_pair(t, query, (ggl_str){"", 0}, &none, err);
    if (st == GGL_OK && none.n >= n_max)
        st = ggl_fail(err, GGL_LIMIT,
                      "the query has %zu tokens with those that the model adds, but the context "
                      "%zu: no document fits beside it",
                      none.n, n_max);
    size_t end = 0;
    while (st == GGL_OK && end < none.n && none.id[none.n - 1 - end] == pair->id[pair->n - 1 - end])
        end++;
    if (st == GGL_OK) {
        memmove(pair->id + n_max - end, pair->id + pair->n - end, end * sizeof *pair->id);
        pair->n = n_max;
    }
    llm_tokens_fini(&none);
    return st;
}
