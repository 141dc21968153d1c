/* Formats of weights and of cached rows. Blocks are made from random bytes rather than encoded:
 * every code and every scale may stand in a file. */
#include "weights.h"

#include <math.h>
#include <string.h>

#include "program.h"

const w_info w_types[W_COUNT] = {
    [W_F32] = {"f32", 1, 4, false},         [W_F16] = {"f16", 1, 2, false},
    [W_BF16] = {"bf16", 1, 2, false},       [W_Q8_0] = {"q8_0", 32, 34, false},
    [W_Q4_0] = {"q4_0", 32, 18, false},     [W_Q4_1] = {"q4_1", 32, 20, true},
    [W_Q5_0] = {"q5_0", 32, 22, false},     [W_Q5_1] = {"q5_1", 32, 24, true},
    [W_IQ4_NL] = {"iq4_nl", 32, 18, false}, [W_MXFP4] = {"mxfp4", 32, 17, false},
    [W_Q4_K] = {"q4_k", 256, 144, true},    [W_Q6_K] = {"q6_k", 256, 210, false},
    [W_TQ2_0] = {"tq2_0", 256, 66, false},
};

/* --- numbers ---------------------------------------------------------------------------------- */

/* x rounded to a multiple of 2^step, ties to even. */
static double to_step(double x, int step) {
    return ldexp(rint(ldexp(x, -step)), step);
}

/* To `bits` of significand, the smallest normal number being 2^least; too large ones become
 * infinite. */
static double to_bits(double x, int bits, int least, double most) {
    int e;
    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &e);
    double y = to_step(x, (e - 1 < least ? least : e - 1) - bits + 1);
    return fabs(y) > most ? copysign(INFINITY, x) : y;
}

double w_round_f16(double x) {
    return to_bits(x, 11, -14, 65504);
}
double w_round_bf16(double x) {
    return to_bits(x, 8, -126, 0x1.fep127);
}
double w_round_f32(double x) {
    return to_bits(x, 24, -126, 0x1.fffffep127);
}

uint16_t w_to_f16(double x) {
    double y = w_round_f16(fabs(x));
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int e;
    if (isnan(x))
        return 0x7e00;
    if (isinf(y))
        return sign | 0x7c00;
    if (y < 0x1p-14) /* zero and subnormal numbers: multiples of 2^-24 */
        return sign | (uint16_t)ldexp(y, 24);
    double m = frexp(y, &e); /* m in [0.5, 1) */
    return (uint16_t)(sign | (e + 14) << 10 | (int)(ldexp(m, 11) - 1024));
}

