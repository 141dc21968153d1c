/* vulkan.rounded: attention whose result a product reads as bytes gives the bits of attention, rounding and product as
 * single steps: with spans of positions, whose merge rounds, in one span, and in tiles. */
#include "ggl/compose.h"
#include "ggl/sched.h"
#include "dispatches.h"
#include "vulkan_test.h"

enum {
    KEY_DIMS = 64,
    N_STORED = 2,
    N_HEADS = 4,
    MOST_DIMS = 288,
    MOST_BATCH = 20,
    N_SLOTS = 2,
    N_OUT = 32,
    N_BATCHES = 4
};

typedef struct form {
    int dims, n_pos; /* dims: of values */
    int n_batches;
    int fewer; /* dispatches of the first batch that are saved; one of them is that of keys or values */
} form;
static const int batch[N_BATCHES] = {1, 2, 5, MOST_BATCH};

static float q[MOST_BATCH * N_HEADS * KEY_DIMS], k[MOST_BATCH * N_STORED * KEY_DIMS],
    v[MOST_BATCH * N_STORED * MOST_DIMS];
static char weight[N_OUT * N_HEADS * MOST_DIMS * 2];

static void draw(float *x, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++)
        x[i] = test_random_float(seed);
}

static ggl_graph *graph_of(const form *f) {
    const int64_t n = (int64_t)f->dims * N_HEADS;
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = batch[f->n_batches - 1];
    p.n_pos = f->n_pos;
    p.n_slots = N_SLOTS;
    p.type_k = p.type_v = GGL_F16;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *of = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){KEY_DIMS, N_HEADS}, true),
               *keys = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){KEY_DIMS, N_STORED}, true),
               *values = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){f->dims, N_STORED}, true),
               *w = ggl_graph_weight(g, "w", GGL_Q8_0, 2, (int64_t[]){n, N_OUT}, weight);
    ggl_tensor *cache = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){keys, values}, 2, NULL, 0);
    ggl_tensor *y = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){of, cache}, 2, NULL, 0);
    y = ggl_reshape(g, y, 1, &n);
    ggl_graph_output(g, "y", ggl_linear(g, y, w, NULL));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

/* Runs a batch of n tokens from position `past` on, in two slots that take turns if there are few. */
static bool run_batch(ggl_sched *s, const form *f, int n, int past, float *y) {
    int32_t pos[MOST_BATCH], slot[MOST_BATCH];
    ggl_error err = {0};
    for (int i = 0; i < n; i++) {
        slot[i] = n > 2 ? 0 : i % N_SLOTS;
        pos[i] = past + i;
    }
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } in[] = {{"pos", pos, sizeof *pos},
              {"slot", slot, sizeof *slot},
              {"q", q, N_HEADS * KEY_DIMS * sizeof *q},
              {"k", k, N_STORED * KEY_DIMS * sizeof *k},
              {"v", v, N_STORED * (size_t)f->dims * sizeof *v}};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < sizeof in / sizeof *in && st == GGL_OK; i++)
        st = ggl_sched_set(s, in[i].name, in[i].data, (size_t)n * in[i].size, n, &err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, n, NULL, 0, &err);
    if (st == GGL_OK)
        memcpy(y, ggl_sched_output(s, 0), (size_t)n * N_OUT * sizeof *y);
    return CHECK_OK(st, &err);
}

/* Returns the dispatches of the first batch; 0: there is no device. */
static int run_all(const form *f, const char *mask, float (*y)[MOST_BATCH * N_OUT]) {
    ggl_backend *b = vulkan_open(mask);
    ggl_sched *s = NULL;
    ggl_error err = {0};
    int first = 0, past = f->n_pos / 3;
    if (!b)
        return 0;
    vk_backend *d = count_dispatches(b);
    d->limits.units = 4;
    ggl_graph *g = graph_of(f);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok =
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err);
    for (int i = 0; i < f->n_batches && ok; past += batch[i++]) {
        n_dispatches = 0;
        ok = run_batch(s, f, batch[i], past, y[i]);
        first = i == 0 ? n_dispatches : first;
    }
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
    return first;
}

static void check(const form *f) {
    static float together[N_BATCHES][MOST_BATCH * N_OUT], apart[N_BATCHES][MOST_BATCH * N_OUT];
    static float row[N_HEADS * MOST_DIMS];
    const int n = f->dims * N_HEADS;
    uint64_t seed = 3;
    draw(q, sizeof q / sizeof *q, &seed);
    draw(k, sizeof k / sizeof *k, &seed);
    draw(v, sizeof v / sizeof *v, &seed);
    for (int i = 0; i < N_OUT; i++) {
        draw(row, (size_t)n, &seed);
        ggl_type_get(GGL_Q8_0)->from_float(row, weight + (size_t)i * ggl_row_size(GGL_Q8_0, n), n);
    }
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    const int most = run_all(f, "import,fuse", apart), few = run_all(f, "import", together);
    if (most == 0)
        return;
    CHECK_INT(most - few, f->fewer);
    for (int i = 0; i < f->n_batches; i++)
        CHECK_MSG(memcmp(together[i], apart[i], sizeof *apart) == 0,
                  "heads of %d, batch %d: other bits than those of single steps", f->dims, i);
}

TEST(spans) {
    check(&(form){64, 256, N_BATCHES, 2});
}
/* More dimensions than the merge adds up at a time. */
TEST(spans_of_large_heads) {
    check(&(form){MOST_DIMS, 256, 1, 2});
}
/* A head has no whole blocks. */
TEST(odd_heads) {
    check(&(form){16, 256, 1, 1});
}
/* In one span, which the attention itself could round; then the rounding is a dispatch. */
TEST(one_span) {
    check(&(form){32, 64, 3, 1});
}
