/* A plan is compiled once: each step gets its operator, which creates its pipelines. A run
 * submits a recording. Runs with other buffers or another batch size need other recordings; a
 * few are kept, because callers alternate between two or three sets of buffers. */
#include "plan.h"

#include <string.h>

#include "ggl/alloc.h"
#include "recording.h"

enum { N_RECORDINGS = 4 };

typedef struct plan {
    ggl_plan base;
    ggl_program program;
    const vk_op **op; /* by step */
    /* by step, for recurrent composites: the slot of each token; region -1: none */
    ggl_operand *slot;
    size_t scratch; /* offset of the scratch, after the program's arena */
    const size_t *store_loc;
    int64_t n_slots;
    int n_regions; /* regions that the steps use: 0 .. n_regions - 1 */
    vk_recording recording[N_RECORDINGS];
    uint64_t clock;
} plan;

/* --- emitting --------------------------------------------------------------------------------- */

/* Returns how many tokens of the batch to process at a time, so that each operand fits a
 * binding. Any number is right, as operators treat tokens independently or in order. */
static int64_t slice_of(const vk_backend *b, const ggl_step *step, int64_t n) {
    const size_t most = b->limits.max_range - 2 * b->limits.offset_align;
    for (int i = -1; i < step->n_src; i++) {
        const ggl_operand *o = i < 0 ? &step->dst : &step->src[i];
        if (o->region >= 0 && o->ne[GGL_BATCH_DIM] == GGL_N && o->nb[GGL_BATCH_DIM] > 0) {
            int64_t fit = (int64_t)(most / o->nb[GGL_BATCH_DIM]);
            n = fit < n ? fit : n;
        }
    }
    return n > 1 ? n : 1;
}

/* Puts the node before a message: "blk.3 q: softmax: ..". */
static ggl_status within_step(const ggl_tensor *node, ggl_status st, ggl_error *err) {
    st = ggl_within(err, st, "%s", node->call ? node->call : ggl_op_get(node->op).name);
    return node->name ? ggl_within(err, st, "%s", node->name) : st;
}

static ggl_status emit_step(vk_emit *e, const plan *p, int i, int64_t n, ggl_error *err) {
    const ggl_step *step = e->step = &p->program.step[i];
    const int64_t slice = slice_of(e->b, step, n);
    ggl_status st = GGL_OK;
    e->slot = p->slot[i];
    for (e->first = 0; e->first < n && st == GGL_OK; e->first += slice) {
        e->n = slice < n - e->first ? slice : n - e->first;
        st = p->op[i]->emit(e, err);
    }
    if (st != GGL_OK)
        return within_step(step->node, st, err);
    if (e->recording && ggl_vk_profiles(e->b))
        ggl_vk_profile_step(e->b, &e->recording->profile, e->recording->commands, step->node, n);
    return GGL_OK;
}

static ggl_status emit_loop(vk_emit *e, const plan *p, int first, int64_t turns, ggl_error *err) {
    const int end = p->program.step[first].end;
    ggl_status st = GGL_OK;
    for (e->turn = 0; e->turn < turns && st == GGL_OK; e->turn++)
        for (int i = first + 1; i < end && st == GGL_OK; i++)
            st = emit_step(e, p, i, 1, err);
    e->turn = 0;
    return st;
}

/* Emits every step for a batch of n. Without a recording this only checks them, with one turn
 * per loop. */
