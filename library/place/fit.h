/* Finds out how many tokens of context fit into memory. */
#ifndef LIBRARY_FIT_H
#define LIBRARY_FIT_H

#include "placement.h"

/* A memory (of the CPU or of a device), and how much of it a session takes, in bytes. */
typedef struct llm_fit_memory {
    const char *name; /* "the memory", or the device's */
    double available; /* before the session takes anything; 0: not known */
    double margin;    /* the part of `available` that is left free for others */
    double fixed;     /* what the session takes without the KV cache */
    double row;       /* what the KV cache takes for each token */
    double mapped;    /* weights in mapped files; the system can drop and read them again */
    double copies;    /* the part of `fixed` that are repacked weights */
} llm_fit_memory;

/* Returns the largest context, at most n_ctx, that fits into all of the memories: n_ctx itself, or a multiple of 256. 0:
 * not even 256 tokens fit. Where the mapped weights do not fit beside the context, it is at most 4096 tokens. *tightest:
 * the index of the memory that allows the least. */
int64_t llm_fit_tokens(const llm_fit_memory *m, int n, int64_t n_ctx, int *tightest);

/* Memory that others take: a draft model, and other models of the process. */
typedef struct llm_fit_others {
    double draft_fixed, draft_row; /* a draft model, of the CPU's memory: as fixed and row above */
    /* Returns the bytes that other models of this process use and the measurement takes for free: of "", weights in
     * mapped files; of a device, all. NULL: none. */
    double (*taken)(void *ctx, const char *device);
    void *taken_ctx;
} llm_fit_others;

typedef struct llm_fit {
    int64_t fits;  /* the largest context that fits, at most the session's; 0: none */
    int64_t n_ctx; /* the context to take: `fits`, but not below 2048 or the session's own */
    llm_fit_memory tightest; /* the memory that allows the least */
    bool
        is_refused; /* the cache is larger than the CPU's whole memory, so that allocating it fails */
} llm_fit;

/* Measures a session that was made with the placement and is not allocated yet, and what the placement has reserved. others may be NULL. */
llm_fit llm_fit_measure(const llm_placement *p, const llm_session *s, const llm_fit_others *others);

/* A session that is not allocated yet, and what is known about its context. All pointers are borrowed. */
typedef struct llm_fitting {
    llm_placement *placement;
    const llm_model *model;
    llm_session_params *params; /* of the session; n_ctx is set, and n_pool if it is not 0 */
    bool is_asked;              /* the user has chosen the context, so it is not changed */
    llm_fit_others others;
    /* Called before anything is changed: true gives up, with GGL_NOMEM. NULL: none. */
    bool (*refuses)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    /* Whether the weights may stay as they are in the file (no_repack) if there is no room for their repacked copies; and
     * what is called then. NULL: nothing. */
    bool may_leave;
    void (*leaves)(void *leaves_ctx, const llm_fit_memory *m);
    void *leaves_ctx;
    /* Called if a context of n_ctx tokens does not fit, before it is replaced. NULL: none. */
    void (*lacks)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    void *ctx;
} llm_fitting;
/* Replaces *s by a session without repacked weights, if these do not fit into the computer's memory, and by one whose context fits, or has 2048 tokens if fewer would; with is_asked only reports it. *s is NULL after a
 * failure: as of llm_placement_session. */
ggl_status llm_fit_session(const llm_fitting *f, llm_session **s, ggl_error *err);

#endif
