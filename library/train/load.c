/* Items as batches of the trainer. */
#include <string.h>

#include "training.h"

ggl_status llm_train_load_init(llm_training *t, ggl_error *err) {
    train_load *l = &t->load;
    const size_t n = (size_t)t->p.n_ubatch;
    l->cap = t->p.n_ubatch;
    l->token = ggl_calloc(n, sizeof *l->token);
    l->target = ggl_calloc(n, sizeof *l->target);
    l->weight = ggl_calloc(n, sizeof *l->weight);
    l->length = ggl_calloc(n, sizeof *l->length);
    l->item = ggl_calloc(n, sizeof *l->item);
    if (llm_train_is_contrast(t->kind))
        l->row = ggl_calloc(n, (size_t)llm_trainer_output(t->trainer).rows.n * sizeof *l->row);
    if (t->of.teach || t->p.draft)
        l->share = ggl_calloc(n, (size_t)llm_trainer_n_vocab(t->trainer) * sizeof *l->share);
    return l->token && l->target && l->weight && l->length && l->item &&
                   (l->share || !(t->of.teach || t->p.draft)) &&
                   (l->row || !llm_train_is_contrast(t->kind))
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for batches");
}

void llm_train_load_fini(train_load *l) {
    ggl_free(l->token);
    ggl_free(l->target);
    ggl_free(l->weight);
    ggl_free(l->length);
    ggl_free(l->item);
    ggl_free(l->share);
    ggl_free(l->row);
    *l = (train_load){0};
}

static void load_clear(train_load *l) {
    l->n = l->n_seq = 0;
}

static bool load_add(train_load *l, const train_data *d, int64_t k, double weight) {
    const int64_t n = llm_train_data_length(d, k);
    if (l->n + n > l->cap || l->n_seq == l->cap_seq)
        return false;
    llm_train_data_get(d, k, l->token + l->n, l->target + l->n, l->weight + l->n);
    for (int64_t i = 0; i < n; i++)
        l->weight[l->n + i] *= (float)weight;
    l->item[l->n_seq] = k;
    l->length[l->n_seq++] = n;
    l->n += n;
    return true;
}

int64_t llm_train_load_fill(train_load *l, const train_data *d, const int64_t *item, int64_t n,
                            const double *weight, double one) {
    int64_t i = 0;
    load_clear(l);
    while (i < n && load_add(l, d, item[i], weight ? weight[i] : one))
        i++;
    return i;
}

llm_train_batch llm_train_load_batch(const train_load *l) {
    return (llm_train_batch){.token = l->token,
                             .target = l->target,
                             .weight = l->weight,
                             .length = l->length,
                             .n_seq = l->n_seq,
                             .input = l->share ? (const void *const *)&l->share : NULL};
}
