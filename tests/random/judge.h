/* The second evaluator: what a program means, by the plainest loops, in double, token after token.
 * It knows the operators from docs/ops.md and the rounding from docs/numeric.md, and shares no file
 * with the engine.
 *
 * Every number carries a bound: how far a backend that keeps to the contract may be off. It grows
 * with every rounding, so a comparison needs no tolerance that somebody chose. Where the bound
 * leaves open which way a comparison, an order or an index goes, the result is unknown (its bound
 * is infinite), and so is what depends on it. */
#ifndef RANDOM_JUDGE_H
#define RANDOM_JUDGE_H

#include "program.h"

typedef struct number {
    double v, e; /* the value, and how far off a right result may be; e infinite: not known */
    uint64_t id; /* where e > 0: numbers with the same one have the same bits on any backend */
} number;

typedef enum judge_kind {
    JUDGE_EXACT, /* sums are exact, activations are not rounded: the reference backend */
    JUDGE_CPU, /* as docs/numeric.md says: activations are rounded for quantized and bf16 weights */
    JUDGE_EITHER /* nodes run on backends of both kinds */
} judge_kind;

typedef struct judge judge;

/* folded: what depends on no input is computed once, exactly, and rounded to f32. p is borrowed.
 * NULL: out of memory. */
judge *judge_new(const r_program *p, judge_kind kind, bool folded);
void judge_free(judge *j);
/* Computes the next token, after the actions that stand before it. */
void judge_token(judge *j, int token);
/* Node i of that token, r_count numbers. */
const number *judge_value(const judge *j, int i);

#endif
