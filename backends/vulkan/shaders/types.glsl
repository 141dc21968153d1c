/* Decodes weights of all types of ggl/types.def but f8_e4m3 and those of forks (QUANT_FOREIGN), a run at a time. ggml-lite/quant/blocks.h has the
 * layouts. As there, 32 weights are codes, with a scale and a minimum for each half: weight i is
 * s[h] * code - m[h], where h = i / 16. Here a code is a byte of a word, and `offset` is subtracted
 * from it, so that all types except floats are handled alike:
 *
 *     word 0 | code 3 | code 2 | code 1 | code 0 |   word 1 | code 7 ..
 *
 * Numbers, names and sizes come from types.def, which is included. A type adds one function:
 *
 *     void unpack_<name>(uint b, uint k)     sets code, scale and minimum, and offset if it is not
 *                                            0, from elements 32 k .. 32 k + 31 of the block at b
 *
 * The functions of types that are only read, whose codes are looked up in codebooks, stand after
 * the others. In a type whose block is a multiple of 4 bytes, u32_at and u128_at must be given
 * multiples of 4 after the block's beginning.
 *
 * The including file must declare:
 *
 *     TYPE       a specialization constant: ggl_type
 *     ALIGNED    a specialization constant: words of weights are at multiples of 4
 *     WEIGHTS    the name of a buffer of uint
 *     ALIGNED_16 a constant: plain types only; rows are whole runs, at multiples of 16 bytes
 *     AT_16(at)  four words, if ALIGNED_16
 *     CODEBOOKS  only for types with codebooks (QUANT_READ): their binding; without it all other
 *                types are decoded, which keeps modules small
 *
 * Addresses are in bytes. Unaligned words are assembled from 32-bit loads: five loads and four
 * shifts for 16 bytes at an odd half word are fewer than loads of 16 bits would need. */

#include "functions.glsl"

#define PLAIN(id, NAME, name, size, text)              const uint NAME = id;
#define QUANT(id, NAME, name, block, size, form, text) const uint NAME = id;
#define QUANT_READ                                     QUANT
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)
#include "ggl/types.def"

const bool PLAIN_TYPE = TYPE == F32 || TYPE == F16 || TYPE == BF16;
const uint RUN = PLAIN_TYPE ? 8 : 32; /* weights decoded at a time */

/* --- bytes ------------------------------------------------------------------------------------ */

uint u8_at(uint at) {
    return WEIGHTS[at >> 2] >> 8 * (at & 3) & 0xff;
}

uint u16_at(uint at) {
    uint w = WEIGHTS[at >> 2] >> 8 * (at & 3);
    if ((at & 3) == 3)
        w |= WEIGHTS[(at >> 2) + 1] << 8;
    return w & 0xffff;
}

uint u32_at(uint at) {
    uint shift = 8 * (at & 3), w = WEIGHTS[at >> 2];
    if (ALIGNED || shift == 0)
        return w;
    return w >> shift | WEIGHTS[(at >> 2) + 1] << 32 - shift;
}

uvec4 u128_at(uint at) {
    if (ALIGNED_16)
        return AT_16(at);
    uint i = at >> 2, shift = 8 * (at & 3);
    uvec4 w = uvec4(WEIGHTS[i], WEIGHTS[i + 1], WEIGHTS[i + 2], WEIGHTS[i + 3]);
    if (ALIGNED || shift == 0)
        return w;
    return w >> shift | uvec4(w.yzw, WEIGHTS[i + 4]) << 32 - shift;
}

float half_at(uint at) {
    return half_to_float(u16_at(at));
}

vec4 bytes(uint w) {
    return vec4(w & 0xff, w >> 8 & 0xff, w >> 16 & 0xff, w >> 24);
}

uint byte_of(uint w, uint i) {
    return w >> 8 * i & 0xff;
}

int signed_byte(uint b) {
    return int(b << 24) >> 24;
}

/* --- codes of a run --------------------------------------------------------------------------- */

uint code[8];
float offset;
vec2 scale, minimum;

void set_scale(float s) {
    scale = vec2(s);
    minimum = vec2(0);
}

