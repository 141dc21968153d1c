#version 450
#extension GL_GOOGLE_include_directive : require

/* gated_delta_rule(q, k [dk, groups], v [dv, h], g [h] or [dk, h], beta [h]) -> [dv, h];    state [dk, dv, h]
 * ssm_scan(x [d, h], dt [h], a [h] or [n, h], b [n, groups], c [n, groups]) -> [d, h];      state [n, d, h]
 *
 * Rows of the state are independent, so an invocation takes one row through all tokens of the
 * batch, in order. Both operators have the same operands: a number for the row (v or x), two rows of
 * its length (k and q, b and c), and two numbers per head, one of which is the decay and may be a
 * row, too. The names below are those of gated_delta_rule. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SCAN = false;
layout(constant_id = 2) const bool BY_ELEMENT = false; /* the decay is a row */
layout(constant_id = 3) const uint GROUP = 1;          /* heads that share the two rows */

layout(set = 0, binding = 0) buffer Store { float store[]; };
layout(set = 0, binding = 1) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 2) readonly buffer Source0 { float into[]; };
layout(set = 0, binding = 3) readonly buffer Source1 { float out_of[]; };
layout(set = 0, binding = 4) readonly buffer Source2 { float to[]; };
layout(set = 0, binding = 5) readonly buffer Source3 { float first[]; };
layout(set = 0, binding = 6) readonly buffer Source4 { float second[]; };
layout(set = 0, binding = 7) writeonly buffer Result { float y[]; };

/* For each operand: its start, and its strides between heads and between tokens. */
layout(push_constant) uniform Push {
    uint n, n_rows, n_heads, n_batch;
    uint into_at[3], out_at[3], to_at[3], first_at[3], second_at[3], y_at[3];
    uint slot_at, slot_step;
    uint store_at, slot_size, n_slots; /* elements */
    float divisor;                     /* of the result */
};

#include "functions.glsl"

uint place(uint at[3], uint h, uint l) {
    return at[0] + h * at[1] + l * at[2];
}

/* Returns the factor by which element i of a state row decays. `at`: address of the logarithm,
 * or for SCAN of the rate that is multiplied by `step`. */
float left_of(uint at, float step, uint i) {
    uint k = BY_ELEMENT ? at + i : at;
    return SCAN ? exp_of(step * second[k]) : exp_of(first[k]);
}

/* Sums are added up in parts of so many terms: the errors of a state grow from token to token. */
const uint PART = 8;

/* Returns the product of the decayed state row with the row at `k`. */
float dot_left(uint s, uint k, uint at) {
    float sum = 0, left = left_of(at, 1, 0);
    for (uint begin = 0; begin < n; begin += PART) {
        float part = 0;
        for (uint i = begin; i < min(begin + PART, n); i++) {
            if (BY_ELEMENT)
                left = left_of(at, 1, i);
            part += store[s + i] * left * into[k + i];
        }
        sum += part;
    }
    return sum;
}

/* Updates a state row to its decayed value + add * k; returns its product with the row at `q`. */
float pass(uint s, uint k, uint q, uint at, float step, float add) {
    float sum = 0, left = left_of(at, step, 0);
    for (uint begin = 0; begin < n; begin += PART) {
        float part = 0;
        for (uint i = begin; i < min(begin + PART, n); i++) {
            if (BY_ELEMENT)
                left = left_of(at, step, i);
            float next = store[s + i] * left + into[k + i] * add;
            store[s + i] = next;
            part += next * out_of[q + i];
        }
        sum += part;
    }
    return sum;
}

void token(uint row, uint h, uint l) {
    int slot = slots[slot_at + l * slot_step];
    uint to_y = place(y_at, h, l) + row;
    if (slot < 0 || uint(slot) >= n_slots) {
        y[to_y] = NAN;
        return;
    }
    uint s = store_at + uint(slot) * slot_size + (h * n_rows + row) * n;
    uint k = place(into_at, h / GROUP, l), q = place(out_at, h / GROUP, l);
    float v = to[place(to_at, h, l) + row];
    uint a = place(first_at, h, l), b = place(second_at, h, l);
    if (SCAN) /* a: dt; b: the decay */
        y[to_y] = pass(s, k, q, b, first[a], v * first[a]);
    else /* a: g, the decay; b: beta */
        y[to_y] = pass(s, k, q, a, 1, (v - dot_left(s, k, a)) * second[b]) / divisor;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n_rows * n_heads; u += step)
        for (uint l = 0; l < n_batch; l++)
            token(u % n_rows, u / n_rows, l);
}
