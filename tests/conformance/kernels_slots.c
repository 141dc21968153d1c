/* conformance.cpu.slots: every slot of backends/cpu/slots.def that is no array, on each instruction set, against the portable
 * kernel, bit for bit; and the portable kernels against double precision. There is one check for each signature, named
 * check_<signature>: a row of slots.def with a new signature does not compile here without one. Arrays are in
 * kernels_simple.c. */
#include <stddef.h>

#include "kernels.h"

static const int64_t sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  11,  15,  16,  17,  23,  24,
                                25, 31, 32, 33, 47, 48, 63, 64, 65, 100, 128, 129, 257, 1000};
enum { N_SIZES = sizeof sizes / sizeof *sizes, MOST = 1000 };
static tables all;

/* A slot: the place of a function in cpu_kernels. */
typedef struct slot {
    const char *name;
    size_t at;
} slot;

/* The slot's kernel in table t. */
#define KERNEL(fn, slot_, t) (*(fn *const *)(const void *)((const char *)&all.k[t] + (slot_).at))

/* y = f(x), also with y = x. No slot besides the arrays has this signature today. */
TEST_UNUSED static void check_cpu_unary_fn(slot s) {
    uint64_t seed = 1;
    for (int i = 0; i < N_SIZES * N_VALUES; i++) {
        const int64_t n = sizes[i / N_VALUES];
        exact x = exact_new((size_t)n * 4, 4), want = exact_new((size_t)n * 4, 0);
        fill(x.p, n, &seed, (values)(i % N_VALUES));
        KERNEL(cpu_unary_fn, s, 0)(want.p, x.p, n);
        for (int t = 1; t < all.n; t++) {
            guarded y = guarded_new((size_t)n * 4, 12);
            KERNEL(cpu_unary_fn, s, t)((float *)y.p, x.p, n);
            CHECK_SAME((float *)y.p, (float *)want.p, n, "%s of %lld, %s", s.name, (long long)n,
                       all.name[t]);
            memcpy(y.p, x.p, (size_t)n * 4);
            KERNEL(cpu_unary_fn, s, t)((float *)y.p, (float *)y.p, n);
            CHECK_SAME((float *)y.p, (float *)want.p, n, "%s in place, %s", s.name, all.name[t]);
            guarded_end(&y, s.name);
        }
        exact_free(&x);
        exact_free(&want);
    }
}

static void check_cpu_mul_add_fn(slot s) {
    uint64_t seed = 7;
    for (int i = 0; i < N_SIZES; i++) {
        float x[MOST], want[MOST], got[MOST];
        int64_t n = sizes[i];
        fill(x, n, &seed, ORDINARY);
        fill(want, n, &seed, ORDINARY);
        for (int t = 1; t < all.n; t++) {
            memcpy(got, want, (size_t)n * 4);
            KERNEL(cpu_mul_add_fn, s, t)(got, x, 0.3f, n);
            KERNEL(cpu_mul_add_fn, s, 0)(want, x, 0.3f, n);
            CHECK_SAME(got, want, n, "%s of %lld", s.name, (long long)n);
        }
    }
}

/* All numbers of 16 bits come back; other numbers are rounded alike. */
static void check_cpu_to_f16_fn(slot s) {
    enum { N = 65536 };
    static uint16_t h[N], back[N];
    static float want[N];
    for (int i = 0; i < N; i++)
        h[i] = (uint16_t)i;
    all.k[0].to_f32[GGL_F16](h, want, N);
    for (int t = 0; t < all.n; t++) {
        KERNEL(cpu_to_f16_fn, s, t)(back, want, N);
        for (int i = 0; i < N; i++)
            CHECK(back[i] == h[i] || isnan(want[i]));
    }
    uint64_t seed = 5;
    for (int i = 0; i < 100000; i++) {
        float x[9];
        uint16_t a[9], b[9];
        fill(x, 9, &seed, (values)(i % 3));
        KERNEL(cpu_to_f16_fn, s, 0)(a, x, 9);
        for (int t = 1; t < all.n; t++) {
            KERNEL(cpu_to_f16_fn, s, t)(b, x, 9);
            for (int e = 0; e < 9; e++)
                CHECK_MSG(a[e] == b[e] || isnan(x[e]), "f16 of %a: %x, expected %x", (double)x[e],
                          b[e], a[e]);
        }
    }
}

