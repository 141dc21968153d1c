#include "log_mel.h"

#include <math.h>

#include "common/mel_bands.h"
#include "ggl/alloc.h"
#include "ggl/internal/math.h"
#include "real_fft.h"

enum { LANES = REAL_FFT_LANES };

static const double PI = 0x1.921fb54442d18p+1, LOG10_E = 0x1.bcb7b1526e50ep-2;

/* The bins of a band whose filter is not 0. */
typedef struct band {
    int first, n;
    const double *weight; /* [n] */
} band;

struct llm_mel {
    llm_mel_params p;
    real_fft fft;
    double *window; /* [n_window] */
    band *band;     /* [n_mel] */
    double *weight; /* of all bands */
    double unit;    /* of logarithms: that of 10, or of e, in natural ones */
    double silence;
};

llm_mel_params llm_mel_default(void) {
    return (llm_mel_params){.rate = 16000,
                            .n_window = 400,
                            .n_fft = 0,
                            .n_step = 160,
                            .n_mel = 80,
                            .least = 1e-10,
                            .range = 8,
                            .offset = 4,
                            .scale = 4};
}

static ggl_status check_params(const llm_mel_params *p, ggl_error *err) {
    const struct {
        const char *name;
        int value, least, most;
    } limits[] = {{"rate", p->rate, 1, INT32_MAX},
                  {"n_window", p->n_window, 2, MEL_MOST_WINDOW},
                  {"n_step", p->n_step, 1, INT32_MAX},
                  {"n_mel", p->n_mel, 1, MEL_MOST_BANDS}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < limits[i].least || limits[i].value > limits[i].most)
            return ggl_fail(err, GGL_USAGE, "log-mel: %s is %d, not %d to %d", limits[i].name,
                            limits[i].value, limits[i].least, limits[i].most);
    if (p->n_window % 2)
        return ggl_fail(err, GGL_USAGE, "log-mel: n_window is %d, not even", p->n_window);
    if (p->n_fft != 0 && (p->n_fft % 2 || p->n_fft < p->n_window || p->n_fft > MEL_MOST_WINDOW))
        return ggl_fail(err, GGL_USAGE, "log-mel: n_fft is %d, not an even number from %d to %d",
                        p->n_fft, p->n_window, MEL_MOST_WINDOW);
    if (!(p->least > 0 && isfinite(p->least) && p->range >= 0 && isfinite(p->emphasis) &&
          isfinite(p->offset) && isfinite(p->scale) && p->scale != 0))
        return ggl_fail(err, GGL_USAGE,
                        "log-mel: least %g, range %g, offset %g, scale %g and emphasis %g: least "
                        "must be above 0, range not negative, scale not 0, the others finite",
                        p->least, p->range, p->offset, p->scale, p->emphasis);
    return GGL_OK;
}

/* The filter of band b, for all bins. */
static ggl_status filter_of(const llm_mel_params *p, int b, double *out, ggl_error *err) {
    const int n_bin = p->n_fft / 2 + 1;
    if (!p->filter)
        llm_mel_band(p->htk ? LLM_MEL_HTK : LLM_MEL_SLANEY, p->rate, p->n_fft, p->n_mel, b, out);
    for (int k = 0; k < n_bin; k++) {
        if (p->filter)
            out[k] = (double)p->filter[(size_t)b * (size_t)n_bin + (size_t)k];
        if (!isfinite(out[k]))
            return ggl_fail(err, GGL_USAGE,
                            "log-mel: the filter of band %d has %g for bin %d, not a finite number",
                            b, out[k], k);
    }
    return GGL_OK;
}

/* Keeps what lies between the first and the last number of a filter that is not 0. */
static ggl_status make_filters(llm_mel *m, ggl_error *err) {
    const int n_bin = m->p.n_fft / 2 + 1;
    double *to = m->weight;
    for (int b = 0; b < m->p.n_mel; b++) {
        const ggl_status st = filter_of(&m->p, b, to, err);
        if (st != GGL_OK)
            return st;
        int first = 0, end = n_bin;
        while (first < end && to[first] == 0)
            first++;
        while (end > first && to[end - 1] == 0)
            end--;
        for (int k = first; k < end; k++)
            to[k - first] = to[k];
        m->band[b] = (band){.first = first, .n = end - first, .weight = to};
        to += end - first;
    }
    return GGL_OK;
}

static ggl_status make_window(llm_mel *m, ggl_error *err) {
    const double period = m->p.n_window - (m->p.symmetric ? 1 : 0);
    for (int i = 0; i < m->p.n_window; i++) {
        m->window[i] =
            m->p.window ? (double)m->p.window[i] : 0.5 - 0.5 * ggl_cos(2 * PI * i / period);
        if (!isfinite(m->window[i]))
            return ggl_fail(err, GGL_USAGE, "log-mel: the window has %g, not a finite number",
                            m->window[i]);
    }
    return GGL_OK;
}

