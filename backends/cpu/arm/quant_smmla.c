/* Products of quantized weights with many columns, by the matrix instructions of i8mm.
 *
 * smmla multiplies two rows of 8 signed bytes with two others: four sums of 8 products each. So
 * columns and rows are taken in pairs. In all vectors the four numbers are
 *
 *     | column 0, row 0 | column 0, row 1 | column 1, row 0 | column 1, row 1 |
 *
 * The panel is records of weights. A record is a block of 32 of 8 rows,
 *
 *     step 0 .. 3: pair 0 .. 3: | row 0: columns 8 step .. 8 step + 7 | row 1: the same |
 *     for each kind of scale: pair 0 .. 3: | s0 s1 s0 s1 |: f32
 *
 * and the records of 8 rows follow each other. Columns are gathered likewise, up to three pairs at a
 * time, for a stretch of blocks:
 *
 *     step 0 .. 3: pair 0 ..: | column 0: 8 step .. 8 step + 7 | column 1: the same |
 *     for d, and for what minima are multiplied with: pair 0 ..: | d0 d0 d1 d1 |: f32
 *
 * For a stretch the chains of 8 rows and these columns stay in registers. */
#include "lanes_neon.h"
#include "unpack_neon.h"

#include "../quant/rows16_vectors.h"

enum {
    PANEL_GROUPS = 6,    /* as many rows as a unit of work has, for which columns are gathered */
    PANEL_COLS = 48,     /* columns whose chains are kept side by side */
    PANEL_MIN_COLS = 12, /* as LANES_MIN_PANEL */
    STRETCH = 32,        /* blocks whose records of rows and columns fit in the L1 cache */
    STEPS = 4,           /* of 8 elements in a block */
    VECTOR = 16,         /* bytes */
    ROWS = 8,            /* of a record */
    ROW_PAIRS = ROWS / 2,
    PARTS = PANEL_GROUPS * CPU_GROUP / ROWS,
    MOST_PAIRS = 3,  /* of columns: with ROW_PAIRS 12 sums and 12 chains, which leave 8 registers */
    HALVES_PAIRS = 2 /* with scales for halves: 8 chains, and 8 sums of each half */
};

typedef float32x4_t chains[PANEL_COLS / 2][ROW_PAIRS];

/* Returns the vectors of scales that a pair of rows has, and of numbers that a pair of columns has. */
INLINE int scales_in(const shape_of t) {
    return (1 + t.min) * (1 + t.halves);
}
INLINE int numbers_in(const shape_of t) {
    return 1 + t.min * (1 + t.halves);
}

/* Returns the bytes of a record of rows, and of n pairs of columns. */
INLINE int rows_size(const shape_of t) {
    return ROW_PAIRS * (STEPS + scales_in(t)) * VECTOR;
}
INLINE int columns_size(const int n, const shape_of t) {
    return n * (STEPS + numbers_in(t)) * VECTOR;
}

INLINE int record_size(const shape_of t) {
    return CPU_GROUP / ROWS * rows_size(t);
}

/* --- packing -------------------------------------------------------------------------------- */

INLINE vcodes codes_less(vcodes v, const int offset) {
    EACH(v.r[i_] = vsubq_u8(v.r[i_], vdupq_n_u8((uint8_t)offset)));
    return v;
}

/* Returns the first halves of a and b, or the second ones. */
INLINE uint8x16_t join_halves(uint8x16_t a, uint8x16_t b, const int second) {
    const uint64x2_t u = vreinterpretq_u64_u8(a), v = vreinterpretq_u64_u8(b);
    return vreinterpretq_u8_u64(second ? vzip2q_u64(u, v) : vzip1q_u64(u, v));
}

/* Stores the codes of a pair of rows: those of four rows have four columns in each of two vectors. */
INLINE void put_pair(uint8_t *to, uint8x16_t a, uint8x16_t b, const int second) {
    const uint32x4_t u = vreinterpretq_u32_u8(a), v = vreinterpretq_u32_u8(b);
    vst1q_u8(to, vreinterpretq_u8_u32(second ? vzip2q_u32(u, v) : vzip1q_u32(u, v)));
}

INLINE void put_scales_twice(uint8_t *to, float32x4_t s) {
    const uint8x16_t v = vreinterpretq_u8_f32(s);
    vst1q_u8(to, join_halves(v, v, 0));
    vst1q_u8(to + VECTOR, join_halves(v, v, 1));
}

