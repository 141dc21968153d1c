/* How up to 64 threads share the tasks of whole models, without a clock and without computing anything: plans of made-up
 * models hand their tasks, divided as for a run, to a simulation. `GGL_SCHEDULE_TABLE=1 test-unit-schedule` prints the numbers of
 * docs/cpu-backend.md.
 *
 * The simulation: a core of speed 1 does 25 of cost in a nanosecond, as share.c assumes. Each thread that takes part reads weights
 * and rows of the cache at an equal part of the memory's rate. The counter of a team gives out one chunk in 30 ns, one after
 * another. Unpacking rows again for a part of the columns takes as long as 12 columns. A task begins for the caller at once, for the others after 200 ns, and 20 ns apart; it ends 100 ns after its last
 * chunk. */
#include <math.h>

#include "cpu.h"
#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/sched.h"
#include "test.h"

enum { MOST_THREADS = 64, MOST_BATCH = 512, CONTEXT = 4096, LAYERS = 2 };

static const double COST_PER_NS = 25, FETCH = 30, JOIN = 200, NEXT_JOIN = 20, LEAVE = 100,
                    UNPACKING = 12;

/* --- models ----------------------------------------------------------------------------------- */

typedef struct shape {
    const char *name;
    int64_t n_embd, n_ff, n_head, n_store, d, n_vocab, n_expert,
        n_used; /* n_expert 0: no mixture */
} shape;

static const shape one_b = {"1B", 2048, 8192, 32, 8, 64, 128256, 0, 0},
                   eight_b = {"8B", 4096, 14336, 32, 8, 128, 128256, 0, 0},
                   mixture = {"30B, 8 of 128", 2048, 768, 32, 4, 128, 151936, 128, 8};

/* A weight whose elements nobody reads. */
static ggl_tensor *weight(ggl_graph *g, int n_dims, int64_t k, int64_t m, int64_t n) {
    static const char nothing[64];
    static int n_weights;
    char name[32];
    snprintf(name, sizeof name, "w%d", n_weights++);
    return ggl_graph_weight(g, name, n_dims == 1 ? GGL_F32 : GGL_Q4_0, n_dims, (int64_t[]){k, m, n},
                            nothing);
}

static ggl_tensor *norm(ggl_graph *g, ggl_tensor *x) {
    return ggl_rms_norm(g, x, weight(g, 1, x ? x->ne[0] : 1, 1, 1), NULL, 1e-5);
}

static ggl_tensor *product(ggl_graph *g, ggl_tensor *x, int64_t m) {
    return ggl_linear(g, x, weight(g, 2, x ? x->ne[0] : 1, m, 1), NULL);
}

/* The product of each of the chosen experts. */
static ggl_tensor *products(ggl_graph *g, const shape *s, ggl_tensor *x, int64_t m, ggl_tensor *e) {
    if (!s->n_expert)
        return product(g, x, m);
    ggl_tensor *stack = weight(g, 3, x ? x->ne[0] : 1, m, s->n_expert);
    return ggl_linear(g, x, ggl_graph_op(g, GGL_OP_PICK, (ggl_tensor *[]){stack, e}, 2, NULL, 0),
                      NULL);
}

