/* conformance.cpu: elementwise kernels, recurrence (kernels_slots.c and kernels_attend.c have others); every instruction
 * set against the portable definition, bit for bit; the definition against double precision. */
#include <sys/wait.h>

#include "kernels.h"

#include "ggl/internal/math.h"

static const int64_t sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  11,  15,  16,  17,  23,  24,
                                25, 31, 32, 33, 47, 48, 63, 64, 65, 100, 128, 129, 257, 1000};
enum { N_SIZES = sizeof sizes / sizeof *sizes };
static tables all;

static const char *const unary_name[] = {
#define UNARY_SLOT(NAME, of, where) #NAME,
#include "../../backends/cpu/slots.def"
};
static const char *const binary_name[] = {
#define BINARY_SLOT(NAME, where) #NAME,
#include "../../backends/cpu/slots.def"
};

/* A read past the end of a buffer must not go unseen. */
TEST(guard) {
    exact e = exact_at_guard(100);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) /* for what a sanitizer says */
            _exit(0);
        (void)((volatile char *)e.p)[99];
        (void)((volatile char *)e.p)[100];
        _exit(0); /* is not reached */
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status != 0); /* a signal, or what a sanitizer makes of it */
    exact_free(&e);
}

TEST(unary) {
    tables_init(&all);
    uint64_t seed = 1;
    for (int f = 0; f < CPU_N_UNARY; f++)
        for (int i = 0; i < N_SIZES; i++)
            for (values kind = ORDINARY; kind < N_VALUES; kind++) {
                int64_t n = sizes[i];
                exact x = exact_new((size_t)n * 4, 4), want = exact_new((size_t)n * 4, 0);
                fill(x.p, n, &seed, kind);
                all.k[0].unary[f](want.p, x.p, n);
                for (int t = 1; t < all.n; t++) {
                    if (all.k[t].unary[f] == all.k[t - 1].unary[f])
                        continue;
                    guarded y = guarded_new((size_t)n * 4, 12);
                    all.k[t].unary[f]((float *)y.p, x.p, n);
                    CHECK_SAME((float *)y.p, (float *)want.p, n, "%s, %s, n = %lld", unary_name[f],
                               all.name[t], (long long)n);
                    memcpy(y.p, x.p, (size_t)n * 4); /* in place */
                    all.k[t].unary[f]((float *)y.p, (float *)y.p, n);
                    CHECK_SAME((float *)y.p, (float *)want.p, n, "%s in place", unary_name[f]);
                    guarded_end(&y, unary_name[f]);
                }
                exact_free(&x);
                exact_free(&want);
            }
}

/* Every 9973rd float, so that all exponents, signs and many mantissas are met. */
TEST(unary_whole_range) {
    tables_init(&all);
    enum { N = 4096 };
    static float x[N], want[N], got[N];
    uint64_t first;
    const uint32_t step = 9973 * (uint32_t)kernels_every(&first);
    uint32_t u = 9973 * (uint32_t)first;
    for (bool done = false; !done;) {
        for (int i = 0; i < N; i++) {
            memcpy(x + i, &u, 4);
            done = done || u > UINT32_MAX - step;
            u += step;
        }
        for (int f = 0; f < CPU_N_UNARY; f++) {
            all.k[0].unary[f](want, x, N);
            for (int t = 1; t < all.n; t++) {
                if (all.k[t].unary[f] == all.k[t - 1].unary[f])
                    continue;
                all.k[t].unary[f](got, x, N);
                CHECK_SAME(got, want, N, "%s, %s", unary_name[f], all.name[t]);
            }
        }
    }
}

/* The C library's, so that the project's own functions are not measured by themselves. */
static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

static double exact_unary(int f, double x) {
    switch (f) {
    case CPU_EXP:
        return exp(x);
    case CPU_LOG:
        return log(x);
    case CPU_SQRT:
        return sqrt(x);
    case CPU_FLOOR:
        return floor(x);
    case CPU_ABS:
        return fabs(x);
    case CPU_TANH:
        return tanh(x);
    case CPU_ERF:
        return erf(x);
    case CPU_SIGMOID:
        return logistic(x);
    case CPU_SIN:
        return sin(x);
    case CPU_COS:
        return cos(x);
    case CPU_RELU:
        return x > 0 ? x : 0;
    case CPU_SILU:
        return x * logistic(x);
    case CPU_GELU:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case CPU_GELU_ERF:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case CPU_GELU_QUICK:
        return x * logistic(1.702 * x);
    default:
        return fmax(x, 0) + log(1 + exp(-fabs(x)));
    }
}

