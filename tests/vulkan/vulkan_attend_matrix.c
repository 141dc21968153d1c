/* vulkan.attend_matrix: attention of prompts on matrix units (attend_matrix.comp), whether or not the
 * device is software that emulates them. Each result is compared with a formula here, in double
 * precision, within the bound of docs/numeric.md, section 9; the types of rows and other forms with the
 * reference backend. Skipped without VK_KHR_cooperative_matrix. */
#include <math.h>

#include "conform/case.h"
#include "ggl/sched.h"
#include "vulkan.h"
#include "vulkan_test.h"

/* Without integer dot products: few queries of a device that has them are rounded to bytes. */
static ggl_backend *open_matrix(void) {
    setenv("GGL_VULKAN_FORCE", "matrix", 1);
    ggl_backend *b = vulkan_open("idot");
    if (!b || strstr(b->description, " matrix"))
        return b;
    printf("skipped: %s has no matrix units for f16 (VK_KHR_cooperative_matrix)\n", b->description);
    test_skipped = true;
    ggl_backend_close(b);
    return NULL;
}

/* --- attention to given numbers --------------------------------------------------------------- */

enum { TOKENS = 200 };

typedef struct attention {
    int d, e, heads, shared; /* dimensions of keys and values; heads, and those of the store */
    int n;                   /* tokens */
    ggl_type type;           /* of the store */
    int window;              /* 0: none */
    double scale, cap;       /* 0: none */
    bool sinks, alibi;
    int n_slots;        /* 0: 1; tokens of a slot are next to each other */
    int most;           /* tokens of the largest batch; 0: n */
    int odd;            /* a token whose values are not finite; 0: none */
    float size_q, size; /* of queries; of keys and values; 0: 1 */
} attention;

typedef struct numbers {
    float *q, *k, *v, sinks[16], alibi[16];
    int32_t pos[TOKENS], slot[TOKENS];
} numbers;

/* Returns n numbers up to `size`; f16: rounded to f16. free() them. */
static float *draw(int n, float size, bool f16, uint64_t seed) {
    const ggl_type_info *t = ggl_type_get(GGL_F16);
    float *x = malloc((size_t)n * sizeof *x);
    void *h = malloc((size_t)n * 2);
    for (int i = 0; i < n; i++)
        x[i] = test_random_float(&seed) * (size > 0 ? size : 1);
    if (f16) {
        t->from_float(x, h, n);
        t->to_float(h, x, n);
    }
    free(h);
    return x;
}

static numbers draw_all(const attention *a) {
    numbers x = {.q = draw(a->n * a->heads * a->d, a->size_q, false, 3),
                 .k = draw(a->n * a->shared * a->d, a->size, true, 5),
                 .v = draw(a->n * a->shared * a->e, a->size, true, 7)};
    uint64_t seed = 9;
    const int each = (a->n + (a->n_slots ? a->n_slots : 1) - 1) / (a->n_slots ? a->n_slots : 1);
    for (int i = 0; i < a->n; i++) {
        x.pos[i] = i % each;
        x.slot[i] = i / each;
    }
    for (int i = 0; i < 16; i++) {
        x.sinks[i] = test_random_float(&seed) * 2;
        x.alibi[i] = fabsf(test_random_float(&seed)) * 0.1f;
    }
    for (int i = 0; a->odd && i < a->shared * a->e; i++)
        x.v[a->odd * a->shared * a->e + i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    return x;
}

static void free_all(numbers *x) {
    free(x->q);
    free(x->k);
    free(x->v);
}

static ggl_graph *graph_of(const attention *a, const numbers *x) {
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = a->most ? a->most : a->n;
    p.n_slots = a->n_slots ? a->n_slots : 1;
    p.type_k = p.type_v = a->type;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){a->d, a->shared}, true),
               *v = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){a->e, a->shared}, true);
    ggl_tensor *src[4] = {ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){a->d, a->heads}, true),
                          ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0)};
    if (a->sinks)
        src[2] = ggl_graph_weight(g, "sinks", GGL_F32, 1, (int64_t[]){a->heads}, x->sinks);
    if (a->alibi)
        src[3] = ggl_graph_weight(g, "alibi", GGL_F32, 1, (int64_t[]){a->heads}, x->alibi);
    const double num[] = {a->scale > 0 ? a->scale : NAN, a->window ? a->window : NAN,
                          a->cap > 0 ? a->cap : NAN};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 4, num, 3));
    return g;
}

