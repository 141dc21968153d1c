/* vulkan.groups: products of the same columns as one dispatch give the bits that they give as one
 * dispatch each, for few columns and for many. Weights are not imported, so that they lie in one
 * region, as those of a file do. */
#include "ggl/alloc.h"
#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"
#include "dispatches.h"
#include "vulkan_test.h"

enum { K = 256, MOST_BATCH = 20, N = 5, MOST_ROWS = 96, N_BATCHES = 8 };
enum {
    WIDEST = 128, /* subgroups */
    LONG_K = 32 * WIDEST,
    LONG_SUM = 3 * WIDEST,
    NEXT_ROWS = 32,
    SIZE = (LONG_SUM + NEXT_ROWS) * MOST_BATCH
};

/* The products: rows, and whether its weights have the other type. */
static const struct {
    const char *name;
    int rows;
    bool other;
} product[N] = {
    {"q", 96, false}, {"k", 33, false}, {"v", 32, true}, {"gate", 6, false}, {"up", 64, false}};

enum { N_EXPERTS = 4, N_CHOSEN = 2 };

static char weight[N][LONG_K * LONG_SUM * sizeof(float)]; /* the largest; or those of experts */
static float bias[N][MOST_ROWS];

static void fill(ggl_type type, ggl_type other) {
    uint64_t seed = 11;
    for (int i = 0; i < N; i++) {
        float row[K];
        const ggl_type t = product[i].other ? other : type;
        for (int r = 0; r < product[i].rows; r++) {
            for (int k = 0; k < K; k++)
                row[k] = test_random_float(&seed);
            ggl_type_get(t)->from_float(row, weight[i] + (size_t)r * ggl_row_size(t, K), K);
            bias[i][r] = test_random_float(&seed);
        }
    }
}

/* All results one after another, of columns that the device computes. */
static ggl_graph *graph_of(ggl_type type, ggl_type other, bool biased) {
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){K}, true), *all = NULL;
    x = ggl_unary(g, GGL_OP_TANH, x);
    for (int i = 0; i < N; i++) {
        const int64_t ne[2] = {K, product[i].rows};
        char name[16];
        snprintf(name, sizeof name, "%s.bias", product[i].name);
        ggl_tensor *w =
            ggl_graph_weight(g, product[i].name, product[i].other ? other : type, 2, ne, weight[i]);
        ggl_tensor *b = biased ? ggl_graph_weight(g, name, GGL_F32, 1, &ne[1], bias[i]) : NULL;
        ggl_tensor *y = ggl_unary(g, GGL_OP_TANH, ggl_linear(g, x, w, b)), *pair[2] = {all, y};
        all = all ? ggl_graph_op(g, GGL_OP_CONCAT, pair, 2, (double[]){0}, 1) : y;
    }
    ggl_graph_output(g, "y", all);
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

/* Runs batches of several sizes on a device of so many units; width: elements of a result. Returns the
 * dispatches of the first. */
static int run(ggl_graph *g, size_t width, const char *mask, uint32_t units, float *y) {
    static const int64_t batch[N_BATCHES] = {1, 2, 3, 5, 8, 9, 13, MOST_BATCH};
    static float x[LONG_K * MOST_BATCH];
    const size_t k_in = (size_t)ggl_count(ggl_graph_find_input(g, "x"));
    ggl_backend *b = vulkan_open(mask);
    ggl_sched *s = NULL;
    ggl_error err = {0};
    uint64_t seed = 5;
    int first = 0;
    if (!b)
        return 0;
    vk_backend *v = count_dispatches(b);
    v->limits.units = units;
    for (size_t i = 0; i < k_in * MOST_BATCH; i++)
        x[i] = test_random_float(&seed) * 2;
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    bool ok =
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err);
    for (int k = 0; k < N_BATCHES && ok; k++) {
        const int64_t n = batch[k];
        n_dispatches = 0;
        ok = CHECK_OK(ggl_sched_set(s, "x", x, (size_t)n * k_in * sizeof *x, n, &err), &err) &&
             CHECK_OK(ggl_sched_run(s, n, NULL, 0, &err), &err);
        if (ok)
            memcpy(y + k * SIZE, ggl_sched_output(s, 0), (size_t)n * width * sizeof *y);
        first = k == 0 ? n_dispatches : first;
    }
    ggl_sched_free(s);
    ggl_backend_close(b);
    return first;
}

