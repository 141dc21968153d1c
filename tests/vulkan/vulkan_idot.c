/* vulkan.idot: products with quantized weights by integer dot products, whether or not the device
 * says that it has fast ones. Columns are rounded to bytes as on the CPU, so that results are held
 * to the reference by the bounds of quantized products, and to the CPU's by a closer one. Matrix units
 * are not used: vulkan_matrix.c. */
#include <math.h>

#include "conform/case.h"
#include "device.h"
#include "ggl/sched.h"
#include "ggl/types.h"
#include "vulkan_test.h"

enum { N_TYPES = GGL_TYPE_COUNT - 2 /* weights, not i32 and f64: variants of a form */ };

/* Sums are in another order than the CPU's: 1e-6. And a device may divide less exactly, so that a
 * code is the next one here and there. */
#define LIKE_CPU        5e-3
#define SCORES_LIKE_CPU 5e-4
/* Tokens of a batch: fewer queries than attend_tiles.comp takes, and more. */
enum { FEW = 2, TILED = 40 };

static bool is_known(const vk_backend *b) {
    VkPhysicalDeviceShaderIntegerDotProductFeatures idot = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &idot};
    b->f.GetPhysicalDeviceFeatures2(b->device->physical, &features);
    return idot.shaderIntegerDotProduct;
}

static ggl_backend *open_masked(const char *mask) {
    setenv("GGL_VULKAN_FORCE", "idot,half", 1);
    ggl_backend *b = vulkan_open(mask);
    if (!b)
        return NULL;
    const bool known = is_known((vk_backend *)b);
    if (!known) {
        printf("skipped: %s has no integer dot products\n", b->description);
        test_skipped = true;
    }
    if (known && CHECK_HAS(b->description, " idot"))
        return b;
    ggl_backend_close(b);
    return NULL;
}

static ggl_backend *open_idot(void) {
    return open_masked("matrix");
}

static void check_like_cpu(const conform_case *info, int v, ggl_backend *b) {
    const conform_form form = conform_variant(info, v);
    conform_case closer = *info;
    conform_output got = {0}, want = {0};
    conform_result r;
    ggl_error err = {0};
    closer.bound_quantized = LIKE_CPU;
    if (CHECK_OK(conform_run(info, &form, b, &got, &err), &err) &&
        CHECK_OK(conform_run_on(info, &form, "cpu", NULL, &want, &err), &err))
        CHECK_MSG(conform_compare(&closer, &form, &got, &want, NULL, &r) == CONFORM_RIGHT,
                  "%s, %s, against the CPU: %s", info->name, r.form_text, r.text);
    conform_output_fini(&got);
    conform_output_fini(&want);
}

static void check_variant(const conform_case *info, int v, ggl_backend *b) {
    conform_result r;
    if (!vulkan_decodes(conform_variant(info, v).type))
        return;
    CHECK_MSG(conform_check(info, v, b, &r) == CONFORM_RIGHT, "%s, %s: %s", info->name, r.form_text,
              r.text);
    if (ggl_type_get(r.form.type)->quantized)
        check_like_cpu(info, v, b);
}

/* Variants first, first + step, .. below last; 0: all. */
static void check_masked(const conform_case *info, const char *mask, int first, int step,
                         int last) {
    ggl_backend *b = open_masked(mask);
    const int n = conform_n_variants(info);
    for (int v = first + vulkan_first(step); b && v < (last > 0 && last < n ? last : n);
         v += step * vulkan_each())
        check_variant(info, v, b);
    ggl_backend_close(b);
}

static void check_some(const conform_case *info, int first, int step, int last) {
    check_masked(info, "matrix", first, step, last);
}

/* Attention to keys with codes: like the CPU's, whose queries are rounded by the same rule, and within
 * the bounds of the reference, whose are not. Without the rule the difference to the CPU is many times as large. */
