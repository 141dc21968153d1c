/* Panels whose products are outer ones; part of products_tmpl.h. A vector has V_LANES
 * rows, and a number of a column is multiplied with all of its lanes. Nothing is added up across lanes, and a number
 * that is loaded serves many rows. For a tile of 64 rows by 6 columns with AVX-512 these are 10 loads for 24 products, as many as with vectors along
 * the columns, but without their shuffles at the end: for columns of 384 numbers they took a fifth of the time. With AVX2, a tile
 * has 16 rows: 8 loads for 12 products.
 *
 * The rule of sixteen sums (docs/numeric.md, section 4) holds for each result: all products of one sum are added
 * before those of the next one, and sums are joined as the tree does. The order of sums is that in which it needs
 * them, so that at most four per result wait.
 *
 * A panel has BLOCKS blocks of as many rows as a tile has. A block is [sum][step][row] of 32 bits, where element 16 * step + sum of a row is in
 * that sum.
 *
 * What a tile reads of its columns is read once for each sum. So it must stay in the L1 cache, or be little:
 *
 *   AVX-512  (V_16 is 1) one block; chunks of 64 steps, of which six columns fit into the L1 cache. Sums wait in memory for the next chunk.
 *   AVX2     (V_16 is 2) six blocks; columns are put into the order of sums first (turned), so that a sum reads a 16th of them, one stretch
 *            of each. That costs as much as some 7 of the 96 rows.
 *
 * The vector's header defines V_TURN, v_turn() and
 *
 *   V_TALLS(X, n)  X(tall, n) for each number of vectors of rows that a tile may have: 1, 2 and TALL
 *   V_EACH_SUM     before the loop over the sixteen sums, V_EACH_STEP before that over the steps of a sum: nothing, or how often the
 *                  compiler writes their code */

enum {
    SUMS = 16,
    TURNS = V_16 > 1, /* whether columns are turned */
    TALL =
        TURNS
            ? 2
            : 4, /* vectors of rows in a tile; with WIDE columns, sums, factors and a number take 15 of 16 registers, or 29 of 32 */
    WIDE = 6,    /* most columns of a tile; WIDTHS lists the numbers */
    TURNED = 2 * WIDE, /* columns that are turned at once */
    BLOCK_ROWS = TALL * V_LANES,
    BLOCKS = TURNS ? 6 : 1,
    PANEL_ROWS = BLOCKS * BLOCK_ROWS,
    STEPS =
        64, /* most steps in a chunk: what 6 columns have of it stays in an L1 cache of 48 KiB, beside the panel's part of a sum */
    GROUP_COLS = 24, /* columns whose sums wait for the next chunk, a multiple of WIDE */
    GROUP_TILES = GROUP_COLS / WIDE + 1 /* tiles of them, at most: the last 5 columns are 4 and 1 */
};
#define WIDTHS(X) X(6) X(4) X(2) X(1)

/* The sum that is computed after i others: i with its four bits reversed. So nth_sum[s] is also the place of sum s. */
static const int nth_sum[SUMS] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/* The vectors of rows in a tile for n_rows rows: 1, 2 or TALL. */
static int tall_of(int n_rows) {
    return n_rows > 2 * V_LANES ? TALL : n_rows > V_LANES ? 2 : 1;
}

static int64_t steps_of(int64_t k) {
    return cpu_padded(k) / PER_LANE / SUMS;
}

/* The numbers of one sum of a block. A cache line more keeps the sums from competing for the same lines of the cache while
 * a panel is written. */
static int64_t sum_size(int64_t n, int tall) {
    return n * tall * V_LANES + SUMS;
}

/* The numbers of a block with the most rows. */
static int64_t block_size(int64_t n) {
    return SUMS * sum_size(n, TALL);
}

/* The numbers of a turned column, with a cache line more for the same reason. */
static int64_t turned_size(int64_t n) {
    return SUMS * (n + 1);
}