/* Bound: 4 roundings of the result, and of x, by which the gelus and softplus are a product with 1
 * + something near -1; the argument of an exponential has a relative error of 2 eps, which is |x| 2
 * eps of the result. */
TEST(unary_against_double) {
    tables_init(&all);
    uint64_t seed = 2;
    for (int f = 0; f < CPU_N_UNARY; f++)
        for (int i = 0; i < 20000; i++) {
            float x = test_random_float(&seed) * (i % 2 ? 10 : 0.5f), y;
            x = f == CPU_LOG || f == CPU_SQRT ? fabsf(x) : x;
            all.k[0].unary[f](&y, &x, 1);
            double want = exact_unary(f, x), size = fabs(want);
            double bound = 4 * size + 2 * size * fabs((double)x) +
                           (f >= CPU_GELU ? 2 * fabs((double)x) + 1 : 0);
            CHECK_MSG(fabs((double)y - want) <= bound * 0x1p-23 + 0x1p-126,
                      "%s(%g) is %.9g, expected %.9g", unary_name[f], (double)x, (double)y, want);
        }
}

TEST(binary) {
    tables_init(&all);
    uint64_t seed = 3;
    for (int f = 0; f < CPU_N_BINARY; f++)
        for (int i = 0; i < N_SIZES; i++)
            for (int form = 0; form < 3 * N_VALUES; form++) {
                int64_t n = sizes[i];
                int a1 = form % 3 != 2, b1 = form % 3 != 1;
                exact a = exact_new((size_t)(a1 ? n : 1) * 4, 4),
                      b = exact_new((size_t)(b1 ? n : 1) * 4, 8);
                exact want = exact_new((size_t)n * 4, 0);
                fill(a.p, a1 ? n : 1, &seed, (values)(form / 3));
                fill(b.p, b1 ? n : 1, &seed, (values)(form / 3));
                if (a1 && b1)
                    for (int64_t e = 0; e < n; e += 3)
                        ((float *)b.p)[e] = ((float *)a.p)[e]; /* equal ones */
                all.k[0].binary[f](want.p, a.p, a1, b.p, b1, n);
                for (int t = 1; t < all.n; t++) {
                    if (all.k[t].binary[f] == all.k[t - 1].binary[f])
                        continue;
                    guarded y = guarded_new((size_t)n * 4, 4);
                    all.k[t].binary[f]((float *)y.p, a.p, a1, b.p, b1, n);
                    CHECK_SAME((float *)y.p, (float *)want.p, n, "%s, %s, n = %lld, steps %d %d",
                               binary_name[f], all.name[t], (long long)n, a1, b1);
                    guarded_end(&y, binary_name[f]);
                }
                exact_free(&a);
                exact_free(&b);
                exact_free(&want);
            }
}

/* The operators are single operations or their documented sequence: equal to that in C. */
TEST(binary_definition) {
    tables_init(&all);
    uint64_t seed = 4;
    for (int i = 0; i < 30000; i++) {
        float a = value_of_kind(&seed, (values)(i % 3)),
              b = value_of_kind(&seed, (values)(i / 3 % 3)), y[CPU_N_BINARY];
        for (int f = 0; f < CPU_N_BINARY; f++)
            all.k[0].binary[f](y + f, &a, 1, &b, 1, 1);
        const float want[CPU_N_BINARY] = {[CPU_ADD] = a + b,
                                          [CPU_SUB] = a - b,
                                          [CPU_MUL] = a * b,
                                          [CPU_DIV] = a / b,
                                          [CPU_POW] = (float)ggl_pow(a, b),
                                          [CPU_MOD] = a - b * floorf(a / b),
                                          [CPU_EQ] = a == b,
                                          [CPU_NE] = a != b,
                                          [CPU_LT] = a<b, [CPU_LE] = a <= b, [CPU_GT] = a> b,
                                          [CPU_GE] = a >= b,
                                          [CPU_MIN] = isnan(a) || isnan(b) ? NAN
                                                      : a < b              ? a
                                                                           : b,
                                          [CPU_MAX] = isnan(a) || isnan(b) ? NAN
                                                      : a > b              ? a
                                                                           : b};
        CHECK_SAME(y, want, CPU_N_BINARY, "%a, %a", (double)a, (double)b);
    }
}

