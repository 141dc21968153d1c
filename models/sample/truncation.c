/* Stages that remove candidates, temperature, and the draw: docs/sampling.md. A list is never
 * empty when a stage gets it, and each leaves at least one candidate. A stage that removes makes
 * the list even if it then removes nothing: plan_list in sampler.c relies on that. */
#include "sampler_impl.h"

#include <float.h>

#include "ggl/internal/math.h"

/* --- top-n-sigma ------------------------------------------------------------------------------ */

typedef struct spread {
    double largest, sum,
        squares; /* of logits above minus infinity; squares: of distances to mean */
    size_t n;
} spread;

static double nth_logit(const llm_sampler *s, size_t i) {
    return s->is_list ? llm_candidate_logit(s->key[i]) : s->logits[i];
}

static spread spread_of(const llm_sampler *s) {
    const size_t n = s->is_list ? s->n : (size_t)s->n_vocab;
    spread a = {.largest = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        const double x = nth_logit(s, i);
        if (!(x > -INFINITY))
            continue;
        a.largest = x > a.largest ? x : a.largest;
        a.sum += x;
        a.n++;
    }
    const double mean = a.n > 0 ? a.sum / (double)a.n : 0;
    for (size_t i = 0; i < n; i++) {
        const double x = nth_logit(s, i);
        if (x > -INFINITY)
            a.squares += (x - mean) * (x - mean);
    }
    return a;
}

/* Returns the smallest float that is not less than x. */
static float float_above(double x) {
    const float f = (float)x;
    return f < x ? nextafterf(f, INFINITY) : f;
}

void llm_sample_top_n_sigma(llm_sampler *s) {
    const spread a = spread_of(s);
    double least = -INFINITY; /* if some are plus infinity, they have all the weight anyway */
    if (a.n > 0 && isfinite(a.largest))
        least = fmax(a.largest - s->p.top_n_sigma * sqrt(a.squares / (double)a.n), -FLT_MAX);
    if (!s->is_list) {
        llm_candidates_list(s, float_above(least));
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (llm_candidate_logit(s->key[i]) >= least)
            s->key[kept++] = s->key[i];
    s->n = kept;
}

/* --- by rank and probability ------------------------------------------------------------------ */

void llm_sample_top_k(llm_sampler *s) {
    llm_candidates_top(s, (size_t)s->p.top_k);
}

/* Keeps the fewest candidates whose weights reach top_p of the sum. */
void llm_sample_top_p(llm_sampler *s) {
    const double wanted = s->p.top_p * llm_candidates_weigh(s);
    double sum = 0;
    size_t kept = 0;
    while (kept < s->n) {
        sum += s->weight[kept++];
        if (sum >= wanted)
            break;
    }
    llm_candidates_keep(s, 0, kept);
}

/* Keeps candidates with at least min_p times the weight of the first, which is 1. */
void llm_sample_min_p(llm_sampler *s) {
    size_t kept = 1;
    (void)llm_candidates_weigh(s);
    while (kept < s->n && s->weight[kept] >= s->p.min_p)
        kept++;
    llm_candidates_keep(s, 0, kept);
}

/* Removes the candidates with a probability of at least xtc_threshold, all but the last of them. */
void llm_sample_xtc(llm_sampler *s) {
    llm_candidates_list(s, -INFINITY);
    if (!(llm_rng_uniform(s->rng) < s->p.xtc_probability))
        return;
    const double least = s->p.xtc_threshold * llm_candidates_weigh(s);
    size_t first = 0;
    while (first + 1 < s->n && s->weight[first + 1] >= least)
        first++;
    llm_candidates_keep(s, first, s->n);
}

/* --- by entropy ------------------------------------------------------------------------------- */

/* Returns the surprise of a candidate, -log p. log_sum: the logarithm of the weights' sum. */
static double surprise(const llm_sampler *s, size_t i, double log_sum) {
    const double x = llm_candidate_logit(s->key[i]), largest = llm_candidate_logit(s->key[0]);
    return x == largest ? log_sum : log_sum - (x - largest) / s->t;
}

/* Returns the entropy of the candidates: the sum of p times the surprise. */
static double entropy(const llm_sampler *s, double sum) {
    const double log_sum = ggl_log(sum);
    double h = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->weight[i] > 0)
            h += s->weight[i] / sum * surprise(s, i, log_sum);
    return h;
}

