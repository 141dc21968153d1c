/* What was decided, for people: where nodes run, what moves, and memory. */
#include <inttypes.h>
#include <string.h>

#include "sched_impl.h"

int ggl_sched_memory(const ggl_sched *s, int backend, ggl_memory *out) {
    if (backend < 0 || backend >= s->n_dev)
        return 0;
    const device *d = &s->dev[backend];
    *out = (ggl_memory){.backend = d->b->name,
                        .weights_mapped = d->mapped_size,
                        .weights_copied = d->copied_size,
                        .weights_repacked = d->repacked_size,
                        .weights_dropped = d->dropped_size,
                        .stores_rows = d->rows_size,
                        .stores_states = d->states_size,
                        .arena = d->arena_size,
                        .io = d->io_size * (size_t)s->n_lanes};
    return 1;
}

/* Of weights their type, and whether this node, a product, reads them in the backend's layout. */
static void print_node(const device *d, const ggl_tensor *t, FILE *out) {
    char shape[256];
    fprintf(out, "  %-24s %-18s %-14s", t->name ? t->name : "",
            ggl_shape_text(t, shape, sizeof shape),
            t->call                ? t->call
            : t->op == GGL_OP_CALL ? (t->body->recurrent ? "<loop>" : "<body>")
                                   : ggl_op_get(t->op).name);
    for (int i = 0; i < t->n_src; i++)
        if (t->src[i] && t->src[i]->op == GGL_OP_WEIGHT)
            fprintf(out, " %s:%s%s", t->src[i]->name, ggl_type_get(t->src[i]->type)->name,
                    t->op == GGL_OP_LINEAR && i == 1 && d->repacked[t->src[i]->id].region >= 0
                        ? " repacked"
                        : "");
    fprintf(out, "%s%s\n", t->origin ? "  " : "", t->origin ? t->origin : "");
}

static void print_segment(const ggl_sched *s, const segment *seg, FILE *out, bool nodes) {
    fprintf(out, "%s on %s: %zu nodes",
            seg->phase == TRUNK ? "for every token" : "for wanted outputs",
            s->dev[seg->backend].b->name, seg->nodes.n);
    for (size_t i = 0; i < seg->n_moves; i++) {
        const move *m = &seg->move[i];
        fprintf(out, "%s%s from %s%s", i ? ", " : "; receives ",
                m->t->name ? m->t->name : "a value",
                m->from_backend < 0 ? "host" : s->dev[m->from_backend].b->name,
                m->gather ? " (rows)" : "");
    }
    fputc('\n', out);
    for (size_t i = 0; nodes && i < seg->nodes.n; i++)
        print_node(&s->dev[seg->backend], seg->nodes.at[i], out);
}

void ggl_sched_print(const ggl_sched *s, FILE *out, bool nodes) {
    for (size_t i = 0; i < s->n_segs; i++)
        print_segment(s, &s->seg[i], out, nodes);
    fprintf(out, "%-12s %10s %10s %10s %10s %10s %10s %10s %10s   MiB\n", "memory", "weights",
            "(copied)", "(repacked)", "(dropped)", "cache", "states", "values", "in/out");
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(s, i, &m); i++) {
        const size_t bytes[] = {m.weights_mapped,
                                m.weights_copied,
                                m.weights_repacked,
                                m.weights_dropped,
                                m.stores_rows,
                                m.stores_states,
                                m.arena,
                                m.io};
        fprintf(out, "%-12s", m.backend);
        for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++)
            fprintf(out, " %10.2f", (double)bytes[k] / 1048576);
        fputc('\n', out);
    }
}
