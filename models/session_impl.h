/* What session.c and session_slots.c share. */
#ifndef LLM_SESSION_IMPL_H
#define LLM_SESSION_IMPL_H

#include "llm/session.h"

struct llm_session {
    ggl_graph *graph;
    ggl_sched *sched;
    llm_arch_result built;
    ggl_host_range *host;
    ggl_gguf_identity identity; /* of the model's file */
    char *cache;                /* params.repack_cache; NULL: none */
    char load_notes[400];
    int64_t n_ctx, n_ubatch, n_slots, n_rows;
    int32_t *token, *pos, *slot, *row; /* [n_ubatch]: the one that runs */
    int64_t *n_past, *n_new;           /* [n_slots]: tokens kept, and being added */
    int64_t *n_done; /* [n_slots]: tokens kept when nothing was under way last */
    int (*place)(void *ctx, int layer, int n_layer, const char *weight); /* as params */
    void *place_ctx;
    const float *logits;
};

#endif
