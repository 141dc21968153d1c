/* The pool of threads: each unit is run once, however the threads are spread over teams and nodes of memory. */
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ggl/backends.h"
#include "seed.h"
#include "system_files.h"
#include "test.h"

enum { MOST_UNITS = 700 };

typedef struct units {
    atomic_int n_run[MOST_UNITS];
    atomic_bool
        off_node; /* a thread other than the caller ran on a CPU that its node does not have */
    const cpu_nodes *nodes;
} units;

static void run_units(void *ctx, int64_t first, int64_t last, int thread) {
    units *u = ctx;
    (void)thread;
    for (int64_t i = first; i < last; i++)
        atomic_fetch_add(&u->n_run[i], 1);
}

/* Runs many tasks of random sizes by a pool, and checks that each unit is run once. */
static void check_tasks(cpu_pool *pool, int n_threads, int n_tasks, uint64_t *seed) {
    units u = {0};
    for (int k = 0; k < n_tasks && test_failures == 0; k++) {
        const int64_t n = (int64_t)(test_random(seed) % MOST_UNITS);
        const int by = 1 + (int)(test_random(seed) % (uint64_t)n_threads);
        const int64_t chunk = 1 + (int64_t)(test_random(seed) % 9);
        int64_t end[CPU_MAX_TEAMS], at = 0;
        cpu_spread s;
        ggl_cpu_pool_spread(pool, by, &s);
        CHECK_INT(s.before[0], 0);
        CHECK_INT(s.before[s.n_teams], by);
        for (int i = 0; i < s.n_teams; i++) {
            CHECK(s.before[i] <= s.before[i + 1]);
            at +=
                i + 1 == s.n_teams ? n - at : (int64_t)(test_random(seed) % (uint64_t)(n - at + 1));
            end[i] = at;
        }
        for (int64_t i = 0; i < n; i++)
            atomic_store(&u.n_run[i], 0);
        ggl_cpu_pool_run(pool, by, run_units, &u, n, chunk, k % 2 ? end : NULL);
        for (int64_t i = 0; i < n; i++)
            CHECK_INT(atomic_load(&u.n_run[i]), 1);
    }
}

/* Threads that tasks do not admit sleep and leave their cores to others; they wake when one does. */
TEST(excluded_threads_sleep) {
    ggl_error err = {0};
    cpu_pool *pool;
    units u = {0};
    REQUIRE_OK(ggl_cpu_pool_open(&pool, 4, NULL, &err), &err);
    CHECK_INT(ggl_cpu_pool_excluded(pool), 0);
    for (int round = 0; round < 3; round++) {
        for (int limit = 4; limit >= 2; limit--) { /* tasks until the others have seen it */
            do {
                ggl_cpu_pool_run(pool, limit, run_units, &u, MOST_UNITS, 1, NULL);
            } while (ggl_cpu_pool_excluded(pool) != 4 - limit);
        }
        ggl_cpu_pool_wake(pool);
    }
    ggl_cpu_pool_close(pool); /* while two of them sleep */
}

/* Sets *out to nodes of the CPUs that this process may use, each of which has all of them; n_cores: what the k-th claims to have. */
static bool same_nodes(cpu_nodes *out, int n, const int *n_cores) {
    os_cpus m;
    if (!CHECK(ggl_os_cpus_get(&m)))
        return false;
    for (int i = 0; i < n; i++)
        system_file("0-99999\n", "/sys/devices/system/node/node%d/cpulist", 3 * i);
    ggl_cpu_nodes_of(out, &m, system_root());
    ggl_os_cpus_free(&m);
    system_end();
    for (int i = 0; i < out->n; i++)
        out->at[i].n_cores = n_cores[i];
    return CHECK_INT(out->n, n);
}

TEST(each_unit_once) {
    uint64_t seed = sample_seed();
    static const int threads[] = {1, 2, 3, 16, 17, 40};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        cpu_pool *pool;
        ggl_error err = {0};
        REQUIRE_OK(ggl_cpu_pool_open(&pool, threads[i], NULL, &err), &err);
        cpu_spread s;
        ggl_cpu_pool_spread(pool, threads[i], &s);
        CHECK_INT(s.n_teams, (threads[i] + 15) / 16);
        check_tasks(pool, threads[i], TEST_SANITIZED || threads[i] > 16 ? 20 : 200, &seed);
        ggl_cpu_pool_close(pool);
    }
}

