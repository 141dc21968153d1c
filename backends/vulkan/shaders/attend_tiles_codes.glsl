/* Scores of tiles by integer dot products, for keys of q8_0 and q4_0 (docs/numeric.md, section 6): the queries of a tile are
 * rounded to signed bytes once, and the codes of a page's keys are multiplied by them, block by block. Included by
 * attend_tiles.comp; without CODED_K nothing of this is called. */

#include "dot4.glsl"
#include "rounding.glsl"

const uint IN_BLOCK = BLOCK / 4, BLOCKS = CODED_K ? D / BLOCK : 1; /* words of a block; blocks of a query */
const uint CODE_LOADS = CODED_K ? K_BLOCK * FOURS : 1;             /* loads of a block of a page */

shared uvec4 q_code[CODED_K ? BLOCKS * IN_BLOCK * (TILE / 4) : 1]; /* [word][four queries] */
shared vec4 q_scale[CODED_K ? BLOCKS * (TILE / 4) : 1];            /* [block][four queries] */
shared uvec4 k_code[CODED_K ? IN_BLOCK * FOURS : 1];               /* [word][four positions] */
shared vec4 k_scale[CODED_K ? FOURS : 1];

/* Rounds block b of query q, which begins at `from`. */
void round_query(uint from, uint q, uint b) {
    uint most = 0;
    for (uint i = 0; i < BLOCK; i++)
        most = max(most, floatBitsToUint(queries[from + i]) & 0x7fffffff);
    float inverse = block_inverse(most);
    for (uint i = 0; i < IN_BLOCK; i++) {
        uint word = 0;
        for (uint k = 0; k < 4; k++)
            word |= (int(roundEven(queries[from + 4 * i + k] * inverse)) & 0xff) << 8 * k;
        q_code[(b * IN_BLOCK + i) * (TILE / 4) + q / 4][q % 4] = is_rounded(most) ? word : 0;
    }
    q_scale[b * (TILE / 4) + q / 4][q % 4] = block_scale(most);
}

/* Rounds the queries from pair `first` on. */
void round_queries(uint first, uint store_head) {
    for (uint o = me(); o < BLOCKS * TILE; o += L) {
        uint at = query_at(min(first + o % TILE, n_pairs() - 1), store_head);
        round_query(at + o / TILE * BLOCK, o % TILE, o / TILE);
    }
}

/* Loads own words of block b of a page's keys, and the scales of four positions. */
void load_codes(uint page, uint b, out uvec4 w, out uvec2 scales) {
    w = uvec4(0);
    scales = uvec2(0);
    if (me() < CODE_LOADS)
        w = key_words(page, b * K_BLOCK + me() / FOURS, me() % FOURS);
    if (me() < FOURS)
        scales = key_scales(page, b, me());
}

/* Stores them, as signed bytes; those of q4_0 are 16 times the codes. */
void put_codes(uvec4 w, uvec2 scales) {
    if (me() < CODE_LOADS && TYPE_K == Q8_0)
        k_code[me()] = w ^ 0x80808080;
    if (me() < CODE_LOADS && TYPE_K == Q4_0) {
        k_code[me()] = (w << 4 & 0xf0f0f0f0) ^ 0x80808080;
        k_code[me() + CODE_LOADS] = (w & 0xf0f0f0f0) ^ 0x80808080;
    }
    if (me() < FOURS)
        k_scale[me()] = four_halves(scales) * (TYPE_K == Q8_0 ? 1 : 1.0 / 16);
}

/* Adds block b's part of own scores. */
void add_codes(uint b, inout vec4 s[4]) {
    ivec4 d[4] = ivec4[](ivec4(0), ivec4(0), ivec4(0), ivec4(0));
    [[unroll]] for (uint j = 0; j < IN_BLOCK; j++) {
        uvec4 k = k_code[j * FOURS + me() % FOURS], q = q_code[(b * IN_BLOCK + j) * (TILE / 4) + me() / FOURS];
        [[unroll]] for (uint i = 0; i < 4; i++)
            d[i] += ivec4(dot4(k.x, q[i]), dot4(k.y, q[i]), dot4(k.z, q[i]), dot4(k.w, q[i]));
    }
    vec4 k = k_scale[me() % FOURS], q = q_scale[b * (TILE / 4) + me() / FOURS];
    [[unroll]] for (uint i = 0; i < 4; i++)
        s[i] += vec4(d[i]) * k * q[i];
}

/* Multiplies queries 4 * (me / FOURS) .. with four keys. */
void multiply_codes(uint page, out vec4 s[4]) {
    uvec4 w;
    uvec2 scales;
    load_codes(page, 0, w, scales);
    [[unroll]] for (uint i = 0; i < 4; i++)
        s[i] = vec4(0);
    [[dont_unroll]] for (uint b = 0; b < BLOCKS; b++) {
        barrier();
        put_codes(w, scales);
        barrier();
        load_codes(page, min(b + 1, BLOCKS - 1), w, scales);
        add_codes(b, s);
    }
    barrier();
}
