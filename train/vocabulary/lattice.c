/* The ways to cut words into pieces: the sum over all of them, the likeliest one, and what a piece is replaced by.
 *
 * A word is a lattice: its places are the nodes, and a piece leads from the place where it begins to that where it ends. forward[i] is the
 * sum of the probabilities of all ways from the beginning to place i, backward[i] from there to the end. Long words have
 * probabilities smaller than doubles can be: when all sums that are still read are tiny, they are multiplied by 2^300, and it is
 * counted how often. */
#include <math.h>
#include <string.h>

#include "common/work_share.h"
#include "ggl/internal/math.h"
#include "unigram_impl.h"

enum { WORDS_AT_ONCE = 1024, PIECES_AT_ONCE = 1024, SHIFT = 300 };
#define TINY 0x1p-300

/* Memory of a thread, for the places of a word. */
typedef struct scratch {
    double *forward, *backward; /* [longest word + 1]; Viterbi: the best score in forward */
    int *shifts;                /* [..]: of forward */
    uint32_t *from;             /* [..]: the last piece of the best way; UINT32_MAX: no way */
} scratch;

typedef struct passing {
    const unigram_pieces *u;
    unigram_count *count;
    const unigram_count *known; /* of llm_unigram_losses */
    double *loss, sum, n_words; /* sum: of the counts; n_words: of the texts */
    scratch *of_thread;
    void (*word)(struct passing *x, scratch *s, size_t word);
} passing;

/* --- the sum over all ways -------------------------------------------------------------------- */

