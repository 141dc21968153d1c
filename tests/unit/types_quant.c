/* The quantized types: blocks worked out by hand, what the encoders make of odd and of ordinary
 * numbers. */
#include <math.h>

#include "ggl/internal/math.h"
#include "ggl/internal/types.h"
#include "test.h"

enum { MAX_BLOCK = 256, MAX_SIZE = 256 };

/* --- blocks worked out by hand ------------------------------------------------------------- */

/* A block is zeros but for some bytes; elements first .. last are x, later lines outdo earlier. */
typedef struct put {
    int at, byte;
} put;
typedef struct want {
    int first, last;
    float x;
} want;

/* Sets the scale of a row that has one. */
static void put_row_scale(const ggl_type_info *t, unsigned char *row) {
    const float f = 0.0123f;
    const uint16_t h = 0x2251;
    if (t->row_meta > 0)
        memcpy(row, t->row_meta == sizeof h ? (const void *)&h : (const void *)&f, t->row_meta);
}

/* Of types whose rows have a scale, it stands before the block. */
static void check_block(ggl_type type, const put *p, int n_puts, const want *w, int n_wants) {
    const ggl_type_info *t = ggl_type_get(type);
    unsigned char block[MAX_SIZE] = {0};
    float got[MAX_BLOCK], expected[MAX_BLOCK] = {0};
    REQUIRE(t && t->row_meta + t->size <= MAX_SIZE && t->block <= MAX_BLOCK);
    for (int i = 0; i < n_puts; i++) {
        REQUIRE(p[i].at < (int)(t->row_meta + t->size));
        block[p[i].at] = (unsigned char)p[i].byte;
    }
    for (int i = 0; i < n_wants; i++)
        for (int e = w[i].first; e <= w[i].last; e++)
            expected[e] = w[i].x;
    t->to_float(block, got, t->block);
    for (int e = 0; e < t->block; e++)
        CHECK_MSG(got[e] == expected[e], "%s: element %d is %g, expected %g", t->name, e,
                  (double)got[e], (double)expected[e]);
}

/* BLOCK(type, PUTS({at, byte}, ..), {first, last, x}, ..) */
#define PUTS(...)                                                                                  \
    ((const put[]){__VA_ARGS__}), (int)(sizeof((const put[]){__VA_ARGS__}) / sizeof(put))
#define BLOCK(type, puts, ...)                                                                     \
    check_block(type, puts, (const want[]){__VA_ARGS__},                                           \
                (int)(sizeof((const want[]){__VA_ARGS__}) / sizeof(want)))

/* As f16, high byte: 0x38 is 0.5, 0x3c is 1, 0x40 is 2, 0x44 is 4, 0x48 is 8, 0xbc is -1. */

TEST(q4_1_block) {
    /* d = 0.5, m = -1; nibbles 3 and 15, 1 and 2 */
    BLOCK(GGL_Q4_1, PUTS({1, 0x38}, {3, 0xbc}, {4, 0xf3}, {19, 0x21}), {0, 31, -1}, {0, 0, 0.5f},
          {16, 16, 6.5f}, {15, 15, -0.5f}, {31, 31, 0});
}

TEST(q5_0_block) {
    /* d = 1; fifth bits of elements 0, 12 and 31; nibbles 15 and 5, 0 and 7 */
    BLOCK(GGL_Q5_0, PUTS({1, 0x3c}, {2, 0x01}, {3, 0x10}, {5, 0x80}, {6, 0x5f}, {21, 0x70}),
          {0, 31, -16}, {0, 0, 15}, {16, 16, -11}, {12, 12, 0}, {31, 31, 7});
}

TEST(q5_1_block) {
    /* d = 2, m = 1; fifth bits of elements 9 and 17; nibbles 10 and 3 */
    BLOCK(GGL_Q5_1, PUTS({1, 0x40}, {3, 0x3c}, {5, 0x02}, {6, 0x02}, {9, 0x3a}), {0, 31, 1},
          {1, 1, 21}, {17, 17, 39}, {9, 9, 33});
}

TEST(q2_k_block) {
    /* d = 1, dmin = 0.5. Byte 0 has elements 0, 32, 64, 96 with codes 2, 1, 2, 3; byte 52 element
     * 244 with code 1. Runs: 0 has scale 1, minimum 2; 2: 3, 0; 4: 15, 1; 6: 0, 0; 15: 2, 1. */
    BLOCK(GGL_Q2_K,
          PUTS({81, 0x3c}, {83, 0x38}, {0, 0x21}, {2, 0x03}, {4, 0x1f}, {15, 0x12}, {16, 0xe6},
               {68, 0x40}),
          {0, 15, -1}, {0, 0, 1}, {32, 32, 3}, {64, 79, -0.5f}, {64, 64, 29.5f}, {240, 255, -0.5f},
          {244, 244, 1.5f});
}

