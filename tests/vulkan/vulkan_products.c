/* vulkan.products: products, rotations, attention and recurrences against the reference. Weights
 * are decoded and, without integer dot products and matrix units, activations not rounded, so that
 * products of all types are held to the bound of floats. vulkan_idot.c and vulkan_matrix.c have the
 * others. */
#include <math.h>

#include "conform/case.h"
#include "ggl/internal/fold.h"
#include "ggl/sched.h"
#include "vulkan.h"
#include "vulkan_test.h"

enum { N_TYPES = GGL_TYPE_COUNT - 2 /* weights, not i32 and f64: variants of a form */ };

static void check_variant(const conform_case *info, int v, ggl_backend *b) {
    conform_case strict = *info;
    conform_result r;
    strict.bound = info->bound > 0 ? 1e-5 : 0;
    strict.bound_bf16 = strict.bound_quantized = 0;
    conform_outcome o = conform_check(&strict, v, b, &r);
    const bool only_cpu =
        !vulkan_decodes(r.form.type) || strstr(r.text, "attention to chosen rows is not there");
    CHECK_MSG(o == CONFORM_RIGHT || (o == CONFORM_REFUSED && only_cpu), "%s, %s: %s", info->name,
              r.form_text, r.text);
}

/* Without some features, "idot,matrix" being one. Variants first, first + step, .. below last; 0: all. */
static void check_some(const conform_case *info, const char *mask, int first, int step, int last) {
    if (vulkan_refuses(info->op))
        return;
    ggl_backend *b = vulkan_open(mask);
    const int n = conform_n_variants(info);
    for (int v = first + vulkan_first(step); b && v < (last > 0 && last < n ? last : n);
         v += step * vulkan_each())
        check_variant(info, v, b);
    ggl_backend_close(b);
}

static void check_kind(const conform_kind *k) {
    for (int i = 0; i < k->n_cases; i++)
        check_some(&k->cases[i], "idot,matrix", 0, 1, 0);
}

/* A pipeline for each type takes some time to be made, so not all forms have all types. */
TEST(few_columns) {
    check_some(&conform_products.cases[0], "idot,matrix", 0, 1, N_TYPES);
}
TEST(few_columns_without_subgroups) {
    check_some(&conform_products.cases[0], "idot,matrix,subgroup", 0, 3, 2 * N_TYPES);
}
TEST(many_columns) {
    check_some(&conform_products.cases[0], "idot,matrix", 5 * N_TYPES, 1, 6 * N_TYPES);
}
TEST(few_columns_as_in_the_file) {
    check_some(&conform_products.cases[0], "idot,matrix,repack", 0, 1, N_TYPES);
}
TEST(many_columns_as_in_the_file) {
    check_some(&conform_products.cases[0], "idot,matrix,repack", 5 * N_TYPES, 2, 6 * N_TYPES);
}
TEST(rows_in_slices) {
    check_some(&conform_products.cases[0], "idot,matrix", 9 * N_TYPES, 2, 10 * N_TYPES);
}

static void (*real_dispatch)(VkCommandBuffer, uint32_t, uint32_t, uint32_t);
static uint32_t first_groups; /* workgroups of the first dispatch; 0: there was none */

static void dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    first_groups = first_groups ? first_groups : x;
    real_dispatch(commands, x, y, z);
}

/* Rows of x are read four numbers at a time, if all begin and end so, and a lane takes eight. */
TEST(rows_that_end_early) {
    check_some(&conform_products.cases[4], "idot,matrix", 0, 1, 0);
    check_some(&conform_products.cases[5], "idot,matrix", 0, 1, 0);
    check_some(&conform_products.cases[4], "idot,matrix,subgroup", 0, 1, 0);
}

/* Returns the workgroups of a product in that form, of f32, on a device of so many units. */
static int groups_of(int form, uint32_t units) {
    ggl_backend *b = vulkan_open("idot,matrix");
    if (!b)
        return 0;
    vk_backend *v = (vk_backend *)b;
    real_dispatch = v->f.CmdDispatch;
    v->f.CmdDispatch = dispatch;
    v->limits.units = units;
    first_groups = 0;
    check_variant(&conform_products.cases[0], form * N_TYPES, b);
    ggl_backend_close(b);
    return (int)first_groups;
}

