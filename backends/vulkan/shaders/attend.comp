#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#if defined(HALF) || defined(IDOT)
#extension GL_EXT_spirv_intrinsics : require
#endif

/* Softmax attention over the rows of the KV cache. A workgroup of 64 processes up to Q queries that
 * read the same head of the store (heads of one token, or of neighboring tokens), page by page:
 * each invocation computes a part of the scores of four positions, then sums up some dimensions of
 * some values. It loads many words before it uses the first of them, because a load takes far
 * longer than what is done with it. When a larger score occurs, the sums so far are scaled down.
 *
 * With IDOT there are integer dot products: of keys with codes and queries, which are rounded to bytes
 * (attend_codes.glsl), and of values with codes and weights (attend_weights.glsl).
 *
 * With SPLIT the positions are divided among n_spans workgroups, which write partial results for
 * attend_merge.comp: for each query and span | largest score | sum |, and from sums_at on the e
 * weighted sums, unless the sum is 0. */

layout(local_size_x_id = 0) in; /* 64 */
layout(constant_id = 1) const uint TYPE_K = 0;
layout(constant_id = 2) const uint TYPE_V = 0;
layout(constant_id = 3) const uint Q = 1; /* queries: a power of two up to 8 */
layout(constant_id = 4) const uint E = 1; /* dimensions of values */
layout(constant_id = 5) const uint D = 1; /* dimensions of keys */
layout(constant_id = 6) const uint OPTIONS = 0;
layout(constant_id = 7) const uint AHEAD = 4; /* loads before the first is used: 4 or 16 */

#define TILE (WIDE_TILES ? 64 : 32)
#include "attend.glsl"
#include "attend_distance.glsl"

const uint L = PAGE;                   /* invocations */
const uint FOURS = PAGE / 4;           /* of positions of a page */
const uint PARTS = L / FOURS;          /* invocations that share the scores of a four */
const uint SCORES = Q * FOURS;         /* fours of scores: 16 of each query */
const uint OWN = (SCORES + L - 1) / L; /* fours of scores of an invocation */

/* Rows of keys that are loaded before they are used. An invocation loads K_LOADS of them. */
const uint K_MOST = TYPE_K == F32 || CODES_K ? AHEAD / 2 : AHEAD,
           K_ALL = (K_ROWS + PARTS - 1) / PARTS, K_LOADS = K_ALL < K_MOST ? K_ALL : K_MOST,
           K_STEP = K_LOADS * PARTS, K_SCALES = (K_STEP + K_BLOCK - 1) / K_BLOCK;
const bool K_WHOLE = K_ROWS % K_STEP == 0;

/* Teams of invocations take fours of values in turn; an invocation of a team takes R units of each
 * value. V_FOURS are loaded before they are used. */
const uint TEAM = UNITS < L ? UNITS : L, TEAMS = L / TEAM, R = (UNITS + L - 1) / L,
           V_ALL = (FOURS + TEAMS - 1) / TEAMS,
           V_MOST = CODED_V ? AHEAD / 2 : TYPE_V == F32 && AHEAD > 4 ? AHEAD / 8 : AHEAD / 4,
           V_FOURS = V_ALL < V_MOST ? V_ALL : V_MOST;
const bool V_WHOLE = FOURS % (TEAMS * V_FOURS) == 0;

shared float q_of[CODED_K ? 1 : D * Q];   /* [dimension][query] */
shared vec4 partial[PARTS * SCORES];      /* [part][query][four]; of the results [team][unit][query] */
shared vec4 weight[CODED_V ? 1 : SCORES]; /* [query][four] */
shared float part[SCORES];
shared float down[Q];                     /* factors of the sums so far */
shared vec2 result[Q];                    /* factors of the results */
shared int q_from[Q], q_last[Q], q_slot[Q]; /* positions that queries see; last -1: no query */

float top[OWN], total[OWN]; /* of the queries of these scores: largest score; sum of own weights */
vec4 sum[Q][R * HALF_V];

/* --- scores ----------------------------------------------------------------------------------- */

#include "attend_codes.glsl"

/* Takes Q queries, which begin at at[]. */
void load_queries(uint at[Q]) {
    if (CODED_K)
        load_coded_queries(at);
    else
        for (uint i = me(); i < D; i += L)
            [[unroll]] for (uint q = 0; q < Q; q++)
                q_of[i * Q + q] = queries[at[q] + i];
}

