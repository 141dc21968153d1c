/* Shared by attend.comp, attend_tiles.comp and attend_matrix.comp: operands, pages, and rows of the
 * store. The including shader declares the constants TYPE_K, TYPE_V, D (dimensions of keys), E
 * (dimensions of values) and OPTIONS, and defines TILE, the queries of a tile. */

const bool WINDOW = (OPTIONS & 1) != 0, CAP = (OPTIONS & 2) != 0, SINKS = (OPTIONS & 4) != 0,
           ALIBI = (OPTIONS & 8) != 0, SPLIT = (OPTIONS & 16) != 0,
           IN_KEYS = (OPTIONS & 32) != 0, /* values are the first dimensions of the keys */
           RING = (OPTIONS & 64) != 0,
           MIXED = (OPTIONS & 128) != 0, /* only tiles whose tokens have different slots */
           WIDE_TILES = (OPTIONS & 256) != 0, /* the tiles are those of attend_matrix.comp */
           CODED_K = (OPTIONS & 512) != 0,    /* codes of keys are multiplied (attend_codes.glsl, attend_tiles_codes.glsl), .. */
           CODED_V = (OPTIONS & 1024) != 0,   /* .. and of values (attend_weights.glsl, for attend.comp), in integers */
           END = (OPTIONS & 2048) != 0,       /* tokens see all rows of their text, also later ones */
           WITHIN = (OPTIONS & 32768) != 0;   /* a token sees a part of these rows alone */

layout(set = 0, binding = 0) readonly buffer Queries { float queries[]; };
/* The stores, in words, and in twos and fours of them: rows of a page are aligned accordingly. */
layout(set = 0, binding = 1) restrict readonly buffer Keys { uint keys[]; };
layout(set = 0, binding = 1) restrict readonly buffer Keys2 { uvec2 keys2[]; };
layout(set = 0, binding = 1) restrict readonly buffer Keys4 { uvec4 keys4[]; };
layout(set = 0, binding = 2) restrict readonly buffer Values { uint values[]; };
layout(set = 0, binding = 2) restrict readonly buffer Values2 { uvec2 values2[]; };
layout(set = 0, binding = 2) restrict readonly buffer Values4 { uvec4 values4[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float y[]; };
layout(set = 0, binding = 3) writeonly buffer Sums { vec4 sums[]; };
layout(set = 0, binding = 4) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 5) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 6) readonly buffer Pages { int pages[]; };
layout(set = 0, binding = 7) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 8) readonly buffer Alibi { float alibi[]; };
layout(set = 0, binding = 9) readonly buffer Ends { int ends[]; };
layout(set = 0, binding = 11) readonly buffer Within { float within[]; }; /* without rel_k, which attend_distance.glsl has here */

layout(push_constant) uniform Push {
    uint n_heads, n_store_heads, n_batch;
    uint q_at, q_step[2];                 /* strides between heads and between tokens */
    uint y_at, y_step[2];                 /* partial results, if SPLIT */
    uint sinks_at, sinks_step[2], alibi_at, alibi_step[2];
    uint pos_at, pos_step, slot_at, slot_step;
    uint page_at, page_step;              /* the table of pages, and its stride between slots */
    uint k_at, v_at;                      /* bytes */
    uint n_pos, n_slots;
    int window;
    float scale, cap;
    uint n_spans;
    uint sums_at;                         /* weighted sums of partial results, in vectors */
    /* Where ends, biases, rel_k and rel_q begin in their bindings: a byte of `begins` each. Bindings are aligned to at most 256
     * bytes, so these are less than 64. With WITHIN, `within` begins where rel_k would, and rel_row_at is its stride between tokens. */
    uint begins, rel_row_at;
};

#include "functions.glsl"
#include "store.glsl"

uint me() {
    return gl_LocalInvocationID.x;
}

/* Returns the larger number, ignoring NaN in b. */
float larger(float a, float b) {
    return b > a ? b : a;
}

