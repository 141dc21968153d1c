/* Shared by the products of a matrix and columns. A column is a row of x and of y, at (j, k, l) of
 * their dimensions 1 to 3. In `column` dimensions all columns use the same matrix, in `outer` ones
 * different matrices; for each dimension one of the two extents is 1.
 *
 * With MEMBERS > 1, the same columns are multiplied with several matrices of one type and the same
 * n_in. The matrices are in one binding, and so are the results, and the biases. With INDEX, too, there are
 * two, and one index chooses from both stacks of matrices, which are bound whole.
 *
 * With IDOT, columns are codes made by quantize.comp (codes.glsl); with MATRIX, f16 made by
 * linear_halves.comp; else floats. */

#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool ALIGNED = false;
layout(constant_id = 3) const bool BIAS = false;
layout(constant_id = 4) const bool INDEX = false; /* an index chooses each column's matrix */
layout(constant_id = 5) const bool X4 = false; /* rows of x begin at multiples of four, and are units of eight */

layout(constant_id = 8) const bool PACKED_WEIGHTS = false; /* in the layout of packed.def */
layout(constant_id = 9) const bool ALIGNED_16 = false; /* 16 bytes of weights are at multiples of 16 */
layout(constant_id = 10) const bool EXACT_HALF = false; /* unpackHalf2x16 is exact */
layout(constant_id = 15) const uint MEMBERS = 1; /* products, up to 3; with INDEX up to 2 */

/* "restrict": y is not one of the other buffers, so that loads may be moved and merged. */
layout(set = 0, binding = 0) readonly restrict buffer Weights { uint weights[]; };
layout(set = 0, binding = 0) readonly restrict buffer Weights2 { uvec2 weights2[]; };
layout(set = 0, binding = 0) readonly restrict buffer Weights4 { uvec4 weights4[]; };
#if defined(IDOT) || defined(MATRIX)
layout(set = 0, binding = 1) readonly restrict buffer Columns { uvec4 x[]; };
#else
layout(set = 0, binding = 1) readonly restrict buffer Columns { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer Columns4 { vec4 x4[]; };
#endif
layout(set = 0, binding = 2) writeonly restrict buffer Result { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer Bias { float bias[]; };
layout(set = 0, binding = 4) readonly restrict buffer Index { int index[]; };

/* Strides of w are in bytes, all others in words. They may wrap around 32 bits; the sums do not. Of
 * repacked weights w_row is the bytes of a tile of 4 rows. */
layout(push_constant) uniform Push {
    uint n_in, first_row, w_row;
    uint column[3];
    uint x_at, x_step[3];
    uint of_first[7]; /* of the first member: n_rows, w_at, y_at, y_step[3], bias_at */
    /* The same of the others, whose bias is the same for all columns. What is left names all that the
     * definitions after take_unit() read. */
    uint of_others[15];
};

/* The present member. */
uint n_rows, w_at, y_at, y_step[3], bias_at;

uint of_member(uint m, uint i) {
    return MEMBERS == 1 || m == 0 ? of_first[i] : of_others[7 * (m - 1) + i];
}

void take_member(uint m) {
    n_rows = of_member(m, 0);
    w_at = of_member(m, 1);
    y_at = of_member(m, 2);
    for (uint d = 0; d < 3; d++)
        y_step[d] = of_member(m, 3 + d);
    bias_at = of_member(m, 6);
}

/* Each member has a unit of work for every `rows` of its rows, `across` times. */
uint units_of_member(uint m, uint rows, uint across) {
    return (of_member(m, 0) + rows - 1) / rows * across;
}

uint units_of_all(uint rows, uint across) {
    uint n = 0;
    for (uint m = 0; m < MEMBERS; m++)
        n += units_of_member(m, rows, across);
    return n;
}

/* Takes the member that has unit u of all. Returns the unit's number in it. */
uint take_unit(uint u, uint rows, uint across) {
    uint m = 0;
    for (; m + 1 < MEMBERS && u >= units_of_member(m, rows, across); m++)
        u -= units_of_member(m, rows, across);
    take_member(m);
    return u;
}

const bool ALONE = MEMBERS == 1, PAIR = INDEX && MEMBERS == 2;

/* Returns words i to i + 2 of of_others if they are there. */
uint[3] words(bool there, uint i, uint otherwise) {
    uint r[3] = {otherwise, otherwise, otherwise};
    for (uint d = 0; d < 3 && there; d++)
        r[d] = of_others[i + d];
    return r;
}

#define bias_step     words(ALONE, 0, 0)
#define outer         words(ALONE || PAIR, PAIR ? 7 : 3, 1)
#define w_step        words(ALONE, 6, 0)
/* With INDEX: bytes from a matrix to the next one, where the index is, and its strides */
#define w_chosen      of_others[PAIR ? 10 : 6]
#define index_at      of_others[PAIR ? 11 : 9]
#define index_step(i) of_others[(PAIR ? 12 : 10) + i]
/* all matrices; the range that is bound */
#define n_matrices    of_others[PAIR ? 14 : 12]
#define first_matrix  (PAIR ? 0u : of_others[13])
#define n_bound       (PAIR ? n_matrices : of_others[14])

#define WEIGHTS   weights
#define AT_16(at) weights4[at >> 4]
#define CONVERTS_HALF EXACT_HALF
#include "types.glsl"
#ifdef CODEBOOKS
const bool HALVES = true;
#else
#include "packed.glsl"
#endif
const uint TILE_ROWS = 4; /* of packed.def */

/* Returns index c as a place in three dimensions. */
uvec3 place(uint c, uint n[3]) {
    return uvec3(c % n[0], c / n[0] % n[1], c / n[0] / n[1]);
}

uint along(uvec3 at, uint step[3]) {
    return at.x * step[0] + at.y * step[1] + at.z * step[2];
}

uint count(uint n[3]) {
    return n[0] * n[1] * n[2];
}

#ifdef IDOT
#include "codes.glsl"
#elif !defined(MATRIX)

/* Returns elements i .. i + 3 of the row of x at `at`; 0 after its end. */
vec4 x_four(uint at, uint i) {
    if (X4)
        return x4[at + i >> 2];
    if (i + 4 <= n_in)
        return vec4(x[at + i], x[at + i + 1], x[at + i + 2], x[at + i + 3]);
    vec4 v = vec4(0);
    for (uint e = 0; i + e < n_in; e++)
        v[e] = x[at + i + e];
    return v;
}

#endif
