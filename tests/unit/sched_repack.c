/* The scheduler with a backend that repacks weights: the reference, except that its layout is the
 * weight doubled, so that a result shows which of the two a node has read. */
#include <time.h>

#include "alloc_fail.h"
#include "ggl/backends.h"
#include "ggl/internal/repacked.h"
#include "ggl/internal/sched.h"
#include "test.h"

static int n_repacked; /* calls of repack */
static bool no_import; /* host memory cannot be used in place */
static size_t largest; /* most bytes of a buffer of repacked weights; 0: no limit */
static int n_regions;  /* buffers of repacked weights */
static const char *name_of_layout = "doubled 1";

static size_t fake_repack_size(const ggl_backend *b, const ggl_tensor *w) {
    (void)b;
    return w->type == GGL_F32 && w->ne[1] >= 4 ? w->size : 0;
}

static ggl_status fake_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                              ggl_error *err) {
    float row[256];
    n_repacked++;
    for (size_t i = 0; i < w->size / 4; i++)
        row[i] = 2 * ((const float *)w->data)[i];
    return b->v->upload(b, dst, offset, row, w->size, err);
}

static ggl_status (*inner_alloc)(ggl_backend *, int, size_t, const void *, ggl_buffer **,
                                 ggl_error *);

static ggl_status fake_alloc(ggl_backend *b, int region, size_t size, const void *host,
                             ggl_buffer **out, ggl_error *err) {
    if (host && no_import)
        return ggl_fail(err, GGL_UNSUPPORTED, "no import");
    if (region == GGL_REGION_REPACKED) {
        CHECK(largest == 0 || size <= largest);
        n_regions++;
    }
    return inner_alloc(b, region, size, host, out, err);
}

static float tied[16 * 4], plain[16], expert[3][16], viewed[16], summed[2][16],
    small[4 * 4] /* the last row is no part */;

typedef struct fixture {
    ggl_graph *g;
    ggl_backend *reference, fake;
    ggl_backend_vtable v;
    ggl_backend *b[1];
    ggl_sched_params p;
    ggl_sched *s;
    ggl_error err;
} fixture;

static ggl_tensor *square(ggl_graph *g, const char *name, const float *data) {
    return ggl_graph_weight(g, name, GGL_F32, 2, (int64_t[]){4, 4}, data);
}

static ggl_tensor *pick(ggl_graph *g, ggl_tensor *t, ggl_tensor *i) {
    return ggl_graph_op(g, GGL_OP_PICK, (ggl_tensor *[]){t, i}, 2, NULL, 0);
}

/* Outputs, each of x[0..3]: 0 a plain product; 1 a product within a body; 2 rows of the tied
 * weight; 3 the tied product; 4 experts; 5 a view of a part; 6 a gathered matrix that is also summed;
 * 7 a weight that is too small. */
