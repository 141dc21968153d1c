/* Times the kernels of every instruction set: `bench-kernels [seconds per measurement]`. Products:
 * one column over a matrix that does not fit the caches (GB/s of weights), and 512 columns
 * (GMAC/s), by one thread and by two; the rest on data in the inner caches (G values/s). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../backends/cpu/cpu_features.h"
#include "../../backends/cpu/kernels.h"
#include "../../backends/cpu/threads.h"
#include "../../backends/cpu/quant/rows16.h"

enum { K = 2048, BIG = 24 * 1024, ROWS = 2048, COLS = 512 };

static double budget = 0.3;
static uint64_t seed = 1;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float number(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

typedef struct work {
    const cpu_kernels *k;
    const cpu_product *p;
    char *w, *x;
    size_t row_size, x_size;
    int64_t n_rows;
    float *y;
    char *panel, *w16;
    ggl_type type;
} work;

static void gemv(void *ctx, int64_t first, int64_t last, int thread) {
    const work *w = ctx;
    (void)thread;
    w->p->rows((float *[]){w->y + first}, (const void *[]){w->x}, 1,
               w->w + (size_t)first * w->row_size, w->row_size, last - first, K);
}

static void gemv16(void *ctx, int64_t first, int64_t last, int thread) {
    const work *w = ctx;
    (void)thread;
    w->p->rows16((float *[]){w->y + first}, (const void *[]){w->x}, 1,
                 w->w16 + cpu_rows16_size(w->type, first, K), last - first, K);
}

static void gemm(void *ctx, int64_t first, int64_t last, int thread) {
    const work *w = ctx;
    char *panel = w->panel + (size_t)thread * 4 * 1024 * 1024;
    for (int64_t j = first * w->p->panel_rows; j < last * w->p->panel_rows && j < w->n_rows;
         j += w->p->panel_rows) {
        int64_t n = w->n_rows - j < w->p->panel_rows ? w->n_rows - j : w->p->panel_rows;
        w->p->pack(panel, w->w + (size_t)j * w->row_size, w->row_size, (int)n, K);
        for (int c = 0; c < COLS; c += 48) {
            float *y[48];
            const void *x[48];
            int cols = COLS - c < 48 ? COLS - c : 48;
            for (int i = 0; i < cols; i++) {
                y[i] = w->y + (c + i) * w->n_rows + j;
                x[i] = w->x + (size_t)(c + i) * w->x_size;
            }
            w->p->tile(y, x, cols, panel, (int)n, K);
        }
    }
}

/* Best time of one call. */
static double best(cpu_pool *pool, int threads, cpu_pool_fn *fn, work *w, int64_t units,
                   int64_t chunk) {
    double least = 1e9, begin = now();
    do {
        double t = now();
        cpu_pool_run(pool, threads, fn, w, units, chunk);
        t = now() - t;
        least = t < least ? t : least;
    } while (now() - begin < budget);
    return least;
}

static work work_new(const cpu_kernels *k, ggl_type type, int64_t n_rows, int n_cols) {
    work w = {.k = k,
              .p = &k->product[type],
              .n_rows = n_rows,
              .row_size = ggl_row_size(type, K),
              .x_size = (K + 32) * 4};
    float row[K];
    w.w = aligned_alloc(64, w.row_size * (size_t)n_rows + 64);
    w.x = aligned_alloc(64, w.x_size * (size_t)n_cols);
    w.y = aligned_alloc(64, sizeof(float) * (size_t)(n_rows * n_cols));
    w.panel = aligned_alloc(64, 8 * 1024 * 1024);
    memset(w.panel, 0, 8 * 1024 * 1024);
    for (int64_t r = 0; r < n_rows; r++) {
        for (int i = 0; r < 64 && i < K; i++)
            row[i] = number() * 0.1f;
        if (r < 64)
            ggl_type_get(type)->from_float(row, w.w + (size_t)r * w.row_size, K);
        else
            memcpy(w.w + (size_t)r * w.row_size, w.w + (size_t)(r % 64) * w.row_size, w.row_size);
    }
    for (int c = 0; c < n_cols; c++) {
        for (int i = 0; i < K; i++)
            row[i] = number();
        char *x = w.x + (size_t)c * w.x_size;
        if (w.p->columns == CPU_COLUMNS_Q8)
            k->quantize((cpu_qblock *)x, row, K);
        else if (w.p->columns == CPU_COLUMNS_BF16)
            k->round_bf16((float *)x, row, K);
        else
            memcpy(x, row, sizeof row);
    }
    return w;
}

