#include "offsets.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* Inserts the gap [at, at + size) as number i. */
static bool insert(offsets *o, size_t i, size_t at, size_t size) {
    if (!ggl_grow(&o->gap, &o->cap, o->n + 1, sizeof *o->gap))
        return false;
    memmove(o->gap + i + 1, o->gap + i, (o->n - i) * sizeof *o->gap);
    o->gap[i].at = at;
    o->gap[i].size = size;
    o->n++;
    return true;
}

static void remove_at(offsets *o, size_t i) {
    memmove(o->gap + i, o->gap + i + 1, (--o->n - i) * sizeof *o->gap);
}

/* Returns size rounded up to a multiple of 64, at least 64, so that every gap begins aligned; 0 on
 * overflow. */
static size_t rounded(size_t size) {
    size_t r = 0;
    return ggl_size_align(size ? size : 1, 64, &r) ? r : 0;
}

bool ggl_offsets_take(offsets *o, size_t size, size_t *at) {
    size_t best = o->n, need = rounded(size);
    if (need == 0)
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (o->gap[i].size >= need && (best == o->n || o->gap[i].size < o->gap[best].size))
            best = i;
    if (best < o->n) {
        *at = o->gap[best].at;
        o->gap[best].at += need;
        o->gap[best].size -= need;
        if (o->gap[best].size == 0)
            remove_at(o, best);
        return true;
    }
    /* nothing fits: grow, from the last gap if it touches the end */
    bool touches = o->n && o->gap[o->n - 1].at + o->gap[o->n - 1].size == o->end;
    *at = touches ? o->gap[o->n - 1].at : o->end;
    if (!ggl_size_add(*at, need, &o->end))
        return false;
    if (touches)
        o->n--;
    return true;
}

bool ggl_offsets_give(offsets *o, size_t at, size_t size) {
    size_t need = rounded(size), i = 0;
    while (i < o->n && o->gap[i].at < at)
        i++;
    bool before = i > 0 && o->gap[i - 1].at + o->gap[i - 1].size == at;
    bool after = i < o->n && at + need == o->gap[i].at;
    if (before && after) {
        o->gap[i - 1].size += need + o->gap[i].size;
        remove_at(o, i);
    } else if (before) {
        o->gap[i - 1].size += need;
    } else if (after) {
        o->gap[i].at = at;
        o->gap[i].size += need;
    } else {
        return insert(o, i, at, need);
    }
    return true;
}

void ggl_offsets_fini(offsets *o) {
    ggl_free(o->gap);
    *o = (offsets){0};
}
