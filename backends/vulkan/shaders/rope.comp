#version 450

/* rope_half and rope_pair: an invocation rotates one pair of elements in some rows of a token.
 *
 * The angle pos * f may be many turns; only its fraction of a turn matters. f / (2 pi) is
 * computed from the bits of a double as a fraction of 64 bits. Multiplied by pos modulo 2^64 it
 * has an error of at most 2^-32 of a turn, for pos * f below about 2^31. This needs no 64-bit
 * numbers. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool HALF = true;    /* pairs are (i, i + r), else (2 i, 2 i + 1) */
layout(constant_id = 2) const bool DOUBLES = true; /* frequencies are f64, else f32 */

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) readonly buffer Frequencies { uint freq[]; };
layout(set = 0, binding = 2) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float y[]; };

layout(push_constant) uniform Push {
    uint n, n_pairs;
    uint rows[2], n_batch; /* y's dimensions 1 and 2, and the batch */
    uint x_at, x_step[3];
    uint y_at, y_step[3];
    uint freq_at; /* words */
    uint pos_at, pos_step;
    float mag;
};

const uint ROWS = 4; /* rows that share an angle in an invocation */

/* The bits of a double: m * 2^-shift, where m has 53 bits in (hi, lo). */
struct number {
    uint hi, lo;
    int shift;
    bool minus, finite;
};

number frequency(uint i) {
    number f;
    if (DOUBLES) {
        uint lo = freq[freq_at + 2 * i], hi = freq[freq_at + 2 * i + 1], e = hi >> 20 & 0x7ff;
        bool normal = e > 0;
        f = number(normal ? hi & 0xfffff | 0x100000 : 0, normal ? lo : 0, 1075 - int(e), hi >> 31 != 0,
                   e < 0x7ff);
    } else {
        uint w = freq[freq_at + i], e = w >> 23 & 0xff, m = e > 0 ? w & 0x7fffff | 0x800000 : 0;
        f = number(m >> 3, m << 29, 1075 - 896 - int(e), w >> 31 != 0, e < 0xff);
    }
    return f;
}

/* Adds v to word `at` of a long number, and propagates the carry. */
void add_word(inout uint w[6], uint at, uint v) {
    for (; v != 0 && at < 6; at++)
        w[at] = uaddCarry(w[at], v, v);
}

/* Returns f / (2 pi) as a fraction of 2^64: x is the low word, y the high one. */
uvec2 turns_of(number f) {
    const uvec2 inverse = uvec2(0x9391054au, 0x28be60dbu); /* 2^64 / (2 pi) */
    uint w[6] = {0, 0, 0, 0, 0, 0}, hi, lo;
    for (uint i = 0; i < 4; i++) {
        umulExtended((i & 1) == 0 ? f.lo : f.hi, (i & 2) == 0 ? inverse.x : inverse.y, hi, lo);
        add_word(w, (i & 1) + (i >> 1), lo);
        add_word(w, (i & 1) + (i >> 1) + 1, hi);
    }
    if (f.shift < 0 || f.shift >= 128)
        /* A negligible fraction of a turn, or a multiple of a turn within the precision. */
        return uvec2(0);
    uint i = f.shift / 32, by = f.shift % 32;
    if (by == 0)
        return uvec2(w[i], w[i + 1]);
    return uvec2(w[i] >> by | w[i + 1] << 32 - by, w[i + 1] >> by | w[i + 2] << 32 - by);
}

/* Returns cosine and sine of `turn` / 2^32 turns. */
vec2 circle(int turn) {
    int quarter = turn + 0x20000000 >> 30; /* to nearest */
    float a = float(turn - (quarter << 30)) * 1.46291807926715968e-9, z = a * a; /* 2 pi / 2^32 */
    float s = a + a * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880))));
    float c = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 +
                                                                    z * (-1.0 / 3628800)))));
    vec2 r = (quarter & 1) == 0 ? vec2(c, s) : vec2(-s, c);
    return (quarter & 2) == 0 ? r : -r;
}

vec2 cosine_sine(uint pair, int pos) {
    number f = frequency(pair);
    uvec2 t = turns_of(f);
    uint p = abs(pos), hi, lo;
    umulExtended(t.x, p, hi, lo);
    uint turn = t.y * p + hi + (lo >> 31);
    bool minus = (pos < 0) != f.minus;
    vec2 r = circle(int(minus ? -turn : turn));
    return f.finite ? r * mag : vec2(uintBitsToFloat(0x7fc00000));
}

/* Units are the pairs, then the elements that are not rotated. */
void unit(uint u) {
    uint across = n_pairs + (n - 2 * n_pairs), n_rows = rows[0] * rows[1];
    uint by_row = (n_rows + ROWS - 1) / ROWS;
    uint i = u % across, first = u / across % by_row * ROWS, l = u / across / by_row;
    bool turns = i < n_pairs;
    uint a = !turns ? i + n_pairs : HALF ? i : 2 * i, b = HALF ? i + n_pairs : 2 * i + 1;
    vec2 cs = turns ? cosine_sine(i, positions[pos_at + l * pos_step]) : vec2(1, 0);
    for (uint r = first; r < min(first + ROWS, n_rows); r++) {
        uint j = r % rows[0], k = r / rows[0];
        uint from = x_at + j * x_step[0] + k * x_step[1] + l * x_step[2];
        uint to = y_at + j * y_step[0] + k * y_step[1] + l * y_step[2];
        float p = x[from + a], q = turns ? x[from + b] : 0;
        y[to + a] = turns ? p * cs.x - q * cs.y : p;
        if (turns)
            y[to + b] = p * cs.y + q * cs.x;
    }
}

void main() {
    uint n_units = n_batch * (n - n_pairs) * ((rows[0] * rows[1] + ROWS - 1) / ROWS);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n_units; u += step)
        unit(u);
}