/* If v[0..n] are all tiny, but not all 0, makes them larger. Returns how often. */
static int shift(double *v, size_t n) {
    int times = 0;
    for (;; times++) {
        double most = 0;
        for (size_t i = 0; i <= n; i++)
            most = v[i] > most ? v[i] : most;
        if (most >= TINY || most == 0)
            return times;
        for (size_t i = 0; i <= n; i++)
            v[i] *= 0x1p300;
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static void sum_forward(const unigram_pieces *u, scratch *s, size_t at, size_t n) {
    int shifts = 0;
    memset(s->forward, 0, (n + 1) * sizeof *s->forward);
    s->forward[0] = 1;
    for (size_t i = 0; i <= n; i++) {
        if (s->forward[i] < TINY)
            shifts += shift(s->forward + i, smaller(u->longest, n - i));
        s->shifts[i] = shifts;
        if (i == n)
            break;
        for (size_t k = u->first[at + i]; k < u->first[at + i + 1]; k++) {
            const unigram_piece *p = &u->piece[u->begins[k]];
            s->forward[i + p->n] += s->forward[i] * p->p;
        }
    }
}

static void expect_word(passing *x, scratch *s, size_t word) {
    const unigram_pieces *u = x->u;
    const size_t at = u->word_at[word], n = u->word_at[word + 1] - at - 1;
    const double units = (double)u->x->weight[word] * (double)(1 << UNIGRAM_COUNT_BITS);
    int shifts = 0;
    sum_forward(u, s, at, n);
    const double per_way = 1 / s->forward[n];
    s->backward[n] = 1;
    for (size_t i = n; i-- > 0;) {
        s->backward[i] = 0;
        const int left = s->shifts[n] - s->shifts[i] - shifts;
        for (size_t k = u->first[at + i]; k < u->first[at + i + 1]; k++) {
            const unigram_piece *p = &u->piece[u->begins[k]];
            const double rest = p->p * s->backward[i + p->n];
            double share = s->forward[i] * rest * per_way;
            share = left ? ldexp(share, SHIFT * left) : share;
            s->backward[i] += rest;
            const uint64_t times = (uint64_t)(units * share + 0.5);
            if (times > 0)
                atomic_fetch_add_explicit(&x->count[u->begins[k]], times, memory_order_relaxed);
        }
        if (s->backward[i] < TINY)
            shifts += shift(s->backward + i, smaller(u->longest, n - i));
    }
}

/* --- the likeliest way ------------------------------------------------------------------------ */

/* Finds the best way through the n places from `at` on, without the piece `without`. Of equal ways, that whose last piece is
 * longest. */
static void find_best(const unigram_pieces *u, scratch *s, size_t at, size_t n, uint32_t without) {
    for (size_t i = 1; i <= n; i++)
        s->from[i] = UINT32_MAX;
    s->forward[0] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = u->first[at + i]; k < u->first[at + i + 1]; k++) {
            const uint32_t id = u->begins[k];
            const unigram_piece *p = &u->piece[id];
            const size_t to = i + p->n;
            if (to > n || id == without)
                continue;
            const double score = s->forward[i] + p->score;
            if (s->from[to] != UINT32_MAX && score <= s->forward[to])
                continue;
            s->forward[to] = score;
            s->from[to] = id;
        }
}

static void cut_word(passing *x, scratch *s, size_t word) {
    const unigram_pieces *u = x->u;
    const size_t at = u->word_at[word], n = u->word_at[word + 1] - at - 1;
    find_best(u, s, at, n, UINT32_MAX);
    for (size_t i = n; i > 0; i -= u->piece[s->from[i]].n)
        atomic_fetch_add_explicit(&x->count[s->from[i]], (uint64_t)u->x->weight[word],
                                  memory_order_relaxed);
}

/* Computes the loss of a piece; here a "word" is a piece. */
static void lose_piece(passing *x, scratch *s, size_t i) {
    const unigram_pieces *u = x->u;
    const unigram_piece *p = &u->piece[i];
    const double n = (double)atomic_load_explicit(&x->known[i], memory_order_relaxed);
    x->loss[i] = 0;
    if (n == 0 || i < u->x->n_symbols)
        return;
    find_best(u, s, p->at, p->n, (uint32_t)i);
    size_t n_parts = 0;
    for (size_t k = p->n; k > 0; k -= u->piece[s->from[k]].n)
        n_parts++;
    const double all = ggl_log(x->sum + n * (double)(n_parts - 1));
    double instead = 0;
    for (size_t k = p->n; k > 0; k -= u->piece[s->from[k]].n)
        instead +=
            ggl_log((double)atomic_load_explicit(&x->known[s->from[k]], memory_order_relaxed) + n) -
            all;
    x->loss[i] = n / x->n_words * (ggl_log(n) - ggl_log(x->sum) - instead);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void pass_words(void *ctx, size_t i, int thread) {
    passing *x = ctx;
    const size_t begin = i * WORDS_AT_ONCE, end = smaller(begin + WORDS_AT_ONCE, x->u->x->n_words);
    for (size_t w = begin; w < end; w++)
        x->word(x, &x->of_thread[thread], w);
}

static void pass_pieces(void *ctx, size_t i, int thread) {
    passing *x = ctx;
    const size_t begin = i * PIECES_AT_ONCE, end = smaller(begin + PIECES_AT_ONCE, x->u->n);
    for (size_t k = begin; k < end; k++)
        lose_piece(x, &x->of_thread[thread], k);
}

static void free_scratch(scratch *s, int n) {
    for (int i = 0; s && i < n; i++) {
        ggl_free(s[i].forward);
        ggl_free(s[i].backward);
        ggl_free(s[i].shifts);
        ggl_free(s[i].from);
    }
    ggl_free(s);
}

/* Runs a pass over n words or pieces, so many at once. */
static ggl_status run(passing *x, size_t n, size_t at_once, void (*pass)(void *, size_t, int),
                      int n_threads, ggl_error *err) {
    const unigram_pieces *u = x->u;
    size_t most = u->longest;
    for (size_t w = 0; w < u->x->n_words; w++)
        most = u->word_at[w + 1] - u->word_at[w] > most ? u->word_at[w + 1] - u->word_at[w] : most;
    n_threads = n_threads < WORK_MAX_THREADS ? n_threads : WORK_MAX_THREADS;
    const size_t n_passes = (n + at_once - 1) / at_once;
    n_threads = (size_t)n_threads < n_passes ? n_threads : (int)n_passes;
    x->of_thread = ggl_calloc((size_t)n_threads + 1, sizeof *x->of_thread);
    bool ok = x->of_thread != NULL;
    for (int i = 0; i < n_threads && ok; i++) {
        scratch *s = &x->of_thread[i];
        s->forward = ggl_calloc(most + 1, sizeof *s->forward);
        s->backward = ggl_calloc(most + 1, sizeof *s->backward);
        s->shifts = ggl_calloc(most + 1, sizeof *s->shifts);
        s->from = ggl_calloc(most + 1, sizeof *s->from);
        ok = s->forward && s->backward && s->shifts && s->from;
    }
    if (ok)
        llm_work_share(n_threads, n_passes, pass, x);
    free_scratch(x->of_thread, n_threads);
    return ok ? GGL_OK : llm_vocabulary_no_memory(err);
}

ggl_status llm_unigram_expect(const unigram_pieces *u, unigram_count *count, int n_threads,
                              ggl_error *err) {
    passing x = {.u = u, .count = count, .word = expect_word};
    return run(&x, u->x->n_words, WORDS_AT_ONCE, pass_words, n_threads, err);
}

ggl_status llm_unigram_cut(const unigram_pieces *u, unigram_count *count, int n_threads,
                           ggl_error *err) {
    passing x = {.u = u, .count = count, .word = cut_word};
    return run(&x, u->x->n_words, WORDS_AT_ONCE, pass_words, n_threads, err);
}

ggl_status llm_unigram_losses(const unigram_pieces *u, const unigram_count *count, double *loss,
                              int n_threads, ggl_error *err) {
    passing x = {.u = u, .known = count, .loss = loss};
    for (size_t i = 0; i < u->n; i++)
        x.sum += (double)atomic_load_explicit(&count[i], memory_order_relaxed);
    for (size_t w = 0; w < u->x->n_words; w++)
        x.n_words += (double)u->x->weight[w];
    return run(&x, u->n, PIECES_AT_ONCE, pass_pieces, n_threads, err);
}
