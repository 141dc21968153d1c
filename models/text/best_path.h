/* The way to cut a text into tokens whose scores have the highest sum (Viterbi's algorithm), found
 * character by character.
 *
 *     place:   0       1        2        3        4        of a stretch "abcd"
 *              '-- a --'-- bc ----------'-- d ----'        the best way to 4 goes by 3 and 1
 *              '------- ab -----'-- cd -----------'        another one
 *
 * Where no token can reach over a place, each way goes by it. There the text falls apart: what was
 * read before is given out and forgotten, so that memory is needed for the longest such part only.
 * Each character costs a step for each of its bytes and for each token that ends with it: no more than
 * BEST_PATH_NESTED, so that the time is linear in the text, whatever the vocabulary is. */
#ifndef LLM_BEST_PATH_H
#define LLM_BEST_PATH_H

#include "automaton.h"

enum { BEST_PATH_NESTED = 512 };

/* GGL_LIMIT: more tokens than these are found at one place of some text, as x, xx, xxx, .. are. */
GGL_NODISCARD ggl_status llm_best_path_check(const automaton *tokens, ggl_error *err);

typedef struct best_path_step {
    double score;  /* of the best way here */
    uint32_t from; /* the place before this one; UINT32_MAX: there is no way here */
    int32_t id;    /* the token from there to here; -1: an unknown character */
} best_path_step;

/* The caller sets the first block, and zeroes the rest. */
typedef struct best_path {
    const automaton *tokens; /* built for the direction in which characters come */
    const double *score;     /* of each id; finite */
    double unknown;          /* the score of a character that is no token */
    bool unknown_always;     /* also where the character is a token */
    bool backward;           /* characters come from the end of the text to its beginning */
    /* Takes the tokens in the order in which they were read; id -1: the character s[0..n). */
    ggl_status (*emit)(void *context, int32_t id, const char *s, size_t n);
    void *context;

    int32_t state;
    char *text; /* of this part; characters in the order of reading, their bytes as they came */
    best_path_step *step; /* [n + 1] */
    size_t n, cap_text, cap_step;
} best_path;

/* The next character, s[0..n) with n > 0. Of equally good ways the one whose last token is the
 * longest counts. What emit returns other than GGL_OK ends it; GGL_NOMEM; GGL_LIMIT: a part has
 * 2^32 bytes. */
GGL_NODISCARD ggl_status llm_best_path_add(best_path *p, const char *s, size_t n, ggl_error *err);
/* Gives out what is left; then p is as new. */
GGL_NODISCARD ggl_status llm_best_path_end(best_path *p);
void llm_best_path_fini(best_path *p);

#endif
