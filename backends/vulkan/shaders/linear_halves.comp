#version 450
#extension GL_GOOGLE_include_directive : require

/* Rounds columns to f16 for linear_matrix.comp, to nearest even. A column is first divided by a power
 * of two, so that its largest element is from 2^14 to 2^15 and none becomes infinite. A workgroup
 * writes a column: its elements, zeros up to a multiple of 64, and the power of two as a float:
 *
 *     | f16 0 .. 7 | f16 8 .. 15 | .. | power, 0, 0, 0 |
 *
 * Infinities and NaN remain what they are; they do not count for the power. With CODES, columns are
 * codes made by quantize.comp (codes.glsl). */

#include "functions.glsl"
#include "group.glsl"
#include "halves.glsl"

layout(constant_id = 1) const bool BY_RUNS = false; /* in the order of linear_matrix.comp */

#ifdef CODES
layout(set = 0, binding = 0) readonly buffer Columns { uvec4 x[]; };
#else
layout(set = 0, binding = 0) readonly buffer Columns { float x[]; };
#endif
layout(set = 0, binding = 1) writeonly buffer Halves { uvec4 halves[]; };

layout(push_constant) uniform Push {
    uint n_in, n[3];       /* elements of a column; extents of x */
    uint x_at, x_step[3];  /* in words */
    uint halves_at, pitch; /* in four words: the first column; from one to the next */
};

const uint INF = 0x7f800000;

float element(uint from, uint i) {
    if (i >= n_in)
        return 0;
#ifdef CODES
    uint block = from / 4 + 3 * (i / 32), w = x[block + i / 16 % 2][i / 4 % 4];
    float scale = uintBitsToFloat(x[block + 2].x);
    return is_nan(scale) ? NAN : scale * float(int(w << 24 - i % 4 * 8) >> 24);
#else
    return x[from + i];
#endif
}

/* Returns the bits of this invocation's largest finite magnitude. */
uint largest_of_mine(uint from) {
    uint most = 0;
    for (uint i = gl_LocalInvocationID.x; i < n_in; i += gl_WorkGroupSize.x) {
        uint u = floatBitsToUint(element(from, i)) & 0x7fffffff;
        most = max(most, u < INF ? u : 0);
    }
    return most;
}

uint pair(uint from, uint i, float by) {
    return half_bits(element(from, i) * by) | half_bits(element(from, i + 1) * by) << 16;
}

void column(uint from, uint to) {
    /* powers from 2^-114 to 2^113, so that they and their reciprocals are normal numbers */
    uint exponent = clamp(group_max(largest_of_mine(from)) >> 23, 27u, 254u) - 14;
    float power = uintBitsToFloat(exponent << 23), by = uintBitsToFloat(254 - exponent << 23);
    for (uint u = gl_LocalInvocationID.x; u < pitch - 1; u += gl_WorkGroupSize.x) {
        uvec4 eight;
        for (uint i = 0; i < 4; i++)
            eight[i] = pair(from, BY_RUNS ? u / 4 * 32 + u % 4 * 4 + i / 2 * 16 + i % 2 * 2 : 8 * u + 2 * i, by);
        halves[to + u] = eight;
    }
    if (gl_LocalInvocationID.x == 0)
        halves[to + pitch - 1] = uvec4(floatBitsToUint(power), 0, 0, 0);
}

void main() {
    for (uint c = gl_WorkGroupID.x; c < n[0] * n[1] * n[2]; c += gl_NumWorkGroups.x) {
        uint from = x_at + c % n[0] * x_step[0] + c / n[0] % n[1] * x_step[1] + c / n[0] / n[1] * x_step[2];
        column(from, halves_at + c * pitch);
    }
}
