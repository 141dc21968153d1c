/* Log-probabilities of logits, and how those of two models differ. Computed with functions that give the same bits on every
 * machine, and added in double: those of logits in eight sums side by side, others in the order of the vocabulary. */
#ifndef LIBRARY_LOG_SOFTMAX_H
#define LIBRARY_LOG_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* log p(i) = logits[i] - max - log_sum, log_sum = log sum_i exp(logits[i] - max). */
typedef struct log_softmax {
    float max, min;
    int64_t top; /* the first with this maximum */
    double log_sum;
    bool finite; /* every logit is finite; if not, the other members have no meaning */
} log_softmax;

log_softmax llm_log_softmax_of(const float *logits, int64_t n);
double llm_log_softmax_at(const log_softmax *s, const float *logits, int64_t i);

/* The log-probabilities of a position in 16 bits each, as in llama.cpp's files of logits:
 *
 *     | scale: f32 | least: f32 | code[0] .. code[n-1]: u16 | another 0 if n is odd |
 *     log p(i) = scale * code[i] + least
 *
 * least is the smallest log-probability, but at most 16 below the largest. */
int64_t llm_log_probs_size(int64_t n); /* u16s per position */
void llm_log_probs_encode(const log_softmax *s, const float *logits, int64_t n, uint16_t *to);

/* Returns whether codes can be those of probabilities: the largest is at most 1, and their sum
 * is 1, apart from what the format loses. */
bool llm_log_probs_valid(const uint16_t *code, int64_t n);

/* A position by two models: the base, given as codes, and another. */
typedef struct log_compared {
    double nll, nll_base; /* -log p(token) */
    double kld;           /* sum_i p_base(i) * (log p_base(i) - log p(i)), over p_base > exp(-16) */
    double p_diff;        /* p(token) - p_base(token) */
    bool same_top;
} log_compared;

log_compared llm_log_compare(const log_softmax *s, const float *logits, int64_t n,
                             const uint16_t *base, int64_t token);

#endif
