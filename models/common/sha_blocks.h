/* What SHA-1 and SHA-256 (FIPS 180-4, section 5) have in common: bytes come in blocks of 64, padded at the end with
 * their number, and the digest is the words of the state. */
#ifndef COMMON_SHA_BLOCKS_H
#define COMMON_SHA_BLOCKS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sha_blocks {
    uint64_t n;              /* bytes so far */
    unsigned char block[64]; /* its first n % 64 bytes wait for the others */
} sha_blocks;

/* Adds a block to the state h. */
typedef void sha_add_block(uint32_t *h, const unsigned char *block);

static inline void sha_blocks_add(sha_blocks *s, uint32_t *h, sha_add_block *add_block,
                                  const void *data, size_t n) {
    const unsigned char *p = data;
    const size_t used = s->n % sizeof s->block;
    s->n += n;
    if (used > 0) {
        const size_t room = sizeof s->block - used, take = n < room ? n : room;
        memcpy(s->block + used, p, take);
        p += take;
        n -= take;
        if (take < room)
            return;
        add_block(h, s->block);
    }
    for (; n >= sizeof s->block; p += sizeof s->block, n -= sizeof s->block)
        add_block(h, p);
    if (n > 0)
        memcpy(s->block, p, n);
}

/* Adds the padding, and writes the state's n_words words as lower-case hexadecimal digits and a NUL. */
static inline void sha_blocks_end(sha_blocks *s, uint32_t *h, sha_add_block *add_block, int n_words,
                                  char *hex) {
    static const unsigned char padding[64] = {0x80};
    const uint64_t bits = s->n * 8;
    const size_t used = s->n % 64;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha_blocks_add(s, h, add_block, padding, used < 56 ? 56 - used : 120 - used);
    sha_blocks_add(s, h, add_block, length, sizeof length);
    for (int i = 0; i < n_words; i++)
        snprintf(hex + 8 * (size_t)i, 9, "%08x", (unsigned)h[i]);
}

#endif
