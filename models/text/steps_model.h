/* Shared by the models of a tokenizer.json. */
#ifndef LLM_TEXT_STEPS_MODEL_H
#define LLM_TEXT_STEPS_MODEL_H

#include "steps.h"

struct step_model_kind {
    const char *type;
    /* NULL: it has no members of its own */
    ggl_status (*read)(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                       const json_value *model, ggl_error *err);
    ggl_status (*run)(step_model_run *r, const char *s, size_t n);
};

/* steps_ids.c: the piece has no token, and nothing stands for it. */
ggl_status llm_step_model_no_unknown(step_model_run *r, const char *s, size_t n);
/* True if a piece may become this token. */
bool llm_step_model_may(const step_model_run *r, int32_t id);
/* Returns the token with this spelling; -1: there is none, or none may be used. */
int32_t llm_step_model_find(const step_model_run *r, const char *s, size_t n);
GGL_NODISCARD ggl_status llm_step_model_put(step_model_run *r, int32_t id);
/* Appends what `make` makes of a word, or what it made of it before. It depends on nothing else. */
GGL_NODISCARD ggl_status llm_step_model_remembered(step_model_run *r, const char *s, size_t n,
                                                   ggl_status (*make)(step_model_run *r,
                                                                      const char *s, size_t n));

/* steps_bpe.c */
GGL_NODISCARD ggl_status llm_step_bpe_read(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                                           const json_value *model, ggl_error *err);
GGL_NODISCARD ggl_status llm_step_bpe(step_model_run *r, const char *s, size_t n);

#endif
