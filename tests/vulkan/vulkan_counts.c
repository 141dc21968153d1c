/* vulkan.counts: what a real compiler makes of the shaders, where no device can be timed. RADV compiles
 * for a device that is not there (RADV_FORCE_FAMILY, odd/null.c), and each pipeline's registers, spills,
 * loads under way and instructions must be those of counts.txt. A change of a shader shows there:
 *
 *     GGL_COUNTS_WRITE=1 ctest --test-dir build/release -R vulkan.counts */
#include <math.h>
#include <sched.h>

#include "ggl/alloc.h"
#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"
#include "odd/asked.h"
#include "shader_table.h"
#include "trim.h"
#include "vulkan.h"
#include "vulkan_test.h"

/* Returns the name of the shader that a pipeline's code is trimmed from. */
static const char *shader_name(const odd_pipeline *p) {
    for (size_t i = 0; i < VK_SHADER_COUNT; i++) {
        uint32_t *code;
        const size_t n = ggl_vk_trim((const uint32_t *)(const void *)shader[i].code,
                                     *shader[i].size / 4, p->spec, (int)p->n_spec, &code);
        const bool same = n > 0 && n == p->n_words && memcmp(code, p->code, n * 4) == 0;
        ggl_free(code);
        if (same)
            return shader[i].name;
    }
    return "?";
}

/* --- graphs ----------------------------------------------------------------------------------- */

typedef struct form {
    ggl_type type; /* of the weight, or of keys and values */
    int64_t n;     /* the largest batch */
} form;

/* One product of 4096 x 4096, of a batch of n. */
static void add_product(ggl_graph *g, const form *f) {
    static const char none[1]; /* compiling reads no weights */
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){4096}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", f->type, 2, (int64_t[]){4096, 4096}, none);
    ggl_graph_output(g, "y", ggl_linear(g, x, w, NULL));
}

/* Gate and up of 4096 x 4096, of a batch of n, f(gate) * up, and a product that reads it. */
static void add_gated(ggl_graph *g, const form *f) {
    static const char none[1];
    const int64_t ne[] = {4096, 4096};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, ne, true),
               *gate = ggl_linear(g, x, ggl_graph_weight(g, "gate", f->type, 2, ne, none), NULL),
               *up = ggl_linear(g, x, ggl_graph_weight(g, "up", f->type, 2, ne, none), NULL),
               *down = ggl_graph_weight(g, "down", f->type, 2, ne, none),
               *y = ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_SIGMOID, gate), up);
    ggl_graph_output(g, "y", ggl_linear(g, y, down, NULL));
}

static ggl_tensor *weighted_norm(ggl_graph *g, ggl_tensor *x, const char *name) {
    static const char none[1];
    ggl_tensor *by = ggl_graph_weight(g, name, GGL_F32, 1, (int64_t[]){4096}, none);
    return ggl_binary(g, GGL_OP_MUL, ggl_rms(g, x, 1e-5), by);
}

/* A product of 4096 x 4096, its norm if `first`, the sum with a residual, the norm of that, and a product that reads it. */
static void add_norms(ggl_graph *g, const form *f, bool first) {
    static const char none[1];
    const int64_t ne[] = {4096, 4096};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, ne, true),
               *r = ggl_graph_input(g, "r", GGL_F32, 1, ne, true),
               *y = ggl_linear(g, x, ggl_graph_weight(g, "w", f->type, 2, ne, none), NULL),
               *sum = ggl_binary(g, GGL_OP_ADD, r, first ? weighted_norm(g, y, "first") : y),
               *norm = weighted_norm(g, sum, "by");
    ggl_graph_output(g, "sum", sum);
    ggl_graph_output(g, "next",
                     ggl_linear(g, norm, ggl_graph_weight(g, "v", f->type, 2, ne, none), NULL));
}

static void add_normed(ggl_graph *g, const form *f) {
    add_norms(g, f, false);
}

static void add_normed_twice(ggl_graph *g, const form *f) {
    add_norms(g, f, true);
}

