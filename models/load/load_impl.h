/* Shared by load.c, make.c and quantize.c. */
#ifndef LLM_LOAD_IMPL_H
#define LLM_LOAD_IMPL_H

#include <stdatomic.h>

#include "convert/convert_impl.h"
#include "llm/internal/load.h"
#include "quant/type_plan.h"

/* A tensor of the opened file. */
typedef struct load_tensor {
    const char *name;
    int n_dims;
    const int64_t *ne;
    int64_t count; /* elements */
    size_t size;   /* bytes */
    const ggl_type_info *type;
    /* How its numbers come about, as `source`, the type before it is quantized: by a recipe, or, if
     * that is NULL, from the bytes of another file. */
    const ggl_type_info *source;
    recipe *recipe;
    const void *from;
    const void *data; /* where its bytes are: in a file, or in loaded.memory; NULL: nowhere yet */
    void *to;         /* the same place, if they must be made; NULL: they are there */
    atomic_size_t n_bad; /* of its converted numbers: NaN or infinite ones */
} load_tensor;

/* A file under way; what the opened one owns. */
typedef struct loaded {
    llm_load_params params;
    ggl_gguf_params gguf;
    ggl_backend *backend;     /* for constants; only while the folder is opened */
    llm_converter *converter; /* of a folder, else NULL */
    /* The file that is quantized: that of the path, or the converted one without data. NULL: nothing is
     * quantized. */
    ggl_gguf *plain;
    bool quantizes;
    llm_convert_type convert_type; /* of a folder */
    quant_choice choice;
    quant_plan plan;
    bool copied;         /* all tensors are made, so that the sources are no longer needed */
    load_tensor *tensor; /* [n] */
    size_t n;
    void *block;  /* from ggl_calloc; the memory below is in it */
    char *memory; /* of made tensors, aligned to a page */
    size_t memory_size;
} loaded;

/* Makes all tensors that have a place `to`. */
GGL_NODISCARD ggl_status llm_load_make(loaded *l, ggl_error *err);

/* quantize.c: reads params.type. */
GGL_NODISCARD ggl_status llm_load_read_type(loaded *l, bool converts, ggl_error *err);
/* Lists the tensors of `plain`, if it is a file of its own, and gives all their new types. */
GGL_NODISCARD ggl_status llm_load_plan(loaded *l, ggl_error *err);

#endif
