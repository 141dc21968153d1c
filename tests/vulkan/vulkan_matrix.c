/* vulkan.matrix: products on matrix units (linear_matrix.comp), whether or not the device is software that
 * emulates them. Their sums of whole numbers are exact, and what columns are rounded to has a formula here;
 * other products are held to the reference by the bound of f16. Skipped without VK_KHR_cooperative_matrix. */
#include <math.h>

#include "conform/case.h"
#include "ggl/sched.h"
#include "matrix.h"
#include "vulkan_test.h"

enum { N_TYPES = GGL_TYPE_COUNT - 2 /* weights, not i32 and f64: variants of a form */ };

/* Weights and columns are rounded to 11 bits. Relative to the typical size of a result. */
#define OF_HALVES 2e-3

static ggl_backend *open_forced(const char *force, const char *mask) {
    setenv("GGL_VULKAN_FORCE", force, 1);
    ggl_backend *b = vulkan_open(mask);
    if (!b || strstr(b->description, " matrix"))
        return b;
    printf("skipped: %s has no matrix units for f16 (VK_KHR_cooperative_matrix)\n", b->description);
    test_skipped = true;
    ggl_backend_close(b);
    return NULL;
}

static ggl_backend *open_matrix(void) {
    return open_forced("matrix", NULL);
}

/* --- products of given numbers ---------------------------------------------------------------- */

typedef struct product {
    int k, rows, n; /* length of a row, rows, columns */
    ggl_type type;  /* of the weights */
    const float *w, *x;
    const float *residual; /* added to the result; NULL: none */
} product;

/* Computes a product on a backend; free() the result. */
static float *run(ggl_backend *b, const product *p) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    const size_t n = (size_t)p->n, size = n * (size_t)p->rows * sizeof(float);
    float *y = calloc(1, size);
    void *w = malloc(ggl_row_size(p->type, p->k) * (size_t)p->rows);
    ggl_type_get(p->type)->from_float(p->w, w, (int64_t)p->k * p->rows);
    ggl_graph_params gp = ggl_graph_default();
    gp.n_batch = p->n;
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){p->k}, true);
    ggl_tensor *y_of =
        ggl_linear(g, x, ggl_graph_weight(g, "w", p->type, 2, (int64_t[]){p->k, p->rows}, w), NULL);
    if (p->residual)
        y_of = ggl_binary(g, GGL_OP_ADD, y_of,
                          ggl_graph_input(g, "r", GGL_F32, 1, (int64_t[]){p->rows}, true));
    ggl_graph_output(g, "y", y_of);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok = CHECK_OK(ggl_graph_finish(g, &err), &err) &&
              CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
              CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
              CHECK_OK(ggl_sched_set(s, "x", p->x, n * (size_t)p->k * 4, p->n, &err), &err);
    if (ok && p->residual)
        ok = CHECK_OK(ggl_sched_set(s, "r", p->residual, size, p->n, &err), &err);
    if (ok && CHECK_OK(ggl_sched_run(s, p->n, NULL, 0, &err), &err))
        memcpy(y, ggl_sched_output(s, 0), size);
    ggl_sched_free(s);
    ggl_graph_free(g);
    free(w);
    return y;
}

/* Returns n whole numbers from -most to most; free() them. */
static float *whole_numbers(int n, int most, uint64_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = rintf(test_random_float(&seed) * (float)most);
    return x;
}

/* Each element of a product of whole numbers of that shape is right to the last bit. */
static void check_whole(ggl_backend *b, int k, int rows, int n) {
    float *w = whole_numbers(k * rows, 8, 3), *x = whole_numbers(k * n, 100, 5);
    const product p = {.k = k, .rows = rows, .n = n, .type = GGL_F16, .w = w, .x = x};
    float *y = run(b, &p);
    int wrong = 0;
    for (int c = 0; c < n; c++)
        for (int r = 0; r < rows; r++) {
            double want = 0;
            for (int i = 0; i < k; i++)
                want += (double)w[r * k + i] * (double)x[c * k + i];
            wrong += (double)y[c * rows + r] != want;
        }
    CHECK_MSG(wrong == 0, "%d x %d by %d columns: %d elements are wrong", rows, k, n, wrong);
    free(w);
    free(x);
    free(y);
}

