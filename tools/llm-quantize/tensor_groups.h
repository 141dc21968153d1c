/* Tensors of one kind: "attn_q" of all layers, or of some neighbouring ones. */
#ifndef TOOLS_TENSOR_GROUPS_H
#define TOOLS_TENSOR_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tensor_name {
    const char *name;
    int mark; /* tensors with different marks are in different groups */
} tensor_name;

/* "blk.3.attn_q.weight" -> "attn_q", *layer = 3; in no layer, or in one beyond QUANT_MAX_LAYERS: -1.
 * Returns stem. */
const char *tensor_stem(const char *name, char stem[128], int64_t *layer);
/* The tensors of one kind in n_layer neighbouring layers (0: in all) are a group. Sets first[n] to the
 * index of the first tensor of each one's group. False: out of memory. */
bool tensor_groups(const tensor_name *t, size_t n, int64_t n_layer, size_t *first, size_t *n_group);

#endif
