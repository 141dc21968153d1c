/* One workgroup per row: its sum, its maximum, or a row computed from it. For norms, the row may
 * first be the sum of two (ADDEND), and the result may be multiplied by weights (WEIGHT) and rounded
 * to blocks (ROUND). */
#version 450
#extension GL_GOOGLE_include_directive : require
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

uint x_from, addend_from, weight_from, sums_from, y_from; /* where the row begins */

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

void keep(uint i, float v) {
    if (KEEP)
        sums[sums_from + i] = v;
}

uint row_size() {
    return n;
}

float first_read(uint i) {
    return element(i);
}

float read_again(uint i) {
    return kept(i);
}

float weight_of(uint i) {
    return weight[weight_from + i * weight_stride[0]];
}

void store_number(uint i, float v) {
    y[y_from + i] = v;
}

float stored_number(uint i) {
    return y[y_from + i];
}

#define NORM KIND
#include "norm.glsl"

#include "softmax.glsl"

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
        y_from = y_at + row * (KIND <= ROW_AMAX ? 1u : n);
        switch (KIND) {
        case ROW_SUM: y[y_from] = row_sum(); break;
        case ROW_AMAX: y[y_from] = row_max(); break;
        case ROW_SOFTMAX: softmax(); break;
        default: norm_row(row, blocks_at, eps); break;
        }
    }
}
