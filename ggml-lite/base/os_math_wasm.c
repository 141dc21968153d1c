/* fmaf() of C for WebAssembly, which has no such instruction. That of wasi-libc would need another rounding mode, which it cannot
 * set, and so rounds twice now and then. This one replaces it in all programs, because the linker takes the first. */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The product is exact as a double. So is the sum, with what is left of it; if there is a rest, the sum is rounded to odd, so that
 * rounding it to a float is the only rounding that counts. */
float fmaf(float a, float b, float c) {
    const double p = (double)a * b, s = p + c, back = s - p;
    const double rest = (p - (s - back)) + (c - back);
    uint64_t bits;
    double odd;
    memcpy(&bits, &s, sizeof bits);
    if (rest != 0 && !(bits & 1) && isfinite(s))
        bits += (rest < 0) == (s < 0) ? 1 : UINT64_MAX;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}