/* Returns the workgroups of the product in form 8, of 64 rows, if a lane has one row: 64 invocations are as many rows as the
 * lanes of a row allow. */
static int groups_of_single_rows(const vk_backend *b) {
    enum { ROWS = 64, INVOCATIONS = 64, LANES = 16 /* without subgroups */ };
    const int lanes = b->features.subgroup ? (int)b->limits.subgroup_size : LANES;
    return lanes < INVOCATIONS ? ROWS / (INVOCATIONS / lanes) : ROWS;
}

/* How a product is divided depends on the device's units, each of which gets 4 workgroups. */
TEST(units) {
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return;
    const int single = groups_of_single_rows((const vk_backend *)b);
    ggl_backend_close(b);
    CHECK_INT(groups_of(9, 1), 2 * 2); /* tiles and slices of their rows */
    CHECK_INT(groups_of(9, 2), 2 * 4);
    CHECK_INT(groups_of(9, 64), 2 * 8); /* a slice has at least 256 elements */
    /* up to 4 rows for each lane, if that leaves 4 workgroups */
    CHECK_INT(groups_of(8, 1), single > 16 ? single / 4 : 4);
    CHECK_INT(groups_of(8, 64), single);
}
TEST(linear_forms) {
    check_some(&conform_products.cases[0], "idot,matrix", N_TYPES, 4, 0);
    for (int i = 1; i < conform_products.n_cases; i++)
        check_some(&conform_products.cases[i], "idot,matrix", 0, 1, 0);
}
TEST(picks) {
    for (int i = 0; i < conform_moves.n_cases; i++)
        if (conform_moves.cases[i].op == GGL_OP_PICK)
            check_some(&conform_moves.cases[i], "idot,matrix", 0, 1, 0);
}
TEST(rope_and_attend) {
    check_kind(&conform_attention);
}
TEST(attend_kept) { /* each type of keys, and of values, in each form; not each pair */
    check_some(&conform_kept.cases[0], "idot,matrix", 0, 4, 0);
}
TEST(attend_spans) {
    check_kind(&conform_spans);
}

/* As devices that wait for loads do it, and that convert f16 themselves: with many loads begun before
 * the first is used. Four types of rows, and the forms with several spans. */
TEST(attend_ahead) {
    setenv("GGL_VULKAN_FORCE", "ahead,half", 1);
    check_some(&conform_kept.cases[0], "idot,matrix", 0, 7, 0);
    check_kind(&conform_spans);
}

/* The same bits, wherever the pages are that the rows lie in. */
TEST(attend_in_any_pages) {
    ggl_backend *b = vulkan_open(NULL);
    const conform_case *info = &conform_kept.cases[0];
    for (int v = vulkan_first(7); b && v < conform_n_variants(info); v += 7 * vulkan_each()) {
        conform_output out[2] = {{0}};
        conform_form f = conform_variant(info, v);
        ggl_error err = {0};
        for (int k = 0; k < 2; k++) {
            f.pages = (uint64_t)k * f.seed;
            CHECK_OK(conform_run(info, &f, b, &out[k], &err), &err);
        }
        const size_t size = (size_t)(out[0].n * out[0].row) * sizeof(float);
        CHECK_MSG(out[0].y && out[1].y && memcmp(out[0].y, out[1].y, size) == 0,
                  "%s: other bits with pages in another order", out[0].text);
        conform_output_fini(&out[0]);
        conform_output_fini(&out[1]);
    }
    ggl_backend_close(b);
}
TEST(recurrences) {
    check_kind(&conform_recurrences);
}