static void check_scores(const conform_case *info, int v, ggl_backend *b, int n_batch) {
    conform_form form = conform_variant(info, v);
    if (form.type_v != GGL_F16 && (n_batch == TILED || !ggl_type_get(form.type_v)->quantized))
        return; /* attend_tiles.comp does not round the weights of values, as the CPU does */
    conform_case closer = *info;
    conform_output got = {0}, want = {0}, exact = {0};
    conform_result r;
    ggl_error err = {0};
    closer.bound_quantized = SCORES_LIKE_CPU;
    form.n = 80; /* two pages */
    form.n_batch = n_batch;
    if (CHECK_OK(conform_run(info, &form, b, &got, &err), &err) &&
        CHECK_OK(conform_run_on(info, &form, "cpu", NULL, &want, &err), &err) &&
        CHECK_OK(conform_run_on(info, &form, "reference", NULL, &exact, &err), &err)) {
        CHECK_MSG(conform_compare(&closer, &form, &got, &want, NULL, &r) == CONFORM_RIGHT,
                  "%s, %s, against the CPU: %s", info->name, r.form_text, r.text);
        CHECK_MSG(conform_compare(info, &form, &got, &exact, NULL, &r) == CONFORM_RIGHT,
                  "%s, %s: %s", info->name, r.form_text, r.text);
    }
    conform_output_fini(&got);
    conform_output_fini(&want);
    conform_output_fini(&exact);
}

/* A pipeline for each type takes some time to be made, so not all forms have all types. */
TEST(as_in_the_file) {
    check_masked(&conform_products.cases[0], "matrix,repack", 0, 2, N_TYPES);
    check_masked(&conform_products.cases[0], "matrix,repack", 5 * N_TYPES + 1, 2, 6 * N_TYPES);
}
TEST(rows_in_slices) {
    check_some(&conform_products.cases[0], 9 * N_TYPES, 2, 10 * N_TYPES);
}
TEST(few_columns) {
    check_some(&conform_products.cases[0], 0, 1, N_TYPES);
}
TEST(one_column) { /* of 32 blocks: a row is a subgroup's */
    check_some(&conform_products.cases[0], 8 * N_TYPES, 1, 9 * N_TYPES);
}
TEST(many_columns) {
    check_some(&conform_products.cases[0], 5 * N_TYPES, 1, 6 * N_TYPES);
}
TEST(linear_forms) { /* with a bias, strides, several matrices, NaN */
    check_some(&conform_products.cases[0], N_TYPES, 4, 0);
}
TEST(experts) {
    check_some(&conform_products.cases[2], 0, 1, 0);
}
TEST(one_after_the_other) { /* what was rounded lies where the next is rounded to */
    check_some(&conform_products.cases[3], 0, 1, 0);
}

/* Weights of more bytes than a binding can have, and columns that are taken a few at a time. */
TEST(weights_in_parts) {
    ggl_backend *b = open_idot();
    if (!b)
        return;
    ((vk_backend *)b)->limits.max_range = 16384;
    for (int form = 0; form < 6; form++)
        for (int type = 0; type < N_TYPES; type += 8)
            check_variant(&conform_products.cases[0], form * N_TYPES + type, b);
    for (int v = 0; v < 25; v += 4)
        check_variant(&conform_products.cases[2], v, b);
    ggl_backend_close(b);
}

/* --- which way is taken --------------------------------------------------------------------- */

/* That form with q8_0. */
static int variant_of(const conform_case *info, int form) {
    int v = form * N_TYPES;
    while (conform_variant(info, v).type != GGL_Q8_0)
        v++;
    return v;
}

/* Whether all elements are the same with integer dot products as without. */
static bool is_same(const conform_case *info, int v, ggl_backend *with, ggl_backend *without) {
    const conform_form form = conform_variant(info, v);
    conform_output y[2] = {{0}};
    ggl_error err = {0};
    bool same = CHECK_OK(conform_run(info, &form, with, &y[0], &err), &err) &&
                CHECK_OK(conform_run(info, &form, without, &y[1], &err), &err) &&
                memcmp(y[0].y, y[1].y, (size_t)(y[0].n * y[0].row) * sizeof(float)) == 0;
    conform_output_fini(&y[0]);
    conform_output_fini(&y[1]);
    return same;
}

