/* Groups: independent steps of one wave that a backend runs as one. */
#include <string.h>

#include "program_impl.h"

/* A group has no members further than this after its first one, as a wave may have any number of
 * units, and each would be compared with all others. */
enum { WINDOW = 64 };

/* The steps of a wave. A unit is a step or a chain, which goes by its first link. */
typedef struct wave {
    const ggl_step *step; /* by item, the wave's first one first */
    const int *size;      /* of unit i: its items */
    const int *first;     /* of unit i: its first item */
    int n_units;
} wave;

/* Returns the end of the units that may be in a group with unit i. */
static int end_of_window(const wave *w, int i) {
    return w->n_units - i > WINDOW ? i + WINDOW : w->n_units;
}

/* Returns the number of items from i on that are in the wave of item i. */
static size_t size_of_wave(const builder *b, size_t i) {
    size_t n = 1;
    while (i + n < b->n && b->at[i + n].wave == b->at[i].wave)
        n++;
    return n;
}

/* Asks the backend which later units join unit i. Sets group[] of all of them to i + 1. */
static void gather(const builder *b, const wave *w, int i, int *group) {
    const ggl_step *member[GGL_MAX_GROUP] = {&w->step[w->first[i]]};
    int n = 1;
    group[i] = i + 1;
    for (int k = i + 1; k < end_of_window(w, i) && n < GGL_MAX_GROUP; k++) {
        const ggl_step *next = &w->step[w->first[k]];
        if (group[k] == 0 && b->p->joins(b->p->backend, member, n, next)) {
            member[n++] = next;
            group[k] = i + 1;
        }
    }
}

/* Copies the wave's items to `to`, with the units of each group one after another. */
static void put_together(const builder *b, const wave *w, size_t at, const int *group, item *to) {
    for (int i = 0; i < w->n_units; i++) {
        item *first = to;
        int n = 0;
        for (int k = i; k < end_of_window(w, i) && group[i] == i + 1; k++)
            if (group[k] == i + 1) {
                for (int e = 0; e < w->size[k]; e++, to++) {
                    *to = b->at[at + (size_t)(w->first[k] + e)];
                    to->joined = n > 0;
                }
                n++;
            }
        if (n > 0)
            first->n_members = n;
    }
}

/* Groups the n items from `at` on, which are one wave. Returns false if out of memory. */
static bool group_wave(builder *b, size_t at, size_t n, item *to) {
    ggl_step *step = ggl_calloc(n, sizeof *step);
    int *size = ggl_calloc(n, sizeof *size), *first = ggl_calloc(n, sizeof *first),
        *group = ggl_calloc(n, sizeof *group);
    wave w = {step, size, first, 0};
    const bool ok = step && size && first && group;
    for (size_t i = 0; i < n && ok; i++) {
        ggl_plan_make_step(b, &b->at[at + i], &step[i]);
        if (step[i].n_links > 0) {
            first[w.n_units] = (int)i;
            size[w.n_units++] = step[i].n_links;
        }
    }
    for (int i = 0; i < w.n_units && ok; i++)
        if (group[i] == 0)
            gather(b, &w, i, group);
    if (ok)
        put_together(b, &w, at, group, to);
    ggl_free(step);
    ggl_free(size);
    ggl_free(first);
    ggl_free(group);
    return ok;
}

bool ggl_plan_find_groups(builder *b) {
    if (!b->p->joins)
        return true;
    item *to = ggl_calloc(b->n + 1, sizeof *to);
    bool ok = to != NULL;
    for (size_t i = 0, n; i < b->n && ok; i += n) {
        const item *it = &b->at[i];
        n = size_of_wave(b, i);
        if (it->in_loop || it->kind == GGL_STEP_LOOP || it->kind == GGL_STEP_END || n == 1)
            memcpy(to + i, it, n * sizeof *it);
        else
            ok = group_wave(b, i, n, to + i);
    }
    if (!ok) {
        ggl_free(to);
        return false;
    }
    ggl_free(b->at);
    b->at = to;
    b->cap = b->n + 1;
    return true;
}
