/* Random adapters for made-up models, and the same change merged into the weights by plain loops. */
#ifndef TOY_ADAPTER_H
#define TOY_ADAPTER_H

#include "ggl/graph.h"
#include "llm/internal/adapter.h"

typedef struct toy_pair {
    char name[128];
    int n_dims;               /* of the weight: 2 or 3 */
    int64_t ne[GGL_MAX_DIMS]; /* of the weight */
    int64_t rank;
    float *a, *b; /* as in the file */
    float *m;     /* lora_magnitude; NULL: none */
    bool one_a;   /* one lora_a for a whole stack */
} toy_pair;

typedef struct toy_adapter {
    toy_pair *pair;
    size_t n;
    double alpha;
    int sizes; /* which pairs get magnitudes: 0: none, 1: some, 2: all; but none of the embedding */
    llm_adapter *adapter;
    void *bytes; /* the file's */
} toy_adapter;

/* A pair of random numbers for a weight. zero_b: lora_b is all zeros. Its rank follows from the seed. */
void toy_adapter_add(toy_adapter *x, const char *name, int n_dims, const int64_t *ne, uint64_t seed,
                     bool zero_b);
/* Writes the file and opens it. */
bool toy_adapter_open(toy_adapter *x, const char *architecture, ggl_error *err);
void toy_adapter_free(toy_adapter *x);
/* Adds scale * alpha / rank * B * A to the weight's numbers, if the adapter has a pair for it, and multiplies its rows as magnitudes say: by
 * them, over the lengths of the rows of base, the weight without other adapters, with this change. */
void toy_adapter_merge_on(const toy_adapter *x, double scale, const char *name, const float *base,
                          float *w);
/* The same with the weight itself as its base. */
void toy_adapter_merge(const toy_adapter *x, double scale, const char *name, float *w);

#endif
