/* Runs a plan. Small steps run on the calling thread: waking the others costs some microseconds.
 * Loops over the batch run on the calling thread alone. */
#include <string.h>
#include <time.h>

#include "cpu.h"

/* In units of cpu_task.cost, of which a core does some 25 in a nanosecond. A step, a step when
 * threads sleep, a chunk of units; a run, so that threads are woken before its first step. */
static const double WORTH_SHARING = 150e3, WORTH_WAKING = 1e6, WORTH_FETCHING = 15e3,
                    RUN_WORTH_WAKING = 3e6;

typedef struct run_state {
    const cpu_backend *b;
    const cpu_plan *plan;
    ggl_buffer *const *region;
    int64_t n;
    double shareable; /* work in steps that are worth sharing */
} run_state;

static cpu_view view_of(const run_state *r, const ggl_operand *o, int64_t turn) {
    cpu_view v = {.p = NULL};
    if (o->region < 0)
        return v;
    v.p = r->region[o->region]->data + o->offset + (size_t)turn * o->loop;
    memcpy(v.ne, o->ne, sizeof v.ne);
    memcpy(v.nb, o->nb, sizeof v.nb);
    if (v.ne[GGL_BATCH_DIM] == GGL_N)
        v.ne[GGL_BATCH_DIM] = r->n;
    return v;
}

static void run_units(void *ctx, int64_t first, int64_t last, int thread) {
    const cpu_task *t = ctx;
    t->step->op->run(t, first, last, thread);
}

static void run_step(run_state *r, const cpu_step *s, int64_t turn) {
    cpu_task t = {
        .step = s, .b = r->b, .n = s->in_loop ? 1 : r->n, .thread_step = r->plan->thread_step};
    t.dst = view_of(r, &s->dst, turn);
    for (int i = 0; i < s->n_src; i++)
        t.src[i] = view_of(r, &s->src[i], turn);
    for (int i = s->n_src; i < GGL_MAX_SRC; i++)
        t.src[i].p = NULL;
    t.stores = r->region[GGL_REGION_STORES] ? r->region[GGL_REGION_STORES]->data : NULL;
    t.arena = r->region[GGL_REGION_ARENA]->data;
    t.shared = t.arena + s->shared_at;
    if (s->slot.region >= 0)
        t.slot = (const int32_t *)view_of(r, &s->slot, turn).p;
    t.n_threads = s->in_loop ? 1 : r->n > 1 ? r->b->n_threads_batch : r->b->n_threads;
    s->op->begin(&t);
    double work = t.cost * (double)t.n_units;
    int64_t chunk = t.n_units;
    r->shareable += t.n_threads > 1 && work >= WORTH_SHARING ? work : 0;
    if (r->b->share_all) {
        chunk = 1;
    } else if (t.n_threads > 1 &&
               work >= (cpu_pool_sleeps(r->b->pool) ? WORTH_WAKING : WORTH_SHARING)) {
        chunk = cpu_max(1, t.n_units / (8 * t.n_threads));
        if ((double)chunk * t.cost < WORTH_FETCHING)
            chunk = cpu_min(t.n_units, (int64_t)(WORTH_FETCHING / t.cost) + 1);
    }
    cpu_pool_run(r->b->pool, t.n_threads, run_units, &t, t.n_units, chunk);
    if (s->op->end)
        s->op->end(&t);
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_step_timed(run_state *r, const cpu_step *s, int64_t turn) {
    double begin = now_ns();
    run_step(r, s, turn);
    bool prepares = s->op == &cpu_op_columns || s->op == &cpu_op_rope_table;
    r->b->profile(r->b->profile_ctx, s->node, s->in_loop ? 1 : r->n, prepares, now_ns() - begin);
}

ggl_status cpu_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                   ggl_error *err) {
    (void)err;
    cpu_plan *plan = (cpu_plan *)p;
    run_state r = {(const cpu_backend *)b, plan, region, n, 0};
    uint64_t mode = cpu_float_mode_set();
    if (plan->shareable >= RUN_WORTH_WAKING)
        cpu_pool_wake(r.b->pool);
    int64_t turn = 0;
    for (int i = 0; i < plan->n_step; i++) {
        const cpu_step *s = &plan->step[i];
        if (s->kind == GGL_STEP_LOOP)
            turn = 0;
        else if (s->kind == GGL_STEP_NODE)
            (r.b->profile ? run_step_timed : run_step)(&r, s, s->in_loop ? turn : 0);
        else if (++turn < n)
            i = s->end; /* goes on behind LOOP */
    }
    plan->shareable = r.shareable;
    cpu_float_mode_restore(mode);
    return GGL_OK;
}
