#version 450

/* Sorts columns by their matrix, for linear_mat.comp. Writes tiles of at most TILE columns of one
 * matrix, then the columns in this order:
 *
 *     | matrix, first, count | .. n_tiles times | column | .. |
 *
 * Unneeded tiles have no columns. Columns with an invalid index get matrix -1. A single workgroup does
 * this, and reads each index twice: to count the columns of each matrix, and to place them. The order of
 * a matrix's columns may differ from run to run; their products do not depend on it. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TILE = 64;

layout(set = 0, binding = 0) readonly buffer Index { int index[]; };
layout(set = 0, binding = 1) writeonly buffer Lists { int lists[]; };

layout(push_constant) uniform Push {
    uint index_at, index_step[2], column[3];
    uint n_matrices, n_tiles, lists_at;
};

const uint MOST = 1025;
shared uint size[MOST], next[MOST], first_tile[MOST + 1]; /* next: place of the next column */

/* Returns the matrix of column c; n_matrices if its index is invalid. */
uint matrix_of(uint c) {
    uint j = c % column[0], l = c / column[0] / column[1];
    int m = index[index_at + j * index_step[0] + l * index_step[1]];
    return m < 0 ? n_matrices : min(uint(m), n_matrices);
}

void main() {
    uint me = gl_LocalInvocationID.x, local = gl_WorkGroupSize.x;
    uint n = column[0] * column[1] * column[2];
    for (uint m = me; m <= n_matrices; m += local)
        size[m] = 0;
    barrier();
    for (uint c = me; c < n; c += local)
        atomicAdd(size[matrix_of(c)], 1);
    barrier();
    if (me == 0) {
        uint at = 0, tile = 0;
        for (uint m = 0; m <= n_matrices; m++) {
            next[m] = at;
            first_tile[m] = tile;
            at += size[m];
            tile += (size[m] + TILE - 1) / TILE;
        }
        first_tile[n_matrices + 1] = tile;
    }
    barrier();
    for (uint m = me; m <= n_matrices; m += local)
        for (uint i = 0; i < size[m]; i += TILE) {
            uint to = lists_at + 3 * (first_tile[m] + i / TILE);
            lists[to] = m < n_matrices ? int(m) : -1;
            lists[to + 1] = int(next[m] + i);
            lists[to + 2] = int(min(size[m] - i, TILE));
        }
    barrier();
    for (uint c = me; c < n; c += local)
        lists[lists_at + 3 * n_tiles + atomicAdd(next[matrix_of(c)], 1)] = int(c);
    for (uint t = first_tile[n_matrices + 1] + me; t < n_tiles; t += local)
        lists[lists_at + 3 * t + 2] = 0;
}
