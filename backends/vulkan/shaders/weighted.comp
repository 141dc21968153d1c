/* The sum of k rows of x, each times a weight of its own, such as the results of the chosen experts. One
 * invocation per element of y. With ADDEND another value is added. With THEN the workgroup that ends last computes the norm
 * of the rows of y (norm.glsl). */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "order.glsl"
#include "kinds.h"

layout(constant_id = 1) const bool ADDEND = false;
layout(constant_id = 16) const uint THEN = 0; /* kind of a norm, and bits; 0: none */

layout(binding = 0) coherent buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 2) readonly buffer W { float w[]; };
layout(binding = 3) readonly buffer Addend { float addend[]; };
layout(binding = 4) readonly buffer NormWeights { float norm_weights[]; };
layout(binding = 6) writeonly buffer Normed { float normed[]; };
layout(binding = 7) writeonly buffer Blocks { uvec4 blocks[]; };
layout(binding = 8) coherent buffer Counters { uint counters[]; };

layout(push_constant) uniform Push {
    uint n, rows, y_at;        /* elements of a row of y; rows, one for each token */
    uint terms, x_at, x_stride[3], w_at, w_stride[2]; /* along an element, a term, a token */
    uint addend_at, addend_stride[2];
    float eps;
    uint norm_weight_at, normed_at, blocks_at; /* what follows is for linear_vec.comp */
};

/* Sums up in parts of 32 terms, to keep rounding errors small. */
float sum(uint i, uint row) {
    float s = 0.0;
    uint from = x_at + i * x_stride[0] + row * x_stride[2], by = w_at + row * w_stride[1];
    for (uint first = 0u; first < terms; first += 32u) {
        float part = 0.0;
        for (uint t = first; t < min(first + 32u, terms); t++)
            part += x[from + t * x_stride[1]] * w[by + t * w_stride[0]];
        s += part;
    }
    return s;
}

/* --- the norm --------------------------------------------------------------------------------- */

const uint NORM = THEN & 15;
const bool WEIGHT = (THEN & THEN_WEIGHT) != 0, ROUND = (THEN & THEN_ROUND) != 0,
           STORE = (THEN & THEN_STORE) != 0;

uint present; /* row */

uint row_size() {
    return n;
}

float first_read(uint i) {
    return y[y_at + present * n + i];
}

void keep(uint i, float v) {} /* it is there */

float read_again(uint i) {
    return y[y_at + present * n + i];
}

float weight_of(uint i) {
    return norm_weights[norm_weight_at + i];
}

void store_number(uint i, float v) {
    normed[normed_at + present * n + i] = v;
}

#include "last.glsl"
#include "norm.glsl"

void main() {
    const uint all = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e = gl_GlobalInvocationID.x; e < n * rows; e += all) {
        precise float v = sum(e % n, e / n);
        if (ADDEND)
            v += addend[addend_at + e % n * addend_stride[0] + e / n * addend_stride[1]];
        y[y_at + e] = v;
    }
    if (THEN == 0 || !ends_last(0, gl_NumWorkGroups.x))
        return;
    for (present = 0; present < rows; present++)
        norm_row(present, blocks_at, eps);
}
