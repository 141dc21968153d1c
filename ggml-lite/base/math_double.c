/* The double functions of ggl/internal/math.h. Accuracy matters more than speed: they are called once, or
 * once per token. Where one double is not accurate enough, sums are unevaluated pairs
 * ("double-double", Dekker 1971). docs/numeric-functions.md has the formulas. Coefficients are
 * those of Taylor series unless noted. */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "fused.h"
#include "ggl/internal/math.h"
#include "number_bits.h"

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error                                                                                             \
    "float and double expressions must be evaluated in their own type (x86-32: -msse2 -mfpmath=sse)"
#endif

/* The number h + l; once normalized, |l| is at most half an ulp of h. */
typedef struct pair {
    double h, l;
} pair;

static const double LN2_HI = 0x1.62e42fefa38p-1; /* 42 bits: n * LN2_HI is exact for |n| < 2^11 */
static const pair LN2_LO = {0x1.ef35793c7673p-45, 0x1.f97b57a079a19p-103};
static const pair LOG2_E = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
static const pair THIRD = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
static const double TWO_OVER_PI = 0x1.45f306dc9c883p-1;
static const double PIO2_1 = 0x1.921fb54442d18p+0, PIO2_2 = 0x1.1a62633145c07p-54,
                    PIO2_3 = -0x1.f1976b7ed8fbcp-110;
/* 2/sqrt(pi), and 2/sqrt(pi) - 1 with full precision */
static const double TWO_OVER_SQRTPI = 0x1.20dd750429b6dp+0,
                    TWO_OVER_SQRTPI_1 = 0x1.06eba8214db69p-3;

static double double_abs(double x) {
    return double_of(double_bits(x) & ~(1ull << 63));
}

/* Returns y, which is not negative, with the sign of x. */
static double double_sign_of(double y, double x) {
    return double_of(double_bits(y) | (double_bits(x) & (1ull << 63)));
}

static bool double_finite(double x) {
    return (double_bits(x) >> 52 & 0x7ff) != 0x7ff;
}

/* 2^n, -1022 <= n <= 1023. */
static double power_of_two(int n) {
    return double_of((uint64_t)(1023 + n) << 52);
}

/* x 2^n for x near 1 and -1076 <= n <= 1024: only the last product rounds. */
static double scale(double x, int n) {
    int half = n / 2;
    return x * power_of_two(half) * power_of_two(n - half);
}

/* Return a + b exactly; sum_fast requires |a| >= |b| or a = 0. */
static pair sum(double a, double b) {
    double h = a + b, t = h - a;
    return (pair){h, (a - (h - t)) + (b - t)};
}

static pair sum_fast(double a, double b) {
    double h = a + b;
    return (pair){h, (a - h) + b};
}

/* Returns a b exactly. */
static pair product(double a, double b) {
    double h = a * b;
    return (pair){h, fused(a, b, -h)};
}

static pair pair_add(pair a, pair b) {
    pair s = sum(a.h, b.h);
    return sum_fast(s.h, s.l + (a.l + b.l));
}

static pair pair_mul(pair a, pair b) {
    pair p = product(a.h, b.h);
    return sum_fast(p.h, p.l + fused(a.h, b.l, a.l * b.h));
}

/* sum_k c[k] x^k, k < n, by Horner. */
static double polynomial(const double *c, int n, double x) {
    double y = c[n - 1];
    for (int k = n - 2; k >= 0; k--)
        y = fused(y, x, c[k]);
    return y;
}

/* --- exp, tanh, sigmoid ----------------------------------------------------------------------- */

/* e^(x.h + x.l) = (h + l) 2^*n with |h + l| in [0.7, 1.42]; |x.h| < 2^10. The pair's error is near
 * 2^-57. */
static pair exp_reduced(pair x, int *n) {
    static const double c[] = {1.0 / 2,          1.0 / 6,        1.0 / 24,        1.0 / 120,
                               1.0 / 720,        1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                               1.0 / 3628800,    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
                               1.0 / 87178291200};
    double k = rint(x.h * LOG2_E.h);
    *n = (int)k;
    pair r = sum(fused(-k, LN2_HI, x.h), fused(-k, LN2_LO.h, x.l));
    double q = r.h * r.h * polynomial(c, sizeof c / sizeof *c, r.h);
    pair y = sum_fast(1.0, r.h);
    y.l += fused(r.l, y.h, q);
    return y;
}

double ggl_exp(double x) {
    if (x != x)
        return x;
    if (x > 710)
        return INFINITY;
    if (x < -746)
        return 0;
    int n;
    pair y = exp_reduced((pair){x, 0}, &n);
    return scale(y.h + y.l, n);
}

