/* The bits of floats and doubles, as integers and back. Any thread may call this. */
#ifndef BASE_NUMBER_BITS_H
#define BASE_NUMBER_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t double_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double double_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
