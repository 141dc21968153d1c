/* One invocation per element of y: the sum or the maximum of `terms` elements. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "order.glsl"
#include "kinds.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KIND = 0;

layout(binding = 0) writeonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };

layout(push_constant) uniform Push {
    uint count, ne[3], y_at, x_at, x_stride[4];
    uint terms, step;          /* stride between terms */
};

/* Sums up in parts of 32 terms, to keep rounding errors small. */
float sum(uint from) {
    float s = 0.0;
    for (uint first = 0u; first < terms; first += 32u) {
        float part = 0.0;
        for (uint i = first; i < min(first + 32u, terms); i++)
            part += x[from + i * step];
        s += part;
    }
    return s;
}

float largest(uint from) {
    float most = -INFINITY;
    for (uint i = 0u; i < terms; i++)
        most = max_of(most, x[from + i * step]);
    return most;
}

void main() {
    const uint all = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e = gl_GlobalInvocationID.x; e < count; e += all) {
        uint l = e / ne[0] / ne[1] / ne[2];
        uint from = x_at + e % ne[0] * x_stride[0] + e / ne[0] % ne[1] * x_stride[1] +
                    e / ne[0] / ne[1] % ne[2] * x_stride[2] + l * x_stride[3];
        y[y_at + e] = KIND == ROW_AMAX ? largest(from) : sum(from);
    }
}
