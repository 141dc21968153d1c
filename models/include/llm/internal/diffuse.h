/* Writes texts with models of the diffusion kind, whose tokens all see each other: the text begins as masks, which are
 * replaced by tokens, in any order, step by step. The schedules are those that Dream (eps) and LLaDA (blocks) published; names and
 * meanings of the parameters are those of llama.cpp's diffusion program.
 *
 * Threads: as the session. */
#ifndef LLM_DIFFUSE_H
#define LLM_DIFFUSE_H

#include "llm/internal/sampler.h"
#include "llm/internal/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which masks are replaced first. */
typedef enum llm_diffusion_order {
    LLM_DIFFUSE_ORIGIN,     /* any, by chance */
    LLM_DIFFUSE_ENTROPY,    /* those whose tokens have the least entropy */
    LLM_DIFFUSE_MARGIN,     /* where the best token is farthest ahead of the second */
    LLM_DIFFUSE_RANDOM,     /* any, but a fixed number in each step */
    LLM_DIFFUSE_CONFIDENCE, /* where the drawn token is likeliest */
    LLM_DIFFUSE_N_ORDERS
} llm_diffusion_order;

/* "origin", "entropy", "margin", "random", "confidence". */
const char *llm_diffusion_order_name(llm_diffusion_order order);
/* GGL_USAGE: none has that name. */
GGL_NODISCARD ggl_status llm_diffusion_order_find(const char *name, llm_diffusion_order *out,
                                                  ggl_error *err);

enum { LLM_DIFFUSION_LENGTH = 64 }; /* tokens of an answer, if nobody says another number */

typedef struct llm_diffusion {
    const int32_t *prompt; /* [n_prompt] */
    int64_t n_prompt;
    int64_t n_length; /* of prompt and answer */
    int64_t n_steps;  /* 0: one for each token of the answer */
    int64_t
        n_block; /* > 0: masks of one block of so many tokens after the other (LLaDA); 0: of all (Dream) */
    double
        eps; /* of the schedule without blocks: the share of masks that is left for the last step */
    llm_diffusion_order order;
    double order_temp; /* 0: strictly in that order; else drawn by softmax of it / order_temp */
    double temp;       /* of tokens; 0: the likeliest */
    int64_t top_k;     /* 0: all */
    double top_p;      /* 1: all */
    double
        cfg_scale; /* how much the prompt counts more than none; 0: each step computes the text once */
    int32_t mask;
    bool shift; /* logits of a token are about the one after it */
    uint64_t seed;
    /* Called before the first step, and after each one, with the text so far, [n_length]; false: stop with GGL_CANCELLED. */
    bool (*step)(void *ctx, int64_t n_done, const int32_t *id);
    void *ctx;
} llm_diffusion;

/* Confidence, eps 0.001, and all tokens; all else is 0. */
llm_diffusion llm_diffusion_default(void);
/* Sets what a sampler has: the temperature, top_k, top_p and the seed. */
void llm_diffusion_sample(llm_diffusion *d, const llm_sampler_params *s);
/* Reads from the model's file what the parameters do not say: mask and shift. GGL_UNSUPPORTED: the file names no mask token. */
GGL_NODISCARD ggl_status llm_diffusion_of(llm_diffusion *d, const llm_model *m, ggl_error *err);
/* A text that is being written. The caller runs its passes, in a slot that is empty before each, maybe beside other texts:
 *
 *     while ((id = llm_diffuser_pass(f, &want)) != NULL) {
 *         .. run id[0 .. n_length), and call llm_diffuser_logits for each token i of which want[i] ..
 *         if (llm_diffuser_end_pass(f, &err) != GGL_OK) ..
 *     }
 *
 * The same seed gives the same text, with any number of threads, and whatever runs beside it. */
typedef struct llm_diffuser llm_diffuser;

/* Copies *d and its prompt, and calls d->step. GGL_USAGE: a number is out of range, or the model is of another kind; GGL_LIMIT:
 * n_length exceeds the context; GGL_CANCELLED: by d->step; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_diffuser_new(llm_diffuser **out, const llm_session *s,
                                          const llm_diffusion *d, ggl_error *err);
void llm_diffuser_free(llm_diffuser *f); /* NULL is fine */
/* Returns the tokens of the next pass, [n_length], and whose logits are wanted, both valid until it ends; NULL: the text is done. */
const int32_t *llm_diffuser_pass(llm_diffuser *f, const bool **want);
/* ctx: the diffuser. In the order of i. */
void llm_diffuser_logits(void *ctx, int64_t i, const float *logits);
/* GGL_FORMAT: the logits are not finite; GGL_CANCELLED: by d->step. */
GGL_NODISCARD ggl_status llm_diffuser_end_pass(llm_diffuser *f, ggl_error *err);
/* The text so far, [n_length], with masks. */
const int32_t *llm_diffuser_text(const llm_diffuser *f);
/* Tokens of prompt and answer before the first mask: they stay as they are. */
int64_t llm_diffuser_n_settled(const llm_diffuser *f);

#ifdef __cplusplus
}
#endif
#endif
