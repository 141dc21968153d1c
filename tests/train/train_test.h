/* Helpers of the tests of llm_trainer: made-up models, a batch, and differences of the loss. */
#ifndef TRAIN_TEST_H
#define TRAIN_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/adapter.h"
#include "llm/internal/trainer.h"
#include "test.h"

enum { N_CTX = 24, N_BATCH = 48, N_SEQ = 3, N = 13 + 7 + 22, SAMPLES = 20 };

typedef struct model {
    llm_arch *arch;
    llm_arch_toy *toy;
    ggl_backend *reference;
} model;

static inline bool open_model(model *m, const char *family) {
    ggl_error err = {0};
    *m = (model){0};
    CHECK_OK(llm_arch_open(&m->arch, family, &err), &err);
    m->toy = m->arch ? llm_arch_toy_new(m->arch, 0, &err) : NULL;
    CHECK_OK(ggl_backend_open(&m->reference, "reference", NULL, &err), &err);
    CHECK_MSG(m->toy, "%s", err.msg);
    return m->toy && m->reference;
}

static inline void close_model(model *m) {
    llm_arch_toy_free(m->toy);
    llm_arch_free(m->arch);
    ggl_backend_close(m->reference);
}

static inline llm_trainer *new_trainer(const model *m, ggl_backend *on, const llm_train_params *p) {
    ggl_error err = {0};
    llm_trainer *t = NULL;
    llm_train_params own = p ? *p : (llm_train_params){0};
    own.size = sizeof own;
    own.backend = on;
    own.reference = m->reference;
    own.n_ctx = own.n_ctx ? own.n_ctx : N_CTX;
    own.n_batch = own.n_batch ? own.n_batch : N_BATCH;
    CHECK_OK(llm_trainer_new(&t, m->arch, llm_arch_toy_source(m->toy), &own, &err), &err);
    return t;
}

/* A batch of three sequences, of which some tokens count more, and some not at all. */
static inline llm_train_batch batch(void) {
    static int32_t token[N], target[N];
    static float weight[N];
    static const int64_t length[N_SEQ] = {13, 7, 22};
    for (int i = 0; i < N; i++) {
        token[i] = (i * 7 + i / 5) % 29;
        target[i] = ((i + 1) * 7 + (i + 1) / 5) % 29;
        weight[i] = (float)(i % 4) / 60;
    }
    return (llm_train_batch){
        .token = token, .target = target, .weight = weight, .length = length, .n_seq = N_SEQ};
}

static inline int64_t count(const llm_train_weight *w) {
    int64_t n = 1;
    for (int d = 0; d < w->n_dims; d++)
        n *= w->ne[d];
    return n;
}

/* Counts down, and ends a run at 0. */
static inline bool ends_at_zero(void *ctx) {
    int *left = ctx;
    return *left >= 0 && (*left)-- == 0;
}

static inline double loss_of(llm_trainer *t) {
    ggl_error err = {0};
    double loss = NAN;
    const llm_train_batch b = batch();
    CHECK_OK(llm_trainer_evaluate(t, &b, &loss, NULL, &err), &err);
    return loss;
}

/* Returns how fast the loss changes with *x, from a step to both sides. */
static inline double difference(llm_trainer *t, float *x, float h) {
    const float was = *x, up = was + h, down = was - h;
    *x = up;
    const double above = loss_of(t);
    *x = down;
    const double below = loss_of(t);
    *x = was;
    return (above - below) / ((double)up - (double)down);
}

/* Copies all gradients, one after the other. */
static inline float *gradients(llm_trainer *t, int64_t *n) {
    *n = 0;
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        *n += count(&w);
    }
    float *all = malloc((size_t)*n * sizeof *all), *to = all;
    for (int k = 0; all && k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        memcpy(to, w.grad, (size_t)count(&w) * sizeof *to);
        to += count(&w);
    }
    return all;
}

static inline llm_trainer *of_file(const ggl_gguf *f, const llm_arch *arch, llm_arch_source *source,
                                   ggl_backend *cpu, ggl_backend *reference) {
    ggl_error err = {0};
    llm_trainer *t = NULL;
    const llm_train_params p = {.size = sizeof p,
                                .backend = cpu,
                                .reference = reference,
                                .n_ctx = N_CTX,
                                .n_batch = N_BATCH,
                                .max_norm = 1};
    *source = llm_arch_source_gguf(f);
    CHECK_OK(llm_trainer_new(&t, arch, source, &p, &err), &err);
    return t;
}

static inline void train(llm_trainer *t, int steps) {
    ggl_error err = {0};
    const llm_train_batch b = batch();
    double loss;
    for (int i = 0; i < steps; i++) {
        CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        CHECK_OK(llm_trainer_step(t, 1e-3, NULL, &err), &err);
    }
}

static inline bool same_weights(const llm_trainer *a, const llm_trainer *b) {
    bool same = llm_trainer_n_weights(a) == llm_trainer_n_weights(b);
    for (int k = 0; k < llm_trainer_n_weights(a) && same; k++) {
        const llm_train_weight x = llm_trainer_weight(a, k), y = llm_trainer_weight(b, k);
        same = memcmp(x.data, y.data, (size_t)count(&x) * sizeof(float)) == 0;
    }
    return same;
}

#endif
