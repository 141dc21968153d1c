#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

/* Softmax attention on matrix units: a workgroup processes a tile of 64 queries that read the same
 * head of the store, in the same slot, page by page (docs/numeric.md, section 9). Queries are f16
 * already (linear_halves.comp); keys and values are decoded to f16.
 *
 * 1. Scores, 64 queries by 64 positions: queries and keys come through shared memory in slabs of 32
 *    dimensions. While one is multiplied, the words of the next are on their way.
 * 2. Invocations turn scores into weights, which are f16, and find the factors by which the sums so
 *    far must be scaled down.
 * 3. Weights by values, which come in pieces of 32 positions and 64 dimensions, like slabs.
 *
 * Of the 64 by 64 elements of each product, a subgroup computes OWN by OWN. With SPLIT the shader writes
 * partial results, as attend.comp does. */

layout(local_size_x_id = 0) in; /* 4 subgroups, or 16 if OWN is 16 */
layout(constant_id = 1) const uint TYPE_K = 0;
layout(constant_id = 2) const uint TYPE_V = 0;
layout(constant_id = 3) const uint E = 1; /* dimensions of values: up to 256 */
layout(constant_id = 4) const uint D = 1; /* dimensions of keys */
layout(constant_id = 5) const uint OPTIONS = 0;
layout(constant_id = 6) const uint M = 16; /* the device's matrices: M x K by K x N */
layout(constant_id = 7) const uint N = 16;
layout(constant_id = 8) const uint K = 16;
layout(constant_id = 9) const bool EXACT_HALF = false; /* the feature half */
layout(constant_id = 10) const uint OWN = 32;

#define CONVERTS_HALF EXACT_HALF
#define TILE 64
#include "attend.glsl"
#include "kinds.h"
#include "attend_seen.glsl"

layout(set = 0, binding = 0) readonly buffer Halves { uvec4 halves[]; };

const uint LOCAL = gl_WorkGroupSize.x, FOURS = PAGE / 4;
const uint SUBGROUPS_DOWN = TILE / OWN, DOWN = OWN / M, ACROSS = OWN / N; /* matrices of a subgroup's elements */

/* Shared memory, in f16, four at a time. It has two slabs: | keys: 32 dimensions of 64 positions |
 * queries: 64 of 32 dimensions |; then f32 scores; then weights and two pieces of values; and at the end
 * f32 results. A row has some bytes more, so that eight rows begin in different banks. */
const uint DEEP = 32, K_PITCH = FOURS + 2, Q_PITCH = DEEP / 4 + 2, QUERIES_AT = DEEP * K_PITCH,
           SLAB = QUERIES_AT + TILE * Q_PITCH;
const uint S_PITCH = 2 * FOURS + 2;
const uint WIDE = 64, P_PITCH = FOURS + 2, V_PITCH = WIDE / 4 + 2, VALUES_AT = TILE * P_PITCH,
           PIECE = DEEP * V_PITCH, FACTORS_AT = VALUES_AT + PIECE;

shared uvec2 area[2 * SLAB];

/* Units that an invocation brings: words of keys, of four or eight positions; eight dimensions of a
 * query; and words of values: several positions at once if they are side by side. */
const uint K_UNITS = CODES_K ? K_BLOCK * FOURS : DEEP * PAGE / 8, K_LOADS = (K_UNITS + LOCAL - 1) / LOCAL,
           Q_UNITS = TILE * DEEP / 8, Q_LOADS = (Q_UNITS + LOCAL - 1) / LOCAL;
const bool FOUR_AT_ONCE = IN_KEYS || CODES_V;
const uint WIDE_UNITS = WIDE / 4 / HALF_V, V_UNITS = WIDE_UNITS * DEEP / (FOUR_AT_ONCE ? 4 : 1),
           V_LOADS = (V_UNITS + LOCAL - 1) / LOCAL, STRIPS = (E + WIDE - 1) / WIDE;

