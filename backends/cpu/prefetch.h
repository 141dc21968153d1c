/* Prefetching of streams that a kernel reads once. */
#ifndef CPU_PREFETCH_H
#define CPU_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include "unroll.h"

enum { AHEAD = 8192, AHEAD_NEAR = 2048 /* prefetch distances in bytes */ };

/* Prefetch to the L1 cache, and to the L2 cache. */
INLINE void fetch(const void *p, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)p + i, 0, 3);
}
INLINE void fetch_far(const void *p, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)p + i, 0, 2);
}

/* Prefetches to L2 what is read AHEAD bytes after the `bytes` bytes at p + at: memory at p, up to
 * its end at p + size, then memory at `next`. */
INLINE void fetch_next(const void *p, int64_t at, int64_t bytes, int64_t size, const void *next) {
    at += AHEAD;
    fetch_far(at < size ? (const char *)p + at : (const char *)next + (at - size), bytes);
}

#endif
