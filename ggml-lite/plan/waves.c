/* Sorts steps into waves. */
#include <string.h>

#include "program_impl.h"

/* A step moves forward past at most this many others, so that values do not wait long in memory; in a program that writes variables past
 * fewer, because most of its steps compute gradients, of which many could run long before anything reads them. */
enum { WINDOW = 32, WINDOW_THAT_WRITES = 16 };
/* The most waves that a value is computed before the first step that reads it, if only stores wait for it, or waiting takes more memory
 * than what it is made of. */
enum { EARLY = 3 };

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

/* Returns the first wave, `first` or later, after the last one that reads the variable to which the n links from item i on
 * write. */
static int wave_after_readers(const builder *b, size_t i, int n, int first) {
    int wave = first;
    for (const item *it = &b->at[i]; it < &b->at[i] + n; it++) {
        const ggl_tensor *into = it->kind == GGL_STEP_NODE ? it->node->into : NULL;
        const int read = into ? b->root[into->id].read : 0;
        wave = read >= wave ? read + 1 : wave;
    }
    return wave;
}

/* Notes the wave in which the n links from item i on read variables. */
static void note_variables(builder *b, size_t i, int n, int wave) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (const item *it = &b->at[i]; it < &b->at[i] + n; it++)
        for (int n_src = ggl_plan_sources(it, src), k = 0; k < n_src; k++)
            if (src[k]) {
                const ggl_tensor *t = ggl_plan_source_value(b, it, src[k])->root;
                if (t->variable && b->root[t->id].read < wave)
                    b->root[t->id].read = wave;
            }
}

static bool any_uses_stores(const item *it, int n) {
    for (int k = 0; k < n; k++)
        if (ggl_plan_uses_stores(&it[k]))
            return true;
    return false;
}

/* True if one of the links writes a store, and nothing else. */
static bool any_writes_stores(const item *it, int n) {
    for (int k = 0; k < n; k++)
        if (it[k].kind == GGL_STEP_NODE && !ggl_plan_has_value(&it[k]))
            return true;
    return false;
}

/* Assigns a wave to each item and returns the highest. The links of a chain are in one wave. A loop
 * is one wave of its own; no step moves from one side of it to the other. */
static int set_waves(builder *b) {
    /* top: highest wave so far; base: first wave after the last loop; stores: last wave that uses
     * stores */
    int top = 0, base = 1, stores = 0, n = 1;
    size_t window = WINDOW;
    for (int i = 0; i < b->s->n_node; i++)
        if (b->s->node[i]->into)
            window = WINDOW_THAT_WRITES;
    for (size_t i = 0; i < b->n; i += (size_t)n) {
        item *it = &b->at[i];
        int wave = top;
        n = it->n_links > 0 ? it->n_links : 1;
        if (it->kind == GGL_STEP_LOOP) {
            wave = top + 1;
        } else if (!it->in_loop && it->kind != GGL_STEP_END) {
            int first =
                i >= window && b->at[i - window].wave > base ? b->at[i - window].wave : base;
            wave = wave_after_readers(b, i, n, wave_after_sources(b, i, n, first));
            if (any_uses_stores(it, n)) {
                wave = wave > stores ? wave : stores + 1;
                stores = wave;
            }
        }
        note_variables(b, i, n, wave);
        top = wave > top ? wave : top;
        base = it->kind == GGL_STEP_END ? top + 1 : base;
        for (int k = 0; k < n; k++) {
            it[k].wave = wave;
            b->root[it[k].node->id].wave = wave;
        }
    }
    return top;
}

/* Which steps read a root. delay() finds this out. */
typedef struct readers {
    int first, last; /* the waves in which steps read it; 0: none does */
    bool others;     /* a step reads it whose result is not only stored */
} readers;

/* True if the item reads a variable that changes in the run: it must not wait for the step that writes there. */
static bool reads_what_changes(builder *b, const item *it) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++)
        if (src[k] && ggl_plan_source_value(b, it, src[k])->root->assigned)
            return true;
    return false;
}

/* True if the item's result takes more memory than those of its sources that would have to wait if it was computed in `wave`. */
static bool grows(builder *b, const readers *of, const item *it, int wave) {
    const ggl_tensor *src[GGL_MAX_SRC];
    size_t most = b->root[it->node->id].size;
    for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++) {
        const value *v = src[k] ? ggl_plan_source_value(b, it, src[k]) : NULL;
        const root *r = v && !ggl_is_leaf(v->root) && of[v->root->id].last < wave
                            ? &b->root[v->root->id]
                            : NULL;
        if (r && r->size >= most)
            return false;
        most -= r ? r->size : 0;
    }
    return true;
}

/* Returns the first wave that reads a result of the n links from item i on, also one in the middle; 0: none does, or they should not
 * wait for it. Sets *stores if only stores wait for them. */
static int first_reader(builder *b, const readers *of, size_t i, int n, bool *stores) {
    int first = 0;
    *stores = true;
    for (const item *it = &b->at[i]; it < &b->at[i] + n; it++) {
        const size_t id = (size_t)it->node->id;
        *stores &= !of[id].others;
        if (it->kind == GGL_STEP_LOOP || it->kind == GGL_STEP_END || it->in_loop || it->copy_of ||
            ggl_plan_uses_stores(it) || b->root[id].placed || b->value[id].root != it->node ||
            reads_what_changes(b, it) || (of[id].others && !grows(b, of, it, of[id].first - 1))) {
            *stores = false;
            return 0;
        }
        if (of[id].first > 0 && (first == 0 || of[id].first < first))
            first = of[id].first;
    }
    return first;
}

/* Notes that the n links from item i on read their sources. */
static void note_readers(builder *b, readers *of, size_t i, int n, bool for_stores) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (const item *it = &b->at[i]; it < &b->at[i] + n; it++)
        for (int n_src = ggl_plan_sources(it, src), k = 0; k < n_src; k++)
            if (src[k]) {
                readers *r = &of[ggl_plan_source_value(b, it, src[k])->root->id];
                r->first = r->first == 0 || it->wave < r->first ? it->wave : r->first;
                r->last = it->wave > r->last ? it->wave : r->last;
                r->others |= !for_stores;
            }
}

/* Stores are written one after the other, so values that only stores read may wait for long: the keys and
 * values that all layers of a decoder take from an encoder's rows depend on these rows alone. To have them
 * all early gains nothing, and needs memory. So those that would wait longer than EARLY waves are computed
 * just before they are read. So are values that take more memory than what they are made of, such as those of gradients that depend on the
 * forward part alone. Returns false if out of memory. */
static bool delay(builder *b, int top) {
    readers *of = ggl_calloc(b->n_values + 1, sizeof *of);
    int end = top + 1, n; /* end: the next wave that no step passes */
    for (size_t i = b->n; i > 0 && of; i -= (size_t)n) {
        n = b->at[i - 1].nth + 1;
        item *it = &b->at[i - (size_t)n];
        bool stores;
        const int read = first_reader(b, of, i - (size_t)n, n, &stores),
                  last = (read < end ? read : end) - 1;
        for (int k = 0; k < n && read > 0 && last > it[k].wave + EARLY; k++)
            it[k].wave = b->root[it[k].node->id].wave = last;
        note_readers(b, of, i - (size_t)n, n, (read > 0 && stores) || any_writes_stores(it, n));
        if (it->kind == GGL_STEP_END || it->kind == GGL_STEP_LOOP)
            end = it->wave;
    }
    ggl_free(of);
    return of != NULL;
}

bool ggl_plan_order_in_waves(builder *b) {
    int top = set_waves(b), loop = 0;
    if (!delay(b, top))
        return false;
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
