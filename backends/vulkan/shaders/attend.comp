#version 450
#extension GL_GOOGLE_include_directive : require

/* Softmax attention over the rows of the KV cache. A workgroup of 64 processes up to Q queries that
 * read the same head of the store (heads of one token, or of neighboring tokens), page by page:
 * each invocation computes the scores of one position, then sums up some dimensions of the values.
 * When a larger score occurs, the sums so far are scaled down.
 *
 * With SPLIT the positions are divided among n_spans workgroups, which write partial results for
 * attend_merge.comp: for each query and span | largest score | sum | e weighted sums |. */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TYPE_K = 0;
layout(constant_id = 2) const uint TYPE_V = 0;
layout(constant_id = 3) const uint Q = 1; /* queries: a power of two up to 8 */
layout(constant_id = 4) const uint R = 1; /* dimensions per invocation: e / 64, rounded up */
layout(constant_id = 5) const uint D = 1; /* dimensions of keys */
layout(constant_id = 6) const uint OPTIONS = 0;

const bool WINDOW = (OPTIONS & 1) != 0, CAP = (OPTIONS & 2) != 0, SINKS = (OPTIONS & 4) != 0,
           ALIBI = (OPTIONS & 8) != 0, SPLIT = (OPTIONS & 16) != 0,
           IN_KEYS = (OPTIONS & 32) != 0, /* values are the first dimensions of the keys */
           RING = (OPTIONS & 64) != 0;

layout(set = 0, binding = 0) readonly buffer Queries { float queries[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uint keys[]; };
layout(set = 0, binding = 2) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float y[]; };
layout(set = 0, binding = 4) readonly buffer Positions { int positions[]; };
layout(set = 0, binding = 5) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 6) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 7) readonly buffer Alibi { float alibi[]; };
layout(set = 0, binding = 8) readonly buffer Pages { int pages[]; };

layout(push_constant) uniform Push {
    uint e, n_heads, n_store_heads, n_batch;
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
};

#include "functions.glsl"
#include "store.glsl"

shared float q_of[D * Q];            /* [dimension][query] */
shared float score[PAGE * Q];        /* [position][query] */
shared float weight[PAGE * Q];
shared float part[PAGE];             /* [query][PAGE / Q] */

/* Per query: its token and head, the visible positions, and whether it takes part in the current
 * slot. */
uint token[Q], head[Q];
int from[Q], last[Q];
bool takes_part[Q];

float top[Q], total[Q]; /* largest score; sum of this invocation's weights */
float sum[Q][R];

uint me() {
    return gl_LocalInvocationID.x;
}

/* --- elements of stores ----------------------------------------------------------------------- */

float plain(uint type, uint bits) {
    return type == F32 ? uintBitsToFloat(bits)
           : type == F16 ? half_to_float(bits & 0xffff) : uintBitsToFloat(bits << 16);
}

/* Returns code i (0 .. 31) of a block, from the byte that contains it. */
float code(uint type, uint bits, uint i) {
    if (type == Q8_0)
        return float(int(bits << 24) >> 24);
    return float(int(bits >> (i < 16 ? 0 : 4) & 15) - 8);
}

uint key_bits(uint at) {
    return keys[at >> 2] >> 8 * (at & 3);
}

uint value_bits(uint at) {
    return values[at >> 2] >> 8 * (at & 3);
}

/* Returns the address of code i in the block whose codes begin at `at`. */
uint code_of(uint type, bool in_keys, uint at, uint i) {
    return at + (type == Q8_0 ? i : i % 16) * code_step(in_keys);
}

/* Returns element i of the value in a lane of a page. */
float value_at(uint page, uint lane, uint i) {
    const uint n = IN_KEYS ? D : e;
    if (!is_quantized(TYPE_V))
        return plain(TYPE_V, value_bits(page + element_at(TYPE_V, IN_KEYS, n, lane, i)));
    uint b = i / BLOCK, at = page + code_at(TYPE_V, IN_KEYS, n, lane, b);
    float s = half_to_float(value_bits(page + scale_at(TYPE_V, IN_KEYS, n, lane, b)) & 0xffff);
    return s * code(TYPE_V, value_bits(code_of(TYPE_V, IN_KEYS, at, i % BLOCK)), i % BLOCK);
}

/* --- queries ---------------------------------------------------------------------------------- */

/* Sets up Q queries: pairs of token and head, tokens slowest, from pair `first` on, among those
 * that read this head of the store. */
