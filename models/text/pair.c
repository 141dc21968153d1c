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

/* Gives the tokens that have no type yet this one. */
static ggl_status set_types(llm_tokens *type, size_t n, int32_t value, ggl_error *err) {
    if (!type)
        return GGL_OK;
    if (!ggl_grow(&type->id, &type->cap, n, sizeof *type->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the types of tokens");
    while (type->n < n)
        type->id[type->n++] = value;
    return GGL_OK;
}

/* As the file's keys tokenizer.ggl.pair and .pair_types say. */
static ggl_status tokenize_parts(const llm_tokenizer *t, ggl_str query, ggl_str document,
                                 llm_tokens *out, llm_tokens *type, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < t->n_pair && st == GGL_OK; i++) {
        const pair_part *p = &t->pair[i];
        const ggl_str text = p->id == PAIR_FIRST ? query : document;
        st = p->id >= 0 ? llm_tokens_append(out, p->id, err)
                        : llm_tokenize(t, text.s, text.n, LLM_TOKENIZE_SPECIAL, out, err);
        if (st == GGL_OK)
            st = set_types(type, out->n, p->type, err);
    }
    return st;
}

/* One after the other, each as the tokenizer begins and ends texts. */
static ggl_status tokenize_both(const llm_tokenizer *t, ggl_str query, ggl_str document,
                                llm_tokens *out, llm_tokens *type, ggl_error *err) {
    const unsigned flags = LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL;
    ggl_status st = llm_tokenize(t, query.s, query.n, flags, out, err);
    const size_t second = out->n;
    if (st == GGL_OK)
        st = set_types(type, second, 0, err);
    if (st == GGL_OK)
        st = llm_tokenize(t, document.s, document.n, flags, out, err);
    if (st == GGL_OK && out->n > second && out->id[second] == t->bos) {
        if (t->eos >= 0 && !ends_by_separator(t)) {
            out->id[second] = t->eos;
        } else {
            out->n--;
            memmove(out->id + second, out->id + second + 1, (out->n - second) * sizeof *out->id);
        }
    }
    return st == GGL_OK ? set_types(type, out->n, ends_by_separator(t), err) : st;
}

int32_t llm_tokenizer_most_pair_type(const llm_tokenizer *t) {
    int32_t most = 0;
    for (size_t i = 0; i < t->n_pair; i++)
        most = t->pair[i].type > most ? t->pair[i].type : most;
    return most;
}

ggl_status llm_tokenize_pair(const llm_tokenizer *t, ggl_str query, ggl_str document,
                             llm_tokens *out, llm_tokens *type, ggl_error *err) {
    if (t->pair)
        return tokenize_parts(t, query, document, out, type, err);
    if (t->pair_form.n == 0)
        return tokenize_both(t, query, document, out, type, err);
    const ggl_status st = tokenize_form(t, query, document, out, err);
    return st == GGL_OK ? set_types(type, out->n, 0, err) : st;
}

/* The pair with an empty document has the same end, which is what follows a document. */
ggl_status llm_cut_pair(const llm_tokenizer *t, ggl_str query, llm_tokens *pair, llm_tokens *type,
                        size_t n_max, ggl_error *err) {
    llm_tokens none = {0};
    if (pair->n <= n_max)
        return GGL_OK;
    ggl_status st = llm_tokenize_pair(t, query, (ggl_str){"", 0}, &none, NULL, err);
    if (st == GGL_OK && none.n >= n_max)
        st = ggl_fail(err, GGL_LIMIT,
                      "the query has %zu tokens with those that the model adds, but the longest "
                      "text has %zu: no document fits beside it",
                      none.n, n_max);
    size_t end = 0;
    while (st == GGL_OK && end < none.n && none.id[none.n - 1 - end] == pair->id[pair->n - 1 - end])
        end++;
    if (st == GGL_OK) {
        llm_tokens *const both[] = {pair, type};
        for (int k = 0; k < (type ? 2 : 1); k++) {
            int32_t *id = both[k]->id;
            memmove(id + n_max - end, id + both[k]->n - end, end * sizeof *id);
            both[k]->n = n_max;
        }
    }
    llm_tokens_fini(&none);
    return st;
}
