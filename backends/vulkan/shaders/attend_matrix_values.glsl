/* The sums of attend_matrix.comp, step 3: pieces of values come through shared memory, are multiplied with the weights, and the
 * products are added. Values that are not finite go a way of their own. */

struct four_words {
    uvec4 w[4];
};

/* A piece of the values of a page: positions from `first` on of strip c. */
struct piece {
    uint page, first, c;
    uint lo, hi; /* the positions of the page that some query sees */
    bool edge;   /* some query does not see the whole page */
    uint place, number;
};

piece piece_after(piece p) {
    p.first += DEEP;
    if (p.first > p.hi) {
        p.first = p.lo / DEEP * DEEP;
        p.c++;
    }
    p.place = 1 - p.place;
    p.number++;
    return p;
}

/* Loads own words of a piece. */
void load_piece(piece p, out four_words v[V_LOADS]) {
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        uint o = me() + i * LOCAL, unit = min(p.c * WIDE_UNITS + o % WIDE_UNITS, UNITS - 1);
        v[i].w[0] = v[i].w[1] = v[i].w[2] = v[i].w[3] = uvec4(0);
        if (o >= V_UNITS)
            continue;
        if (FOUR_AT_ONCE)
            load_values(p.page, p.first / 4 + o / WIDE_UNITS, unit, v[i].w);
        else
            v[i].w[0] = value_words(p.page, p.first + o / WIDE_UNITS, unit);
    }
}

/* The f16 of a word that are not finite, as a mask; and those that are NaN or infinities of that sign,
 * as ones, the others as zeros. */
uint not_finite(uint w) {
    return (((w & 0x7c007c00) + 0x04000400) >> 15 & 0x00010001) * 0xffff;
}

uint ones_of(uint w, bool negative) {
    uint is_nan = (w & 0x03ff03ff) + 0x03ff03ff >> 10, of_sign = (negative ? w : ~w) >> 15;
    return not_finite(w) & ((is_nan | of_sign) & 0x00010001) * 0x3c00;
}

const uint FINITE = 0, POSITIVE = 1, NEGATIVE = 2; /* which values are put; the others become 0 */

/* Stores four dimensions of position `row` of a piece. */
void put_four(piece p, uint which, uint row, uint four, uvec2 h) {
    if (p.edge) {
        uvec2 bad = uvec2(not_finite(h.x), not_finite(h.y));
        bool hidden = p.first + row < p.lo || p.first + row > p.hi;
        if (which != FINITE)
            h = uvec2(ones_of(h.x, which == NEGATIVE), ones_of(h.y, which == NEGATIVE));
        else
            h &= ~bad;
        if (hidden)
            h = uvec2(0);
        else if ((bad.x | bad.y) != 0)
            odd[p.place] = p.number;
    }
    area[VALUES_AT + p.place * PIECE + row * V_PITCH + four] = h;
}

void put_piece(piece p, uint which, four_words v[V_LOADS]) {
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        uint o = me() + i * LOCAL, row = o / WIDE_UNITS, unit = o % WIDE_UNITS;
        if (o >= V_UNITS)
            continue;
        if (!FOUR_AT_ONCE) {
            put_four(p, which, row, unit, v[i].w[0].xy);
            continue;
        }
        [[unroll]] for (uint k = 0; k < 4; k++)
            [[unroll]] for (uint h = 0; h < HALF_V; h++)
                put_four(p, which, 4 * row + k, unit_dim(unit, h) / 4, to_halves(value_of(v[i].w, k, h)));
    }
}

/* --- products --------------------------------------------------------------------------------- */

#define LOAD_WEIGHTS(i, k)                                                                                             \
    LEFT left_##i;                                                                                                     \
    if (i < DOWN)                                                                                                      \
        coopMatLoad(left_##i, area, (own_row() + i * M) * P_PITCH + (p.first + k) / 4, P_PITCH,                        \
                    gl_CooperativeMatrixLayoutRowMajor);
