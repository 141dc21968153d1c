/* Guesses that are made all at once: the newest token and masks behind it run as a block behind the elements of the text, which see each other. Of some
 * models, what the block says of each place is then read in turn, with the guess before. */
#ifndef LLM_GUESS_BLOCK_H
#define LLM_GUESS_BLOCK_H

#include "llm/internal/guess.h"

typedef struct guess_block {
    llm_session *session, *turn; /* turn: reads what the block says, in turn; or NULL */
    int slot;
    int64_t n;     /* elements of a block; 0: the session does not guess in blocks */
    int64_t first; /* the first of them that has a guess: 0 or 1 */
    float *told;   /* [LLM_GUESS_MOST][n_told]: what `turn` reads */
    int64_t n_told;
} guess_block;

typedef struct block_guesses {
    int64_t n_max, n; /* of those that are wanted, those that were made */
    int32_t id[LLM_GUESS_MOST];
    float p[LLM_GUESS_MOST]; /* how likely each is right */
} block_guesses;

/* Sets *b; the sessions are borrowed. Frees nothing on failure: llm_block_fini does. */
GGL_NODISCARD ggl_status llm_block_init(guess_block *b, llm_session *s, llm_session *turn, int slot,
                                        ggl_error *err);
void llm_block_fini(guess_block *b);
/* Runs a block of n elements, which begins with the newest token, and makes g->n_max guesses, or fewer: none behind one less likely than p_min. The
 * block stays in the slot. */
GGL_NODISCARD ggl_status llm_block_guess(guess_block *b, int32_t newest, int64_t n, float p_min,
                                         block_guesses *g, ggl_error *err);

/* Returns the likeliest guess and about its probability *p, 0 if scores are not finite; -1: the model named no token. */
int32_t llm_guess_of(const llm_session *s, const float *logits, float *p);

#endif
