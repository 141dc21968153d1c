/* Functions of floats in plain arithmetic, because a driver's own may be wrong by thousands of
 * units in the last place. Methods and coefficients are those of docs/numeric-functions.md.
 * Devices may or may not fuse multiply and add, so the last bit may differ. NaN is detected by
 * its bits, because drivers may assume that it does not occur. */
#ifndef FUNCTIONS_GLSL
#define FUNCTIONS_GLSL

#define INFINITY uintBitsToFloat(0x7f800000u)
#define NAN uintBitsToFloat(0x7fc00000u)

bool is_nan(float x) {
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

/* True for -0, too. */
bool is_negative(float x) {
    return (floatBitsToUint(x) & 0x80000000u) != 0u;
}

bool is_zero(float x) {
    return (floatBitsToUint(x) & 0x7fffffffu) == 0u;
}

/* Returns y with the sign of x; y must not be negative. */
float sign_of(float y, float x) {
    return uintBitsToFloat(floatBitsToUint(y) | (floatBitsToUint(x) & 0x80000000u));
}

/* Return NaN if an operand is NaN. */
float max_of(float a, float b) {
    return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b;
}

float min_of(float a, float b) {
    return is_nan(a) ? a : is_nan(b) ? b : a < b ? a : b;
}

#ifdef HALF
/* Subnormal f16 are kept (DenormPreserve, for 16 bits). */
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464], 4459, 16);
#endif

/* Convert an f16 or bf16 in the low 16 bits to a float; exact, including subnormal numbers. If
 * the constant CONVERTS_HALF is declared and true, the device's own conversion is exact. */
float half_to_float(uint h) {
#ifdef CONVERTS_HALF
    if (CONVERTS_HALF)
        return unpackHalf2x16(h).x;
#endif
    uint sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint large = (rest << 13) + (rest >= 0x7c00u ? 0x70000000u : 0x38000000u);
    uint small = floatBitsToUint(float(rest) * 5.9604644775390625e-08);
    return uintBitsToFloat(sign | (rest < 0x400u ? small : large));
}

/* Converts the two f16 of a word. HALF: the device does it exactly, so one instruction does. */
vec2 halves_to_floats(uint w) {
#ifdef HALF
    return unpackHalf2x16(w);
#else
    return vec2(half_to_float(w & 0xffffu), half_to_float(w >> 16));
#endif
}

float bfloat_to_float(uint h) {
    return uintBitsToFloat(h << 16);
}

/* Returns a / b; some devices make 0 of a subnormal quotient. Those whose reciprocal of a huge b is 0, as it would be subnormal,
 * get a smaller one. */
float divided(float a, float b) {
    float by = abs(b) > 1e37 ? 1.52587890625e-05 : 1.0; /* 2^-16 */
    return a * by / (b * by);
}

/* Returns |a / b| below 2^-125, to nearest even, of finite numbers that are not 0. It is made of integers, because some devices make
 * 0 of a subnormal quotient, and others round what they make of it twice. */
float divided_small(float a, float b) {
    uint u = floatBitsToUint(a) & 0x7fffffffu, v = floatBitsToUint(b) & 0x7fffffffu;
    uint by = v & 0x7fffffu | 0x800000u; /* b is not subnormal, as |a| is at least 2^-149 */
    int left = u < 0x800000u ? 23 - findMSB(u) : 0;
    uint rest = u < 0x800000u ? u << left : u & 0x7fffffu | 0x800000u;
    int shift = max(int(u >> 23), 1) - left - int(v >> 23) + 149; /* the quotient is rest / by, times 2^shift, in units of 2^-149 */
    if (shift < -1)
        return 0.0;
    by <<= shift < 0 ? 1 : 0;
    uint q = rest / by;
    rest -= q * by;
    for (int i = 0; i < min(shift, 24); i++) {
        rest <<= 1;
        q = q << 1 | (rest >= by ? 1u : 0u);
        rest -= rest >= by ? by : 0u;
    }
    rest <<= 1;
    return uintBitsToFloat(q + (rest > by || rest == by && (q & 1u) != 0u ? 1u : 0u));
}

