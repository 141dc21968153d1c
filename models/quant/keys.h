/* The keys of a quantized file. */
#ifndef LLM_QUANT_KEYS_H
#define LLM_QUANT_KEYS_H

#include "ggl/gguf.h"
#include "plan.h"

/* Puts the keys of f in order, without those of a split model. The two that describe the types are
 * changed in place, or added at the end. */
void llm_quant_put_keys(ggl_gguf_writer *w, const ggl_gguf *f, const quant_choice *c);

#endif
