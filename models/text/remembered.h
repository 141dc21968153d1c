/* What texts became, for prompts that mostly begin as the last one did: each part between special tokens is encoded on its
 * own, so a part that is known is copied. When the memory is full, others are forgotten until there is room.
 *
 * Threads: any number use one at the same time. */
#ifndef LLM_TEXT_REMEMBERED_H
#define LLM_TEXT_REMEMBERED_H

#include "llm/internal/tokenizer.h"

typedef struct remembered remembered;

/* most: bytes of texts and ids. NULL: out of memory. */
remembered *llm_remembered_new(size_t most);
void llm_remembered_free(remembered *r);
size_t llm_remembered_bytes(remembered *r); /* of texts and ids */
/* Appends what text[0..n) became; how: a number for the way in which it is encoded, if there are several. False: it is not known, or memory is out. */
bool llm_remembered_find(remembered *r, const char *text, size_t n, unsigned how, llm_tokens *out);
/* Notes that a text became the ids from `first` on, of which `lost` bytes were left out. Nothing is noted of short texts, of those that
 * would take a quarter of the memory, and if there is none. */
void llm_remembered_put(remembered *r, const char *text, size_t n, unsigned how,
                        const llm_tokens *ids, size_t first, size_t lost);

#endif
