#version 450
#extension GL_GOOGLE_include_directive : require
#if BITS == 16
#extension GL_EXT_shader_16bit_storage : require
#define NUMBER uint16_t
#elif BITS == 8
#extension GL_EXT_shader_8bit_storage : require
#define NUMBER uint8_t
#else
#define NUMBER uint
#endif

/* Stores a row of keys or values of each head of each token at its slot and position, as
 * ggl_store_put does. The store is an array of numbers of BITS bits: 16 for elements of that
 * size, 8 for quantized blocks, 32 for any type. Rows of neighboring tokens may share a 32-bit
 * word, so their bits are cleared and set by atomic operations, which leave the others alone.
 *
 * With ROPE, rows are rotated by their positions before they are stored. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool KEYS = false; /* interleaved positions */
layout(constant_id = 3) const bool RING = false;

#ifdef ROPE
layout(constant_id = 4) const bool HALF = true; /* as in rope.comp */
layout(constant_id = 5) const bool DOUBLES = true;
#endif

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 2) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 3) readonly buffer Pages { int pages[]; };
layout(set = 0, binding = 4) buffer Store { NUMBER store[]; };
#ifdef ROPE
layout(set = 0, binding = 5) readonly buffer Frequencies { uint freq[]; };
#endif

layout(push_constant) uniform Push {
    uint n, n_heads, n_batch;
    uint x_at, x_step[2]; /* strides between heads and between tokens */
    uint pos_at, pos_step;
    uint slot_at, slot_step;
    uint page_at, page_step; /* the table of pages, and its stride between slots */
    uint store_at;           /* bytes */
    uint n_slots, n_pos;
#ifdef ROPE
    uint n_pairs;
    uint freq_at; /* words */
    float mag;
#endif
};

#include "store.glsl"
#include "halves.glsl"

const bool QUANTIZED = TYPE == Q8_0 || TYPE == Q4_0;
const uint UNIT = QUANTIZED ? 32 : 4; /* elements per invocation */

uint row_at; /* of the row to store, in x */
int row_pos; /* its position */

#ifdef ROPE
#include "rope.glsl"

/* Returns element i of the row. */
float element(uint i) {
    if (i >= 2 * n_pairs)
        return x[row_at + i];
    uint pair = !HALF ? i / 2 : i < n_pairs ? i : i - n_pairs;
    uint a = HALF ? pair : 2 * pair, b = HALF ? pair + n_pairs : 2 * pair + 1;
    float p = x[row_at + a], q = x[row_at + b];
    vec2 cs = cosine_sine(pair, row_pos);
    return i == a ? rotated_first(p, q, cs) : rotated_second(p, q, cs);
}
#else
float element(uint i) {
    return x[row_at + i];
}
#endif

/* Stores the lower n bytes of `bits` at byte `at`; n is at least the size of a number. */
void put(uint at, uint bits, uint n) {
#if BITS == 32
    uint shift = 8 * (at & 3), mask = (1 << 8 * n) - 1 << shift;
    if (n == 4) {
        store[at >> 2] = bits;
        return;
    }
    atomicAnd(store[at >> 2], ~mask);
    atomicOr(store[at >> 2], bits << shift & mask);
#else
    for (uint i = 0; i < n; i += BITS / 8)
        store[(at + i) / (BITS / 8)] = NUMBER(bits >> 8 * i);
#endif
}

uint bf16_bits(float f) {
    uint u = floatBitsToUint(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return u >> 16 | 0x40;
    return u + 0x7fff + (u >> 16 & 1) >> 16;
}

uint element_bits(float f) {
    return TYPE == F32 ? floatBitsToUint(f) : TYPE == F16 ? half_bits(f) : bf16_bits(f);
}

void put_plain(uint page, uint lane, uint first) {
    for (uint i = first; i < min(first + UNIT, n); i++)
        put(page + element_at(TYPE, KEYS, n, lane, i), element_bits(element(i)),
            element_size(TYPE));
}

bool finite(float v) {
    return (floatBitsToUint(v) & 0x7fffffff) < 0x7f800000;
}

/* Returns the block's element of largest magnitude, the first of equals; NaN if an element is
 * not finite. */
float extreme(float v[BLOCK]) {
    float best = 0;
    for (uint i = 0; i < BLOCK; i++) {
        if (!finite(v[i]))
            return uintBitsToFloat(0x7fc00000);
        best = abs(v[i]) > abs(best) ? v[i] : best;
    }
    return best;
}

/* Rounds to nearest, halves away from zero. */
int round_away(float v) {
    float whole = floor(abs(v));
    int q = int(whole) + (abs(v) - whole >= 0.5 ? 1 : 0);
    return v < 0 ? -q : q;
}

uint code_q4_0(float v, float inverse) {
    precise float scaled = v * inverse;
    precise float up = scaled + 8.5;
    return finite(inverse) ? uint(min(int(up), 15)) : 8;
}

/* Quantizes and stores a block. Codes are computed with the scale before its rounding (as in
 * quant/q8_0.c and q4_0.c). */
void put_block(uint page, uint lane, uint b) {
    float v[BLOCK];
    for (uint i = 0; i < BLOCK; i++)
        v[i] = element(BLOCK * b + i);
    float most = extreme(v), d = TYPE == Q8_0 ? abs(most) / 127 : most / -8;
    float inverse = d != 0 ? 1 / d : 0;
    put(page + scale_at(TYPE, lane, b), half_bits(d), 2);
    for (uint i = 0; i < code_bytes(TYPE); i++) {
        uint q;
        if (TYPE == Q8_0)
            q = finite(inverse) ? uint(round_away(v[i] * inverse)) + 128 : 128;
        else
            q = code_q4_0(v[i], inverse) | code_q4_0(v[i + 16], inverse) << 4;
        put(page + code_at(TYPE, KEYS, lane, b, i), q, 1);
    }
}

void unit(uint u) {
    uint units = (n + UNIT - 1) / UNIT, first = u % units * UNIT;
    uint h = u / units % n_heads, l = u / units / n_heads;
    int slot = slots[slot_at + l * slot_step], pos = positions[pos_at + l * pos_step];
    if (slot < 0 || uint(slot) >= n_slots || pos < 0)
        return; /* an invalid slot or position: write nothing */
    uint number = uint(pos) / PAGE, lane = uint(pos) % PAGE, in_slot = n_pos / PAGE;
    uint in_store = RING ? uint(slot) * in_slot + number % in_slot
                         : uint(pages[page_at + uint(slot) * page_step + number]);
    row_at = x_at + h * x_step[0] + l * x_step[1];
    row_pos = pos;
    uint page = store_at + (in_store * n_heads + h) * PAGE * row_size(TYPE, n);
    if (QUANTIZED)
        put_block(page, lane, first / BLOCK);
    else
        put_plain(page, lane, first);
}

void main() {
    uint n_units = n_batch * n_heads * ((n + UNIT - 1) / UNIT);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint u = gl_GlobalInvocationID.x; u < n_units; u += step)
        unit(u);
}
