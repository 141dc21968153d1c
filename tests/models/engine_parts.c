/* Parts of the engine: how the room of a step is divided, whose turn it is, tables, snapshots' memory. */
#include "ggl/alloc.h"
#include "seed.h"
#include "serve/queue.h"
#include "serve/room.h"
#include "test.h"

static int below(uint64_t *seed, int n) {
    return (int)(test_random(seed) % (uint64_t)n);
}

/* --- rooms ------------------------------------------------------------------------------------ */

TEST(steps_become_as_long_as_they_should) {
    room r = {.step_ns = 1000000};
    CHECK_INT(llm_room_for_prompts(&r, 512, 0), 512);
    CHECK_INT(llm_room_for_prompts(&r, 512, 3), 64);
    CHECK_INT(llm_room_for_prompts(&r, 10, 3), 10);
    for (int i = 0; i < 100; i++) { /* 200 us, and 4 us for each token of a prompt */
        const int64_t n = i % 3 ? llm_room_for_prompts(&r, 512, 3) : 0;
        llm_room_learn(&r, 200000 + 4000 * n, n, 3);
    }
    const int64_t n = llm_room_for_prompts(&r, 512, 3);
    CHECK_MSG(n >= 195 && n <= 205, "%d tokens", (int)n);
    CHECK_INT(llm_room_for_prompts(&r, 100, 3), 100);
    CHECK_INT(llm_room_for_prompts(&r, 512, 0), 512);
    for (int i = 0; i < 100; i++) /* longer than it should be, without any prompt */
        llm_room_learn(&r, 1200000, 0, 3);
    const int64_t n_half = llm_room_for_prompts(&r, 512, 3);
    CHECK_MSG(n_half >= 145 && n_half <= 155, "%d tokens", (int)n_half);
    for (int i = 0; i < 100; i++) /* tokens that take very long */
        llm_room_learn(&r, 1200000 + 900000000, 1, 3);
    CHECK_INT(llm_room_for_prompts(&r, 512, 3), 8);
}

TEST(room_is_divided_fairly) {
    room_share s[4] = {{1, 100, 1000, 0}, {1, 100, 200, 0}, {2, 100, 5000, 0}, {1, 100, 100, 0}};
    llm_room_divide(s, 4, 120); /* half is for two clients, of whom one has three prompts */
    CHECK_INT(s[0].get, 10);
    CHECK_INT(s[1].get, 10);
    CHECK_INT(s[2].get, 30);
    CHECK_INT(s[3].get, 70);
    llm_room_divide(s, 4, 1);
    CHECK_INT(s[0].get, 1);
    llm_room_divide(s, 4, 1000);
    for (int i = 0; i < 4; i++)
        CHECK_INT(s[i].get, 100);
    llm_room_divide(s, 0, 10);
}

TEST(room_is_divided_at_random) {
    uint64_t seed = sample_seed();
    for (int round = 0; round < 20000; round++) {
        room_share s[12];
        const int n = below(&seed, 13);
        const int64_t n_room = below(&seed, 2) ? below(&seed, 20) : below(&seed, 500);
        int64_t wanted = 0, got = 0;
        for (int i = 0; i < n; i++) {
            s[i] = (room_share){.client = (uint64_t)below(&seed, 4), .want = below(&seed, 100)};
            s[i].left = s[i].want + below(&seed, 1000);
            wanted += s[i].want;
        }
        llm_room_divide(s, n, n_room);
        for (int i = 0; i < n; i++) {
            CHECK(s[i].get >= 0 && s[i].get <= s[i].want);
            CHECK(i > 0 || n_room == 0 || s[i].want == 0 || s[i].get > 0);
            got += s[i].get;
        }
        if (!CHECK_INT(got, wanted < n_room ? wanted : n_room))
            return;
    }
}

/* --- queues ----------------------------------------------------------------------------------- */

enum { TASKS = 200, CLIENTS = 7 };

/* Against a list in which the client that was served longest ago, or never, comes first. */
typedef struct model {
    int task[CLIENTS][TASKS], n[CLIENTS];
    int ring[CLIENTS], n_ring;
} model;

