/* y[.., e] = x[.., index[e]] along dimension DIM; what is outside of x is MISSING. y is dense. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "convert.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FROM = 0;
layout(constant_id = 2) const uint DIM = 0;
layout(constant_id = 3) const uint MISSING = 0;

layout(binding = 0) writeonly buffer Y { uint y[]; };
layout(binding = 1) readonly buffer X { uint x[]; };
layout(binding = 2) readonly buffer Index { int at[]; };

layout(push_constant) uniform Push {
    uint count, ne[3], y_at;
    uint x_n, x_at, x_stride[4]; /* x_n: of DIM */
    uint index_at, index_stride, index_batch;
};

void main() {
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e = gl_GlobalInvocationID.x; e < count; e += step) {
        uint place[4];
        place[0] = e % ne[0];
        place[1] = e / ne[0] % ne[1];
        place[2] = e / ne[0] / ne[1] % ne[2];
        place[3] = e / ne[0] / ne[1] / ne[2];
        int which = at[index_at + place[DIM] * index_stride + place[3] * index_batch];
        bool inside = which >= 0 && uint(which) < x_n;
        place[DIM] = inside ? uint(which) : 0u;
        uint from = x_at;
        for (int d = 0; d < 4; d++)
            from += place[d] * x_stride[d];
        uint found = converted(FROM, from, x[word_of(FROM, from)]);
        y[y_at + e] = inside ? found : MISSING;
    }
}
