/* Sorts steps into waves. */
#include <string.h>

#include "program_impl.h"

/* A step moves forward past at most this many others, so that values do not wait long in memory. */
enum { WINDOW = 32 };

/* Returns the first wave, `first` or later, that comes after all waves that write the sources of
 * the n links from item i on. */
static int wave_after_sources(builder *b, size_t i, int n, int first) {
    const ggl_tensor *src[GGL_MAX_SRC];
    int wave = first;
    for (const item *it = &b->at[i]; it < &b->at[i] + n; it++)
        for (int n_src = ggl_plan_sources(it, src), k = 0; k < n_src; k++)
            if (src[k]) {
                int written = b->root[ggl_plan_source_value(b, it, src[k])->root->id].wave;
                wave = written >= wave ? written + 1 : wave;
            }
    return wave;
}

static bool any_uses_stores(const item *it, int n) {
    for (int k = 0; k < n; k++)
        if (ggl_plan_uses_stores(&it[k]))
            return true;
    return false;
}

/* Assigns a wave to each item and returns the highest. The links of a chain are in one wave. A loop
 * is one wave of its own; no step moves from one side of it to the other. */
static int set_waves(builder *b) {
    /* top: highest wave so far; base: first wave after the last loop; stores: last wave that uses
     * stores */
    int top = 0, base = 1, stores = 0, n = 1;
    for (size_t i = 0; i < b->n; i += (size_t)n) {
        item *it = &b->at[i];
        int wave = top;
        n = it->n_links > 0 ? it->n_links : 1;
        if (it->kind == GGL_STEP_LOOP) {
            wave = top + 1;
        } else if (!it->in_loop && it->kind != GGL_STEP_END) {
            int first =
                i >= WINDOW && b->at[i - WINDOW].wave > base ? b->at[i - WINDOW].wave : base;
            wave = wave_after_sources(b, i, n, first);
            if (any_uses_stores(it, n)) {
                wave = wave > stores ? wave : stores + 1;
                stores = wave;
            }
        }
        top = wave > top ? wave : top;
        base = it->kind == GGL_STEP_END ? top + 1 : base;
        for (int k = 0; k < n; k++) {
            it[k].wave = wave;
            b->root[it[k].node->id].wave = wave;
        }
    }
    return top;
}

bool ggl_plan_order_in_waves(builder *b) {
    int top = set_waves(b), loop = 0;
    item *sorted = ggl_calloc(b->n + 1, sizeof *sorted);
    size_t *at = ggl_calloc((size_t)top + 2, sizeof *at); /* by wave: where its next item goes */
    if (sorted && at) {
        for (size_t i = 0; i < b->n; i++)
            at[b->at[i].wave + 1]++;
        for (int w = 1; w <= top + 1; w++)
            at[w] += at[w - 1];
        for (size_t i = 0; i < b->n; i++)
            sorted[at[b->at[i].wave]++] = b->at[i];
        memcpy(b->at, sorted, b->n * sizeof *sorted);
        for (int i = 0; i < (int)b->n; i++) {
            if (b->at[i].kind == GGL_STEP_LOOP)
                loop = i;
            if (b->at[i].kind == GGL_STEP_END) {
                b->at[i].end = loop;
                b->at[loop].end = i;
            }
        }
    }
    bool ok = sorted && at;
    ggl_free(sorted);
    ggl_free(at);
    return ok;
}