/* Rows of y, with room beside them that must stay; and the portable kernel against sums in double. */
static void check_cpu_chains_fn(slot s) {
    enum { K = 37, GAP = 3 };
    static const int64_t lengths[] = {0, 1, 3, 4, 8, 15, 16, 17, 40, 63, 64, 65, 130};
    uint64_t seed = 9;
    for (int i = 0; i < 13 * CPU_CHAIN_ROWS; i++) {
        const int64_t n = lengths[i / CPU_CHAIN_ROWS], k = i % 5 == 0 ? 1 : K, step = n + GAP;
        const int n_y = i % CPU_CHAIN_ROWS + 1;
        float b[K * CPU_CHAIN_ROWS], begin[CPU_CHAIN_ROWS * 130], want[CPU_CHAIN_ROWS * 130];
        exact a = exact_new((size_t)((k - 1) * step + n) * 4, 4);
        const float *factors[CPU_CHAIN_ROWS];
        float *y[CPU_CHAIN_ROWS];
        fill(a.p, (k - 1) * step + n, &seed, ORDINARY);
        fill(b, K * CPU_CHAIN_ROWS, &seed, ORDINARY);
        fill(begin, CPU_CHAIN_ROWS * n, &seed, ORDINARY);
        memcpy(want, begin, (size_t)(CPU_CHAIN_ROWS * n) * sizeof *want);
        for (int c = 0; c < n_y; c++) {
            factors[c] = b + (i % 2 ? c * K : c);
            y[c] = want + c * n;
        }
        const int64_t b_step = i % 2 ? 1 : CPU_CHAIN_ROWS;
        KERNEL(cpu_chains_fn, s, 0)(y, n_y, a.p, step, factors, b_step, k, n);
        for (int c = 0; c < n_y; c++)
            for (int64_t e = 0; e < n; e++) {
                double sum = (double)begin[c * n + e], size = fabs(sum);
                for (int64_t t = 0; t < k; t++) {
                    const double term =
                        (double)((float *)a.p)[t * step + e] * (double)factors[c][t * b_step];
                    sum += term;
                    size += fabs(term);
                }
                CHECK(fabs((double)y[c][e] - sum) <= (double)k * 0x1p-24 * size);
            }
        for (int t = 1; t < all.n; t++) {
            guarded got = guarded_new((size_t)(n_y * n) * 4, 12);
            memcpy(got.p, begin, (size_t)(n_y * n) * sizeof *want);
            for (int c = 0; c < n_y; c++)
                y[c] = (float *)got.p + c * n;
            KERNEL(cpu_chains_fn, s, t)(y, n_y, a.p, step, factors, b_step, k, n);
            CHECK_SAME((float *)got.p, want, n_y * n, "%s of %d rows of %lld, %s", s.name, n_y,
                       (long long)n, all.name[t]);
            guarded_end(&got, s.name);
        }
        exact_free(&a);
    }
}

/* One number for a row of at least `least` elements. */
static void check_reduction(slot s, int64_t least) {
    uint64_t seed = 6;
    for (int i = 0; i < N_SIZES; i++)
        for (int form = 0; form < 10 * N_VALUES && sizes[i] >= least; form++) {
            int64_t n = sizes[i];
            exact x = exact_new((size_t)n * 4, 4);
            fill(x.p, n, &seed, (values)(form % N_VALUES));
            if (form > 20) /* signs of zeros must not show */
                for (int64_t e = 0; e < n; e++)
                    ((float *)x.p)[e] = e % 3 ? -0.0f : 0.0f;
            float want = KERNEL(cpu_sum_fn, s, 0)(x.p, n);
            for (int t = 1; t < all.n; t++) {
                float got = KERNEL(cpu_sum_fn, s, t)(x.p, n);
                CHECK_SAME(&got, &want, 1, "%s of %lld, %s", s.name, (long long)n, all.name[t]);
            }
            exact_free(&x);
        }
}

static void check_cpu_sum_fn(slot s) {
    check_reduction(s, 0);
}

static void check_cpu_hadamard_fn(slot s) {
    uint64_t seed = 11;
    for (int64_t n = 1; n <= 4096; n *= 2) {
        exact x = exact_new((size_t)n * sizeof(float), 4);
        float *want = malloc((size_t)n * sizeof *want), *got = malloc((size_t)n * sizeof *got);
        REQUIRE(want && got);
        for (int kind = 0; kind < N_VALUES; kind++) {
            fill(x.p, n, &seed, (values)kind);
            KERNEL(cpu_hadamard_fn, s, 0)(want, x.p, n, 0.375f);
            for (int t = 1; t < all.n; t++) {
                KERNEL(cpu_hadamard_fn, s, t)(got, x.p, n, 0.375f);
                CHECK_SAME(got, want, n, "%s of %lld, %s", s.name, (long long)n, all.name[t]);
                memcpy(got, x.p, (size_t)n * sizeof *got);
                KERNEL(cpu_hadamard_fn, s, t)(got, got, n, 0.375f);
                CHECK_SAME(got, want, n, "%s of %lld in place, %s", s.name, (long long)n,
                           all.name[t]);
            }
        }
        exact_free(&x);
        free(want);
        free(got);
    }
}

