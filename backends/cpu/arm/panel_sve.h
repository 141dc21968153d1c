/* Panels for vectors of any length: those of SVE, and of SME's streaming mode. The product of a block is
 * exact sums, a vector of rows for each column, which quant_sve.c and quant_sme.c make in their ways;
 * the rest is here. Vectors are 128 to 2048 bits long, of which the first 512 are used; of shorter ones
 * it takes several for 16 rows.
 *
 * The panel is records of weights: a record is a block of 32 of 16 rows,
 *
 *     | 8 vectors of 64 bytes of rows16.h: signed codes | for each kind of scale: 16 f32 |
 *
 * and the records of 16 rows follow each other. Columns are gathered likewise, 16 at a time, for a
 * stretch of blocks:
 *
 *     | 8 vectors: 4 codes of each column | d | what minima are multiplied with |: 16 f32 each
 *
 * For a stretch the chains of a vector of rows, and of 16 columns or those of a tile, stay in registers.
 *
 * Not even compilers with functions for all of this can be relied on to use no instruction that
 * streaming mode lacks. So it is assembly, whose registers are:
 *
 *   x1 .. x7    distances from one vector of 64 bytes to the next seven, in words
 *   x8          bytes of a vector of rows that are used, 4 for each row
 *   x9, x10     places of the rows, and of the columns, in vectors of 64 bytes
 *   x11         how many columns, in fours
 *   x12 .. x15  0, 4, 8 and 12
 *   x16, x17    codes of columns and weights of the block whose sums are made next
 *   x19, x20    numbers of columns and scales of weights of the block whose sums are added next
 *   x21         blocks left
 *   x22         chains; scratch of the sums
 *   x23 .. x25  weights and chains of the group; groups left
 *   x26         scratch
 *   p0, p1      what is used of a vector of rows, as words and as bytes
 *   z0 .. z7    numbers and sums of four columns;  z8 .. z11  scales;  z12 .. z15  sums of second halves
 *   z16 .. z31  chains of 16 columns
 *
 * A file includes this at its end, and defines before:
 *
 *   MOST_FOURS                  sets x11 to the most columns side by side, in fours
 *   BEGIN, END                  before and behind all
 *   SUMS(t, u)                  makes the sums of a block; t, u: places of sums of either half
 *   SUMS_OF_HALVES(t, u)        the same, for each half
 *   FOUR_SUMS(d, e, f, g, t, w) sets registers d .. g to the sums of four columns as floats. w: 12 .. 15, the
 *                               register of the first of them
 *   FIRST_SUMS, SECOND_SUMS     the same, of the halves
 *   THIS_BLOCK, NEXT_FOUR, NEXT_BLOCK  before a block, between fours of its columns, and behind it
 *
 * I() is an instruction. Numbers of registers and tiles are literals. */
#ifndef CPU_PANEL_SVE_H
#define CPU_PANEL_SVE_H

#include <stddef.h>

#include "lanes_neon.h"
#include "unpack_neon.h"

#include "../quant/rows16_vectors.h"

enum {
    PANEL_GROUPS = 6,   /* as many rows as a unit of work has, for which columns are gathered */
    PANEL_COLS = 48,    /* columns whose chains are kept side by side */
    PANEL_MIN_COLS = 8, /* half of the instructions, with those of unpacking, or less */
    STRETCH = 32,       /* blocks for which 16 columns fit in an L1 cache */
    TILE_COLS = 16,     /* columns that are gathered together */
    CODES = 8 * CPU_PLANE
};
_Static_assert(offsetof(cpu_qblock, d) == 32 && offsetof(cpu_qblock, scaled_sum) == 36 &&
                   offsetof(cpu_qblock, half) == 44 && sizeof(cpu_qblock) == 48,
               "a block of a column is three registers");

/* Returns the kinds of scales of a record of weights, and of numbers in a record of columns. */
INLINE int scales_in(const shape_of t) {
    return (1 + t.min) * (1 + t.halves);
}
INLINE int numbers_in(const shape_of t) {
    return 1 + t.min * (1 + t.halves);
}

INLINE int record_size(const shape_of t) {
    return CODES + scales_in(t) * CPU_PLANE;
}
INLINE int columns_size(const shape_of t) {
    return CODES + numbers_in(t) * CPU_PLANE;
}

