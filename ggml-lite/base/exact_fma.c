/* fma and fmaf by integers, for systems whose C library rounds twice: a product is exact in twice the digits, the addend is shifted
 * to it, what falls off at the end leaves a bit (it is "sticky"), and the sum is rounded once. */
#include "fused.h"
#include "number_bits.h"

/* --- float ------------------------------------------------------------------------------------ */

/* Returns the place of the highest bit of u, which is not 0. */
static int highest(uint64_t u) {
    return u >> 32 ? 63 - __builtin_clz((uint32_t)(u >> 32)) : 31 - __builtin_clz((uint32_t)u);
}

static uint64_t shift_sticky(uint64_t u, int n) {
    return n <= 0 ? u : n > 63 ? u != 0 : u >> n | ((u << (64 - n)) != 0);
}

/* Splits a finite number that is not 0 into m 2^e, where m has its highest bit at 23. */
static uint32_t split_float(uint32_t u, int *e) {
    const int field = (int)(u >> 23 & 0xff);
    uint32_t m = u & 0x7fffff;
    *e = field - 150;
    if (field > 0)
        return m | 0x800000;
    const int up = 23 - highest(m);
    *e = -149 - up;
    return m << up;
}

/* u 2^e, rounded to nearest even; u is not 0 and has its highest bit at 62 or below. */
static float round_float(uint32_t sign, uint64_t u, int e) {
    enum { DROP = 39 }; /* bits, of 63, that a float does not have */
    const int up = 62 - highest(u), top = e - up + 62;
    u <<= up;
    if (top > 127)
        return float_of(sign | 0x7f800000);
    if (top < -126)
        u = shift_sticky(u, -126 - top);
    const uint64_t half = (uint64_t)1 << (DROP - 1), rest = u & (2 * half - 1);
    uint32_t q = (uint32_t)(u >> DROP);
    q += rest > half || (rest == half && (q & 1));
    /* q has its highest bit at 23 unless it is subnormal; a carry runs into the exponent, as it should */
    return float_of(sign | ((top < -126 ? 0 : (uint32_t)(top + 126) << 23) + q));
}

float ggl_exact_fmaf(float a, float b, float c) {
    const uint32_t u = float_bits(a), v = float_bits(b), w = float_bits(c), inf = 0x7f800000,
                   magnitude = 0x7fffffff;
    if ((u & magnitude) >= inf || (v & magnitude) >= inf)
        return a * b + c;
    if ((w & magnitude) >= inf)
        return c + c; /* the product is finite, even if it is not a float */
    if ((u & magnitude) == 0 || (v & magnitude) == 0)
        return a * b + c;
    if ((w & magnitude) == 0)
        return a * b;
    int ea, eb, ec;
    const uint32_t ma = split_float(u, &ea), mb = split_float(v, &eb), mc = split_float(w, &ec);
    const uint32_t sign = (u ^ v) & 0x80000000, sign_c = w & 0x80000000;
    /* the highest bits of both at 60 or 61, so that their sum has room */
    uint64_t p = (uint64_t)ma * mb << 14, q = (uint64_t)mc << 38;
    const int ep = ea + eb - 14, eq = ec - 38, e = ep > eq ? ep : eq;
    if (ep >= eq)
        q = shift_sticky(q, ep - eq);
    else
        p = shift_sticky(p, eq - ep);
    if (sign == sign_c)
        return round_float(sign, p + q, e);
    if (p == q)
        return 0.0f;
    return p > q ? round_float(sign, p - q, e) : round_float(sign_c, q - p, e);
}

/* --- double ----------------------------------------------------------------------------------- */

typedef struct wide {
    uint64_t h, l;
} wide;

static wide wide_product(uint64_t a, uint64_t b) {
    const uint64_t mask = 0xffffffff, al = a & mask, ah = a >> 32, bl = b & mask, bh = b >> 32;
    const uint64_t low = al * bl, m1 = ah * bl + (low >> 32), m2 = al * bh + (m1 & mask);
    return (wide){ah * bh + (m1 >> 32) + (m2 >> 32), m2 << 32 | (low & mask)};
}