double w_from_f16(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    double y = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -y : y;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static uint16_t put_f16(uint8_t *at, double x) {
    uint16_t h = w_to_f16(x);
    at[0] = (uint8_t)h;
    at[1] = (uint8_t)(h >> 8);
    return h;
}

/* A scale between a half and the whole of `most`, of either sign where the format has signed
 * ones. */
static double put_scale(uint8_t *at, uint64_t salt, double most) {
    double x = most * (0.5 + 0.5 * (double)(salt >> 40) / (double)(1 << 24));
    return w_from_f16(put_f16(at, x));
}

static int nibble(const uint8_t *b, int i) {
    return i < 16 ? b[i] & 15 : b[i - 16] >> 4;
}

static int fifth_bit(const uint8_t *h, int i) {
    return h[i / 8] >> i % 8 & 1;
}

/* Blocks of 32 that begin with a scale, some with a minimum after it. */
static void make_simple(int type, uint64_t salt, double spread, uint8_t *b, double *value) {
    static const int table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
    static const double most[W_COUNT] = {
        [W_Q8_0] = 128, [W_Q4_0] = 8, [W_Q4_1] = 8, [W_Q5_0] = 16, [W_Q5_1] = 16, [W_IQ4_NL] = 127};
    double d = put_scale(b, salt, spread / most[type]);
    double m = w_types[type].has_min ? w_from_f16(put_f16(b + 2, -d * most[type])) : 0;
    const uint8_t *q = b + (w_types[type].has_min ? 4 : 2);
    for (int i = 0; i < 32; i++)
        switch (type) {
        case W_Q8_0:
            value[i] = d * (q[i] < 128 ? q[i] : q[i] - 256);
            break;
        case W_Q4_0:
            value[i] = d * (nibble(q, i) - 8);
            break;
        case W_Q4_1:
            value[i] = d * nibble(q, i) + m;
            break;
        case W_Q5_0:
            value[i] = d * (nibble(q + 4, i) + 16 * fifth_bit(q, i) - 16);
            break;
        case W_Q5_1:
            value[i] = d * (nibble(q + 4, i) + 16 * fifth_bit(q, i)) + m;
            break;
        default:
            value[i] = d * table[nibble(q, i)];
        }
}

static void make_mxfp4(uint64_t salt, double spread, uint8_t *b, double *value) {
    static const double table[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int e = (int)floor(log2(spread / 6)) + (int)(salt >> 63);
    b[0] = (uint8_t)(e + 127);
    for (int i = 0; i < 32; i++) {
        int code = nibble(b + 1, i);
        value[i] = ldexp(code & 8 ? -table[code & 7] : table[code & 7], e);
    }
}

/* d scale code - dmin min for each 32 of 256; scales and minima have six bits. */
static void make_q4_k(uint64_t salt, double spread, uint8_t *b, double *value) {
    double d = put_scale(b, salt, spread / (7.5 * 63)), dmin = put_scale(b + 2, salt, spread / 63);
    const uint8_t *sm = b + 4, *code = b + 16;
    for (int i = 0; i < 256; i++) {
        int r = i / 32, scale, min;
        if (r < 4) {
            scale = sm[r] & 63;
            min = sm[r + 4] & 63;
        } else {
            scale = (sm[r - 4] >> 6) << 4 | (sm[r + 4] & 15);
            min = (sm[r] >> 6) << 4 | sm[r + 4] >> 4;
        }
        uint8_t c = code[32 * (r / 2) + i % 32];
        value[i] = d * scale * (r % 2 ? c >> 4 : c & 15) - dmin * min;
    }
}

/* d scale (code - 32), signed 8-bit scales for each 16 of 256. */
static void make_q6_k(uint64_t salt, double spread, uint8_t *b, double *value) {
    double d = put_scale(b + 208, salt, spread / (32 * 128));
    for (int i = 0; i < 256; i++) {
        int k = i / 32, j = i % 32, low = b[64 * (k / 4) + 32 * (k % 2) + j];
        int code =
            (k % 4 < 2 ? low & 15 : low >> 4) | (b[128 + 32 * (k / 4) + j] >> 2 * (k % 4) & 3) << 4;
        int scale = b[192 + i / 16];
        value[i] = d * (scale < 128 ? scale : scale - 256) * (code - 32);
    }
}

static void make_tq2_0(uint64_t salt, double spread, uint8_t *b, double *value) {
    double d = put_scale(b + 64, salt, spread);
    for (int i = 0; i < 256; i++) {
        int k = i / 32;
        value[i] = d * ((b[32 * (k / 4) + i % 32] >> 2 * (k % 4) & 3) - 1);
    }
}

static void make_block(int type, uint64_t salt, double spread, uint8_t *b, double *value) {
    for (int i = 0; i < w_types[type].size; i++)
        b[i] = (uint8_t)(r_mix(salt, (uint64_t)i) >> 32);
    switch (type) {
    case W_MXFP4:
        make_mxfp4(salt, spread, b, value);
        return;
    case W_Q4_K:
        make_q4_k(salt, spread, b, value);
        return;
    case W_Q6_K:
        make_q6_k(salt, spread, b, value);
        return;
    case W_TQ2_0:
        make_tq2_0(salt, spread, b, value);
        return;
    default:
        make_simple(type, salt, spread, b, value);
    }
}

static void make_plain(int type, uint64_t salt, double spread, void *to, double *value) {
    double x = spread * ((double)(salt >> 11) * 0x1p-52 - 1);
    float f;
    uint16_t h;
    switch (type) {
    case W_F16:
        h = w_to_f16(x);
        *value = w_from_f16(h);
        memcpy(to, &h, sizeof h);
        return;
    case W_BF16: {
        uint32_t bits;
        f = (float)(*value = w_round_bf16(x));
        memcpy(&bits, &f, sizeof bits);
        h = (uint16_t)(bits >> 16);
        memcpy(to, &h, sizeof h);
        return;
    }
    default:
        f = (float)x;
        *value = (double)f;
        memcpy(to, &f, sizeof f);
    }
}

void w_make(int type, uint64_t salt, double spread, int n, void *bytes, double *value) {
    uint8_t *to = bytes;
    const w_info *t = &w_types[type];
    for (int i = 0; i < n; i += t->block, to += t->size) {
        uint64_t s = r_mix(salt, (uint64_t)i);
        if (t->block > 1)
            make_block(type, s, spread, to, value + i);
        else
            make_plain(type, s, spread, to, value + i);
    }
}

/* --- cached rows ------------------------------------------------------------------------------ */

/* Rounding that never changes the order of two numbers: what it makes of x - e .. x + e. */
static void keep_rounded(double (*round)(double), double *x, double *e) {
    double low = round(*x - *e), high = round(*x + *e);
    *x = round(*x);
    *e = fmax(high - *x, *x - low);
}

/* A block of 32 whose scale is its largest element over -8 or 127. The scale is kept as f16, the
 * codes are found with the f32. Elements and scale may be a little off: so may a code be one off,
 * or the scale a step. */
static void keep_block(int type, double *x, double *e) {
    double most = 0, of = 0, off = 0;
    for (int i = 0; i < 32; i++) {
        if (fabs(x[i]) > most)
            most = fabs(of = x[i]);
        off = fmax(off, e[i]);
    }
    double d = type == W_Q8_0 ? most / 127 : of / -8,
           d_off = off / (type == W_Q8_0 ? 127 : 8) + fabs(d) * 0x1p-22;
    double kept = d, kept_off = d_off;
    keep_rounded(w_round_f16, &kept, &kept_off);
    bool sign_unknown = false; /* two elements of opposite signs may both be the largest */
    for (int i = 0; i < 32 && type == W_Q4_0; i++)
        sign_unknown |= x[i] * of < 0 && fabs(x[i]) + e[i] + off >= most;
    double least = fabs(d) - d_off; /* the scale is no less */
    for (int i = 0; i < 32; i++) {
        if (!(least > 0)) { /* all may be zero, or all are */
            e[i] = 2 * (most + off);
            continue;
        }
        double t = x[i] / d;
        /* 2^-20: a half is added in f32, to numbers up to 16 */
        double t_off = (e[i] + fabs(t) * d_off) / least + fabs(t) * 0x1p-21 + 0x1p-20;
        const double at[3] = {t, t - t_off, t + t_off};
        double code[3];
        for (int k = 0; k < 3; k++)
            code[k] = type == W_Q8_0 ? fmin(127, fmax(-127, round(at[k])))
                                     : fmin(7, fmax(-8, floor(at[k] + 0.5)));
        x[i] = kept * code[0];
        double step = fmax(code[2] - code[0], code[0] - code[1]);
        e[i] = sign_unknown ? 2 * most : step * (fabs(kept) + kept_off) + fabs(code[0]) * kept_off;
    }
}

void w_keep(int type, int n, double *value, double *error) {
    if (w_is_quantized(type)) {
        for (int i = 0; i < n; i += 32)
            keep_block(type, value + i, error + i);
        return;
    }
    for (int i = 0; i < n; i++)
        keep_rounded(type == W_F16    ? w_round_f16
                     : type == W_BF16 ? w_round_bf16
                                      : w_round_f32,
                     &value[i], &error[i]);
}
