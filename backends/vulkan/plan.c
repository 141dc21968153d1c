/* A plan is compiled once: each step gets its operator, which creates its pipelines for all
 * buckets of batch sizes. A run submits a recording. Runs with other buffers or batches of another
 * bucket need other recordings. Some are kept: callers alternate between two or three
 * sets of buffers, and between batches of similar sizes. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "buckets.h"
#include "pipelines.h"
#include "recording.h"
#include "slots.h"
#include "weights.h"

enum {
    N_RECORDINGS = 24, /* of a plan */
    GROWN =
        8 /* a recording in parts is made again when submissions may be this many times longer */
};

typedef struct plan {
    ggl_plan base;
    ggl_program program;
    const vk_op **op; /* by step */
    /* by step, for recurrent composites: the slot of each token; region -1: none */
    ggl_operand *slot;
    size_t scratch; /* offset of the scratch, after the program's arena */
    const ggl_loc *store_loc;
    int64_t n_slots;
    int n_regions; /* regions that the steps use: 0 .. n_regions - 1 */
    vk_slots slots;
    ggl_buffer *sizes; /* batch sizes, a VK_BUFFER_ALIGN for each recording; NULL: not needed yet */
    vk_recording recording[N_RECORDINGS];
    uint64_t clock;
} plan;

/* --- emitting --------------------------------------------------------------------------------- */

/* Returns how many of n tokens to process at a time, so that each operand fits a binding. Any
 * number is right, as operators treat tokens independently or in order. */
static int64_t slice_of(const vk_backend *b, const ggl_step *step, int64_t n) {
    const size_t most = ggl_vk_most_bound(b);
    for (const ggl_step *s = step; s < step + ggl_vk_n_entries(step); s++)
        for (int i = -1; i < s->n_src; i++) {
            const ggl_operand *o = i < 0 ? &s->dst : &s->src[i];
            /* a result without a place may be in the scratch */
            if ((i < 0 || o->region >= 0) && o->ne[GGL_BATCH_DIM] == GGL_N &&
                o->nb[GGL_BATCH_DIM] > 0) {
                int64_t fit = (int64_t)(most / o->nb[GGL_BATCH_DIM]);
                n = fit < n ? fit : n;
            }
        }
    return n > 1 ? n : 1;
}

/* Returns the step of a chain to which its time is attributed: a product if it has one, else the
 * last that computes a node. That of a group is attributed to its first member. */
static const ggl_step *timed(const ggl_step *step) {
    const ggl_step *s = step + step->n_links - 1;
    if (step->node->op == GGL_OP_LINEAR)
        return step;
    while (s > step && s->kind == GGL_STEP_FORM)
        s--;
    return s;
}

/* Puts the node before a message: "blk.3 q: softmax: ..". */
static ggl_status within_step(const ggl_tensor *node, ggl_status st, ggl_error *err) {
    st = ggl_within(err, st, "%s", node->call ? node->call : ggl_op_get(node->op).name);
    return node->name ? ggl_within(err, st, "%s", node->name) : st;
}

/* Returns how many of the next n tokens the step's next dispatches compute: a bucket that fits
 * bindings, and when recording, usually one that fits a submission. */
static int64_t piece_of(const vk_emit *e, const plan *p, int64_t n) {
    int64_t piece = ggl_vk_bucket_within(slice_of(e->b, e->step, n), p->program.n_max);
    while (e->recording && piece > VK_LARGE_BUCKET &&
           ggl_vk_cost_of(e->step, piece).most > e->recording->limit)
        piece = ggl_vk_bucket_within(piece / 2, p->program.n_max);
    return piece;
}

/* Emits the dispatches for e->n tokens from e->first on. */
static ggl_status emit_piece(vk_emit *e, const plan *p, int i, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (e->recording)
        st = ggl_vk_recording_charge(e->b, e->recording, ggl_vk_cost_of(e->step, e->n), err);
    return st == GGL_OK ? p->op[i]->emit(e, err) : st;
}