/* The panel, and room for turned columns or for the sums of columns that wait. */
static size_t panel_size(int64_t k) {
    const int64_t n = steps_of(k);
    const int64_t room = TURNS       ? TURNED * turned_size(n)
                         : n > STEPS ? GROUP_TILES * SUMS * TALL * WIDE * V_LANES
                                     : 0;
    return (size_t)(BLOCKS * block_size(n) + room) * sizeof(float);
}

/* Writes vector h of 32 elements of V_LANES rows, the first of which is in step `at` of the n steps. v: of each row, that vector. */
INLINE void put_vectors(float *to, int64_t n, int tall, int64_t at, const int h, vf *v) {
    v_turn(v);
    UNROLL for (int s = 0; s < V_LANES; s++) v_store(
        to + nth_sum[h % V_16 * V_LANES + s] * sum_size(n, tall) + (at + h / V_16) * tall * V_LANES,
        v[s]);
}

/* Copies the elements of a row from i on, up to 32; those behind the row are 0. */
INLINE void copy_end(char *to, const char *row, int64_t i, int64_t k, const int size) {
    memcpy(to, row + (size_t)i * (size_t)size, (size_t)(k - i < 32 ? k - i : 32) * (size_t)size);
}

/* Packs elements i .. i + 31 of V_LANES rows, `step` bytes apart. */
INLINE void pack_32(float *to, int64_t n, int tall, int64_t i, const char *row, size_t step,
                    load_fn *load) {
    UNROLL for (int h = 0; h < V_COLUMN; h++) {
        vf v[V_LANES];
        UNROLL for (int r = 0; r < V_LANES; r++) v[r] = load(row + (size_t)r * step).v[h];
        put_vectors(to, n, tall, i / PER_LANE / SUMS, h, v);
    }
}

/* Packs a block of n_rows rows. */
INLINE void pack_block(float *block, const char *w, size_t row_size, int n_rows, int64_t k,
                       load_fn *load, const int size) {
    const int64_t n = steps_of(k);
    const int tall = tall_of(n_rows);
    for (int j = 0; j < tall * V_LANES; j += V_LANES) {
        const char *row = w + (size_t)j * row_size;
        float *to = block + j;
        int64_t i = 0;
        for (; i + 32 <= k && j + V_LANES <= n_rows; i += 32)
            pack_32(to, n, tall, i, row + (size_t)i * (size_t)size, row_size, load);
        for (; i < k; i += 32) {
            char end[V_LANES][32 * sizeof(float)] = {{0}};
            for (int r = 0; r < V_LANES && j + r < n_rows; r++)
                copy_end(end[r], row + (size_t)r * row_size, i, k, size);
            pack_32(to, n, tall, i, end[0], sizeof end[0], load);
        }
    }
}

INLINE void pack(void *panel, const void *w, size_t row_size, int n_rows, int64_t k, load_fn *load,
                 const int size) {
    float *block = panel;
    for (int j = 0; j < n_rows; j += BLOCK_ROWS, block += block_size(steps_of(k)))
        pack_block(block, (const char *)w + (size_t)j * row_size, row_size,
                   n_rows - j < BLOCK_ROWS ? n_rows - j : BLOCK_ROWS, k, load, size);
}

#define PACK(type, size)                                                                           \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        pack(panel, w, row_size, n_rows, k, load_##type, size);                                    \
    }

/* Steps i0 .. i1 - 1 of the n of a panel. */
typedef struct chunk {
    int64_t i0, i1, n;
} chunk;

/* Adds the chunk's products of sum i of the order to a; w: the block's part of it. */
INLINE void add_products(vf (*a)[WIDE], const float *w, const float *const *x, int i,
                         const chunk *k, const int tall, const int n_cols) {
    const int step = TURNS ? 1 : SUMS;
    const float *column[WIDE];
    EACH_OF(c, n_cols) {
        column[c] = x[c] + (TURNS ? i * k->n : nth_sum[i]);
    }
    w += k->i0 * tall * V_LANES;
    V_EACH_STEP for (int64_t e = k->i0 * step; e < k->i1 * step; e += step, w += tall * V_LANES) {
        vf u[TALL];
        EACH_OF(t, tall) {
            u[t] = v_load(w + t * V_LANES);
        }
        EACH_OF(c, n_cols) {
            const vf v = v_keep(v_set(column[c][e]));
            EACH_OF(t, tall) {
                a[t][c] = add_product(u[t], v, a[t][c]);
            }
        }
    }
}

