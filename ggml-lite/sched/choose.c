/* Chooses the backend of each node. A node that reads no weight runs where the values that it reads
 * are computed, if that backend has it. Otherwise the wished backend runs it, which params.place
 * names for the node's weights or its group, or, if that refuses the node, the first that has it. */
#include <stdio.h>

#include "ggl/internal/graph.h"
#include "schedule.h"

/* Returns why backend k cannot run t, or NULL if it can; *part is the node that it refuses. Nodes
 * that must run on the same backend are asked for, too: a product's gather, and, for a cache, all
 * attention that reads its rows. */
static const char *refusal_there(const schedule *s, int k, const ggl_tensor *t,
                                 const ggl_tensor **part) {
    const char *why = ggl_refusal(s->dev[k].b, t, part);
    if (!why && ggl_is_product(t) && t->src[LINEAR_W]->gather)
        why = ggl_refusal(s->dev[k].b, t->src[LINEAR_W], part);
    for (int i = 0; t->op == GGL_OP_CACHE && !why && i < ggl_graph_n_nodes(s->g); i++) {
        const ggl_tensor *reader = ggl_graph_node(s->g, i);
        if (reader->needed && ggl_cache_of(reader) == t)
            why = ggl_refusal(s->dev[k].b, reader, part);
    }
    return why;
}

const char *ggl_sched_node_text(const ggl_tensor *t, char *buf, size_t size) {
    const ggl_tensor *w = NULL;
    for (int i = 0; i < t->n_src && !w; i++)
        w = t->src[i] && ggl_is_of_weight(t->src[i]) ? t->src[i] : NULL;
    snprintf(buf, size, "%s%s%s%s%s%s%s%s", t->call ? t->call : ggl_op_get(t->op).name,
             t->name || t->origin ? " (" : "", t->name ? t->name : "",
             t->name && t->origin ? ", " : "", t->origin ? t->origin : "",
             t->name || t->origin ? ")" : "", w ? " with weights of type " : "",
             w ? ggl_type_get(w->type)->name : "");
    return buf;
}

/* Asks params.place about each weight that the node or its body reads, and returns the first
 * backend that it names; -1: none. */
static int wish_of_weights(const schedule *s, const ggl_tensor *t, int group) {
    int k = -1;
    for (int i = 0; i < ggl_n_reads(t) && k < 0; i++) {
        const ggl_tensor *x = ggl_read(t, i);
        if (x && x->view_of)
            k = s->params.place(s->params.ctx, group, x->view_of->name);
    }
    for (int i = 0; t->body && i < t->body->n_node && k < 0; i++)
        k = wish_of_weights(s, t->body->node[i], group);
    return k;
}

/* True if the node or its body reads a weight or a view of one. */
static bool reads_weights(const ggl_tensor *t) {
    bool reads = false;
    for (int i = 0; i < ggl_n_reads(t) && !reads; i++)
        reads = ggl_read(t, i) && ggl_read(t, i)->view_of;
    for (int i = 0; t->body && i < t->body->n_node && !reads; i++)
        reads = reads_weights(t->body->node[i]);
    return reads;
}

/* Returns the backend that computes all values of t's own group that t reads; -1: t reads none, or
 * they are on several backends. */
static int place_of_values(const schedule *s, const ggl_tensor *t) {
    int k = -1;
    for (int i = 0; i < ggl_n_reads(t); i++) {
        const ggl_tensor *x = ggl_read(t, i);
        if (!x || ggl_is_leaf(x) || x->view_of || x->group != t->group)
            continue;
        if (k >= 0 && s->backend[x->id] != k)
            return -1;
        k = s->backend[x->id];
    }
    return k;
}

/* Returns the backend on which params.place wants t; it may refuse t. */
static int wished_place(const schedule *s, const ggl_tensor *t) {
    if (ggl_cache_of(t)) /* runs where its cache is */
        return s->backend[ggl_cache_of(t)->id];
    if (!s->params.place)
        return 0;
    int k = wish_of_weights(s, t, t->group);
    return k >= 0 ? k : s->params.place(s->params.ctx, t->group, NULL);
}

/* If t may run where its values are, and that backend has it, sets the backend of t and returns
 * true. Nobody asked for that place, so a refusal there is no error and not reported. */
static bool follows_values(schedule *s, const ggl_tensor *t) {
    const ggl_tensor *part;
    if (!s->params.place || ggl_cache_of(t) || reads_weights(t))
        return false;
    int k = place_of_values(s, t);
    if (k < 0 || refusal_there(s, k, t, &part))
        return false;
    s->backend[t->id] = k;
    return true;
}

/* Sets the backend of t. GGL_UNSUPPORTED if no backend can run it, or, with params.strict, if the
 * wished one cannot. */
static ggl_status place_node(schedule *s, const ggl_tensor *t, ggl_error *err) {
    if (follows_values(s, t))
        return GGL_OK;
    int k = wished_place(s, t);
    if (k < 0 || k >= s->n_dev)
        return ggl_fail(err, GGL_USAGE, "group %d is placed on backend %d of %d", t->group, k,
                        s->n_dev);
    fallback f = {.node = t, .wished = k, .used = -1};
    const ggl_tensor *part;
    f.why = refusal_there(s, k, t, &f.refused);
    for (int i = 0; f.why && !ggl_cache_of(t) && f.used < 0 && i < s->n_dev; i++)
        f.used = refusal_there(s, i, t, &part) ? -1 : i;
    char text[512];
    if (f.why && (f.used < 0 || s->params.strict))
        return ggl_fail(err, GGL_UNSUPPORTED, "%s does not run on %s: %s%s",
                        ggl_sched_node_text(f.refused, text, sizeof text), s->dev[k].b->name, f.why,
                        f.used < 0 ? "; and no other backend of this run has it" : "");
    if (f.why) {
        if (!ggl_grow(&s->fallback, &s->cap_fallbacks, s->n_fallbacks + 1, sizeof *s->fallback))
            return ggl_sched_no_memory(err);
        s->fallback[s->n_fallbacks++] = f;
    }
    s->backend[t->id] = f.why ? f.used : k;
    return GGL_OK;
}

/* What a call is made of runs where it does. */
static void place_body(schedule *s, const ggl_body *b, int k) {
    for (int i = 0; i < b->n_node; i++) {
        s->backend[b->node[i]->id] = k;
        if (b->node[i]->body)
            place_body(s, b->node[i]->body, k);
    }
}

/* GGL_UNSUPPORTED: nodes write variables, and run on several backends, which would have to agree on when a variable changes. */
static ggl_status check_variables(const schedule *s, ggl_error *err) {
    const ggl_tensor *writes = NULL;
    int first = -1, other = -1;
    for (int i = 0; i < ggl_graph_n_nodes(s->g); i++) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        if (!t->computed)
            continue;
        writes = t->into ? t : writes;
        first = first < 0 ? s->backend[t->id] : first;
        other = s->backend[t->id] != first ? s->backend[t->id] : other;
    }
    return writes && other >= 0
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "variable '%s' is assigned in a graph that runs on both %s and %s; a "
                          "graph that changes variables runs on one backend",
                          writes->into->name, s->dev[first].b->name, s->dev[other].b->name)
               : GGL_OK;
}

ggl_status ggl_sched_place(schedule *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_nodes(s->g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        if (t->computed)
            st = place_node(s, t, err);
        if (t->computed && st == GGL_OK && t->body)
            place_body(s, t->body, s->backend[t->id]);
    }
    return st == GGL_OK ? check_variables(s, err) : st;
}
