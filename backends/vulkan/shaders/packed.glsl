/* Unpacks runs of repacked weights (packed.def), to the codes, scales and minima of types.glsl. */

#define PACKED(NAME, name, offset, low, high, FORM, levels) +(TYPE == NAME ? low : 0)
const uint LOW = 0
#include "packed.def"
    ;
#define PACKED(NAME, name, offset, low, high, FORM, levels) +(TYPE == NAME ? high : 0)
const uint HIGH = 0
#include "packed.def"
    ;
#define PACKED(NAME, name, offset, low, high, FORM, levels) +(TYPE == NAME ? offset : 0)
const uint OFFSET = 0 /* subtracted from codes */
#include "packed.def"
    ;

const uint PLAIN = 0, IQ4 = 1, FP4 = 2, TWICE = 3;
#define PACKED(NAME, name, offset, low, high, FORM, levels) +(TYPE == NAME ? levels : 0)
const uint LEVELS = 0
#include "packed.def"
    ;

#define SCALES(FORM, id, once, each) const uint SCALES_##FORM = id;
#include "packed.def"
#define PACKED(NAME, name, offset, low, high, FORM, levels) +(TYPE == NAME ? SCALES_##FORM : 0)
const uint SCALE_FORM = 0
#include "packed.def"
    ;
#define SCALES(FORM, id, once, each) +(SCALE_FORM == id ? once : 0)
const uint ONCE = 0
#include "packed.def"
    ;
#define SCALES(FORM, id, once, each) +(SCALE_FORM == id ? each : 0)
const uint EACH = 0
#include "packed.def"
    ;

/* The words that have the codes of a run of one row, and the scales of the 4 rows of a tile. */
struct packed_codes {
    uvec4 low[2];
    uvec2 high;
};
struct packed_scales {
    uvec4 once;
    uvec2 each;
};

/* Load run r of row `row` (0 .. 3) of the tile at byte `tile`, whose rows have n_runs. */
packed_codes load_codes(uint tile, uint n_runs, uint row, uint r) {
    packed_codes p;
    uint at = row * n_runs + r, high = tile + 16 * LOW * n_runs;
    if (LOW == 8) {
        p.low[0] = weights4[(tile >> 4) + 2 * at];
        p.low[1] = weights4[(tile >> 4) + 2 * at + 1];
    } else if (LOW == 4) {
        p.low[0] = weights4[(tile >> 4) + at];
    } else if (LOW == 2) {
        p.low[0].xy = weights2[(tile >> 3) + at];
    }
    if (HIGH == 2)
        p.high = weights2[(high >> 3) + at];
    else if (HIGH == 1)
        p.high.x = weights[(high >> 2) + at];
    return p;
}

packed_scales load_scales(uint tile, uint n_runs, uint r) {
    packed_scales p;
    uint once = tile + 16 * (LOW + HIGH) * n_runs, b = r / BLOCK_RUNS;
    uint each = once + 4 * ONCE * (n_runs / BLOCK_RUNS);
    if (ONCE == 4)
        p.once = weights4[(once >> 4) + b];
    else if (ONCE == 2)
        p.once.xy = weights2[(once >> 3) + b];
    else if (ONCE == 1)
        p.once.x = weights[(once >> 2) + b];
    if (EACH == 2)
        p.each = weights2[(each >> 3) + r];
    else if (EACH == 1)
        p.each.x = weights[(each >> 2) + r];
    return p;
}

/* True if each half of a run has a scale of its own. */
const bool HALVES = !PACKED_WEIGHTS || SCALE_FORM == SCALES_E4M3 || SCALE_FORM == SCALES_SC16 || SCALE_FORM == SCALES_SC16_MIN;

uint twos(uvec2 w, uint g) {
    return w[g / 4] >> 2 * (g % 4) & 0x03030303;
}

/* Returns four codes made of the stored ones. */
uint leveled(uint w) {
    return LEVELS == IQ4 ? iq4_steps(w) ^ 0x80808080 : LEVELS == FP4 ? fp4_codes(w) ^ 0x80808080 : LEVELS == TWICE ? w << 1 : w;
}

/* Returns the bits of word g that the high planes have. */
uint high_bits(uvec2 high, uint g) {
    return HIGH == 2 ? twos(high, g) << LOW : HIGH == 1 ? (high.x >> g & 0x01010101) << LOW : 0;
}

