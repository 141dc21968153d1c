/* Backends that have only some of the operators: how often runs switch between backends, how much
 * memory the values that cross need, and what `strict` asks for. */
#include "fake_backend.h"
#include "ggl/internal/sched.h"
#include "seed.h"

enum { WIDTH = 16, MOST_NODES = 10 };

typedef struct fixture {
    fake a, b;
    ggl_backend *list[2];
    ggl_graph *g;
    ggl_sched_params p;
    ggl_sched *s;
    ggl_error err;
} fixture;

static bool setup(fixture *f) {
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = 8, .n_slots = 1};
    *f = (fixture){0};
    fake_log[0] = 0;
    if (!fake_open(&f->a, 'a') || !fake_open(&f->b, 'b'))
        return false;
    f->list[0] = &f->a.base;
    f->list[1] = &f->b.base;
    f->p =
        (ggl_sched_params){.size = sizeof(ggl_sched_params), .backend = f->list, .n_backends = 2};
    f->g = ggl_graph_new(&gp);
    return CHECK(f->g != NULL);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    fake_close(&f->a);
    fake_close(&f->b);
}

enum { N = 8 }; /* elements of the batch */

typedef float values[N * WIDTH];

/* Plans the graph, runs it, and copies its outputs to y[]. */
static bool run(fixture *f, values *y) {
    values x;
    for (int i = 0; i < N * WIDTH; i++)
        x[i] = (float)(i % 29 - 14) / 16;
    ggl_sched_free(f->s);
    f->s = NULL;
    fake_log[0] = 0;
    if (!CHECK_OK(ggl_sched_new(&f->s, f->g, &f->p, &f->err), &f->err) ||
        !CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err) ||
        !CHECK_OK(ggl_sched_set(f->s, "x", x, sizeof x, N, &f->err), &f->err) ||
        !CHECK_OK(ggl_sched_run(f->s, N, NULL, 0, &f->err), &f->err))
        return false;
    for (int k = 0; ggl_sched_output(f->s, k); k++)
        memcpy(y[k], ggl_sched_output(f->s, k), sizeof *y);
    return true;
}

/* --- a backend that has products only --------------------------------------------------------- */

static const char *only_products(const ggl_backend *b, const ggl_tensor *t) {
    (void)b;
    return t->op == GGL_OP_LINEAR ? NULL : "it has products only";
}

static int products_on_b(void *ctx, int group, const char *weight) {
    (void)ctx;
    (void)group;
    return weight ? 1 : 0;
}

static int everything_on_b(void *ctx, int group, const char *weight) {
    (void)ctx;
    (void)group;
    (void)weight;
    return 1;
}

/* n layers x = x + w (sin(w x) * cos(w x)), written so that a product follows each function. */
static bool layers(fixture *f, int n) {
    static float w[WIDTH * WIDTH];
    ggl_graph *g = f->g;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w[i] = (float)(i * 37 % 41 - 20) / 64;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    for (int layer = 0; layer < n; layer++) {
        ggl_graph_set_group(g, layer);
        ggl_tensor *m = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, w);
        ggl_tensor *q = ggl_unary(g, GGL_OP_SIN, ggl_linear(g, x, m, NULL));
        ggl_tensor *k = ggl_unary(g, GGL_OP_COS, ggl_linear(g, x, m, NULL));
        x = ggl_binary(g, GGL_OP_ADD, x, ggl_linear(g, ggl_binary(g, GGL_OP_MUL, q, k), m, NULL));
    }
    ggl_graph_output(g, "y", x);
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err);
}

/* Both products of a layer that do not wait for each other are in one segment. */
TEST(products_are_hoisted_together) {
    fixture f;
    values alone, split;
    REQUIRE(setup(&f) && layers(&f, 4) && run(&f, &alone));
    CHECK_STR(fake_log, "a8");
    f.b.v.refuses = only_products;
    f.p.place = products_on_b;
    REQUIRE(run(&f, &split));
    CHECK(memcmp(alone, split, sizeof alone) == 0);
    CHECK_STR(fake_log, "b8a8b8a8b8a8b8a8b8a8b8a8b8a8b8a8");
    teardown(&f);
}

/* The values of a layer take the memory of the values of the layers before. */
TEST(values_that_cross_share_memory) {
    ggl_memory few[2], many[2];
    for (int n = 4; n <= 16; n += 12) {
        fixture f;
        values y;
        REQUIRE(setup(&f) && layers(&f, n));
        f.b.v.refuses = only_products;
        f.p.place = products_on_b;
        REQUIRE(run(&f, &y));
        for (int k = 0; k < 2; k++)
            CHECK(ggl_sched_memory(f.s, k, n == 4 ? &few[k] : &many[k]));
        teardown(&f);
    }
    CHECK_INT(many[0].io, few[0].io);
    CHECK_INT(many[1].io, few[1].io);
}