/* --- packing -------------------------------------------------------------------------------- */

INLINE vcodes codes_less(vcodes v, const int offset) {
    EACH(v.r[i_] = vsubq_u8(v.r[i_], vdupq_n_u8((uint8_t)offset)));
    return v;
}

INLINE void put_record(void *panel, int j, int n_groups, int64_t b, int64_t n_blocks,
                       const vcodes *v, block_scales s, const shape_of t) {
    (void)n_groups;
    uint8_t *to = (uint8_t *)panel + (j * n_blocks + b) * record_size(t);
    UNROLL for (int g = 0; g < 8; g++) codes_store(to + g * CPU_PLANE, v[g]);
    store_scales((float *)(to + CODES), s, t);
}

/* --- products ------------------------------------------------------------------------------- */

/* Gathers n_blocks blocks of n columns from block b on, four columns at a time. Of these, columns
 * from n on repeat the last. The others of 16 are left as they are: their sums are not used. */
INLINE void gather(uint8_t *to, const void *const *x, int n, int64_t b, int n_blocks,
                   const shape_of t) {
    for (int c = 0; c < n && c < TILE_COLS; c += 4, to += 16) {
        const cpu_qblock *q[4];
        uint8_t *p = to;
        for (int e = 0; e < 4; e++)
            q[e] = (const cpu_qblock *)x[c + e < n ? c + e : n - 1] + b;
        for (int i = 0; i < n_blocks; i++, p += columns_size(t)) {
            uint32x4_t v[3][4];
            UNROLL for (int h = 0; h < 3; h++) {
                UNROLL for (int e = 0; e < 4; e++) v[h][e] =
                    vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)&q[e][i] + 16 * h));
                transpose_4x4(v[h]);
            }
            if (t.min && t.halves) { /* the sums of halves are the last word of a block */
                const int32x4_t both = vreinterpretq_s32_u32(v[2][3]);
                v[2][1] =
                    vreinterpretq_u32_f32(vcvtq_f32_s32(vshrq_n_s32(vshlq_n_s32(both, 16), 16)));
                v[2][2] = vreinterpretq_u32_f32(vcvtq_f32_s32(vshrq_n_s32(both, 16)));
            }
            UNROLL for (int f = 0; f < 8 + numbers_in(t); f++)
                vst1q_u8(p + f * CPU_PLANE, vreinterpretq_u8_u32(v[f / 4][f % 4]));
        }
    }
}

/* What add_stretch() computes: up to 16 columns times groups of 16 rows, for a stretch. */
typedef struct stretch_work {
    const uint8_t *x;                   /* records of columns */
    const uint8_t *w;                   /* records of weights of the first group */
    int64_t next_group;                 /* bytes from there to those of the next group */
    float *chain;                       /* [n_groups][TILE_COLS][CPU_GROUP] */
    int64_t n_groups, n_cols, n_blocks; /* at least 1 each */
} stretch_work;

/* clang-format off */
#define I(...) #__VA_ARGS__ "\n\t"