static void check_cpu_largest_fn(slot s) {
    check_reduction(s, 1);
}

/* n / 16 additions in each sum, 4 in the tree */
TEST(row_sums_against_double) {
    tables_init(&all);
    uint64_t seed = 6;
    for (int i = 0; i < N_SIZES * 10; i++) {
        float x[MOST];
        const int64_t n = sizes[i / 10];
        fill(x, n, &seed, ORDINARY);
        double sum = 0, size = 0;
        for (int64_t e = 0; e < n; e++) {
            sum += (double)x[e];
            size += fabs((double)x[e]);
        }
        CHECK(fabs((double)all.k[0].sum(x, n) - sum) <= ((double)n / 16 + 5) * 0x1p-24 * size);
    }
}

static void check_cpu_rope_fn(slot s) {
    uint64_t seed = 8;
    for (int64_t r = 0; r <= 70; r++) {
        float x[140], cs[140], want[140], got[140];
        fill(x, 2 * r, &seed, ORDINARY);
        fill(cs, 2 * r, &seed, ORDINARY);
        KERNEL(cpu_rope_fn, s, 0)(want, x, cs, r);
        for (int t = 1; t < all.n; t++) {
            KERNEL(cpu_rope_fn, s, t)(got, x, cs, r);
            CHECK_SAME(got, want, 2 * r, "%s of %lld pairs, %s", s.name, (long long)r, all.name[t]);
        }
    }
}

TEST(rope_against_double) {
    tables_init(&all);
    uint64_t seed = 8;
    for (int64_t r = 0; r <= 70; r++) {
        float x[140], cs[140], y[140];
        fill(x, 2 * r, &seed, ORDINARY);
        fill(cs, 2 * r, &seed, ORDINARY);
        all.k[0].rope_pair(y, x, cs, r);
        for (int64_t i = 0; i < r; i++) /* one product rounded, then a fused one */
            CHECK(fabs((double)y[2 * i] - ((double)x[2 * i] * (double)cs[2 * i] -
                                           (double)x[2 * i + 1] * (double)cs[2 * i + 1])) <=
                  40 * 0x1p-23);
    }
}

/* --- columns of products ---------------------------------------------------------------------- */

/* The codes are at most half a step off, and their sum is the block's. */
static void check_codes(const cpu_qblock *block, const float *x) {
    int sum = 0;
    for (int e = 0; e < CPU_QBLOCK; e++) {
        sum += block->q[e];
        CHECK(abs(block->q[e]) <= 127);
        double step = (double)block->d, err = fabs((double)x[e] - step * block->q[e]);
        CHECK(err <= step * 0.5 * (1 + 127 * 4 * 0x1p-23) || (step == 0 && err < 0x1p-100));
    }
    CHECK(sum == block->sum);
}

static void check_cpu_quantize_fn(slot s) {
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        float x[64];
        fill(x, 64, &seed, i % 8 == 0 ? EXTREME : i % 3 ? ORDINARY : WIDE);
        if (i % 5 == 0)
            for (int e = 0; e < 64; e++) /* around the cut-off */
                x[e] = ldexpf(x[e], -103);
        cpu_qblock want[2], got[2];
        KERNEL(cpu_quantize_fn, s, 0)(want, x, 64);
        for (int t = 1; t < all.n; t++) {
            KERNEL(cpu_quantize_fn, s, t)(got, x, 64);
            for (int b = 0; b < 2; b++) {
                CHECK_SAME(&got[b].d, &want[b].d, 1, "scale, %s", all.name[t]);
                CHECK(memcmp(got[b].q, want[b].q, 32) == 0 && got[b].sum == want[b].sum);
            }
        }
        for (int b = 0; b < 2 && !isnan(want[b].d); b++)
            check_codes(&want[b], x + CPU_QBLOCK * b);
    }
}

/* The row is padded to a multiple of 32. */
static void check_cpu_round_fn(slot s) {
    uint64_t seed = 2;
    for (int64_t n = 0; n < 130; n++)
        for (values kind = ORDINARY; kind < N_VALUES; kind++) {
            int64_t padded = (n + 31) / 32 * 32;
            exact x = exact_new((size_t)n * 4, 4), want = exact_new((size_t)padded * 4, 0);
            fill(x.p, n, &seed, kind);
            KERNEL(cpu_round_fn, s, 0)(want.p, x.p, n);
            for (int t = 1; t < all.n; t++) {
                guarded y = guarded_new((size_t)padded * 4, 4);
                KERNEL(cpu_round_fn, s, t)((float *)y.p, x.p, n);
                CHECK_SAME((float *)y.p, (float *)want.p, padded, "%s of %lld, %s", s.name,
                           (long long)n, all.name[t]);
                guarded_end(&y, s.name);
            }
            exact_free(&x);
            exact_free(&want);
        }
}