TEST(q3_k_block) {
    /* d = 1. Scales are 0 - 32, but 5 + 16*2 - 32 = 5 of run 0 and 1 + 16*3 - 32 = 17 of run 13;
     * codes are 0 - 4, but 3 + 4 - 4 = 3 of element 3 and 1 + 4 - 4 = 1 of element 210. */
    BLOCK(GGL_Q3_K,
          PUTS({109, 0x3c}, {96, 0x05}, {104, 0x02}, {101, 0x10}, {105, 0xc0}, {35, 0x03},
               {3, 0x01}, {82, 0x10}, {18, 0x40}),
          {0, 255, 128}, {0, 15, -20}, {208, 223, -68}, {3, 3, 15}, {210, 210, 17});
}

TEST(q4_k_block) {
    /* d = dmin = 1. Run 0: scale 7, minimum 2; run 5: 3 + 16*2, 4 + 16*1. Nibble 9 of element 1, 15
     * of element 191. */
    BLOCK(GGL_Q4_K,
          PUTS({1, 0x3c}, {3, 0x3c}, {4, 7}, {8, 2}, {13, 0x43}, {5, 0x80}, {9, 0x40}, {17, 0x09},
               {111, 0xf0}),
          {0, 31, -2}, {1, 1, 61}, {160, 191, -20}, {191, 191, 505});
}

TEST(q5_k_block) {
    /* as above, with the fifth bits of elements 1 and 191 */
    BLOCK(GGL_Q5_K,
          PUTS({1, 0x3c}, {3, 0x3c}, {4, 7}, {8, 2}, {13, 0x43}, {5, 0x80}, {9, 0x40}, {49, 0x09},
               {143, 0xf0}, {17, 0x01}, {47, 0x20}),
          {0, 31, -2}, {1, 1, 173}, {160, 191, -20}, {191, 191, 1065});
}

TEST(q6_k_block) {
    /* d = 0.5; scales 2 of run 0, 4 of run 5, -3 of run 15. Codes less 32: 12 + 16*3 - 32 = 28 of
     * element 5, 2 - 32 = -30 of 85, 1 + 16*2 - 32 = 1 of 250. */
    BLOCK(GGL_Q6_K,
          PUTS({209, 0x38}, {192, 2}, {197, 4}, {207, 0xfd}, {5, 0x0c}, {133, 0x03}, {21, 0x20},
               {122, 0x10}, {186, 0x80}),
          {0, 15, -32}, {80, 95, -64}, {240, 255, 48}, {5, 5, 28}, {85, 85, -60},
          {250, 250, -1.5f});
}

TEST(iq4_nl_block) {
    BLOCK(GGL_IQ4_NL, PUTS({1, 0x3c}, {2, 0xf8}, {17, 0x7a}), {0, 31, -127}, {0, 0, 1},
          {16, 16, 113}, {15, 15, 25}, {31, 31, -10});
}

TEST(iq4_xs_block) {
    /* d = 1; scales 2 + 16*2 - 32 = 2 of run 3, 1 + 16*1 - 32 = -15 of run 7, -32 of the others */
    BLOCK(GGL_IQ4_XS, PUTS({1, 0x3c}, {5, 0x20}, {2, 0x80}, {7, 0x10}, {3, 0x40}, {56, 0x9e}),
          {0, 255, 4064}, {96, 127, -254}, {224, 255, 1905}, {96, 96, 178}, {112, 112, 26});
}

TEST(iq2_xxs_block) {
    /* d = 8. Vector 0 is eight 8s, vector 1 begins with 43, vector 255 is 8 25 8 8 25 43 43 43.
     * Run 1: scale 7/8; signs 0000001 of vector 0, whose eighth makes them even; 0000011 of vector
     * 2, of index 1. Run 7: scale 1/8, vector 3 of index 255 with seven minuses, so eight. */
    BLOCK(GGL_IQ2_XXS,
          PUTS({1, 0x48}, {12, 1}, {14, 0x01}, {15, 0xc0}, {17, 0x30}, {61, 255}, {64, 0xe0},
               {65, 0x0f}),
          {0, 255, 8}, {32, 63, 56}, {32, 32, -56}, {39, 39, -56}, {48, 48, -301}, {49, 49, -56},
          {248, 255, -8}, {249, 249, -25}, {252, 252, -25}, {253, 255, -43});
}