/* Operations on four registers, each of which is a column: d *= r */
#define MUL(d, e, f, g, r)                                        \
    I(fmul z##d.s, z##d.s, z##r.s) I(fmul z##e.s, z##e.s, z##r.s) \
    I(fmul z##f.s, z##f.s, z##r.s) I(fmul z##g.s, z##g.s, z##r.s)
/* d += i * r */
#define FMA(d, e, f, g, i, j, k, l, r)                                        \
    I(fmla z##d.s, p0/m, z##i.s, z##r.s) I(fmla z##e.s, p0/m, z##j.s, z##r.s) \
    I(fmla z##f.s, p0/m, z##k.s, z##r.s) I(fmla z##g.s, p0/m, z##l.s, z##r.s)
/* d += i * r, and d -= i * r, where r has a number for each of the four */
#define FMA_BY(d, e, f, g, i, j, k, l, r)                               \
    I(fmla z##d.s, z##i.s, z##r.s[0]) I(fmla z##e.s, z##j.s, z##r.s[1]) \
    I(fmla z##f.s, z##k.s, z##r.s[2]) I(fmla z##g.s, z##l.s, z##r.s[3])
#define FMS_BY(d, e, f, g, i, r)                                        \
    I(fmls z##d.s, z##i.s, z##r.s[0]) I(fmls z##e.s, z##i.s, z##r.s[1]) \
    I(fmls z##f.s, z##i.s, z##r.s[2]) I(fmls z##g.s, z##i.s, z##r.s[3])

/* Loads numbers of four columns, for each of which `at` grows by 16; kind 0 is d. */
#define NUMBERS(r, kind, at) I(ld1rqw {z##r.s}, p0/z, [x19, (64 * (kind - 1) + at)])

/* For each form: loads scales, and adds a block to the chains d .. g of four columns. */
#define LOAD_SCALE I(ld1w {z8.s}, p0/z, [x20])
#define ADD_SCALE(t, u, w, at, d, e, f, g)        \
    FOUR_SUMS(4, 5, 6, 7, t, w) NUMBERS(0, 0, at) \
    MUL(4, 5, 6, 7, 8) FMA_BY(d, e, f, g, 4, 5, 6, 7, 0)
#define LOAD_SCALE_MIN LOAD_SCALE I(ld1w {z9.s}, p0/z, [x20, x1, lsl 2])
#define ADD_SCALE_MIN(t, u, w, at, d, e, f, g) \
    ADD_SCALE(t, u, w, at, d, e, f, g)         \
    NUMBERS(1, 1, at) FMS_BY(d, e, f, g, 9, 1)
#define LOAD_SCALE16 LOAD_SCALE_MIN
#define HALVES(t, u, w)                                            \
    FIRST_SUMS(4, 5, 6, 7, t, w) SECOND_SUMS(12, 13, 14, 15, u, w) \
    MUL(4, 5, 6, 7, 8) FMA(4, 5, 6, 7, 12, 13, 14, 15, 9)
#define ADD_SCALE16(t, u, w, at, d, e, f, g) \
    HALVES(t, u, w) NUMBERS(0, 0, at)        \
    FMA_BY(d, e, f, g, 4, 5, 6, 7, 0)
#define LOAD_SCALE16_MIN                    \
    LOAD_SCALE16                            \
    I(ld1w {z10.s}, p0/z, [x20, x2, lsl 2]) \
    I(ld1w {z11.s}, p0/z, [x20, x3, lsl 2])
#define ADD_SCALE16_MIN(t, u, w, at, d, e, f, g)                          \
    HALVES(t, u, w) NUMBERS(0, 0, at) NUMBERS(1, 1, at) NUMBERS(2, 2, at) \
    FMS_BY(4, 5, 6, 7, 10, 1) FMS_BY(4, 5, 6, 7, 11, 2)                   \
    FMA_BY(d, e, f, g, 4, 5, 6, 7, 0)

/* Does something for each four columns. */
#define EACH_FOUR(first, second, third, fourth) \
    I(cmp x11, 2)                               \
    first                                       \
    I(b.lo 9f)                                  \
    second                                      \
    I(b.eq 9f)                                  \
    I(cmp x11, 3)                               \
    third                                       \
    I(b.eq 9f)                                  \
    fourth                                      \
    I(9:)
#define ADD(form, t, u)                                           \
    LOAD_##form                                                   \
    THIS_BLOCK                                                    \
    EACH_FOUR(ADD_##form(t, u, 12, 0, 16, 17, 18, 19) NEXT_FOUR,  \
              ADD_##form(t, u, 13, 16, 20, 21, 22, 23) NEXT_FOUR, \
              ADD_##form(t, u, 14, 32, 24, 25, 26, 27) NEXT_FOUR, \
              ADD_##form(t, u, 15, 48, 28, 29, 30, 31))           \
    I(add x19, x19, %[x_size])                                    \
    I(add x20, x20, %[w_size])                                    \
    NEXT_BLOCK

/* Loads or stores the chains: op, p is ld1w, p0/z or st1w, p0. */
#define FOUR_CHAINS(op, p, d, e, f, g)  \
    I(op {z##d.s}, p, [x22])            \
    I(op {z##e.s}, p, [x22, x1, lsl 2]) \
    I(op {z##f.s}, p, [x22, x2, lsl 2]) \
    I(op {z##g.s}, p, [x22, x3, lsl 2]) \
    I(add x22, x22, 256)
#define CHAINS(op, p)                                                                   \
    I(add x22, x24, x10, lsl 4) /* a column is a word of x10, and 64 bytes of chains */ \
    I(add x22, x22, x9)                                                                 \
    EACH_FOUR(FOUR_CHAINS(op, p, 16, 17, 18, 19), FOUR_CHAINS(op, p, 20, 21, 22, 23),   \
              FOUR_CHAINS(op, p, 24, 25, 26, 27), FOUR_CHAINS(op, p, 28, 29, 30, 31))

/* All of it: sums is SUMS or SUMS_OF_HALVES, for which tiles t0, t1 and t2, t3 take turns. */
#define MULTIPLY(form, sums, t0, t1, t2, t3, n_numbers, n_scales)                               \
    __asm__ volatile(                                                                           \
    I(.arch_extension sve)                                                                      \
    BEGIN                                                                                       \
    I(mov x1, 16)                                                                               \
    I(mov x2, 32)                                                                               \
    I(mov x3, 48)                                                                               \
    I(mov x4, 64)                                                                               \
    I(mov x5, 80)                                                                               \
    I(mov x6, 96)                                                                               \
    I(mov x7, 112)                                                                              \
    I(cntb x8)                  /* bytes of a vector, .. */                                     \
    I(cmp x8, 64)              /* .. of which 64 are used */                                    \
    I(csel x8, x8, x4, lo)                                                                      \
    I(whilelt p1.b, xzr, x8)                                                                    \
    I(lsr x26, x8, 2)                                                                           \
    I(whilelt p0.s, xzr, x26)                                                                   \
    I(mov w12, 0)                                                                               \
    I(mov w13, 4)                                                                               \
    I(mov w14, 8)                                                                               \
    I(mov w15, 12)                                                                              \
    I(ldr x23, [%[work], %[w_of]])                                                              \
    I(ldr x24, [%[work], %[chain_of]])                                                          \
    I(ldr x25, [%[work], %[groups_of]])                                                         \
    I(0:)                       /* for each group: */                                           \
    I(mov x9, 0)                                                                                \
    I(1:)                       /* for each vector of rows: */                                  \
    I(mov x10, 0)                                                                               \
    I(2:)                       /* for columns side by side: */                                 \
    I(ldr x26, [%[work], %[cols_of]]) /* x11 = the fours of columns that are left, .. */        \
    I(add x26, x26, 3)                                                                          \
    I(sub x26, x26, x10, lsr 2)                                                                 \
    I(lsr x26, x26, 2)                                                                          \
    MOST_FOURS                  /* .. at most so many */                                        \
    I(cmp x26, x11)                                                                             \
    I(csel x11, x26, x11, lo)                                                                   \
    I(ldr x16, [%[work], %[x_of]])                                                              \
    I(add x16, x16, x10)                                                                        \
    I(add x17, x23, x9)                                                                         \
    I(add x19, x16, %[numbers])                                                                 \
    I(add x20, x17, %[scales])                                                                  \
    I(ldr x21, [%[work], %[blocks_of]])                                                         \
    CHAINS(ld1w, p0/z)                                                                          \
    sums(t0, t1)                                                                                \
    I(3:)                       /* for each two blocks: */                                      \
    I(subs x21, x21, 1)                                                                         \
    I(b.eq 4f)                                                                                  \
    sums(t2, t3)                  /* one ahead, if there is one */                              \
    I(4:)                                                                                       \
    ADD(form, t0, t1)                                                                           \
    I(cbz x21, 6f)                                                                              \
    I(subs x21, x21, 1)                                                                         \
    I(b.eq 5f)                                                                                  \
    sums(t0, t1)                                                                                \
    I(5:)                                                                                       \
    ADD(form, t2, t3)                                                                           \
    I(cbnz x21, 3b)                                                                             \
    I(6:)                                                                                       \
    CHAINS(st1w, p0)                                                                            \
    MOST_FOURS                                                                                  \
    I(add x10, x10, x11, lsl 4)                                                                 \
    I(ldr x26, [%[work], %[cols_of]])                                                           \
    I(cmp x10, x26, lsl 2)                                                                      \
    I(b.lo 2b)                                                                                  \
    I(add x9, x9, x8)                                                                           \
    I(cmp x9, 64)                                                                               \
    I(b.lo 1b)                                                                                  \
    I(ldr x26, [%[work], %[next_of]])                                                           \
    I(add x23, x23, x26)                                                                        \
    I(add x24, x24, 1024)      /* 16 columns times 16 rows */                                   \
    I(subs x25, x25, 1)                                                                         \
    I(b.ne 0b)                                                                                  \
    END                                                                                         \
    :                                                                                           \
    : [work] "r"(work), [x_of] "i"(offsetof(stretch_work, x)),                                  \
      [w_of] "i"(offsetof(stretch_work, w)), [next_of] "i"(offsetof(stretch_work, next_group)), \
      [chain_of] "i"(offsetof(stretch_work, chain)),                                            \
      [groups_of] "i"(offsetof(stretch_work, n_groups)),                                        \
      [cols_of] "i"(offsetof(stretch_work, n_cols)),                                            \
      [blocks_of] "i"(offsetof(stretch_work, n_blocks)),                                        \
      [x_size] "i"(CODES + (n_numbers)*CPU_PLANE),                                              \
      [w_size] "i"(CODES + (n_scales)*CPU_PLANE),                                               \
      [numbers] "i"(CODES + CPU_PLANE), [scales] "i"(CODES)                                     \
    : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",         \
      "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",       \
      "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",          \
      "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",       \
      "v25", "v26", "v27", "v28", "v29", "v30", "v31", "p0", "p1", "p2", "p3", "p4",            \
      "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "cc",             \
      "memory")
/* clang-format on */

/* Adds a stretch to the chains. */
INLINE void add_stretch(const stretch_work *work, const shape_of t) {
    if (t.min && t.halves)
        MULTIPLY(SCALE16_MIN, SUMS_OF_HALVES, 0, 1, 2, 3, 3, 4);
    else if (t.halves)
        MULTIPLY(SCALE16, SUMS_OF_HALVES, 0, 1, 2, 3, 1, 2);
    else if (t.min)
        MULTIPLY(SCALE_MIN, SUMS, 0, 0, 1, 1, 2, 2);
    else
        MULTIPLY(SCALE, SUMS, 0, 0, 1, 1, 1, 1);
}

/* Multiplies a panel with up to PANEL_COLS columns. */
INLINE void multiply(float *const *y, const void *const *x, int n_cols, const uint8_t *panel,
                     int n_rows, int64_t k, const shape_of t) {
    _Alignas(64) uint8_t columns[STRETCH * (CODES + 3 * CPU_PLANE)];
    _Alignas(64) float chain[PANEL_COLS / TILE_COLS][PANEL_GROUPS][TILE_COLS][CPU_GROUP];
    const int n_groups = groups_of(n_rows);
    const int64_t n_blocks = k / 32;
    memset(chain, 0, sizeof chain);
    for (int64_t b = 0; b < n_blocks; b += STRETCH)
        for (int c = 0; c < n_cols; c += TILE_COLS) {
            const stretch_work work = {.x = columns,
                                       .w = panel + b * record_size(t),
                                       .next_group = n_blocks * record_size(t),
                                       .chain = chain[c / TILE_COLS][0][0],
                                       .n_groups = n_groups,
                                       .n_cols = n_cols - c < TILE_COLS ? n_cols - c : TILE_COLS,
                                       .n_blocks = n_blocks - b < STRETCH ? n_blocks - b : STRETCH};
            gather(columns, x + c, n_cols - c, b, (int)work.n_blocks, t);
            add_stretch(&work, t);
        }
    for (int c = 0; c < n_cols; c++)
        for (int j = 0; j < n_groups; j++) {
            const int rows = n_rows - j * CPU_GROUP;
            float_store(y[c] + j * CPU_GROUP, float_load(chain[c / TILE_COLS][j][c % TILE_COLS]),
                        rows < CPU_GROUP ? rows : CPU_GROUP);
        }
}

#include "../quant/panel_tmpl.h"

#endif
