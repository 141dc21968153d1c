/* Log-probabilities of tokens by the model itself: of its logits as they are, before any stage of a
 * sampler. The same bits on every machine.
 *
 * Threads: the function has no state; any number of threads may call it at the same time. */
#ifndef LLM_LOGPROBS_H
#define LLM_LOGPROBS_H

#include <stdbool.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_logprob {
    int32_t id;
    double logprob; /* natural logarithm; 0 or less, minus infinity if the probability is 0 */
} llm_logprob;

/* Writes the n likeliest tokens to top (all, if there are fewer), the likeliest first; of equals the
 * lower id. Returns how many. chosen may be NULL; else chosen->id is a token, whose logprob is set.
 * logits: [n_vocab], n_vocab >= 1. NaN counts as minus infinity. Logits of plus infinity share
 * evenly, and so do all if all are minus infinity. Allocates nothing; the time is
 * n_vocab log n at most. */
size_t llm_logprobs(const float *logits, int32_t n_vocab, llm_logprob *chosen, llm_logprob *top,
                    size_t n);

/* What the probabilities of all tokens after one row of logits have in common. */
typedef struct llm_logprobs_base {
    double largest, log_sum;
    bool is_finite; /* no logit is NaN, and one is finite */
} llm_logprobs_base;
llm_logprobs_base llm_logprobs_base_of(const float *logits, int32_t n_vocab);
/* The logprob of one token, with the bits that llm_logprobs gives. */
double llm_logprob_at(const llm_logprobs_base *b, const float *logits, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
