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

/* Writes up to three parts in one dispatch, which read the same positions: rows that are rotated, and
 * rows of keys and of values that are stored at the slot and position of each token, as ggl_store_put
 * does. Keys may be rotated before they are stored.
 *
 * A store is an array of numbers of BITS bits: 16 for elements of that size, 8 for quantized blocks, 32
 * for any type. Rows of neighboring tokens may share a 32-bit word, so their bits are cleared and
 * set by atomic operations, which leave the others alone. */

#include "kinds.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TYPE_K = 0;
layout(constant_id = 2) const uint TYPE_V = 0;
layout(constant_id = 3) const bool RING = false;
layout(constant_id = 4) const bool HALF = true; /* as in rope.comp */
layout(constant_id = 5) const bool DOUBLES = true;
layout(constant_id = 6) const uint PART_0 = PART_NONE;
layout(constant_id = 7) const uint PART_1 = PART_NONE;
layout(constant_id = 8) const uint PART_2 = PART_NONE;

layout(set = 0, binding = 0) readonly buffer Rows { float x[]; };
layout(set = 0, binding = 1) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 2) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 3) readonly buffer Pages { int pages[]; };
layout(set = 0, binding = 4) readonly buffer Frequencies { uint freq[]; };
layout(set = 0, binding = 5) buffer Keys { NUMBER keys[]; };
layout(set = 0, binding = 6) buffer Values { NUMBER values[]; };
layout(set = 0, binding = 7) writeonly buffer Result { float y[]; };

struct Part {
    uint n, n_heads;
    uint x_at, x_step[2]; /* strides between heads and between tokens */
    uint to_at;           /* in y, which is dense; in a store, in bytes */
};

layout(push_constant) uniform Push {
    uint n_batch;
    uint pos_at, pos_step;
    uint slot_at, slot_step;
    uint page_at, page_step; /* the table of pages, and its stride between slots */
    uint n_slots, n_pos;
    uint n_pairs;
    uint freq_at; /* words */
    float mag;
    Part part[3];
};

#include "halves.glsl"
#include "rounding.glsl"
#include "rope.glsl"
#include "store.glsl"

uint kind_of(uint m) {
    return m == 0 ? PART_0 : m == 1 ? PART_1 : PART_2;
}

bool is_keys(uint m) {
    return kind_of(m) == PART_KEYS || kind_of(m) == PART_ROTATED_KEYS;
}

uint type_of(uint m) {
    return is_keys(m) ? TYPE_K : TYPE_V;
}

/* --- rows of x -------------------------------------------------------------------------------- */

uint row_at;  /* of the row to store, in x */
int row_pos;  /* its position */

/* Returns element i of the row, of part m. */
float element(uint m, uint i) {
    if (kind_of(m) != PART_ROTATED_KEYS || i >= 2 * n_pairs)
        return x[row_at + i];
    uint pair = !HALF ? i / 2 : i < n_pairs ? i : i - n_pairs;
    uvec2 at = pair_at(pair);
    float p = x[row_at + at.x], q = x[row_at + at.y];
    vec2 cs = cosine_sine(pair, row_pos);
    return i == at.x ? rotated_first(p, q, cs) : rotated_second(p, q, cs);
}

const uint ROWS = 4; /* heads that share an angle in an invocation */

/* The pairs of some heads, then the elements that are not rotated. */
void rotate(uint m, uint u) {
    uint n = part[m].n, n_heads = part[m].n_heads, across = n - n_pairs, by_head = (n_heads + ROWS - 1) / ROWS;
    uint i = u % across, first = u / across % by_head * ROWS, l = u / across / by_head;
    vec2 cs = i < n_pairs ? cosine_sine(i, positions[pos_at + l * pos_step]) : vec2(1, 0);
    for (uint h = first; h < min(first + ROWS, n_heads); h++)
        rotate_pair(i, cs, part[m].x_at + h * part[m].x_step[0] + l * part[m].x_step[1],
                    part[m].to_at + (l * n_heads + h) * n);
}

/* --- stores ----------------------------------------------------------------------------------- */

/* Stores the lower n bytes of `bits` at byte `at` of the store of part m; n is at least the size of a
 * number. */