/* The choice of 8 of 128 experts by the softmax of x, and the normalised shares of the chosen. */
static ggl_tensor *route(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *p = ggl_softmax(g, x), *e = ggl_graph_op(g, GGL_OP_TOPK, &p, 1, (double[]){8}, 1);
    ggl_graph_output(g, "shares", ggl_normalised(g, ggl_binary(g, GGL_OP_PICK, p, e)));
    return e;
}

/* The router, gate and up of the chosen experts, 768 x 2048, f(gate) * up, and the products that read it. */
static void add_experts(ggl_graph *g, const form *f) {
    static const char none[1];
    const int64_t in[] = {2048, 768, 128}, out[] = {768, 2048, 128}, n[] = {128};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, in, true),
               *e = route(g, ggl_graph_input(g, "scores", GGL_F32, 1, n, true));
    const char *name[] = {"gate", "up", "down"};
    ggl_tensor *w[3], *y[2];
    for (int i = 0; i < 3; i++)
        w[i] = ggl_binary(g, GGL_OP_PICK,
                          ggl_graph_weight(g, name[i], f->type, 3, i < 2 ? in : out, none), e);
    for (int i = 0; i < 2; i++)
        y[i] = ggl_linear(g, x, w[i], NULL);
    y[1] = ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_SIGMOID, y[0]), y[1]);
    ggl_graph_output(g, "y", ggl_linear(g, y[1], w[2], NULL));
}

/* Attention with 32 heads of 128, which share 8 heads of keys and values. */
static void add_attention(ggl_graph *g, const form *f) {
    (void)f;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *q = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){128, 32}, true),
               *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){128, 8}, true),
               *v = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){128, 8}, true);
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0);
    ggl_tensor *src[] = {q, kv, NULL, NULL};
    ggl_graph_output(g, "y",
                     ggl_graph_op(g, GGL_OP_ATTEND, src, 4, (double[]){0.088, NAN, NAN}, 3));
}

/* Attention with 128 heads of 576, which share one head of keys; values are 512 dimensions of it. */
static void add_shared(ggl_graph *g, const form *f) {
    (void)f;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *q = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){576, 128}, true),
               *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){576, 1}, true);
    ggl_tensor *v = ggl_graph_op(g, GGL_OP_SPLIT, &k, 1, (double[]){0, 0, 512}, 3);
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0);
    ggl_tensor *src[] = {q, kv, NULL, NULL};
    ggl_graph_output(g, "y",
                     ggl_graph_op(g, GGL_OP_ATTEND, src, 4, (double[]){0.088, NAN, NAN}, 3));
}

/* The rows of the table are in the order in which pipelines are made: that of the steps, if one thread makes them. */
static void use_one_processor(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* Compiles the graph for the device, which makes its pipelines. */
static bool compile(ggl_backend *b, void (*add)(ggl_graph *, const form *), const form *f) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_graph_params gp = ggl_graph_default();
    gp.n_batch = f->n;
    gp.type_k = gp.type_v = ggl_store_can_keep(f->type) ? f->type : GGL_F16;
    gp.n_pos = 8192;
    ggl_graph *g = ggl_graph_new(&gp);
    add(g, f);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    const bool ok = CHECK_OK(ggl_graph_finish(g, &err), &err) &&
                    CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return ok;
}

/* --- the table -------------------------------------------------------------------------------- */

/* The pipelines of one product, by shader. */
typedef struct made {
    int vec, mat, halves, matrix;
    const odd_pipeline *last; /* of matrix */
} made;

static made compile_product(ggl_backend *b, ggl_type type, int64_t n) {
    const odd_asked *asked = odd_find_asked();
    const uint32_t before = asked->n_pipelines;
    made m = {0};
    if (!compile(b, add_product, &(form){type, n}))
        return m;
    for (uint32_t i = before; i < asked->n_pipelines; i++) {
        const char *name = shader_name(&asked->pipeline[i]);
        const bool matrix = strncmp(name, "LINEAR_MATRIX", 13) == 0;
        m.vec += strncmp(name, "LINEAR_VEC", 10) == 0;
        m.mat += strncmp(name, "LINEAR_MAT", 10) == 0 && !matrix;
        m.halves += strncmp(name, "LINEAR_HALVES", 13) == 0;
        m.matrix += matrix;
        m.last = matrix ? &asked->pipeline[i] : m.last;
    }
    return m;
}

