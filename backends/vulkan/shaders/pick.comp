#version 450
#extension GL_GOOGLE_include_directive : require

/* y[.., i] = t[.., index[i]], row by row. An invalid index gives NaN, or -1 for i32. A table
 * larger than a binding is bound in parts of its last dimension, with a dispatch each. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool ALIGNED = false;

layout(set = 0, binding = 0) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 1) readonly buffer Index { int index[]; };
layout(set = 0, binding = 2) writeonly buffer Result { uint y[]; };

layout(push_constant) uniform Push {
    uint n;               /* elements of a row */
    uint rows[4];         /* of y, by dimension: two within a matrix, the picked one, the batch */
    uint table_step[4];   /* strides in bytes */
    uint index_step[2];   /* strides of the picked dimension and the batch, in elements */
    uint y_step[4];       /* elements */
    uint table_at, index_at, y_at;
    uint n_table;         /* extent of the table's last dimension */
    uint first, n_bound;  /* the range that is bound */
    uint n_units;
};

#define WEIGHTS   table
#define AT_16(at) uvec4(0)
const bool ALIGNED_16 = false;
#include "types.glsl"

const bool WORDS = TYPE == F32 || TYPE == I32; /* copied unchanged */
const uint UNIT = WORDS ? 1 : RUN;

/* Moves elements from UNIT * part on of the row at byte `row` to y[to ..]. */
void move(uint row, uint part, uint to) {
    if (WORDS) {
        y[to + part] = u32_at(row + 4 * part);
        return;
    }
    decode(row, part, n);
    for (uint i = 0; i < RUN; i++)
        if (part * RUN + i < n)
            y[to + part * RUN + i] = floatBitsToUint(run[i / 4][i % 4]);
}

void unit(uint u) {
    uint parts = (n + UNIT - 1) / UNIT, part = u % parts, at[4];
    u /= parts;
    for (uint d = 0; d < 4; d++) {
        at[d] = u % rows[d];
        u /= rows[d];
    }
    uint to = y_at, from = table_at;
    for (uint d = 0; d < 4; d++)
        to += at[d] * y_step[d];
    int which = index[index_at + at[2] * index_step[0] + at[3] * index_step[1]];
    if (which < 0 || uint(which) >= n_table) {
        for (uint i = part * UNIT; i < min(n, (part + 1) * UNIT) && first == 0; i++)
            y[to + i] = TYPE == I32 ? ~0u : floatBitsToUint(NAN);
        return;
    }
    if (uint(which) - first >= n_bound)
        return;
    at[2] = uint(which) - first;
    for (uint d = 0; d < 4; d++)
        from += at[d] * table_step[d];
    move(from, part, to);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n_units; u += step)
        unit(u);
}
