/* Tiles of y, for products with many columns: ROWS rows by TILE columns, which the including file
 * declares. With INDEX a tile's columns all use one matrix and come from the lists of linear_sort.comp. */

layout(constant_id = 11) const uint SLICES = 1; /* of each row; see linear_mat.comp */

/* A tile of y. */
struct tile {
    uint row;    /* first row */
    uint column; /* first column: of all columns, or in the list */
    uint n_cols;
    uvec3 outer_at;
    uint w_from;
    bool valid; /* its matrix exists */
    uint slice;
};

uint tiles_down() {
    return (n_rows + ROWS - 1) / ROWS;
}

/* Returns the tile of unit u. The lists begin with index_step(0) tiles: | matrix, first, count |
 * .. | column | .. | */
tile listed_tile(uint u) {
    uint at = index_at + 3 * (u / tiles_down());
    int m = index[at];
    tile t = tile(u % tiles_down() * ROWS, index[at + 1], index[at + 2], uvec3(0), w_at, m >= 0, 0);
    if (t.valid ? uint(m) - first_matrix >= n_bound : first_matrix > 0)
        t.n_cols = 0;
    if (t.valid)
        t.w_from += (uint(m) - first_matrix) * w_chosen;
    return t;
}

uint tiles_across() {
    return INDEX ? index_step(0) : (count(column) + TILE - 1) / TILE * count(outer);
}

uint n_units() {
    return units_of_all(ROWS, tiles_across());
}

/* Takes the member that has unit u, and returns its tile. */
tile tile_of(uint u) {
    u = take_unit(u, ROWS, tiles_across());
    if (INDEX)
        return listed_tile(u);
    /* the tiles of the same rows are neighbors: they run at the same time, and the rows are read from memory once */
    uint n = count(column), by_col = (n + TILE - 1) / TILE, first = u % by_col * TILE;
    uvec3 at = place(u / by_col / tiles_down(), outer);
    return tile(u / by_col % tiles_down() * ROWS, first, min(n - first, TILE), at, w_at + along(at, w_step),
                true, 0);
}

uvec3 place_of(tile t, uint c) {
    if (INDEX)
        return place(index[index_at + 3 * index_step(0) + t.column + c], column);
    return t.outer_at + place(t.column + c, column);
}

/* Returns the place of row `row` of a tile in w; of the last row for rows past the end. */
uint w_place(tile t, uint row) {
    return min(t.row + row, n_rows - 1);
}

/* Return the address of that row; if it is repacked, of its tile of 4 rows, and its row in that. */
uint w_from(tile t, uint row) {
    return t.w_from + w_place(t, row) / (PACKED_WEIGHTS ? TILE_ROWS : 1) * w_row;
}

uint in_tile(tile t, uint row) {
    return w_place(t, row) % TILE_ROWS;
}
