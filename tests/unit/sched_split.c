/* Several backends: refused nodes run elsewhere or are an error, weights name places, batches
 * follow each other, buffers are no larger than a device takes. */
#include <math.h>

#include "fake_backend.h"
#include "ggl/internal/os_stream.h"
#include "ggl/internal/sched.h"

enum { WIDTH = 4 };

static const char *refuse_tanh(const ggl_backend *b, const ggl_tensor *t) {
    (void)b;
    return t->op == GGL_OP_TANH ? "its table is of another size" : NULL;
}

/* --- a model of two layers -------------------------------------------------------------------- */

typedef struct fixture {
    fake a, b;
    ggl_backend *list[2];
    ggl_graph *g;
    ggl_sched_params p;
    ggl_sched *s;
    ggl_error err;
} fixture;

/* Two pages apart, as in a file. */
static const struct layer {
    float w[WIDTH * WIDTH];
    char gap[8192 - WIDTH * WIDTH * sizeof(float)];
} weight[2] = {{.w = {1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}},
               {.w = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 1}}};

static int second_on_b(void *ctx, int group, const char *name) {
    (void)ctx;
    return name ? -1 : group == 1;
}

/* Two times: x = W (sum of x); then tanh(x) / 2. Layer 0 on a, layer 1 and the rest on b. */
static bool setup_slots(fixture *f, int64_t n_slots) {
    *f = (fixture){0};
    fake_log[0] = 0;
    fake_n_too_large = 0;
    if (!fake_open(&f->a, 'a') || !fake_open(&f->b, 'b'))
        return false;
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = 8, .n_slots = n_slots};
    ggl_graph *g = f->g = ggl_graph_new(&gp);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    for (int layer = 0; layer < 2; layer++) {
        char name[24];
        snprintf(name, sizeof name, "blk.%d.w", layer);
        ggl_graph_set_group(g, layer);
        ggl_tensor *w =
            ggl_graph_weight(g, name, GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weight[layer].w);
        x = ggl_linear(g, running_sum(g, x), w, NULL);
    }
    x = ggl_unary(g, GGL_OP_TANH, x);
    ggl_tensor_set_name(g, x, "blk.1 bent");
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, ggl_graph_number(g, 0.5)));
    f->list[0] = &f->a.base;
    f->list[1] = &f->b.base;
    f->p = (ggl_sched_params){.size = sizeof(ggl_sched_params),
                              .backend = f->list,
                              .n_backends = 2,
                              .place = second_on_b};
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err);
}

static bool setup(fixture *f) {
    return setup_slots(f, 1);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    fake_close(&f->a);
    fake_close(&f->b);
}

static bool start(fixture *f) {
    return CHECK_OK(ggl_sched_new(&f->s, f->g, &f->p, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err);
}

static bool give(fixture *f, int n) {
    float x[8][WIDTH];
    const int32_t slot[8] = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < WIDTH; k++)
            x[i][k] = 0.001f * (float)(k + 1);
    return CHECK_OK(ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &f->err),
                    &f->err);
}