static ggl_status emit_step(vk_emit *e, const plan *p, int i, int64_t n, ggl_error *err) {
    const ggl_step *step = e->step = &p->program.step[i];
    ggl_status st = GGL_OK;
    e->slot = p->slot[i];
    for (e->first = 0; e->first < n && st == GGL_OK; e->first += e->n) {
        e->n = piece_of(e, p, n - e->first);
        st = emit_piece(e, p, i, err);
    }
    if (st != GGL_OK)
        return within_step(step->node, st, err);
    if (e->recording && ggl_vk_profiles(e->b))
        ggl_vk_profile_step(e->b, &e->recording->profile, e->recording->commands, timed(step),
                            e->turn, n);
    return GGL_OK;
}

static ggl_status emit_loop(vk_emit *e, const plan *p, int first, int64_t turns, ggl_error *err) {
    const int end = p->program.step[first].end;
    ggl_status st = GGL_OK;
    for (e->turn = 0; e->turn < turns && st == GGL_OK; e->turn++)
        for (int i = first + 1; i < end && st == GGL_OK; i++)
            st = emit_step(e, p, i, 1, err); /* there are no chains in a loop */
    e->turn = 0;
    return st;
}

/* Emits every step for a batch of n, to be recorded or counted. With neither this only checks them,
 * with one turn per loop. */
static ggl_status emit_all(vk_backend *b, const plan *p, int64_t n, vk_recording *r,
                           vk_count *count, ggl_error *err) {
    vk_emit e = {.b = b,
                 .scratch = p->scratch,
                 .store_loc = p->store_loc,
                 .n_slots = p->n_slots,
                 .recording = r,
                 .count = count};
    e.n = n;
    ggl_status st = n > VK_SMALL_BUCKETS ? ggl_vk_slots_emit(&p->slots, &e, err) : GGL_OK;
    for (int i = 0; i < p->program.n_step && st == GGL_OK; i++) {
        if (p->program.step[i].kind == GGL_STEP_LOOP) {
            st = emit_loop(&e, p, i, r || count ? n : 1, err);
            i = p->program.step[i].end;
        } else {
            st = emit_step(&e, p, i, n, err);
            i += ggl_vk_n_entries(&p->program.step[i]) - 1;
        }
    }
    return st;
}

/* --- compiling -------------------------------------------------------------------------------- */

static void count_region(plan *p, int region) {
    p->n_regions = region >= p->n_regions ? region + 1 : p->n_regions;
}

/* Finds each step's operator, slots and scratch, and sizes the plan's arena. */
static ggl_status bind_steps(plan *p, const vk_backend *b, const ggl_segment *s, ggl_error *err) {
    size_t most = 0, arena = p->program.arena_size;
    ggl_status st = ggl_vk_slots_find(&p->slots, s, &arena, err);
    if (st != GGL_OK)
        return st;
    p->n_regions = GGL_REGION_STORES + 1;
    for (int i = 0; s->store_loc && i < ggl_graph_n_stores(s->graph); i++)
        count_region(p, s->store_loc[i].region);
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *step = &p->program.step[i];
        if (step->kind == GGL_STEP_LOOP && step->node->body->chunk > 0)
            return ggl_fail(err, GGL_UNSUPPORTED, "a recurrence that runs backward");
        if (step->kind == GGL_STEP_LOOP || step->kind == GGL_STEP_END)
            continue;
        p->op[i] = ggl_vk_op_of_step(step);
        if (!p->op[i])
            return within_step(
                step->node, ggl_fail(err, GGL_UNSUPPORTED, "%s has no kernel for it", b->base.name),
                err);
        p->slot[i] = ggl_step_slot(s, step);
        count_region(p, step->dst.region);
        for (int k = 0; k < step->n_src; k++)
            count_region(p, step->src[k].region);
        size_t scratch = step->n_members > 0 && p->op[i]->scratch
                             ? p->op[i]->scratch(b, step, slice_of(b, step, s->n_max))
                             : 0;
        most = scratch > most ? scratch : most;
    }
    if (!ggl_size_align(arena, VK_BUFFER_ALIGN, &p->scratch) ||
        !ggl_size_add(p->scratch, most, &p->base.arena_size))
        return ggl_fail(err, GGL_LIMIT, "the values between nodes are too large");
    return GGL_OK;
}

/* Emits all steps for each bucket without recording them: this finds what the device cannot do, and which
 * pipelines there must be. Then they are made. */