#define MULTIPLY_WEIGHTS(i, j, c)                                                                                      \
    if (i < DOWN)                                                                                                      \
        sum_##c##i##j = coopMatMulAdd(left_##i, right, sum_##c##i##j);
#define MULTIPLY_VALUES(j, c, k)                                                                                       \
    if (j < ACROSS) {                                                                                                  \
        RIGHT right;                                                                                                   \
        coopMatLoad(right, area, VALUES_AT + p.place * PIECE + k * V_PITCH + (own_column() + j * N) / 4, V_PITCH,      \
                    gl_CooperativeMatrixLayoutRowMajor);                                                               \
        EACH_DOWN(MULTIPLY_WEIGHTS, j, c)                                                                              \
    }

/* Adds the product of weights and piece p of strip c. */
#define MULTIPLY_PIECE(c)                                                                                              \
    [[unroll]] for (uint k = 0; k < DEEP; k += K) {                                                                    \
        LOAD_WEIGHTS(0, k) LOAD_WEIGHTS(1, k) LOAD_WEIGHTS(2, k) LOAD_WEIGHTS(3, k)                                    \
        MULTIPLY_VALUES(0, c, k) MULTIPLY_VALUES(1, c, k) MULTIPLY_VALUES(2, c, k) MULTIPLY_VALUES(3, c, k)            \
    }

/* Adds the values of piece p of strip c that are not finite, where weights are not 0: a weight of 0 times infinity would be
 * NaN. So one product has ones for infinities and NaN, and another for negative infinities and NaN. An
 * element of it is 0, or, squared, infinite. */
const float LARGE = 1.3292279957849159e36; /* 2^120; a weight is at least 2^-24 */

#define SET_ASIDE(i, j, c)                                                                                             \
    SUMS before_##i##j = sum_##c##i##j;                                                                                \
    sum_##c##i##j = SUMS(0);
#define ADD_INFINITE(i, j, c)                                                                                          \
    if (i < DOWN && j < ACROSS) {                                                                                      \
        SUMS x = sum_##c##i##j * LARGE;                                                                                \
        x *= x;                                                                                                        \
        sum_##c##i##j = which == POSITIVE ? before_##i##j + x : before_##i##j - x;                                     \
    }
#define ADD_NOT_FINITE(c)                                                                                              \
    four_words bad[V_LOADS];                                                                                           \
    load_piece(p, bad);                                                                                                \
    [[dont_unroll]] for (uint which = POSITIVE; which <= NEGATIVE; which++) {                                          \
        barrier();                                                                                                     \
        put_piece(p, which, bad);                                                                                      \
        barrier();                                                                                                     \
        EACH_OF_FOUR(SET_ASIDE, c)                                                                                     \
        MULTIPLY_PIECE(c)                                                                                              \
        EACH_OF_FOUR(ADD_INFINITE, c)                                                                                  \
    }

#define ADD_STRIP(at)                                                                                                   \
    if (at < STRIPS)                                                                                                    \
        [[dont_unroll]] while (p.c == at) {                                                                             \
            piece next = piece_after(p);                                                                               \
            bool more = next.c < STRIPS;                                                                               \
            if (more)                                                                                                  \
                load_piece(next, v);                                                                                   \
            if (at * WIDE + own_column() < E) {                                                                         \
                MULTIPLY_PIECE(at)                                                                                      \
            }                                                                                                          \
            if (p.edge && odd[p.place] == p.number) {                                                                  \
                ADD_NOT_FINITE(at)                                                                                      \
            }                                                                                                          \
            if (more) {                                                                                                \
                put_piece(next, FINITE, v);                                                                            \
                barrier();                                                                                             \
            }                                                                                                          \
            p = next;                                                                                                  \
        }

/* Adds weight[j] * value[j] for the positions j of a page. v: this invocation's words of piece p. */
void add_values(piece p, four_words v[V_LOADS]) {
    ADD_STRIP(0) ADD_STRIP(1) ADD_STRIP(2) ADD_STRIP(3)
    n_pieces = p.number;
}