/* y of the last of n tokens in all. */
static void check_output(fixture *f, int row, int n) {
    const double s = 0.001 * n * (n + 1) / 2; /* of the sums */
    const double want[WIDTH] = {2 * 2 * s, s, 3 * 3 * s, 4 * s};
    for (int k = 0; k < WIDTH; k++) {
        double got = (double)ggl_sched_output(f->s, 0)[row * WIDTH + k];
        CHECK_MSG(fabs(got - tanh(want[k]) / 2) <= 1e-6, "y[%d] is %g, expected %g", k, got,
                  tanh(want[k]) / 2);
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

TEST(refused_runs_elsewhere) {
    fixture f;
    os_memory_stream m;
    REQUIRE(setup(&f));
    f.b.v.refuses = refuse_tanh;
    f.p.n_rows = 1; /* no more than a row of what only outputs need crosses from b to a */
    REQUIRE(start(&f) && give(&f, 8));
    REQUIRE_OK(ggl_sched_run(f.s, 8, (int32_t[]){7}, 1, &f.err), &f.err);
    check_output(&f, 0, 8);
    REQUIRE(ggl_os_memory_stream_open(&m));
    ggl_sched_print(f.s, m.to, false);
    REQUIRE(ggl_os_memory_stream_close(&m));
    const char *text = m.text;
    CHECK_HAS(text, "every element");
    CHECK_HAS(text, "groups");
    CHECK_MSG(strstr(text, "blk.1 bent") && strstr(text, "its table is of another size"),
              "the plan does not tell of it:\n%s", text);
    free(m.text);
    teardown(&f);
}

TEST(strict_refuses) {
    fixture f;
    REQUIRE(setup(&f));
    f.b.v.refuses = refuse_tanh;
    f.p.strict = true;
    CHECK_INT(ggl_sched_new(&f.s, f.g, &f.p, &f.err), GGL_UNSUPPORTED);
    CHECK_MSG(strcmp(f.err.msg,
                     "tanh (blk.1 bent) does not run on fake b: its table is of another size") == 0,
              "%s", f.err.msg);
    f.p.strict = false;
    f.a.v.refuses = refuse_tanh;
    CHECK_INT(ggl_sched_new(&f.s, f.g, &f.p, &f.err), GGL_UNSUPPORTED);
    CHECK_MSG(strstr(f.err.msg, "no other backend of this run has it"), "%s", f.err.msg);
    teardown(&f);
}

static int second_weight_on_a(void *ctx, int group, const char *name) {
    (void)ctx;
    return name ? strcmp(name, "blk.1.w") == 0 ? 0 : -1 : group == 1;
}

/* The nodes that read the weight move, and those that depend only on them. */
TEST(weights_have_places) {
    fixture f;
    REQUIRE(setup(&f));
    f.p.place = second_weight_on_a;
    REQUIRE(start(&f) && give(&f, 4));
    REQUIRE_OK(ggl_sched_run(f.s, 4, NULL, 0, &f.err), &f.err);
    check_output(&f, 3, 4);
    CHECK_MSG(strcmp(fake_log, "a4b4a4") == 0, "%s", fake_log); /* layer 0, the sum, the rest */
    ggl_memory m;
    CHECK(ggl_sched_memory(f.s, 1, &m) && m.weights_copied == 0);
    teardown(&f);
}

/* Writes to `out` with how many elements the backend of that name has run, in order. */
static void runs_of(char name, char *out) {
    for (const char *at = fake_log; *at; at += 2)
        if (*at == name)
            *out++ = at[1];
    *out = 0;
}

static void submit(fixture *f, int n) {
    REQUIRE(give(f, n));
    REQUIRE_OK(ggl_sched_submit(f->s, n, NULL, 0, false, NULL, &f->err), &f->err);
}

static void run_in_pieces(fixture *f) {
    char a[MOST_RUNS], b[MOST_RUNS];
    for (int i = 0; i < 3; i++)
        submit(f, 3);
    REQUIRE(give(f, 2));
    const int32_t last = 1;
    REQUIRE_OK(ggl_sched_run(f->s, 2, &last, 1, &f->err), &f->err);
    check_output(f, 0, 11);
    runs_of('a', a);
    runs_of('b', b);
    CHECK_MSG(strcmp(a, "3332") == 0 && strcmp(b, "33321") == 0, "%s, %s", a, b);
}

/* Each backend runs the batches in their order, whether it returns early or not. */
TEST(batches_follow_each_other) {
    for (int early = 0; early < 4; early++) {
        fixture f;
        REQUIRE(setup(&f));
        f.a.base.async = early & 1;
        f.b.base.async = early & 2;
        REQUIRE(start(&f));
        run_in_pieces(&f);
        REQUIRE_OK(ggl_sched_clear_slot(f.s, 0, &f.err), &f.err); /* also of what is under way */
        submit(&f, 4);
        REQUIRE_OK(ggl_sched_clear_slot(f.s, 0, &f.err), &f.err);
        CHECK_INT(ggl_sched_n_unfinished(f.s), 0);
        REQUIRE(give(&f, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        check_output(&f, 0, 1);
        teardown(&f);
    }
}

/* One backend: nothing is under way when ggl_sched_submit returns. */
TEST(one_backend_has_no_lanes) {
    fixture f;
    REQUIRE(setup(&f));
    f.p.n_backends = 1;
    f.p.place = NULL;
    REQUIRE(start(&f) && give(&f, 3));
    CHECK_INT(ggl_sched_n_lanes(f.s), 1);
    REQUIRE_OK(ggl_sched_submit(f.s, 3, NULL, 0, false, NULL, &f.err), &f.err);
    CHECK_INT(ggl_sched_n_unfinished(f.s), 0);
    teardown(&f);
}

static size_t n_downloaded, n_copied;

static ggl_status counted_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                                   size_t size, ggl_error *err) {
    const fake *f = (const fake *)b;
    n_downloaded += size;
    return f->real->v->download(f->real, src, offset, dst, size, err);
}

static ggl_status counted_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                               const ggl_copy_range *range, size_t n, ggl_error *err) {
    const fake *f = (const fake *)b;
    for (size_t i = 0; i < n; i++)
        n_copied += range[i].size;
    return f->real->v->copy(f->real, dst, src, range, n, err);
}

/* a's value goes to b's trunk for all elements; b's tail takes the wanted ones of them from there. */
TEST(what_a_device_has_is_not_fetched_again) {
    enum { N = 4 };
    const int32_t row[] = {1, 3};
    float want[2][WIDTH];
    for (int n_backends = 1; n_backends <= 2; n_backends++) {
        fixture f;
        REQUIRE(setup(&f));
        ggl_graph_free(f.g);
        const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = 8, .n_slots = 1};
        ggl_graph *g = f.g = ggl_graph_new(&gp);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
        ggl_graph_set_group(g, 0);
        ggl_tensor *w =
            ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weight[0].w);
        ggl_tensor *y = ggl_linear(g, x, w, NULL);
        ggl_graph_set_group(g, 1);
        ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, running_sum(g, y), y));
        REQUIRE_OK(ggl_graph_finish(g, &f.err), &f.err);
        f.p.n_backends = n_backends;
        f.p.place = n_backends > 1 ? second_on_b : NULL;
        f.a.v.download = counted_download;
        f.b.v.copy = counted_copy;
        REQUIRE(start(&f) && give(&f, N));
        n_downloaded = n_copied = 0;
        REQUIRE_OK(ggl_sched_run(f.s, N, row, 2, &f.err), &f.err);
        if (n_backends == 1) {
            memcpy(want, ggl_sched_output(f.s, 0), sizeof want);
        } else {
            CHECK_INT(n_downloaded, N * WIDTH * sizeof(float));
            CHECK_INT(n_copied, 2 * sizeof want); /* of that value, and of the sum */
            CHECK(memcmp(want, ggl_sched_output(f.s, 0), sizeof want) == 0);
        }
        teardown(&f);
    }
}

