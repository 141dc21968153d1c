/* Encoding with directions: the error of products with correlated activations, computed from all pairs of columns; odd numbers. */
#include <math.h>

#include "ggl/internal/types.h"
#include "test.h"

enum { N_COL = 512, ROWS = 4, N = N_COL * ROWS, N_DIR = 8, MAX_BYTES = 4 * N };

typedef struct data {
    float x[N];               /* rows */
    float dir[N_COL * N_DIR]; /* activations are dir times N_DIR random numbers, and noise */
    float mean[N];            /* of each element's column */
    float own[N_COL], power[N_COL];
} data;

static void fill(data *d, uint64_t *seed) {
    for (int i = 0; i < N; i++)
        d->x[i] =
            0.02f * (test_random_float(seed) + test_random_float(seed) + test_random_float(seed));
    for (int i = 0; i < N_COL; i++) {
        double sum = 0.3; /* the noise */
        for (int k = 0; k < N_DIR; k++) {
            const float u = test_random_float(seed) * (i % 37 == 5 ? 3.0f : 1.0f);
            d->dir[i * N_DIR + k] = u;
            sum += (double)u * (double)u;
        }
        for (int r = 0; r < ROWS; r++)
            d->mean[r * N_COL + i] = (float)sum;
    }
}

/* Sets the powers of the columns to their means, and returns what of them is in no direction. */
static const float *own_of(data *d) {
    for (int i = 0; i < N_COL; i++) {
        float shared = 0.0f;
        for (int k = 0; k < N_DIR; k++)
            shared += d->dir[i * N_DIR + k] * d->dir[i * N_DIR + k];
        const bool known = d->mean[i] > 0.0f && isfinite(d->mean[i]);
        d->own[i] = known && d->mean[i] > shared ? d->mean[i] - shared : 0.0f;
        d->power[i] = !known || d->mean[i] > shared ? d->mean[i] : shared;
    }
    return d->own;
}

/* The mean square of what the errors of all rows do to their products: sum_ij e[i] e[j] C[i][j]. */
static double loss_of(const data *d, const float *y) {
    double loss = 0;
    for (int r = 0; r < ROWS; r++) {
        double e[N_COL];
        for (int i = 0; i < N_COL; i++)
            e[i] = (double)y[r * N_COL + i] - (double)d->x[r * N_COL + i];
        for (int i = 0; i < N_COL; i++)
            for (int j = 0; j < N_COL; j++) {
                double c = i == j ? (double)d->mean[i] : 0;
                for (int k = 0; k < N_DIR && i != j; k++)
                    c += (double)d->dir[i * N_DIR + k] * (double)d->dir[j * N_DIR + k];
                loss += e[i] * e[j] * c;
            }
    }
    return loss;
}

static const ggl_type_info *next_weighted(int *k) {
    for (const ggl_type_info *t; (t = ggl_type_at(*k));) {
        ++*k;
        if (t->from_float_weighted)
            return t;
    }
    return NULL;
}

/* All types lose clearly less with the directions; scales are those of the search without. */
TEST(errors_cancel) {
    int k = 0, n = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k)); n++) {
        static data d;
        static float y[N], z[N];
        static unsigned char a[MAX_BYTES], b[MAX_BYTES];
        uint64_t seed = 11;
        fill(&d, &seed);
        t->from_float_weighted(d.x, &(ggl_importance){.mean = d.mean}, a, N);
        t->from_float_weighted(
            d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, b, N);
        t->to_float(a, y, N);
        t->to_float(b, z, N);
        const double without = loss_of(&d, y), with = loss_of(&d, z);
        printf("%-8s %.3f\n", t->name, with / without);
        CHECK_MSG(with < 0.6 * without, "%s: %g with directions, %g without", t->name, with,
                  without);
        for (int64_t i = 0; i < N; i += t->block)
            for (int j = 0; j < t->block / 32; j++) {
                ggl_codes p, q;
                t->unpack(a + ggl_row_size(t->type, i), j, &p);
                t->unpack(b + ggl_row_size(t->type, i), j, &q);
                CHECK(memcmp(p.s, q.s, sizeof p.s) == 0 && memcmp(p.m, q.m, sizeof p.m) == 0);
            }
        /* a row is encoded as if it were alone */
        for (int r = 0; r < ROWS; r++)
            t->from_float_weighted(
                d.x + r * N_COL,
                &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR},
                a + ggl_row_size(t->type, r * N_COL), N_COL);
        CHECK_MSG(memcmp(a, b, ggl_row_size(t->type, N)) == 0, "%s: rows depend on each other",
                  t->name);
    }
    CHECK_INT(n, 19);
}

