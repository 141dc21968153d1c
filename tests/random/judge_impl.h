/* Within the judge: judge.c goes through a program, judge_ops.c has the operators, judge_products.c
 * sums of products, attention and rotations. */
#ifndef RANDOM_JUDGE_IMPL_H
#define RANDOM_JUDGE_IMPL_H

#include "judge.h"
#include "weights.h"

#define UNIT 0x1p-24 /* half a step of f32, relative */
#define TINY 1e-44   /* a few steps of its subnormal numbers */

typedef struct kept { /* what slots keep of a STATE or a CACHE */
    int size;         /* numbers in a slot */
    number *slot, *saved;
} kept;

struct judge {
    const r_program *p;
    judge_kind kind, given; /* of the node that is computed; of all that are not folded */
    bool folded[R_MOST_NODES];
    uint64_t n_changes; /* how often the inputs that are not batched were given */
    number *value[R_MOST_NODES];
    kept keeps[R_MOST_NODES];
};

/* v after as many roundings to f32 as `ulps`, of something that was off by e. */
number rounded(double v, double e, double ulps);
bool known(number x);
number unknown(void);
/* Element [a, b, c] of node i, where it has fewer the same again. */
const number *element(const judge *j, int i, int a, int b, int c);

/* The contents of slot for STATE or CACHE i. */
static inline number *judge_state(const judge *j, int i, int slot) {
    return j->keeps[i].slot + (size_t)slot * (size_t)j->keeps[i].size;
}

void judge_operator(judge *j, int i, const r_token *token);
void judge_linear(judge *j, int i);
void judge_linear_back(judge *j, int i);
void judge_outer_sum(judge *j, int i);
void judge_attend_back(judge *j, int i);
void judge_rope(judge *j, int i, const r_token *token);
void judge_cache(judge *j, int i, const r_token *token);
void judge_choose_rows(judge *j, int i, const r_token *token);
void judge_attend(judge *j, int i, const r_token *token);

#endif
