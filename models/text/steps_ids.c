/* What all models of a tokenizer.json do with ids. */
#include "ggl/internal/show.h"
#include "steps_model.h"

ggl_status llm_step_model_no_unknown(step_model_run *r, const char *s, size_t n) {
    char shown[100];
    ggl_show(shown, sizeof shown, s, ggl_utf8_cut(s, n, 40));
    return ggl_fail(r->err, GGL_UNSUPPORTED,
                    "the tokenizer has no token for '%s', and no unknown token", shown);
}

bool llm_step_model_may(const step_model_run *r, int32_t id) {
    return r->special || r->m->t->type[id] != TOKEN_CONTROL;
}

int32_t llm_step_model_find(const step_model_run *r, const char *s, size_t n) {
    const int32_t id = llm_spellings_find(&r->m->by_piece, r->m->piece, s, n);
    return id >= 0 && llm_step_model_may(r, id) ? id : -1;
}

ggl_status llm_step_model_put(step_model_run *r, int32_t id) {
    return llm_tokens_append(r->out, id, r->err);
}

ggl_status llm_step_model_remembered(step_model_run *r, const char *s, size_t n,
                                     ggl_status (*make)(step_model_run *r, const char *s,
                                                        size_t n)) {
    const size_t first = r->out->n, lost = r->out->lost;
    uint64_t key;
    const int known = llm_word_recall(&r->words, s, n, r->out, &key);
    ggl_status status = known < 0 ? llm_step_no_memory(r->err) : GGL_OK;
    if (known)
        return status;
    status = make(r, s, n);
    if (status == GGL_OK && r->out->lost == lost &&
        !llm_word_note(&r->words, s, n, key, r->out, first))
        status = llm_step_no_memory(r->err);
    return status;
}