/* Columns are rounded where the weights are quantized, and nowhere else; a mask prevents it. */
TEST(columns_are_rounded) {
    const conform_case *info = &conform_products.cases[0];
    ggl_backend *b = open_idot();
    if (!b)
        return;
    ggl_backend *floats = vulkan_open("idot,matrix");
    REQUIRE(floats);
    CHECK(!strstr(floats->description, " idot"));
    CHECK(!is_same(info, variant_of(info, 0), b, floats));
    CHECK(!is_same(info, variant_of(info, 5), b, floats));
    CHECK_INT(conform_variant(info, 0).type, GGL_F32);
    CHECK(is_same(info, 0, b, floats));
    ggl_backend_close(floats);
    ggl_backend_close(b);
}
/* One form with keys of that type. */
static void check_attention(const char *mask, int which, ggl_type keys, int n_batch) {
    const conform_case *info = &conform_kept.cases[0];
    const int each = conform_n_variants(info) / info->n_forms;
    ggl_backend *b = open_masked(mask);
    for (int v = which * each; b && v < (which + 1) * each; v++)
        if (conform_variant(info, v).type_k == keys)
            check_scores(info, v, b, n_batch);
    ggl_backend_close(b);
}

TEST(attend_q8_0) {
    check_attention("matrix,half", 0, GGL_Q8_0, FEW);
}
TEST(attend_ring_of_q4_0) {
    check_attention("matrix,half", 1, GGL_Q4_0, FEW);
}
TEST(attend_tiles_of_q8_0) {
    check_attention("matrix", 0, GGL_Q8_0, TILED);
}
TEST(attend_tiles_of_q4_0) {
    check_attention("matrix,half", 0, GGL_Q4_0, TILED);
}
/* Scales are converted by the device, and values are part of the keys. */
TEST(attend_within_keys) {
    check_attention("matrix", 2, GGL_Q4_0, FEW);
}

/* --- values in integers ----------------------------------------------------------------------- */

/* Attention of 4 heads to 70 positions, in batches of 5 tokens; values have two blocks. */
enum { HEADS = 4, TOKENS = 70, AT_ONCE = 5, KEY = 32, VALUE = 64, LARGE = 67, NONE = 69 };

typedef struct numbers {
    float q[TOKENS][HEADS][KEY], k[TOKENS][KEY], v[TOKENS][VALUE];
    double scale[TOKENS][VALUE / 32], code[TOKENS][VALUE];
} numbers;

/* Draws numbers. Scores are multiples of 1/64, which f32 adds exactly. A position in 16 has a value 127 times as large as others: beside it, smaller weights are rounded to few bits
 * or to 0. Position LARGE is still larger, and NONE has a NaN. Those before must not be affected. */
static void draw(numbers *x, ggl_type type) {
    const ggl_type_info *t = ggl_type_get(type), *f16 = ggl_type_get(GGL_F16);
    uint64_t seed = 5;
    for (int p = 0; p < TOKENS; p++) {
        uint8_t bytes[VALUE * 2];
        for (int i = 0; i < HEADS * KEY; i++)
            x->q[p][i / KEY][i % KEY] = rintf(8 * test_random_float(&seed)) / 8;
        for (int i = 0; i < KEY; i++)
            x->k[p][i] = rintf(16 * test_random_float(&seed)) / 8;
        for (int i = 0; i < VALUE; i++)
            x->v[p][i] = test_random_float(&seed) * (p == LARGE ? 1e4f : p % 16 ? 1 : 127);
        t->from_float(x->v[p], bytes, VALUE);
        for (int b = 0; b < VALUE / 32; b++) {
            float scale, y[32];
            const uint8_t *block = bytes + (size_t)b * t->size;
            f16->to_float(block, &scale, 1);
            t->to_float(block, y, 32);
            x->scale[p][b] = scale;
            for (int i = 0; i < 32; i++)
                x->code[p][32 * b + i] = scale != 0 ? rint((double)y[i] / scale) : 0;
        }
    }
    x->v[NONE][40] = NAN;
    x->scale[NONE][1] = NAN;
}

/* The score of a key, as the graph below computes it. */
static double score(const numbers *x, int token, int head, int p) {
    double s = 0;
    for (int i = 0; i < KEY; i++)
        s += (double)x->q[token][head][i] * x->k[p][i];
    return s;
}

