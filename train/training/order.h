/* Which items a training draws, one after the other: in each pass all of them, in another order. Draw k is known from k alone, so that a
 * training that goes on needs nothing else. A draw is an item, or a group of items that belong together (llm_train_data_group).
 *
 *     train_order *o;
 *     train_order_params p = {.data = data, .seed = 1, .valid = 0.05};
 *     if (llm_train_order_new(&o, &p, &err) != GGL_OK) ..
 *     int64_t n = llm_train_order_batch(o, k, end, 2048, 16);      // draws k .. k + n - 1 fit into a run
 *     for (i = k; i < k + n; i++) llm_train_data_get(data, llm_train_order_at(o, i), ..);
 *
 * Threads: an order does not change, so any number may use it at the same time. */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H

#include "data.h"

typedef struct train_order train_order;

typedef struct train_order_params {
    const train_data *data; /* borrowed, and not added to any more */
    uint64_t seed;
    bool in_order; /* as the files have them, in each pass */
    /* What is not drawn, for validation: below 1, this part of the documents, conversations or pairs; else their number. The seed chooses
     * them; all pieces of a document go together. */
    double valid;
} train_order_params;

/* GGL_USAGE: there are no items, or `valid` is negative or no number, or leaves nothing to learn from; GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_train_order_new(train_order **out, const train_order_params *params,
                                             ggl_error *err);
void llm_train_order_free(train_order *o); /* NULL is fine */

int64_t llm_train_order_n(const train_order *o); /* draws of a pass */
/* The item of draw k >= 0, or the first item of its group; draws 0 .. n - 1 are the first pass. */
int64_t llm_train_order_at(const train_order *o, int64_t k);
int64_t llm_train_order_n_valid(const train_order *o);
/* The same for what is not drawn: k = 0 .. n_valid - 1, in the order of the files. */
int64_t llm_train_order_valid_at(const train_order *o, int64_t k);

/* How many of the draws from k on, before `end`, and at most n_draws of them, have at most n_tokens tokens together. 0: the first alone
 * has more, or there is none. */
int64_t llm_train_order_batch(const train_order *o, int64_t k, int64_t end, int64_t n_tokens,
                              int64_t n_draws);
/* The same for what is not drawn; end: at most n_valid. */
int64_t llm_train_order_valid_batch(const train_order *o, int64_t k, int64_t end, int64_t n_tokens,
                                    int64_t n_draws);

#endif
