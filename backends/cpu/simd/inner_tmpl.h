/* Panels whose products are sums along the columns, in vectors, and across the lanes of vectors at the end: one vector of the sixteen sums after
 * another, 4 rows by some columns at a time; part of products_tmpl.h.
 *
 * In vectors of eight, a panel is multiplied in chunks of 1024 elements (or pairs): what 4 rows by 3 columns then read fits into an L1 cache of 32 KiB.
 * There a panel has more rows, because all of them use what was read of a column from the L2 cache. */
enum {
    CHUNKED = V_LANES == 8,
    CHUNK = 1024,
    PANEL_ROWS = CHUNKED ? 24 : 12,
    GROUP_COLS = CHUNKED ? 4 * V_COLS : V_COLS /* columns whose sums wait for the next chunk */
};

/* A panel is [V_16][PANEL_ROWS][panel_step] of 32 bits: the elements for each vector of the sixteen
 * sums are stored together. The 16 keeps the step from being a multiple of 4 KiB, at which all rows
 * would compete for the same set of the cache. */
static int64_t panel_step(int64_t k) {
    return cpu_padded(k) / PER_LANE / V_16 + 16;
}

static size_t panel_size(int64_t k) {
    return V_16 * (size_t)panel_step(k) * PANEL_ROWS * sizeof(float);
}

#define PACK(type, size)                                                                           \
    static void pack_##type(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        for (int r = 0; r < n_rows; r++) {                                                         \
            float *to = (float *)panel + r * panel_step(k);                                        \
            const char *p = (const char *)w + (size_t)r * row_size;                                \
            for (int64_t i = 0; i < k; i += 32) {                                                  \
                char end[32 * (size)] = {0};                                                       \
                if (k - i < 32)                                                                    \
                    memcpy(end, p + i * (size), (size_t)(k - i) * (size));                         \
                v_32 v = load_##type(k - i < 32 ? end : p + i * (size));                           \
                for (int h = 0; h < V_COLUMN; h++)                                                 \
                    v_store(to + h % V_16 * PANEL_ROWS * panel_step(k) + i / PER_LANE / V_16 +     \
                                h / V_16 * V_LANES,                                                \
                            v.v[h]);                                                               \
            }                                                                                      \
        }                                                                                          \
    }

/* Adds the products of elements i0 .. i1 - 1 to vector h of the sixteen sums, for n_rows rows by n_cols columns, both
 * constants. */
INLINE void block_part(vf *sums, const float *const *x, const float *w, int64_t step,
                       const int n_rows, const int n_cols, int64_t i0, int64_t i1, const int h) {
    vf a[ROWS][V_COLS];
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            a[r][c] = i0 == 0 ? v_set(0.0f) : sums[r * n_cols + c];
    w += h * PANEL_ROWS * step;
    for (int64_t i = i0; i < i1; i += 16) {
        vf v[V_COLS];
        for (int c = 0; c < n_cols; c++)
            v[c] = v_keep(v_load(x[c] + i + V_LANES * h));
        for (int r = 0; r < n_rows; r++) {
            const vf u = v_keep(v_load(w + r * step + i / V_16));
            for (int c = 0; c < n_cols; c++)
                a[r][c] = add_product(u, v[c], a[r][c]);
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            sums[r * n_cols + c] = a[r][c];
}

/* Elements i0 .. i1 - 1 of a panel of n elements, in 32 bits each. */
typedef struct chunk {
    int64_t i0, i1, n, step;
} chunk;

/* Adds the products of a chunk for n_rows rows from j on by n_cols columns, both constants. After the last chunk, stores the results. */
INLINE void block(vf *sums, float *const *y, int64_t j, const float *const *x, const float *w,
                  const chunk *k, const int n_rows, const int n_cols) {
    for (int h = 0; h < V_16; h++)
        block_part(sums + h * n_rows * n_cols, x, w, k->step, n_rows, n_cols, k->i0, k->i1, h);
    for (int c = 0; c < n_cols && k->i1 == k->n; c++) {
        vf s[ROWS][V_16];
        for (int r = 0; r < n_rows; r++)
            for (int h = 0; h < V_16; h++)
                s[r][h] = sums[(h * n_rows + r) * n_cols + c];
        store_sums(y[c] + j, (const vf(*)[V_16])s, n_rows);
    }
}

/* The same for all rows of a panel. sums: for n_rows x n_cols results. */
INLINE void columns(vf *sums, float *const *y, const void *const *x, const float *w, const chunk *k,
                    int n_rows, const int n_cols) {
    const float *column[V_COLS];
    int j = 0;
    for (int c = 0; c < n_cols; c++)
        column[c] = x[c];
    for (; j + ROWS <= n_rows; j += ROWS)
        block(sums + j * n_cols * V_16, y, j, column, w + j * k->step, k, ROWS, n_cols);
    for (; j < n_rows; j++)
        block(sums + j * n_cols * V_16, y, j, column, w + j * k->step, k, 1, n_cols);
}

/* Multiplies a chunk of a panel with up to GROUP_COLS columns. */
static void group(vf *sums, float *const *y, const void *const *x, int n_cols, const float *w,
                  const chunk *k, int n_rows) {
    for (int c = 0, taken; c < n_cols; c += taken) {
        taken = 0;
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        columns(sums + c * n_rows * V_16, y + c, x + c, w, k, n_rows, n);                          \
        taken = (n);                                                                               \
    }
        V_TILE(TAKE)
#undef TAKE
    }
}

static void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    chunk part = {.n = cpu_padded(k) / PER_LANE, .step = panel_step(k)};
    const int64_t n_chunks = CHUNKED && part.n > CHUNK ? (part.n + CHUNK - 1) / CHUNK : 1;
    const int64_t size = (part.n / 16 + n_chunks - 1) / n_chunks * 16;
    vf sums[GROUP_COLS * PANEL_ROWS * V_16];
    for (int c = 0; c < n_cols; c += GROUP_COLS) {
        part.i1 = 0;
        do {
            part.i0 = part.i1;
            part.i1 = part.i0 + size < part.n ? part.i0 + size : part.n;
            group(sums, y + c, x + c, n_cols - c < GROUP_COLS ? n_cols - c : GROUP_COLS, panel,
                  &part, n_rows);
        } while (part.i1 < part.n);
    }
}
