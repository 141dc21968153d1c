#include "tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/index.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

/* Adds a tensor to its row. */
static void add_to_row(tensor_row *r, const ggl_gguf_tensor *t, int layer) {
    r->first = layer < r->first ? layer : r->first;
    r->last = layer > r->last ? layer : r->last;
    r->n++;
    r->params += (uint64_t)ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1);
    r->bytes += t->size;
}

bool tensor_rows(const ggl_gguf *f, const uint8_t *mark, tensor_row **rows, size_t *n) {
    size_t n_tensors = ggl_gguf_n_tensors(f);
    ggl_index x = {0};
    *n = 0;
    *rows = calloc(n_tensors + 1, sizeof **rows);
    if (*rows && ggl_index_init(&x, n_tensors, sizeof **rows, sizeof(*rows)->key, NULL) != GGL_OK) {
        free(*rows);
        *rows = NULL;
    }
    for (size_t i = 0; *rows && i < n_tensors; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        ggl_str rest;
        int layer = tensor_layer(t->name, &rest);
        tensor_row *r = &(*rows)[*n];
        GGL_STEPS(1);
        *r =
            (tensor_row){.one = t,
                         .in_layers = layer >= 0,
                         .first = layer,
                         .last = layer,
                         .key = {.type = t->type, .n_dims = t->n_dims, .mark = mark ? mark[i] : 0}};
        snprintf(r->key.name, sizeof r->key.name, "%s%.*s", layer < 0 ? "" : "blk.{l}.",
                 (int)rest.n, rest.s);
        memcpy(r->key.ne, t->ne, sizeof r->key.ne);
        size_t first = layer < 0 ? *n : ggl_index_put(&x, *rows, *n);
        add_to_row(&(*rows)[first], t, layer);
        *n += first == *n;
    }
    ggl_index_fini(&x);
    return *rows != NULL;
}
