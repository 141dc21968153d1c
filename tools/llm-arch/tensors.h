/* A model's tensors, folded: those of all layers that are alike make one row. */
#ifndef TOOLS_ARCH_TENSORS_H
#define TOOLS_ARCH_TENSORS_H

#include "ggl/gguf.h"

typedef struct tensor_row {
    struct {            /* what is the same in all of them, without padding: the key of a table */
        char name[128]; /* "blk.{l}.attn_q.weight", then zeros */
        int64_t ne[GGL_MAX_DIMS], type, n_dims, mark;
    } key;
    const ggl_gguf_tensor *one; /* the first of them */
    bool in_layers;
    int first, last, n; /* layers; n: how many tensors */
    uint64_t params, bytes;
} tensor_row;

/* rows in the order of the file; time is linear in the tensors. Tensors with different marks are not
 * alike: mark has one for each tensor of the file, NULL: all are 0. False: out of memory. free(*rows). */
bool tensor_rows(const ggl_gguf *f, const uint8_t *mark, tensor_row **rows, size_t *n);
/* The layer of "blk.12.attn_q.weight", and the rest of the name; -1: of none. */
int tensor_layer(ggl_str name, ggl_str *rest);
/* "[64, 64]"; returns buf. */
const char *tensor_shape(const ggl_gguf_tensor *t, char *buf, size_t size);
const char *tensor_type(const ggl_gguf_tensor *t);
/* A key's value, in at most `size` bytes: "32", "[1, 2, 3, .. 40 of them]", "\"llama\""; returns buf. */
const char *value_text(const ggl_gguf_value *v, char *buf, size_t size);
/* The same in at most `most` bytes, if three elements of a list, or 16 bytes of a string, fit. */
const char *value_text_within(const ggl_gguf_value *v, size_t most, char *buf, size_t size);

#endif