/* Invocations that share a query's scores, and how many queries each has a share of. */
const uint TEAM = LOCAL > TILE ? LOCAL / TILE : 1, SHARES = LOCAL > TILE ? 1 : TILE / LOCAL,
           SHARE = FOURS / TEAM, OWN_SCORES = SHARES * SHARE;

shared float part[TILE * TEAM];
shared float power[TILE];  /* by which a query was divided */
shared float down[TILE];   /* factors of the sums so far */
shared vec2 result[TILE];  /* factors of the results */
shared uint grew;          /* the last page in which one of them was not 1 */
shared uint odd[2];        /* the last piece in each place that has values which are not finite */

float top[SHARES], total[SHARES]; /* largest score; sum of own weights */
uint query_from[Q_LOADS];
uint n_pages, n_pieces;           /* so far */

#include "matrices.glsl"

/* A subgroup has up to 32 by 32 elements of the scores, and of each strip of the sums. */
#define EACH_OF_STRIPS(DO) EACH_OF_FOUR(DO, 0) EACH_OF_FOUR(DO, 1) EACH_OF_FOUR(DO, 2) EACH_OF_FOUR(DO, 3)
#define DECLARE_SCORE(i, j, c) SUMS score_##i##j;
#define DECLARE_SUM(i, j, c)   SUMS sum_##c##i##j;
EACH_OF_FOUR(DECLARE_SCORE, 0)
EACH_OF_STRIPS(DECLARE_SUM)

/* Weights are 2^14 times the exponentials, so that small ones are not 0 as f16. */
const float UNIT = 16384;

uvec2 to_halves(vec4 v) {
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

/* The subgroup's part of the 64 x 64 elements of a product. */
uint own_row() {
    return gl_SubgroupID % SUBGROUPS_DOWN * OWN;
}

uint own_column() {
    return gl_SubgroupID / SUBGROUPS_DOWN * OWN;
}

/* --- queries ---------------------------------------------------------------------------------- */

const uint Q_POWER = (D + HALVES_DEEP - 1) / HALVES_DEEP * (HALVES_DEEP / 8); /* where a query's power is (linear_halves.comp) */

#define CLEAR_SUM(i, j, c)                                                                                             \
    if (i < DOWN && j < ACROSS && c < STRIPS)                                                                          \
        sum_##c##i##j = SUMS(0);

/* Sets up the queries from pair `first` on, among those that read this head of the store. */
void set_queries(uint first, uint store_head) {
    barrier();
    for (uint q = me(); q < TILE; q += LOCAL) {
        set_seen(first, q);
        power[q] = uintBitsToFloat(halves[query_at(min(first + q, n_pairs() - 1), store_head) + Q_POWER].x);
    }
    if (me() == 0)
        grew = odd[0] = odd[1] = 0;
    n_pages = n_pieces = 0;
    [[unroll]] for (uint i = 0; i < Q_LOADS; i++) {
        uint o = me() + i * LOCAL;
        query_from[i] = query_at(min(first + o / (DEEP / 8), n_pairs() - 1), store_head) + o % (DEEP / 8);
    }
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        top[i] = -INFINITY;
        total[i] = 0;
    }
    EACH_OF_STRIPS(CLEAR_SUM)
    barrier();
}

/* --- scores ----------------------------------------------------------------------------------- */

struct slab {
    uvec4 key[K_LOADS];
    uvec2 scales[K_LOADS];
    uvec4 query[Q_LOADS];
};

/* Loads the own words of slab i. Keys of f16 past the last dimension become 0. */
void load_slab(uint page, uint number, out slab s) {
    [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
        uint o = me() + i * LOCAL, dim = number * DEEP + o / 8;
        s.key[i] = uvec4(0);
        s.scales[i] = uvec2(0);
        if (o >= K_UNITS)
            continue;
        if (CODES_K) {
            s.key[i] = key_words(page, number * K_BLOCK + o / FOURS, o % FOURS);
            s.scales[i] = key_scales(page, number, o % FOURS);
        } else if (dim < D) {
            s.key[i] = keys4[(page + element_at(F16, true, D, o % 8 * 8, dim)) >> 4];
        }
    }
    [[unroll]] for (uint i = 0; i < Q_LOADS; i++)
        s.query[i] = halves[query_from[i] + number * (DEEP / 8)];
}

