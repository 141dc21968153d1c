/* Generates text: a sequence of tokens in a session's slot, and what chooses the next one. A generator
 * knows which tokens the slot holds, so that a prompt runs only from the first token that differs.
 *
 *     llm_generator_params p = {.size = sizeof p, .session = s, .sampler = sampler, .tokenizer = t};
 *     llm_generator *g;
 *     if (llm_generator_new(&g, &p, &err) != GGL_OK ||
 *         llm_generator_prompt(g, &(llm_prompt){.id = ids, .n = n}, &err) != GGL_OK) ...
 *     int32_t id;
 *     while ((st = llm_generator_next(g, &id, &err)) == GGL_OK && !llm_tokenizer_is_eog(t, id))
 *         show(llm_token_text(t, id, false));
 *
 * The tokens depend only on the model, the prompt, the sampler and its seed, and the grammar. Guesses
 * (see llm_guesser), the reuse of a beginning, and other slots of the session change none of them.
 *
 * Threads: a generator, with its session, sampler and matcher, belongs to one thread at a time. */
#ifndef LLM_GENERATE_H
#define LLM_GENERATE_H

#include "llm/internal/grammar.h"
#include "llm/internal/sampler.h"
#include "llm/internal/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Guesses which tokens will follow, for speculative decoding: the generator runs the guesses in one
 * batch with the last token, then draws as without them, as long as it draws what was guessed. */
typedef struct llm_guesser {
    /* Writes up to n_max tokens that may follow id[0 .. n) to `out`, and returns their number. The
     * first n_same tokens are those of the previous call; after them the sequence may
     * differ from it anywhere. */
    int64_t (*guess)(void *self, const int32_t *id, size_t n, size_t n_same, int32_t *out,
                     int64_t n_max);
    /* Called after the guesses were used: n_right of the n_guessed were drawn, counted up to the first
     * wrong one or the last that was needed. NULL: none. */
    void (*outcome)(void *self, int64_t n_guessed, int64_t n_right);
    /* Called before `guess` with the slot of the session in which the sequence is. NULL: none. */
    void (*in_slot)(void *self, int slot);
    void *self;
} llm_guesser;

typedef struct llm_generator llm_generator;