/* Adds up the products of the queries and four keys, over every PARTS-th row of the page. */
void multiply_keys(uint page, out vec4 s[Q]) {
    if (CODED_K) {
        multiply_coded_keys(page, s);
        return;
    }
    uint four = me() % FOURS, own = me() / FOURS;
    [[unroll]] for (uint q = 0; q < Q; q++)
        s[q] = vec4(0);
    [[dont_unroll]] for (uint first = 0; first < K_ROWS; first += K_STEP) {
        uvec4 w[K_LOADS];
        uvec2 scales[K_SCALES];
        [[unroll]] for (uint b = 0; b < K_SCALES; b++)
            scales[b] = CODES_K ? key_scales(page, min(first / K_BLOCK + b, D / BLOCK - 1), four) : uvec2(0);
        [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
            uint t = first + i * PARTS + own;
            w[i] = key_words(page, K_WHOLE ? t : min(t, K_ROWS - 1), four);
        }
        [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
            uint t = first + i * PARTS + own;
            if (K_WHOLE || t < K_ROWS)
                [[unroll]] for (uint j = 0; j < HALF_K * K_DIMS; j++) {
                    vec4 k = key_four(w[i], scales[i * PARTS / K_BLOCK], j / K_DIMS, j % K_DIMS);
                    uint at = key_dim(t, j / K_DIMS, j % K_DIMS) * Q;
                    [[unroll]] for (uint q = 0; q < Q; q++)
                        s[q] += k * q_of[at + q];
                }
        }
    }
}

/* --- queries ---------------------------------------------------------------------------------- */

/* Sets up Q queries, from pair `first` on, among those that read this head of the store. */
void set_queries(uint first, uint store_head) {
    if (me() < Q) {
        uint token = token_of(min(first + me(), n_pairs() - 1));
        ivec2 rows = seen_by(token);
        q_from[me()] = rows.x;
        q_last[me()] = first + me() < n_pairs() ? rows.y : -1;
        q_slot[me()] = slots[slot_at + token * slot_step];
    }
    uint at[Q];
    [[unroll]] for (uint q = 0; q < Q; q++) {
        at[q] = query_at(min(first + q, n_pairs() - 1), store_head);
    }
    load_queries(at);
    [[unroll]] for (uint k = 0; k < OWN; k++) {
        top[k] = -INFINITY;
        total[k] = 0;
    }
    [[unroll]] for (uint q = 0; q < Q; q++)
        [[unroll]] for (uint r = 0; r < R * HALF_V; r++)
            sum[q][r] = vec4(0);
    barrier();
}

/* takes: bits of the queries that take part. */
bool sees(uint takes, uint q, int p) {
    return (takes >> q & 1) != 0 && p >= q_from[q] && p <= q_last[q];
}

#include "attend_weights.glsl"

/* --- a page ----------------------------------------------------------------------------------- */

/* Adds the parts of own scores, and finishes them; hidden ones are -infinity. Leaves the largest
 * of four in part[]. */
void set_scores(uint first, uint store_head, uint takes, uint k_page, int begin, out vec4 s[OWN]) {
    [[unroll]] for (uint k = 0; k < OWN; k++) {
        uint o = me() + k * L, q = o / FOURS, pair = min(first + q, n_pairs() - 1);
        s[k] = vec4(-INFINITY);
        if (o < SCORES) {
            vec4 all = partial[o];
            [[unroll]] for (uint i = 1; i < PARTS; i++)
                all += partial[i * SCORES + o];
            int pos = END || WITHIN ? position_of(token_of(pair)) : q_last[q];
            if (RELATIVE)
                all += relative(k_page, o % FOURS, store_head, pair, begin + int(o % FOURS * 4) - pos);
            float most = -INFINITY;
            [[unroll]] for (uint i = 0; i < 4; i++) {
                int p = begin + int(o % FOURS * 4 + i);
                if (sees(takes, q, p))
                    s[k][i] = biased_score_of(all[i], token_of(pair), head_of(pair, store_head), pos, p);
                most = larger(most, s[k][i]);
            }
            part[o] = most;
        }
    }
}

/* Turns scores into weights, and finds by which factors the sums so far must be scaled down. Weights of coded
 * values are relative to the page's largest score, so that rounding keeps what a page of small weights adds up to. */
