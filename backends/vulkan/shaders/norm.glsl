/* Norms of rows: a row divided by a number of its own, or minus its mean. The result may be multiplied by
 * weights (WEIGHT) and rounded to blocks (ROUND). A workgroup computes a row; its size determines the order of
 * sums. The including file defines NORM (the kind), WEIGHT, ROUND and STORE (false: only the rounded result is
 * stored), declares blocks[], and defines the functions below. */

#include "group.glsl"

uint row_size();
/* Returns element i when it is read for the first time, by the only invocation that reads it before a barrier. */
float first_read(uint i);
/* Returns element i later on. */
float read_again(uint i);
float weight_of(uint i);
void store_number(uint i, float v);

float row_sum() {
    precise float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < row_size(); i += gl_WorkGroupSize.x)
        s += first_read(i);
    return group_sum(s);
}

float row_squares() {
    precise float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < row_size(); i += gl_WorkGroupSize.x) {
        float v = first_read(i);
        s += v * v;
    }
    return group_sum(s);
}

float norm_by; /* what elements are divided by; ROW_CENTER: what is subtracted from them */

bool as_it_is = false; /* the row is only rounded */

/* Returns element i of the normalized row. */
float number(uint i) {
    if (as_it_is)
        return read_again(i);
    precise float v = NORM == ROW_CENTER ? read_again(i) - norm_by : read_again(i) / norm_by;
    if (WEIGHT)
        v *= weight_of(i);
    return v;
}

#include "round.glsl"

/* Stores the normalized row, row `row` of the blocks. The result may lie over what is read, so nothing is stored
 * before all invocations have read what they round. */
void normalize(uint row, uint blocks_at, float by) {
    norm_by = by;
    if (ROUND) {
        memoryBarrierBuffer();
        barrier();
        memoryBarrierBuffer();
        for (uint i = gl_LocalInvocationID.x; i < row_size() / BLOCK; i += gl_WorkGroupSize.x)
            round_block(BLOCK * i, blocks_at / 4 + 3 * (row * (row_size() / BLOCK) + i));
        barrier();
    }
    for (uint i = gl_LocalInvocationID.x; STORE && i < row_size(); i += gl_WorkGroupSize.x)
        store_number(i, number(i));
}

/* Returns what a norm of one of the kinds from ROW_RMS on divides the row by, or subtracts from it. */
float divisor(float eps) {
    float n = float(row_size());
    switch (NORM) {
    case ROW_RMS: return sqrt_of(row_squares() / n + eps);
    case ROW_CENTER: return row_sum() / n;
    case ROW_L2: return sqrt_of(max_of(row_squares(), eps * eps));
    default: return row_sum(); /* ROW_NORMALISED */
    }
}

void norm_row(uint row, uint blocks_at, float eps) {
    normalize(row, blocks_at, divisor(eps));
}
