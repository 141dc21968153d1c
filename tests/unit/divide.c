/* Products that are divided among backends: which are, and into what. That no bit changes is for tests/random. */
#include "ggl/internal/divide.h"

#include <math.h>
#include <stdlib.h>

#include "ggl/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "test.h"

enum { IN = 64, OUT = 96 };

typedef struct fixture {
    ggl_graph *g;
    ggl_tensor *x, *y;
    float w[IN * OUT], bias[OUT];
    ggl_error err;
} fixture;

static bool begin(fixture *f) {
    *f = (fixture){.g = ggl_graph_new(NULL)};
    for (int i = 0; i < IN * OUT; i++)
        f->w[i] = (float)i;
    for (int i = 0; i < OUT; i++)
        f->bias[i] = (float)-i;
    f->x = ggl_graph_input(f->g, "x", GGL_F32, 1, (int64_t[]){IN}, true);
    return CHECK(f->x);
}

static ggl_tensor *matrix(fixture *f, const char *name, int64_t rows) {
    return ggl_graph_weight(f->g, name, GGL_F32, 2, (int64_t[]){IN, rows}, f->w);
}

/* Divides, and returns the number of divided products. */
static int divide(fixture *f, const double *share, int n_parts, int64_t unit) {
    int n = -1;
    CHECK_OK(ggl_graph_finish(f->g, &f->err), &f->err);
    CHECK_OK(ggl_graph_divide(f->g, share, n_parts, 1, unit, &n, &f->err), &f->err);
    return n;
}

/* Counts the needed leaves with names like `like`, and adds up their bytes. */
static int count(const fixture *f, const char *like, size_t *bytes) {
    int n = 0;
    *bytes = 0;
    for (int i = 0; i < ggl_graph_n_nodes(f->g); i++) {
        const ggl_tensor *t = ggl_graph_node(f->g, i);
        if (t->op != GGL_OP_WEIGHT || !t->needed || strncmp(t->name, like, strlen(like)) != 0)
            continue;
        n++;
        *bytes += t->size;
    }
    return n;
}

static const ggl_tensor *find(const fixture *f, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(f->g); i++)
        if (ggl_graph_node(f->g, i)->name && strcmp(ggl_graph_node(f->g, i)->name, name) == 0)
            return ggl_graph_node(f->g, i);
    return NULL;
}

/* The parts are rows of the weight and of the bias, where they lie. */
TEST(parts) {
    fixture f;
    const double share[] = {1, 0, 2};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *bias = ggl_graph_weight(f.g, "b", GGL_F32, 1, (int64_t[]){OUT}, f.bias);
        ggl_graph_output(f.g, "y", ggl_linear(f.g, f.x, matrix(&f, "w", OUT), bias));
        CHECK_INT(divide(&f, share, 3, 32), 1);
        CHECK_INT(count(&f, "w", &bytes), 2);
        CHECK_INT(bytes, sizeof f.w);
        const ggl_tensor *first = find(&f, "w#0"), *last = find(&f, "w#2"), *y = find(&f, "y"),
                         *of_last = find(&f, "b#2");
        if (CHECK(first && last && y && of_last) && CHECK(!find(&f, "w#1"))) {
            CHECK(first->data == f.w && first->ne[1] == 32);
            CHECK(last->data == f.w + 32 * IN && last->ne[1] == 64);
            CHECK(of_last->data == f.bias + 32 && of_last->ne[0] == 64);
            CHECK(y->op == GGL_OP_CONCAT && y->ne[0] == OUT && y == ggl_graph_get_output(f.g, 0));
        }
    }
    ggl_graph_free(f.g);
}

/* Products of one weight read the same parts: nothing is stored twice. */
TEST(shared) {
    fixture f;
    const double share[] = {1, 1};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *w = matrix(&f, "w", IN), *y = f.x;
        for (int i = 0; i < 5; i++)
            y = ggl_unary(f.g, GGL_OP_TANH, ggl_linear(f.g, y, w, NULL));
        ggl_graph_output(f.g, "y", y);
        CHECK_INT(divide(&f, share, 2, 16), 5);
        CHECK_INT(count(&f, "w", &bytes), 2);
        CHECK_INT(bytes, IN * IN * sizeof(float));
    }
    ggl_graph_free(f.g);
}

/* What is too small for a part of each, or has no rows for the second one, stays whole. */
TEST(whole) {
    fixture f;
    const double all_first[] = {1, 0};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *small = ggl_linear(f.g, f.x, matrix(&f, "small", 40), NULL);
        ggl_graph_output(f.g, "small_y", small);
        ggl_graph_output(f.g, "y", ggl_linear(f.g, f.x, matrix(&f, "w", OUT), NULL));
        CHECK_INT(divide(&f, all_first, 2, 32), 0);
        CHECK_INT(count(&f, "w", &bytes), 1);
        CHECK_INT(count(&f, "small", &bytes), 1);
    }
    ggl_graph_free(f.g);
}

