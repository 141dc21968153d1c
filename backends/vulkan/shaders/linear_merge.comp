#version 450

/* Adds the slices of linear_mat.comp's sums, in order, and the bias. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SLICES = 2;
layout(constant_id = 2) const bool BIAS = false;

layout(set = 0, binding = 0) readonly buffer Slices { float slices[]; };
layout(set = 0, binding = 1) writeonly buffer Result { float y[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };

layout(push_constant) uniform Push {
    uint n_rows, n[3]; /* extents of y */
    uint slices_at, slice; /* words of a slice, whose rows are dense */
    uint y_at, y_step[3];
    uint bias_at, bias_step[3];
};

uint along(uvec3 at, uint step[3]) {
    return at.x * step[0] + at.y * step[1] + at.z * step[2];
}

void main() {
    uint all = n_rows * n[0] * n[1] * n[2];
    for (uint u = gl_GlobalInvocationID.x; u < all; u += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint j = u % n_rows, c = u / n_rows;
        uvec3 at = uvec3(c % n[0], c / n[0] % n[1], c / n[0] / n[1]);
        float sum = slices[slices_at + u];
        for (uint s = 1; s < SLICES; s++)
            sum += slices[slices_at + s * slice + u];
        if (BIAS)
            sum += bias[bias_at + along(at, bias_step) + j];
        y[y_at + along(at, y_step) + j] = sum;
    }
}
