/* Scores by integer dot products, for keys of q8_0 and q4_0 (docs/numeric.md, section 6): queries are rounded to signed
 * bytes in blocks of 32, and the codes of a key are multiplied by those. Included by attend.comp. For other keys
 * (not CODED_K) nothing of this is called.
 *
 * An invocation takes pieces of keys, at four positions: G rows of a page, which belong to one block. */

#include "dot4.glsl"
#include "rounding.glsl"

const uint WORDS = CODED_K ? D / 4 : 1, BLOCKS = CODED_K ? D / BLOCK : 1, IN_BLOCK = BLOCK / 4;

/* Returns the largest G so that each of PARTS invocations has as many pieces. */
const uint G = !CODED_K                              ? 1
               : K_ROWS % (K_BLOCK * PARTS) == 0     ? K_BLOCK
               : K_ROWS % (K_BLOCK / 2 * PARTS) == 0 ? K_BLOCK / 2
                                                     : K_BLOCK / 4,
           PIECES = CODED_K ? K_ROWS / G : PARTS, K_TURNS = PIECES / PARTS;
/* All pieces of an invocation are loaded before the first is used, if these are few words. */
const uint AT_ONCE = K_TURNS * G * 2 <= AHEAD ? K_TURNS : 1;

shared uint q_code[CODED_K ? WORDS * Q : 1];    /* [four dimensions][query] */
shared uint q_most[CODED_K ? WORDS * Q : 1];    /* bits of the largest magnitude of the four */
shared float q_scale[CODED_K ? BLOCKS * Q : 1]; /* [block][query] */
/* [piece][query]: the codes of q4_0 are 8 larger than the numbers, so this is -8 times the sum of a piece's bytes */
shared int q_less[CODED_K ? PIECES * Q : 1];

/* Returns the word of the codes that row t is multiplied with. */
uint word_of(uint t, uint half_) {
    return key_dim(t, half_, 0) / 4;
}

void find_most(uint at[Q]) {
    for (uint i = me(); i < WORDS; i += L)
        [[unroll]] for (uint q = 0; q < Q; q++) {
            uint most = 0;
            [[unroll]] for (uint k = 0; k < 4; k++)
                most = max(most, floatBitsToUint(queries[at[q] + 4 * i + k]) & 0x7fffffff);
            q_most[i * Q + q] = most;
        }
}

/* Rounds four numbers of query q, of word i. */
void round_four(uint from, uint i, uint q) {
    uint most = 0, word = 0;
    [[unroll]] for (uint k = 0; k < IN_BLOCK; k++)
        most = max(most, q_most[(i / IN_BLOCK * IN_BLOCK + k) * Q + q]);
    float inverse = block_inverse(most);
    [[unroll]] for (uint k = 0; k < 4; k++)
        word |= (int(roundEven(queries[from + 4 * i + k] * inverse)) & 0xff) << 8 * k;
    q_code[i * Q + q] = is_rounded(most) ? word : 0;
    if (i % IN_BLOCK == 0)
        q_scale[i / IN_BLOCK * Q + q] = block_scale(most);
}

/* Takes Q queries, which begin at at[]. */
void load_coded_queries(uint at[Q]) {
    find_most(at);
    barrier();
    for (uint i = me(); i < WORDS; i += L)
        [[unroll]] for (uint q = 0; q < Q; q++)
            round_four(at[q], i, q);
    if (TYPE_K != Q4_0)
        return;
    barrier();
    for (uint i = me(); i < PIECES * Q; i += L) {
        int all = 0;
        for (uint j = 0; j < G; j++)
            for (uint h = 0; h < HALF_K; h++)
                all += dot4(q_code[word_of(i / Q * G + j, h) * Q + i % Q], 0x01010101);
        q_less[i] = -8 * all;
    }
}

/* Returns the codes of four words, as bytes that are signed, or 8 too large (q4_0). */
uvec4 key_codes(uvec4 w, uint half_) {
    return TYPE_K == Q8_0 ? w ^ 0x80808080 : w >> 4 * half_ & 0x0f0f0f0f;
}

/* Adds a piece's part of the scores. */
void add_piece(uint piece, uvec4 w[G], uvec2 scales, inout vec4 s[Q]) {
    ivec4 d[Q];
    [[unroll]] for (uint q = 0; q < Q; q++)
        d[q] = ivec4(TYPE_K == Q4_0 ? q_less[piece * Q + q] : 0);
    [[unroll]] for (uint j = 0; j < G; j++)
        [[unroll]] for (uint h = 0; h < HALF_K; h++) {
            uvec4 k = key_codes(w[j], h);
            uint at = word_of(piece * G + j, h) * Q;
            [[unroll]] for (uint q = 0; q < Q; q++) {
                uint x = q_code[at + q];
                d[q] += ivec4(dot4(k.x, x), dot4(k.y, x), dot4(k.z, x), dot4(k.w, x));
            }
        }
    vec4 by = four_halves(scales);
    [[unroll]] for (uint q = 0; q < Q; q++)
        s[q] += vec4(d[q]) * by * q_scale[piece * G / K_BLOCK * Q + q];
}

/* Adds up the products of the queries and four keys, over every PARTS-th piece of the page. */
void multiply_coded_keys(uint page, out vec4 s[Q]) {
    uint four = me() % FOURS, own = me() / FOURS;
    [[unroll]] for (uint q = 0; q < Q; q++)
        s[q] = vec4(0);
    [[dont_unroll]] for (uint turn = 0; turn < K_TURNS; turn += AT_ONCE) {
        uvec4 w[AT_ONCE][G];
        uvec2 scales[AT_ONCE];
        [[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
            uint piece = (turn + a) * PARTS + own;
            scales[a] = key_scales(page, piece * G / K_BLOCK, four);
            [[unroll]] for (uint j = 0; j < G; j++)
                w[a][j] = key_words(page, piece * G + j, four);
        }
        [[unroll]] for (uint a = 0; a < AT_ONCE; a++)
            add_piece((turn + a) * PARTS + own, w[a], scales[a], s);
    }
}
