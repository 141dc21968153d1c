#include "llm/internal/label_tokens.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* The tokens, at most so many, with which both begin. */
static size_t n_common(const llm_tokens *a, const llm_tokens *b, size_t most) {
    size_t n = 0;
    while (n < most && n < b->n && a->id[n] == b->id[n])
        n++;
    return n;
}

/* Where the last control token of the prompt begins in its text, and among its tokens. What is before it has no effect on the tokens
 * from there on. False: there is none, or a stretch without control tokens reaches beyond it. */
static bool find_tail(const llm_tokenizer *t, const llm_spans *given, ggl_str prompt,
                      const llm_tokens *ids, size_t *at, size_t *n_before) {
    size_t k = ids->n;
    while (k > 0 && (ids->id[k - 1] < 0 || !llm_tokenizer_is_control(t, ids->id[k - 1])))
        k--;
    if (k < 2)
        return false;
    const ggl_str text = llm_token_text(t, ids->id[k - 1], true);
    for (size_t i = prompt.n; text.n > 0 && i >= text.n; i--)
        if (memcmp(prompt.s + i - text.n, text.s, text.n) == 0) {
            *at = i - text.n;
            *n_before = k - 1;
            return !given || given->n == 0 || given->at[given->n - 1].to <= *at;
        }
    return false;
}

/* Appends the tokens from the tail on. */
static ggl_status read_from(const llm_tokenizer *t, ggl_str text, size_t at, unsigned flags,
                            const llm_tokens *before, size_t n_before, llm_tokens *to,
                            ggl_error *err) {
    if (!ggl_grow(&to->id, &to->cap, n_before + 1, sizeof *to->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n_before);
    memcpy(to->id, before->id, n_before * sizeof *to->id);
    to->n = n_before;
    return llm_tokenize(t, text.s + at, text.n - at, flags & ~(unsigned)LLM_TOKENIZE_BOS, to, err);
}

/* How the labels are read: from where on. */
typedef struct tail {
    size_t at, n_before; /* n_before 0: all of the text */
} tail;

/* The tail is of use if it gives the tokens that the whole prompt has. */
static ggl_status check_tail(llm_label_tokens *x, const llm_tokenizer *t, const llm_spans *given,
                             ggl_str prompt, unsigned flags, tail *found, ggl_error *err) {
    const llm_tokens *whole = &x->whole[x->n];
    llm_tokens again = {0};
    tail f = {0};
    *found = f;
    if (!(flags & LLM_TOKENIZE_SPECIAL) || !find_tail(t, given, prompt, whole, &f.at, &f.n_before))
        return GGL_OK;
    const ggl_status st = read_from(t, prompt, f.at, flags, whole, f.n_before, &again, err);
    if (st == GGL_OK && again.n == whole->n && n_common(&again, whole, again.n) == again.n)
        *found = f;
    llm_tokens_fini(&again);
    return st;
}

static ggl_status read_prompt(llm_label_tokens *x, const llm_tokenizer *t, const llm_spans *given,
                              ggl_str prompt, unsigned flags, size_t most, tail *from,
                              ggl_error *err) {
    llm_tokens *to = &x->whole[x->n];
    ggl_status st = llm_tokenize_given(t, given, prompt.s, prompt.n, flags, to, err);
    x->n_prompt = x->n_whole = to->n;
    if (st == GGL_OK && to->n > most)
        return ggl_fail(err, GGL_LIMIT, "a prompt of %zu tokens exceeds the context of %zu", to->n,
                        most);
    return st == GGL_OK ? check_tail(x, t, given, prompt, flags, from, err) : st;
}

static ggl_status read_label(llm_label_tokens *x, size_t k, const llm_tokenizer *t,
                             const llm_spans *given, ggl_str text, unsigned flags, tail from,
                             ggl_error *err) {
    const llm_tokens *prompt = &x->whole[x->n];
    llm_tokens *to = &x->whole[k];
    const ggl_status st = from.n_before > 0
                              ? read_from(t, text, from.at, flags, prompt, from.n_before, to, err)
                              : llm_tokenize_given(t, given, text.s, text.n, flags, to, err);
    if (st == GGL_OK)
        x->n_prompt = n_common(prompt, to, x->n_prompt);
    return st;
}

/* Cuts the labels off, and checks that each has something of its own. */
static ggl_status cut(llm_label_tokens *x, const ggl_str *label, ggl_error *err) {
    if (x->n_prompt == 0)
        return ggl_fail(err, GGL_USAGE, "the prompt has no token before those of the labels");
    for (size_t k = 0; k < x->n; k++) {
        const llm_tokens *w = &x->whole[k];
        if (label[k].n == 0 || w->n == x->n_prompt)
            return ggl_fail(err, GGL_USAGE, "label[%zu], of %zu bytes, has no token", k,
                            label[k].n);
        x->label[k] = (llm_label){w->id + x->n_prompt, w->n - x->n_prompt};
    }
    return GGL_OK;
}

ggl_status llm_label_tokens_read(llm_label_tokens *x, const llm_tokenizer *t,
                                 const llm_spans *given, ggl_str prompt, unsigned flags,
                                 size_t most_tokens, const ggl_str *label, size_t n,
                                 ggl_error *err) {
    size_t most = 0;
    tail from = {0};
    for (size_t k = 0; k < n; k++)
        most = label[k].n > most ? label[k].n : most;
    *x = (llm_label_tokens){.n = n};
    char *text = prompt.n < SIZE_MAX - most ? ggl_calloc(prompt.n + most + 1, 1) : NULL;
    x->whole = ggl_calloc(n + 1, sizeof *x->whole);
    x->label = ggl_calloc(n + 1, sizeof *x->label);
    if (!text || !x->whole || !x->label) {
        ggl_free(text);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", n);
    }
    if (prompt.n > 0)
        memcpy(text, prompt.s, prompt.n);
    ggl_status st = read_prompt(x, t, given, prompt, flags, most_tokens, &from, err);
    for (size_t k = 0; k < n && st == GGL_OK; k++) {
        if (label[k].n > 0)
            memcpy(text + prompt.n, label[k].s, label[k].n);
        st = read_label(x, k, t, given, (ggl_str){text, prompt.n + label[k].n}, flags, from, err);
    }
    ggl_free(text);
    return st == GGL_OK ? cut(x, label, err) : st;
}

void llm_label_tokens_fini(llm_label_tokens *x) {
    for (size_t k = 0; x->whole && k <= x->n; k++)
        llm_tokens_fini(&x->whole[k]);
    ggl_free(x->whole);
    ggl_free(x->label);
    *x = (llm_label_tokens){0};
}
