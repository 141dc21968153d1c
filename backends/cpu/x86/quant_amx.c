/* Products of quantized weights with many columns, in the tiles of AMX.
 *
 * A block of 32 of 16 columns times 16 rows is one product of tiles: the columns' codes are 16 rows
 * of 32 bytes, and the weights' codes, as signed bytes, are the 8 vectors of rows16.h. Row c of the
 * result has the integer sums of column c, a lane for each of the 16 rows. Only a store takes them
 * out of a tile, and then they are vectors as in kernel_tmpl.h: the chains of 16 columns stay in
 * registers for a stretch of blocks. If halves have scales of their own, each half is a product.
 *
 * What a block needs is one record. The panel is records of weights, | 8 vectors | scales: f32 |
 * -RAISE times the first scale: f32 |: those of a group of 16 rows for a stretch of blocks, those of
 * the next group, .., then the next stretch. Columns are gathered, 16 at a time, to records
 * | 16 x 32 codes | 16 d | what minima are multiplied with |, one stretch for all groups of a panel.
 *
 * Beside instructions on tiles, for about a hundred cycles after the last one, a core begins one
 * operation on floats in a cycle, not two, but still two on integers. So operations on floats are what
 * limits this kernel, and a sum is not converted: added to the bits of RAISE, as an integer, it is the
 * float RAISE + sum, exactly. That times the scale, less RAISE times the scale, is rounded once, as
 * the sum times the scale is: RAISE times a scale is exact, as scales have 20 bits at most. It is
 * infinite for scales that no model has, and rounded for those of types whose rows have an f32; a panel with such a scale takes
 * the longer way.
 *
 * Products run LEAD tiles ahead of the chains, so that no chain waits for a store, and are stored a
 * block after they began, so that no store waits for its product. Gathering would wait for the last
 * cache, so the columns that are next are prefetched meanwhile. */
#include <math.h>
#include <stddef.h>

#include "lanes_avx512.h"

#include "../quant/rows16_vectors.h"
#include "tiles.h"

enum {
    TILE_COLS = 16,
    TILE_FEW = 8,     /* columns of the last tile, if they suffice: half the work */
    PANEL_COLS = 48,  /* columns whose chains are kept side by side */
    PANEL_GROUPS = 8, /* of 16 rows in a panel */
    STRETCH = 16,     /* blocks for which 16 columns fit in the L1 cache, beside sums and weights */
    LEAD = 4,         /* tiles from a sum's store to its use in a chain */
    FETCHED = TILE_COLS / PANEL_GROUPS, /* columns that are prefetched with a group */
    CODES = 8 * CPU_PLANE,
    SUMS = TILE_COLS * CPU_PLANE, /* bytes of a tile of sums */
    RING = 8 * SUMS,              /* bytes for sums */
    RAISE = 3 << 22,              /* 2^23 + 2^22: a float from 2^23 to 2^24 has units of 1 */
    RAISE_BITS = 0x4b400000,
    PANEL_MIN_COLS = 16 /* for fewer, a panel of this size would hardly pay */
};

/* Returns the numbers of scales, and of minima, that a block has. */
INLINE int scales_in(const shape_of t) {
    return 1 + t.halves;
}
INLINE int minima_in(const shape_of t) {
    return t.min ? 1 + t.halves : 0;
}

/* Return the bytes of a record of weights, and of columns. */
INLINE int record_size(const shape_of t) {
    return CODES + (scales_in(t) + minima_in(t) + 1) * CPU_PLANE;
}
INLINE int columns_size(const shape_of t) {
    return CODES + (1 + minima_in(t)) * CPU_PLANE;
}
enum { MOST_COLUMNS = CODES + 3 * CPU_PLANE };

/* Returns how many blocks the stretch has that begins with block `first`. */
INLINE int stretch_of(int64_t first, int64_t n_blocks) {
    return (int)(n_blocks - first < STRETCH ? n_blocks - first : STRETCH);
}

/* Returns the place of block b of group j in the panel of n_groups groups. */
INLINE uint8_t *record_of(void *panel, int j, int n_groups, int64_t b, int64_t n_blocks,
                          const shape_of t) {
    const int64_t first = b - b % STRETCH;
    const int64_t at = first * n_groups + j * stretch_of(first, n_blocks) + b % STRETCH;
    return (uint8_t *)panel + at * record_size(t);
}

