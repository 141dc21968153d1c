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

static ggl_status read_one(llm_label_tokens *x, size_t k, const llm_tokenizer *t,
                           const llm_spans *given, ggl_str text, unsigned flags, ggl_error *err) {
    const ggl_status st = llm_tokenize_given(t, given, text.s, text.n, flags, &x->whole[k], err);
    const llm_tokens *prompt = &x->whole[x->n];
    if (st == GGL_OK && k < x->n)
        x->n_prompt = n_common(prompt, &x->whole[k], x->n_prompt);
    else if (st == GGL_OK)
        x->n_prompt = prompt->n;
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
                                 const ggl_str *label, size_t n, ggl_error *err) {
    size_t most = 0;
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
    ggl_status st = read_one(x, n, t, given, prompt, flags, err);
    for (size_t k = 0; k < n && st == GGL_OK; k++) {
        if (label[k].n > 0)
            memcpy(text + prompt.n, label[k].s, label[k].n);
        st = read_one(x, k, t, given, (ggl_str){text, prompt.n + label[k].n}, flags, err);
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
