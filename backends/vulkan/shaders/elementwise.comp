/* y = f(a), f(a, b) or f(a, b, c), elementwise with broadcasting. N_SRC: number of sources.
 * GATED: y = f(a) * b, which may also be rounded to blocks. */
#version 450
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KIND = 0;
#include "unary.glsl"
layout(constant_id = 2) const bool FLAT = false; /* the sources have y's shape and are dense */
#ifdef GATED
layout(constant_id = 3) const bool ROUND = false;
layout(constant_id = 4) const bool STORE = true; /* false: only the rounded result is stored */
#endif

layout(binding = 0) writeonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer A { float a[]; };
#if N_SRC > 1
layout(binding = 2) readonly buffer B { float b[]; };
#endif
#if N_SRC > 2
layout(binding = 3) readonly buffer C { float c[]; };
#endif

#ifdef GATED
layout(binding = 3) writeonly buffer Blocks { uvec4 blocks[]; };
#endif

struct Source {
    uint at, stride[4];
};

layout(push_constant) uniform Push {
    uint count, y_at, ne[3];
    Source source[N_SRC];
#ifdef GATED
    uint blocks_at;
#endif
};

float binary(float u, float v) {
    bool number = !is_nan(u) && !is_nan(v);
    switch (KIND) {
    case EW_ADD: return u + v;
    case EW_SUB: return u - v;
    case EW_MUL: return u * v;
    case EW_DIV: return divided_fully(u, v);
    case EW_POW: return pow_of(u, v);
    case EW_MOD: return mod_of(u, v);
    case EW_EQ: return float(number && u == v);
    case EW_NE: return float(!number || u != v);
    case EW_LT: return float(number && u < v);
    case EW_LE: return float(number && u <= v);
    case EW_GT: return float(number && u > v);
    case EW_GE: return float(number && u >= v);
    case EW_MIN: return min_of(u, v);
    default: return max_of(u, v); /* EW_MAX */
    }
}

uint address(uint k, uint e) {
    uint at = source[k].at;
    if (FLAT)
        return at + e;
    at += e % ne[0] * source[k].stride[0];
    e /= ne[0];
    at += e % ne[1] * source[k].stride[1];
    e /= ne[1];
    return at + e % ne[2] * source[k].stride[2] + e / ne[2] * source[k].stride[3];
}

float value(uint e) {
#if N_SRC == 1
    return KIND == EW_IOTA ? float(e % ne[0]) : unary(a[address(0, e)]);
#elif defined(GATED)
    precise float u = unary(a[address(0, e)]);
    precise float v = u * b[address(1, e)];
    return v;
#elif N_SRC == 2
    return binary(a[address(0, e)], b[address(1, e)]);
#else
    return is_zero(a[address(0, e)]) ? c[address(2, e)] : b[address(1, e)];
#endif
}

#ifdef GATED
float number(uint i) {
    return value(i);
}

#include "round.glsl"

/* Rounds block u. The result may lie over a source of the same elements, so it is stored last. */
void block(uint u) {
    round_block(BLOCK * u, blocks_at / 4 + 3 * u);
    for (uint e = BLOCK * u; STORE && e < BLOCK * u + BLOCK; e++)
        y[y_at + e] = value(e);
}
#endif

void main() {
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
#ifdef GATED
    for (uint u = gl_GlobalInvocationID.x; ROUND && u < count / BLOCK; u += step)
        block(u);
    if (ROUND)
        return;
#endif
    for (uint e = gl_GlobalInvocationID.x; e < count; e += step)
        y[y_at + e] = value(e);
}
