/* Chooses a token from logits by a chain of stages (samplers.def has them all), and a draw; or by mirostat.
 * docs/sampling.md defines each exactly.
 * The random generator is specified and exp and log are the project's own (ggl/internal/math.h), so a seed
 * gives the same text on every machine.
 *
 *     llm_sampler_params p = llm_sampler_default();
 *     p.temp = 0;  // greedy
 *     llm_sampler *s;
 *     if (llm_sampler_new(&s, &p, n_vocab, n_ctx, &err) != GGL_OK) ...
 *     int32_t id = llm_sampler_next(s, logits, NULL);
 *     llm_sampler_accept(s, id);
 *
 * Threads: a sampler, and those that were made like it, belong to one thread at a time. */
#ifndef LLM_SAMPLER_H
#define LLM_SAMPLER_H

#include <stdbool.h>

#include "ggl/status.h"
#include "ggl/str.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stages, in their default order. */
typedef enum llm_sampler_stage {
#define SAMPLER_STAGE(id, ...) LLM_SAMPLER_##id,
#include "llm/internal/samplers.def"
    LLM_SAMPLER_N_STAGES
} llm_sampler_stage;

/* Types of the kinds of numbers. */
typedef float llm_sampler_FLOAT;
typedef int32_t llm_sampler_INT, llm_sampler_TOP_K, llm_sampler_MIROSTAT;

/* Indices of llm_sampler_numbers. */
enum {
#define SAMPLER_NUMBER(kind, name, ...) LLM_SAMPLER_NUMBER_##name,
#include "llm/internal/samplers.def"
    LLM_SAMPLER_N_NUMBERS
};

/* An addition to the logit of a token; -INFINITY: the token is never chosen. */
typedef struct llm_logit_bias {
    int32_t id;
    float bias;
} llm_logit_bias;

struct llm_tokenizer;

typedef struct llm_sampler_params {
    size_t size; /* sizeof(llm_sampler_params): ggl/internal/params.h */
    uint64_t seed;
#define SAMPLER_NUMBER(kind, name, ...) llm_sampler_##kind name;
#include "llm/internal/samplers.def"
    /* Texts at which a repetition begins again, found across tokens. They need the tokenizer,
     * which must live as long as the sampler; the strings are copied. */
    const ggl_str *dry_breakers;
    size_t n_dry_breakers;
    const struct llm_tokenizer *tokenizer; /* NULL: there are no breakers */
    const llm_logit_bias *bias;            /* [n_bias], copied; added before the first stage */
    size_t n_bias;
    uint8_t stage[LLM_SAMPLER_N_STAGES]; /* [n_stages] llm_sampler_stage, each at most once */
    int32_t n_stages;                    /* 0: all, in the default order */
} llm_sampler_params;

/* Sets the defaults, which are llama.cpp's: those of samplers.def; the breakers are line end, colon, quotation
 * mark and asterisk; there is no tokenizer. */
void llm_sampler_fill_default(llm_sampler_params *p, size_t size); /* ggl/internal/params.h */
static inline llm_sampler_params llm_sampler_default(void) {
    llm_sampler_params p;
    llm_sampler_fill_default(&p, sizeof p);
    return p;
}

/* A number among the parameters. */
typedef struct llm_sampler_number {
    const char *name;    /* the member's: "temp" */
    const char *field;   /* its name for users: "temperature" */
    size_t at;           /* offset in llm_sampler_params */
    bool is_int;         /* int32_t; else float */
    double low, high;    /* inclusive */
    const char *must_be; /* the range in words: "at least 0" */
} llm_sampler_number;
extern const llm_sampler_number llm_sampler_numbers[LLM_SAMPLER_N_NUMBERS];

double llm_sampler_get_number(const llm_sampler_params *p, const llm_sampler_number *number);
/* Sets the number with that field. GGL_USAGE: there is none, or x is out of its range. */
GGL_NODISCARD ggl_status llm_sampler_set_number(llm_sampler_params *p, const char *field, double x,
                                                ggl_error *err);

