/* A job whose ranks are threads of this process: what does not depend on MPI. That results are the same on ranks is for
 * tests/random, which has ways to run through them. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "common/recorder.h"
#include "ggl/internal/backends.h"
#include "ggl/sched.h"
#include "local_job.h"
#include "ranks/clock.h"
#include "ranks/orders.h"
#include "ranks/queue.h"
#include "ranks/ranks.h"
#include "test.h"

enum { WIDTH = 64, BATCH = 16 };

typedef struct fixture {
    local_job *job;
    ggl_backend *b;
    ggl_graph *g;
    ggl_sched *s;
    float *w;
    ggl_error err;
} fixture;

static int n_asked;
static bool cancels_at_third(void *ctx) {
    (void)ctx;
    return ++n_asked >= 3;
}

/* What the next setup opens the device with, besides threads. */
static ggl_backend_params opened_with;

/* y = tanh(w x), `depth` times. */
static bool setup(fixture *f, int depth, int width, bool (*cancelled)(void *)) {
    *f = (fixture){0};
    setenv("GGL_RANK_PATIENCE", TEST_SANITIZED ? "8" : "1", 1);
    f->job = local_job_open(3, &f->err);
    f->w = calloc((size_t)width * (size_t)width, sizeof *f->w);
    if (!CHECK_MSG(f->job, "%s", f->err.msg) || !CHECK(f->w))
        return false;
    for (int i = 0; i < width * width; i++)
        f->w[i] = (float)(i % 7 - 3) / (float)width;
    f->g = ggl_graph_new(&(ggl_graph_params){.size = sizeof(ggl_graph_params),
                                             .n_pos = 64,
                                             .n_batch = BATCH,
                                             .n_slots = 1,
                                             .type_k = GGL_F32,
                                             .type_v = GGL_F32});
    ggl_tensor *x = ggl_graph_input(f->g, "x", GGL_F32, 1, (int64_t[]){width}, true);
    ggl_tensor *w = ggl_graph_weight(f->g, "w", GGL_F32, 2, (int64_t[]){width, width}, f->w);
    for (int i = 0; i < depth; i++)
        x = ggl_unary(f->g, GGL_OP_TANH, ggl_linear(f->g, x, w, NULL));
    ggl_graph_output(f->g, "y", x);
    ggl_backend_params p = opened_with;
    p.size = sizeof p;
    p.n_threads = 1;
    opened_with = (ggl_backend_params){0};
    if (!CHECK_OK(ggl_graph_finish(f->g, &f->err), &f->err) ||
        !CHECK_OK(ggl_backend_open(&f->b, "rank1", &p, &f->err), &f->err))
        return false;
    const ggl_sched_params sp = {
        .size = sizeof sp, .backend = &f->b, .n_backends = 1, .cancelled = cancelled};
    return CHECK_OK(ggl_sched_new(&f->s, f->g, &sp, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err);
}

static ggl_status run(fixture *f, int width) {
    float *x = calloc((size_t)width * BATCH, sizeof *x);
    for (int i = 0; x && i < width * BATCH; i++)
        x[i] = (float)(i % 5);
    ggl_status st =
        x ? ggl_sched_set(f->s, "x", x, (size_t)width * BATCH * sizeof *x, BATCH, &f->err)
          : GGL_NOMEM;
    free(x);
    return st == GGL_OK ? ggl_sched_run(f->s, BATCH, NULL, BATCH, &f->err) : st;
}

static bool teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    ggl_backend_close(f->b);
    free(f->w);
    const bool ok = f->job && local_job_close(f->job);
    unsetenv("GGL_RANK_PATIENCE");
    return ok;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

TEST(same_as_here) {
    fixture f;
    if (setup(&f, 3, WIDTH, NULL) && CHECK_OK(run(&f, WIDTH), &f.err)) {
        ggl_backend *cpu = NULL;
        ggl_sched *s = NULL;
        const float *y = ggl_sched_output(f.s, 0);
        CHECK_OK(ggl_backend_open(&cpu, "cpu", NULL, &f.err), &f.err);
        const ggl_sched_params sp = {.size = sizeof sp, .backend = &cpu, .n_backends = 1};
        ggl_sched *there = f.s;
        if (CHECK_OK(ggl_sched_new(&s, f.g, &sp, &f.err), &f.err) &&
            CHECK_OK(ggl_sched_alloc(s, &f.err), &f.err)) {
            f.s = s;
            CHECK_OK(run(&f, WIDTH), &f.err);
            CHECK(memcmp(y, ggl_sched_output(s, 0), WIDTH * BATCH * sizeof *y) == 0);
        }
        f.s = there;
        ggl_sched_free(s);
        ggl_backend_close(cpu);
    }
    CHECK(teardown(&f));
}

/* A rank that falls silent is named, in time, and everything after it ends with the same error. */
TEST(silent) {
    fixture f;
    if (setup(&f, 1, WIDTH, NULL) && CHECK_OK(run(&f, WIDTH), &f.err)) {
        local_job_silence(f.job, 1);
        const double since = seconds();
        CHECK_INT(run(&f, WIDTH), GGL_DEVICE);
        CHECK_HAS(f.err.msg, "rank 1 (process ");
        CHECK_HAS(f.err.msg, "does not answer");
        /* no time is asserted, but that it ends: a hang would be the test's timeout */
        printf("%.2f s\n", seconds() - since);
        CHECK_INT(run(&f, WIDTH), GGL_DEVICE);
        ggl_backend *again = NULL, *other = NULL;
        CHECK_INT(ggl_backend_open(&again, "rank1", NULL, &f.err), GGL_DEVICE);
        CHECK_OK(ggl_backend_open(&other, "rank2", NULL, &f.err), &f.err);
        ggl_backend_close(other);
    }
    CHECK(!teardown(&f));
}

/* The rank stops between two steps when rank 0 is asked and wants it. */
TEST(cancelled) {
    fixture f;
    n_asked = 0;
    if (setup(&f, 400, 1024, cancels_at_third)) {
        CHECK_INT(run(&f, 1024), GGL_CANCELLED);
    }
    CHECK(teardown(&f));
}

static void other_version(hello *h) {
    snprintf(h->version, sizeof h->version, "0.0.1");
}
static void other_structs(hello *h) {
    h->sizes++;
}
static void other_interface(hello *h) {
    h->abi++;
}
static void other_order(hello *h) {
    h->order = 0x04030201;
}
static void other_program(hello *h) {
    memcpy(h->magic, "nonsense", sizeof h->magic);
}
static void no_ends(hello *h) { /* texts without a NUL */
    memset(h->version, 'x', sizeof h->version);
    memset(h->host, 'y', sizeof h->host);
}

/* Ranks of another build are refused, by a sentence that names both. */
TEST(other_builds) {
    static const struct {
        void (*change)(hello *h);
        const char *words;
    } way[] = {{other_version, "rank 1 on here has version 0.0.1 (interface "},
               {other_structs, "all ranks must run the same build"},
               {other_interface, "all ranks must run the same build"},
               {other_order, "rank 1 is another program, or has another byte order"},
               {other_program, "rank 1 is another program, or has another byte order"},
               {no_ends, "all ranks must run the same build"}};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        ggl_error err = {0};
        local_job_change_hello(way[i].change);
        CHECK(!local_job_open(2, &err));
        CHECK_INT(err.status, GGL_UNSUPPORTED);
        CHECK_HAS(err.msg, way[i].words);
        CHECK(strlen(err.msg) < 300);
    }
    local_job_change_hello(NULL);
    ggl_error err = {0};
    local_job *j = local_job_open(2, &err);
    CHECK_MSG(j && local_job_close(j), "%s", err.msg);
}

