/* Products of quantized rows with quantized columns: exact integers within a block of 32, rows in
 * the lanes for the chain of fused multiply-adds over the blocks.
 *
 *   rows   8 rows in place: the integer sums of 8 rows are brought side by side by horizontal
 * additions tile   a panel of 16 rows (quant_rows.h) against 3 columns at a time
 *
 * Bounds that make 16-bit sums exact, with activations in -127..127:
 *   codes 0..15     a pair 2*15*127 = 3810, all eight pairs of a lane's group 30480
 *   codes -128..127 as |w| * sign(x, w): a pair 2*128*127 = 32512 */
#include "quant_rows.h"

enum { HEIGHT = 16, COLS = 3, ROWS = 8 };

INLINE __m256i broadcast4(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

/* --- rows in place ------------------------------------------------------------------------- */

/* The f16 at p, p + step, .. of 8 rows. */
INLINE __m256 load_scales(const uint8_t *p, size_t step) {
    __m128i v = _mm_setzero_si128();
    uint16_t d[8];
    for (int r = 0; r < 8; r++)
        memcpy(d + r, p + (size_t)r * step, 2);
    v = _mm_insert_epi16(v, d[0], 0), v = _mm_insert_epi16(v, d[1], 1);
    v = _mm_insert_epi16(v, d[2], 2), v = _mm_insert_epi16(v, d[3], 3);
    v = _mm_insert_epi16(v, d[4], 4), v = _mm_insert_epi16(v, d[5], 5);
    v = _mm_insert_epi16(v, d[6], 6), v = _mm_insert_epi16(v, d[7], 7);
    return _mm256_cvtph_ps(v);
}

/* acc + (float)sum * d * dx */
INLINE __m256 chain(__m256 acc, __m256i sum, __m256 d, float dx) {
    return _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), d), set8(dx), acc);
}

/* Sums of all eight 32-bit lanes of eight vectors, side by side. */
INLINE __m256i sum_of_8(const __m256i v[8]) {
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* The rows of a matrix follow each other, so what the next 8 rows will read is one stretch: it is
 * fetched line by line, as far along as this group of rows is. */
INLINE void fetch_ahead(const uint8_t *w, size_t row_size, int64_t done, const size_t bytes) {
    const uint8_t *next = w + ROWS * row_size + ROWS * (size_t)done;
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch(next + i, _MM_HINT_T0);
}

static void rows8_q8_0(float *y, const uint8_t *w, size_t row_size, const cpu_qblock *x,
                       int64_t n_blocks) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256 acc = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        const uint8_t *p = w + b * Q8_0_SIZE;
        __m256i v[8], q = _mm256_loadu_si256((const __m256i *)x[b].q);
        fetch_ahead(w, row_size, b * Q8_0_SIZE, ROWS * Q8_0_SIZE);
        for (int r = 0; r < 8; r++) {
            __m256i c = unpack_q8_0(p + (size_t)r * row_size);
            v[r] = _mm256_madd_epi16(
                one, _mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(q, c)));
        }
        acc = chain(acc, sum_of_8(v), load_scales(p, row_size), x[b].d);
    }
    _mm256_storeu_ps(y, acc);
}

/* Two blocks at a time, one in each half of a register: 16-bit sums hold a whole block. */
static void rows8_q4_0(float *y, const uint8_t *w, size_t row_size, const cpu_qblock *x,
                       int64_t n_blocks) {
    const __m256i low = _mm256_set1_epi8(15);
    __m256 acc = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b += 2) {
        const uint8_t *p = w + b * Q4_0_SIZE;
        int64_t b1 = b + 1 < n_blocks ? b + 1 : b; /* an odd last one meets itself */
        const cpu_qblock *x1 = x + b1;
        const size_t next = (size_t)(b1 - b) * Q4_0_SIZE;
        __m256i q0 = _mm256_loadu2_m128i((const __m128i *)x1->q, (const __m128i *)x[b].q);
        __m256i q1 =
            _mm256_loadu2_m128i((const __m128i *)(x1->q + 16), (const __m128i *)(x[b].q + 16));
        __m256i v[8];
        fetch_ahead(w, row_size, b * Q4_0_SIZE, 2 * ROWS * Q4_0_SIZE);
        for (int r = 0; r < 8; r++) {
            const uint8_t *c = p + (size_t)r * row_size + 2;
            __m256i u = _mm256_loadu2_m128i((const __m128i *)(c + next), (const __m128i *)c);
            __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(u, low), q0);
            v[r] = _mm256_add_epi16(
                even, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(u, 4), low), q1));
        }
        __m256i s = _mm256_hadd_epi16(
            _mm256_hadd_epi16(_mm256_hadd_epi16(v[0], v[1]), _mm256_hadd_epi16(v[2], v[3])),
            _mm256_hadd_epi16(_mm256_hadd_epi16(v[4], v[5]), _mm256_hadd_epi16(v[6], v[7])));
        __m256i s0 = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(s)),
                s1 = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(s, 1));
        acc = chain(acc, _mm256_sub_epi32(s0, _mm256_set1_epi32(8 * x[b].sum)),
                    load_scales(p, row_size), x[b].d);
        if (b1 != b)
            acc = chain(acc, _mm256_sub_epi32(s1, _mm256_set1_epi32(8 * x1->sum)),
                        load_scales(p + next, row_size), x1->d);
    }
    _mm256_storeu_ps(y, acc);
}