static void build(fixture *f) {
    ggl_graph *g = f->g = ggl_graph_new(NULL);
    if (!g)
        return;
    float *all[] = {tied, plain, expert[0], viewed, summed[0], small};
    const int n[] = {64, 16, 48, 16, 32, 12};
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < n[k]; i++)
            all[k][i] = (float)(i % 7 + k + 1);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){4}, true);
    ggl_tensor *i = ggl_graph_input(g, "i", GGL_I32, 1, (int64_t[]){1}, true);
    ggl_tensor *w = square(g, "plain", plain),
               *t = ggl_graph_weight(g, "tied", GGL_F32, 2, (int64_t[]){4, 16}, tied),
               *e = ggl_graph_weight(g, "expert", GGL_F32, 3, (int64_t[]){4, 4, 3}, expert),
               *v = square(g, "viewed", viewed),
               *m = ggl_graph_weight(g, "summed", GGL_F32, 3, (int64_t[]){4, 4, 2}, summed),
               *few = ggl_graph_weight(g, "small", GGL_F32, 2, (int64_t[]){4, 3}, small);
    ggl_graph_output(g, "0", ggl_linear(g, x, w, NULL));
    ggl_tensor *both[] = {x, w}, **param = ggl_body_begin(g, both, 2);
    ggl_tensor *inner = param ? ggl_linear(g, param[0], param[1], NULL) : NULL;
    ggl_graph_output(g, "1", ggl_body_end(g, NULL, inner, NULL, 0));
    ggl_graph_output(g, "2", ggl_binary(g, GGL_OP_ADD, pick(g, t, i), x));
    ggl_graph_output(g, "3", ggl_linear(g, x, t, NULL));
    ggl_tensor *one = ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){4, 1}, 2);
    ggl_graph_output(g, "4", ggl_linear(g, one, pick(g, e, i), NULL));
    ggl_tensor *part = ggl_graph_op(g, GGL_OP_SPLIT, &v, 1, (double[]){1, 0, 2}, 3);
    ggl_graph_output(g, "5", ggl_linear(g, x, part, NULL));
    ggl_tensor *picked = pick(g, m, i);
    ggl_tensor *sum = ggl_graph_op(g, GGL_OP_SUM, &picked, 1, (double[]){0}, 1);
    sum = ggl_graph_op(g, GGL_OP_RESHAPE, &sum, 1, (double[]){4, 1}, 2);
    ggl_graph_output(g, "6", ggl_binary(g, GGL_OP_ADD, ggl_linear(g, one, picked, NULL), sum));
    ggl_graph_output(g, "7", ggl_linear(g, x, few, NULL));
}

static bool setup(fixture *f, bool no_repack) {
    *f = (fixture){0};
    build(f);
    if (!f->g || ggl_graph_finish(f->g, &f->err) != GGL_OK ||
        ggl_backend_open(&f->reference, "reference", NULL, &f->err) != GGL_OK)
        return false;
    f->v = *f->reference->v;
    inner_alloc = f->v.alloc;
    f->v.alloc = fake_alloc;
    f->v.repack_size = fake_repack_size;
    f->v.repack = fake_repack;
    f->v.repack_layout = name_of_layout;
    f->fake = *f->reference;
    f->fake.v = &f->v;
    f->b[0] = &f->fake;
    f->p = (ggl_sched_params){
        .size = sizeof(ggl_sched_params), .backend = f->b, .n_backends = 1, .no_repack = no_repack};
    return true;
}

/* Creates the scheduler. The limit is for repacked weights only, which are placed here. */
static ggl_status new_sched(fixture *f) {
    f->fake.max_buffer = largest;
    const ggl_status st = ggl_sched_new(&f->s, f->g, &f->p, &f->err);
    f->fake.max_buffer = 0;
    n_regions = 0;
    return st;
}

static bool start(fixture *f) {
    return new_sched(f) == GGL_OK && ggl_sched_alloc(f->s, &f->err) == GGL_OK;
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    ggl_backend_close(f->reference);
}

static float dot(const float *w, const float *x) {
    return w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
}

/* by: 2 where products read the layout of the backend's own. */
static void check_results(fixture *f, float by) {
    const float x[2][4] = {{1, 2, 3, 4}, {5, -6, 7, -8}};
    const int32_t i[2] = {1, 0};
    REQUIRE_OK(ggl_sched_set(f->s, "x", x, sizeof x, 2, &f->err), &f->err);
    REQUIRE_OK(ggl_sched_set(f->s, "i", i, sizeof i, 2, &f->err), &f->err);
    REQUIRE_OK(ggl_sched_run(f->s, 2, NULL, 0, &f->err), &f->err);
    for (int n = 0; n < 2; n++)
        for (int j = 0; j < 4; j++) {
            const float *m = summed[i[n]] + 4 * j;
            const float want[8] = {by * dot(plain + 4 * j, x[n]),
                                   by * dot(plain + 4 * j, x[n]),
                                   tied[4 * i[n] + j] + x[n][j],
                                   by * dot(tied + 4 * j, x[n]),
                                   by * dot(expert[i[n]] + 4 * j, x[n]),
                                   dot(viewed + 4 * j, x[n]),
                                   by * dot(m, x[n]) + m[0] + m[1] + m[2] + m[3],
                                   dot(small + 4 * j, x[n])};
            for (int k = 0; k < 8; k++) {
                int row = k == 3 ? 16 : k == 5 ? 2 : k == 7 ? 3 : 4;
                if (j >= row)
                    continue;
                float got = ggl_sched_output(f->s, k)[n * row + j];
                CHECK_MSG(got == want[k], "output %d, row %d of token %d: %g, expected %g", k, j, n,
                          (double)got, (double)want[k]);
            }
        }
}