/* Compares the graph's bits with those of single steps, and frees it. fewer: dispatches that are saved. */
static void compare(ggl_graph *g, size_t width, ggl_type type, const char *mask, uint32_t units,
                    int fewer) {
    static float together[N_BATCHES * SIZE], apart[N_BATCHES * SIZE];
    char without[64];
    snprintf(without, sizeof without, "%s,fuse", mask);
    memset(together, 0, sizeof together);
    memset(apart, 0, sizeof apart);
    const int n = run(g, width, mask, units, together), most = run(g, width, without, units, apart);
    if (most > 0) {
        CHECK_INT(most - n, fewer);
        for (int k = 0; k < N_BATCHES; k++)
            CHECK_MSG(memcmp(together + k * SIZE, apart + k * SIZE, SIZE * sizeof *apart) == 0,
                      "%s, without %s: other bits in batch %d", ggl_type_get(type)->name, mask, k);
    }
    ggl_graph_free(g);
}

static void check(ggl_type type, ggl_type other, bool biased, const char *mask, uint32_t units,
                  int fewer) {
    fill(type, other);
    compare(graph_of(type, other, biased), 231, type, mask, units, fewer);
}

/* q, k, gate and up have one type, of which three fit a dispatch. */
TEST(repacked) {
    check(GGL_Q4_K, GGL_Q6_K, false, "import,idot", 1, 2);
}
TEST(with_biases) {
    check(GGL_F16, GGL_F32, true, "import,idot", 1, 2);
}
TEST(as_in_the_file) {
    check(GGL_Q8_0, GGL_Q4_0, true, "import,idot,repack,subgroup", 1, 2);
}
/* In slices they are not one dispatch, but still beside each other. */
TEST(in_slices) {
    check(GGL_F32, GGL_F16, false, "import,idot", 64, 2);
}
TEST(rounded_columns) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check(GGL_Q4_0, GGL_F16, true, "import", 1, 2);
}
/* Only the smallest two fit a binding. */
TEST(small_bindings) {
    check(GGL_F32, GGL_F16, false, "import,idot,range", 1, 1);
}

/* --- gate and up ------------------------------------------------------------------------------ */

enum {
    GATED_ROWS = 33, /* not whole tiles of repacked rows */
    ROUNDED_ROWS = 96,
    DOWN_ROWS = 32
};
static const ggl_type next_type = GGL_Q8_0;

/* f(gate) * up, or up * f(gate), of columns that the device computes. read_again: gate has one more
 * reader. down: a product follows, of weights of next_type; kept: the result has one more reader, too. added: f(gate) + up,
 * which has no dispatch with the products. chosen: the matrices are those of N_CHOSEN experts. */
typedef struct gated {
    ggl_type type;
    bool biased, up_first, read_again, down, kept, added, chosen;
    ggl_op f;
} gated;

static int gated_rows(const gated *f) {
    return f->down ? ROUNDED_ROWS : GATED_ROWS;
}

/* index: which matrices are multiplied; NULL: there is one. */
static ggl_tensor *product_of(ggl_graph *g, ggl_tensor *x, ggl_tensor *index, int i,
                              const gated *f) {
    const int64_t rows = gated_rows(f);
    char name[16];
    snprintf(name, sizeof name, "%d.bias", i);
    ggl_tensor *w = ggl_graph_weight(g, product[i].name, f->type, index ? 3 : 2,
                                     (int64_t[]){K, rows, N_EXPERTS}, weight[i]);
    w = index ? ggl_binary(g, GGL_OP_PICK, w, index) : w;
    ggl_tensor *b = f->biased ? ggl_graph_weight(g, name, GGL_F32, 1, &rows, bias[i]) : NULL;
    return ggl_linear(g, x, w, b);
}