TEST(names) {
    static const char *const are[] = {"rank1", "rank12", "rank0", "rank3:vulkan0", "rank1:cpu"},
                             *const are_not[] = {"rank",   "rank01", "rank1:", "ranks1",
                                                 "rank1x", "cpu",    "rank-1", "rank12345"};
    for (size_t i = 0; i < sizeof are / sizeof *are; i++)
        CHECK_MSG(ggl_rank_is_name(are[i]), "%s", are[i]);
    for (size_t i = 0; i < sizeof are_not / sizeof *are_not; i++)
        CHECK_MSG(!ggl_rank_is_name(are_not[i]), "%s", are_not[i]);
    ggl_backend *b = NULL;
    ggl_error err;
    CHECK_INT(ggl_backend_open(&b, "rank1", NULL, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "mpirun");
}

TEST(wrong_devices) {
    fixture f;
    static const struct {
        const char *name, *words;
    } wrong[] = {{"rank0", "is this program itself"},
                 {"rank3", "ranks 0 to 2"},
                 {"rank1:nonsense", "no backend 'nonsense'"},
                 {"rank1:rank2", "a rank has devices"},
                 {"rank1:/no/such.so", "No such file"}};
    if (setup(&f, 1, WIDTH, NULL))
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            ggl_backend *b = NULL;
            CHECK(ggl_backend_open(&b, wrong[i].name, NULL, &f.err) != GGL_OK && !b);
            CHECK_HAS(f.err.msg, wrong[i].words);
        }
    CHECK(teardown(&f));
}