static int wide_highest(wide u) {
    return u.h ? 64 + highest(u.h) : highest(u.l);
}

static wide wide_up(wide u, int n) {
    return n == 0   ? u
           : n > 63 ? (wide){u.l << (n - 64), 0}
                    : (wide){u.h << n | u.l >> (64 - n), u.l << n};
}

static wide wide_down_sticky(wide u, int n) {
    if (n == 0)
        return u;
    if (n > 127)
        return (wide){0, (u.h | u.l) != 0};
    if (n > 63) {
        const uint64_t lost = n == 64 ? u.l : (u.h << (128 - n)) | u.l;
        return (wide){0, (n == 64 ? u.h : u.h >> (n - 64)) | (lost != 0)};
    }
    return (wide){u.h >> n, u.h << (64 - n) | u.l >> n | ((u.l << (64 - n)) != 0)};
}

static wide wide_add(wide a, wide b) {
    const uint64_t l = a.l + b.l;
    return (wide){a.h + b.h + (l < a.l), l};
}

static wide wide_subtract(wide a, wide b) {
    return (wide){a.h - b.h - (a.l < b.l), a.l - b.l};
}

static uint64_t split_double(uint64_t u, int *e) {
    const int field = (int)(u >> 52 & 0x7ff);
    *e = (field ? field : 1) - 1075;
    return (u & 0xfffffffffffff) | (field ? 1ull << 52 : 0);
}

static double round_double(uint64_t sign, wide u, int e) {
    const int up = 127 - wide_highest(u);
    u = wide_up(u, up); /* with its highest bit at 127 */
    const int top = e - up + 127, drop = top < -1022 ? 75 + (-1022 - top) : 75;
    if (top > 1023)
        return double_of(sign | 0x7ffull << 52);
    /* two more bits than the result has, of which the last one is sticky */
    const wide w = wide_down_sticky(u, drop > 130 ? 130 : drop - 2);
    const uint64_t q = (w.l >> 2) + ((w.l & 3) == 3 || (w.l & 7) == 6);
    return double_of(sign | ((top < -1022 ? 0 : (uint64_t)(top + 1022) << 52) + q));
}

double ggl_exact_fma(double a, double b, double c) {
    const uint64_t u = double_bits(a), v = double_bits(b), w = double_bits(c), inf = 0x7ffull << 52,
                   magnitude = ~(1ull << 63);
    if ((u & magnitude) >= inf || (v & magnitude) >= inf)
        return a * b + c;
    if ((w & magnitude) >= inf)
        return c + c;
    if ((u & magnitude) == 0 || (v & magnitude) == 0)
        return a * b + c;
    if ((w & magnitude) == 0)
        return a * b;
    int ea, eb, ec;
    const uint64_t ma = split_double(u, &ea), mb = split_double(v, &eb), mc = split_double(w, &ec);
    const uint64_t sign = (u ^ v) & ~magnitude, sign_c = w & ~magnitude;
    wide p = wide_product(ma, mb), q = {0, mc};
    const int up = 125 - wide_highest(p), up_c = 125 - wide_highest(q), ep = ea + eb - up,
              eq = ec - up_c, e = ep > eq ? ep : eq;
    p = wide_down_sticky(wide_up(p, up), e - ep);
    q = wide_down_sticky(wide_up(q, up_c), e - eq);
    if (sign == sign_c)
        return round_double(sign, wide_add(p, q), e);
    if (p.h == q.h && p.l == q.l)
        return 0.0;
    return p.h > q.h || (p.h == q.h && p.l > q.l) ? round_double(sign, wide_subtract(p, q), e)
                                                  : round_double(sign_c, wide_subtract(q, p), e);
}