/* Returns word g of the codes. */
uint packed_word(packed_codes p, uint g) {
    uint w = LOW == 8   ? p.low[g / 4][g % 4]
             : LOW == 4 ? p.low[0][g % 4] >> 4 * (g / 4) & 0x0f0f0f0f
             : LOW == 2 ? twos(p.low[0].xy, g)
                        : 0;
    return leveled(w | high_bits(p.high, g));
}

/* What words q and q + 4 of a run of codes are made of. */
struct packed_quarter {
    uvec2 low, high;
};

packed_quarter load_part(uint tile, uint n_runs, uint row, uint r, uint q) {
    packed_quarter p = packed_quarter(uvec2(0), uvec2(0));
    uint at = row * n_runs + r, high = tile + 16 * LOW * n_runs;
    if (LOW == 8)
        p.low = uvec2(weights[(tile >> 2) + 8 * at + q], weights[(tile >> 2) + 8 * at + q + 4]);
    else if (LOW == 4)
        p.low.x = weights[(tile >> 2) + 4 * at + q];
    else if (LOW == 2)
        p.low = weights2[(tile >> 3) + at];
    if (HIGH == 2)
        p.high = weights2[(high >> 3) + at];
    else if (HIGH == 1)
        p.high.x = weights[(high >> 2) + at];
    return p;
}

uvec2 words_of(packed_quarter p, uint q) {
    uvec2 w = LOW == 8   ? p.low
              : LOW == 4 ? uvec2(p.low.x, p.low.x >> 4) & 0x0f0f0f0f
              : LOW == 2 ? p.low >> 2 * q & 0x03030303
                         : uvec2(0);
    w |= uvec2(high_bits(p.high, q), high_bits(p.high, q + 4));
    return uvec2(leveled(w.x), leveled(w.y));
}

/* Loads words q and q + 4 of a run of codes. */
uvec2 load_quarter(uint tile, uint n_runs, uint row, uint r, uint q) {
    return words_of(load_part(tile, n_runs, row, r, q), q);
}

vec4 signed_bytes(uint w) {
    if (OFFSET > 0 || LEVELS == PLAIN && LOW < 8)
        return bytes(w);
    ivec4 v = ivec4(w << 24, w << 16, w << 8, w);
    return vec4(v >> 24);
}

/* Sets scale, minimum and offset for row `row` of the tile. */
void set_packed_scales(packed_scales p, uint row) {
    uint once = ONCE == 4   ? p.once[row]
                : ONCE == 2 ? p.once[row / 2] >> 16 * (row % 2)
                            : byte_of(p.once.x, row);
    uint each = EACH == 2 ? p.each[row / 2] >> 16 * (row % 2) : p.each.x >> 8 * row;
    offset = OFFSET;
    minimum = vec2(0);
    if (SCALE_FORM == SCALES_E8M0) {
        scale = vec2(power_of_two(once));
        return;
    }
    if (SCALE_FORM == SCALES_E4M3) {
        scale = vec2(nvfp4_scale(each & 0xff), nvfp4_scale(each >> 8 & 0xff));
        return;
    }
    scale = vec2(half_to_float(once & 0xffff));
    if (ONCE == 4)
        minimum = vec2(half_to_float(once >> 16));
    if (SCALE_FORM == SCALES_F16_MIN)
        minimum = -minimum;
    else if (SCALE_FORM == SCALES_SC8)
        scale *= float(signed_byte(each));
    else if (SCALE_FORM == SCALES_SC8_MIN) {
        scale *= float(each & 0xff);
        minimum *= float(each >> 8 & 0xff);
    } else if (SCALE_FORM == SCALES_SC16)
        scale *= vec2(signed_byte(each), signed_byte(each >> 8));
    else if (SCALE_FORM == SCALES_SC16_MIN) {
        minimum *= vec2(each >> 4 & 15, each >> 12 & 15);
        scale *= vec2(each & 15, each >> 8 & 15);
    }
}

/* Unpacks a run of row `row` of a tile. */
void unpack_packed(packed_codes p, packed_scales s, uint row) {
    [[unroll]] for (uint g = 0; g < 8; g++)
        code[g] = packed_word(p, g);
    set_packed_scales(s, row);
}