/* Memory that the rank does not have is an error of the call, and nothing more. */
TEST(no_memory) {
    fixture f;
    if (setup(&f, 1, WIDTH, NULL)) {
        ggl_buffer *buf = NULL;
        CHECK_INT(f.b->v->alloc(f.b, GGL_REGION_ARENA, SIZE_MAX / 2, NULL, &buf, &f.err),
                  GGL_NOMEM);
        CHECK_HAS(f.err.msg, "rank1");
        CHECK_OK(run(&f, WIDTH), &f.err);
    }
    CHECK(teardown(&f));
}

/* A device's channel is used again after it is closed, as servers open and close models for months. */
TEST(many_devices) {
    fixture f;
    if (setup(&f, 1, WIDTH, NULL)) {
        ggl_backend *open[3] = {0}, *b = NULL;
        for (int i = 0; i < 3 * MOST_CHANNELS; i++) {
            ggl_backend_close(open[i % 3]);
            open[i % 3] = NULL;
            if (i % 7 == 0)
                CHECK_INT(ggl_backend_open(&b, "rank1:nonsense", NULL, &f.err), GGL_NOT_FOUND);
            REQUIRE_OK(ggl_backend_open(&open[i % 3], "rank1", NULL, &f.err), &f.err);
        }
        for (int i = 0; i < 3; i++)
            ggl_backend_close(open[i]);
        CHECK_OK(run(&f, WIDTH), &f.err);
        /* as many as there are channels besides the first one and that of f */
        static ggl_backend *all[MOST_CHANNELS];
        int n = 0;
        while (n < MOST_CHANNELS && ggl_backend_open(&all[n], "rank1", NULL, &f.err) == GGL_OK)
            n++;
        CHECK_INT(n, MOST_CHANNELS - 2);
        CHECK_HAS(f.err.msg, "63 devices are open there");
        while (n > 0)
            ggl_backend_close(all[--n]);
    }
    CHECK(teardown(&f));
}

/* A program that ends without closing its devices. */
TEST(left_open) {
    fixture f;
    if (setup(&f, 1, WIDTH, NULL) && CHECK_OK(run(&f, WIDTH), &f.err))
        CHECK(ggl_job_dismiss(ggl_current_job));
    CHECK(!teardown(&f)); /* the ranks have ended */
}

/* More pieces than a packet or an answer has room for, and more messages of data than are waited for at once. */
TEST(many_pieces) {
    fixture f;
    enum { N = 3000, SIZE = 700, LARGE = 9 << 20 };
    if (setup(&f, 1, WIDTH, NULL)) {
        ggl_buffer *buf = NULL, *host = NULL;
        char *a = malloc(LARGE), *b = calloc(LARGE, 1);
        ggl_copy_range *range = calloc(N, sizeof *range);
        REQUIRE(a && b && range);
        for (int i = 0; i < LARGE; i++)
            a[i] = (char)(i * 7 + i / 251);
        for (size_t i = 0; i < N; i++)
            range[i] = (ggl_copy_range){i * 2 * SIZE, (N - 1 - i) * SIZE, SIZE};
        const ggl_backend_vtable *v = f.b->v;
        uint64_t mark;
        CHECK_OK(v->alloc(f.b, GGL_REGION_IO, LARGE, NULL, &buf, &f.err), &f.err);
        CHECK_OK(v->alloc(f.b, GGL_REGION_IO, LARGE, b, &host, &f.err), &f.err);
        CHECK_OK(v->upload(f.b, buf, 0, a, LARGE, &f.err), &f.err);
        CHECK_OK(v->copy(f.b, host, buf, range, N, &f.err), &f.err);
        CHECK_OK(v->mark(f.b, &mark, &f.err), &f.err);
        CHECK_OK(v->wait_for(f.b, mark, &f.err), &f.err);
        for (size_t i = 0; i < N; i++)
            CHECK(memcmp(b + range[i].to, a + range[i].from, SIZE) == 0);
        memset(b, 0, LARGE);
        for (size_t i = 0; i + 20000 < LARGE; i += 20000) { /* each is data */
            const ggl_copy_range r = {i, i, 20000};
            CHECK_OK(v->copy(f.b, host, buf, &r, 1, &f.err), &f.err);
        }
        CHECK_OK(v->wait(f.b, &f.err), &f.err);
        CHECK(memcmp(a, b, LARGE / 20000 * 20000) == 0);
        CHECK_OK(v->clear(f.b, buf, 100, LARGE - 200, &f.err), &f.err);
        CHECK_OK(v->download(f.b, buf, 0, b, LARGE, &f.err), &f.err);
        CHECK(b[0] == a[0] && b[100] == 0 && b[LARGE - 101] == 0 &&
              b[LARGE - 100] == a[LARGE - 100]);
        for (size_t i = 0; i < N; i++) { /* from host memory, each of its own */
            const ggl_copy_range r = {i * SIZE, i * SIZE, SIZE};
            b[i * SIZE] = (char)i;
            CHECK_OK(v->copy(f.b, buf, host, &r, 1, &f.err), &f.err);
        }
        CHECK_OK(v->download(f.b, buf, 0, a, LARGE, &f.err), &f.err);
        CHECK(memcmp(a, b, (size_t)N * SIZE) == 0);
        v->free(f.b, buf);
        v->free(f.b, host);
        free(a);
        free(b);
        free(range);
    }
    CHECK(teardown(&f));
}

