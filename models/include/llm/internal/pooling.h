/* Embeddings: how the vectors of a text's tokens become one.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef LLM_POOLING_H
#define LLM_POOLING_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum llm_pooling {
    LLM_POOL_MEAN,     /* the mean of all tokens */
    LLM_POOL_LAST,     /* the last token */
    LLM_POOL_CLS,      /* the first token */
    LLM_POOL_NONE,     /* each token keeps its own */
    LLM_POOL_RANK,     /* no vector: the model's output "score" */
    LLM_POOL_MAX,      /* of each number the largest of all tokens */
    LLM_POOL_SQRT,     /* the sum of all tokens, divided by the root of their number */
    LLM_POOL_WEIGHTED, /* the mean of all tokens, token k, from 1 on, k times */
    LLM_POOL_COUNT,    /* of those that can be chosen */
    LLM_POOL_SEVERAL = LLM_POOL_COUNT /* several of these, side by side; only a file says which */
} llm_pooling;

/* The names by llm_pooling, for tables of choices: all programs list the same. */
#define LLM_POOLING_NAMES                                                                          \
    "mean", "last", "cls", "none", "rank", "max", "mean_sqrt_len_tokens", "weightedmean"

/* Returns one of them, or "several". */
GGL_INTERNAL_API const char *llm_pooling_name(llm_pooling p);
/* Gets the pooling of this name; name NULL: that of the file's key sentence_transformers.pooling, or {arch}.pooling_type, or the mean if it
 * has neither. GGL_USAGE: there is no such name; GGL_UNSUPPORTED: a key has an unknown value; GGL_FORMAT: it is no
 * text, or no number. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_pooling_find(llm_pooling *out, const char *name,
                                                           const ggl_gguf *file, ggl_error *err);
/* Gets the value of the key {arch}.pooling_type that a text names: its number, or the pooling's name. GGL_USAGE: it names none. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_pooling_type(int *out, const char *text,
                                                           ggl_error *err);
/* The same as llm_pooling_find, for one vector of a text. GGL_UNSUPPORTED: also if the file says "none" or "rank". */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_pooling_find_vector(llm_pooling *out,
                                                                  const char *name,
                                                                  const ggl_gguf *file,
                                                                  ggl_error *err);
/* Whether the first of a model's scores says how well a text answers a query: there is one score, or the first of the labels that the file
 * names ({arch}.classifier.output_labels) is "yes", or it names none. GGL_UNSUPPORTED: the model is a classifier, which is told with its labels. */
GGL_NODISCARD ggl_status llm_pooling_check_ranks(const ggl_gguf *file, ggl_error *err);
/* Gets the poolings of LLM_POOL_SEVERAL: "cls+mean". Statuses of llm_pooling_find. */
enum { LLM_POOL_MOST_PARTS = 6 };
GGL_NODISCARD ggl_status llm_pooling_parts(llm_pooling out[LLM_POOL_MOST_PARTS], int *n,
                                           const ggl_gguf *file, ggl_error *err);
/* Gets the tokens whose vectors are used of a text of n, at least 1: *first .. *end - 1. n_before: those of a prompt at its
 * beginning, whose vectors are left out; the last token never is. */
void llm_pooling_range(llm_pooling p, int64_t n_before, int64_t n, int64_t *first, int64_t *end);
/* Writes the first n numbers of a sum as a vector of length 1, or if `by` is not 0, divided by that. A sum of zeros stays.
 * GGL_FORMAT: a number is not finite. */
GGL_NODISCARD ggl_status llm_pooling_result(const double *sum, int64_t n, double by, float *out,
                                            ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
