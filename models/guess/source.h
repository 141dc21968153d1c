/* Where guesses come from. */
#ifndef LLM_GUESS_SOURCE_H
#define LLM_GUESS_SOURCE_H

#include "pace.h"

typedef struct guess_source {
    /* The sequence is now id[0 .. n). Its first n_same tokens are those of the last call; the
     * others of that call are in old[n_same .. n_old), which end there. */
    void (*follow)(void *self, const int32_t *old, size_t n_old, size_t n_same, const int32_t *id,
                   size_t n);
    /* Reads what it has not read yet of id[0 .. n), the sequence of the last `follow`: called before
     * `propose`. Returns the number of tokens. NULL: `follow` has done it. */
    int64_t (*catch_up)(void *self, const int32_t *id, size_t n);
    /* Guesses what follows that sequence: writes up to n_max tokens and their classes, and returns
     * their number. */
    int64_t (*propose)(void *self, const int32_t *id, size_t n, int32_t *out, uint8_t *class,
                       int64_t n_max);
    void (*free)(void *self);
    void (*in_slot)(void *self, int slot);                  /* as in llm_guesser */
    ggl_status (*failed)(const void *self, ggl_error *err); /* NULL: it cannot fail */
    /* Guesses cost nearly nothing: they are made at each step, to see how often they would be right. */
    bool is_cheap;
    double prior[PACE_CLASSES + 1];
    void *self;
} guess_source;

/* Makes the guesser; on failure frees the source. */
ggl_status llm_guess_new(llm_guess **out, const llm_guess_params *p, const guess_source *source,
                         ggl_error *err);

#endif