void set_weights(uint takes, int begin, vec4 s[OWN], bool edge) {
    [[unroll]] for (uint k = 0; k < OWN; k++) {
        uint o = me() + k * L, q = o / FOURS;
        if (o < SCORES) {
            float most = CODED_V ? -INFINITY : top[k];
            [[unroll]] for (uint i = 0; i < FOURS; i++)
                most = larger(most, part[q * FOURS + i]);
            float now = CODED_V ? larger(top[k], most) : most, by = now == top[k] ? 1 : exp_of(top[k] - now),
                  up = !CODED_V || now == most ? 1 : exp_of(most - now);
            vec4 w;
            [[unroll]] for (uint i = 0; i < 4; i++)
                w[i] = sees(takes, q, begin + int(o % FOURS * 4 + i)) ? exp_of(s[k][i] - most) : 0;
            top[k] = now;
            total[k] = total[k] * by + ((w.x + w.y) + (w.z + w.w)) * up;
            if (CODED_V)
                put_weights(q, o % FOURS, w, up, edge);
            else
                weight[o] = w;
            if (o % FOURS == 0)
                down[q] = by;
        }
    }
}

/* Adds four values, times their weights; edge: as below. */
void add_four(uint four, uint r, uvec4 w[4], bool edge) {
    [[unroll]] for (uint h = 0; h < HALF_V; h++) {
        vec4 v[4];
        [[unroll]] for (uint i = 0; i < 4; i++)
            v[i] = value_of(w, i, h);
        if (edge && !(is_finite(v[0]) && is_finite(v[1]) && is_finite(v[2]) && is_finite(v[3])))
            [[dont_unroll]] for (uint i = 0; i < 4; i++) {
                vec4 x = i == 0 ? v[0] : i == 1 ? v[1] : i == 2 ? v[2] : v[3];
                [[unroll]] for (uint q = 0; q < Q; q++) {
                    float by = weight[q * FOURS + four][i];
                    sum[q][r * HALF_V + h] += by == 0 ? vec4(0) : by * x;
                }
            }
        else
            [[unroll]] for (uint q = 0; q < Q; q++) {
                vec4 by = weight[q * FOURS + four];
                [[unroll]] for (uint i = 0; i < 4; i++)
                    sum[q][r * HALF_V + h] += by[i] * v[i];
            }
    }
}

/* Adds the values of positions lo .. hi of a page, and of others near them, times their weights.
 * edge: some query does not see some rows of the page, which must then not affect its sums, even
 * if they contain NaN. */
void add_values(uint page, uint lo, uint hi, bool edge) {
    uint team = me() / TEAM, step = TEAMS * V_FOURS;
    if (team >= TEAMS)
        return;
    [[unroll]] for (uint r = 0; r < R; r++) {
        uint unit = min(r * L + me() % TEAM, UNITS - 1);
        [[dont_unroll]] for (uint first = lo / 4 / step * step; first <= hi / 4; first += step) {
            uvec4 w[V_FOURS][4];
            [[unroll]] for (uint i = 0; i < V_FOURS; i++) {
                uint four = first + i * TEAMS + team;
                load_values(page, V_WHOLE ? four : min(four, FOURS - 1), unit, w[i]);
            }
            [[unroll]] for (uint i = 0; i < V_FOURS; i++) {
                uint four = first + i * TEAMS + team;
                if (V_WHOLE || four < FOURS)
                    add_four(four, r, w[i], edge);
            }
        }
    }
}

/* Processes page `number`. lo .. hi: positions that some query sees; edge: not all of them see
 * the whole page. */
void one_page(uint pair, uint slot, uint store_head, uint takes, uint number, uint lo, uint hi,
              bool edge) {
    uint row = page_row(slot, store_head, number), k_page = key_page(row);
    int begin = int(number * PAGE);
    vec4 s[Q], own[OWN];
    uvec2 scales[V_TURNS];
    if (CODED_V)
        load_scales(value_page(row), scales);
    multiply_keys(k_page, s);
    if (CODED_V)
        put_scales(scales);
    [[unroll]] for (uint q = 0; q < Q; q++)
        partial[(me() / FOURS * Q + q) * FOURS + me() % FOURS] = s[q];
    barrier();
    set_scores(pair, store_head, takes, k_page, begin, own);
    if (CODED_V)
        set_units(takes, begin, edge);
    barrier();
    set_weights(takes, begin, own, edge);
    barrier();
    [[unroll]] for (uint q = 0; q < Q; q++)
        [[unroll]] for (uint r = 0; r < R * HALF_V; r++)
            sum[q][r] *= down[q];
    if (CODED_V)
        add_coded_values(value_page(row), lo, hi);
    else
        add_values(IN_KEYS ? k_page : value_page(row), lo, hi, edge);
}