/* Computes it on a backend; free() the result. */
static float *run(ggl_backend *b, const attention *a, const numbers *x) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    const size_t n = (size_t)a->n, out = n * (size_t)(a->heads * a->e) * sizeof(float);
    float *y = calloc(1, out);
    ggl_graph *g = graph_of(a, x);
    const struct {
        const char *name;
        const void *data;
        int each;
    } in[] = {{"pos", x->pos, 1},
              {"slot", x->slot, 1},
              {"q", x->q, a->d * a->heads},
              {"k", x->k, a->d * a->shared},
              {"v", x->v, a->e * a->shared}};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok = CHECK_OK(ggl_graph_finish(g, &err), &err) &&
              CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
              CHECK_OK(ggl_sched_alloc(s, &err), &err);
    for (size_t i = 0; ok && i < sizeof in / sizeof *in; i++)
        ok = CHECK_OK(
            ggl_sched_set(s, in[i].name, in[i].data, n * (size_t)in[i].each * 4, a->n, &err), &err);
    if (ok && CHECK_OK(ggl_sched_run(s, a->n, NULL, 0, &err), &err))
        memcpy(y, ggl_sched_output(s, 0), out);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return y;
}

/* --- the formula ------------------------------------------------------------------------------ */

/* The weights of one query, and the largest error of a score: queries are rounded to 11 bits, and
 * keys are f16 as they are. */
typedef struct weights {
    double of[TOKENS], sum, error;
} weights;

static weights weigh(const attention *a, const numbers *x, int t, int h) {
    static double score[TOKENS];
    const double scale = a->scale > 0 ? a->scale : 1 / sqrt(a->d);
    const int g = h / (a->heads / a->shared);
    weights w = {.sum = 0};
    double top = a->sinks ? (double)x->sinks[h] : -INFINITY;
    for (int u = 0; u < a->n; u++) {
        const int back = x->pos[t] - x->pos[u];
        score[u] = -INFINITY;
        if (x->slot[u] != x->slot[t] || back < 0 || (a->window && back >= a->window))
            continue;
        double s = 0, size = 0;
        for (int i = 0; i < a->d; i++) {
            const double product = (double)x->q[(t * a->heads + h) * a->d + i] *
                                   (double)x->k[(u * a->shared + g) * a->d + i];
            s += product;
            size += fabs(product);
        }
        s *= scale;
        s = a->cap > 0 ? a->cap * tanh(s / a->cap) : s;
        s -= a->alibi ? (double)x->alibi[h] * back : 0;
        score[u] = s;
        top = fmax(top, s);
        w.error = fmax(w.error, size * scale * 0x1.02p-11);
    }
    for (int u = 0; u < a->n; u++)
        w.sum += w.of[u] = score[u] > -INFINITY ? exp(score[u] - top) : 0;
    w.sum += a->sinks ? exp((double)x->sinks[h] - top) : 0;
    return w;
}

/* Compares element i of head h with the formula; true if it is within the bound. */
static bool is_right(const attention *a, const numbers *x, const weights *w, int h, int i,
                     float got, double *share) {
    const int g = h / (a->heads / a->shared);
    double want = 0, most = 0;
    for (int u = 0; u < a->n; u++) {
        const double v = (double)x->v[(u * a->shared + g) * a->e + i];
        if (w->of[u] > 0) {
            want += w->of[u] * v / w->sum;
            most = fmax(most, fabs(v));
        }
    }
    if (!isfinite(want))
        return isnan(want) ? isnan(got) : (double)got == want;
    const double bound = most * (2 * w->error + 0x1p-9);
    *share = fmax(*share, fabs((double)got - want) / bound);
    return fabs((double)got - want) <= bound;
}

