/* SHA-1 (FIPS 180-4) of bytes that come in pieces. It is used like sha256.h, and only for what Git names by it: two files of equal
 * SHA-1 can be made on purpose, so it finds damage, but does not keep out an attacker. */
#ifndef HUB_SHA1_H
#define HUB_SHA1_H

#include <stddef.h>
#include <stdint.h>

#include "common/sha_blocks.h"

enum { SHA1_HEX = 41 }; /* 40 lower-case hexadecimal digits and a NUL */

typedef struct sha1 {
    uint32_t h[5];
    sha_blocks bytes;
} sha1;

void llm_sha1_begin(sha1 *s);
void llm_sha1_add(sha1 *s, const void *data, size_t n);
/* Writes the digest of all bytes. *s can then only be begun again. */
void llm_sha1_end(sha1 *s, char hex[SHA1_HEX]);

#endif