/* Returns element i of a page's sum by docs/numeric.md, section 6, step 2: weights are rounded to units of the largest scale
 * that the token sees. `top` is the page's largest score, and *total becomes the sum of the weights. */
static double page_sum(const numbers *x, int token, int head, int first, int i, double top,
                       double *total) {
    const int end = first + 64 < token + 1 ? first + 64 : token + 1;
    double t = 0, sum = 0;
    for (int p = first; p < end; p++)
        t = isnan(x->scale[p][i / 32]) ? NAN : fmax(t, fabs(x->scale[p][i / 32]));
    for (int p = first; p < end; p++) {
        const double e = exp(score(x, token, head, p) - top);
        sum += rint(e * x->scale[p][i / 32] * 16256 / t) * x->code[p][i];
        *total += e;
    }
    return sum * t / 16256;
}

static double expected(const numbers *x, int token, int head, int i) {
    double sum = 0, total = 0;
    for (int first = 0; first <= token; first += 64) {
        double top = -INFINITY, all = 0;
        for (int p = first; p < first + 64 && p <= token; p++)
            top = fmax(top, score(x, token, head, p));
        sum += exp(top) * page_sum(x, token, head, first, i, top, &all);
        total += exp(top) * all;
    }
    return sum / total;
}

static ggl_graph *attention(ggl_type type) {
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = AT_ONCE;
    p.type_k = GGL_F16;
    p.type_v = type;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *kv[] = {ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){KEY, 1}, true),
                        ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){VALUE, 1}, true)};
    ggl_tensor *src[4] = {ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){KEY, HEADS}, true),
                          ggl_graph_op(g, GGL_OP_CACHE, kv, 2, NULL, 0)};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 4, (double[]){1, NAN, NAN}, 3));
    return g;
}

/* Runs AT_ONCE tokens from `first` on, and compares their results: within a third of what one weight changes that is rounded
 * to the next number, while sums in floats differ by several. */
static void check_tokens(ggl_sched *s, const numbers *x, int first) {
    int32_t pos[AT_ONCE], slot[AT_ONCE] = {0};
    ggl_error err = {0};
    for (int i = 0; i < AT_ONCE; i++)
        pos[i] = first + i;
    REQUIRE_OK(ggl_sched_set(s, "pos", pos, sizeof pos, AT_ONCE, &err), &err);
    REQUIRE_OK(ggl_sched_set(s, "slot", slot, sizeof slot, AT_ONCE, &err), &err);
    REQUIRE_OK(ggl_sched_set(s, "q", x->q[first], AT_ONCE * sizeof *x->q, AT_ONCE, &err), &err);
    REQUIRE_OK(ggl_sched_set(s, "k", x->k[first], AT_ONCE * sizeof *x->k, AT_ONCE, &err), &err);
    REQUIRE_OK(ggl_sched_set(s, "v", x->v[first], AT_ONCE * sizeof *x->v, AT_ONCE, &err), &err);
    REQUIRE_OK(ggl_sched_run(s, AT_ONCE, NULL, 0, &err), &err);
    const float *y = ggl_sched_output(s, 0);
    for (int token = first; token < first + AT_ONCE; token++)
        for (int i = 0; i < HEADS * VALUE; i++, y++) {
            const double want = expected(x, token, i / VALUE, i % VALUE),
                         bound = 0.3 * (token < LARGE ? 127 : 1e4) / 16256;
            CHECK_MSG(isnan(want) ? isnan(*y) : fabs(*y - want) <= bound,
                      "token %d, element %d: %g, not %g", token, i, (double)*y, want);
        }
}

static void check_values(const char *mask, ggl_type type) {
    static numbers x;
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_backend *b = open_masked(mask);
    if (!b)
        return;
    draw(&x, type);
    ggl_graph *g = attention(type);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    if (CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err))
        for (int first = 0; first < TOKENS; first += AT_ONCE)
            check_tokens(s, &x, first);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

TEST(values_of_q8_0) {
    check_values("matrix,half", GGL_Q8_0);
}
TEST(values_of_q4_0) {
    check_values("matrix", GGL_Q4_0);
}
