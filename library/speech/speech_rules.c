#include "speech_rules.h"

#include <math.h>

#include "ggl/internal/math.h"

static void forbid(float *logits, int32_t from, int32_t to) {
    for (int32_t id = from; id < to; id++)
        logits[id] = -INFINITY;
}

/* Sets to[i] to e^((x[i] - top) * at), 0 below SPEECH_NOTHING: 2^z for z = n + f, f of -0.5 to 0.5, by the series of 2^f, to 2e-7. A loop
 * without calls, which compilers turn into vectors; the same bits on every machine. */
static void exponentials(const float *x, int32_t n, float top, float at, float *to) {
    for (int32_t i = 0; i < n; i++) {
        const float d = (x[i] - top) * at, e = d > SPEECH_NOTHING ? d : SPEECH_NOTHING;
        const float z = e * 1.44269504f;
        const int32_t whole = (int32_t)(z - 0.5f);
        const float f = z - (float)whole;
        float p = 0.000154035304f;
        p = p * f + 0.00133335581f;
        p = p * f + 0.00961812911f;
        p = p * f + 0.0555041087f;
        p = p * f + 0.240226507f;
        p = p * f + 0.693147181f;
        p = p * f + 1.0f;
        union {
            int32_t bits;
            float power;
        } two = {.bits = (whole + 127) * (1 << 23)};
        to[i] = d > SPEECH_NOTHING ? p * two.power : 0.0f;
    }
}

static float largest(const float *x, int32_t n) {
    float top = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

double llm_speech_shares(const float *logits, int32_t n, double temperature, float *to) {
    double sum = 0;
    exponentials(logits, n, largest(logits, n), (float)(1 / temperature), to);
    for (int32_t i = 0; i < n; i++)
        sum += (double)to[i];
    return sum;
}

double llm_speech_log_sum(const float *logits, int32_t n) {
    float part[256];
    enum { PART = sizeof part / sizeof *part };
    const float top = largest(logits, n);
    double sum = 0;
    if (isinf(top))
        return (double)top;
    for (int32_t i = 0; i < n; i += PART) {
        const int32_t m = n - i < PART ? n - i : PART;
        exponentials(logits + i, m, top, 1, part);
        for (int32_t k = 0; k < m; k++)
            sum += (double)part[k];
    }
    return (double)top + ggl_log(sum);
}

/* Times come in pairs, except that one may end the text; and they do not go back. */
static void apply_pairs(const speech_rules *r, const int32_t *id, size_t n, float *logits) {
    const speech_tokens *t = r->tokens;
    const int32_t end = t->first_time + t->n_times;
    const bool last = n >= 1 && speech_is_time(t, id[n - 1]);
    const bool before = n < 2 || speech_is_time(t, id[n - 2]);
    if (last && before)
        forbid(logits, t->first_time, end); /* after a pair, or the first one: words */
    else if (last)
        forbid(logits, 0, t->end); /* after the end of a segment: a time, or the end of the text */
    size_t k = n;
    while (k > 0 && !speech_is_time(t, id[k - 1]))
        k--;
    if (k == 0)
        return;
    /* a segment ends after it has begun, but the next one may begin where it ends */
    forbid(logits, t->first_time, id[k - 1] + (last && !before ? 0 : 1));
}

/* The first token is a time, and not a late one. */
static void apply_first(const speech_rules *r, float *logits) {
    const speech_tokens *t = r->tokens;
    const int32_t end = t->first_time + t->n_times;
    forbid(logits, 0, t->first_time);
    forbid(logits, end, t->n_vocab);
    if (r->most_first >= 0 && r->most_first + 1 < t->n_times)
        forbid(logits, t->first_time + r->most_first + 1, end);
}

/* If a time is likelier than any other token, it is a time. */
static void prefer_times(const speech_rules *r, float *logits) {
    const speech_tokens *t = r->tokens;
    const double times = llm_speech_log_sum(logits + t->first_time, t->n_times);
    if (times > (double)largest(logits, t->first_time))
        forbid(logits, 0, t->first_time);
}

void llm_speech_rules_apply(const speech_rules *r, const int32_t *id, size_t n, float *logits) {
    const speech_tokens *t = r->tokens;
    for (int32_t k = 0; k < t->n_vocab; k++)
        if (t->is_never[k])
            logits[k] = -INFINITY;
    if (n == 0) { /* the text is not empty */
        logits[t->end] = -INFINITY;
        if (t->blank >= 0)
            logits[t->blank] = -INFINITY;
    }
    if (!r->times) {
        forbid(logits, t->first_time, t->first_time + t->n_times);
        return;
    }
    apply_pairs(r, id, n, logits);
    if (n == 0)
        apply_first(r, logits);
    prefer_times(r, logits);
}
