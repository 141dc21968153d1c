/* A digest of bytes, which finds damage and differences, but is no protection against malice. */
#ifndef LLM_DIGEST_H
#define LLM_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Returns the digest of what `h` is the digest of, followed by n bytes. Start with LLM_DIGEST_START.
 * The same on every machine of this byte order. */
#define LLM_DIGEST_START 0xcbf29ce484222325u
uint64_t llm_digest(uint64_t h, const void *data, size_t n);

#endif