/* Returns a stage's name ("top_k") and its letter ('k'). */
const char *llm_sampler_stage_name(llm_sampler_stage stage);
char llm_sampler_stage_letter(llm_sampler_stage stage);
/* Set p->stage from names, "top_k;temperature", or from letters, "kt"; also llama.cpp's other
 * spellings ("top-k", "temp"). GGL_USAGE: nothing is named, a stage is unknown or named twice; the
 * message lists the stages. On failure *p is unchanged. */
GGL_NODISCARD ggl_status llm_sampler_read_names(llm_sampler_params *p, const char *names,
                                                ggl_error *err);
GGL_NODISCARD ggl_status llm_sampler_read_letters(llm_sampler_params *p, const char *letters,
                                                  ggl_error *err);

typedef struct llm_sampler llm_sampler;

/* Makes a sampler that remembers up to n_last accepted tokens (the context size). Allocates all
 * memory here: next and accept allocate nothing. GGL_USAGE: a parameter is out of range; the
 * message names it. */
GGL_NODISCARD ggl_status llm_sampler_new(llm_sampler **out, const llm_sampler_params *p,
                                         int32_t n_vocab, int32_t n_last, ggl_error *err);
/* Makes another sampler with the same parameters, which shares what `like` has prepared of breakers and biases. It must
 * not be used after `like` was freed, only be freed. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sampler_new_like(llm_sampler **out, const llm_sampler *like,
                                              ggl_error *err);
void llm_sampler_free(llm_sampler *s);
/* Chooses a token id. logits: [n_vocab], not changed; NaN counts as minus infinity. allowed: a bit
 * for each token, bit id % 32 of word id / 32 (NULL: all). A token whose bit is 0, or whose bias is
 * minus infinity, is never chosen. Returns -1, and draws no random number, if no token is left. */
int32_t llm_sampler_next(llm_sampler *s, const float *logits, const uint32_t *allowed);
/* Makes the next n calls of llm_sampler_next choose these tokens, whatever the logits are, as far as `allowed` has them: the
 * first that is not allowed, and those after it, are given up. n 0: none. Ended by llm_sampler_reset. GGL_USAGE: an id is not
 * in the vocabulary; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sampler_force(llm_sampler *s, const int32_t *id, size_t n,
                                           ggl_error *err);
/* Records a token (of the prompt, or chosen) for the penalties and DRY. */
void llm_sampler_accept(llm_sampler *s, int32_t id);
/* Forgets all recorded tokens. The random generator and mirostat's state go on. */
void llm_sampler_forget(llm_sampler *s);

/* Makes the sampler as it was created: nothing accepted, the generator at its seed. */
void llm_sampler_reset(llm_sampler *s);
/* The same, as if it had been created with this seed. */
void llm_sampler_reseed(llm_sampler *s, uint64_t seed);
/* Copies the state (accepted tokens, generator, mirostat's) of a sampler that was made with the
 * same parameters, n_vocab and n_last; allocates nothing. To try tokens and take them back, copy
 * to a second sampler first and from it afterwards. GGL_USAGE: the two do not fit; nothing was
 * copied. */
GGL_NODISCARD ggl_status llm_sampler_copy(llm_sampler *to, const llm_sampler *from, ggl_error *err);

typedef struct llm_candidate {
    int32_t id;
    double p; /* the probability that the draw chose it */
} llm_candidate;

/* Returns the number of tokens between which the last llm_sampler_next drew, and writes the likeliest
 * of them, at most `most`, to out (the likeliest first; of equals the lower id). Greedy: 1 token of
 * probability 1. 0: nothing was chosen yet. For the model's own probabilities: llm/internal/logprobs.h. */
size_t llm_sampler_candidates(const llm_sampler *s, llm_candidate *out, size_t most);

#ifdef __cplusplus
}
#endif
#endif
