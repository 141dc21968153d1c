/* The indices of the k largest elements of a row, in order: among equals the earlier first, NaN
 * last. One workgroup per row. A row that fits into shared memory is sorted as a whole. For a
 * longer one, the k elements are found first, digit by digit: the k-th largest key, and up to
 * which index elements with that key count. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "order.glsl"

layout(local_size_x_id = 0) in;

layout(binding = 0) writeonly buffer Y { int y[]; };
layout(binding = 1) readonly buffer X { float x[]; };

layout(push_constant) uniform Push {
    uint rows, n, k, y_at, y_batch, x_at, x_batch;
};

const uint MOST = 1024u;
shared uint key[MOST], index[MOST];
shared uint count[256]; /* per digit */
shared uint found, chosen, missing;

bool before(uint a, uint b) {
    return key[a] > key[b] || (key[a] == key[b] && index[a] < index[b]);
}

/* Sorts key[] and index[] by bitonic sort; n is a power of two. */
void sort(uint n) {
    for (uint size = 2u; size <= n; size *= 2u)
        for (uint far = size / 2u; far > 0u; far /= 2u) {
            for (uint e = gl_LocalInvocationID.x; e < n / 2u; e += gl_WorkGroupSize.x) {
                uint a = e / far * 2u * far + e % far, b = a + far;
                bool up = (a & size) == 0u;
                if (before(b, a) == up) {
                    uint u = key[a], v = index[a];
                    key[a] = key[b], index[a] = index[b];
                    key[b] = u, index[b] = v;
                }
            }
            barrier();
        }
}

void clear_counts() {
    for (uint e = gl_LocalInvocationID.x; e < 256u; e += gl_WorkGroupSize.x)
        count[e] = 0u;
    barrier();
}

/* Returns the digit of the element at place `missing` in the order of digits, by the counts;
 * `missing` becomes its place among elements with this digit. */
uint choose(bool downwards) {
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        uint left = missing, digit = downwards ? 255u : 0u;
        while (count[digit] < left) {
            left -= count[digit];
            digit += downwards ? ~0u : 1u;
        }
        chosen = digit;
        missing = left;
    }
    barrier();
    return chosen;
}

/* Returns the k-th largest key. */
uint last_key(uint row) {
    uint prefix = 0u;
    for (int shift = 24; shift >= 0; shift -= 8) {
        clear_counts();
        for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
            uint u = key_of(x[row + i], NAN_LAST);
            if (shift == 24 || u >> uint(shift + 8) == prefix)
                atomicAdd(count[u >> uint(shift) & 255u], 1u);
        }
        prefix = prefix << 8 | choose(true);
    }
    return prefix;
}

/* Returns the index of the last element with this key that is among the k largest. */
uint last_index(uint row, uint last) {
    uint prefix = 0u;
    for (int shift = 24; shift >= 0; shift -= 8) {
        clear_counts();
        for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x)
            if (key_of(x[row + i], NAN_LAST) == last && (shift == 24 || i >> uint(shift + 8) == prefix))
                atomicAdd(count[i >> uint(shift) & 255u], 1u);
        prefix = prefix << 8 | choose(false);
    }
    return prefix;
}

/* Collects the candidates in key[] and index[], in any order; returns their number. */
uint gather(uint row) {
    if (n <= MOST) {
        for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
            key[i] = key_of(x[row + i], NAN_LAST);
            index[i] = i;
        }
        return n;
    }
    if (gl_LocalInvocationID.x == 0u) {
        missing = k;
        found = 0u;
    }
    barrier();
    uint last = last_key(row), until = last_index(row, last);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        uint u = key_of(x[row + i], NAN_LAST);
        if (u > last || (u == last && i <= until)) {
            uint at = atomicAdd(found, 1u);
            key[at] = u;
            index[at] = i;
        }
    }
    return k;
}

void main() {
    for (uint l = gl_WorkGroupID.x; l < rows; l += gl_NumWorkGroups.x) {
        uint have = gather(x_at + l * x_batch), size = 1u;
        while (size < have)
            size *= 2u;
        for (uint e = have + gl_LocalInvocationID.x; e < size; e += gl_WorkGroupSize.x) {
            key[e] = 0u;
            index[e] = ~0u;
        }
        barrier();
        sort(size);
        for (uint e = gl_LocalInvocationID.x; e < k; e += gl_WorkGroupSize.x)
            y[y_at + l * y_batch + e] = int(index[e]);
        barrier();
    }
}
