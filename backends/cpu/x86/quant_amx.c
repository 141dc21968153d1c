/* Products of quantized weights with many columns, in the tiles of AMX.
 *
 * A block of 32 of 16 columns times 16 rows is one product of tiles: the columns' codes are 16 rows
 * of 32 bytes, and the weights' codes, as signed bytes, are the 8 vectors of rows16.h. Row c of the
 * result has the integer sums of column c, a lane for each of the 16 rows. Only a store takes them
 * out of a tile, and then they are vectors as in kernel_tmpl.h: the chains of 16 columns stay in
 * registers for a stretch of blocks. If halves have scales of their own, each half is a product.
 *
 * What a block needs is one record. The panel is records of weights, | 8 vectors | scales: f32 |:
 * those of a group of 16 rows for a stretch of blocks, those of the next group, .., then the next
 * stretch. Columns are gathered, 16 at a time, to records of the same size,
 * | 16 x 32 codes | 16 d | what minima are multiplied with |, one stretch for all groups of a panel.
 *
 * Products run LEAD blocks ahead of the chains, so that no chain waits for a tile or its store. A
 * load can wait for an earlier store to another place if the two addresses agree in the low 12 bits.
 * So all addresses advance at the same pace and keep their distance modulo PAGE: the records of
 * columns lie where those of the weights do, and the sums of a block end where its records end. The
 * next loads are behind them, and do not reach the sums of LEAD blocks before. The sums of two
 * blocks overlap modulo PAGE, so they take turns with two buffers. */
#include "lanes_avx512.h"
#include "unpack_avx2.h"

#include "../quant/unpack_tmpl.h"
#include "../quant/rows16_vectors.h"
#include "tiles.h"

enum {
    TILE_COLS = 16,
    TILE_FEW = 8,     /* columns of the last tile, if they suffice: half the work */
    PANEL_COLS = 48,  /* columns whose chains are kept side by side */
    PANEL_GROUPS = 6, /* of 16 rows in a panel */
    STRETCH = 32,     /* blocks for which 16 columns fit in the L1 cache */
    LEAD = 4,         /* blocks from a product to its use in a chain */
    CODES = 8 * CPU_PLANE,
    SUMS = TILE_COLS * CPU_PLANE, /* bytes of a tile of sums */
    PAGE = 4096,
    MOST_RECORD = CODES + 4 * CPU_PLANE,
    PANEL_MIN_COLS = 16 /* for fewer, a panel of this size would hardly pay */
};
_Static_assert(STRETCH *(CODES + 2 * CPU_PLANE) % PAGE == 0 && STRETCH * MOST_RECORD % PAGE == 0,
               "addresses keep their distance from one group to the next");
_Static_assert(LEAD *MOST_RECORD <= PAGE - SUMS && 2 * (CODES + 2 * CPU_PLANE) >= SUMS,
               "sums of LEAD blocks have places of their own");

/* Returns the bytes of a record; a stretch of them is whole pages. */
INLINE int record_size(const shape_of t) {
    const int n = (1 + t.min) * (1 + t.halves);
    return CODES + (n > 2 ? n : 2) * CPU_PLANE;
}

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

INLINE void put_record(void *panel, int j, int n_groups, int64_t b, int64_t n_blocks,
                       const vcodes *v, block_scales s, const shape_of t) {
    uint8_t *to = record_of(panel, j, n_groups, b, n_blocks, t);
    UNROLL for (int g = 0; g < 8; g++) codes_store(to + g * CPU_PLANE, v[g]);
    store_scales((float *)(to + CODES), s, t);
}

/* --- products ------------------------------------------------------------------------------- */

typedef struct workspace {
    uint8_t x[PAGE + STRETCH * MOST_RECORD]; /* records of columns */
    /* For odd and even blocks, and each half: a place at any offset in a page. */
    uint8_t sums[2][2][2 * PAGE];
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
        for (int i = 0; i < n_blocks; i++, p += record_size(t)) {
            uint8_t *f = p + CODES + c * (int)sizeof(float);
            float d[4], first[4], second[4];
            UNROLL for (int e = 0; e < 4; e++) {
                memcpy(p + (c + e) * CPU_QBLOCK, q[e][i].q, CPU_QBLOCK);
                d[e] = q[e][i].d;
                first[e] = t.halves ? (float)q[e][i].half[0] : q[e][i].scaled_sum;
                second[e] = (float)q[e][i].half[1];
            }
            memcpy(f, d, sizeof d);
            if (t.min)
                memcpy(f + CPU_PLANE, first, sizeof first);
            if (t.min && t.halves)
                memcpy(f + 2 * CPU_PLANE, second, sizeof second);
        }
    }
}

/* Sets the shapes of the tiles for products with n columns: sums are in tiles 0 to 3, columns in 4
 * and 5, weights in 6 and 7. */
INLINE void shape_tiles(int n, const shape_of t) {
    tile_shapes s = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        s.rows[i] = (uint8_t)(i < 6 ? n : t.halves ? 4 : 8);
        s.bytes[i] = i < 4 || i >= 6 ? CPU_PLANE : t.halves ? 16 : 32;
    }
    TILE_CONFIG(&s);
}

#define PUT(c, a, b, x, w, to)                                                                     \
    TILE_LOAD(a, x, CPU_QBLOCK);                                                                   \
    TILE_LOAD(b, w, CPU_PLANE);                                                                    \
    TILE_ZERO(c);                                                                                  \
    TILE_DOT(c, a, b);                                                                             \
    TILE_STORE(c, to, CPU_PLANE)

