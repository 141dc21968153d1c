#version 450

/* state, or with KEEP keep: reads a slot's array from the store, or writes it. These run in
 * loops, with one token. An invalid slot reads as NaN and is not written. There are two modules
 * so that each declares what it writes, which barriers and the validation layer rely on. */

layout(local_size_x_id = 0) in;

#ifdef KEEP
layout(set = 0, binding = 0) writeonly buffer Store { float store[]; };
layout(set = 0, binding = 2) readonly buffer Value { float x[]; };
#else
layout(set = 0, binding = 0) readonly buffer Store { float store[]; };
layout(set = 0, binding = 2) writeonly buffer Value { float x[]; };
#endif
layout(set = 0, binding = 1) readonly buffer Slots { int slots[]; };

layout(push_constant) uniform Push {
    uint n[3], x_at, x_step[3];
    uint slot_at, store_at, slot_size, n_slots; /* elements */
};

void main() {
    int slot = slots[slot_at];
    bool valid = slot >= 0 && uint(slot) < n_slots;
    uint all = n[0] * n[1] * n[2], step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < all; i += step) {
        uint to = x_at + i % n[0] * x_step[0] + i / n[0] % n[1] * x_step[1] +
                  i / n[0] / n[1] * x_step[2];
        uint at = store_at + uint(slot) * slot_size + i;
#ifdef KEEP
        if (valid)
            store[at] = x[to];
#else
        x[to] = valid ? store[at] : uintBitsToFloat(0x7fc00000);
#endif
    }
}
