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

/* Adds the product of weights and the piece. */
void multiply_piece(piece p, uint c) {
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a[DOWN];
    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b;
    for (uint k = 0; k < DEEP; k += K) {
        [[unroll]] for (uint i = 0; i < DOWN; i++)
            coopMatLoad(a[i], area, (own_row() + i * M) * P_PITCH + (p.first + k) / 4, P_PITCH,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            coopMatLoad(b, area, VALUES_AT + p.place * PIECE + k * V_PITCH + (own_column() + j * N) / 4,
                        V_PITCH, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < DOWN; i++)
                sum[(c * ACROSS + j) * DOWN + i] = coopMatMulAdd(a[i], b, sum[(c * ACROSS + j) * DOWN + i]);
        }
    }
}

/* Adds the values that are not finite, where weights are not 0: a weight of 0 times infinity would be
 * NaN. So one product has ones for infinities and NaN, and another for negative infinities and NaN. An
 * element of it is 0, or, squared, infinite. */
void add_not_finite(piece p, uint c) {
    const float LARGE = 1.3292279957849159e36; /* 2^120; a weight is at least 2^-24 */
    four_words v[V_LOADS];
    load_piece(p, v);
    [[dont_unroll]] for (uint which = POSITIVE; which <= NEGATIVE; which++) {
        SUMS before[DOWN * ACROSS];
        barrier();
        put_piece(p, which, v);
        barrier();
        [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) {
            before[i] = sum[c * DOWN * ACROSS + i];
            sum[c * DOWN * ACROSS + i] = SUMS(0);
        }
        multiply_piece(p, c);
        [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) {
            SUMS x = sum[c * DOWN * ACROSS + i] * LARGE;
            x *= x;
            sum[c * DOWN * ACROSS + i] = which == POSITIVE ? before[i] + x : before[i] - x;
        }
    }
}

/* Adds weight[j] * value[j] for the positions j of a page. v: this invocation's words of piece p. */
void add_values(piece p, four_words v[V_LOADS]) {
    [[unroll]] for (uint c = 0; c < STRIPS; c++)
        [[dont_unroll]] while (p.c == c) {
            piece next = piece_after(p);
            bool more = next.c < STRIPS;
            if (more)
                load_piece(next, v);
            if (c * WIDE + own_column() < E)
                multiply_piece(p, c);
            if (p.edge && odd[p.place] == p.number)
                add_not_finite(p, c);
            if (more) {
                put_piece(next, FINITE, v);
                barrier();
            }
            p = next;
        }
    n_pieces = p.number;
}
