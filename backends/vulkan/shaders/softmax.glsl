/* Softmax of a row, and its maximum. A workgroup computes a row; its size determines the order of sums. The including file
 * defines the functions below; the result may lie over the row. */

#include "group.glsl"

uint row_size();
float element(uint i);
void store_number(uint i, float v);
/* Returns what this invocation has stored as element i. */
float stored_number(uint i);

float row_max() {
    uint key = key_of(-INFINITY, 0u);
    for (uint i = gl_LocalInvocationID.x; i < row_size(); i += gl_WorkGroupSize.x)
        key = max(key, key_of(element(i), NAN_FIRST));
    key = group_max(key);
    return key == NAN_FIRST ? NAN : value_of(key);
}

void softmax() {
    float most = row_max(), s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < row_size(); i += gl_WorkGroupSize.x) {
        float e = exp_of(element(i) - most);
        store_number(i, e);
        s += e;
    }
    s = group_sum(s);
    for (uint i = gl_LocalInvocationID.x; i < row_size(); i += gl_WorkGroupSize.x)
        store_number(i, stored_number(i) / s);
}
