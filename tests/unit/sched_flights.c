/* Several batches under way: they overlap, each keeps its outputs, stores see them in order, and errors come
 * with their tickets. */
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "ggl/internal/sched.h"
#include "lazy_backend.h"

enum { WIDTH = 4, BATCH = 8, SLOTS = 4, MOST = 3 };

typedef struct fixture {
    fake dev[MOST];
    ggl_backend *list[MOST];
    int n_dev;
    ggl_graph *g;
    ggl_sched *s;
    float sum[SLOTS][MOST][WIDTH]; /* what the states must be */
    uint64_t seed;
    ggl_error err;
} fixture;

/* --- backends that meet ----------------------------------------------------------------------- */

/* Runs that wait until `n` of them are at it at the same time, or give up after some seconds. */
static struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int n, n_there, most;
} meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

static void meet(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&meeting.lock);
    meeting.n_there++;
    if (meeting.n_there > meeting.most)
        meeting.most = meeting.n_there;
    pthread_cond_broadcast(&meeting.came);
    while (meeting.most < meeting.n &&
           pthread_cond_timedwait(&meeting.came, &meeting.lock, &until) == 0)
        ;
    meeting.n_there--;
    pthread_mutex_unlock(&meeting.lock);
}

static pthread_t caller;
static atomic_int n_elsewhere; /* runs that were not in the thread `caller` */
static int n_runs[MOST];       /* by backend */
static int runs_left[MOST];    /* by backend: until one fails; negative: none does */
static int slow_us;            /* the second backend takes so long for a run */
static bool waits;             /* the second backend runs when the first has done two batches */
static atomic_int n_read;      /* downloads from the first backend */
static int n_begun, n_ahead;   /* runs of the second one since it was read; the most of them */

static ggl_status run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                      ggl_error *err) {
    const fake *f = (const fake *)b;
    const int k = f->name - 'a';
    n_elsewhere += !pthread_equal(pthread_self(), caller);
    if (k == 1)
        n_ahead = ++n_begun > n_ahead ? n_begun : n_ahead;
    for (int i = 0; waits && k == 1 && n_read < 4 && i < 20000; i++)
        usleep(1000);
    usleep(k == 1 ? (useconds_t)slow_us : 0);
    usleep(waits ? 1000 : 0); /* now the next batch has come, as a rule */
    if (runs_left[k] >= 0 && runs_left[k]-- == 0)
        return ggl_fail(err, GGL_DEVICE, "this run of %s fails", b->name);
    if (n_runs[k]++ == meeting.n - 1 - k)
        meet();
    return f->real->v->run(f->real, p, region, n, err);
}

static ggl_status download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                           size_t size, ggl_error *err) {
    const fake *f = (const fake *)b;
    n_read += f->name == 'a';
    if (f->name == 'b')
        n_begun = 0;
    return f->real->v->download(f->real, src, offset, dst, size, err);
}

/* --- a model with a layer on each backend ------------------------------------------------------ */

static bool is_cancelled(void *ctx) {
    atomic_int *left = ctx;
    return atomic_fetch_sub(left, 1) <= 0;
}

/* On each device: x = the sum of x. Outputs: y = 2 x of the last one; x of the first. cancel: how many times
 * the scheduler may ask before it is cancelled; NULL: any. */
static bool setup(fixture *f, int n_dev, atomic_int *cancel) {
    *f = (fixture){.n_dev = n_dev, .seed = 7};
    fake_log[0] = 0;
    n_elsewhere = 0;
    n_begun = n_ahead = 0;
    caller = pthread_self();
    meeting.n = meeting.n_there = meeting.most = 0;
    const ggl_graph_params gp = {
        .size = sizeof gp, .n_pos = 64, .n_batch = BATCH, .n_slots = SLOTS};
    ggl_graph *g = f->g = ggl_graph_new(&gp);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *first = NULL;
    for (int k = 0; k < n_dev; k++) {
        if (!fake_open(&f->dev[k], (char)('a' + k)))
            return false;
        f->dev[k].v.run = run;
        f->dev[k].v.download = download;
        f->list[k] = &f->dev[k].base;
        runs_left[k] = -1;
        n_runs[k] = 0;
        ggl_graph_set_group(g, k);
        x = running_sum(g, x);
        first = first ? first : x;
    }
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, ggl_graph_number(g, 2)));
    ggl_graph_output(g, "first", first);
    const ggl_sched_params p = {.size = sizeof p,
                                .backend = f->list,
                                .n_backends = n_dev,
                                .place = by_layer,
                                .cancelled = cancel ? is_cancelled : NULL,
                                .cancelled_ctx = cancel};
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, g, &p, &f->err), &f->err);
}

