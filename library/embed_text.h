/* How an embedder reads a text: one rule for prompts, special tokens and texts that are too long. The tools' part is in opening.h. */
#ifndef LIBRARY_EMBED_TEXT_H
#define LIBRARY_EMBED_TEXT_H

#include "opening.h"

/* Appends the tokens of a text after its prompt. GGL_UNSUPPORTED: there is no tokenizer; GGL_NOMEM. */
ggl_status llm_embed_read(const llm_context *c, const llm_embed_how *how, ggl_str text,
                          llm_tokens *ids, ggl_error *err);

#endif
