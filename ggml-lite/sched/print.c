/* Prints the schedule: where nodes run, what moves between backends, and memory. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "sched_impl.h"

int ggl_sched_memory(const ggl_sched *s, int backend, ggl_memory *out) {
    if (backend < 0 || backend >= s->plan.n_dev)
        return 0;
    const device *d = &s->plan.dev[backend];
    *out = (ggl_memory){.backend = d->b->name,
                        .weights_mapped = d->weights.mapped_size,
                        .weights_copied = d->weights.copied_size,
                        .weights_repacked = d->repack.size,
                        .weights_dropped = d->repack.dropped_size,
                        .stores_rows = d->stores.rows_size,
                        .stores_states = d->stores.states_size,
                        .arena = d->arena_size,
                        .io = d->io.size * (size_t)s->plan.n_lanes + d->weights.consts_size};
    return 1;
}

const ggl_backend *ggl_sched_runs_on(const ggl_sched *s, const ggl_tensor *node) {
    return node->computed ? s->plan.dev[s->plan.backend[node->id]].b : NULL;
}

size_t ggl_sched_n_fallbacks(const ggl_sched *s) {
    return s->plan.n_fallbacks;
}

/* Prints a node in one line, with its weights, their types, and whether it reads repacked
 * copies. */
static void print_node(const device *d, const ggl_tensor *t, FILE *out) {
    char shape[256];
    ggl_fprint(out, "  %-14s %-18s %-11s", t->name ? t->name : "",
               ggl_shape_text(t, shape, sizeof shape),
               t->call                ? t->call
               : t->op == GGL_OP_CALL ? (t->body->recurrent ? "<loop>" : "<body>")
                                      : ggl_op_get(t->op).name);
    for (int i = 0; i < ggl_n_reads(t); i++) {
        const ggl_tensor *w = ggl_read(t, i);
        bool repacked = t->op == GGL_OP_LINEAR && i == 1 && w->op == GGL_OP_WEIGHT &&
                        d->repack.loc[w->id].region >= 0;
        if (w && w->op == GGL_OP_WEIGHT)
            ggl_fprint(out, " %s:%s%s", w->name, ggl_type_get(w->type)->name,
                       repacked ? " repacked" : "");
    }
    ggl_fprint(out, "%s%s\n", t->origin ? "  " : "", t->origin ? t->origin : "");
}

/* --- segments --------------------------------------------------------------------------------- */

/* Bytes of weights and stores that a segment uses, and its first and last group (-1: none). */
typedef struct sizes {
    size_t weights, stores;
    int first_group, last_group;
} sizes;

/* Adds t to z if it is a weight that has not been seen before. */
static void add_weight(const ggl_tensor *t, bool *seen, sizes *z) {
    if (t && t->op == GGL_OP_WEIGHT && !seen[t->id]) {
        seen[t->id] = true;
        z->weights += t->size;
    }
}

/* Adds the n nodes and their bodies to z. seen[], by tensor id: weights that are counted
 * already. */
static void add_nodes(const ggl_sched *s, ggl_tensor *const *node, size_t n, bool *seen, sizes *z) {
    for (size_t i = 0; i < n; i++) {
        const ggl_tensor *t = node[i];
        for (int k = 0; k < ggl_n_reads(t); k++)
            add_weight(ggl_read(t, k), seen, z);
        for (int k = 0; k < 2; k++)
            if ((t->op == GGL_OP_CACHE || t->op == GGL_OP_STATE) && t->store[k] &&
                s->plan.shares[t->store[k]->id] < 0)
                z->stores += t->store[k]->size;
        if (t->group >= 0 && t->computed) {
            z->first_group =
                z->first_group < 0 || t->group < z->first_group ? t->group : z->first_group;
            z->last_group = t->group > z->last_group ? t->group : z->last_group;
        }
        if (t->body)
            add_nodes(s, t->body->node, (size_t)t->body->n_node, seen, z);
    }
}

/* Returns what the segment uses; zeros if out of memory. */
static sizes sizes_of(const ggl_sched *s, const segment *seg) {
    sizes z = {.first_group = -1, .last_group = -1};
    bool *seen = ggl_calloc((size_t)ggl_graph_n_ids(s->plan.g), sizeof *seen);
    if (seen)
        add_nodes(s, seg->nodes.at, seg->nodes.n, seen, &z);
    ggl_free(seen);
    return z;
}

/* Prints bytes as MiB in a column of a table, with as many of two digits after the point as fit, so that tables have at most 80
 * columns. */
static void print_mib(size_t bytes, int width, FILE *out) {
    const double mib = (double)bytes / 1048576;
    char text[48];
    int digits = 2;
    while (snprintf(text, sizeof text, "%.*f", digits, mib) > width && digits > 0)
        digits--;
    ggl_fprint(out, " %*s", width, text);
}

/* What an element of the batch, and a group, are called. */
static const char *element_word(const ggl_sched *s) {
    return s->plan.params.element_word ? s->plan.params.element_word : "element";
}

static const char *group_word(const ggl_sched *s) {
    return s->plan.params.group_word ? s->plan.params.group_word : "group";
}

/* Prints a part of a line, after a space, or on the next line if it would go beyond 80 columns. *at: bytes of the line so far; 0: it has not begun. */
static void print_part(FILE *out, int *at, const char *text) {
    enum { WIDTH = 80, INDENT = 9, NEXT = 11 };
    const int n = (int)strlen(text);
    const bool breaks = *at > 0 && *at + 1 + n > WIDTH;
    if (breaks)
        fputc('\n', out);
    if (breaks || *at == 0)
        *at = fprintf(out, "%*s", breaks ? NEXT : INDENT, "");
    else
        *at += fprintf(out, " ");
    ggl_fprint(out, "%s", text);
    *at += n;
}