/* Returns whether attention to rows of the type, in batches of n, makes a new pipeline of that shader. */
static bool attends_by(ggl_backend *b, ggl_type type, int64_t n, const char *by) {
    const odd_asked *asked = odd_find_asked();
    const uint32_t before = asked->n_pipelines;
    CHECK(compile(b, add_attention, &(form){type, n}));
    for (uint32_t i = before; i < asked->n_pipelines; i++)
        if (strncmp(shader_name(&asked->pipeline[i]), by, strlen(by)) == 0)
            return true;
    return false;
}

/* A device that is said to have matrix units uses them, without being asked, for the products that
 * docs/numeric.md names; its shaders are not compiled. */
TEST(matrix_units) {
    static const ggl_type with[] = {GGL_Q4_0, GGL_Q6_K, GGL_IQ2_XXS, GGL_F16},
                          without[] = {GGL_F32, GGL_BF16}, kept[] = {GGL_F16, GGL_Q8_0, GGL_Q4_0};
    ggl_backend *b = NULL;
    ggl_error err = {0};
    use_one_processor();
    if (ggl_backend_open(&b, "vulkan0", NULL, &err) != GGL_OK)
        SKIP("RADV is not installed (Debian: mesa-vulkan-drivers)");
    REQUIRE(odd_find_asked());
    CHECK_HAS(b->description, " matrix");
    CHECK(odd_find_asked()->matrix);
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        const made few = compile_product(b, with[i], 8), many = compile_product(b, with[i], 512);
        CHECK(few.vec > 0 && few.mat + few.halves + few.matrix == 0);
        CHECK(many.mat == 0 && many.matrix > 0 && (many.halves > 0 || i > 0));
        if (!CHECK(many.last))
            continue;
        const uint32_t *s = many.last->spec; /* the constants of linear_matrix.comp */
        CHECK_INT(s[0], 4 * ((vk_backend *)b)->limits.subgroup_size);
        CHECK_INT(s[6], 128); /* columns of a tile, in four blocks of 32 x 64 */
        CHECK_INT(s[7], 2);
        CHECK(s[12] == 16 && s[13] == 16 && s[14] == 16);
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        const made many = compile_product(b, without[i], 512);
        CHECK(many.mat > 0 && many.halves + many.matrix == 0);
        CHECK(!attends_by(b, without[i], 512, "ATTEND_MATRIX"));
    }
    CHECK(!attends_by(b, GGL_F16, 15, "ATTEND_MATRIX")); /* 60 queries of a head of the store */
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK(attends_by(b, kept[i], 16, "ATTEND_MATRIX"));
    ggl_backend_close(b);
    setenv("GGL_VULKAN_MASK", "matrix", 1);
    REQUIRE_OK(ggl_backend_open(&b, "vulkan0", NULL, &err), &err);
    CHECK(!strstr(b->description, " matrix") && !odd_find_asked()->matrix);
    CHECK(!attends_by(b, GGL_F16, 512, "ATTEND_MATRIX"));
    const made masked = compile_product(b, GGL_Q4_0, 512);
    CHECK(masked.mat > 0 && masked.halves + masked.matrix == 0);
    ggl_backend_close(b);
}

