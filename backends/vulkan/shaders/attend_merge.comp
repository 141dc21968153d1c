#version 450
#extension GL_GOOGLE_include_directive : require

/* Merges the partial results of attend.comp's spans, in order. An invocation computes one
 * element. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SINKS = false;

layout(set = 0, binding = 0) readonly buffer Partial { float partial[]; };
layout(set = 0, binding = 1) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float y[]; };

layout(push_constant) uniform Push {
    uint e, n_heads, n_batch, n_spans;
    uint partial_at, sinks_at, sinks_step[2], y_at, y_step[2];
};

#include "functions.glsl"

void unit(uint u) {
    uint i = u % e, head = u / e % n_heads, token = u / e / n_heads;
    uint from = partial_at + (token * n_heads + head) * n_spans * (e + 2);
    float sink = SINKS ? sinks[sinks_at + head * sinks_step[0] + token * sinks_step[1]] : 0;
    float top = SINKS ? sink : partial[from];
    for (uint s = 0; s < n_spans; s++) {
        float t = partial[from + s * (e + 2)];
        top = t > top ? t : top;
    }
    float total = SINKS ? exp_of(sink - top) : 0, sum = 0;
    for (uint s = 0; s < n_spans; s++, from += e + 2) {
        float all = partial[from + 1];
        if (all == 0)
            continue; /* no position was visible in this span */
        float down = exp_of(partial[from] - top);
        total += all * down;
        sum += partial[from + 2 + i] * down;
    }
    y[y_at + head * y_step[0] + token * y_step[1] + i] = sum / total;
}

void main() {
    uint n = e * n_heads * n_batch, step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n; u += step)
        unit(u);
}
