/* Products of f32, f16, bf16 and f8_e4m3 weights. Each dot product has sixteen running sums
 * (docs/numeric.md, section 4), which are V_16 vectors. For bf16, the elements of each 32 are
 * reordered, odd ones first (CPU_COLUMNS_BF16), and then the f32 rule applies; where the
 * instruction set multiplies pairs of bf16 (V_PAIRS), a lane takes a pair.
 *
 *   rows   multiplies 4 rows at a time, straight from the weights, with one column or, of f32, f16 and f8_e4m3, with as
 *          many as `tile` does, and prefetches the next 4; with one column, 4 stretches without prefetching
 *   tile   multiplies a panel of PANEL_ROWS rows, as f32 or as pairs, with all columns, several rows by some
 *          columns at a time: inner_tmpl.h, or where vectors can be turned (V_TURN), outer_tmpl.h. V_TILE lists the
 *          numbers of columns, largest first; V_COLS is the largest */
#include "functions.h"

#include "../prefetch.h"

#include <limits.h>

enum { ROWS = 4 };

#ifndef V_KEEPS
INLINE vf v_keep(vf v) {
    return v;
}
#endif

/* A lane takes 32 bits at a time: one element as f32, or a pair of bf16. */
#ifdef V_PAIRS
enum { PER_LANE = 2 };
INLINE vf add_product(vf w, vf x, vf sum) {
    return v_fma_pairs(w, x, sum);
}
#else
enum { PER_LANE = 1 };
INLINE vf add_product(vf w, vf x, vf sum) {
    return v_fma(w, x, sum);
}
#endif
enum { V_COLUMN = V_32 / PER_LANE }; /* vectors of 32 elements */

/* --- loads: 32 elements, in the order of the columns ---------------------------------------- */

typedef struct v_32 {
    vf v[V_COLUMN];
} v_32;

INLINE v_32 load_column(const void *p) {
    v_32 r;
    for (int i = 0; i < V_COLUMN; i++)
        r.v[i] = v_load((const float *)p + V_LANES * i);
    return r;
}

#ifndef V_PAIRS
/* Loads V_LANES f8_e4m3 weights. */
INLINE vf load_bytes(const char *p) {
#ifdef V_LOAD_E4M3
    return v_load_e4m3((const uint8_t *)p);
#else
    const vu u = (vu)v_load_bytes((const uint8_t *)p), a = (u & 0x7f) << 20;
    /* A number below 8 is m * 2^-9: with the exponent of 2^-6, the leading one is too much. */
    const vu small = (vu)((vf)(a + (121u << 23)) - v_set(0x1p-6f));
    const vu is_small = (vu)(a < 8u << 20), nan = (vu)(a == 0x7fu << 20) & 0x7fc00000;
    return (vf)((small & is_small) | ((a + (120u << 23)) & ~is_small) | nan | (u & 0x80) << 24);
#endif
}
#endif

/* Loads V_LANES pairs of bf16 weights. Weights below 2^-56 (exponent field below 71) become 0. */
INLINE vu load_pairs(const void *p) {
    typedef int16_t vh __attribute__((vector_size(sizeof(vu))));
    vh h;
    memcpy(&h, p, sizeof h);
    return (vu)(h & (vh)((h & 0x7fff) >= 71 << 7));
}

#ifdef V_PAIRS
INLINE v_32 load_bf16(const void *p) {
    v_32 r;
    for (int i = 0; i < V_16; i++)
        r.v[i] = (vf)load_pairs((const uint16_t *)p + 2 * V_LANES * i);
    return r;
}
#else
INLINE v_32 load_f32(const void *p) {
    return load_column(p);
}

INLINE v_32 load_f16(const void *p) {
    v_32 r;
    for (int i = 0; i < V_32; i++)
        r.v[i] = v_load_half((const uint16_t *)p + V_LANES * i);
    return r;
}

INLINE v_32 load_f8_e4m3(const void *p) {
    v_32 r;
    for (int i = 0; i < V_32; i++)
        r.v[i] = load_bytes((const char *)p + V_LANES * i);
    return r;
}

INLINE v_32 load_bf16(const void *p) {
    v_32 r;
    for (int i = 0; i < V_16; i++) {
        vu pairs = load_pairs((const uint16_t *)p + 2 * V_LANES * i);
        r.v[i] = (vf)(pairs & 0xffff0000);
        r.v[V_16 + i] = (vf)(pairs << 16);
    }
    return r;
}
#endif

