/* What becomes of the rows of a text: they are pooled, and the modules of sentence-transformers that a file has follow. One head
 * serves many texts, each with a sum of its own.
 *
 * Threads: a head never changes, so any number of threads may use it, each with its own sum. */
#ifndef LLM_HEAD_H
#define LLM_HEAD_H

#include "llm/internal/pooling.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_head llm_head;

/* Makes the head of a model whose rows have n numbers: the pooling, and the modules of the file, if there is one (NULL: none), and one vector for a text.
 * GGL_FORMAT: the keys or tensors are wrong; GGL_UNSUPPORTED: an unknown module or activation; GGL_SHAPE: a module takes
 * another number of numbers; GGL_NOMEM. *out is NULL on failure. */
GGL_NODISCARD ggl_status llm_head_new(llm_head **out, llm_pooling pooling, const ggl_gguf *file,
                                      int64_t n, ggl_error *err);
void llm_head_free(llm_head *h); /* NULL is fine */

/* Returns the numbers of a vector. */
int64_t llm_head_n_out(const llm_head *h);
/* Returns the pooling as the file calls it, such as "mean" or "cls+mean". */
const char *llm_head_pooling_name(const llm_head *h);
/* True if the rows of a prompt are left out of the pooling (sentence_transformers.include_prompt). */
bool llm_head_skips_prompt(const llm_head *h);
/* Returns how many doubles a sum has. */
size_t llm_head_sum_size(const llm_head *h);
/* Begins a text. */
void llm_head_begin(const llm_head *h, double *sum);
/* Adds the row of the text's token `pos`, from 0 on; rows come in the order of the tokens. */
void llm_head_add(const llm_head *h, double *sum, int64_t pos, const float *row);
/* Ends it: writes the first n_dims numbers of the vector, of length 1 if `normalize`. A text without rows has zeros. GGL_FORMAT: a
 * number is not finite. */
GGL_NODISCARD ggl_status llm_head_end(const llm_head *h, double *sum, int64_t n_dims,
                                      bool normalize, float *out, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
