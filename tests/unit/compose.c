/* Parts of ggl/compose.h that the prelude does not have (tests/archs/compose.c compares the others
 * with it), errors, and the lack of memory. */
#include <math.h>

#include "alloc_fail.h"
#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/sched.h"
#include "test.h"

/* --- attention without a cache ---------------------------------------------------------------- */

/* Attention of t queries to s keys, by its definition; q [d, h, t], k [d, heads, s], v [e, heads, s]. */
typedef struct attend {
    int d, e, h, heads, t, s;
    const float *q, *k, *v, *bias; /* bias [s, 1, t], or NULL */
} attend;

static void by_definition(const attend *a, double scale, double *y) {
    for (int i = 0; i < a->t; i++)
        for (int j = 0; j < a->h; j++) {
            double share[16], all = 0;
            int head = j / (a->h / a->heads);
            for (int l = 0; l < a->s; l++) {
                double score = 0;
                for (int m = 0; m < a->d; m++)
                    score += (double)a->q[(i * a->h + j) * a->d + m] *
                             (double)a->k[(l * a->heads + head) * a->d + m];
                share[l] = exp(score * scale + (a->bias ? (double)a->bias[i * a->s + l] : 0));
                all += share[l];
            }
            for (int m = 0; m < a->e; m++) {
                double *out = &y[(i * a->h + j) * a->e + m];
                *out = 0;
                for (int l = 0; l < a->s; l++)
                    *out += share[l] / all * (double)a->v[(l * a->heads + head) * a->e + m];
            }
        }
}

static void fill(float *x, int n, int seed) {
    for (int i = 0; i < n; i++)
        x[i] = (float)sin(seed + 1.7 * i);
}

/* form: d, e, h, heads, t, s, and whether there is a bias, which hides some keys. */
static void check_attention(const int *form, const char *backend) {
    enum { SEQUENCES = 2 };
    attend a = {form[0], form[1], form[2], form[3], form[4], form[5], NULL, NULL, NULL, NULL};
    float q[SEQUENCES * 512], k[SEQUENCES * 512], v[SEQUENCES * 512], bias[SEQUENCES * 256];
    double want[512];
    const int nq = a.d * a.h * a.t, nk = a.d * a.heads * a.s, nv = a.e * a.heads * a.s;
    ggl_error err = {0};
    ggl_backend *b = NULL;
    ggl_sched *s = NULL;
    ggl_graph *g = ggl_graph_new(NULL);
    fill(q, SEQUENCES * nq, 1);
    fill(k, SEQUENCES * nk, 2);
    fill(v, SEQUENCES * nv, 3);
    for (int i = 0; i < SEQUENCES * a.t * a.s; i++)
        bias[i] = i % a.s && i % 5 == 3 ? -INFINITY : (float)(i % 3) / 4;
    ggl_tensor *y = ggl_attention_all(
        g, ggl_graph_input(g, "q", GGL_F32, 3, (int64_t[]){a.d, a.h, a.t}, true),
        ggl_graph_input(g, "k", GGL_F32, 3, (int64_t[]){a.d, a.heads, a.s}, true),
        ggl_graph_input(g, "v", GGL_F32, 3, (int64_t[]){a.e, a.heads, a.s}, true),
        form[6] ? 0.3 : 0,
        form[6] ? ggl_graph_input(g, "bias", GGL_F32, 3, (int64_t[]){a.s, 1, a.t}, true) : NULL);
    ggl_graph_output(g, "y", y);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    CHECK(y->n_dims == 2 && y->ne[0] == a.e * a.h && y->ne[1] == a.t);
    REQUIRE(
        ggl_backend_open(&b, backend, NULL, &err) == GGL_OK &&
        ggl_sched_new(
            &s, g,
            &(ggl_sched_params){.size = sizeof(ggl_sched_params), .backend = &b, .n_backends = 1},
            &err) == GGL_OK &&
        ggl_sched_alloc(s, &err) == GGL_OK &&
        ggl_sched_set(s, "q", q, (size_t)nq * SEQUENCES * sizeof *q, SEQUENCES, &err) == GGL_OK &&
        ggl_sched_set(s, "k", k, (size_t)nk * SEQUENCES * sizeof *k, SEQUENCES, &err) == GGL_OK &&
        ggl_sched_set(s, "v", v, (size_t)nv * SEQUENCES * sizeof *v, SEQUENCES, &err) == GGL_OK &&
        (!form[6] || ggl_sched_set(s, "bias", bias, (size_t)(a.t * a.s) * SEQUENCES * sizeof *bias,
                                   SEQUENCES, &err) == GGL_OK));
    REQUIRE_OK(ggl_sched_run(s, SEQUENCES, NULL, 0, &err), &err);
    const float *got = ggl_sched_output(s, 0);
    for (int n = 0; n < SEQUENCES; n++) {
        a.q = q + n * nq, a.k = k + n * nk, a.v = v + n * nv;
        a.bias = form[6] ? bias + n * a.t * a.s : NULL;
        by_definition(&a, form[6] ? 0.3 : 1 / sqrt(a.d), want);
        for (int i = 0; i < a.e * a.h * a.t; i++)
            CHECK_MSG(fabs((double)*got - want[i]) < 1e-5, "%s, h %d of %d, element %d: %g, not %g",
                      backend, a.h, a.heads, i, (double)*got, want[i]),
                got++;
    }
    ggl_sched_free(s);
    ggl_backend_close(b);
    ggl_graph_free(g);
}

TEST(attention_to_all_keys) {
    static const int form[][7] = {{4, 4, 2, 2, 3, 3, 0},
                                  {4, 6, 4, 2, 5, 7, 0},
                                  {4, 6, 6, 2, 5, 7, 1},
                                  {8, 3, 4, 1, 2, 9, 1},
                                  {1, 1, 1, 1, 1, 1, 0}};
    for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
        check_attention(form[k], "cpu");
        check_attention(form[k], "reference");
    }
}