void set_queries(uint first, uint store_head) {
    uint per = n_heads / n_store_heads;
    for (uint q = 0; q < Q; q++) {
        uint pair = min(first + q, n_batch * per - 1);
        token[q] = pair / per;
        head[q] = store_head * per + pair % per;
        int pos = positions[pos_at + token[q] * pos_step];
        from[q] = WINDOW ? max(pos - window + 1, 0) : 0;
        last[q] = first + q < n_batch * per ? pos : -1;
        top[q] = -INFINITY;
        total[q] = 0;
        for (uint r = 0; r < R; r++)
            sum[q][r] = 0;
        for (uint i = me(); i < D; i += PAGE)
            q_of[i * Q + q] = queries[q_at + token[q] * q_step[1] + head[q] * q_step[0] + i];
    }
}

bool sees(uint q, int p) {
    return takes_part[q] && p >= from[q] && p <= last[q];
}

/* Computes the scores of position p, which is this invocation's lane of the page. */
void set_scores(uint page, int p, out float s[Q]) {
    for (uint q = 0; q < Q; q++)
        s[q] = 0;
    for (uint first = 0; first < D; first += BLOCK) {
        float block_scale = 1;
        uint at = 0;
        if (is_quantized(TYPE_K)) {
            at = page + code_at(TYPE_K, true, D, me(), first / BLOCK);
            block_scale = half_to_float(key_bits(page + scale_at(TYPE_K, true, D, me(), first / BLOCK)) &
                                     0xffff);
        }
        for (uint i = first; i < min(first + BLOCK, D); i++) {
            float k;
            if (is_quantized(TYPE_K))
                k = block_scale *
                    code(TYPE_K, key_bits(code_of(TYPE_K, true, at, i - first)), i - first);
            else
                k = plain(TYPE_K, key_bits(page + element_at(TYPE_K, true, D, me(), i)));
            for (uint q = 0; q < Q; q++)
                s[q] += k * q_of[i * Q + q];
        }
    }
    for (uint q = 0; q < Q; q++) {
        s[q] *= scale;
        if (CAP)
            s[q] = cap * tanh_of(s[q] / cap);
        if (ALIBI)
            s[q] -= alibi[alibi_at + head[q] * alibi_step[0] + token[q] * alibi_step[1]] *
                    float(last[q] - p);
        if (!sees(q, p))
            s[q] = -INFINITY;
    }
}

/* Returns the larger number, ignoring NaN in b. */
float larger(float a, float b) {
    return b > a ? b : a;
}

/* Reduces score[] over all positions to its maximum, or its sum if `add`, for each query. */
void across(bool add, out float all[Q]) {
    uint q = me() % Q, first = me() / Q * Q;
    float v = score[first * Q + q];
    for (uint i = 1; i < Q; i++) {
        float next = score[(first + i) * Q + q];
        v = add ? v + next : larger(v, next);
    }
    part[q * (PAGE / Q) + me() / Q] = v;
    barrier();
    for (q = 0; q < Q; q++) {
        all[q] = part[q * (PAGE / Q)];
        for (uint i = 1; i < PAGE / Q; i++) {
            float next = part[q * (PAGE / Q) + i];
            all[q] = add ? all[q] + next : larger(all[q], next);
        }
    }
}

/* Adds the values of positions lo .. hi of a page, times their weights. edge: some query does
 * not see some of these rows, which must then not affect its sums, even if they contain NaN. */
void add_values(uint page, uint lo, uint hi, bool edge) {
    for (uint lane = lo; lane <= hi; lane++)
        for (uint r = 0; r < R; r++) {
            float v = value_at(page, lane, min(r * PAGE + me(), e - 1));
            for (uint q = 0; q < Q; q++) {
                float w = weight[lane * Q + q];
                if (edge)
                    sum[q][r] += w == 0 ? 0 : w * v;
                else
                    sum[q][r] += w * v;
            }
        }
}

/* Processes page `number`. lo .. hi: positions that some query sees; edge: not all of them see
 * all of these. */
