#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

/* Merges the partial results of the spans of attend.comp. A workgroup of 64 takes a head of a
 * token: each invocation adds up four dimensions of some spans, in order; then these sums are added
 * in order. A span whose sum is 0 saw no position, and has no weighted sums. With ROUND the result is rounded to
 * bytes: a head has whole blocks, so nobody waits for other workgroups. */

layout(local_size_x_id = 0) in; /* 64 */
layout(constant_id = 1) const bool SINKS = false;
layout(constant_id = 2) const uint E = 1; /* dimensions */
layout(constant_id = 3) const bool ROUND = false;

layout(set = 0, binding = 0) readonly buffer Partial { float partial[]; };
layout(set = 0, binding = 0) readonly buffer Sums { vec4 sums[]; };
layout(set = 0, binding = 1) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float y[]; }; /* or, with ROUND: */
layout(set = 0, binding = 2) writeonly buffer Blocks { uvec4 blocks[]; };

layout(push_constant) uniform Push {
    uint n_heads, n_batch, n_spans;
    uint partial_at, sums_at; /* sums_at: in vectors */
    uint sinks_at, sinks_step[2], y_at, y_step[2];
};

#include "functions.glsl"

const uint L = 64, MOST_SPANS = 256, AHEAD = 8;
const uint UNITS = (E + 3) / 4, TEAM = UNITS < L ? UNITS : L, TEAMS = L / TEAM;

shared float factor[MOST_SPANS]; /* of the sums of a span; 0: no position was visible in it */
shared float part[L];
shared vec4 sum[L];
shared float rounded[ROUND ? 4 * L : 1]; /* the results of a turn, before they are rounded */

uint me() {
    return gl_LocalInvocationID.x;
}

float larger(float a, float b) {
    return b > a ? b : a;
}

/* Reduces part[first .. first + 7] to the largest, or the sum if `add`. */
float of_eight(bool add, uint first) {
    float x = part[first];
    [[unroll]] for (uint i = 1; i < 8; i++)
        x = add ? x + part[first + i] : larger(x, part[first + i]);
    return x;
}

/* The same for a number of each invocation. */
float across(bool add, float x) {
    barrier();
    part[me()] = x;
    barrier();
    x = of_eight(add, me() / 8 * 8);
    barrier();
    if (me() % 8 == 0)
        part[me() / 8] = x;
    barrier();
    return of_eight(add, 0);
}

uint n_used; /* spans up to the last one with positions: the first ones, as each has the same number of pages */

/* Sets n_used and the factors of these spans, and returns the sum of all weights. */
float set_factors(uint at, float sink) {
    float top = sink, total = 0, used = 0;
    for (uint s = me(); s < n_spans; s += L)
        top = larger(top, partial[at + 2 * s]);
    top = across(false, top);
    for (uint s = me(); s < n_spans; s += L) {
        float all = partial[at + 2 * s + 1], down = all == 0 ? 0 : exp_of(partial[at + 2 * s] - top);
        factor[s] = down;
        total += all == 0 ? 0 : all * down;
        used = all == 0 ? used : float(s + 1);
    }
    n_used = uint(across(false, used));
    return across(true, total) + (SINKS ? exp_of(sink - top) : 0);
}

/* Adds up a unit of every TEAMS-th span. A factor of 0 also means that a score is far below the
 * largest. */
vec4 add_spans(uint at, uint team) {
    vec4 all = vec4(0);
    for (uint first = team; first < n_used; first += TEAMS * AHEAD) {
        vec4 x[AHEAD];
        [[unroll]] for (uint i = 0; i < AHEAD; i++)
            x[i] = sums[at + min(first + i * TEAMS, n_used - 1) * UNITS];
        [[unroll]] for (uint i = 0; i < AHEAD; i++) {
            uint s = first + i * TEAMS;
            float by = s < n_used ? factor[s] : 0;
            all += by == 0 ? vec4(0) : x[i] * by;
        }
    }
    return all;
}

float number(uint i) {
    return rounded[i];
}

#include "round.glsl"

/* Stores the results of unit `unit`, one of the team's turn that begins with unit `first`. */
void store(uint u, uint first, uint unit, vec4 v) {
    uint at = y_at + u % n_heads * y_step[0] + u / n_heads * y_step[1] + 4 * unit;
    for (uint i = 0; i < 4; i++)
        if (ROUND)
            rounded[4 * (unit - first) + i] = v[i];
        else if (4 * unit + i < E)
            y[at + i] = v[i];
}

/* Rounds the results of a turn. */
void round_turn(uint u, uint first) {
    uint n = min(TEAM, UNITS - first) * 4 / BLOCK;
    barrier();
    if (me() < n)
        round_block(BLOCK * me(), y_at / 4 + 3 * (u * (E / BLOCK) + first * 4 / BLOCK + me()));
}

void unit_of_work(uint u) {
    uint head = u % n_heads, token = u / n_heads;
    float sink = SINKS ? sinks[sinks_at + head * sinks_step[0] + token * sinks_step[1]] : -INFINITY;
    float total = set_factors(partial_at + u * n_spans * 2, sink);
    uint team = me() / TEAM;
    for (uint first = 0; first < UNITS; first += TEAM) {
        uint unit = first + me() % TEAM;
        barrier();
        if (team < TEAMS && unit < UNITS)
            sum[me()] = add_spans(sums_at + u * n_spans * UNITS + unit, team);
        barrier();
        if (team == 0 && unit < UNITS) {
            vec4 all = sum[me()];
            for (uint i = 1; i < TEAMS; i++)
                all += sum[i * TEAM + me()];
            store(u, first, unit, all / total);
        }
        if (ROUND)
            round_turn(u, first);
    }
}

void main() {
    for (uint u = gl_WorkGroupID.x; u < n_heads * n_batch; u += gl_NumWorkGroups.x)
        unit_of_work(u);
}
