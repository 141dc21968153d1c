/* The rotations of rope_half and rope_pair.
 *
 * The angle pos * f may be many turns; only its fraction of a turn matters. f / (2 pi) is
 * computed from the bits of a double as a fraction of 64 bits. Multiplied by pos modulo 2^64 it
 * has an error of at most 2^-32 of a turn, for pos * f below about 2^31. This needs no 64-bit
 * numbers.
 *
 * The including file declares HALF (pairs are (i, i + n_pairs), else (2 i, 2 i + 1)), n_pairs, DOUBLES
 * (frequencies are f64, else f32), freq[], freq_at (words), mag, x[] and y[]. */

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

/* The results of the pair (p, q), rotated by an angle with this cosine and sine. */
float rotated_first(float p, float q, vec2 cs) {
    precise float r = p * cs.x - q * cs.y;
    return r;
}

float rotated_second(float p, float q, vec2 cs) {
    precise float r = p * cs.y + q * cs.x;
    return r;
}

/* Returns the elements of pair i of a row. */
uvec2 pair_at(uint i) {
    return HALF ? uvec2(i, i + n_pairs) : uvec2(2 * i, 2 * i + 1);
}

/* Rotates pair i of the row of x at `from`, to the row of y at `to`. i from n_pairs on: copies element
 * i + n_pairs, after the pairs. */
void rotate_pair(uint i, vec2 cs, uint from, uint to) {
    if (i >= n_pairs) {
        y[to + i + n_pairs] = x[from + i + n_pairs];
        return;
    }
    uvec2 at = pair_at(i);
    float p = x[from + at.x], q = x[from + at.y];
    y[to + at.x] = rotated_first(p, q, cs);
    y[to + at.y] = rotated_second(p, q, cs);
}
