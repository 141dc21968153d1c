/* Decides how many guesses are worth their cost. All costs are in units of a step without guesses,
 * which makes one token.
 *
 *   a step with k guesses makes E = 1 + p1 + p1 p2 + .. + p1 .. pk tokens, where pj is how often
 *   guesses of its class were right, and costs 1 + c, where c was measured for k, apart for steps
 *   whose guesses were all right and for others (a model with states has to go back)
 *
 * The k with the largest E / (1 + c) is used. Before a source is asked for guesses, its time counts,
 * too, and how often it has none that are used. What was lost against steps without guesses is a debt
 * that tokens pay off slowly; while it is too large, nothing is guessed. So wrong estimates cannot
 * cost more than a few percent. */
#ifndef LLM_PACE_H
#define LLM_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "llm/internal/guess.h"

/* Guesses that are about equally often right. PACE_ANY: all of a source that were used. */
enum { PACE_CLASSES = 16, PACE_ANY = PACE_CLASSES };

typedef struct pace_rate {
    double right, n; /* weighted: recent guesses count more */
    double prior;    /* the share of right ones before any was seen */
} pace_rate;

typedef struct pace_mean {
    double mean, n; /* n: number of values, up to a limit; 0: unknown */
} pace_mean;

typedef struct pace {
    pace_rate rate[PACE_CLASSES + 1];
    pace_rate asked; /* how often a source that was asked had guesses to use */
    pace_mean plain; /* ns of a step without guesses */
    pace_mean cost[2][LLM_GUESS_MOST + 1]; /* [all right][k]: c */
    pace_mean source;                      /* ns for one guess of the source */
    pace_mean reading;                     /* ns for a token that it reads */
    double debt;                           /* in steps without guesses */
    int64_t n_since_plain;                 /* steps with guesses since the last one without */
    int n_pauses;                          /* steps in a row that took far too long */
} pace;

/* prior[k]: how often guesses of class k are expected to be right. */
void llm_pace_init(pace *p, const double prior[PACE_CLASSES + 1]);

/* What happened between two calls of the guesser. */
typedef struct pace_step {
    int64_t n_guessed, n_right;
    int64_t n_tokens; /* made, one or more */
    int64_t step_ns;  /* without the guesser */
    int64_t guess_ns; /* in the guesser, as far as this text is to blame */
    /* The guesses that the source made, n_guessed or more, or 1 for finding that it has none; and the time for them. 0: it was not asked. */
    int64_t n_source, source_ns;
    int64_t n_read, read_ns; /* tokens that the source has read before, and the time for it */
} pace_step;
void llm_pace_record(pace *p, const pace_step *s);
/* A guess of that class was right or wrong, whether it was used or not. */
void llm_pace_rate(pace *p, int class, bool is_right);
/* A source was asked, and of its guesses n_used were used and n_right were right. None is used where it is not sure enough to guess, or where
 * its guesses would not have paid. */
void llm_pace_rate_asked(pace *p, int64_t n_used, int64_t n_right);

/* Returns how many of n guesses, whose classes are given, to use. `ready`: they exist; else the time
 * to make them counts, too. */
int64_t llm_pace_choose(const pace *p, const uint8_t *class, int64_t n, bool ready);
/* True if the debt allows the time of guesses that must read n_read tokens before. */
bool llm_pace_allows(const pace *p, int64_t n_read);
/* Another text begins, which has no debts, and for which a source is asked although it was of no use for the last one. */
void llm_pace_restart(pace *p);

#endif