TEST(iq2_xs_block) {
    /* d = 8; run 1: scales 5/8 and 11/8, vector 0 of index 1 with signs 1000000 and so the eighth;
     * vector 3 of index 511, eight 43s */
    BLOCK(GGL_IQ2_XS, PUTS({1, 0x48}, {67, 0x52}, {10, 0x01}, {11, 0x80}, {16, 0xff}, {17, 0x01}),
          {0, 255, 8}, {32, 47, 40}, {48, 63, 88}, {32, 32, 215}, {38, 39, -40}, {56, 63, 473});
}

TEST(iq2_s_block) {
    /* d = 8; run 7: scales 1/8 and 3/8, vector 3 of index 255 + 256*3, eight 43s; minus for its
     * ends */
    BLOCK(GGL_IQ2_S, PUTS({1, 0x48}, {81, 0x10}, {33, 0xff}, {73, 0xc0}, {65, 0x81}), {0, 255, 8},
          {240, 247, 24}, {248, 255, 129}, {248, 248, -129}, {255, 255, -129});
}

TEST(iq3_xxs_block) {
    /* d = 4. Vector 0 is four 4s, vector 255 is 4 28 52 62. Run 2: scale 5/4; its last two vectors
     * have index 0 and 255 and signs 0100000, so also the eighth. */
    BLOCK(GGL_IQ3_XXS,
          PUTS({1, 0x44}, {2 + 23, 255}, {66 + 4 * 2 + 2, 0x00}, {66 + 4 * 2 + 3, 0x24}),
          {0, 255, 4}, {64, 95, 20}, {93, 93, -140}, {94, 94, 260}, {95, 95, -310});
}

TEST(iq3_s_block) {
    /* d = 1. Vector 0 is four 1s, 1 is 3 1 1 1, 256 is 7 5 9 5. Run 3: scale 2*6 + 1; its vectors 4
     * and 7 of index 256 and 1, minus for the first of vector 4 and the last of vector 7. */
    BLOCK(GGL_IQ3_S,
          PUTS({1, 0x3c}, {107, 0x60}, {69, 0x10}, {2 + 31, 1}, {74 + 14, 0x01}, {74 + 15, 0x80}),
          {0, 255, 1}, {96, 127, 13}, {112, 112, -91}, {113, 113, 65}, {114, 114, 117},
          {115, 115, 65}, {124, 124, 39}, {127, 127, -13});
}

TEST(iq1_s_block) {
    /* d = 8. Vector 0 is eight -1, 256 is -1 0 1 0 1 -1 0 -1, 2047 is eight 1. Run 1: scale 3,
     * down; its vector 0 is 2047, its vector 3 is 256. */
    BLOCK(GGL_IQ1_S, PUTS({1, 0x48}, {6, 0xff}, {36, 0x07}, {37, 0x92}), {0, 255, -7},
          {32, 63, -27}, {32, 39, 21}, {56, 63, -3}, {56, 56, -27}, {58, 58, 21}, {60, 60, 21},
          {61, 61, -27}, {63, 63, -27});
}

TEST(iq1_m_block) {
    /* d = 8 in the top nibbles of s. Run 1: scales 2*2 + 1 and 2*5 + 1; its vector 1 is 2047, its
     * vector 2 is 0, down. */
    BLOCK(GGL_IQ1_M,
          PUTS({53, 0x80}, {55, 0x40}, {48, 0x80}, {49, 0x0a}, {5, 0xff}, {34, 0x70}, {35, 0x08}),
          {0, 255, -7}, {32, 47, -35}, {48, 63, -77}, {40, 47, 45}, {48, 55, -99});
}

TEST(tq1_0_block) {
    /* d = 1. Trits 2 0 1 2 1 are 178, ceil(178 * 256 / 243) = 188; 1 1 1 1 1 are 121: 128; 0 2 2 0
     * 0 are 72: 76. */
    BLOCK(GGL_TQ1_0, PUTS({53, 0x3c}, {3, 188}, {47, 128}, {50, 76}), {0, 255, -1}, {3, 3, 1},
          {67, 67, 0}, {99, 99, 1}, {131, 131, 0}, {175, 175, 0}, {191, 191, 0}, {207, 207, 0},
          {223, 223, 0}, {239, 239, 0}, {246, 246, 1}, {250, 250, 1});
}

