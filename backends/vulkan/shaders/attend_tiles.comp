#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#if defined(HALF) || defined(IDOT)
#extension GL_EXT_spirv_intrinsics : require
#endif

/* Softmax attention for many queries: a workgroup of 128 processes a tile of 32 queries that read
 * the same head of the store, in the same slot, page by page. Keys, queries and values are decoded
 * to shared memory in pieces, whose words are loaded while the piece before is multiplied. An
 * invocation computes the scores of 4 queries and 4 positions, and then some weighted sums, over all
 * positions. With END, tokens of a tile may have different slots, one after the other. With IDOT the scores of keys with codes are integer dot products (attend_tiles_codes.glsl). With SPLIT it writes
 * partial results, as attend.comp does. */

layout(local_size_x_id = 0) in; /* 128 */
layout(constant_id = 1) const uint TYPE_K = 0;
layout(constant_id = 2) const uint TYPE_V = 0;
layout(constant_id = 3) const uint E = 1; /* dimensions of values: up to 512 */
layout(constant_id = 4) const uint D = 1; /* dimensions of keys */
layout(constant_id = 5) const uint OPTIONS = 0;

#define TILE 32
#include "attend.glsl"
#include "attend_distance.glsl"
#include "attend_seen.glsl"

const uint L = 128;
const uint FOURS = PAGE / 4;    /* of positions of a page */
const uint QUARTERS = L / TILE; /* invocations that share the weights of a query */

/* A piece of keys: all positions, in K_STEP rows. */
const uint DEEP = 16, K_STEP = DEEP / (K_DIMS * HALF_K), K_FOURS = K_STEP * FOURS,
           K_LOADS = (K_FOURS + L - 1) / L;
const bool K_WHOLE = K_ROWS % K_STEP == 0;

/* Values are divided into strips of WIDE fours of dimensions; a piece of them has some positions. */
const uint FOURS_V = UNITS * HALF_V, WIDE = FOURS_V > 16 ? 32 : 16, STRIPS = (FOURS_V + WIDE - 1) / WIDE,
           WIDE_UNITS = WIDE / HALF_V, PIECE = 256, V_STEP = PIECE / WIDE, V_LOADS = PIECE / HALF_V / L,
           V_TRANSPOSED = PIECE / HALF_V / 4; /* invocations that load four values at once .. */
const bool FOUR_AT_ONCE = IN_KEYS || CODES_V; /* .. if positions are side by side */
const uint OWN = TILE * WIDE / L;             /* queries whose sums an invocation computes */

/* Shared memory has a piece of keys and one of queries, and later scores or weights, and a piece
 * of values. A row of scores has one more four, so that rows begin in different banks. */
const uint ROW = FOURS + 1, QUERIES_AT = DEEP * FOURS, VALUES_AT = TILE * ROW;

shared vec4 area[VALUES_AT + PIECE];
shared float part[L];
shared float down[TILE];               /* factors of the sums so far */
shared vec2 result[TILE];              /* factors of the results */

float top, total; /* of query me / QUARTERS: largest score; sum of own weights */
uint own_query;   /* where it begins */
vec4 sum[STRIPS][OWN];

#include "attend_tiles_codes.glsl"

/* --- queries ---------------------------------------------------------------------------------- */

/* Sets up the queries from pair `first` on, among those that read this head of the store. */
void set_queries(uint first, uint store_head) {
    uint q = me() / QUARTERS;
    barrier();
    if (me() % QUARTERS == 0)
        set_seen(first, q);
    if (CODED_K)
        round_queries(first, store_head);
    own_query = query_at(min(first + q, n_pairs() - 1), store_head);
    top = -INFINITY;
    total = 0;
    [[unroll]] for (uint c = 0; c < STRIPS; c++)
        [[unroll]] for (uint i = 0; i < OWN; i++)
            sum[c][i] = vec4(0);
    barrier();
}

/* --- scores ----------------------------------------------------------------------------------- */

/* Words of a piece: of fours of keys, and four dimensions of a query. */
struct words {
    uvec4 key[K_LOADS];
    uvec2 scales[K_LOADS];
    vec4 query;
};

/* Loads the own words of rows first .. first + K_STEP - 1. What is past the last row becomes 0. */
void load_keys(uint page, uint first, out words w) {
    [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
        uint o = me() + i * L, t = K_WHOLE ? first + o / FOURS : min(first + o / FOURS, K_ROWS - 1);
        w.key[i] = uvec4(0);
        w.scales[i] = uvec2(0);
        if (K_FOURS % L == 0 || o < K_FOURS) {
            w.key[i] = key_words(page, t, o % FOURS);
            w.scales[i] = CODES_K ? key_scales(page, t / K_BLOCK, o % FOURS) : uvec2(0);
        }
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint j = me() % QUARTERS * 4 + i, t = first + j / (HALF_K * K_DIMS);
        w.query[i] = K_WHOLE || t < K_ROWS
                         ? queries[own_query + key_dim(t, j / K_DIMS % HALF_K, j % K_DIMS)]
                         : 0;
    }
}