static void print_row(FILE *out, const odd_pipeline *p) {
    fprintf(out, "  %s", shader_name(p));
    for (uint32_t i = 0; i < p->n_spec; i++)
        fprintf(out, "%c%u", i ? ',' : ' ', p->spec[i]);
    const struct {
        const char *name;
        uint64_t value;
    } count[] = {{": registers", p->vector_registers},
                 {" +", p->scalar_registers},
                 {", spilled", p->spilled},
                 {" +", p->scalar_spilled},
                 {", scratch", p->scratch},
                 {"; instructions", p->instructions},
                 {"; loads", p->loads_in_flight},
                 {"; loop", p->loop_instructions},
                 {" for", p->loop_products}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        fprintf(out, "%s %llu", count[i].name, (unsigned long long)count[i].value);
    fprintf(out, " products\n");
    CHECK_MSG(p->spilled == 0 && p->scratch == 0, "%s spills registers", shader_name(p));
}

/* Prints the pipelines that the graphs need and that no graph before needed. */
static void print_all(FILE *out, ggl_backend *b, const odd_asked *asked) {
    static const ggl_type weights[] = {GGL_Q4_0, GGL_Q8_0, GGL_Q4_K, GGL_Q6_K, GGL_F16, GGL_BF16},
                          gated[] = {GGL_Q4_0, GGL_Q6_K, GGL_F16}, normed[] = {GGL_Q4_0, GGL_F16},
                          kept[] = {GGL_F16, GGL_F32, GGL_Q8_0, GGL_Q4_0};
    static const int64_t batch[] = {1, 8, 16, 512};
    const struct {
        const char *name;
        void (*add)(ggl_graph *, const form *);
        const ggl_type *type;
        size_t n_types;
    } graph[] = {{"product", add_product, weights, sizeof weights / sizeof *weights},
                 {"gate and up", add_gated, gated, sizeof gated / sizeof *gated},
                 {"product, residual and norm", add_normed, normed, sizeof normed / sizeof *normed},
                 {"product, norm, residual and norm", add_normed_twice, normed,
                  sizeof normed / sizeof *normed},
                 {"router and experts", add_experts, normed, sizeof normed / sizeof *normed},
                 {"attention", add_attention, kept, sizeof kept / sizeof *kept},
                 {"attention of shared keys", add_shared, kept, sizeof kept / sizeof *kept}};
    uint32_t before = asked->n_pipelines;
    for (size_t k = 0; k < sizeof graph / sizeof *graph; k++)
        for (size_t t = 0; t < graph[k].n_types; t++)
            for (size_t i = 0; i < sizeof batch / sizeof *batch; i++) {
                const form f = {graph[k].type[t], batch[i]};
                if (!compile(b, graph[k].add, &f))
                    return;
                if (asked->n_pipelines > before)
                    fprintf(out, "%s %s, batches of %d\n", graph[k].name,
                            ggl_type_get(f.type)->name, (int)f.n);
                for (; before < asked->n_pipelines; before++)
                    print_row(out, &asked->pipeline[before]);
            }
}

/* Compares text with the file, line by line; skipped if the file is of another driver, as its first
 * line says. */
static void compare(const char *text, FILE *in) {
    char want[512], have[512];
    for (int line = 1; fgets(want, sizeof want, in); line++) {
        const size_t n = strcspn(text, "\n") + 1;
        snprintf(have, sizeof have, "%.*s", (int)n, text);
        if (line == 1 && strcmp(want, have) != 0)
            SKIP("counts.txt is of another driver");
        if (!CHECK_MSG(strcmp(want, have) == 0, "counts.txt, line %d:\n  %s, now:\n  %s", line,
                       want, have))
            return;
        text += n;
    }
    CHECK_MSG(!*text, "counts.txt ends before: %s", text);
}

TEST(shaders) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    char *text = NULL;
    size_t size = 0;
    use_one_processor();
    if (ggl_backend_open(&b, "vulkan0", NULL, &err) != GGL_OK)
        SKIP("RADV is not installed (Debian: mesa-vulkan-drivers)");
    const odd_asked *asked = odd_find_asked();
    REQUIRE(asked);
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "%.*s\n", (int)strcspn(b->description, ";"), b->description);
    print_all(out, b, asked);
    fclose(out);
    FILE *file = fopen(COUNTS, getenv("GGL_COUNTS_WRITE") ? "w" : "r");
    if (CHECK(file) && getenv("GGL_COUNTS_WRITE"))
        fputs(text, file);
    else if (file)
        compare(text, file);
    if (file)
        fclose(file);
    free(text);
    ggl_backend_close(b);
}
