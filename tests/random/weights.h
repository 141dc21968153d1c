/* Element types, written down a second time: rows of random weights in the formats of
 * docs/types.md, with the numbers that they stand for. Shares nothing with the library. */
#ifndef RANDOM_WEIGHTS_H
#define RANDOM_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum w_type {
    W_F32,
    W_F16,
    W_BF16,
    W_Q8_0,
    W_Q4_0,
    W_Q4_1,
    W_Q5_0,
    W_Q5_1,
    W_IQ4_NL,
    W_MXFP4,
    W_Q4_K,
    W_Q6_K,
    W_TQ2_0,
    W_COUNT
} w_type;

typedef struct w_info {
    const char *name; /* as in docs/types.md */
    int block, size;  /* elements, bytes */
    bool has_min;     /* its numbers are rounded once to f32 */
} w_info;

extern const w_info w_types[W_COUNT];

static inline bool w_is_quantized(int type) {
    return w_types[type].block > 1;
}

/* Writes n elements (whole blocks) of about `spread`, made from salt, to bytes, and what they are
 * to value. */
void w_make(int type, uint64_t salt, double spread, int n, void *bytes, double *value);

/* IEEE half and bfloat16, to nearest even. */
double w_from_f16(uint16_t h);
uint16_t w_to_f16(double x);
double w_round_f16(double x);
double w_round_bf16(double x);
double w_round_f32(double x);

/* A row of n as a cache of that type keeps it: f32, f16, bf16, q8_0 or q4_0. error: how far each
 * may be off, in and out. */
void w_keep(int type, int n, double *value, double *error);

#endif