/* Returns what becomes of the result. */
static ggl_tensor *after_gated(ggl_graph *g, ggl_tensor *y, const gated *f) {
    if (!f->down)
        return ggl_unary(g, GGL_OP_ABS, y);
    ggl_tensor *w = ggl_graph_weight(g, "down", next_type, 2, (int64_t[]){ROUNDED_ROWS, DOWN_ROWS},
                                     weight[2]),
               *pair[2] = {ggl_linear(g, y, w, NULL), y};
    return f->kept ? ggl_graph_op(g, GGL_OP_CONCAT, pair, 2, (double[]){0}, 1) : pair[0];
}

static ggl_graph *gated_graph(const gated *f) {
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){K}, true);
    x = ggl_unary(g, GGL_OP_TANH, x);
    ggl_tensor *scores = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){0, 0, N_EXPERTS}, 3),
               *index = f->chosen
                            ? ggl_graph_op(g, GGL_OP_TOPK, &scores, 1, (double[]){N_CHOSEN}, 1)
                            : NULL;
    ggl_tensor *first = product_of(g, x, index, 0, f), *second = product_of(g, x, index, 1, f);
    ggl_tensor *gate = f->up_first ? second : first, *up = f->up_first ? first : second;
    ggl_tensor *act = ggl_unary(g, f->f, gate),
               *y = ggl_binary(g, f->added ? GGL_OP_ADD : GGL_OP_MUL, f->up_first ? up : act,
                               f->up_first ? act : up);
    ggl_tensor *end = after_gated(g, y, f);
    ggl_graph_output(g, "y", f->read_again ? ggl_binary(g, GGL_OP_ADD, end, gate) : end);
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

static void check_gated(const gated *f, const char *mask, uint32_t units, int fewer) {
    uint64_t seed = 13;
    float row[K];
    fill(next_type, next_type);
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < gated_rows(f) * (f->chosen ? N_EXPERTS : 1); r++) {
            for (int k = 0; k < K; k++)
                row[k] = test_random_float(&seed);
            ggl_type_get(f->type)->from_float(row, weight[i] + (size_t)r * ggl_row_size(f->type, K),
                                              K);
            bias[i][r % gated_rows(f)] = test_random_float(&seed);
        }
    const size_t width = f->down ? DOWN_ROWS + (f->kept ? ROUNDED_ROWS : 0) : GATED_ROWS;
    compare(gated_graph(f), width * (f->chosen ? N_CHOSEN : 1), f->type, mask, units, fewer);
}

/* Two products, the activation and their product are one dispatch instead of four. */
TEST(gated_repacked) {
    check_gated(&(gated){.type = GGL_Q4_K, .f = GGL_OP_SIGMOID}, "import,idot", 1, 3);
}
TEST(gated_with_biases) {
    check_gated(&(gated){.type = GGL_F16, .f = GGL_OP_TANH, .biased = true, .up_first = true},
                "import,idot", 1, 3);
}
TEST(gated_as_in_the_file) {
    check_gated(&(gated){.type = GGL_Q8_0, .f = GGL_OP_EXP, .up_first = true},
                "import,idot,repack,subgroup", 1, 3);
}
TEST(gated_in_slices) {
    check_gated(&(gated){.type = GGL_F32, .f = GGL_OP_ABS, .biased = true}, "import,idot", 64, 3);
}
/* Rounded columns, of which the result is not one. */
TEST(gated_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_Q4_0, .f = GGL_OP_SIGMOID}, "import", 1, 3);
}
/* The result is rounded by the same dispatch: several workgroups, of 16 rows or of 8, make a block. */
TEST(gated_result_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_Q4_0, .f = GGL_OP_SIGMOID, .down = true}, "import", 1, 4);
}
TEST(gated_floats_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_F16, .f = GGL_OP_TANH, .biased = true, .down = true},
                "import,subgroup", 64, 4);
}
TEST(gated_rounded_and_kept) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_Q6_K, .f = GGL_OP_TANH, .down = true, .kept = true}, "import",
                64, 4);
}
/* A result that others read, too, is written: both products, and the chain. */
TEST(gate_that_is_read_again) {
    check_gated(&(gated){.type = GGL_F16, .f = GGL_OP_TANH, .read_again = true}, "import,idot", 1,
                2);
}

