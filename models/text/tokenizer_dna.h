/* The "hybriddna" vocabularies: byte-level BPE, and between <dna> and </dna> stretches of six
 * letters, each a token of its own. The files mark these tokens with U+E000 at their end, so that
 * they differ from ordinary pieces of the same letters. */
#ifndef LLM_TOKENIZER_DNA_H
#define LLM_TOKENIZER_DNA_H

#include "tokenizer_impl.h"

typedef struct dna {
    int32_t open, close, other; /* <dna>, </dna>, <oov>: what is no token */
} dna;

/* Finds the three tokens among the pieces; false: some are missing, and all text is ordinary. */
bool llm_dna_find(dna *d, const llm_tokenizer *t, const ggl_index *pieces);
/* The piece without the mark at its end, if it has it. */
ggl_str llm_dna_text(ggl_str piece);
/* Encodes text, of which `plain` encodes what is not between the two tokens. A part of less than six
 * letters is filled up with A, small letters count as capital ones. */
GGL_NODISCARD ggl_status llm_dna_encode(const dna *d, const llm_tokenizer *t,
                                        const ggl_index *pieces, const char *text, size_t n,
                                        ggl_status (*plain)(const llm_tokenizer *t,
                                                            const char *text, size_t n,
                                                            llm_tokens *out, ggl_error *err),
                                        llm_tokens *out, ggl_error *err);

#endif