TEST(tq2_0_block) {
    /* a code of 3, which no encoder makes, is 2 */
    BLOCK(GGL_TQ2_0, PUTS({65, 0x3c}, {0, 0xe4}, {63, 0x80}), {0, 255, -1}, {32, 32, 0},
          {64, 64, 1}, {96, 96, 2}, {255, 255, 1});
}

TEST(mxfp4_block) {
    BLOCK(GGL_MXFP4, PUTS({0, 128}, {1, 0x7f}, {16, 0x91}), {0, 31, 0}, {0, 0, -12}, {16, 16, 12},
          {15, 15, 1}, {31, 31, -1});
    BLOCK(GGL_MXFP4, PUTS({0, 0}, {1, 0x21}), {0, 0, 0x1p-128f}, {16, 16, 0x1p-127f});
    BLOCK(GGL_MXFP4, PUTS({0, 1}, {1, 0x21}), {0, 0, 0x1p-127f}, {16, 16, 0x1p-126f});
    BLOCK(GGL_MXFP4, PUTS({0, 255}, {1, 0x21}), {0, 0, 0x1p127f}, {16, 16, INFINITY});
}

TEST(nvfp4_block) {
    /* Scales: 1.5 = 2^0 * 1.5, 3 * 2^-9, none that 0x7f is, 448 in spite of the top bit. Byte 4 has
     * elements 0 and 8, byte 12 elements 16 and 24, byte 35 elements 55 and 63. */
    BLOCK(GGL_NVFP4,
          PUTS({0, 0x3c}, {1, 3}, {2, 0x7f}, {3, 0xfe}, {4, 0x2f}, {12, 0x81}, {20, 0x77},
               {35, 0x94}),
          {0, 0, -9}, {8, 8, 1.5f}, {16, 16, 0x1.8p-9f}, {55, 55, 896}, {63, 63, -224});
    BLOCK(GGL_NVFP4, PUTS({2, 0xff}, {20, 0x11}), {32, 32, 240}, {40, 40, 240});
}

TEST(q1_0_block) {
    BLOCK(GGL_Q1_0, PUTS({1, 0x40}, {2, 0x81}, {17, 0x40}), {0, 127, -2}, {0, 0, 2}, {7, 7, 2},
          {126, 126, 2});
}

TEST(q2_0_block) {
    /* a code of 3, which no encoder makes, is 2 */
    BLOCK(GGL_Q2_0, PUTS({1, 0x3c}, {2, 0xe4}, {17, 0x80}), {0, 63, -1}, {1, 1, 0}, {2, 2, 1},
          {3, 3, 2}, {63, 63, 1});
}

/* What ggml's encoder of scales does at its borders: half up, 0.5 / 512 and less is 0, what would
 * be 8 / 512 is 7, from 256 on 448. */
TEST(nvfp4_scales) {
    static const struct {
        float x;
        int e;
    } list[] = {{0x1p-10f, 1},    {0x1.ffp-11f, 0},      {0x1.ffp-7f, 7},  {0x1p-6f, 0x08},
                {0x1.1p0f, 0x39}, {0x1.0ffffep0f, 0x38}, {0x1.fp1f, 0x48}, {0x1.efp7f, 0x77},
                {0x1.fp7f, 0x7e}, {256, 0x7e},           {3e38f, 0x7e}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        float x[64] = {6 * list[i].x};
        unsigned char b[36];
        ggl_type_get(GGL_NVFP4)->from_float(x, b, 64);
        CHECK_MSG(b[0] == list[i].e, "the scale of %a is 0x%02x, expected 0x%02x",
                  (double)list[i].x, b[0], list[i].e);
        CHECK(b[1] == 0 && b[2] == 0 && b[3] == 0);
    }
}

/* --- what the table says ------------------------------------------------------------------- */

/* Random bytes are a block of every type. The parts agree with the form, and give what to_float
 * gives; products of scale and code are exact. */
