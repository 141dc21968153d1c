/* The tensors of a Hugging Face folder: model.safetensors, or the files named in
 * model.safetensors.index.json, or without an index model-0000K-of-0000N.safetensors if all N
 * exist. A file:
 *
 *     | n: u64 | n bytes of JSON: {"NAME": {"dtype": "F32", "shape": [rows, columns],
 *                                           "data_offsets": [from, to]}, ..} | data |
 *
 * Opening checks everything: the tensors' data follow one another without gaps, up to the end of
 * the file, and have the size of type and shape. Format: the safetensors project's README. */
#ifndef LLM_SAFETENSORS_H
#define LLM_SAFETENSORS_H

#include "common/json.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/index.h"

#define LLM_ST_MAX_DIMS 8

typedef struct st_tensor {
    ggl_str name; /* NUL-terminated */
    /* for messages, of a tensor of a folder in the folder: its name there, and the file; NULL: `name` */
    const char *text;
    size_t n_prefix;   /* bytes of `name` before that name */
    const char *dtype; /* "BF16" */
    int type;          /* a ggl_type; -1: not a type of weights */
    int n_dims;
    int64_t ne[LLM_ST_MAX_DIMS]; /* innermost first: `shape` reversed */
    const void *data;            /* in the mapping, not aligned */
    size_t size;                 /* bytes */
    int file;
    /* set by the converter: the object of config.json with MLX's form of this tensor alone; NULL: it has
     * the form of all others */
    const void *form;
    bool used;        /* set by the converter: a line reads it */
    const void *line; /* the first line that reads it, */
    /* and the weight that the line makes */
    const char *makes;
} st_tensor;

typedef struct llm_safetensors {
    ggl_arena arena;
    ggl_file_how how;
    ggl_file_map *map;
    ggl_str *file; /* names without the folder; s ends in NUL */
    int n_file;
    ggl_index by_file;
    st_tensor *tensor;
    size_t n_tensor, cap_tensor;
    ggl_index by_name;
} llm_safetensors;

/* Opens a folder. how: NULL: the files are mapped. *out is NULL on failure. Fails with GGL_NOT_FOUND
 * (no safetensors), GGL_FORMAT, GGL_UNSUPPORTED, GGL_LIMIT, GGL_IO or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_safetensors_open(llm_safetensors **out, const char *folder,
                                              const ggl_file_how *how, ggl_error *err);
/* Opens one file in memory, which stays the caller's; for tests. */
GGL_NODISCARD ggl_status llm_safetensors_open_memory(llm_safetensors **out, const void *data,
                                                     size_t size, const char *name, ggl_error *err);
/* Reads a file of another format: fills tensor[], calls llm_safetensors_index, and makes a config.json of what the file says. */
typedef ggl_status st_reader(llm_safetensors *st, llm_json **config, const void *data, size_t size,
                             ggl_error *err);
/* Opens such a file; the caller owns *out and *config, which are NULL on failure. bytes: of a file in memory, which stays the
 * caller's, and whose name is `path`; NULL: it is opened. GGL_IO, GGL_NOMEM, and what `read` returns, after the path. */
GGL_NODISCARD ggl_status llm_safetensors_open_other(llm_safetensors **out, llm_json **config,
                                                    const char *path, const ggl_file_how *how,
                                                    const ggl_str *bytes, st_reader *read,
                                                    ggl_error *err);
/* What such a reader does with a file that is safetensors itself: fills tensor[] and makes the index. */
GGL_NODISCARD ggl_status llm_safetensors_read(llm_safetensors *st, const void *data, size_t size,
                                              ggl_error *err);
/* Adds the tensors of a folder in the folder, which is opened as llm_safetensors_open opens one. Their names get the prefix, and
 * those of the files the name of that folder: "2_Dense/model.safetensors". Fails as llm_safetensors_open does. */
GGL_NODISCARD ggl_status llm_safetensors_add(llm_safetensors *st, const char *folder,
                                             const char *name, const char *prefix, ggl_error *err);
/* Makes the index of names. GGL_FORMAT: a name occurs twice. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_safetensors_index(llm_safetensors *st, ggl_error *err);
void llm_safetensors_close(llm_safetensors *st);
/* Frees the memory of the pages of t; they are read again when they are touched. */
void llm_safetensors_drop(const llm_safetensors *st, const st_tensor *t);
/* Returns the name of a tensor for messages, as its file has it: "a.weight", or "linear.weight of 2_Dense/model.safetensors". */
static inline const char *llm_safetensors_text(const st_tensor *t) {
    return t->text ? t->text : t->name.s;
}
st_tensor *llm_safetensors_find(const llm_safetensors *st, const char *name); /* NULL: absent */

#endif