void put(uint m, uint at, uint bits, uint n) {
#if BITS == 32
    uint shift = 8 * (at & 3), mask = (1 << 8 * n) - 1 << shift;
    if (n == 4 && is_keys(m)) {
        keys[at >> 2] = bits;
    } else if (n == 4) {
        values[at >> 2] = bits;
    } else if (is_keys(m)) {
        atomicAnd(keys[at >> 2], ~mask);
        atomicOr(keys[at >> 2], bits << shift & mask);
    } else {
        atomicAnd(values[at >> 2], ~mask);
        atomicOr(values[at >> 2], bits << shift & mask);
    }
#else
    for (uint i = 0; i < n; i += BITS / 8)
        if (is_keys(m))
            keys[(at + i) / (BITS / 8)] = NUMBER(bits >> 8 * i);
        else
            values[(at + i) / (BITS / 8)] = NUMBER(bits >> 8 * i);
#endif
}

uint bf16_bits(float f) {
    uint u = floatBitsToUint(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return u >> 16 | 0x40;
    return u + 0x7fff + (u >> 16 & 1) >> 16;
}

uint element_bits(uint type, float f) {
    return type == F32 ? floatBitsToUint(f) : type == F16 ? half_bits(f) : bf16_bits(f);
}

/* Elements of an invocation. */
uint unit_of(uint m) {
    return is_quantized(type_of(m)) ? BLOCK : 4;
}

void put_plain(uint m, uint page, uint lane, uint first) {
    uint type = type_of(m), n = part[m].n;
    for (uint i = first; i < min(first + unit_of(m), n); i++)
        put(m, page + element_at(type, is_keys(m), n, lane, i), element_bits(type, element(m, i)),
            element_size(type));
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
void put_block(uint m, uint page, uint lane, uint b) {
    uint type = type_of(m);
    float v[BLOCK];
    for (uint i = 0; i < BLOCK; i++)
        v[i] = element(m, BLOCK * b + i);
    float most = extreme(v), d = type == Q8_0 ? quotient(abs(most), 127) : most / -8;
    float inverse = d != 0 ? quotient(1, d) : 0;
    put(m, page + scale_at(type, lane, b), half_bits(d), 2);
    for (uint i = 0; i < code_bytes(type); i++) {
        uint q;
        if (type == Q8_0)
            q = finite(inverse) ? uint(round_away(v[i] * inverse)) + 128 : 128;
        else
            q = code_q4_0(v[i], inverse) | code_q4_0(v[i + 16], inverse) << 4;
        put(m, page + code_at(type, is_keys(m), lane, b, i), q, 1);
    }
}

/* Stores some elements of a row of part m. */
void keep(uint m, uint u) {
    uint n = part[m].n, n_heads = part[m].n_heads;
    uint units = (n + unit_of(m) - 1) / unit_of(m), first = u % units * unit_of(m);
    uint h = u / units % n_heads, l = u / units / n_heads;
    int slot = slots[slot_at + l * slot_step], pos = positions[pos_at + l * pos_step];
    if (slot < 0 || uint(slot) >= n_slots || pos < 0)
        return; /* an invalid slot or position: write nothing */
    uint number = uint(pos) / PAGE, lane = uint(pos) % PAGE, in_slot = n_pos / PAGE;
    uint in_store = RING ? uint(slot) * in_slot + number % in_slot
                         : uint(pages[page_at + uint(slot) * page_step + number]);
    row_at = part[m].x_at + h * part[m].x_step[0] + l * part[m].x_step[1];
    row_pos = pos;
    uint page = part[m].to_at + (in_store * n_heads + h) * PAGE * row_size(type_of(m), n);
    if (is_quantized(type_of(m)))
        put_block(m, page, lane, first / BLOCK);
    else
        put_plain(m, page, lane, first);
}

/* --- parts ------------------------------------------------------------------------------------ */

uint units(uint m) {
    uint n = part[m].n, n_heads = part[m].n_heads;
    if (kind_of(m) == PART_NONE)
        return 0;
    if (kind_of(m) == PART_ROTATED)
        return n_batch * (n - n_pairs) * ((n_heads + ROWS - 1) / ROWS);
    return n_batch * n_heads * ((n + unit_of(m) - 1) / unit_of(m));
}

uint groups(uint m) {
    return (units(m) + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
}

/* Runs workgroup g of part m. */
void run(uint m, uint g) {
    uint u = g * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (u >= units(m))
        return;
    if (kind_of(m) == PART_ROTATED)
        rotate(m, u);
    else
        keep(m, u);
}

/* A workgroup has invocations of one part. */
void main() {
    const uint n_0 = groups(0), n_1 = groups(1), n = n_0 + n_1 + groups(2);
    for (uint g = gl_WorkGroupID.x; g < n; g += gl_NumWorkGroups.x)
        if (g < n_0)
            run(0, g);
        else if (g < n_0 + n_1)
            run(1, g - n_0);
        else
            run(2, g - n_0 - n_1);
}
