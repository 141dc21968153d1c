/* Finds the tokens of a text whose scores have the highest sum (Viterbi's algorithm), character by
 * character.
 *
 *     place:   0       1        2        3        4        in the text "abcd"
 *              '-- a --'-- bc ----------'-- d ----'        the best path to 4 goes through 1 and 3
 *              '------- ab -----'-- cd -----------'        another path
 *
 * If no token spans a place, all paths go through it. The text is split there: tokens before it
 * are emitted and forgotten, so that memory is needed only for the longest such part. A
 * character takes a step per byte and per token that ends with it, at most BEST_PATH_NESTED, so
 * that the time is linear in the text for any vocabulary. */
#ifndef LLM_BEST_PATH_H
#define LLM_BEST_PATH_H

#include "automaton.h"

enum { BEST_PATH_NESTED = 512 };

/* Fails with GGL_LIMIT if more than BEST_PATH_NESTED tokens can end at the same place of a text,
 * as with x, xx, xxx, .. */
GGL_NODISCARD ggl_status llm_best_path_check(const automaton *tokens, ggl_error *err);

typedef struct best_path_step {
    double score;  /* of the best path to this place */
    uint32_t from; /* the previous place on it; UINT32_MAX: no path leads here */
    int32_t id;    /* the token between the two; -1: an unknown character */
} best_path_step;

/* The caller sets the first block and zeroes the rest. */
typedef struct best_path {
    const automaton *tokens; /* built for the direction in which characters are added */
    const double *score;     /* per id; finite */
    double unknown;          /* the score of a character that is no token */
    bool unknown_always;     /* even if the character is a token */
    bool backward;           /* characters are added from the end of the text */
    /* Sums go on where the text is split, so that they are rounded as if it were not. */
    bool goes_on;
    double score_before; /* of the parts that were emitted; 0 without goes_on */
    /* Called for each token in reading order; id -1: the unknown character s[0..n). */
    ggl_status (*emit)(void *context, int32_t id, const char *s, size_t n);
    void *context;

    int32_t state;
    char *text; /* the current part: characters in reading order, their bytes in text order */
    best_path_step *step; /* [n + 1] */
    size_t n, cap_text, cap_step;
} best_path;

/* Adds the next character, s[0..n) with n > 0. Of paths with equal scores, the one with the
 * longest last token counts. Fails with GGL_NOMEM, GGL_LIMIT (a part of 2^32 bytes) or emit's
 * result, if not GGL_OK. */
GGL_NODISCARD ggl_status llm_best_path_add(best_path *p, const char *s, size_t n, ggl_error *err);
/* Emits the remaining tokens and resets p. */
GGL_NODISCARD ggl_status llm_best_path_end(best_path *p);
void llm_best_path_fini(best_path *p);

#endif