/* Tiles of each width, whole and in part, and rows that end anywhere. */
TEST(whole_numbers) {
    static const int shape[][3] = {{32, 64, 9},  {37, 70, 16}, {64, 5, 17},
                                   {96, 65, 40}, {32, 64, 70}, {64, 130, 200}};
    ggl_backend *b = open_matrix();
    for (size_t i = 0; b && i < sizeof shape / sizeof *shape; i++)
        check_whole(b, shape[i][0], shape[i][1], shape[i][2]);
    ggl_backend_close(b);
}

/* A row is divided among workgroups if there are few tiles for the device's units. */
TEST(rows_in_slices) {
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    ((vk_backend *)b)->limits.units = 64;
    check_whole(b, 1024, 70, 12);
    check_whole(b, 1056, 20, 20);
    ggl_backend_close(b);
}

/* Weights of more bytes than a binding can have; then columns of f16 that are too large for one, which
 * other shaders multiply. */
TEST(weights_in_parts) {
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    ((vk_backend *)b)->limits.max_range = 16384;
    check_whole(b, 256, 70, 12);
    check_whole(b, 1024, 20, 12);
    ggl_backend_close(b);
}

/* --- columns of any size ---------------------------------------------------------------------- */

enum { IDENTITY = 64, COLUMNS = 12 };

/* Returns x, divided by a power of two, rounded to 11 bits, or fewer near 0, and multiplied again. */
static double rounded(double x, int exponent) {
    const double q = ldexp(x, -exponent), a = fabs(q);
    const double unit = a < 0x1p-14 ? 0x1p-24 : ldexp(1, ilogb(a) - 10);
    return ldexp(nearbyint(q / unit) * unit, exponent);
}

/* What element i of a column becomes by the identity (docs/numeric.md, section 9). */
static double identity_of(const float *x, int i) {
    float most = 0;
    for (int k = 0; k < IDENTITY; k++) {
        if (!isfinite(x[k]) && k != i)
            return NAN; /* zero times infinity */
        most = isfinite(x[k]) ? fmaxf(most, fabsf(x[k])) : most;
    }
    const int e = most > 0x1p-100f ? ilogbf(most) : -100;
    return isfinite(x[i]) ? rounded((double)x[i], e - 14) : (double)x[i];
}

TEST(columns_of_any_size) {
    static const float size[COLUMNS] = {1,      70000, 1e6f, 3e38f,    1e-3f, 1e-20f,
                                        1e-32f, 65519, 1,    INFINITY, NAN,   0};
    static float w[IDENTITY * IDENTITY], x[COLUMNS * IDENTITY];
    uint64_t seed = 11;
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    for (int i = 0; i < IDENTITY; i++)
        w[i * IDENTITY + i] = 1;
    for (int i = 0; i < COLUMNS * IDENTITY; i++) {
        const float most = size[i / IDENTITY];
        x[i] = test_random_float(&seed) * (isfinite(most) ? most : 1);
    }
    for (int c = 0; c < COLUMNS; c++)
        x[c * IDENTITY + c] = size[c];
    x[8 * IDENTITY] = 1e9f; /* beside which the others of that column are small */
    const product p = {IDENTITY, IDENTITY, COLUMNS, GGL_F16, w, x, NULL};
    float *y = run(b, &p);
    for (int i = 0; i < COLUMNS * IDENTITY; i++) {
        const double want = identity_of(x + i / IDENTITY * IDENTITY, i % IDENTITY);
        CHECK_MSG(isnan(want) ? isnan(y[i]) : (double)y[i] == want,
                  "column %d, element %d: %a becomes %a; expected %a", i / IDENTITY, i % IDENTITY,
                  (double)x[i], (double)y[i], want);
    }
    free(y);
    ggl_backend_close(b);
}

/* --- all types, experts ------------------------------------------------------------------------- */

