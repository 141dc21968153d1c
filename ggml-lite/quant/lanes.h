/* Floats that are computed at once, four or as many as LANES says; private to ggml-lite/quant.
 * Encoders search the scales of LANES runs of elements side by side: lane l of every number belongs
 * to run l. So the operations on one run keep their order, and the result has the same bits as that
 * of a loop over the runs. The compiler knows vectors of 16 bytes on every machine; where there are
 * no instructions for them, it computes the lanes one by one. */
#ifndef GGL_LANES_H
#define GGL_LANES_H

#include <stdint.h>
#include <string.h>

#ifndef LANES
#define LANES 4 /* or 8 */
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

#if LANES == 4
#define LANES_LIST(X)                                                                              \
    { X(0), X(1), X(2), X(3) }
#else
#define LANES_LIST(X)                                                                              \
    { X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7) }
#endif

static inline vf vf_all(float x) {
#define SAME(l) x
    return (vf)LANES_LIST(SAME);
}

static inline vi vi_all(int x) {
    return (vi)LANES_LIST(SAME);
#undef SAME
}

/* Comparisons give -1 for true and 0 for false. Returns a where the mask is true, else b. */
static inline vf vf_pick(vi mask, vf a, vf b) {
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

static inline vi vi_pick(vi mask, vi a, vi b) {
    return (a & mask) | (b & ~mask);
}

static inline int vi_any(vi mask) {
    int any = 0;
    for (int l = 0; l < LANES; l++)
        any |= mask[l];
    return any != 0;
}

static inline vf vf_abs(vf x) {
    return (vf)((vi)x & vi_all(0x7fffffff));
}

static inline vf vf_of(vi x) {
    return __builtin_convertvector(x, vf);
}

/* quant_round of each lane (search.h). */
static inline vi vf_round(vf x) {
    return ((vi)(x + vf_all(0x1.8p23f)) & vi_all(0x7fffff)) - vi_all(0x400000);
}

static inline vi vi_clamp(vi x, int low, int high) {
    x = vi_pick(x < vi_all(low), vi_all(low), x);
    return vi_pick(x > vi_all(high), vi_all(high), x);
}

/* Returns the first elements of LANES runs of n elements. */
static inline vf lane_heads(const float *x, int n) {
#define HEAD(l) x[(l)*n]
    return (vf)LANES_LIST(HEAD);
#undef HEAD
}

/* Sets to[i] to element i of LANES runs of n elements each, which follow one another at x. */
static inline void lanes_of(const float *x, int n, vf *to) {
    for (int i = 0; i < n; i++)
        to[i] = lane_heads(x + i, n);
}

/* Puts codes, offset more, into the bytes of LANES runs of n elements. */
static inline void lanes_to_bytes(const vi *code, int n, int offset, uint8_t *to) {
    for (int i = 0; i < n; i++)
        for (int l = 0; l < LANES; l++)
            to[l * n + i] = (uint8_t)(code[i][l] + offset);
}

static inline vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

#if LANES == 4
static inline float vf_sum(vf x) {
    return (x[0] + x[1]) + (x[2] + x[3]);
}
#endif

/* Adds the lanes to a sum, four at a time: the result does not depend on LANES. */
static inline void lanes_add(double *sum, vf x) {
    for (int l = 0; l < LANES; l += 4)
        *sum += (double)((x[l] + x[l + 1]) + (x[l + 2] + x[l + 3]));
}

static inline void lanes_store(float *to, vf x) {
    memcpy(to, &x, sizeof x);
}

#endif
