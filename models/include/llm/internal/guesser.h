/* What guesses the next tokens of a sequence, for speculative decoding.
 *
 * Threads: a guesser belongs to the thread of its engine. */
#ifndef LLM_GUESSER_H
#define LLM_GUESSER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The engine runs the guesses in one batch with the last token of the sequence, then draws as without them, as long as it draws what
 * was guessed. */
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

/* Where a grammar allows one token alone, it and those that then follow of necessity run in one batch, at most one less
 * than this and than the session's n_rows. Text, log-probabilities and the sampler's state are those of single steps. */
enum { LLM_FORCED_ROWS = 16 };

#ifdef __cplusplus
}
#endif
#endif
