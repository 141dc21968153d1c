/* Rounds numbers to signed bytes in blocks of 32, as docs/numeric.md defines for products with
 * quantized weights. codes.glsl describes a rounded block. The including file declares blocks[]. */

const uint BLOCK = 32;
const uint NOT_FINITE = 0x7f800000, SMALL = 27 << 23; /* bits of infinity and of 2^-100 */

/* Returns number i of those to round; the including file defines it. */
float number(uint i);

uint largest_bits(uint from) {
    uint most = 0;
    for (uint i = 0; i < BLOCK; i++)
        most = max(most, floatBitsToUint(number(from + i)) & 0x7fffffff);
    return most;
}

/* Returns four codes from number `from` on as a word, and adds them to the sum. */
uint codes_of(uint from, float inverse, inout int sum) {
    uint word = 0;
    for (uint i = 0; i < 4; i++) {
        int q = int(roundEven(number(from + i) * inverse));
        sum += q;
        word |= (q & 0xff) << 8 * i;
    }
    return word;
}

/* Rounds 32 numbers from `from` on to the block at blocks[to]. */
void round_block(uint from, uint to) {
    uvec4 word[2] = uvec4[](uvec4(0), uvec4(0));
    int sum[2] = int[](0, 0);
    float scale = 0;
    uint most = largest_bits(from);
    if (most >= NOT_FINITE) {
        scale = NAN;
    } else if (most >= SMALL) {
        scale = uintBitsToFloat(most) / 127;
        float inverse = 127 / uintBitsToFloat(most);
        for (uint i = 0; i < 8; i++)
            word[i / 4][i % 4] = codes_of(from + 4 * i, inverse, sum[i / 4]);
    }
    blocks[to] = word[0];
    blocks[to + 1] = word[1];
    blocks[to + 2] = uvec4(floatBitsToUint(scale), sum[0], sum[1], 0);
}
