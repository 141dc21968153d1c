/* vulkan.route: the choice of experts and their shares are one dispatch, with the bits that they have as single steps, and the
 * reference's choice. */
#include <math.h>

#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"
#include "seed.h"
#include "dispatches.h"
#include "vulkan_test.h"

enum { MOST_EXPERTS = 2048, MOST_CHOSEN = 40, MOST_BATCH = 5, N_BATCHES = 2 };

static const int64_t batch[N_BATCHES] = {1, MOST_BATCH};

typedef struct route {
    int n, k;
    ggl_tensor *(*scores)(ggl_graph *, ggl_tensor *); /* NULL: as they are */
    ggl_tensor *(*shares)(ggl_graph *, ggl_tensor *);
    bool bias;
    int fewer;     /* dispatches that are saved */
    bool table;    /* shares are of other values than the choice */
    double times;  /* 0: none */
    bool read;     /* another step reads the scores, */
    bool in_parts; /* or the shares before they are divided by their sum */
} route;

static float bias[MOST_EXPERTS];

static ggl_tensor *sigmoid(ggl_graph *g, ggl_tensor *x) {
    return ggl_unary(g, GGL_OP_SIGMOID, x);
}

static ggl_tensor *root_of_softplus(ggl_graph *g, ggl_tensor *x) {
    return ggl_unary(g, GGL_OP_SQRT, ggl_softplus(g, x));
}

static ggl_tensor *sum_of(ggl_graph *g, ggl_tensor *w) {
    return ggl_graph_op(g, GGL_OP_SUM, &w, 1, (double[]){0}, 1);
}

static ggl_tensor *by_sum_and_a_little(ggl_graph *g, ggl_tensor *w) {
    ggl_tensor *s = ggl_binary(g, GGL_OP_ADD, sum_of(g, w), ggl_graph_number(g, 1e-20));
    return ggl_binary(g, GGL_OP_DIV, w, s);
}

static ggl_tensor *by_sum_of_at_least(ggl_graph *g, ggl_tensor *w) {
    ggl_tensor *s = ggl_binary(g, GGL_OP_MAX, sum_of(g, w), ggl_graph_number(g, 0.75));
    return ggl_binary(g, GGL_OP_DIV, w, s);
}

static ggl_tensor *by_sum(ggl_graph *g, ggl_tensor *w) {
    return ggl_binary(g, GGL_OP_DIV, w, sum_of(g, w));
}

/* Weights, which must not change once there is a graph: where a device has memory of its own, it has a copy of them. */
static void make_bias(void) {
    uint64_t seed = 7;
    for (int i = 0; i < MOST_EXPERTS; i++)
        bias[i] = roundf(test_random_float(&seed) * 8) / 64;
}

/* The outputs are the shares, and the numbers of the chosen. */
static ggl_graph *graph_of(const route *r) {
    const int64_t ne[1] = {r->n};
    ggl_error err = {0};
    ggl_graph_params params = ggl_graph_default();
    params.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&params);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, ne, true),
               *t = ggl_graph_input(g, "t", GGL_F32, 1, ne, true);
    ggl_tensor *p = r->scores ? r->scores(g, x) : x, *c = p;
    if (r->bias)
        c = ggl_binary(g, GGL_OP_ADD, p, ggl_graph_weight(g, "bias", GGL_F32, 1, ne, bias));
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_TOPK, &c, 1, (double[]){r->k}, 1),
               *w = ggl_binary(g, GGL_OP_PICK, r->table ? t : p, e), *part = w;
    w = r->shares ? r->shares(g, w) : w;
    if (r->times != 0)
        w = ggl_binary(g, GGL_OP_MUL, w, ggl_graph_number(g, r->times));
    if (r->read)
        ggl_graph_output(g, "p", ggl_unary(g, GGL_OP_TANH, p));
    if (r->in_parts)
        ggl_graph_output(g, "part", ggl_unary(g, GGL_OP_TANH, part));
    ggl_graph_output(g, "w", w);
    ggl_graph_output(g, "e", ggl_unary(g, GGL_OP_CAST, e));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

typedef struct results {
    float w[N_BATCHES][MOST_BATCH * MOST_CHOSEN], e[N_BATCHES][MOST_BATCH * MOST_CHOSEN];
    int dispatches;
} results;

/* Scores are multiples of 1/8, so that many are equal. The last token has a NaN. */
static void make_scores(int n, float *x, float *t) {
    uint64_t seed = 8;
    for (int i = 0; i < n * MOST_BATCH; i++) {
        x[i] = roundf(test_random_float(&seed) * 24) / 8;
        t[i] = test_random_float(&seed);
    }
    x[n * MOST_BATCH - n / 2] = NAN;
}