void put_keys(uint first, words w) {
    [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
        uint o = me() + i * L, row = o / FOURS;
        if (K_FOURS % L == 0 || o < K_FOURS)
            [[unroll]] for (uint j = 0; j < HALF_K * K_DIMS; j++)
                area[(row * HALF_K * K_DIMS + j) * FOURS + o % FOURS] =
                    K_WHOLE || first + row < K_ROWS
                        ? key_four(w.key[i], w.scales[i], j / K_DIMS, j % K_DIMS)
                        : vec4(0);
    }
    uint q = me() / QUARTERS;
    [[unroll]] for (uint i = 0; i < 4; i++)
        area[QUERIES_AT + (me() % QUARTERS * 4 + i) * (TILE / 4) + q / 4][q % 4] = w.query[i];
}

/* Multiplies queries 4 * (me / FOURS) .. with four keys. */
void multiply_keys(uint page, out vec4 s[4]) {
    if (CODED_K) {
        multiply_codes(page, s);
        return;
    }
    words w;
    load_keys(page, 0, w);
    [[unroll]] for (uint i = 0; i < 4; i++)
        s[i] = vec4(0);
    [[dont_unroll]] for (uint first = 0; first < K_ROWS; first += K_STEP) {
        barrier();
        put_keys(first, w);
        barrier();
        load_keys(page, K_WHOLE ? min(first + K_STEP, K_ROWS - K_STEP) : first + K_STEP, w);
        [[unroll]] for (uint j = 0; j < DEEP; j++) {
            vec4 k = area[j * FOURS + me() % FOURS],
                 q = area[QUERIES_AT + j * (TILE / 4) + me() / FOURS];
            [[unroll]] for (uint i = 0; i < 4; i++)
                s[i] += k * q[i];
        }
    }
    barrier();
}

/* Finishes own scores; hidden ones are -infinity. */
void put_scores(uint first, uint store_head, uint k_page, int begin, vec4 s[4]) {
    uint four = me() % FOURS;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint q = me() / FOURS * 4 + i, pair = min(first + q, n_pairs() - 1);
        int pos = END || WITHIN ? position_of(token_of(pair)) : q_last[q];
        vec4 all = s[i], x = vec4(-INFINITY);
        if (RELATIVE)
            all += relative(k_page, four, store_head, pair, begin + int(four * 4) - pos);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            int p = begin + int(four * 4 + k);
            if (sees(q, p))
                x[k] = biased_score_of(all[k], token_of(pair), head_of(pair, store_head), pos, p);
        }
        area[q * ROW + four] = x;
    }
    barrier();
}

/* Turns scores into weights, and finds by which factors the sums so far must be scaled down. */
void set_weights(int begin) {
    const uint each = FOURS / QUARTERS;
    uint q = me() / QUARTERS, at = q * ROW + me() % QUARTERS;
    float now = top;
    [[unroll]] for (uint i = 0; i < each; i++)
        [[unroll]] for (uint k = 0; k < 4; k++)
            now = larger(now, area[at + i * QUARTERS][k]);
    part[me()] = now;
    barrier();
    [[unroll]] for (uint i = 0; i < QUARTERS; i++)
        now = larger(now, part[q * QUARTERS + i]);
    float by = now == top ? 1 : exp_of(top - now);
    total *= by;
    [[unroll]] for (uint i = 0; i < each; i++) {
        vec4 w = area[at + i * QUARTERS];
        int p = begin + int(4 * (me() % QUARTERS + i * QUARTERS));
        [[unroll]] for (uint k = 0; k < 4; k++)
            w[k] = sees(q, p + int(k)) ? exp_of(w[k] - now) : 0;
        total += (w.x + w.y) + (w.z + w.w);
        area[at + i * QUARTERS] = w;
    }
    top = now;
    if (me() % QUARTERS == 0)
        down[q] = by;
    barrier();
}

/* --- values ----------------------------------------------------------------------------------- */

/* Loads own words of values first .. first + V_STEP - 1 of a page, of strip c. */
void load_strip(uint page, uint first, uint c, out uvec4 w[4]) {
    if (FOUR_AT_ONCE) {
        if (me() < V_TRANSPOSED)
            load_values(page, first / 4 + me() / WIDE_UNITS,
                        min(c * WIDE_UNITS + me() % WIDE_UNITS, UNITS - 1), w);
        return;
    }
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        uint o = me() + i * L, unit = min(c * WIDE_UNITS + o % WIDE_UNITS, UNITS - 1);
        w[i] = value_words(page, first + o / WIDE_UNITS, unit);
    }
}

void put_strip(uvec4 w[4]) {
    if (FOUR_AT_ONCE) {
        if (me() < V_TRANSPOSED)
            [[unroll]] for (uint i = 0; i < 4; i++)
                [[unroll]] for (uint h = 0; h < HALF_V; h++)
                    area[VALUES_AT + (me() / WIDE_UNITS * 4 + i) * WIDE + me() % WIDE_UNITS * HALF_V + h] =
                        value_of(w, i, h);
        return;
    }
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        uint o = me() + i * L;
        area[VALUES_AT + o / WIDE_UNITS * WIDE + o % WIDE_UNITS] = four_plain(TYPE_V, w[i]);
    }
}