static ggl_status rehearse(vk_backend *b, const plan *p, ggl_error *err) {
    const int64_t n_max = p->program.n_max;
    ggl_status st = GGL_OK;
    for (int64_t n = 1; n <= n_max && st == GGL_OK;
         n = n < n_max ? ggl_vk_bucket_for(n + 1, n_max) : n + 1)
        st = emit_all(b, p, n, NULL, NULL, err);
    if (st == GGL_OK)
        return ggl_vk_pipelines_make(b, err);
    ggl_vk_pipelines_forget(b);
    return st;
}

static ggl_status compile(plan *p, vk_backend *b, const ggl_segment *s, ggl_error *err) {
    const ggl_program_params params = {.refuses = ggl_vk_refuses,
                                       .backend = &b->base,
                                       .in_place = ggl_vk_in_place,
                                       .form = ggl_vk_form,
                                       .chain = ggl_vk_chain,
                                       .loose_chain = ggl_vk_loose_chain,
                                       .joins = ggl_vk_joins,
                                       .tail = ggl_vk_tail,
                                       .value_type = GGL_F32};
    ggl_status st = ggl_program_build(&p->program, s, &params, err);
    if (st != GGL_OK)
        return st;
    const size_t n = (size_t)p->program.n_step + 1;
    p->op = ggl_calloc(n, sizeof *p->op);
    p->slot = ggl_calloc(n, sizeof *p->slot);
    p->store_loc = s->store_loc;
    p->n_slots = s->n_slots;
    if (!p->op || !p->slot)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    st = bind_steps(p, b, s, err);
    return st == GGL_OK ? rehearse(b, p, err) : st;
}

ggl_status ggl_vk_plan_compile(ggl_backend *base, const ggl_segment *s, ggl_plan **out,
                               ggl_error *err) {
    plan *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_status st = compile(p, (vk_backend *)base, s, err);
    if (st != GGL_OK) {
        ggl_vk_plan_free(base, &p->base);
        return st;
    }
    *out = &p->base;
    return GGL_OK;
}

void ggl_vk_plan_free(ggl_backend *base, ggl_plan *base_plan) {
    vk_backend *b = (vk_backend *)base;
    plan *p = (plan *)base_plan;
    (void)ggl_vk_wait_for(b, b->device->submitted, NULL); /* this reports the times of steps */
    b->f.DeviceWaitIdle(b->device->device);
    for (int i = 0; i < N_RECORDINGS; i++)
        ggl_vk_recording_close(b, &p->recording[i]);
    ggl_vk_buffer_free(base, p->sizes);
    ggl_program_fini(&p->program);
    ggl_free(p->op);
    ggl_free(p->slot);
    ggl_free(p);
}

void ggl_vk_plan_describe(ggl_backend *base, ggl_plan *p, int64_t n, char *text, size_t size) {
    vk_count count = {0};
    ggl_error err;
    if (emit_all((vk_backend *)base, (plan *)p, n, NULL, &count, &err) == GGL_OK)
        snprintf(text, size, "%lld dispatches, %lld barriers", (long long)count.dispatches,
                 (long long)count.barriers);
}

/* --- running ---------------------------------------------------------------------------------- */

static uint64_t id_of(const ggl_buffer *buf) {
    return buf ? buf->id : 0;
}

/* True if the recording was made for this bucket and these buffers. */
static bool serves(const plan *p, const vk_recording *r, ggl_buffer *const *region, int64_t n) {
    for (int i = 0; i < p->n_regions && r->id; i++)
        if (r->id[i] != id_of(region[i]))
            return false;
    return r->n == n;
}

/* Returns the recording for this bucket and these buffers, else the least recently used one, to
 * record into. */
static vk_recording *find_recording(plan *p, ggl_buffer *const *region, int64_t n) {
    vk_recording *best = &p->recording[0];
    for (int i = 0; i < N_RECORDINGS; i++) {
        vk_recording *r = &p->recording[i];
        if (serves(p, r, region, n))
            return r;
        best = r->used < best->used ? r : best;
    }
    return best;
}

/* Returns the number of steps in a run for n tokens, counting each turn of a loop. */
static size_t count_steps(const plan *p, int64_t n) {
    size_t count = 0;
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *step = &p->program.step[i];
        const bool loop = step->kind == GGL_STEP_LOOP;
        count += loop ? (size_t)(step->end - i - 1) * (size_t)n : 1;
        i = loop ? step->end : i;
    }
    return count;
}

/* Gives a recording for bucket n the place of the batch's size, and lets all steps use the slots
 * of batches of any size, or of n tokens. */
