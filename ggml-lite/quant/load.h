/* Load words from any address, aligned or not. */
#ifndef GGL_LOAD_H
#define GGL_LOAD_H

#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
