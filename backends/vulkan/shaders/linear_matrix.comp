#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

/* Products with many columns on matrix units: like linear_mat.comp, but weights are decoded to f16, and
 * columns are f16 (linear_halves.comp). Four subgroups compute a tile of y, 64 rows by TILE columns; each
 * sums up DOWN by ACROSS matrices of M x N floats. Shared memory has DEEP elements of the tile's rows and
 * columns. While these are multiplied, the next ones are on their way from memory to registers.
 *
 * The 32 elements of a run of quantized weights are stored in another order, 0 .. 3, 16 .. 19, 4 .. 7, and so
 * on, which is that of their codes; the columns have the same order then. */

#define MATRIX
#include "linear.glsl"
#include "kinds.h"

layout(constant_id = 6) const uint TILE = 64;
layout(constant_id = 7) const uint SUBGROUPS_DOWN = 2; /* of the four, one below the other */
layout(constant_id = 12) const uint M = 16;            /* the device's matrices: M x K by K x N */
layout(constant_id = 13) const uint N = 16;
layout(constant_id = 14) const uint K = 16;

const uint ROWS = 64, SUBGROUPS = 4, SUBGROUPS_ACROSS = SUBGROUPS / SUBGROUPS_DOWN;
const uint DOWN = ROWS / SUBGROUPS_DOWN / M, ACROSS = TILE / SUBGROUPS_ACROSS / N;

#include "linear_tiles.glsl"

/* A row, or column, of 64 elements in shared memory takes 144 bytes, so that eight of them begin in
 * different banks. */
const uint DEEP = HALVES_DEEP, PITCH = DEEP / 8 + 1;

shared uvec4 halves[(ROWS + TILE) * PITCH]; /* [row or column][deep / 8]; at the end matrices of floats */
shared uvec4 column_of[TILE]; /* where a column is in y; the bits of its power; where its bias is */

/* Each invocation brings units of the weights, which are runs of 32 elements, or 8 of f16; and units of 8
 * elements of the columns. There may be fewer units than invocations. */
const uint LOCAL = gl_WorkGroupSize.x;
const uint UNITS = (ROWS * DEEP / RUN + LOCAL - 1) / LOCAL, IN_ROW = DEEP / RUN;
const uint X_UNITS = (TILE * DEEP / 8 + LOCAL - 1) / LOCAL, IN_COLUMN = DEEP / 8;
const bool ALL_UNITS = UNITS * LOCAL == ROWS * IN_ROW, ALL_X_UNITS = X_UNITS * LOCAL == TILE * IN_COLUMN;

#ifndef CODEBOOKS
packed_codes next_codes[UNITS];
packed_scales next_scales[UNITS];
#endif
uvec4 next_w[UNITS], next_x[X_UNITS];
uint row_from[UNITS], row_in[UNITS], x_from[X_UNITS];

uint unit(uint i) {
    return gl_LocalInvocationID.x + i * LOCAL;
}

uint unit_row(uint i) {
    return unit(i) / IN_ROW;
}

uint unit_part(uint i) {
    return unit(i) % IN_ROW;
}

/* Returns the uvec4 of a column's elements. */
uint column_size() {
    return (n_in + DEEP - 1) / DEEP * IN_COLUMN;
}

uvec2 to_halves(vec4 v) {
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

/* --- loads ------------------------------------------------------------------------------------ */

/* Finds the rows and the columns of own units, and what store_matrix() needs to know about columns. */
void set_places(tile t) {
    [[unroll]] for (uint i = 0; i < UNITS; i++) {
        row_from[i] = w_from(t, unit_row(i));
        row_in[i] = in_tile(t, unit_row(i));
    }
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        x_from[i] = x_at + along(place_of(t, min(unit(i) / IN_COLUMN, t.n_cols - 1)), x_step) +
                    unit(i) % IN_COLUMN;
    for (uint c = gl_LocalInvocationID.x; c < t.n_cols; c += LOCAL) {
        uvec3 at = place_of(t, c);
        column_of[c] = uvec4(y_at + along(at, y_step) + (SLICES > 1 ? t.slice * bias_at : 0),
                             x[x_at + along(at, x_step) + column_size()].x, bias_at + along(at, bias_step), 0);
    }
}

/* Loads 8 weights of f16. */
uvec4 plain_unit(uint row, uint at) {
    if (at >= n_in)
        return uvec4(0);
    if (TYPE == F16 && ALIGNED_16)
        return AT_16(row + 2 * at);
    decode(row, at / 8, n_in);
    return uvec4(to_halves(run[0]), to_halves(run[1]));
}

/* Loads the elements from `deep` on. Rows that are not repacked are loaded by put_run(). */
void fetch(uint deep) {
    [[unroll]] for (uint i = 0; i < UNITS; i++) {
        if (!ALL_UNITS && unit_row(i) >= ROWS)
            continue;
#ifndef CODEBOOKS
        if (PACKED_WEIGHTS) {
            uint r = min(deep / RUN + unit_part(i), n_in / RUN - 1);
            next_codes[i] = load_codes(row_from[i], n_in / RUN, row_in[i], r);
            next_scales[i] = load_scales(row_from[i], n_in / RUN, r);
            continue;
        }
#endif
        if (RUN == 8)
            next_w[i] = plain_unit(row_from[i], deep + 8 * unit_part(i));
    }
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        next_x[i] = x[x_from[i] + deep / 8];
}

/* --- shared memory ---------------------------------------------------------------------------- */

/* Decodes unit i, a run, and stores it at `to`. */
void put_run(uint i, uint deep, uint to) {
    bool inside = deep + RUN * unit_part(i) < n_in;
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        unpack_packed(next_codes[i], next_scales[i], row_in[i]);
        vec2 less = scale * offset + minimum;
        [[unroll]] for (uint q = 0; q < 4; q++) {
            vec4 low = scale.x * signed_bytes(code[q]) - less.x, high = scale.y * signed_bytes(code[q + 4]) - less.y;
            halves[to + q] = inside ? uvec4(to_halves(low), to_halves(high)) : uvec4(0);
        }
        return;
    }
#endif
    if (inside)
        decode(row_from[i], deep / RUN + unit_part(i), n_in);
    [[unroll]] for (uint q = 0; q < 4; q++)
        halves[to + q] = inside ? uvec4(to_halves(run[q]), to_halves(run[q + 4])) : uvec4(0);
}