static ggl_graph *graph_of(const shape *s) {
    const ggl_graph_params p = {.size = sizeof p,
                                .n_pos = CONTEXT,
                                .n_batch = MOST_BATCH,
                                .n_slots = 1,
                                .type_k = GGL_F16,
                                .type_v = GGL_F16};
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &s->n_embd, true), *e = NULL;
    if (s->n_expert) /* which experts a token has: in a model, a product of its own */
        e = ggl_graph_input(g, "e", GGL_I32, 1, &s->n_used, true);
    for (int i = 0; i < LAYERS; i++) {
        ggl_tensor *h = norm(g, x), *f = ggl_rope_freqs(g, s->d, 10000);
        ggl_tensor *q = ggl_heads(g, product(g, h, s->n_head * s->d), s->n_head),
                   *k = ggl_heads(g, product(g, h, s->n_store * s->d), s->n_store),
                   *v = ggl_heads(g, product(g, h, s->n_store * s->d), s->n_store);
        q = ggl_binary(g, GGL_OP_ROPE_PAIR, q, f);
        k = ggl_binary(g, GGL_OP_ROPE_PAIR, k, f);
        h = ggl_attention(g, q, k, v, NULL);
        x = ggl_binary(g, GGL_OP_ADD, x, product(g, h, s->n_embd));
        h = norm(g, x);
        if (s->n_expert)
            h = ggl_reshape(g, h, 2, (int64_t[]){s->n_embd, 1});
        ggl_tensor *gate = ggl_silu(g, products(g, s, h, s->n_ff, e)),
                   *up = products(g, s, h, s->n_ff, e);
        h = products(g, s, ggl_binary(g, GGL_OP_MUL, gate, up), s->n_embd, e);
        if (s->n_expert)
            h = ggl_weighted(
                g, h, ggl_graph_input(g, i ? "share1" : "share0", GGL_F32, 1, &s->n_used, true));
        x = ggl_binary(g, GGL_OP_ADD, x, h);
    }
    ggl_graph_output(g, "y", product(g, norm(g, x), s->n_vocab));
    return g;
}

/* --- the simulation --------------------------------------------------------------------------- */

/* Threads: the first n_big have speed 1, the others `small`. rate: bytes that the memory gives in a nanosecond. */
typedef struct machine {
    int n, n_big;
    double small, rate;
} machine;

typedef struct tally {
    const machine *m;
    double now;                 /* ns */
    double compute;             /* ns that one core of speed 1 would take */
    double shared;              /* ns of tasks that threads share */
    double idle;                /* ns in which threads wait in them, all threads together */
    double bytes[MOST_THREADS]; /* that each thread reads of weights and caches */
    int64_t n_tasks, n_shared, n_chunks;
    int64_t n_alone; /* tasks large enough to be shared that one thread runs */
    double
        most_chunks; /* that a thread waits at the end of a task, in the longest chunks of the task */
    bool check;      /* count the units of each task */
    int64_t n_wrong; /* units that were not taken once */
} tally;

static double speed_of(const machine *m, int thread) {
    return thread < m->n_big ? 1 : m->small;
}

/* Bytes of memory that a task reads. */
static double bytes_of(const cpu_task *t) {
    const cpu_step *s = t->step;
    if (s->op == &ggl_cpu_op_linear)
        return (double)ggl_row_size(s->src[LINEAR_W].type, s->src[LINEAR_W].ne[0]) *
               (double)(t->dst.ne[0] * t->unit.linear.n_matrices);
    if (s->op == &ggl_cpu_op_attend) /* of the cost, 4 are for 2 bytes of each head's queries */
        return t->cost * (double)t->n_units * (double)s->attend.kept[0].store->ne[1] /
               (double)(t->dst.ne[1] * t->n);
    return 0;
}

/* Returns how long a core of speed 1 computes units begin .. end - 1 of a task, and sets *wasted to the part of it in which it
 * unpacks rows that another unit unpacks, too. The last unit of a matrix may have fewer rows than the others. */
static double time_of(const cpu_task *t, int64_t begin, int64_t end, double *wasted) {
    *wasted = 0;
    if (t->step->op != &ggl_cpu_op_linear)
        return t->cost * (double)(end - begin) / COST_PER_NS;
    const int64_t n_parts = t->unit.linear.n_parts, per = t->unit.linear.n_per_matrix,
                  rows = t->unit.linear.n_rows, n_out = t->dst.ne[0], k = t->src[LINEAR_W].ne[0];
    const double columns = (double)(t->dst.ne[1] * t->dst.ne[2] * t->n) /
                           (double)(t->unit.linear.n_matrices * n_parts);
    double time = 0;
    for (int64_t u = begin; u < end; u++) {
        const int64_t first = u / n_parts % per * rows;
        const double weights = (double)(cpu_min(rows, n_out - first) * k);
        const bool again = u % n_parts > 0;
        time += weights * (columns + (again ? UNPACKING : 0)) / COST_PER_NS;
        *wasted += again ? weights * UNPACKING / COST_PER_NS : 0;
    }
    return time;
}

