/* XXH64 (xxHash's 64-bit hash, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) of bytes
 * that come in pieces. Fast, and not safe against malice.
 *
 *     ggl_xxh64 s;
 *     ggl_xxh64_begin(&s);
 *     ggl_xxh64_add(&s, "abc", 3);
 *     uint64_t h = ggl_xxh64_end(&s);          // 0x44bc2cf5ad770999
 *
 * Threads: a state belongs to one thread at a time. */
#ifndef GGL_XXH64_H
#define GGL_XXH64_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_xxh64 {
    uint64_t lane[4];
    uint64_t n;              /* bytes so far */
    unsigned char block[32]; /* its first n % 32 bytes wait for the others */
} ggl_xxh64;

void ggl_xxh64_begin(ggl_xxh64 *s); /* with the seed 0 */
void ggl_xxh64_add(ggl_xxh64 *s, const void *data, size_t n);
uint64_t ggl_xxh64_end(const ggl_xxh64 *s);

#ifdef __cplusplus
}
#endif
#endif