TEST(unpack_and_form) {
    uint64_t seed = 21;
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        if (!CHECK(t->quantized == (t->unpack != NULL) && t->quantized == (t->form != GGL_PLAIN)) ||
            !t->unpack)
            continue;
        CHECK(t->block % 32 == 0 && t->block <= MAX_BLOCK && t->row_meta + t->size <= MAX_SIZE);
        for (int repeat = 0; repeat < 200; repeat++) {
            unsigned char block[MAX_SIZE];
            float y[MAX_BLOCK];
            for (size_t i = 0; i < t->row_meta + t->size; i++)
                block[i] = (unsigned char)test_random(&seed);
            put_row_scale(t, block);
            const float row = ggl_row_scale(t, block);
            t->to_float(block, y, t->block);
            for (int b = 0; b < t->block / 32; b++) {
                ggl_codes c;
                t->unpack(block + t->row_meta, b, &c);
                CHECK((t->row_meta > 0) == (row != 1.0f));
                bool minima = t->form == GGL_SCALE_MIN || t->form == GGL_SCALE16_MIN;
                bool halves = t->form == GGL_SCALE16 || t->form == GGL_SCALE16_MIN;
                CHECK(minima ||
                      (c.m[0] == 0 && c.m[1] == 0 && !signbit(c.m[0]) && !signbit(c.m[1])));
                CHECK(halves || (memcmp(&c.s[0], &c.s[1], sizeof c.s[0]) == 0 &&
                                 memcmp(&c.m[0], &c.m[1], sizeof c.m[0]) == 0));
                for (int i = 0; i < 32; i++) {
                    float s = c.s[i / 16] * row, m = c.m[i / 16], v = y[32 * b + i],
                          product = s * (float)c.q[i];
                    if (!isfinite(product) || !isfinite(m))
                        continue;
                    CHECK_MSG(t->row_meta == sizeof(float) || t->type == GGL_IQ6_K ||
                                  (double)s * c.q[i] == (double)product,
                              "%s: %a * %d is not exact", t->name, (double)s, c.q[i]);
                    CHECK_MSG(v == (float)((double)product - (double)m), "%s: element %d", t->name,
                              32 * b + i);
                }
            }
        }
    }
}

/* Parts of matrices whose rows have a scale are those of whole rows. */
TEST(parts_of_rows) {
    enum { ROWS = 3, BLOCKS = 2 };
    uint64_t seed = 22;
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        const int64_t n = BLOCKS * t->block;
        const size_t row = ggl_row_size(t->type, n);
        static unsigned char b[ROWS * (BLOCKS * MAX_SIZE + 8)];
        static float whole[ROWS * BLOCKS * MAX_BLOCK], part[ROWS * BLOCKS * MAX_BLOCK];
        CHECK_INT(row, t->row_meta + BLOCKS * t->size);
        for (size_t i = 0; i < sizeof b; i++)
            b[i] = (unsigned char)test_random(&seed);
        for (int r = 0; r < ROWS; r++) {
            t->to_float(b + (size_t)r * row, whole + r * n, n);
            CHECK_INT(ggl_bytes_before(t, n, r * n), (size_t)r * row);
            CHECK_INT(ggl_bytes_before(t, n, r * n + t->block),
                      (size_t)r * row + t->row_meta + t->size);
        }
        CHECK_INT(ggl_bytes_before(t, n, ROWS * n), ROWS * row);
        for (int64_t at = 0; at < ROWS * n; at += t->block)
            for (int64_t m = t->block; at + m <= ROWS * n; m += t->block) {
                ggl_to_float(t, b, n, at, m, part);
                CHECK_MSG(memcmp(part, whole + at, (size_t)m * sizeof *part) == 0,
                          "%s: %d elements from %d on", t->name, (int)m, (int)at);
            }
    }
}

/* types.def has QUANT for types with an encoder, QUANT_READ and QUANT_FOREIGN for those without. */
TEST(types_that_are_only_read) {
    static const bool only_read[GGL_TYPE_LIMIT] = {
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)
#define QUANT_READ(id, NAME, name, block, size, form, text) [id] = true,
#include "ggl/types.def"
    };
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        CHECK_MSG(t->to_float && !t->from_float == only_read[t->type], "%s", t->name);
    }
}

/* --- encoders ------------------------------------------------------------------------------ */

/* The next quantized type from row *k on that encodes; NULL after the last. */
static const ggl_type_info *next_encoder(int *k) {
    for (const ggl_type_info *t; (t = ggl_type_at(*k));) {
        ++*k;
        if (t->quantized && t->from_float)
            return t;
    }
    return NULL;
}

