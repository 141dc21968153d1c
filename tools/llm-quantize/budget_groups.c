/* Tensors of one kind: "attn_q" of all layers, or of some neighbouring ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget_impl.h"
#include "ggl/alloc.h"

typedef struct key {
    char stem[128];
    int64_t band; /* layer / layers of a group; -1: in no layer */
    const ggl_type_info *probe;
    size_t i;
} key;

static const char *stem_of(const char *name, char stem[128], int64_t *layer) {
    int end = 0;
    long long number;
    const char *rest = name;
    *layer = -1;
    if (sscanf(name, "blk.%9lld.%n", &number, &end) == 1 && end > 0 && number >= 0) {
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
    const int x = a->probe ? (int)a->probe->type : -1, y = b->probe ? (int)b->probe->type : -1;
    return (x > y) - (x < y);
}

static int compare(const void *x, const void *y) {
    const key *a = x, *b = y;
    const int by_group = compare_groups(a, b);
    return by_group != 0 ? by_group : (a->i > b->i) - (a->i < b->i);
}

bool budget_groups(const budget *b, int64_t n_layer, size_t *first, size_t *n_group) {
    key *k = ggl_calloc(b->n + 1, sizeof *k);
    *n_group = 0;
    if (!k)
        return false;
    for (size_t i = 0; i < b->n; i++) {
        int64_t layer;
        k[i].i = i;
        stem_of(b->tensor[i].name, k[i].stem, &layer);
        k[i].band = layer < 0 || n_layer == 0 ? -1 : layer / n_layer;
        k[i].probe = n_layer ? b->tensor[i].probe : NULL;
    }
    qsort(k, b->n, sizeof *k, compare);
    for (size_t i = 0; i < b->n; i++) {
        const bool same = i > 0 && compare_groups(&k[i - 1], &k[i]) == 0;
        first[k[i].i] = same ? first[k[i - 1].i] : k[i].i;
        *n_group += !same;
    }
    ggl_free(k);
    return true;
}

int64_t budget_n_layer(const budget *b) {
    char stem[128];
    int64_t layer, n = 0;
    for (size_t i = 0; i < b->n; i++) {
        stem_of(b->tensor[i].name, stem, &layer);
        n = layer >= n ? layer + 1 : n;
    }
    return n;
}

const char *budget_stem(const char *name, char stem[128]) {
    int64_t layer;
    return stem_of(name, stem, &layer);
}
