/* Guesses of the next tokens, by a smaller model or from earlier text. */
#ifndef LIBRARY_GUESSING_H
#define LIBRARY_GUESSING_H

#include "llm/internal/guess.h"
#include "loading.h"
#include "place/placement.h"

/* What guesses. All pointers are borrowed. */
typedef struct llm_guessing_choice {
    /* A smaller model with the same tokenizer, or one that reads the target's rows, as llm_loading.path; NULL: none. */
    const char *draft;
    bool own;             /* layers of the model itself guess; not with a draft */
    bool lookup;          /* earlier text guesses; with neither */
    bool always;          /* all guesses are used, also where they do not pay */
    int64_t n_max, n_min; /* as llm_guess_params */
    float p_min;          /* as llm_draft_params */
    int64_t n_ctx;        /* of the draft; 0: that of its target */
    /* Where the draft runs. If nothing is chosen and the target runs on the CPU alone, it shares the target's CPU. */
    llm_placement_choice placement;
    const char *name; /* how messages name the draft: "--draft" */
} llm_guessing_choice;

/* What the guesses are for. All pointers are borrowed. */
typedef struct llm_guessing_target {
    const llm_model *model;
    llm_session
        *running; /* with .rows if its own layers guess, with .tap as llm_guessing_taps says */
    const llm_tokenizer *tokenizer; /* NULL: none */
    llm_placement *placement;
    llm_session_params session; /* as the draft's, except for context, slots, rows and adapters */
    int n_sequences;            /* that run at once; each has a guesser of its own */
    int64_t n_ctx;              /* of the target's session */
    llm_loading loading;        /* how the draft's file is read; path and type are not used */
    /* Called when the draft's session was planned. NULL: none. */
    void (*placed)(void *ctx, const llm_placement *p, const llm_session *s);
    void *ctx;
} llm_guessing_target;

typedef struct llm_guessing llm_guessing;

/* Most tokens that are guessed at once; 0 if none are. The target's session needs a row more. */
int64_t llm_guessing_n_max(const llm_guessing_choice *choice);
/* Returns how many layers of the target the draft reads, and which, in tap[LLM_ARCH_MAX_TAPS]. 0: none, or it cannot be opened, which
 * llm_guessing_open reports. */
int llm_guessing_taps(const llm_guessing_choice *choice, const llm_model *target,
                      const llm_loading *loading, int32_t *tap);
/* Opens what guesses; *out is NULL if nothing is to guess, and after a failure. *misused, which may be NULL, becomes true if the
 * choice of devices was wrong. */
ggl_status llm_guessing_open(llm_guessing **out, const llm_guessing_choice *choice,
                             const llm_guessing_target *target, bool *misused, ggl_error *err);
/* The target has another session now, whose slots are empty. Call it before the old one is freed. g NULL: nothing. */
void llm_guessing_follow(llm_guessing *g, llm_session *running);
/* While others use the target's session, what it computes is not kept for guesses. g NULL: nothing. */
void llm_guessing_pause(llm_guessing *g, bool is_paused);
void llm_guessing_close(llm_guessing *g); /* before the target's placement; NULL is fine */
/* Adds up what the draft will take of the CPU's memory, in bytes: `row` for each token of the target's context, with the rows of the target that
 * are kept until the draft has read them, `fixed` for all else. Both are 0 if there is no draft, devices are chosen for it, or it cannot be opened. */
void llm_guessing_memory(const llm_guessing_choice *choice, const llm_guessing_target *target,
                         double *fixed, double *row);
/* The guessers [n_sequences]; NULL if g is. All run the same draft, in slots of one session, so one thread uses them. */
const llm_guesser *const *llm_guessing_guessers(const llm_guessing *g);
/* Returns as llm_guess_declined does, of the first sequence. */
int64_t llm_guessing_declined(const llm_guessing *g, int64_t *n_steps);
/* Why guessing ended early; GGL_OK: it did not. */
ggl_status llm_guessing_failed(const llm_guessing *g, ggl_error *err);

#endif
