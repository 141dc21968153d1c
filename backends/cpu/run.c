/* Runs a plan. Small steps run on the calling thread alone, because waking the others costs some
 * microseconds. So do loops over the batch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu.h"
#include "ggl/internal/os_clock.h"
#include "share.h"

/* The least work, in units of cpu_task.cost, of a run that wakes threads before its first step. */
static const double RUN_WORTH_WAKING = 3e6;

typedef struct run_state {
    const cpu_backend *b;
    const cpu_plan *plan;
    ggl_buffer *const *region;
    int64_t n;
    double shareable; /* work in steps that are worth sharing */
} run_state;

/* The part of the batch that a task computes: n items from `first` on. turn: of a loop, from 0. */
typedef struct range {
    int64_t first, n, turn;
} range;

/* Returns the view of an operand for that part of the batch; p is NULL if it is absent. */
static cpu_view view_of(const run_state *r, const ggl_operand *o, range of) {
    cpu_view v = {.p = NULL};
    if (o->region < 0)
        return v;
    v.p = r->region[o->region]->data + o->offset + (size_t)of.turn * o->loop;
    memcpy(v.ne, o->ne, sizeof v.ne);
    memcpy(v.nb, o->nb, sizeof v.nb);
    if (v.ne[GGL_BATCH_DIM] == GGL_N) {
        v.ne[GGL_BATCH_DIM] = of.n;
        v.p += (size_t)of.first * v.nb[GGL_BATCH_DIM];
    }
    return v;
}

/* Returns the task of a step for that part of the batch, after its operator's begin(). */
static cpu_task task_of(const run_state *r, const cpu_step *s, range of) {
    cpu_task t = {.step = s,
                  .b = r->b,
                  .region = r->region,
                  .n = s->in_loop ? 1 : of.n,
                  .thread_step = r->plan->thread_step};
    t.dst = view_of(r, &s->dst, of);
    for (int i = 0; i < s->n_src; i++)
        t.src[i] = view_of(r, &s->src[i], of);
    for (int i = s->n_src; i < GGL_MAX_SRC; i++)
        t.src[i].p = NULL;
    if (r->region[GGL_REGION_ARENA]) { /* a single node, as the shadow runs it, may need none */
        t.arena = r->region[GGL_REGION_ARENA]->data;
        t.shared = t.arena + s->shared_at;
    }
    if (s->slot.region >= 0)
        t.slot = (const int32_t *)view_of(r, &s->slot, of).p;
    t.n_threads = s->in_loop ? 1 : r->n > 1 ? r->b->n_threads_batch : r->b->n_threads;
    s->op->begin(&t);
    return t;
}

/* Divides the list among threads, each of which calls fn for the chunks that it takes. task: the list's tasks; NULL: it is of items. */
static void run_list(run_state *r, cpu_list *list, int n_threads, const cpu_task *task,
                     cpu_pool_fn *fn, void *ctx) {
    double work = 0;
    for (int i = 0; i < list->n; i++)
        work += list->share[i].cost * (double)list->share[i].n_units;
    r->shareable += n_threads > 1 && work >= ggl_cpu_worth_sharing ? work : 0;
    const double at_once =
        r->b->share_all ? 0
                        : ggl_cpu_work_at_once(work, n_threads,
                                               !r->b->watch && ggl_cpu_pool_sleeps(r->b->pool));
    const int64_t n_chunks = ggl_cpu_divide(list->share, list->n, at_once);
    ggl_cpu_pool_spread(r->b->pool, n_threads, &list->spread);
    if (r->b->watch) {
        r->b->watch(r->b->watch_ctx, list, n_threads, task);
        return;
    }
    int64_t end[CPU_MAX_TEAMS];
    ggl_cpu_list_parts(list, end);
    ggl_cpu_pool_run(r->b->pool, n_threads, fn, ctx, n_chunks, isinf(at_once) ? n_chunks : 1, end);
}

/* Tasks that run side by side. */
typedef struct together {
    cpu_list list;
    cpu_task task[GGL_MAX_GROUP];
} together;

/* Runs chunks first .. last - 1 of the list (cpu_pool_fn). */
static void run_chunks(void *ctx, int64_t first, int64_t last, int thread) {
    const together *g = ctx;
    for (int team = 0; team < g->list.spread.n_teams && last > 0; team++)
        for (int i = 0; i < g->list.n; i++) {
            int64_t begin, end;
            ggl_cpu_list_take(&g->list, i, team, &first, &last, &begin, &end);
            if (begin < end)
                g->task[i].step->op->run(&g->task[i], begin, end, thread);
        }
}

/* Tells the scheduler what the tasks read, and waits for it. */
static void await_weights(const cpu_backend *b, const together *g) {
    bool any = false;
    for (int i = 0; i < g->list.n; i++)
        if (g->task[i].step->op->reads) {
            g->task[i].step->op->reads(&g->task[i]);
            any = true;
        }
    if (any)
        b->base.reads(b->base.reads_ctx, NULL, 0);
}

