/* Panels whose products are outer ones, where a vector holds sixteen sums; part of products_tmpl.h. A vector has V_LANES
 * rows, and a number of a column is multiplied with all of its lanes. Nothing is added up across lanes, and a number
 * that is loaded serves many rows. For a tile of 64 rows by 6 columns these are 10 loads for 24 products, as many as with vectors along
 * the columns, but without their shuffles at the end: for columns of 384 numbers they took a fifth of the time.
 *
 * The rule of sixteen sums (docs/numeric.md, section 4) holds for each result: all products of one sum are added
 * before those of the next one, and sums are joined as the tree does. The order of sums is that in which it needs
 * them, so that at most four per result wait.
 *
 * A panel is [sum][step][row] of 32 bits, where element 16 * step + sum of a row is in that sum. */

enum {
    SUMS = 16,
    TALL =
        4, /* vectors of rows in a tile; with V_COLS columns, sums, factors and a number take 29 of 32 registers */
    PANEL_ROWS = TALL * V_LANES,
    STEPS =
        64, /* most steps in a chunk: what 6 columns have of it stays in an L1 cache of 48 KiB, beside the panel's part of a sum */
    GROUP_COLS = 24, /* columns whose sums wait for the next chunk, a multiple of V_COLS */
    GROUP_TILES =
        GROUP_COLS / V_COLS + 1 /* tiles of them, at most: the last 5 columns are 4 and 1 */
};

/* The sum that is computed after i others: i with its four bits reversed. */
static const int nth_sum[SUMS] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/* The vectors of rows in a tile for n_rows rows: 1, 2 or TALL. */
static int tall_of(int n_rows) {
    return n_rows > 2 * V_LANES ? TALL : n_rows > V_LANES ? 2 : 1;
}

static int64_t steps_of(int64_t k) {
    return cpu_padded(k) / PER_LANE / SUMS;
}

/* The numbers of one sum of a panel. A cache line more keeps the sums from competing for the same lines of the cache while
 * a panel is written. */
static int64_t sum_size(int64_t n, int tall) {
    return (n * tall + 1) * V_LANES;
}

/* The numbers of a panel with the most rows. */
static int64_t panel_numbers(int64_t k) {
    return SUMS * sum_size(steps_of(k), TALL);
}

/* The panel, and room for the sums of columns that wait. */
static size_t panel_size(int64_t k) {
    const size_t waiting = steps_of(k) > STEPS ? GROUP_TILES * SUMS * TALL * V_COLS * V_LANES : 0;
    return ((size_t)panel_numbers(k) + waiting) * sizeof(float);
}

/* Writes step `at` of the n steps of V_LANES rows. v: of each row, the elements for the sixteen sums. */
INLINE void put_step(float *to, int64_t n, int tall, int64_t at, vf *v) {
    v_turn(v);
    UNROLL for (int s = 0; s < SUMS; s++)
        v_store(to + nth_sum[s] * sum_size(n, tall) + at * tall * V_LANES, v[s]);
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
        put_step(to, n, tall, i / 32 * V_COLUMN + h, v);
    }
}