void set_scale_min(float s, float m) {
    scale = vec2(s);
    minimum = vec2(m);
}

/* Sets the codes from 32 bytes: the bits at `shift` of each byte, masked. */
void set_codes(uint at, uint shift, uint mask) {
    uvec4 a = u128_at(at) >> shift & mask, b = u128_at(at + 16) >> shift & mask;
    code = uint[](a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
}

/* Sets the codes from the nibbles of 16 bytes: the low nibbles, then the high ones. */
void set_nibbles(uint at) {
    uvec4 w = u128_at(at), a = w & 0x0f0f0f0f, b = w >> 4 & 0x0f0f0f0f;
    code = uint[](a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
}

/* Spreads four bits to one byte each. */
uint spread_bits(uint bits) {
    return (bits & 15) * 0x00204081 & 0x01010101;
}

/* Sets bit `shift` of code i if bit i of h is set. */
void add_bits(uint h, uint shift) {
    for (uint i = 0; i < 8; i++)
        code[i] |= spread_bits(h >> 4 * i) << shift;
}

/* Adds bits from other bytes (`shift` and `mask` as in set_codes) to the codes, from bit `to`
 * on. */
void add_codes(uint at, uint shift, uint mask, uint to) {
    uvec4 a = (u128_at(at) >> shift & mask) << to, b = (u128_at(at + 16) >> shift & mask) << to;
    for (uint i = 0; i < 4; i++) {
        code[i] |= a[i];
        code[i + 4] |= b[i];
    }
}

#ifndef CODEBOOKS

/* q2_k, q3_k and tq2_0: sets codes of 2 bits from 64 bytes. */
void set_2bits(uint at, uint k) {
    set_codes(at + 32 * (k / 4), 2 * (k % 4), 0x03030303);
}

void unpack_q4_0(uint b, uint k) {
    set_nibbles(b + 2);
    offset = 8;
    set_scale(half_at(b));
}

void unpack_q4_1(uint b, uint k) {
    set_nibbles(b + 4);
    set_scale_min(half_at(b), -half_at(b + 2));
}

void unpack_q5_0(uint b, uint k) {
    set_nibbles(b + 6);
    add_bits(u32_at(b + 2), 4);
    offset = 16;
    set_scale(half_at(b));
}

void unpack_q5_1(uint b, uint k) {
    set_nibbles(b + 8);
    add_bits(u32_at(b + 4), 4);
    set_scale_min(half_at(b), -half_at(b + 2));
}

void unpack_q8_0(uint b, uint k) {
    set_codes(b + 2, 0, ~0u);
    for (uint i = 0; i < 8; i++)
        code[i] ^= 0x80808080;
    offset = 128;
    set_scale(half_at(b));
}

void unpack_q2_k(uint b, uint k) {
    set_2bits(b + 16, k);
    uvec2 sm = uvec2(u8_at(b + 2 * k), u8_at(b + 2 * k + 1));
    scale = half_at(b + 80) * vec2(sm & 15);
    minimum = half_at(b + 82) * vec2(sm >> 4);
}

float scale_q3_k(uint b, uint r) {
    uint low = u8_at(b + 96 + r % 8) >> 4 * (r / 8) & 15;
    uint high = u8_at(b + 104 + r % 4) >> 2 * (r / 4) & 3;
    return float(int(low | high << 4) - 32);
}

void unpack_q3_k(uint b, uint k) {
    set_2bits(b + 32, k);
    add_codes(b, k, 0x01010101, 2);
    offset = 4;
    scale = half_at(b + 108) * vec2(scale_q3_k(b, 2 * k), scale_q3_k(b, 2 * k + 1));
    minimum = vec2(0);
}

/* q4_k and q5_k: sets scales and minima from 6-bit numbers in the 12 bytes at b + 4. */
void set_scale_min_k(uint b, uint k) {
    uint s, m, r = b + 4 + k % 4, mixed = u8_at(r + 8);
    if (k < 4) {
        s = u8_at(r) & 63;
        m = u8_at(r + 4) & 63;
    } else {
        s = mixed & 15 | u8_at(r) >> 6 << 4;
        m = mixed >> 4 | u8_at(r + 4) >> 6 << 4;
    }
    set_scale_min(half_at(b) * float(s), half_at(b + 2) * float(m));
}

void unpack_q4_k(uint b, uint k) {
    set_codes(b + 16 + 32 * (k / 2), 4 * (k % 2), 0x0f0f0f0f);
    set_scale_min_k(b, k);
}

void unpack_q5_k(uint b, uint k) {
    set_codes(b + 48 + 32 * (k / 2), 4 * (k % 2), 0x0f0f0f0f);
    add_codes(b + 16, k, 0x01010101, 4);
    set_scale_min_k(b, k);
}

void unpack_q6_k(uint b, uint k) {
    set_codes(b + 64 * (k / 4) + 32 * (k % 2), 4 * (k % 4 / 2), 0x0f0f0f0f);
    add_codes(b + 128 + 32 * (k / 4), 2 * (k % 4), 0x03030303, 4);
    offset = 32;
    uint s = u16_at(b + 192 + 2 * k);
    scale = half_at(b + 208) * vec2(signed_byte(s), signed_byte(s >> 8));
    minimum = vec2(0);
}

/* iq4: returns one of the 16 levels, plus 128; the table is four words. */
uint iq4_step(uint nibble) {
    const uint steps[4] = {0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u};
    return steps[nibble >> 2] >> 8 * (nibble & 3) & 0xff;
}

uint iq4_steps(uint w) {
    return iq4_step(w & 15) | iq4_step(w >> 8 & 15) << 8 | iq4_step(w >> 16 & 15) << 16 |
           iq4_step(w >> 24 & 15) << 24;
}

void set_steps(uint at) {
    set_nibbles(at);
    for (uint i = 0; i < 8; i++)
        code[i] = iq4_steps(code[i]);
    offset = 128;
}

void unpack_iq4_nl(uint b, uint k) {
    set_steps(b + 2);
    set_scale(half_at(b));
}

void unpack_iq4_xs(uint b, uint k) {
    set_steps(b + 8 + 16 * k);
    uint low = u8_at(b + 4 + k / 2) >> 4 * (k % 2) & 15, high = u16_at(b + 2) >> 2 * k & 3;
    set_scale(half_at(b) * float(int(low | high << 4) - 32));
}

/* Returns trit t of each of four bytes. A byte / 256 is a fraction in base 3 with the trits as
 * digits. */
uint trits(uint w, uint t) {
    const uint pow3[5] = {1, 3, 9, 27, 81};
    uint even = (w & 0x00ff00ff) * pow3[t] & 0x00ff00ff;
    uint odd = (w >> 8 & 0x00ff00ff) * pow3[t] & 0x00ff00ff;
    return even * 3 >> 8 & 0x00030003 | odd * 3 & 0x03000300;
}

void unpack_tq1_0(uint b, uint k) {
    for (uint i = 0; i < 8; i++) {
        uint e = 32 * k + 4 * i;
        if (e < 160)
            code[i] = trits(u32_at(b + e % 32), e / 32);
        else if (e < 240)
            code[i] = trits(u32_at(b + 32 + e % 16), (e - 160) / 16);
        else
            code[i] = trits(u32_at(b + 48), (e - 240) / 4);
    }
    offset = 1;
    set_scale(half_at(b + 52));
}

void unpack_tq2_0(uint b, uint k) {
    set_2bits(b, k);
    offset = 1;
    set_scale(half_at(b + 64));
}

/* Return twice the values of FP4 numbers, plus 128: of one, and of the four in a word. */
uint fp4_code(uint nibble) {
    uint magnitude = 0xc8643210u >> 4 * (nibble & 7) & 15;
    return (nibble & 8) != 0 ? 128 - magnitude : 128 + magnitude;
}

uint fp4_codes(uint w) {
    return fp4_code(w & 15) | fp4_code(w >> 8 & 15) << 8 | fp4_code(w >> 16 & 15) << 16 |
           fp4_code(w >> 24 & 15) << 24;
}

/* Returns 2^(e - 128); the two smallest are subnormal. */
float power_of_two(uint e) {
    return uintBitsToFloat(e > 1 ? e - 1 << 23 : 0x00200000 << e);
}

void unpack_mxfp4(uint b, uint k) {
    set_nibbles(b + 1);
    for (uint i = 0; i < 8; i++)
        code[i] = fp4_codes(code[i]);
    offset = 128;
    set_scale(power_of_two(u8_at(b)));
}

/* Returns half of the float | exponent: 4 bits | mantissa: 3 bits |, which is an f16 with another
 * bias; 0x7f is 0. */
float nvfp4_scale(uint e) {
    return e == 0x7f ? 0 : half_to_float((e & 0x7f) << 7) * 128;
}

void unpack_nvfp4(uint b, uint k) {
    uvec4 w = u128_at(b + 4 + 16 * k), low = w & 0x0f0f0f0f, high = w >> 4 & 0x0f0f0f0f;
    code = uint[](low.x, low.y, high.x, high.y, low.z, low.w, high.z, high.w);
    for (uint i = 0; i < 8; i++)
        code[i] = fp4_codes(code[i]);
    offset = 128;
    scale = vec2(nvfp4_scale(u8_at(b + 2 * k)), nvfp4_scale(u8_at(b + 2 * k + 1)));
    minimum = vec2(0);
}

/* A code is 0 or 2. */
void unpack_q1_0(uint b, uint k) {
    uint bits = u32_at(b + 2 + 4 * k);
    for (uint i = 0; i < 8; i++)
        code[i] = spread_bits(bits >> 4 * i) << 1;
    offset = 1;
    set_scale(half_at(b));
}

/* Four codes in each byte. */
void unpack_q2_0(uint b, uint k) {
    for (uint i = 0; i < 8; i++) {
        uint w = u8_at(b + 2 + 8 * k + i);
        code[i] = w & 3 | (w & 0xc) << 6 | (w & 0x30) << 12 | (w & 0xc0) << 18;
    }
    offset = 1;
    set_scale(half_at(b));
}

#else

#include "codebooks.glsl"

/* Spread eight numbers of 2 bits, or four of 3 bits, to one byte each. */
uvec2 spread_2bits(uint x) {
    uvec2 w = uvec2(x & 0xff, x >> 8);
    w = (w | w << 12) & 0x000f000f;
    return (w | w << 6) & 0x03030303;
}

uint spread_3bits(uint x) {
    x = (x | x << 10) & 0x003f003f;
    return (x | x << 5) & 0x07070707;
}

/* Returns 128 + magnitude, or 128 - magnitude where the sign bit is set, per byte. */
uint with_signs(uint magnitude, uint signs) {
    uint minus = spread_bits(signs) * 0xff;
    return 0x80808080 + (magnitude & ~minus) - (magnitude & minus);
}

/* Returns 8 sign bits from 7; the eighth makes the number of set bits even. */
uint even_signs(uint bits) {
    bits &= 127;
    return bits | (bitCount(bits) & 1) << 7;
}

/* Sets vector v of eight codes for the iq2 types: levels 8, 25, 43. */
void set_iq2(uint v, uint entry, uint signs) {
    uvec2 place = spread_2bits(entry), m = 0x08080808 + 17 * place + (place >> 1 & 0x01010101);
    code[2 * v] = with_signs(m.x, signs);
    code[2 * v + 1] = with_signs(m.y, signs >> 4);
}

float iq2_scale(uint b, uint s) {
    return half_at(b) * float(2 * (s & 15) + 1) * 0.125;
}

void unpack_iq2_xxs(uint b, uint k) {
    offset = 128;
    uint index = u32_at(b + 2 + 8 * k), w = u32_at(b + 6 + 8 * k);
    for (uint v = 0; v < 4; v++)
        set_iq2(v, iq2_xxs_grid(byte_of(index, v)), even_signs(w >> 7 * v));
    set_scale(iq2_scale(b, w >> 28));
}

void set_iq2_scales(uint b, uint s) {
    scale = vec2(iq2_scale(b, s), iq2_scale(b, s >> 4));
    minimum = vec2(0);
}

void unpack_iq2_xs(uint b, uint k) {
    offset = 128;
    uvec2 words = uvec2(u32_at(b + 2 + 8 * k), u32_at(b + 6 + 8 * k));
    for (uint v = 0; v < 4; v++) {
        uint w = words[v / 2] >> 16 * (v % 2);
        set_iq2(v, iq2_xs_grid(w & 511), even_signs(w >> 9));
    }
    set_iq2_scales(b, u8_at(b + 66 + k));
}

void unpack_iq2_s(uint b, uint k) {
    offset = 128;
    uint low = u32_at(b + 2 + 4 * k), high = u8_at(b + 66 + k), signs = u32_at(b + 34 + 4 * k);
    for (uint v = 0; v < 4; v++)
        set_iq2(v, iq2_s_grid(byte_of(low, v) | (high >> 2 * v & 3) << 8), byte_of(signs, v));
    set_iq2_scales(b, u8_at(b + 74 + k));
}

/* Returns four codes with levels 4, 12, 20 .. 52 and 62. */
uint iq3_xxs_vector(uint index) {
    uint place = spread_3bits(iq3_xxs_grid(index));
    return 0x04040404 + 8 * place + ((place & place >> 1 & place >> 2 & 0x01010101) << 1);
}

void unpack_iq3_xxs(uint b, uint k) {
    offset = 128;
    uvec2 index = uvec2(u32_at(b + 2 + 8 * k), u32_at(b + 6 + 8 * k));
    uint w = u32_at(b + 66 + 4 * k);
    for (uint v = 0; v < 8; v++)
        code[v] = with_signs(iq3_xxs_vector(byte_of(index[v / 4], v % 4)),
                             even_signs(w >> 7 * (v / 2)) >> 4 * (v % 2));
    set_scale(half_at(b) * float(2 * (w >> 28) + 1) * 0.25);
}

/* Levels 1, 3, 5 .. 15. */
void unpack_iq3_s(uint b, uint k) {
    offset = 128;
    uvec2 low = uvec2(u32_at(b + 2 + 8 * k), u32_at(b + 6 + 8 * k));
    uint high = u8_at(b + 66 + k), signs = u32_at(b + 74 + 4 * k);
    for (uint v = 0; v < 8; v++) {
        uint index = byte_of(low[v / 4], v % 4) | (high >> v & 1) << 8;
        code[v] = with_signs(0x01010101 + 2 * spread_3bits(iq3_s_grid(index)), signs >> 4 * v);
    }
    set_scale(half_at(b) * float(2 * (u8_at(b + 106 + k / 2) >> 4 * (k % 2) & 15) + 1));
}

/* Sets vector v of codes for the iq1 types: -1, 0 or 1 in eighths, shifted by one eighth up or
 * down, plus 16. */
void set_iq1(uint v, uint index, bool down) {
    uvec2 w = 8 * spread_2bits(iq1_grid(index)) + (down ? 0x07070707 : 0x09090909);
    code[2 * v] = w.x;
    code[2 * v + 1] = w.y;
}

float iq1_scale(float d, uint s) {
    return d * float(2 * (s & 7) + 1) * 0.125;
}

void unpack_iq1_s(uint b, uint k) {
    uint low = u32_at(b + 2 + 4 * k), h = u16_at(b + 34 + 2 * k);
    for (uint v = 0; v < 4; v++)
        set_iq1(v, byte_of(low, v) | (h >> 3 * v & 7) << 8, (h & 0x8000) != 0);
    offset = 16;
    set_scale(iq1_scale(half_at(b), h >> 12));
}

void unpack_iq1_m(uint b, uint k) {
    uint low = u32_at(b + 4 * k), h = u16_at(b + 32 + 2 * k);
    uint s = u16_at(b + 48 + 2 * (k / 2)) >> 6 * (k % 2);
    uvec2 top = uvec2(u32_at(b + 48), u32_at(b + 52)) >> 12; /* bits of d, in groups of four */
    uint d = top.x & 0xf | top.x >> 12 & 0xf0 | (top.y & 0xf | top.y >> 12 & 0xf0) << 8;
    for (uint v = 0; v < 4; v++)
        set_iq1(v, byte_of(low, v) | (h >> 4 * v & 7) << 8, (h >> 4 * v & 8) != 0);
    offset = 16;
    scale = vec2(iq1_scale(half_to_float(d), s), iq1_scale(half_to_float(d), s >> 3));
    minimum = vec2(0);
}

#endif

/* --- blocks ----------------------------------------------------------------------------------- */

/* DECODED(NAME, name, block, size): the types that this module decodes. */
#ifdef CODEBOOKS
#define CODES(NAME, name, block, size)
#define BOOKS(NAME, name, block, size) DECODED(NAME, name, block, size)
#else
#define CODES(NAME, name, block, size) DECODED(NAME, name, block, size)
#define BOOKS(NAME, name, block, size)
#endif

/* Returns the bytes of a block. */
uint block_size() {
    switch (TYPE) {
#define DECODED(NAME, name, block, size)                                                           \
    case NAME:                                                                                     \
        return size;
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)      CODES(NAME, name, block, size)
#define QUANT_READ(id, NAME, name, block, size, form, text) BOOKS(NAME, name, block, size)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)
#include "ggl/types.def"
#undef DECODED
    }
    return 0;
}

/* Runs of 32 in a block. */
const uint BLOCK_RUNS = 0
#define DECODED(NAME, name, block, size) +(TYPE == NAME ? block / 32 : 0)
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)      CODES(NAME, name, block, size)
#define QUANT_READ(id, NAME, name, block, size, form, text) BOOKS(NAME, name, block, size)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)
#include "ggl/types.def"
#undef DECODED
    ;