void put_eight(uint at, uvec4 w) {
    area[at] = w.xy;
    area[at + 1] = w.zw;
}

void put_slab(uint to, slab s) {
    [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
        uint o = me() + i * LOCAL;
        if (o >= K_UNITS)
            continue;
        if (CODES_K)
            [[unroll]] for (uint j = 0; j < 4 * HALF_K; j++)
                area[to + (o / FOURS * 4 + j / 4 * 16 + j % 4) * K_PITCH + o % FOURS] =
                    to_halves(key_four(s.key[i], s.scales[i], j / 4, j % 4));
        else
            put_eight(to + o / 8 * K_PITCH + o % 8 * 2, s.key[i]);
    }
    [[unroll]] for (uint i = 0; i < Q_LOADS; i++) {
        uint o = me() + i * LOCAL;
        if (o < Q_UNITS)
            put_eight(to + QUERIES_AT + o / (DEEP / 8) * Q_PITCH + o % (DEEP / 8) * 2, s.query[i]);
    }
}

#define LOAD_QUERIES(i, k)                                                                                             \
    LEFT left_##i;                                                                                                     \
    if (i < DOWN)                                                                                                      \
        coopMatLoad(left_##i, area, from + QUERIES_AT + (own_row() + i * M) * Q_PITCH + k / 4, Q_PITCH,                \
                    gl_CooperativeMatrixLayoutRowMajor);
#define MULTIPLY_QUERIES(i, j, c)                                                                                      \
    if (i < DOWN)                                                                                                      \
        score_##i##j = coopMatMulAdd(left_##i, right, score_##i##j);
#define MULTIPLY_KEYS(j, k)                                                                                            \
    if (j < ACROSS) {                                                                                                  \
        RIGHT right;                                                                                                   \
        coopMatLoad(right, area, from + k * K_PITCH + (own_column() + j * N) / 4, K_PITCH,                             \
                    gl_CooperativeMatrixLayoutRowMajor);                                                               \
        EACH_DOWN(MULTIPLY_QUERIES, j, 0)                                                                              \
    }

void multiply_slab(uint from) {
    [[unroll]] for (uint k = 0; k < DEEP; k += K) {
        LOAD_QUERIES(0, k) LOAD_QUERIES(1, k) LOAD_QUERIES(2, k) LOAD_QUERIES(3, k)
        MULTIPLY_KEYS(0, k) MULTIPLY_KEYS(1, k) MULTIPLY_KEYS(2, k) MULTIPLY_KEYS(3, k)
    }
}

#define CLEAR_SCORE(i, j, c)                                                                                           \
    if (i < DOWN && j < ACROSS)                                                                                        \
        score_##i##j = SUMS(0);
#define STORE_SCORE(i, j, c)                                                                                           \
    if (i < DOWN && j < ACROSS)                                                                                        \
        coopMatStore(score_##i##j, area, (own_row() + i * M) * S_PITCH + (own_column() + j * N) / 2, S_PITCH,          \
                     gl_CooperativeMatrixLayoutRowMajor);

/* Multiplies all queries by the keys of a page, into shared memory. */
void multiply_keys(uint page) {
    slab next;
    uint n = (D + DEEP - 1) / DEEP, at = 0;
    load_slab(page, 0, next);
    EACH_OF_FOUR(CLEAR_SCORE, 0)
    barrier(); /* values of the page before are no longer needed */
    put_slab(at, next);
    barrier();
    [[dont_unroll]] for (uint i = 0; i < n; i++) {
        if (i + 1 < n)
            load_slab(page, i + 1, next);
        multiply_slab(at);
        at = SLAB - at;
        if (i + 1 < n)
            put_slab(at, next);
        barrier();
    }
    EACH_OF_FOUR(STORE_SCORE, 0)
    barrier();
}