/* The same of chosen matrices: for few columns one by one, for many sorted. */
TEST(gated_experts_repacked) {
    check_gated(&(gated){.type = GGL_Q4_K, .f = GGL_OP_SIGMOID, .chosen = true}, "import,idot", 1,
                3);
}
TEST(gated_experts_with_biases) {
    check_gated(
        &(gated){
            .type = GGL_F16, .f = GGL_OP_TANH, .biased = true, .up_first = true, .chosen = true},
        "import,idot,repack,subgroup", 64, 3);
}
TEST(gated_experts_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_Q4_0, .f = GGL_OP_SIGMOID, .chosen = true}, "import", 1, 3);
}
/* Each expert's result is rounded by the same dispatch, by the workgroups that end last in its blocks. */
TEST(gated_experts_result_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(&(gated){.type = GGL_Q4_0, .f = GGL_OP_SIGMOID, .down = true, .chosen = true},
                "import", 1, 4);
}
TEST(gated_experts_floats_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(
        &(gated){.type = GGL_F16, .f = GGL_OP_TANH, .biased = true, .down = true, .chosen = true},
        "import,subgroup", 64, 4);
}
TEST(gated_experts_rounded_and_kept) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_gated(
        &(gated){.type = GGL_Q6_K, .f = GGL_OP_TANH, .down = true, .kept = true, .chosen = true},
        "import", 64, 4);
}
/* Both products are one dispatch, with results of their own. */
TEST(experts_side_by_side) {
    check_gated(&(gated){.type = GGL_Q8_0, .f = GGL_OP_ABS, .added = true, .chosen = true},
                "import,idot", 64, 1);
}
/* All matrices of both are more than a binding may hold, though those of one are not. */
TEST(experts_in_small_bindings) {
    check_gated(&(gated){.type = GGL_Q8_0, .f = GGL_OP_TANH, .chosen = true}, "import,idot,range",
                1, 1);
}

/* --- more blocks than counters ---------------------------------------------------------------- */

enum {
    SHORT = 32,
    WIDE = 32 * (VK_MOST_COUNTERS + 1),
    CLOSE = 4,
    /* of three experts two are chosen: their blocks for one token have counters, those for two tokens have not */
    WIDE_EXPERTS = 3,
    WIDE_CHOSEN = 32 * (VK_MOST_COUNTERS / 4 + 1),
    WIDE_RESULTS = CLOSE * N_CHOSEN * 2
};

/* Returns WIDE * SHORT weights of next_type: all blocks are one of some, in turn. */
static char *wide_weight(int64_t seed) {
    const size_t block = ggl_row_size(next_type, SHORT);
    char *w = ggl_calloc(WIDE, block);
    float row[SHORT];
    for (size_t i = 0; w && i < WIDE; i++) {
        uint64_t from = (uint64_t)seed + i % 61;
        for (int k = 0; k < SHORT && i < 61; k++)
            row[k] = test_random_float(&from);
        if (i < 61)
            ggl_type_get(next_type)->from_float(row, w + i * block, SHORT);
        else
            memcpy(w + i * block, w + (i - 61) * block, block);
    }
    return w;
}

/* Runs one token through gate, up and down, or two of chosen experts; the batch has no more, so that the scratch is small. Returns
 * whether there is a device. */