static ggl_status prepare_sizes(vk_backend *b, plan *p, vk_recording *r, int64_t n,
                                ggl_error *err) {
    const bool any_size = n > VK_SMALL_BUCKETS;
    ggl_status st = GGL_OK;
    if (any_size && !p->sizes)
        st = ggl_vk_buffer_alloc(&b->base, GGL_REGION_IO, N_RECORDINGS * VK_BUFFER_ALIGN, NULL,
                                 &p->sizes, err);
    r->sizes = p->sizes;
    r->size_at = (size_t)(r - p->recording) * VK_BUFFER_ALIGN;
    for (int i = 0; i < p->program.n_step; i++) {
        ggl_step *step = &p->program.step[i];
        for (int k = 0; k < step->n_src; k++)
            ggl_vk_slots_use(&p->slots, &step->src[k], any_size);
        ggl_vk_slots_use(&p->slots, &p->slot[i], any_size);
    }
    return st;
}

/* Records a run of bucket n with these buffers. */
static ggl_status record(vk_backend *b, plan *p, vk_recording *r, ggl_buffer *const *region,
                         int64_t n, ggl_error *err) {
    r->n = 0;
    r->region = region;
    b->n_recordings++;
    ggl_status st = ggl_vk_recording_open(r, p->n_regions, err);
    if (st == GGL_OK)
        st = prepare_sizes(b, p, r, n, err);
    if (st == GGL_OK && ggl_vk_profiles(b))
        st = ggl_vk_profile_open(b, &r->profile, count_steps(p, n), err);
    if (st == GGL_OK)
        st = ggl_vk_recording_begin(b, r, err);
    if (st != GGL_OK)
        return st;
    if (ggl_vk_profiles(b))
        ggl_vk_profile_begin(b, &r->profile, r->commands);
    st = emit_all(b, p, n, r, NULL, err);
    ggl_status ended = ggl_vk_recording_end(b, r, st == GGL_OK ? err : NULL);
    st = st == GGL_OK ? ended : st;
    for (int i = 0; i < p->n_regions; i++)
        r->id[i] = id_of(region[i]);
    r->region = NULL;
    r->n = st == GGL_OK ? n : 0;
    return st;
}

/* Returns the bucket for a batch of n. A batch whose slots cannot be copied has its own. */
static int64_t bucket_of(const plan *p, int64_t n) {
    return p->slots.n < 0 ? n : ggl_vk_bucket_for(n, p->program.n_max);
}

/* Submits a recording for a batch of n. Its last submission has ended. */
static ggl_status submit(vk_backend *b, vk_recording *r, int64_t n, ggl_error *err) {
    const uint32_t size = (uint32_t)n;
    ggl_status st = GGL_OK;
    if (r->n > VK_SMALL_BUCKETS && r->sizes->mapped)
        memcpy(r->sizes->mapped + r->size_at, &size, sizeof size);
    else if (r->n > VK_SMALL_BUCKETS)
        st = ggl_vk_buffer_upload(&b->base, r->sizes, r->size_at, &size, sizeof size, err);
    if (st == GGL_OK)
        st = ggl_vk_submit_run(b, r->part, r->n_part, &r->number, err);
    if (st != GGL_OK)
        return st;
    ggl_vk_pace_submitted(b, r->number, r->cost.least);
    if (ggl_vk_profiles(b))
        ggl_vk_profile_submitted(b, &r->profile, r->number, n);
    return GGL_OK;
}

ggl_status ggl_vk_plan_run(ggl_backend *base, ggl_plan *base_plan, ggl_buffer *const *region,
                           int64_t n, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    plan *p = (plan *)base_plan;
    const int64_t bucket = bucket_of(p, n);
    vk_recording *r = find_recording(p, region, bucket);
    const bool outgrown = r->n_part > 1 && ggl_vk_pace_limit(b) >= GROWN * r->limit;
    ggl_status st = ggl_vk_wait_for(b, r->number, err);
    if (st == GGL_OK && (outgrown || !serves(p, r, region, bucket)))
        st = record(b, p, r, region, bucket, err);
    r->used = ++p->clock;
    if (st == GGL_OK)
        st = submit(b, r, n, err);
    for (int i = 0; i < p->n_regions && st == GGL_OK; i++)
        if (region[i])
            region[i]->last = r->number;
    return st;
}
