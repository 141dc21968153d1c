/* Log-probabilities: log p = (logit - largest) - log(sum of e^(logit - largest)), all in double, the
 * sum in order of ids. */
#include "llm/internal/logprobs.h"

#include <math.h>

#include "ggl/internal/math.h"

static double logit_at(const float *logits, int32_t id) {
    return logits[id] == logits[id] ? logits[id] : -INFINITY;
}

/* logit - largest; 0 for equals, also if both are infinite. */
static double distance(double logit, double largest) {
    return logit == largest ? 0 : logit - largest;
}

/* While tokens are collected, `logprob` holds the logit. True if a comes after b. */
static bool is_after(llm_logprob a, llm_logprob b) {
    return a.logprob != b.logprob ? a.logprob < b.logprob : a.id > b.id;
}

/* Moves x[i] down in a heap of n whose root comes last. */
static void sink(llm_logprob *x, size_t n, size_t i) {
    const llm_logprob moved = x[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && is_after(x[c + 1], x[c]);
        if (!is_after(x[c], moved))
            break;
        x[i] = x[c];
    }
    x[i] = moved;
}

/* Fills x with the n largest logits, in order. */
static void collect(const float *logits, int32_t n_vocab, llm_logprob *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (llm_logprob){(int32_t)i, logit_at(logits, (int32_t)i)};
    for (size_t i = n / 2; i-- > 0;)
        sink(x, n, i);
    for (int32_t id = (int32_t)n; id < n_vocab && n > 0; id++)
        if (logits[id] > x[0].logprob) {
            x[0] = (llm_logprob){id, logits[id]};
            sink(x, n, 0);
        }
    for (size_t i = n; i-- > 1;) {
        const llm_logprob last = x[i];
        x[i] = x[0];
        x[0] = last;
        sink(x, i, 0);
    }
}

llm_logprobs_base llm_logprobs_base_of(const float *logits, int32_t n_vocab) {
    llm_logprobs_base b = {.largest = -INFINITY};
    bool has_nan = false, any = false;
    double sum = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        b.largest = logits[id] > b.largest ? logits[id] : b.largest;
        has_nan = has_nan || isnan(logits[id]);
        any = any || isfinite(logits[id]);
    }
    for (int32_t id = 0; id < n_vocab; id++)
        sum += ggl_exp(distance(logit_at(logits, id), b.largest));
    b.log_sum = ggl_log(sum);
    b.is_finite = any && !has_nan;
    return b;
}

double llm_logprob_at(const llm_logprobs_base *b, const float *logits, int32_t id) {
    return distance(logit_at(logits, id), b->largest) - b->log_sum;
}

size_t llm_logprobs(const float *logits, int32_t n_vocab, llm_logprob *chosen, llm_logprob *top,
                    size_t n) {
    const llm_logprobs_base b = llm_logprobs_base_of(logits, n_vocab);
    if (chosen)
        chosen->logprob = llm_logprob_at(&b, logits, chosen->id);
    n = n < (size_t)n_vocab ? n : (size_t)n_vocab;
    collect(logits, n_vocab, top, n);
    for (size_t i = 0; i < n; i++)
        top[i].logprob = distance(top[i].logprob, b.largest) - b.log_sum;
    return n;
}
