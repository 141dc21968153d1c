/* Products of 32 weights with 32 numbers of a column by their integer codes, four at a time.
 * quantize.comp rounds columns in blocks of 32, each stored as three uvec4:
 *
 *     | codes 0 .. 15 | codes 16 .. 31 | scale, sum of codes 0 .. 15, sum of codes 16 .. 31, 0 |
 *
 * A code is a signed byte. With h = i / 16, weight i is scale[h] * code[i] - minimum[h], so a block
 * adds this to a product, with integer dot products:
 *
 *     x.scale * (sum over h of scale[h] * dot(code, x.code) - minimum[h] * x.sum[h]) */

#include "dot4.glsl"

const uint X_BLOCK = 3; /* uvec4 per block */

float x_scale(uvec4 tail) {
    return uintBitsToFloat(tail.x);
}

vec2 x_sums(uvec4 tail) {
    return vec2(int(tail.y), int(tail.z));
}

/* Unpacks run r of a row to signed codes. An offset that remains goes into `minimum`. */
void unpack_signed(uint row, uint r) {
    unpack_run(row, r);
    if (offset == 128)
        for (uint i = 0; i < 8; i++)
            code[i] ^= 0x80808080;
    else
        minimum += scale * offset;
}
