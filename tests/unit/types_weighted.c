/* Encoding with importance: compared with the published encoders, with a search through whole
 * codebooks, and on odd numbers. */
#include <math.h>

#include "ggl/types.h"
#include "quant/grid.h"
#include "test.h"

enum { N = 4 * 256, MAX_BYTES = 4 * N };

/* The next type from row *k on whose encoder uses importance; NULL after the last. */
static const ggl_type_info *next_weighted(int *k) {
    for (const ggl_type_info *t; (t = ggl_type_at(*k));) {
        ++*k;
        if (t->from_float_weighted)
            return t;
    }
    return NULL;
}

/* Sums of 4 random numbers, some of them much larger, and importance over five powers of ten. */
static void fill(uint64_t *seed, float *x, float *w) {
    for (int i = 0; i < N; i++) {
        float sum = 0.0f;
        for (int k = 0; k < 4; k++)
            sum += test_random_float(seed);
        x[i] = 0.02f * sum * (i % 61 == 7 ? 8.0f : 1.0f);
        w[i] = powf(10.0f, 2.5f * test_random_float(seed));
    }
}

static double error_of(const ggl_type_info *t, const unsigned char *b, const float *x,
                       const float *w) {
    float y[N];
    double sum = 0;
    t->to_float(b, y, N);
    for (int i = 0; i < N; i++)
        sum += (double)w[i] * ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sum;
}

/* With importance, the weighted error is smaller; without, the plain one. The bounds are for the
 * whole, not for each row: a search is no proof. */
TEST(importance_helps) {
    int k = 0, n = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k)); n++) {
        uint64_t seed = 5;
        double with = 0, without = 0, plain_with = 0, plain_without = 0;
        for (int repeat = 0; repeat < 8; repeat++) {
            float x[N], w[N], ones[N];
            unsigned char a[MAX_BYTES], b[MAX_BYTES];
            fill(&seed, x, w);
            for (int i = 0; i < N; i++)
                ones[i] = 1.0f;
            t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
            if (t->from_float)
                t->from_float(x, b, N);
            else
                t->from_float_weighted(x, NULL, b, N);
            const double least = error_of(t, a, x, w), other = error_of(t, b, x, w);
            CHECK_MSG(least <= other, "%s: %g with importance, %g without", t->name, least, other);
            with += least;
            without += other;
            plain_with += error_of(t, a, x, ones);
            plain_without += error_of(t, b, x, ones);
        }
        printf("%-8s %.3f of the weighted error, %.3f of the plain one\n", t->name, with / without,
               plain_with / plain_without);
        CHECK_MSG(with < 0.92 * without, "%s: %g with importance, %g without", t->name, with,
                  without);
    }
    CHECK_INT(n, 19);
}

/* Without importance, the search is at least as good as the published encoder. */
TEST(plain_errors) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));) {
        uint64_t seed = 15;
        float x[N], w[N];
        unsigned char a[MAX_BYTES], b[MAX_BYTES], c[MAX_BYTES];
        fill(&seed, x, w);
        for (int i = 0; i < N; i++)
            w[i] = 7.0f;
        t->from_float_weighted(x, NULL, a, N);
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, c, N);
        const double error = error_of(t, a, x, w), same = error_of(t, c, x, w);
        CHECK_MSG(fabs(error - same) <= 1e-3 * error, "%s: equal importance changes the error",
                  t->name);
        if (!t->from_float)
            continue;
        t->from_float(x, b, N);
        CHECK_MSG(error <= error_of(t, b, x, w), "%s: %g, published %g", t->name, error,
                  error_of(t, b, x, w));
    }
}

/* Products keep their size: the error of a block is at right angles to its elements, with the
 * weights that the encoders use. Least squares alone would leave up to a fifth of their length out. */
TEST(blocks_keep_their_length) {
    int k = 0, n = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k)); n++) {
        uint64_t seed = 25;
        float x[N], y[N], w[N];
        unsigned char a[MAX_BYTES];
        const int block = t->block < 256 ? 32 : 256;
        fill(&seed, x, w);
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
        t->to_float(a, y, N);
        for (int at = 0; at < N; at += block) {
            double mean = 0, xx = 0, xy = 0;
            for (int i = at; i < at + block; i++)
                mean += (double)x[i] * (double)x[i] / block;
            for (int i = at; i < at + block; i++) {
                const double v = (double)w[i] * sqrt(mean + (double)x[i] * (double)x[i]);
                xx += v * (double)x[i] * (double)x[i];
                xy += v * (double)x[i] * (double)y[i];
            }
            CHECK_MSG(fabs(xy / xx - 1) < 2e-3, "%s: element %d on: %g of the length", t->name, at,
                      xy / xx);
        }
    }
    CHECK_INT(n, 19);
}

