/* The rank of each element: how many of its row are larger, or equal and earlier. NaN is the
 * smallest. y is dense. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "order.glsl"

layout(local_size_x_id = 0) in;

layout(binding = 0) writeonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };

layout(push_constant) uniform Push {
    uint count, ne[3], y_at, x_at, x_stride[4];
};

void main() {
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e = gl_GlobalInvocationID.x; e < count; e += step) {
        uint i = e % ne[0], rank = 0u;
        uint row = x_at + e / ne[0] % ne[1] * x_stride[1] + e / ne[0] / ne[1] % ne[2] * x_stride[2] +
                   e / ne[0] / ne[1] / ne[2] * x_stride[3];
        uint mine = key_of(x[row + i], NAN_LAST);
        for (uint k = 0u; k < ne[0]; k++) {
            uint key = key_of(x[row + k], NAN_LAST);
            rank += uint(key > mine || (key == mine && k < i));
        }
        y[y_at + e] = float(rank);
    }
}