/* Runs n steps from s on side by side. turn: the pass of the loop that they are in. */
static void run_steps(run_state *r, const cpu_step *s, int n, int64_t turn) {
    together g = {.list.n = n};
    for (int i = 0; i < n; i++) {
        g.task[i] = task_of(r, s + i, (range){0, r->n, turn});
        g.list.share[i] = (cpu_share){.cost = g.task[i].cost, .n_units = g.task[i].n_units};
    }
    if (r->b->base.reads)
        await_weights(r->b, &g);
    run_list(r, &g.list, g.task[0].n_threads, g.task, run_chunks, &g);
    for (int i = 0; i < n; i++)
        if (s[i].op->end && !r->b->watch)
            s[i].op->end(&g.task[i]);
}

/* A group of n steps that run by items. */
typedef struct by_items {
    cpu_list list; /* of one task, whose units are the items */
    const run_state *r;
    const cpu_step *s;
    int n;
} by_items;

/* Takes items first .. last - 1 through all steps of the group, s->items at a time. */
static void run_range(const by_items *g, int64_t first, int64_t last, int thread) {
    for (int64_t l = first; l < last; l += g->s->items)
        for (int i = 0; i < g->n; i++) {
            cpu_task t = task_of(g->r, &g->s[i], (range){l, cpu_min(g->s->items, last - l), 0});
            t.step->op->run(&t, 0, t.n_units, thread);
        }
}

/* Runs chunks first .. last - 1 of the list (cpu_pool_fn). */
static void run_items(void *ctx, int64_t first, int64_t last, int thread) {
    const by_items *g = ctx;
    for (int team = 0; team < g->list.spread.n_teams && last > 0; team++) {
        int64_t begin, end;
        ggl_cpu_list_take(&g->list, 0, team, &first, &last, &begin, &end);
        run_range(g, begin, end, thread);
    }
}

/* Runs n steps from s on by items. */
static void run_by_items(run_state *r, const cpu_step *s, int n) {
    by_items g = {.list.n = 1, .r = r, .s = s, .n = n};
    double work = 0;
    int n_threads = 1;
    for (int i = 0; i < n; i++) {
        cpu_task t = task_of(r, s + i, (range){0, r->n, 0});
        work += t.cost * (double)t.n_units;
        n_threads = t.n_threads;
    }
    g.list.share[0] = (cpu_share){.cost = work / (double)r->n, .n_units = r->n};
    run_list(r, &g.list, n_threads, NULL, run_items, &g);
}

/* Runs one step and reports its time to the profile. */
static void run_step_timed(run_state *r, const cpu_step *s, int64_t turn) {
    uint64_t begin = ggl_os_clock();
    run_steps(r, s, 1, turn);
    r->b->profile(r->b->profile_ctx, s->node, s->in_loop ? 1 : r->n, s->form != 0, begin,
                  ggl_os_clock());
}

void ggl_cpu_describe(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size) {
    (void)b;
    const cpu_plan *plan = (const cpu_plan *)p;
    long long steps = 0, tasks = 0, turns = 1;
    for (int i = 0; i < plan->n_step; i++) {
        const cpu_step *s = &plan->step[i];
        const bool alone = s->items && n == 1; /* as in ggl_cpu_run */
        if (s->kind != GGL_STEP_NODE) {
            turns = s->kind == GGL_STEP_LOOP ? n : 1;
            continue;
        }
        const int n_steps = alone ? 1 : s->n_together;
        steps += turns * n_steps;
        tasks += turns;
        i += n_steps - 1;
    }
    snprintf(text, size, "%lld steps in %lld tasks", steps, tasks);
}

ggl_status ggl_cpu_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                       ggl_error *err) {
    cpu_plan *plan = (cpu_plan *)p;
    run_state r = {(const cpu_backend *)b, plan, region, n, 0};
    uint64_t mode = ggl_cpu_float_mode_set();
    if (plan->shareable >= RUN_WORTH_WAKING)
        ggl_cpu_pool_wake(r.b->pool);
    int64_t passes = 0, turn = 0; /* of a loop; turn: the element of the batch */
    bool stopped = false;
    for (int i = 0; i < plan->n_step; i++) {
        const cpu_step *s = &plan->step[i];
        stopped = b->cancelled && b->cancelled(b->cancelled_ctx);
        if (stopped)
            break;
        if (s->kind == GGL_STEP_LOOP) {
            passes = 0;
            turn = s->node->body->backward ? n - 1 : 0;
        } else if (s->kind == GGL_STEP_NODE && r.b->profile)
            run_step_timed(&r, s, s->in_loop ? turn : 0);
        else if (s->kind == GGL_STEP_NODE && s->items && n == 1)
            run_steps(&r, s, 1, 0); /* one item: the group's other steps follow one by one */
        else if (s->kind == GGL_STEP_NODE) {
            if (s->items)
                run_by_items(&r, s, s->n_together);
            else
                run_steps(&r, s, s->n_together, s->in_loop ? turn : 0);
            i += s->n_together - 1;
        } else if (++passes < n) {
            turn += s->node->body->backward ? -1 : 1;
            i = s->end; /* continues after LOOP */
        }
    }
    plan->shareable = r.shareable;
    ggl_cpu_float_mode_restore(mode);
    return stopped ? ggl_fail(err, GGL_CANCELLED, "the run was stopped") : GGL_OK;
}