TEST(products_read_their_own_layout) {
    for (int way = 0; way < 4; way++) {
        fixture f;
        ggl_memory m;
        n_repacked = 0;
        no_import = way % 2 == 1;
        REQUIRE(setup(&f, way >= 2));
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &f.p, &f.err), &f.err);
        REQUIRE(ggl_sched_memory(f.s, 0, &m));
        size_t in_place = no_import ? m.weights_copied : m.weights_mapped;
        if (way <
            2) { /* plain, tied, experts and summed; tied and summed are read otherwise, too */
            CHECK_INT((long long)m.weights_repacked, 64 + 256 + 192 + 128);
            CHECK_INT((long long)m.weights_dropped, 64 + 192);
            CHECK_INT((long long)in_place, 256 + 64 + 128 + (no_import ? 64 : 48));
        } else {
            CHECK_INT((long long)m.weights_repacked, 0);
            CHECK_INT((long long)m.weights_dropped, 0);
        }
        REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        CHECK_INT(n_repacked, way < 2 ? 4 : 0);
        check_results(&f, way < 2 ? 2 : 1);
        teardown(&f);
    }
    no_import = false;
}

/* A small limit for a buffer: there are several of them. */
TEST(several_regions) {
    static const struct {
        size_t largest;
        int fewest, most; /* buffers: the weights' addresses decide */
    } way[] = {{640, 1, 1}, {639, 2, 2}, {320, 2, 3}, {256, 3, 4}};
    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        fixture f;
        ggl_memory m;
        largest = way[k].largest;
        REQUIRE(setup(&f, false));
        REQUIRE(CHECK_OK(start(&f) ? GGL_OK : f.err.status, &f.err));
        REQUIRE(ggl_sched_memory(f.s, 0, &m));
        CHECK_INT((long long)m.weights_repacked, 640);
        CHECK_MSG(n_regions >= way[k].fewest && n_regions <= way[k].most, "%zu bytes: %d regions",
                  largest, n_regions);
        check_results(&f, 2);
        teardown(&f);
    }
    largest = 0;
}

typedef struct seen {
    size_t calls, last, total, stop_at;
} seen;

static bool on_progress(void *ctx, size_t done, size_t total) {
    seen *s = ctx;
    s->calls++;
    CHECK(done > s->last && done <= total);
    s->last = done;
    s->total = total;
    return s->calls != s->stop_at;
}

TEST(progress_and_stop) {
    for (size_t stop = 0; stop < 3; stop++) {
        fixture f;
        seen at = {.stop_at = stop};
        REQUIRE(setup(&f, false));
        f.p.progress = on_progress;
        f.p.progress_ctx = &at;
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &f.p, &f.err), &f.err);
        CHECK_INT(ggl_sched_alloc(f.s, &f.err), stop ? GGL_CANCELLED : GGL_OK);
        CHECK_INT((long long)at.calls, stop ? (long long)stop : 4);
        CHECK_INT((long long)at.total, 640);
        CHECK(stop || at.last == at.total);
        teardown(&f);
    }
}

/* Two devices take turns, so that the one that has more to repack does not begin when the other one is done. */
static ggl_backend *turn_of_a;
static char turns[16];