/* --- numbers of the store, four at a time ----------------------------------------------------- */

/* Four numbers take up to four words. A byte of q4_0 has two codes, so the words of q4_0 have
 * twice four numbers: HALF_K and HALF_V are their numbers of halves. */
const bool CODES_K = TYPE_K == Q4_0 || TYPE_K == Q8_0, CODES_V = TYPE_V == Q4_0 || TYPE_V == Q8_0;
const uint HALF_K = TYPE_K == Q4_0 ? 2 : 1, HALF_V = TYPE_V == Q4_0 ? 2 : 1;

vec4 four_plain(uint type, uvec4 w) {
    if (type == F32)
        return uintBitsToFloat(w);
    if (type == F16)
        return vec4(halves_to_floats(w.x), halves_to_floats(w.y));
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000, w.y << 16, w.y & 0xffff0000));
}

/* Returns the codes of a word; half_: which codes of q4_0's bytes. */
vec4 four_codes(uint type, uint w, uint half_) {
    uint n = type == Q8_0 ? w : w >> 4 * half_ & 0x0f0f0f0f;
    return vec4(n & 0xff, n >> 8 & 0xff, n >> 16 & 0xff, n >> 24) - (type == Q8_0 ? 128 : 8);
}

/* Returns the codes in byte i of four words. */
vec4 codes_of_byte(uint type, uvec4 w, uint i, uint half_) {
    return type == Q8_0 ? vec4(w >> 8 * i & 0xff) - 128 : vec4(w >> 8 * i + 4 * half_ & 15) - 8;
}

vec4 four_halves(uvec2 w) {
    return four_plain(F16, uvec4(w, 0, 0));
}

/* Rows of a page of keys have 64 positions: numbers of one dimension, or words with codes of K_DIMS
 * dimensions, or twice as many of q4_0. A block has K_BLOCK rows. */
const uint K_DIMS = CODES_K ? 4 : 1, K_ROWS = D / (K_DIMS * HALF_K), K_BLOCK = BLOCK / (K_DIMS * HALF_K);

/* Returns dimension i of row t. */
uint key_dim(uint t, uint half_, uint i) {
    return CODES_K ? t / K_BLOCK * BLOCK + t % K_BLOCK * 4 + 16 * half_ + i : t;
}

/* Returns the words of positions 4 p .. 4 p + 3 in row t of a page of keys. */
uvec4 key_words(uint page, uint t, uint p) {
    if (CODES_K)
        return keys4[(page + code_at(TYPE_K, true, 4 * p, t / K_BLOCK, t % K_BLOCK * 4)) >> 4];
    uint at = page + element_at(TYPE_K, true, D, 4 * p, t);
    return TYPE_K == F32 ? keys4[at >> 4] : uvec4(keys2[at >> 3], 0, 0);
}

/* Returns the scales of these positions, in block b. */
uvec2 key_scales(uint page, uint b, uint p) {
    return keys2[(page + scale_at(TYPE_K, 4 * p, b)) >> 3];
}

/* Returns dimension i of the row at four positions. */
vec4 key_four(uvec4 w, uvec2 scales, uint half_, uint i) {
    return CODES_K ? four_halves(scales) * codes_of_byte(TYPE_K, w, i, half_) : four_plain(TYPE_K, w);
}

/* A value's dimensions are divided into units: four dimensions, or twice four of a block of q4_0,
 * whose last one may be a part, if values are in keys. */
const uint LAST = (E % BLOCK + 3) / 4,
           UNITS = TYPE_V == Q4_0 ? E / BLOCK * 4 + (LAST < 4 ? LAST : 4) : (E + 3) / 4,
           UNITS_IN_BLOCK = TYPE_V == Q4_0 ? 4 : 8;

uint unit_dim(uint unit, uint half_) {
    return TYPE_V == Q4_0 ? unit / 4 * BLOCK + unit % 4 * 4 + 16 * half_ : 4 * unit;
}