static int products_on_a(void *ctx, int group, const char *name) {
    (void)ctx;
    (void)group;
    return name ? 0 : 1;
}

TEST(buffers_of_a_device_are_limited) {
    fixture f;
    REQUIRE(setup(&f));
    f.p.n_backends = 1;
    f.p.place = NULL;
    f.a.base.max_buffer = 4096;
    REQUIRE(start(&f) && give(&f, 2));
    CHECK_INT(fake_n_too_large, 0);
    ggl_memory m;
    CHECK(ggl_sched_memory(f.s, 0, &m));
    CHECK_INT(m.weights_copied, 2 * WIDTH * WIDTH * 4);
    REQUIRE_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
    check_output(&f, 1, 2);
    ggl_sched_free(f.s);
    f.s = NULL;
    f.a.base.max_buffer = 60; /* less than a state or a weight has */
    CHECK_INT(ggl_sched_new(&f.s, f.g, &f.p, &f.err), GGL_LIMIT);
    CHECK_MSG(strstr(f.err.msg, "state of group 0: 0.0 MiB") &&
                  strstr(f.err.msg, "fake a supports") && strstr(f.err.msg, "fewer positions"),
              "%s", f.err.msg);
    ggl_error none = {0};
    f.err = none;
    f.p.n_backends = 2;
    f.p.place = products_on_a;
    CHECK_INT(ggl_sched_new(&f.s, f.g, &f.p, &f.err), GGL_LIMIT);
    CHECK_MSG(strstr(f.err.msg, "blk.0.w") && strstr(f.err.msg, "fake a"), "%s", f.err.msg);
    f.err = none;
    f.p.n_backends = 1;
    f.p.place = NULL;
    f.a.base.max_buffer = 64;
    if (CHECK_OK(ggl_sched_new(&f.s, f.g, &f.p, &f.err), &f.err)) {
        CHECK_INT(ggl_sched_alloc(f.s, &f.err), GGL_LIMIT);
        CHECK_MSG(strstr(f.err.msg, "on fake a, which supports at most"), "%s", f.err.msg);
    }
    teardown(&f);
}

static int n_stores_buffers;
static size_t stores_size;