/* Processes the positions that these queries see, as far as they belong to `span`. */
void one_slot(uint pair, uint slot, uint store_head, uint takes, uint span) {
    int first = 0x7fffffff, end = -1, all_from = 0, all_last = 0x7fffffff;
    for (uint q = 0; q < Q; q++)
        if ((takes >> q & 1) != 0) {
            first = min(first, q_from[q]);
            end = max(end, q_last[q]);
            all_from = max(all_from, q_from[q]);
            all_last = min(all_last, q_last[q]);
        } else if (q_last[q] >= 0) { /* a query of another slot */
            all_last = -1;
        }
    if (end < 0)
        return;
    uint page = uint(first) / PAGE, last_page = uint(end) / PAGE;
    if (SPLIT) {
        uint each = (last_page - page) / n_spans + 1;
        page += span * each;
        last_page = min(last_page, page + each - 1);
    }
    for (; page <= last_page; page++) {
        int begin = int(page * PAGE);
        uint lo = uint(max(first - begin, 0)), hi = uint(min(end - begin, int(PAGE) - 1));
        one_page(pair, slot, store_head, takes, page, lo, hi,
                 begin < all_from || begin + int(PAGE) - 1 > all_last);
    }
}

/* --- results ---------------------------------------------------------------------------------- */

/* Adds up the totals of the queries, and finds the factors of their results. */
void finish_totals(uint first, uint store_head, uint span) {
    [[unroll]] for (uint k = 0; k < OWN; k++)
        if (me() + k * L < SCORES)
            part[me() + k * L] = total[k];
    barrier();
    [[unroll]] for (uint k = 0; k < OWN; k++) {
        uint o = me() + k * L, q = o / FOURS, pair = min(first + q, n_pairs() - 1),
             token = token_of(pair), head = head_of(pair, store_head);
        if (o < SCORES && o % FOURS == 0) {
            float all = 0;
            for (uint i = 0; i < FOURS; i++)
                all += part[o + i];
            result[q] = SPLIT ? vec2(1, all) : factors(token, head, top[k], all);
            if (SPLIT && first + q < n_pairs())
                store_total(token, head, span, top[k], all);
        }
    }
    barrier();
}

/* Adds the sums of the teams, and stores the results. */
void store_results(uint first, uint store_head, uint span) {
    [[unroll]] for (uint r = 0; r < R; r++)
        [[unroll]] for (uint h = 0; h < HALF_V; h++) {
            [[unroll]] for (uint q = 0; q < Q; q++)
                partial[me() * Q + q] = sum[q][r * HALF_V + h];
            barrier();
            for (uint o = me(); o < TEAM * Q; o += L) {
                uint q = o % Q, unit = r * L + o / Q, pair = first + q;
                vec4 all = partial[o];
                for (uint i = 1; i < TEAMS; i++)
                    all += partial[i * TEAM * Q + o];
                if (unit < UNITS && pair < n_pairs() && !(SPLIT && result[q].y == 0))
                    store_four(token_of(pair), head_of(pair, store_head), span, unit_dim(unit, h), all,
                               result[q]);
            }
            barrier();
        }
}

/* Processes Q queries, one slot after the other. */
void group(uint first, uint store_head, uint span) {
    set_queries(first, store_head);
    uint left = (1u << Q) - 1;
    while (left != 0) {
        int slot = q_slot[findLSB(left)];
        uint takes = 0;
        for (uint q = 0; q < Q; q++)
            if ((left >> q & 1) != 0 && q_slot[q] == slot) {
                left &= ~(1u << q);
                takes |= q_last[q] >= 0 ? 1u << q : 0;
            }
        if (slot >= 0 && uint(slot) < n_slots)
            one_slot(first, uint(slot), store_head, takes, span);
    }
    finish_totals(first, store_head, span);
    store_results(first, store_head, span);
}

void main() {
    uint n_groups = (n_pairs() + Q - 1) / Q, n = n_groups * n_store_heads * n_spans;
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x) {
        uint span = u % n_spans, store_head = u / n_spans % n_store_heads,
             first = u / n_spans / n_store_heads * Q;
        if (!(MIXED && in_one_slot(first / TILE * TILE)))
            group(first, store_head, span);
    }
}