/* The same numbers as round_bf16 has, in order. */
static void check_cpu_round_pairs_fn(slot s) {
    uint64_t seed = 5;
    for (int64_t n = 0; n < 130; n++)
        for (values kind = ORDINARY; kind <= AT_CUT; kind++) {
            int64_t padded = (n + 31) / 32 * 32;
            exact x = exact_new((size_t)n * 4, 4), f32 = exact_new((size_t)padded * 4, 0);
            float want[160], got[160];
            fill(x.p, n, &seed, kind);
            all.k[0].round_bf16(f32.p, x.p, n);
            for (int64_t i = 0; i < padded; i++)
                want[i] = ((float *)f32.p)[i / 32 * 32 + (i % 2 ? 0 : 16) + i % 32 / 2];
            for (int t = 0; t < all.n; t++) {
                guarded y = guarded_new((size_t)padded * 2, 2);
                KERNEL(cpu_round_pairs_fn, s, t)((uint16_t *)y.p, x.p, n);
                ggl_type_get(GGL_BF16)->to_float(y.p, got, padded);
                CHECK_SAME(got, want, padded, "%s of %lld, %s", s.name, (long long)n, all.name[t]);
                guarded_end(&y, s.name);
            }
            exact_free(&x);
            exact_free(&f32);
        }
}

/* --- products of gradients in bf16 ------------------------------------------------------------ */

/* The numbers of pairs, one after the other. */
static void unpair(float *to, const uint32_t *pair, int64_t n) {
    for (int64_t i = 0; i < 2 * n; i++) {
        const uint32_t bits = i % 2 ? pair[i / 2] << 16 : pair[i / 2] & 0xffff0000;
        memcpy(to + i, &bits, sizeof *to);
    }
}

/* Returns x as products of bf16 take it. */
static float as_product(float x) {
    float y[32];
    all.k[0].round_bf16(y, &x, 1);
    return y[16];
}

static void check_cpu_pair_fn(slot s) {
    enum { LONGEST = 70 };
    uint64_t seed = 31;
    for (int64_t n = 0; n < LONGEST; n++)
        for (values kind = ORDINARY; kind < N_VALUES; kind++) {
            exact x = exact_new((size_t)n * 4, 4), y = exact_new((size_t)n * 4, 4);
            float want[2 * LONGEST], got[2 * LONGEST];
            const bool both = n % 3;
            fill(x.p, n, &seed, kind);
            fill(y.p, n, &seed, kind);
            for (int64_t i = 0; i < n; i++) {
                want[2 * i] = as_product(((float *)x.p)[i]);
                want[2 * i + 1] = both ? as_product(((float *)y.p)[i]) : 0;
            }
            for (int t = 0; t < all.n; t++) {
                guarded to = guarded_new((size_t)n * 4, 4);
                KERNEL(cpu_pair_fn, s, t)((uint32_t *)to.p, x.p, both ? y.p : NULL, n);
                unpair(got, (uint32_t *)to.p, n);
                CHECK_SAME(got, want, 2 * n, "%s of %lld, %s", s.name, (long long)n, all.name[t]);
                guarded_end(&to, s.name);
            }
            exact_free(&x);
            exact_free(&y);
        }
}

/* All numbers of 16 bits, and rows of any length. */
static void check_cpu_pair_bf16_fn(slot s) {
    enum { ALL = 65536 };
    static uint16_t h[ALL];
    static uint32_t pair[ALL];
    static float plain[ALL], want[2 * ALL], got[2 * ALL];
    for (int i = 0; i < ALL; i++)
        h[i] = (uint16_t)(i * 40503u);
    ggl_type_get(GGL_BF16)->to_float(h, plain, ALL);
    for (int64_t n = 0; n <= 71; n++) {
        const int64_t len = n == 71 ? ALL / 2 : n;
        const bool both = n % 3;
        for (int64_t i = 0; i < len; i++) {
            want[2 * i] = as_product(plain[i]);
            want[2 * i + 1] = both ? as_product(plain[len + i]) : 0;
        }
        for (int t = 0; t < all.n; t++) {
            memset(pair, CANARY, sizeof pair);
            KERNEL(cpu_pair_bf16_fn, s, t)(pair, h, both ? h + len : NULL, len);
            unpair(got, pair, len);
            CHECK_SAME(got, want, 2 * len, "%s of %lld, %s", s.name, (long long)len, all.name[t]);
            CHECK(((unsigned char *)pair)[4 * len] == CANARY);
        }
    }
}