static bool start(fixture *f) {
    return CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    for (int k = 0; k < f->n_dev; k++)
        fake_close(&f->dev[k]);
}

static void clear(fixture *f) {
    for (int slot = 0; slot < SLOTS; slot++)
        CHECK_OK(ggl_sched_clear_slot(f->s, slot, &f->err), &f->err);
    memset(f->sum, 0, sizeof f->sum);
}

static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

/* A batch that was submitted, and what its outputs must be. */
typedef struct batch {
    uint64_t ticket;
    int n, n_rows;
    int32_t row[BATCH];
    float y[BATCH][WIDTH], first[BATCH][WIDTH];
} batch;

/* Sets inputs for n elements of random slots, and computes what must come of them. */
static void give(fixture *f, batch *b, int n) {
    float x[BATCH][WIDTH];
    int32_t slot[BATCH];
    *b = (batch){.n = n};
    for (int i = 0; i < n; i++) {
        slot[i] = below(f, SLOTS);
        const bool wanted = below(f, 2) || (i == n - 1 && b->n_rows == 0);
        for (int e = 0; e < WIDTH; e++) {
            float v = x[i][e] = (float)(below(f, 3) - 1);
            for (int k = 0; k < f->n_dev; k++)
                v = f->sum[slot[i]][k][e] += v;
            b->y[b->n_rows][e] = 2 * v;
            b->first[b->n_rows][e] = f->sum[slot[i]][0][e];
        }
        b->row[b->n_rows] = i;
        b->n_rows += wanted;
    }
    REQUIRE_OK(ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &f->err), &f->err);
    REQUIRE_OK(ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &f->err), &f->err);
}

static ggl_status submit(fixture *f, batch *b, int n) {
    give(f, b, n);
    return ggl_sched_submit(f->s, n, b->row, b->n_rows, false, &b->ticket, &f->err);
}

static void check_outputs(const fixture *f, const batch *b) {
    const size_t size = (size_t)b->n_rows * sizeof *b->y;
    CHECK(memcmp(ggl_sched_output(f->s, 0), b->y, size) == 0);
    CHECK(memcmp(ggl_sched_output(f->s, 1), b->first, size) == 0);
}