/* Returns a / b. */
float divided_fully(float a, float b) {
    precise float q = divided(a, b);
    bool small = abs(q) < 1.76324153e-38 && !is_zero(a) && abs(b) < INFINITY; /* 1.5 2^-126 */
    uint sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u;
    return small ? uintBitsToFloat(floatBitsToUint(divided_small(a, b)) | sign) : q;
}

float sqrt_of(float x) {
    return is_nan(x) || is_zero(x) || x == INFINITY ? x : x < 0.0 ? NAN : sqrt(x);
}

/* Returns e^(x + low), where low is small compared to x: 2^n e^r with n = x / ln 2, rounded, and
 * r = x - n ln 2. */
float exp_pair(float x, float low) {
    precise float z = x * 1.44269502 + 12582912.0; /* n is in the low bits of the mantissa */
    precise float n = z - 12582912.0;
    precise float r = x - n * 0.693145752;
    r = r - n * 1.42860677e-06;
    r = r + low;
    float p = 0.00139263261;
    p = p * r + 0.00836329255;
    p = p * r + 0.0416665524;
    p = p * r + 0.166665763;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    float y = uintBitsToFloat(floatBitsToUint(p) + (floatBitsToUint(z) << 23));
    y = x < -87.3365402 ? 0.0 : y;
    y = x > 88.7228317 ? INFINITY : y;
    return is_nan(x) ? x : y;
}

float exp_of(float x) {
    return exp_pair(x, 0.0);
}

/* True if x is subnormal or zero. Devices may take such numbers for zero. */
bool is_tiny(float x) {
    return (floatBitsToUint(x) & 0x7fffffffu) < 0x00800000u;
}

/* Returns x; for a subnormal one that is positive, x 2^149. */
float normal_of(float x) {
    return is_tiny(x) ? float(floatBitsToUint(x)) : x;
}

/* ln x = e ln 2 + ln(1 + r), where x = 2^e (1 + r) and 1 + r is in [2/3, 4/3). */
float log_of(float x) {
    uint u = floatBitsToUint(normal_of(x)) - 0x3f2aaaabu;
    float e = float(int(u) >> 23) - (is_tiny(x) ? 149.0 : 0.0);
    float r = uintBitsToFloat((u & 0x007fffffu) + 0x3f2aaaabu) - 1.0;
    float s = r * r;
    float p = 0.120069936;
    p = p * r - 0.128450677;
    p = p * r + 0.107542761;
    p = p * r - 0.121957779;
    p = p * r + 0.143044531;
    p = p * r - 0.166795775;
    p = p * r + 0.19999598;
    p = p * r - 0.249998197;
    p = p * r + 0.333333343;
    precise float t = p * r * s + e * 1.42860677e-06;
    t = t - s * 0.5;
    precise float y = e * 0.693145752 + (r + t);
    y = x == INFINITY ? x : y;
    y = is_zero(x) ? -INFINITY : y;
    y = is_negative(x) && !is_zero(x) ? NAN : y;
    return is_nan(x) ? x : y;
}

/* |x| < 0.625: x + x^3 P(x^2);  else 1 - 2 / (e^2x + 1). */
float tanh_of(float x) {
    float t = abs(x), z = t * t;
    float p = -0.0056373328;
    p = p * z + 0.0205797963;
    p = p * z - 0.053722024;
    p = p * z + 0.133312374;
    p = p * z - 0.333332747;
    float small = t * z * p + t;
    float large = 1.0 - 2.0 / (exp_of(t + t) + 1.0);
    float y = t < 0.625 ? small : t > 20.0 ? 1.0 : large;
    return is_nan(x) ? x : sign_of(y, x);
}