static bool run(ggl_graph *g, const route *r, ggl_backend *b, results *y) {
    static float x[MOST_EXPERTS * MOST_BATCH], t[MOST_EXPERTS * MOST_BATCH];
    ggl_sched *s = NULL;
    ggl_error err = {0};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    const int n_out = ggl_graph_n_outputs(g);
    bool ok =
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err);
    make_scores(r->n, x, t);
    for (int i = 0; i < N_BATCHES && ok; i++) {
        const size_t in = (size_t)(batch[i] * r->n) * sizeof *x,
                     out = (size_t)(batch[i] * r->k) * sizeof *x;
        const float *from = x + (MOST_BATCH - batch[i]) * r->n; /* the last ones */
        n_dispatches = 0;
        ok = CHECK_OK(ggl_sched_set(s, "x", from, in, batch[i], &err), &err) &&
             (!r->table || CHECK_OK(ggl_sched_set(s, "t", t, in, batch[i], &err), &err)) &&
             CHECK_OK(ggl_sched_run(s, batch[i], NULL, 0, &err), &err);
        if (ok) {
            memcpy(y->w[i], ggl_sched_output(s, n_out - 2), out);
            memcpy(y->e[i], ggl_sched_output(s, n_out - 1), out);
        }
        y->dispatches = i == 0 ? n_dispatches : y->dispatches;
    }
    ggl_sched_free(s);
    return ok;
}

static void check_reference(const route *r, const results *got, const results *want) {
    for (int i = 0; i < N_BATCHES; i++)
        for (int k = 0; k < batch[i] * r->k; k++) {
            const float w = got->w[i][k], v = want->w[i][k];
            CHECK_MSG(got->e[i][k] == want->e[i][k], "%d of %d: expert %g, not %g", r->k, r->n,
                      got->e[i][k], want->e[i][k]);
            CHECK_MSG(isnan(v) ? isnan(w) : fabsf(w - v) <= 1e-5f * fabsf(v),
                      "%d of %d: share %g, not %g", r->k, r->n, w, v);
        }
}

static ggl_backend *vulkan(const char *mask) {
    ggl_backend *b = vulkan_open(mask);
    if (b)
        count_dispatches(b);
    return b;
}

static void check(const route *routes, int n, const char *mask, const char *without) {
    static results fused, apart, want;
    ggl_backend *a = vulkan(mask), *b = a ? vulkan(without) : NULL, *reference = NULL;
    ggl_error err = {0};
    CHECK_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    make_bias();
    for (const route *r = routes; r < routes + n && b; r++) {
        memset(&fused, 0, sizeof fused), memset(&apart, 0, sizeof apart);
        ggl_graph *g = graph_of(r);
        if (run(g, r, a, &fused) && run(g, r, b, &apart) && run(g, r, reference, &want)) {
            CHECK_MSG(apart.dispatches - fused.dispatches == r->fewer,
                      "%d of %d: %d dispatches, and %d as single steps", r->k, r->n,
                      fused.dispatches, apart.dispatches);
            CHECK_MSG(memcmp(fused.w, apart.w, sizeof apart.w) == 0 &&
                          memcmp(fused.e, apart.e, sizeof apart.e) == 0,
                      "%d of %d: other bits", r->k, r->n);
            check_reference(r, &fused, &want);
        }
        ggl_graph_free(g);
    }
    ggl_backend_close(a);
    ggl_backend_close(b);
    ggl_backend_close(reference);
}

static const route usual[] = {
    {.n = 4, .k = 1, .scores = ggl_softmax, .fewer = 2},
    {.n = 8, .k = 2, .scores = ggl_softmax, .shares = ggl_normalised, .fewer = 3},
    {.n = 32, .k = 4, .shares = ggl_softmax, .fewer = 2},
    {.n = 64, .k = 8, .scores = ggl_softmax, .bias = true, .shares = ggl_normalised, .fewer = 4},
    {.n = 160, .k = 6, .scores = ggl_softmax, .times = 16, .fewer = 3},
    {.n = 256,
     .k = 8,
     .scores = sigmoid,
     .bias = true,
     .shares = ggl_normalised,
     .times = 2.5,
     .fewer = 5},
    {.n = 384,
     .k = 9,
     .scores = root_of_softplus,
     .bias = true,
     .shares = by_sum_and_a_little,
     .times = 1.5,
     .fewer = 8},
    {.n = 512, .k = 16, .scores = ggl_softmax, .shares = ggl_normalised, .fewer = 3},
};
enum { N_USUAL = sizeof usual / sizeof *usual };

