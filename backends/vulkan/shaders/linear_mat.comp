#version 450
#extension GL_GOOGLE_include_directive : require

/* Products with many columns: a workgroup computes a tile of y, 64 rows by up to 64 columns.
 * Decoded weights and columns are in shared memory, DEEP elements of each; each invocation sums up 8
 * rows by COLS columns. The next elements are fetched into registers before the present ones are
 * multiplied, so that the memory is not waited for. With INDEX a tile's columns all use one matrix and
 * come from the lists of linear_sort.comp. With IDOT, codes are loaded and multiplied.
 *
 * With SLICES > 1, too few tiles would keep the device busy: the elements of each row are divided
 * among SLICES workgroups, whose sums linear_merge.comp adds. y is then a buffer of slices, each
 * bias_at words after the one before it. */

#include "linear.glsl"

layout(constant_id = 6) const uint COLS = 4; /* columns per invocation: 1, 2 or 4 */

const uint LOCAL = 128, ROWS = 64, ACROSS = 16; /* ACROSS: invocations side by side */
const uint TILE = ACROSS * COLS;

vec4 sum[COLS][2];

#include "linear_tiles.glsl"

#ifdef IDOT

const uint DEEP = 64, RUNS = DEEP / 32;

shared uvec4 w_codes[DEEP / 4 * ROWS / 4];            /* [deep / 4][row] */
shared vec4 w_scale[DEEP / 16 * ROWS / 4], w_minimum[DEEP / 16 * ROWS / 4]; /* [half run][row] */
shared uint x_codes[DEEP / 4 * TILE];                 /* [deep / 4][column] */
shared vec4 x_tail[RUNS * TILE];                      /* [run][column]: scale, two sums of codes */

/* Each invocation brings a run of a row, and one of a column; those of a row are neighbours. */
uint own_run() {
    return gl_LocalInvocationID.x % RUNS;
}

uint own_row() {
    return gl_LocalInvocationID.x / RUNS;
}

uint own_column() {
    return gl_LocalInvocationID.x / RUNS % TILE;
}

#ifndef CODEBOOKS
packed_codes next_codes;
packed_scales next_scales;
#endif
uvec4 next_x[X_BLOCK];

/* Fetches the elements from `deep` on. x_from: this invocation's column. */
void fetch(tile t, uint x_from, uint deep) {
    uint r = min(deep / 32 + own_run(), n_in / 32 - 1);
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        uint from = w_from(t, own_row());
        next_codes = load_codes(from, n_in / 32, in_tile(t, own_row()), r);
        next_scales = load_scales(from, n_in / 32, r);
    }
#endif
    [[unroll]] for (uint i = 0; i < X_BLOCK; i++)
        next_x[i] = x[x_from / 4 + X_BLOCK * r + i];
}

void unpack_own(tile t, uint r) {
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        unpack_packed(next_codes, next_scales, in_tile(t, own_row()));
        minimum += scale * offset;
        return;
    }
#endif
    unpack_signed(w_from(t, own_row()), r);
}

/* Stores what was fetched in shared memory; zeros after the end of the rows. */
void put(tile t, uint deep) {
    uint r = deep / 32 + own_run(), row = own_row(), run = own_run(), col = own_column();
    bool used = r < n_in / 32;
    unpack_own(t, min(r, n_in / 32 - 1));
    [[unroll]] for (uint i = 0; i < 8; i++)
        w_codes[((run * 8 + i) * ROWS + row) / 4][row % 4] = code[i];
    [[unroll]] for (uint h = 0; h < 2; h++) {
        w_scale[((run * 2 + h) * ROWS + row) / 4][row % 4] = used ? scale[h] : 0;
        w_minimum[((run * 2 + h) * ROWS + row) / 4][row % 4] = used ? minimum[h] : 0;
    }
    if (gl_LocalInvocationID.x < RUNS * TILE) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            x_codes[(run * 8 + i) * TILE + col] = next_x[i / 4][i % 4];
        x_tail[run * TILE + col] = used ? vec4(x_scale(next_x[2]), x_sums(next_x[2]), 0) : vec4(0);
    }
}

ivec4 dot4_each(uvec4 a, uint b) {
    return ivec4(dot4(a.x, b), dot4(a.y, b), dot4(a.z, b), dot4(a.w, b));
}

/* Returns the dot products of rows 4 * fours .. 4 * fours + 3 with column c: n words from `first`. */
ivec4 dots(uint first, uint n, uint fours, uint c) {
    ivec4 s = ivec4(0);
    [[unroll]] for (uint i = first; i < first + n; i++)
        s += dot4_each(w_codes[i * ROWS / 4 + fours], x_codes[i * TILE + c]);
    return s;
}

/* Returns the products of these rows with column c, for run r of the DEEP elements. */
vec4 multiply_run(uint r, uint fours, uint c) {
    uint at = 2 * r * ROWS / 4 + fours;
    vec4 tail = x_tail[r * TILE + c];
    if (!HALVES)
        return tail.x * (w_scale[at] * vec4(dots(8 * r, 8, fours, c)) - w_minimum[at] * (tail.y + tail.z));
    vec4 s = w_scale[at] * vec4(dots(8 * r, 4, fours, c)) - w_minimum[at] * tail.y;
    at += ROWS / 4;
    s += w_scale[at] * vec4(dots(8 * r + 4, 4, fours, c)) - w_minimum[at] * tail.z;
    return tail.x * s;
}

void multiply(uint down, uint across) {
    [[unroll]] for (uint r = 0; r < RUNS; r++)
        [[unroll]] for (uint c = 0; c < COLS; c++)
            [[unroll]] for (uint i = 0; i < 2; i++)
                sum[c][i] += multiply_run(r, 2 * down + i, across * COLS + c);
}