/* Returns 16 bits of the values. */
uint value_bits(uint at) {
    return values[at >> 2] >> 8 * (at & 2) & 0xffff;
}

/* Returns the words of a unit of the value in a row of a page, for types without codes. */
uvec4 value_words(uint page, uint row, uint unit) {
    uint at = page + element_at(TYPE_V, false, E, row, 4 * unit);
    if (E % 4 == 0)
        return TYPE_V == F32 ? values4[at >> 4] : uvec4(values2[at >> 3], 0, 0);
    uvec4 w;
    for (uint i = 0; i < 4; i++) {
        uint one = page + element_at(TYPE_V, false, E, row, min(4 * unit + i, E - 1));
        w[i] = TYPE_V == F32 ? values[one >> 2] : value_bits(one);
    }
    return TYPE_V == F32 ? w : uvec4(w.x | w.y << 16, w.z | w.w << 16, 0, 0);
}

/* Returns the words of the codes of a unit of four values: a word for each dimension. */
uvec4 code_words(uint page, uint four, uint unit) {
    uint k = unit % UNITS_IN_BLOCK * 4;
    return values4[(page + code_at(TYPE_V, false, 4 * four, unit / UNITS_IN_BLOCK, k)) >> 4];
}

/* Returns the scales of these values, in block b. */
uvec2 value_scales(uint page, uint b, uint four) {
    return values2[(page + scale_at(TYPE_V, 4 * four, b)) >> 3];
}

/* Loads a unit of four values, from value 4 four on. Codes: w[0] has a word for each dimension, or, in
 * keys, for each position, and w[1] has the scales of the positions. Others: w[i] has value i, or,
 * in keys, dimension i of the four. */
void load_values(uint page, uint four, uint unit, out uvec4 w[4]) {
    w[0] = w[1] = w[2] = w[3] = uvec4(0);
    if (CODES_V) {
        w[0] = IN_KEYS ? key_words(page, unit, four) : code_words(page, four, unit);
        w[1].xy = IN_KEYS ? key_scales(page, unit / UNITS_IN_BLOCK, four)
                          : value_scales(page, unit / UNITS_IN_BLOCK, four);
        return;
    }
    [[unroll]] for (uint i = 0; i < 4; i++)
        w[i] = IN_KEYS ? key_words(page, min(4 * unit + i, D - 1), four)
                       : value_words(page, 4 * four + i, unit);
}

/* Returns value i of four. */
vec4 value_of(uvec4 w[4], uint i, uint half_) {
    if (CODES_V)
        return four_halves(w[1].xy)[i] * (IN_KEYS ? four_codes(TYPE_V, w[0][i], half_)
                                                  : codes_of_byte(TYPE_V, w[0], i, half_));
    if (!IN_KEYS)
        return four_plain(TYPE_V, w[i]);
    return vec4(four_plain(TYPE_K, w[0])[i], four_plain(TYPE_K, w[1])[i], four_plain(TYPE_K, w[2])[i],
                four_plain(TYPE_K, w[3])[i]);
}

bool is_finite(vec4 v) {
    uvec4 u = floatBitsToUint(v) & 0x7fffffff;
    return max(max(u.x, u.y), max(u.z, u.w)) < 0x7f800000;
}

/* --- pages ------------------------------------------------------------------------------------ */

/* Returns the row of the store at which page `number` of a slot begins, for one of its heads. */
uint page_row(uint slot, uint store_head, uint number) {
    uint in_slot = n_pos / PAGE;
    uint in_store = RING ? slot * in_slot + number % in_slot
                         : uint(pages[page_at + slot * page_step + number]);
    return (in_store * n_store_heads + store_head) * PAGE;
}

uint key_page(uint row) {
    return k_at + row * row_size(TYPE_K, D);
}

uint value_page(uint row) {
    return v_at + row * row_size(TYPE_V, E);
}

/* --- queries and results ---------------------------------------------------------------------- */

/* Pairs of a token and a head that reads one head of the store, tokens slowest. */
uint n_pairs() {
    return n_batch * (n_heads / n_store_heads);
}

