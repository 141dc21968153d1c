/* A second implementation of docs/sampling.md, for tests: naive, quadratic, with libm's functions.
 * It shares no code with models/sample and computes probabilities, not draws. */
#ifndef TESTS_SAMPLER_MODEL_H
#define TESTS_SAMPLER_MODEL_H

#include <stdbool.h>

#include "llm/internal/sampler.h"

enum { MODEL_MOST = 2048, MODEL_PAST = 64 }; /* tokens of the vocabulary, tokens accepted */

typedef struct sampler_model {
    llm_sampler_params p;
    int n_vocab, n_last;
    int past[MODEL_PAST], n_past;
    ggl_str text[MODEL_MOST]; /* of each token; for the breakers */
    double mu;
} sampler_model;

typedef struct model_candidate {
    int id;
    double logit, p;
} model_candidate;

/* Computes what is left after the chain, with probabilities, likeliest first. xtc: its random
 * number made it remove tokens. Returns how many are left. */
int model_candidates(const sampler_model *m, const float *logits, const uint32_t *allowed, bool xtc,
                     model_candidate *out);
/* Moves mu, after the token with probability p among what was left was drawn. */
void model_mirostat(sampler_model *m, double p);

#endif