/* The results of a tile: TALL x WIDE vectors. */
typedef vf tile_sums[TALL][WIDE];

/* Joins the sum that was computed after i others with those that wait. Returns at which place it waits. */
INLINE int join(vf (*a)[WIDE], tile_sums *waiting, int i, const int tall, const int n_cols) {
    int place = 0;
    for (; i >> place & 1; place++)
        EACH_OF(t, tall) {
            EACH_OF(c, n_cols) {
                a[t][c] = waiting[place][t][c] + a[t][c];
            }
        }
    return place;
}

INLINE void keep(tile_sums *to, vf (*a)[WIDE], const int tall, const int n_cols) {
    EACH_OF(t, tall) {
        EACH_OF(c, n_cols) {
            (*to)[t][c] = a[t][c];
        }
    }
}

/* Stores the results of n_rows rows. */
INLINE void put_results(float *const *y, vf (*a)[WIDE], int n_rows, const int tall,
                        const int n_cols) {
    EACH_OF(t, tall) {
        const int left = n_rows - t * V_LANES;
        EACH_OF(c, n_cols) {
            const vf all = a[t][c] + v_set(0.0f);
            if (left >= V_LANES)
                v_store(y[c] + t * V_LANES, all);
            else if (left > 0)
                v_store_n(y[c] + t * V_LANES, all, left);
        }
    }
}

/* Multiplies a chunk of a block with n_cols columns; tall and n_cols are constants. sums: [SUMS], of the columns, if there are several chunks.
 * After the last chunk, stores the results. */
INLINE void multiply(tile_sums *sums, float *const *y, const float *const *x, const float *block,
                     const chunk *k, int n_rows, const int tall, const int n_cols) {
    tile_sums waiting[4];
    V_EACH_SUM for (int i = 0; i < SUMS; i++) {
        vf a[TALL][WIDE];
        EACH_OF(t, tall) {
            EACH_OF(c, n_cols) {
                a[t][c] = TURNS || k->i0 == 0 ? v_set(0.0f) : sums[i][t][c];
            }
        }
        add_products(a, block + i * sum_size(k->n, tall), x, i, k, tall, n_cols);
        if (!TURNS && k->i1 < k->n) {
            keep(&sums[i], a, tall, n_cols);
            continue;
        }
        const int place = join(a, waiting, i, tall, n_cols);
        if (i < SUMS - 1)
            keep(&waiting[place], a, tall, n_cols);
        else
            put_results(y, a, n_rows, tall, n_cols);
    }
}

/* A function for each tile: in one for all, the inner loops would lack registers. */
typedef void multiply_fn(tile_sums *sums, float *const *y, const float *const *x,
                         const float *block, const chunk *k, int n_rows);
#define MULTIPLY(tall, n)                                                                          \
    static __attribute__((noinline)) void multiply_##tall##_##n(                                   \
        tile_sums *sums, float *const *y, const float *const *x, const float *block,               \
        const chunk *k, int n_rows) {                                                              \
        multiply(sums, y, x, block, k, n_rows, tall, n);                                           \
    }
#define MULTIPLY_EACH(n) V_TALLS(MULTIPLY, n)
WIDTHS(MULTIPLY_EACH)

/* [tall][n_cols] */
static multiply_fn *const multiplies[TALL + 1][WIDE + 1] = {
#define ENTRY(tall, n)   [tall][n] = multiply_##tall##_##n,
#define ENTRY_OF_EACH(n) V_TALLS(ENTRY, n)
    WIDTHS(ENTRY_OF_EACH)};