typedef struct llm_generator_params {
    size_t size;          /* sizeof(llm_generator_params): ggl/internal/params.h */
    llm_session *session; /* borrowed, as are all pointers here, until the generator is freed */
    int slot;             /* nobody else appends to it, or cuts it */
    llm_sampler *sampler;
    const llm_tokenizer *tokenizer; /* NULL if none */
    /* A full context: with `shift`, the first n_keep tokens stay, the older half of the others is
     * dropped, and the rest is read again, as if it were the prompt; else llm_generator_next returns
     * GGL_LIMIT. n_keep -1: the prompt stays. If more than half of the context would stay, its
     * first half does. */
    bool shift;
    int64_t n_keep;
    /* Guesses, copied; NULL: none. The session's n_rows should be n_guess_max + 1 (else rows of logits are
     * computed one at a time), and n_ubatch at least that. */
    const llm_guesser *guesser;
    int64_t n_guess_max;
    /* Called as llm_batch.progress while a prompt or the rest of a shifted context runs; n counts the
     * tokens that had to be run. Returning false stops with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n);
    void *ctx;
} llm_generator_params;

/* The slot is cleared. GGL_USAGE: a parameter is out of range; the message names it. */
GGL_NODISCARD ggl_status llm_generator_new(llm_generator **out, const llm_generator_params *p,
                                           ggl_error *err);
void llm_generator_free(llm_generator *g);

typedef struct llm_prompt {
    const int32_t *id; /* [n]; copied */
    size_t n;
    /* Called for each token in order, with its logits [n_vocab], valid during the call; nothing is
     * reused then. NULL: none. */
    void (*each)(void *ctx, int64_t i, const float *logits);
    void *ctx;
} llm_prompt;

/* Makes the slot's sequence these tokens. The longest common beginning with the sequence that it
 * holds is not run again. A model with states goes back to where its last prompt ended, if that is
 * in the common beginning, else to the start. The sampler's history becomes the prompt, its random
 * generator goes on. GGL_LIMIT: the prompt exceeds the context; GGL_USAGE: it is empty, or a token
 * is out of range; GGL_CANCELLED: the sequence is as far as it was run. */
GGL_NODISCARD ggl_status llm_generator_prompt(llm_generator *g, const llm_prompt *p,
                                              ggl_error *err);

/* Draws the next token and appends it. It is run only when the following one is asked for. *id is -1, and
 * nothing was drawn, if the text is complete by its grammar and nothing may follow.
 * GGL_LIMIT: the context is full, nothing was drawn; GGL_FORMAT: none of the logits is a finite
 * number; GGL_USAGE: the sampler's biases forbid all tokens that the grammar allows; GGL_CANCELLED, and
 * failures of llm_session_eval. */
GGL_NODISCARD ggl_status llm_generator_next(llm_generator *g, int32_t *id, ggl_error *err);

/* Where the matcher allows one token alone, it and those that then follow of necessity run in one batch, at most one less
 * than this and than the session's n_rows. Text, log-probabilities and the sampler's state are those of single steps. */
enum { LLM_FORCED_ROWS = 16 };

/* From now on draws only tokens that the matcher allows, and has it accept them. n_max: the most tokens that
 * the caller draws (less than 0: any number); the text is then completed within them, and before the
 * context is full if that does not shift, where this is possible (llm_matcher_mask). The matcher is
 * borrowed until the next call, and stands at the beginning of what is drawn. m NULL: every token may
 * be drawn. GGL_USAGE: the matcher has no vocabulary, or not that of the model. */
GGL_NODISCARD ggl_status llm_generator_constrain(llm_generator *g, llm_matcher *m, int64_t n_max,
                                                 ggl_error *err);

/* Sets these members of llm_generator_params from now on. n_keep less than -1 counts as -1. */
void llm_generator_set_run(llm_generator *g, bool shift, int64_t n_keep,
                           bool (*progress)(void *ctx, int64_t n_done, int64_t n), void *ctx);
/* Draws with another sampler from now on, which is borrowed like the one before; its history becomes the
 * sequence. */
void llm_generator_set_sampler(llm_generator *g, llm_sampler *sampler);

/* The tokens of the sequence: prompt and drawn ones, without those that a shift dropped. Valid until the
 * next call that changes it. */
const int32_t *llm_generator_tokens(const llm_generator *g, size_t *n);
/* Logits [n_vocab] from which the last token was drawn; NULL if none was. Valid until the next call of
 * llm_generator_next or llm_generator_prompt. */
const float *llm_generator_logits(const llm_generator *g);
/* The sequence becomes these tokens, without running anything: the caller has restored the slot
 * (llm_session_restore), which holds exactly them. n must be llm_session_n_past of the slot. */
GGL_NODISCARD ggl_status llm_generator_adopt(llm_generator *g, const int32_t *id, size_t n,
                                             ggl_error *err);

/* Takes wrong guesses out of the slot, so that it can be saved or copied. It then holds the first *n_held
 * tokens of the sequence: without those that a model with states would have to run again. */
GGL_NODISCARD ggl_status llm_generator_settle(llm_generator *g, size_t *n_held, ggl_error *err);

/* What happened since llm_generator_new. */
typedef struct llm_generator_stats {
    int64_t n_reused;  /* tokens of the last prompt that were not run again */
    int64_t n_prompt;  /* tokens of the last prompt that were run */
    int64_t n_drawn;   /* tokens drawn, in all */
    int64_t n_shifts;  /* how often the context was shifted, and */
    int64_t n_dropped; /* how many tokens that dropped */
    int64_t n_guessed, n_right;
    int64_t n_nan; /* NaNs among the last logits; such tokens are never drawn */
} llm_generator_stats;
llm_generator_stats llm_generator_get_stats(const llm_generator *g);

#ifdef __cplusplus
}
#endif
#endif
