/* Products of quantized rows with many quantized columns: panels of 32 rows against 6 columns in
 * registers, 12 integer sums by vpdpbusd. Codes are unsigned (a signed one + 128); the offset is
 * repaid where the sum starts: -128 * (sum of x). */
#include "quant_rows.h"

enum { HEIGHT = 32, COLS = 6 };

static size_t panel_size(int64_t k) {
    return (size_t)k * HEIGHT + (size_t)(k / 32) * HEIGHT * sizeof(float);
}

INLINE void columns(float *const *y, const cpu_qblock *const *x, const int n_cols,
                    const uint8_t *codes, int n_rows, int64_t k, const int offset) {
    const float *scale = (const float *)(codes + k * HEIGHT);
    __m512 f[COLS][2];
    for (int c = 0; c < n_cols; c++)
        f[c][0] = f[c][1] = _mm512_setzero_ps();
    for (int64_t b = 0; b < k / 32; b++) {
        __m512i a[COLS][2];
        const uint8_t *p = codes + b * 32 * HEIGHT;
        for (int c = 0; c < n_cols; c++)
            a[c][0] = a[c][1] = _mm512_set1_epi32(-offset * x[c][b].sum);
        for (int g = 0; g < 8; g++) {
            __m512i w0 = _mm512_loadu_si512(p + g * 128), w1 = _mm512_loadu_si512(p + g * 128 + 64);
            for (int c = 0; c < n_cols; c++) {
                int32_t four;
                memcpy(&four, x[c][b].q + 4 * g, sizeof four);
                __m512i v = _mm512_set1_epi32(four);
                a[c][0] = _mm512_dpbusd_epi32(a[c][0], w0, v);
                a[c][1] = _mm512_dpbusd_epi32(a[c][1], w1, v);
            }
        }
        __m512 d0 = _mm512_loadu_ps(scale + b * HEIGHT),
               d1 = _mm512_loadu_ps(scale + b * HEIGHT + 16);
        for (int c = 0; c < n_cols; c++) {
            __m512 dx = _mm512_set1_ps(x[c][b].d);
            f[c][0] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(a[c][0]), d0), dx, f[c][0]);
            f[c][1] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(a[c][1]), d1), dx, f[c][1]);
        }
    }
    __mmask16 m0 = (__mmask16)(n_rows >= 16 ? 0xffff : (1u << n_rows) - 1);
    __mmask16 m1 = (__mmask16)(n_rows >= 32   ? 0xffff
                               : n_rows <= 16 ? 0
                                              : (1u << (n_rows - 16)) - 1);
    for (int c = 0; c < n_cols; c++) {
        _mm512_mask_storeu_ps(y[c], m0, f[c][0]);
        _mm512_mask_storeu_ps(y[c] + 16, m1, f[c][1]);
    }
}

INLINE void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k, const int offset) {
    for (int c = 0; c < n_cols; c += COLS) {
        const cpu_qblock *column[COLS];
        int n = n_cols - c < COLS ? n_cols - c : COLS;
        for (int i = 0; i < n; i++)
            column[i] = x[c + i];
        switch (n) {
        case 6:
            columns(y + c, column, 6, panel, n_rows, k, offset);
            break;
        case 5:
            columns(y + c, column, 5, panel, n_rows, k, offset);
            break;
        case 4:
            columns(y + c, column, 4, panel, n_rows, k, offset);
            break;
        case 3:
            columns(y + c, column, 3, panel, n_rows, k, offset);
            break;
        case 2:
            columns(y + c, column, 2, panel, n_rows, k, offset);
            break;
        default:
            columns(y + c, column, 1, panel, n_rows, k, offset);
            break;
        }
    }
}

#define BY_TYPE(type, size, flip, offset)                                                          \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        pack_panel(panel, w, row_size, n_rows, k, HEIGHT, unpack_##type, size, flip);              \
    }                                                                                              \
    static void tile_##type(float *const *y, const void *const *x, int n_cols, const void *panel,  \
                            int n_rows, int64_t k) {                                               \
        tile(y, x, n_cols, panel, n_rows, k, offset);                                              \
    }
BY_TYPE(q8_0, Q8_0_SIZE, -128, 128)
BY_TYPE(q4_0, Q4_0_SIZE, 0, 8)

void cpu_kernels_quant_avx512vnni(cpu_kernels *k) {
#define PANEL(type)                                                                                \
    p->panel_rows = HEIGHT, p->min_cols = 8, p->panel_size = panel_size, p->pack = pack_##type,    \
    p->tile = tile_##type
    cpu_product *p = &k->product[GGL_Q8_0];
    PANEL(q8_0);
    p = &k->product[GGL_Q4_0];
    PANEL(q4_0);
}