static void check_variant(const conform_case *info, int v, ggl_backend *b) {
    const ggl_type type = conform_variant(info, v).type;
    conform_case strict = *info;
    conform_result r;
    if (!vulkan_decodes(type))
        return;
    strict.bound = type == GGL_F16 ? OF_HALVES : 1e-5;
    strict.bound_bf16 = 1e-5;
    strict.bound_quantized = OF_HALVES;
    conform_outcome o = conform_check(&strict, v, b, &r);
    CHECK_MSG(o == CONFORM_RIGHT, "%s, %s: %s", info->name, r.form_text, r.text);
}

static void check_types(ggl_backend *b) {
    for (int v = 2 * N_TYPES + vulkan_first(1); b && v < 3 * N_TYPES; v += vulkan_each())
        check_variant(&conform_products.cases[0], v, b);
    ggl_backend_close(b);
}

/* The bounds are of f16 and, for few columns, of floats: columns must not be rounded to bytes, as they are on devices that
 * have fast integer dot products. */
TEST(all_types) {
    check_types(open_forced("matrix", "idot"));
}
TEST(all_types_as_in_the_file) {
    check_types(open_forced("matrix", "idot,repack"));
}
TEST(experts) {
    ggl_backend *b = open_forced("matrix", "idot");
    for (int v = vulkan_first(1); b && v < conform_n_variants(&conform_products.cases[2]);
         v += vulkan_each())
        check_variant(&conform_products.cases[2], v, b);
    ggl_backend_close(b);
}

/* Columns that were rounded to bytes: what that changes is within the bound of quantized types. */
TEST(columns_of_codes) {
    ggl_backend *b = open_forced("matrix,idot", NULL);
    const conform_case *info = &conform_products.cases[0];
    conform_result r;
    if (b && !strstr(b->description, " idot")) {
        ggl_backend_close(b);
        SKIP("the device has no integer dot products");
    }
    for (int v = 2 * N_TYPES + vulkan_first(1); b && v < 3 * N_TYPES; v += vulkan_each())
        if (ggl_type_get(conform_variant(info, v).type)->quantized &&
            vulkan_decodes(conform_variant(info, v).type))
            CHECK_MSG(conform_check(info, v, b, &r) == CONFORM_RIGHT, "%s: %s", r.form_text,
                      r.text);
    ggl_backend_close(b);
}

/* --- which way is taken ------------------------------------------------------------------------- */

/* Random numbers; free() them. */
static float *numbers(int n, uint64_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = test_random_float(&seed);
    return x;
}

/* True if a product has the same bits on both backends. */
static bool is_same(ggl_backend *a, ggl_backend *b, const product *p) {
    float *y[2] = {run(a, p), run(b, p)};
    const bool same = memcmp(y[0], y[1], (size_t)(p->rows * p->n) * sizeof(float)) == 0;
    free(y[0]);
    free(y[1]);
    return same;
}

/* More than 8 columns, and weights of f16 or quantized ones. */
TEST(when_matrix_units_multiply) {
    static const struct {
        ggl_type type;
        int n;
        bool same; /* as without */
    } way[] = {{GGL_F32, 12, true}, {GGL_BF16, 12, true}, {GGL_F16, 8, true},
               {GGL_F16, 9, false}, {GGL_Q8_0, 8, true},  {GGL_Q8_0, 9, false}};
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    ggl_backend *without = vulkan_open("matrix");
    REQUIRE(without);
    CHECK(!strstr(without->description, " matrix"));
    float *w = numbers(64 * 40, 3), *x = numbers(64 * 12, 5);
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        const product p = {64, 40, way[i].n, way[i].type, w, x, NULL};
        CHECK_MSG(is_same(b, without, &p) == way[i].same, "%s, %d columns",
                  ggl_type_get(way[i].type)->name, way[i].n);
    }
    free(w);
    free(x);
    ggl_backend_close(without);
    ggl_backend_close(b);
}

