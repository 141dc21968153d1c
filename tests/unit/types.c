#include <math.h>

#include "ggl/internal/types.h"
#include "test.h"

static uint32_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The value of an f16 code by the definition, with libm. */
static double f16_value(unsigned h) {
    int e = h >> 10 & 31, m = h & 0x3ff;
    double x = e == 31  ? (m ? (double)NAN : (double)INFINITY)
               : e == 0 ? ldexp(m, -24)
                        : ldexp(m + 1024, e - 25);
    return h & 0x8000 ? -x : x;
}

TEST(f16_all_codes) {
    for (unsigned h = 0; h < 65536; h++) {
        float f = ggl_f16_to_f32((uint16_t)h);
        double want = f16_value(h);
        if (isnan(want)) {
            if (!CHECK(isnan(f)) || !CHECK_INT(ggl_f32_to_f16(f), h | 0x200)) /* quiet */
                return;
        } else if (!CHECK(f == want && (signbit(f) != 0) == (h >> 15 != 0)) ||
                   !CHECK_INT(ggl_f32_to_f16(f), h)) {
            return;
        }
    }
}

/* Whole rows give the bits of single numbers, also where the row is not aligned and ends anywhere. */
TEST(f16_rows) {
    enum { ALL = 1 << 16 };
    unsigned char *row = malloc(2 * ALL + 1);
    float *y = malloc(ALL * sizeof *y);
    REQUIRE(row && y);
    for (unsigned h = 0; h < ALL; h++) {
        const uint16_t code = (uint16_t)h;
        memcpy(row + 1 + 2 * h, &code, 2);
    }
    for (int from = 0; from < 4; from++) {
        const ggl_type_info *t = ggl_type_get(GGL_F16);
        t->to_float(row + 1 + 2 * from, y, ALL - from);
        for (unsigned h = (unsigned)from; h < ALL; h++) {
            const float want = ggl_f16_to_f32((uint16_t)h);
            if (!CHECK_MSG(memcmp(&y[h - (unsigned)from], &want, sizeof want) == 0, "%04x", h))
                break;
        }
    }
    free(y);
    free(row);
}

/* The same for rows of floats of every exponent, with mantissas around those that are half way. */
TEST(rows_of_halves) {
    static const uint32_t low[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x2000,
                                   0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOW = sizeof low / sizeof *low, ALL = LOW << 16 };
    static const ggl_type types[] = {GGL_F16, GGL_BF16};
    float *x = malloc(ALL * sizeof *x);
    unsigned char *row = malloc(2 * ALL + 1);
    REQUIRE(x && row);
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t u = i / LOW << 16 | low[i % LOW];
        memcpy(&x[i], &u, sizeof u);
    }
    for (int k = 0; k < 2; k++) {
        ggl_type_get(types[k])->from_float(x + 1, row + 1, ALL - 1);
        for (uint32_t i = 1; i < ALL; i++) {
            const uint16_t want = k == 0 ? ggl_f32_to_f16(x[i]) : ggl_f32_to_bf16(x[i]);
            if (!CHECK_MSG(memcmp(row + 1 + 2 * (i - 1), &want, 2) == 0, "type %d: %a", k,
                           (double)x[i]))
                break;
        }
        float y[7];
        uint16_t h[8] = {0, 1, 0x8001, 0x7f80, 0xff81, 0x3f80, 0x7fff, 0xffff};
        ggl_type_get(GGL_BF16)->to_float(h + 1, y, 7);
        for (int i = 0; i < 7; i++) {
            const float want = ggl_bf16_to_f32(h[i + 1]);
            CHECK(memcmp(&y[i], &want, sizeof want) == 0);
        }
    }
    free(x);
    free(row);
}