/* |x| < 0.90625: x + x P(x^2);  else 1 - e^q(x), where q approximates ln erfc. */
float erf_of(float x) {
    float t = abs(x), z = t * t;
    float p = 7.99505142e-05;
    p = p * z - 0.000804951473;
    p = p * z + 0.00519239251;
    p = p * z - 0.0268557295;
    p = p * z + 0.112836257;
    p = p * z - 0.376126289;
    p = p * z + 0.128379166;
    float small = t * p + t;
    float c = t > 4.0 ? 4.0 : t; /* erfc(4) < 2^-25, so the result is 1 from 4 on */
    float q = -2.08323472e-05;
    q = q * c + 0.000431431283;
    q = q * c - 0.0041564093;
    q = q * c + 0.0250809435;
    q = q * c - 0.108220764;
    q = q * c - 0.633400619;
    q = q * c - 1.12948847;
    q = q * c + 0.000169207924;
    float large = 1.0 - exp_of(q);
    float y = t < 0.90625 ? small : large;
    return is_nan(x) ? x : sign_of(y, x);
}

float sigmoid_of(float x) {
    float e = exp_of(-x);
    return is_nan(x) ? x : e == INFINITY ? 0.0 : 1.0 / (1.0 + e);
}

/* --- pairs of floats whose sum is the value --------------------------------------------------- */

/* Returns a * b with its rounding error in `low`; exact unless something overflows. */
float times(float a, float b, out float low) {
    precise float p = a * b;
    precise float ta = a * 4097.0, tb = b * 4097.0;
    precise float ah = ta - (ta - a), bh = tb - (tb - b);
    precise float al = a - ah, bl = b - bh;
    precise float l = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    low = l;
    return p;
}

/* Returns a + b with its rounding error in `low`. */
float plus(float a, float b, out float low) {
    precise float s = a + b;
    precise float t = s - a;
    precise float l = (a - (s - t)) + (b - t);
    low = l;
    return s;
}

/* Returns ln x as a pair, for finite x > 0: with s = (m - 1) / (m + 1), e ln 2 + 2 (s + s^3/3 +
 * s^5/5 + ..). */
float log_pair(float x, out float low) {
    uint u = floatBitsToUint(normal_of(x)) - 0x3f3504f3u; /* the square root of 1/2 */
    float e = float(int(u) >> 23) - (is_tiny(x) ? 149.0 : 0.0);
    float m = uintBitsToFloat((u & 0x007fffffu) + 0x3f3504f3u);
    float d_low, p_low, sum_low;
    float f = m - 1.0, d = plus(m, 1.0, d_low);
    float s = f / d;
    precise float rest = f - times(s, d, p_low);
    rest = (rest - p_low) - s * d_low;
    float z = s * s;
    float series = s * z * (0.666666667 + z * (0.4 + z * (0.285714286 + z * (0.222222222 + z * 0.181818182))));
    float high = plus(e * 0.693145752, 2.0 * s, sum_low);
    precise float l = sum_low + (e * 1.42860677e-06 + (2.0 * (rest / d) + series));
    low = l;
    return high;
}

/* a^b, with C's results for zero, infinite, negative and NaN operands. */
float pow_of(float a, float b) {
    bool whole = abs(b) >= 8388608.0 || floor(b) == b;
    bool odd = abs(b) < 16777216.0 && whole && (int(b) & 1) != 0;
    float t = abs(a);
    if (is_zero(b) || a == 1.0)
        return 1.0;
    if (is_nan(a) || is_nan(b))
        return NAN;
    float y;
    if (abs(b) == INFINITY)
        return t == 1.0 ? 1.0 : (t > 1.0) == (b > 0.0) ? INFINITY : 0.0;
    if (is_zero(a) || t == INFINITY) {
        y = is_zero(a) == (b > 0.0) ? 0.0 : INFINITY;
    } else {
        if (is_negative(a) && !whole)
            return NAN;
        float c = clamp(b, -1e30, 1e30), l_low, p_low;
        float l = log_pair(t, l_low);
        float p = times(c, l, p_low);
        y = abs(p) > 200.0 ? (p > 0.0 ? INFINITY : 0.0) : exp_pair(p, p_low + c * l_low);
    }
    return odd && is_negative(a) ? -y : y;
}

