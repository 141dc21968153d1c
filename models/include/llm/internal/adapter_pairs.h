/* The pairs of an adapter's file, for programs that read their numbers. See llm/internal/adapter.h.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef LLM_ADAPTER_PAIRS_H
#define LLM_ADAPTER_PAIRS_H

#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The two tensors that change a weight: W + scale * rows * columns. */
typedef struct llm_adapter_pair {
    const ggl_gguf_tensor *rows;    /* [rank, out] or [rank, out, n] */
    const ggl_gguf_tensor *columns; /* [in, rank], [in, rank, n]; of the embedding [rank, in] */
    const ggl_gguf_tensor
        *magnitude; /* the lengths of the changed rows, [out] or [out, n]; NULL: not given */
    bool flipped;   /* of the embedding: columns are [rank, in] */
    int64_t rank;
} llm_adapter_pair;
/* Finds the pair of a weight in an adapter's file, which llm_adapter_open has checked. False: it has
 * none. */
bool llm_adapter_find_pair(const ggl_gguf *adapter, ggl_str name, llm_adapter_pair *out);
/* Decodes the columns of matrix m of the pair to out[rank][in]. False: out of memory. */
bool llm_adapter_columns(const llm_adapter_pair *p, int64_t m, int64_t n_in, float *out);
/* Decodes row `row` of matrix m to out[rank]. */
void llm_adapter_row(const llm_adapter_pair *p, int64_t m, int64_t row, float *out);
/* Returns the length of row `row` of matrix m, of a pair with magnitudes. */
double llm_adapter_magnitude(const llm_adapter_pair *p, int64_t m, int64_t row);

/* The change of one matrix by one adapter. */
typedef struct llm_lora_matrix {
    llm_adapter_pair pair;
    double scale;
    float *columns; /* [rank][in] */
} llm_lora_matrix;
/* Sets acc[n] to row o of matrix m, whose numbers are row[n], with all changes. What they leave by cancelling each other is no change.
 * divisor: by what the model multiplies the results of this row. ranks: memory for the largest rank. acc has room for another n. */
void llm_lora_change_row(const llm_lora_matrix *change, size_t n_change, int64_t m, int64_t o,
                         double divisor, const float *row, float *ranks, size_t n, double *acc);
double llm_lora_change(const double *acc, const float *row, size_t n); /* |acc - row|^2 */

#ifdef __cplusplus
}
#endif

#endif
