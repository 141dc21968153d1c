/* Sketches of what varies together: against all products of columns, in files, merged, damaged. */
#include "measure/imatrix_sketch.h"

#include <math.h>

#include "ggl/internal/gguf.h"
#include "ggl/types.h"

#include "test.h"

enum { N_COL = 24, N_ROW = 50, N_SKETCH = 8, RANK = 5 };

static double square_of(const float *x) {
    double sum = 0;
    for (int i = 0; i < N_COL; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Rows that are mixtures of RANK patterns; and the sums of all products, of rows of length 1. */
static void make_rows(float *x, double *c) {
    uint64_t seed = 3;
    float pattern[RANK][N_COL];
    for (int k = 0; k < RANK; k++)
        for (int i = 0; i < N_COL; i++)
            pattern[k][i] = test_random_float(&seed);
    for (int r = 0; r < N_ROW; r++)
        for (int i = 0; i < N_COL; i++)
            x[r * N_COL + i] = 0;
    for (int r = 0; r < N_ROW; r++)
        for (int k = 0; k < RANK; k++) {
            const float z = test_random_float(&seed);
            for (int i = 0; i < N_COL; i++)
                x[r * N_COL + i] += z * pattern[k][i];
        }
    for (int i = 0; i < N_COL; i++)
        for (int j = 0; j < N_COL; j++) {
            c[i * N_COL + j] = 0;
            for (int r = 0; r < N_ROW; r++)
                c[i * N_COL + j] +=
                    (double)x[r * N_COL + i] * (double)x[r * N_COL + j] / square_of(x + r * N_COL);
        }
}

static imatrix *make(const float *x, int first, int n_row, int n_sketch) {
    static float sign[N_COL * N_SKETCH];
    double sketch[N_COL * (N_SKETCH + 1)] = {0};
    imatrix *m;
    imatrix_entry *e;
    llm_imatrix_signs(sign, N_COL, N_SKETCH);
    llm_imatrix_sketch_rows(sketch, sign, N_SKETCH, x + first * N_COL, N_COL, n_row, N_COL);
    if (llm_imatrix_new(&m, 10, NULL) != GGL_OK ||
        llm_imatrix_add(m, "w", N_COL, 1, &e, NULL) != GGL_OK ||
        llm_imatrix_add_sketch(e, n_sketch, NULL) != GGL_OK)
        return NULL;
    for (int r = 0; r < n_row; r++)
        for (int i = 0; i < N_COL; i++)
            e->sum2[i] += x[(first + r) * N_COL + i] * x[(first + r) * N_COL + i];
    e->count[0] = n_row;
    for (int i = 0; i < N_COL * (N_SKETCH + 1) && n_sketch > 0; i++)
        e->sketch[i] = (float)sketch[i];
    return m;
}

/* Half of each product of different columns, and less for few rows, is in the directions; a rank below the sketch's is found whole. */
static void check_directions(const imatrix *m, const double *c) {
    const imatrix_entry *e = llm_imatrix_find(m, "w");
    float dir[N_COL * N_SKETCH];
    REQUIRE(e && e->n_sketch == N_SKETCH);
    float own[N_COL], power[N_COL];
    const double share = 0.5 * N_ROW / (N_ROW + 32.0);
    llm_imatrix_directions(e, dir, own, power);
    for (int i = 0; i < N_COL; i++)
        CHECK(fabs((double)power[i] - c[i * N_COL + i]) < 1e-5);
    for (int i = 0; i < N_COL; i++)
        for (int j = 0; j < N_COL; j++) {
            double got = 0;
            for (int d = 0; d < N_SKETCH; d++)
                got += (double)dir[i * N_SKETCH + d] * (double)dir[j * N_SKETCH + d];
            CHECK_MSG(fabs(got - share * c[i * N_COL + j]) < 2e-3, "%d, %d: %g, not %g of %g", i, j,
                      got, share, c[i * N_COL + j]);
        }
}

TEST(directions) {
    static float x[N_ROW * N_COL];
    static double c[N_COL * N_COL];
    ggl_error err = {0};
    imatrix *m, *r = NULL, *rest;
    const char *path = test_path("m.gguf");
    make_rows(x, c);
    m = make(x, 0, N_ROW, N_SKETCH);
    REQUIRE(m);
    check_directions(m, c);
    /* in a file, and of two texts */
    REQUIRE_OK(llm_imatrix_write(m, path, &err), &err);
    REQUIRE_OK(llm_imatrix_open(&r, path, 0, &err), &err);
    CHECK(memcmp(llm_imatrix_find(r, "w")->sketch, llm_imatrix_find(m, "w")->sketch,
                 N_COL * (N_SKETCH + 1) * sizeof(float)) == 0);
    llm_imatrix_free(r);
    llm_imatrix_free(m);
    m = make(x, 0, 17, N_SKETCH);
    rest = make(x, 17, N_ROW - 17, N_SKETCH);
    REQUIRE(m && rest);
    REQUIRE_OK(llm_imatrix_merge(m, rest, &err), &err);
    check_directions(m, c);
    llm_imatrix_free(m);
    /* one of the two has none: the sum has none, in either order */
    for (int first = 0; first < 2; first++) {
        m = make(x, 0, 17, first ? N_SKETCH : 0);
        r = make(x, 17, 5, first ? 0 : N_SKETCH);
        REQUIRE(m && r);
        REQUIRE_OK(llm_imatrix_merge(m, r, &err), &err);
        CHECK(!llm_imatrix_find(m, "w")->sketch && llm_imatrix_find(m, "w")->n_sketch == 0 &&
              llm_imatrix_find(m, "w")->count[0] == 22);
        llm_imatrix_free(m);
        llm_imatrix_free(r);
    }
    llm_imatrix_free(rest);
    /* the same columns as two matrices, which have none, even if they have seen no row */
    imatrix_entry *e;
    m = make(x, 0, 17, N_SKETCH);
    REQUIRE(m && llm_imatrix_new(&r, 10, NULL) == GGL_OK &&
            llm_imatrix_add(r, "w", N_COL / 2, 2, &e, NULL) == GGL_OK);
    REQUIRE_OK(llm_imatrix_merge(m, r, &err), &err);
    CHECK(llm_imatrix_find(m, "w")->n_mat == 2 && !llm_imatrix_find(m, "w")->sketch &&
          llm_imatrix_find(m, "w")->n_sketch == 0);
    llm_imatrix_free(m);
    llm_imatrix_free(r);
}

/* A single token with inputs that are a thousand times as large, in one column, is next to nothing among inputs of the same length, and nearly
 * all of the importance. The column costs that much by itself, and no other column changes. */
TEST(large_tokens) {
    static float x[N_ROW * N_COL], dir[2][N_COL * N_SKETCH], own[2][N_COL], power[2][N_COL];
    static double c[N_COL * N_COL];
    double all = 0, sum2 = 0;
    make_rows(x, c);
    for (int i = 0; i < N_COL; i++)
        x[i] *= 1000.0f;
    x[7] = 50000.0f;
    imatrix *m = make(x, 0, N_ROW, N_SKETCH);
    REQUIRE(m);
    const imatrix_entry *e = llm_imatrix_find(m, "w");
    llm_imatrix_directions(e, dir[0], own[0], power[0]);
    for (int i = 0; i < N_COL; i++) {
        all += (double)e->sketch[i * (N_SKETCH + 1) + N_SKETCH];
        sum2 += (double)e->sum2[i];
    }
    const double more = (double)power[0][7] - (double)e->sketch[7 * (N_SKETCH + 1) + N_SKETCH];
    CHECK_MSG(more > 0.5 * all && more <= (double)e->sum2[7] * all / sum2, "%g of %g", more, all);
    for (int i = 0; i < N_COL; i++) /* the sums of inputs that are alike */
        e->sum2[i] = e->sketch[i * (N_SKETCH + 1) + N_SKETCH];
    llm_imatrix_directions(e, dir[1], own[1], power[1]);
    CHECK(memcmp(dir[0], dir[1], sizeof dir[0]) == 0);
    CHECK(fabs((double)own[0][7] - (double)own[1][7] - more) < 1e-5 * more);
    for (int i = 0; i < N_COL; i++)
        CHECK(i == 7 || (own[0][i] == own[1][i] && power[0][i] == power[1][i]));
    llm_imatrix_free(m);
}

/* Rows that were added at once, and one by one, have the same sums. */
TEST(no_bit_depends_on_batches) {
    static float x[N_ROW * N_COL], sign[N_COL * N_SKETCH];
    static double c[N_COL * N_COL], a[N_COL * (N_SKETCH + 1)], b[N_COL * (N_SKETCH + 1)];
    make_rows(x, c);
    llm_imatrix_signs(sign, N_COL, N_SKETCH);
    llm_imatrix_sketch_rows(a, sign, N_SKETCH, x, N_COL, N_ROW, N_COL);
    for (int r = 0; r < N_ROW; r++)
        llm_imatrix_sketch_rows(b, sign, N_SKETCH, x + r * N_COL, N_COL, 1, N_COL);
    CHECK(memcmp(a, b, sizeof a) == 0);
    for (int i = 0; i < N_COL * N_SKETCH; i++)
        CHECK(fabsf(sign[i]) == 1.0f);
}

static void check_file(int64_t n_sketch, int64_t n_col, const float *sketch, int type,
                       const char *want) {
    static const float sums[N_COL] = {1}, count[1] = {1};
    ggl_error err = {0};
    imatrix *m = NULL;
    const char *path = test_path("m.gguf");
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    REQUIRE(w);
    ggl_gguf_put_tensor(w, "a.in_sum2", GGL_F32, 2, (const int64_t[]){N_COL, 1}, sums);
    ggl_gguf_put_tensor(w, "a.counts", GGL_F32, 2, (const int64_t[]){1, 1}, count);
    ggl_gguf_put_tensor(w, "a.in_sketch", (ggl_type)type, 2, (const int64_t[]){n_sketch, n_col},
                        sketch);
    REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    CHECK(llm_imatrix_open(&m, path, 0, &err) == GGL_FORMAT && !m);
    CHECK_HAS(err.msg, want);
}

TEST(damaged) {
    static float s[N_COL * 128];
    check_file(7, N_COL, s, GGL_F32,
               "entry 'a': the sketch has sizes 7 and 24; 5, 9, .. or 65, and the 24 columns");
    check_file(69, N_COL, s, GGL_F32, "the sketch has sizes 69 and 24");
    check_file(9, N_COL - 1, s, GGL_F32, "the sketch has sizes 9 and 23");
    check_file(9, N_COL, s, GGL_F16, "tensor 'a.in_sketch' has 432 bytes of type f16");
    s[9 * 5 + 1] = NAN;
    check_file(9, N_COL, s, GGL_F32, "the sketch of column 5 has a number that is not finite");
}

/* A sketch that is none of any inputs has finite directions all the same. */
TEST(made_up) {
    static float x[N_ROW * N_COL], dir[N_COL * N_SKETCH], power[N_COL], own[N_COL];
    static double c[N_COL * N_COL];
    uint64_t seed = 9;
    make_rows(x, c);
    imatrix *m = make(x, 0, N_ROW, N_SKETCH);
    REQUIRE(m);
    const imatrix_entry *e = llm_imatrix_find(m, "w");
    for (int how = 0; how < 4; how++) {
        for (int i = 0; i < N_COL * (N_SKETCH + 1); i++)
            e->sketch[i] = how == 0   ? 0
                           : how == 1 ? -1
                           : how == 2 ? 3e38f * test_random_float(&seed)
                                      : test_random_float(&seed);
        llm_imatrix_directions(e, dir, own, power);
        for (int i = 0; i < N_COL * N_SKETCH; i++)
            CHECK(isfinite(dir[i]));
    }
    llm_imatrix_free(m);
}
