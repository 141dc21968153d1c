/* The sampler's parts, shared by its files. docs/sampling.md defines what they compute.
 *
 * A call of next has two phases. At first there is a logit for each token of the vocabulary: the
 * caller's array, or a changed copy of it. The first stage that removes or orders tokens makes a
 * list of candidates from it. A candidate is one 64-bit key: the logit in the upper half, mapped so
 * that larger logits become smaller numbers, and the id in the lower half. Ascending keys are the
 * order that the definition uses: by descending logit, then by ascending id. */
#ifndef LLM_SAMPLER_IMPL_H
#define LLM_SAMPLER_IMPL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "llm/internal/sampler.h"
#include "text/automaton.h"

enum { SAMPLER_HEAP_MAX = 1024 }; /* largest top_k that uses a heap; above it all are sorted */

/* The tokens accepted last, a ring. An entry is the id, plus BREAKER_BIT if its text by itself
 * contains a breaker of DRY. */
typedef struct sampler_history {
    uint32_t *entry;
    size_t cap, n, next; /* entries it can hold, has; place of the next one */
} sampler_history;

typedef struct sampler_dry {
    size_t last_n; /* window; 0: off */
    automaton breakers;
    bool has_breakers;
    int32_t state;      /* of the automaton after the last accepted token */
    size_t since_break; /* tokens accepted after the last one in which a breaker ended */
    uint32_t *recent;   /* [last_n] the window, newest first */
    int32_t *match;     /* [last_n] lengths of repetitions */
    int32_t *longest; /* [n_vocab] 1 + the longest repetition that the id would continue; 0: none */
    int32_t *touched; /* [last_n] ids with longest > 0 */
    size_t n_touched;
} sampler_dry;

struct llm_sampler {
    llm_sampler_params p; /* its pointers are not used after creation */
    int32_t n_vocab, n_last;
    const llm_sampler *like; /* owns the automaton of breakers and the biases; NULL: they are own */
    uint64_t rng[4];
    double mu; /* of mirostat */

    uint8_t stage[LLM_SAMPLER_N_STAGES]; /* those that have an effect, in order */
    int n_stages;
    bool changes_logits; /* one changes logits before another makes the list */
    llm_logit_bias *bias;
    size_t n_bias;

    sampler_history history;
    size_t penalty_last_n; /* window of the penalties; 0: off */
    int32_t *count;        /* [n_vocab] how often that window contains the id */
    sampler_dry dry;
    int32_t *forced; /* [n_forced]: the next ones to choose; the first i_forced were chosen */
    size_t n_forced, i_forced, cap_forced;

    /* The logits in the first phase. In a copy, NaN marks a token that must not be chosen. */
    const float *logits;
    float *copy; /* [n_vocab] */
    bool is_copied;

    /* The second phase. */
    bool is_list, is_sorted;
    uint64_t *key;  /* [cap] candidates, n of them */
    uint64_t *swap; /* [cap] for sorting; NULL if cap is small */
    double *weight; /* [cap] e^((logit - largest) / t), valid if is_weighed */
    size_t n, cap;
    double t; /* temperature so far */
    bool is_weighed;
};

/* --- candidates.c: keys, lists, weights ------------------------------------------------------- */

int32_t llm_candidate_id(uint64_t key);
float llm_candidate_logit(uint64_t key);
uint64_t llm_candidate_key(float logit, int32_t id); /* NaN counts as minus infinity, -0 as 0 */

/* Begins the first phase; returns false if no token may be chosen. */
bool llm_candidates_begin(llm_sampler *s, const float *logits, const uint32_t *allowed);
/* Returns the id of the largest logit of the first phase. */
int32_t llm_candidates_best(const llm_sampler *s);
/* Makes the list, unless there is one already: of the tokens with logits of at least `least`, in
 * order of ids; or of the k best. */
void llm_candidates_list(llm_sampler *s, float least);
void llm_candidates_top(llm_sampler *s, size_t k);
void llm_candidates_sort(llm_sampler *s); /* makes the list if need be */
/* Sorts, and computes the weights; returns their sum. */
double llm_candidates_weigh(llm_sampler *s);
/* Keeps candidates first to end - 1 of the sorted list. */
void llm_candidates_keep(llm_sampler *s, size_t first, size_t end);
/* Divides the logits by the temperature so far, which then is 1. */
void llm_candidates_scale(llm_sampler *s);

/* --- stages ----------------------------------------------------------------------------------- */

typedef struct sampler_row {
    const char *name, *other_names; /* other spellings, separated by spaces */
    char letter;
    enum { CHANGES, REMOVES, SCALES } effect; /* samplers.def says what they mean */
    bool (*is_on)(const llm_sampler *s);
    void (*apply)(llm_sampler *s);
} sampler_row;

extern const sampler_row llm_sampler_rows[LLM_SAMPLER_N_STAGES];

/* Returns the stage with the name s[0 .. n), or of the letter; -1: there is none. */
int llm_sampler_find_stage(const char *s, size_t n, bool letter);

/* truncation.c, penalties.c, dry.c: llm_sample_top_k and the like apply a stage. */
#define SAMPLER_STAGE(id, name, ...) void llm_sample_##name(llm_sampler *s);
#include "llm/internal/samplers.def"

/* Draws a candidate of the list; returns its place. */
size_t llm_sample_draw(llm_sampler *s);
size_t llm_sample_mirostat(llm_sampler *s);

/* dry.c */
GGL_NODISCARD ggl_status llm_dry_init(llm_sampler *s, size_t last_n, ggl_error *err);
void llm_dry_fini(llm_sampler *s);
/* Reads the text of a token that is being accepted; returns whether it contains a breaker. */
bool llm_dry_accept(llm_sampler *s, int32_t id);

/* --- numbers.c --------------------------------------------------------------------------------- */

/* GGL_USAGE: a number is out of its range; the message names it. */
GGL_NODISCARD ggl_status llm_sampler_check_numbers(const llm_sampler_params *p, ggl_error *err);

/* --- history ---------------------------------------------------------------------------------- */

#define SAMPLER_BREAKER_BIT 0x80000000u

/* Returns the i-th newest entry. */
static inline uint32_t llm_history_at(const sampler_history *h, size_t i) {
    return h->entry[i < h->next ? h->next - 1 - i : h->next + h->cap - 1 - i];
}

/* --- generator: xoshiro256** (Blackman & Vigna 2018), seeded by splitmix64 (Steele et al. 2014) */

GGL_INTERNAL_API void llm_rng_seed(uint64_t s[4], uint64_t seed);
GGL_INTERNAL_API double llm_rng_uniform(uint64_t s[4]); /* 0 <= u < 1 */

#endif
