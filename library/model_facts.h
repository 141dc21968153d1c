/* Sizes of a model, by its file. */
#ifndef LIBRARY_MODEL_FACTS_H
#define LIBRARY_MODEL_FACTS_H

#include "ggl/internal/gguf.h"

typedef struct llm_model_facts {
    ggl_str architecture, name; /* "": the file has none */
    double n_params, bytes;     /* of all tensors */
    int64_t n_embd, n_layer;    /* 0: not known */
} llm_model_facts;

llm_model_facts llm_model_facts_of(const ggl_gguf *f);

#endif