/* Adds four values of the piece, from value 4 four of the page on, times their weights. With
 * `edge`, a weight of 0 makes values vanish that are not finite. */
void add_four(uint four, uint in_piece, uint c, bool edge) {
    uint at = VALUES_AT + 4 * in_piece * WIDE + me() % WIDE, first = me() / WIDE * OWN * ROW + four;
    vec4 v[4];
    [[unroll]] for (uint i = 0; i < 4; i++)
        v[i] = area[at + i * WIDE];
    if (edge && !(is_finite(v[0]) && is_finite(v[1]) && is_finite(v[2]) && is_finite(v[3])))
        [[dont_unroll]] for (uint i = 0; i < 4; i++)
            [[unroll]] for (uint q = 0; q < OWN; q++) {
                float by = area[first + q * ROW][i];
                sum[c][q] += by == 0 ? vec4(0) : by * area[at + i * WIDE];
            }
    else
        [[unroll]] for (uint q = 0; q < OWN; q++) {
            vec4 by = area[first + q * ROW];
            [[unroll]] for (uint i = 0; i < 4; i++)
                sum[c][q] += by[i] * v[i];
        }
}

/* Adds strip c of the values of positions lo .. hi, and of others near them, times their weights. */
void add_strip(uint page, uint lo, uint hi, uint c, bool edge) {
    uvec4 w[4];
    lo = lo / V_STEP * V_STEP;
    load_strip(page, lo, c, w);
    [[unroll]] for (uint i = 0; i < OWN; i++)
        sum[c][i] *= down[me() / WIDE * OWN + i];
    [[dont_unroll]] for (uint first = lo; first <= hi; first += V_STEP) {
        barrier();
        put_strip(w);
        barrier();
        load_strip(page, min(first + V_STEP, PAGE - V_STEP), c, w);
        [[unroll]] for (uint i = 0; i < V_STEP / 4; i++)
            add_four(first / 4 + i, i, c, edge);
    }
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* Processes the positions that the queries of a slot see, as far as they belong to `span`. */
void pages_of(uint pair, uint slot, uint store_head, uint span) {
    own_slot = int(slot);
    seen all = all_seen(span);
    for (uint number = all.number; number <= all.last; number++) {
        int begin = int(number * PAGE);
        uint lo = uint(max(all.from - begin, 0)), hi = uint(min(all.to - begin, int(PAGE) - 1)),
             row = page_row(slot, store_head, number);
        vec4 s[4];
        multiply_keys(key_page(row), s);
        put_scores(pair, store_head, key_page(row), begin, s);
        set_weights(begin);
        [[unroll]] for (uint c = 0; c < STRIPS; c++)
            add_strip(IN_KEYS ? key_page(row) : value_page(row), lo, hi, c, is_edge(all, begin));
    }
}

/* Processes the slots of the tile's queries, each once. Each query has the bits that it would have alone. */
void slots_of(uint pair, uint store_head, uint span) {
    for (uint q = 0; q < TILE; q++) {
        bool is_new = q_slot[q] >= 0;
        for (uint i = 0; i < q; i++)
            is_new = is_new && q_slot[i] != q_slot[q];
        if (is_new)
            pages_of(pair, uint(q_slot[q]), store_head, span);
    }
}

void store_results(uint first, uint store_head, uint span) {
    part[me()] = total;
    barrier();
    uint own = first + me() / QUARTERS, pair = min(own, n_pairs() - 1);
    if (me() % QUARTERS == 0) {
        float all = 0;
        for (uint i = 0; i < QUARTERS; i++)
            all += part[me() + i];
        result[me() / QUARTERS] =
            SPLIT ? vec2(1, all) : factors(token_of(pair), head_of(pair, store_head), top, all);
        if (SPLIT && own < n_pairs())
            store_total(token_of(pair), head_of(pair, store_head), span, top, all);
    }
    barrier();
    [[unroll]] for (uint c = 0; c < STRIPS; c++)
        [[unroll]] for (uint i = 0; i < OWN; i++) {
            uint q = me() / WIDE * OWN + i, four = c * WIDE + me() % WIDE, at = first + q;
            if (four < FOURS_V && at < n_pairs() && !(SPLIT && result[q].y == 0))
                store_four(token_of(at), head_of(at, store_head), span,
                           unit_dim(four / HALF_V, four % HALF_V), sum[c][i], result[q]);
        }
}

void main() {
    uint n_tiles = (n_pairs() + TILE - 1) / TILE, n = n_tiles * n_store_heads * n_spans;
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x) {
        uint span = u % n_spans, store_head = u / n_spans % n_store_heads,
             first = u / n_spans / n_store_heads * TILE;
        if (!END && !in_one_slot(first))
            continue;
        set_queries(first, store_head);
        if (END)
            slots_of(first, store_head, span);
        else
            pages_of(first, n_slots == 1 ? 0 : uint(slots[slot_at + token_of(first) * slot_step]), store_head, span);
        store_results(first, store_head, span);
    }
}
