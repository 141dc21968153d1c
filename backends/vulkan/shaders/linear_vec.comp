#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

/* Products with few columns: several invocations, lanes, take the units of ROWS rows in turn and
 * add up their sums at the end, so that a weight is read and decoded once for COLS columns, and a
 * column is read once for ROWS rows. A unit is a run, or a quarter of one; each lane has AT_ONCE of
 * them under way, so that it waits for the memory less often. With SUBGROUP the lanes of a row are
 * a subgroup. With IDOT runs are multiplied by their codes.
 *
 * With GATED there are two products, and the result is f(the first) times the second. With THEN_ROUND, too, the
 * workgroup that ends last of those that compute the rows of a block rounds it.
 *
 * Otherwise, with THEN, the workgroup that ends last computes the norm of the results (norm.glsl): there is no
 * dispatch after this one, and no barrier before it. With THEN_ADD it adds the norm to other values, and may compute
 * the norm of their sum. */

#include "linear.glsl"

layout(constant_id = 6) const uint COLS = 1;
layout(constant_id = 7) const uint LANES = 8; /* lanes per row; without SUBGROUP */
layout(constant_id = 11) const uint ROWS = 1; /* 1, 2 or 4 */
layout(constant_id = 12) const uint AT_ONCE = 1;
layout(constant_id = 13) const uint KIND = 0; /* f */
layout(constant_id = 14) const bool GATED = false;
layout(constant_id = 16) const uint THEN = 0; /* kind of a norm, and bits (kinds.h); 0: nothing */

layout(set = 0, binding = 2) coherent buffer Sums { float sums[]; }; /* the result, if it is read again */

#include "unary.glsl"

uint lane, n_lanes; /* this invocation's lane in its rows */
uint group_row, group_rows; /* its first row in the workgroup, and the workgroup's rows */

float sum[ROWS * COLS];
float gate[ROWS * COLS]; /* GATED: f(sums of the first product) */
uint x_from[COLS];

/* The rows of a product: with PACKED_WEIGHTS in a tile, from row `in_tile` of it on. */
uint row_at[ROWS]; /* byte addresses */
uint tile_at, in_tile;

#ifdef IDOT

const uint QUARTERS = 1; /* units of a run */

#ifndef CODEBOOKS
packed_codes raw_codes[AT_ONCE * ROWS];
packed_scales raw_scales[AT_ONCE];
#endif

/* Loads unit u as number `a` under way. */
void load_unit(uint a, uint u) {
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        raw_scales[a] = load_scales(tile_at, n_in / 32, u);
        [[unroll]] for (uint j = 0; j < ROWS; j++)
            raw_codes[a * ROWS + j] = load_codes(tile_at, n_in / 32, in_tile + j, u);
    }
#endif
}

void bring_run(uint a, uint j, uint u) {
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        unpack_packed(raw_codes[a * ROWS + j], raw_scales[a], in_tile + j);
        minimum += scale * offset;
        return;
    }
#endif
    unpack_signed(row_at[j], u);
}

/* Returns the product of a run of weights with one of a column. */
float run_product(uint words[8], vec2 s, vec2 m, uvec4 low, uvec4 high, uvec4 tail) {
    ivec2 d = ivec2(0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        d += ivec2(dot4(words[i], low[i]), dot4(words[i + 4], high[i]));
    if (HALVES)
        return x_scale(tail) * (dot(s, vec2(d)) - dot(m, x_sums(tail)));
    return x_scale(tail) * (s.x * float(d.x + d.y) - m.x * float(int(tail.y + tail.z)));
}

/* Adds the products of unit u, number `a` under way, to the sums; if `used`. */
void add_unit(uint a, uint u, bool used) {
    uint words[ROWS][8];
    vec2 s[ROWS], m[ROWS];
    [[unroll]] for (uint j = 0; j < ROWS; j++) {
        bring_run(a, j, u);
        words[j] = code;
        s[j] = scale;
        m[j] = minimum;
    }
    [[unroll]] for (uint c = 0; c < COLS; c++) {
        uint at = x_from[c] / 4 + X_BLOCK * u;
        uvec4 low = x[at], high = x[at + 1], tail = x[at + 2];
        [[unroll]] for (uint j = 0; j < ROWS; j++) {
            float v = run_product(words[j], s[j], m[j], low, high, tail);
            sum[j * COLS + c] += used ? v : 0;
        }
    }
}

#else

const uint QUARTERS = PACKED_WEIGHTS ? 4 : 1;
const uint FOURS = PACKED_WEIGHTS ? 2 : RUN / 4; /* vec4 in a unit */

void load_unit(uint a, uint u) {}

/* Sets run[] to the unit's weights of row j. */
void bring_unit(uint j, uint u) {
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        packed_scales s = load_scales(tile_at, n_in / 32, u / 4);
        uvec2 w = load_quarter(tile_at, n_in / 32, in_tile + j, u / 4, u % 4);
        set_packed_scales(s, in_tile + j);
        vec2 less = scale * offset + minimum;
        run[0] = scale.x * signed_bytes(w.x) - less.x;
        run[1] = scale.y * signed_bytes(w.y) - less.y;
        return;
    }
#endif
    decode(row_at[j], u, n_in);
}

