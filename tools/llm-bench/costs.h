/* What running a model requires of a machine: bytes to read and multiply-adds. Computed from its
 * graph. */
#ifndef TOOLS_BENCH_COSTS_H
#define TOOLS_BENCH_COSTS_H

#include "llm/internal/model.h"

enum { BENCH_MAX_PICKED = 4096, BENCH_MAX_STORES = 4096 };

typedef struct bench_costs {
    char type[96];         /* "llama 1.1B q4_0": family, parameters, the type with most bytes */
    double n_params, size; /* elements and bytes of all tensors */
    ggl_type weight_type;  /* the type with most bytes */
    /* Multiply-adds with weights per token. trunk: what the cache depends on, done for every
     * token; tail: the rest, done for tokens whose logits are wanted. Counts only the experts
     * that a token uses. */
    double trunk_macs, tail_macs;
    double
        stage_macs; /* the same for each token of a text that is read before tokens are written */
    double whole;   /* bytes of weights that each run reads, whatever the batch */
    struct {
        /* bytes of one; how many there are; how many a token uses: experts, embeddings */
        double bytes, n_total, n_used;
    } picked[BENCH_MAX_PICKED];
    int n_picked;
    struct {
        double bytes, n_pos; /* bytes per position; most positions kept */
    } store[BENCH_MAX_STORES];
    int n_stores;
    double states; /* bytes that each sequence keeps in states */
} bench_costs;

/* Builds the model's graph for sequences of params->n_ctx tokens, with the adapters of params, and
 * counts. */
GGL_NODISCARD ggl_status bench_costs_count(bench_costs *c, const llm_model *m,
                                           const llm_arch_params *params, int64_t n_batch,
                                           ggl_type type_k, ggl_type type_v, ggl_error *err);
/* Returns the bytes read to make one more token for each of n_seq sequences that have n_past
 * tokens. Counts as many experts as random choices select on average. */
double bench_costs_bytes(const bench_costs *c, int64_t n_seq, double n_past);

/* Returns the weight that a product's operand is taken from, or NULL; *part: the node that picks
 * from it, or NULL. */
const ggl_tensor *bench_weight_of(const ggl_tensor *t, const ggl_tensor **part);

#endif
