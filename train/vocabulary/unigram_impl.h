/* Between unigram.c, seeds.c and lattice.c: pieces with probabilities, and where the words have them. */
#ifndef LLM_UNIGRAM_IMPL_H
#define LLM_UNIGRAM_IMPL_H

#include <stdatomic.h>

#include "trainer_impl.h"

/* A string of characters with a probability. The first train_text.n_symbols pieces are the characters, which stay. */
typedef struct unigram_piece {
    uint32_t at;  /* a place where the words have it */
    uint32_t n;   /* characters */
    double score; /* the logarithm of its probability */
    double p;     /* its probability */
} unigram_piece;

/* The pieces, and for each place of the words those that begin there, the shortest first. */
typedef struct unigram_pieces {
    const train_text *x;
    uint32_t longest; /* the most characters of a piece */
    unigram_piece *piece;
    size_t n;
    size_t *first;     /* [x->n_at + 1]: of the pieces of a place in `begins` */
    uint32_t *begins;  /* piece numbers */
    uint32_t *word_at; /* [x->n_words + 1]: where each word begins in x->at */
} unigram_pieces;

/* seeds.c: makes the characters and the n_seed best strings of several characters that the words have at least min_count
 * times. Best is what makes up most of the text. x outlives u; on failure u can be freed. */
GGL_NODISCARD ggl_status llm_unigram_seed(const llm_tokenizer_trainer *t, const train_text *x,
                                          unigram_pieces *u, ggl_error *err);
void llm_unigram_fini(unigram_pieces *u);
/* Keeps some pieces: number[i] is the new number of piece i, in the same order, UINT32_MAX: it goes. n: how many stay. */
void llm_unigram_keep(unigram_pieces *u, const uint32_t *number, size_t n);

/* lattice.c. Counts are fixed-point numbers, so that their sums do not depend on the order in which threads add to them. */
enum { UNIGRAM_COUNT_BITS = 20 };
typedef _Atomic uint64_t unigram_count;

/* Adds to count[i], in units of 2^-20, how often piece i is expected in the words: over all ways to cut each word, by the
 * probability of the way (Baum and Welch's forward and backward pass). */
GGL_NODISCARD ggl_status llm_unigram_expect(const unigram_pieces *u, unigram_count *count,
                                            int n_threads, ggl_error *err);
/* Adds to count[i], in whole numbers, how often piece i is in the likeliest way to cut each word (Viterbi). */
GGL_NODISCARD ggl_status llm_unigram_cut(const unigram_pieces *u, unigram_count *count,
                                         int n_threads, ggl_error *err);
/* Computes for each piece how much likelihood the texts would lose without it, where the likeliest cut has it count[i] times:
 * the pieces into which it would be cut instead take its place. loss[i] is 0 for a piece that no cut has, and for characters. */
GGL_NODISCARD ggl_status llm_unigram_losses(const unigram_pieces *u, const unigram_count *count,
                                            double *loss, int n_threads, ggl_error *err);

/* unigram.c: the derivative of the logarithm of the gamma function, for x > 0. */
double llm_digamma(double x);

#endif
