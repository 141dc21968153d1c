/* A model's tensors, with those of all layers that are alike in one row. */
#ifndef TOOLS_ARCH_TENSORS_H
#define TOOLS_ARCH_TENSORS_H

#include "common/gguf_text.h"

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

#endif