typedef v_32 load_fn(const void *p);

/* Adds the products of 16 elements: of rows as short as those of low-rank adapters, which padding to
 * 32 would make several times slower. Returns false, without adding, for bf16, whose order needs 32. */
INLINE bool add_16(vf acc[V_16], const char *w, const float *x, load_fn *load) {
#ifndef V_PAIRS
    if (load == load_bf16)
        return false;
    for (int i = 0; i < V_16; i++) {
        const vf v = load == load_f16 ? v_load_half((const uint16_t *)(const void *)w + V_LANES * i)
                     : load == load_f8_e4m3 ? load_bytes(w + V_LANES * i)
                                            : v_load((const float *)(const void *)w + V_LANES * i);
        acc[i] = v_fma(v, v_load(x + V_LANES * i), acc[i]);
    }
    return true;
#else
    (void)acc, (void)w, (void)x, (void)load;
    return false;
#endif
}

/* --- rows ---------------------------------------------------------------------------------- */

INLINE void add_32(vf acc[V_16], v_32 w, v_32 x) {
    for (int i = 0; i < V_COLUMN; i++)
        acc[i % V_16] = add_product(w.v[i], x.v[i], acc[i % V_16]);
}

/* Adds up the sixteen sums of each row and stores the results to y[0..n_rows). */
INLINE void store_sums(float *y, const vf (*s)[V_16], const int n_rows) {
    if (n_rows == ROWS)
        v_four_trees(y, s);
    else
        for (int r = 0; r < n_rows; r++)
            y[r] = v_tree(s[r]);
    for (int r = 0; r < n_rows; r++)
        y[r] += 0.0f;
}
_Static_assert(ROWS == 4, "v_four_trees");

/* Multiplies n_rows (a constant, at most ROWS) rows of w, `step` bytes apart, with the column x. size: bytes of an
 * element of w. fetches: a constant, whether to prefetch the next rows, which are one stretch. */
INLINE void dot_rows(float *y, const char *w, size_t step, const int n_rows, const float *x,
                     int64_t k, load_fn *load, const int size, const bool fetches) {
    const char *ahead = w + (size_t)n_rows * step;
    vf acc[ROWS][V_16];
    for (int r = 0; r < n_rows; r++)
        for (int h = 0; h < V_16; h++)
            acc[r][h] = v_set(0.0f);
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) {
        v_32 c = load_column(x + i / PER_LANE);
        for (int r = 0; r < n_rows; r++) {
            if (fetches)
                fetch(ahead + (i * n_rows + 32 * r) * size, 32 * size);
            add_32(acc[r], load(w + (size_t)r * step + (size_t)i * (size_t)size), c);
        }
    }
    if (i + 16 <= k) {
        bool added = false;
        for (int r = 0; r < n_rows; r++)
            added = add_16(acc[r], w + (size_t)r * step + (size_t)i * (size_t)size, x + i, load);
        i += added ? 16 : 0;
    }
    if (i < k) {
        /* the rule pads rows with zeros; columns for bf16 are padded already */
        char rest[32 * 4];
        float c[32] = {0};
        memcpy(c, x + i / PER_LANE,
               (size_t)(load == load_bf16 ? 32 / PER_LANE : k - i) * sizeof *c);
        for (int r = 0; r < n_rows; r++) {
            memset(rest, 0, sizeof rest);
            memcpy(rest, w + (size_t)r * step + (size_t)i * (size_t)size,
                   (size_t)(k - i) * (size_t)size);
            add_32(acc[r], load(rest), load_column(c));
        }
    }
    store_sums(y, (const vf(*)[V_16])acc, n_rows);
}

/* Multiplies n_rows rows of w with the column x: ROWS quarters of them side by side, of which each is
 * one stretch that the processor foresees. Returns how many rows. */
INLINE int64_t dot_quarters(float *y, const char *w, size_t row_size, int64_t n_rows,
                            const float *x, int64_t k, load_fn *load, const int size) {
    const int64_t quarter = n_rows / ROWS;
    for (int64_t j = 0; j < quarter; j++, w += row_size) {
        float sum[ROWS];
        dot_rows(sum, w, (size_t)quarter * row_size, ROWS, x, k, load, size, false);
        for (int r = 0; r < ROWS; r++)
            y[r * quarter + j] = sum[r];
    }
    return quarter * ROWS;
}

/* --- rows by several columns ---------------------------------------------------------------- */