/* Weights of more bytes than a binding can have, as on a device whose bindings are small. */
TEST(weights_in_parts) {
    ggl_backend *b = vulkan_open("idot,matrix");
    if (!b)
        return;
    ((vk_backend *)b)->limits.max_range = 16384;
    for (int form = 0; form < 6; form++)
        for (int type = 0; type < N_TYPES; type += 8)
            check_variant(&conform_products.cases[0], form * N_TYPES + type, b);
    for (int v = 0; v < 25; v += 4)
        check_variant(&conform_products.cases[2], v, b);
    for (int i = 0; i < conform_moves.n_cases; i++)
        if (conform_moves.cases[i].op == GGL_OP_PICK)
            for (int v = 0; v < conform_n_variants(&conform_moves.cases[i]); v += 5)
                check_variant(&conform_moves.cases[i], v, b);
    ggl_backend_close(b);
}

/* --- graphs of their own -------------------------------------------------------------------- */

typedef struct input {
    const char *name;
    const void *data;
    size_t size; /* bytes for each element of the batch */
} input;

static ggl_sched *start(ggl_graph *g, ggl_backend *b, ggl_backend *reference) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    const ggl_sched_params params = {.size = sizeof params, .backend = &b, .n_backends = 1};
    if (CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_graph_fold(g, reference, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g, &params, &err), &err))
        CHECK_OK(ggl_sched_alloc(s, &err), &err);
    return s;
}

static bool eval(ggl_sched *s, const input *in, int n_in, int64_t n) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    for (int i = 0; i < n_in && st == GGL_OK; i++)
        st = ggl_sched_set(s, in[i].name, in[i].data, (size_t)n * in[i].size, n, &err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, n, NULL, 0, &err);
    return CHECK_OK(st, &err);
}

static void open_both(ggl_backend *both[2], const char *mask) {
    ggl_error err = {0};
    both[0] = vulkan_open(mask);
    REQUIRE_OK(ggl_backend_open(&both[1], "reference", NULL, &err), &err);
}

static void close_both(ggl_backend *both[2]) {
    ggl_backend_close(both[0]);
    ggl_backend_close(both[1]);
}

/* NaN where, and only where, the reference has it. */
static void check_same(const char *what, const float *got, const float *want, size_t n,
                       double bound) {
    for (size_t i = 0; i < n; i++)
        if (!(isnan(want[i]) ? isnan(got[i]) : fabs((double)got[i] - (double)want[i]) <= bound)) {
            (void)TEST_SAY("%s: element %zu is %.9g, the reference has %.9g", what, i,
                           (double)got[i], (double)want[i]);
            return;
        }
}

/* --- rotations far from the beginning --------------------------------------------------------- */

enum { ROPE_PAIRS = 32, FAR = 6 };

static ggl_sched *start_rope(ggl_graph *g, ggl_backend *b, ggl_backend *reference) {
    double f[ROPE_PAIRS];
    const int64_t pairs = ROPE_PAIRS, row = 2 * ROPE_PAIRS;
    for (int i = 0; i < ROPE_PAIRS; i++)
        f[i] = pow(10000, -i / (double)ROPE_PAIRS);
    f[ROPE_PAIRS - 1] = 0;
    f[ROPE_PAIRS - 2] = -2.5;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &row, true);
    ggl_tensor *src[2] = {x, ggl_graph_const(g, 1, &pairs, f)};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ROPE_HALF, src, 2, NULL, 0));
    return start(g, b, reference);
}

TEST(rope_far) {
    static const int32_t pos[FAR] = {0, 1, 131071, 999983, 16777217, 2000000011};
    float x[FAR * 2 * ROPE_PAIRS];
    ggl_backend *both[2];
    ggl_graph *g[2] = {ggl_graph_new(NULL), ggl_graph_new(NULL)};
    ggl_sched *s[2] = {NULL};
    for (int i = 0; i < FAR * 2 * ROPE_PAIRS; i++)
        x[i] = (float)(i % 7) / 7 - 0.4f;
    const input in[] = {{"pos", pos, 4}, {"x", x, sizeof x / FAR}};
    open_both(both, NULL);
    bool ok = both[0] != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        s[i] = start_rope(g[i], both[i], both[1]);
        ok = s[i] && eval(s[i], in, 2, FAR);
    }
    if (ok)
        check_same("rope", ggl_sched_output(s[0], 0), ggl_sched_output(s[1], 0),
                   sizeof x / sizeof(float), 4e-7);
    for (int i = 0; i < 2; i++) {
        ggl_sched_free(s[i]);
        ggl_graph_free(g[i]);
    }
    close_both(both);
}

