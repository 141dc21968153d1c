#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

/* Products with many columns on matrix units: like linear_mat.comp, but weights are decoded to f16, and
 * columns are f16 (linear_halves.comp). Four subgroups compute a tile of y, 64 rows by TILE columns; each
 * sums up DOWN by ACROSS matrices of M x N floats. Shared memory has DEEP elements of the tile's rows and
 * columns twice: while one part is multiplied, the next elements are loaded, and then decoded to the other
 * part. So there is one barrier for DEEP elements. */

#define MATRIX
#include "linear.glsl"

layout(constant_id = 6) const uint TILE = 64;
layout(constant_id = 7) const uint SUBGROUPS_DOWN = 2; /* of the four, one below the other */
layout(constant_id = 12) const uint M = 16;            /* the device's matrices: M x K by K x N */
layout(constant_id = 13) const uint N = 16;
layout(constant_id = 14) const uint K = 16;

const uint ROWS = 64, SUBGROUPS = 4, SUBGROUPS_ACROSS = SUBGROUPS / SUBGROUPS_DOWN;
const uint DOWN = ROWS / SUBGROUPS_DOWN / M, ACROSS = TILE / SUBGROUPS_ACROSS / N;

#include "linear_tiles.glsl"

/* A row, or column, of 32 elements in shared memory takes 80 bytes, so that eight of them begin in
 * different banks. */
const uint DEEP = 32, PITCH = DEEP / 4 + 2, PART = (ROWS + TILE) * PITCH;

shared uvec2 halves[2 * PART]; /* [part][row or column][deep / 4] */

coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sum[DOWN * ACROSS];

/* Units of 8 elements that each invocation brings; there may be fewer units than invocations. */
const uint LOCAL = gl_WorkGroupSize.x, IN_ROW = DEEP / 8;
const uint UNITS = (ROWS * IN_ROW + LOCAL - 1) / LOCAL, X_UNITS = (TILE * IN_ROW + LOCAL - 1) / LOCAL;
/* Without it, rows are decoded 32 at a time, and their loads are waited for. */
const bool FETCHED = PACKED_WEIGHTS || RUN == 8;

#ifndef CODEBOOKS
packed_quarter next_codes[UNITS];
packed_scales next_scales[UNITS];
#endif
uvec4 next_w[UNITS], next_x[X_UNITS];
uint x_from[X_UNITS];

uint unit(uint i) {
    return gl_LocalInvocationID.x + i * LOCAL;
}

uint unit_row(uint i) {
    return unit(i) / IN_ROW;
}

uint unit_part(uint i) {
    return unit(i) % IN_ROW;
}

/* Return the uvec4 of a column's elements, and the first one of column c of a tile. */
uint column_size() {
    return (n_in + DEEP - 1) / DEEP * IN_ROW;
}

uint column_from(tile t, uint c) {
    return x_at + along(place_of(t, min(c, t.n_cols - 1)), x_step);
}

uvec2 to_halves(vec4 v) {
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

/* --- loads ------------------------------------------------------------------------------------ */

/* Loads 8 weights, not of repacked ones. */
uvec4 plain_unit(uint row, uint at) {
    if (at >= n_in)
        return uvec4(0);
    if (TYPE == F16 && ALIGNED_16)
        return AT_16(row + 2 * at);
    decode(row, at / 8, n_in);
    return uvec4(to_halves(run[0]), to_halves(run[1]));
}

/* Loads the elements from `deep` on. */
void fetch(tile t, uint deep) {
    [[unroll]] for (uint i = 0; i < UNITS && FETCHED; i++) {
        if (unit_row(i) >= ROWS)
            continue;
        uint from = w_from(t, unit_row(i));
#ifndef CODEBOOKS
        if (PACKED_WEIGHTS) {
            next_codes[i] = load_part(from, n_in / 32, in_tile(t, unit_row(i)), deep / 32, unit_part(i));
            next_scales[i] = load_scales(from, n_in / 32, deep / 32);
            continue;
        }
#endif
        next_w[i] = plain_unit(from, deep + 8 * unit_part(i));
    }
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        next_x[i] = x[x_from[i] + deep / 8];
}

/* --- shared memory ---------------------------------------------------------------------------- */

void put_eight(uint to, uint row, uint part, uvec4 w) {
    halves[to + row * PITCH + 2 * part] = w.xy;
    halves[to + row * PITCH + 2 * part + 1] = w.zw;
}

/* Decodes rows of types that are not repacked, 32 weights at a time. */
void put_runs(tile t, uint deep, uint to) {
    for (uint row = gl_LocalInvocationID.x; row < ROWS; row += LOCAL) {
        decode(w_from(t, row), deep / 32, n_in);
        for (uint i = 0; i < 8; i++)
            halves[to + row * PITCH + i] = to_halves(run[i]);
    }
}

void put_unit(tile t, uint i, uint to) {
    uint row = unit_row(i), part = unit_part(i);
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) { /* words `part` and `part` + 4 of the run */
        uvec2 w = words_of(next_codes[i], part);
        set_packed_scales(next_scales[i], in_tile(t, row));
        vec2 less = scale * offset + minimum;
        halves[to + row * PITCH + part] = to_halves(scale.x * signed_bytes(w.x) - less.x);
        halves[to + row * PITCH + part + 4] = to_halves(scale.y * signed_bytes(w.y) - less.y);
        return;
    }
#endif
    put_eight(to, row, part, next_w[i]);
}