INLINE void pack(void *panel, const void *w, size_t row_size, int n_rows, int64_t k, load_fn *load,
                 const int size) {
    const int64_t n = steps_of(k);
    const int tall = tall_of(n_rows);
    for (int j = 0; j < tall * V_LANES; j += V_LANES) {
        const char *row = (const char *)w + (size_t)j * row_size;
        float *to = (float *)panel + j;
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

#define PACK(type, size)                                                                           \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        pack(panel, w, row_size, n_rows, k, load_##type, size);                                    \
    }

/* Steps i0 .. i1 - 1 of the n of a panel. */
typedef struct chunk {
    int64_t i0, i1, n;
} chunk;

/* Adds the chunk's products of one sum to a; w: the panel's part of it, x: the columns' first element of it. */
INLINE void add_products(vf (*a)[V_COLS], const float *w, const float *const *x, int first,
                         const chunk *k, const int tall, const int n_cols) {
    const float *column[V_COLS];
    EACH_OF(c, n_cols) {
        column[c] = x[c] + first;
    }
    w += k->i0 * tall * V_LANES;
    UNROLL_4 for (int64_t i = k->i0 * SUMS; i < k->i1 * SUMS; i += SUMS, w += tall * V_LANES) {
        vf u[TALL];
        EACH_OF(t, tall) {
            u[t] = v_load(w + t * V_LANES);
        }
        EACH_OF(c, n_cols) {
            const vf v = v_keep(v_set(column[c][i]));
            EACH_OF(t, tall) {
                a[t][c] = add_product(u[t], v, a[t][c]);
            }
        }
    }
}

/* The results of a tile: TALL x V_COLS vectors. */
typedef vf tile_sums[TALL][V_COLS];

/* Joins the sum that was computed after i others with those that wait. Returns at which place it waits. */
INLINE int join(vf (*a)[V_COLS], tile_sums *waiting, int i, const int tall, const int n_cols) {
    int place = 0;
    for (; i >> place & 1; place++)
        EACH_OF(t, tall) {
            EACH_OF(c, n_cols) {
                a[t][c] = waiting[place][t][c] + a[t][c];
            }
        }
    return place;
}

INLINE void keep(tile_sums *to, vf (*a)[V_COLS], const int tall, const int n_cols) {
    EACH_OF(t, tall) {
        EACH_OF(c, n_cols) {
            (*to)[t][c] = a[t][c];
        }
    }
}

/* Stores the results of n_rows rows. */
INLINE void put_results(float *const *y, vf (*a)[V_COLS], int n_rows, const int tall,
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

/* Multiplies a chunk of a panel with n_cols columns; tall and n_cols are constants. sums: [SUMS], of the columns. After the last
 * chunk, stores the results. */
INLINE void multiply(tile_sums *sums, float *const *y, const float *const *x, const float *panel,
                     const chunk *k, int n_rows, const int tall, const int n_cols) {
    tile_sums waiting[4];
    for (int i = 0; i < SUMS; i++) {
        vf a[TALL][V_COLS];
        EACH_OF(t, tall) {
            EACH_OF(c, n_cols) {
                a[t][c] = k->i0 == 0 ? v_set(0.0f) : sums[i][t][c];
            }
        }
        add_products(a, panel + i * sum_size(k->n, tall), x, nth_sum[i], k, tall, n_cols);
        if (k->i1 < k->n) {
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
                         const float *panel, const chunk *k, int n_rows);
#define MULTIPLY(tall, n)                                                                          \
    static __attribute__((noinline)) void multiply_##tall##_##n(                                   \
        tile_sums *sums, float *const *y, const float *const *x, const float *panel,               \
        const chunk *k, int n_rows) {                                                              \
        multiply(sums, y, x, panel, k, n_rows, tall, n);                                           \
    }
#define MULTIPLY_1(n) MULTIPLY(1, n)
#define MULTIPLY_2(n) MULTIPLY(2, n)
#define MULTIPLY_4(n) MULTIPLY(4, n)
V_TILE(MULTIPLY_1)
V_TILE(MULTIPLY_2)
V_TILE(MULTIPLY_4)

/* [tall][n_cols] */
static multiply_fn *const multiplies[TALL + 1][V_COLS + 1] = {
#define ENTRY_1(n) [1][n] = multiply_1_##n,
#define ENTRY_2(n) [2][n] = multiply_2_##n,
#define ENTRY_4(n) [4][n] = multiply_4_##n,
    V_TILE(ENTRY_1) V_TILE(ENTRY_2) V_TILE(ENTRY_4)};

/* The largest tile for n columns. */
static int wide_of(int n) {
#define FITS(wide)                                                                                 \
    if (n >= (wide))                                                                               \
        return wide;
    V_TILE(FITS)
#undef FITS
    return 0;
}

static void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    chunk part = {.n = steps_of(k)};
    const int tall = tall_of(n_rows);
    const int64_t n_chunks = part.n > STEPS ? (part.n + STEPS - 1) / STEPS : 1,
                  size = (part.n + n_chunks - 1) / n_chunks;
    tile_sums *const sums = (tile_sums *)(void *)((float *)panel + panel_numbers(k));
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