/* --- weights ------------------------------------------------------------------------------------ */

typedef struct number {
    queued q;
    int n;
} number;

typedef struct numbers {
    room room;
    int n, n_wrong;
} numbers;

static void take_number(void *ctx, queued *item) {
    numbers *x = ctx;
    number *i = (number *)item;
    x->n_wrong += i->n != x->n++;
    const size_t size = (size_t)i->n % 7 * 10;
    free(i);
    ggl_room_give(&x->room, size);
}

/* Everything is carried out once, in order, by a thread that is started again after it was stopped; and no more is under way than there is
 * room for, unless it is a single large thing or two. */
TEST(queues) {
    enum { N = 5000, MOST = 100, FEWEST = 2 };
    numbers x = {0};
    queue q;
    ggl_room_init(&x.room, MOST, FEWEST);
    ggl_queue_init(&q, take_number, &x);
    for (int i = 0; i < N; i++) {
        number *m = calloc(1, sizeof *m);
        REQUIRE(m);
        m->n = i;
        ggl_room_take(&x.room, (size_t)i % 7 * 10);
        pthread_mutex_lock(&x.room.lock);
        CHECK(x.room.size <= MOST || x.room.n <= FEWEST);
        pthread_mutex_unlock(&x.room.lock);
        ggl_queue_put(&q, &m->q);
        if (i % 1000 == 500) {
            ggl_queue_drain(&q);
            CHECK(x.n == i + 1 && ggl_queue_is_empty(&q));
        }
        if (i % 1000 == 700) {
            ggl_queue_stop(&q);
            CHECK_INT(x.n, i + 1);
        }
    }
    ggl_queue_fini(&q);
    CHECK(x.n == N && x.n_wrong == 0 && x.room.n == 0 && x.room.size == 0);
    ggl_room_take(&x.room, MOST * 3); /* two of any size have room */
    ggl_room_take(&x.room, MOST * 3);
    ggl_room_give(&x.room, MOST * 3);
    ggl_room_give(&x.room, MOST * 3);
    ggl_room_fini(&x.room);
}

enum { N_WEIGHTS = 70, SIDE = 160 }; /* more than are asked for at once */

/* A job of three ranks, and a network whose weights are all different, half of them on each of rank1 and rank2. */
typedef struct network {
    local_job *job;
    ggl_backend *b[2];
    ggl_graph *g;
    ggl_sched *s;
    float *w;
    ggl_error err;
} network;

static int half_on_second(void *ctx, int group, const char *name) {
    (void)ctx;
    return name ? -1 : group >= N_WEIGHTS / 2;
}

static bool open_network(network *f, const char *kept) {
    *f = (network){0};
    setenv("GGL_RANK_PATIENCE", TEST_SANITIZED ? "8" : "1", 1);
    setenv("GGL_RANK_CACHE", kept, 1);
    f->job = local_job_open(3, &f->err);
    f->w = calloc((size_t)N_WEIGHTS * SIDE * SIDE, sizeof *f->w);
    if (!CHECK_MSG(f->job, "%s", f->err.msg) || !CHECK(f->w))
        return false;
    for (int i = 0; i < N_WEIGHTS * SIDE * SIDE; i++)
        f->w[i] = (float)((int)(((unsigned)i * 2654435761u) >> 20) % 11 - 5) / SIDE;
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = BATCH, .n_slots = 1};
    f->g = ggl_graph_new(&gp);
    ggl_tensor *x = ggl_graph_input(f->g, "x", GGL_F32, 1, (int64_t[]){SIDE}, true);
    for (int i = 0; i < N_WEIGHTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        ggl_graph_set_group(f->g, i);
        ggl_tensor *w = ggl_graph_weight(f->g, name, GGL_F32, 2, (int64_t[]){SIDE, SIDE},
                                         f->w + (size_t)i * SIDE * SIDE);
        x = ggl_unary(f->g, GGL_OP_TANH, ggl_linear(f->g, x, w, NULL));
    }
    ggl_graph_output(f->g, "y", x);
    const ggl_backend_params p = {.size = sizeof p, .n_threads = 1};
    const ggl_sched_params sp = {
        .size = sizeof sp, .backend = f->b, .n_backends = 2, .place = half_on_second};
    return CHECK_OK(ggl_graph_finish(f->g, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->b[0], "rank1", &p, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->b[1], "rank2", &p, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, f->g, &sp, &f->err), &f->err);
}