#ifndef V_PAIRS
/* Loads V_LANES elements of f32, f16 or f8_e4m3. */
INLINE vf load_lanes(const char *w, const int size) {
    return size == 2   ? v_load_half((const uint16_t *)(const void *)w)
           : size == 1 ? load_bytes(w)
                       : v_load((const float *)(const void *)w);
}

/* The last k % 16 elements of ROWS rows, and zeros that make them 16. */
typedef struct row_ends {
    float x[ROWS][16];
} row_ends;

INLINE row_ends ends_of(const char *w, size_t row_size, int64_t k, const int size) {
    row_ends e;
    const size_t whole = (size_t)(k / 16 * 16), rest = (size_t)(k % 16);
    for (int r = 0; r < ROWS; r++) {
        char end[16 * sizeof(float)] = {0};
        memcpy(end, w + (size_t)r * row_size + whole * (size_t)size, rest * (size_t)size);
        for (int i = 0; i < 16; i += V_LANES)
            v_store(e.x[r] + i, load_lanes(end + i * size, size));
    }
    return e;
}

/* Multiplies ROWS rows, as they are in the matrix, with n_cols columns; e: the rows' ends, if k is no multiple of 16. Prefetches
 * the n_ahead rows from `ahead` on. */
INLINE void direct(float *const *y, int64_t j, const void *const *x, const char *w, size_t row_size,
                   const row_ends *e, const int n_cols, int64_t k, const int size,
                   const char *ahead, const int n_ahead) {
    const int64_t whole = k / 16 * 16;
    vf part[V_16][ROWS][V_COLS];
    for (int h = 0; h < V_16; h++) {
        vf a[ROWS][V_COLS];
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < n_cols; c++)
                a[r][c] = v_set(0.0f);
        for (int64_t i = V_LANES * h; i < whole; i += 16) {
            vf v[V_COLS];
            for (int c = 0; c < n_cols; c++)
                v[c] = v_keep(v_load((const float *)x[c] + i));
            for (int r = 0; r < ROWS; r++) {
                const vf u = v_keep(load_lanes(w + (size_t)r * row_size + i * size, size));
                if (h == 0 && r < n_ahead)
                    __builtin_prefetch(ahead + (size_t)r * row_size + i * size);
                for (int c = 0; c < n_cols; c++)
                    a[r][c] = v_fma(u, v[c], a[r][c]);
            }
        }
        const int64_t rest = k - whole - V_LANES * h;
        for (int c = 0; c < n_cols && rest > 0; c++) {
            const vf v = v_load_n((const float *)x[c] + k - rest, rest < V_LANES ? rest : V_LANES);
            for (int r = 0; r < ROWS; r++)
                a[r][c] = v_fma(v_load(e->x[r] + V_LANES * h), v, a[r][c]);
        }
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < n_cols; c++)
                part[h][r][c] = a[r][c];
    }
    for (int c = 0; c < n_cols; c++) {
        vf s[ROWS][V_16];
        for (int r = 0; r < ROWS; r++)
            for (int h = 0; h < V_16; h++)
                s[r][h] = part[h][r][c];
        store_sums(y[c] + j, (const vf(*)[V_16])s, ROWS);
    }
}

/* Multiplies rows with all columns, ROWS of them at a time. Returns how many rows. The
 * next rows are prefetched with the first columns, or one with each group of columns: requests that come all at once
 * would wait for each other. */
INLINE int64_t direct_rows(float *const *y, const void *const *x, int n_cols, const char *w,
                           size_t row_size, int64_t n_rows, int64_t k, const int size) {
    const bool spread = n_cols > 2 * V_COLS;
    int64_t j = 0;
    row_ends e;
    for (; j + ROWS <= n_rows; j += ROWS, w += ROWS * row_size) {
        if (k % 16 != 0)
            e = ends_of(w, row_size, k, size);
        for (int c = 0, g = 0, taken; c < n_cols; c += taken, g++) {
            const char *ahead = w + (size_t)(ROWS + (spread ? g : 0)) * row_size;
            const int n_ahead = spread ? g < ROWS : g == 0 ? ROWS : 0;
            taken = 0;
#define TAKE_AHEAD(n, m)                                                                           \
    if (n_ahead == (m))                                                                            \
        direct(y + c, j, x + c, w, row_size, &e, n, k, size, ahead, m);
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        TAKE_AHEAD(n, 0)                                                                           \
        TAKE_AHEAD(n, 1)                                                                           \
        TAKE_AHEAD(n, ROWS)                                                                        \
        taken = (n);                                                                               \
    }
            V_TILE(TAKE)
#undef TAKE
#undef TAKE_AHEAD
        }
    }
    return j;
}
#else
INLINE int64_t direct_rows(float *const *y, const void *const *x, int n_cols, const void *w,
                           size_t row_size, int64_t n_rows, int64_t k, const int size) {
    (void)y, (void)x, (void)n_cols, (void)w, (void)row_size, (void)n_rows, (void)k, (void)size;
    return 0;
}
#endif