/* --- errors ----------------------------------------------------------------------------------- */

static ggl_tensor *input(ggl_graph *g, const char *name, int n_dims, int64_t a, int64_t b) {
    return ggl_graph_input(g, name, GGL_F32, n_dims, (int64_t[]){a, b}, true);
}

typedef struct leaves {
    ggl_tensor *x, *three, *m, *q, *kv; /* [8], [3], [4, 2], [4, 3, 2], [4, 2, 5] */
} leaves;

static ggl_tensor *slot(ggl_graph *g) {
    return ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
}

#define MISUSE(name, ...)                                                                          \
    static ggl_tensor *misuse_##name(ggl_graph *g, const leaves *v) {                              \
        (void)v;                                                                                   \
        return __VA_ARGS__;                                                                        \
    }
MISUSE(weighted, ggl_weighted(g, input(g, "w", 2, 6, 4), v->three))
MISUSE(softmax, ggl_softmax(g, NULL))
MISUSE(short_conv, slot(g) ? ggl_short_conv(g, v->x, input(g, "w", 2, 4, 3)) : v->x)
MISUSE(heads, ggl_heads(g, v->x, 3))
MISUSE(layer_norm, ggl_layer_norm(g, v->x, input(g, "w", 1, 6, 0), NULL, 1e-5))
MISUSE(attention, ggl_attention(g, v->m, v->m, v->m, NULL))
MISUSE(attention_all, ggl_attention_all(g, v->q, v->kv, v->kv, 0, NULL))
MISUSE(rope, ggl_rope_freqs(g, 7, 10000))
MISUSE(reshape, ggl_reshape(g, v->x, 5, (int64_t[]){8, 1, 1, 1, 1}))
MISUSE(recent, ggl_recent(g, v->x, 3))
MISUSE(delta, slot(g)
                  ? ggl_gated_delta_rule(g, v->m, v->m, input(g, "v", 2, 4, 3), v->three, v->three)
                  : v->x)

static const struct {
    ggl_tensor *(*make)(ggl_graph *g, const leaves *v);
    const char *words;
} misuse[] = {
    {misuse_weighted, "ggl_weighted of [6, 4] and [3]: "},
    {misuse_softmax, "ggl_softmax of NULL: a call's source is missing"},
    {misuse_short_conv, "ggl_short_conv of [8] and [4, 3]: "},
    {misuse_heads, "ggl_heads of [8]: 3 heads"},
    {misuse_layer_norm, "ggl_layer_norm of [8]: the weight has 6 elements for rows of 8"},
    {misuse_attention,
     "ggl_attention of [4, 2], [4, 2] and [4, 2]: cache needs an input named 'pos'"},
    {misuse_attention_all,
     "ggl_attention_all of [4, 3, 2], [4, 2, 5] and [4, 2, 5]: 2 heads of keys for 3"},
    {misuse_rope, "ggl_rope_freqs: rows of 7"},
    {misuse_reshape, "ggl_reshape to 5 dimensions"},
    {misuse_recent, "ggl_recent of [8]: state needs an input named 'slot'"},
    {misuse_delta, "ggl_gated_delta_rule of [4, 2], [4, 2], [4, 3], [3] and [3]: 3 heads do not "
                   "divide into 2"},
};

/* What is wrong, and with which function's arguments; the error stays, and nothing is left open. */
TEST(errors_name_the_function) {
    for (size_t k = 0; k < sizeof misuse / sizeof *misuse; k++) {
        ggl_error err = {0};
        ggl_graph *g = ggl_graph_new(NULL);
        const leaves v = {input(g, "x", 1, 8, 0), input(g, "three", 1, 3, 0),
                          input(g, "m", 2, 4, 2),
                          ggl_graph_input(g, "q", GGL_F32, 3, (int64_t[]){4, 3, 2}, true),
                          ggl_graph_input(g, "kv", GGL_F32, 3, (int64_t[]){4, 2, 5}, true)};
        CHECK(!misuse[k].make(g, &v));
        CHECK(!ggl_silu(g, ggl_unary(g, GGL_OP_TANH, v.x)));
        CHECK(ggl_graph_finish(g, &err) != GGL_OK);
        CHECK_HAS(err.msg, misuse[k].words);
        ggl_graph_free(g);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* A part of each kind; leaks, and bodies that stay open, are the sanitizer's to find. */
static bool make_parts(void *arg) {
    (void)arg;
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    if (!g)
        return false;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = input(g, "x", 1, 8, 0), *w = input(g, "w", 2, 3, 8);
    x = ggl_layer_norm(g, ggl_short_conv(g, x, w), x, x, 1e-5);
    x = ggl_gelu(g, ggl_softmax(g, x));
    ggl_tensor *q = ggl_binary(g, GGL_OP_ROPE_HALF, ggl_heads(g, x, 2), ggl_rope_freqs(g, 4, 1e4));
    x = ggl_attention(g, q, q, q, NULL);
    q = ggl_reshape(g, x, 3, (int64_t[]){2, 2, 2});
    ggl_graph_output(g, "y", ggl_attention_all(g, q, q, q, 0, NULL));
    ggl_status s = ggl_graph_finish(g, &err);
    ggl_graph_free(g);
    if (s == GGL_OK)
        return true;
    CHECK_INT(s, GGL_NOMEM);
    CHECK_HAS(err.msg, "out of memory");
    return false;
}

TEST(out_of_memory) {
    CHECK(alloc_fail_each(make_parts, NULL) >= 8);
}