static bool close_network(network *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    ggl_backend_close(f->b[0]);
    ggl_backend_close(f->b[1]);
    free(f->w);
    const bool ok = f->job && local_job_close(f->job);
    unsetenv("GGL_RANK_PATIENCE");
    unsetenv("GGL_RANK_CACHE");
    return ok;
}

/* Loads the network, runs it, and compares with `want`, or sets that if it is NaN. Sets *sent to the bytes of data. */
static void load_and_run(const char *kept, float want[SIDE], size_t *sent) {
    network f;
    float x[SIDE];
    *sent = 0;
    for (int i = 0; i < SIDE; i++)
        x[i] = (float)(i % 5) - 2;
    if (open_network(&f, kept) && CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err)) {
        *sent = local_job_data(f.job);
        CHECK_OK(ggl_sched_set(f.s, "x", x, sizeof x, 1, &f.err), &f.err);
        if (CHECK_OK(ggl_sched_run(f.s, 1, NULL, 1, &f.err), &f.err)) {
            if (want[0] != want[0])
                memcpy(want, ggl_sched_output(f.s, 0), sizeof x);
            CHECK(memcmp(want, ggl_sched_output(f.s, 0), sizeof x) == 0);
        }
    }
    CHECK(close_network(&f));
}

enum { WEIGHT_SIZE = SIDE * SIDE * sizeof(float) };

/* Counts the files, all of which must be whole, and damages every `step`th one; 0: none. Returns their number. */
static int look_at_kept(const char *folder, int step, int *n_damaged) {
    char path[1024];
    int n = 0;
    DIR *d = opendir(folder);
    *n_damaged = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0)
            continue;
        CHECK_MSG(!strstr(path, ".tmp") && st.st_size == WEIGHT_SIZE, "%s: %lld bytes", path,
                  (long long)st.st_size);
        if (step && n % step == 0) {
            if (n % (2 * step) == 0) {
                FILE *f = fopen(path, "r+b");
                CHECK(f && fseek(f, WEIGHT_SIZE / 2, SEEK_SET) == 0 && fputs("damage", f) >= 0);
                if (f)
                    fclose(f);
            } else {
                CHECK(truncate(path, WEIGHT_SIZE / 2) == 0);
            }
            ++*n_damaged;
        }
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

/* What was sent is kept when the job has ended; damaged files among whole ones are sent again, and no others. */
TEST(kept_weights) {
    char kept[1024];
    float want[SIDE] = {NAN};
    size_t sent = 0;
    int n_damaged = 0;
    snprintf(kept, sizeof kept, "%s", test_path("kept/weights"));
    load_and_run("off", want, &sent);
    CHECK(sent >= (size_t)N_WEIGHTS * WEIGHT_SIZE);
    const size_t rest = sent - (size_t)N_WEIGHTS * WEIGHT_SIZE; /* graphs */
    load_and_run(kept, want, &sent);
    CHECK_INT((long long)sent, (long long)(N_WEIGHTS * WEIGHT_SIZE + rest));
    CHECK_INT(look_at_kept(kept, 0, &n_damaged), N_WEIGHTS);
    load_and_run(kept, want, &sent);
    CHECK_INT((long long)sent, (long long)rest);
    CHECK_INT(look_at_kept(kept, 9, &n_damaged), N_WEIGHTS);
    CHECK(n_damaged > 5);
    load_and_run(kept, want, &sent);
    CHECK_INT((long long)sent, (long long)((size_t)n_damaged * WEIGHT_SIZE + rest));
    CHECK_INT(look_at_kept(kept, 0, &n_damaged), N_WEIGHTS);
}

/* An empty variable means the default folder. */
TEST(kept_in_the_default_folder) {
    char kept[1024];
    float want[SIDE] = {NAN};
    size_t sent = 0;
    int n_damaged = 0;
    setenv("XDG_CACHE_HOME", test_path("home"), 1);
    snprintf(kept, sizeof kept, "%s", test_path("home/ggml-lite/weights"));
    load_and_run("", want, &sent);
    CHECK_INT(look_at_kept(kept, 0, &n_damaged), N_WEIGHTS);
    unsetenv("XDG_CACHE_HOME");
}

