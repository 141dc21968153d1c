#include "resample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/math.h"

enum { LANES = 8, HALF = 66, MOST_TABLE = 1 << 17, PHASES = 1024 };

static const double PI = 0x1.921fb54442d18p+1;
/* A stop band of -100 dB needs a window of this shape, and with a transition of a tenth of the Nyquist frequency 65 samples on each
 * side, of which HALF is the next larger even number. The sinc's corner is in the middle of the transition. */
static const double BETA = 0.1102 * (100 - 8.7), CORNER = 0.95;

struct llm_resampler {
    int from, to;  /* divided by what they have in common */
    int n_tap;     /* of a phase: a multiple of LANES */
    int n_phase;   /* between two samples of the input */
    float *filter; /* [n_phase + 1][n_tap], the last one being the first moved by a sample */
    float *sample; /* of the input, from `first` on, with n_tap / 2 - 1 of silence before it */
    size_t cap;
    int64_t first, n;
    int64_t at; /* the next output stands at the time at + part / to */
    int part;
    int64_t n_input; /* once it is complete; before that the largest number */
};

/* The modified Bessel function of the first kind of order 0, by its series. */
static double bessel0(double x) {
    double sum = 1, term = 1;
    for (int k = 1; term > 1e-17 * sum; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

/* The filter's value at the time t; `scale` is the share of the input's frequencies that pass. */
static double filter_at(double t, double scale) {
    const double half = HALF / scale, x = t / half, angle = PI * CORNER * scale * t;
    if (x <= -1 || x >= 1)
        return 0;
    const double sinc = angle == 0 ? 1 : ggl_sin(angle) / angle;
    return sinc * bessel0(BETA * sqrt(1 - x * x));
}

/* Phase k: tap i weights the sample that is i - (n_tap / 2 - 1) behind the one at or before the output. */
static void make_phase(const llm_resampler *r, int k, double *value, double scale) {
    double sum = 0;
    for (int i = 0; i < r->n_tap; i++) {
        value[i] = filter_at(i - (r->n_tap / 2 - 1) - (double)k / r->n_phase, scale);
        sum += value[i];
    }
    float *to = r->filter + (size_t)k * (size_t)r->n_tap;
    for (int i = 0; i < r->n_tap; i++)
        to[i] = (float)(value[i] / sum);
}

static int common_divisor(int a, int b) {
    return b ? common_divisor(b, a % b) : a;
}

ggl_status llm_resampler_new(llm_resampler **out, int from, int to, ggl_error *err) {
    llm_resampler *r = *out = ggl_calloc(1, sizeof *r);
    const double scale = from > to ? (double)to / from : 1;
    const int divisor = common_divisor(from, to);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a resampler");
    r->from = from / divisor;
    r->to = to / divisor;
    r->n_tap = (2 * ((int)ceil(HALF / scale) + 1) + LANES - 1) / LANES * LANES;
    r->n_phase = r->to;
    if (r->to > MOST_TABLE / r->n_tap)
        r->n_phase = (int)ceil(PHASES * scale);
    r->filter = ggl_calloc((size_t)(r->n_phase + 1) * (size_t)r->n_tap, sizeof *r->filter);
    double *value = ggl_calloc((size_t)r->n_tap, sizeof *value);
    for (int k = 0; k <= r->n_phase && r->filter && value; k++)
        make_phase(r, k, value, scale);
    const bool ok = r->filter && value;
    ggl_free(value);
    if (ok) {
        llm_resampler_reset(r);
        return GGL_OK;
    }
    llm_resampler_free(r);
    *out = NULL;
    return ggl_fail(err, GGL_NOMEM, "out of memory for a filter from %d to %d Hz", from, to);
}

void llm_resampler_free(llm_resampler *r) {
    if (!r)
        return;
    ggl_free(r->filter);
    ggl_free(r->sample);
    ggl_free(r);
}

void llm_resampler_reset(llm_resampler *r) {
    r->first = -(r->n_tap / 2 - 1);
    r->n = 0;
    r->at = r->part = 0;
    r->n_input = INT64_MAX;
}

int64_t llm_resampler_n_output(const llm_resampler *r, int64_t n) {
    if (n / r->from > INT64_MAX / 2 / r->to)
        return -1;
    return n / r->from * r->to + (n % r->from * r->to + r->from - 1) / r->from;
}

/* Adds samples, or silence if x is NULL. What lies before the next output's first tap goes. */
static bool append(llm_resampler *r, const float *x, int64_t n) {
    int64_t gone = r->at - (r->n_tap / 2 - 1) - r->first;
    gone = gone < 0 ? 0 : gone < r->n ? gone : r->n;
    if (gone > 0) {
        memmove(r->sample, r->sample + gone, (size_t)(r->n - gone) * sizeof *r->sample);
        r->first += gone;
        r->n -= gone;
    }
    if (!ggl_grow(&r->sample, &r->cap, (size_t)(r->n + n), sizeof *r->sample))
        return false;
    if (x)
        memcpy(r->sample + r->n, x, (size_t)n * sizeof *x);
    else
        memset(r->sample + r->n, 0, (size_t)n * sizeof *r->sample);
    r->n += n;
    return true;
}

ggl_status llm_resampler_add(llm_resampler *r, const float *x, int64_t n, ggl_error *err) {
    const int64_t before = r->n == 0 && r->first < 0 ? -r->first : 0;
    if (n <= 0 || ((before == 0 || append(r, NULL, before)) && append(r, x, n)))
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM, "out of memory for %lld samples", (long long)(r->n + n));
}

ggl_status llm_resampler_end(llm_resampler *r, ggl_error *err) {
    r->n_input = r->first + r->n;
    if (!append(r, NULL, r->n_tap / 2))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the end of a sound");
    return GGL_OK;
}

/* sum_i x[i] f[i], in eight sums. n: a multiple of LANES. */
static float dot(const float *x, const float *f, int n) {
    float sum[LANES] = {0};
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += x[i + l] * f[i + l];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

static float output(const llm_resampler *r, const float *x) {
    const int64_t place = (int64_t)r->part * r->n_phase;
    const float *f = r->filter + (size_t)(place / r->to) * (size_t)r->n_tap;
    const float y = dot(x, f, r->n_tap);
    if (r->n_phase == r->to)
        return y;
    const float next = dot(x, f + r->n_tap, r->n_tap);
    return y + (next - y) * (float)((double)(place % r->to) / r->to);
}

int64_t llm_resampler_take(llm_resampler *r, float *to, int64_t n) {
    int64_t n_taken = 0;
    for (; n_taken < n && r->at < r->n_input; n_taken++) {
        const int64_t begin = r->at - (r->n_tap / 2 - 1) - r->first;
        if (begin + r->n_tap > r->n)
            break;
        to[n_taken] = output(r, r->sample + begin);
        r->at += r->from / r->to;
        r->part += r->from % r->to;
        r->at += r->part >= r->to;
        r->part -= r->part >= r->to ? r->to : 0;
    }
    return n_taken;
}