/* --- weights ---------------------------------------------------------------------------------- */

uint share_query(uint i) {
    return me() / TEAM + i * (LOCAL / TEAM);
}

uint share_four(uint k) {
    return k * TEAM + me() % TEAM;
}

/* Finishes own scores; hidden ones are -infinity. */
void get_scores(uint first, uint store_head, int begin, out vec4 s[OWN_SCORES]) {
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        uint q = share_query(i), pair = min(first + q, n_pairs() - 1);
        float most = top[i];
        [[unroll]] for (uint k = 0; k < SHARE; k++) {
            uint at = q * S_PITCH + 2 * share_four(k);
            vec4 x = uintBitsToFloat(uvec4(area[at], area[at + 1])) * power[q];
            [[unroll]] for (uint j = 0; j < 4; j++) {
                int p = begin + int(4 * share_four(k) + j);
                x[j] = sees(q, p) ? score_of(x[j], token_of(pair), head_of(pair, store_head), q_last[q], p)
                                  : -INFINITY;
                most = larger(most, x[j]);
            }
            s[i * SHARE + k] = x;
        }
        part[q * TEAM + me() % TEAM] = most;
    }
    barrier();
}

/* Turns scores into weights, and finds by which factors the sums so far must be scaled down. Weights
 * are added up as they are multiplied: rounded. */
void set_weights(int begin, vec4 s[OWN_SCORES]) {
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        uint q = share_query(i);
        float now = top[i];
        for (uint k = 0; k < TEAM; k++)
            now = larger(now, part[q * TEAM + k]);
        float by = now == top[i] ? 1 : exp_of(top[i] - now), all = 0;
        [[unroll]] for (uint k = 0; k < SHARE; k++) {
            vec4 w;
            [[unroll]] for (uint j = 0; j < 4; j++)
                w[j] = sees(q, begin + int(4 * share_four(k) + j)) ? UNIT * exp_of(s[i * SHARE + k][j] - now) : 0;
            uvec2 h = to_halves(w);
            vec2 a = unpackHalf2x16(h.x), b = unpackHalf2x16(h.y);
            all += (a.x + a.y) + (b.x + b.y);
            area[q * P_PITCH + share_four(k)] = h;
        }
        total[i] = total[i] * by + all;
        top[i] = now;
        if (me() % TEAM == 0)
            down[q] = by;
        if (by != 1)
            grew = n_pages;
    }
}