INLINE void put_record(void *panel, int j, int n_groups, int64_t b, int64_t n_blocks,
                       const vcodes *v, block_scales s, const shape_of t) {
    (void)n_groups;
    UNROLL for (int half = 0; half < CPU_GROUP / ROWS; half++) {
        const int64_t part = j * (CPU_GROUP / ROWS) + half;
        uint8_t *p = (uint8_t *)panel + (part * n_blocks + b) * rows_size(t);
        UNROLL for (int g = 0; g < STEPS; g++)
            UNROLL for (int i = 0; i < ROW_PAIRS; i++, p += VECTOR)
                put_pair(p, v[2 * g].r[2 * half + i / 2], v[2 * g + 1].r[2 * half + i / 2], i % 2);
        UNROLL for (int i = 0; i < scales_in(t); i++) UNROLL for (int e = 0; e < 2;
                                                                  e++, p += 2 * VECTOR)
            put_scales_twice(p, (i <= t.halves ? s.s[i] : s.m[i - 1 - t.halves]).r[2 * half + e]);
    }
}

/* --- products ------------------------------------------------------------------------------- */

INLINE float32x4_t twice_each(float a, float b) {
    return vcombine_f32(vdup_n_f32(a), vdup_n_f32(b));
}

/* Gathers n_blocks blocks of n pairs of columns from block b on; columns from n_cols on repeat the
 * last. */
INLINE void gather(uint8_t *to, const void *const *x, int n_cols, const int n, int64_t b,
                   int n_blocks, const shape_of t) {
    for (int q = 0; q < n; q++, to += VECTOR) {
        const int c = 2 * q < n_cols ? 2 * q : n_cols - 1, e = c + 1 < n_cols ? c + 1 : c;
        const cpu_qblock *u = (const cpu_qblock *)x[c] + b, *v = (const cpu_qblock *)x[e] + b;
        uint8_t *p = to;
        for (int i = 0; i < n_blocks; i++, u++, v++, p += columns_size(n, t)) {
            const c32 codes = c32_load((const uint8_t *)u->q),
                      other = c32_load((const uint8_t *)v->q);
            float32x4_t number[3] = {twice_each(u->d, v->d)};
            if (t.min && t.halves) {
                number[1] = twice_each((float)u->half[0], (float)v->half[0]);
                number[2] = twice_each((float)u->half[1], (float)v->half[1]);
            } else if (t.min) {
                number[1] = twice_each(u->scaled_sum, v->scaled_sum);
            }
            UNROLL for (int g = 0; g < STEPS; g++)
                vst1q_u8(p + g * n * VECTOR, g < 2 ? join_halves(codes.a, other.a, g)
                                                   : join_halves(codes.b, other.b, g - 2));
            UNROLL for (int f = 0; f < numbers_in(t); f++)
                vst1q_u8(p + (STEPS + f) * n * VECTOR, vreinterpretq_u8_f32(number[f]));
        }
    }
}

INLINE float32x4_t vector_at(const uint8_t *p, const int i) {
    return vreinterpretq_f32_u8(vld1q_u8(p + i * VECTOR));
}

/* Sets sum[][] to the sums of a block's steps first .. last - 1 of ROW_PAIRS times n pairs. */
INLINE void multiply_steps(int32x4_t (*sum)[ROW_PAIRS], const uint8_t *x, const uint8_t *w,
                           const int n, const int first, const int last) {
    UNROLL for (int q = 0; q < n; q++) UNROLL for (int i = 0; i < ROW_PAIRS; i++) sum[q][i] =
        vdupq_n_s32(0);
    UNROLL for (int g = first; g < last; g++) {
        int8x16_t rows[ROW_PAIRS], columns[MOST_PAIRS];
        UNROLL for (int i = 0; i < ROW_PAIRS; i++) rows[i] =
            vreinterpretq_s8_u8(vld1q_u8(w + (g * ROW_PAIRS + i) * VECTOR));
        UNROLL for (int q = 0; q < n; q++) columns[q] =
            vreinterpretq_s8_u8(vld1q_u8(x + (g * n + q) * VECTOR));
        UNROLL for (int q = 0; q < n; q++) UNROLL for (int i = 0; i < ROW_PAIRS; i++) sum[q][i] =
            vmmlaq_s32(sum[q][i], columns[q], rows[i]);
    }
}

