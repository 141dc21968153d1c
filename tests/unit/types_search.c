/* The searches of encoders for four and for eight runs at once give the same bits. */
#include <math.h>

#include "quant/search.h"
#include "test.h"

enum { RUN = 32, N = QUANT_AT_ONCE * RUN };

typedef struct found {
    uint8_t code[N];
    float scale[QUANT_AT_ONCE], min[QUANT_AT_ONCE];
} found;

/* Random numbers of several sizes; runs of equal ones, of zeros, of one sign, and with an infinite
 * or undefined element. */
static void fill(uint64_t *seed, float *x, float *w) {
    for (int i = 0; i < N; i++) {
        const float r = test_random_float(seed);
        x[i] = r * (test_random_float(seed) > 0.9f ? 50.0f : 1.0f);
        w[i] = test_random_float(seed) + 1.001f;
    }
    for (int r = 0; r < QUANT_AT_ONCE; r++) {
        const int kind = (int)(4.0f * (test_random_float(seed) + 1.0f)); /* 0 .. 7 */
        for (int i = 0; i < RUN; i++) {
            float *at = &x[r * RUN + i];
            *at = kind == 0 ? 0.0f : kind == 1 ? x[r * RUN] : kind == 2 ? *at * *at : *at;
        }
        if (kind == 3)
            x[r * RUN + 5] = test_random_float(seed) > 0.0f ? INFINITY : NAN;
    }
}

static bool equal(const found *a, const found *b, int n) {
    return memcmp(a->code, b->code, (size_t)n) == 0 &&
           memcmp(a->scale, b->scale, sizeof a->scale) == 0 &&
           memcmp(a->min, b->min, sizeof a->min) == 0;
}

TEST(four_and_eight) {
    const quant_search *four = &ggl_search_four, *other = ggl_quant_search();
    if (four == other)
        SKIP("this processor has no AVX2, or another instruction set");
    uint64_t seed = 1;
    for (int k = 0; k < 3000; k++) {
        float x[N], w[N];
        fill(&seed, x, w);
        const quant_min_search how = {.top = k % 3 == 0   ? 3
                                             : k % 3 == 1 ? 15
                                                          : 31,
                                      .first = -1.0f,
                                      .n_steps = 5 + k % 16,
                                      .absolute = k / 3 % 2};
        const int n = k % 2 ? 16 : 32, top = k % 5 == 0 ? 4 : 32;
        found a = {0}, b = {0};
        four->fit_min(&how, x, w, n, a.code, a.scale, a.min);
        other->fit_min(&how, x, w, n, b.code, b.scale, b.min);
        CHECK_MSG(equal(&a, &b, QUANT_AT_ONCE * n), "fit_min, case %d", k);
        four->fit_symmetric(x, top, a.code, a.scale);
        other->fit_symmetric(x, top, b.code, b.scale);
        CHECK_MSG(equal(&a, &b, QUANT_AT_ONCE * QUANT_SYMMETRIC_RUN), "fit_symmetric, case %d", k);
        four->fit_greedy(x, top, a.code, a.scale);
        other->fit_greedy(x, top, b.code, b.scale);
        CHECK_MSG(equal(&a, &b, QUANT_AT_ONCE * QUANT_SYMMETRIC_RUN), "fit_greedy, case %d", k);
    }
}