static bool run_wide(const char *mask, char *const *w, bool chosen, float *y) {
    const int64_t n = chosen ? 2 : 1, rows = chosen ? WIDE_CHOSEN : WIDE;
    ggl_graph_params p = ggl_graph_default();
    ggl_backend *b = vulkan_open(mask);
    ggl_sched *s = NULL;
    ggl_error err = {0};
    float x[2 * SHORT];
    if (!b)
        return false;
    p.n_batch = n;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *in = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){SHORT}, true), *part[2];
    ggl_tensor *scores = ggl_graph_op(g, GGL_OP_SPLIT, &in, 1, (double[]){0, 0, WIDE_EXPERTS}, 3),
               *index = ggl_graph_op(g, GGL_OP_TOPK, &scores, 1, (double[]){N_CHOSEN}, 1);
    for (int i = 0; i < 2; i++) {
        ggl_tensor *of = ggl_graph_weight(g, product[i].name, next_type, chosen ? 3 : 2,
                                          (int64_t[]){SHORT, rows, WIDE_EXPERTS}, w[i]);
        part[i] = ggl_linear(g, in, chosen ? ggl_binary(g, GGL_OP_PICK, of, index) : of, NULL);
    }
    ggl_tensor *mul = ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_SIGMOID, part[0]), part[1]);
    ggl_graph_output(
        g, "y",
        ggl_linear(g, mul,
                   ggl_graph_weight(g, "down", next_type, 2, (int64_t[]){rows, CLOSE}, w[2]),
                   NULL));
    for (int k = 0; k < 2 * SHORT; k++)
        x[k] = (float)(k % 7 - 3);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    if (CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
        CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
        CHECK_OK(ggl_sched_set(s, "x", x, (size_t)n * SHORT * sizeof *x, n, &err), &err) &&
        CHECK_OK(ggl_sched_run(s, n, NULL, 0, &err), &err))
        memcpy(y, ggl_sched_output(s, 0), (chosen ? WIDE_RESULTS : CLOSE) * sizeof *y);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
    return true;
}

/* Then the chain is a dispatch of its own. */
static void check_wide(bool chosen) {
    float y[2][WIDE_RESULTS] = {{0}};
    char *w[3] = {wide_weight(1), wide_weight(2), wide_weight(3)};
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    if (CHECK(w[0] && w[1] && w[2]) && run_wide("import", w, chosen, y[0]) &&
        run_wide("import,fuse", w, chosen, y[1]))
        CHECK(y[0][0] != 0 && memcmp(y[0], y[1], sizeof *y) == 0);
    for (int i = 0; i < 3; i++)
        ggl_free(w[i]);
}

TEST(gated_with_more_blocks_than_counters) {
    check_wide(false);
}
TEST(experts_with_more_blocks_than_counters) {
    check_wide(true);
}

/* --- a product, a residual and a norm --------------------------------------------------------- */

/* product[2] has the other type */
typedef struct normed {
    ggl_type type;
    ggl_tensor *(*norm)(ggl_graph *, ggl_tensor *);
    bool weighted;
    bool first, once; /* a norm comes before the sum, too; or only there */
    int64_t k;        /* columns of the product; 0: all */
} normed;

/* The numbers of a column, and of a result. */
typedef struct lengths {
    int64_t k, sum;
} lengths;

/* Returns lengths that occupy all lanes of a subgroup, however wide the device's are, as in any model: for shorter ones, the
 * product's workgroup does not compute the norm (normed_of_short_rows). A lane multiplies up to 32 numbers of a column at once,
 * and adds up four of a result. k 0: there is no device. */
static lengths lengths_for_device(void) {
    ggl_backend *b = vulkan_open(NULL);
    const int64_t width = b ? (int64_t)((const vk_backend *)b)->limits.subgroup_size : 0,
                  most = width < WIDEST ? width : WIDEST;
    ggl_backend_close(b);
    return (lengths){.k = b && most < K / 32 ? K : most * 32, .sum = most > 32 ? most * 3 : 96};
}

