/* Divides the nodes into trunk, early tail and the rest of the tail, and cuts each into segments. */
#include <string.h>

#include "ggl/internal/graph.h"
#include "schedule.h"

/* True if the node or its body reads a variable that changes in the run, so that it has to run before. */
static bool reads_assigned(const ggl_tensor *t) {
    bool reads = false;
    for (int k = 0; k < ggl_n_reads(t) && !reads; k++) {
        const ggl_tensor *x = ggl_read(t, k);
        reads = x && x->view_of && x->view_of->assigned;
    }
    for (int i = 0; t->body && i < t->body->n_node && !reads; i++)
        reads = reads_assigned(t->body->node[i]);
    return reads;
}

/* Sets s->in_trunk: nodes that write stores or read other elements of the batch, nodes that are not batched (they are the same for all
 * rows), nodes that read variables that change, watched nodes, the output that is wanted of all rows, and everything that
 * these read. */
static void find_trunk(schedule *s) {
    for (int i = ggl_graph_n_nodes(s->g) - 1; i >= 0; i--) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        if (!t->computed)
            continue;
        if (t->op == GGL_OP_CACHE || t->op == GGL_OP_ATTEND_BACK || t->keeps_state ||
            !ggl_is_batched(t) || t == s->whole || reads_assigned(t) ||
            (s->watched && s->watched[t->id]))
            s->in_trunk[t->id] = true;
        for (int k = 0; k < ggl_n_reads(t) && s->in_trunk[t->id]; k++)
            if (ggl_read(t, k))
                s->in_trunk[ggl_read(t, k)->id] = true;
    }
}

/* Sets *out to the output of this name; NULL if name is. GGL_NOT_FOUND: there is none. */
static ggl_status find_output(const schedule *s, const char *name, const ggl_tensor **out,
                              ggl_error *err) {
    *out = NULL;
    for (int i = 0; name && i < ggl_graph_n_outputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_output(s->g, i);
        if (t->name && strcmp(t->name, name) == 0)
            *out = t;
    }
    return name && !*out ? ggl_fail(err, GGL_NOT_FOUND, "the graph has no output '%s'", name)
                         : GGL_OK;
}

/* Sets s->is_early: the nodes of the tail that params.early needs. */
static ggl_status find_early(schedule *s, ggl_error *err) {
    const ggl_tensor *found;
    const ggl_status st = find_output(s, s->params.early, &found, err);
    if (!found)
        return st;
    s->is_early[found->id] = !s->in_trunk[found->id];
    for (int i = ggl_graph_n_nodes(s->g) - 1; i >= 0; i--) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        for (int k = 0; s->is_early[t->id] && k < ggl_n_reads(t); k++)
            if (ggl_read(t, k))
                s->is_early[ggl_read(t, k)->id] = !s->in_trunk[ggl_read(t, k)->id];
    }
    return GGL_OK;
}

/* --- the order of nodes ----------------------------------------------------------------------- */

/* The parts of a schedule, in their order: what the stage's runs compute, then what others do. */
enum { PART_STAGE, PART_TRUNK, PART_EARLY, PART_REST, N_PARTS };

/* Chooses the segment of each node of a part, from the end of the part: the last segment gets
 * every node of its backend that no other backend waits for, then the segment before it, and so on.
 * A node is ready once all its readers have a segment. So a value is computed as late as its
 * readers allow. With two backends, no order has fewer segments that ends with the same backend. */
typedef struct cutter {
    schedule *s;
    int part;
    size_t *n_readers;  /* by tensor id: readers in this part that have no segment yet */
    size_t *from_end;   /* by tensor id: the number of the node's segment; 0: the last one */
    ggl_tensor **next;  /* by tensor id: the next one in the list of ready nodes */
    ggl_tensor **ready; /* by backend: its list of ready nodes; NULL: none */
    int *latest;        /* by backend: the highest id of its ready nodes */
    int n_dev;
} cutter;

static void cutter_fini(cutter *c) {
    ggl_free(c->n_readers);
    ggl_free(c->from_end);
    ggl_free(c->next);
    ggl_free(c->ready);
    ggl_free(c->latest);
}

