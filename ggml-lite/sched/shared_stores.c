/* Lets stores share memory. What a stage stores for itself is of no use after its run, and neither is what any run stores in a model
 * that sees texts whole. Such stores of one segment take turns: one begins where the last reader of another has run. Steps that use
 * stores run one after the other, in the order of their nodes (ggml-lite/plan/waves.c), and a device computes a segment for one batch
 * after another, so nothing is overwritten that is still read. */
#include "ggl/internal/graph.h"
#include "schedule.h"

/* Where a store is used. segment: index + 1; 0: nowhere. */
typedef struct span {
    size_t segment, first, last;
    bool in_others; /* other segments use it, too */
} span;

static void note(span *x, size_t seg, size_t node) {
    if (x->segment == 0)
        *x = (span){seg, node, node, false};
    x->in_others |= x->segment != seg;
    x->last = node;
}

/* Notes what the n nodes use; those of a body count as the node `at` that has it. */
static void note_all(span *use, ggl_tensor *const *node, size_t n, size_t seg, const size_t *at) {
    for (size_t i = 0; i < n; i++) {
        const ggl_tensor *t = node[i], *cache = ggl_cache_of(t);
        for (int k = 0; k < 2; k++) {
            if (t->store[k])
                note(&use[t->store[k]->id], seg, at ? *at : i);
            if (cache && cache->store[k])
                note(&use[cache->store[k]->id], seg, at ? *at : i);
        }
        if (t->body)
            note_all(use, t->body->node, (size_t)t->body->n_node, seg, at ? at : &i);
    }
}

bool ggl_sched_is_passing(const schedule *s, const ggl_store *x) {
    return x->kind != GGL_STORE_STATE && (s->params.forgets || (x->of_stage && !x->is_read));
}

/* Finds a store before k whose memory is free when k is first used. */
static int find_free(const schedule *s, const span *use, const size_t *free_from, int k) {
    for (int i = 0; i < ggl_graph_n_stores(s->g); i++)
        if (i != k && free_from[i] > 0 && use[i].segment == use[k].segment &&
            free_from[i] <= use[k].first &&
            ggl_graph_store(s->g, i)->size >= ggl_graph_store(s->g, k)->size)
            return i;
    return -1;
}

ggl_status ggl_sched_share_stores(schedule *s, ggl_error *err) {
    const int n = ggl_graph_n_stores(s->g);
    span *use = ggl_calloc((size_t)n + 1, sizeof *use);
    size_t *free_from = ggl_calloc((size_t)n + 1, sizeof *free_from); /* of stores with memory */
    s->shares = ggl_calloc((size_t)n + 1, sizeof *s->shares);
    const bool ok = use && free_from && s->shares;
    for (size_t i = 0; i < s->n_segs && ok; i++)
        note_all(use, s->seg[i].nodes.at, s->seg[i].nodes.n, i + 1, NULL);
    for (int k = 0; k < n && ok; k++) { /* in the order of their first uses in a segment */
        s->shares[k] = -1;
        if (use[k].segment == 0 || use[k].in_others ||
            !ggl_sched_is_passing(s, ggl_graph_store(s->g, k)) ||
            s->dev[s->seg[use[k].segment - 1].backend].b->looks_back)
            continue;
        const int at = find_free(s, use, free_from, k), owner = at < 0 ? k : at;
        s->shares[k] = at;
        free_from[owner] = use[k].last + 1;
    }
    ggl_free(use);
    ggl_free(free_from);
    return ok ? GGL_OK : ggl_sched_no_memory(err);
}