static ggl_tensor *norm_of(ggl_graph *g, ggl_tensor *x, const normed *f, int i) {
    static float by[2][LONG_SUM];
    char name[16];
    snprintf(name, sizeof name, "by.%d", i);
    for (int r = 0; r < x->ne[0]; r++)
        by[i][r] = 1 + bias[i][r % MOST_ROWS];
    x = f->norm(g, x);
    ggl_tensor *w = f->weighted ? ggl_graph_weight(g, name, GGL_F32, 1, x->ne, by[i]) : NULL;
    return w ? ggl_binary(g, GGL_OP_MUL, x, w) : x;
}

/* The sum, and the product of its norm with another matrix. */
static ggl_graph *normed_graph(const normed *f, lengths n) {
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){n.k}, true),
               *w = ggl_graph_weight(g, "w", f->type, 2, (int64_t[]){f->k ? f->k : n.k, n.sum},
                                     weight[0]),
               *next = ggl_graph_weight(g, "next", next_type, 2, (int64_t[]){n.sum, NEXT_ROWS},
                                        weight[2]);
    x = ggl_unary(g, GGL_OP_TANH, x);
    ggl_tensor *part = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){0, 0, (double)n.sum}, 3);
    x = f->k ? ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){0, 0, (double)f->k}, 3) : x;
    x = ggl_linear(g, x, w, NULL);
    x = f->first ? norm_of(g, x, f, 1) : x;
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, ggl_unary(g, GGL_OP_ABS, part), x),
               *y = f->once ? sum : norm_of(g, sum, f, 0);
    ggl_tensor *pair[2] = {sum, ggl_linear(g, y, next, NULL)};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_CONCAT, pair, 2, (double[]){0}, 1));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

static void check_normed(const normed *f, const char *mask, uint32_t units, int fewer) {
    static float row[LONG_K];
    const ggl_type_info *t = ggl_type_get(f->type);
    const lengths n = lengths_for_device();
    const int64_t k = f->k ? f->k : n.k;
    const size_t size = ggl_row_size(f->type, k), next_size = ggl_row_size(next_type, n.sum);
    uint64_t seed = 17;
    if (n.k == 0)
        return;
    fill(next_type, next_type); /* and the biases */
    for (int r = 0; r < NEXT_ROWS; r++) {
        for (int i = 0; i < n.sum; i++)
            row[i] = test_random_float(&seed);
        ggl_type_get(next_type)->from_float(row, weight[2] + (size_t)r * next_size, n.sum);
    }
    for (int r = 0; t->from_float && r < n.sum; r++) {
        for (int i = 0; i < k; i++)
            row[i] = test_random_float(&seed);
        t->from_float(row, weight[0] + (size_t)r * size, k);
    }
    for (size_t i = 0; !t->from_float && i < (size_t)n.sum * size; i++)
        weight[0][i] = (char)(i % t->size == 0   ? 0
                              : i % t->size == 1 ? 0x2c
                                                 : test_random(&seed)); /* 1/16 */
    compare(normed_graph(f, n), (size_t)n.sum + NEXT_ROWS, f->type, mask, units, fewer);
}

static ggl_tensor *rms(ggl_graph *g, ggl_tensor *x) {
    return ggl_rms(g, x, 1e-5);
}
static ggl_tensor *l2(ggl_graph *g, ggl_tensor *x) {
    return ggl_l2(g, x, 1e-5);
}

/* The workgroup that ends last computes the norm: a sum, a norm and its weights are no dispatches. All batches use
 * the counters again. */