/* --- what a cache keeps ------------------------------------------------------------------------
 */

enum { KEY = 64, VALUE_DIMS = 32, HEADS = 3, TOKENS = 70, PIECE = 33 };

/* Numbers that rounding must get right, among others; values that are none only where floats are
 * kept, as quantizing makes NaNs of either sign. */
static float kept_number(int i, bool any, uint64_t *seed) {
    static const float special[] = {0.0f,    -0.0f,        65519.996f,      65520.0f, 1e30f,
                                    6.1e-5f, 2.98023e-08f, 3.0f / 16777216, 1e-41f,   -5.9e-8f,
                                    NAN,     INFINITY,     -INFINITY};
    const int n = sizeof special / sizeof *special;
    float x = test_random_float(seed) * 3;
    return any && i % 5 == 0 ? special[i / 5 % n] : x;
}

static void declare_cache(ggl_graph *g) {
    const int64_t k[] = {KEY, HEADS}, v[] = {VALUE_DIMS, HEADS};
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "k", GGL_F32, 2, k, true);
    ggl_tensor *src[2] = {x, ggl_graph_input(g, "v", GGL_F32, 2, v, true)};
    src[1] = ggl_graph_op(g, GGL_OP_CACHE, src, 2, NULL, 0);
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 2, NULL, 0));
}

static ggl_sched *start_cache(ggl_graph *g, ggl_backend *b, ggl_backend *reference) {
    declare_cache(g);
    return start(g, b, reference);
}

/* All that two sequences, whose tokens alternate, have left; free() it. */
static char *fill_cache(ggl_sched *s, bool any, size_t *size) {
    ggl_error err = {0};
    static float k[TOKENS][KEY * HEADS], v[TOKENS][VALUE_DIMS * HEADS];
    int32_t pos[TOKENS], slot[TOKENS];
    uint64_t seed = 5;
    for (int i = 0; i < TOKENS; i++) {
        pos[i] = i / 2;
        slot[i] = i % 2;
        for (int e = 0; e < KEY * HEADS; e++)
            k[i][e] = kept_number(e + i, any, &seed);
        for (int e = 0; e < VALUE_DIMS * HEADS; e++)
            v[i][e] = kept_number(e + i, any, &seed);
    }
    bool ok = true;
    for (int i = 0; i < TOKENS && ok; i += PIECE) {
        const input in[] = {{"pos", pos + i, 4},
                            {"slot", slot + i, 4},
                            {"k", k + i, sizeof *k},
                            {"v", v + i, sizeof *v}};
        ok = eval(s, in, 4, TOKENS - i < PIECE ? TOKENS - i : PIECE);
    }
    const size_t each = ggl_sched_slot_size(s, TOKENS / 2, false);
    char *out = calloc(2, each);
    *size = 2 * each;
    for (int i = 0; i < 2 && ok; i++)
        ok = CHECK_OK(ggl_sched_save_slot(s, i, TOKENS / 2, false, out + (size_t)i * each, &err),
                      &err);
    return out;
}

static ggl_graph_params cache_params(ggl_type type) {
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = 128;
    p.n_slots = 2;
    p.n_batch = PIECE;
    p.type_k = p.type_v = type;
    return p;
}