/* A product and a residual have the bits of two steps, also if rows are in slices. */
TEST(with_a_residual) {
    ggl_backend *b = open_matrix();
    if (!b)
        return;
    ggl_backend *apart = vulkan_open("fuse");
    REQUIRE(apart);
    float *w = numbers(1024 * 40, 3), *x = numbers(1024 * 20, 5), *r = numbers(40 * 20, 7);
    for (int units = 4; units <= 64; units += 60) {
        ((vk_backend *)b)->limits.units = ((vk_backend *)apart)->limits.units = (uint32_t)units;
        const product p = {1024, 40, 20, GGL_Q4_0, w, x, r};
        CHECK(is_same(b, apart, &p));
    }
    free(w);
    free(x);
    free(r);
    ggl_backend_close(apart);
    ggl_backend_close(b);
}

/* --- the choice, without a device --------------------------------------------------------------- */

#define SIZE(m, n, k, in, sum, of)                                                                 \
    {                                                                                              \
        .MSize = m, .NSize = n, .KSize = k, .AType = VK_COMPONENT_TYPE_##in##_KHR,                 \
        .BType = VK_COMPONENT_TYPE_##in##_KHR, .CType = VK_COMPONENT_TYPE_##sum##_KHR,             \
        .ResultType = VK_COMPONENT_TYPE_##sum##_KHR, .scope = VK_SCOPE_##of##_KHR                  \
    }

/* The largest that is added up as f32 and divides a subgroup's part of a tile. */
TEST(sizes_of_matrices) {
    static const VkCooperativeMatrixPropertiesKHR list[] = {
        SIZE(8, 8, 8, FLOAT16, FLOAT32, SUBGROUP),    SIZE(16, 16, 32, FLOAT16, FLOAT16, SUBGROUP),
        SIZE(16, 16, 32, FLOAT32, FLOAT32, SUBGROUP), SIZE(32, 32, 16, FLOAT16, FLOAT32, WORKGROUP),
        SIZE(16, 8, 16, FLOAT16, FLOAT32, SUBGROUP),  SIZE(32, 32, 16, FLOAT16, FLOAT32, SUBGROUP),
        SIZE(12, 16, 32, FLOAT16, FLOAT32, SUBGROUP), SIZE(16, 16, 64, FLOAT16, FLOAT32, SUBGROUP),
        SIZE(16, 16, 16, FLOAT16, FLOAT32, SUBGROUP),
    };
    vk_matrix m = {0};
    CHECK(ggl_vk_choose_matrix(list, 9, &m) && m.m == 16 && m.n == 16 && m.k == 16);
    CHECK(ggl_vk_choose_matrix(list, 8, &m) && m.m == 16 && m.n == 8 && m.k == 16);
    CHECK(ggl_vk_choose_matrix(list, 4, &m) && m.m == 8 && m.n == 8 && m.k == 8);
    CHECK(!ggl_vk_choose_matrix(list + 1, 3, &m));
    CHECK(!ggl_vk_choose_matrix(NULL, 0, &m));
}

static int width(uint32_t shared_size, int64_t n) {
    const vk_limits l = {.shared_size = shared_size};
    const vk_matrix_tile t = ggl_vk_matrix_tile(&l, n);
    CHECK_INT(t.down, t.cols <= 32 ? 4 : 2);
    return (int)t.cols;
}

/* Few columns of a tile stay empty, and its shared memory, 144 bytes for a row or column and 16 more for a column, has room. */
TEST(widths_of_tiles) {
    static const struct {
        int n, wide, narrow; /* with 48 KiB of shared memory, and with 16 */
    } of[] = {{9, 16, 16},   {16, 16, 16},   {17, 32, 32},   {33, 64, 16},  {65, 128, 16},
              {129, 64, 32}, {193, 128, 32}, {512, 128, 32}, {576, 128, 32}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        CHECK_INT(width(48 << 10, of[i].n), of[i].wide);
        CHECK_INT(width(16 << 10, of[i].n), of[i].narrow);
    }
    CHECK_INT(width(29696, 512), 128);
    CHECK_INT(width(29695, 512), 64);
}