#define LOAD_FACTORS(i)                                                                                                \
    SUMS by_##i;                                                                                                       \
    if (i < DOWN)                                                                                                      \
        coopMatLoad(by_##i, area, FACTORS_AT + (own_row() + i * M) * (N / 2), N / 2, gl_CooperativeMatrixLayoutRowMajor);
#define SCALE_SUM(i, j, c)                                                                                             \
    if (i < DOWN && j < ACROSS && c < STRIPS)                                                                          \
        sum_##c##i##j *= by_##i;

/* Scales the sums so far. Which invocation has which element is the device's secret, so they are
 * multiplied, element by element, by matrices whose rows have one number each. */
void scale_sums() {
    for (uint o = me(); o < TILE * N / 2; o += LOCAL)
        area[FACTORS_AT + o] = floatBitsToUint(vec2(down[o / (N / 2)]));
    barrier();
    LOAD_FACTORS(0) LOAD_FACTORS(1) LOAD_FACTORS(2) LOAD_FACTORS(3)
    EACH_OF_STRIPS(SCALE_SUM)
    barrier();
}

#include "attend_matrix_values.glsl"

/* --- tiles ------------------------------------------------------------------------------------ */

/* Processes a page: positions lo .. hi of it are those that some query sees. */
void one_page(uint first, uint store_head, uint row, int begin, uint lo, uint hi, bool edge) {
    vec4 s[OWN_SCORES];
    four_words v[V_LOADS];
    piece p = piece(IN_KEYS ? key_page(row) : value_page(row), lo / DEEP * DEEP, 0, lo, hi, edge, 0,
                    n_pieces + 1);
    multiply_keys(key_page(row));
    load_piece(p, v);
    n_pages++;
    get_scores(first, store_head, begin, s);
    set_weights(begin, s);
    put_piece(p, FINITE, v);
    barrier();
    if (grew == n_pages)
        scale_sums();
    add_values(p, v);
}

/* Processes the positions that the queries see, as far as they belong to `span`. */
void pages_of(uint first, uint slot, uint store_head, uint span) {
    seen all = all_seen(span);
    for (uint number = all.number; number <= all.last; number++) {
        int begin = int(number * PAGE);
        one_page(first, store_head, page_row(slot, store_head, number), begin,
                 uint(max(all.from - begin, 0)), uint(min(all.to - begin, int(PAGE) - 1)),
                 is_edge(all, begin));
    }
}

/* Adds up the totals of the queries, and finds the factors of their results. */
void finish_totals(uint first, uint store_head, uint span) {
    [[unroll]] for (uint i = 0; i < SHARES; i++)
        part[share_query(i) * TEAM + me() % TEAM] = total[i];
    barrier();
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        uint q = share_query(i), pair = first + q;
        if (me() % TEAM != 0 || pair >= n_pairs())
            continue;
        float all = 0;
        for (uint k = 0; k < TEAM; k++)
            all += part[q * TEAM + k];
        all /= UNIT;
        result[q] = SPLIT ? vec2(1, all) : factors(token_of(pair), head_of(pair, store_head), top[i], all);
        if (SPLIT)
            store_total(token_of(pair), head_of(pair, store_head), span, top[i], all);
    }
}

#define PUT_SUM(i, j, c)                                                                                               \
    if (i < DOWN && j < ACROSS)                                                                                        \
        coopMatStore(sum_##c##i##j, area, (own_row() + i * M) * S_PITCH + (own_column() + j * N) / 2, S_PITCH,         \
                     gl_CooperativeMatrixLayoutRowMajor);
#define STORE_STRIP(c)                                                                                                 \
    if (c < STRIPS) {                                                                                                  \
        barrier();                                                                                                     \
        EACH_OF_FOUR(PUT_SUM, c)                                                                                       \
        barrier();                                                                                                     \
        store_strip(c, first, store_head, span);                                                                       \
    }

/* Stores strip c, which is in shared memory. */
void store_strip(uint c, uint first, uint store_head, uint span) {
    for (uint o = me(); o < TILE * (WIDE / 4); o += LOCAL) {
        uint q = o / (WIDE / 4), four = o % (WIDE / 4), pair = first + q, at = q * S_PITCH + 2 * four;
        if (pair < n_pairs() && !(SPLIT && result[q].y == 0))
            store_four(token_of(pair), head_of(pair, store_head), span, c * WIDE + 4 * four,
                       uintBitsToFloat(uvec4(area[at], area[at + 1])) / UNIT, result[q]);
    }
}

/* Stores the sums, strip by strip, through shared memory. */
void store_results(uint first, uint store_head, uint span) {
    STORE_STRIP(0) STORE_STRIP(1) STORE_STRIP(2) STORE_STRIP(3)
}

void main() {
    uint n_tiles = (n_pairs() + TILE - 1) / TILE, n = n_tiles * n_store_heads * n_spans;
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x) {
        uint span = u % n_spans, store_head = u / n_spans % n_store_heads,
             first = u / n_spans / n_store_heads * TILE;
        if (!in_one_slot(first))
            continue;
        uint slot = n_slots == 1 ? 0 : uint(slots[slot_at + token_of(first) * slot_step]);
        set_queries(first, store_head);
        pages_of(first, slot, store_head, span);
        finish_totals(first, store_head, span);
        store_results(first, store_head, span);
    }
}
