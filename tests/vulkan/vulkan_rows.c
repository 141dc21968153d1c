/* vulkan.rows: the rotation of queries, the rotation and store of keys, and the store of values as one
 * dispatch give the bits of a dispatch each, in results and in what slots keep. */
#include <math.h>

#include "ggl/internal/fold.h"
#include "ggl/sched.h"
#include "dispatches.h"
#include "vulkan_test.h"

enum {
    DIMS = 64,
    VALUE = 32,
    N_HEADS = 6, /* not a multiple of the heads that share an angle */
    N_STORED = 2,
    N_SLOTS = 3,
    MOST_BATCH = 20,
    N_POS = 64, /* a page: no spans */
    QUERY = DIMS * N_HEADS,
    RESULT = VALUE * N_HEADS
};

typedef struct form {
    const char *mask;
    ggl_type keys, values;
    int q_pairs, k_pairs; /* 0: they are not rotated */
    ggl_op rope;
    bool differ;         /* keys are rotated by other angles */
    int apart, together; /* dispatches of a batch of one */
} form;

/* Returns the frequencies of so many pairs; NULL for none. */
static ggl_tensor *angles(ggl_graph *g, int n, double base) {
    double freq[DIMS / 2];
    for (int i = 0; i < n; i++)
        freq[i] = pow(base, -i / (double)n);
    return n > 0 ? ggl_graph_const(g, 1, (int64_t[]){n}, freq) : NULL;
}

static ggl_tensor *rotated(ggl_graph *g, ggl_op rope, ggl_tensor *x, ggl_tensor *by) {
    return by ? ggl_graph_op(g, rope, (ggl_tensor *[]){x, by}, 2, NULL, 0) : x;
}

/* Two layers: what only the last one's results need is another segment. The second layer's queries, keys and
 * values are the first one's results. */
static ggl_graph *graph_of(const form *f) {
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = MOST_BATCH;
    p.n_pos = N_POS;
    p.n_slots = N_SLOTS;
    p.type_k = f->keys;
    p.type_v = f->values;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *q = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){DIMS, N_HEADS}, true),
               *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){DIMS, N_STORED}, true),
               *v = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){VALUE, N_STORED}, true);
    ggl_tensor *by = angles(g, f->q_pairs, 1e4),
               *k_by = f->k_pairs == f->q_pairs && !f->differ ? by : angles(g, f->k_pairs, 1e5);
    q = rotated(g, f->rope, q, by);
    k = rotated(g, f->rope, k, k_by);
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0);
    ggl_tensor *x = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){q, kv}, 2, NULL, 0);
    kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){x, x}, 2, NULL, 0);
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, NULL, 0));
    return g;
}

/* Runs a batch of n tokens, of all slots in turn. The last batches have fewer tokens than their buckets,
 * whose other tokens have slot -1. */
static bool run_batch(ggl_sched *s, int n, int *past, uint64_t *seed, float *y) {
    static float q[MOST_BATCH * QUERY], k[MOST_BATCH * DIMS * N_STORED],
        v[MOST_BATCH * VALUE * N_STORED];
    int32_t pos[MOST_BATCH], slot[MOST_BATCH];
    const struct {
        const char *name;
        void *data;
        size_t size;
    } in[] = {{"pos", pos, sizeof *pos},
              {"slot", slot, sizeof *slot},
              {"q", q, sizeof q / MOST_BATCH},
              {"k", k, sizeof k / MOST_BATCH},
              {"v", v, sizeof v / MOST_BATCH}};
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    for (int i = 0; i < n; i++) {
        slot[i] = (i + n) % N_SLOTS;
        pos[i] = past[slot[i]]++;
    }
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        q[i] = test_random_float(seed);
    for (size_t i = 0; i < sizeof k / sizeof *k; i++)
        k[i] = test_random_float(seed);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = test_random_float(seed);
    for (size_t i = 0; i < sizeof in / sizeof *in && st == GGL_OK; i++)
        st = ggl_sched_set(s, in[i].name, in[i].data, (size_t)n * in[i].size, n, &err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, n, NULL, 0, &err);
    if (st == GGL_OK)
        memcpy(y, ggl_sched_output(s, 0), (size_t)n * RESULT * sizeof *y);
    return CHECK_OK(st, &err);
}

enum { N_BATCHES = 10 };

typedef struct results {
    float y[N_BATCHES][MOST_BATCH * RESULT];
    char *kept; /* of all slots */
    size_t size;
    int n_dispatches; /* of a batch of one token */
} results;

