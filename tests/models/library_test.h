/* What the tests of llm/llm.h share: the text of a generation, and contexts of the built-in models. */
#ifndef LIBRARY_TEST_H
#define LIBRARY_TEST_H

#include "llm/llm.h"
#include "test.h"

typedef struct written {
    char s[4096];
    size_t n;
} written;

static inline bool take(void *user, const char *piece, size_t n) {
    written *t = user;
    if (!CHECK(n > 0 && t->n + n < sizeof t->s))
        return false;
    memcpy(t->s + t->n, piece, n);
    t->n += n;
    t->s[t->n] = 0;
    return true;
}

/* Tokens of a generation, which keep_token gets as llm_generate_params.token. */
typedef struct drawn {
    int32_t id[200];
    int64_t n;
} drawn;

static inline bool keep_token(void *user, int32_t id, const float *logits) {
    drawn *d = user;
    (void)logits;
    if (!CHECK(d->n < 200))
        return false;
    d->id[d->n++] = id;
    return true;
}

/* Opens a model with 128 tokens of context, unless params say otherwise; NULL: a failure, which was reported. */
static inline llm_context *open_with(const char *name, llm_open_params p) {
    ggl_error err;
    llm_context *c;
    p.size = sizeof p;
    p.n_ctx = p.n_ctx ? p.n_ctx : 128;
    p.n_threads = 2;
    return CHECK_OK(llm_open(&c, name, &p, &err), &err) ? c : NULL;
}

/* The likeliest tokens, up to n_max of them. */
static inline llm_generate_params greedy(int64_t n_max) {
    return (llm_generate_params){.size = sizeof(llm_generate_params), .n_max = n_max};
}

/* Generates after n tokens; each: NULL: none. */
static inline ggl_status generate_ids(llm_context *c, const int32_t *id, size_t n,
                                      const llm_generate_params *p, llm_piece_fn *each, void *user,
                                      ggl_error *err) {
    const char *piece;
    size_t n_piece;
    ggl_status st = llm_begin(c, id, n, p, err);
    while (st == GGL_OK && (st = llm_next(c, &piece, &n_piece, err)) == GGL_OK && piece)
        if (each && !each(user, piece, n_piece))
            llm_cancel(c);
    return st;
}

/* Generates after a prompt and returns the text in *t. */
static inline void generate(llm_context *c, const char *prompt, const llm_generate_params *p,
                            written *t) {
    ggl_error err;
    t->n = 0;
    t->s[0] = 0;
    CHECK_OK(llm_generate(c, prompt, p, take, t, &err), &err);
}

#endif