/* Returns the column's elements that vec4 i of unit u is multiplied with. */
vec4 column_four(uint from, uint u, uint i) {
    if (PACKED_WEIGHTS)
        return x_four(from, u / 4 * 32 + 16 * i + 4 * (u % 4));
    return x_four(from, u * RUN + 4 * i);
}

void add_unit(uint a, uint u, bool used) {
    vec4 w[ROWS * FOURS];
    [[unroll]] for (uint j = 0; j < ROWS; j++) {
        bring_unit(j, u);
        [[unroll]] for (uint i = 0; i < FOURS; i++)
            w[j * FOURS + i] = run[i];
    }
    [[unroll]] for (uint c = 0; c < COLS; c++) {
        vec4 s[ROWS];
        [[unroll]] for (uint j = 0; j < ROWS; j++)
            s[j] = vec4(0);
        [[unroll]] for (uint i = 0; i < FOURS; i++) {
            vec4 v = column_four(x_from[c], u, i);
            [[unroll]] for (uint j = 0; j < ROWS; j++)
                s[j] += w[j * FOURS + i] * v;
        }
        [[unroll]] for (uint j = 0; j < ROWS; j++) {
            float v = s[j].x + s[j].y + (s[j].z + s[j].w);
            sum[j * COLS + c] += used ? v : 0;
        }
    }
}

#endif

/* Multiplies this lane's part of the rows with the columns. */
void multiply() {
    [[unroll]] for (uint i = 0; i < ROWS * COLS; i++)
        sum[i] = 0;
    uint n = (n_in + RUN - 1) / RUN * QUARTERS;
    for (uint u = lane; u < n; u += AT_ONCE * n_lanes) {
        [[unroll]] for (uint a = 0; a < AT_ONCE; a++)
            load_unit(a, min(u + a * n_lanes, n - 1));
        [[unroll]] for (uint a = 0; a < AT_ONCE; a++)
            add_unit(a, min(u + a * n_lanes, n - 1), a == 0 || u + a * n_lanes < n);
    }
}

#ifdef SUBGROUP

void set_lanes() {
    lane = subgroupExclusiveAdd(1u);
    n_lanes = subgroupAdd(1u);
    group_row = gl_SubgroupID * ROWS;
    group_rows = gl_NumSubgroups * ROWS;
}

/* Adds up the sums of a row's lanes; the first lane has the result. */
void add_lanes() {
    [[unroll]] for (uint i = 0; i < ROWS * COLS; i++)
        sum[i] = subgroupAdd(sum[i]);
}

#else

shared float part[ROWS * COLS * gl_WorkGroupSize.x];

void set_lanes() {
    lane = gl_LocalInvocationID.x % LANES;
    n_lanes = LANES;
    group_row = gl_LocalInvocationID.x / LANES * ROWS;
    group_rows = gl_WorkGroupSize.x / LANES * ROWS;
}

void add_lanes() {
    uint at = gl_LocalInvocationID.x;
    for (uint i = 0; i < ROWS * COLS; i++)
        part[i * gl_WorkGroupSize.x + at] = sum[i];
    barrier();
    for (uint i = 0; i < ROWS * COLS; i++)
        for (uint l = 1; l < LANES && lane == 0; l++)
            sum[i] += part[i * gl_WorkGroupSize.x + at + l];
    barrier();
}