/* A folder that cannot be made, and one in which nothing can be written: one note of each rank, and the weights are used all the same. */
TEST(keeps_none) {
    char kept[1024], note[512];
    float want[SIDE] = {NAN};
    size_t sent = 0;
    FILE *f = fopen(test_path("file"), "wb");
    REQUIRE(f && fclose(f) == 0);
    snprintf(kept, sizeof kept, "%s", test_path("file/weights"));
    load_and_run("off", want, &sent);
    CHECK_INT(local_job_notes(note, sizeof note), 0);
    load_and_run(kept, want, &sent);
    CHECK_INT(local_job_notes(note, sizeof note), 2);
    CHECK_HAS(note, "weights are not kept for the next start: ");
    CHECK_HAS(note, kept);
    /* no file may become so large: as if the disk were full */
    struct rlimit was, less;
    int n_damaged = 0;
    snprintf(kept, sizeof kept, "%s", test_path("full"));
    REQUIRE(getrlimit(RLIMIT_FSIZE, &was) == 0);
    less = was;
    less.rlim_cur = WEIGHT_SIZE / 2;
    (void)signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
    load_and_run(kept, want, &sent);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK_INT(local_job_notes(note, sizeof note), 2);
    CHECK_HAS(note, "weights are not kept for the next start: ");
    CHECK_INT(look_at_kept(kept, 0, &n_damaged), 0);
}

static void change_one(char *data, size_t size) {
    static atomic_int n; /* threads of both ranks send */
    if (size == WEIGHT_SIZE && ++n == 20)
        data[WEIGHT_SIZE / 2] ^= 1;
}

/* Bytes that are damaged on their way are an error that names rank and weight, and nothing of it is kept. */
TEST(damaged_on_the_way) {
    network f;
    char kept[1024];
    int n_damaged = 0;
    snprintf(kept, sizeof kept, "%s", test_path("damaged"));
    if (open_network(&f, kept)) {
        local_job_change_data(change_one);
        CHECK_INT(ggl_sched_alloc(f.s, &f.err), GGL_DEVICE);
        CHECK_HAS(f.err.msg, "arrived with other bytes than it was sent with");
        CHECK_HAS(f.err.msg, "rank");
        local_job_change_data(NULL);
    }
    CHECK(close_network(&f));
    CHECK(look_at_kept(kept, 0, &n_damaged) < N_WEIGHTS);
}

/* A rank that falls silent while it loads: at the first weight, or somewhere in the middle. */
LONG_TEST(silent_while_loading) {
    static const int after[] = {1, 20};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        network f;
        if (open_network(&f, "off")) {
            local_job_silence_after(f.job, 2, after[i]);
            CHECK_INT(ggl_sched_alloc(f.s, &f.err), GGL_DEVICE);
            CHECK_HAS(f.err.msg, "rank 2 (process ");
        }
        CHECK(!close_network(&f));
    }
}

/* --- what a rank does, and when ------------------------------------------------------------------ */

typedef struct steps {
    int n, n_prepares;
    uint64_t first, last; /* when the first one began, and the last one ended */
    bool are_in_order;    /* no step begins before the last one ended */
    const ggl_graph *g;   /* all nodes are of it */
} steps;