/* --- packing -------------------------------------------------------------------------------- */

/* Makes codes signed. */
INLINE vcodes codes_less(vcodes v, const int offset) {
    return _mm512_sub_epi8(v, _mm512_set1_epi8((char)offset));
}

/* True if RAISE, which has two bits, times a scale may be infinite, or have more bits than a float. */
INLINE bool is_huge(vfloat s) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(s), float_set(0x1p100f), _CMP_NLE_UQ) != 0 ||
           _mm512_test_epi32_mask(_mm512_castps_si512(s), _mm512_set1_epi32(3)) != 0;
}

/* Returns the place of -RAISE times the first scale in a record. In the panel's first record it is a
 * NaN if the panel has a scale that takes the longer way. */
INLINE float *lowering_of(uint8_t *record, const shape_of t) {
    return (float *)(record + CODES + (scales_in(t) + minima_in(t)) * CPU_PLANE);
}

/* The first record is put before all others. */
INLINE void put_record(void *panel, int j, int n_groups, int64_t b, int64_t n_blocks,
                       const vcodes *v, block_scales s, const shape_of t) {
    uint8_t *to = record_of(panel, j, n_groups, b, n_blocks, t);
    UNROLL for (int g = 0; g < 8; g++) codes_store(to + g * CPU_PLANE, v[g]);
    store_scales((float *)(to + CODES), s, t);
    float_store(lowering_of(to, t), float_mul(s.s[0], float_set(-(float)RAISE)), CPU_GROUP);
    if (is_huge(s.s[0]))
        *lowering_of(panel, t) = NAN;
}

/* --- products ------------------------------------------------------------------------------- */

typedef struct workspace {
    uint8_t x[STRETCH * MOST_COLUMNS]; /* records of columns */
    uint8_t sums[RING];
    float chain[PANEL_COLS / TILE_COLS][PANEL_GROUPS][TILE_COLS][CPU_GROUP];
} workspace;

INLINE float float_at(const uint8_t *p, int i) {
    float f;
    memcpy(&f, p + i * 4, sizeof f);
    return f;
}

/* Gathers n_blocks blocks of n columns from block b on; columns from n_cols on repeat the last. Takes
 * four columns at a time: more would be too many streams of memory, fewer too many small stores. */
INLINE void gather(uint8_t *to, const void *const *x, int n_cols, const int n, int64_t b,
                   int n_blocks, const shape_of t) {
    for (int c = 0; c < n; c += 4) {
        const cpu_qblock *q[4];
        uint8_t *p = to;
        for (int e = 0; e < 4; e++)
            q[e] = (const cpu_qblock *)x[c + e < n_cols ? c + e : n_cols - 1] + b;
        for (int i = 0; i < n_blocks; i++, p += columns_size(t)) {
            float *f = (float *)(p + CODES) + c;
            __m128 v[4]; /* | d | scaled_sum | sum | half[0], half[1] | */
            UNROLL for (int e = 0; e < 4; e++) {
                memcpy(p + (c + e) * CPU_QBLOCK, q[e][i].q, CPU_QBLOCK);
                v[e] = _mm_loadu_ps(&q[e][i].d);
            }
            const __m128 low[2] = {_mm_unpacklo_ps(v[0], v[1]), _mm_unpacklo_ps(v[2], v[3])};
            _mm_storeu_ps(f, _mm_movelh_ps(low[0], low[1]));
            if (t.min && !t.halves)
                _mm_storeu_ps(f + CPU_GROUP, _mm_movehl_ps(low[1], low[0]));
            if (t.min && t.halves) {
                const __m128i half = _mm_castps_si128(
                    _mm_movehl_ps(_mm_unpackhi_ps(v[2], v[3]), _mm_unpackhi_ps(v[0], v[1])));
                const __m128i first = _mm_srai_epi32(_mm_slli_epi32(half, 16), 16);
                _mm_storeu_ps(f + CPU_GROUP, _mm_cvtepi32_ps(first));
                _mm_storeu_ps(f + 2 * CPU_GROUP, _mm_cvtepi32_ps(_mm_srai_epi32(half, 16)));
            }
        }
    }
}
_Static_assert(offsetof(cpu_qblock, d) == 32 && offsetof(cpu_qblock, scaled_sum) == 36 &&
                   offsetof(cpu_qblock, half) == 44,
               "the numbers of a block are one vector");

