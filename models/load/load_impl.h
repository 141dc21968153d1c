/* Shared by load.c and make.c. */
#ifndef LLM_LOAD_IMPL_H
#define LLM_LOAD_IMPL_H

#include <stdatomic.h>

#include "convert/convert_impl.h"
#include "llm/load.h"

/* A tensor of the opened file. */
typedef struct load_tensor {
    const char *name;
    int n_dims;
    const int64_t *ne;
    size_t size; /* bytes */
    const ggl_type_info *type;
    recipe *recipe;
    const void *data;    /* where its bytes are: in a mapped file, or in loaded.memory */
    void *to;            /* the same place, if they must be made; NULL: they are there */
    atomic_size_t n_bad; /* of its made numbers: NaN or infinite ones */
} load_tensor;

/* What an opened folder owns. */
typedef struct loaded {
    llm_load_params params;
    ggl_gguf_params gguf;
    ggl_backend *backend; /* for constants; only while the folder is opened */
    llm_converter *converter;
    load_tensor *tensor; /* [n] */
    size_t n;
    void *block;  /* from ggl_calloc; the memory below is in it */
    char *memory; /* of made tensors, aligned to a page */
    size_t memory_size;
} loaded;

/* Makes all tensors that have a place `to`. */
GGL_NODISCARD ggl_status llm_load_make(loaded *l, ggl_error *err);

#endif
