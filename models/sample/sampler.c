/* Chooses a token from logits. docs/sampling.md defines this exactly, including the generator.
 *
 * A candidate is one 64-bit key: the logit in the upper half, mapped so that larger logits
 * become smaller numbers, and the id in the lower half. Ascending keys are the order that the
 * definition uses: by descending logit, then by ascending id. */
#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/math.h"
#include "llm/sampler.h"

enum {
    HEAP_MAX = 1024, /* largest top_k that uses a heap; above it all candidates are sorted */
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS
};

struct llm_sampler {
    llm_sampler_params p;
    int32_t n_vocab;
    uint64_t rng[4];
    uint64_t *key;  /* [n_key] candidates, in order */
    uint64_t *swap; /* [n_key] for sorting; NULL if the heap is used */
    double *weight; /* [n_key] e^((logit - largest) / temp) */
    size_t n_key;
    /* The last n_window accepted tokens, a ring; count[id]: how often it contains the id. */
    int32_t *window, *count;
    size_t n_window, cap_window, next_window;
};

llm_sampler_params llm_sampler_default(void) {
    return (llm_sampler_params){
        .temp = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .repeat_penalty = 1,
        .repeat_last_n = 64,
        .seed = 0,
    };
}

/* --- generator: xoshiro256** (Blackman & Vigna 2018), seeded by splitmix64 (Steele et al. 2014)
 * --- */

static uint64_t rotate_left(uint64_t x, int k) {
    return x << k | x >> (64 - k);
}

static void rng_seed(uint64_t s[4], uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        s[i] = z ^ z >> 31;
    }
}

