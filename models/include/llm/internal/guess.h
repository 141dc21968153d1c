/* Guesses which tokens follow, for speculative decoding (llm/internal/guesser.h): from what
 * followed the last tokens where they stood before, or from a smaller model. How many guesses are
 * made is learned while the text is generated: how often guesses are right, and what a step with so
 * many of them costs. Text that cannot be guessed costs little more than without guesses.
 *
 *     llm_guess *g;
 *     if (llm_guess_lookup(&g, NULL, &err) != GGL_OK) ...
 *     const llm_guesser *guesser = llm_guess_guesser(g);
 *     llm_engine_params p = {sizeof p, .., .guesser = &guesser, .n_guessers = 1, .n_guess_max = 16};
 *     ..
 *     llm_engine_free(engine);
 *     llm_guess_free(g);
 *
 * The session of the engine needs .n_rows = n_guess_max + 1. Guesses never change the text, only
 * how fast it comes; so the times that are measured change no text either.
 *
 * Threads: a guesser belongs to the thread of its engine. */
#ifndef LLM_GUESS_H
#define LLM_GUESS_H

#include "llm/internal/guesser.h"
#include "llm/internal/session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_GUESS_MOST 64 /* the largest n_max */

typedef struct llm_guess llm_guess;

typedef struct llm_guess_params {
    size_t size;   /* sizeof(llm_guess_params): ggl/internal/params.h */
    int64_t n_max; /* most guesses at once, 1 .. LLM_GUESS_MOST; default 16 */
    int64_t n_min; /* fewer guesses are not used; default 0 */
    /* true: always as many guesses as can be made, whatever they cost */
    bool always;
    /* The time in ns, from any start. NULL: the system's. */
    int64_t (*clock)(void *ctx);
    void *clock_ctx;
} llm_guess_params;

void llm_guess_fill_default(llm_guess_params *p, size_t size); /* ggl/internal/params.h */
static inline llm_guess_params llm_guess_default(void) {
    llm_guess_params p;
    llm_guess_fill_default(&p, sizeof p);
    return p;
}

/* Guesses from the sequence itself: it looks up the longest of the recent places where the last two
 * or more tokens stood before. It keeps at most 60 bytes for each token of the sequence, and its time
 * grows with the new tokens alone.
 * p NULL: the defaults. GGL_USAGE, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_guess_lookup(llm_guess **out, const llm_guess_params *p,
                                          ggl_error *err);

/* The rows that a session tells of its tokens (llm_session_params.rows), kept for guesses by the model's own layers, until these
 * have read them. Guessers of all its slots share them. */
typedef struct llm_heard llm_heard;

/* Listens to the session, which must live as long. GGL_USAGE: it tells no rows; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_heard_new(llm_heard **out, llm_session *session, ggl_error *err);
/* Listens to another session of the same model and number of slots, whose slots are empty, before the first one is freed. */
void llm_heard_follow(llm_heard *h, llm_session *session);
/* While it is paused, the session is not listened to. What was heard before is dropped. */
void llm_heard_pause(llm_heard *h, bool is_paused);
void llm_heard_free(llm_heard *h); /* NULL is fine */

/* One of several layers that guess, after the first (llm_session_params.guess_layer), and what it reads: rows that the session of the layer
 * before it tells, or, if llm_arch_result.guess_apart, those of the model. Both are borrowed. */
typedef struct llm_draft_layer {
    llm_session *session;
    llm_heard *heard;
} llm_draft_layer;

typedef struct llm_draft_params {
    size_t size;          /* sizeof(llm_draft_params): ggl/internal/params.h */
    llm_session *session; /* of the draft model, allocated; borrowed */
    /* The session's slot that follows the sequence. Guessers of other sequences may use other slots of
     * the session, on the same thread. Default 0. */
    int slot;
    /* Guessing ends at the first token whose probability is less. 0: it does not; default 0.75. */
    float p_min;
    /* NULL: the session's model reads tokens. Else it is a session of guesses (llm_session_params.only), which also reads
     * these rows; one that was not heard counts as zeros, which makes guesses worse. Borrowed. */
    llm_heard *heard;
    /* The layers that guess after that of `session`, in their order: each guesses one token further, and the last one all that follow. Their
     * sessions have the same slots and context. If llm_arch_result.guess_in_turn, it is one session instead, which reads what a block tells of its
     * places, and no rows that are heard. */
    const llm_draft_layer *more;
    int n_more; /* less than LLM_GUESS_MOST */
} llm_draft_params;

void llm_draft_fill_default(llm_draft_params *p, size_t size); /* ggl/internal/params.h */
static inline llm_draft_params llm_draft_default(void) {
    llm_draft_params p;
    llm_draft_fill_default(&p, sizeof p);
    return p;
}

/* Guesses what another model, the draft, finds likeliest, or what the model's own layers for this do. A sequence longer than the context of the
 * draft's session is not guessed. If a run of the draft fails, there are no more guesses (see
 * llm_guess_failed). GGL_USAGE, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_guess_draft(llm_guess **out, const llm_guess_params *p,
                                         const llm_draft_params *draft, ggl_error *err);
/* Returns GGL_OK if the draft's tokens mean what the model's do: the same texts for the same ids, at
 * most 128 more or fewer of them, the same begin and end tokens. Otherwise GGL_UNSUPPORTED; the
 * message says which token differs. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_draft_fits(const llm_tokenizer *model,
                                                         const llm_tokenizer *draft,
                                                         ggl_error *err);

void llm_guess_free(llm_guess *g); /* NULL is fine */
/* For llm_engine_params.guesser: valid until g is freed. */
const llm_guesser *llm_guess_guesser(llm_guess *g);
/* Returns in how many steps no guess was used because guesses would not have paid, of *n_steps in which it was asked. */
int64_t llm_guess_declined(const llm_guess *g, int64_t *n_steps);
/* Returns why guessing ended, with a message in *err; GGL_OK: it has not. */
ggl_status llm_guess_failed(const llm_guess *g, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
