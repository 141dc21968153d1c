#version 450

/* Copies the slots of a batch, with -1 for the tokens after its end. */

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer Size { uint batch_size; };
layout(set = 0, binding = 1) readonly buffer From { int from[]; };
layout(set = 0, binding = 2) writeonly buffer To { int to[]; };

layout(push_constant) uniform Push {
    uint n, from_at, to_at;
};

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step)
        to[to_at + i] = i < batch_size ? from[from_at + i] : -1;
}
