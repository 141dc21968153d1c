/* The multiple-choice knapsack problem: takes one option of each item, so that the sizes add up
 * to at most a budget and the losses to as little as possible.
 *
 *     knapsack_item item[] = {{a, 3}, {b, 2}};    // a[3], b[2]: options with a size and a loss
 *     knapsack_result r;
 *     if (knapsack_solve(item, 2, budget, choice, &r, &err) == GGL_OK)
 *         .. a[choice[0]], b[choice[1]] ..
 *
 * First by a Lagrange multiplier: of each item only the options on the lower convex hull of (size,
 * loss) count, and the steps between them are taken in the order of loss saved per byte. What is then
 * left of the budget is used by dynamic programming over all sizes, which is exact, if its table is
 * small; else by exchanges: one item becomes larger, another one smaller. */
#ifndef TOOLS_KNAPSACK_H
#define TOOLS_KNAPSACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

enum { KNAPSACK_MAX_OPTIONS = 64 };
#define KNAPSACK_MAX_LOSS 1e200 /* so that sums, differences and products remain finite */

typedef struct knapsack_option {
    uint64_t size;
    double loss; /* 0 .. KNAPSACK_MAX_LOSS */
} knapsack_option;

typedef struct knapsack_item {
    const knapsack_option *option; /* in any order; may contain useless ones */
    int n;                         /* 1 .. KNAPSACK_MAX_OPTIONS */
} knapsack_item;

typedef struct knapsack_result {
    uint64_t size;
    double loss;
    double bound; /* no choice has less loss than this */
    bool exact;   /* no choice has less loss than `loss` */
} knapsack_result;

/* The sizes of the smallest and of the largest choice; the largest takes, of each item, the smallest
 * option with the least loss. The sums must fit into 64 bits. */
void knapsack_range(const knapsack_item *item, size_t n, uint64_t *least, uint64_t *most);

/* Sets choice[n] to an option of each item. Among equally good choices it takes the same one on
 * every machine. GGL_LIMIT: even the smallest choice is larger than the budget. GGL_USAGE: a loss
 * is out of range. GGL_NOMEM. */
GGL_NODISCARD ggl_status knapsack_solve(const knapsack_item *item, size_t n, uint64_t budget,
                                        int *choice, knapsack_result *r, ggl_error *err);

#endif
