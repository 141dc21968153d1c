/* Rounds numbers to signed bytes in blocks of 32, as docs/numeric.md defines for products with
 * quantized weights. codes.glsl describes a rounded block. The including file declares blocks[]. */

#include "rounding.glsl"

const uint BLOCK = 32;

/* Returns number i of those to round; the including file defines it. */
float number(uint i);

/* Returns four codes as a word, and adds them to the sum. */
uint codes_of_four(vec4 v, float inverse, inout int sum) {
    uint word = 0;
    for (uint i = 0; i < 4; i++) {
        int q = int(roundEven(v[i] * inverse));
        sum += q;
        word |= (q & 0xff) << 8 * i;
    }
    return word;
}

uint largest_bits(uint from) {
    uint most = 0;
    for (uint i = 0; i < BLOCK; i++)
        most = max(most, floatBitsToUint(number(from + i)) & 0x7fffffff);
    return most;
}

/* Rounds 32 numbers from `from` on to the block at blocks[to]. */
void round_block(uint from, uint to) {
    uvec4 word[2] = uvec4[](uvec4(0), uvec4(0));
    int sum[2] = int[](0, 0);
    uint most = largest_bits(from);
    if (is_rounded(most)) {
        float inverse = block_inverse(most);
        for (uint i = 0; i < 8; i++) {
            uint at = from + 4 * i;
            word[i / 4][i % 4] = codes_of_four(vec4(number(at), number(at + 1), number(at + 2), number(at + 3)), inverse, sum[i / 4]);
        }
    }
    blocks[to] = word[0];
    blocks[to + 1] = word[1];
    blocks[to + 2] = uvec4(floatBitsToUint(block_scale(most)), sum[0], sum[1], 0);
}
