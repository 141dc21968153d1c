/* Chooses the type of each tensor of a model by the mixes of llama.cpp's quantizer, as tables. A
 * mix is a name such as Q4_K_M; the type that it gives a tensor depends on the tensor's name, shape
 * and layer, and on a few numbers of the model.
 *
 *     quant_model m = {.n_layer = 22, .n_head = 32, .n_head_kv = 4};
 *     for (each tensor)
 *         llm_quant_model_add(&m, name);
 *     const quant_mix *mix = llm_quant_mix_find("Q4_K_M");
 *     const char *type = llm_quant_mix_type(mix, &m, name, n_dims, ne); // "q6_k"; NULL: not quantized
 *     const ggl_type_info *t = llm_quant_type_find(type, &err);
 *
 * Types are given by name, not number, so that a table may have a type that this build lacks.
 *
 * Left out are the exceptions for one architecture (Falcon), as no code here knows
 * architectures. */
#ifndef LLM_QUANT_MIX_H
#define LLM_QUANT_MIX_H

#include <stdbool.h>

#include "ggl/types.h"

enum { QUANT_MAX_LAYERS = 2048 };

typedef struct quant_mix {
    const char *name;  /* "Q4_K_M", as published */
    const char *alias; /* "Q4_K"; or NULL */
    const char *base;  /* the type of tensors without a rule: "q4_k" */
    int file_type;     /* the number for general.file_type */
} quant_mix;

/* What the rules need to know of a model. The caller sets the first five: block_count (0: take
 * it from the tensors' names), attention.head_count and .head_count_kv of the first layer,
 * expert_count, and has_matrix. llm_quant_model_add sets the others. */
typedef struct quant_model {
    int64_t n_layer, n_head, n_head_kv, n_expert;
    bool has_matrix; /* there is an importance matrix */
    bool has_output; /* the logits have their own matrix */
    int64_t n_value; /* tensors that make attention's values */
    int64_t n_named; /* layers, by the tensors' names */
    bool value_in[QUANT_MAX_LAYERS];
} quant_model;

/* Counts a tensor; call it for every tensor before any type is asked for. */
void llm_quant_model_add(quant_model *m, const char *name);

const quant_mix *llm_quant_mix_at(int k);              /* NULL past the end */
const quant_mix *llm_quant_mix_find(const char *name); /* any case; NULL: none */

/* Returns whether a tensor is quantized at all: not vectors, norms, routers, convolutions,
 * positions. */
bool llm_quant_wanted(const char *name, int n_dims, const int64_t *ne);

/* Returns the name of the type that the mix gives the tensor, or NULL if it is not quantized.
 * The rows may not fit the type; see llm_quant_fit. */
const char *llm_quant_mix_type(const quant_mix *mix, const quant_model *m, const char *name,
                               int n_dims, const int64_t *ne);

/* Returns how much an error of the tensor counts, where nothing was measured: the divergence of a model's
 * predictions is about proportional to the sum over tensors of this times their squared errors, relative to the
 * squares of the weights. 1 for the matrix that makes the logits. sure: 0 .. 1; the surer a model is of the next
 * token, the more the other tensors count. */
double llm_quant_error_weight(const quant_model *m, const char *name, double sure);

/* Returns `type`, or the type to use instead if rows of n elements are not whole blocks of it. */
const char *llm_quant_fit(const char *type, int64_t n);

/* Returns the type of that name, in any case, if it can be encoded; else NULL, and *err is set.
 * GGL_UNSUPPORTED: other programs have that type, or it can only be read; GGL_NOT_FOUND: it is no
 * name of a type. */
const ggl_type_info *llm_quant_type_find(const char *name, ggl_error *err);
/* Returns whether tensors can be converted to that type: floats, and quantized types with an
 * encoder. */
bool llm_quant_type_usable(const ggl_type_info *t);
/* Returns whether the type loses much unless it is encoded with an importance matrix: those of less than 3.5 bits. */
bool llm_quant_type_needs_matrix(const ggl_type_info *t);

#endif
