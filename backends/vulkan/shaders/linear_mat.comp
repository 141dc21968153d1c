#version 450
#extension GL_GOOGLE_include_directive : require

/* Products with many columns: a workgroup computes a tile of y, 64 rows by up to 64 columns.
 * Decoded weights and columns are loaded into shared memory, 32 elements deep; each invocation
 * sums up 8 rows by COLS columns. With INDEX a tile's columns all use one matrix and come from
 * the lists of linear_sort.comp. With IDOT, codes are loaded and multiplied. */

#include "linear.glsl"

layout(constant_id = 6) const uint COLS = 4; /* columns per invocation: 1, 2 or 4 */

const uint LOCAL = 128, ROWS = 64, DEEP = 32, ACROSS = 16; /* ACROSS: invocations side by side */
const uint TILE = ACROSS * COLS;

vec4 sum[COLS][2];

/* A tile of y. */
struct tile {
    uint row;    /* first row */
    uint column; /* first column: of all columns, or in the list */
    uint n_cols;
    uvec3 outer_at;
    uint w_from;
    bool valid; /* its matrix exists */
};

uint tiles_down() {
    return (n_rows + ROWS - 1) / ROWS;
}

/* Returns the tile of unit u. The lists begin with index_step[0] tiles: | matrix, first, count |
 * .. | column | .. | */
tile listed_tile(uint u) {
    uint at = index_at + 3 * (u / tiles_down());
    int m = index[at];
    tile t = tile(u % tiles_down() * ROWS, index[at + 1], index[at + 2], uvec3(0), w_at, m >= 0);
    if (t.valid ? uint(m) - first_matrix >= n_bound : first_matrix > 0)
        t.n_cols = 0;
    if (t.valid)
        t.w_from += (uint(m) - first_matrix) * w_step[0];
    return t;
}

tile tile_of(uint u) {
    if (INDEX)
        return listed_tile(u);
    uint n = count(column), by_col = (n + TILE - 1) / TILE, first = u / tiles_down() % by_col * TILE;
    uvec3 at = place(u / tiles_down() / by_col, outer);
    return tile(u % tiles_down() * ROWS, first, min(n - first, TILE), at, w_at + along(at, w_step),
                true);
}

uint n_units() {
    uint by_col = INDEX ? index_step[0] : (count(column) + TILE - 1) / TILE * count(outer);
    return tiles_down() * by_col;
}

uvec3 place_of(tile t, uint c) {
    if (INDEX)
        return place(index[index_at + 3 * index_step[0] + t.column + c], column);
    return t.outer_at + place(t.column + c, column);
}

/* Returns the byte address of row `row` of a tile in w; of the last row for rows past the end. */
uint w_from(tile t, uint row) {
    return t.w_from + min(t.row + row, n_rows - 1) * w_row;
}

#ifdef IDOT

shared uvec4 w_codes[DEEP / 4 * ROWS / 4];                 /* [deep / 4][row] */
shared vec4 w_scale[2 * ROWS / 4], w_minimum[2 * ROWS / 4]; /* [half][row] */
shared uint x_codes[DEEP / 4 * TILE];                      /* [deep / 4][column] */
shared vec4 x_tail[TILE];                                  /* scale, and the two sums of codes */

void load_weights(uint from, uint row, uint r) {
    unpack_signed(from, r);
    for (uint i = 0; i < 8; i++)
        w_codes[(i * ROWS + row) / 4][row % 4] = code[i];
    for (uint h = 0; h < 2; h++) {
        w_scale[(h * ROWS + row) / 4][row % 4] = scale[h];
        w_minimum[(h * ROWS + row) / 4][row % 4] = minimum[h];
    }
}

void load_column(uint at, uint col) {
    uvec4 low = x[at], high = x[at + 1], tail = x[at + 2];
    for (uint i = 0; i < 4; i++) {
        x_codes[i * TILE + col] = low[i];
        x_codes[(i + 4) * TILE + col] = high[i];
    }
    x_tail[col] = vec4(x_scale(tail), x_sums(tail), 0);
}

/* Loads a block: the first ROWS invocations a row of w each, TILE others a column each. */
void load(tile t, uint x_from, uint deep) {
    uint me = gl_LocalInvocationID.x, r = deep / DEEP;
    if (me < ROWS)
        load_weights(w_from(t, me), me, r);
    else if (me - ROWS < TILE)
        load_column(x_from / 4 + X_BLOCK * r, me - ROWS);
}

ivec4 dot4_each(uvec4 a, uint b) {
    return ivec4(dot4(a.x, b), dot4(a.y, b), dot4(a.z, b), dot4(a.w, b));
}

/* Returns the products of rows 4 * fours .. 4 * fours + 3 with column c, for half h of the
 * block. */
vec4 multiply_half(uint h, uint fours, uint c) {
    ivec4 s = ivec4(0);
    for (uint i = 4 * h; i < 4 * h + 4; i++)
        s += dot4_each(w_codes[i * ROWS / 4 + fours], x_codes[i * TILE + c]);
    uint at = h * ROWS / 4 + fours;
    return x_tail[c].x * (w_scale[at] * vec4(s) - w_minimum[at] * x_tail[c][1 + h]);
}

void multiply(uint down, uint across) {
    for (uint h = 0; h < 2; h++)
        for (uint c = 0; c < COLS; c++)
            for (uint i = 0; i < 2; i++)
                sum[c][i] += multiply_half(h, 2 * down + i, across * COLS + c);
}

#else

shared vec4 w_tile[DEEP * ROWS / 4]; /* [deep][row] */
shared float x_tile[DEEP * TILE];    /* [deep][column] */

void load_weights(tile t, uint deep) {
    for (uint u = gl_LocalInvocationID.x; u < ROWS * (DEEP / RUN); u += LOCAL) {
        uint row = u % ROWS, r = u / ROWS;
        decode(w_from(t, row), deep / RUN + r, n_in);
        for (uint i = 0; i < RUN; i++)
            w_tile[((r * RUN + i) * ROWS + row) / 4][row % 4] = run[i / 4][i % 4];
    }
}

/* Loads columns. x_from: the row of x for this invocation's column. */
void load_columns(uint x_from, uint deep) {
    uint col = gl_LocalInvocationID.x % TILE;
    for (uint k = gl_LocalInvocationID.x / TILE * 4; k < DEEP; k += LOCAL / TILE * 4) {
        vec4 v = deep + k < n_in ? x_four(x_from, deep + k) : vec4(0);
        for (uint i = 0; i < 4; i++)
            x_tile[(k + i) * TILE + col] = v[i];
    }
}

void load(tile t, uint x_from, uint deep) {
    load_weights(t, deep);
    load_columns(x_from, deep);
}

void multiply(uint down, uint across) {
    for (uint k = 0; k < DEEP; k++) {
        vec4 a = w_tile[k * ROWS / 4 + 2 * down], b = w_tile[k * ROWS / 4 + 2 * down + 1];
        for (uint c = 0; c < COLS; c++) {
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
    uint col = min(gl_LocalInvocationID.x % TILE, t.n_cols - 1);
    uint x_from = x_at + along(place_of(t, col), x_step);
    for (uint c = 0; c < COLS; c++)
        sum[c][0] = sum[c][1] = vec4(0);
    for (uint deep = 0; deep < n_in; deep += DEEP) {
        barrier();
        load(t, x_from, deep);
        barrier();
        multiply(down, across);
    }
    store(t, down, across);
}

void main() {
    uint n = n_units();
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x) {
        tile t = tile_of(u);
        if (t.n_cols > 0)
            product(t);
    }
}