ggl_status llm_mel_new(llm_mel **out, const llm_mel_params *p, ggl_error *err) {
    *out = NULL;
    ggl_status st = check_params(p, err);
    if (st != GGL_OK)
        return st;
    llm_mel *m = ggl_calloc(1, sizeof *m);
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a spectrogram");
    m->p = *p;
    m->p.n_fft = p->n_fft > 0 ? p->n_fft : p->n_window;
    m->unit = p->natural ? 1 : LOG10_E;
    m->silence = ggl_log(p->least) * m->unit;
    st = llm_real_fft_init(&m->fft, m->p.n_fft, err);
    const size_t n_bin = (size_t)m->p.n_fft / 2 + 1;
    m->window = ggl_calloc((size_t)p->n_window, sizeof *m->window);
    m->band = ggl_calloc((size_t)p->n_mel, sizeof *m->band);
    m->weight = ggl_calloc((size_t)p->n_mel * n_bin, sizeof *m->weight);
    if (st == GGL_OK && !(m->window && m->band && m->weight))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a spectrogram of %d bands of %zu bins",
                      p->n_mel, n_bin);
    if (st == GGL_OK)
        st = make_window(m, err);
    if (st == GGL_OK)
        st = make_filters(m, err);
    m->p.filter = m->p.window = NULL;
    if (st == GGL_OK)
        *out = m;
    else
        llm_mel_free(m);
    return st;
}

void llm_mel_free(llm_mel *m) {
    if (!m)
        return;
    llm_real_fft_fini(&m->fft);
    ggl_free(m->window);
    ggl_free(m->band);
    ggl_free(m->weight);
    ggl_free(m);
}

const llm_mel_params *llm_mel_params_of(const llm_mel *m) {
    return &m->p;
}

double llm_mel_silence(const llm_mel *m) {
    return m->silence;
}

int64_t llm_mel_n_rows(const llm_mel *m, int64_t n_samples) {
    return n_samples / m->p.n_step;
}

int64_t llm_mel_n_heard(const llm_mel *m, int64_t n_samples) {
    const int64_t half = m->p.n_window / 2; /* row r begins at sample r * n_step - half */
    return n_samples == 0 ? 0 : (n_samples - 1 + half) / m->p.n_step + 1;
}

int64_t llm_mel_n_complete(const llm_mel *m, int64_t n_samples) {
    const int64_t half =
        m->p.n_window / 2; /* the mirrored half of row 0 shows sample `half`, too */
    return n_samples <= half ? 0 : (n_samples - half) / m->p.n_step + 1;
}

int64_t llm_mel_first_sample(const llm_mel *m, int64_t row) {
    const int64_t mirrored = m->p.edges == MEL_EDGE_BOTH ? m->p.n_window : 0,
                  begin = row * m->p.n_step - m->p.n_window / 2 - mirrored -
                          (m->p.emphasis != 0 ? 1 : 0);
    return begin > 0 ? begin : 0;
}

static ggl_status check_piece(const llm_mel *m, const llm_mel_piece *piece, int64_t first_row,
                              int64_t n_rows, ggl_error *err) {
    const int64_t most = (INT64_MAX / 4 - m->p.n_window) / m->p.n_step;
    if (piece->first < 0 || piece->n < 0 || piece->first > INT64_MAX / 2 ||
        piece->n > INT64_MAX / 4)
        return ggl_fail(err, GGL_USAGE, "log-mel: a piece of %lld samples from sample %lld on",
                        (long long)piece->n, (long long)piece->first);
    if (first_row < 0 || n_rows < 0 || first_row > most || n_rows > most - first_row)
        return ggl_fail(err, GGL_USAGE, "log-mel: %lld rows from row %lld on", (long long)n_rows,
                        (long long)first_row);
    const int64_t begin = llm_mel_first_sample(m, first_row);
    if (n_rows > 0 &&
        (begin < piece->first ||
         (!piece->is_last && llm_mel_n_complete(m, piece->first + piece->n) < first_row + n_rows)))
        return ggl_fail(err, GGL_USAGE,
                        "log-mel: rows %lld to %lld show samples that the piece, %lld from sample "
                        "%lld on, does not have",
                        (long long)first_row, (long long)(first_row + n_rows - 1),
                        (long long)piece->n, (long long)piece->first);
    return GGL_OK;
}

/* Memory for LANES rows. */
typedef struct scratch {
    double *x, *work, *power, *log;
} scratch;

