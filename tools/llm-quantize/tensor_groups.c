#include "tensor_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "quant/quant_mix.h"

typedef struct key {
    char stem[128];
    int64_t band; /* layer / layers of a group; -1: in no layer */
    int mark;
    size_t i;
} key;

const char *tensor_stem(const char *name, char stem[128], int64_t *layer) {
    int end = 0;
    long long number;
    const char *rest = name;
    *layer = -1;
    if (sscanf(name, "blk.%9lld.%n", &number, &end) == 1 && end > 0 && number >= 0 &&
        number < QUANT_MAX_LAYERS) {
        *layer = number;
        rest += end;
    }
    const size_t n = strlen(rest), tail = strlen(".weight");
    const bool cut = n > tail && strcmp(rest + n - tail, ".weight") == 0;
    snprintf(stem, 128, "%.*s", (int)(cut ? n - tail : n), rest);
    return stem;
}

static int compare_groups(const key *a, const key *b) {
    const int by_stem = strcmp(a->stem, b->stem);
    if (by_stem != 0)
        return by_stem;
    if (a->band != b->band)
        return a->band < b->band ? -1 : 1;
    return (a->mark > b->mark) - (a->mark < b->mark);
}

static int compare(const void *x, const void *y) {
    const key *a = x, *b = y;
    const int by_group = compare_groups(a, b);
    return by_group != 0 ? by_group : (a->i > b->i) - (a->i < b->i);
}

bool tensor_groups(const tensor_name *t, size_t n, int64_t n_layer, size_t *first,
                   size_t *n_group) {
    key *k = ggl_calloc(n + 1, sizeof *k);
    *n_group = 0;
    if (!k)
        return false;
    for (size_t i = 0; i < n; i++) {
        int64_t layer;
        k[i].i = i;
        k[i].mark = t[i].mark;
        tensor_stem(t[i].name, k[i].stem, &layer);
        k[i].band = layer < 0 || n_layer == 0 ? -1 : layer / n_layer;
    }
    qsort(k, n, sizeof *k, compare);
    for (size_t i = 0; i < n; i++) {
        const bool same = i > 0 && compare_groups(&k[i - 1], &k[i]) == 0;
        first[k[i].i] = same ? first[k[i - 1].i] : k[i].i;
        *n_group += !same;
    }
    ggl_free(k);
    return true;
}
