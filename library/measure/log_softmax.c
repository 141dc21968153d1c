#include "log_softmax.h"

#include <math.h>
#include <string.h>

#include "ggl/internal/math.h"

log_softmax llm_log_softmax_of(const float *logits, int64_t n) {
    log_softmax s = {.max = logits[0], .min = logits[0], .finite = true};
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        s.finite = s.finite && isfinite(logits[i]);
        if (logits[i] > s.max) {
            s.max = logits[i];
            s.top = i;
        }
        s.min = logits[i] < s.min ? logits[i] : s.min;
    }
    for (int64_t i = 0; i < n && s.finite; i++)
        sum += ggl_exp((double)logits[i] - (double)s.max);
    s.log_sum = s.finite ? ggl_log(sum) : 0;
    return s;
}

double llm_log_softmax_at(const log_softmax *s, const float *logits, int64_t i) {
    return (double)logits[i] - (double)s->max - s->log_sum;
}

enum { HEAD = 4, CODES = 65535 }; /* u16s before the codes; the largest code */

int64_t llm_log_probs_size(int64_t n) {
    return HEAD + n + n % 2;
}

void llm_log_probs_encode(const log_softmax *s, const float *logits, int64_t n, uint16_t *to) {
    float lowest = s->min > s->max - 16 ? s->min : s->max - 16;
    float head[2] = {(s->max - lowest) / CODES,
                     (float)((double)lowest - (double)s->max - s->log_sum)};
    float inverse = head[0] > 0 ? 1 / head[0] : 0;
    memcpy(to, head, sizeof head);
    for (int64_t i = 0; i < n; i++) {
        float code = logits[i] > lowest ? rintf(inverse * (logits[i] - lowest)) : 0;
        to[HEAD + i] = (uint16_t)(code < CODES ? code : CODES);
    }
    if (n % 2)
        to[HEAD + n] = 0;
}

/* The format rounds a log-probability by at most half a step, 16 / 65535 / 2 = 1.2e-4, and
 * `scale` and `least`, of about 16, to f32; 1e-3 covers both. Probabilities below exp(-16) of
 * the largest get code 0 and thus this value. */
bool llm_log_probs_valid(const uint16_t *row, int64_t n) {
    const double rounding = 1e-3;
    float head[2];
    double sum = 0, raised = 0;
    memcpy(head, row, sizeof head);
    const double scale = head[0], least = head[1];
    if (!(scale >= 0 && least > -1e9 && least + CODES * scale < rounding))
        return false;
    const double least_p = CODES * scale > 15.9 ? ggl_exp(least) : 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ggl_exp(scale * row[HEAD + i] + least);
        raised += row[HEAD + i] == 0 ? least_p : 0;
    }
    return sum > 1 - rounding && sum - raised < 1 + rounding;
}

log_compared llm_log_compare(const log_softmax *s, const float *logits, int64_t n,
                             const uint16_t *base, int64_t token) {
    float head[2];
    double kld = 0;
    int64_t top = 0;
    memcpy(head, base, sizeof head);
    const double scale = head[0], least = head[1];
    const uint16_t *code = base + HEAD;
    for (int64_t i = 0; i < n; i++) {
        double log_p = scale * code[i] + least;
        top = code[i] > code[top] ? i : top;
        if (log_p > -16)
            kld += ggl_exp(log_p) * (log_p - llm_log_softmax_at(s, logits, i));
    }
    log_compared c = {.nll = -llm_log_softmax_at(s, logits, token),
                      .nll_base = -(scale * code[token] + least),
                      .kld = kld,
                      .same_top = top == s->top};
    c.p_diff = ggl_exp(-c.nll) - ggl_exp(-c.nll_base);
    return c;
}
