#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

/* Products with few columns: several invocations, lanes, take the runs of a row in turn and add
 * up their sums at the end, so that a weight is read and decoded once for COLS columns. With
 * SUBGROUP the lanes of a row are a subgroup. With IDOT runs are multiplied by their codes. */

#include "linear.glsl"

layout(constant_id = 6) const uint COLS = 1;
layout(constant_id = 7) const uint LANES = 8; /* lanes per row; without SUBGROUP */

uint lane, n_lanes; /* this invocation's lane in its row */
uint row_of_group, rows_of_group;

float sum[COLS];
uint x_from[COLS];

#ifdef IDOT

void bring_run(uint row, uint r) {
    unpack_signed(row, r);
}

/* Returns the product of the loaded run with that of a column. */
float multiply_run(uint c, uint r) {
    uint at = x_from[c] / 4 + X_BLOCK * r;
    uvec4 low = x[at], high = x[at + 1], tail = x[at + 2];
    ivec2 s = ivec2(0);
    for (uint i = 0; i < 4; i++)
        s += ivec2(dot4(code[i], low[i]), dot4(code[i + 4], high[i]));
    return x_scale(tail) * (dot(scale, vec2(s)) - dot(minimum, x_sums(tail)));
}

#else

void bring_run(uint row, uint r) {
    decode(row, r, n_in);
}

float multiply_run(uint c, uint r) {
    vec4 s = vec4(0);
    for (uint i = 0; i < RUN / 4; i++)
        s += run[i] * x_four(x_from[c], r * RUN + 4 * i);
    return s.x + s.y + (s.z + s.w);
}

#endif

/* Multiplies this lane's part of the row at byte address `row` with the columns. */
void multiply(uint row) {
    for (uint c = 0; c < COLS; c++)
        sum[c] = 0;
    uint n_runs = (n_in + RUN - 1) / RUN;
    for (uint r = lane; r < n_runs; r += n_lanes) {
        bring_run(row, r);
        for (uint c = 0; c < COLS; c++)
            sum[c] += multiply_run(c, r);
    }
}

#ifdef SUBGROUP

void set_lanes() {
    lane = subgroupExclusiveAdd(1u);
    n_lanes = subgroupAdd(1u);
    row_of_group = gl_SubgroupID;
    rows_of_group = gl_NumSubgroups;
}

/* Adds up the sums of a row's lanes; the first lane has the result. */
void add_lanes() {
    for (uint c = 0; c < COLS; c++)
        sum[c] = subgroupAdd(sum[c]);
}

#else

shared float part[COLS * gl_WorkGroupSize.x];

void set_lanes() {
    lane = gl_LocalInvocationID.x % LANES;
    n_lanes = LANES;
    row_of_group = gl_LocalInvocationID.x / LANES;
    rows_of_group = gl_WorkGroupSize.x / LANES;
}

void add_lanes() {
    uint at = gl_LocalInvocationID.x;
    for (uint c = 0; c < COLS; c++)
        part[c * gl_WorkGroupSize.x + at] = sum[c];
    barrier();
    for (uint c = 0; c < COLS; c++)
        for (uint i = 1; i < LANES && lane == 0; i++)
            sum[c] += part[c * gl_WorkGroupSize.x + at + i];
    barrier();
}

#endif

/* Computes row `row` of y for the columns from `first` on at the outer place `out_at`. */
void product(uint row, uint first, uvec3 out_at) {
    uint from = w_at, n_cols = count(column);
    bool valid = true;
    if (INDEX) {
        int m = index[index_at + out_at.x * index_step[0] + out_at.z * index_step[1]];
        valid = m >= 0 && uint(m) < n_matrices;
        if (valid ? uint(m) - first_matrix >= n_bound : first_matrix > 0)
            return;
        from += valid ? (uint(m) - first_matrix) * w_step[0] : 0;
    } else {
        from += along(out_at, w_step);
    }
    for (uint c = 0; c < COLS; c++)
        x_from[c] = x_at + along(out_at + place(min(first + c, n_cols - 1), column), x_step);
    multiply(from + min(row, n_rows - 1) * w_row);
    add_lanes();
    if (lane > 0 || row >= n_rows)
        return;
    for (uint c = 0; c < COLS && first + c < n_cols; c++) {
        uvec3 at = out_at + place(first + c, column);
        uint j = first_row + row;
        if (BIAS)
            sum[c] += bias[bias_at + along(at, bias_step) + j];
        y[y_at + along(at, y_step) + j] = valid ? sum[c] : NAN;
    }
}

void main() {
    set_lanes();
    uint by_row = (n_rows + rows_of_group - 1) / rows_of_group;
    uint by_col = (count(column) + COLS - 1) / COLS, n = by_row * by_col * count(outer);
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x)
        product(u % by_row * rows_of_group + row_of_group, u / by_row % by_col * COLS,
                place(u / by_row / by_col, outer));
}
