/* Penalties for tokens among the last ones: repeat, frequency, presence. */
#include "sampler_impl.h"

/* Returns the logit x of a token that the window contains `count` times. Infinite ones stay. */
static float penalize(const llm_sampler_params *p, float x, int32_t count) {
    if (!isfinite(x))
        return x;
    x = x > 0 ? x / p->repeat_penalty : x * p->repeat_penalty;
    x -= (float)count * p->frequency_penalty + p->presence_penalty;
    return x == x ? x : -INFINITY; /* infinity less infinity */
}

/* In the first phase: visits the window's tokens. Each is changed where it is seen first; its
 * count is negative from there until all were visited. */
static void penalize_window(llm_sampler *s) {
    const size_t n = s->history.n < s->penalty_last_n ? s->history.n : s->penalty_last_n;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = llm_history_at(&s->history, i) & ~SAMPLER_BREAKER_BIT;
        if (s->count[id] > 0) {
            s->copy[id] = penalize(&s->p, s->copy[id], s->count[id]);
            s->count[id] = -s->count[id];
        }
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = llm_history_at(&s->history, i) & ~SAMPLER_BREAKER_BIT;
        s->count[id] = s->count[id] < 0 ? -s->count[id] : s->count[id];
    }
}

void llm_sample_penalties(llm_sampler *s) {
    llm_candidates_scale(s);
    if (!s->is_list) {
        penalize_window(s);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const int32_t id = llm_candidate_id(s->key[i]), count = s->count[id];
        if (count > 0)
            s->key[i] =
                llm_candidate_key(penalize(&s->p, llm_candidate_logit(s->key[i]), count), id);
    }
    s->is_sorted = s->is_weighed = false;
}
