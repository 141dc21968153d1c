/* Beam search as transformers defines it (BeamSearchScorer): the likeliest of several texts that are written side by side.
 *
 * Each beam is in a place, which holds the tokens of its text: a slot of a session. The caller runs them, maybe beside other
 * texts; at first there is one beam, which has written nothing yet, in place 0:
 *
 *     .. run the prompt in place 0, and call llm_beams_logits(b, 0, logits) for its last token ..
 *     while (llm_beams_step(b, &is_done, &err) == GGL_OK && !is_done) {
 *         for (i = 0; i < llm_beams_n(b); i++)
 *             .. let the place of llm_beams_at(b, i) hold what that of its parent does, if they differ ..
 *         for (i = 0; i < llm_beams_n(b); i++)
 *             .. run its token in its place, and call llm_beams_logits ..
 *     }
 *
 * A place that gets a copy is not the parent of any beam, so copies may be made in any order.
 *
 * Threads: a search belongs to one at a time. */
#ifndef LLM_BEAMS_H
#define LLM_BEAMS_H

#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LLM_MAX_BEAMS = 64 };

typedef struct llm_beams_params {
    int32_t n;             /* beams, and places: 1 .. LLM_MAX_BEAMS */
    double length_penalty; /* a text's score is the sum of its log-probabilities / length ^ this */
    bool early;            /* end as soon as n texts have ended */
    int64_t n_max;         /* tokens at most, 1 or more */
    bool ignore_end;       /* tokens that end a text are as others */
} llm_beams_params;

typedef struct llm_beams llm_beams;

typedef struct llm_beam {
    int32_t place, parent; /* parent: the place of the text that it continues */
    int32_t token;
} llm_beam;

/* t: tells which tokens end a text; NULL: none do. It is not used afterwards. writable: a bit for each token, as llm_session_writable has it; borrowed; a token
 * whose bit is 0 is never chosen, but counts among the probabilities (as logits processors of transformers do). NULL: all may be. GGL_USAGE: a parameter is out of range. */
GGL_NODISCARD ggl_status llm_beams_new(llm_beams **out, const llm_beams_params *p,
                                       const llm_tokenizer *t, int32_t n_vocab,
                                       const uint32_t *writable, ggl_error *err);
void llm_beams_free(llm_beams *b); /* NULL is fine */

/* Takes the logits [n_vocab] after the text in a place. The order of the places does not matter. */
void llm_beams_logits(llm_beams *b, int32_t place, const float *logits);
/* Forgets the logits since the last step, which are to come again. */
void llm_beams_again(llm_beams *b);
/* Chooses the next beams, after the logits of all. *is_done: the search has ended. GGL_FORMAT: the logits were not
 * finite; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_beams_step(llm_beams *b, bool *is_done, ggl_error *err);
/* Ends the search now: the texts of the beams count as they are. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_beams_cut(llm_beams *b, ggl_error *err);

int32_t llm_beams_n(const llm_beams *b); /* beams that are left */
llm_beam llm_beams_at(const llm_beams *b, int32_t i);
/* Returns the *n tokens of the best text, without the one that ends it, valid until b is freed; rank 1: the second best, and so
 * on. *end: the one that ends it; -1: the text was cut off. NULL: there are not so many texts. */
const int32_t *llm_beams_best(const llm_beams *b, int32_t rank, size_t *n, int32_t *end);

#ifdef __cplusplus
}
#endif
#endif
