/* vulkan.repack: weights in the layout of packed.def: which ones, their file, and a device whose
 * buffers are small. That products of them are right: vulkan.products and vulkan.idot. */
#include <math.h>
#include <unistd.h>

#include "ggl/internal/sched.h"
#include "repack.h"
#include "vulkan_test.h"

enum { K = 256, ROWS = 22, MATRICES = 3 };

static float numbers[K * ROWS];
static char first[K * ROWS * 4], second[MATRICES * K * ROWS * 4];

/* Quantizes `n` matrices of the same numbers. */
static void encode(ggl_type type, char *to, int n) {
    uint64_t seed = 3;
    for (int i = 0; i < K * ROWS; i++)
        numbers[i] = test_random_float(&seed);
    for (int m = 0; m < n; m++)
        ggl_type_get(type)->from_float(numbers, to + (size_t)m * ggl_row_size(type, K) * ROWS,
                                       K * ROWS);
}

/* y = w x, and z = v[i] x for a chosen matrix of v. */
static ggl_graph *graph_of(ggl_type type) {
    ggl_error err = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_batch = 1;
    ggl_graph *g = ggl_graph_new(&p);
    encode(type, first, 1);
    encode(type, second, MATRICES);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){K}, true),
               *i = ggl_graph_input(g, "i", GGL_I32, 1, (int64_t[]){1}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", type, 2, (int64_t[]){K, ROWS}, first),
               *v = ggl_graph_weight(g, "v", type, 3, (int64_t[]){K, ROWS, MATRICES}, second);
    ggl_graph_output(g, "y", ggl_linear(g, x, w, NULL));
    ggl_graph_output(g, "z", ggl_linear(g, x, ggl_binary(g, GGL_OP_PICK, v, i), NULL));
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    return g;
}

typedef struct result {
    size_t repacked; /* bytes */
    ggl_cache_use use;
    float y[ROWS], z[ROWS];
} result;

static bool run(ggl_backend *b, ggl_type type, ggl_sched_params p, result *out) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_memory m = {0};
    const int32_t i = 1;
    ggl_graph *g = graph_of(type);
    p.size = sizeof p;
    p.backend = &b;
    p.n_backends = 1;
    bool ok = CHECK_OK(ggl_sched_new(&s, g, &p, &err), &err) &&
              CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
              CHECK_OK(ggl_sched_set(s, "x", numbers, K * 4, 1, &err), &err) &&
              CHECK_OK(ggl_sched_set(s, "i", &i, 4, 1, &err), &err) &&
              CHECK_OK(ggl_sched_run(s, 1, NULL, 0, &err), &err);
    if (ok) {
        ggl_sched_memory(s, 0, &m);
        memcpy(out->y, ggl_sched_output(s, 0), sizeof out->y);
        memcpy(out->z, ggl_sched_output(s, 1), sizeof out->z);
        out->repacked = m.weights_repacked;
        out->use = ggl_sched_cache_use(s);
    }
    ggl_sched_free(s);
    ggl_graph_free(g);
    return ok;
}

/* The sum over rows that are equal up to the order of additions. */
static void check_close(const result *a, const result *b) {
    for (int i = 0; i < ROWS; i++) {
        CHECK_MSG(fabsf(a->y[i] - b->y[i]) < 1e-4f, "y[%d]: %g and %g", i, (double)a->y[i],
                  (double)b->y[i]);
        CHECK_MSG(fabsf(a->z[i] - b->z[i]) < 1e-4f, "z[%d]: %g and %g", i, (double)a->z[i],
                  (double)b->z[i]);
    }
}

TEST(which_weights) {
    static const struct {
        ggl_type type;
        size_t row, pad; /* bytes of a row; of a tile to a multiple of 16 */
    } expect[] = {{GGL_Q4_0, 144, 0},  {GGL_Q8_0, 272, 0}, {GGL_Q4_K, 148, 0}, {GGL_Q6_K, 210, 8},
                  {GGL_MXFP4, 136, 0}, {GGL_TQ1_0, 0, 0},  {GGL_F16, 0, 0},    {GGL_F32, 0, 0}};
    ggl_backend *b = vulkan_open(NULL), *masked = vulkan_open("repack");
    for (size_t i = 0; b && masked && i < sizeof expect / sizeof *expect; i++) {
        result r = {0}, as_it_is = {0}, none = {0};
        const size_t tile = 4 * expect[i].row + expect[i].pad,
                     matrix = (6 * tile + 63) / 64 * 64; /* 22 rows: 6 tiles */
        if (run(b, expect[i].type, (ggl_sched_params){0}, &r))
            CHECK_INT(r.repacked, (1 + MATRICES) * matrix);
        if (run(masked, expect[i].type, (ggl_sched_params){0}, &as_it_is))
            CHECK_INT(as_it_is.repacked, 0);
        if (run(b, expect[i].type, (ggl_sched_params){.no_repack = true}, &none))
            CHECK_INT(none.repacked, 0);
        check_close(&r, &as_it_is);
        check_close(&r, &none);
    }
    ggl_backend_close(b);
    ggl_backend_close(masked);
}

/* Weights that do not fit into one buffer: each has a buffer of its own, and the same bits. A weight
 * that is larger than a buffer keeps the file's layout. */
TEST(several_buffers) {
    ggl_backend *b = vulkan_open(NULL);
    result one = {0}, two = {0}, some = {0};
    if (!b)
        return;
    run(b, GGL_Q4_0, (ggl_sched_params){0}, &one);
    const size_t matrix = one.repacked / (1 + MATRICES);
    b->max_buffer = one.repacked - 64;
    run(b, GGL_Q4_0, (ggl_sched_params){0}, &two);
    CHECK_INT(two.repacked, one.repacked);
    CHECK_INT(memcmp(one.y, two.y, sizeof one.y), 0);
    CHECK_INT(memcmp(one.z, two.z, sizeof one.z), 0);
    b->max_buffer = MATRICES * matrix - 64;
    run(b, GGL_Q4_0, (ggl_sched_params){0}, &some);
    CHECK_INT(some.repacked, matrix);
    check_close(&one, &some);
    ggl_backend_close(b);
}

/* The second run maps what the first one wrote, and has the same bits. most: the device's max_buffer,
 * less than all repacked weights; 0: as it is. */
static void check_file(size_t most) {
    char path[] = "/tmp/ggl-repack-XXXXXX";
    const int fd = mkstemp(path);
    ggl_backend *b = vulkan_open(NULL);
    const ggl_sched_params p = {.cache = path, .cache_of = "model", .cache_of_size = 5};
    result written = {0}, read = {0};
    close(fd);
    unlink(path);
    if (b && most)
        b->max_buffer = most;
    if (b && run(b, GGL_Q5_K, p, &written) && run(b, GGL_Q5_K, p, &read)) {
        CHECK_INT(written.use, GGL_CACHE_WRITTEN);
        CHECK_INT(read.use, GGL_CACHE_READ);
        CHECK(read.repacked > most);
        CHECK_INT(memcmp(written.y, read.y, sizeof read.y), 0);
        CHECK_INT(memcmp(written.z, read.z, sizeof read.z), 0);
    }
    unlink(path);
    ggl_backend_close(b);
}

TEST(file) {
    check_file(0);
}

TEST(file_of_several_buffers) {
    check_file(14 * 1024);
}
