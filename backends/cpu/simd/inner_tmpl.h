/* Panels whose products are sums along the columns, in vectors, and across the lanes of vectors at the end: one vector of the sixteen sums after
 * another, 4 rows by some columns at a time; part of products_tmpl.h. */
enum { PANEL_ROWS = 12 };

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

/* Computes vector h of the sixteen sums, for n_rows rows by n_cols columns, both constants. */
INLINE void block_part(vf *sums, const float *const *x, const float *w, int64_t step, int64_t n,
                       const int n_rows, const int n_cols, const int h) {
    vf a[ROWS][V_COLS];
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            a[r][c] = v_set(0.0f);
    w += h * PANEL_ROWS * step;
    for (int64_t i = 0; i < n; i += 16) {
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

/* Multiplies n_rows rows from j on with n_cols columns, both constants. */
INLINE void block(float *const *y, int64_t j, const float *const *x, const float *w, int64_t k,
                  const int n_rows, const int n_cols) {
    vf sums[V_16][ROWS * V_COLS];
    for (int h = 0; h < V_16; h++)
        block_part(sums[h], x, w, panel_step(k), cpu_padded(k) / PER_LANE, n_rows, n_cols, h);
    for (int c = 0; c < n_cols; c++) {
        vf s[ROWS][V_16];
        for (int r = 0; r < n_rows; r++)
            for (int h = 0; h < V_16; h++)
                s[r][h] = sums[h][r * n_cols + c];
        store_sums(y[c] + j, (const vf(*)[V_16])s, n_rows);
    }
}

/* The same for all rows of a panel. */
INLINE void columns(float *const *y, const void *const *x, const float *w, int64_t k, int n_rows,
                    const int n_cols) {
    const float *column[V_COLS];
    int j = 0;
    for (int c = 0; c < n_cols; c++)
        column[c] = x[c];
    for (; j + ROWS <= n_rows; j += ROWS)
        block(y, j, column, w + j * panel_step(k), k, ROWS, n_cols);
    for (; j < n_rows; j++)
        block(y, j, column, w + j * panel_step(k), k, 1, n_cols);
}

static void tile(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    for (int c = 0, taken; c < n_cols; c += taken) {
        taken = 0;
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        columns(y + c, x + c, panel, k, n_rows, n);                                                \
        taken = (n);                                                                               \
    }
        V_TILE(TAKE)
#undef TAKE
    }
}
