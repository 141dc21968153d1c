/* Reads integers of files, which are little-endian and not aligned. */
#ifndef LLM_LITTLE_ENDIAN_H
#define LLM_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

/* Returns the unsigned integer of n_bytes bytes, at most 8, at `at`. */
static inline uint64_t llm_little_endian(const void *at, size_t n_bytes) {
    const unsigned char *byte = at;
    uint64_t x = 0;
    for (size_t k = 0; k < n_bytes; k++)
        x |= (uint64_t)byte[k] << 8 * k;
    return x;
}

#endif