/* The list's parts as threads empty them: what is left of each, and when its counter is free. */
typedef struct parts {
    int n;
    int64_t next[CPU_MAX_TEAMS], end[CPU_MAX_TEAMS];
    double is_free[CPU_MAX_TEAMS];
} parts;

/* Returns the number of the next chunk for a thread of a team, or -1: its own team's first. *at: when the thread asks, and then
 * when it gets it. */
static int64_t next_chunk(parts *p, int team, double *at) {
    for (int i = 0; i < p->n; i++) {
        const int k = (team + i) % p->n;
        if (p->next[k] < p->end[k]) {
            p->is_free[k] = *at = fmax(p->is_free[k], *at) + FETCH;
            return p->next[k]++;
        }
    }
    return -1;
}

/* Returns the team of a thread. */
static int team_of(const cpu_spread *s, int thread) {
    int k = 0;
    while (thread >= s->before[k + 1])
        k++;
    return k;
}

/* Counts how often each unit of a list is taken: each must be once. */
static void count_units(tally *t, const cpu_list *list, int64_t n_chunks) {
    for (int i = 0; i < list->n; i++) {
        int64_t at = 0;
        for (int k = 0; k < list->spread.n_teams; k++)
            for (int64_t c = 0; c < n_chunks; c++) {
                int64_t first = c, last = c + 1, begin, end;
                for (int j = 0; j < k; j++)
                    for (int m = 0; m < list->n; m++)
                        ggl_cpu_list_take(list, m, j, &first, &last, &begin, &end);
                for (int m = 0; m <= i; m++)
                    ggl_cpu_list_take(list, m, k, &first, &last, &begin, &end);
                if (begin < end) {
                    t->n_wrong += begin != at;
                    at = end;
                }
            }
        t->n_wrong += at != list->share[i].n_units;
    }
}

/* What a thread does with a chunk. */
typedef struct chunk_work {
    double time, wasted, bytes;
} chunk_work;

/* Returns the work of chunk c of a list of tasks, or of items. */
static chunk_work work_of(const cpu_list *list, const cpu_task *task, int64_t c) {
    chunk_work w = {0};
    int64_t first = c, last = c + 1;
    for (int k = 0; k < list->spread.n_teams; k++)
        for (int i = 0; i < list->n; i++) {
            int64_t begin, end;
            double wasted = 0;
            ggl_cpu_list_take(list, i, k, &first, &last, &begin, &end);
            if (begin >= end)
                continue;
            w.time += task ? time_of(&task[i], begin, end, &wasted)
                           : list->share[0].cost * (double)(end - begin) / COST_PER_NS;
            w.wasted += wasted;
            w.bytes +=
                task ? bytes_of(&task[i]) * (double)(end - begin) / (double)task[i].n_units : 0;
        }
    return w;
}

