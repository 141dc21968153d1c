/* Each pass is a permutation of numbers, computed for one number at a time: a Feistel network over the next power of four, whose
 * results that are too large are put in again. */
#include "order.h"

#include <math.h>

#include "ggl/internal/alloc.h"

struct train_order {
    const train_data *data;
    uint64_t seed;
    bool in_order;
    int64_t n, n_valid; /* draws */
    uint32_t *
        at; /* [n + n_valid]: items that are drawn, then the others; NULL: all items are, each by itself */
};

/* splitmix64's finalizer, as llm_rng_seed uses it. */
static uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* The number at place i < n of the permutation of 0 .. n - 1 that belongs to the key. */
static uint64_t permuted(uint64_t i, uint64_t n, uint64_t key) {
    enum { ROUNDS = 8 };
    int half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < n)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t r = 0; r < ROUNDS; r++) {
            const uint64_t next = left ^ (mix(key ^ mix(right << 8 | r)) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* --- what is drawn ---------------------------------------------------------------------------- */

/* How many of n records are for validation. */
static ggl_status count_valid(double valid, int64_t n, int64_t *out, ggl_error *err) {
    if (!(valid >= 0)) /* also NaN */
        return ggl_fail(
            err, GGL_USAGE,
            "the part for validation is %g, but must be 0 or more: a part below 1, or a "
            "number of documents, conversations or pairs",
            valid);
    const double wanted = valid < 1 ? ceil(valid * (double)n) : floor(valid);
    if (wanted > 0 && wanted >= (double)n)
        return ggl_fail(err, GGL_USAGE,
                        "of documents, conversations and pairs there %s %lld, of which validation "
                        "takes %.0f: none is left to learn from",
                        n == 1 ? "is" : "are", (long long)n, wanted);
    *out = (int64_t)wanted;
    return GGL_OK;
}

/* Lists the draws. in[]: a flag for each record: it is for validation. */
static void divide(train_order *o, const unsigned char *in) {
    const int64_t n = llm_train_data_n(o->data);
    int64_t used = 0;
    for (int valid = 0; valid < 2; valid++) {
        int64_t record = -1;
        for (int64_t i = 0; i < n; i += llm_train_data_group(o->data, i)) {
            record += llm_train_data_begins(o->data, i);
            if (in[record] == valid)
                o->at[used++] = (uint32_t)i;
        }
        o->n = valid ? o->n : used;
    }
    o->n_valid = used - o->n;
}

static ggl_status set_apart(train_order *o, int64_t n_records, int64_t n_valid, ggl_error *err) {
    const int64_t n = llm_train_data_n(o->data);
    if (n > UINT32_MAX)
        return ggl_fail(err, GGL_LIMIT, "more than %u items cannot be divided", UINT32_MAX);
    unsigned char *in = ggl_calloc((size_t)n_records, 1);
    o->at = ggl_calloc((size_t)n, sizeof *o->at);
    if (in && o->at) {
        const uint64_t key = mix(o->seed ^ 0x76616c6964);
        for (int64_t i = 0; i < n_valid; i++)
            in[permuted((uint64_t)i, (uint64_t)n_records, key)] = 1;
        divide(o, in);
    }
    const bool done = in && o->at;
    ggl_free(in);
    return done ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for %lld items", (long long)n);
}

ggl_status llm_train_order_new(train_order **out, const train_order_params *params,
                               ggl_error *err) {
    const int64_t n_records = llm_train_data_stats(params->data).n_records;
    int64_t n_valid = 0;
    *out = NULL;
    if (n_records == 0)
        return ggl_fail(err, GGL_USAGE, "there is nothing to learn from: no file was read");
    ggl_status st = count_valid(params->valid, n_records, &n_valid, err);
    if (st != GGL_OK)
        return st;
    train_order *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "out of memory for an order");
    *o = (train_order){.data = params->data, .seed = params->seed, .in_order = params->in_order};
    o->n = llm_train_data_n(o->data);
    if (n_valid > 0 || llm_train_data_kind(o->data) >= TRAIN_PAIRS)
        st = set_apart(o, n_records, n_valid, err);
    if (st != GGL_OK) {
        llm_train_order_free(o);
        return st;
    }
    *out = o;
    return GGL_OK;
}

void llm_train_order_free(train_order *o) {
    if (!o)
        return;
    ggl_free(o->at);
    ggl_free(o);
}

int64_t llm_train_order_n(const train_order *o) {
    return o->n;
}

int64_t llm_train_order_n_valid(const train_order *o) {
    return o->n_valid;
}

int64_t llm_train_order_at(const train_order *o, int64_t k) {
    const uint64_t n = (uint64_t)o->n, pass = (uint64_t)k / n;
    uint64_t i = (uint64_t)k % n;
    if (!o->in_order)
        i = permuted(i, n, mix(o->seed) + mix(pass));
    return o->at ? (int64_t)o->at[i] : (int64_t)i;
}

int64_t llm_train_order_valid_at(const train_order *o, int64_t k) {
    return (int64_t)o->at[o->n + k];
}

/* --- batches ---------------------------------------------------------------------------------- */

static int64_t batch(const train_order *o, int64_t (*at)(const train_order *o, int64_t k),
                     int64_t k, int64_t end, int64_t n_tokens, int64_t n_draws) {
    int64_t n = 0;
    for (; k + n < end && n < n_draws; n++) {
        const int64_t item = at(o, k + n), n_items = llm_train_data_group(o->data, item);
        for (int64_t i = 0; i < n_items; i++)
            n_tokens -= llm_train_data_length(o->data, item + i);
        if (n_tokens < 0)
            break;
    }
    return n;
}

int64_t llm_train_order_batch(const train_order *o, int64_t k, int64_t end, int64_t n_tokens,
                              int64_t n_draws) {
    return batch(o, llm_train_order_at, k, end, n_tokens, n_draws);
}

int64_t llm_train_order_valid_batch(const train_order *o, int64_t k, int64_t end, int64_t n_tokens,
                                    int64_t n_draws) {
    return batch(o, llm_train_order_valid_at, k, end, n_tokens, n_draws);
}