/* --- attention -------------------------------------------------------------------------------- */

enum { HEAD = 8, N_HEAD = 8 };

static ggl_tensor *heads(fixture *f, const char *name, int n) {
    ggl_tensor *y = ggl_linear(f->g, f->x, matrix(f, name, (int64_t)HEAD * n), NULL);
    return ggl_graph_op(f->g, GGL_OP_RESHAPE, &y, 1, (double[]){HEAD, n}, 2);
}

/* y = wo attend(q, cache(k, v)) of n_kv heads. rms: of queries, times a weight, as several families have it. */
static ggl_tensor *attention(fixture *f, int n_kv, bool rms) {
    ggl_graph *g = f->g;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *q = heads(f, "wq", N_HEAD), *k = heads(f, "wk", n_kv), *v = heads(f, "wv", n_kv);
    if (rms) {
        ggl_tensor *square = ggl_binary(g, GGL_OP_MUL, q, q);
        ggl_tensor *sum = ggl_graph_op(g, GGL_OP_SUM, &square, 1, (double[]){0}, 1);
        q = ggl_binary(g, GGL_OP_DIV, q, ggl_unary(g, GGL_OP_SQRT, sum));
        q = ggl_binary(g, GGL_OP_MUL, q,
                       ggl_graph_weight(g, "norm", GGL_F32, 1, (int64_t[]){HEAD}, f->w));
    }
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0);
    ggl_tensor *y = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){q, kv}, 2, NULL, 0);
    return ggl_graph_op(g, GGL_OP_RESHAPE, &y, 1, (double[]){HEAD * N_HEAD}, 1);
}

static int count_ops(const fixture *f, ggl_op op) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(f->g); i++)
        n += ggl_graph_node(f->g, i)->op == op && ggl_graph_node(f->g, i)->needed;
    return n;
}

/* Each part has whole heads: of queries those that read its keys and values, and stores of its own. Nothing is joined before the end. */
TEST(attention_by_heads) {
    const double share[] = {1, 3};
    for (int rms = 0; rms < 2; rms++) {
        fixture f;
        if (begin(&f)) {
            ggl_graph_output(f.g, "y", attention(&f, 4, rms));
            CHECK_INT(divide(&f, share, 2, 32), 3);
            CHECK_INT(count_ops(&f, GGL_OP_ATTEND), 2);
            CHECK_INT(count_ops(&f, GGL_OP_CACHE), 2);
            CHECK_INT(count_ops(&f, GGL_OP_CONCAT), 1);
            CHECK_INT(ggl_graph_n_stores(f.g), 4);
            for (int i = 0; i < ggl_graph_n_stores(f.g); i++) {
                const ggl_store *s = ggl_graph_store(f.g, i);
                CHECK_INT(s->ne[1], i < 2 ? 1 : 3);
                CHECK(s->size > 0);
            }
            const ggl_tensor *q = find(&f, "wq#1"), *k = find(&f, "wk#0"),
                             *norm = find(&f, "norm#1");
            if (CHECK(q && k && (!rms || norm))) {
                CHECK_INT(q->ne[1], 6 * HEAD);
                CHECK(q->data == f.w + 2 * HEAD * IN);
                CHECK_INT(k->ne[1], HEAD);
                CHECK(!rms || (norm->ne[0] == HEAD && norm->data == f.w));
            }
        }
        ggl_graph_free(f.g);
    }
}

/* With fewer heads of the cache than parts, only rows are divided. So are they if a reader needs all heads, as one with a bias does. */
TEST(attention_stays_whole) {
    const double share[] = {1, 1};
    for (int biased = 0; biased < 2; biased++) {
        fixture f;
        if (begin(&f)) {
            ggl_tensor *y = attention(&f, biased ? 4 : 1, false);
            if (biased) {
                ggl_tensor *bias =
                    ggl_graph_weight(f.g, "bias", GGL_F32, 2, (int64_t[]){3, N_HEAD}, f.w);
                ggl_tensor *const read[] = {heads(&f, "wr", N_HEAD), y->src[0]->src[ATTEND_KV],
                                            NULL, NULL, bias};
                ggl_tensor *z = ggl_graph_op(f.g, GGL_OP_ATTEND, read, 5, NULL, 0);
                if (CHECK(z))
                    ggl_graph_output(f.g, "z", z);
            }
            ggl_graph_output(f.g, "y", y);
            CHECK(divide(&f, share, 2, 32) > 0);
            CHECK_INT(count_ops(&f, GGL_OP_CACHE), 1);
            CHECK_INT(ggl_graph_n_stores(f.g), 2);
            CHECK_INT(count_ops(&f, GGL_OP_ATTEND), 1 + biased);
        }
        ggl_graph_free(f.g);
    }
}