static void check_cache(ggl_backend *both[2], ggl_type type) {
    const bool any = !ggl_type_get(type)->quantized;
    const ggl_graph_params p = cache_params(type);
    char *kept[2] = {NULL};
    size_t size = 0;
    for (int i = 0; i < 2; i++) {
        ggl_graph *g = ggl_graph_new(&p);
        ggl_sched *s = start_cache(g, both[i], both[1]);
        if (s)
            kept[i] = fill_cache(s, any, &size);
        ggl_sched_free(s);
        ggl_graph_free(g);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < size && kept[0] && kept[1]; i++)
        wrong += kept[0][i] != kept[1][i];
    CHECK_MSG(wrong == 0, "a cache of %s: %zu of %zu bytes differ from ggl_store_put's",
              ggl_type_get(type)->name, wrong, size);
    free(kept[0]);
    free(kept[1]);
}

static void check_caches(const char *mask) {
    static const ggl_type type[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    ggl_backend *both[2];
    open_both(both, mask);
    for (size_t i = 0; both[0] && i < sizeof type / sizeof *type; i++)
        check_cache(both, type[i]);
    close_both(both);
}

TEST(cache_bits) {
    check_caches(NULL);
}
TEST(cache_bits_in_words) { /* that tokens share */
    check_caches("storage16,storage8");
}

/* GGL_OK, or why a schedule cannot be had. */
static ggl_status try_cache(const ggl_graph_params *p, ggl_backend *b, ggl_error *err) {
    ggl_graph *g = ggl_graph_new(p);
    ggl_sched *s = NULL;
    const ggl_sched_params params = {.size = sizeof params, .backend = &b, .n_backends = 1};
    declare_cache(g);
    ggl_status st = ggl_graph_finish(g, err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, g, &params, err);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return st;
}

/* The keys of two slots are 96 KiB of f16; what the error says helps. */
TEST(cache_larger_than_a_binding) {
    ggl_error err = {0};
    ggl_backend *b = vulkan_open("range"); /* bindings of 64 KiB */
    if (!b)
        return;
    const ggl_graph_params large = cache_params(GGL_F16);
    ggl_graph_params small = large;
    CHECK_INT(try_cache(&large, b, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "cache: 0.1 MiB in one buffer; this device supports at most 0.1 MiB");
    CHECK_HAS(err.msg,
              "fewer positions (a smaller context), fewer slots or a smaller type of cache");
    small.n_slots = 1;
    CHECK_OK(try_cache(&small, b, &err), &err);
    small = large;
    small.n_pos = 64;
    CHECK_OK(try_cache(&small, b, &err), &err);
    small = cache_params(GGL_Q8_0);
    CHECK_OK(try_cache(&small, b, &err), &err);
    ggl_backend_close(b);
}

/* --- rows that no query sees yet ----------------------------------------------------------------
 */

enum { SHARING = 8, ROW_DIMS = 16, AHEAD_TOKENS = 40 };

static ggl_sched *start_sharing(ggl_graph *g, ggl_backend *b, ggl_backend *reference) {
    const int64_t q[] = {ROW_DIMS, SHARING}, kv[] = {ROW_DIMS, 1};
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *src[2] = {ggl_graph_input(g, "k", GGL_F32, 2, kv, true),
                          ggl_graph_input(g, "v", GGL_F32, 2, kv, true)};
    src[1] = ggl_graph_op(g, GGL_OP_CACHE, src, 2, NULL, 0);
    src[0] = ggl_graph_input(g, "q", GGL_F32, 2, q, true);
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 2, NULL, 0));
    return start(g, b, reference);
}

/* The values of the last of n tokens are not finite, which the tokens before it must not notice:
 * eight heads of one token, that see the same positions, and tiles of several tokens. */
