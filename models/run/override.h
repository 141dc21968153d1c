/* Values that users give to keys of a model, for this run only. */
#ifndef LLM_RUN_OVERRIDE_H
#define LLM_RUN_OVERRIDE_H

#include "ggl/gguf.h"

/* Changes the keys of a file that was just opened, as llm_model_params.override says. GGL_USAGE: a text is wrong, or the key is a
 * list; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_override_keys(ggl_gguf *file, const char *const *text, size_t n,
                                           ggl_error *err);

#endif