TEST(not_finite_blocks) {
    const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    int k = 0;
    for (const ggl_type_info *t; (t = next_encoder(&k));) {
        for (int o = 0; o < 4; o++)
            for (int at = 0; at < t->block; at += 1 + (int)t->block / 9) {
                float x[3 * MAX_BLOCK], y[3 * MAX_BLOCK];
                unsigned char b[3 * MAX_SIZE];
                for (int i = 0; i < 3 * t->block; i++)
                    x[i] = (float)(i % 19 - 9);
                x[t->block + at] = odd[o]; /* the middle one of three blocks */
                t->from_float(x, b, 3 * t->block);
                t->to_float(b, y, 3 * t->block);
                for (int i = 0; i < 3 * t->block; i++) {
                    bool bad = i / t->block == 1;
                    CHECK_MSG(!bad                   ? isfinite(y[i])
                              : t->type == GGL_NVFP4 ? isfinite(y[i]) && y[t->block + at] == 0
                              : t->type == GGL_MXFP4 || (t->type == GGL_Q1_0 && isinf(odd[o]))
                                  ? isinf(y[i])
                                  : isnan(y[i]),
                              "%s: element %d is %g", t->name, i, (double)y[i]);
                }
            }
    }
}

TEST(zero_and_tiny_blocks) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_encoder(&k));) {
        float x[MAX_BLOCK], y[MAX_BLOCK];
        unsigned char b[MAX_SIZE];
        for (int kind = 0; kind < 6; kind++) {
            static const float size[6] = {0, 0x1p-149f, 0x1p-140f, 0x1p-127f, 0x1p-110f, 1e-20f};
            for (int i = 0; i < t->block; i++)
                x[i] = size[kind] * (float)(i % 3 - 1);
            t->from_float(x, b, t->block);
            t->to_float(b, y, t->block);
            for (int i = 0; i < t->block; i++)
                CHECK_MSG(t->type == GGL_MXFP4 ? fabsf(y[i] - x[i]) <= fabsf(x[i]) / 4 + 0x1p-129f
                                               : y[i] == 0,
                          "%s: %a of %a", t->name, (double)y[i], (double)x[i]);
        }
    }
}

/* Encoders take any floats at all: nothing may be undefined (sanitizers look on). What f16 scales
 * cannot hold is not finite; what is nearly constant stays near. mxfp4 stops at 768 of 1000: its
 * largest code is 6, times 128; nvfp4 at 960, 6 times 160. */
TEST(extreme_blocks) {
    uint64_t seed = 77;
    int k = 0;
    for (const ggl_type_info *t; (t = next_encoder(&k));) {
        float x[MAX_BLOCK], y[MAX_BLOCK];
        unsigned char b[MAX_SIZE];
        for (int repeat = 0; repeat < 300; repeat++) {
            for (int i = 0; i < t->block; i++) {
                uint32_t u = (uint32_t)test_random(&seed);
                switch (repeat % 4) {
                case 0: /* any bits but infinities and NaNs */
                    u = (u >> 23 & 255) == 255 ? u & 0x7fffff : u;
                    memcpy(&x[i], &u, sizeof u);
                    break;
                case 1: /* signs only, at the end of the range */
                    x[i] = u & 1 ? 3e38f : -3e38f;
                    break;
                case 2: /* one outlier */
                    x[i] = i == (int)(repeat % t->block) ? 1e30f : test_random_float(&seed);
                    break;
                default: /* nearly constant */
                    x[i] = 1000.0f + 1e-4f * test_random_float(&seed);
                }
            }
            t->from_float(x, b, t->block);
            t->to_float(b, y, t->block);
            if (repeat % 4 == 1 && t->block == 32 && t->type != GGL_MXFP4 && t->type != GGL_IQ4_NL)
                CHECK_MSG(!isfinite(y[0]), "%s: 3e38 is %g", t->name, (double)y[0]);
            for (int i = 0; i < t->block && repeat % 4 == 3; i++)
                CHECK_MSG(fabsf(y[i] - 1000.0f) < (t->type == GGL_MXFP4   ? 250.0f
                                                   : t->type == GGL_NVFP4 ? 50.0f
                                                                          : 20.0f),
                          "%s: 1000 is %g", t->name, (double)y[i]);
        }
    }
}

/* Root mean square errors on normal weights, sigma = 0.02, from the best type to the worst: a
 * hundredth above what was measured, or what is asked of the type. */
