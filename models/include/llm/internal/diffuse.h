/* Writes texts with models of the diffusion kind, whose tokens all see each other: the text begins as masks, which are
 * replaced by tokens, in any order, step by step. The schedules are those that Dream (eps) and LLaDA (blocks) published; names and
 * meanings of the parameters are those of llama.cpp's diffusion program.
 *
 * Threads: as the session. */
#ifndef LLM_DIFFUSE_H
#define LLM_DIFFUSE_H

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

typedef struct llm_diffusion {
    const int32_t *prompt; /* [n_prompt] */
    int64_t n_prompt;
    int64_t n_length; /* of prompt and answer */
    int64_t n_steps;
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

/* Reads from the model's file what the parameters do not say: mask and shift. GGL_UNSUPPORTED: the file names no mask token. */
GGL_NODISCARD ggl_status llm_diffusion_of(llm_diffusion *d, const llm_model *m, ggl_error *err);
/* Writes the text to id[n_length]. The same seed gives the same text, with any number of threads. GGL_USAGE: a number is out
 * of range, or the model is of another kind; GGL_LIMIT: n_length exceeds the context; and as llm_session_eval. */
GGL_NODISCARD ggl_status llm_diffuse(llm_session *s, const llm_diffusion *d, int32_t *id,
                                     ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
