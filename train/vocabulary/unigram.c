/* Learns the pieces of a unigram model (Kudo 2018), as SentencePiece does.
 *
 * A text is a sequence of pieces, each of which comes with its own probability, whatever is before it. Training begins with many
 * pieces (seeds.c). Two rounds of expectation and maximization make their probabilities fit the words: a round counts how often each piece
 * is expected, over all ways to cut the words, and makes probabilities of these counts. Then the pieces whose loss would cost the
 * least likelihood go, a quarter at a time, until there are a tenth more than wanted; of these, the likeliest stay.
 *
 * Counts become probabilities by exp(digamma(count)) instead of the count itself: the mean of the logarithm under a sparse prior,
 * which takes something from rare pieces. Pieces expected less than 0.5 times go; characters stay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/math.h"
#include "unigram_impl.h"

#define LEAST  0.5  /* times a piece has to be expected */
#define SHRINK 0.75 /* the share of pieces that stay, each time */
#define EXTRA  1.1  /* how many of the wanted pieces there are when the likeliest are chosen */
enum { ROUNDS = 2 };

double llm_digamma(double x) {
    double sum = 0;
    for (; x < 7; x++)
        sum -= 1 / x;
    x -= 0.5;
    const double a = 1 / x, b = a * a, c = b * b;
    return sum + ggl_log(x) + b * (1.0 / 24) - c * (7.0 / 960) + c * b * (31.0 / 8064) -
           c * c * (127.0 / 30720);
}

typedef struct learning {
    llm_tokenizer_trainer *t;
    unigram_pieces u;
    unigram_count *count; /* [n] of the seeds */
    double *loss;         /* [n] */
    uint32_t *number;     /* [n]: for llm_unigram_keep */
    size_t wanted;        /* pieces, with characters */
} learning;

static void clear_counts(learning *l) {
    for (size_t i = 0; i < l->u.n; i++)
        atomic_store_explicit(&l->count[i], 0, memory_order_relaxed);
}

static uint64_t count_of(const learning *l, size_t i) {
    return atomic_load_explicit(&l->count[i], memory_order_relaxed);
}

static bool is_character(const learning *l, size_t i) {
    return i < l->u.x->n_symbols;
}

/* A round of expectation and maximization. */
static ggl_status fit(learning *l, ggl_error *err) {
    double sum = 0;
    size_t n = 0;
    clear_counts(l);
    const ggl_status s = llm_unigram_expect(&l->u, l->count, l->t->p.n_threads, err);
    if (s != GGL_OK)
        return s;
    for (size_t i = 0; i < l->u.n; i++) {
        double count = ldexp((double)count_of(l, i), -UNIGRAM_COUNT_BITS);
        const bool stays = count >= LEAST || is_character(l, i);
        count = count >= LEAST ? count : LEAST;
        l->number[i] = stays ? (uint32_t)n++ : UINT32_MAX;
        l->u.piece[i].p = count;
        sum += stays ? count : 0;
    }
    llm_unigram_keep(&l->u, l->number, n);
    const double all = llm_digamma(sum);
    for (size_t i = 0; i < n; i++) {
        unigram_piece *p = &l->u.piece[i];
        p->score = llm_digamma(p->p) - all;
        p->p = ggl_exp(p->score);
    }
    return GGL_OK;
}

/* A piece, and what it is sorted by. */
typedef struct ranked {
    double value;
    uint32_t i;
} ranked;