void one_page(uint slot, uint store_head, uint number, uint lo, uint hi, bool edge) {
    uint in_slot = n_pos / PAGE;
    uint in_store = RING ? slot * in_slot + number % in_slot
                         : uint(pages[page_at + slot * page_step + number]);
    uint at = (in_store * n_store_heads + store_head) * PAGE;
    uint k_page = k_at + at * row_size(TYPE_K, D);
    uint v_page = IN_KEYS ? k_page : v_at + at * row_size(TYPE_V, e);
    int p = int(number * PAGE + me());
    float s[Q], most[Q];
    set_scores(k_page, p, s);
    for (uint q = 0; q < Q; q++)
        score[me() * Q + q] = s[q];
    barrier();
    across(false, most);
    for (uint q = 0; q < Q; q++) {
        float now = larger(top[q], most[q]), down = now == top[q] ? 1 : exp_of(top[q] - now);
        float w = sees(q, p) ? exp_of(s[q] - now) : 0;
        top[q] = now;
        total[q] = total[q] * down + w;
        for (uint r = 0; r < R; r++)
            sum[q][r] *= down;
        weight[me() * Q + q] = w;
    }
    barrier();
    add_values(v_page, lo, hi, edge);
}

/* Processes the positions that the participating queries see, as far as they belong to `span`. */
void one_slot(uint slot, uint store_head, uint span) {
    int first = 0x7fffffff, end = -1, all_from = 0, all_last = 0x7fffffff;
    for (uint q = 0; q < Q; q++)
        if (takes_part[q]) {
            first = min(first, from[q]);
            end = max(end, last[q]);
            all_from = max(all_from, from[q]);
            all_last = min(all_last, last[q]);
        } else {
            all_last = -1;
        }
    if (end < 0)
        return;
    uint page = uint(first) / PAGE, last_page = uint(end) / PAGE;
    if (SPLIT) {
        uint each = (last_page - page) / n_spans + 1;
        page += span * each;
        last_page = min(last_page, page + each - 1);
    }
    for (; page <= last_page; page++) {
        int begin = int(page * PAGE);
        uint lo = uint(max(first - begin, 0)), hi = uint(min(end - begin, int(PAGE) - 1));
        one_page(slot, store_head, page, lo, hi,
                 begin + int(lo) < all_from || begin + int(hi) > all_last);
    }
}

/* --- results ---------------------------------------------------------------------------------- */

void store_partial(uint q, uint span, float all) {
    uint at = y_at + ((token[q] * n_heads + head[q]) * n_spans + span) * (e + 2);
    if (me() == 0) {
        y[at] = top[q];
        y[at + 1] = all;
    }
    for (uint r = 0; r < R; r++)
        if (r * PAGE + me() < e)
            y[at + 2 + r * PAGE + me()] = sum[q][r];
}

void store_result(uint q, float all) {
    uint at = y_at + head[q] * y_step[0] + token[q] * y_step[1];
    float down = 1;
    if (SINKS) {
        float sink = sinks[sinks_at + head[q] * sinks_step[0] + token[q] * sinks_step[1]];
        float now = larger(top[q], sink);
        down = exp_of(top[q] - now);
        all = all * down + exp_of(sink - now);
    }
    for (uint r = 0; r < R; r++)
        if (r * PAGE + me() < e)
            y[at + r * PAGE + me()] = sum[q][r] * down / all;
}

/* Processes a group of queries, one slot after the other. */
void group(uint first, uint store_head, uint span) {
    uint left = (1 << Q) - 1;
    barrier();
    set_queries(first, store_head);
    barrier();
    while (left != 0) {
        int slot = slots[slot_at + token[findLSB(left)] * slot_step];
        bool valid = slot >= 0 && uint(slot) < n_slots;
        for (uint q = 0; q < Q; q++) {
            bool same = (left >> q & 1) != 0 && slots[slot_at + token[q] * slot_step] == slot;
            takes_part[q] = same && valid && last[q] >= 0;
            left &= same ? ~(1 << q) : ~0;
        }
        one_slot(uint(slot), store_head, span);
        barrier();
    }
    float all[Q];
    for (uint q = 0; q < Q; q++)
        score[me() * Q + q] = total[q];
    barrier();
    across(true, all);
    for (uint q = 0; q < Q; q++)
        if (first + q < n_batch * (n_heads / n_store_heads)) {
            if (SPLIT)
                store_partial(q, span, all[q]);
            else
                store_result(q, all[q]);
        }
}

void main() {
    uint pairs = n_batch * (n_heads / n_store_heads), n_groups = (pairs + Q - 1) / Q;
    uint n = n_groups * n_store_heads * n_spans;
    for (uint u = gl_WorkGroupID.x; u < n; u += gl_NumWorkGroups.x) {
        uint span = u % n_spans, store_head = u / n_spans % n_store_heads;
        group(u / n_spans / n_store_heads * Q, store_head, span);
    }
}
