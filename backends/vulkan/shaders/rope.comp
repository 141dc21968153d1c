#version 450
#extension GL_GOOGLE_include_directive : require

/* rope_half and rope_pair: an invocation rotates one pair of elements in some rows of a token. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool HALF = true;    /* rope.glsl */
layout(constant_id = 2) const bool DOUBLES = true; /* frequencies are f64, else f32 */

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) readonly buffer Frequencies { uint freq[]; };
layout(set = 0, binding = 2) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float y[]; };

layout(push_constant) uniform Push {
    uint n, n_pairs;
    uint rows[2], n_batch; /* y's dimensions 1 and 2, and the batch */
    uint x_at, x_step[3];
    uint y_at, y_step[3];
    uint freq_at; /* words */
    uint pos_at, pos_step;
    float mag;
};

const uint ROWS = 4; /* rows that share an angle in an invocation */

#include "rope.glsl"

/* Units are the pairs, then the elements that are not rotated. */
void unit(uint u) {
    uint across = n - n_pairs, n_rows = rows[0] * rows[1];
    uint by_row = (n_rows + ROWS - 1) / ROWS;
    uint i = u % across, first = u / across % by_row * ROWS, l = u / across / by_row;
    vec2 cs = i < n_pairs ? cosine_sine(i, positions[pos_at + l * pos_step]) : vec2(1, 0);
    for (uint r = first; r < min(first + ROWS, n_rows); r++) {
        uint j = r % rows[0], k = r / rows[0];
        rotate_pair(i, cs, x_at + j * x_step[0] + k * x_step[1] + l * x_step[2],
                    y_at + j * y_step[0] + k * y_step[1] + l * y_step[2]);
    }
}

void main() {
    uint n_units = n_batch * (n - n_pairs) * ((rows[0] * rows[1] + ROWS - 1) / ROWS);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n_units; u += step)
        unit(u);
}