typedef void rows8_fn(float *y, const uint8_t *w, size_t row_size, const cpu_qblock *x,
                      int64_t n_blocks);

/* The last rows, fewer than 8, are the 8 that end with them; a matrix of fewer rows goes one by
 * one, at step 0. */
INLINE void rows_q(float *y, const uint8_t *w, size_t row_size, int64_t n_rows, const cpu_qblock *x,
                   int64_t k, rows8_fn *rows8) {
    int64_t j = 0;
    float last[ROWS];
    for (; j + ROWS <= n_rows; j += ROWS)
        rows8(y + j, w + (size_t)j * row_size, row_size, x, k / 32);
    if (j < n_rows && n_rows >= ROWS) {
        rows8(last, w + (size_t)(n_rows - ROWS) * row_size, row_size, x, k / 32);
        memcpy(y + j, last + ROWS - (n_rows - j), (size_t)(n_rows - j) * sizeof *y);
    } else {
        for (; j < n_rows; j++) {
            rows8(last, w + (size_t)j * row_size, 0, x, k / 32);
            y[j] = last[0];
        }
    }
}

/* --- panels -------------------------------------------------------------------------------- */

static size_t panel_size(int64_t k) {
    return (size_t)k * HEIGHT + (size_t)(k / 32) * HEIGHT * sizeof(float);
}

/* The integer sums of one block: 8 rows in each of two registers, n_cols columns. */
INLINE void block_small(__m256i a[COLS][2], const uint8_t *p, const cpu_qblock *const *x,
                        const int n_cols) { /* codes 0..15 */
    const __m256i one = _mm256_set1_epi16(1);
    for (int c = 0; c < n_cols; c++)
        a[c][0] = a[c][1] = _mm256_setzero_si256();
    for (int g = 0; g < 8; g++) {
        __m256i w0 = _mm256_loadu_si256((const __m256i *)(p + g * 64)),
                w1 = _mm256_loadu_si256((const __m256i *)(p + g * 64 + 32));
        for (int c = 0; c < n_cols; c++) {
            __m256i v = broadcast4(x[c]->q + 4 * g);
            a[c][0] = _mm256_add_epi16(a[c][0], _mm256_maddubs_epi16(w0, v));
            a[c][1] = _mm256_add_epi16(a[c][1], _mm256_maddubs_epi16(w1, v));
            PIN(a[c][0]);
            PIN(a[c][1]);
        }
    }
    for (int c = 0; c < n_cols; c++)
        for (int h = 0; h < 2; h++)
            a[c][h] =
                _mm256_sub_epi32(_mm256_madd_epi16(a[c][h], one), _mm256_set1_epi32(8 * x[c]->sum));
}