static ggl_status emit_all(vk_backend *b, const plan *p, int64_t n, vk_recording *r,
                           ggl_error *err) {
    vk_emit e = {.b = b,
                 .scratch = p->scratch,
                 .store_loc = p->store_loc,
                 .n_slots = p->n_slots,
                 .recording = r};
    ggl_status st = GGL_OK;
    for (int i = 0; i < p->program.n_step && st == GGL_OK; i++) {
        if (p->program.step[i].kind == GGL_STEP_LOOP) {
            st = emit_loop(&e, p, i, r ? n : 1, err);
            i = p->program.step[i].end;
        } else {
            st = emit_step(&e, p, i, n, err);
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
    size_t most = 0;
    p->n_regions = GGL_REGION_STORES + 1;
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *step = &p->program.step[i];
        if (step->kind != GGL_STEP_NODE)
            continue;
        p->op[i] = ggl_vk_op_of(step->node);
        if (!p->op[i])
            return within_step(
                step->node, ggl_fail(err, GGL_UNSUPPORTED, "%s has no kernel for it", b->base.name),
                err);
        p->slot[i] = ggl_step_slot(s, step);
        count_region(p, step->dst.region);
        for (int k = 0; k < step->n_src; k++)
            count_region(p, step->src[k].region);
        size_t scratch =
            p->op[i]->scratch ? p->op[i]->scratch(b, step, slice_of(b, step, s->n_max)) : 0;
        most = scratch > most ? scratch : most;
    }
    if (!ggl_size_align(p->program.arena_size, VK_BUFFER_ALIGN, &p->scratch) ||
        !ggl_size_add(p->scratch, most, &p->base.arena_size))
        return ggl_fail(err, GGL_LIMIT, "the values between nodes are too large");
    return GGL_OK;
}

static ggl_status compile(plan *p, vk_backend *b, const ggl_segment *s, ggl_error *err) {
    const ggl_program_params params = {.refuses = ggl_vk_refuses,
                                       .backend = &b->base,
                                       .in_place = ggl_vk_in_place,
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
    for (int i = 0; i < N_RECORDINGS && st == GGL_OK; i++)
        st = ggl_vk_recording_open(b, &p->recording[i], p->n_regions, err);
    return st == GGL_OK ? emit_all(b, p, s->n_max, NULL, err) : st;
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
    b->f.DeviceWaitIdle(b->device->device);
    for (int i = 0; i < N_RECORDINGS; i++)
        ggl_vk_recording_close(b, &p->recording[i]);
    ggl_program_fini(&p->program);
    ggl_free(p->op);
    ggl_free(p->slot);
    ggl_free(p);
}

/* --- running ---------------------------------------------------------------------------------- */

static uint64_t id_of(const ggl_buffer *buf) {
    return buf ? buf->id : 0;
}

static bool has_buffers(const plan *p, const vk_recording *r, ggl_buffer *const *region) {
    for (int i = 0; i < p->n_regions; i++)
        if (r->id[i] != id_of(region[i]))
            return false;
    return r->n > 0;
}

/* Returns the recording with these buffers, else the least recently used one, to record into. */
static vk_recording *find_recording(plan *p, ggl_buffer *const *region) {
    vk_recording *best = &p->recording[0];
    for (int i = 0; i < N_RECORDINGS; i++) {
        vk_recording *r = &p->recording[i];
        if (has_buffers(p, r, region))
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

/* Records a run for n tokens with these buffers. */
static ggl_status record(vk_backend *b, const plan *p, vk_recording *r, ggl_buffer *const *region,
                         int64_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    r->n = 0;
    r->region = region;
    if (ggl_vk_profiles(b))
        st = ggl_vk_profile_open(b, &r->profile, count_steps(p, n), err);
    if (st == GGL_OK)
        st = ggl_vk_recording_begin(b, r, err);
    if (st == GGL_OK) {
        if (ggl_vk_profiles(b))
            ggl_vk_profile_begin(b, &r->profile, r->commands);
        st = emit_all(b, p, n, r, err);
        ggl_status ended = ggl_vk_recording_end(b, r, st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? ended : st;
    }
    for (int i = 0; i < p->n_regions; i++)
        r->id[i] = id_of(region[i]);
    r->region = NULL;
    r->n = st == GGL_OK ? n : 0;
    return st;
}

ggl_status ggl_vk_plan_run(ggl_backend *base, ggl_plan *base_plan, ggl_buffer *const *region,
                           int64_t n, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    plan *p = (plan *)base_plan;
    vk_recording *r = find_recording(p, region);
    ggl_status st = ggl_vk_wait_for(b, r->number, err);
    if (st == GGL_OK && (r->n != n || !has_buffers(p, r, region)))
        st = record(b, p, r, region, n, err);
    r->used = ++p->clock;
    if (st == GGL_OK)
        st = ggl_vk_submit(b, r->commands, &r->number, err);
    if (st != GGL_OK || !ggl_vk_profiles(b))
        return st;
    st = ggl_vk_wait_for(b, r->number, err);
    return st == GGL_OK ? ggl_vk_profile_tell(b, &r->profile, err) : st;
}
