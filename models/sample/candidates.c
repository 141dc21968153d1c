/* Logits of the whole vocabulary, and lists of candidates made from them. */
#include "sampler_impl.h"

#include "ggl/internal/math.h"

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS, SMALL = 256 };

uint64_t llm_candidate_key(float logit, int32_t id) {
    uint32_t u;
    logit = logit != logit ? -INFINITY : logit + 0.0f;
    memcpy(&u, &logit, sizeof u);
    /* descending order: positive before negative, larger before smaller */
    u = u & 0x80000000 ? u : ~(u | 0x80000000);
    return (uint64_t)u << 32 | (uint32_t)id;
}

int32_t llm_candidate_id(uint64_t key) {
    return (int32_t)(key & 0x7fffffff);
}

float llm_candidate_logit(uint64_t key) {
    uint32_t u = (uint32_t)(key >> 32);
    float logit;
    u = u & 0x80000000 ? u : ~(u | 0x80000000);
    memcpy(&logit, &u, sizeof logit);
    return logit;
}

/* --- the whole vocabulary --------------------------------------------------------------------- */

/* Copies 32 logits, with NaN where the bit is 0, and minus infinity for NaN. (Compilers vectorize a
 * table of bits, but not shifts by i.) */
static void copy_word(float *to, const float *from, uint32_t bits) {
#define BITS_8(i)                                                                                  \
    1u << (i), 2u << (i), 4u << (i), 8u << (i), 16u << (i), 32u << (i), 64u << (i), 128u << (i)
    static const uint32_t bit[32] = {BITS_8(0), BITS_8(8), BITS_8(16), BITS_8(24)};
#undef BITS_8
    if (bits == 0) {
        for (int i = 0; i < 32; i++)
            to[i] = NAN;
        return;
    }
    for (int i = 0; i < 32; i++) {
        const float x = from[i] == from[i] ? from[i] : -INFINITY;
        to[i] = bits & bit[i] ? x : NAN;
    }
}

/* Copies the logits of allowed tokens; the others become NaN. */
static void copy_allowed(llm_sampler *s, const float *logits, const uint32_t *allowed) {
    const int32_t n = s->n_vocab, n_whole = n / 32 * 32;
    float from[32] = {0}, to[32];
    for (int32_t i = 0; i < n_whole; i += 32)
        copy_word(s->copy + i, logits + i, allowed[i / 32]);
    if (n_whole < n) {
        memcpy(from, logits + n_whole, (size_t)(n - n_whole) * sizeof *from);
        copy_word(to, from, allowed[n_whole / 32]);
        memcpy(s->copy + n_whole, to, (size_t)(n - n_whole) * sizeof *to);
    }
}

static void copy_all(llm_sampler *s, const float *logits) {
    for (int32_t i = 0; i < s->n_vocab; i++)
        s->copy[i] = logits[i] == logits[i] ? logits[i] : -INFINITY;
}

static void add_biases(llm_sampler *s) {
    for (size_t i = 0; i < s->n_bias; i++) {
        float *x = &s->copy[s->bias[i].id];
        *x = s->bias[i].bias == -INFINITY ? NAN : *x + s->bias[i].bias;
    }
}

/* True if the token must not be chosen. */
static inline bool is_forbidden(const llm_sampler *s, int32_t id) {
    return s->is_copied && s->logits[id] != s->logits[id];
}

static int32_t first_allowed(const llm_sampler *s) {
    int32_t id = 0;
    while (id < s->n_vocab && is_forbidden(s, id))
        id++;
    return id;
}

bool llm_candidates_begin(llm_sampler *s, const float *logits, const uint32_t *allowed) {
    s->is_copied = allowed || s->n_bias > 0 || s->changes_logits;
    if (allowed)
        copy_allowed(s, logits, allowed);
    else if (s->is_copied)
        copy_all(s, logits);
    if (s->is_copied)
        add_biases(s);
    s->logits = s->is_copied ? s->copy : logits;
    s->is_list = s->is_sorted = s->is_weighed = false;
    s->n = 0;
    s->t = 1;
    return first_allowed(s) < s->n_vocab;
}

/* Skips ids, from `id` on, that cannot beat a candidate with logit `bar` and a lower id; returns
 * the first that may. This passes over most of a vocabulary, so it looks at several at once. */
static int32_t next_above(const llm_sampler *s, int32_t id, float bar) {
    enum { BLOCK = 32 };
    const float *x = s->logits;
    for (; id + BLOCK <= s->n_vocab; id += BLOCK) {
        int any = 0;
        for (int k = 0; k < BLOCK; k++)
            any |= x[id + k] > bar;
        if (any)
            break;
    }
    while (id < s->n_vocab && !(x[id] > bar))
        id++;
    return id;
}

int32_t llm_candidates_best(const llm_sampler *s) {
    int32_t best = first_allowed(s);
    for (int32_t id = best;; best = id) {
        const float bar = s->logits[best];
        id = next_above(s, id + 1, bar == bar ? bar : -INFINITY);
        if (id >= s->n_vocab)
            return best;
    }
}

/* --- lists ------------------------------------------------------------------------------------ */

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

static void heap_make(uint64_t *key, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        heap_sink(key, n, i);
}