/* The nearest entry of each codebook, against a search through all of them. */
TEST(nearest_entries) {
    static const iq_grid *const grids[] = {&ggl_iq2_xxs_grid, &ggl_iq2_xs_grid, &ggl_iq2_s_grid,
                                           &ggl_iq3_xxs_grid, &ggl_iq3_s_grid,  &ggl_iq1_grid};
    static grid_index index;
    uint64_t seed = 3;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        ggl_grid_index(&index, grids[g]);
        const float top = fabsf((float)grids[g]->level[grids[g]->bits == 2 ? 2 : 7]);
        for (int repeat = 0; repeat < 400; repeat++) {
            const bool flip = repeat % 2 == 1;
            float x[8], w[8], level[8], error;
            for (int j = 0; j < 8; j++) {
                x[j] = test_random_float(&seed) * (repeat % 3 == 0 ? 2.0f : 0.7f);
                x[j] = grids[g] == &ggl_iq1_grid ? x[j] : fabsf(x[j]);
                w[j] = powf(10.0f, 2.0f * test_random_float(&seed));
                level[j] = (float)grids[g]->level[j] / top;
            }
            double least = INFINITY;
            for (int e = 0; e < grids[g]->n; e++) {
                double sum = 0, turn = INFINITY;
                for (int j = 0; j < grids[g]->width; j++) {
                    const int code =
                        grids[g]->code[e] >> grids[g]->bits * j & ((1 << grids[g]->bits) - 1);
                    const double d = (double)x[j] - (double)level[code],
                                 s = (double)x[j] + (double)level[code];
                    sum += (double)w[j] * d * d;
                    turn = fmin(turn, (double)w[j] * (s * s - d * d));
                }
                least = fmin(least, sum + (flip ? turn : 0));
            }
            const int e = ggl_grid_nearest(&index, x, w, level, flip, &error);
            CHECK(e >= 0 && e < grids[g]->n);
            CHECK_MSG(fabs((double)error - least) <= 1e-4 * least + 1e-6,
                      "codebook %zu, vector %d: error %g, least %g", g, repeat, (double)error,
                      least);
        }
    }
}

/* What a type can hold comes back: blocks of codes with large scales, encoded once more. */
TEST(held_values_stay) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));) {
        uint64_t seed = 9;
        float x[N], y[N], w[N];
        unsigned char a[MAX_BYTES];
        double sum = 0;
        fill(&seed, x, w);
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
        t->to_float(a, y, N);
        t->from_float_weighted(y, &(ggl_importance){.mean = w}, a, N);
        for (int i = 0; i < N; i++)
            sum += (double)w[i] * (double)y[i] * (double)y[i];
        CHECK_MSG(error_of(t, a, y, w) <= 0.01 * sum, "%s: %g of %g is lost", t->name,
                  error_of(t, a, y, w), sum);
    }
}

/* Importance of several kinds: none, alike, over two powers of ten, over six, of a single column in 32. */
enum { IMPORTANCES = 5 };

static const ggl_importance *importance_of(int kind, ggl_importance *to, float *w) {
    static const float powers[IMPORTANCES] = {0.0f, 0.0f, 1.0f, 3.0f, 0.0f};
    uint64_t seed = 90;
    for (int i = 0; i < N; i++) {
        w[i] = powf(10.0f, powers[kind] * test_random_float(&seed));
        if (kind == 4 && i % 32 == 11)
            w[i] = 1e5f;
    }
    *to = (ggl_importance){.mean = w};
    return kind > 0 ? to : NULL;
}

/* Sets *bad to how many of the numbers y differ if they are encoded with an importance of this kind, and returns the relative error. */
static double encoded_again(const ggl_type_info *t, const float *y, int kind, int *bad) {
    float z[N], w[N];
    unsigned char a[MAX_BYTES];
    ggl_importance of;
    double error = 0, sum = 0;
    t->from_float_weighted(y, importance_of(kind, &of, w), a, N);
    t->to_float(a, z, N);
    *bad = 0;
    for (int i = 0; i < N; i++) {
        const double e = (double)z[i] - (double)y[i];
        *bad += z[i] != y[i];
        error += e * e;
        sum += (double)y[i] * (double)y[i];
    }
    return error / sum;
}