/* Adds the candidate at `end`, and those after it with the same logit. Returns the new end. */
static size_t grow_right(const llm_sampler *s, size_t end, double *kept) {
    const uint64_t logit = s->key[end] >> 32;
    while (end < s->n && s->key[end] >> 32 == logit)
        *kept += s->weight[end++];
    return end;
}

/* Adds the candidate before `first`, and those before it with the same logit. */
static size_t grow_left(const llm_sampler *s, size_t first, double *kept) {
    const uint64_t logit = s->key[first - 1] >> 32;
    while (first > 0 && s->key[first - 1] >> 32 == logit)
        *kept += s->weight[--first];
    return first;
}

/* Keeps those whose surprise is closest to the entropy until their weights reach typ_p of the sum;
 * equal logits stay or go together. Surprises ascend, so what is kept is a run: it begins where the
 * surprise passes the entropy, and grows on the closer side. */
void llm_sample_typ_p(llm_sampler *s) {
    const double sum = llm_candidates_weigh(s), h = entropy(s, sum), log_sum = ggl_log(sum),
                 wanted = s->p.typ_p * sum;
    size_t first = 0;
    while (first < s->n && surprise(s, first, log_sum) < h)
        first++;
    size_t end = first;
    double kept = 0;
    do {
        const double left = first > 0 ? h - surprise(s, first - 1, log_sum) : INFINITY,
                     right = end < s->n ? surprise(s, end, log_sum) - h : INFINITY;
        if (first > 0 && left <= right)
            first = grow_left(s, first, &kept);
        else
            end = grow_right(s, end, &kept);
    } while (kept < wanted && end - first < s->n);
    llm_candidates_keep(s, first, end);
}

void llm_sample_temperature(llm_sampler *s) {
    const double t = s->p.temp, range = s->p.dynatemp_range;
    double dynamic = t;
    if (range > 0) {
        const double sum = llm_candidates_weigh(s), low = t > range ? t - range : 0;
        if (s->n < 2)
            return;
        double share = entropy(s, sum) / ggl_log((double)s->n);
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        dynamic = low + (t + range - low) * ggl_pow(share, s->p.dynatemp_exponent);
    }
    if (dynamic > 0)
        s->t *= dynamic;
    else
        llm_candidates_keep(s, 0, 1);
    s->is_weighed = false;
}

/* --- the draw --------------------------------------------------------------------------------- */

/* Draws a candidate: the first whose running sum of weights exceeds u times the total, for a
 * random u in 0 .. 1. */
size_t llm_sample_draw(llm_sampler *s) {
    const double wanted = llm_candidates_weigh(s) * llm_rng_uniform(s->rng);
    double sum = 0;
    size_t last = 0; /* result if rounding makes `wanted` equal to the total */
    for (size_t i = 0; i < s->n; i++) {
        sum += s->weight[i];
        if (sum > wanted)
            return i;
        if (s->weight[i] > 0)
            last = i;
    }
    return last;
}

/* Keeps candidates whose surprise in bits is at most mu, draws one, and moves mu so that the
 * surprise comes to mirostat_tau (Basu et al. 2021, algorithm 2). */
size_t llm_sample_mirostat(llm_sampler *s) {
    const double all = llm_candidates_weigh(s);
    size_t kept = 1;
    while (kept < s->n && -ggl_log2(s->weight[kept] / all) <= s->mu)
        kept++;
    llm_candidates_keep(s, 0, kept);
    const double sum = llm_candidates_weigh(s);
    const size_t i = llm_sample_draw(s);
    s->mu -= s->p.mirostat_eta * (-ggl_log2(s->weight[i] / sum) - s->p.mirostat_tau);
    return i;
}
