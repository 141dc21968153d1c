/* Removes layers of a model: tensors blk.N.* of some N go, and the others are numbered again. */
#ifndef LLM_QUANT_PRUNE_H
#define LLM_QUANT_PRUNE_H

#include "ggl/internal/gguf.h"
#include "quant_mix.h"

typedef struct quant_prune {
    int n; /* layers to remove; 0: none */
    bool gone[QUANT_MAX_LAYERS];
} quant_prune;

/* Reads "5,7,9-11". GGL_USAGE: it is no such list, or a number is QUANT_MAX_LAYERS or more. */
GGL_NODISCARD ggl_status llm_quant_prune_read(quant_prune *p, const char *list, ggl_error *err);

/* Sets to[size] to the name of a tensor after the removal. False: the tensor goes. */
bool llm_quant_prune_name(const quant_prune *p, const char *name, char *to, size_t size);

/* Adds a value of the file f, changed as the removal demands: {arch}.block_count gets smaller, and
 * lists {arch}.* with a number for each layer lose the numbers of removed layers. n_layer: the model's
 * block_count. p NULL: nothing is removed. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_quant_prune_put(const quant_prune *p, ggl_gguf_writer *w,
                                             const ggl_gguf *f, const ggl_gguf_value *v,
                                             int64_t n_layer, ggl_error *err);

#endif