double ggl_tanh(double x) {
    static const double c[] = {
        -1.0 / 3,         2.0 / 15,          -17.0 / 315,          62.0 / 2835,
        -1382.0 / 155925, 21844.0 / 6081075, -929569.0 / 638512875};
    double t = double_abs(x);
    if (x != x)
        return x;
    if (t < 0x1p-4) {
        double z = t * t;
        return double_sign_of(fused(t * z, polynomial(c, sizeof c / sizeof *c, z), t), x);
    }
    if (t > 22)
        return double_sign_of(1, x);
    /* (e - 1) / (e + 1), e = e^2t as a pair */
    int n;
    pair e = exp_reduced((pair){t + t, 0}, &n);
    double s = power_of_two(n);
    e = sum_fast(e.h * s, e.l * s);
    pair num = sum(e.h, -1), den = sum(e.h, 1);
    num = sum_fast(num.h, num.l + e.l);
    den = sum_fast(den.h, den.l + e.l);
    double q = num.h / den.h;
    q += (fused(-q, den.h, num.h) + fused(-q, den.l, num.l)) / den.h;
    return double_sign_of(q, x);
}

/* Chooses the form whose exponential does not overflow. */
double ggl_sigmoid(double x) {
    double e = ggl_exp(x < 0 ? x : -x);
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* --- logarithms, pow -------------------------------------------------------------------------- */

/* Returns ln m for x = 2^*e m with m in [sqrt(1/2), sqrt 2), as a pair with a relative error of
 * about 2^-65. x is positive and finite. ln m = 2 artanh s = 2 s (1 + z/3 + z^2/5 + ..),  s = (m -
 * 1) / (m + 1),  z = s^2 < 0.0295. */
static pair log_reduced(double x, int *e) {
    static const double c[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                               1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
    *e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        *e = -54;
    }
    uint64_t u = double_bits(x) - 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    *e += ((int)(u >> 52) ^ 0x800) - 0x800;           /* the upper 12 bits, signed */
    double m = double_of((u & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    double f = m - 1;
    pair d = sum_fast(2, f);
    double q = f / d.h;
    pair s = sum_fast(q, (fused(-q, d.h, f) - q * d.l) / d.h);
    pair z = pair_mul(s, s);
    pair t = pair_mul(z, THIRD);
    t = sum_fast(t.h, t.l + z.h * z.h * polynomial(c, sizeof c / sizeof *c, z.h));
    pair w = sum_fast(1, t.h);
    w.l += t.l;
    s.h *= 2;
    s.l *= 2;
    return pair_mul(s, w);
}

/* Returns the logarithm of x outside (0, inf), as C's Annex F defines it. */
static double log_special(double x) {
    return x == 0 ? -INFINITY : x < 0 ? NAN : x;
}

/* ln x as a pair; x is positive and finite. */
static pair log_pair(double x) {
    int e;
    pair l = log_reduced(x, &e);
    pair n = product(e, LN2_LO.h);
    n.l += e * LN2_LO.l;
    return pair_add(pair_add((pair){e * LN2_HI, 0}, n), l);
}

double ggl_log(double x) {
    if (!(x > 0) || !double_finite(x))
        return log_special(x);
    pair y = log_pair(x);
    return y.h + y.l;
}

double ggl_log2(double x) {
    if (!(x > 0) || !double_finite(x))
        return log_special(x);
    int e;
    pair l = log_reduced(x, &e);
    pair y = pair_add((pair){e, 0}, pair_mul(l, LOG2_E));
    return y.h + y.l;
}

/* Returns 0 if y is not an integer, 1 if it is odd, 2 if it is even. */
static int parity(double y) {
    if (double_abs(y) >= 0x1p53)
        return 2;
    if (floor(y) != y)
        return 0;
    return floor(y / 2) == y / 2 ? 2 : 1;
}

/* Returns x^y where x is 0 or infinite, or y is infinite (C11 F.10.4.4). Neither is NaN. */
static double pow_special(double x, double y) {
    double a = double_abs(x);
    if (!double_finite(y))
        return a == 1 ? 1 : (a > 1) == (y > 0) ? INFINITY : 0;
    double r = (a == 0) == (y > 0) ? 0 : INFINITY;
    return parity(y) == 1 ? double_sign_of(r, x) : r;
}

double ggl_pow(double x, double y) {
    if (x == 1 || y == 0)
        return 1;
    if (x != x || y != y)
        return x + y;
    if (x == 0 || !double_finite(x) || !double_finite(y))
        return pow_special(x, y);
    int odd = parity(y);
    if (x < 0 && odd == 0)
        return NAN;
    double sign = x < 0 && odd == 1 ? -1 : 1;
    pair l = log_pair(double_abs(x));
    pair p = {y * l.h, 0};
    if (p.h > 710)
        return sign * INFINITY;
    if (p.h < -746)
        return sign * 0;
    p.l = fused(y, l.h, -p.h) + y * l.l;
    int n;
    pair r = exp_reduced(p, &n);
    return sign * scale(r.h + r.l, n);
}

/* --- sin, cos --------------------------------------------------------------------------------- */

/* 2/pi = 0.b1 b2 b3 .. in binary, 32 bits a word: enough for the largest double. */
static const uint32_t TWO_OVER_PI_BITS[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
    0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
    0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
    0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
    0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d, 0xa9e39161, 0x5ee61b08};

/* Returns the 64 bits from bit `at` on of a little-endian number of n limbs. */
static uint64_t limbs_bits(const uint32_t *p, int n, int at) {
    int i = at / 32, shift = at % 32;
    uint64_t v = p[i];
    v |= i + 1 < n ? (uint64_t)p[i + 1] << 32 : 0;
    if (shift == 0)
        return v;
    return v >> shift | (i + 2 < n ? (uint64_t)p[i + 2] << (64 - shift) : 0);
}

/* Returns the quadrant n of x >= 2^30, and sets *r to x - n pi/2, in [-pi/4, pi/4] (Payne & Hanek
 * 1983). With x = m 2^e for an integer m, only the two bits before the binary point of m 2/pi 2^e
 * and 192 bits after it are needed. Words of 2/pi whose product with m 2^e is a multiple of 4 are
 * skipped; the next eight are used; the rest contribute less than 2^-170. */
static int reduce_large(double x, pair *r) {
    uint64_t u = double_bits(x), m = (u & 0x000fffffffffffff) | 1ull << 52;
    int e = (int)(u >> 52) - 1075, first = e > 2 ? (e - 2) / 32 : 0;
    uint32_t p[10] = {0};
    for (int half = 0; half < 2; half++) { /* p = m * eight words */
        uint64_t carry = 0, part = half ? m >> 32 : m & 0xffffffff;
        for (int i = 0; i < 8; i++) {
            carry += part * TWO_OVER_PI_BITS[first + 7 - i] + p[i + half];
            p[i + half] = (uint32_t)carry;
            carry >>= 32;
        }
        p[8 + half] = (uint32_t)carry;
    }
    int point = 32 * first + 256 - e; /* bits of p after the binary point: 223 to 278 */
    int quadrant = (int)(limbs_bits(p, 10, point) & 3);
    uint64_t f[3];
    for (int i = 0; i < 3; i++)
        f[i] = limbs_bits(p, 10, point - 64 * (i + 1));
    bool above = f[0] >> 63; /* nearer to the next quadrant: use the distance to that */
    for (int i = 0; above && i < 3; i++)
        f[i] = ~f[i];
    int lead = 0; /* leading zeros: at most about 62 for any double */
    while (lead < 64 && !(f[0] >> 63)) {
        f[0] = f[0] << 1 | f[1] >> 63;
        f[1] = f[1] << 1 | f[2] >> 63;
        f[2] <<= 1;
        lead++;
    }
    double unit = power_of_two(-53 - lead) * (above ? -1 : 1);
    pair t = {(double)(f[0] >> 11) * unit,
              (double)((f[0] & 0x7ff) << 42 | f[1] >> 22) * 0x1p-53 * unit};
    *r = pair_mul(t, (pair){PIO2_1, PIO2_2});
    return quadrant + above;
}

/* Splits x = n pi/2 + (r->h + r->l) with |r| up to slightly above pi/4; returns n mod 4. The pair
 * has a relative error of 2^-65. */
static int reduce(double x, pair *r) {
    double t = double_abs(x);
    int n;
    if (t < 0x1p30) {
        /* Cody & Waite 1980: the first difference is exact, as it has no bit below 2^-52 */
        double k = rint(t * TWO_OVER_PI);
        n = (int)k;
        pair w = product(-k, PIO2_2);
        *r = sum(fused(-k, PIO2_1, t), w.h);
        *r = sum(r->h, r->l + fused(-k, PIO2_3, w.l));
    } else {
        n = reduce_large(t, r);
    }
    if (x < 0) {
        r->h = -r->h;
        r->l = -r->l;
        n = -n;
    }
    return n & 3;
}

static double sin_reduced(pair r) {
    static const double c[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    double z = r.h * r.h;
    double t = r.h * z * polynomial(c, sizeof c / sizeof *c, z);
    return r.h + fused(r.l, fused(z, -0.5, 1.0), t);
}

static double cos_reduced(pair r) {
    static const double c[] = {
        1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    double z = r.h * r.h;
    pair w = sum_fast(1, -0.5 * z);
    double t = fused(z * z, polynomial(c, sizeof c / sizeof *c, z), -r.h * r.l);
    t += fused(r.h, r.h, -z) * -0.5; /* the rounding error of the square */
    return w.h + (w.l + t);
}

double ggl_sin(double x) {
    if (!double_finite(x))
        return NAN;
    if (double_abs(x) < 0x1p-27)
        return x;
    pair r;
    int n = reduce(x, &r);
    double y = n & 1 ? cos_reduced(r) : sin_reduced(r);
    return n & 2 ? -y : y;
}

double ggl_cos(double x) {
    if (!double_finite(x))
        return NAN;
    pair r;
    int n = reduce(x, &r);
    double y = n & 1 ? sin_reduced(r) : cos_reduced(r);
    return n == 1 || n == 2 ? -y : y;
}

/* --- erf -------------------------------------------------------------------------------------- */

/* erf(c) as a pair and erf'(c) = 2/sqrt(pi) e^(-c^2), for c = k/8, k = 4 .. 48. */
static const double ERF_TABLE[][3] = {
    {0x1.0a7ef5c18edd2p-1, 0x1.5e809f1a31a28p-56, 0x1.c1efca49a5011p-1},
    {0x1.3f196dcd0f135p-1, -0x1.f25f4f6fdf70bp-56, 0x1.86e9694134b9ep-1},
    {0x1.6c1c9759d0e5fp-1, 0x1.b1432f2cbc455p-55, 0x1.492e42d78d2c5p-1},
    {0x1.91724951b8fc6p-1, -0x1.27912dd352f8bp-55, 0x1.0cab61f084b93p-1},
    {0x1.af767a741088bp-1, -0x1.c97f778122797p-56, 0x1.a911f096fbc26p-2},
    {0x1.c6dad2829ec62p-1, -0x1.ab76d4cba3d05p-57, 0x1.45e99bcbb7915p-2},
    {0x1.d8865d98abe01p-1, -0x1.fcec4afb974d9p-55, 0x1.e4652fadcb6b2p-3},
    {0x1.e5768c3b4a3fcp-1, 0x1.8b62674f89890p-57, 0x1.5ce595c455b0ap-3},
    {0x1.eea5557137ae0p-1, -0x1.385e445f2c96dp-55, 0x1.e723726b824a9p-4},
    {0x1.f4f693b67bd77p-1, -0x1.3a1ee1406c356p-56, 0x1.499d478bca735p-4},
    {0x1.f92d077f8d56dp-1, 0x1.8b55ef493fce7p-56, 0x1.b055303221015p-5},
    {0x1.fbe61eef4cf6ap-1, 0x1.15ded88667618p-55, 0x1.12ceb37ff9bc3p-5},
    {0x1.fd9ae142795e3p-1, 0x1.972801904b9a3p-56, 0x1.529b9e8cf9a1ep-6},
    {0x1.fea4218d6594ap-1, -0x1.e3333d8f7d98cp-58, 0x1.94624e78e0fafp-7},
    {0x1.ff404760319b4p-1, 0x1.f142071432025p-56, 0x1.d4143a9dfe965p-8},
    {0x1.ff9960f3eb327p-1, -0x1.08b1ca6e97f80p-56, 0x1.06918b6355624p-8},
    {0x1.ffcaa8f4c9beap-1, 0x1.b0cee160116f9p-55, 0x1.1d83170fbf6fbp-9},
    {0x1.ffe514bbdc197p-1, -0x1.cd963345b5c6dp-58, 0x1.2ce898809244ep-10},
    {0x1.fff2cfb0453d9p-1, 0x1.9a913686042a3p-55, 0x1.3360ccd23db3ap-11},
    {0x1.fff9ba420e834p-1, 0x1.1379ec5aa630ep-56, 0x1.30538fbb77ecdp-12},
    {0x1.fffd1ac4135f9p-1, 0x1.eeafa1ecd6cefp-55, 0x1.2408e9ba3327fp-13},
    {0x1.fffeb3ebb267bp-1, 0x1.e47f697047cbap-57, 0x1.0f9e1b4dd36dfp-14},
    {0x1.ffff6f9f67e55p-1, 0x1.e1e4483ba034bp-55, 0x1.e9b5e8d00ce77p-16},
    {0x1.ffffc316d9ed0p-1, -0x1.8b32f44f46b3bp-55, 0x1.abe09e9144b5ep-17},
    {0x1.ffffe710d565ep-1, 0x1.c9ea52d76dc04p-55, 0x1.6a597219a93dap-18},
    {0x1.fffff618c3da6p-1, -0x1.19309ce23aa3ep-58, 0x1.296a70f414053p-19},
    {0x1.fffffc2f171e3p-1, 0x1.85edd0395f475p-55, 0x1.d9371e2ff7c35p-21},
    {0x1.fffffe92ced93p-1, -0x1.d2db2ecfe14aep-55, 0x1.6ce1aa3fd7bddp-22},
    {0x1.ffffff7b91176p-1, 0x1.0b2865615db40p-56, 0x1.10b1488aeb235p-23},
    {0x1.ffffffd169d0cp-1, 0x1.70a2bfb068e6fp-55, 0x1.8b0cfce0579e0p-25},
    {0x1.fffffff01a8b6p-1, 0x1.23370eca5ca6ap-60, 0x1.155a09065d4f7p-26},
    {0x1.fffffffabd229p-1, -0x1.4dbe49bec3ef2p-57, 0x1.7974e743dea3dp-28},
    {0x1.fffffffe4fa30p-1, 0x1.d166bcb681c7bp-57, 0x1.f1e3523b41d7dp-30},
    {0x1.ffffffff79626p-1, 0x1.5fbc52d650a89p-55, 0x1.3e44e45301b92p-31},
    {0x1.ffffffffd759dp-1, 0x1.f7bee7eb23420p-55, 0x1.8a61745ec7d1dp-33},
    {0x1.fffffffff4188p-1, 0x1.7a2cb3d056eacp-55, 0x1.d9a880f306bd8p-35},
    {0x1.fffffffffc9e8p-1, -0x1.a759f7738935fp-56, 0x1.13af4f04f9998p-36},
    {0x1.ffffffffff11ap-1, -0x1.3eafccbc6e8b7p-56, 0x1.370ab8327af5ep-38},
    {0x1.ffffffffffc05p-1, 0x1.07ba96a6b2e1ap-55, 0x1.5422ef5d8949dp-40},
    {0x1.ffffffffffef8p-1, 0x1.14be6226402c7p-56, 0x1.68823e52970bep-42},
    {0x1.fffffffffffbep-1, -0x1.182b326b228dcp-55, 0x1.7258610b3b233p-44},
    {0x1.ffffffffffff0p-1, -0x1.20ef3618f2d54p-56, 0x1.70beaf9c7ffb6p-46},
    {0x1.ffffffffffffcp-1, 0x1.8115fd1b12786p-56, 0x1.63daf8b4b1e0cp-48},
    {0x1.fffffffffffffp-1, 0x1.0439397b5f70ap-56, 0x1.4cd9c04158cd7p-50},
    {0x1.0000000000000p+0, -0x1.8cf81557d20b6p-56, 0x1.2dc119095729fp-52},
};

/* |x| < 1/2: 2/sqrt(pi) (x - x^3/3 + x^5/10 - ..). Else, c = k/8 the nearest to |x| and h = |x| -
 * c:  erf(c + h) = erf(c) + erf'(c) sum_k a_k h^(k+1) / (k+1), where sum_k a_k h^k = e^(-2 c h -
 * h^2), hence a_0 = 1, a_1 = -2 c, a_(k+1) = -2 (c a_k + a_(k-1)) / (k+1). */
double ggl_erf(double x) {
    static const double coef[] = {-1.0 / 3,       1.0 / 10,         -1.0 / 42,
                                  1.0 / 216,      -1.0 / 1320,      1.0 / 9360,
                                  -1.0 / 75600,   1.0 / 685440,     -1.0 / 6894720,
                                  1.0 / 76204800, -1.0 / 918086400, 1.0 / 11975040000};
    double t = double_abs(x);
    if (x != x)
        return x;
    if (t < 0.5) {
        double z = t * t;
        double p = TWO_OVER_SQRTPI * z * polynomial(coef, sizeof coef / sizeof *coef, z);
        return double_sign_of(fused(t, TWO_OVER_SQRTPI_1 + p, t), x);
    }
    if (t >= 6)
        return double_sign_of(1, x);
    double k = rint(t * 8), c = k / 8, h = t - c;
    const double *row = ERF_TABLE[(int)k - 4];
    double a0 = 0, a = 1, power = h, s = 0;
    for (int i = 1; i <= 14; i++) {
        s += a * power / i;
        double next = -2 * (c * a + a0) / i;
        a0 = a;
        a = next;
        power *= h;
    }
    return double_sign_of(row[0] + (row[1] + row[2] * s), x);
}