/* Returns the place of a block's sums in a buffer. */
INLINE uintptr_t sums_at(const uint8_t *w, const shape_of t) {
    return ((uintptr_t)w + (uintptr_t)record_size(t) - SUMS) % PAGE;
}

/* Stores the sums of a block. Blocks in turns use other tiles, so that none waits for the store of
 * the one before. */
INLINE void put_sums(workspace *s, bool odd, const uint8_t *x, const uint8_t *w, const shape_of t) {
    const uintptr_t at = sums_at(w, t);
    if (t.halves && odd) {
        PUT(2, 4, 6, x, w, s->sums[1][0] + at);
        PUT(3, 5, 7, x + 16, w + CODES / 2, s->sums[1][1] + at);
    } else if (t.halves) {
        PUT(0, 4, 6, x, w, s->sums[0][0] + at);
        PUT(1, 5, 7, x + 16, w + CODES / 2, s->sums[0][1] + at);
    } else if (odd) {
        PUT(1, 5, 7, x, w, s->sums[1][0] + at);
    } else {
        PUT(0, 4, 6, x, w, s->sums[0][0] + at);
    }
}

/* Adds a block to the chains of n columns. x, w: behind the codes of its records. */
INLINE void add_sums(vfloat *acc, const uint8_t *first, const uint8_t *second, const uint8_t *x,
                     const uint8_t *w, const int n, const shape_of t) {
    block_scales s = {0};
    UNROLL for (int h = 0; h <= t.halves; h++) {
        s.s[h] = float_load((const float *)(w + h * CPU_PLANE));
        if (t.min)
            s.m[h] = float_load((const float *)(w + (1 + t.halves + h) * CPU_PLANE));
    }
    UNROLL for (int c = 0; c < n; c++) {
        vfloat v = float_mul(float_of(codes_load(first + c * CPU_PLANE)), s.s[0]);
        if (t.halves)
            v = float_fma(float_of(codes_load(second + c * CPU_PLANE)), s.s[1], v);
        if (t.min && t.halves) {
            v = float_fnma(s.m[0], float_set(float_at(x + CPU_PLANE, c)), v);
            v = float_fnma(s.m[1], float_set(float_at(x + 2 * CPU_PLANE, c)), v);
        }
        acc[c] = float_fma(v, float_set(float_at(x, c)), acc[c]);
        if (t.min && !t.halves)
            acc[c] = float_fnma(s.m[0], float_set(float_at(x + CPU_PLANE, c)), acc[c]);
    }
}

/* Adds a stretch of n_blocks blocks to the chains of n columns and n_groups groups. x, w: its
 * records. */
INLINE void add_stretch(workspace *s, float (*chain)[TILE_COLS][CPU_GROUP], const uint8_t *x,
                        const uint8_t *w, int n_groups, int n_blocks, const int n,
                        const shape_of t) {
    const int size = record_size(t), n_all = n_groups * n_blocks;
    const uint8_t *next_x = x, *next_w = w, *const end = x + n_blocks * size;
    int next = 0, i = 0;
#define PUT_NEXT                                                                                   \
    if (next < n_all) {                                                                            \
        put_sums(s, next & 1, next_x, next_w, t);                                                  \
        next++, next_w += size, next_x += size;                                                    \
        next_x = next_x == end ? x : next_x;                                                       \
    }
    for (int lead = 0; lead < LEAD; lead++) {
        PUT_NEXT
    }
    for (int j = 0; j < n_groups; j++) {
        vfloat acc[TILE_COLS];
        UNROLL for (int c = 0; c < n; c++) acc[c] = float_load(chain[j][c]);
        for (const uint8_t *p = x; p < end; p += size, w += size, i++) {
            const uintptr_t at = sums_at(w, t);
            add_sums(acc, s->sums[i & 1][0] + at, s->sums[i & 1][1] + at, p + CODES, w + CODES, n,
                     t);
            PUT_NEXT
        }
        UNROLL for (int c = 0; c < n; c++) float_store(chain[j][c], acc[c], CPU_GROUP);
    }
#undef PUT_NEXT
}

/* Multiplies a panel with up to PANEL_COLS columns. */
INLINE void multiply(float *const *y, const void *const *x, int n_cols, const uint8_t *panel,
                     int n_rows, int64_t k, const shape_of t) {
    _Alignas(PAGE) workspace s;
    const int n_groups = groups_of(n_rows);
    const int64_t n_blocks = k / 32;
    int shaped = 0;
    memset(s.chain, 0, sizeof s.chain);
    for (int64_t b = 0; b < n_blocks; b += STRETCH) {
        const uint8_t *w = panel + b * n_groups * record_size(t);
        uint8_t *to = s.x + (uintptr_t)w % PAGE;
        const int blocks = stretch_of(b, n_blocks);
        for (int c = 0; c < n_cols; c += TILE_COLS) {
            const int left = n_cols - c, n = left <= TILE_FEW ? TILE_FEW : TILE_COLS;
            if (n != shaped)
                shape_tiles(shaped = n, t);
            gather(to, x + c, left, n, b, blocks, t);
            if (n == TILE_COLS)
                add_stretch(&s, s.chain[c / TILE_COLS], to, w, n_groups, blocks, TILE_COLS, t);
            else
                add_stretch(&s, s.chain[c / TILE_COLS], to, w, n_groups, blocks, TILE_FEW, t);
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