/* Prints the values that are moved to the segment before it runs, by source. */
static void print_moves(const ggl_sched *s, const segment *seg, FILE *out) {
    char text[320];
    for (int from = -1; from < s->plan.n_dev; from++) {
        size_t each = 0, once = 0;
        int at = 0;
        text[0] = '\0';
        for (size_t i = 0; i < seg->n_moves; i++) {
            const move *m = &seg->move[i];
            if (m->from_backend != from)
                continue;
            *(m->batched ? &each : &once) += m->row;
            if (text[0]) {
                strcat(text, ",");
                print_part(out, &at, text);
            }
            snprintf(text, sizeof text - 1, "%.200s", m->t->name ? m->t->name : "a value");
            if (m->gather)
                snprintf(text + strlen(text), sizeof text - 1 - strlen(text), " (wanted %.60ss)",
                         element_word(s));
        }
        if (each + once == 0)
            continue;
        print_part(out, &at, text);
        snprintf(text, sizeof text, "from %s:", from < 0 ? "the host" : s->plan.dev[from].b->name);
        print_part(out, &at, text);
        if (each) {
            snprintf(text, sizeof text, "%zu bytes for each %.60s%s", each, element_word(s),
                     once ? "," : "");
            print_part(out, &at, text);
        }
        if (once) {
            snprintf(text, sizeof text, each ? "%zu in all" : "%zu bytes in all", once);
            print_part(out, &at, text);
        }
        ggl_fprint(out, "\n");
    }
}

/* Prints what a run of the segment for one element does, if the backend says so. */
static void print_run(const ggl_sched *s, const segment *seg, FILE *out) {
    ggl_backend *b = s->plan.dev[seg->backend].b;
    char text[128] = "";
    if (b->v->describe && seg->plan[0])
        b->v->describe(b, seg->plan[0], 1, text, sizeof text);
    if (*text)
        ggl_fprint(out, "         for one %s: %s\n", element_word(s), text);
}

/* Prints segment i: its line of the table, its moves, and, if `nodes`, its nodes. */
static void print_segment(const ggl_sched *s, size_t i, FILE *out, bool nodes) {
    const segment *seg = &s->plan.seg[i];
    sizes z = sizes_of(s, seg);
    size_t arena = 0;
    char groups[32] = "-", runs_for[32];
    for (int k = 0; k < 2; k++)
        if (seg->plan[k] && seg->plan[k]->arena_size > arena)
            arena = seg->plan[k]->arena_size;
    if (z.first_group >= 0)
        snprintf(groups, sizeof groups, z.first_group == z.last_group ? "%d" : "%d-%d",
                 z.first_group, z.last_group);
    snprintf(runs_for, sizeof runs_for, seg->phase == TRUNK ? "every %.20s" : "wanted %.20ss",
             element_word(s));
    ggl_fprint(out, "%-7zu %-9s %-15s %7s %5zu", i + 1, s->plan.dev[seg->backend].b->name, runs_for,
               groups, seg->nodes.n);
    print_mib(z.weights, 9, out);
    print_mib(z.stores, 8, out);
    print_mib(arena, 8, out);
    fputc('\n', out);
    print_run(s, seg, out);
    print_moves(s, seg, out);
    for (size_t k = 0; nodes && k < seg->nodes.n; k++)
        print_node(&s->plan.dev[seg->backend], seg->nodes.at[k], out);
}

/* Prints each node that a backend refused: where it runs now, and the reason. */
static void print_fallbacks(const ggl_sched *s, FILE *out) {
    for (size_t i = 0; i < s->plan.n_fallbacks; i++) {
        const fallback *f = &s->plan.fallback[i];
        char text[512];
        ggl_fprint(out, "on %s, not %s: %s: %s\n", s->plan.dev[f->used].b->name,
                   s->plan.dev[f->wished].b->name,
                   ggl_sched_node_text(f->refused, text, sizeof text), f->why);
    }
}

/* Prints the bytes of each backend, by what they are for. */
static void print_memory(const ggl_sched *s, FILE *out) {
    static const struct {
        const char *name;
        int width;
    } column[] = {{"weights", 7}, {"(copied)", 8}, {"(repacked)", 10}, {"(dropped)", 9},
                  {"cache", 7},   {"states", 6},   {"values", 6},      {"in/out", 6}};
    enum { N_COLUMNS = sizeof column / sizeof *column };
    ggl_fprint(out, "%-9s", "memory");
    for (int k = 0; k < N_COLUMNS; k++)
        ggl_fprint(out, " %*s", column[k].width, column[k].name);
    ggl_fprint(out, " MiB\n");
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(s, i, &m); i++) {
        const size_t bytes[N_COLUMNS] = {m.weights_mapped,
                                         m.weights_copied,
                                         m.weights_repacked,
                                         m.weights_dropped,
                                         m.stores_rows,
                                         m.stores_states,
                                         m.arena,
                                         m.io};
        ggl_fprint(out, "%-9s", m.backend);
        for (int k = 0; k < N_COLUMNS; k++)
            print_mib(bytes[k], column[k].width, out);
        fputc('\n', out);
    }
}

void ggl_sched_print(const ggl_sched *s, FILE *out, bool nodes) {
    char groups[32];
    snprintf(groups, sizeof groups, "%.20ss", group_word(s));
    ggl_fprint(out, "%-7s %-9s %-15s %7s %5s %9s %8s %8s MiB\n", "segment", "backend", "runs for",
               groups, "nodes", "weights", "cache", "values");
    for (size_t i = 0; i < s->plan.n_segs; i++)
        print_segment(s, i, out, nodes);
    print_fallbacks(s, out);
    print_memory(s, out);
}
