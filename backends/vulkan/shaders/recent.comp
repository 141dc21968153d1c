#version 450

/* recent(x [n], k) -> [n, k]: x of the last k tokens, oldest first. The state holds the k - 1
 * previous rows. An invocation processes all tokens of the batch, in order, for one column. */

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) buffer Store { float store[]; };
layout(set = 0, binding = 1) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 2) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float y[]; };

layout(push_constant) uniform Push {
    uint n, k, n_batch;
    uint x_at, x_step;
    uint y_at, y_step[2];
    uint slot_at, slot_step;
    uint store_at, slot_size, n_slots; /* elements */
};

void token(uint i, uint l) {
    int slot = slots[slot_at + l * slot_step];
    bool valid = slot >= 0 && uint(slot) < n_slots;
    uint at = store_at + uint(slot) * slot_size + i, to = y_at + l * y_step[1] + i;
    for (uint j = 0; j < k; j++) { /* output row j becomes row j - 1 of the state */
        float v = x[x_at + l * x_step + i];
        if (j + 1 < k)
            v = valid ? store[at + j * n] : uintBitsToFloat(0x7fc00000);
        y[to + j * y_step[0]] = v;
        if (valid && j > 0)
            store[at + (j - 1) * n] = v;
    }
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step)
        for (uint l = 0; l < n_batch; l++)
            token(i, l);
}
