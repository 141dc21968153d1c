/* Which type each tensor of a model gets: the mixes that llama.cpp's quantizer publishes, as
 * tables. A mix is a name such as Q4_K_M; what it says of a tensor depends on the tensor's name and
 * shape, on its layer, and on a few numbers of the model.
 *
 *     quant_model m = {.n_layer = 22, .n_head = 32, .n_head_kv = 4};
 *     for (each tensor)
 *         quant_model_add(&m, name);
 *     const quant_mix *mix = quant_mix_find("Q4_K_M");
 *     const char *type = quant_mix_type(mix, &m, name, n_dims, ne); // "q6_k"; NULL: it stays
 *     const ggl_type_info *t = quant_type_find(type, &err);
 *
 * Types are named here, not numbered: a table may speak of a type that this build does not have.
 *
 * Left out of what is published: what a mix does otherwise where there is an importance matrix, and
 * the exceptions of one architecture (Falcon), as no code here knows architectures. */
#ifndef TOOLS_QUANT_MIX_H
#define TOOLS_QUANT_MIX_H

#include <stdbool.h>

#include "ggl/types.h"

enum { QUANT_MAX_LAYERS = 2048 };

typedef struct quant_mix {
    const char *name;  /* "Q4_K_M", as published */
    const char *alias; /* "Q4_K"; or NULL */
    const char *base;  /* the type of what no rule speaks of: "q4_k" */
    int file_type;     /* the number for general.file_type */
} quant_mix;

/* What the rules ask of a model. The first four are the caller's: block_count (0: as the tensors'
 * names have it), attention.head_count and .head_count_kv of the first layer, expert_count; the
 * others quant_model_add fills. */
typedef struct quant_model {
    int64_t n_layer, n_head, n_head_kv, n_expert;
    bool has_output; /* the logits have a matrix of their own */
    int64_t n_value; /* tensors that make attention's values */
    int64_t n_named; /* layers, as far as names tell */
    bool value_in[QUANT_MAX_LAYERS];
} quant_model;

/* To be told of each tensor before any type is asked for. */
void quant_model_add(quant_model *m, const char *name);

const quant_mix *quant_mix_at(int k);              /* NULL past the end */
const quant_mix *quant_mix_find(const char *name); /* any case; NULL: none */

/* Whether a tensor is quantized at all: no vectors, norms, routers, convolutions, positions. */
bool quant_wanted(const char *name, int n_dims, const int64_t *ne);

/* The name of the type that the mix gives the tensor, before it was seen whether the rows fit
 * (quant_fit); NULL: the tensor stays as it is. */
const char *quant_mix_type(const quant_mix *mix, const quant_model *m, const char *name, int n_dims,
                           const int64_t *ne);

/* What rows of n elements are given instead of `type` if they are no whole number of its blocks. */
const char *quant_fit(const char *type, int64_t n);

/* The type, which can be encoded; NULL: err says that it is not in this build, or cannot. */
const ggl_type_info *quant_type_find(const char *name, ggl_error *err);
/* Whether tensors may be given that type: floats and quantized types that have an encoder. */
bool quant_type_usable(const ggl_type_info *t);

#endif