/* A gate and what it gates are computed in parts, and joined once. */
TEST(elements_stay_in_parts) {
    fixture f;
    const double share[] = {1, 1};
    if (begin(&f)) {
        ggl_tensor *gate = ggl_linear(f.g, f.x, matrix(&f, "gate", OUT), NULL),
                   *up = ggl_linear(f.g, f.x, matrix(&f, "up", OUT), NULL);
        gate = ggl_binary(f.g, GGL_OP_MUL, gate, ggl_unary(f.g, GGL_OP_SIGMOID, gate));
        ggl_graph_output(f.g, "y", ggl_binary(f.g, GGL_OP_MUL, gate, up));
        CHECK_INT(divide(&f, share, 2, 32), 2);
        CHECK_INT(count_ops(&f, GGL_OP_CONCAT), 1);
        CHECK_INT(count_ops(&f, GGL_OP_SIGMOID), 2);
        CHECK_INT(count_ops(&f, GGL_OP_MUL), 4);
    }
    ggl_graph_free(f.g);
}

/* Experts are divided, not their rows: a part has whole matrices, and an index of its own. What follows for each expert stays in parts. */
TEST(experts) {
    enum { N_EXPERT = 4, USED = 2, SIDE = 16 };
    fixture f;
    const double share[] = {1, 3};
    if (begin(&f)) {
        const int64_t up_ne[] = {IN, SIDE, N_EXPERT}, down_ne[] = {SIDE, IN, N_EXPERT};
        ggl_tensor *scores = ggl_linear(f.g, f.x, matrix(&f, "router", N_EXPERT), NULL);
        ggl_tensor *e = ggl_graph_op(f.g, GGL_OP_TOPK, &scores, 1, (double[]){USED}, 1);
        ggl_tensor *up = ggl_graph_weight(f.g, "up", GGL_F32, 3, up_ne, f.w),
                   *down = ggl_graph_weight(f.g, "down", GGL_F32, 3, down_ne, f.w);
        up = ggl_binary(f.g, GGL_OP_PICK, up, e);
        down = ggl_binary(f.g, GGL_OP_PICK, down, e);
        ggl_tensor *y = ggl_unary(f.g, GGL_OP_TANH, ggl_linear(f.g, f.x, up, NULL));
        ggl_graph_output(f.g, "y", ggl_linear(f.g, y, down, NULL));
        CHECK_INT(divide(&f, share, 2, 32), 2);
        const ggl_tensor *first = find(&f, "up#0"), *last = find(&f, "down#1");
        if (CHECK(first && last)) {
            CHECK_INT(first->ne[2], 1);
            CHECK_INT(last->ne[2], 3);
            CHECK(last->data == f.w + SIDE * IN);
        }
        CHECK_INT(count_ops(&f, GGL_OP_LINEAR), 5);
        CHECK_INT(count_ops(&f, GGL_OP_TANH), 2);
        CHECK_INT(count_ops(&f, GGL_OP_WHERE), 1);
        CHECK_INT(count_ops(&f, GGL_OP_CONCAT), 0);
    }
    ggl_graph_free(f.g);
}

/* --- graphs that no generator has drawn --------------------------------------------------------- */

typedef ggl_tensor *draw_fn(fixture *f);

/* A call within a call, whose argument is a weight: nobody can take a part of that. */
static ggl_tensor *nested(fixture *f) {
    ggl_tensor *y = ggl_linear(f->g, f->x, matrix(f, "w", OUT), NULL),
               *b = ggl_graph_weight(f->g, "b", GGL_F32, 1, (int64_t[]){OUT}, f->bias);
    ggl_tensor **outer = ggl_body_begin(f->g, &y, 1);
    ggl_tensor **inner = ggl_body_begin(f->g, (ggl_tensor *[]){outer[0], b}, 2);
    ggl_tensor *z =
        ggl_body_end(f->g, NULL, ggl_binary(f->g, GGL_OP_MUL, inner[0], inner[1]), NULL, 0);
    return ggl_body_end(f->g, NULL, ggl_unary(f->g, GGL_OP_TANH, z), NULL, 0);
}

