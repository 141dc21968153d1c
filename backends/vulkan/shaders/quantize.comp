#version 450
#extension GL_GOOGLE_include_directive : require

/* Rounds rows of x to signed bytes (round.glsl). */

#include "functions.glsl"

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Blocks { uvec4 blocks[]; };

layout(push_constant) uniform Push {
    uint in_row, rows[3]; /* blocks per row, and numbers of rows */
    uint x_at, x_step[3];
    uint blocks_at; /* words */
};

#include "round.glsl"

float number(uint i) {
    return x[i];
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