static ggl_status noted_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                               ggl_error *err) {
    strcat(turns, b == turn_of_a ? "a" : "b");
    return fake_repack(b, dst, offset, w, err);
}

static int first_two_on_a(void *ctx, int group, const char *name) {
    (void)ctx;
    return name ? -1 : group >= 2;
}

TEST(devices_take_turns) {
    enum { N = 6 };
    static float w[N][16];
    fixture f;
    REQUIRE(setup(&f, false));
    ggl_graph_free(f.g);
    ggl_graph *g = f.g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){4}, true);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        ggl_graph_set_group(g, i);
        x = ggl_linear(g, x, square(g, name, w[i]), NULL);
    }
    ggl_graph_output(g, "y", x);
    REQUIRE_OK(ggl_graph_finish(g, &f.err), &f.err);
    f.v.repack = noted_repack;
    ggl_backend second = f.fake, *both[] = {&f.fake, &second};
    snprintf(second.name, sizeof second.name, "second");
    turn_of_a = &f.fake;
    turns[0] = '\0';
    f.p.backend = both;
    f.p.n_backends = 2;
    f.p.place = first_two_on_a;
    CHECK_OK(start(&f) ? GGL_OK : f.err.status, &f.err);
    CHECK_STR(turns, "abbabb");
    teardown(&f);
}

/* Late copies are made for backends that permit it, and never if they go into a file. Each part is
 * repacked once. */
static int64_t fake_repack_rows(const ggl_backend *b, const ggl_tensor *w) {
    (void)b;
    return strcmp(w->name, "tied") == 0 ? 0 : 4;
}

TEST(late) {
    for (int way = 0; way < 5; way++) {
        fixture f;
        size_t left = 1;
        REQUIRE(setup(&f, way == 3));
        n_repacked = 0;
        f.p.repack_late = true;
        f.v.repack_rows = way == 1 ? NULL : fake_repack_rows;
        f.p.cache = way == 2 ? test_path("weights.repack") : NULL;
        f.p.cache_of = "model";
        f.p.cache_of_size = 5;
        no_import = way == 4; /* no place from which a run could read what waits */
        static const struct {
            int at_once, with_one; /* repacked by ggl_sched_alloc, and after one part */
            int left;
        } want[] = {{1, 2, 64 + 192 + 128}, {4, 4, 0}, {4, 4, 0}, {0, 0, 0}, {3, 4, 128}};
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &f.p, &f.err), &f.err);
        CHECK_INT(ggl_sched_repack_some(f.s, 0, NULL, &f.err), GGL_USAGE);
        REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        /* tied at once; plain, experts and summed late, but without a place only summed */
        CHECK_INT(n_repacked, want[way].at_once);
        CHECK_INT((long long)ggl_sched_late_size(f.s), want[way].left);
        REQUIRE_OK(ggl_sched_repack_some(f.s, 0, &left, &f.err), &f.err);
        CHECK_INT(n_repacked, want[way].with_one);
        REQUIRE_OK(ggl_sched_repack_some(f.s, 1e9, &left, &f.err), &f.err);
        CHECK_INT((long long)left, 0);
        CHECK_INT(n_repacked, way == 3 ? 0 : 4);
        check_results(&f, way == 3 ? 1 : 2);
        teardown(&f);
    }
    no_import = false;
}

/* The first run takes a while, so that all weights could be repacked before the second. The user stops
 * when one is. */
static bool is_second_run;

static bool stop_after_one(void *ctx) {
    (void)ctx;
    if (!is_second_run)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return is_second_run && n_repacked > 0;
}

static ggl_status run_any(fixture *f) {
    const float x[2][4] = {{1}};
    const int32_t i[2] = {0};
    const ggl_status st = ggl_sched_set(f->s, "x", x, sizeof x, 2, &f->err);
    return st != GGL_OK || ggl_sched_set(f->s, "i", i, sizeof i, 2, &f->err) != GGL_OK
               ? f->err.status
               : ggl_sched_run(f->s, 2, NULL, 0, &f->err);
}