/* An index that chooses experts is read in a call, too, where all of it counts. */
static ggl_tensor *index_in_a_call(fixture *f) {
    ggl_tensor *i = ggl_graph_input(f->g, "i", GGL_I32, 1, (int64_t[]){2}, true),
               *stack = ggl_graph_weight(f->g, "w", GGL_F32, 3, (int64_t[]){IN, 24, 4}, f->w),
               *table = ggl_graph_weight(f->g, "t", GGL_F32, 2, (int64_t[]){24, 4}, f->bias);
    ggl_tensor *y = ggl_linear(f->g, f->x, ggl_binary(f->g, GGL_OP_PICK, stack, i), NULL);
    ggl_tensor **in = ggl_body_begin(f->g, &y, 1);
    ggl_tensor *z = ggl_binary(f->g, GGL_OP_MUL, in[0], ggl_binary(f->g, GGL_OP_PICK, table, i));
    return ggl_body_end(f->g, NULL, z, NULL, 0);
}

static int by_part(void *ctx, int group, const char *weight) {
    const char *mark = weight ? strrchr(weight, GGL_PART_MARK) : NULL;
    (void)ctx;
    (void)group;
    return mark ? atoi(mark + 1) : weight ? -1 : 0;
}

/* Runs a graph for four elements, divided or not; the results, for free(). */
static float *run(draw_fn *draw, bool divided, ggl_backend *const *backend, size_t *n) {
    enum { BATCH = 4 };
    const int32_t index[BATCH * 2] = {0, 3, 2, 1, 1, 7, -2, 0};
    const double share[] = {1, 1};
    float x[BATCH * IN], *out = NULL;
    fixture f;
    ggl_sched *s = NULL;
    int n_divided;
    if (!begin(&f))
        return NULL;
    for (int i = 0; i < IN * OUT; i++)
        f.w[i] = sinf((float)i) / 8;
    for (int i = 0; i < OUT; i++)
        f.bias[i] = cosf((float)i);
    for (int i = 0; i < BATCH * IN; i++)
        x[i] = sinf((float)i * 0.7f);
    ggl_tensor *y = ggl_graph_output(f.g, "y", draw(&f));
    const ggl_sched_params sp = {.size = sizeof sp,
                                 .backend = backend,
                                 .n_backends = divided ? 2 : 1,
                                 .place = divided ? by_part : NULL,
                                 .side_by_side = divided,
                                 .n_rows = BATCH};
    bool ok = CHECK(y) && CHECK_OK(ggl_graph_finish(f.g, &f.err), &f.err);
    if (ok && divided)
        ok = CHECK_OK(ggl_graph_divide(f.g, share, 2, 1, 1, &n_divided, &f.err), &f.err) &&
             CHECK(n_divided > 0);
    ok = ok && CHECK_OK(ggl_sched_new(&s, f.g, &sp, &f.err), &f.err) &&
         CHECK_OK(ggl_sched_alloc(s, &f.err), &f.err) &&
         CHECK_OK(ggl_sched_set(s, "x", x, sizeof x, BATCH, &f.err), &f.err);
    if (ok && ggl_graph_find_input(f.g, "i"))
        ok = CHECK_OK(ggl_sched_set(s, "i", index, sizeof index, BATCH, &f.err), &f.err);
    if (ok && CHECK_OK(ggl_sched_run(s, BATCH, NULL, BATCH, &f.err), &f.err)) {
        *n = (size_t)(y->ne[0] * (y->n_dims > 1 ? y->ne[1] : 1)) * BATCH;
        out = malloc(*n * sizeof *out);
        if (out)
            memcpy(out, ggl_sched_output(s, 0), *n * sizeof *out);
    }
    ggl_sched_free(s);
    ggl_graph_free(f.g);
    return out;
}

TEST(bits_of_odd_graphs) {
    draw_fn *const draws[] = {nested, index_in_a_call};
    ggl_backend *b[2] = {NULL, NULL};
    ggl_error err = {0};
    REQUIRE_OK(ggl_backend_open(&b[0], "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[1], "cpu1", NULL, &err), &err);
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        size_t n = 0, m = 0;
        float *whole = run(draws[i], false, b, &n), *parts = run(draws[i], true, b, &m);
        CHECK(whole && parts && n == m);
        int n_others = 0;
        for (size_t k = 0; whole && parts && k < n; k++)
            n_others += memcmp(&whole[k], &parts[k], sizeof *whole) != 0 &&
                        !(isnan(whole[k]) && isnan(parts[k]));
        CHECK_INT(n_others, 0);
        free(whole);
        free(parts);
    }
    ggl_backend_close(b[0]);
    ggl_backend_close(b[1]);
}