TEST(attend_before_values_that_are_none) {
    static float q[AHEAD_TOKENS * SHARING * ROW_DIMS], kv[AHEAD_TOKENS * ROW_DIMS],
        v[AHEAD_TOKENS * ROW_DIMS];
    static const int batch[] = {3, AHEAD_TOKENS};
    int32_t pos[AHEAD_TOKENS], slot[AHEAD_TOKENS] = {0};
    uint64_t seed = 3;
    ggl_backend *both[2];
    open_both(both, "matrix");
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        q[i] = test_random_float(&seed);
    for (int k = 0; both[0] && k < 2; k++) {
        const int n = batch[k];
        for (int i = 0; i < n * ROW_DIMS; i++) {
            kv[i] = test_random_float(&seed);
            v[i] = i < (n - 1) * ROW_DIMS ? kv[i] : i % 2 ? NAN : INFINITY;
            pos[i / ROW_DIMS] = i / ROW_DIMS;
        }
        const input in[] = {{"pos", pos, 4},
                            {"slot", slot, 4},
                            {"q", q, SHARING * ROW_DIMS * sizeof *q},
                            {"k", kv, ROW_DIMS * sizeof *kv},
                            {"v", v, ROW_DIMS * sizeof *v}};
        ggl_graph *g[2] = {ggl_graph_new(NULL), ggl_graph_new(NULL)};
        ggl_sched *s[2] = {start_sharing(g[0], both[0], both[1]),
                           start_sharing(g[1], both[1], both[1])};
        if (s[0] && s[1] && eval(s[0], in, 5, n) && eval(s[1], in, 5, n)) {
            const size_t finite = (size_t)(n - 1) * SHARING * ROW_DIMS;
            const float *want = ggl_sched_output(s[1], 0);
            CHECK(isfinite(want[finite - 1]) && isnan(want[finite + 1]));
            check_same("attend", ggl_sched_output(s[0], 0), want, finite, 2e-5);
        }
        for (int i = 0; i < 2; i++) {
            ggl_sched_free(s[i]);
            ggl_graph_free(g[i]);
        }
    }
    close_both(both);
}

/* --- indices that point nowhere -----------------------------------------------------------------
 */

enum { IN = 32, OUT = 40, EXPERTS = 5, CHOSEN = 3, MOST = 60 };

static ggl_sched *start_experts(ggl_graph *g, ggl_backend *b, ggl_backend *reference,
                                const float *w) {
    const int64_t x_ne[] = {IN}, w_ne[] = {IN, OUT, EXPERTS}, i_ne[] = {CHOSEN};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, x_ne, true);
    ggl_tensor *index = ggl_graph_input(g, "index", GGL_I32, 1, i_ne, true);
    ggl_tensor *weight = ggl_graph_weight(g, "w", GGL_F32, 3, w_ne, w);
    ggl_graph_output(g, "y", ggl_linear(g, x, ggl_binary(g, GGL_OP_PICK, weight, index), NULL));
    return start(g, b, reference);
}

/* Few columns go one by one, many sorted by their expert. */
TEST(experts_that_are_none) {
    static float w[EXPERTS * OUT * IN], x[MOST * IN];
    int32_t index[MOST * CHOSEN];
    static const int n[] = {2, MOST};
    uint64_t seed = 9;
    ggl_backend *both[2];
    open_both(both, NULL);
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = test_random_float(&seed);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = test_random_float(&seed);
    for (int i = 0; i < MOST * CHOSEN; i++)
        index[i] = (i * 7 % 9) - 2; /* -2 .. 6 */
    index[0] = INT32_MAX;
    index[1] = INT32_MIN;
    const input in[] = {{"x", x, IN * sizeof *x}, {"index", index, CHOSEN * sizeof *index}};
    for (int k = 0; both[0] && k < 2; k++) {
        ggl_graph *g[2] = {ggl_graph_new(NULL), ggl_graph_new(NULL)};
        ggl_sched *s[2] = {start_experts(g[0], both[0], both[1], w),
                           start_experts(g[1], both[1], both[1], w)};
        if (s[0] && s[1] && eval(s[0], in, 2, n[k]) && eval(s[1], in, 2, n[k]))
            check_same("experts", ggl_sched_output(s[0], 0), ggl_sched_output(s[1], 0),
                       (size_t)n[k] * CHOSEN * OUT, 2e-5);
        for (int i = 0; i < 2; i++) {
            ggl_sched_free(s[i]);
            ggl_graph_free(g[i]);
        }
    }
    close_both(both);
}
