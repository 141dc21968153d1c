/* What numbers are rounded by. */
#ifndef ROUNDING_GLSL
#define ROUNDING_GLSL

#include "functions.glsl"

bool is_ordinary(float x) {
    return abs(x) < 1e30 && abs(x) > 1e-30;
}

/* Returns a / b, rounded to nearest nearly always if all three are of ordinary size. A device's own division may be wrong in the last
 * place, and a code that is made with it would then be another one now and then. */
float quotient(float a, float b) {
    float q = divided(a, b), low;
    if (!(is_ordinary(a) && is_ordinary(b) && is_ordinary(q)))
        return q;
    precise float rest = a - times(q, b, low);
    precise float y = q + (rest - low) / b;
    return y;
}

/* A block of numbers whose largest magnitude has the bits `most` is rounded to signed bytes, as docs/numeric.md defines for
 * products with quantized weights. */

const uint NOT_FINITE = 0x7f800000u, SMALL = 27u << 23; /* bits of infinity and of 2^-100 */

/* True if it has codes other than 0. */
bool is_rounded(uint most) {
    return most >= SMALL && most < NOT_FINITE;
}

/* Returns the scale of the codes. */
float block_scale(uint most) {
    return most >= NOT_FINITE ? NAN : most >= SMALL ? quotient(uintBitsToFloat(most), 127.0) : 0.0;
}

/* Returns what numbers are multiplied by. */
float block_inverse(uint most) {
    return quotient(127.0, uintBitsToFloat(most));
}

#endif
