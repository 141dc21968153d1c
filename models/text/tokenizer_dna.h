/* "hybriddna" vocabularies: byte-level BPE, but between <dna> and </dna> each group of six
 * letters is a token. These tokens end with U+E000 in the file, to distinguish them from
 * ordinary pieces of the same letters. */
#ifndef LLM_TOKENIZER_DNA_H
#define LLM_TOKENIZER_DNA_H

#include "tokenizer_impl.h"

typedef struct dna {
    int32_t open, close, other; /* tokens <dna>, </dna> and <oov>, for groups that are not tokens */
} dna;

/* Finds the three tokens among the pieces. False: one is missing, so all text is ordinary. */
bool llm_dna_find(dna *d, const llm_tokenizer *t, const ggl_index *pieces);
/* Returns the piece without the mark at its end, if it has one. */
ggl_str llm_dna_text(ggl_str piece);
/* Encodes a text; `plain` encodes the parts outside of <dna> and </dna>. An incomplete group is
 * filled up with A; small letters count as capital ones. */
GGL_NODISCARD ggl_status llm_dna_encode(
    const dna *d, const llm_tokenizer *t, const ggl_index *pieces, const char *text, size_t n,
    ggl_status (*plain)(const llm_tokenizer *t, const char *text, size_t n, const llm_stretch *how,
                        llm_tokens *out, ggl_error *err),
    const llm_stretch *how, llm_tokens *out, ggl_error *err);

#endif
