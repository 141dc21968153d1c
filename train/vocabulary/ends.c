/* How training ends before it is done. */
#include "trainer_impl.h"

ggl_status llm_vocabulary_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for training a tokenizer");
}

ggl_status llm_vocabulary_cancelled(ggl_error *err) {
    return ggl_fail(err, GGL_CANCELLED, "training was cancelled");
}

bool llm_vocabulary_go_on(const llm_tokenizer_trainer *t, const char *what, size_t done,
                          size_t total) {
    return !t->p.progress || t->p.progress(t->p.ctx, what, done, total);
}
