#include "log_softmax.h"

#include <math.h>
#include <string.h>

#include "ggl/internal/math.h"

/* Numbers of a block, and sums that are added up side by side: loops over both are as long as compilers need to use vectors. */
enum { BLOCK = 64, SUMS = 8 };

/* e^x for x that is 0 at most, with an error below 2^-22 of it; below 2^-126 it is 0. The polynomial is that of ggl_expf, with products and sums
 * that are rounded one by one, so that any processor computes it in vectors, with the same bits. */
static float exp_below(float x) {
    const float magic = 0x1.8p23f; /* the low bits of `shifted` are the exponent */
    const float bounded = x < -87 ? -87 : x, shifted = bounded * 0x1.715476p0f + magic,
                n = shifted - magic;
    float r = bounded - n * 0x1.63p-1f; /* exact: 10 bits by 7 */
    r = r - n * -0x1.bd0106p-13f;
    float y = 0x1.6d11fep-10f;
    y = y * r + 0x1.120c62p-7f;
    y = y * r + 0x1.555518p-5f;
    y = y * r + 0x1.5554dcp-3f;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    uint32_t bits, shift;
    memcpy(&bits, &y, sizeof bits);
    memcpy(&shift, &shifted, sizeof shift);
    bits += shift << 23;
    memcpy(&y, &bits, sizeof y);
    return x < -87 ? 0 : y;
}

/* Sums of the vocabulary: number i is added to sum i % SUMS. */
typedef struct sums {
    double at[SUMS];
} sums;

static void add_block(sums *s, const float *x) {
    for (int i = 0; i < BLOCK; i += SUMS)
        for (int k = 0; k < SUMS; k++)
            s->at[k] += (double)x[i + k];
}

static double total(const sums *s) {
    return ((s->at[0] + s->at[4]) + (s->at[2] + s->at[6])) +
           ((s->at[1] + s->at[5]) + (s->at[3] + s->at[7]));
}

/* Adds e^(x[i] - max) of up to BLOCK numbers. */
static void add_exps(sums *s, const float *x, int64_t n, float max) {
    float e[BLOCK] = {0};
    for (int64_t i = 0; i < n; i++)
        e[i] = exp_below(x[i] - max);
    add_block(s, e);
}

/* Sets the largest and the smallest number, and whether all are finite. */
static void find_range(log_softmax *s, const float *x, int64_t n) {
    float max = x[0], min = x[0];
    uint32_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        odd |= (bits & 0x7f800000) == 0x7f800000;
        max = x[i] > max ? x[i] : max;
        min = x[i] < min ? x[i] : min;
    }
    s->max = max;
    s->min = min;
    s->finite = !odd;
}

log_softmax llm_log_softmax_of(const float *logits, int64_t n) {
    log_softmax s = {.top = 0};
    sums sum = {{0}};
    find_range(&s, logits, n);
    if (!s.finite)
        return s;
    while (logits[s.top] != s.max)
        s.top++;
    for (int64_t i = 0; i < n; i += BLOCK)
        add_exps(&sum, logits + i, n - i < BLOCK ? n - i : BLOCK, s.max);
    s.log_sum = ggl_log(total(&sum));
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