static void check_cpu_pair_up_fn(slot s) {
    enum { LONGEST = 140 };
    uint64_t seed = 33;
    for (int64_t n = 0; n < LONGEST; n++)
        for (values kind = ORDINARY; kind < N_VALUES; kind++) {
            const int64_t padded = (n + 1) / 2 * 2;
            exact x = exact_new((size_t)n * 4, 4);
            float want[LONGEST], got[LONGEST];
            fill(x.p, n, &seed, kind);
            for (int64_t i = 0; i < padded; i++)
                want[i] = i < n ? as_product(((float *)x.p)[i]) : 0;
            for (int t = 0; t < all.n; t++) {
                guarded to = guarded_new((size_t)padded * 2, 4);
                KERNEL(cpu_pair_up_fn, s, t)((uint32_t *)to.p, x.p, n);
                unpair(got, (uint32_t *)to.p, padded / 2);
                CHECK_SAME(got, want, padded, "%s of %lld, %s", s.name, (long long)n, all.name[t]);
                guarded_end(&to, s.name);
            }
            exact_free(&x);
        }
}

/* The bits of chains() of the same numbers, when what they begin with is a multiple of 2^-126. */
static void check_cpu_chain_pairs_fn(slot s) {
    enum { K = 19, GAP = 3, MOST_N = 130 };
    static const int64_t lengths[] = {0, 1, 3, 4, 8, 15, 16, 17, 40, 63, 64, 65, MOST_N};
    static float first[K * (MOST_N + GAP)], second[K * (MOST_N + GAP)], terms[2 * K * MOST_N],
        two[2 * (MOST_N + GAP)];
    static uint32_t a[K * (MOST_N + GAP)], b[K * CPU_CHAIN_ROWS];
    static float factor[CPU_CHAIN_ROWS][2 * K], begin[CPU_CHAIN_ROWS * MOST_N],
        want[CPU_CHAIN_ROWS * MOST_N];
    uint64_t seed = 34;
    for (int i = 0; i < 13 * CPU_CHAIN_ROWS * (AT_CUT + 1); i++) {
        const values kind = (values)(i / (13 * CPU_CHAIN_ROWS));
        const int64_t n = lengths[i / CPU_CHAIN_ROWS % 13], k = i % 5 == 0 ? 1 : K, step = n + GAP;
        const int n_y = i % CPU_CHAIN_ROWS + 1;
        const int64_t b_step = i % 2 ? 1 : CPU_CHAIN_ROWS;
        const uint32_t *pairs[CPU_CHAIN_ROWS];
        const float *factors[CPU_CHAIN_ROWS];
        float *y[CPU_CHAIN_ROWS];
        fill(first, k * step, &seed, kind);
        fill(second, k * step, &seed, kind);
        all.k[0].pair_rows(a, first, second, k * step);
        fill(first, K * CPU_CHAIN_ROWS, &seed, kind == EXTREME ? ORDINARY : kind);
        fill(second, K * CPU_CHAIN_ROWS, &seed, ORDINARY);
        all.k[0].pair_rows(b, first, second, K * CPU_CHAIN_ROWS);
        fill(begin, CPU_CHAIN_ROWS * n, &seed, kind);
        for (int64_t e = 0; e < CPU_CHAIN_ROWS * n; e++) {
            if (e % 3 == 0) /* around and below 2^-126 */
                begin[e] = ldexpf(begin[e], -103 - (int)(e % 40));
            /* to a multiple of 2^-126, which is exact in double */
            const double units = ldexp((double)begin[e], 126);
            want[e] = isfinite(begin[e]) ? (float)ldexp(rint(units), -126) + 0.0f : begin[e];
        }
        for (int64_t t = 0; t < k; t++) {
            unpair(two, a + t * step, n);
            for (int64_t e = 0; e < 2 * n; e++)
                terms[(2 * t + e % 2) * n + e / 2] = two[e];
        }
        for (int c = 0; c < n_y; c++) {
            pairs[c] = b + (i % 2 ? c * K : c);
            for (int64_t t = 0; t < k; t++)
                unpair(factor[c] + 2 * t, pairs[c] + t * b_step, 1);
            factors[c] = factor[c];
            y[c] = want + c * n;
        }
        all.k[0].chains(y, n_y, terms, n, factors, 1, 2 * k, n);
        for (int t = 0; t < all.n; t++) {
            guarded got = guarded_new((size_t)(n_y * n) * 4, 12);
            memcpy(got.p, begin, (size_t)(n_y * n) * sizeof *begin);
            for (int c = 0; c < n_y; c++)
                y[c] = (float *)got.p + c * n;
            KERNEL(cpu_chain_pairs_fn, s, t)(y, n_y, a, step, pairs, b_step, k, n);
            CHECK_SAME((float *)got.p, want, n_y * n, "%s of %d rows of %lld, %s", s.name, n_y,
                       (long long)n, all.name[t]);
            guarded_end(&got, s.name);
        }
    }
}

