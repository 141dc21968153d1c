/* Prepares columns for bf16 and quantized weights: docs/numeric.md, section 4. */
#include "functions.h"

static void quantize(cpu_qblock *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += CPU_QBLOCK, y++) {
        vf v[V_32];
        vi m = (vi)v_set(0.0f), c[V_32], first, second;
        for (int h = 0; h < V_32; h++) {
            v[h] = v_load(x + i + V_LANES * h);
            m = v_max_int(m, (vi)v[h] & 0x7fffffff);
        }
        int32_t bits = v_largest_int(m);
        float largest;
        memcpy(&largest, &bits, sizeof largest);
        if (bits >= 0x7f800000 || largest < 0x1p-100f) {
            memset(y, 0, sizeof *y);
            y->d = y->scaled_sum = bits >= 0x7f800000 ? NAN : 0.0f;
            continue;
        }
        const vf id = v_set(127.0f / largest);
        y->d = largest / 127.0f;
        for (int h = 0; h < V_32; h++)
            c[h] = v_to_int(v[h] * id);
        first = c[0], second = c[V_16];
        for (int h = 1; h < V_16; h++)
            first += c[h], second += c[V_16 + h];
        y->half[0] = (int16_t)v_sum_int(first);
        y->half[1] = (int16_t)v_sum_int(second);
        y->sum = y->half[0] + y->half[1];
        y->scaled_sum = y->d * (float)y->sum;
        v_store_bytes(y->q, c);
    }
}

/* Rounds 32 elements of x to bf16 and separates odd and even ones; if n < 32, those from n on are
 * 0. */
INLINE void round_32(vf odd[V_16], vf even[V_16], const float *x, int64_t n) {
    float rest[32] = {0};
    if (n < 32)
        x = memcpy(rest, x, (size_t)n * sizeof *x);
    for (int h = 0; h < V_16; h++) {
        vf a = v_to_bf16(v_load(x + 2 * V_LANES * h)),
           b = v_to_bf16(v_load(x + 2 * V_LANES * h + V_LANES));
        odd[h] = v_odds(a, b);
        even[h] = v_evens(a, b);
    }
}

static void round_bf16(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 32, y += 32) {
        vf odd[V_16], even[V_16];
        round_32(odd, even, x + i, n - i);
        for (int h = 0; h < V_16; h++) {
            v_store(y + V_LANES * h, odd[h]);
            v_store(y + 16 + V_LANES * h, even[h]);
        }
    }
}

static void round_bf16_pairs(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 32, y += 32) {
        vf odd[V_16], even[V_16];
        round_32(odd, even, x + i, n - i);
        for (int h = 0; h < V_16; h++) {
            vu pairs = (vu)odd[h] | (vu)even[h] >> 16;
            memcpy(y + 2 * V_LANES * h, &pairs, sizeof pairs);
        }
    }
}

static void fill_quantize(cpu_kernels *k) {
#define COLUMN_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
}