/* Adds n_blocks blocks to the chains of 8 rows and n pairs of columns. */
INLINE void add_part(float32x4_t (*chain)[ROW_PAIRS], const uint8_t *x, const uint8_t *w,
                     int n_blocks, const int n, const shape_of t) {
    float32x4_t acc[MOST_PAIRS][ROW_PAIRS];
    UNROLL for (int q = 0; q < n; q++) UNROLL for (int i = 0; i < ROW_PAIRS; i++) acc[q][i] =
        chain[q][i];
    for (int b = 0; b < n_blocks; b++, x += columns_size(n, t), w += rows_size(t)) {
        const uint8_t *s = w + STEPS * ROW_PAIRS * VECTOR, *d = x + STEPS * n * VECTOR;
        int32x4_t sum[2][MOST_PAIRS][ROW_PAIRS];
        if (t.halves) {
            multiply_steps(sum[0], x, w, n, 0, STEPS / 2);
            multiply_steps(sum[1], x, w, n, STEPS / 2, STEPS);
        } else {
            multiply_steps(sum[0], x, w, n, 0, STEPS);
        }
        UNROLL for (int i = 0; i < ROW_PAIRS; i++) UNROLL for (int q = 0; q < n; q++) {
            float32x4_t v = vmulq_f32(vcvtq_f32_s32(sum[0][q][i]), vector_at(s, i));
            if (t.halves)
                v = vfmaq_f32(v, vcvtq_f32_s32(sum[1][q][i]), vector_at(s, ROW_PAIRS + i));
            if (t.min && t.halves) {
                v = vfmsq_f32(v, vector_at(s, 2 * ROW_PAIRS + i), vector_at(d, n + q));
                v = vfmsq_f32(v, vector_at(s, 3 * ROW_PAIRS + i), vector_at(d, 2 * n + q));
            }
            acc[q][i] = vfmaq_f32(acc[q][i], v, vector_at(d, q));
            if (t.min && !t.halves)
                acc[q][i] = vfmsq_f32(acc[q][i], vector_at(s, ROW_PAIRS + i), vector_at(d, n + q));
        }
    }
    UNROLL for (int q = 0; q < n; q++) UNROLL for (int i = 0; i < ROW_PAIRS; i++) chain[q][i] =
        acc[q][i];
}

/* Gathers up to n pairs of columns for a stretch and adds it to the chains of all rows. */
INLINE void add_columns(chains *chain, const void *const *x, int n_cols, int pair,
                        const uint8_t *panel, int n_parts, int64_t b, int64_t n_all, const int n,
                        const shape_of t) {
    _Alignas(64) uint8_t columns[STRETCH * MOST_PAIRS * (STEPS + 3) * VECTOR];
    const int n_blocks = (int)(n_all - b < STRETCH ? n_all - b : STRETCH);
    gather(columns, x + 2 * pair, n_cols - 2 * pair, n, b, n_blocks, t);
    for (int part = 0; part < n_parts; part++)
        add_part(chain[part] + pair, columns, panel + (part * n_all + b) * rows_size(t), n_blocks,
                 n, t);
}

INLINE void multiply(float *const *y, const void *const *x, int n_cols, const uint8_t *panel,
                     int n_rows, int64_t k, const shape_of t) {
    chains chain[PARTS];
    const int n_parts = (n_rows + ROWS - 1) / ROWS, most = t.halves ? HALVES_PAIRS : MOST_PAIRS;
    memset(chain, 0, (size_t)n_parts * sizeof *chain);
    for (int64_t b = 0; b < k / 32; b += STRETCH)
        for (int pair = 0; 2 * pair < n_cols; pair += most) {
            const int left = (n_cols + 1) / 2 - pair;
            if (left >= 3 && !t.halves)
                add_columns(chain, x, n_cols, pair, panel, n_parts, b, k / 32, 3, t);
            else if (left >= 2)
                add_columns(chain, x, n_cols, pair, panel, n_parts, b, k / 32, 2, t);
            else
                add_columns(chain, x, n_cols, pair, panel, n_parts, b, k / 32, 1, t);
        }
    for (int part = 0; part < n_parts; part++)
        for (int c = 0; c < n_cols; c++) {
            const int rows = n_rows - part * ROWS < ROWS ? n_rows - part * ROWS : ROWS;
            float out[ROWS];
            UNROLL for (int i = 0; i < ROW_PAIRS; i++) {
                const float32x4_t v = chain[part][c / 2][i];
                vst1_f32(out + 2 * i, c % 2 ? vget_high_f32(v) : vget_low_f32(v));
            }
            memcpy(y[c] + part * ROWS, out, (size_t)rows * sizeof *out);
        }
}

#include "../quant/panel_tmpl.h"

void ggl_cpu_kernels_quant_smmla(cpu_kernels *k) {
    set_panels(k);
}