/* --- attention and states --------------------------------------------------------------------- */

/* Against the contract, of other kernels. */
static void check_cpu_softmax_page_fn(slot s) {
    uint64_t seed = 90;
    for (int lo = 0; lo < GGL_PAGE; lo++)
        for (int hi = lo + 1; hi <= GGL_PAGE; hi++)
            for (values kind = ORDINARY; kind < N_VALUES; kind++) {
                float x[GGL_PAGE], want[GGL_PAGE], got[GGL_PAGE], e[GGL_PAGE] = {0}, m, l;
                fill(x, GGL_PAGE, &seed, kind);
                for (int j = lo; j < hi; j++)
                    e[j] = x[j] * 0.3f;
                m = all.k[0].amax(e + lo, hi - lo);
                for (int j = lo; j < hi; j++)
                    want[j] = e[j] - m;
                all.k[0].unary[CPU_EXP](e + lo, want + lo, hi - lo);
                l = all.k[0].sum(e, GGL_PAGE);
                for (int t = 0; t < all.n; t++) {
                    float end[2];
                    memcpy(got, x, sizeof got);
                    end[0] = KERNEL(cpu_softmax_page_fn, s, t)(got, lo, hi, 0.3f, end + 1);
                    CHECK_SAME(got, e, GGL_PAGE, "weights %d..%d, %s", lo, hi, all.name[t]);
                    CHECK_SAME(end, ((float[]){m, l}), 2, "largest and sum, %s", all.name[t]);
                }
            }
}

/* Numbers of pages from less than a vector kernel does at once to more; special values in some. */
static void check_cpu_softmax_pages_fn(slot s) {
    enum { PAGES = 11 };
    static float x[PAGES][GGL_PAGE], want[PAGES][GGL_PAGE], got[PAGES][GGL_PAGE];
    float m[2][PAGES + 1], sum[2][PAGES + 1];
    uint64_t seed = 94;
    for (int form = 0; form < 40 * (PAGES + 1); form++) {
        const int n = form / 40;
        for (int q = 0; q < n; q++) {
            const int kind = form % 40 < 10 ? 0 : (form + q) % 7;
            fill(x[q], GGL_PAGE, &seed, kind == 1 ? EXTREME : kind == 2 ? WIDE : ORDINARY);
            for (int j = 0; j < GGL_PAGE && (kind == 3 || kind == 4); j++)
                x[q][j] = kind == 3 ? -INFINITY : 3e38f;
            if (kind == 5)
                x[q][(form + q) % GGL_PAGE] = NAN;
        }
        memcpy(want, x, sizeof want);
        for (int q = 0; q < n; q++)
            m[0][q] = all.k[0].softmax_page(want[q], 0, GGL_PAGE, 0.7f, &sum[0][q]);
        for (int t = 0; t < all.n; t++) {
            memcpy(got, x, sizeof got);
            m[1][n] = sum[1][n] = 5;
            KERNEL(cpu_softmax_pages_fn, s, t)(got, n, 0.7f, m[1], sum[1]);
            CHECK_SAME(got[0], want[0], PAGES * GGL_PAGE, "%s of %d, %s", s.name, n, all.name[t]);
            CHECK_SAME(m[1], m[0], n, "largest of %d pages, %s", n, all.name[t]);
            CHECK_SAME(sum[1], sum[0], n, "sums of %d pages, %s", n, all.name[t]);
            CHECK(m[1][n] == 5 && sum[1][n] == 5);
        }
    }
}

static void check_cpu_merge_fn(slot s) {
    uint64_t seed = 91;
    for (int64_t n = 0; n < 70; n++) {
        float part[70], want[70];
        guarded got = guarded_new((size_t)n * 4, 8);
        fill(part, n, &seed, ORDINARY);
        fill((float *)got.p, n, &seed, ORDINARY);
        memcpy(want, got.p, (size_t)n * 4);
        for (int t = 1; t < all.n; t++) {
            KERNEL(cpu_merge_fn, s, 0)(want, part, 0.3f, 0.7f, n);
            KERNEL(cpu_merge_fn, s, t)((float *)got.p, part, 0.3f, 0.7f, n);
            CHECK_SAME((float *)got.p, want, n, "%s of %lld, %s", s.name, (long long)n,
                       all.name[t]);
        }
        guarded_end(&got, s.name);
    }
}

