/* The choice of experts, and their shares: one workgroup per token. Scores are functions of x, or a softmax of it. The indices
 * of the largest of them go to e, in order; for this choice alone a bias may be added. The scores of the chosen, which may
 * instead be read from a table, go to w, after a softmax or a function, a division by their sum, and a multiplication.
 * Each of these steps is computed as the shader that has it alone does. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "order.glsl"
#include "kinds.h"

layout(constant_id = 1) const uint FIRST = ROUTE_NONE; /* what makes scores of x: */
layout(constant_id = 2) const uint SECOND = ROUTE_NONE; /* ROUTE_SOFTMAX and functions, one after the other */
layout(constant_id = 3) const bool BIAS = false;
layout(constant_id = 4) const bool TABLE = false; /* shares are read from the table, not from the scores */
layout(constant_id = 5) const uint SHARES = ROUTE_NONE; /* what is done to them */
layout(constant_id = 6) const bool SUM = false; /* they are divided by their sum, */
layout(constant_id = 7) const uint LEAST = ROUTE_NONE; /* to which something is added, or which is at least that (EW_ADD, EW_MAX) */
layout(constant_id = 8) const bool TIMES = false;

layout(binding = 0) writeonly buffer E { int e[]; };
layout(binding = 1) writeonly buffer W { float w[]; };
layout(binding = 2) readonly buffer X { float x[]; };
layout(binding = 3) readonly buffer Bias { float bias[]; };
layout(binding = 4) readonly buffer Table { float table[]; };
layout(binding = 5) readonly buffer Least { float least[]; };
layout(binding = 6) readonly buffer Times { float times[]; };

/* Where an operand is, and its strides along an element and a token. */
struct Place {
    uint at, stride[2];
};

layout(push_constant) uniform Push {
    uint rows, n, k; /* tokens, scores, chosen ones */
    Place to_e, to_w, of_x, of_bias, of_table, of_least, of_times;
};

const uint MOST = 1024u, MOST_CHOSEN = 32u; /* op_route.c refuses more */
shared float value[MOST + MOST_CHOSEN]; /* the scores, then the shares */
shared uvec4 keys[MOST / 4u];
shared uint chosen[MOST_CHOSEN];

uint address(Place p, uint i, uint row) {
    return p.at + i * p.stride[0] + row * p.stride[1];
}

/* The part of value[] that the functions below are about. */
uint from, size;

uint row_size() {
    return size;
}

float element(uint i) {
    return value[from + i];
}

void store_number(uint i, float v) {
    value[from + i] = v;
}

float stored_number(uint i) {
    return value[from + i];
}

#include "softmax.glsl"

#define KIND  FIRST
#define unary first_function
#include "unary.glsl"
#undef KIND
#undef unary
#define KIND  SECOND
#define unary second_function
#include "unary.glsl"
#undef KIND
#undef unary
#define KIND  SHARES
#define unary share_function
#include "unary.glsl"

void scores(uint row) {
    from = 0u, size = n;
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        float v = x[address(of_x, i, row)];
        value[i] = FIRST < ROUTE_NONE ? first_function(v) : v;
    }
    if (FIRST == ROUTE_SOFTMAX)
        softmax();
    for (uint i = gl_LocalInvocationID.x; i < n && SECOND < ROUTE_NONE; i += gl_WorkGroupSize.x)
        value[i] = second_function(value[i]);
    if (SECOND == ROUTE_SOFTMAX)
        softmax();
}

/* Returns the key of score i, bias included; 0 after the last one, as of NaN. No key is the largest number. */
uint key_of_score(uint i, uint row) {
    if (i >= n)
        return 0u;
    precise float v = value[i];
    if (BIAS)
        v += bias[address(of_bias, i, row)];
    return key_of(v, NAN_LAST);
}

/* Returns how many scores come before score i: larger ones, and equal ones with a smaller index. */
uint place_of(uint i) {
    uint mine = keys[i / 4u][i % 4u];
    uvec4 before = uvec4(0u);
    for (uint j = 0u; j < n; j += 4u) {
        uvec4 later = uvec4(greaterThanEqual(j + uvec4(0u, 1u, 2u, 3u), uvec4(i)));
        before += uvec4(greaterThanEqual(keys[j / 4u], mine + later));
    }
    return before.x + before.y + (before.z + before.w);
}

/* Finds the k largest scores: among equals the earlier first, NaN last. Each invocation counts what comes before its own. */
void choose(uint row) {
    for (uint i = gl_LocalInvocationID.x; i < (n + 3u) / 4u * 4u; i += gl_WorkGroupSize.x)
        keys[i / 4u][i % 4u] = key_of_score(i, row);
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        uint place = place_of(i);
        if (place < k) {
            chosen[place] = i;
            e[address(to_e, place, row)] = int(i);
        }
    }
    barrier();
}

/* Returns the sum of the shares, by reduce.comp's order for a row that is this short. */
float short_sum() {
    float s = 0.0;
    for (uint i = 0u; i < k; i++)
        s += value[n + i];
    return s;
}

/* Returns the sum of the shares, by rows.comp's order. */
float group_sum_of_shares() {
    precise float s = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < k; i += gl_WorkGroupSize.x)
        s += value[n + i];
    return group_sum(s);
}

void shares(uint row) {
    from = n, size = k;
    for (uint i = gl_LocalInvocationID.x; i < k; i += gl_WorkGroupSize.x) {
        float v = TABLE ? table[address(of_table, chosen[i], row)] : value[chosen[i]];
        value[n + i] = SHARES < ROUTE_NONE ? share_function(v) : v;
    }
    if (SHARES == ROUTE_SOFTMAX)
        softmax();
    float by = 1.0;
    if (SHARES == ROUTE_NORMALISED)
        by = group_sum_of_shares();
    if (SUM) {
        barrier();
        by = short_sum();
        if (LEAST == EW_ADD)
            by += least[address(of_least, 0u, row)];
        if (LEAST == EW_MAX)
            by = max_of(by, least[address(of_least, 0u, row)]);
    }
    for (uint i = gl_LocalInvocationID.x; i < k; i += gl_WorkGroupSize.x) {
        precise float v = value[n + i];
        if (SHARES == ROUTE_NORMALISED || SUM)
            v = divided(v, by);
        if (TIMES)
            v *= times[address(of_times, i, row)];
        w[address(to_w, i, row)] = v;
    }
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        scores(row);
        choose(row);
        shares(row);
        barrier(); /* value[] is overwritten */
    }
}
