/* Functions that the commands of llm-lora share. */
#ifndef TOOLS_LORA_TOOL_H
#define TOOLS_LORA_TOOL_H

#include "common/args.h"
#include "common/gguf_copy.h"
#include "llm/internal/model.h"

/* A command; argv[0] is its name, such as "merge". Returns the exit code. */
typedef int lora_command(int argc, char **argv);
lora_command lora_convert, lora_extract, lora_merge, lora_show;

/* The two tensors that change a weight: W + scale * rows * columns. */
typedef struct lora_pair {
    const ggl_gguf_tensor *rows;    /* [rank, out] or [rank, out, n] */
    const ggl_gguf_tensor *columns; /* [in, rank], [in, rank, n]; of the embedding [rank, in] */
    const ggl_gguf_tensor
        *magnitude; /* the lengths of the changed rows, [out] or [out, n]; NULL: not given */
    bool flipped;   /* the latter */
    int64_t rank;
} lora_pair;
/* Finds the pair of a weight in an adapter's file, which llm_adapter_open has checked. False: it has
 * none. */
bool lora_find_pair(const ggl_gguf *adapter, ggl_str name, lora_pair *out);
/* Decodes the columns of matrix m of the pair to out[rank][in]. False: out of memory. */
bool lora_columns(const lora_pair *p, int64_t m, int64_t n_in, float *out);
/* Decodes row `row` of matrix m to out[rank]. */
void lora_row(const lora_pair *p, int64_t m, int64_t row, float *out);
/* Returns the length of row `row` of matrix m, of a pair with magnitudes. */
double lora_magnitude(const lora_pair *p, int64_t m, int64_t row);

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