/* Nearest code by search among all; ties to even. */
static unsigned f16_nearest(float x) {
    unsigned best = 0;
    double best_error = INFINITY;
    for (unsigned h = 0; h <= 0x7c00; h++) {
        double v =
            h == 0x7c00 ? 65536.0 : f16_value(h); /* infinity rounds like the next power of two */
        double error = fabs((double)fabsf(x) - v);
        if (error < best_error || (error == best_error && h % 2 == 0)) {
            best = h;
            best_error = error;
        }
    }
    return best | (signbit(x) ? 0x8000 : 0);
}

TEST(f16_rounding) {
    for (unsigned h = 0; h < 0x7c00; h++) { /* half way to the next, and just beside */
        float lo = ggl_f16_to_f32((uint16_t)h);
        float hi = h == 0x7bff ? 65536.0f : ggl_f16_to_f32((uint16_t)(h + 1));
        float mid = lo + (hi - lo) / 2;
        unsigned even = h + h % 2;
        if (!CHECK_INT(ggl_f32_to_f16(mid), even) ||
            !CHECK_INT(ggl_f32_to_f16(-mid), even | 0x8000) ||
            !CHECK_INT(ggl_f32_to_f16(nextafterf(mid, 0)), h) ||
            !CHECK_INT(ggl_f32_to_f16(nextafterf(mid, INFINITY)), h + 1))
            return;
    }
    uint64_t seed = 3;
    for (int i = 0; i < 300; i++) {
        float x = ldexpf(test_random_float(&seed), (int)(test_random(&seed) % 48) - 28);
        CHECK_MSG(ggl_f32_to_f16(x) == f16_nearest(x), "%a -> %04x", (double)x, ggl_f32_to_f16(x));
    }
    CHECK_INT(ggl_f32_to_f16(INFINITY), 0x7c00);
    CHECK_INT(ggl_f32_to_f16(-INFINITY), 0xfc00);
    CHECK_INT(ggl_f32_to_f16(3e38f), 0x7c00);
    CHECK_INT(ggl_f32_to_f16(0x1p-149f), 0);
    CHECK_INT(ggl_f32_to_f16(-0.0f), 0x8000);
    CHECK_INT(ggl_f32_to_f16(NAN) & 0x7e00, 0x7e00);
}