TEST(each_unit_once_on_nodes) {
    uint64_t seed = sample_seed();
    static const struct {
        int n_threads, n_nodes, cores[3], n_teams, of_first; /* teams; threads of the first node */
    } c[] = {
        {1, 2, {1, 1}, 1, 1},     {2, 2, {1, 1}, 2, 1},    {5, 2, {4, 4}, 2, 3},
        {8, 3, {4, 2, 2}, 3, 4},  {2, 3, {8, 8, 8}, 2, 1}, {12, 2, {48, 12}, 2, 10},
        {36, 2, {18, 18}, 4, 18},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        cpu_nodes nodes;
        cpu_pool *pool;
        ggl_error err = {0};
        cpu_spread s;
        REQUIRE(same_nodes(&nodes, c[i].n_nodes, c[i].cores));
        REQUIRE_OK(ggl_cpu_pool_open(&pool, c[i].n_threads, &nodes, &err), &err);
        ggl_cpu_pool_spread(pool, c[i].n_threads, &s);
        CHECK_INT(s.n_teams, c[i].n_teams);
        CHECK_INT(s.before[c[i].n_threads > 32 ? 2 : 1], c[i].of_first);
        check_tasks(pool, c[i].n_threads, c[i].n_threads > 16 || TEST_SANITIZED ? 20 : 100, &seed);
        ggl_cpu_pool_close(pool);
        ggl_cpu_nodes_fini(&nodes);
    }
}

/* Waits until all n threads of a task have begun their chunk. */
typedef struct meeting {
    atomic_int n_there;
    int n;
    bool own[2][2]; /* [thread][unit]: it ran it */
} meeting;

static void meet(void *ctx, int64_t first, int64_t last, int thread) {
    meeting *m = ctx;
    (void)last;
    m->own[thread][first] = true;
    atomic_fetch_add(&m->n_there, 1);
    while (atomic_load(&m->n_there) < m->n)
        sched_yield();
}

/* Two threads on two nodes, each of which has a chunk: both run at the same time, so each runs its own. */
TEST(own_node_first) {
    cpu_nodes nodes;
    cpu_pool *pool;
    ggl_error err = {0};
    REQUIRE(same_nodes(&nodes, 2, (int[]){1, 1}));
    REQUIRE_OK(ggl_cpu_pool_open(&pool, 2, &nodes, &err), &err);
    for (int k = 0; k < 20; k++) {
        meeting m = {.n = 2};
        ggl_cpu_pool_run(pool, 2, meet, &m, 2, 1, NULL);
        CHECK(m.own[0][0] && m.own[1][1] && !m.own[0][1] && !m.own[1][0]);
    }
    ggl_cpu_pool_close(pool);
    ggl_cpu_nodes_fini(&nodes);
}

static void see_cpus(void *ctx, int64_t first, int64_t last, int thread) {
    os_cpus *seen = ctx;
    (void)first, (void)last;
    if (!ggl_os_cpus_get(&seen[thread]))
        abort();
}

static void see_and_meet(void *ctx, int64_t first, int64_t last, int thread) {
    struct {
        os_cpus seen[2];
        meeting m;
    } *both = ctx;
    see_cpus(both->seen, first, last, thread);
    meet(&both->m, first, last, thread);
}

/* Threads are bound to their node's CPUs; the caller, who belongs to the program, is not. */
TEST(bound_to_nodes) {
    os_cpus m;
    REQUIRE(ggl_os_cpus_get(&m));
    int cpu[2], n = 0;
    for (int i = 0; i < m.n && n < 2; i++)
        if (ggl_os_cpus_has(&m, i))
            cpu[n++] = i;
    if (n < 2) {
        ggl_os_cpus_free(&m);
        SKIP("two CPUs are needed");
    }
    for (int i = 0; i < 2; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d\n", cpu[i]);
        system_file(text, "/sys/devices/system/node/node%d/cpulist", i);
    }
    cpu_nodes nodes;
    ggl_cpu_nodes_of(&nodes, &m, system_root());
    system_end();
    cpu_pool *pool;
    ggl_error err = {0};
    REQUIRE_OK(ggl_cpu_pool_open(&pool, 2, &nodes, &err), &err);
    struct {
        os_cpus seen[2];
        meeting m;
    } both = {.m = {.n = 2}};
    ggl_cpu_pool_run(pool, 2, see_and_meet, &both, 2, 1, NULL);
    CHECK(both.seen[0].n == m.n && memcmp(both.seen[0].set, m.set, (size_t)m.n / 8) == 0);
    CHECK_INT(ggl_os_cpus_count(&both.seen[1]), 1);
    CHECK(ggl_os_cpus_has(&both.seen[1], cpu[1]));
    for (int i = 0; i < 2; i++)
        ggl_os_cpus_free(&both.seen[i]);
    ggl_cpu_pool_close(pool);
    ggl_cpu_nodes_fini(&nodes);
    ggl_os_cpus_free(&m);
}

/* Memory is spread over nodes that do not exist: the system refuses, and nothing changes. */
TEST(interleave_is_refused) {
    cpu_nodes nodes;
    REQUIRE(same_nodes(&nodes, 3, (int[]){1, 1, 1}));
    char *p = malloc(1 << 20);
    REQUIRE(p != NULL);
    memset(p, 7, 1 << 20);
    ggl_cpu_nodes_interleave(&nodes, p, 1 << 20);
    ggl_cpu_nodes_interleave(&nodes, p + 5, 100); /* no whole page */
    for (int i = 0; i < 1 << 20; i++)
        if (p[i] != 7) {
            CHECK_INT(p[i], 7);
            break;
        }
    free(p);
    ggl_cpu_nodes_fini(&nodes);
}
