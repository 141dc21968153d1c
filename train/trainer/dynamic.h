/* Numbers in a byte each, by blocks with a scale of their own: dynamic codes (Dettmers et al., 2022).
 *
 * A code stands for a share of the block's largest number. Shares lie in seven decades, 1e-7 .. 1, and each decade has twice as many of
 * them as the one below, at equal distances: so large numbers are exact to a hundredth, and small ones are not lost. Codes of means have a sign;
 * those of mean squares need none, and have twice as many shares in each decade. */
#ifndef LLM_TRAIN_DYNAMIC_H
#define LLM_TRAIN_DYNAMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "llm/internal/trainer.h"

/* Shares between 2^-DYNAMIC_DEPTH and 1 are found by their exponents and the first seven bits behind these: no two codes meet within such a piece. */
enum { DYNAMIC_DEPTH = 24, DYNAMIC_PIECES = DYNAMIC_DEPTH << 7 };

typedef struct dynamic_codes {
    bool has_sign;
    float share[256]; /* of each code */
    float from
        [256 +
         1]; /* the least share that is rounded to the code, without its sign; NaN after the last one */
    uint8_t at[DYNAMIC_PIECES + 1]; /* the code of the least share of each piece */
} dynamic_codes;

void llm_dynamic_init(dynamic_codes *c, bool has_sign);
/* Rounds n <= LLM_TRAIN_BLOCK numbers; the others of the block are 0. Without a sign, numbers are 0 or more, and only 0 becomes 0: a
 * mean square that is small beside others must not vanish, because it is divided by. */
void llm_dynamic_pack(const dynamic_codes *c, const float *x, int64_t n, llm_train_block *to);
/* Sets all LLM_TRAIN_BLOCK numbers. */
void llm_dynamic_unpack(const dynamic_codes *c, const llm_train_block *b, float *to);

#endif