static void count_step(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                       uint64_t end) {
    steps *s = ctx;
    const bool is_one = node && (node->op == GGL_OP_LINEAR || node->op == GGL_OP_TANH);
    s->first = s->n + s->n_prepares == 0 ? begin : s->first;
    s->are_in_order = is_one && n == BATCH && begin <= end &&
                      (s->n + s->n_prepares == 0 || (s->are_in_order && begin >= s->last));
    s->last = end;
    s->n += !prepares;
    s->n_prepares += prepares;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The trace as text, for free(). */
static char *read_trace(const char *path) {
    size_t n = 0;
    char *text = (char *)test_read_file(path, &n);
    if (CHECK_MSG(text, "%s is not there", path))
        text[n] = '\0';
    return text;
}

static int count_words(const char *text, const char *words) {
    int n = 0;
    for (const char *p = text; p && (p = strstr(p, words)); p++)
        n++;
    return n;
}

/* Most by which times of the rank may be wrong, as the trace says. */
static uint64_t exactness(const char *text) {
    static const char key[] = "\"exact_ns\":";
    uint64_t most = 0;
    for (const char *p = text; p && (p = strstr(p, key)); p++) {
        const uint64_t x = strtoull(p + sizeof key - 1, NULL, 10);
        most = x > most ? x : most;
    }
    return 3 * most; /* after two samples, the line through them goes on as far again */
}

/* Steps of a rank have our nodes, and times within the call of ours that waited for them. */
TEST(steps) {
    fixture f;
    steps there = {0}, here = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("ranks.json"));
    opened_with = (ggl_backend_params){.profile = count_step, .profile_ctx = &there, .trace = path};
    uint64_t begin = 0, end = 0;
    if (setup(&f, 7, WIDTH, NULL)) {
        begin = now();
        CHECK_OK(run(&f, WIDTH), &f.err);
        end = now();
        ggl_backend *cpu = NULL;
        ggl_sched *s = NULL;
        const ggl_backend_params p = {
            .size = sizeof p, .n_threads = 1, .profile = count_step, .profile_ctx = &here};
        REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &p, &f.err), &f.err);
        const ggl_sched_params sp = {.size = sizeof sp, .backend = &cpu, .n_backends = 1};
        REQUIRE_OK(ggl_sched_new(&s, f.g, &sp, &f.err), &f.err);
        REQUIRE_OK(ggl_sched_alloc(s, &f.err), &f.err);
        ggl_sched *of_rank = f.s;
        f.s = s;
        CHECK_OK(run(&f, WIDTH), &f.err);
        f.s = of_rank;
        ggl_sched_free(s);
        ggl_backend_close(cpu);
    }
    CHECK(teardown(&f));
    CHECK(here.n == 14 && there.are_in_order);
    CHECK_INT(there.n, here.n);
    CHECK_INT(there.n_prepares, here.n_prepares);
    char *text = read_trace(path);
    REQUIRE(text);
    const uint64_t exact = exactness(text);
    CHECK(exact > 0);
    CHECK_MSG(there.first + exact >= begin && there.last <= end + exact,
              "steps of a rank: %.0f to %.0f ns, not within 0 and %.0f; exact to %.0f",
              (double)there.first - (double)begin, (double)there.last - (double)begin,
              (double)end - (double)begin, (double)exact);
    CHECK_HAS(text, "\"name\":\"rank1 on here\"");
    CHECK_INT(count_words(text, "\"cat\":\"node\""), there.n);
    CHECK_INT(count_words(text, "\"operator\":\"tanh\""), 7);
    CHECK_HAS(text, "{\"name\":\"idle\",\"cat\":\"rank\"");
    CHECK_HAS(text, "{\"name\":\"receive\",\"cat\":\"rank\"");
    CHECK_HAS(text, "\"weight\":\"w\"");
    free(text);
}

/* More than a message of events has room for, in many batches: none is missing, and no batch has those of another one twice. */
TEST(many_steps) {
    enum { DEPTH = 300, RUNS = 30 };
    _Static_assert((size_t)DEPTH * RUNS * sizeof(kept_event) > EVENTS_SIZE, "one message has room");
    fixture f;
    steps s = {0};
    opened_with = (ggl_backend_params){.profile = count_step, .profile_ctx = &s};
    if (setup(&f, DEPTH, WIDTH, NULL))
        for (int i = 1; i <= RUNS; i++) {
            CHECK_OK(run(&f, WIDTH), &f.err);
            CHECK_INT(s.n, 2 * DEPTH * i);
        }
    CHECK(s.are_in_order);
    CHECK(teardown(&f));
}

/* A rank that falls silent takes neither the trace of the others with it, nor the time of whoever ends it. */
TEST(lost_events) {
    fixture f;
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("lost.json"));
    opened_with = (ggl_backend_params){.trace = path};
    if (setup(&f, 7, WIDTH, NULL) && CHECK_OK(run(&f, WIDTH), &f.err)) {
        local_job_silence(f.job, 1);
        CHECK_INT(run(&f, WIDTH), GGL_DEVICE);
        CHECK_HAS(f.err.msg, "rank 1 (process ");
        CHECK_OK(ggl_trace_end(f.b, &f.err), &f.err);
    }
    CHECK(!teardown(&f));
    char *text = read_trace(path);
    REQUIRE(text);
    CHECK_INT(count_words(text, "\"cat\":\"node\""), 14); /* of the first run */
    CHECK_HAS(text, "{\"name\":\"run\",\"cat\":\"backend\"");
    CHECK_HAS(text, "\"failed\":");
    free(text);
}

/* It falls silent between the last batch and the end of the trace. */
TEST(lost_at_the_end) {
    fixture f;
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("end.json"));
    opened_with = (ggl_backend_params){.trace = path};
    if (setup(&f, 7, WIDTH, NULL) && CHECK_OK(run(&f, WIDTH), &f.err)) {
        ggl_buffer *buf = NULL;
        CHECK_OK(f.b->v->alloc(f.b, GGL_REGION_IO, 64, NULL, &buf, &f.err), &f.err);
        local_job_silence(f.job, 1);
        CHECK_OK(ggl_trace_end(f.b, &f.err), &f.err);
        f.b->v->free(f.b, buf);
    }
    CHECK(!teardown(&f));
    char *text = read_trace(path);
    REQUIRE(text);
    CHECK_INT(count_words(text, "\"cat\":\"node\""), 14);
    CHECK_HAS(text, "\n]\n");
    free(text);
}