uint token_of(uint pair) {
    return pair / (n_heads / n_store_heads);
}

uint head_of(uint pair, uint store_head) {
    uint per = n_heads / n_store_heads;
    return store_head * per + pair % per;
}

/* Where the query of a pair begins. */
uint query_at(uint pair, uint store_head) {
    return q_at + token_of(pair) * q_step[1] + head_of(pair, store_head) * q_step[0];
}

int position_of(uint token) {
    return positions[pos_at + token * pos_step];
}

/* Narrows the first and the last position that a token sees by the rule of ggl_visible_within (ggl/internal/graph.h). */
ivec2 narrowed(ivec2 rows, uint token) {
    uint at = (begins >> 16 & 0xff) + token * rel_row_at;
    float a = within[at], b = within[at + 1];
    if (!is_nan(a) && a > float(rows.x))
        rows.x = a < float(rows.y) ? int(a) : rows.y;
    if (!is_nan(b) && b < float(rows.y) + 1)
        rows.y = b >= float(rows.x) + 1 ? int(b) - 1 : rows.x;
    return rows;
}

/* Returns the first and the last position that a token sees, by the rule of ggl_visible_rows (ggl/internal/graph.h). */
ivec2 seen_by(uint token) {
    int pos = position_of(token), end = END ? ends[(begins & 0xff) + token] : 0, back = window - 1, last = pos;
    if (end > 0) {
        back = window / 2;
        last = WINDOW && end - 1 - pos > back ? pos + back : end - 1;
    }
    int first = WINDOW ? max(pos - back, 0) : 0;
    ivec2 rows = ivec2(END ? min(first, last) : first, last);
    return WITHIN ? narrowed(rows, token) : rows;
}

/* Whether the tokens of the tile from pair `first` on have the same slot; with one slot, others are
 * none. attend_tiles.comp or attend_matrix.comp processes these tiles, attend.comp the others. */
bool in_one_slot(uint first) {
    if (n_slots == 1)
        return true;
    uint token = token_of(first), last = token_of(min(first + TILE, n_pairs()) - 1);
    int slot = slots[slot_at + token * slot_step];
    bool same = true;
    for (token++; token <= last; token++)
        same = same && slots[slot_at + token * slot_step] == slot;
    return same;
}

/* Turns the product of a query at position `pos` and the key at position p into a score. */
float score_of(float product, uint token, uint head, int pos, int p) {
    float s = product * scale;
    if (CAP)
        s = cap * tanh_of(s / cap);
    if (ALIBI)
        s -= alibi[alibi_at + head * alibi_step[0] + token * alibi_step[1]] * abs(float(pos - p));
    return s;
}

/* The result is the weighted sum times .x divided by .y. */
vec2 factors(uint token, uint head, float top, float total) {
    if (!SINKS)
        return vec2(1, total);
    float sink = sinks[sinks_at + head * sinks_step[0] + token * sinks_step[1]];
    float now = larger(top, sink), down = exp_of(top - now);
    return vec2(down, total * down + exp_of(sink - now));
}

void store_total(uint token, uint head, uint span, float top, float total) {
    uint at = y_at + ((token * n_heads + head) * n_spans + span) * 2;
    y[at] = top;
    y[at + 1] = total;
}

/* Stores four dimensions of a result, or of a partial one. */
void store_four(uint token, uint head, uint span, uint dim, vec4 sum, vec2 by) {
    if (dim >= E)
        return;
    if (SPLIT) {
        sums[sums_at + ((token * n_heads + head) * n_spans + span) * ((E + 3) / 4) + dim / 4] = sum;
        return;
    }
    uint at = y_at + head * y_step[0] + token * y_step[1] + dim;
    sum = sum * by.x / by.y;
    y[at] = sum.x;
    for (uint i = 1; i < 4; i++)
        if (E % 4 == 0 || dim + i < E)
            y[at + i] = sum[i];
}