static void work_free(work *w) {
    free(w->w);
    free(w->x);
    free(w->y);
    free(w->panel);
}

static void products(const cpu_kernels *k, cpu_pool *pool, const char *name) {
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        work w = work_new(k, types[i], BIG, 1);
        double size = (double)w.row_size * BIG;
        printf("%-16s %-6s one column %7.1f %7.1f GB/s", name, ggl_type_get(types[i])->name,
               size / best(pool, 1, gemv, &w, BIG, BIG) * 1e-9,
               size / best(pool, 2, gemv, &w, BIG, 512) * 1e-9);
        if (w.p->rows16) {
            w.w16 = aligned_alloc(64, cpu_rows16_size(types[i], BIG, K));
            cpu_rows16_pack(w.w16, types[i], w.w, w.row_size, BIG, K, 0, BIG / 16);
            w.type = types[i];
            printf("  16: %7.1f %7.1f GB/s", size / best(pool, 1, gemv16, &w, BIG, BIG) * 1e-9,
                   size / best(pool, 2, gemv16, &w, BIG, 512) * 1e-9);
            free(w.w16);
        }
        work_free(&w);
        if (k->product[types[i]].pack) {
            w = work_new(k, types[i], ROWS, COLS);
            int64_t units = (ROWS + w.p->panel_rows - 1) / w.p->panel_rows;
            double macs = (double)K * ROWS * COLS;
            printf("   %d columns %7.1f %7.1f GMAC/s", COLS,
                   macs / best(pool, 1, gemm, &w, units, units) * 1e-9,
                   macs / best(pool, 2, gemm, &w, units, 2) * 1e-9);
            work_free(&w);
        }
        printf("\n");
    }
}

#define TIME(label, count, call)                                                                   \
    do {                                                                                           \
        double least_ = 1e9, begin_ = now();                                                       \
        do {                                                                                       \
            double t_ = now();                                                                     \
            for (int r_ = 0; r_ < 16; r_++)                                                        \
                call;                                                                              \
            t_ = (now() - t_) / 16;                                                                \
            least_ = t_ < least_ ? t_ : least_;                                                    \
        } while (now() - begin_ < budget / 4);                                                     \
        printf("%-16s %-24s %8.2f G/s\n", name, label, (double)(count) / least_ * 1e-9);           \
    } while (0)

static void simple(const cpu_kernels *k, const char *name) {
#define X(NAME) #NAME,
    static const char *const unary[] = {CPU_UNARY(X)};
#undef X
    static float x[4096], y[4096], page[64 * 128], w[4][64];
    static uint16_t half[64 * 128];
    static cpu_qblock q[128];
    const float *query[4] = {x, x + 128, x + 256, x + 384};
    for (int i = 0; i < 4096; i++)
        x[i] = number() * 4;
    for (int i = 0; i < 64 * 128; i++)
        half[i] = ggl_f32_to_f16(page[i] = number());
    for (int f = 0; f < CPU_N_UNARY; f++)
        TIME(unary[f], 4096, k->unary[f](y, x, 4096));
    TIME("multiply", 4096, k->binary[CPU_MUL](y, x, 1, x, 1, 4096));
    TIME("divide by one", 4096, k->binary[CPU_DIV](y, x, 1, x, 0, 4096));
    TIME("sum of squares", 4096, y[0] = k->sum_squares(x, 4096));
    TIME("quantize", 4096, k->quantize(q, x, 4096));
    TIME("scores f16 (MAC)", 4 * 64 * 128, k->scores[1](w, query, 4, half, 128));
    TIME("values f16 (MAC)", 4 * 64 * 128, k->values[1](y, 128, w, 4, half, 128, 0, 64));
    TIME("delta rule (state)", 64 * 128,
         for (int j = 0; j < 64; j++) y[j] =
             k->delta_row(page + 128 * j, x, x + 128, 128, 0.9f, 0.1f, 0.1f));
}

int main(int argc, char **argv) {
    uint32_t set[CPU_MAX_SETS];
    const int n = cpu_features_sets(set);
    cpu_pool *pool;
    if (argc > 1)
        budget = atof(argv[1]);
    if (cpu_pool_open(&pool, 2, NULL) != GGL_OK)
        return 1;
    for (int i = 0; i < n; i++) {
        static cpu_kernels k;
        char name[64];
        cpu_kernels_init(&k, set[i]);
        cpu_features_text(set[i], name, sizeof name);
        products(&k, pool, name);
        simple(&k, name);
    }
    cpu_pool_close(pool);
    return 0;
}