TEST(late_stops) {
    fixture f;
    REQUIRE(setup(&f, false));
    f.p.repack_late = true;
    f.p.cancelled = stop_after_one;
    f.v.repack_rows = fake_repack_rows;
    REQUIRE(start(&f));
    is_second_run = false;
    REQUIRE_OK(run_any(&f), &f.err);
    const size_t left = ggl_sched_late_size(f.s);
    n_repacked = 0;
    is_second_run = true;
    CHECK_INT(run_any(&f), GGL_CANCELLED);
    CHECK_INT(n_repacked, 1);
    CHECK(ggl_sched_late_size(f.s) < left);
    teardown(&f);
}

/* If it is known that few runs come, they copy nothing, because nothing would gain by it. Copies that somebody asks for are made. */
LONG_TEST(late_while_it_pays) {
    static const int64_t runs[] = {0, 1, 2, 8, 1000000000};
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        const int64_t n = runs[k];
        fixture f;
        int last = -1;
        REQUIRE(setup(&f, false));
        f.p.repack_late = true;
        f.p.n_expected = n;
        f.p.cancelled =
            stop_after_one; /* which makes each run last, so that there is time to copy */
        f.v.repack_rows = fake_repack_rows;
        is_second_run = false;
        REQUIRE(start(&f));
        const size_t all = ggl_sched_late_size(f.s);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(run_any(&f), &f.err);
            last = ggl_sched_late_size(f.s) < all && last < 0 ? i : last;
        }
        CHECK_MSG((last < 0) == (n > 0 && n <= 8), "%lld runs: copied before run %d", (long long)n,
                  last);
        CHECK((ggl_sched_late_seconds(f.s) > 0) == (last >= 0));
        REQUIRE_OK(ggl_sched_repack_some(f.s, 1e9, NULL, &f.err), &f.err);
        CHECK_INT((long long)ggl_sched_late_size(f.s), 0);
        teardown(&f);
    }
}

/* --- schedulers that share copies -------------------------------------------------------------- */

/* The memory of all weights but the last `fewer`. */
static ggl_repacked *new_table(int fewer) {
    const ggl_host_range host[] = {{tied, sizeof tied, false},     {plain, sizeof plain, false},
                                   {expert, sizeof expert, false}, {viewed, sizeof viewed, false},
                                   {small, sizeof small, false},   {summed, sizeof summed, false}};
    ggl_error err;
    ggl_repacked *r = NULL;
    CHECK_OK(ggl_repacked_new(&r, host, 6 - fewer, &err), &err);
    return r;
}

/* Starts one that is expected to repack n weights. */
static bool start_shared(fixture *f, ggl_repacked *r, int n) {
    if (!setup(f, false))
        return false;
    f->p.repacked = r;
    n_repacked = 0;
    return CHECK_OK(start(f) ? GGL_OK : f->err.status, &f->err) && CHECK_INT(n_repacked, n);
}

/* The copies are made once, and stay as long as anyone reads them. */
TEST(copies_are_shared) {
    fixture a, b, c;
    ggl_memory m;
    ggl_repacked *r = new_table(0);
    REQUIRE(r && start_shared(&a, r, 4) && start_shared(&b, r, 0));
    REQUIRE(ggl_sched_memory(a.s, 0, &m));
    CHECK_INT((long long)m.weights_repacked, 640);
    REQUIRE(ggl_sched_memory(b.s, 0, &m));
    CHECK_INT((long long)m.weights_repacked, 0);
    check_results(&a, 2);
    check_results(&b, 2);
    teardown(&a);
    check_results(&b, 2);
    REQUIRE(start_shared(&c, r, 0));
    teardown(&b);
    check_results(&c, 2);
    teardown(&c);
    REQUIRE(start_shared(&c, r, 4)); /* nobody had them any more */
    check_results(&c, 2);
    teardown(&c);
    ggl_repacked_free(r);
}