static bool scratch_init(scratch *s, const llm_mel *m) {
    const size_t n = (size_t)m->p.n_fft, n_bin = n / 2 + 1, n_mel = (size_t)m->p.n_mel;
    s->x = ggl_calloc(n * LANES + llm_real_fft_n_work(&m->fft) + (n_bin + n_mel) * LANES,
                      sizeof *s->x);
    if (!s->x)
        return false;
    s->work = s->x + n * LANES;
    s->power = s->work + llm_real_fft_n_work(&m->fft);
    s->log = s->power + n_bin * LANES;
    return true;
}

/* Returns sample `at` of the sound, which may lie before or behind it. */
static double sample_at(const llm_mel *m, const llm_mel_piece *piece, int64_t at) {
    const int64_t end = piece->first + piece->n;
    if (at < 0 && m->p.edges != MEL_EDGE_ZEROS)
        at = -at;
    else if (at >= end && m->p.edges == MEL_EDGE_BOTH && at - end < m->p.n_window / 2)
        at = 2 * (end - 1) - at;
    at -= piece->first;
    if (at < 0 || at >= piece->n)
        return 0;
    const double x = (double)piece->sample[at];
    return m->p.emphasis != 0 && at > 0 ? x - m->p.emphasis * (double)piece->sample[at - 1] : x;
}

/* Lane `lane` of x: the samples of a row, weighted. */
static void load_row(const llm_mel *m, const llm_mel_piece *piece, int64_t row, double *x,
                     int lane) {
    const int64_t begin = row * m->p.n_step - m->p.n_window / 2;
    for (int i = 0; i < m->p.n_window; i++)
        x[i * LANES + lane] = m->window[i] * sample_at(m, piece, begin + i);
    for (int i = m->p.n_window; i < m->p.n_fft; i++)
        x[i * LANES + lane] = 0;
}

/* Returns the logarithm of what a band has. */
static double log_of(const llm_mel *m, double sum) {
    const double x = m->p.added ? sum + m->p.least : sum;
    return x > m->p.least ? ggl_log(x) * m->unit : m->silence;
}

/* Sets s->log[n_mel][LANES] to the L of LANES rows. */
static void log_rows(const llm_mel *m, const llm_mel_piece *piece, int64_t row, scratch *s) {
    for (int l = 0; l < LANES; l++)
        load_row(m, piece, row + l, s->x, l);
    llm_real_fft_power(&m->fft, s->x, s->work, s->power);
    for (size_t i = 0; m->p.magnitude && i < ((size_t)m->p.n_fft / 2 + 1) * LANES; i++)
        s->power[i] = sqrt(s->power[i]);
    for (int b = 0; b < m->p.n_mel; b++) {
        double sum[LANES] = {0};
        const double *power = s->power + (size_t)m->band[b].first * LANES;
        for (int k = 0; k < m->band[b].n; k++, power += LANES)
            for (int l = 0; l < LANES; l++)
                sum[l] += m->band[b].weight[k] * power[l];
        for (int l = 0; l < LANES; l++)
            s->log[b * LANES + l] = log_of(m, sum[l]);
    }
}

/* Returns a logarithm as a row has it. */
static float number_of(const llm_mel *m, double v, double largest) {
    const double lowest = largest - m->p.range;
    return (float)(((v > lowest ? v : lowest) + m->p.offset) / m->p.scale);
}

float llm_mel_silent_number(const llm_mel *m, double largest) {
    return number_of(m, m->silence, largest);
}

/* Writes rows to out; or, if that is NULL, raises *largest to the largest logarithm in them. */
static ggl_status run_rows(const llm_mel *m, const llm_mel_piece *piece, int64_t first_row,
                           int64_t n_rows, double *largest, float *out, ggl_error *err) {
    scratch s;
    const ggl_status st = check_piece(m, piece, first_row, n_rows, err);
    if (st != GGL_OK)
        return st;
    if (!scratch_init(&s, m))
        return ggl_fail(err, GGL_NOMEM, "out of memory for rows of a spectrogram");
    for (int64_t i = 0; i < n_rows; i += LANES) {
        log_rows(m, piece, first_row + i, &s);
        for (int l = 0; l < LANES && i + l < n_rows; l++)
            for (int b = 0; b < m->p.n_mel; b++) {
                const double v = s.log[b * LANES + l];
                if (out)
                    *out++ = number_of(m, v, *largest);
                else if (v > *largest)
                    *largest = v;
            }
    }
    ggl_free(s.x);
    return GGL_OK;
}

ggl_status llm_mel_largest(const llm_mel *m, const llm_mel_piece *piece, int64_t first_row,
                           int64_t n_rows, double *largest, ggl_error *err) {
    return run_rows(m, piece, first_row, n_rows, largest, NULL, err);
}

ggl_status llm_mel_rows(const llm_mel *m, const llm_mel_piece *piece, int64_t first_row,
                        int64_t n_rows, double largest, float *out, ggl_error *err) {
    return run_rows(m, piece, first_row, n_rows, &largest, out, err);
}