TEST(errors_on_normal_weights) {
    enum { N = 1 << 18 };
    static const struct {
        ggl_type type;
        double most;
    } list[] = {
        {GGL_Q8_0, 0.000108}, {GGL_Q6_K, 0.000358}, {GGL_Q5_K, 0.000728},   {GGL_Q5_1, 0.000764},
        {GGL_Q5_0, 0.000862}, {GGL_Q4_K, 0.001439}, {GGL_IQ4_NL, 0.001537}, {GGL_IQ4_XS, 0.001549},
        {GGL_Q4_1, 0.001578}, {GGL_Q4_0, 0.001953}, {GGL_NVFP4, 0.00208},   {GGL_MXFP4, 0.0023},
        {GGL_Q3_K, 0.00304},  {GGL_Q2_K, 0.00599},  {GGL_Q1_0, 0.01211},    {GGL_Q2_0, 0.01449},
        {GGL_TQ1_0, 0.0163},  {GGL_TQ2_0, 0.0163},
    };
    enum { N_LIST = sizeof list / sizeof *list };
    const ggl_type_info *t;
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    unsigned char *b = malloc(2 * N);
    REQUIRE(x && y && b);
    uint64_t seed = 2;
    for (int i = 0; i < N; i += 2) { /* Box and Muller 1958 */
        double u = ((double)(test_random(&seed) >> 11) + 1) * 0x1p-53,
               v = (double)(test_random(&seed) >> 11) * 0x1p-53;
        double r = 0.02 * sqrt(-2 * ggl_log(u));
        x[i] = (float)(r * ggl_cos(6.283185307179586 * v));
        x[i + 1] = (float)(r * ggl_sin(6.283185307179586 * v));
    }
    double last = 0;
    for (int k = 0, i; (t = next_encoder(&k));) {
        for (i = 0; i < N_LIST && list[i].type != t->type;)
            i++;
        CHECK_MSG(i < N_LIST,
                  "%s has no row in list[]: add one with a bound, in the order of the errors",
                  t->name);
    }
    for (int k = 0; k < N_LIST; k++) {
        double sum = 0;
        t = ggl_type_get(list[k].type);
        t->from_float(x, b, N);
        t->to_float(b, y, N);
        for (int i = 0; i < N; i++)
            sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        double rms = sqrt(sum / N);
        printf("%-8s %.6f\n", t->name, rms);
        CHECK_MSG(rms <= list[k].most, "%s: %.6f, at most %.6f", t->name, rms, list[k].most);
        CHECK_MSG(rms >= last, "%s is better than the type above it", t->name);
        last = rms;
    }
    free(x);
    free(y);
    free(b);
}

/* --- digests ------------------------------------------------------------------------------- */