/* Each makes its own of a weight that lies elsewhere, for another layout, with a file, and where a device cannot use host memory. */
TEST(copies_that_are_not_shared) {
    fixture a, b;
    ggl_repacked *r = new_table(1);
    REQUIRE(r && start_shared(&a, r, 4) && start_shared(&b, r, 1));
    check_results(&b, 2);
    teardown(&b);
    name_of_layout = "doubled 2";
    REQUIRE(start_shared(&b, r, 4));
    name_of_layout = "doubled 1";
    teardown(&b);
    REQUIRE(setup(&b, false));
    b.p.repacked = r;
    b.p.cache = test_path("apart.repack");
    n_repacked = 0;
    REQUIRE(start(&b));
    CHECK_INT(n_repacked, 4);
    teardown(&b);
    REQUIRE(setup(&b, false));
    b.p.repacked = r;
    b.fake.async = true;
    n_repacked = 0;
    REQUIRE(start(&b));
    CHECK_INT(n_repacked, 4);
    teardown(&b);
    teardown(&a);
    no_import = true;
    REQUIRE(start_shared(&a, r, 4) && start_shared(&b, r, 4));
    no_import = false;
    check_results(&b, 2);
    teardown(&a);
    teardown(&b);
    ggl_repacked_free(r);
}

/* What one has not made, because it was stopped or makes it late, another one makes; and learns what the other has made. */
TEST(copies_that_are_not_complete) {
    fixture a, b;
    seen at = {.stop_at = 1};
    ggl_repacked *r = new_table(0);
    REQUIRE(r && setup(&a, false));
    a.p.repacked = r;
    a.p.progress = on_progress;
    a.p.progress_ctx = &at;
    n_repacked = 0;
    REQUIRE_OK(ggl_sched_new(&a.s, a.g, &a.p, &a.err), &a.err);
    CHECK_INT(ggl_sched_alloc(a.s, &a.err), GGL_CANCELLED);
    CHECK_INT(n_repacked, 1);
    REQUIRE(start_shared(&b, r, 3));
    check_results(&b, 2);
    teardown(&a);
    teardown(&b);
    for (int is_late = 0; is_late < 2; is_late++) {
        REQUIRE(setup(&a, false) && setup(&b, false));
        a.p.repacked = b.p.repacked = r;
        a.v.repack_rows = b.v.repack_rows = fake_repack_rows;
        a.p.repack_late = true;
        b.p.repack_late = is_late;
        n_repacked = 0;
        REQUIRE(start(&a));
        CHECK_INT(n_repacked, 1);
        REQUIRE_OK(ggl_sched_repack_some(a.s, 0, NULL, &a.err), &a.err);
        CHECK_INT(n_repacked, 2);
        REQUIRE(start(&b));
        CHECK_INT(n_repacked, is_late ? 2 : 4);
        REQUIRE_OK(ggl_sched_repack_some(b.s, 1e9, NULL, &b.err), &b.err);
        check_results(&b, 2);
        CHECK_INT(n_repacked, 4);
        REQUIRE_OK(ggl_sched_repack_some(a.s, 1e9, NULL, &a.err), &a.err);
        CHECK_INT(n_repacked, 4);
        CHECK_INT((long long)ggl_sched_late_size(a.s) + (long long)ggl_sched_late_size(b.s), 0);
        check_results(&a, 2);
        teardown(&b);
        check_results(&a, 2);
        teardown(&a);
    }
    ggl_repacked_free(r);
}

/* --- the file --------------------------------------------------------------------------------- */

static bool start_with(fixture *f, const char *path, const char *model) {
    if (!setup(f, false))
        return false;
    f->p.cache = path;
    f->p.cache_of = model;
    f->p.cache_of_size = strlen(model);
    n_repacked = 0;
    return CHECK_OK(start(f) ? GGL_OK : f->err.status, &f->err);
}

