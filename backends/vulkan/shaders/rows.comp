/* One workgroup per row: its sum, its maximum, or a row computed from it. For norms, the row may
 * first be the sum of two (ADDEND), and the result may be multiplied by weights (WEIGHT) and rounded
 * to blocks (ROUND). */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "group.glsl"
#include "order.glsl"
#include "kinds.h"

layout(constant_id = 1) const uint KIND = 0;
layout(constant_id = 2) const bool ADDEND = false;
layout(constant_id = 3) const bool KEEP = false; /* with ADDEND: the sum is a result, too */
layout(constant_id = 4) const bool WEIGHT = false;
layout(constant_id = 5) const bool ROUND = false;
layout(constant_id = 6) const bool STORE = true; /* false: only the rounded result is stored */

layout(binding = 0) buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 2) readonly buffer Addend { float addend[]; };
layout(binding = 3) coherent buffer Sums { float sums[]; };
layout(binding = 4) readonly buffer Weight { float weight[]; };
layout(binding = 5) writeonly buffer Blocks { uvec4 blocks[]; };

layout(push_constant) uniform Push {
    uint rows, n, ne[2], y_at, x_at, x_stride[4];
    float eps;
    uint addend_at, addend_stride[4], sums_at, weight_at, weight_stride[4], blocks_at;
};

uint x_from, addend_from, weight_from, sums_from; /* where the row begins */

/* Returns element i of the row. */
float element(uint i) {
    precise float v = x[x_from + i];
    if (ADDEND)
        v += addend[addend_from + i];
    return v;
}

/* The same, after keep_sum. */
float kept(uint i) {
    return KEEP ? sums[sums_from + i] : element(i);
}

/* Returns element i, which only this invocation reads before the next barrier, and stores it. */
float keep_sum(uint i) {
    float v = element(i);
    if (KEEP)
        sums[sums_from + i] = v;
    return v;
}

float row_sum() {
    precise float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        s += keep_sum(i);
    return group_sum(s);
}

float row_squares() {
    precise float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        float v = keep_sum(i);
        s += v * v;
    }
    return group_sum(s);
}

float row_max() {
    uint key = key_of(-INFINITY, 0u);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        key = max(key, key_of(element(i), NAN_FIRST));
    key = group_max(key);
    return key == NAN_FIRST ? NAN : value_of(key);
}

void softmax(uint to) {
    float most = row_max(), s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        float e = exp_of(element(i) - most);
        y[to + i] = e;
        s += e;
    }
    s = group_sum(s);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        y[to + i] = y[to + i] / s;
}

float by; /* what elements are divided by; ROW_CENTER: what is subtracted from them */

/* Returns element i of the normalized row. */
float number(uint i) {
    precise float v = KIND == ROW_CENTER ? kept(i) - by : kept(i) / by;
    if (WEIGHT)
        v *= weight[weight_from + i * weight_stride[0]];
    return v;
}

#include "round.glsl"

/* Stores the normalized row. The result may lie over x or the addend, so nothing is stored before
 * all invocations have read what they round. */
void normalize(uint to, uint row, float b) {
    by = b;
    if (ROUND) {
        memoryBarrierBuffer();
        barrier();
        for (uint i = gl_LocalInvocationID.x; i < n / BLOCK; i += gl_WorkGroupSize.x)
            round_block(BLOCK * i, blocks_at / 4 + 3 * (row * (n / BLOCK) + i));
        barrier();
    }
    for (uint i = gl_LocalInvocationID.x; STORE && i < n; i += gl_WorkGroupSize.x)
        y[to + i] = number(i);
}

uint row_from(uint row, uint stride[4]) {
    return row % ne[0] * stride[1] + row / ne[0] % ne[1] * stride[2] +
           row / ne[0] / ne[1] * stride[3];
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        x_from = x_at + row_from(row, x_stride);
        addend_from = addend_at + row_from(row, addend_stride);
        weight_from = weight_at + row_from(row, weight_stride);
        sums_from = sums_at + row * n;
        uint to = y_at + row * (KIND <= ROW_AMAX ? 1u : n);
        switch (KIND) {
        case ROW_SUM: y[to] = row_sum(); break;
        case ROW_AMAX: y[to] = row_max(); break;
        case ROW_SOFTMAX: softmax(to); break;
        case ROW_RMS: normalize(to, row, sqrt_of(row_squares() / float(n) + eps)); break;
        case ROW_CENTER: normalize(to, row, row_sum() / float(n)); break;
        case ROW_L2: normalize(to, row, sqrt_of(max_of(row_squares(), eps * eps))); break;
        default: normalize(to, row, row_sum()); break; /* ROW_NORMALISED */
        }
    }
}