/* Stores what was loaded to the part of shared memory that begins at `to`. */
void put(tile t, uint deep, uint to) {
    if (!FETCHED)
        put_runs(t, deep, to);
    [[unroll]] for (uint i = 0; i < UNITS && FETCHED; i++)
        if (unit_row(i) < ROWS)
            put_unit(t, i, to);
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        if (unit_row(i) < TILE)
            put_eight(to + ROWS * PITCH, unit_row(i), unit_part(i), next_x[i]);
}

/* --- products --------------------------------------------------------------------------------- */

/* The first row, and column, of this subgroup. */
uint own_row() {
    return gl_SubgroupID % SUBGROUPS_DOWN * DOWN * M;
}

uint own_column() {
    return gl_SubgroupID / SUBGROUPS_DOWN * ACROSS * N;
}

void multiply(uint from) {
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a[DOWN];
    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b;
    for (uint k = 0; k < DEEP; k += K) {
        [[unroll]] for (uint i = 0; i < DOWN; i++)
            coopMatLoad(a[i], halves, from + (own_row() + i * M) * PITCH + k / 4, PITCH,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            coopMatLoad(b, halves, from + (ROWS + own_column() + j * N) * PITCH + k / 4, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < DOWN; i++)
                sum[j * DOWN + i] = coopMatMulAdd(a[i], b, sum[j * DOWN + i]);
        }
    }
}

/* Stores element (row, c) of the tile to y. */
void store_element(tile t, uint row, uint c, float v) {
    if (c >= t.n_cols || t.row + row >= n_rows)
        return;
    uvec3 at = place_of(t, c);
    uint j = first_row + t.row + row, to = y_at + along(at, y_step) + j;
    precise float f = v * uintBitsToFloat(x[column_from(t, c) + column_size()].x);
    if (SLICES > 1)
        to += t.slice * bias_at;
    if (BIAS)
        f += bias[bias_at + along(at, bias_step) + j];
    y[to] = t.valid ? f : NAN;
}

/* A subgroup's matrices go to y by shared memory, one after the other, as which invocation has which
 * element is the device's secret. */
void store(tile t) {
    const uint own = gl_SubgroupID * (M * N / 2); /* of uvec2 */
    [[unroll]] for (uint j = 0; j < ACROSS; j++)
        [[unroll]] for (uint i = 0; i < DOWN; i++) {
            subgroupBarrier();
            coopMatStore(sum[j * DOWN + i], halves, own, M / 2, gl_CooperativeMatrixLayoutColumnMajor);
            subgroupBarrier();
            for (uint e = gl_SubgroupInvocationID; e < M * N; e += gl_SubgroupSize)
                store_element(t, own_row() + i * M + e % M, own_column() + j * N + e / M,
                              uintBitsToFloat(halves[own + e / 2][e % 2]));
        }
}

void product(tile t) {
    uint steps = (n_in + DEEP - 1) / DEEP, part = 0;
    uint deep = t.slice * steps / SLICES * DEEP, end = (t.slice + 1) * steps / SLICES * DEEP;
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++)
        sum[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0);
    [[unroll]] for (uint i = 0; i < X_UNITS; i++)
        x_from[i] = column_from(t, unit_row(i)) + unit_part(i);
    fetch(t, deep);
    put(t, deep, part);
    barrier();
    for (; deep < end; deep += DEEP) {
        bool more = deep + DEEP < end;
        if (more)
            fetch(t, deep + DEEP);
        multiply(part);
        part = PART - part;
        if (more)
            put(t, deep + DEEP, part);
        barrier();
    }
    store(t);
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