TEST(experts) {
    check(usual, N_USUAL, "idot", "idot,fuse");
}
TEST(experts_without_subgroups) {
    check(usual, N_USUAL, "idot,subgroup", "idot,subgroup,fuse");
}
TEST(other_shares) {
    static const route r[] = {
        {.n = 16, .k = 1, .shares = sigmoid, .fewer = 2},
        {.n = 16, .k = 3, .scores = sigmoid, .shares = by_sum_of_at_least, .fewer = 5},
        {.n = 77, .k = 32, .scores = sigmoid, .shares = by_sum, .fewer = 4},
        {.n = 33,
         .k = 5,
         .shares = root_of_softplus,
         .fewer = 2}, /* the root is a step of its own */
        {.n = 1024,
         .k = 32,
         .scores = ggl_softmax,
         .shares = ggl_softmax,
         .bias = true,
         .fewer = 4},
        {.n = 48, .k = 7, .scores = sigmoid, .table = true, .shares = ggl_normalised, .fewer = 3},
        {.n = 48, .k = 7, .table = true, .fewer = 1},
    };
    check(r, sizeof r / sizeof *r, "idot", "idot,fuse");
}

/* A result that a step outside of the chain reads, too, is written to memory. */
TEST(results_that_others_read) {
    static const route r[] = {
        {.n = 16, .k = 3, .scores = sigmoid, .shares = ggl_normalised, .read = true, .fewer = 2},
        {.n = 16,
         .k = 3,
         .scores = sigmoid,
         .shares = ggl_normalised,
         .in_parts = true,
         .fewer = 2},
        {.n = 16, .k = 3, .scores = sigmoid, .shares = by_sum, .in_parts = true, .fewer = 2},
    };
    check(r, sizeof r / sizeof *r, "idot", "idot,fuse");
}

/* More than the shader has room for. */
TEST(too_many) {
    static const route r[] = {
        {.n = 1025, .k = 2, .scores = ggl_softmax},
        {.n = 64, .k = 33, .scores = ggl_softmax},
    };
    check(r, sizeof r / sizeof *r, "idot", "idot,fuse");
}

/* --- graphs that are drawn -------------------------------------------------------------------- */

enum { N_DRAWN = 24, MOST_READ = 6, MOST_RESULTS = (MOST_READ + 3) * 128 * MOST_BATCH };

typedef struct drawing {
    ggl_graph *g;
    ggl_tensor *t; /* an input beside the scores */
    uint64_t seed;
    int n_read, n_late;
    ggl_tensor *late[MOST_READ]; /* what the last steps read */
} drawing;

static int draw(drawing *d, int n) {
    return (int)(test_random(&d->seed) >> 33) % n;
}

static void put_out(drawing *d, ggl_tensor *x) {
    char name[16];
    snprintf(name, sizeof name, "read%d", d->n_read++);
    ggl_graph_output(d->g, name, x);
}

/* Returns x. One time in three it has another reader, too: the next step, one after all others, or none, as it is an output. */
static ggl_tensor *read_sometimes(drawing *d, ggl_tensor *x) {
    if (d->n_read + d->n_late < MOST_READ && draw(d, 3) == 0)
        switch (draw(d, 4)) {
        case 0:
            put_out(d, ggl_unary(d->g, GGL_OP_TANH, x));
            break;
        case 1:
            put_out(d, x);
            break;
        default:
            d->late[d->n_late++] = x;
        }
    return x;
}

static ggl_tensor *function_of(drawing *d, ggl_tensor *x) {
    switch (draw(d, 5)) {
    case 0:
        return ggl_softmax(d->g, x);
    case 1:
        return sigmoid(d->g, x);
    case 2:
        return root_of_softplus(d->g, x);
    case 3:
        return ggl_unary(d->g, GGL_OP_TANH, x);
    default:
        return ggl_normalised(d->g, x);
    }
}

/* Returns a value that is there before the chain, or computed between its steps. */
static ggl_tensor *beside(drawing *d) {
    switch (draw(d, 4)) {
    case 0:
        return d->t;
    case 1:
        return ggl_unary(d->g, GGL_OP_SIGMOID, d->t);
    case 2:
        return sum_of(d->g, d->t);
    default:
        return ggl_graph_number(d->g, 0.5);
    }
}

static ggl_tensor *either_way(drawing *d, ggl_op op, ggl_tensor *a, ggl_tensor *b) {
    return draw(d, 2) ? ggl_binary(d->g, op, a, b) : ggl_binary(d->g, op, b, a);
}

/* Returns the shares divided by their sum, or by something that is nearly that. */
static ggl_tensor *share_out(drawing *d, ggl_tensor *w) {
    ggl_tensor *s = read_sometimes(d, sum_of(d->g, w)), *number = ggl_graph_number(d->g, 0.25);
    if (draw(d, 2))
        s = read_sometimes(d, either_way(d, draw(d, 2) ? GGL_OP_ADD : GGL_OP_MAX, s, number));
    return draw(d, 4) ? ggl_binary(d->g, GGL_OP_DIV, w, s) : either_way(d, GGL_OP_MUL, w, s);
}

