#version 450
#extension GL_GOOGLE_include_directive : require

/* Products with many columns: a workgroup makes a tile of y, 64 rows by up to 64 columns. Weights are
 * decoded and columns brought, 32 deep, to shared memory, and an invocation adds up 8 rows by COLS
 * columns. With INDEX the columns of a tile are those that one matrix serves, from the lists that
 * linear_sort.comp has made. */

#include "linear.glsl"

layout(constant_id = 6) const uint COLS = 4; /* of an invocation: 1, 2 or 4 */

const uint LOCAL = 128, ROWS = 64, DEEP = 32, ACROSS = 16; /* invocations side by side */
const uint TILE = ACROSS * COLS;

shared vec4 w_tile[DEEP * ROWS / 4]; /* [deep][row] */
shared float x_tile[DEEP * TILE];    /* [deep][column] */

vec4 sum[COLS][2];

/* The tile that unit u is. */
struct tile {
    uint row;    /* the first */
    uint column; /* likewise: of all, or in the list */
    uint n_cols;
    uvec3 outer_at;
    uint w_from;
    bool valid; /* there is a matrix */
};

uint tiles_down() {
    return (n_rows + ROWS - 1) / ROWS;
}

/* Unit u. The lists begin with index_step[0] tiles: | matrix, first, count | .. | column | .. | */
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

void load_weights(tile t, uint deep) {
    for (uint u = gl_LocalInvocationID.x; u < ROWS * (DEEP / RUN); u += LOCAL) {
        uint row = u % ROWS, r = u / ROWS;
        decode(t.w_from + min(t.row + row, n_rows - 1) * w_row, deep / RUN + r, n_in);
        for (uint i = 0; i < RUN; i++)
            w_tile[((r * RUN + i) * ROWS + row) / 4][row % 4] = run[i / 4][i % 4];
    }
}

/* x_from: the row of x of this invocation's column. */
void load_columns(uint x_from, uint deep) {
    uint col = gl_LocalInvocationID.x % TILE;
    for (uint k = gl_LocalInvocationID.x / TILE * 4; k < DEEP; k += LOCAL / TILE * 4) {
        vec4 v = deep + k < n_in ? x_four(x_from, deep + k) : vec4(0);
        for (uint i = 0; i < 4; i++)
            x_tile[(k + i) * TILE + col] = v[i];
    }
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
        load_weights(t, deep);
        load_columns(x_from, deep);
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
