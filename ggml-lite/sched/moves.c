/* What moves: inputs to devices, values from segment to segment, outputs to the host. */
#include "schedule.h"
#include "ggl/internal/graph.h"

/* --- moves ------------------------------------------------------------------------------------ */

/* Notes that the value of move m departs from the segment that computes it, as segment `reader` needs
 * it. */
static ggl_status add_departing(schedule *s, segment *from, size_t reader, const move *m, int phase,
                                ggl_error *err) {
    const bool own = m->image == from->backend,
               is_there = own && !s->dev[from->backend].b->async; /* all rows are */
    for (size_t i = 0; i < from->n_departing && own; i++) {
        departing *d = &from->departing[i];
        if (d->t == m->t && d->image == m->image) {
            d->gather &= m->gather;
            d->reader = reader < d->reader ? reader : d->reader;
            return GGL_OK;
        }
    }
    if (!ggl_grow(&from->departing, &from->cap_departing, from->n_departing + 1,
                  sizeof *from->departing))
        return ggl_sched_no_memory(err);
    from->departing[from->n_departing++] = (departing){.t = m->t,
                                                       .image = m->image,
                                                       .phase = own ? from->phase : phase,
                                                       .is_copied = true,
                                                       .gather = m->gather && !is_there,
                                                       .batched = m->batched,
                                                       .row = m->row,
                                                       .reader = reader};
    return GGL_OK;
}

/* Adds to segment i a move of x, an input or the value of a node of segment `computes`, from a backend
 * (-1: from the host). */
static ggl_status add_move(schedule *s, size_t i, const ggl_tensor *x, int from, segment *computes,
                           ggl_error *err) {
    const bool batched = ggl_is_batched(x);
    segment *seg = &s->seg[i];
    size_t row, size;
    if (!ggl_value_bytes(x, 1, &row))
        return ggl_sched_too_large(x, 1, err);
    if (!ggl_value_bytes(x, s->n_batch, &size))
        return ggl_sched_too_large(x, s->n_batch, err);
    if (!ggl_grow(&seg->move, &seg->cap_moves, seg->n_moves + 1, sizeof *seg->move))
        return ggl_sched_no_memory(err);
    move *m = &seg->move[seg->n_moves++];
    *m = (move){.t = x,
                .from_backend = from,
                .image = s->dev[seg->backend].b->async ? from : seg->backend,
                .gather =
                    batched && seg->phase == TAIL && (x->op == GGL_OP_INPUT || s->in_trunk[x->id]),
                .row = row,
                .batched = batched};
    if (from < 0 || from == seg->backend)
        return GGL_OK;
    if (m->image == seg->backend) /* it comes when it is computed */
        ggl_sched_use_value(&s->dev[seg->backend], seg->phase, x, (size_t)(computes - s->seg));
    return add_departing(s, computes, i, m, seg->phase, err);
}

/* True if x is an input of one value for the whole batch, which only segments of the stage get so far,
 * while segment i is none of these. Their runs are not those of i, so i needs a move of its own: the
 * value may change between the two. */
static bool is_only_in_stage(const schedule *s, size_t i, const ggl_tensor *x) {
    if (x->op != GGL_OP_INPUT || ggl_is_batched(x) || i < s->n_stage_segs)
        return false;
    for (size_t k = s->n_stage_segs; k <= i; k++)
        for (size_t m = 0; m < s->seg[k].n_moves; m++)
            if (s->seg[k].backend == s->seg[i].backend && s->seg[k].move[m].t == x)
                return false;
    return s->n_stage_segs > 0;
}

/* Makes x, an input or the value of another segment, available to segment i: where the segment's
 * device has it, or else by a move, one for each backend and phase. own[] as for provide. */
ggl_status ggl_sched_provide_value(schedule *s, size_t i, const ggl_tensor *x, const size_t *own,
                                   ggl_error *err) {
    segment *seg = &s->seg[i];
    device *d = &s->dev[seg->backend];
    /* a segment of the trunk on this device reads x, too; segments of the trunk come first */
    const bool again = is_only_in_stage(s, i, x), has_copy = d->life[TRUNK][x->id].t && !again,
               input = x->op == GGL_OP_INPUT;
    const int at = has_copy ? seg->backend
                   : input  ? -1
                            : s->backend[x->id],
              phase = has_copy ? TRUNK : ggl_sched_phase(s, x);
    device *from = at < 0 ? NULL : &s->dev[at];
    const bool in_place = from == d && (phase == seg->phase || !ggl_is_batched(x));
    if (from && (in_place || !d->life[seg->phase][x->id].t)) { /* x must be kept until now */
        if (!input && at == s->backend[x->id])
            ggl_sched_use_value(from, phase, x, own[x->id] - 1);
        ggl_sched_use_value(from, phase, x, i);
        from->life[phase][x->id].in_tail |= in_place && seg->phase == TAIL;
    }
    if (in_place)
        return GGL_OK;
    const bool moved = d->life[seg->phase][x->id].t && !again;
    ggl_sched_use_value(d, seg->phase, x, i);
    if (!ggl_is_batched(x) && input) { /* stays for the runs after this one */
        ggl_sched_use_value(d, seg->phase, x, 0);
        ggl_sched_use_value(d, seg->phase, x, s->n_segs);
    }
    segment *computes = x->op == GGL_OP_INPUT ? NULL : &s->seg[own[x->id] - 1];
    return moved ? GGL_OK : add_move(s, i, x, at, computes, err);
}