TEST(normed_repacked) {
    check_normed(&(normed){.type = GGL_Q4_0, .norm = rms, .weighted = true}, "import,idot", 1, 3);
}
TEST(normed_of_many_workgroups) {
    check_normed(&(normed){.type = GGL_F16, .norm = rms, .weighted = true}, "import,idot,subgroup",
                 64, 3);
}
TEST(normed_without_weights) {
    check_normed(&(normed){.type = GGL_F32, .norm = l2}, "import,idot", 64, 2);
}
TEST(normed_in_the_middle) {
    check_normed(&(normed){.type = GGL_BF16, .norm = ggl_center, .weighted = true}, "import,idot",
                 64, 3);
}
/* A row is too short for the lanes of a subgroup, so that the product's workgroup would add up the squares in another
 * order than rows.comp: the norm is a dispatch of its own. */
TEST(normed_of_short_rows) {
    check_normed(&(normed){.type = GGL_F32, .norm = rms, .weighted = true, .k = 16}, "import,idot",
                 64, 2);
}
/* Nor is the rounding, which the fused norm does itself. */
TEST(normed_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_normed(&(normed){.type = GGL_Q8_0, .norm = rms, .weighted = true}, "import", 64, 4);
}
/* Codebooks have a binding between those of a norm. */
TEST(normed_with_codebooks) {
    check_normed(&(normed){.type = GGL_IQ2_XXS, .norm = rms, .weighted = true}, "import,idot", 64,
                 3);
}

/* The norm comes before the sum, and another one after it. */
TEST(normed_twice) {
    check_normed(&(normed){.type = GGL_Q4_0, .norm = rms, .weighted = true, .first = true},
                 "import,idot", 1, 5);
}
TEST(normed_twice_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_normed(&(normed){.type = GGL_IQ2_XXS, .norm = rms, .weighted = true, .first = true},
                 "import", 64, 6);
}
TEST(normed_before) {
    check_normed(&(normed){.type = GGL_F16, .norm = ggl_center, .first = true, .once = true},
                 "import,idot,subgroup", 64, 2);
}
TEST(normed_before_and_rounded) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    check_normed(
        &(normed){.type = GGL_Q8_0, .norm = l2, .weighted = true, .first = true, .once = true},
        "import", 64, 4);
}

/* --- a weighted sum, a residual and a norm ---------------------------------------------------- */

enum { TERMS = 4, TERM = K / TERMS };

/* The sum of TERMS rows, each times its weight, and a residual; and the product of its norm with a matrix. */
static ggl_graph *sums_graph(void) {
    static float by[TERM];
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){K}, true);
    for (int i = 0; i < TERM; i++)
        by[i] = 1 + bias[0][i];
    x = ggl_unary(g, GGL_OP_TANH, x);
    ggl_tensor *shares = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){0, 7, TERMS}, 3),
               *part = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){0, 0, TERM}, 3),
               *rows = ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){TERM, TERMS}, 2),
               *sum = ggl_binary(g, GGL_OP_ADD, ggl_unary(g, GGL_OP_ABS, part),
                                 ggl_weighted(g, rows, shares)),
               *y = ggl_binary(g, GGL_OP_MUL, rms(g, sum),
                               ggl_graph_weight(g, "by", GGL_F32, 1, (int64_t[]){TERM}, by)),
               *next = ggl_graph_weight(g, "next", next_type, 2, (int64_t[]){TERM, NEXT_ROWS},
                                        weight[2]),
               *pair[2] = {sum, ggl_linear(g, y, next, NULL)};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_CONCAT, pair, 2, (double[]){0}, 1));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

/* The residual, the norm and its weights are no dispatches, and neither is the rounding. */
TEST(weighted_sum_with_a_norm) {
    fill(next_type, next_type);
    compare(sums_graph(), TERM + NEXT_ROWS, next_type, "import,idot", 1, 3);
}
TEST(weighted_sum_without_subgroups) {
    fill(next_type, next_type);
    compare(sums_graph(), TERM + NEXT_ROWS, next_type, "import,idot,subgroup", 1, 3);
}
TEST(weighted_sum_with_a_rounded_norm) {
    setenv("GGL_VULKAN_FORCE", "idot", 1);
    fill(next_type, next_type);
    compare(sums_graph(), TERM + NEXT_ROWS, next_type, "import", 1, 4);
}
