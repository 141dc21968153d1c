/* unit.resample: sines pass or vanish, impulses stay where they are, and all outputs are there. */
#include "sound/resample.h"

#include <math.h>

#include "test.h"

enum { MOST = 400000 };

static const double PI = 0x1.921fb54442d18p+1;
static float in[MOST], out[MOST];

/* All outputs for n samples of `in`, which come in parts of at most `part`. */
static int64_t resample(int from, int to, int64_t n, int64_t part) {
    llm_resampler *r;
    ggl_error err = {0};
    int64_t n_out = 0, got;
    if (!CHECK_OK(llm_resampler_new(&r, from, to, &err), &err))
        return -1;
    const int64_t want = llm_resampler_n_output(r, n);
    for (int64_t i = 0; i < n; i += part) {
        CHECK_OK(llm_resampler_add(r, in + i, part < n - i ? part : n - i, &err), &err);
        while ((got = llm_resampler_take(r, out + n_out, part)) > 0)
            n_out += got;
    }
    CHECK_OK(llm_resampler_end(r, &err), &err);
    while ((got = llm_resampler_take(r, out + n_out, part)) > 0)
        n_out += got;
    CHECK_INT(n_out, want);
    CHECK_INT(n_out, (n * to + from - 1) / from);
    llm_resampler_free(r);
    return n_out;
}

static const int pairs[][2] = {{44100, 16000}, {48000, 16000},  {22050, 16000},  {8000, 16000},
                               {11025, 16000}, {96000, 16000},  {44056, 16000},  {44057, 16000},
                               {16001, 16000}, {192000, 16000}, {16000, 44100},  {16000, 15999},
                               {1000, 16000},  {7, 5},          {1000000, 16000}};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* A sine of `hz` into `in`; its largest difference from `share` of that sine in the middle of the output. */
static double sine_error(int from, int to, double hz, double share) {
    const int64_t edge = 140 * (int64_t)(1 + (double)to / from);
    int64_t n = (int64_t)((2.0 * (double)edge + 1500) * from / to);
    n = n < MOST ? n : MOST;
    for (int64_t i = 0; i < n; i++)
        in[i] = (float)sin(2 * PI * hz * (double)i / from + 0.3);
    const int64_t n_out = resample(from, to, n, 5000);
    double worst = 0;
    for (int64_t i = edge; i < n_out - edge; i++)
        worst = fmax(worst, fabs((double)out[i] - share * sin(2 * PI * hz * (double)i / to + 0.3)));
    return n_out > 2 * edge ? worst : INFINITY;
}

TEST(what_passes) {
    for (int i = 0; i < N_PAIRS; i++) {
        const int from = pairs[i][0], to = pairs[i][1];
        const double nyquist = (from < to ? from : to) / 2.0;
        for (double share = 0; share <= 0.9; share += 0.15) {
            const double error = sine_error(from, to, nyquist * share, 1);
            CHECK_MSG(error < 1e-4, "%d to %d Hz, %g of the Nyquist frequency: %g", from, to, share,
                      error);
        }
    }
}

TEST(what_does_not) {
    const double least = pow(10, -96 / 20.0);
    for (int i = 0; i < N_PAIRS; i++) {
        const int from = pairs[i][0], to = pairs[i][1];
        for (int k = 0; k < 6 && from > to * 1.01;
             k++) { /* from the Nyquist frequency of the one to that of the other */
            const double hz = to / 2.0 + (from - to) / 2.0 * (0.001 + k * k / 25.1);
            const double error = sine_error(from, to, hz, 0);
            CHECK_MSG(error < least, "%d to %d Hz: %g Hz is %.1f dB", from, to, hz,
                      20 * log10(error));
        }
    }
}

TEST(impulses_stay) {
    static const int at[] = {0, 441, 882, 4410};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        memset(in, 0, sizeof in);
        in[at[k]] = 1;
        const int64_t n = resample(44100, 16000, 4411, 1000), middle = at[k] * 160 / 441;
        for (int64_t i = 0; i < n; i++)
            CHECK(i == middle || fabsf(out[i]) < 0.9f * out[middle]);
        for (int64_t d = 1; middle >= d && middle + d < n; d++)
            CHECK_MSG(fabsf(out[middle - d] - out[middle + d]) < 1e-7f, "%d: %lld off the middle",
                      at[k], (long long)d);
    }
}

LONG_TEST(every_length) {
    for (int64_t n = 0; n < 900; n += n < 10 ? 1 : 37)
        for (int i = 0; i < N_PAIRS; i++)
            if (pairs[i][1] / pairs[i][0] < 100)
                resample(pairs[i][0], pairs[i][1], n, 100);
    CHECK_INT(resample(1000, 1000000, 7, 3), 7000);
}

TEST(parts_do_not_matter) {
    static float all[MOST];
    uint64_t seed = 7;
    for (int i = 0; i < 3000; i++)
        in[i] = test_random_float(&seed);
    for (int i = 0; i < N_PAIRS; i++) {
        const int64_t n = resample(pairs[i][0], pairs[i][1], 3000, 3000);
        memcpy(all, out, sizeof all);
        for (int64_t part = 1; part < 3000; part = part * 11 + 6) {
            CHECK_INT(resample(pairs[i][0], pairs[i][1], 3000, part), n);
            CHECK_MSG(memcmp(all, out, (size_t)n * sizeof *out) == 0,
                      "%d to %d Hz in parts of %lld", pairs[i][0], pairs[i][1], (long long)part);
        }
    }
}
