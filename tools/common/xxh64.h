/* XXH64 (xxHash's 64-bit hash, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) of bytes
 * that come in pieces. Fast, and not safe against malice.
 *
 *     xxh64 s;
 *     xxh64_begin(&s);
 *     xxh64_add(&s, "abc", 3);
 *     uint64_t h = xxh64_end(&s);          // 0x44bc2cf5ad770999 */
#ifndef TOOLS_XXH64_H
#define TOOLS_XXH64_H

#include <stddef.h>
#include <stdint.h>

typedef struct xxh64 {
    uint64_t lane[4];
    uint64_t n;              /* bytes so far */
    unsigned char block[32]; /* its first n % 32 bytes wait for the others */
} xxh64;

void xxh64_begin(xxh64 *s); /* with the seed 0 */
void xxh64_add(xxh64 *s, const void *data, size_t n);
uint64_t xxh64_end(const xxh64 *s);

#endif
