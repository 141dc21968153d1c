#include "dynamic.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { DECADES = 7, FIRST_PIECE = (127 - DYNAMIC_DEPTH) << 7 }; /* 127: the exponent of 1 */

/* Lists the shares of the codes from 1 on, in their order. Returns the last code. */
static int list_shares(dynamic_codes *c) {
    int last = 0;
    double top = 1e-6;
    for (int k = 0; k < DECADES; k++, top *= 10) {
        const int n = (c->has_sign ? 1 : 2) << k;
        for (int i = 0; i < n; i++)
            c->share[++last] = (float)(top * (0.1 + 0.9 * (i + 0.5) / n));
    }
    if (!c->has_sign)
        last++;
    c->share[last] = 1; /* the block's largest number stays as it is */
    return last;
}

/* The piece of a share that is no NaN and not negative; small ones share the first piece. */
static int piece_of(uint32_t bits) {
    const int k = (int)(bits >> 16) - FIRST_PIECE;
    return k < 0 ? 0 : k < DYNAMIC_PIECES ? k : DYNAMIC_PIECES;
}

void llm_dynamic_init(dynamic_codes *c, bool has_sign) {
    *c = (dynamic_codes){.has_sign = has_sign};
    const int last = list_shares(c);
    for (int k = 1; k <= last; k++)
        c->from[k] = (float)(((double)c->share[k - 1] + (double)c->share[k]) / 2);
    c->from[last + 1] = NAN; /* no share reaches it */
    for (int i = 1, k = 0; i <= DYNAMIC_PIECES; i++) {
        const uint32_t bits = (uint32_t)(FIRST_PIECE + i) << 16;
        float least;
        memcpy(&least, &bits, sizeof least);
        while (c->from[k + 1] <= least)
            k++;
        c->at[i] = (uint8_t)k;
    }
    for (int k = 1; k < 128 && has_sign; k++)
        c->share[128 + k] = -c->share[k];
}

/* There are several, so that none waits for another. */
static float largest_of(const float *x, int64_t n) {
    enum { SOME = 16 };
    float most[SOME] = {0}, all = 0;
    const int64_t whole = n / SOME * SOME;
    for (int64_t i = 0; i < whole; i += SOME)
        for (int k = 0; k < SOME; k++) {
            const float a = fabsf(x[i + k]);
            most[k] = a > most[k] ? a : most[k];
        }
    for (int64_t i = whole; i < n; i++)
        most[i - whole] = fmaxf(most[i - whole], fabsf(x[i]));
    for (int k = 0; k < SOME; k++)
        all = fmaxf(all, most[k]);
    return all < FLT_MAX ? all : FLT_MAX;
}

/* Sets the codes of shares, without their signs. The loops are apart so that compilers can use vectors in the first one. */
static void find_codes(const dynamic_codes *c, const float *share, int64_t n, uint8_t *code) {
    int32_t piece[LLM_TRAIN_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &share[i], sizeof bits);
        piece[i] = piece_of(bits);
    }
    for (int64_t i = 0; i < n; i++) {
        const unsigned k = c->at[piece[i]];
        code[i] = (uint8_t)(k + (share[i] >= c->from[k + 1]));
    }
}

void llm_dynamic_pack(const dynamic_codes *c, const float *x, int64_t n, llm_train_block *to) {
    const float scale = largest_of(x, n);
    float share[LLM_TRAIN_BLOCK];
    memset(to, 0, sizeof *to);
    to->scale = scale;
    if (!(scale > 0))
        return;
    for (int64_t i = 0; i < n; i++)
        share[i] = fabsf(x[i]) / scale;
    find_codes(c, share, n, to->code);
    if (c->has_sign)
        for (int64_t i = 0; i < n; i++)
            to->code[i] |= x[i] < 0 ? 128 : 0;
    else
        for (int64_t i = 0; i < n; i++)
            to->code[i] |= (to->code[i] == 0) & (x[i] > 0); /* the least code */
}

void llm_dynamic_unpack(const dynamic_codes *c, const llm_train_block *b, float *to) {
    for (int i = 0; i < LLM_TRAIN_BLOCK; i++)
        to[i] = c->share[b->code[i]] * b->scale;
    for (int i = 0; i < LLM_TRAIN_BLOCK && !c->has_sign; i++)
        to[i] = b->code[i] > 0 && to[i] < FLT_MIN ? FLT_MIN : to[i];
}
