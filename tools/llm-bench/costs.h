/* What running a model asks of a machine: bytes to read, multiply-adds to do. From its graph. */
#ifndef TOOLS_BENCH_COSTS_H
#define TOOLS_BENCH_COSTS_H

#include "llm/model.h"

enum { BENCH_MAX_PICKED = 4096, BENCH_MAX_STORES = 4096 };

typedef struct bench_costs {
    char type[96];         /* "llama 1.1B q4_0": family, parameters, the type of most bytes */
    double n_params, size; /* elements and bytes of all tensors */
    ggl_type weight_type;  /* the type of most bytes */
    /* Multiply-adds of weights for one token: what the cache depends on is done for every token,
     * the rest for those whose logits are wanted. Of experts those used. */
    double trunk_macs, tail_macs;
    double whole; /* bytes of weights that are read for each run, whatever the batch */
    struct {
        double bytes, n_total, n_used; /* of one; there are; a token uses: experts, embeddings */
    } picked[BENCH_MAX_PICKED];
    int n_picked;
    struct {
        double bytes, n_pos; /* of a position; kept at most */
    } store[BENCH_MAX_STORES];
    int n_stores;
    double states; /* bytes of what each sequence keeps besides */
} bench_costs;

/* Builds the model's graph for sequences of n_ctx tokens and counts. */
GGL_NODISCARD ggl_status bench_costs_count(bench_costs *c, const llm_model *m, int64_t n_ctx,
                                           int64_t n_batch, ggl_type type_k, ggl_type type_v,
                                           ggl_error *err);
/* Bytes read to make one more token of each of n_seq sequences that have n_past. Of experts, as
 * many as random choices hit on average. */
double bench_costs_bytes(const bench_costs *c, int64_t n_seq, double n_past);

/* The weight that a product's operand consists of; *part: the node that picks from it, or NULL.
 * NULL: it is none. */
const ggl_tensor *bench_weight_of(const ggl_tensor *t, const ggl_tensor **part);

#endif