/* The effect of a start with that file; results are right in any case. */
static void check_start(const char *path, const char *model, ggl_cache_use use, const char *words) {
    fixture f;
    if (start_with(&f, path, model)) {
        CHECK_INT(ggl_sched_cache_use(f.s), use);
        CHECK_INT(n_repacked, use == GGL_CACHE_READ ? 0 : 4);
        if (*words)
            CHECK_HAS(ggl_sched_cache_note(f.s), words);
        else
            CHECK_STR(ggl_sched_cache_note(f.s), "");
        check_results(&f, 2);
    }
    teardown(&f);
}

static char *whole(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    char *data = calloc(1, 1 << 16);
    *n = f && data ? fread(data, 1, 1 << 16, f) : 0;
    if (f)
        fclose(f);
    return data;
}

TEST(cache) {
    const char *path = test_path("weights.repack"), *none = test_path("none/weights.repack");
    check_start(path, "model", GGL_CACHE_WRITTEN, "");
    check_start(path, "model", GGL_CACHE_READ, "");
    no_import = true; /* uploaded from the file */
    check_start(path, "model", GGL_CACHE_READ, "");
    no_import = false;
    check_start(path, "other", GGL_CACHE_WRITTEN, "another model");
    check_start(path, "another", GGL_CACHE_WRITTEN, "another model");
    name_of_layout = "doubled 2";
    check_start(path, "another", GGL_CACHE_WRITTEN, "another layout");
    name_of_layout = "doubled 1";
    check_start(path, "another", GGL_CACHE_WRITTEN, "another layout");
    check_start(path, "another", GGL_CACHE_READ, "");
    check_start(none, "model", GGL_CACHE_FAILED, "none/weights.repack");
    /* nobody waits for a file that cannot be written */
    fixture f;
    REQUIRE(setup(&f, false));
    f.p.cache = none;
    f.p.repack_late = true;
    f.v.repack_rows = fake_repack_rows;
    REQUIRE(start(&f));
    CHECK(ggl_sched_late_size(f.s) > 0 && ggl_sched_cache_use(f.s) == GGL_CACHE_FAILED);
    CHECK_HAS(ggl_sched_cache_note(f.s), "none/weights.repack: cannot be written");
    teardown(&f);
    check_start(test_folder(), "model", GGL_CACHE_FAILED, "directory");
    REQUIRE(test_write_file(path, "", 0));
    check_start(path, "model", GGL_CACHE_WRITTEN, "weights.repack: the file is empty");
}

/* Regions lie one after another in the file. What one buffer holds does not fit several. */
TEST(cache_of_several_regions) {
    const char *path = test_path("weights.repack");
    for (int way = 0; way < 2; way++) {
        no_import = way == 1;
        largest = 0;
        check_start(path, "model", GGL_CACHE_WRITTEN, way == 0 ? "" : "another layout");
        largest = 256;
        check_start(path, "model", GGL_CACHE_WRITTEN, "another layout");
        check_start(path, "model", GGL_CACHE_READ, "");
        CHECK(n_regions > 1);
    }
    largest = 0;
    no_import = false;
}

/* A byte of the weights, or of the digests at the end, has changed: runs after the first one say so. */
TEST(damaged_weights) {
    const char *path = test_path("weights.repack");
    size_t n;
    check_start(path, "model", GGL_CACHE_WRITTEN, "");
    char *data = whole(path, &n);
    REQUIRE(data && n > 4096 && n % 4096 == 8); /* one digest */
    for (size_t k = 4096; k < n + 31; k += 31) {
        fixture f;
        const bool is_damaged = k < n;
        data[is_damaged ? k : 0] ^= is_damaged ? 0x10 : 0;
        REQUIRE(test_write_file(path, data, n));
        REQUIRE(start_with(&f, path, "model"));
        CHECK_INT(ggl_sched_cache_use(f.s), GGL_CACHE_READ);
        CHECK_INT(run_any(&f), GGL_OK); /* which did not wait for that */
        for (int i = 0; i < 2; i++) {
            CHECK_INT(run_any(&f), is_damaged ? GGL_IO : GGL_OK);
            if (is_damaged)
                CHECK_HAS(f.err.msg, "weights.repack is damaged");
        }
        teardown(&f);
        data[is_damaged ? k : 0] ^= is_damaged ? 0x10 : 0;
    }
    free(data);
}

