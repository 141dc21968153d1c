/* Fused multiply-adds of WebAssembly's vectors, and fmaf() of os_math_wasm.c, which they fall back on. */
#include <math.h>
#include <string.h>

#include "../../backends/cpu/wasm/lanes_simd128.h"
#include "test.h"

/* What processors with the instruction compute: sums in the middle between two floats but for a tiny rest; between subnormal ones; just below
 * the least normal number; and beyond the largest number. */
TEST(the_scalar_function_rounds_once) {
    static const struct {
        float a, b, c, want;
    } rows[] = {
        {0x1.000002p0f, 0x1.000002p-24f, 1, 0x1.000002p0f},
        {0x1.fffffep-1f, 0x1p-24f, 1, 1},
        {0x1p-75f, 0x1.000002p-75f, 0x1p-149f, 0x1p-148f},
        {0x1p-75f, 0x1.fffffep-76f, 0x1p-149f, 0x1p-149f},
        {0x1p-75f, 0x1p-75f, 0, 0},
        {0x1p-75f, 0x1.000002p-75f, 0, 0x1p-149f},
        {-0x1p-75f, 0x1.000002p-75f, 0x1p-126f, 0x1.fffffcp-127f},
        {-0x1p-75f, 0x1.fffffep-76f, 0x1p-126f, 0x1p-126f},
        {0x1p103f, 1, 0x1.fffffep127f, INFINITY},
        {0x1p103f, 0x1.fffffep-1f, 0x1.fffffep127f, 0x1.fffffep127f},
        {0x1.1e4dacp75f, -0x1.cp22f, 0x1.8p41f, -0x1.f507ecp97f},
        {0x1.8afa44p74f, 0x1.8p41f, -0x1.6p16f, 0x1.283bb2p116f},
        {INFINITY, 1, 1, INFINITY},
        {-1, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const volatile float a = rows[i].a;
        const float y = fmaf(a, rows[i].b, rows[i].c);
        CHECK_MSG(memcmp(&y, &rows[i].want, sizeof y) == 0, "row %zu is %a", i, (double)y);
    }
    const volatile float inf = INFINITY;
    CHECK(isnan(fmaf(inf, 0, 1)));
}

/* A float whose exponent is near one of those where rounding changes, with few or many bits. */
static float some_float(uint64_t *seed) {
    static const uint32_t exponents[] = {0,   1,   2,   24,  52,  75,  103,
                                         126, 127, 128, 150, 230, 254, 255};
    const uint64_t r = test_random(seed);
    uint32_t e = exponents[r % (sizeof exponents / sizeof *exponents)],
             bits = (uint32_t)(r >> 32) & 0x807fffff;
    if (r >> 8 & 1)
        bits &= 0xfff80000;
    if (r >> 9 & 1)
        bits = (bits & 0x80000000) | (r >> 10 & 1 ? 0x007fffff : 1);
    bits |= e << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool is_same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

TEST(vectors_agree_with_it) {
    uint64_t seed = 1;
    for (int k = 0; k < 300000; k++) {
        float a[16], b[16], c[16], y[16];
        for (int i = 0; i < 16; i++) {
            a[i] = some_float(&seed), b[i] = some_float(&seed), c[i] = some_float(&seed);
            if (k % 4 && i != k % 16) /* one lane alone is in doubt */
                a[i] = b[i] = 1.5f, c[i] = 3;
        }
        float_store(y, float_fma(float_load(a), float_load(b), float_load(c)), 16);
        const fused4 four = fused_four((fused4)wasm_v128_load(a), (fused4)wasm_v128_load(b),
                                       (fused4)wasm_v128_load(c));
        for (int i = 0; i < 16; i++) {
            const float want = fmaf(a[i], b[i], c[i]);
            if (!is_same(y[i], want) || (i < 4 && !is_same(four[i], want))) {
                CHECK_MSG(false, "%a * %a + %a is %a, not %a", (double)a[i], (double)b[i],
                          (double)c[i], (double)y[i], (double)want);
                return;
            }
        }
    }
}