static int higher(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Keeps all characters, and of the other pieces those with the highest values, n_most in all, but none whose value is `none`. */
static ggl_status keep_best(learning *l, const double *value, size_t n_most, double none,
                            ggl_error *err) {
    const size_t n_chars = l->u.x->n_symbols;
    ranked *r = ggl_calloc(l->u.n + 1, sizeof *r);
    if (!r)
        return llm_vocabulary_no_memory(err);
    size_t n = 0, kept = n_chars;
    for (size_t i = n_chars; i < l->u.n; i++)
        if (value[i] != none)
            r[n++] = (ranked){value[i], (uint32_t)i};
    qsort(r, n, sizeof *r, higher);
    for (size_t i = 0; i < l->u.n; i++)
        l->number[i] = i < n_chars ? (uint32_t)i : UINT32_MAX;
    for (size_t i = 0; i < n && n_chars + i < n_most; i++)
        l->number[r[i].i] = 0;
    for (size_t i = n_chars; i < l->u.n; i++)
        if (l->number[i] == 0)
            l->number[i] = (uint32_t)kept++;
    ggl_free(r);
    llm_unigram_keep(&l->u, l->number, kept);
    return GGL_OK;
}

/* Removes the pieces whose loss costs the least. */
static ggl_status prune(learning *l, size_t enough, ggl_error *err) {
    clear_counts(l);
    ggl_status s = llm_unigram_cut(&l->u, l->count, l->t->p.n_threads, err);
    if (s == GGL_OK)
        s = llm_unigram_losses(&l->u, l->count, l->loss, l->t->p.n_threads, err);
    if (s != GGL_OK)
        return s;
    for (size_t i = l->u.x->n_symbols; i < l->u.n; i++)
        if (count_of(l, i) == 0)
            l->loss[i] = -INFINITY; /* no cut has it */
    const size_t most = (size_t)(SHRINK * (double)l->u.n);
    return keep_best(l, l->loss, most > enough ? most : enough, -INFINITY, err);
}

/* Fits and prunes in turns. */
static ggl_status learn(learning *l, ggl_error *err) {
    const size_t enough = (size_t)(EXTRA * (double)l->wanted), begin = l->u.n;
    for (ggl_status s = GGL_OK;;) {
        for (int i = 0; i < ROUNDS && s == GGL_OK; i++)
            s = fit(l, err);
        if (s != GGL_OK || l->u.n <= enough)
            return s;
        s = prune(l, enough, err);
        if (s == GGL_OK && !llm_vocabulary_go_on(l->t, "learning pieces", begin - l->u.n,
                                                 begin > enough ? begin - enough : 1))
            s = llm_vocabulary_cancelled(err);
        if (s != GGL_OK)
            return s;
    }
}

/* Adds the piece as a token. */
static ggl_status add_piece(learning *l, size_t i, ggl_error *err) {
    const unigram_piece *p = &l->u.piece[i];
    const train_text *x = l->u.x;
    char s[64 * 4];
    size_t n = 0;
    for (uint32_t k = 0; k < p->n; k++)
        n += llm_vocabulary_spell(x->code[x->at[p->at + k] - 1], s + n);
    return llm_vocabulary_add_token(l->t, (train_token){.s = {s, n},
                                                        .score = (float)p->score,
                                                        .type = TRAINED_NORMAL,
                                                        .n = p->n}) >= 0
               ? GGL_OK
               : llm_vocabulary_no_memory(err);
}

/* Chooses the likeliest pieces, and adds them in the order of their probabilities. */
static ggl_status finish(learning *l, ggl_error *err) {
    llm_tokenizer_trainer *t = l->t;
    const size_t n_chars = l->u.x->n_symbols;
    for (size_t i = 0; i < l->u.n; i++)
        l->loss[i] = l->u.piece[i].score;
    ggl_status s = keep_best(l, l->loss, l->wanted, INFINITY, err);
    ranked *r = s == GGL_OK ? ggl_calloc(l->u.n + 1, sizeof *r) : NULL;
    if (!r)
        return s == GGL_OK ? llm_vocabulary_no_memory(err) : s;
    for (size_t i = 0; i < l->u.n; i++)
        r[i] = (ranked){l->u.piece[i].score, (uint32_t)i};
    for (size_t i = 0; i < n_chars; i++)
        t->token[l->u.x->token[i]].score = (float)r[i].value;
    qsort(r + n_chars, l->u.n - n_chars, sizeof *r, higher);
    for (size_t i = n_chars; i < l->u.n && s == GGL_OK; i++)
        s = add_piece(l, r[i].i, err);
    ggl_free(r);
    clear_counts(l);
    if (s == GGL_OK)
        s = llm_unigram_cut(&l->u, l->count, t->p.n_threads, err);
    for (size_t i = 0; i < l->u.n && s == GGL_OK; i++)
        t->n_tokens += count_of(l, i);
    return s;
}

ggl_status llm_vocabulary_unigram(llm_tokenizer_trainer *t, const train_text *x, ggl_error *err) {
    learning l = {.t = t, .wanted = (size_t)t->p.n_vocab - (t->n - x->n_symbols)};
    ggl_status s = llm_vocabulary_go_on(t, "sorting", 0, 0) ? llm_unigram_seed(t, x, &l.u, err)
                                                            : llm_vocabulary_cancelled(err);
    if (s == GGL_OK) {
        l.count = ggl_calloc(l.u.n + 1, sizeof *l.count);
        l.loss = ggl_calloc(l.u.n + 1, sizeof *l.loss);
        l.number = ggl_calloc(l.u.n + 1, sizeof *l.number);
        s = l.count && l.loss && l.number ? learn(&l, err) : llm_vocabulary_no_memory(err);
    }
    if (s == GGL_OK)
        s = finish(&l, err);
    llm_unigram_fini(&l.u);
    ggl_free(l.count);
    ggl_free(l.loss);
    ggl_free(l.number);
    return s;
}