/* Simulates a list that threads share. */
static void share_list(tally *t, const cpu_list *list, const cpu_task *task, int n_threads) {
    const machine *m = t->m;
    double at[MOST_THREADS], last = 0, first_done = INFINITY, longest = 0, waits = 0;
    bool done[MOST_THREADS] = {false};
    parts p = {.n = list->spread.n_teams};
    ggl_cpu_list_parts(list, p.end);
    for (int k = 1; k < p.n; k++)
        p.next[k] = p.end[k - 1];
    for (int i = 0; i < n_threads; i++)
        at[i] = i == 0 ? 0 : JOIN + i * NEXT_JOIN;
    for (int n_done = 0; n_done < n_threads;) {
        int who = -1;
        for (int i = 0; i < n_threads; i++)
            who = !done[i] && (who < 0 || at[i] < at[who]) ? i : who;
        const int64_t c = next_chunk(&p, team_of(&list->spread, who), &at[who]);
        if (c < 0) {
            done[who] = true;
            n_done++;
            continue;
        }
        const chunk_work w = work_of(list, task, c);
        const double took = fmax(w.time / speed_of(m, who), w.bytes / (m->rate / n_threads));
        at[who] += took;
        t->compute += w.time - w.wasted;
        t->bytes[who] += w.bytes;
        t->n_chunks++;
        longest = fmax(longest, took);
    }
    for (int i = 0; i < n_threads; i++) {
        last = fmax(last, at[i]);
        first_done = fmin(first_done, at[i]);
    }
    for (int i = 0; i < n_threads; i++)
        waits += last - at[i];
    t->most_chunks = fmax(t->most_chunks,
                          (last - first_done) / (longest + JOIN + n_threads * (FETCH + NEXT_JOIN)));
    t->idle += waits;
    t->now += last + LEAVE;
    t->shared += last + LEAVE;
    t->n_shared++;
    if (t->check)
        count_units(t, list, p.end[p.n - 1]);
}

/* cpu_watch: simulates a list. */
static void simulate(void *ctx, const cpu_list *list, int n_threads, const cpu_task *task) {
    tally *t = ctx;
    double work = 0, time = 0, bytes = 0, wasted;
    int64_t n_chunks = 0;
    for (int i = 0; i < list->n; i++) {
        work += list->share[i].cost * (double)list->share[i].n_units;
        time += task ? time_of(&task[i], 0, task[i].n_units, &wasted) : work / COST_PER_NS;
        bytes += task ? bytes_of(&task[i]) : 0;
        n_chunks += list->share[i].n_chunks;
    }
    t->n_tasks++;
    if (n_threads > 1 && n_chunks > list->n) {
        share_list(t, list, task, n_threads);
        return;
    }
    t->n_alone += n_threads > 1 && work >= ggl_cpu_worth_sharing;
    t->now += fmax(time, bytes / t->m->rate);
    t->compute += time;
    t->bytes[0] += bytes;
}

/* --- runs ------------------------------------------------------------------------------------- */

typedef struct model {
    const shape *shape;
    ggl_graph *g;
    ggl_backend *b;
    ggl_sched *s;
    ggl_error err;
} model;

static bool open_model(model *m, const shape *s, int n_threads) {
    *m = (model){.shape = s, .g = graph_of(s)};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = n_threads};
    ggl_sched_params sp = {
        .size = sizeof sp, .backend = &m->b, .n_backends = 1, .no_repack = true, .n_rows = 1};
    return CHECK_OK(ggl_graph_finish(m->g, &m->err), &m->err) &&
           CHECK_OK(ggl_backend_open(&m->b, "cpu", &bp, &m->err), &m->err) &&
           CHECK_OK(ggl_sched_new(&m->s, m->g, &sp, &m->err), &m->err) &&
           CHECK_OK(ggl_sched_alloc(m->s, &m->err), &m->err);
}

static void close_model(model *m) {
    ggl_sched_free(m->s);
    ggl_graph_free(m->g);
    ggl_backend_close(m->b);
}

