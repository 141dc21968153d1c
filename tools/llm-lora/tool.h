/* Functions that the commands of llm-lora share. */
#ifndef TOOLS_LORA_TOOL_H
#define TOOLS_LORA_TOOL_H

#include "common/args.h"
#include "common/gguf_copy.h"
#include "llm/internal/adapter_pairs.h"
#include "llm/internal/lora_folder.h"
#include "llm/internal/model.h"

/* A command; argv[0] is its name, such as "merge". Returns the exit code. */
typedef int lora_command(int argc, char **argv);
lora_command lora_convert, lora_export, lora_extract, lora_merge, lora_show;
/* Merges adapters, FILE or FILE=SCALE, into a Hugging Face folder. Returns the exit code. */
int lora_merge_folder(const char *base, const arg_list *words, const char *out, int n_threads);
/* The share of a change below which a merge warns. */
#define LORA_ENOUGH 0.9
/* Prints how much of the changes the types keep, and below LORA_ENOUGH a warning, which ends with `instead`: what keeps more. */
void lora_print_kept(const char *tool, const llm_lora_kept *k, const char *instead);
/* Reads "FILE=SCALE", "FILE:SCALE" or "FILE", which it changes, and returns the scale. */
double lora_read_scale(char *word);

/* The factor of a weight: the model computes with factor * weight. */
typedef struct lora_factor {
    char *weight;
    const ggl_gguf_tensor *from; /* the tensor that has it; NULL: it cannot be told */
    float *value;                /* its numbers, n */
    int64_t n;
} lora_factor;
typedef struct lora_factors {
    lora_factor *at;
    size_t n, cap;
    const ggl_gguf *file;
    bool out_of_memory;
} lora_factors;
/* Finds the factors of all weights of the model, which outlives *out. Freed by lora_factors_fini, also
 * after a failure. */
ggl_status lora_factors_find(lora_factors *out, const llm_model *m, ggl_error *err);
void lora_factors_fini(lora_factors *f);
/* Sets *out to the factor of the weight t; to NULL without one. GGL_UNSUPPORTED: not all products
 * of t are multiplied by it, or it has another shape than one number, one for each row or for each
 * matrix. */
ggl_status lora_factor_of(const lora_factors *f, const ggl_gguf_tensor *t, const lora_factor **out,
                          ggl_error *err);
/* Returns the factor of a row of matrix m of t; 1 if f is NULL. */
double lora_factor_at(const lora_factor *f, const ggl_gguf_tensor *t, int64_t m, int64_t row);
/* True if the file has a tensor that could be a factor. */
bool lora_has_scales(const ggl_gguf *f);
/* True if the name is that of a factor. */
bool lora_is_factor(const lora_factors *f, ggl_str name);

#endif