TEST(bf16) {
    for (unsigned h = 0; h < 65536; h++) {
        float f = ggl_bf16_to_f32((uint16_t)h);
        if (!CHECK(bits(f) == h << 16 || isnan(f)))
            return;
        if (!CHECK_INT(ggl_f32_to_bf16(f), isnan(f) ? h | 0x40 : h))
            return;
    }
    CHECK_INT(ggl_f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);     /* tie, to even */
    CHECK_INT(ggl_f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82); /* tie, to even */
    CHECK_INT(ggl_f32_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
    CHECK_INT(ggl_f32_to_bf16(0x1.ffp127f), 0x7f80); /* tie beyond the largest: infinity */
    CHECK_INT(ggl_f32_to_bf16(0x1.fep127f), 0x7f7f);
    float only_low_bits;
    memcpy(&only_low_bits, &(uint32_t){0x7f800001}, 4);
    CHECK(isnan(ggl_bf16_to_f32(ggl_f32_to_bf16(only_low_bits))));
}

/* 8-bit floats: all codes by the definition; numbers half way to the next one, and beside it. */
TEST(f8_e4m3) {
    for (int h = 0; h < 256; h++) {
        const int e = h >> 3 & 15, m = h & 7;
        double want = e == 0 ? ldexp(m, -9) : ldexp(m + 8, e - 10);
        want = (h & 127) == 127 ? (double)NAN : h & 128 ? -want : want;
        const float f = ggl_f8_e4m3_to_f32((uint8_t)h);
        if (isnan(want))
            CHECK(isnan(f));
        else
            CHECK(f == want && (signbit(f) != 0) == (h >> 7));
        CHECK_INT(ggl_f32_to_f8_e4m3(f), h);
    }
    for (int h = 0; h < 126; h++) {
        const float lo = ggl_f8_e4m3_to_f32((uint8_t)h), hi = ggl_f8_e4m3_to_f32((uint8_t)(h + 1)),
                    mid = lo + (hi - lo) / 2;
        CHECK_INT(ggl_f32_to_f8_e4m3(mid), h + h % 2);
        CHECK_INT(ggl_f32_to_f8_e4m3(-mid), (h + h % 2) | 128);
        CHECK_INT(ggl_f32_to_f8_e4m3(nextafterf(mid, 0)), h);
        CHECK_INT(ggl_f32_to_f8_e4m3(nextafterf(mid, INFINITY)), h + 1);
    }
    CHECK_INT(ggl_f32_to_f8_e4m3(464), 126); /* half way to 480, which does not exist */
    CHECK_INT(ggl_f32_to_f8_e4m3(nextafterf(464, 500)), 127);
    CHECK_INT(ggl_f32_to_f8_e4m3(-INFINITY), 255);
    CHECK_INT(ggl_f32_to_f8_e4m3(0x1p-149f), 0);
    const float x[3] = {1, -448, 0x1p-9f};
    unsigned char b[3];
    float y[3];
    ggl_type_get(GGL_F8_E4M3)->from_float(x, b, 3);
    ggl_type_get(GGL_F8_E4M3)->to_float(b, y, 3);
    CHECK(b[0] == 0x38 && b[1] == 0xfe && b[2] == 1 && memcmp(x, y, sizeof x) == 0);
}

TEST(table) {
    int n = 0;
    for (const ggl_type_info *t; (t = ggl_type_at(n)); n++) {
        CHECK(ggl_type_get(t->type) == t && ggl_type_find(t->name) == t);
        CHECK(t->block > 0 && t->size > 0 && t->to_float && t->text[0]);
        CHECK(t->from_float || t->quantized);
        CHECK_MSG(n == 0 || ggl_type_at(n - 1)->type < t->type, "%s is not in order", t->name);
        CHECK((int)t->type < (int)GGL_TYPE_LIMIT);
        CHECK(!ggl_type_foreign_name(t->type));
    }
    CHECK_INT(n, GGL_TYPE_COUNT);
    CHECK(!ggl_type_at(-1) && !ggl_type_get(-1) && !ggl_type_get(4) && !ggl_type_get(1 << 30));
    CHECK(ggl_type_find("Q8_0") == ggl_type_get(GGL_Q8_0) && ggl_type_find("Q4_k"));
    CHECK(!ggl_type_find("q8") && !ggl_type_find("q8_00") && !ggl_type_find(""));
    CHECK_STR(ggl_type_foreign_name(9), "Q8_1");
    CHECK_STR(ggl_type_foreign_name(24), "I8");
    CHECK_STR(ggl_type_foreign_name(155), "IQ4_KT");
    CHECK_STR(ggl_type_foreign_name(344), "IQ4_KS_R4");
    CHECK(!ggl_type_foreign_name(-1) && !ggl_type_foreign_name(44) &&
          !ggl_type_foreign_name(1 << 30));
}

TEST(row_size) {
    size_t size = 7;
    CHECK_INT(ggl_row_size(GGL_F32, 5), 20);
    CHECK_INT(ggl_row_size(GGL_Q8_0, 4096), 4352);
    CHECK_INT(ggl_row_size(GGL_Q4_0, 64), 36);
    CHECK(ggl_row_size_checked(GGL_Q4_0, 0, &size) && size == 0);
    CHECK(ggl_row_size_checked(GGL_BF16, 3, &size) && size == 6);
    CHECK(!ggl_row_size_checked(GGL_Q8_0, 33, &size));
    CHECK(!ggl_row_size_checked(GGL_F32, -1, &size));
    CHECK(!ggl_row_size_checked(GGL_F64, INT64_MAX, &size));
    CHECK(!ggl_row_size_checked(GGL_F32, INT64_MAX / 2 + 1, &size));
    CHECK(!ggl_row_size_checked((ggl_type)4, 32, &size) && size == 6);
}

/* 3 blocks of every type at every alignment: the same bytes and floats, and nothing is written
 * outside. What the types without a search for scales wrote, to_float and from_float give again. */
TEST(round_trip_of_every_type) {
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        int64_t n = t->block * 3;
        size_t size = ggl_row_size(t->type, n);
        float x[3 * 256], y[3 * 256], z[3 * 256];
        unsigned char a[4096], b[4096], first[4096];
        REQUIRE(n <= 3 * 256 && size + 16 < sizeof a);
        uint64_t seed = 5;
        for (int64_t i = 0; i < n; i++)
            x[i] = test_random_float(&seed) * 100;
        for (size_t at = 0; at < 8; at++) {
            memset(a, 0xa5, sizeof a);
            memset(b, 0xa5, sizeof b);
            if (t->from_float)
                t->from_float(x, a + at, n);
            t->to_float(a + at, y, n);
            /* the coarsest have 0 and +-100 only, or two numbers */
            const float most = t->type == GGL_Q1_0      ? 50.5f
                               : t->quantized           ? 50.1f
                               : t->type == GGL_F8_E4M3 ? 4.0f
                                                        : 0.51f;
            for (int64_t i = 0; i < n && t->from_float; i++)
                CHECK_MSG(fabsf(x[i] - y[i]) <= most, "%s: %g -> %g", t->name, (double)x[i],
                          (double)y[i]);
            if (at == 0) {
                memcpy(first, a, size);
                memcpy(z, y, (size_t)n * sizeof *z);
            }
            CHECK_MSG(memcmp(a + at, first, size) == 0 && memcmp(y, z, (size_t)n * sizeof *z) == 0,
                      "%s depends on the address", t->name);
            if (!t->quantized || t->type == GGL_Q8_0 || t->type == GGL_Q4_0 ||
                t->type == GGL_TQ1_0 || t->type == GGL_Q1_0 || t->type == GGL_NVFP4) {
                t->from_float(y, b + at, n);
                CHECK_MSG(memcmp(a, b, sizeof a) == 0, "%s is not stable", t->name);
            }
            CHECK(a[at + size] == 0xa5 && (at == 0 || a[at - 1] == 0xa5));
        }
    }
}

