/* What was decided, for people: where nodes run, what moves, and memory. */
#include <inttypes.h>
#include <string.h>

#include "sched_impl.h"

int ggl_sched_memory(const ggl_sched *s, int backend, ggl_memory *out) {
    if (backend < 0 || backend >= s->n_dev)
        return 0;
    const device *d = &s->dev[backend];
    *out = (ggl_memory){d->b->name,     d->mapped_size, d->copied_size, d->rows_size,
                        d->states_size, d->arena_size,  d->io_size};
    return 1;
}

static void print_node(const ggl_tensor *t, FILE *out) {
    char shape[256];
    fprintf(out, "  %-24s %-18s %-14s", t->name ? t->name : "",
            ggl_shape_text(t, shape, sizeof shape),
            t->call                ? t->call
            : t->op == GGL_OP_CALL ? (t->body->recurrent ? "<loop>" : "<body>")
                                   : ggl_op_get(t->op).name);
    for (int i = 0; i < t->n_src; i++)
        if (t->src[i] && t->src[i]->op == GGL_OP_WEIGHT)
            fprintf(out, " %s:%s", t->src[i]->name, ggl_type_get(t->src[i]->type)->name);
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
        print_node(seg->nodes.at[i], out);
}

void ggl_sched_print(const ggl_sched *s, FILE *out, bool nodes) {
    for (size_t i = 0; i < s->n_segs; i++)
        print_segment(s, &s->seg[i], out, nodes);
    fprintf(out, "%-12s %12s %12s %12s %12s %12s %12s   MiB\n", "memory", "weights", "(copied)",
            "cache", "states", "values", "in/out");
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(s, i, &m); i++)
        fprintf(out, "%-12s %12.2f %12.2f %12.2f %12.2f %12.2f %12.2f\n", m.backend,
                (double)m.weights_mapped / 1048576, (double)m.weights_copied / 1048576,
                (double)m.stores_rows / 1048576, (double)m.stores_states / 1048576,
                (double)m.arena / 1048576, (double)m.io / 1048576);
}
