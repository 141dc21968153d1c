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
    ggl_turns turns;  /* of the last loop that has begun */
    int loop;         /* index of its LOOP */
} run_state;

/* The part of the batch that a task computes: n items from `first` on. turn, in_chunk: of a loop (ggl_turns); else 0. */
typedef struct range {
    int64_t first, n, turn, in_chunk;
} range;

/* Returns all of the batch, or, in a loop, the element whose turn it is. */
static range range_of(const run_state *r, const cpu_step *s) {
    return s->in_loop ? (range){0, r->n, r->turns.turn, r->turns.in_chunk} : (range){.n = r->n};
}

/* Returns the view of an operand for that part of the batch; p is NULL if it is absent. */
static cpu_view view_of(const run_state *r, const ggl_operand *o, range of) {
    cpu_view v = {.p = NULL};
    if (o->region < 0)
        return v;
    v.p = r->region[o->region]->data + o->offset +
          (size_t)(o->in_chunk ? of.in_chunk : of.turn) * o->loop;
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
                  .turns = &r->turns,
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

/* Runs n steps from s on side by side. */
static void run_steps(run_state *r, const cpu_step *s, int n) {
    together g = {.list.n = n};
    for (int i = 0; i < n; i++) {
        g.task[i] = task_of(r, s + i, range_of(r, s + i));
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
            cpu_task t =
                task_of(g->r, &g->s[i], (range){.first = l, .n = cpu_min(g->s->items, last - l)});
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
        cpu_task t = task_of(r, s + i, (range){.n = r->n});
        work += t.cost * (double)t.n_units;
        n_threads = t.n_threads;
    }
    g.list.share[0] = (cpu_share){.cost = work / (double)r->n, .n_units = r->n};
    run_list(r, &g.list, n_threads, NULL, run_items, &g);
}

/* Runs one step and reports its time to the profile. */
static void run_step_timed(run_state *r, const cpu_step *s) {
    uint64_t begin = ggl_os_clock();
    run_steps(r, s, 1);
    r->b->profile(r->b->profile_ctx, s->node, s->in_loop ? 1 : r->n, s->form != 0, begin,
                  ggl_os_clock());
}

/* Goes on to the next turn of the loop: returns the index of the step after which the run continues. */
static int next_turn(run_state *r) {
    const cpu_step *step = r->plan->step;
    const int second = step[r->loop].node->body->chunk > 0 ? step[r->loop].end + 1 : r->loop;
    if (!ggl_turns_next(&r->turns))
        return step[second].end;
    return r->turns.backward ? second : r->loop;
}

/* The same for a loop that begins at this step. */
static int begin_loop(run_state *r, int loop) {
    const cpu_step *s = &r->plan->step[loop];
    const cpu_view slot = s->n_src > 0 ? view_of(r, &s->src[0], (range){.n = r->n}) : (cpu_view){0};
    ggl_turns_begin(&r->turns, s->node->body, (const int32_t *)slot.p, r->n,
                    r->plan->program.n_max);
    r->loop = loop;
    return next_turn(r);
}

/* Returns how many turns the loop has that begins at this step. */
static int64_t turns_of(const cpu_plan *plan, int loop, int64_t n) {
    const ggl_tensor *call = plan->step[loop].node;
    const bool is_first =
        loop == 0 || plan->step[loop - 1].kind != GGL_STEP_END || plan->step[loop - 1].node != call;
    return is_first ? ggl_turns_n_forward(call->body->chunk, n) : n;
}

void ggl_cpu_describe(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size) {
    (void)b;
    const cpu_plan *plan = (const cpu_plan *)p;
    long long steps = 0, tasks = 0, turns = 1;
    for (int i = 0; i < plan->n_step; i++) {
        const cpu_step *s = &plan->step[i];
        const bool alone = s->items && n == 1; /* as in ggl_cpu_run */
        if (s->kind != GGL_STEP_NODE) {
            turns = s->kind == GGL_STEP_LOOP ? turns_of(plan, i, n) : 1;
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
    run_state r = {.b = (const cpu_backend *)b, .plan = plan, .region = region, .n = n};
    uint64_t mode = ggl_cpu_float_mode_set();
    if (plan->shareable >= RUN_WORTH_WAKING)
        ggl_cpu_pool_wake(r.b->pool);
    bool stopped = false;
    for (int i = 0; i < plan->n_step; i++) {
        const cpu_step *s = &plan->step[i];
        stopped = b->cancelled && b->cancelled(b->cancelled_ctx);
        if (stopped)
            break;
        if (s->kind == GGL_STEP_LOOP)
            i = begin_loop(&r, i);
        else if (s->kind == GGL_STEP_END)
            i = next_turn(&r);
        else if (r.b->profile)
            run_step_timed(&r, s);
        else if (s->items && n == 1)
            run_steps(&r, s, 1); /* one item: the group's other steps follow one by one */
        else {
            if (s->items)
                run_by_items(&r, s, s->n_together);
            else
                run_steps(&r, s, s->n_together);
            i += s->n_together - 1;
        }
    }
    plan->shareable = r.shareable;
    ggl_cpu_float_mode_restore(mode);
    return stopped ? ggl_fail(err, GGL_CANCELLED, "the run was stopped") : GGL_OK;
}
