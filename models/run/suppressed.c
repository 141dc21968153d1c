/* Tokens that are never chosen, whatever their logits are: the key tokenizer.ggml.suppress_tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "llm/internal/token_list.h"
#include "session_impl.h"

/* Makes the mask from the list. */
static ggl_status make_mask(llm_session *s, const llm_token_list *l, ggl_error *err) {
    const size_t n_words = ((size_t)s->built.n_vocab + 31) / 32;
    s->writable = ggl_calloc(n_words, sizeof *s->writable);
    if (!s->writable)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a mask of %" PRId64 " tokens",
                        s->built.n_vocab);
    memset(s->writable, 0xff, n_words * sizeof *s->writable);
    for (size_t i = 0; i < l->n; i++) {
        if (l->id[i] >= 0 && l->id[i] < s->built.n_vocab)
            s->writable[l->id[i] / 32] &= ~(1u << l->id[i] % 32);
        else
            s->n_unknown_suppressed++;
    }
    return GGL_OK;
}

ggl_status llm_session_find_suppressed(llm_session *s, const ggl_gguf *file, ggl_error *err) {
    llm_token_list l;
    if (!llm_has_output(s, LLM_OUT_LOGITS))
        return GGL_OK;
    ggl_status st = llm_token_list_read(&l, file, LLM_SUPPRESS_TOKENS, err);
    if (st == GGL_OK && l.n > 0)
        st = make_mask(s, &l, err);
    llm_token_list_fini(&l);
    return st;
}

void llm_session_note_suppressed(llm_session *s) {
    const size_t n = strlen(s->load_notes);
    if (s->n_unknown_suppressed > 0)
        snprintf(s->load_notes + n, sizeof s->load_notes - n,
                 "note: " LLM_SUPPRESS_TOKENS
                 " lists %zu tokens that are not in the vocabulary of %" PRId64
                 "; they are ignored\n",
                 s->n_unknown_suppressed, s->built.n_vocab);
}

const uint32_t *llm_session_writable(const llm_session *s) {
    return s->writable;
}
