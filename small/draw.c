/* The next token: the best one, or one that is drawn, as models/sample does it. */
#include "../models/sample/sampler_impl.h"
#include "ggl/internal/math.h"
#include "small.h"

int32_t small_greedy(const float *logits, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (llm_candidate_key(logits[i], i) < llm_candidate_key(logits[best], best))
            best = i;
    return best;
}

void small_seed(small_random *r, uint64_t seed) {
    llm_rng_seed(r->s, seed);
}

/* The weight of a candidate beside the largest one. */
static double weight_of(uint64_t key, double largest, double temperature) {
    const double x = llm_candidate_logit(key);
    return x == largest ? 1 : ggl_exp((x - largest) / temperature);
}

int32_t small_draw(small_random *r, const float *logits, int32_t n, int32_t k, double temperature,
                   uint64_t *key) {
    int32_t n_key = 0;
    if (!(temperature > 0) || k < 1)
        return small_greedy(logits, n);
    for (int32_t i = 0; i < n; i++) { /* the k smallest keys, in order */
        const uint64_t this = llm_candidate_key(logits[i], i);
        if (n_key == k && this > key[k - 1])
            continue;
        int32_t at = n_key < k ? n_key++ : k - 1;
        for (; at > 0 && key[at - 1] > this; at--)
            key[at] = key[at - 1];
        key[at] = this;
    }
    const double largest = llm_candidate_logit(key[0]);
    double all = 0, sum = 0;
    int32_t last = 0;
    for (int32_t i = 0; i < n_key; i++)
        all += weight_of(key[i], largest, temperature);
    const double wanted = all * llm_rng_uniform(r->s);
    for (int32_t i = 0; i < n_key; i++) {
        const double w = weight_of(key[i], largest, temperature);
        sum += w;
        if (sum > wanted)
            return llm_candidate_id(key[i]);
        last = w > 0 ? i : last;
    }
    return llm_candidate_id(key[last]);
}