/* Against the contract, of exp and fma. */
static void check_cpu_merge_sums_fn(slot s) {
    enum { QUERIES = 35 };
    uint64_t seed = 95;
    for (int form = 0; form < 8 * QUERIES; form++) {
        const int n = form / 8;
        float x[4][QUERIES], want[2][QUERIES], exps[QUERIES][2], factor[QUERIES + 1][2];
        for (int k = 0; k < 4; k++)
            fill(x[k], n, &seed, form % 8 < 4 ? ORDINARY : form % 8 < 6 ? EXTREME : WIDE);
        for (int q = 0; q < n; q++) {
            if ((form + q) % 8 == 7)
                x[(form + q) / 8 % 2][q] = q % 3 == 0 ? NAN : q % 3 == 1 ? INFINITY : -INFINITY;
            const float old = x[0][q], add = x[1][q];
            want[0][q] = old > add || old != old ? old : add;
            const float drop[2] = {old - want[0][q], add - want[0][q]};
            all.k[0].unary[CPU_EXP](exps[q], drop, 2);
            float part = x[3][q] * exps[q][1];
            want[1][q] = fmaf(x[2][q], exps[q][0], part);
        }
        for (int t = 0; t < all.n; t++) {
            guarded m = guarded_new((size_t)n * 4, 4), l = guarded_new((size_t)n * 4, 4);
            memcpy(m.p, x[0], (size_t)n * 4);
            memcpy(l.p, x[2], (size_t)n * 4);
            factor[n][0] = 5;
            KERNEL(cpu_merge_sums_fn, s, t)
            ((float *)m.p, (float *)l.p, x[1], x[3], factor, n);
            CHECK_SAME((float *)m.p, want[0], n, "largest of %d, %s", n, all.name[t]);
            CHECK_SAME((float *)l.p, want[1], n, "sums of %d, %s", n, all.name[t]);
            CHECK_SAME(factor[0], exps[0], 2 * n, "factors of %d, %s", n, all.name[t]);
            CHECK(factor[n][0] == 5);
            guarded_end(&m, s.name);
            guarded_end(&l, s.name);
        }
    }
}

/* Panels of a page for 1 .. CPU_TILE queries; the definition is also compared with docs/numeric.md. */
static void check_cpu_panel_scores_fn(slot s) {
    uint64_t seed = 92;
    for (int64_t d = 1; d < 130; d += d < 20 ? 1 : 27)
        for (int n_q = 1; n_q <= CPU_TILE; n_q++) {
            const size_t size = (size_t)(n_q * GGL_PAGE) * 4;
            exact keys = exact_new((size_t)(d * GGL_PAGE) * 4, 4), q[CPU_TILE];
            const float *query[CPU_TILE];
            float want[CPU_TILE][GGL_PAGE] = {{0}};
            fill((float *)keys.p, d * GGL_PAGE, &seed, n_q % 2 ? ORDINARY : EXTREME);
            for (int k = 0; k < n_q; k++) {
                q[k] = exact_new((size_t)d * 4, (size_t)(k % 2) * 4);
                fill((float *)q[k].p, d, &seed, ORDINARY);
                query[k] = (float *)q[k].p;
                for (int64_t i = 0; i < d; i++)
                    for (int j = 0; j < GGL_PAGE; j++)
                        want[k][j] =
                            fmaf(((float *)keys.p)[i * GGL_PAGE + j], query[k][i], want[k][j]);
            }
            for (int t = 0; t < all.n; t++) {
                guarded got = guarded_new(size, 4);
                KERNEL(cpu_panel_scores_fn, s, t)
                ((float(*)[GGL_PAGE])(void *)got.p, query, n_q, (float *)keys.p, d);
                CHECK_SAME((float *)got.p, want[0], n_q * GGL_PAGE, "%s of %lld, %d queries, %s",
                           s.name, (long long)d, n_q, all.name[t]);
                guarded_end(&got, s.name);
            }
            for (int k = 0; k < n_q; k++)
                exact_free(&q[k]);
            exact_free(&keys);
        }
}

