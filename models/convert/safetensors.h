/* The tensors of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json names, or without an index
 * model-0000K-of-0000N.safetensors if all N are there. A file:
 *
 *     | n: u64 | n bytes of JSON: {"NAME": {"dtype": "F32", "shape": [rows, columns], "data_offsets": [from, to]}, ..} | data |
 *
 * All of it is checked before any of it is given out: offsets follow one another without gaps, to the end of the file, and
 * hold what type and shape say. Format: the safetensors project's README. */
#ifndef LLM_SAFETENSORS_H
#define LLM_SAFETENSORS_H

#include "ggl/alloc.h"
#include "ggl/file.h"
#include "ggl/index.h"

#define LLM_ST_MAX_DIMS 8

typedef struct st_tensor {
    ggl_str name;      /* NUL-terminated */
    const char *dtype; /* "BF16" */
    int type;          /* as a ggl_type; -1: none that weights have */
    int n_dims;
    int64_t ne[LLM_ST_MAX_DIMS]; /* innermost first: the shape backwards */
    const void *data;            /* in the mapping, not aligned */
    size_t size;                 /* bytes */
    int file;
    bool used;        /* the converter's: some line reads it */
    const void *line; /* which, the first of them; and the weight that it makes */
    const char *makes;
} st_tensor;

typedef struct llm_safetensors {
    ggl_arena arena;
    ggl_file_map *map;
    ggl_str *file; /* names, without the folder; s ends in NUL */
    int n_file;
    ggl_index by_file;
    st_tensor *tensor;
    size_t n_tensor, cap_tensor;
    ggl_index by_name;
} llm_safetensors;

/* On failure *out is NULL. GGL_NOT_FOUND: the folder has neither file; GGL_FORMAT, GGL_UNSUPPORTED, GGL_LIMIT, GGL_IO,
 * GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_safetensors_open(llm_safetensors **out, const char *folder,
                                              ggl_error *err);
/* One file's bytes, which stay the caller's: for tests. */
GGL_NODISCARD ggl_status llm_safetensors_open_memory(llm_safetensors **out, const void *data,
                                                     size_t size, const char *name, ggl_error *err);
void llm_safetensors_close(llm_safetensors *st);
st_tensor *llm_safetensors_find(const llm_safetensors *st, const char *name); /* NULL: absent */

#endif