static uint64_t rng_next(uint64_t s[4]) {
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* --- candidates ------------------------------------------------------------------------------- */

/* Makes a key. NaN counts as minus infinity, -0 as 0. */
static uint64_t candidate(float logit, int32_t id) {
    uint32_t u;
    logit = logit != logit ? -INFINITY : logit + 0.0f;
    memcpy(&u, &logit, sizeof u);
    /* descending order: positive before negative, larger before smaller */
    u = u & 0x80000000 ? u : ~(u | 0x80000000);
    return (uint64_t)u << 32 | (uint32_t)id;
}

static int32_t candidate_id(uint64_t key) {
    return (int32_t)(key & 0x7fffffff);
}

static float candidate_logit(uint64_t key) {
    uint32_t u = (uint32_t)(key >> 32);
    float logit;
    u = u & 0x80000000 ? u : ~(u | 0x80000000);
    memcpy(&logit, &u, sizeof logit);
    return logit;
}

/* Returns the key of `id`, after the repeat penalty. */
static uint64_t candidate_at(const llm_sampler *s, const float *logits, int32_t id) {
    float x = logits[id];
    if (s->cap_window > 0 && s->count[id] > 0)
        x = x > 0 ? x / s->p.repeat_penalty : x * s->p.repeat_penalty;
    return candidate(x, id);
}

/* Skips ids, from `id` on, that cannot beat a candidate with logit `bar` and a lower id; returns
 * the first that may. This passes over most of a vocabulary. A penalty >= 1 only lowers logits, so
 * it need not be applied for that. */
static int32_t next_above(const llm_sampler *s, const float *logits, int32_t id, float bar) {
    if (s->p.repeat_penalty >= 1)
        while (id < s->n_vocab && !(logits[id] > bar))
            id++;
    return id;
}

/* Moves key[i] down in a heap of n keys whose root is the largest. */
static void heap_sink(uint64_t *key, size_t n, size_t i) {
    uint64_t k = key[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && key[c + 1] > key[c];
        if (key[c] <= k)
            break;
        key[i] = key[c];
    }
    key[i] = k;
}

/* Returns the id of the best candidate. */
static int32_t select_best(const llm_sampler *s, const float *logits) {
    uint64_t best = candidate_at(s, logits, 0);
    for (int32_t id = 1;; id++) {
        id = next_above(s, logits, id, candidate_logit(best));
        if (id >= s->n_vocab)
            return candidate_id(best);
        uint64_t c = candidate_at(s, logits, id);
        best = c < best ? c : best;
    }
}

/* Finds the n_key best candidates, in order. The heap holds the best so far; a new one must beat
 * its root. */
static void select_heap(llm_sampler *s, const float *logits) {
    size_t k = s->n_key;
    for (size_t i = 0; i < k; i++)
        s->key[i] = candidate_at(s, logits, (int32_t)i);
    for (size_t i = k / 2; i-- > 0;)
        heap_sink(s->key, k, i);
    for (int32_t id = (int32_t)k;; id++) {
        id = next_above(s, logits, id, candidate_logit(s->key[0]));
        if (id >= s->n_vocab)
            break;
        uint64_t c = candidate_at(s, logits, id);
        if (c < s->key[0]) {
            s->key[0] = c;
            heap_sink(s->key, k, 0);
        }
    }
    for (size_t n = k; n-- > 1;) {
        uint64_t last = s->key[n];
        s->key[n] = s->key[0];
        s->key[0] = last;
        heap_sink(s->key, n, 0);
    }
}

/* Sorts all candidates: a stable radix sort by the logits' bits, with the ids ascending from the
 * start. */
static void select_sort(llm_sampler *s, const float *logits) {
    size_t n = (size_t)s->n_vocab;
    for (size_t i = 0; i < n; i++)
        s->key[i] = candidate_at(s, logits, (int32_t)i);
    for (int shift = 32; shift < 64; shift += RADIX_BITS) {
        uint32_t at[RADIX] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[s->key[i] >> shift & (RADIX - 1)]++;
        for (int d = 0; d < RADIX; d++) {
            uint32_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            s->swap[at[s->key[i] >> shift & (RADIX - 1)]++] = s->key[i];
        uint64_t *t = s->key;
        s->key = s->swap;
        s->swap = t;
    }
}

/* --- filters: take and return a number of candidates, at least 1 ------------------------------ */

/* Sets weight[i] = e^((logit_i - logit_0) / temp). A logit equal to the largest has weight 1
 * even if both are infinite. */
static void weigh(llm_sampler *s, size_t n, double temp) {
    double largest = candidate_logit(s->key[0]);
    for (size_t i = 0; i < n; i++) {
        double x = candidate_logit(s->key[i]);
        s->weight[i] = x == largest ? 1 : ggl_exp((x - largest) / temp);
    }
}

static double weight_sum(const llm_sampler *s, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += s->weight[i];
    return sum;
}

/* Keeps the fewest candidates whose weights reach top_p of the sum. */
static size_t keep_top_p(const llm_sampler *s, size_t n) {
    if (s->p.top_p >= 1)
        return n;
    double wanted = s->p.top_p * weight_sum(s, n), sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += s->weight[i];
        if (sum >= wanted)
            return i + 1;
    }
    return n;
}

/* Keeps candidates with at least min_p times the weight of the first, which is 1. */
static size_t keep_min_p(const llm_sampler *s, size_t n) {
    size_t kept = 1;
    if (s->p.min_p <= 0)
        return n;
    while (kept < n && s->weight[kept] >= s->p.min_p)
        kept++;
    return kept;
}

/* Draws a candidate: the first whose running sum of weights exceeds u times the total, for a
 * random u in 0 .. 1. */
static size_t draw(llm_sampler *s, size_t n) {
    double u = (double)(rng_next(s->rng) >> 11) * 0x1p-53;
    double wanted = u * weight_sum(s, n), sum = 0;
    size_t last = 0; /* result if rounding makes `wanted` equal to the total */
    for (size_t i = 0; i < n; i++) {
        sum += s->weight[i];
        if (sum > wanted)
            return i;
        if (s->weight[i] > 0)
            last = i;
    }
    return last;
}

int32_t llm_sampler_next(llm_sampler *s, const float *logits) {
    if (s->p.temp <= 0)
        return select_best(s, logits);
    if (s->swap)
        select_sort(s, logits);
    else
        select_heap(s, logits);
    size_t n = s->p.top_k > 0 && (size_t)s->p.top_k < s->n_key ? (size_t)s->p.top_k : s->n_key;
    if (s->p.top_p < 1 || s->p.min_p > 0) {
        weigh(s, n, 1);
        n = keep_top_p(s, n);
        n = keep_min_p(s, n);
    }
    weigh(s, n, s->p.temp);
    return candidate_id(s->key[draw(s, n)]);
}

void llm_sampler_accept(llm_sampler *s, int32_t id) {
    if (s->cap_window == 0 || id < 0 || id >= s->n_vocab)
        return;
    if (s->n_window == s->cap_window)
        s->count[s->window[s->next_window]]--;
    else
        s->n_window++;
    s->window[s->next_window] = id;
    s->next_window = (s->next_window + 1) % s->cap_window;
    s->count[id]++;
}

void llm_sampler_forget(llm_sampler *s) {
    for (size_t i = 0; i < s->n_window; i++)
        s->count[s->window[i]] = 0;
    s->n_window = s->next_window = 0;
}

/* --- creation --------------------------------------------------------------------------------- */

static ggl_status check(const llm_sampler_params *p, int32_t n_vocab, int32_t n_last,
                        ggl_error *err) {
    if (n_vocab < 1)
        return ggl_fail(err, GGL_USAGE, "n_vocab is %d, but must be at least 1", (int)n_vocab);
    if (n_last < 0)
        return ggl_fail(err, GGL_USAGE, "n_last is %d, but must be at least 0", (int)n_last);
    if (!isfinite(p->temp))
        return ggl_fail(err, GGL_USAGE, "temp is %g, but must be a finite number", p->temp);
    if (p->top_k < 0)
        return ggl_fail(err, GGL_USAGE, "top_k is %d, but must be at least 0 (all)", (int)p->top_k);
    if (!(p->top_p >= 0 && p->top_p <= 1))
        return ggl_fail(err, GGL_USAGE, "top_p is %g, but must be from 0 to 1", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return ggl_fail(err, GGL_USAGE, "min_p is %g, but must be from 0 to 1", p->min_p);
    if (!(p->repeat_penalty > 0 && isfinite(p->repeat_penalty)))
        return ggl_fail(err, GGL_USAGE, "repeat_penalty is %g, but must be positive and finite",
                        p->repeat_penalty);
    if (p->repeat_last_n < -1)
        return ggl_fail(err, GGL_USAGE, "repeat_last_n is %d, but must be at least -1 (all)",
                        (int)p->repeat_last_n);
    return GGL_OK;
}

ggl_status llm_sampler_new(llm_sampler **out, const llm_sampler_params *p, int32_t n_vocab,
                           int32_t n_last, ggl_error *err) {
    *out = NULL;
    ggl_status status = check(p, n_vocab, n_last, err);
    if (status != GGL_OK)
        return status;
    llm_sampler *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the sampler");
    bool heap = p->top_k > 0 && p->top_k <= HEAP_MAX;
    s->p = *p;
    s->n_vocab = n_vocab;
    s->n_key = (size_t)(heap && p->top_k < n_vocab ? p->top_k : n_vocab);
    if (p->repeat_penalty != 1)
        s->cap_window =
            (size_t)(p->repeat_last_n >= 0 && p->repeat_last_n < n_last ? p->repeat_last_n
                                                                        : n_last);
    rng_seed(s->rng, p->seed);
    bool greedy = p->temp <= 0;
    if (!greedy) {
        s->key = ggl_calloc(s->n_key, sizeof *s->key);
        s->weight = ggl_calloc(s->n_key, sizeof *s->weight);
        s->swap = heap ? NULL : ggl_calloc(s->n_key, sizeof *s->swap);
    }
    if (s->cap_window > 0) {
        s->window = ggl_calloc(s->cap_window, sizeof *s->window);
        s->count = ggl_calloc((size_t)n_vocab, sizeof *s->count);
    }
    if ((!greedy && (!s->key || !s->weight || (!heap && !s->swap))) ||
        (s->cap_window > 0 && (!s->window || !s->count))) {
        llm_sampler_free(s);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the sampler");
    }
    *out = s;
    return GGL_OK;
}

void llm_sampler_free(llm_sampler *s) {
    if (!s)
        return;
    ggl_free(s->key);
    ggl_free(s->swap);
    ggl_free(s->weight);
    ggl_free(s->window);
    ggl_free(s->count);
    ggl_free(s);
}