static void check_cpu_panel_values_fn(slot s) {
    enum { LARGEST = 160 };
    static float want[CPU_TILE * LARGEST], w[CPU_TILE][GGL_PAGE], total[CPU_TILE * LARGEST];
    uint64_t seed = 93;
    for (int64_t n = 16; n <= LARGEST; n += 16)
        for (int form = 0; form < 2 * CPU_TILE; form++) {
            const int n_q = form / 2 + 1;
            const size_t size = (size_t)(n_q * n) * 4;
            exact v = exact_new((size_t)(n * GGL_PAGE) * 4, 8);
            float share[CPU_TILE][2];
            fill((float *)v.p, n * GGL_PAGE, &seed, (values)(n_q % N_VALUES));
            fill(w[0], CPU_TILE * GGL_PAGE, &seed, ORDINARY);
            fill(share[0], 2 * CPU_TILE, &seed, ORDINARY);
            fill(total, CPU_TILE * LARGEST, &seed, ORDINARY);
            for (int64_t i = 0; i < n_q * n; i++) {
                float o = 0;
                for (int j = 0; j < GGL_PAGE; j++)
                    o = fmaf(w[i / n][j], ((float *)v.p)[j * n + i % n], o);
                const float part = o * share[i / n][1];
                want[i] = form % 2 ? fmaf(total[i], share[i / n][0], part) : o;
            }
            for (int t = 0; t < all.n; t++) {
                guarded got = guarded_new(size, 8);
                memcpy(got.p, total, size);
                KERNEL(cpu_panel_values_fn, s, t)
                ((float *)got.p, n, w, n_q, (float *)v.p, form % 2 ? share : NULL);
                CHECK_SAME((float *)got.p, want, n_q * n, "%s of %lld, %d queries, %s", s.name,
                           (long long)n, n_q, all.name[t]);
                guarded_end(&got, s.name);
            }
            exact_free(&v);
        }
}

static void check_cpu_conv_fn(slot s) {
    enum { ROWS = 37 };
    uint64_t seed = 11;
    for (int64_t n = 1; n < 70; n++)
        for (int64_t k = 1; k <= ROWS; k = k < 6 ? k + 1 : k + 15) {
            exact x[ROWS], w = exact_new((size_t)(n * k) * 4, 4);
            const float *row[ROWS];
            guarded want = guarded_new((size_t)n * 4, 0), got = guarded_new((size_t)n * 4, 8);
            fill((float *)w.p, n * k, &seed, (values)(n % N_VALUES));
            for (int64_t j = 0; j < k; j++) {
                x[j] = exact_new((size_t)n * 4, (size_t)(j % 3) * 4);
                fill((float *)x[j].p, n, &seed, (values)((n + j) % N_VALUES));
                row[j] = (float *)x[j].p;
            }
            KERNEL(cpu_conv_fn, s, 0)((float *)want.p, row, (float *)w.p, n, k);
            for (int t = 1; t < all.n; t++) {
                KERNEL(cpu_conv_fn, s, t)((float *)got.p, row, (float *)w.p, n, k);
                CHECK_SAME((float *)got.p, (float *)want.p, n, "%s of %lld over %lld, %s", s.name,
                           (long long)n, (long long)k, all.name[t]);
            }
            guarded_end(&want, "portable");
            guarded_end(&got, s.name);
            for (int64_t j = 0; j < k; j++)
                exact_free(&x[j]);
            exact_free(&w);
        }
}

/* --- all slots -------------------------------------------------------------------------------- */

TEST(slots) {
    tables_init(&all);
#define SLOT(name, fn, where) check_##fn((slot){#name, offsetof(cpu_kernels, name)});
#include "../../backends/cpu/slots.def"
}

/* Where a row says `simd`, an instruction set of this machine replaces the portable kernel; where it
 * says `scalar`, none does. */
TEST(slots_are_where_they_say) {
    enum { simd = 1, scalar = 0 };
    tables_init(&all);
    if (all.n == 1) /* a machine without vector kernels */
        return;
    const cpu_kernels *portable = &all.k[0], *best = &all.k[all.n - 1];
#define IS(slot_, where)                                                                           \
    CHECK_MSG((best->slot_ != portable->slot_) == (where), "%s is not %s, as slots.def has it",    \
              #slot_, #where);
#define UNARY_SLOT(NAME, of, where) IS(unary[CPU_##NAME], where)
#define BINARY_SLOT(NAME, where)    IS(binary[CPU_##NAME], where)
#define RECUR_SLOT(NAME, where)     IS(recur[CPU_##NAME], where)
#define SLOT(name, fn, where)       IS(name, where)
#include "../../backends/cpu/slots.def"
}

TEST(f16_to_f32) {
    enum { N = 65536 };
    static uint16_t h[N];
    static float want[N], got[N];
    tables_init(&all);
    for (int i = 0; i < N; i++)
        h[i] = (uint16_t)i;
    all.k[0].to_f32[GGL_F16](h, want, N);
    for (int t = 1; t < all.n; t++) {
        all.k[t].to_f32[GGL_F16](h, got, N);
        CHECK_SAME(got, want, N, "f16 to f32, %s", all.name[t]);
    }
}
