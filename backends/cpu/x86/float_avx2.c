/* Products with f32, f16 and bf16 rows by the rule of sixteen sums: lanes 0..7 in one
 * register, 8..15 in another. bf16 is the f32 rule over rows whose 32s are reordered, odd elements
 * first (CPU_COLUMNS_BF16).
 *
 *   rows   4 rows in place; each line of the next 4 rows is prefetched as its neighbour is used
 *   tile   a panel of 12 rows as f32 against all columns; first sums 0..7, then 8..15, each as 4
 * rows x 3 columns in 12 registers: 7 loads for 12 products */
#include "avx2.h"

enum { PANEL_ROWS = 12, ROWS = 4 };

/* --- loads: 32 elements as 4 registers, in the order of the columns ------------------------ */

typedef struct octets {
    __m256 v[4];
} octets;

INLINE octets load_f32(const void *p) {
    const float *x = p;
    return (octets){{_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                     _mm256_loadu_ps(x + 24)}};
}

INLINE octets load_f16(const void *p) {
    const uint16_t *x = p;
    return (octets){{load_half(x), load_half(x + 8), load_half(x + 16), load_half(x + 24)}};
}

INLINE octets load_bf16(const void *p) {
    const __m256i *x = p;
    const __m256i high = _mm256_set1_epi32((int)0xffff0000);
    __m256i a = _mm256_loadu_si256(x), b = _mm256_loadu_si256(x + 1);
    return (octets){{_mm256_castsi256_ps(_mm256_and_si256(a, high)),
                     _mm256_castsi256_ps(_mm256_and_si256(b, high)),
                     _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                     _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))}};
}

typedef octets load_fn(const void *p);

/* --- rows in place ------------------------------------------------------------------------- */

INLINE void add_32(__m256 acc[2], octets w, octets x) {
    acc[0] = _mm256_fmadd_ps(w.v[0], x.v[0], acc[0]);
    acc[1] = _mm256_fmadd_ps(w.v[1], x.v[1], acc[1]);
    acc[0] = _mm256_fmadd_ps(w.v[2], x.v[2], acc[0]);
    acc[1] = _mm256_fmadd_ps(w.v[3], x.v[3], acc[1]);
}

/* n_rows <= ROWS, a constant; size: of an element of w. */
INLINE void dot_rows(float *y, const char *w, size_t row_size, const int n_rows, const float *x,
                     int64_t k, load_fn *load, const int size) {
    __m256 acc[ROWS][2];
    for (int r = 0; r < n_rows; r++)
        acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) {
        octets c = load_f32(x + i);
        for (int r = 0; r < n_rows; r++) {
            const char *p = w + (size_t)r * row_size + (size_t)i * (size_t)size;
            for (int line = 0; line < 32 * size; line += 64)
                _mm_prefetch(p + (size_t)n_rows * row_size + line, _MM_HINT_T0);
            add_32(acc[r], load(p), c);
        }
    }
    if (i <
        k) { /* padded with zeros, as the rule says; a column for bf16 has its padding already */
        char rest[32 * 4];
        float c[32] = {0};
        memcpy(c, x + i, (size_t)(size == 2 && load == load_bf16 ? 32 : k - i) * sizeof *c);
        for (int r = 0; r < n_rows; r++) {
            memset(rest, 0, sizeof rest);
            memcpy(rest, w + (size_t)r * row_size + (size_t)i * (size_t)size,
                   (size_t)(k - i) * (size_t)size);
            add_32(acc[r], load(rest), load_f32(c));
        }
    }
    for (int r = 0; r < n_rows; r++)
        y[r] = dot_tree(acc[r][0], acc[r][1]);
}

/* --- panels -------------------------------------------------------------------------------- */

/* The elements of sums 0..7 and those of 8..15 apart: float [2][PANEL_ROWS][panel_step]. */
static int64_t panel_step(int64_t k) {
    return k / 2 + 16; /* not a multiple of 4 KiB, whose lines would meet in one set of the cache */
}

static size_t panel_size(int64_t k) {
    return 2 * (size_t)panel_step(k) * PANEL_ROWS * sizeof(float);
}