/* Stores what was loaded, the elements from `deep` on. */
void put(uint deep) {
    [[unroll]] for (uint i = 0; i < UNITS; i++) {
        uint to = unit_row(i) * PITCH + unit_part(i) * (RUN / 8);
        if (!ALL_UNITS && unit_row(i) >= ROWS)
            continue;
        if (RUN == 8)
            halves[to] = next_w[i];
        else
            put_run(i, deep, to);
    }
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        if (ALL_X_UNITS || unit(i) < TILE * IN_COLUMN)
            halves[(ROWS + unit(i) / IN_COLUMN) * PITCH + unit(i) % IN_COLUMN] = next_x[i];
}

/* --- products --------------------------------------------------------------------------------- */

/* The first row, and column, of this subgroup. */
uint own_row() {
    return gl_SubgroupID % SUBGROUPS_DOWN * DOWN * M;
}

uint own_column() {
    return gl_SubgroupID / SUBGROUPS_DOWN * ACROSS * N;
}

/* Stores a matrix of sums, which begins at halves[own], to y; row and c: its first row and column in the tile. */
void store_matrix(tile t, uint own, uint row, uint c) {
    for (uint e = gl_SubgroupInvocationID; e < M * N; e += gl_SubgroupSize) {
        if (c + e / M >= t.n_cols || t.row + row + e % M >= n_rows)
            continue;
        uvec4 of = column_of[c + e / M];
        uint j = first_row + t.row + row + e % M;
        precise float f = uintBitsToFloat(halves[own + e / 4][e % 4]) * uintBitsToFloat(of.y);
        if (BIAS)
            f += bias[of.z + j];
        y[of.x + j] = t.valid ? f : NAN;
    }
}

#include "matrices.glsl"

/* A subgroup has up to 32 by 64 elements, so there are up to 4 by 8 matrices of the smallest size. */
#define BEGIN(i, j, c) SUMS sum_##i##j = SUMS(0);

#define LOAD_ROWS(i, k)                                                                                                \
    LEFT rows_##i;                                                                                                     \
    if (i < DOWN)                                                                                                      \
        coopMatLoad(rows_##i, halves, (own_row() + i * M) * PITCH + k / 8, PITCH, gl_CooperativeMatrixLayoutRowMajor);
#define MULTIPLY(i, j, c)                                                                                              \
    if (i < DOWN)                                                                                                      \
        sum_##i##j = coopMatMulAdd(rows_##i, columns, sum_##i##j);
#define MULTIPLY_COLUMN(j, k)                                                                                          \
    if (j < ACROSS) {                                                                                                  \
        RIGHT columns;                                                                                                 \
        coopMatLoad(columns, halves, (ROWS + own_column() + j * N) * PITCH + k / 8, PITCH,                             \
                    gl_CooperativeMatrixLayoutColumnMajor);                                                            \
        EACH_DOWN(MULTIPLY, j, 0)                                                                                      \
    }

/* By shared memory, one after the other, as which invocation has which element is the device's secret. */
#define STORE(i, j, c)                                                                                                 \
    if (i < DOWN && j < ACROSS) {                                                                                      \
        subgroupBarrier();                                                                                             \
        coopMatStore(sum_##i##j, halves, own, M / 4, gl_CooperativeMatrixLayoutColumnMajor);                           \
        subgroupBarrier();                                                                                             \
        store_matrix(t, own, own_row() + i * M, own_column() + j * N);                                                 \
    }

void product(tile t) {
    const uint steps = (n_in + DEEP - 1) / DEEP, end = (t.slice + 1) * steps / SLICES * DEEP,
               own = gl_SubgroupID * (M * N / 4);
    EACH_OF_EIGHT(BEGIN, 0)
    set_places(t);
    uint deep = t.slice * steps / SLICES * DEEP;
    fetch(deep);
    for (; deep < end; deep += DEEP) {
        barrier(); /* what was there has been multiplied */
        put(deep);
        barrier();
        if (deep + DEEP < end)
            fetch(deep + DEEP);
        [[unroll]] for (uint k = 0; k < DEEP; k += K) {
            LOAD_ROWS(0, k) LOAD_ROWS(1, k) LOAD_ROWS(2, k) LOAD_ROWS(3, k)
            MULTIPLY_COLUMN(0, k) MULTIPLY_COLUMN(1, k) MULTIPLY_COLUMN(2, k) MULTIPLY_COLUMN(3, k)
            MULTIPLY_COLUMN(4, k) MULTIPLY_COLUMN(5, k) MULTIPLY_COLUMN(6, k) MULTIPLY_COLUMN(7, k)
        }
    }
    barrier();
    EACH_OF_EIGHT(STORE, 0)
    barrier(); /* the shared memory may be used again */
}

void main() {
    uint n = n_units();
    for (uint u = gl_WorkGroupID.x; u < n * SLICES; u += gl_NumWorkGroups.x) {
        tile t = tile_of(u / SLICES);
        t.slice = u % SLICES;
        if (t.n_cols > 0)
            product(t);
    }
}