/* Draws a router, with readers of any of its values; most are loose chains at least in part. The outputs are n_read values of
 * any size, the shares, and the chosen indices. */
static ggl_graph *draw_graph(drawing *d, route *r) {
    ggl_error err = {0};
    ggl_graph_params params = ggl_graph_default();
    params.n_batch = MOST_BATCH;
    r->n = 2 + draw(d, 70);
    r->k = 1 + draw(d, r->n < 12 ? r->n : 12);
    const int64_t ne[1] = {r->n};
    ggl_graph *g = d->g = ggl_graph_new(&params);
    ggl_tensor *p = ggl_graph_input(g, "x", GGL_F32, 1, ne, true);
    d->t = ggl_graph_input(g, "t", GGL_F32, 1, ne, true);
    for (int i = draw(d, 3); i > 0; i--)
        p = read_sometimes(d, function_of(d, p));
    ggl_tensor *c = p;
    if (draw(d, 2))
        c = either_way(d, GGL_OP_ADD, p,
                       draw(d, 2) ? ggl_graph_weight(g, "bias", GGL_F32, 1, ne, bias) : beside(d));
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_TOPK, &c, 1, (double[]){r->k}, 1);
    c = c == p ? c : read_sometimes(d, c);
    ggl_tensor *from[] = {p, p, p, c, d->t};
    ggl_tensor *w = read_sometimes(d, ggl_binary(g, GGL_OP_PICK, from[draw(d, 5)], e));
    w = draw(d, 2) ? read_sometimes(d, function_of(d, w)) : w;
    w = draw(d, 2) ? read_sometimes(d, share_out(d, w)) : w;
    if (draw(d, 2))
        w = either_way(d, GGL_OP_MUL, w,
                       draw(d, 2) ? ggl_binary(g, GGL_OP_PICK, d->t, e) : ggl_graph_number(g, 1.5));
    for (int i = 0; i < d->n_late; i++)
        put_out(d, ggl_unary(g, GGL_OP_TANH, d->late[i]));
    ggl_graph_output(g, "t", ggl_unary(g, GGL_OP_TANH, d->t)); /* it is always an input */
    ggl_graph_output(g, "w", draw(d, 2) ? ggl_unary(g, GGL_OP_TANH, w) : w);
    ggl_graph_output(g, "e", ggl_unary(g, GGL_OP_CAST, e));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

/* Sets y[] to all outputs of all batches. Returns their number, and sets *dispatches to those of the last batch; 0: it failed. */
static size_t run_drawn(ggl_graph *g, const route *r, ggl_backend *b, float *y, int *dispatches) {
    static float x[128 * MOST_BATCH], t[128 * MOST_BATCH];
    ggl_sched *s = NULL;
    ggl_error err = {0};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok =
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err);
    size_t n = 0;
    make_scores(r->n, x, t);
    for (int i = 0; i < N_BATCHES && ok; i++) {
        const size_t in = (size_t)(batch[i] * r->n) * sizeof *x;
        n_dispatches = 0;
        ok = CHECK_OK(ggl_sched_set(s, "x", x, in, batch[i], &err), &err) &&
             CHECK_OK(ggl_sched_set(s, "t", t, in, batch[i], &err), &err) &&
             CHECK_OK(ggl_sched_run(s, batch[i], NULL, 0, &err), &err);
        *dispatches = n_dispatches;
        for (int k = 0; k < ggl_graph_n_outputs(g) && ok; k++) {
            const size_t of = (size_t)(ggl_count(ggl_graph_get_output(g, k)) * batch[i]);
            memcpy(y + n, ggl_sched_output(s, k), of * sizeof *y);
            n += of;
        }
    }
    ggl_sched_free(s);
    return ok ? n : 0;
}

/* The bits are those of single steps, whatever else reads the values of a router and wherever its operands come from. */
TEST(drawn) {
    static float fused[MOST_RESULTS], apart[MOST_RESULTS];
    ggl_backend *a = vulkan("idot"), *b = a ? vulkan("idot,fuse") : NULL;
    int shorter = 0;
    make_bias();
    for (int i = 0; i < N_DRAWN && b; i++) {
        drawing d = {.seed = (sample_seed() * N_DRAWN + (uint64_t)i) * 2654435761u};
        route r = {0};
        int together = 0, single = 0;
        ggl_graph *g = draw_graph(&d, &r);
        const size_t n = run_drawn(g, &r, a, fused, &together),
                     m = run_drawn(g, &r, b, apart, &single);
        CHECK_MSG(n > 0 && n == m && memcmp(fused, apart, n * sizeof *fused) == 0,
                  "graph %d: other bits", i);
        shorter += together < single;
        ggl_graph_free(g);
    }
    CHECK(!b || shorter > N_DRAWN / 2);
    ggl_backend_close(a);
    ggl_backend_close(b);
}