/* --- outputs ---------------------------------------------------------------------------------- */

/* Lists the outputs in s->out. Their values are kept until all segments have run. own[] as for
 * provide. */
ggl_status ggl_sched_list_outputs(schedule *s, const size_t *own, ggl_error *err) {
    int n = ggl_graph_n_outputs(s->g);
    s->out = ggl_calloc((size_t)n, sizeof *s->out);
    if (!s->out)
        return ggl_sched_no_memory(err);
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = ggl_graph_get_output(s->g, i);
        size_t row;
        if (!t->computed)
            return ggl_fail(err, GGL_USAGE, "output '%s' does not depend on the batch", t->name);
        int k = s->backend[t->id], phase = ggl_sched_phase(s, t);
        if (!ggl_value_bytes(t, 1, &row))
            return ggl_sched_too_large(t, 1, err);
        ggl_sched_use_value(&s->dev[k], phase, t, own[t->id] - 1);
        ggl_sched_use_value(&s->dev[k], phase, t, s->n_segs);
        s->out[i] =
            (output){.t = t, .backend = k, .phase = phase, .is_whole = t == s->whole, .row = row};
    }
    return GGL_OK;
}

/* --- places ----------------------------------------------------------------------------------- */

/* Sets where the move, which comes from another device, finds its value in the lane's host memory. */
static void find_departed(move *m, const segment *computes) {
    for (size_t k = 0; k < computes->n_departing; k++) {
        const departing *d = &computes->departing[k];
        if (d->t != m->t || d->image != m->image)
            continue;
        m->from = d->to;
        m->at = d->from;
        m->picks = m->gather && !d->gather;
    }
}

/* Sets where the move finds what it copies. own[] as for provide. */
static void set_source(const schedule *s, const segment *seg, move *m, const size_t *own) {
    const int id = m->t->id;
    m->picks = m->gather;
    for (int j = 0; m->from_backend < 0 && j < ggl_graph_n_inputs(s->g); j++)
        if (ggl_graph_get_input(s->g, j) == m->t)
            m->from = s->input_at[j];
    if (m->from_backend == seg->backend)
        m->from = s->dev[m->from_backend].loc[TRUNK][id].offset; /* from trunk to tail */
    else if (m->from_backend >= 0)
        find_departed(m, &s->seg[own[id] - 1]);
}

/* Sets where the outputs are, in the io regions and on the host. Outputs of the tail are in the image,
 * those of the trunk have memory of their own, because mostly only some of their rows are wanted. */
static ggl_status place_outputs(schedule *s, const size_t *own, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_outputs(s->g); i++) {
        output *o = &s->out[i];
        const device *d = &s->dev[o->backend];
        const int64_t n = !ggl_is_batched(o->t) ? 1 : o->is_whole ? s->n_batch : s->n_rows;
        size_t size;
        o->from = d->loc[o->phase][o->t->id].offset;
        o->computed_by = own[o->t->id] - 1;
        o->to = o->phase == TAIL ? d->io.image + o->from : s->host_size;
        if (o->phase == TRUNK && (!ggl_size_mul((uint64_t)n, o->row, &size) ||
                                  !ggl_size_add(s->host_size, size, &s->host_size) ||
                                  !ggl_size_align(s->host_size, HOST_PAGE, &s->host_size)))
            return ggl_sched_too_large(o->t, n, err);
    }
    return GGL_OK;
}

/* Sets the offsets of moves and of what departs, now that all values are placed. */
ggl_status ggl_sched_set_offsets(schedule *s, const size_t *own, ggl_error *err) {
    for (size_t i = 0; i < s->n_segs; i++) {
        segment *seg = &s->seg[i];
        for (size_t k = 0; k < seg->n_departing; k++) {
            departing *out = &seg->departing[k];
            const device *to = &s->dev[out->image];
            out->from = s->dev[seg->backend].loc[seg->phase][out->t->id].offset;
            out->to = to->io.image + to->loc[out->phase][out->t->id].offset;
        }
        seg->again = i + 1;
        while (seg->again < s->n_segs && s->seg[seg->again].backend != seg->backend)
            seg->again++;
    }
    for (size_t i = 0; i < s->n_segs; i++)
        for (size_t k = 0; k < s->seg[i].n_moves; k++) {
            segment *seg = &s->seg[i];
            move *m = &seg->move[k];
            m->to = s->dev[seg->backend].loc[seg->phase][m->t->id].offset;
            set_source(s, seg, m, own);
        }
    return place_outputs(s, own, err);
}