#endif

/* Sets gate[] for rows from `row` on. */
void set_gate(uint row) {
    [[unroll]] for (uint j = 0; j < ROWS; j++) {
        float b = BIAS ? bias[bias_at + first_row + min(row + j, n_rows - 1)] : 0;
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            float v = sum[j * COLS + c];
            if (BIAS)
                v += b;
            gate[j * COLS + c] = unary(v);
        }
    }
}

/* Stores rows from `row` on of y for the columns from `first` on; NaN if the matrix does not exist. */
void store(uint row, uint first, uvec3 out_at, bool valid) {
    uint n_cols = count(column);
    for (uint c = 0; c < COLS && first + c < n_cols; c++) {
        uvec3 at = out_at + place(first + c, column);
        uint to = y_at + along(at, y_step), from = bias_at + along(at, bias_step);
        for (uint j = 0; j < ROWS && row + j < n_rows; j++) {
            float v = sum[j * COLS + c];
            if (BIAS)
                v += bias[from + first_row + row + j];
            if (GATED)
                v = gate[j * COLS + c] * v;
            if (!valid)
                v = NAN;
            if (THEN != 0)
                sums[to + first_row + row + j] = v;
            else
                y[to + first_row + row + j] = v;
        }
    }
}

/* Multiplies rows from `row` on of the present member, whose matrix begins at `from`, with the columns. */
void multiply_rows(uint row, uint from) {
    uint last = n_rows - 1;
    tile_at = from + min(row, last) / TILE_ROWS * w_row;
    in_tile = row % TILE_ROWS;
    [[unroll]] for (uint j = 0; j < ROWS; j++)
        row_at[j] = from + min(row + j, last) * w_row;
    multiply();
    add_lanes();
}

/* Computes rows from `row` on of y for the columns from `first` on at the outer place `out_at`. */
void product(uint row, uint first, uvec3 out_at) {
    uint matrix = 0, n_cols = count(column); /* where the matrix begins, from w_at on */
    bool valid = true, bound = true;
    if (INDEX) {
        int m = index[index_at + out_at.x * index_step(0) + out_at.z * index_step(1)];
        valid = m >= 0 && uint(m) < n_matrices;
        bound = valid ? uint(m) - first_matrix < n_bound : first_matrix == 0;
        matrix = valid && bound ? (uint(m) - first_matrix) * w_chosen : 0;
    } else {
        matrix = along(out_at, w_step);
    }
    [[unroll]] for (uint c = 0; c < COLS; c++)
        x_from[c] = x_at + along(out_at + place(min(first + c, n_cols - 1), column), x_step);
    multiply_rows(row, w_at + matrix);
    if (GATED) {
        set_gate(row);
        take_member(1);
        y_at = of_member(0, 2); /* both have one result */
        multiply_rows(row, w_at + matrix);
    }
    if (lane == 0 && bound)
        store(row, first, out_at, valid);
}

/* --- what is done with the results ------------------------------------------------------------ */

/* These take the place of the index, which a product that does more with its results does not have. */
layout(set = 0, binding = 4) readonly buffer NormWeights { float norm_weights[]; };
layout(set = 0, binding = 6) coherent buffer Normed { float normed[]; }; /* ADD: the sum */
layout(set = 0, binding = 7) writeonly buffer Blocks { uvec4 blocks[]; };
layout(set = 0, binding = 7) writeonly buffer Last { float last[]; }; /* ADD: the norm of the sum, if it is not rounded */
layout(set = 0, binding = 8) coherent buffer Counters { uint counters[]; };
#define norm_eps        uintBitsToFloat(of_others[9])
#define norm_weight_at  of_others[10]
#define normed_at       of_others[11]
#define norm_blocks_at  of_others[12]
#define first_eps       uintBitsToFloat(of_others[13]) /* ADD: of the norm before the sum */
#define first_weight_at of_others[14]
#define gated_blocks_at of_others[2] /* GATED: in place of the second member's y_at */