static bool cutter_init(cutter *c, schedule *s, int part) {
    const size_t n_ids = (size_t)ggl_graph_n_ids(s->g), n_dev = (size_t)s->n_dev;
    *c = (cutter){.s = s, .part = part, .n_dev = s->n_dev};
    c->n_readers = ggl_calloc(n_ids, sizeof *c->n_readers);
    c->from_end = ggl_calloc(n_ids, sizeof *c->from_end);
    c->next = ggl_calloc(n_ids, sizeof(ggl_tensor *));
    c->ready = ggl_calloc(n_dev, sizeof(ggl_tensor *));
    c->latest = ggl_calloc(n_dev, sizeof *c->latest);
    return c->n_readers && c->from_end && c->next && c->ready && c->latest;
}

/* True if t is computed by the runs of a stage, which others read. */
static bool is_of_stage(const schedule *s, const ggl_tensor *t) {
    return s->has_stage && t->rows == GGL_ROWS_STAGE &&
           (ggl_is_batched(t) || t->op == GGL_OP_CACHE);
}

/* True if t is a node that runs in the cutter's part. */
static bool in_part(const cutter *c, const ggl_tensor *t) {
    return t && t->computed &&
           c->part == (is_of_stage(c->s, t)    ? PART_STAGE
                       : c->s->in_trunk[t->id] ? PART_TRUNK
                       : c->s->is_early[t->id] ? PART_EARLY
                                               : PART_REST);
}

static void push_ready(cutter *c, ggl_tensor *t) {
    const int k = c->s->backend[t->id];
    if (!c->ready[k] || t->id > c->latest[k])
        c->latest[k] = t->id;
    c->next[t->id] = c->ready[k];
    c->ready[k] = t;
}

/* Counts the readers of all nodes, and makes those ready that nothing in this part reads. */
static void reset_ready(cutter *c) {
    const ggl_graph *g = c->s->g;
    memset(c->n_readers, 0, (size_t)ggl_graph_n_ids(g) * sizeof *c->n_readers);
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        for (int k = 0; in_part(c, t) && k < ggl_n_reads(t); k++)
            if (in_part(c, ggl_read(t, k)))
                c->n_readers[ggl_read(t, k)->id]++;
    }
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        if (in_part(c, t) && c->n_readers[t->id] == 0)
            push_ready(c, t);
    }
}

/* Puts the ready nodes of backend k into segment `number`, with all that become ready by that. */
static void fill_segment(cutter *c, int k, size_t number) {
    while (c->ready[k]) {
        const ggl_tensor *t = c->ready[k];
        c->ready[k] = c->next[t->id];
        c->from_end[t->id] = number;
        for (int i = 0; i < ggl_n_reads(t); i++) {
            ggl_tensor *x = ggl_read(t, i);
            if (in_part(c, x) && --c->n_readers[x->id] == 0)
                push_ready(c, x);
        }
    }
}

/* Returns the backend with the node that is ready and comes last in the graph; -1: none is ready. */
static int latest_backend(const cutter *c) {
    int best = -1;
    for (int k = 0; k < c->n_dev; k++)
        if (c->ready[k] && (best < 0 || c->latest[k] > c->latest[best]))
            best = k;
    return best;
}

/* Sets from_end of all nodes, with a last segment of backend k (-1: the one that latest_backend
 * chooses), and returns the number of segments. SIZE_MAX: no node of k can be in the last one. */
static size_t cut(cutter *c, int k) {
    size_t n = 0;
    memset(c->ready, 0, (size_t)c->n_dev * sizeof(ggl_tensor *));
    reset_ready(c);
    if (k >= 0 && !c->ready[k])
        return SIZE_MAX;
    for (k = k < 0 ? latest_backend(c) : k; k >= 0; k = latest_backend(c))
        fill_segment(c, k, n++);
    return n;
}

/* Sets from_end of all nodes so that there are few segments, and returns their number. */
static size_t cut_best(cutter *c) {
    size_t best = cut(c, -1);
    int last = -1;
    for (int k = 0; k < c->n_dev && c->n_dev > 1; k++) {
        size_t n = cut(c, k);
        if (n < best) {
            best = n;
            last = k;
        }
    }
    return c->n_dev > 1 ? cut(c, last) : best;
}

/* --- segments --------------------------------------------------------------------------------- */

/* Adds a view of a weight to the segment, after the views that it is made of. seen[], by tensor id,
 * holds the last segment to which a view was added. */