/* Simulates a batch of n tokens from position `from` on. */
static tally run(model *m, const machine *on, int n, int from, bool check) {
    static float x[MOST_BATCH * 4096], shares[MOST_BATCH * 8];
    int32_t pos[MOST_BATCH], slot[MOST_BATCH] = {0}, e[MOST_BATCH * 8];
    tally t = {.m = on, .check = check};
    uint64_t seed = 7;
    cpu_backend *b = (cpu_backend *)m->b;
    b->watch = simulate;
    b->watch_ctx = &t;
    for (int i = 0; i < n; i++)
        pos[i] = from + i;
    const int64_t used = m->shape->n_used;
    for (int i = 0; i < n * used; i++) /* distinct ones for a token */
        e[i] = (int32_t)((i % used * 16 + (int64_t)(test_random(&seed) % 16)) % m->shape->n_expert);
    const size_t count = (size_t)n;
    const int32_t last = n - 1;
    bool ok =
        CHECK_OK(ggl_sched_set(m->s, "x", x, count * (size_t)m->shape->n_embd * 4, n, &m->err),
                 &m->err) &&
        CHECK_OK(ggl_sched_set(m->s, "pos", pos, count * 4, n, &m->err), &m->err) &&
        CHECK_OK(ggl_sched_set(m->s, "slot", slot, count * 4, n, &m->err), &m->err);
    for (int i = 0; i < LAYERS && used && ok; i++)
        ok = CHECK_OK(ggl_sched_set(m->s, i ? "share1" : "share0", shares, count * (size_t)used * 4,
                                    n, &m->err),
                      &m->err);
    ok = ok && (!used || CHECK_OK(ggl_sched_set(m->s, "e", e, count * (size_t)used * 4, n, &m->err),
                                  &m->err));
    ok = ok && CHECK_OK(ggl_sched_run(m->s, n, &last, 1, &m->err), &m->err);
    (void)ok;
    return t;
}

/* Opens the model for a machine, and simulates a batch. */
static tally run_model(const shape *s, const machine *on, int n, int from, bool check) {
    model m;
    tally t = {.m = on, .now = 1};
    if (open_model(&m, s, on->n))
        t = run(&m, on, n, from, check);
    close_model(&m);
    return t;
}

/* --- what holds ------------------------------------------------------------------------------- */

static const shape *const shapes[] = {&one_b, &eight_b, &mixture};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
static const double FAST = 1e9; /* a memory that never limits */

/* Returns the part of all threads' time in shared tasks that they wait, in percent. */
static double idle_of(const tally *t) {
    return 100 * t->idle / (t->shared * t->m->n);
}

/* Returns the most that a thread reads more than the average, in percent. */
static double excess_of(const tally *t) {
    double most = 0, sum = 0;
    for (int i = 0; i < t->m->n; i++) {
        most = fmax(most, t->bytes[i]);
        sum += t->bytes[i];
    }
    return sum > 0 ? 100 * (most * t->m->n / sum - 1) : 0;
}

/* Prints a row of a table, if that is wanted. */
static void print_row(const shape *s, const char *what, int from, const tally *t) {
    if (getenv("GGL_SCHEDULE_TABLE"))
        printf("| %s, %s at %d | %d | %.0f | %.1f | %.1f | %.1f | %d, %d | %.1f | %.0f |\n",
               s->name, what, from, t->m->n, t->now * 1e-3, t->compute / t->now, idle_of(t),
               100 * (t->now - t->shared) / t->now, (int)t->n_tasks, (int)t->n_shared,
               (double)t->n_chunks / (double)t->n_shared / t->m->n, excess_of(t));
}