static void check(ggl_backend *b, const attention *a) {
    numbers x = draw_all(a);
    float *y = run(b, a, &x);
    int wrong = 0;
    double share = 0;
    for (int t = 0; t < a->n; t++)
        for (int h = 0; h < a->heads; h++) {
            const weights w = weigh(a, &x, t, h);
            for (int i = 0; i < a->e; i++)
                wrong += !is_right(a, &x, &w, h, i, y[(t * a->heads + h) * a->e + i], &share);
        }
    CHECK_MSG(
        wrong == 0,
        "%d tokens, %d heads of %d and %d, window %d, cap %g%s%s: %d elements are wrong; %.3g of "
        "the bound",
        a->n, a->heads, a->d, a->e, a->window, a->cap, a->sinks ? ", sinks" : "",
        a->alibi ? ", alibi" : "", wrong, share);
    free(y);
    free_all(&x);
}

static void check_list(const attention *a, size_t n, uint32_t units) {
    ggl_backend *b = open_matrix();
    if (b && units)
        ((vk_backend *)b)->limits.units = units;
    for (size_t i = 0; b && i < n; i++)
        check(b, &a[i]);
    ggl_backend_close(b);
}
#define CHECK_LIST(list, units) check_list(list, sizeof(list) / sizeof *(list), units)

/* Heads of each size; tiles of several heads, of several tokens, and of both; pages in part. A device that
 * emulates matrix units compiles each for seconds, so they are cases of their own. */
#define CHECK_ONE(...)                                                                             \
    do {                                                                                           \
        static const attention a[] = {{__VA_ARGS__}};                                              \
        CHECK_LIST(a, 0);                                                                          \
    } while (0)

TEST(heads_of_64) {
    CHECK_ONE(64, 64, 4, 2, 70, GGL_F16, .window = 0);
}
TEST(heads_of_80) {
    CHECK_ONE(80, 80, 1, 1, 130, GGL_F16, .window = 0);
}
TEST(heads_of_96) {
    CHECK_ONE(96, 96, 6, 2, 40, GGL_F16, .window = 0);
}
TEST(heads_of_128) {
    CHECK_ONE(128, 128, 2, 1, 70, GGL_F16, .window = 0);
}
TEST(heads_of_256) {
    CHECK_ONE(256, 256, 2, 1, 66, GGL_F16, .window = 0);
}
TEST(odd_sizes) {
    CHECK_ONE(33, 17, 16, 1, 12, GGL_F16, .window = 0);
}
TEST(window) {
    CHECK_ONE(64, 64, 4, 2, 150, GGL_F16, .window = 70);
}
TEST(cap) {
    CHECK_ONE(64, 64, 2, 2, 150, GGL_F16, .cap = 2, .scale = 0.4);
}
TEST(sinks) {
    CHECK_ONE(64, 32, 4, 1, 90, GGL_F16, .sinks = true);
}
TEST(alibi) {
    CHECK_ONE(64, 64, 4, 1, 90, GGL_F16, .alibi = true);
}
TEST(all_options) {
    CHECK_ONE(32, 32, 4, 1, 150, GGL_F16, .alibi = true, .sinks = true, .cap = 3, .window = 20);
}

/* Several workgroups for a tile. */
TEST(spans) {
    static const attention a[] = {
        {.d = 32, .e = 40, .heads = 1, .shared = 1, .n = 200, .type = GGL_F16, .sinks = true}};
    CHECK_LIST(a, 64);
}

/* Tiles whose tokens have different slots are computed by attend.comp; tokens that a batch lacks to its
 * bucket have none. */