#else

const uint DEEP = 32;
/* Units of 8 weights that each invocation fetches; without it, rows are decoded 32 at a time. */
const bool FETCHED = PACKED_WEIGHTS || RUN == 8;
const uint UNITS = ROWS * DEEP / 8 / LOCAL;

shared vec4 w_tile[DEEP * ROWS / 4]; /* [deep][row] */
shared float x_tile[DEEP * TILE];    /* [deep][column] */

vec4 next_w[UNITS * 2], next_x[COLS];

uint own_column() {
    return gl_LocalInvocationID.x % TILE;
}

/* The first four elements of this invocation's part i of its column, from the present ones on. */
uint column_deep(uint i) {
    return 4 * (gl_LocalInvocationID.x / TILE + i * (LOCAL / TILE));
}

/* Unit i of this invocation: its row, and its number in the row's DEEP elements. */
uint unit_row(uint i) {
    return (gl_LocalInvocationID.x + i * LOCAL) / (DEEP / 8);
}

uint unit_part(uint i) {
    return gl_LocalInvocationID.x % (DEEP / 8);
}

/* Sets run[0] and run[1] to a unit of a row of w. */
void bring_unit(tile t, uint row, uint deep, uint part) {
#ifndef CODEBOOKS
    if (PACKED_WEIGHTS) {
        uint from = w_from(t, row), r = deep / 32;
        packed_scales s = load_scales(from, n_in / 32, r);
        uvec2 w = load_quarter(from, n_in / 32, in_tile(t, row), r, part);
        set_packed_scales(s, in_tile(t, row));
        vec2 less = scale * offset + minimum;
        run[0] = scale.x * signed_bytes(w.x) - less.x;
        run[1] = scale.y * signed_bytes(w.y) - less.y;
        return;
    }
#endif
    if (deep + 8 * part < n_in)
        decode(w_from(t, row), deep / 8 + part, n_in);
    else
        run[0] = run[1] = vec4(0);
}

void fetch(tile t, uint x_from, uint deep) {
    [[unroll]] for (uint i = 0; i < UNITS && FETCHED; i++) {
        bring_unit(t, unit_row(i), deep, unit_part(i));
        next_w[2 * i] = run[0];
        next_w[2 * i + 1] = run[1];
    }
    [[unroll]] for (uint i = 0; i < COLS; i++) {
        uint k = deep + column_deep(i);
        next_x[i] = k < n_in ? x_four(x_from, k) : vec4(0);
    }
}

/* Stores element k of the present ones of a row. */
void put_weight(uint k, uint row, float w) {
    w_tile[(k * ROWS + row) / 4][row % 4] = w;
}

void put(tile t, uint deep) {
    uint me = gl_LocalInvocationID.x;
    if (FETCHED) {
        [[unroll]] for (uint i = 0; i < UNITS * 2; i++) {
            uint part = unit_part(i / 2), first = PACKED_WEIGHTS ? i % 2 * 16 + 4 * part : 8 * part + i % 2 * 4;
            [[unroll]] for (uint k = 0; k < 4; k++)
                put_weight(first + k, unit_row(i / 2), next_w[i][k]);
        }
    } else if (me < ROWS) {
        decode(w_from(t, me), deep / 32, n_in);
        for (uint i = 0; i < 32; i++)
            put_weight(i, me, run[i / 4][i % 4]);
    }
    [[unroll]] for (uint i = 0; i < COLS; i++)
        [[unroll]] for (uint k = 0; k < 4; k++)
            x_tile[(column_deep(i) + k) * TILE + own_column()] = next_x[i][k];
}

void multiply(uint down, uint across) {
    for (uint k = 0; k < DEEP; k++) {
        vec4 a = w_tile[k * ROWS / 4 + 2 * down], b = w_tile[k * ROWS / 4 + 2 * down + 1];
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            float v = x_tile[k * TILE + across * COLS + c];
            sum[c][0] += a * v;
            sum[c][1] += b * v;
        }
    }
}

#endif

void store(tile t, uint down, uint across) {
    for (uint c = 0; c < COLS && across * COLS + c < t.n_cols; c++) {
        uvec3 at = place_of(t, across * COLS + c);
        uint to = y_at + along(at, y_step), from = bias_at + along(at, bias_step);
        if (SLICES > 1)
            to += t.slice * bias_at;
        for (uint i = 0; i < 8 && t.row + 8 * down + i < n_rows; i++) {
            uint j = first_row + t.row + 8 * down + i;
            float v = sum[c][i / 4][i % 4];
            if (BIAS)
                v += bias[from + j];
            y[to + j] = t.valid ? v : NAN;
        }
    }
}

void product(tile t) {
    uint down = gl_LocalInvocationID.x / ACROSS, across = gl_LocalInvocationID.x % ACROSS;
    uint x_from = x_at + along(place_of(t, min(own_column(), t.n_cols - 1)), x_step);
    uint steps = (n_in + DEEP - 1) / DEEP;
    uint deep = t.slice * steps / SLICES * DEEP, end = (t.slice + 1) * steps / SLICES * DEEP;
    [[unroll]] for (uint c = 0; c < COLS; c++)
        sum[c][0] = sum[c][1] = vec4(0);
    fetch(t, x_from, deep);
    for (; deep < end; deep += DEEP) {
        barrier();
        put(t, deep);
        barrier();
        if (deep + DEEP < end)
            fetch(t, x_from, deep + DEEP);
        multiply(down, across);
    }
    store(t, down, across);
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