static uint64_t fnv1a(const void *data, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

enum { DIGEST_N = 64 * 256 };

/* Runs of 32 of many kinds, by exact operations only: zeros, constants, outliers, whole numbers,
 * several sizes and distributions. */
static void digest_input(float *x) {
    uint64_t seed = 31;
    for (int i = 0; i < DIGEST_N; i++) {
        int kind = i / 32 * 7 % 19;
        float r = test_random_float(&seed);
        x[i] = kind == 0   ? 0.0f
               : kind == 1 ? 0.75f
               : kind == 2 ? r
               : kind == 3 ? fabsf(r)
               : kind == 4 ? r - 3.0f
               : kind == 5 ? (float)(int)(r * 16.0f)
                           : r * r * r * ldexpf(1.0f, 4 - kind);
        if (kind % 6 == 1 && i % 32 == kind)
            x[i] = r * 64.0f;
    }
}

static void digest_bytes(unsigned char *b, size_t n) {
    uint64_t seed = 41;
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(test_random(&seed) >> 56);
}

/* Of what encoders write, and of the floats that 64 blocks of random bytes are (all NaNs alike).
 * ggml's quantize_row_*_ref (iq4_nl: quantize_iq4_nl) and dequantize_row_* of November 2026,
 * compiled without contraction, gave the same digests; from q6_0 on, those of ik_llama.cpp 8337e4cd, but for iq2_bn, whose
 * scale it applies elsewhere, iq6_k, which it decodes by a polynomial near the steps of its products, pq2_0 and ptq1_0: their
 * digests are those of tests/numpy/weights.py. A row's scale is 0.0123, or the f16 0x2251. */
TEST(digests) {
    static const struct {
        ggl_type type;
        uint64_t encoded, decoded;
    } list[] = {
        {GGL_Q4_0, 0x95d65e6e9f2a7282, 0x29bdbc5ab3f18058},
        {GGL_Q4_1, 0x6800c6a34419b669, 0x6eedfdcca2e8b2e4},
        {GGL_Q5_0, 0x247b8ae903262468, 0xde5fc561460c96ca},
        {GGL_Q5_1, 0x3296b94175e2e9ec, 0xa446cbc19c222e07},
        {GGL_Q8_0, 0x5c1042c57230a231, 0x282a6cccb90419ca},
        {GGL_Q2_K, 0x4c6c0f6b08d125bf, 0x783e741c59c609b3},
        {GGL_Q3_K, 0x9eb6ee656ad36aef, 0xe139dda503281873},
        {GGL_Q4_K, 0x015a13d1e13b294f, 0x6b7b1c05f539f127},
        {GGL_Q5_K, 0xfee59f2cd1ff20fa, 0x5c617ee353242b7a},
        {GGL_Q6_K, 0xebda9b42f126596e, 0xde0291d8b07f7bd0},
        {GGL_IQ2_XXS, 0, 0x476143ca1034b094},
        {GGL_IQ2_XS, 0, 0x46e2e538ce01263f},
        {GGL_IQ3_XXS, 0, 0xaa34dc6e9a4a9fdb},
        {GGL_IQ1_S, 0, 0x91c858a188ba3081},
        {GGL_IQ4_NL, 0x4278de18bb106784, 0x09aa72004fe0ea5d},
        {GGL_IQ3_S, 0, 0x730b601b9831ebce},
        {GGL_IQ2_S, 0, 0x26058e584b6b20b0},
        {GGL_IQ4_XS, 0x8cd846688a1cf162, 0x02db13fdab3c6ec7},
        {GGL_IQ1_M, 0, 0xd0a6bb6463cfd559},
        {GGL_TQ1_0, 0x37e23d710f4169a1, 0xad13c59a15d0aba3},
        {GGL_TQ2_0, 0x9c94b4f2bc41736d, 0x344cdb3a1c5e3f7f},
        {GGL_MXFP4, 0x788634449b3be669, 0x8a249741571afe1c},
        {GGL_NVFP4, 0x1dc6e42ef6e1a390, 0x66ea4da9f0ea1ea5},
        {GGL_Q1_0, 0x96672f696144dbfb, 0x86b24929e3a6f7a5},
        {GGL_Q2_0, 0x5154fa7594ce4c02, 0xbfdbe867d242483f},
        {GGL_Q6_0, 0, 0x24c14d4a315afa11},
        {GGL_IQ2_BN, 0, 0x02dd13748e472c1b},
        {GGL_IQ2_K, 0, 0x10b7a5feb0e26215},
        {GGL_IQ3_K, 0, 0x11e4e50417232c13},
        {GGL_IQ4_K, 0, 0x189a4416ece0e745},
        {GGL_IQ5_K, 0, 0x156e4ab4b4ba0bfc},
        {GGL_IQ6_K, 0, 0x8a781ce1e0e56092},
        {GGL_PQ2_0, 0, 0xffcc52d63e9f33e0},
        {GGL_PTQ1_0, 0, 0xe318021515a3e6fb},
        {GGL_IQ4_KS, 0, 0x083f2860c2317a83},
        {GGL_IQ2_KS, 0, 0x9b564c07e44b9114},
        {GGL_IQ4_KSS, 0, 0xe58f5ff1b3fdf755},
        {GGL_IQ5_KS, 0, 0x5412ab0cd0230adf},
        {GGL_IQ3_KS, 0, 0xa747ae9f93253a61},
        {GGL_IQ2_KL, 0, 0x109467c791b74587},
    };
    static float x[DIGEST_N], y[DIGEST_N];
    static unsigned char b[2 * DIGEST_N];
    digest_input(x);
    size_t k = 0;
    for (int i = 0; ggl_type_at(i); i++) {
        const ggl_type_info *t = ggl_type_at(i);
        if (!t->quantized)
            continue;
        uint64_t encoded = 0;
        if (t->from_float) {
            t->from_float(x, b, DIGEST_N);
            encoded = fnv1a(b, ggl_row_size(t->type, DIGEST_N));
        }
        digest_bytes(b, t->row_meta + 64 * t->size);
        put_row_scale(t, b);
        t->to_float(b, y, 64 * t->block);
        for (int e = 0; e < 64 * t->block; e++)
            y[e] = isnan(y[e]) ? 0.5f : y[e];
        uint64_t decoded = fnv1a(y, 64 * (size_t)t->block * sizeof *y);
        printf("%-8s 0x%016" PRIx64 ", 0x%016" PRIx64 "\n", t->name, encoded, decoded);
        if (!CHECK_MSG(
                k < sizeof list / sizeof *list && list[k].type == t->type,
                "%s has no digests: add in the order of types.def, after comparing them with "
                "another implementation, {its type, 0x%016" PRIx64 ", 0x%016" PRIx64 "}",
                t->name, encoded, decoded))
            continue;
        CHECK_MSG(list[k].encoded == encoded && list[k].decoded == decoded, "%s gives others",
                  t->name);
        k++;
    }
    CHECK_INT(k, sizeof list / sizeof *list);
}
