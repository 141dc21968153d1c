/* A text by diffusion, written by running its passes alone. */
#ifndef TESTS_DIFFUSE_ALONE_H
#define TESTS_DIFFUSE_ALONE_H

#include <string.h>

#include "llm/internal/diffuse.h"

static ggl_status diffuse_pass(llm_session *s, llm_diffuser *f, const llm_batch *b,
                               ggl_error *err) {
    ggl_status st = llm_session_clear(s, 0, err);
    if (st == GGL_OK)
        st = llm_session_eval(s, b, err);
    return st == GGL_OK ? llm_diffuser_end_pass(f, err) : st;
}

/* Writes the text to id[n_length], in slot 0, which is empty afterwards. */
static ggl_status diffuse_alone(llm_session *s, const llm_diffusion *d, int32_t *id,
                                ggl_error *err) {
    llm_diffuser *f;
    llm_batch b = {.n = d->n_length, .each = llm_diffuser_logits};
    ggl_status st = llm_diffuser_new(&f, s, d, err);
    b.ctx = f;
    while (st == GGL_OK && (b.token = llm_diffuser_pass(f, &b.want)) != NULL)
        st = diffuse_pass(s, f, &b, err);
    if (st == GGL_OK)
        memcpy(id, llm_diffuser_text(f), (size_t)d->n_length * sizeof *id);
    llm_diffuser_free(f);
    const ggl_status cleared = llm_session_clear(s, 0, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? cleared : st;
}

#endif