/* Sorts a heap, ascending. */
static void heap_unwind(uint64_t *key, size_t n) {
    while (n-- > 1) {
        uint64_t last = key[n];
        key[n] = key[0];
        key[0] = last;
        heap_sink(key, n, 0);
    }
}

void llm_candidates_list(llm_sampler *s, float least) {
    if (s->is_list)
        return;
    s->is_list = true;
    s->n = 0;
    for (int32_t id = 0; id < s->n_vocab; id++)
        if ((s->logits[id] >= least || least == -INFINITY) && !is_forbidden(s, id))
            s->key[s->n++] = llm_candidate_key(s->logits[id], id);
}

/* Adds candidates whose logit is minus infinity (or NaN, unless that means forbidden), up to k. */
static void add_lowest(llm_sampler *s, size_t k) {
    for (int32_t id = 0; id < s->n_vocab && s->n < k; id++)
        if (s->is_copied ? s->logits[id] == -INFINITY : !(s->logits[id] > -INFINITY))
            s->key[s->n++] = llm_candidate_key(s->logits[id], id);
}

/* Finds the best k, in order. The heap holds the best so far; a new one must beat its root. */
static void select_heap(llm_sampler *s, size_t k) {
    int32_t id = next_above(s, 0, -INFINITY);
    s->n = 0;
    for (; id < s->n_vocab && s->n < k; id = next_above(s, id + 1, -INFINITY))
        s->key[s->n++] = llm_candidate_key(s->logits[id], id);
    if (s->n < k)
        add_lowest(s, k);
    heap_make(s->key, s->n);
    while (id < s->n_vocab) {
        const float bar = llm_candidate_logit(s->key[0]);
        if (s->logits[id] > bar) {
            s->key[0] = llm_candidate_key(s->logits[id], id);
            heap_sink(s->key, s->n, 0);
        }
        id = next_above(s, id + 1, llm_candidate_logit(s->key[0]));
    }
    heap_unwind(s->key, s->n);
    s->is_list = s->is_sorted = true;
}

/* Sorts all keys: a stable radix sort by the logits' bits. Equal logits must be in order of ids. */
static void radix_sort(llm_sampler *s) {
    for (int shift = 32; shift < 64; shift += RADIX_BITS) {
        uint32_t at[RADIX] = {0}, sum = 0;
        for (size_t i = 0; i < s->n; i++)
            at[s->key[i] >> shift & (RADIX - 1)]++;
        for (int d = 0; d < RADIX; d++) {
            uint32_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < s->n; i++)
            s->swap[at[s->key[i] >> shift & (RADIX - 1)]++] = s->key[i];
        uint64_t *t = s->key;
        s->key = s->swap;
        s->swap = t;
    }
}

static bool is_by_id(const llm_sampler *s) {
    for (size_t i = 1; i < s->n; i++)
        if ((uint32_t)s->key[i] < (uint32_t)s->key[i - 1])
            return false;
    return true;
}

void llm_candidates_sort(llm_sampler *s) {
    llm_candidates_list(s, -INFINITY);
    if (s->is_sorted)
        return;
    if (s->swap && s->n > SMALL && is_by_id(s)) {
        radix_sort(s);
    } else {
        heap_make(s->key, s->n);
        heap_unwind(s->key, s->n);
    }
    s->is_sorted = true;
    s->is_weighed = false;
}

void llm_candidates_top(llm_sampler *s, size_t k) {
    if (!s->is_list && k <= SAMPLER_HEAP_MAX)
        select_heap(s, k);
    llm_candidates_sort(s);
    if (k < s->n)
        s->n = k;
}

void llm_candidates_keep(llm_sampler *s, size_t first, size_t end) {
    if (first > 0) {
        memmove(s->key, s->key + first, (end - first) * sizeof *s->key);
        s->is_weighed = false;
    }
    s->n = end - first;
}

/* --- weights ---------------------------------------------------------------------------------- */

/* weight[i] = e^((logit_i - logit_0) / t). A logit equal to the largest has weight 1 even if both
 * are infinite. */
double llm_candidates_weigh(llm_sampler *s) {
    llm_candidates_sort(s);
    const double largest = s->n > 0 ? llm_candidate_logit(s->key[0]) : 0;
    double sum = 0;
    for (size_t i = 0; i < s->n && !s->is_weighed; i++) {
        const double x = llm_candidate_logit(s->key[i]);
        s->weight[i] = x == largest ? 1 : ggl_exp((x - largest) / s->t);
    }
    for (size_t i = 0; i < s->n; i++)
        sum += s->weight[i];
    s->is_weighed = true;
    return sum;
}

void llm_candidates_scale(llm_sampler *s) {
    if (s->t == 1)
        return;
    for (int32_t i = 0; !s->is_list && i < s->n_vocab; i++)
        s->copy[i] = (float)(s->copy[i] / s->t);
    for (size_t i = 0; s->is_list && i < s->n; i++)
        s->key[i] = llm_candidate_key((float)(llm_candidate_logit(s->key[i]) / s->t),
                                      llm_candidate_id(s->key[i]));
    s->is_sorted = s->is_weighed = false;
    s->t = 1;
}
