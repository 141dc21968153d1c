/* The queue of turns (tools/llm-server/turn_queue.c), with turns that wait until the test lets them go on. */
#include "llm-server/turn_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

typedef struct own {
    turn base;
    atomic_bool runs, goes_on, unwanted, stopped;
    atomic_int place; /* when it ended, from 1; -1: it left without a own */
} own;

static turn_queue *queue;
static atomic_int n_ended;

static void run(turn *t) {
    own *x = (own *)t;
    x->runs = true;
    while (!x->goes_on && !x->stopped) {
        x->stopped = turn_queue_stops(queue, t);
        usleep(1000);
    }
    x->place = ++n_ended;
}

static void leave(turn *t) {
    ((own *)t)->place = -1;
}

static bool is_wanted(turn *t) {
    return !((own *)t)->unwanted;
}

static void init(own *x, size_t n) {
    memset(x, 0, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i].base = (turn){.client = i, .run = run, .leave = leave, .is_wanted = is_wanted};
}

static void wait_for(const atomic_bool *x) {
    while (!*x)
        usleep(1000);
}

static void wait_for_end(const own *x) {
    while (!x->place)
        usleep(1000);
}

TEST(one_after_the_other) {
    enum { N = 20 };
    static own x[N];
    ggl_error err;
    init(x, N);
    n_ended = 0;
    REQUIRE((queue = turn_queue_new(N, 1, "sounds")));
    REQUIRE_OK(turn_queue_add(queue, &x[0].base, &err), &err);
    wait_for(&x[0].runs);
    for (int i = 1; i < N; i++)
        REQUIRE_OK(turn_queue_add(queue, &x[i].base, &err), &err);
    size_t n_running, n_waiting;
    turn_queue_count(queue, &n_running, &n_waiting);
    CHECK(n_running == 1 && n_waiting == N - 1 && !x[1].runs);
    x[3].unwanted = x[N - 1].unwanted = true; /* they leave while others run */
    wait_for_end(&x[3]);
    CHECK(x[3].place == -1 && x[N - 1].place == -1 && !x[3].runs);
    for (int i = 0; i < N; i++)
        x[i].goes_on = true;
    wait_for_end(&x[N - 2]);
    for (int i = 0; i < N - 1; i++)
        CHECK(i == 3 || x[i].place == i + 1 - (i > 3));
    turn_queue_end(queue);
    turn_queue_free(queue);
}

TEST(running_ones_are_stopped) {
    static own x[2];
    ggl_error err;
    init(x, 2);
    n_ended = 0;
    REQUIRE((queue = turn_queue_new(4, 1, "sounds")));
    REQUIRE_OK(turn_queue_add(queue, &x[0].base, &err), &err);
    wait_for(&x[0].runs);
    x[0].unwanted = true;
    wait_for_end(&x[0]);
    CHECK(x[0].stopped);
    REQUIRE_OK(turn_queue_add(queue, &x[1].base, &err), &err); /* the next one runs */
    x[1].goes_on = true;
    wait_for_end(&x[1]);
    CHECK_INT(x[1].place, 2);
    turn_queue_end(queue);
    turn_queue_free(queue);
}

TEST(limits) {
    static own x[8];
    ggl_error err;
    init(x, 8);
    REQUIRE((queue = turn_queue_new(3, 1, "sounds")));
    REQUIRE_OK(turn_queue_add(queue, &x[0].base, &err), &err);
    wait_for(&x[0].runs); /* it does not wait */
    for (int i = 1; i < 4; i++) {
        x[i].base.client = 7;
        const ggl_status st = turn_queue_add(queue, &x[i].base, &err);
        CHECK_INT(st, i < 3 ? GGL_OK : GGL_LIMIT);
    }
    CHECK_HAS(err.msg, "half of --queue");
    REQUIRE_OK(turn_queue_add(queue, &x[4].base, &err), &err);
    CHECK_INT(turn_queue_add(queue, &x[5].base, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "3 sounds wait");
    turn_queue_end(queue);
    CHECK(x[0].stopped && x[1].place == -1 && x[2].place == -1 && x[4].place == -1);
    CHECK_INT(turn_queue_add(queue, &x[6].base, &err), GGL_CANCELLED);
    turn_queue_end(queue); /* again */
    turn_queue_free(queue);
}