static ggl_status counted_stores(ggl_backend *b, int region, size_t size, const void *host,
                                 ggl_buffer **out, ggl_error *err) {
    n_stores_buffers += region == GGL_REGION_STORES;
    stores_size = region == GGL_REGION_STORES ? size : stores_size;
    return fake_alloc(b, region, size, host, out, err);
}

/* Runs the next token of the slot, which is the n-th in its sequence. */
static void check_token(fixture *f, int32_t slot, int n) {
    float x[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        x[k] = 0.001f * (float)(k + 1);
    if (CHECK_OK(ggl_sched_set(f->s, "x", x, sizeof x, 1, &f->err), &f->err) &&
        CHECK_OK(ggl_sched_set(f->s, "slot", &slot, sizeof slot, 1, &f->err), &f->err) &&
        CHECK_OK(ggl_sched_run(f->s, 1, NULL, 0, &f->err), &f->err))
        check_output(f, 0, n);
}

/* Slots are copied, saved, restored and cleared whatever buffers their stores are in. */
TEST(stores_in_several_buffers) {
    enum { SLOTS = 16 }; /* a state has 64 bytes in each */
    for (int apart = 0; apart < 2; apart++) {
        fixture f;
        char saved[2 * 64];
        REQUIRE(setup_slots(&f, SLOTS));
        f.p.n_backends = 1;
        f.p.place = NULL;
        f.a.v.alloc = counted_stores;
        f.a.base.max_buffer = (apart ? 1 : 2) * SLOTS * 64;
        n_stores_buffers = 0;
        REQUIRE(start(&f));
        CHECK_INT(n_stores_buffers, apart ? 2 : 1);
        check_token(&f, 3, 1);
        check_token(&f, 3, 2);
        REQUIRE(ggl_sched_slot_size(f.s, 0, false) == sizeof saved);
        CHECK_OK(ggl_sched_save_slot(f.s, 3, 0, false, saved, &f.err), &f.err);
        CHECK_OK(ggl_sched_copy_slot(f.s, SLOTS - 1, 3, 0, &f.err), &f.err);
        CHECK_OK(ggl_sched_clear_slot(f.s, 3, &f.err), &f.err);
        check_token(&f, 3, 1);
        check_token(&f, SLOTS - 1, 3);
        CHECK_OK(ggl_sched_restore_slot(f.s, 3, 0, false, saved, &f.err), &f.err);
        check_token(&f, 3, 3);
        check_token(&f, SLOTS - 1, 4);
        teardown(&f);
    }
}

/* Two stores of a huge page each: the second begins at another place of its page. */
TEST(large_stores_are_staggered) {
    enum { SLOTS = 1 << 15, PAGE = 2 << 20, APART = 32 << 10 };
    fixture f;
    REQUIRE(setup_slots(&f, SLOTS));
    f.p.n_backends = 1;
    f.p.place = NULL;
    f.a.v.alloc = counted_stores;
    REQUIRE(start(&f));
    CHECK_MSG(stores_size >= 2 * PAGE + APART, "%zu bytes", stores_size);
    check_token(&f, SLOTS - 1, 1);
    check_token(&f, SLOTS - 1, 2);
    teardown(&f);
}

static size_t n_imported;

static ggl_status counted_import(ggl_backend *b, int region, size_t size, const void *host,
                                 ggl_buffer **out, ggl_error *err) {
    const fake *f = (const fake *)b;
    n_imported += host != NULL;
    CHECK_MSG(!host || size <= b->max_buffer, "%zu bytes at once", size);
    return f->real->v->alloc(f->real, region, size, host, out, err);
}

/* A file that is larger than a device's buffers is imported piece by piece. */
TEST(imports_are_limited) {
    fixture f;
    REQUIRE(setup(&f));
    const ggl_host_range host = {weight, sizeof weight, false};
    f.p.n_backends = 1;
    f.p.place = NULL;
    f.p.host = &host;
    f.p.n_host = 1;
    f.a.v.alloc = counted_import;
    for (int most = 0; most < 2; most++) {
        f.a.base.max_buffer = most ? sizeof weight : 8192;
        n_imported = 0;
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &f.p, &f.err), &f.err);
        CHECK_INT(n_imported, most ? 1 : 2);
        ggl_memory m;
        CHECK(ggl_sched_memory(f.s, 0, &m) && m.weights_mapped == sizeof weight[0].w * 2);
        ggl_sched_free(f.s);
        f.s = NULL;
    }
    teardown(&f);
}