TEST(numbers_of_tables) {
    int64_t wide[7];
    const float x[] = {0.5f, 1.5f, -2.5f, 3e9f, -3e9f, NAN, 16777217.0f};
    const int32_t want[] = {0, 2, -2, INT32_MAX, INT32_MIN, 0, 16777216};
    int32_t i[7];
    ggl_type_get(GGL_I32)->from_float(x, i, 7);
    for (int k = 0; k < 7; k++)
        CHECK_INT(i[k], want[k]);
    float f[2];
    ggl_type_get(GGL_I32)->to_float((const int32_t[]){16777217, -5}, f, 2);
    CHECK(f[0] == 16777216.0f && f[1] == -5.0f);
    ggl_type_get(GGL_I64)->from_float(x, wide, 7);
    CHECK(wide[1] == 2 && wide[3] == 3000000000 && wide[5] == 0);
    ggl_type_get(GGL_I64)->to_float((const int64_t[]){1LL << 40, -5}, f, 2);
    CHECK(f[0] == 0x1p40f && f[1] == -5);
    ggl_type_get(GGL_F64)->to_float((const double[]){1.0 + 0x1p-24, 1e300}, f, 2);
    CHECK(f[0] == 1.0f && isinf(f[1]));
}

/* Blocks worked out by hand. */

TEST(q8_0_known_block) {
    float x[32] = {0}, y[32];
    unsigned char b[34];
    x[0] = -127; /* d = 1 */
    x[1] = 2.5f; /* half away from zero: 3 */
    x[2] = -2.5f;
    x[3] = 0.49f;
    x[31] = 126.6f;
    ggl_type_get(GGL_Q8_0)->from_float(x, b, 32);
    CHECK(b[0] == 0x00 && b[1] == 0x3c); /* 1.0 as f16, little-endian */
    const int8_t *q = (const int8_t *)b + 2;
    CHECK(q[0] == -127 && q[1] == 3 && q[2] == -3 && q[3] == 0 && q[31] == 127);
    ggl_type_get(GGL_Q8_0)->to_float(b, y, 32);
    CHECK(y[0] == -127 && y[1] == 3 && y[2] == -3 && y[3] == 0 && y[31] == 127);
    /* a code of -128 is none that the encoder makes, but legal */
    b[2] = 0x80;
    ggl_type_get(GGL_Q8_0)->to_float(b, y, 32);
    CHECK(y[0] == -128);
}

