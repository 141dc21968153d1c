/* SHA-256 (FIPS 180-4) of bytes that come in pieces.
 *
 *     sha256 s;
 *     char hex[SHA256_HEX];
 *     llm_sha256_begin(&s);
 *     llm_sha256_add(&s, "abc", 3);
 *     llm_sha256_end(&s, hex);          // "ba7816bf.." */
#ifndef COMMON_SHA256_H
#define COMMON_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "sha_blocks.h"

enum { SHA256_HEX = 65 }; /* 64 lower-case hexadecimal digits and a NUL */

typedef struct sha256 {
    uint32_t h[8];
    sha_blocks bytes;
} sha256;

void llm_sha256_begin(sha256 *s);
void llm_sha256_add(sha256 *s, const void *data, size_t n);
/* Writes the digest of all bytes. *s can then only be begun again. */
void llm_sha256_end(sha256 *s, char hex[SHA256_HEX]);

#endif