static void collect(fixture *f, const batch *b) {
    if (CHECK_OK(ggl_sched_collect(f->s, b->ticket, &f->err), &f->err))
        check_outputs(f, b);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* As many backends as there are compute at the same time, each another batch: the first run of the last
 * one ends when the second run of the one before it has begun, and so on. */
TEST(all_backends_work_at_once) {
    for (int n = 2; n <= MOST; n++) {
        fixture f;
        batch b[MOST];
        REQUIRE(setup(&f, n, NULL) && start(&f));
        CHECK_INT(ggl_sched_n_lanes(f.s), n);
        meeting.n = n;
        for (int i = 0; i < n; i++)
            REQUIRE_OK(submit(&f, &b[i], 2), &f.err);
        for (int i = 0; i < n; i++)
            collect(&f, &b[i]);
        CHECK_INT(meeting.most, n);
        teardown(&f);
    }
}

/* Submits, runs and collects batches of slots that they share, in any order, some for nobody. */
static void run_any(fixture *f, int n_calls) {
    batch b[MOST];
    int n_open = 0;
    clear(f);
    for (int i = 0; i < n_calls && test_failures == 0; i++) {
        const int n = 1 + below(f, BATCH), what = below(f, 10);
        if (n_open < f->n_dev && what < 4) {
            REQUIRE_OK(submit(f, &b[n_open++], n), &f->err);
        } else if (n_open < f->n_dev && what < 6) {
            batch none;
            give(f, &none, n);
            CHECK_OK(ggl_sched_submit(f->s, n, NULL, 0, false, NULL, &f->err), &f->err);
        } else if (n_open < f->n_dev && what == 6) {
            batch now;
            give(f, &now, n);
            CHECK_OK(ggl_sched_run(f->s, n, now.row, now.n_rows, &f->err), &f->err);
            check_outputs(f, &now);
        } else if (n_open > 0) {
            const int k = below(f, n_open);
            collect(f, &b[k]);
            b[k] = b[--n_open];
        }
        if (below(f, 40) == 0)
            clear(f);
    }
} /* some are not collected */

TEST(each_keeps_its_outputs) {
    for (int early = 0; early < 4; early++) {
        fixture *f = calloc(1, sizeof *f);
        REQUIRE(f && setup(f, MOST, NULL));
        f->dev[0].base.async = early & 1;
        f->dev[2].base.async = early & 2;
        REQUIRE(start(f));
        run_any(f, 1000);
        teardown(f);
        free(f);
    }
}

/* Some of the backends do nothing until they are waited for. They reach the memory of the host, and the
 * others compute in it, or not; and they reach each other's memory, or not. */
LONG_TEST(nothing_is_read_too_early) {
    for (int k = 0; k < 3 << MOST; k++) {
        const int lazy_ones = k / 3;
        const bool takes_host = k % 3, has_peers = k % 3 == 2;
        fixture *f = calloc(1, sizeof *f);
        REQUIRE(f && setup(f, lazy_ones == 1 ? 1 : MOST, NULL));
        for (int i = 0; i < f->n_dev; i++)
            if (lazy_ones >> i & 1)
                lazy_make(&f->dev[i], takes_host, has_peers);
            else if (takes_host)
                f->dev[i].v.alloc = f->dev[i].real->v->alloc;
        REQUIRE(start(f));
        for (int i = 0; i < f->n_dev; i++) /* the one before, in each lane */
            CHECK_INT(lazy[i].n_borrowed,
                      has_peers && i > 0 && (lazy_ones >> (i - 1) & 3) == 3 ? f->n_dev : 0);
        run_any(f, 300);
        teardown(f);
        for (int i = 0; i < LAZY_MOST; i++)
            CHECK_INT(lazy[i].n_borrowed, 0);
        free(f);
    }
    lazy_free();
}

/* A batch is waited for while the one behind it has begun on the same backend, and has not to be done. */
TEST(a_batch_is_waited_for_alone) {
    for (int takes_host = 0; takes_host < 2; takes_host++) {
        fixture f;
        batch b[2];
        REQUIRE(setup(&f, 2, NULL));
        lazy_make(&f.dev[0], takes_host, false);
        REQUIRE(start(&f));
        lazy_held = true; /* the first run goes on when the second batch is there */
        REQUIRE_OK(submit(&f, &b[0], 2), &f.err);
        REQUIRE_OK(submit(&f, &b[1], 2), &f.err);
        lazy_held = false;
        for (int k = 0; k < 2; k++)
            collect(&f, &b[k]);
        CHECK(lazy[0].n_ahead > 0);
        teardown(&f);
    }
    lazy_free();
}

/* A batch that comes while another one is waited for begins on the same backend. */
TEST(a_batch_begins_while_one_is_waited_for) {
    enum { MOST_US = 20000000 };
    for (int takes_host = 0; takes_host < 2; takes_host++) {
        fixture f;
        batch b[2];
        REQUIRE(setup(&f, 2, NULL));
        lazy_make(&f.dev[1], takes_host, false);
        REQUIRE(start(&f));
        lazy_n_polls = 0;
        lazy_polls_for_next = true;
        REQUIRE_OK(submit(&f, &b[0], 2), &f.err);
        for (int us = 0; us < MOST_US && lazy_n_polls == 0; us += 100)
            usleep(100);
        CHECK(lazy_n_polls > 0);
        REQUIRE_OK(submit(&f, &b[1], 2), &f.err);
        collect(&f, &b[0]);
        CHECK(lazy[1].n_ahead > 0);
        lazy_polls_for_next = false;
        collect(&f, &b[1]);
        teardown(&f);
    }
    lazy_free();
}

/* A batch that is alone goes through all backends in the thread that waits for it. */
TEST(alone_in_one_thread) {
    fixture f;
    batch b;
    REQUIRE(setup(&f, MOST, NULL) && start(&f));
    for (int i = 0; i < 100; i++) {
        give(&f, &b, 1 + i % BATCH);
        REQUIRE_OK(ggl_sched_run(f.s, b.n, b.row, b.n_rows, &f.err), &f.err);
        check_outputs(&f, &b);
    }
    CHECK_INT(n_elsewhere, 0);
    teardown(&f);
    REQUIRE(setup(&f, 1, NULL) && start(&f)); /* one backend: whatever is called */
    for (int i = 0; i < 100; i++) {
        REQUIRE_OK(submit(&f, &b, 1 + i % BATCH), &f.err);
        collect(&f, &b);
    }
    CHECK_INT(n_elsewhere, 0);
    teardown(&f);
}

/* An asynchronous backend gets the next batch before the results of the one before are fetched. */
TEST(asynchronous_ones_run_ahead) {
    fixture f;
    batch b[2];
    REQUIRE(setup(&f, 2, NULL));
    f.dev[1].base.async = waits = true;
    REQUIRE(start(&f));
    for (int i = 0; i < 100 && n_ahead < 3; i++) {
        n_read = 0; /* two downloads for each batch: x, and the output `first` */
        for (int k = 0; k < 2; k++)
            REQUIRE_OK(submit(&f, &b[k], 1), &f.err);
        for (int k = 0; k < 2; k++)
            collect(&f, &b[k]);
    }
    CHECK_INT(n_ahead, 3); /* both trunks and the first one's tail */
    waits = false;
    teardown(&f);
}

/* A batch that fails takes those behind it along, and not the one before. */
TEST(errors_come_with_tickets) {
    fixture f;
    batch b[MOST + 1];
    REQUIRE(setup(&f, MOST, NULL) && start(&f));
    for (int i = 0; i < 50 && test_failures == 0; i++) {
        clear(&f);
        runs_left[1] = 1;
        for (int k = 0; k < MOST; k++)
            REQUIRE_OK(submit(&f, &b[k], BATCH), &f.err);
        collect(&f, &b[0]);
        for (int k = 1; k < MOST; k++) {
            f.err = (ggl_error){0};
            CHECK_INT(ggl_sched_collect(f.s, b[k].ticket, &f.err), GGL_DEVICE);
            CHECK_HAS(f.err.msg, "this run of fake b fails");
        }
        runs_left[1] = -1;
    }
    clear(&f);
    REQUIRE_OK(submit(&f, &b[0], 3), &f.err);
    collect(&f, &b[0]);
    teardown(&f);
}

/* Of a batch that nobody collects, a later call tells, once. */
TEST(an_error_is_not_lost) {
    for (int n_dev = 1; n_dev <= 2; n_dev++) {
        fixture f;
        batch b;
        REQUIRE(setup(&f, n_dev, NULL) && start(&f));
        runs_left[n_dev - 1] = 0;
        give(&f, &b, 2);
        ggl_status st = ggl_sched_submit(f.s, 2, NULL, 0, false, NULL, &f.err);
        if (st == GGL_OK) {
            CHECK_INT(ggl_sched_n_unfinished(f.s), 1);
            st = ggl_sched_finish(f.s, &f.err);
        }
        CHECK_INT(ggl_sched_n_unfinished(f.s), 0);
        CHECK_INT(st, GGL_DEVICE);
        clear(&f);
        REQUIRE_OK(submit(&f, &b, 2), &f.err);
        collect(&f, &b);
        teardown(&f);
    }
}

TEST(cancelled) {
    for (int after = 0; after < 8; after++) {
        fixture f;
        batch b[MOST];
        atomic_int left = 1 << 20;
        ggl_status st = GGL_OK;
        REQUIRE(setup(&f, MOST, &left) && start(&f));
        clear(&f);
        left = after;
        for (int k = 0; k < MOST; k++)
            REQUIRE_OK(submit(&f, &b[k], 2), &f.err);
        for (int k = 0; k < MOST; k++) {
            const ggl_status own = ggl_sched_collect(f.s, b[k].ticket, &f.err);
            CHECK(own == GGL_CANCELLED || (own == GGL_OK && st == GGL_OK));
            st = own;
        }
        CHECK_INT(st, GGL_CANCELLED);
        left = 1 << 20;
        clear(&f);
        REQUIRE_OK(submit(&f, &b[0], 3), &f.err);
        collect(&f, &b[0]);
        teardown(&f);
    }
}

TEST(misuse) {
    fixture f;
    batch b[3];
    uint64_t ticket;
    REQUIRE(setup(&f, 2, NULL) && start(&f));
    CHECK_INT(ggl_sched_collect(f.s, 0, &f.err), GGL_USAGE);
    CHECK_INT(ggl_sched_collect(f.s, 1, &f.err), GGL_USAGE);
    REQUIRE_OK(submit(&f, &b[0], 2), &f.err);
    REQUIRE_OK(submit(&f, &b[1], 2), &f.err);
    CHECK_INT(submit(&f, &b[2], 2), GGL_USAGE);
    CHECK_HAS(f.err.msg, "2 batches are not collected yet");
    CHECK_INT(ggl_sched_run(f.s, 2, NULL, 0, &f.err), GGL_USAGE);
    collect(&f, &b[1]);
    collect(&f, &b[0]);
    CHECK_INT(ggl_sched_collect(f.s, b[0].ticket, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "no batch in flight has ticket 1, or it was collected");
    CHECK_INT(ggl_sched_submit(f.s, 2, NULL, 1, false, NULL, &f.err), GGL_USAGE);
    CHECK_INT(ggl_sched_submit(f.s, 2, NULL, 0, true, &ticket, &f.err), GGL_USAGE);
    teardown(&f);
}

/* --- rows that are read late ------------------------------------------------------------------ */

enum { WINDOW = 65, PIECE = 64, N_POS = 1024 }; /* a ring of 128 positions: two pieces */

/* The first backend keeps rows of x and attends to them; the second makes other queries of that, and takes
 * its time; then the first one attends again, and the second one to rows of its own. window 0: to all
 * positions. */
static bool setup_late_reader(fixture *f, int window, bool alone) {
    *f = (fixture){.n_dev = 2, .seed = 7};
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = N_POS, .n_batch = PIECE, .n_slots = 1};
    ggl_graph *g = f->g = ggl_graph_new(&gp);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){WIDTH, 1}, true);
    for (int k = 0; k < f->n_dev; k++) {
        if (!fake_open(&f->dev[k], (char)('a' + k)))
            return false;
        f->dev[k].v.run = run;
        f->list[k] = &f->dev[k].base;
        runs_left[k] = -1;
        n_runs[k] = 0;
    }
    slow_us = 20000;
    ggl_graph_set_group(g, 0);
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){x, x}, 2, NULL, 0);
    const double num[3] = {NAN, window ? window : NAN, NAN};
    ggl_tensor *q = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, num, 3);
    ggl_graph_set_group(g, alone ? 0 : 1);
    q = ggl_binary(g, GGL_OP_MUL, q, ggl_graph_number(g, 3));
    q = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){q, kv}, 2, num, 3);
    kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){q, q}, 2, NULL, 0);
    q = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){q, kv}, 2, num, 3);
    ggl_graph_output(g, "y", q);
    const ggl_sched_params p = {
        .size = sizeof p, .backend = f->list, .n_backends = 2, .place = by_layer};
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, g, &p, &f->err), &f->err) && start(f);
}