TEST(slots) {
    static const attention a[] = {{.d = 32,
                                   .e = 32,
                                   .heads = 2,
                                   .shared = 1,
                                   .n = 150,
                                   .type = GGL_F16,
                                   .n_slots = 2,
                                   .most = 400}};
    CHECK_LIST(a, 0);
}

/* Queries beyond f16, and keys and values up to its largest. */
TEST(large_values) {
    static const attention a[] = {
        {64, 64, 1, 1, 70, GGL_F16, .size_q = 1e6f, .size = 65000, .scale = 1e-11},
        {64, 64, 1, 1, 70, GGL_F16, .size_q = 1e30f, .scale = 1e-30},
        {64, 64, 1, 1, 70, GGL_F16, .size_q = 1e-20f, .scale = 1e20},
    };
    CHECK_LIST(a, 0);
}

/* Tokens before one whose values are not finite do not notice it; those after it do. */
TEST(values_that_are_not_finite) {
    static const attention a[] = {
        {32, 80, 2, 1, 70, GGL_F16, .odd = 40},
        {32, 80, 2, 1, 160, GGL_F16, .odd = 100},
    };
    CHECK_LIST(a, 0);
}

/* --- the reference ---------------------------------------------------------------------------- */

/* Every step-th variant of a case. Keys and values of quantized types are decoded and then rounded to 11
 * bits; nothing is rounded to bytes. */
static void check_case(const conform_case *info, int step) {
    ggl_backend *b = open_matrix();
    conform_case strict = *info;
    conform_result r;
    strict.bound = strict.bound_quantized = 2e-3;
    for (int v = vulkan_first(step); b && v < conform_n_variants(info); v += step * vulkan_each())
        CHECK_MSG(conform_check(&strict, v, b, &r) == CONFORM_RIGHT, "%s, %s: %s", info->name,
                  r.form_text, r.text);
    ggl_backend_close(b);
}

TEST(all_types) { /* pairs of types of keys and values, in each form */
    check_case(&conform_kept.cases[0], 1);
}
TEST(long_context) {
    check_case(&conform_spans.cases[0], 1);
}
TEST(other_forms) {
    for (int i = 0; i < conform_attention.n_cases; i++)
        if (conform_attention.cases[i].op == GGL_OP_ATTEND)
            check_case(&conform_attention.cases[i], 1);
}

/* --- which way is taken ------------------------------------------------------------------------- */

/* 64 queries of a head of the store or more, and rows that f16 can hold; vulkan.counts.matrix_units has the
 * other types. */
TEST(when_matrix_units_attend) {
    static const struct {
        attention a;
        bool same; /* as without */
    } way[] = {
        {{.d = 32, .e = 32, .heads = 2, .shared = 1, .n = 32, .type = GGL_F16}, false},
        {{.d = 32, .e = 32, .heads = 2, .shared = 1, .n = 32, .type = GGL_F32}, true},
        {{.d = 32, .e = 32, .heads = 1, .shared = 1, .n = 63, .type = GGL_F16}, true},
    };
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    ggl_backend *without = vulkan_open("idot,matrix");
    REQUIRE(without);
    for (size_t i = 0; i <= sizeof way / sizeof *way; i++) {
        const bool small = i == sizeof way / sizeof *way; /* too little shared memory */
        const attention *a = &way[small ? 0 : i].a;
        if (small)
            ((vk_backend *)b)->limits.shared_size = 20 << 10;
        numbers x = draw_all(a);
        float *y[2] = {run(b, a, &x), run(without, a, &x)};
        const size_t size = (size_t)(a->n * a->heads * a->e) * sizeof(float);
        CHECK_MSG((memcmp(y[0], y[1], size) == 0) == (small || way[i].same),
                  "%s, %d tokens, %d dimensions", ggl_type_get(a->type)->name, a->n, a->e);
        free(y[0]);
        free(y[1]);
        free_all(&x);
    }
    ggl_backend_close(without);
    ggl_backend_close(b);
}
