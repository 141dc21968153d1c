#version 450
#extension GL_GOOGLE_include_directive : require

/* Rounds rows of x to signed bytes in blocks of 32, as docs/numeric.md defines for products with
 * quantized weights. codes.glsl describes a rounded block. */

#include "functions.glsl"

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Blocks { uvec4 blocks[]; };

layout(push_constant) uniform Push {
    uint in_row, rows[3]; /* blocks per row, and numbers of rows */
    uint x_at, x_step[3];
    uint blocks_at; /* words */
};

const uint BLOCK = 32;
const uint NOT_FINITE = 0x7f800000, SMALL = 27 << 23; /* bits of infinity and of 2^-100 */

uint largest_bits(uint from) {
    uint most = 0;
    for (uint i = 0; i < BLOCK; i++)
        most = max(most, floatBitsToUint(x[from + i]) & 0x7fffffff);
    return most;
}

/* Returns four codes from x[from] on as a word, and adds them to the sum. */
uint codes_of(uint from, float inverse, inout int sum) {
    uint word = 0;
    for (uint i = 0; i < 4; i++) {
        int q = int(roundEven(x[from + i] * inverse));
        sum += q;
        word |= (q & 0xff) << 8 * i;
    }
    return word;
}

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

void main() {
    uint n = in_row * rows[0] * rows[1] * rows[2], step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n; u += step) {
        uint row = u / in_row;
        uint from = x_at + row % rows[0] * x_step[0] + row / rows[0] % rows[1] * x_step[1] +
                    row / rows[0] / rows[1] * x_step[2];
        round_block(from + u % in_row * BLOCK, blocks_at / 4 + 3 * u);
    }
}