/* Numbers that a damaged importance matrix can hold, and elements that cannot be encoded: nothing may be undefined (sanitizers look on), and
 * an element that is no number makes nothing but its block one. */
TEST(odd_directions) {
    static const float odd[] = {0, -1, NAN, INFINITY, 3e38f, 1e-38f};
    int k = 0;
    uint64_t seed = 12;
    for (const ggl_type_info *t; (t = next_weighted(&k));)
        for (int o = 0; o < 6; o++) {
            static data d;
            static float y[N];
            static unsigned char a[MAX_BYTES];
            fill(&d, &seed);
            for (int i = 0; i < N; i++)
                d.mean[i] = i % 3 == 0 ? odd[o] : d.mean[i];
            for (int i = 0; i < N_COL * N_DIR; i += 7)
                d.dir[i] = o % 2 ? 1e18f : 0.0f;
            t->from_float_weighted(
                d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, a, N);
            t->to_float(a, y, N);
            for (int i = 0; i < N; i++)
                CHECK(isfinite(y[i]));
            /* a row does not depend on the one before, also if its first block cannot be encoded */
            static unsigned char b[MAX_BYTES];
            const ggl_importance row = {d.mean + N_COL, d.dir, own_of(&d), d.power, N_COL, N_DIR};
            const int64_t second = N_COL;
            d.x[second] = NAN;
            t->from_float_weighted(
                d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, a, N);
            t->from_float_weighted(d.x + second, &row, b, N_COL);
            CHECK_MSG(memcmp(a + ggl_row_size(t->type, second), b, ggl_row_size(t->type, N_COL)) ==
                          0,
                      "%s: a row depends on others", t->name);
            d.x[second] = 0.01f;
            d.x[300] = o % 2 ? NAN : INFINITY;
            t->from_float_weighted(
                d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, a, N);
            t->to_float(a, y, N);
            CHECK(!isfinite(y[300]) && isfinite(y[N - 1]) && isfinite(y[0]));
            for (int i = 0; i < N_COL; i++)
                d.x[i] = 0.0f;
            t->from_float_weighted(
                d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, a, N_COL);
            t->to_float(a, y, N_COL);
            for (int i = 0; i < N_COL; i++)
                CHECK(t->quantized && fabsf(y[i]) == 0.0f);
        }
}

/* Columns that are never used keep what they have without directions, and no element goes further from its place for the others
 * than a step. */
TEST(unused_columns) {
    int k = 0;
    for (const ggl_type_info *t; (t = next_weighted(&k));) {
        static data d;
        static float y[N], z[N];
        static unsigned char a[MAX_BYTES], b[MAX_BYTES];
        uint64_t seed = 13;
        double with = 0, without = 0;
        fill(&d, &seed);
        for (int i = 0; i < N; i++)
            d.mean[i] = i % 2 ? 0.0f : d.mean[i];
        for (int i = 0; i < N_COL * N_DIR; i++)
            d.dir[i] = i / N_DIR % 2 ? 0.0f : d.dir[i];
        t->from_float_weighted(d.x, &(ggl_importance){.mean = d.mean}, a, N);
        t->from_float_weighted(
            d.x, &(ggl_importance){d.mean, d.dir, own_of(&d), d.power, N_COL, N_DIR}, b, N);
        t->to_float(a, y, N);
        t->to_float(b, z, N);
        for (int i = 1; i < N; i += 2) {
            without += (double)(y[i] - d.x[i]) * (double)(y[i] - d.x[i]);
            with += (double)(z[i] - d.x[i]) * (double)(z[i] - d.x[i]);
        }
        CHECK_MSG(with <= 1.1 * without, "%s: %g with directions, %g without", t->name, with,
                  without);
    }
}