static void model_leave(model *m, int at) {
    for (m->n_ring--; at < m->n_ring; at++)
        m->ring[at] = m->ring[at + 1];
}

static void model_add(model *m, int c, int id) {
    if (m->n[c] == 0)
        m->ring[m->n_ring++] = c;
    m->task[c][m->n[c]++] = id;
}

/* The first of the client at the front leaves, and the client goes to the end. */
static int model_take(model *m) {
    const int c = m->ring[0], id = m->task[c][0];
    memmove(m->task[c], m->task[c] + 1, (size_t)--m->n[c] * sizeof(int));
    model_leave(m, 0);
    if (m->n[c] > 0)
        m->ring[m->n_ring++] = c;
    return id;
}

static void check_turns(uint64_t *seed) {
    static task t[TASKS];
    static model m;
    queue q = {0};
    int n_added = 0, n_taken = 0;
    memset(t, 0, sizeof t);
    m = (model){0};
    while (n_taken < TASKS) {
        if (n_added < TASKS && (n_added == n_taken || below(seed, 3))) {
            const int c = below(seed, below(seed, 2) ? CLIENTS : 2);
            t[n_added].p.client = (uint64_t)c;
            CHECK(llm_queue_add(&q, &t[n_added]));
            model_add(&m, c, n_added++);
        } else {
            const task *first = llm_queue_first(&q);
            if (!CHECK(first == &t[model_take(&m)]) || !CHECK(first == llm_queue_take(&q)))
                break;
            n_taken++;
        }
        CHECK_INT(q.n, n_added - n_taken);
    }
    CHECK(!llm_queue_first(&q));
    llm_queue_fini(&q);
}

TEST(clients_take_turns) {
    uint64_t seed = sample_seed();
    for (int i = 0; i < 50; i++)
        check_turns(&seed);
}

static void remove_odd(void *ctx, task *t) {
    if (t->node.key % 2)
        llm_queue_remove(ctx, t);
}

static void count(void *ctx, task *t) {
    CHECK_INT(t->node.key % 2, 0);
    ++*(int *)ctx;
}

TEST(tasks_leave_while_others_wait) {
    static task t[TASKS];
    queue q = {0};
    uint64_t seed = 3;
    int n = 0;
    for (int i = 0; i < TASKS; i++) {
        t[i] = (task){.node.key = (uint64_t)i, .turn = (uint64_t)below(&seed, 1000)};
        t[i].p.client = (uint64_t)below(&seed, 60);
        if (i % 5 == 0)
            llm_queue_put_back(&q, &t[i]);
        else
            CHECK(llm_queue_add(&q, &t[i]));
    }
    llm_queue_each(&q, remove_odd, &q);
    llm_queue_each(&q, count, &n);
    CHECK_INT(n, TASKS / 2);
    uint64_t turn = 0;
    for (task *first; (first = llm_queue_first(&q)); llm_queue_remove(&q, first), n--)
        if (n >
            TASKS / 2 - TASKS / 10) { /* those that were put back, in the order of their turns */
            CHECK(first->node.key % 5 == 0 && first->turn >= turn);
            turn = first->turn;
        }
    CHECK_INT(n, 0);
    CHECK_INT(q.n, 0);
    llm_queue_fini(&q);
}

/* --- tables ----------------------------------------------------------------------------------- */

TEST(tables_find_what_is_in_them) {
    static table_node x[1000];
    static bool is_in[1000];
    table t = {0};
    uint64_t seed = sample_seed();
    CHECK(!llm_table_find(&t, 1));
    for (int step = 0; step < 20000; step++) {
        const int i = below(&seed, 1000);
        /* keys that differ in their upper or lower bits alone */
        const uint64_t key = i % 2 ? (uint64_t)i << 50 : (uint64_t)i;
        if (!CHECK(llm_table_find(&t, key) == (is_in[i] ? &x[i] : NULL)))
            break;
        x[i].key = key;
        if (is_in[i])
            llm_table_remove(&t, &x[i]);
        else if (CHECK(llm_table_reserve(&t)))
            llm_table_put(&t, &x[i]);
        is_in[i] = !is_in[i];
    }
    llm_table_fini(&t);
}