/* Clocks that differ, and run differently fast: times between two samples are exact, others follow the line. */
TEST(clocks) {
    const int64_t offset = -7000000000, second = 1000000000;
    rank_clock c = {0};
    for (int i = 0; i < 4; i++) {
        const uint64_t begin = (uint64_t)(20 + 10 * i) * (uint64_t)second,
                       drift = (uint64_t)i * 500000; /* 50 millionths */
        const clock_sample s =
            ggl_clock_trip(begin, begin + 500 + (uint64_t)offset + drift, begin + 1000);
        CHECK_INT(s.offset, offset + (int64_t)drift);
        CHECK(s.exact >= 500 && s.exact <= 501);
        ggl_clock_add(&c, &s);
        /* the samples are of the middle of each trip */
        const uint64_t here = ggl_clock_here(&c, (uint64_t)s.at);
        CHECK_INT(here, begin + 500);
    }
    const int64_t at = c.sample[1].at - 5 * second, drifted[] = {1250000, 1750000};
    for (int i = 0; i < 2; i++) {
        const int64_t there = at + i * 10 * second, want = there - offset - drifted[i];
        const int64_t wrong = (int64_t)ggl_clock_here(&c, (uint64_t)there) - want;
        CHECK_MSG(wrong >= -20 && wrong <= 20, "%d ns off",
                  (int)wrong); /* 50 millionths of 0.25 ms */
    }
    /* soon after the last one, only a more exact one counts */
    const clock_sample last = c.sample[1];
    ggl_clock_add(&c, &(clock_sample){last.at + 1000, last.offset + 900, last.exact + 1});
    CHECK_INT(c.sample[1].offset, last.offset);
    ggl_clock_add(&c, &(clock_sample){last.at + 1000, last.offset + 90, last.exact - 1});
    CHECK_INT(c.sample[1].offset, last.offset + 90);
}

/* What is kept has a limit; what has no room is counted, and what was taken makes room again. Damaged bytes are refused. */
TEST(kept_events) {
    enum { LIMIT = 4096, N = 300 };
    char name[RECORDER_NAME], *at = malloc(LIMIT);
    ggl_error err = {0};
    recorder *r = NULL, *same = NULL;
    uint64_t left = 0, lost = 0;
    REQUIRE(at);
    REQUIRE_OK(ggl_recorder_keep(&r, 5, LIMIT, name, &err), &err);
    CHECK_OK(ggl_recorder_open(&same, name, &err), &err);
    CHECK(same == r);
    const trace_event e = {.phase = 'X',
                           .name = "call",
                           .kind = "backend",
                           .begin = 7,
                           .end = 9,
                           .arg = {{"bytes", NULL, 11}, {"why", "so", 0}}};
    for (int i = 0; i < N; i++)
        ggl_recorder_write(r, &e);
    size_t n = ggl_recorder_take(r, at, 1000, &left, &lost);
    CHECK(n > 0 && n <= 1000 && left > 0 && n + left <= LIMIT && lost > 0);
    kept_event head;
    trace_event got;
    const size_t size = ggl_kept_read(at, n, &head, &got);
    CHECK_INT((int)(N - lost), (int)((n + left) / size));
    CHECK(size > 0 && n % size == 0 && head.node == 0 && got.begin == 7 && got.end == 9);
    CHECK_STR(got.name, "call");
    CHECK_STR(got.kind, "backend");
    CHECK_STR(got.arg[0].key, "bytes");
    CHECK(!got.arg[0].text && got.arg[0].number == 11 && !got.arg[2].key);
    CHECK_STR(got.arg[1].text, "so");
    for (size_t i = 0; i < size; i++) { /* cut off, and with other bytes */
        char damaged[256];
        CHECK_INT((int)ggl_kept_read(at, i, &head, &got), 0);
        REQUIRE(size <= sizeof damaged);
        for (int k = 1; k < 256; k += 50) {
            memcpy(damaged, at, size);
            damaged[i] = (char)(damaged[i] ^ k);
            CHECK(ggl_kept_read(damaged, size, &head, &got) <= size);
        }
    }
    const uint64_t before = lost;
    ggl_recorder_write(r, &e);
    while (left > 0)
        (void)ggl_recorder_take(r, at, LIMIT, &left, &lost);
    CHECK_INT((int)lost, (int)before);
    CHECK_OK(ggl_recorder_close(same, &err), &err);
    CHECK_OK(ggl_recorder_close(r, &err), &err);
    free(at);
}
