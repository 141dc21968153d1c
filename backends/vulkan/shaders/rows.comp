/* One workgroup per row: its sum, its maximum, or a row computed from it. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "group.glsl"
#include "order.glsl"
#include "kinds.h"

layout(constant_id = 1) const uint KIND = 0;

layout(binding = 0) buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };

layout(push_constant) uniform Push {
    uint rows, n, ne[2], y_at, x_at, x_stride[4];
    float eps;
};

float row_sum(uint from) {
    float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        s += x[from + i];
    return group_sum(s);
}

float row_squares(uint from) {
    float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        s += x[from + i] * x[from + i];
    return group_sum(s);
}

float row_max(uint from) {
    uint key = key_of(-INFINITY, 0u);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        key = max(key, key_of(x[from + i], NAN_FIRST));
    key = group_max(key);
    return key == NAN_FIRST ? NAN : value_of(key);
}

void softmax(uint to, uint from) {
    float most = row_max(from), s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        float e = exp_of(x[from + i] - most);
        y[to + i] = e;
        s += e;
    }
    s = group_sum(s);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        y[to + i] = y[to + i] / s;
}

void divide(uint to, uint from, float by) {
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        y[to + i] = x[from + i] / by;
}

void center(uint to, uint from) {
    float mean = row_sum(from) / float(n);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
        y[to + i] = x[from + i] - mean;
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        uint from = x_at + row % ne[0] * x_stride[1] + row / ne[0] % ne[1] * x_stride[2] +
                    row / ne[0] / ne[1] * x_stride[3];
        uint to = y_at + row * (KIND <= ROW_AMAX ? 1u : n);
        switch (KIND) {
        case ROW_SUM: y[to] = row_sum(from); break;
        case ROW_AMAX: y[to] = row_max(from); break;
        case ROW_SOFTMAX: softmax(to, from); break;
        case ROW_RMS: divide(to, from, sqrt_of(row_squares(from) / float(n) + eps)); break;
        case ROW_CENTER: center(to, from); break;
        case ROW_L2: divide(to, from, sqrt_of(max_of(row_squares(from), eps * eps))); break;
        default: divide(to, from, row_sum(from)); break; /* ROW_NORMALISED */
        }
    }
}
