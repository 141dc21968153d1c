/* What a training is measured on: all that is held back, or some of it, if that is so much that measurements would take longer than they are
 * worth. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "training.h"

/* Ten measurements, each token of which takes about a third of the time of one that is learned, cost a tenth of the training if each has this
 * share of its tokens. */
#define SHARE 0.03

/* Where what is measured is: draws of the data, or groups of the items of a file of its own. */
typedef struct held {
    const train_data *data;
    int64_t n, n_items, n_tokens; /* draws or groups, their items and tokens */
} held;

static const train_data *data_of(const llm_training *t) {
    return t->valid ? t->valid : t->data;
}

static int64_t tokens_of(const train_data *d, int64_t first) {
    const int64_t end = first + llm_train_data_group(d, first);
    int64_t n = 0;
    for (int64_t i = first; i < end; i++)
        n += llm_train_data_length(d, i);
    return n;
}

/* Returns the first item of the k-th one; of a file they are asked for in order, and *at is the item that follows the one before. */
static int64_t first_item(const llm_training *t, int64_t k, int64_t *at) {
    if (!t->valid)
        return llm_train_order_valid_at(t->order, k);
    const int64_t first = *at;
    *at += llm_train_data_group(t->valid, first);
    return first;
}

static held count(const llm_training *t) {
    held h = {.data = data_of(t)};
    int64_t at = 0;
    const int64_t end = t->valid ? llm_train_data_n(t->valid) : llm_train_order_n_valid(t->order);
    while (t->valid ? at < end : h.n < end) {
        const int64_t first = first_item(t, h.n++, &at);
        h.n_items += llm_train_data_group(h.data, first);
        h.n_tokens += tokens_of(h.data, first);
    }
    return h;
}

/* Returns the most tokens that are measured. */
static double most_tokens(const llm_training *t, double n_learned) {
    const double share = SHARE * n_learned, step = (double)t->p.n_batch;
    if (t->p.valid_max != 0)
        return t->p.valid_max > 0 ? (double)t->p.valid_max : INFINITY;
    return share > step ? share : step;
}

static void note(const llm_training *t, const held *h, const train_measured *m) {
    char text[256];
    if (!t->p.note)
        return;
    snprintf(text, sizeof text,
             "of %" PRId64 " tokens to measure the loss on, %" PRId64
             " are measured, spread over all of them: valid_max (--valid-max) is a number of "
             "tokens, or -1 for all",
             h->n_tokens, m->n_tokens);
    t->p.note(t->p.user, text);
}

void llm_train_count_held(llm_training *t) {
    const held h = count(t);
    t->measured.n = h.n_items;
    t->measured.n_draws = h.n;
    t->measured.n_tokens = h.n_tokens;
}

ggl_status llm_train_choose_measured(llm_training *t, double n_learned, ggl_error *err) {
    train_measured *m = &t->measured;
    if (m->item)
        return GGL_OK;
    const held h = count(t);
    if (h.n == 0)
        return GGL_OK;
    if (m->most == 0)
        m->most = most_tokens(t, n_learned);
    const double share = fmin(1, m->most / (double)h.n_tokens);
    /* texts that are compared with each other need some others */
    const double least = llm_train_is_contrast(t->kind) ? fmin((double)h.n, (double)t->p.n_seq) : 1;
    const int64_t n = share < 1 ? (int64_t)fmax(least, share * (double)h.n) : h.n;
    *m = (train_measured){.most = m->most};
    m->item = ggl_calloc((size_t)h.n_items, sizeof *m->item);
    if (!m->item)
        return ggl_fail(err, GGL_NOMEM, "out of memory for what is measured");
    for (int64_t k = 0, at = 0; k < h.n && m->n_draws < n; k++) {
        const int64_t first = first_item(t, k, &at);
        if (k < m->n_draws * h.n / n)
            continue;
        m->n_draws++;
        m->n_tokens += tokens_of(h.data, first);
        const int64_t end = first + llm_train_data_group(h.data, first);
        for (int64_t i = first; i < end; i++)
            m->item[m->n++] = i;
    }
    if (n < h.n)
        note(t, &h, m);
    return GGL_OK;
}
