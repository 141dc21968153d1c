/* Copies elements between any strides, with optional conversion. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "convert.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FROM = 0;

layout(binding = 0) writeonly buffer Y { uint y[]; };
layout(binding = 1) readonly buffer X { uint x[]; };

layout(push_constant) uniform Push {
    uint count, ne[3], y_at, y_stride[4], x_at, x_stride[4];
};

void main() {
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e = gl_GlobalInvocationID.x; e < count; e += step) {
        uint i = e % ne[0], j = e / ne[0] % ne[1], k = e / ne[0] / ne[1], l = k / ne[2];
        k %= ne[2];
        uint from = x_at + i * x_stride[0] + j * x_stride[1] + k * x_stride[2] + l * x_stride[3];
        uint to = y_at + i * y_stride[0] + j * y_stride[1] + k * y_stride[2] + l * y_stride[3];
        y[to] = converted(FROM, from, x[word_of(FROM, from)]);
    }
}