/* a - b floor(a / b) */
float mod_of(float a, float b) {
    float q = floor(divided(a, b));
    if (is_nan(q) || abs(q) > 8388608.0 || abs(b) > 1e30 || is_zero(b))
        return a - b * q;
    float low;
    precise float r = a - times(b, q, low);
    r = r - low;
    if (!is_zero(r) && (r < 0.0) != (b < 0.0)) /* the quotient was rounded past an integer */
        r = r + b;
    else if (abs(r) >= abs(b))
        r = r - b;
    return r;
}

/* --- angles ----------------------------------------------------------------------------------- */

/* The bits of 2 / pi after the binary point, preceded by a zero word. */
const uint TWO_OVER_PI[8] = uint[8](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                                    0xfe5163abu);

/* Returns 32 bits, from bit `at` on. */
uint bits_at(uint at) {
    uint word = at >> 5, shift = at & 31u, next = word + 1u < 8u ? TWO_OVER_PI[word + 1u] : 0u;
    return shift == 0u ? TWO_OVER_PI[word] : TWO_OVER_PI[word] << shift | next >> (32u - shift);
}

/* Returns x - quarter pi / 2 for x >= 512. Of x 2/pi it computes only the part below 4, with 62
 * bits. */
float reduce_large(float x, out uint quarter) {
    uint e = floatBitsToUint(x) >> 23, m = (floatBitsToUint(x) & 0x007fffffu) | 0x00800000u;
    uint at = e - 120u; /* x = m 2^(e - 150); the first bit used has weight 2 */
    uint h0, l0, h1, l1, h2, l2, carry;
    umulExtended(m, bits_at(at), h0, l0);
    umulExtended(m, bits_at(at + 32u), h1, l1);
    umulExtended(m, bits_at(at + 64u), h2, l2);
    uint low = uaddCarry(l1, h2, carry), high = l0 + h1 + carry;
    uint fraction = high << 2 | low >> 30;
    quarter = (high >> 30) + (fraction >> 31); /* rounded to nearest */
    return (float(int(fraction)) * 2.32830644e-10 + float(low << 2) * 5.42101086e-20) * 1.57079637;
}

/* Returns x - quarter pi / 2 for x >= 0. */
float reduce(float x, out uint quarter) {
    if (x >= 512.0)
        return reduce_large(x, quarter);
    float k = floor(x * 0.636619747 + 0.5);
    precise float r = x - k * 1.57055664; /* both products are exact */
    r = r - k * 0.000239670277;
    r = r - k * 1.58932547e-08;
    quarter = uint(k);
    return r;
}

/* sin(x + quarter pi / 2) */
float sine(float x, uint quarter) {
    uint q;
    if (is_nan(x) || abs(x) == INFINITY)
        return NAN;
    float r = reduce(abs(x), q), z = r * r;
    q = (is_negative(x) ? 0u - q : q) + quarter;
    r = is_negative(x) ? -r : r;
    float s = r + r * z * (-0.166666667 + z * (0.00833333333 + z * (-0.000198412698 + z * 2.75573192e-06)));
    float c = 1.0 + z * (-0.5 + z * (0.0416666667 + z * (-0.00138888889 + z * (2.48015873e-05 - z * 2.75573192e-07))));
    float y = (q & 1u) != 0u ? c : s;
    return (q & 2u) != 0u ? -y : y;
}

float sin_of(float x) {
    return sine(x, 0u);
}

float cos_of(float x) {
    return sine(x, 1u);
}

#endif