/* Sets the inputs of n elements from position `first` on. */
static void give_piece(fixture *f, int first, int n) {
    float x[PIECE][WIDTH];
    int32_t pos[PIECE], slot[PIECE] = {0};
    for (int i = 0; i < n; i++) {
        pos[i] = first + i;
        for (int e = 0; e < WIDTH; e++)
            x[i][e] = (float)below(f, 100) / 50 - 1;
    }
    REQUIRE_OK(ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &f->err), &f->err);
    REQUIRE_OK(ggl_sched_set(f->s, "pos", pos, (size_t)n * sizeof *pos, n, &f->err), &f->err);
    REQUIRE_OK(ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &f->err), &f->err);
}

/* Two pieces under way, then the outputs of both. */
static void run_pieces(fixture *f, const int *first, int n, float (*y)[PIECE][WIDTH]) {
    uint64_t ticket[2];
    for (int k = 0; k < 2; k++) {
        give_piece(f, first[k], n);
        if (ggl_sched_n_lanes(f->s) == 1) {
            REQUIRE_OK(ggl_sched_run(f->s, n, NULL, 0, &f->err), &f->err);
            memcpy(y[k], ggl_sched_output(f->s, 0), (size_t)n * sizeof *y[k]);
        } else {
            REQUIRE_OK(ggl_sched_submit(f->s, n, NULL, n, false, &ticket[k], &f->err), &f->err);
        }
    }
    for (int k = 0; k < 2 && ggl_sched_n_lanes(f->s) > 1; k++) {
        REQUIRE_OK(ggl_sched_collect(f->s, ticket[k], &f->err), &f->err);
        memcpy(y[k], ggl_sched_output(f->s, 0), (size_t)n * sizeof *y[k]);
    }
}

/* A batch does not overwrite rows that the one before it has not read yet: in a ring, those that it takes the
 * place of; and rows of the same positions, if a sequence was cut back. */
TEST(rows_wait_for_their_readers) {
    static const struct {
        int window, n, first[4]; /* of pieces, two at a time */
    } way[] = {{WINDOW, PIECE, {0, 64, 128, 192}}, {0, 4, {0, 4, 8, 6}}};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        float y[2][2][2][PIECE][WIDTH] = {{{{{0}}}}};
        for (int alone = 0; alone < 2; alone++) {
            fixture f;
            REQUIRE(setup_late_reader(&f, way[i].window, alone));
            CHECK_INT(ggl_sched_n_lanes(f.s), alone ? 1 : 2);
            for (int k = 0; k < 2; k++)
                run_pieces(&f, &way[i].first[2 * k], way[i].n, y[alone][k]);
            slow_us = 0;
            teardown(&f);
        }
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
    }
}