/* Sets the shapes of the tiles for products with n columns: sums are in tiles 0 and 1, columns in 2 and
 * 3, weights in 4 and 5. */
INLINE void shape_tiles(int n, const shape_of t) {
    tile_shapes s = {.palette = 1};
    for (int i = 0; i < 6; i++) {
        s.rows[i] = (uint8_t)(i < 4 ? n : t.halves ? 4 : 8);
        s.bytes[i] = i / 2 == 1 ? CPU_QBLOCK >> t.halves : CPU_PLANE;
    }
    TILE_CONFIG(&s);
}

#define LOAD_DOT(c, a, b, x, w)                                                                    \
    TILE_LOAD(a, x, CPU_QBLOCK);                                                                   \
    TILE_LOAD(b, w, CPU_PLANE);                                                                    \
    TILE_ZERO(c);                                                                                  \
    TILE_DOT(c, a, b)

/* Begins the products of a block. All blocks use the same tiles: the processor renames them. */
INLINE void begin_sums(const uint8_t *x, const uint8_t *w, const shape_of t) {
    LOAD_DOT(0, 2, 4, x, w);
    if (t.halves) {
        LOAD_DOT(1, 3, 5, x + CPU_QBLOCK / 2, w + CODES / 2);
    }
}

/* Stores the sums of the block that began last. */
INLINE void put_sums(uint8_t *to, const shape_of t) {
    TILE_STORE(0, to, CPU_PLANE);
    if (t.halves) {
        TILE_STORE(1, to + SUMS, CPU_PLANE);
    }
}

/* Returns RAISE + each sum. */
INLINE vfloat raised(const uint8_t *sums) {
    return _mm512_castsi512_ps(_mm512_add_epi32(codes_load(sums), four_set(RAISE_BITS)));
}

/* Adds a block to the chains of n columns. x, w: behind the codes of its records; huge: the panel has
 * scales that take the longer way. */
INLINE void add_sums(vfloat *acc, const uint8_t *sums, const uint8_t *x, const uint8_t *w,
                     const int n, const bool huge, const shape_of t) {
    block_scales s = {0};
    const float *at = (const float *)w;
    UNROLL for (int h = 0; h <= t.halves; h++, at += CPU_GROUP) s.s[h] = float_load(at);
    for (int h = 0; t.min && h <= t.halves; h++, at += CPU_GROUP)
        s.m[h] = float_load(at);
    const vfloat lowering = float_load(at), raise = float_set(RAISE);
    UNROLL for (int c = 0; c < n; c++, sums += CPU_PLANE) {
        vfloat v = huge ? float_mul(_mm512_sub_ps(raised(sums), raise), s.s[0])
                        : float_fma(raised(sums), s.s[0], lowering);
        if (t.halves)
            v = float_fma(float_of(codes_load(sums + SUMS)), s.s[1], v);
        if (t.min && t.halves) {
            v = float_fnma(s.m[0], float_set(float_at(x + CPU_PLANE, c)), v);
            v = float_fnma(s.m[1], float_set(float_at(x + 2 * CPU_PLANE, c)), v);
        }
        acc[c] = float_fma(v, float_set(float_at(x, c)), acc[c]);
        if (t.min && !t.halves)
            acc[c] = float_fnma(s.m[0], float_set(float_at(x + CPU_PLANE, c)), acc[c]);
    }
}

/* Up to 16 columns that are gathered next, from block b on. */
typedef struct columns_ahead {
    const void *const *x;
    int n_cols;
    int64_t b;
} columns_ahead;

/* Adds a stretch of n_blocks blocks to the chains of n columns and n_groups groups. x, w: its
 * records. Meanwhile brings the columns ahead to the L2 cache, FETCHED of them with each group. */
