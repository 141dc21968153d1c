/* Norms of rows: a row divided by a number of its own, or minus its mean. The result may be multiplied by
 * weights (WEIGHT) and rounded to blocks (ROUND). A workgroup computes a row; its size determines the order of
 * sums. The including file defines NORM (the kind), WEIGHT, ROUND and STORE (false: only the rounded result is
 * stored), declares blocks[], and defines the functions below.
 *
 * One workgroup has no other work while it waits for the memory, so an invocation has several loads under way. */

#extension GL_EXT_control_flow_attributes : require

#include "group.glsl"

uint row_size();
/* Returns element i when it is read for the first time, by the only invocation that reads it before a barrier. */
float first_read(uint i);
/* Stores element i if it is read from there later on; called once first_read() has returned it. */
void keep(uint i, float v);
/* Returns element i later on. */
float read_again(uint i);
float weight_of(uint i);
void store_number(uint i, float v);

/* Adds up the elements from i on, AHEAD of which are loaded at once, while there are so many. */
#define ADD_UP(AHEAD)                                                                                                  \
    for (; i + (AHEAD - 1) * step < row_size(); i += AHEAD * step) {                                                   \
        float v[AHEAD];                                                                                                \
        [[unroll]] for (uint k = 0; k < AHEAD; k++)                                                                    \
            v[k] = first_read(i + k * step);                                                                           \
        [[unroll]] for (uint k = 0; k < AHEAD; k++) {                                                                  \
            keep(i + k * step, v[k]);                                                                                  \
            s += squares ? v[k] * v[k] : v[k];                                                                         \
        }                                                                                                              \
    }

/* Adds up the elements, or their squares. */
float row_total(bool squares) {
    const uint step = gl_WorkGroupSize.x;
    precise float s = 0.0;
    uint i = gl_LocalInvocationID.x;
    ADD_UP(16)
    ADD_UP(4)
    ADD_UP(1)
    return group_sum(s);
}

float row_sum() {
    return row_total(false);
}

float row_squares() {
    return row_total(true);
}

float norm_by; /* what elements are divided by; ROW_CENTER: what is subtracted from them */

bool as_it_is = false; /* the row is only rounded */

/* Returns element i of the normalized row. */
float number(uint i) {
    if (as_it_is)
        return read_again(i);
    precise float v = NORM == ROW_CENTER ? read_again(i) - norm_by : divided(read_again(i), norm_by);
    if (WEIGHT)
        v *= weight_of(i);
    return v;
}

#include "round.glsl"

/* --- rounding by the whole workgroup ---------------------------------------------------------- */

/* Four neighboring numbers of a block are a word of codes. An invocation makes ROUND_AHEAD words, and the eight that
 * share a block exchange the largest numbers and the sums of their codes. */
const uint WORDS = BLOCK / 4, ROUND_AHEAD = 4;

shared uint round_most[ROUND ? ROUND_AHEAD * gl_WorkGroupSize.x : 1];
shared int round_sum[ROUND ? ROUND_AHEAD * gl_WorkGroupSize.x : 1];

uint largest_of(vec4 v) {
    uvec4 u = floatBitsToUint(v) & 0x7fffffff;
    return max(max(u.x, u.y), max(u.z, u.w));
}

/* Stores word `word` of a block, and the block's tail if it is the first. */
void store_word(uint block, uint word, uint codes, uint at, float scale) {
    blocks[block + word / 4][word % 4] = codes;
    if (word > 0)
        return;
    int low = 0, high = 0;
    for (uint i = 0; i < WORDS / 2; i++) {
        low += round_sum[at + i];
        high += round_sum[at + WORDS / 2 + i];
    }
    blocks[block + 2] = uvec4(floatBitsToUint(scale), low, high, 0);
}

/* Rounds the row to blocks from blocks[to] on, as round_block() does. The workgroup has a multiple of WORDS invocations. */
void round_row(uint to) {
    const uint n = row_size() / 4, step = gl_WorkGroupSize.x, me = gl_LocalInvocationID.x, share = me % WORDS;
    for (uint first = 0; first < n; first += ROUND_AHEAD * step) {
        vec4 v[ROUND_AHEAD];
        [[unroll]] for (uint k = 0; k < ROUND_AHEAD; k++) {
            uint w = min(first + k * step + me, n - 1);
            v[k] = first + k * step < n ? vec4(number(4 * w), number(4 * w + 1), number(4 * w + 2), number(4 * w + 3))
                                        : vec4(0);
        }
        [[unroll]] for (uint k = 0; k < ROUND_AHEAD; k++)
            round_most[k * step + me] = largest_of(v[k]);
        barrier();
        uint codes[ROUND_AHEAD];
        float scale[ROUND_AHEAD];
        [[unroll]] for (uint k = 0; k < ROUND_AHEAD; k++) {
            uint at = k * step + me - share, most = 0;
            int sum = 0;
            for (uint i = 0; i < WORDS; i++)
                most = max(most, round_most[at + i]);
            scale[k] = block_scale(most);
            codes[k] = is_rounded(most) ? codes_of_four(v[k], block_inverse(most), sum) : 0;
            round_sum[k * step + me] = sum;
        }
        barrier();
        [[unroll]] for (uint k = 0; k < ROUND_AHEAD; k++) {
            uint w = first + k * step + me;
            if (w < n)
                store_word(to + 3 * (w / WORDS), share, codes[k], k * step + me - share, scale[k]);
        }
    }
}

/* --- a row ------------------------------------------------------------------------------------ */

/* Stores the elements from i on, as ADD_UP loads them. */
#define STORE_UP(AHEAD)                                                                                                \
    for (; i + (AHEAD - 1) * step < row_size(); i += AHEAD * step) {                                                   \
        float v[AHEAD];                                                                                                \
        [[unroll]] for (uint k = 0; k < AHEAD; k++)                                                                    \
            v[k] = number(i + k * step);                                                                               \
        [[unroll]] for (uint k = 0; k < AHEAD; k++)                                                                    \
            store_number(i + k * step, v[k]);                                                                          \
    }

/* Stores the normalized row, row `row` of the blocks. The result may lie over what is read, so nothing is stored
 * before all invocations have read what they round. */
void normalize(uint row, uint blocks_at, float by) {
    const uint step = gl_WorkGroupSize.x;
    norm_by = by;
    if (ROUND) {
        uint to = blocks_at / 4 + 3 * (row * (row_size() / BLOCK));
        memoryBarrierBuffer();
        barrier();
        memoryBarrierBuffer();
        round_row(to);
        barrier();
    }
    uint i = STORE ? gl_LocalInvocationID.x : row_size();
    STORE_UP(16)
    STORE_UP(4)
    STORE_UP(1)
}

/* Returns what a norm of one of the kinds from ROW_RMS on divides the row by, or subtracts from it. */
float divisor(float eps) {
    float n = float(row_size());
    switch (NORM) {
    case ROW_RMS: return sqrt_of(row_squares() / n + eps);
    case ROW_CENTER: return row_sum() / n;
    case ROW_L2: return sqrt_of(max_of(row_squares(), eps * eps));
    default: return row_sum(); /* ROW_NORMALISED */
    }
}

void norm_row(uint row, uint blocks_at, float eps) {
    normalize(row, blocks_at, divisor(eps));
}