/* q8_0, whose codes are the same on both sides, gets back its very bytes: scales are positive. */
TEST(bytes_of_q8_0_stay) {
    const ggl_type_info *t = ggl_type_get(GGL_Q8_0);
    uint64_t seed = 9;
    float x[N], y[N], w[N];
    unsigned char a[MAX_BYTES], b[MAX_BYTES];
    fill(&seed, x, w);
    t->from_float(x, a, N);
    t->to_float(a, y, N);
    t->from_float_weighted(y, &(ggl_importance){.mean = w}, b, N);
    CHECK(memcmp(a, b, ggl_row_size(GGL_Q8_0, N)) == 0);
}

/* Numbers on a type's own grid, made by either of its encoders, come back to the last bit, whatever the importance. In a run of q2_k,
 * 16 elements need not have all four codes, so that they lie on several grids: the last bits say which of them is meant. */
TEST(grids_are_found) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));)
        for (int kind = 0; kind < 2 * IMPORTANCES && t->from_float; kind++) {
            uint64_t seed = 9;
            float x[N], y[N], w[N];
            unsigned char a[MAX_BYTES];
            int bad;
            fill(&seed, x, w);
            if (kind % 2)
                t->from_float_weighted(x, NULL, a, N);
            else
                t->from_float(x, a, N);
            t->to_float(a, y, N);
            const double error = encoded_again(t, y, kind / 2, &bad);
            CHECK_MSG(t->type == GGL_Q2_K ? error < 4e-3 : bad == 0,
                      "%s, importance %d: %d numbers differ, by %g", t->name, kind / 2, bad, error);
        }
}

/* Returns the weighted sum of squared errors, as the search weighs them, and sets *sum to that of the elements. */
static double search_error(const float *x, const float *y, const float *w, int n, double *sum) {
    double mean = 0, error = 0;
    *sum = 0;
    for (int i = 0; i < n; i++)
        mean += (double)x[i] * (double)x[i] / n;
    for (int i = 0; i < n; i++) {
        const double e = (double)x[i] - (double)y[i];
        const double v = (double)w[i] * sqrt(mean + (double)x[i] * (double)x[i]);
        error += v * e * e;
        *sum += v * (double)x[i] * (double)x[i];
    }
    return error;
}

/* The search loses no more than the published encoder, and what the length of blocks costs: in each block of 32 with scales of its own,
 * and in four blocks of 256. */
TEST(no_worse_than_plain) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));)
        for (int kind = 0; kind < 8 * IMPORTANCES && t->from_float; kind++) {
            uint64_t seed = 100 + (uint64_t)kind / IMPORTANCES;
            float x[N], y[N], z[N], w[N];
            unsigned char a[MAX_BYTES], b[MAX_BYTES];
            ggl_importance of;
            const int block = t->block < 256 ? (int)t->block : N;
            fill(&seed, x, w);
            t->from_float_weighted(x, importance_of(kind % IMPORTANCES, &of, w), a, N);
            t->from_float(x, b, N);
            t->to_float(a, y, N);
            t->to_float(b, z, N);
            for (int i = 0; i < N; i += block) {
                double sum;
                const double error = search_error(x + i, y + i, w + i, block, &sum);
                const double plain = search_error(x + i, z + i, w + i, block, &sum);
                const double bound = plain < sum ? plain / (1 - plain / sum) : INFINITY;
                CHECK_MSG(error <= 1.02 * bound, "%s, importance %d, element %d: %g, published %g",
                          t->name, kind % IMPORTANCES, i, error / sum, plain / sum);
            }
        }
}

