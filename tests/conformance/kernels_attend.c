/* conformance.cpu: attention over a page, of every type of store; every instruction set against the
 * contract, computed here from the rows that the page is made of. */
#include "attend_codes.h"
#include "kernels.h"

#include "ggl/types.h"

static tables all;

#ifdef AVXVNNI_AS_AVX512
void test_kernels_attend_codes_avxvnni(cpu_kernels *k);
#endif

static void tables_of_attention(void) {
    tables_init(&all);
#ifdef AVXVNNI_AS_AVX512
    if (ggl_cpu_features_detect() & CPU_AVX512VNNI) {
        ggl_cpu_kernels_init(&all.k[all.n], CPU_AVX2);
        test_kernels_attend_codes_avxvnni(&all.k[all.n]);
        snprintf(all.name[all.n++], sizeof all.name[0], "avxvnni as avx512vnni");
    }
#endif
}

static const ggl_type store_type[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
enum { MOST_DIMS = 128 };

/* Stores one row in a page as the layout is written in ggl/graph.h, by plain loops. */
static void put_row(char *p, ggl_store_kind kind, ggl_type type, int64_t d, int64_t j,
                    const char *row) {
    const int64_t size = (int64_t)ggl_type_get(type)->size;
    const bool keys = kind == GGL_STORE_KEYS;
    for (int64_t i = 0; i < d; i++) {
        const int64_t n = size - 2, k = i % 32;
        char *block = p + i / 32 * size * 64;
        const char *from = row + i / 32 * size;
        if (type == GGL_F32 || type == GGL_F16 || type == GGL_BF16)
            memcpy(p + (keys ? i * 64 + j : j * d + i) * size, row + i * size, (size_t)size);
        else if (k < n)
            block[keys ? k / 4 * 256 + 4 * j + k % 4 : j / 4 * 4 * n + 4 * k + j % 4] =
                (char)(from[2 + k] ^ (type == GGL_Q8_0 ? 0x80 : 0));
        if (size > 4 && k == 0)
            memcpy(block + n * 64 + 2 * j, from, 2);
    }
}

/* Rows as a store of some type has them. */
typedef struct rows {
    char raw[GGL_PAGE][MOST_DIMS * 4];
    float x[GGL_PAGE][MOST_DIMS]; /* decoded */
} rows;

/* A page of 64 rows of d elements, filled with what `what` says. */
static exact page_of(ggl_store_kind kind, ggl_type type, int64_t d, values what, uint64_t *seed,
                     rows *r) {
    ggl_store s = {.kind = kind, .type = type, .ne = {d, 1, 1}, .n_pos = GGL_PAGE};
    exact page = exact_new(ggl_row_size(type, d) * GGL_PAGE, 0);
    for (int j = 0; j < GGL_PAGE; j++) {
        fill_weights(r->raw[j], type, d, seed, what);
        ggl_type_get(type)->to_float(r->raw[j], r->x[j], d);
        put_row(page.p, kind, type, d, j, r->raw[j]);
    }
    float got[MOST_DIMS];
    for (int j = 0; j < GGL_PAGE; j++) {
        ggl_store_get(&s, page.p, j, 0, got);
        CHECK_SAME(got, r->x[j], d, "row %d of a page of %s", j, ggl_type_get(type)->name);
    }
    return page;
}

typedef struct attention_case {
    int64_t d;
    ggl_type type;
    values what;
    int n_q, j0, j1;
    int lo[CPU_QUERIES], hi[CPU_QUERIES];
    float q[CPU_QUERIES][MOST_DIMS], w[CPU_QUERIES][GGL_PAGE], o[CPU_QUERIES * MOST_DIMS];
} attention_case;

/* --- the contract --------------------------------------------------------------------------- */

static float score_of(const float *key, const float *query, int64_t d) {
    float a = 0;
    for (int64_t i = 0; i < d; i++)
        a = fmaf(key[i], query[i], a);
    return a;
}

static void check_scores(const attention_case *c, uint64_t *seed) {
    static rows r;
    static float want[CPU_QUERIES][GGL_PAGE], got[CPU_QUERIES][GGL_PAGE];
    const bool codes = ggl_type_get(c->type)->quantized;
    const float *query[CPU_QUERIES];
    const cpu_qblock *rounded[CPU_QUERIES];
    cpu_qblock column[CPU_QUERIES][MOST_DIMS / CPU_QBLOCK];
    exact page = page_of(GGL_STORE_KEYS, c->type, c->d, c->what, seed, &r);
    for (int k = 0; k < CPU_QUERIES; k++) {
        query[k] = c->q[k];
        rounded[k] = column[k];
    }
    for (int k = 0; k < c->n_q; k++)
        for (int j = 0; j < GGL_PAGE; j++)
            want[k][j] = codes ? product_of_codes(c->type, r.raw[j], c->q[k], c->d)
                               : score_of(r.x[j], c->q[k], c->d);
    for (int t = 0; t < all.n; t++) {
        for (int k = 0; codes && k < c->n_q; k++)
            all.k[t].quantize(column[k], c->q[k], c->d);
        if (codes)
            all.k[t].code_scores[c->type](got, rounded, c->n_q, page.p, c->d, page.p);
        else
            all.k[t].scores[c->type](got, query, c->n_q, page.p, c->d, page.p);
        for (int k = 0; k < c->n_q; k++)
            CHECK_SAME(got[k], want[k], GGL_PAGE, "scores of %s, d = %lld, query %d of %d, %s",
                       ggl_type_get(c->type)->name, (long long)c->d, k, c->n_q, all.name[t]);
    }
    exact_free(&page);
}

static void set_values(const attention_case *c, const rows *r, float *want) {
    const bool codes = ggl_type_get(c->type)->quantized;
    memcpy(want, c->o, (size_t)(c->n_q * c->d) * sizeof *want);
    for (int k = 0; k < c->n_q; k++)
        for (int64_t i = 0; i < c->d; i++) {
            float *to = want + k * c->d + i;
            if (codes)
                *to = value_of_codes(c->type, r->raw[0], sizeof *r->raw, c->w[k], c->lo[k],
                                     c->hi[k], i);
            for (int j = c->j0; j < c->j1 && !codes; j++)
                *to = fmaf(c->w[k][j], r->x[j][i], *to);
        }
}

static void check_values(attention_case *c, uint64_t *seed) {
    static rows r;
    int64_t n = c->n_q * c->d;
    exact page = page_of(GGL_STORE_VALUES, c->type, c->d, c->what, seed, &r);
    exact want = exact_new((size_t)n * 4, 0);
    set_values(c, &r, want.p);
    for (int t = 0; t < all.n; t++) {
        guarded b = guarded_new((size_t)n * 4, 4);
        float *o = (float *)(void *)b.p;
        memcpy(o, c->o, (size_t)n * 4);
        if (ggl_type_get(c->type)->quantized)
            all.k[t].code_values[c->type](o, c->d, c->w, c->n_q, page.p, c->d, c->lo, c->hi,
                                          page.p);
        else
            all.k[t].values[c->type](o, c->d, c->w, c->n_q, page.p, c->d, c->j0, c->j1, page.p);
        CHECK_SAME(o, (float *)want.p, n, "values of %s, %d..%d, e = %lld, %d, %s",
                   ggl_type_get(c->type)->name, c->j0, c->j1, (long long)c->d, c->n_q, all.name[t]);
        guarded_end(&b, "values");
    }
    exact_free(&want);
    exact_free(&page);
}

TEST(attention) {
    tables_of_attention();
    uint64_t seed = 9;
    static const int64_t dims[] = {1, 3, 8, 16, 24, 31, 32, 48, 57, 64, 80, 96, 128};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int form = 0; form < 5 * CPU_QUERIES * 3; form++) {
            static attention_case c;
            c = (attention_case){.d = dims[i],
                                 .type = store_type[form % 5],
                                 .n_q = form / 5 % CPU_QUERIES + 1,
                                 .what = form / 5 / CPU_QUERIES == 2 ? EXTREME : ORDINARY,
                                 .j0 = form / 5 / CPU_QUERIES * 13};
            c.j1 = form % 3 ? c.j0 + 1 + (int)(test_random(&seed) % (uint64_t)(64 - c.j0)) : 64;
            if (c.d % ggl_type_get(c.type)->block)
                continue;
            for (int k = 0; k < CPU_QUERIES;
                 k++) { /* ranges of their own; one query sees nothing */
                c.lo[k] = k == 1 ? c.j1 : (c.j0 + k) % c.j1;
                c.hi[k] = c.j1;
                fill(c.q[k], c.d, &seed, ORDINARY);
                for (int j = 0; j < GGL_PAGE; j++)
                    c.w[k][j] = j >= c.lo[k] && j < c.hi[k] ? fabsf(test_random_float(&seed)) : 0;
            }
            fill(c.o, CPU_QUERIES * c.d, &seed, ORDINARY);
            check_scores(&c, &seed);
            check_values(&c, &seed);
        }
}