#define BY_TYPE(type, size)                                                                        \
    static void rows_##type(float *const *y, const void *const *x, int n_cols, const void *w,      \
                            size_t row_size, int64_t n_rows, int64_t k) {                          \
        const char *p = w;                                                                         \
        int64_t j = 0;                                                                             \
        for (; j + ROWS <= n_rows; j += ROWS, p += ROWS * row_size)                                \
            for (int c = 0; c < n_cols; c++)                                                       \
                dot_rows(y[c] + j, p, row_size, ROWS, x[c], k, load_##type, size);                 \
        for (; j < n_rows; j++, p += row_size)                                                     \
            for (int c = 0; c < n_cols; c++)                                                       \
                dot_rows(y[c] + j, p, row_size, 1, x[c], k, load_##type, size);                    \
    }                                                                                              \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        for (int r = 0; r < n_rows; r++) {                                                         \
            float *lo = (float *)panel + r * panel_step(k), *hi = lo + PANEL_ROWS * panel_step(k); \
            const char *p = (const char *)w + (size_t)r * row_size;                                \
            for (int64_t i = 0; i < k; i += 32) {                                                  \
                octets v = load_##type(p + i * (size));                                            \
                _mm256_storeu_ps(lo + i / 2, v.v[0]), _mm256_storeu_ps(hi + i / 2, v.v[1]);        \
                _mm256_storeu_ps(lo + i / 2 + 8, v.v[2]),                                          \
                    _mm256_storeu_ps(hi + i / 2 + 8, v.v[3]);                                      \
            }                                                                                      \
        }                                                                                          \
    }
BY_TYPE(f32, 4)
BY_TYPE(f16, 2)
BY_TYPE(bf16, 2)

/* Sums 8h .. 8h+7 of n_rows rows by n_cols columns, both constants. */
INLINE void half_block(__m256 *out, const float *const *x, const float *w, int64_t step,
                       const int n_rows, const int n_cols, int64_t k, const int h) {
    __m256 a[4][3];
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            a[r][c] = _mm256_setzero_ps();
    w += h * PANEL_ROWS * step;
    for (int64_t i = 0; i < k; i += 16) {
        __m256 v[3];
        for (int c = 0; c < n_cols; c++)
            v[c] = _mm256_loadu_ps(x[c] + i + 8 * h);
        for (int r = 0; r < n_rows; r++) {
            __m256 u = _mm256_loadu_ps(w + r * step + i / 2);
            for (int c = 0; c < n_cols; c++)
                a[r][c] = _mm256_fmadd_ps(u, v[c], a[r][c]);
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            out[r * n_cols + c] = a[r][c];
}

INLINE void block(float *const *y, int64_t j, const float *const *x, const float *w, int64_t step,
                  const int n_rows, const int n_cols, int64_t k) {
    __m256 lo[4 * 3], hi[4 * 3];
    half_block(lo, x, w, step, n_rows, n_cols, k, 0);
    half_block(hi, x, w, step, n_rows, n_cols, k, 1);
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            y[c][j + r] = dot_tree(lo[r * n_cols + c], hi[r * n_cols + c]);
}

INLINE void columns(float *const *y, const void *const *x, const float *w, int n_rows,
                    const int n_cols, int64_t k) {
    const float *column[3];
    int64_t step = panel_step(k);
    int j = 0;
    for (int c = 0; c < n_cols; c++)
        column[c] = x[c];
    for (; j + 4 <= n_rows; j += 4)
        block(y, j, column, w + j * step, step, 4, n_cols, k);
    for (; j < n_rows; j++)
        block(y, j, column, w + j * step, step, 1, n_cols, k);
}

static void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    int c = 0;
    for (; c + 3 <= n_cols; c += 3)
        columns(y + c, x + c, panel, n_rows, 3, k);
    if (n_cols - c == 2)
        columns(y + c, x + c, panel, n_rows, 2, k);
    else if (n_cols - c == 1)
        columns(y + c, x + c, panel, n_rows, 1, k);
}

void cpu_kernels_float_avx2(cpu_kernels *k) {
#define PRODUCT(columns_, type)                                                                    \
    (cpu_product){.columns = columns_,                                                             \
                  .rows = rows_##type,                                                             \
                  .panel_rows = PANEL_ROWS,                                                        \
                  .panel_unit = 32,                                                                \
                  .min_cols = 6,                                                                   \
                  .panel_size = panel_size,                                                        \
                  .pack = pack_##type,                                                             \
                  .tile = tile}
    k->product[GGL_F32] = PRODUCT(CPU_COLUMNS_F32, f32);
    k->product[GGL_F16] = PRODUCT(CPU_COLUMNS_F32, f16);
    k->product[GGL_BF16] = PRODUCT(CPU_COLUMNS_BF16, bf16);
}