INLINE void block_signed(__m256i a[COLS][2], const uint8_t *p, const cpu_qblock *const *x,
                         const int n_cols) {
    const __m256i one = _mm256_set1_epi16(1);
    for (int c = 0; c < n_cols; c++)
        a[c][0] = a[c][1] = _mm256_setzero_si256();
    for (int g = 0; g < 8; g++) {
        __m256i w0 = _mm256_loadu_si256((const __m256i *)(p + g * 64)),
                w1 = _mm256_loadu_si256((const __m256i *)(p + g * 64 + 32));
        __m256i u0 = _mm256_abs_epi8(w0), u1 = _mm256_abs_epi8(w1);
        for (int c = 0; c < n_cols; c++) {
            __m256i v = broadcast4(x[c]->q + 4 * g);
            a[c][0] = _mm256_add_epi32(
                a[c][0], _mm256_madd_epi16(one, _mm256_maddubs_epi16(u0, _mm256_sign_epi8(v, w0))));
            a[c][1] = _mm256_add_epi32(
                a[c][1], _mm256_madd_epi16(one, _mm256_maddubs_epi16(u1, _mm256_sign_epi8(v, w1))));
            PIN(a[c][0]);
            PIN(a[c][1]);
        }
    }
}

INLINE void columns(float *const *y, const cpu_qblock *const *x, const int n_cols,
                    const uint8_t *codes, int n_rows, int64_t k, const int small) {
    const float *scale = (const float *)(codes + k * HEIGHT);
    const cpu_qblock *at[COLS];
    __m256 f[COLS][2];
    for (int c = 0; c < n_cols; c++) {
        f[c][0] = f[c][1] = _mm256_setzero_ps();
        at[c] = x[c];
    }
    for (int64_t b = 0; b < k / 32; b++) {
        __m256i a[COLS][2];
        if (small)
            block_small(a, codes + b * 32 * HEIGHT, at, n_cols);
        else
            block_signed(a, codes + b * 32 * HEIGHT, at, n_cols);
        __m256 d0 = _mm256_loadu_ps(scale + b * HEIGHT),
               d1 = _mm256_loadu_ps(scale + b * HEIGHT + 8);
        for (int c = 0; c < n_cols; c++) {
            f[c][0] = chain(f[c][0], a[c][0], d0, at[c]->d);
            f[c][1] = chain(f[c][1], a[c][1], d1, at[c]->d);
            at[c]++;
        }
    }
    for (int c = 0; c < n_cols; c++) {
        float out[HEIGHT];
        float *to = n_rows == HEIGHT ? y[c] : out;
        _mm256_storeu_ps(to, f[c][0]);
        _mm256_storeu_ps(to + 8, f[c][1]);
        if (n_rows < HEIGHT)
            memcpy(y[c], out, (size_t)n_rows * sizeof *out);
    }
}

INLINE void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k, const int small) {
    for (int c = 0; c < n_cols; c += COLS) {
        const cpu_qblock *column[COLS];
        int n = n_cols - c < COLS ? n_cols - c : COLS;
        for (int i = 0; i < n; i++)
            column[i] = x[c + i];
        switch (n) {
        case 3:
            columns(y + c, column, 3, panel, n_rows, k, small);
            break;
        case 2:
            columns(y + c, column, 2, panel, n_rows, k, small);
            break;
        default:
            columns(y + c, column, 1, panel, n_rows, k, small);
            break;
        }
    }
}

#define BY_TYPE(type, size, small)                                                                 \
    static void rows_##type(float *y, const void *w, size_t row_size, int64_t n_rows,              \
                            const void *x, int64_t k) {                                            \
        rows_q(y, w, row_size, n_rows, x, k, rows8_##type);                                        \
    }                                                                                              \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        pack_panel(panel, w, row_size, n_rows, k, HEIGHT, unpack_##type, size, 0);                 \
    }                                                                                              \
    static void tile_##type(float *const *y, const void *const *x, int n_cols, const void *panel,  \
                            int n_rows, int64_t k) {                                               \
        tile(y, x, n_cols, panel, n_rows, k, small);                                               \
    }
BY_TYPE(q8_0, Q8_0_SIZE, 0)
BY_TYPE(q4_0, Q4_0_SIZE, 1)

void cpu_kernels_quant_avx2(cpu_kernels *k) {
#define PRODUCT(type)                                                                              \
    (cpu_product){.columns = CPU_COLUMNS_Q8,                                                       \
                  .rows = rows_##type,                                                             \
                  .panel_rows = HEIGHT,                                                            \
                  .panel_unit = 32,                                                                \
                  .min_cols = 8,                                                                   \
                  .panel_size = panel_size,                                                        \
                  .pack = pack_##type,                                                             \
                  .tile = tile_##type}
    k->product[GGL_Q8_0] = PRODUCT(q8_0);
    k->product[GGL_Q4_0] = PRODUCT(q4_0);
}
