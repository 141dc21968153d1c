/* fma by integers (ggml-lite/base/exact_fma.c) has the bits of the C library's: random numbers, and those that nearly cancel, are subnormal, or
 * lie half way between two results. */
#include <math.h>
#include <string.h>

#include "fused.h"
#include "seed.h"
#include "test.h"

enum { N = 300000 };

static uint64_t state;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static double double_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static bool same_float(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_double(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* A number of n bits of significand, with an exponent of a range of `range` from `low` on. */
static uint64_t number(int digits, int few, uint64_t low, uint64_t range) {
    const uint64_t u = next(), sign = next() & 1, whole = ((uint64_t)1 << digits) - 1,
                   significand = few ? u & whole & ~(whole >> 12) : u & whole;
    return sign << (digits == 23 ? 31 : 63) | (low + next() % range) << digits | significand;
}

TEST(floats) {
    state = sample_seed() * 2 + 1;
    for (int i = 0; i < N; i++) {
        const int kind = i % 6;
        const uint64_t low = kind == 1   ? 120
                             : kind == 3 ? 40
                                         : 0,
                       range = kind == 1   ? 16
                               : kind == 3 ? 40
                                           : 256;
        const float a = float_of((uint32_t)number(23, kind == 2, low, range)),
                    b = float_of((uint32_t)number(23, kind == 2, low, range)),
                    c = kind == 4   ? -(a * b)
                        : kind == 5 ? a * b
                                    : float_of((uint32_t)number(23, kind == 2, kind == 3 ? 0 : low,
                                                                kind == 3 ? 3 : range));
        if (!CHECK_MSG(same_float(ggl_exact_fmaf(a, b, c), fmaf(a, b, c)), "%a * %a + %a is %a",
                       (double)a, (double)b, (double)c, (double)ggl_exact_fmaf(a, b, c)))
            return;
    }
}

TEST(doubles) {
    state = sample_seed() * 2 + 1;
    for (int i = 0; i < N; i++) {
        const int kind = i % 6;
        const uint64_t low = kind == 1   ? 1000
                             : kind == 3 ? 450
                                         : 0,
                       range = kind == 1   ? 40
                               : kind == 3 ? 100
                                           : 2048;
        const double a = double_of(number(52, kind == 2, low, range)),
                     b = double_of(number(52, kind == 2, low, range)),
                     c = kind == 4   ? -(a * b)
                         : kind == 5 ? a * b
                                     : double_of(number(52, kind == 2, kind == 3 ? 0 : low,
                                                        kind == 3 ? 3 : range));
        if (!CHECK_MSG(same_double(ggl_exact_fma(a, b, c), fma(a, b, c)), "%a * %a + %a is %a", a,
                       b, c, ggl_exact_fma(a, b, c)))
            return;
    }
}

TEST(special_numbers) {
    static const double x[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               0x1p-1074,
                               0x1p-149,
                               0x1.fffffep127,
                               0x1.fffffffffffffp1023};
    enum { N_X = sizeof x / sizeof *x };
    for (int i = 0; i < N_X * N_X * N_X; i++) {
        const double a = x[i % N_X], b = x[i / N_X % N_X], c = x[i / N_X / N_X];
        CHECK_MSG(same_double(ggl_exact_fma(a, b, c), fma(a, b, c)), "%a * %a + %a", a, b, c);
        CHECK_MSG(same_float(ggl_exact_fmaf((float)a, (float)b, (float)c),
                             fmaf((float)a, (float)b, (float)c)),
                  "%a * %a + %a as floats", a, b, c);
    }
}
