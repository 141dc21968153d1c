/* Chooses a token from logits: repeat penalty, top-k, top-p, min-p, temperature, and a draw. The
 * random generator is specified and exp and log are the project's own (ggl/math.h), so a seed gives
 * the same text on every machine.
 *
 *     llm_sampler_params p = llm_sampler_default();
 *     p.temp = 0;  // greedy
 *     llm_sampler *s;
 *     if (llm_sampler_new(&s, &p, n_vocab, n_ctx, &err) != GGL_OK) ...
 *     int32_t id = llm_sampler_next(s, logits);
 *     llm_sampler_accept(s, id); */
#ifndef LLM_SAMPLER_H
#define LLM_SAMPLER_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_sampler_params {
    float temp;    /* 0 or less: take the largest logit, and the lowest id among equals */
    int32_t top_k; /* keep the k largest; 0: all */
    float top_p;   /* keep the fewest tokens whose probabilities add up to p; 1: all */
    float min_p;   /* drop tokens below p times the largest probability; 0: none */
    /* For recent tokens, divides positive logits and multiplies negative ones; 1: no effect. */
    float repeat_penalty;
    /* How many recent tokens count. 0: none; -1: all accepted ones, up to n_last. */
    int32_t repeat_last_n;
    uint64_t seed;
} llm_sampler_params;

/* llama.cpp's defaults: temp 0.8, top_k 40, top_p 0.95, min_p 0.05, .. */
GGL_API llm_sampler_params llm_sampler_default(void);

typedef struct llm_sampler llm_sampler;

/* Makes a sampler that remembers up to n_last accepted tokens (the context size). Allocates all
 * memory here: next and accept allocate nothing. GGL_USAGE: a parameter is out of range; the
 * message names it. */
GGL_API GGL_NODISCARD ggl_status llm_sampler_new(llm_sampler **out, const llm_sampler_params *p,
                                                 int32_t n_vocab, int32_t n_last, ggl_error *err);
GGL_API void llm_sampler_free(llm_sampler *s);
/* Chooses a token id. logits: [n_vocab], not changed; NaN counts as minus infinity. */
GGL_API int32_t llm_sampler_next(llm_sampler *s, const float *logits);
/* Records a token (of the prompt, or drawn) for the repeat penalty. */
GGL_API void llm_sampler_accept(llm_sampler *s, int32_t id);
/* Forgets all recorded tokens. The random generator goes on. */
GGL_API void llm_sampler_forget(llm_sampler *s);

#ifdef __cplusplus
}
#endif
#endif
