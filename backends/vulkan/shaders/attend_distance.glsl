/* What depends on the distance from a query to a key: biases, and rows of relative positions (docs/ops.md, attend). Included by
 * attend.comp and attend_tiles.comp, after attend.glsl. */

const bool BIAS = (OPTIONS & 4096) != 0, REL_K = (OPTIONS & 8192) != 0, REL_Q = (OPTIONS & 16384) != 0,
           RELATIVE = REL_K || REL_Q;

layout(constant_id = 8) const uint BIAS_MOST = 0; /* there are biases for the distances -BIAS_MOST .. BIAS_MOST, .. */
layout(constant_id = 9) const uint BIAS_STEP = 0; /* .. and this is the stride between those of two heads */
layout(constant_id = 10) const uint REL_MOST = 0; /* the same of numbers of rows, which are the same for all heads */
layout(constant_id = 11) const uint REL_ROWS = 0; /* rows of a table */
layout(constant_id = 12) const uint REL_K_STEP = 0; /* strides between rows, and between tables of heads (0: there is one table) */
layout(constant_id = 13) const uint REL_K_HEAD = 0;
layout(constant_id = 14) const uint REL_Q_STEP = 0;
layout(constant_id = 15) const uint REL_Q_HEAD = 0;

layout(set = 0, binding = 10) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 11) readonly buffer RelK { float rel_k[]; };
layout(set = 0, binding = 11) readonly buffer RelK4 { vec4 rel_k4[]; };
layout(set = 0, binding = 12) readonly buffer RelQ { float rel_q[]; };
layout(set = 0, binding = 12) readonly buffer RelQ4 { vec4 rel_q4[]; };
layout(set = 0, binding = 13) readonly buffer RelRow { float rel_row[]; };

/* Returns the index of a distance among those of -m .. m; farther ones are as m. */
uint index_of(int distance, uint most) {
    int m = int(most);
    return uint(m + clamp(distance, -m, m));
}

float biased_score_of(float product, uint token, uint head, int pos, int p) {
    float s = score_of(product, token, head, pos, p);
    return BIAS ? s + bias[(begins >> 8 & 0xff) + head * BIAS_STEP + index_of(p - pos, BIAS_MOST)] : s;
}

/* Returns the row of the distance in the tables, as ggl_relative_row does. */
uint row_of(int distance) {
    float x = rel_row[rel_row_at + index_of(distance, REL_MOST)];
    return is_nan(x) || x < 0 ? 0 : x >= float(REL_ROWS) ? REL_ROWS - 1 : uint(x);
}

const bool WHOLE = D % 4 == 0, FOURS_OF_K = WHOLE && (REL_K_STEP | REL_K_HEAD) % 4 == 0,
           FOURS_OF_Q = WHOLE && (REL_Q_STEP | REL_Q_HEAD) % 4 == 0;

/* Return four numbers of a row from `at` on; what is past the n that are left of it is 0. */
vec4 four_of_k(uint at, uint n) {
    if (FOURS_OF_K && (begins >> 16 & 3) == 0)
        return rel_k4[at >> 2];
    vec4 v = vec4(0);
    [[unroll]] for (uint j = 0; j < 4; j++)
        if (WHOLE || j < n)
            v[j] = rel_k[at + j];
    return v;
}

vec4 four_of_q(uint at, uint n) {
    if (FOURS_OF_Q && (begins >> 24 & 3) == 0)
        return rel_q4[at >> 2];
    vec4 v = vec4(0);
    [[unroll]] for (uint j = 0; j < 4; j++)
        if (WHOLE || j < n)
            v[j] = rel_q[at + j];
    return v;
}

/* Returns what relative positions add to the products of a query and four keys of a page, the first of which is at this
 * distance: the row of the distance in rel_k times the query, and that in rel_q times the key. Four dimensions are loaded at once,
 * because the rows of neighboring invocations are far apart. */
vec4 relative(uint k_page, uint four, uint store_head, uint pair, int distance) {
    const uint rows = CODES_K ? 1 : 4; /* of the page, that have four dimensions */
    vec4 by_query = vec4(0), by_key = vec4(0);
    uint from = query_at(pair, store_head), at_k[4], at_q[4];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint row = row_of(distance + int(i));
        at_k[i] = (begins >> 16 & 0xff) + store_head * REL_K_HEAD + row * REL_K_STEP;
        at_q[i] = (begins >> 24) + store_head * REL_Q_HEAD + row * REL_Q_STEP;
    }
    [[dont_unroll]] for (uint t = 0; t < K_ROWS; t += rows) {
        uvec4 w[rows];
        [[unroll]] for (uint j = 0; j < rows; j++)
            w[j] = REL_Q ? key_words(k_page, min(t + j, K_ROWS - 1), four) : uvec4(0);
        uvec2 scales = REL_Q && CODES_K ? key_scales(k_page, t / K_BLOCK, four) : uvec2(0);
        [[unroll]] for (uint h = 0; h < HALF_K; h++) {
            uint dim = key_dim(t, h, 0), n = D - dim;
            vec4 q = vec4(0);
            [[unroll]] for (uint j = 0; j < 4; j++)
                if (REL_K && (WHOLE || j < n))
                    q[j] = queries[from + dim + j];
            [[unroll]] for (uint i = 0; i < 4; i++) {
                vec4 key = vec4(0); /* of position i */
                [[unroll]] for (uint j = 0; j < 4; j++)
                    if (REL_Q && (WHOLE || j < n))
                        key[j] = key_four(w[CODES_K ? 0 : j], scales, h, CODES_K ? j : 0)[i];
                if (REL_K)
                    by_query[i] += dot(q, four_of_k(at_k[i] + dim, n));
                if (REL_Q)
                    by_key[i] += dot(key, four_of_q(at_q[i] + dim, n));
            }
        }
    }
    return by_query + by_key;
}