/* Two functions, because one whose parts are both inlined spills the registers of the inner loops. */
#define BY_TYPE(type, size)                                                                        \
    static __attribute__((noinline))                                                               \
    int64_t direct_##type(float *const *y, const void *const *x, int n_cols, const void *w,        \
                          size_t row_size, int64_t n_rows, int64_t k) {                            \
        return direct_rows(y, x, n_cols, (const char *)w, row_size, n_rows, k, size);              \
    }                                                                                              \
    static void rows_##type(float *const *y, const void *const *x, int n_cols, const void *w,      \
                            size_t row_size, int64_t n_rows, int64_t k) {                          \
        int64_t j = 0;                                                                             \
        if (n_cols > 1 && load_##type != load_bf16)                                                \
            j = direct_##type(y, x, n_cols, w, row_size, n_rows, k);                               \
        else if (n_cols == 1)                                                                      \
            j = dot_quarters(y[0], w, row_size, n_rows, x[0], k, load_##type, size);               \
        const char *p = (const char *)w + (size_t)j * row_size;                                    \
        for (; j + ROWS <= n_rows; j += ROWS, p += ROWS * row_size)                                \
            for (int c = 0; c < n_cols; c++)                                                       \
                dot_rows(y[c] + j, p, row_size, ROWS, x[c], k, load_##type, size, true);           \
        for (; j < n_rows; j++, p += row_size)                                                     \
            for (int c = 0; c < n_cols; c++)                                                       \
                dot_rows(y[c] + j, p, row_size, 1, x[c], k, load_##type, size, true);              \
    }
#ifndef V_PAIRS
BY_TYPE(f32, 4)
BY_TYPE(f16, 2)
BY_TYPE(f8_e4m3, 1)
#endif
BY_TYPE(bf16, 2)

/* --- panels -------------------------------------------------------------------------------- */

#ifdef V_TURN
#include "outer_tmpl.h"
#else
#include "inner_tmpl.h"
#endif

#ifndef V_PAIRS
PACK(f32, 4)
PACK(f16, 2)
PACK(f8_e4m3, 1)
#endif
PACK(bf16, 2)

/* From so many columns on, a panel is faster than the rows as they are, by the number of vectors that hold sixteen sums. Where these are two
 * or four, rows are read in as many passes, each of which loads the same cache lines, and those of f16 are converted in each; those of f8_e4m3 take
 * more operations. Where it is one, packing a panel takes as long as it saves with some 50 columns. */
#ifndef V_PAIRS
static const int f32_panels[] = {[1] = 48, [2] = 12, [4] = 6},
                 f16_panels[] = {[1] = 48, [2] = 48, [4] = 6}, F8_PANELS = 12;
#endif

static void fill_products(cpu_kernels *k) {
#define PRODUCT(columns_, type, unit, min_cols_)                                                   \
    (cpu_product){.columns = columns_,                                                             \
                  .rows = rows_##type,                                                             \
                  .panel_rows = PANEL_ROWS,                                                        \
                  .panel_unit = unit,                                                              \
                  .min_cols = min_cols_,                                                           \
                  .panel_size = panel_size,                                                        \
                  .pack = pack_##type,                                                             \
                  .tile = tile}
#ifdef V_PAIRS
    k->product[GGL_BF16] = PRODUCT(CPU_COLUMNS_BF16_PAIRS, bf16, 1, 6);
#else
    k->product[GGL_F32] = PRODUCT(CPU_COLUMNS_F32, f32, 32, f32_panels[V_16]);
    k->product[GGL_F16] = PRODUCT(CPU_COLUMNS_F32, f16, 32, f16_panels[V_16]);
    k->product[GGL_F8_E4M3] = PRODUCT(CPU_COLUMNS_F32, f8_e4m3, 32, F8_PANELS);
    k->product[GGL_BF16] = PRODUCT(CPU_COLUMNS_BF16, bf16, 1, 6);
#endif
}