TEST(q4_0_known_block) {
    float x[32] = {0}, y[32];
    unsigned char b[18];
    x[0] = -8; /* the extreme: code 0, d = 1 */
    x[1] = 7;
    x[15] = 1.4f;
    x[16] = -1.6f;
    x[31] = 7.9f; /* 8.5 + 7.9 = 16.4, cut to 15 */
    ggl_type_get(GGL_Q4_0)->from_float(x, b, 32);
    CHECK(b[0] == 0x00 && b[1] == 0x3c);
    CHECK_INT(b[2], 0x60);  /* element 0: 0; element 16: 8.5 - 1.6 = 6.9 -> 6 */
    CHECK_INT(b[3], 0x8f);  /* element 1: 15; element 17: 0 -> 8 */
    CHECK_INT(b[17], 0xf9); /* element 15: 9.9 -> 9; element 31: 15 */
    ggl_type_get(GGL_Q4_0)->to_float(b, y, 32);
    CHECK(y[0] == -8 && y[1] == 7 && y[15] == 1 && y[16] == -2 && y[31] == 7 && y[2] == 0);

    x[0] = 8; /* a positive extreme makes d negative; the first of equals counts */
    x[5] = -8;
    ggl_type_get(GGL_Q4_0)->from_float(x, b, 32);
    CHECK(b[0] == 0x00 && b[1] == 0xbc);
    CHECK_INT(b[2] & 15, 0);
    CHECK_INT(b[7] & 15, 15);
}

TEST(zero_blocks) {
    float x[32] = {0}, y[32];
    unsigned char b[34];
    ggl_type_get(GGL_Q8_0)->from_float(x, b, 32);
    for (int i = 0; i < 34; i++)
        CHECK_INT(b[i], 0);
    ggl_type_get(GGL_Q4_0)->from_float(x, b, 32);
    CHECK(b[0] == 0 && b[1] == 0x80); /* 0 / -8 is -0 */
    for (int i = 2; i < 18; i++)
        CHECK_INT(b[i], 0x88);
    ggl_type_get(GGL_Q4_0)->to_float(b, y, 32);
    for (int i = 0; i < 32; i++)
        CHECK(y[i] == 0);
}

TEST(not_finite_or_extreme_blocks) {
    const float odd[] = {NAN, INFINITY, -INFINITY};
    const ggl_type types[] = {GGL_Q8_0, GGL_Q4_0};
    float x[32], y[32];
    unsigned char b[34];
    for (int k = 0; k < 2; k++) {
        const ggl_type_info *t = ggl_type_get(types[k]);
        for (int o = 0; o < 3; o++) {
            for (int i = 0; i < 32; i++)
                x[i] = (float)i;
            x[7] = odd[o];
            t->from_float(x, b, 32);
            t->to_float(b, y, 32);
            for (int i = 0; i < 32; i++)
                CHECK(isnan(y[i]));
        }
        for (int i = 0; i < 32; i++) /* 1 / d overflows */
            x[i] = i % 2 ? 0x1p-149f : -0x1p-140f;
        t->from_float(x, b, 32);
        t->to_float(b, y, 32);
        for (int i = 0; i < 32; i++)
            CHECK(y[i] == 0);
        for (int i = 0; i < 32; i++) /* d overflows f16 */
            x[i] = i % 2 ? 3e38f : -3e38f;
        t->from_float(x, b, 32);
        t->to_float(b, y, 32);
        CHECK(!isfinite(y[0]));
    }
}