const uint NORM = THEN & 15;
const bool WEIGHT = (THEN & THEN_WEIGHT) != 0, ROUND = (THEN & THEN_ROUND) != 0,
           STORE = (THEN & THEN_STORE) != 0, ADD = (THEN & THEN_ADD) != 0, AGAIN = (THEN & THEN_AGAIN) != 0;

uint sum_from, normed_from; /* where the present row begins, of the results and of their norms */
bool added = false;         /* ADD: the present row is the sum */

uint row_size() {
    return n_rows;
}

float first_read(uint i) {
    return ADD && added ? normed[normed_from + i] : sums[sum_from + i];
}

shared float gated[GATED && ROUND ? 32 * COLS : 1]; /* one block of each column */

void keep(uint i, float v) {} /* it is there */

float read_again(uint i) {
    return GATED ? gated[i] : first_read(i);
}

float weight_of(uint i) {
    return norm_weights[(ADD && !added ? first_weight_at : norm_weight_at) + i];
}

void store_number(uint i, float v) {
    if (ADD)
        last[norm_blocks_at + normed_from - normed_at + i] = v;
    else
        normed[normed_from + i] = v;
}

#include "last.glsl"
#include "norm.glsl"

/* Adds the norm of column c to other values. An invocation reads its own elements of the sum before a barrier. */
void add_norm(uint c) {
    uint from = bias_at + along(place(c, column), bias_step);
    added = false;
    as_it_is = false;
    norm_by = divisor(first_eps);
    for (uint i = gl_LocalInvocationID.x; i < n_rows; i += gl_WorkGroupSize.x) {
        precise float v = number(i) + bias[from + i];
        normed[normed_from + i] = v;
    }
    added = true;
}

/* In the workgroup that ends last: computes the norms of all columns. */
void norm_columns() {
    if (!ends_last(0, gl_NumWorkGroups.x))
        return;
    take_member(0);
    for (uint c = 0; c < count(column); c++) {
        sum_from = y_at + along(place(c, column), y_step);
        normed_from = normed_at + c * n_rows;
        if (ADD)
            add_norm(c);
        as_it_is = ADD && !AGAIN;
        if (as_it_is)
            normalize(c, norm_blocks_at, 1);
        else
            norm_row(c, norm_blocks_at, norm_eps);
    }
}

/* Rounds block b of all columns at outer index o. Their rounded forms lie one after another. */
void round_columns(uint b, uint o) {
    uint n = count(column), me = gl_LocalInvocationIndex, from = y_at + along(place(o, outer), y_step);
    as_it_is = true;
    for (uint i = me; i < BLOCK * n; i += gl_WorkGroupSize.x)
        gated[i] = sums[from + along(place(i / BLOCK, column), y_step) + BLOCK * b + i % BLOCK];
    barrier();
    for (uint c = me; c < n; c += gl_WorkGroupSize.x)
        round_block(BLOCK * c, gated_blocks_at / 4 + 3 * ((o * n + c) * (n_rows / BLOCK) + b));
    barrier();
}

/* Rounds the blocks of the unit that begins with row `first` of outer index o, if it is the last one of its blocks. */
void round_rows(uint first, uint o) {
    uint end = min(first + group_rows, n_rows), parts = group_rows < BLOCK ? BLOCK / group_rows : 1;
    if (!ends_last(o * (n_rows / BLOCK) + first / BLOCK, parts))
        return;
    for (uint b = first / BLOCK; b < (end + BLOCK - 1) / BLOCK; b++)
        round_columns(b, o);
}

void main() {
    set_lanes();
    uint by_col = (count(column) + COLS - 1) / COLS, across = by_col * count(outer);
    uint n = GATED ? units_of_member(0, group_rows, across) : units_of_all(group_rows, across);
    for (uint i = gl_WorkGroupID.x; i < n; i += gl_NumWorkGroups.x) {
        uint u = take_unit(i, group_rows, across), by_row = (n_rows + group_rows - 1) / group_rows;
        product(u % by_row * group_rows + group_row, u / by_row % by_col * COLS,
                place(u / by_row / by_col, outer));
        if (GATED && ROUND)
            round_rows(u % by_row * group_rows, u / by_row / by_col);
    }
    if (THEN != 0 && !GATED)
        norm_columns();
}
