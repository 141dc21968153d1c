/* Maps floats to integers in the same order. */
#ifndef ORDER_GLSL
#define ORDER_GLSL

#include "functions.glsl"

/* Returns the key of x. -0 equals 0; NaN becomes `nan`, which is below or above all others. */
uint key_of(float x, uint nan) {
    uint u = is_zero(x) ? 0u : floatBitsToUint(x);
    return is_nan(x) ? nan : (u & 0x80000000u) != 0u ? ~u : u | 0x80000000u;
}

float value_of(uint key) {
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

const uint NAN_FIRST = 0xffffffffu, NAN_LAST = 0u;

#endif