/* Cut at every 61st byte, and one byte of the head changed at a time. */
TEST(damaged_cache) {
    const char *path = test_path("weights.repack");
    size_t n, cuts = 0;
    check_start(path, "model", GGL_CACHE_WRITTEN, "");
    char *data = whole(path, &n);
    REQUIRE(data && n > 4096);
    for (size_t k = 0; k < n; k += 61, cuts++) {
        REQUIRE(test_write_file(path, data, k));
        check_start(path, "model", GGL_CACHE_WRITTEN,
                    k == 0  ? "empty"
                    : k < 8 ? "weights.repack"
                            : "is truncated");
        fixture f; /* and it is right again */
        if (k % 610 == 0 && start_with(&f, path, "model"))
            CHECK_INT(ggl_sched_cache_use(f.s), GGL_CACHE_READ);
        if (k % 610 == 0)
            teardown(&f);
    }
    for (size_t k = 0; k < 600; k += k < 64 ? 1 : 13) {
        data[k] ^= 0x10;
        REQUIRE(test_write_file(path, data, n));
        check_start(path, "model", k < 8 ? GGL_CACHE_FAILED : GGL_CACHE_WRITTEN,
                    k < 8 ? "left as it is" : "weights.repack");
        data[k] ^= 0x10;
    }
    /* a file of another kind is left unchanged */
    REQUIRE(test_write_file(path, "somebody's novel", 16));
    check_start(path, "model", GGL_CACHE_FAILED, "left as it is");
    free(data);
    data = whole(path, &n);
    CHECK(n == 16 && memcmp(data, "somebody's novel", 16) == 0);
    free(data);
}

/* --- allocations ------------------------------------------------------------------------------ */

static bool start_and_stop(void *arg) {
    fixture f;
    (void)arg;
    bool ok = setup(&f, false) && start(&f);
    teardown(&f);
    return ok;
}

TEST(every_allocation_fails_in_turn) {
    long n = alloc_fail_each(start_and_stop, NULL);
    CHECK_MSG(n > 20, "%ld allocations were failed", n);
}

/* With a file, what concerns only the file may fail unseen; then the weights are right all the
 * same. */
/* Of one that makes the copies, and another one that reads them. */
static bool start_two(void *arg) {
    fixture a, b;
    ggl_error err;
    ggl_repacked *r;
    const ggl_host_range host = {plain, sizeof plain, false};
    (void)arg;
    if (ggl_repacked_new(&r, &host, 1, &err) != GGL_OK)
        return false;
    bool ok = setup(&a, false);
    a.p.repacked = r;
    ok = ok && start(&a);
    if (ok) {
        ok = setup(&b, false);
        b.p.repacked = r;
        ok = ok && start(&b);
        teardown(&b);
    }
    teardown(&a);
    ggl_repacked_free(r);
    return ok;
}

TEST(allocations_fail_of_shared_copies) {
    const long n = alloc_fail_each(start_two, NULL);
    CHECK_MSG(n > 50, "%ld allocations were failed", n);
}

TEST(allocations_fail_with_a_cache) {
    const char *path = test_path("weights.repack");
    bool failed = true;
    for (long k = 1; failed; k++) {
        fixture f;
        alloc_fail_at(k);
        bool ok = setup(&f, false);
        f.p.cache = path;
        f.p.cache_of = "model";
        f.p.cache_of_size = 5;
        ok = ok && start(&f);
        failed = alloc_has_failed();
        alloc_fail_at(0);
        CHECK(ok || failed);
        if (ok)
            check_results(&f, 2);
        teardown(&f);
        if (k % 3 == 0)
            unlink(path);
    }
}