INLINE void add_stretch(workspace *s, float (*chain)[TILE_COLS][CPU_GROUP], const uint8_t *x,
                        const uint8_t *w, int n_groups, int n_blocks, columns_ahead ahead,
                        const int n, const bool huge, const shape_of t) {
    const int step = scales_in(t) * SUMS;
    const uint8_t *next_x = x, *next_w = w, *const end = x + n_blocks * columns_size(t),
                  *const end_w = w + n_groups * n_blocks * record_size(t);
    unsigned from = 0, to = 0; /* offsets of sums */
    /* Stores a block's sums, and begins the next. */
#define NEXT()                                                                                     \
    do {                                                                                           \
        if (next_w > end_w)                                                                        \
            break;                                                                                 \
        put_sums(s->sums + to, t);                                                                 \
        to = (to + step) % RING;                                                                   \
        if (next_w < end_w)                                                                        \
            begin_sums(next_x, next_w, t);                                                         \
        next_w += record_size(t), next_x += columns_size(t);                                       \
        next_x = next_x == end ? x : next_x;                                                       \
    } while (0)
    begin_sums(x, w, t);
    next_w += record_size(t), next_x = n_blocks > 1 ? next_x + columns_size(t) : x;
    for (int lead = 0; lead < LEAD / scales_in(t); lead++)
        NEXT();
    for (int j = 0; j < n_groups; j++) {
        const cpu_qblock *far[FETCHED];
        vfloat acc[TILE_COLS];
        for (int e = 0; e < FETCHED; e++) {
            const int c = j * FETCHED + e;
            far[e] = (const cpu_qblock *)ahead.x[c < ahead.n_cols ? c : 0] + ahead.b;
        }
        UNROLL for (int c = 0; c < n; c++) acc[c] = float_load(chain[j][c]);
        for (const uint8_t *p = x; p < end; p += columns_size(t), w += record_size(t)) {
            const uint8_t *sums = s->sums + from;
            __asm__("" : "+r"(sums)); /* so that a register has the address */
            add_sums(acc, sums, p + CODES, w + CODES, n, huge, t);
            from = (from + step) % RING;
            NEXT();
            UNROLL for (int e = 0; e < FETCHED; e++) __builtin_prefetch(far[e]++, 0, 2);
        }
        UNROLL for (int c = 0; c < n; c++) float_store(chain[j][c], acc[c], CPU_GROUP);
    }
#undef NEXT
}

/* Multiplies a panel with up to PANEL_COLS columns. */
INLINE void multiply(float *const *y, const void *const *x, int n_cols, const uint8_t *panel,
                     int n_rows, int64_t k, const shape_of t) {
    _Alignas(64) workspace s;
    const int n_groups = groups_of(n_rows);
    const int64_t n_blocks = k / 32;
    int shaped = 0;
    memset(s.chain, 0, sizeof s.chain);
    for (int64_t b = 0; b < n_blocks; b += STRETCH) {
        const uint8_t *w = panel + b * n_groups * record_size(t);
        const bool huge = isnan(*lowering_of((uint8_t *)panel, t));
        const int blocks = stretch_of(b, n_blocks);
        const int64_t next = b + STRETCH < n_blocks - blocks ? b + STRETCH : n_blocks - blocks;
        for (int c = 0; c < n_cols; c += TILE_COLS) {
            const int left = n_cols - c, n = left <= TILE_FEW && !huge ? TILE_FEW : TILE_COLS;
            /* the next columns, or the first ones of the next stretch */
            const columns_ahead ahead =
                left > TILE_COLS ? (columns_ahead){x + c + TILE_COLS, left - TILE_COLS, b}
                                 : (columns_ahead){x, n_cols, next};
            if (n != shaped)
                shape_tiles(shaped = n, t);
            gather(s.x, x + c, left, n, b, blocks, t);
            if (huge)
                add_stretch(&s, s.chain[c / TILE_COLS], s.x, w, n_groups, blocks, ahead, TILE_COLS,
                            true, t);
            else if (n == TILE_COLS)
                add_stretch(&s, s.chain[c / TILE_COLS], s.x, w, n_groups, blocks, ahead, TILE_COLS,
                            false, t);
            else
                add_stretch(&s, s.chain[c / TILE_COLS], s.x, w, n_groups, blocks, ahead, TILE_FEW,
                            false, t);
        }
    }
    if (shaped)
        TILE_RELEASE();
    for (int c = 0; c < n_cols; c++)
        for (int j = 0; j < n_groups; j++) {
            const int rows = n_rows - j * CPU_GROUP;
            float_store(y[c] + j * CPU_GROUP, float_load(s.chain[c / TILE_COLS][j][c % TILE_COLS]),
                        rows < CPU_GROUP ? rows : CPU_GROUP);
        }
}

#include "../quant/panel_tmpl.h"

void ggl_cpu_kernels_quant_amx(cpu_kernels *k) {
    set_panels(k);
}