static bool push_view(segment *seg, ggl_tensor *view, segment **seen) {
    size_t first = seg->nodes.n;
    for (ggl_tensor *t = view; !ggl_is_leaf(t) && seen[t->id] != seg; t = t->src[0]) {
        seen[t->id] = seg;
        if (!ggl_node_list_push(&seg->nodes, t))
            return false;
    }
    for (size_t last = seg->nodes.n; first + 1 < last; first++) { /* reverses them: last is first */
        ggl_tensor *swap = seg->nodes.at[first];
        seg->nodes.at[first] = seg->nodes.at[--last];
        seg->nodes.at[last] = swap;
    }
    return true;
}

/* Adds t to the segment, after the views of weights that it reads. */
static bool push_with_views(segment *seg, ggl_tensor *t, segment **seen) {
    for (int k = 0; k < ggl_n_reads(t); k++) {
        ggl_tensor *x = ggl_read(t, k);
        if (x && x->view_of && !push_view(seg, x, seen))
            return false;
    }
    return ggl_node_list_push(&seg->nodes, t);
}

/* If nodes are watched, cuts each of the n segments where the group changes: what is watched is then
 * kept for one group only. Returns the new number of segments; 0: out of memory. */
static size_t cut_groups(cutter *c, size_t n) {
    const ggl_graph *g = c->s->g;
    size_t *part = ggl_calloc((size_t)ggl_graph_n_ids(g), sizeof *part); /* by id: of its segment */
    size_t *n_parts = ggl_calloc(n + 1, sizeof *n_parts); /* by number from the end */
    int *group = ggl_calloc(n + 1, sizeof *group);        /* of the segment's latest node */
    size_t total = 0;
    for (int i = 0; part && n_parts && group && i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        const size_t k = c->from_end[t->id];
        if (!in_part(c, t))
            continue;
        total += n_parts[k] == 0 || group[k] != t->group;
        n_parts[k] += n_parts[k] == 0 || group[k] != t->group;
        group[k] = t->group;
        part[t->id] = n_parts[k];
    }
    for (size_t k = 1; n_parts && k < n; k++) /* now: the parts up to this segment, from the end */
        n_parts[k] += n_parts[k - 1];
    for (int i = 0; total > 0 && i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (in_part(c, t))
            c->from_end[t->id] = n_parts[c->from_end[t->id]] - part[t->id];
    }
    ggl_free(part);
    ggl_free(n_parts);
    ggl_free(group);
    return total;
}

/* For segments that run side by side: parts each of the n segments in two, the nodes that need nothing that other backends have
 * computed since the last segment of the same backend, and the rest. So a backend computes the former while it waits for the
 * others. Returns the new number of segments; 0: out of memory. */
static size_t cut_waiting(cutter *c, size_t n) {
    const ggl_graph *g = c->s->g;
    bool *waits = ggl_calloc((size_t)ggl_graph_n_ids(g), sizeof *waits); /* by id */
    size_t *n_parts = ggl_calloc(n + 1, sizeof *n_parts); /* by number from the end */
    size_t *last = ggl_calloc(
        n + 1,
        sizeof *last); /* the last segment of the same backend before it, from the end; n: none */
    int *backend = ggl_calloc(n + 1, sizeof *backend);
    bool *has[2] = {ggl_calloc(n + 1, sizeof(bool)), ggl_calloc(n + 1, sizeof(bool))};
    size_t total = 0;
    const bool ok = waits && n_parts && last && backend && has[0] && has[1];
    for (int i = 0; ok && i < ggl_graph_n_nodes(g); i++)
        if (in_part(c, ggl_graph_node(g, i)))
            backend[c->from_end[ggl_graph_node(g, i)->id]] =
                c->s->backend[ggl_graph_node(g, i)->id];
    for (size_t k = 0; ok && k < n; k++)
        for (last[k] = k + 1; last[k] < n && backend[last[k]] != backend[k];)
            last[k]++;
    for (int i = 0; ok && i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (!in_part(c, t))
            continue;
        const size_t k = c->from_end[t->id];
        for (int j = 0; j < ggl_n_reads(t); j++) {
            const ggl_tensor *x = ggl_read(t, j);
            if (!in_part(c, x))
                continue;
            const size_t of = c->from_end[x->id];
            waits[t->id] |= of == k ? waits[x->id] : of < last[k];
        }
        has[waits[t->id]][k] = true;
    }
    for (size_t k = 0; ok && k < n;
         k++) { /* n_parts: the number, from the end, of the segment's second part */
        n_parts[k] = total;
        total += (size_t)has[0][k] + has[1][k];
    }
    for (int i = 0; ok && i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (in_part(c, t)) {
            const size_t k = c->from_end[t->id];
            c->from_end[t->id] = n_parts[k] + (!waits[t->id] && has[1][k]);
        }
    }
    ggl_free(waits);
    ggl_free(n_parts);
    ggl_free(last);
    ggl_free(backend);
    ggl_free(has[0]);
    ggl_free(has[1]);
    return ok ? total : 0;
}