static void keep_slots(ggl_sched *s, const int *past, results *r) {
    ggl_error err = {0};
    for (int i = 0; i < N_SLOTS; i++)
        r->size += ggl_sched_slot_size(s, past[i], false);
    char *to = r->kept = calloc(1, r->size + 1);
    for (int i = 0; i < N_SLOTS && to; i++) {
        CHECK_OK(ggl_sched_save_slot(s, i, past[i], false, to, &err), &err);
        to += ggl_sched_slot_size(s, past[i], false);
    }
}

/* Runs batches of several sizes on a device with so many units. Returns false if there is no device. */
static bool run_all(const form *f, const char *mask, uint32_t units, results *r) {
    static const int batch[N_BATCHES] = {1, 2, 3, 4, 5, 6, 7, 8, MOST_BATCH, 13};
    int past[N_SLOTS] = {0};
    ggl_backend *b = vulkan_open(mask), *reference = NULL;
    ggl_sched *s = NULL;
    ggl_error err = {0};
    uint64_t seed = 7;
    memset(r, 0, sizeof *r);
    if (!b)
        return false;
    vk_backend *v = count_dispatches(b);
    v->limits.units = units;
    ggl_graph *g = graph_of(f);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok = CHECK_OK(ggl_graph_finish(g, &err), &err) &&
              CHECK_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err) &&
              CHECK_OK(ggl_graph_fold(g, reference, &err), &err) &&
              CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
              CHECK_OK(ggl_sched_alloc(s, &err), &err);
    for (int i = 0; i < N_BATCHES && ok; i++) {
        n_dispatches = 0;
        ok = run_batch(s, batch[i], past, &seed, r->y[i]);
        r->n_dispatches = i == 0 ? n_dispatches : r->n_dispatches;
    }
    if (ok)
        keep_slots(s, past, r);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(reference);
    ggl_backend_close(b);
    return ok;
}

static void check(const form *f) {
    static results together, apart;
    char without[64];
    snprintf(without, sizeof without, "%s%sfuse", f->mask, *f->mask ? "," : "");
    if (run_all(f, f->mask, 1, &together) && run_all(f, without, 1, &apart)) {
        CHECK_INT(together.n_dispatches, f->together);
        CHECK_INT(apart.n_dispatches, f->apart);
        for (int i = 0; i < N_BATCHES; i++)
            CHECK_MSG(memcmp(together.y[i], apart.y[i], sizeof *apart.y) == 0,
                      "batch %d: other bits than those of single steps", i);
        CHECK_MSG(together.size == apart.size && memcmp(together.kept, apart.kept, apart.size) == 0,
                  "slots keep other bits");
    }
    free(together.kept);
    free(apart.kept);
}

TEST(all_rotated) {
    check(&(form){"", GGL_F16, GGL_F16, 32, 32, GGL_OP_ROPE_HALF, false, 8, 4});
}
TEST(a_part_rotated) {
    check(&(form){"", GGL_F32, GGL_F32, 5, 5, GGL_OP_ROPE_PAIR, false, 8, 4});
}
TEST(quantized) {
    check(&(form){"", GGL_Q8_0, GGL_Q4_0, 16, 16, GGL_OP_ROPE_HALF, false, 8, 4});
}
/* Stores of elements of different widths: queries and keys, then values. */
TEST(values_quantized) {
    check(&(form){"", GGL_BF16, GGL_Q8_0, 32, 32, GGL_OP_ROPE_PAIR, false, 8, 6});
}
/* All stores are of words. */
TEST(by_words) {
    check(&(form){"storage16,storage8", GGL_F16, GGL_Q4_0, 32, 32, GGL_OP_ROPE_HALF, false, 8, 4});
}
TEST(nothing_rotated) {
    check(&(form){"", GGL_F16, GGL_F16, 0, 0, GGL_OP_ROPE_HALF, false, 6, 4});
}
TEST(queries_rotated) {
    check(&(form){"", GGL_F16, GGL_F16, 32, 0, GGL_OP_ROPE_HALF, false, 7, 4});
}
TEST(keys_rotated) {
    check(&(form){"", GGL_F16, GGL_F16, 0, 32, GGL_OP_ROPE_HALF, false, 7, 4});
}
/* Queries and keys are not one dispatch. */
TEST(other_angles) {
    check(&(form){"", GGL_F16, GGL_F16, 32, 32, GGL_OP_ROPE_HALF, true, 8, 5});
}
