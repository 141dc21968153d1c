/* A model's tensors, with those of all layers that are alike in one row. */
#ifndef TOOLS_ARCH_TENSORS_H
#define TOOLS_ARCH_TENSORS_H

#include "ggl/gguf.h"

typedef struct tensor_row {
    /* what all tensors of the row have in common; a table's key, so without padding */
    struct {
        char name[128]; /* "blk.{l}.attn_q.weight", then zeros */
        int64_t ne[GGL_MAX_DIMS], type, n_dims, mark;
    } key;
    const ggl_gguf_tensor *one; /* the first of them */
    bool in_layers;
    int first, last, n; /* first and last layer, and how many tensors */
    uint64_t params, bytes;
} tensor_row;

/* Makes the rows, in the order of the file, in time linear in the tensors; free *rows with
 * free(). mark has a number for each tensor of the file, NULL: all 0; tensors with different
 * marks are not alike. False: out of memory. */
bool tensor_rows(const ggl_gguf *f, const uint8_t *mark, tensor_row **rows, size_t *n);
/* Returns the layer of "blk.12.attn_q.weight" and the rest of the name; -1: not in a layer. */
int tensor_layer(ggl_str name, ggl_str *rest);
/* Writes the shape, like "[64, 64]"; returns buf. */
const char *tensor_shape(const ggl_gguf_tensor *t, char *buf, size_t size);
const char *tensor_type(const ggl_gguf_tensor *t);
/* Writes a key's value in at most `size` bytes: "32", "[1, 2, 3, .. 40 of them]", "\"llama\"";
 * returns buf. */
const char *value_text(const ggl_gguf_value *v, char *buf, size_t size);
/* The same in at most `most` bytes if three elements of a list, or 16 bytes of a string, fit in
 * that. */
const char *value_text_within(const ggl_gguf_value *v, size_t most, char *buf, size_t size);

#endif
