/* Which numbers the keys of models have: one table for programs that check a file, make a model, or load one.
 *
 * Threads: the function has no state. */
#ifndef KEY_RANGES_H
#define KEY_RANGES_H

#include "ggl/internal/gguf.h"

/* True if the value is a number that no model has, such as a negative epsilon: then `text` says so, as in "key 'llama.context_length' is 0, but
 * 1 to 268435456 is expected: ..". is_read: the model reads the key; programs write an epsilon of 0 for a norm that a model lacks. */
GGL_INTERNAL_API bool llm_arch_doubts_key(const ggl_gguf_value *v, bool is_read, char *text,
                                          size_t size);

#endif