/* Unpacks elements 32 k .. 32 k + 31 of the block at b. */
void unpack(uint b, uint k) {
    offset = 0;
    switch (TYPE) {
#define DECODED(NAME, name, block, size)                                                           \
    case NAME:                                                                                     \
        unpack_##name(b, k);                                                                       \
        break;
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)      CODES(NAME, name, block, size)
#define QUANT_READ(id, NAME, name, block, size, form, text) BOOKS(NAME, name, block, size)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)
#include "ggl/types.def"
#undef DECODED
    }
}

/* --- runs ------------------------------------------------------------------------------------- */

vec4 run[8]; /* the weights decoded last, RUN of them */

float plain_weight(uint row, uint i) {
    return TYPE == F32   ? uintBitsToFloat(u32_at(row + 4 * i))
           : TYPE == F16 ? half_at(row + 2 * i)
                         : uintBitsToFloat(u16_at(row + 2 * i) << 16);
}

/* Returns two 16-bit weights as floats. */
vec2 plain_pair(uint w) {
    if (TYPE == F16)
        return vec2(half_to_float(w & 0xffff), half_to_float(w >> 16));
    return uintBitsToFloat(uvec2(w << 16, w & 0xffff0000));
}

/* Decodes weights 8 r .. 8 r + 7 of a row of n; 0 after its end. */
void decode_plain(uint row, uint r, uint n) {
    if (!ALIGNED_16 && 8 * r + 8 > n) {
        for (uint i = 0; i < 8; i++)
            run[i / 4][i % 4] = 8 * r + i < n ? plain_weight(row, 8 * r + i) : 0;
    } else if (TYPE == F32) {
        run[0] = uintBitsToFloat(u128_at(row + 32 * r));
        run[1] = uintBitsToFloat(u128_at(row + 32 * r + 16));
    } else {
        uvec4 w = u128_at(row + 16 * r);
        run[0] = vec4(plain_pair(w.x), plain_pair(w.y));
        run[1] = vec4(plain_pair(w.z), plain_pair(w.w));
    }
}

/* Unpacks the codes of run r of the row at byte `row`. */
void unpack_run(uint row, uint r) {
    unpack(row + r / BLOCK_RUNS * block_size(), r % BLOCK_RUNS);
}

/* Decodes weights from RUN * r on, RUN of them, of the row of n weights at byte `row`. */
void decode(uint row, uint r, uint n) {
    if (PLAIN_TYPE) {
        decode_plain(row, r, n);
        return;
    }
    unpack_run(row, r);
    for (uint i = 0; i < 8; i++)
        run[i] = scale[i / 4] * (bytes(code[i]) - offset) - minimum[i / 4];
}