TEST(prompts_keep_all_threads_busy) {
    static const int threads[] = {2, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    for (int k = 0; k < N_SHAPES; k++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            const machine on = {threads[i], threads[i], 1, FAST};
            const tally t = run_model(shapes[k], &on, 512, 0, i % 3 == 0);
            print_row(shapes[k], "512 tokens", 0, &t);
            CHECK_MSG(idle_of(&t) <= 5, "%s, a prompt by %d threads: %.1f %% idle", shapes[k]->name,
                      on.n, idle_of(&t));
            CHECK_MSG(t.compute >= 0.93 * on.n * t.now,
                      "%s, a prompt by %d threads: %.1f times as fast", shapes[k]->name, on.n,
                      t.compute / t.now);
            CHECK_INT(t.n_alone, 0);
            CHECK_INT(t.n_wrong, 0);
        }
}

/* Tokens one by one, at the beginning and late in a text. The fewer tasks, the fewer times all threads wait for the last. */
TEST(tokens_keep_all_threads_busy) {
    static const int threads[] = {2, 4, 6, 8, 12, 16, 24, 32, 48, 64}, from[] = {500, 3900};
    for (int k = 0; k < N_SHAPES; k++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            for (int at = 0; at < 2; at++) {
                const machine on = {threads[i], threads[i], 1, FAST};
                const tally t = run_model(shapes[k], &on, 1, from[at], true);
                print_row(shapes[k], "a token", from[at], &t);
                CHECK_MSG(idle_of(&t) <= 9, "%s, a token at %d by %d threads: %.1f %% idle",
                          shapes[k]->name, from[at], on.n, idle_of(&t));
                CHECK_MSG(t.most_chunks <= 1,
                          "%s, a token at %d by %d threads: one waits %.2f chunks", shapes[k]->name,
                          from[at], on.n, t.most_chunks);
                CHECK_MSG(excess_of(&t) <= 25,
                          "%s, a token at %d by %d threads: one reads %.0f %% more",
                          shapes[k]->name, from[at], on.n, excess_of(&t));
                CHECK_INT(t.n_alone, 0);
                CHECK_INT(t.n_wrong, 0);
                /* All threads meet after Q, K and V, attention, its product, gate and up, their product, and down, and
                 * after the logits. Smaller steps are left to one thread. */
                CHECK_MSG(t.n_shared <= LAYERS * 7 + 1, "%s: %d shared tasks", shapes[k]->name,
                          (int)t.n_shared);
            }
}

/* The least time of one token is that in which the memory gives the weights. */
TEST(memory_limits_tokens) {
    for (int k = 0; k < N_SHAPES; k++) {
        double us[3];
        for (int i = 0; i < 3; i++) {
            const machine on = {(const int[]){8, 16, 64}[i], 64, 1, 100};
            us[i] = run_model(shapes[k], &on, 1, 500, false).now * 1e-3;
        }
        CHECK_MSG(us[2] < 1.1 * us[1] && us[2] > 0.8 * us[0], "%s: %.0f, %.0f, %.0f us",
                  shapes[k]->name, us[0], us[1], us[2]);
    }
}

/* Why the default is as it is (cores.c): in prompts all cores help that have a third of the fastest one's speed; slower ones
 * gain little. Single tokens do not need cores of less than half the speed, as the memory limits them: here one that
 * gives six big cores all that they ask for. */
TEST(cores_of_two_kinds) {
    static const struct {
        int n_big, n_small;
        double small;
    } kind[] = {{4, 4, 0.12},   {4, 4, 0.25},   {8, 8, 0.25}, {2, 2, 1 / 3.},
                {4, 4, 1 / 3.}, {8, 8, 1 / 3.}, {4, 4, 0.4},  {6, 8, 0.4},
                {8, 8, 0.4},    {8, 16, 0.4},   {4, 4, 0.5},  {4, 4, 0.75}};
    for (int k = 0; k < N_SHAPES; k++)
        for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
            const double ideal = 1 + kind[i].small * kind[i].n_small / kind[i].n_big;
            const int all = kind[i].n_big + kind[i].n_small;
            const machine big = {kind[i].n_big, kind[i].n_big, kind[i].small, 80},
                          both = {all, kind[i].n_big, kind[i].small, 80};
            const double prompt = run_model(shapes[k], &big, 512, 0, false).now /
                                  run_model(shapes[k], &both, 512, 0, false).now,
                         token = run_model(shapes[k], &big, 1, 500, false).now /
                                 run_model(shapes[k], &both, 1, 500, false).now;
            if (getenv("GGL_SCHEDULE_TABLE"))
                printf("| %s | %d | %d of %.2f | %.2f of %.2f | %.2f |\n", shapes[k]->name,
                       kind[i].n_big, kind[i].n_small, kind[i].small, prompt, ideal, token);
            if (kind[i].small >= 1 / 3.)
                CHECK_MSG(prompt > 1 + 0.6 * (ideal - 1),
                          "%s, %d and %d of %.2f: prompts gain %.2f of %.2f", shapes[k]->name,
                          kind[i].n_big, kind[i].n_small, kind[i].small, prompt, ideal);
            if (kind[i].n_big >= 6 && kind[i].small < 0.5)
                CHECK_MSG(token < 1.06, "%s, %d and %d of %.2f: tokens gain %.2f", shapes[k]->name,
                          kind[i].n_big, kind[i].n_small, kind[i].small, token);
        }
}

/* --- bits -------------------------------------------------------------------------------------- */

enum { K = 64, ROWS = 100, COLUMNS = 300 };

/* Computes products of many columns by n_threads, and writes their results to y: of a matrix in Q4_0 with a bias, and of one in f32. */
static bool products_by(int n_threads, float *y) {
    static uint8_t q4_0[ROWS * K / 32 * 18];
    static float f32[ROWS * K], bias[ROWS], x[COLUMNS * K];
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof q4_0;
         i++) /* blocks of 32: a scale of f16, then 16 bytes of codes */
        q4_0[i] = (uint8_t)(i % 18 == 0 ? 0 : i % 18 == 1 ? 0x2c : test_random(&seed));
    for (int i = 0; i < ROWS * K; i++)
        f32[i] = test_random_float(&seed);
    for (int i = 0; i < ROWS; i++)
        bias[i] = test_random_float(&seed);
    for (int i = 0; i < COLUMNS * K; i++)
        x[i] = test_random_float(&seed);
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 1, .n_batch = COLUMNS, .n_slots = 1};
    model m = {.g = ggl_graph_new(&gp)};
    const int64_t k = K, ne[] = {K, ROWS}, n_rows = ROWS;
    ggl_tensor *in = ggl_graph_input(m.g, "x", GGL_F32, 1, &k, true);
    ggl_graph_output(m.g, "a",
                     ggl_linear(m.g, in, ggl_graph_weight(m.g, "w", GGL_Q4_0, 2, ne, q4_0),
                                ggl_graph_weight(m.g, "b", GGL_F32, 1, &n_rows, bias)));
    ggl_graph_output(m.g, "c",
                     ggl_linear(m.g, in, ggl_graph_weight(m.g, "v", GGL_F32, 2, ne, f32), NULL));
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = n_threads};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &m.b, .n_backends = 1};
    const bool ok = CHECK_OK(ggl_graph_finish(m.g, &m.err), &m.err) &&
                    CHECK_OK(ggl_backend_open(&m.b, "cpu", &bp, &m.err), &m.err) &&
                    CHECK_OK(ggl_sched_new(&m.s, m.g, &sp, &m.err), &m.err) &&
                    CHECK_OK(ggl_sched_alloc(m.s, &m.err), &m.err) &&
                    CHECK_OK(ggl_sched_set(m.s, "x", x, sizeof x, COLUMNS, &m.err), &m.err) &&
                    CHECK_OK(ggl_sched_run(m.s, COLUMNS, NULL, COLUMNS, &m.err), &m.err);
    for (int i = 0; i < 2 && ok; i++)
        memcpy(y + i * COLUMNS * ROWS, ggl_sched_output(m.s, i), COLUMNS * ROWS * sizeof *y);
    close_model(&m);
    return ok;
}

/* Parts of columns have the bits of the whole. With 3 threads four units of 32 rows become parts, with 5 as well, and so on. */
TEST(parts_have_the_same_bits) {
    static float want[2 * COLUMNS * ROWS], got[2 * COLUMNS * ROWS];
    REQUIRE(products_by(1, want));
    static const int threads[] = {2, 3, 5, 7, 12, 20};
    test_set_variable("GGL_CPU_SHARE_ALL", "1");
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        memset(got, 0, sizeof got);
        if (products_by(threads[i], got))
            CHECK_MSG(memcmp(got, want, sizeof want) == 0, "%d threads: other bits", threads[i]);
    }
    test_set_variable("GGL_CPU_SHARE_ALL", NULL);
}