/* What follows the products because of their values is not what place() asked for. */
TEST(strict_is_about_what_was_asked_for) {
    fixture f;
    values y;
    REQUIRE(setup(&f) && layers(&f, 2));
    f.b.v.refuses = only_products;
    f.p.place = products_on_b;
    f.p.strict = true;
    REQUIRE(run(&f, &y));
    CHECK_INT(ggl_sched_n_fallbacks(f.s), 0);
    ggl_sched_free(f.s);
    f.s = NULL;
    f.p.place = everything_on_b;
    CHECK_INT(ggl_sched_new(&f.s, f.g, &f.p, &f.err), GGL_UNSUPPORTED);
    CHECK_HAS(f.err.msg, "sin does not run on fake b: it has products only");
    f.p.strict = false;
    REQUIRE(run(&f, &y));
    CHECK_INT(ggl_sched_n_fallbacks(f.s), 2 * 3); /* not *, whose values are on a */
    teardown(&f);
}

/* --- the fewest segments ---------------------------------------------------------------------- */

static int by_bit(void *ctx, int group, const char *weight) {
    (void)weight;
    return group >= 0 && (*(const unsigned *)ctx >> group & 1);
}

/* A graph of n nodes, the k-th of which reads nodes reads[k][0] and reads[k][1] (-1: x). What no
 * node reads is an output. */
static bool random_nodes(fixture *f, int n, uint64_t seed, int (*reads)[2]) {
    ggl_graph *g = f->g;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *t[MOST_NODES];
    bool is_read[MOST_NODES] = {false};
    for (int k = 0; k < n; k++) {
        ggl_tensor *src[2];
        for (int i = 0; i < 2; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const int from = reads[k][i] = (int)((seed >> 33) % (uint64_t)(k + 1)) - 1;
            src[i] = from < 0 ? x : t[from];
            if (from >= 0)
                is_read[from] = true;
        }
        ggl_graph_set_group(g, k);
        t[k] = ggl_binary(g, k % 2 ? GGL_OP_SUB : GGL_OP_MUL, src[0], src[1]);
    }
    for (int k = 0; k < n; k++)
        if (!is_read[k])
            ggl_graph_output(g, (char[]){(char)('a' + k), 0}, t[k]);
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err);
}

/* Returns the fewest switches + 1 of any order of the n nodes, by trying all sets of nodes that may
 * have run: fewest[set][backend] is for the orders of a set that end on a backend. */
static int fewest_segments(int n, const int (*reads)[2], unsigned on_b) {
    static int fewest[1 << MOST_NODES][2];
    for (unsigned set = 0; set < 1u << n; set++)
        fewest[set][0] = fewest[set][1] = set ? 1000 : 0;
    for (unsigned set = 0; set < 1u << n; set++)
        for (int k = 0; k < n; k++) {
            bool ready = !(set >> k & 1);
            for (int i = 0; i < 2 && ready; i++)
                ready = reads[k][i] < 0 || (set >> reads[k][i] & 1);
            if (!ready)
                continue;
            const int b = on_b >> k & 1, same = fewest[set][b] + (set == 0),
                      other = fewest[set][!b] + 1, best = same < other ? same : other;
            int *to = &fewest[set | 1u << k][b];
            *to = best < *to ? best : *to;
        }
    const int *all = fewest[(1u << n) - 1];
    return all[0] < all[1] ? all[0] : all[1];
}

/* Nodes scattered over two backends run in as few segments as any order allows. Their values are
 * those of one backend, although they share memory. */
TEST(no_order_has_fewer_segments) {
    const int n_graphs = TEST_SANITIZED ? 100 : 1000;
    for (int i = 0; i < n_graphs && test_failures == 0; i++) {
        const uint64_t seed = sample_seed() * 1000 + (uint64_t)i;
        const int n = 2 + i % (MOST_NODES - 1);
        unsigned on_b = (unsigned)(seed * 0x9e3779b97f4a7c15 >> 40) & ((1u << n) - 1);
        values alone[MOST_NODES] = {{0}}, split[MOST_NODES] = {{0}};
        int reads[MOST_NODES][2];
        fixture f;
        REQUIRE(setup(&f) && random_nodes(&f, n, seed, reads) && run(&f, alone));
        f.p.place = by_bit;
        f.p.ctx = &on_b;
        REQUIRE(run(&f, split));
        const int got = (int)strlen(fake_log) / 2, want = fewest_segments(n, reads, on_b);
        CHECK_MSG(got == want, "graph %" PRIu64 ": %s has %d segments; %d are enough", seed,
                  fake_log, got, want);
        CHECK_MSG(memcmp(alone, split, sizeof alone) == 0, "graph %" PRIu64 ": other values", seed);
        teardown(&f);
    }
}