/* Appends the segments of a part. In each of them the nodes keep the order of the graph. */
static ggl_status cut_part(schedule *s, int part, ggl_error *err) {
    cutter c;
    segment **seen = ggl_calloc((size_t)ggl_graph_n_ids(s->g), sizeof(segment *));
    bool ok = cutter_init(&c, s, part) && seen;
    size_t n = ok ? cut_best(&c) : 0;
    if (ok && n > 0 && s->watched) {
        n = cut_groups(&c, n);
        ok = n > 0;
    }
    if (ok && n > 0 && s->params.side_by_side) {
        n = cut_waiting(&c, n);
        ok = n > 0;
    }
    const size_t end = s->n_segs + n;
    ok = ok && ggl_grow(&s->seg, &s->cap_segs, end, sizeof *s->seg);
    while (ok && s->n_segs < end)
        s->seg[s->n_segs++] = (segment){.phase = part <= PART_TRUNK ? TRUNK : TAIL};
    for (int i = 0; ok && i < ggl_graph_n_nodes(s->g); i++) {
        ggl_tensor *t = ggl_graph_node(s->g, i);
        if (!in_part(&c, t))
            continue;
        segment *seg = &s->seg[end - 1 - c.from_end[t->id]];
        seg->backend = s->backend[t->id];
        ok = push_with_views(seg, t, seen);
    }
    cutter_fini(&c);
    ggl_free(seen);
    return ok ? GGL_OK : ggl_sched_no_memory(err);
}

/* Sets s->has_stage. GGL_USAGE: outputs are of both kinds of rows, or nodes that belong to neither would have to be computed
 * in both kinds of runs. */
static ggl_status find_stage(schedule *s, ggl_error *err) {
    int n[GGL_ROWS_COUNT] = {0};
    for (int i = 0; i < ggl_graph_n_outputs(s->g); i++)
        n[ggl_graph_get_output(s->g, i)->rows]++;
    if (n[GGL_ROWS_MAIN] > 0 && n[GGL_ROWS_STAGE] > 0)
        return ggl_fail(err, GGL_USAGE,
                        "a graph has outputs of a stage and of the rows that read it");
    s->has_stage = false;
    bool has_constants = false;
    for (int i = 0; i < ggl_graph_n_nodes(s->g); i++) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        s->has_stage |= t->computed && t->op == GGL_OP_CACHE && t->rows == GGL_ROWS_STAGE;
        has_constants |= t->computed && !ggl_is_batched(t) && t->op != GGL_OP_CACHE;
    }
    s->has_stage &= n[GGL_ROWS_MAIN] > 0;
    if (s->has_stage && has_constants)
        return ggl_fail(
            err, GGL_USAGE,
            "a graph with a stage has values that depend on no input: ggl_graph_fold computes "
            "them first");
    return GGL_OK;
}

ggl_status ggl_sched_cut(schedule *s, ggl_error *err) {
    size_t end[N_PARTS] = {0};
    ggl_status st = find_stage(s, err);
    if (st == GGL_OK)
        st = find_output(s, s->params.whole, &s->whole, err);
    find_trunk(s);
    if (st == GGL_OK)
        st = find_early(s, err);
    for (int part = 0; part < N_PARTS && st == GGL_OK; part++) {
        st = cut_part(s, part, err);
        end[part] = s->n_segs;
    }
    s->n_stage_segs = end[PART_STAGE];
    s->n_trunk_segs = end[PART_TRUNK];
    s->n_early_segs = end[PART_EARLY];
    return st;
}