/* The largest tile for n columns. */
static int wide_of(int n) {
#define FITS(wide)                                                                                 \
    if (n >= (wide))                                                                               \
        return wide;
    WIDTHS(FITS)
#undef FITS
    return 0;
}

/* Puts the numbers of a column, of n steps, into the order of sums: to[i * n ..] has those of the sum that is computed after i others. */
static void turn_column(float *to, const float *x, int64_t n) {
    int64_t done = 0;
    while (done < n && n >= V_LANES) {
        const int64_t at =
            done + V_LANES <= n ? done : n - V_LANES; /* the last ones a second time */
        UNROLL for (int h = 0; h < V_16; h++) {
            vf v[V_LANES];
            UNROLL for (int r = 0; r < V_LANES; r++) v[r] =
                v_load(x + (at + r) * SUMS + h * V_LANES);
            v_turn(v);
            UNROLL for (int s = 0; s < V_LANES; s++)
                v_store(to + nth_sum[h * V_LANES + s] * n + at, v[s]);
        }
        done = at + V_LANES;
    }
    for (; done < n; done++)
        for (int s = 0; s < SUMS; s++)
            to[nth_sum[s] * n + done] = x[done * SUMS + s];
}

/* Multiplies a panel with all columns, TURNED of them at a time: each block is read from the L2 cache or from memory for two tiles. */
static void tile_turned(float *const *y, const void *const *x, int n_cols, float *panel, int n_rows,
                        int64_t k) {
    const chunk all = {.i1 = steps_of(k), .n = steps_of(k)};
    float *const turned = panel + BLOCKS * block_size(all.n);
    for (int first = 0; first < n_cols; first += TURNED) {
        const int n = n_cols - first < TURNED ? n_cols - first : TURNED;
        float *to[TURNED];
        const float *columns[TURNED];
        for (int c = 0; c < n; c++) {
            to[c] = y[first + c];
            columns[c] = turned + c * turned_size(all.n);
            turn_column(turned + c * turned_size(all.n), x[first + c], all.n);
        }
        const float *block = panel;
        for (int j = 0; j < n_rows; j += BLOCK_ROWS, block += block_size(all.n)) {
            const int left = n_rows - j < BLOCK_ROWS ? n_rows - j : BLOCK_ROWS;
            for (int c = 0, wide; c < n; c += wide) {
                wide = wide_of(n - c);
                multiplies[tall_of(left)][wide](NULL, to + c, columns + c, block, &all, left);
            }
            for (int c = 0; c < n; c++)
                to[c] += BLOCK_ROWS;
        }
    }
}

/* Multiplies a panel of one block with all columns, chunk by chunk. */
static void tile_chunks(float *const *y, const void *const *x, int n_cols, float *panel, int n_rows,
                        int64_t k) {
    chunk part = {.n = steps_of(k)};
    const int tall = tall_of(n_rows);
    const int64_t n_chunks = part.n > STEPS ? (part.n + STEPS - 1) / STEPS : 1,
                  size = (part.n + n_chunks - 1) / n_chunks;
    tile_sums *const sums = (tile_sums *)(void *)(panel + BLOCKS * block_size(part.n));
    for (int first = 0; first < n_cols; first += GROUP_COLS) {
        const int end = n_cols - first < GROUP_COLS ? n_cols : first + GROUP_COLS;
        part.i1 = 0;
        do {
            part.i0 = part.i1;
            part.i1 = part.i0 + size < part.n ? part.i0 + size : part.n;
            for (int c = first, wide, i = 0; c < end; c += wide, i++) {
                wide = wide_of(end - c);
                multiplies[tall][wide](sums + i * SUMS, y + c, (const float *const *)x + c, panel,
                                       &part, n_rows);
            }
        } while (part.i1 < part.n);
    }
}

static void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    (TURNS ? tile_turned : tile_chunks)(y, x, n_cols, (float *)panel, n_rows, k);
}
