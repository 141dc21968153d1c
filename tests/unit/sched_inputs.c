/* Inputs that are not batched stay on the devices: only what has changed travels, and each batch, also
 * one in flight, is computed with the values that were set when it began. */
#include <stdatomic.h>

#include "fake_backend.h"
#include "ggl/sched.h"
#include "seed.h"

enum { N = 1024, BATCH = 8, SMALL = BATCH * sizeof(float) }; /* SMALL: bytes of x at most */

typedef struct fixture {
    fake a, b;
    ggl_backend *list[2];
    ggl_graph *g;
    ggl_sched *s;
    float c[N], sum[2][N]; /* the input, and what the states of both devices must be */
    uint64_t seed;
    ggl_error err;
} fixture;

static atomic_size_t n_uploaded; /* bytes of all but x and slot */
static int uploads_left;         /* of these, until one fails; negative: none does */

static ggl_status count_upload(ggl_backend *b, ggl_buffer *buf, size_t at, const void *data,
                               size_t size, ggl_error *err) {
    const fake *f = (const fake *)b;
    if (size > SMALL && uploads_left >= 0 && uploads_left-- == 0)
        return ggl_fail(err, GGL_DEVICE, "this upload fails");
    n_uploaded += size > SMALL ? size : 0;
    return f->real->v->upload(f->real, buf, at, data, size, err);
}

/* On device a: s0 += x * c. On b: s1 += s0 + c, and, for outputs only: y = s1 * c. */
static bool setup(fixture *f) {
    *f = (fixture){.seed = 5};
    uploads_left = -1;
    fake_log[0] = 0;
    if (!fake_open(&f->a, 'a') || !fake_open(&f->b, 'b'))
        return false;
    f->a.v.upload = f->b.v.upload = count_upload;
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = BATCH, .n_slots = 1};
    ggl_graph *g = f->g = ggl_graph_new(&gp);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){1}, true);
    ggl_tensor *c = ggl_graph_input(g, "c", GGL_F32, 1, (int64_t[]){N}, false);
    ggl_graph_set_group(g, 0);
    x = running_sum(g, ggl_binary(g, GGL_OP_MUL, c, x));
    ggl_graph_set_group(g, 1);
    x = running_sum(g, ggl_binary(g, GGL_OP_ADD, x, c));
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, c));
    f->list[0] = &f->a.base;
    f->list[1] = &f->b.base;
    const ggl_sched_params p = {
        .size = sizeof p, .backend = f->list, .n_backends = 2, .place = by_layer};
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, g, &p, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    fake_close(&f->a);
    fake_close(&f->b);
}

static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

static void set_c(fixture *f) {
    CHECK_OK(ggl_sched_set(f->s, "c", f->c, sizeof f->c, 1, &f->err), &f->err);
}

/* Changes elements first .. first + n-1. */
static void change(fixture *f, int first, int n) {
    for (int i = first; i < first + n; i++)
        f->c[i] = f->c[i] < 2 ? f->c[i] + 1 : -2;
    set_c(f);
}

static void clear(fixture *f) {
    CHECK_OK(ggl_sched_clear_slot(f->s, 0, &f->err), &f->err);
    memset(f->sum, 0, sizeof f->sum);
}

/* Sets x and slot for n elements, and computes the states. */
static void give(fixture *f, int n) {
    const int32_t slot[BATCH] = {0};
    float x[BATCH];
    for (int i = 0; i < n; i++) {
        x[i] = (float)(below(f, 3) - 1);
        for (int k = 0; k < N; k++) {
            f->sum[0][k] += x[i] * f->c[k];
            f->sum[1][k] += f->sum[0][k] + f->c[k];
        }
    }
    CHECK_OK(ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &f->err), &f->err);
    CHECK_OK(ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &f->err), &f->err);
}

/* Runs n elements; returns how many bytes of c travelled. All numbers are small integers, so the output
 * is exact. */
static size_t run(fixture *f, int n) {
    const size_t before = n_uploaded;
    give(f, n);
    if (CHECK_OK(ggl_sched_run(f->s, n, (int32_t[]){n - 1}, 1, &f->err), &f->err))
        for (int k = 0; k < N && test_failures == 0; k++)
            CHECK_MSG(ggl_sched_output(f->s, 0)[k] == f->sum[1][k] * f->c[k],
                      "y[%d] is %g, expected %g", k, (double)ggl_sched_output(f->s, 0)[k],
                      (double)(f->sum[1][k] * f->c[k]));
    const size_t crosses = (size_t)n * sizeof f->c; /* from a to b */
    return n_uploaded - before - crosses;
}

/* The devices that have the input; b's trunk and tail read it where it is. */
enum { PLACES = 2 };

TEST(only_changes_travel) {
    fixture *f = calloc(1, sizeof *f);
    REQUIRE(f && setup(f));
    change(f, 0, N);
    CHECK_INT(run(f, 3), PLACES * sizeof f->c);
    CHECK_INT(run(f, 1), 0);
    set_c(f);
    CHECK_INT(run(f, 2), 0);
    change(f, N - 1 - 20, 20);
    CHECK_INT(run(f, 2), PLACES * 20 * sizeof *f->c);
    change(f, 300, 10);
    change(f, 400, 9);
    CHECK_INT(run(f, 1), PLACES * (409 - 300) * sizeof *f->c);
    CHECK_INT(run(f, 8), 0);
    teardown(f);
    free(f);
}

/* Batches follow each other through both devices while c changes. Under a sanitizer fewer, others on
 * each day. */
TEST(each_batch_has_its_own) {
    const int n_batches = TEST_SANITIZED && !sample_is_all() ? 200 : 2000;
    fixture *f = calloc(1, sizeof *f);
    REQUIRE(f && setup(f));
    f->seed = sample_seed();
    change(f, 0, N);
    for (int i = 0; i < n_batches && test_failures == 0; i++) {
        if (below(f, 2)) {
            const int first = below(f, N), n = 1 + below(f, below(f, 2) ? 20 : N);
            change(f, first, first + n < N ? n : N - first);
        }
        const int n = 1 + below(f, BATCH);
        if (below(f, 4)) {
            give(f, n);
            CHECK_OK(ggl_sched_submit(f->s, n, NULL, 0, false, NULL, &f->err), &f->err);
        } else {
            run(f, n);
        }
        if (below(f, 5) == 0)
            clear(f);
    }
    teardown(f);
    free(f);
}

/* What a failed upload did not bring, the next run brings. */
TEST(a_failed_upload_is_made_again) {
    fixture *f = calloc(1, sizeof *f);
    REQUIRE(f && setup(f));
    change(f, 0, N);
    run(f, 1);
    for (int k = 0; k <= PLACES; k++) { /* one of these is of what crosses from a to b */
        change(f, 100 * k, 60);
        uploads_left = k;
        give(f, 1);
        CHECK_INT(ggl_sched_run(f->s, 1, (int32_t[]){0}, 1, &f->err), GGL_DEVICE);
        clear(f);
        const size_t one = 60 * sizeof *f->c, rest = run(f, 1);
        CHECK_MSG(rest % one == 0 && rest / one + (size_t)k >= PLACES && rest / one > 0,
                  "%zu bytes travel after upload %d has failed", rest, k);
        CHECK_INT(run(f, 1), 0);
    }
    teardown(f);
    free(f);
}