/* The searches for four and for eight runs at once give the same bytes. */
TEST(lanes_agree) {
#ifdef GGL_SEARCH_AVX2
    if (!__builtin_cpu_supports("avx2")) {
        SKIP("no AVX2");
    }
    static const fit_form even = {.n = 32,
                                  .high = 31,
                                  .scale_high = 63,
                                  .min_high = 63,
                                  .n_starts = 5,
                                  .first = -3.9f,
                                  .step = 0.35f,
                                  .n_steps = 18};
    static const fit_form symmetric = {.n = 16,
                                       .low = -32,
                                       .high = 31,
                                       .scale_low = -128,
                                       .scale_high = 127,
                                       .n_starts = 3,
                                       .first = -4.9f,
                                       .step = 0.4f,
                                       .n_steps = 16};
    for (int kind = 0; kind < 4 * IMPORTANCES; kind++) {
        uint64_t seed = 300 + (uint64_t)kind;
        float x[N], w[N];
        ggl_importance of;
        fit_block a, b;
        fit_rows c, d;
        fill(&seed, x, w);
        const ggl_importance *with = importance_of(kind % IMPORTANCES, &of, w);
        const float *mean = with ? with->mean : NULL;
        ggl_fit_mins_four(&even, x, mean, &a);
        ggl_fit_mins_eight(&even, x, mean, &b);
        CHECK(memcmp(&a, &b, sizeof a) == 0);
        ggl_fit_scales_four(&symmetric, x, mean, &a);
        ggl_fit_scales_eight(&symmetric, x, mean, &b);
        CHECK(memcmp(&a, &b, sizeof a) == 0);
        ggl_fit_rows_mins_four(&even, x, mean, &c);
        ggl_fit_rows_mins_eight(&even, x, mean, &d);
        CHECK(memcmp(&c, &d, sizeof c) == 0);
        fit_form rows = symmetric;
        rows.n = 32;
        ggl_fit_rows_scales_four(&rows, x, mean, &c);
        ggl_fit_rows_scales_eight(&rows, x, mean, &d);
        CHECK(memcmp(&c, &d, sizeof c) == 0);
    }
#endif
}

/* Importance that is no number, infinite, negative or all zeros; odd elements; and the bytes do not
 * depend on how many blocks are encoded at once. */
TEST(odd_numbers) {
    static const float odd[] = {NAN, INFINITY, -1.0f, 0.0f, 1e38f, 1e-38f};
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));) {
        uint64_t seed = 11;
        float x[N], w[N], y[N];
        unsigned char a[MAX_BYTES], b[MAX_BYTES];
        fill(&seed, x, w);
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
            float some[N], all[N];
            for (int i = 0; i < N; i++) {
                all[i] = odd[o];
                some[i] = i % 3 ? w[i] : odd[o];
            }
            t->from_float_weighted(x, &(ggl_importance){.mean = all}, a, N);
            t->to_float(a, y, N);
            double xy = 0, yy = 0, square = 0;
            for (int i = 0; i < N; i++) {
                xy += (double)x[i] * (double)y[i];
                yy += (double)y[i] * (double)y[i];
                square += (double)x[i] * (double)x[i];
            }
            const double sum = square - xy * xy / yy; /* the error at the best length of y */
            CHECK_MSG(sum < 0.45 * square, "%s, importance %g: error %g of %g", t->name,
                      (double)odd[o], sum, square);
            t->from_float_weighted(x, &(ggl_importance){.mean = some}, a, N);
            t->to_float(a, y, N);
            for (int i = 0; i < N; i++)
                CHECK(isfinite(y[i]));
        }
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
        for (int i = 0; i < N; i += (int)t->block)
            t->from_float_weighted(x + i, &(ggl_importance){.mean = w + i},
                                   b + ggl_row_size(t->type, i), t->block);
        CHECK_MSG(memcmp(a, b, ggl_row_size(t->type, N)) == 0, "%s: one block at a time differs",
                  t->name);
        memset(x, 0, sizeof x);
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
        CHECK(error_of(t, a, x, w) == 0);
        x[300] = NAN;
        t->from_float_weighted(x, &(ggl_importance){.mean = w}, a, N);
        t->to_float(a, y, N);
        CHECK_MSG(isnan(y[300]) && y[0] == 0 && y[N - 1] == 0, "%s: NaN becomes %g", t->name,
                  (double)y[300]);
    }
}

/* Any floats at all: nothing may be undefined (sanitizers look on). */
TEST(extreme_numbers) {
    int k = 0;
    uint64_t seed = 78;
    for (const ggl_type_info *t; (t = next_weighted(&k));)
        for (int repeat = 0; repeat < 8; repeat++) {
            float x[N], w[N];
            unsigned char a[MAX_BYTES];
            for (int i = 0; i < N; i++) {
                uint32_t u = (uint32_t)test_random(&seed), v = (uint32_t)test_random(&seed);
                u = (u >> 23 & 255) == 255 ? u & 0x7fffff : u;
                memcpy(&x[i], &u, sizeof u);
                memcpy(&w[i], &v, sizeof v);
                if (repeat % 4 == 1)
                    x[i] = u & 1 ? 3e38f : -3e38f;
                if (repeat % 4 == 2)
                    x[i] = i % 256 == repeat ? 1e30f : test_random_float(&seed);
                if (repeat % 4 == 3)
                    x[i] = 1000.0f + 1e-4f * test_random_float(&seed);
            }
            t->from_float_weighted(x, repeat < 4 ? &(ggl_importance){.mean = w} : NULL, a, N);
        }
}