/* The remainder has the divisor's sign, and is off by the rounding of a / b, which may also take it
 * to the next whole number: then the remainder is a whole divisor away. */
TEST(mod_against_double) {
    tables_init(&all);
    uint64_t seed = 40;
    int n_whole = 0;
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        float a = test_random_float(&seed) * 50, b = test_random_float(&seed) * 4, y;
        if (b == 0)
            continue;
        all.k[0].binary[CPU_MOD](&y, &a, 1, &b, 1, 1);
        double want = fmod((double)a, (double)b);
        want += want != 0 && (want < 0) != (b < 0) ? (double)b : 0;
        double off = fabs((double)y - want),
               bound = 2 * 0x1p-23 * (fabs((double)a) + fabs((double)b));
        bool whole = fabs(off - fabs((double)b)) <= bound;
        n_whole += off > bound && whole;
        CHECK_MSG(off <= bound || whole, "%g mod %g is %.9g, expected %.9g", (double)a, (double)b,
                  (double)y, want);
    }
    CHECK_MSG(n_whole < N / 1000, "%d of %d are a whole divisor away", n_whole, N);
}

/* One table against the portable one: the same rows of a state through one token. */
static void check_recur(cpu_recur_kind kind, int t, int64_t n, int64_t n_rows, int what,
                        uint64_t *seed) {
    const size_t row = (size_t)n * 4, rows = row * (size_t)n_rows;
    exact s = exact_new(rows, 4), w = exact_new(row, 8), k = exact_new(row, 0),
          q = exact_new(row, 4), a = exact_new(kind == CPU_SELECT ? rows : row, 8),
          b = exact_new(kind == CPU_SELECT ? (size_t)n_rows * 4 : row, 0),
          v = exact_new((size_t)n_rows * 4, 0);
    guarded state = guarded_new(rows, 4), y = guarded_new((size_t)n_rows * 4, 8);
    float *want = malloc((size_t)n_rows * 4);
    fill((float *)s.p, n * n_rows, seed, what);
    fill((float *)w.p, n, seed, what);
    fill((float *)k.p, n, seed, what);
    fill((float *)q.p, n, seed, ORDINARY);
    fill((float *)a.p, kind == CPU_SELECT ? n * n_rows : n, seed, what);
    fill((float *)b.p, kind == CPU_SELECT ? n_rows : n, seed, ORDINARY);
    fill((float *)v.p, n_rows, seed, ORDINARY);
    memcpy(state.p, (float *)s.p, rows);
    const cpu_recur r = {.n = n,
                         .w = (float *)w.p,
                         .k = (float *)k.p,
                         .q = (float *)q.p,
                         .a = (float *)a.p,
                         .b = (float *)b.p,
                         .v = (float *)v.p,
                         .rate = 0.3f};
    all.k[0].recur[kind]((float *)s.p, want, n_rows, &r);
    all.k[t].recur[kind]((float *)state.p, (float *)y.p, n_rows, &r);
    CHECK_SAME((float *)y.p, want, n_rows, "recurrence %d of %lld, %s", (int)kind, (long long)n,
               all.name[t]);
    CHECK_SAME((float *)state.p, (float *)s.p, n * n_rows, "state of recurrence %d, %s", (int)kind,
               all.name[t]);
    guarded_end(&state, "state");
    guarded_end(&y, "recurrence");
    free(want);
    exact_free(&s);
    exact_free(&w);
    exact_free(&k);
    exact_free(&q);
    exact_free(&a);
    exact_free(&b);
    exact_free(&v);
}

TEST(recurrence) {
    tables_init(&all);
    uint64_t seed = 10;
    for (int i = 0; i < N_SIZES; i++)
        for (int what = 0; what < N_VALUES; what++)
            for (int kind = 0; kind < CPU_N_RECUR; kind++)
                for (int t = 1; t < all.n; t++)
                    check_recur((cpu_recur_kind)kind, t, sizes[i], 1 + (i + what + kind) % 9, what,
                                &seed);
}
