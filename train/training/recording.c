/* Records what a training's teacher says of its sequences. */
#include <inttypes.h>

#include "ggl/internal/file.h"
#include "ggl/internal/gguf.h"
#include "training.h"

enum { RECORD_TOP = 32 };

/* The data of sequence k, of those that are learned and measured; *item: its number there. */
static const train_data *data_of(const llm_training *t, int64_t k, int64_t *item) {
    const int64_t n = llm_train_data_n(t->data);
    *item = k < n ? k : k - n;
    return k < n ? t->data : t->valid;
}

static int64_t length(void *ctx, int64_t k) {
    int64_t item;
    const train_data *d = data_of(ctx, k, &item);
    return llm_train_data_length(d, item);
}

static void get(void *ctx, int64_t k, int32_t *token) {
    int64_t item;
    const train_data *d = data_of(ctx, k, &item);
    llm_train_data_get(d, item, token, NULL, NULL);
}

static int64_t n_sequences(const llm_training *t) {
    return llm_train_data_n(t->data) + (t->valid ? llm_train_data_n(t->valid) : 0);
}

static ggl_status teach(void *ctx, int64_t k, const int32_t *token, float *share, ggl_error *err) {
    llm_training *t = ctx;
    const int64_t n = length(t, k);
    if (t->p.progress &&
        !t->p.progress(t->p.user, "what the teacher says", (size_t)k, (size_t)n_sequences(t)))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    return t->of.teach(t->of.teacher, token, &n, 1, share, err);
}

ggl_status llm_train_check_recorded(const llm_training *t, const train_recorded *r,
                                    ggl_error *err) {
    int32_t *token = ggl_calloc((size_t)t->p.n_ctx, sizeof *token);
    ggl_status st = token ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a sequence");
    for (int64_t k = 0; k < n_sequences(t) && st == GGL_OK; k++) {
        get((void *)(uintptr_t)t, k, token);
        st = llm_train_recorded_check(r, token, length((void *)(uintptr_t)t, k), err);
    }
    ggl_free(token);
    return st;
}

ggl_status llm_train_record_teacher(llm_training *t, ggl_error *err) {
    const bool is_there = ggl_file_exists(t->p.record);
    const int64_t n_vocab = t->of.n_taught, top = t->p.record_top ? t->p.record_top : RECORD_TOP;
    const uint64_t teacher = t->of.teacher_file ? ggl_gguf_digest(t->of.teacher_file) : 0;
    const train_recording p = {.tokenizer = t->of.tokenizer,
                               .n_vocab = n_vocab,
                               .top = top < n_vocab ? top : n_vocab,
                               .temp = t->p.teacher_temp,
                               .teacher = teacher,
                               .n_seq = n_sequences(t),
                               .longest = t->p.n_ctx,
                               .length = length,
                               .get = get,
                               .teach = teach,
                               .ctx = t};
    ggl_status st = is_there ? GGL_OK : llm_train_record(&p, t->p.record, err);
    if (st == GGL_OK)
        st = llm_train_recorded_open(&t->recorded, t->p.record, t->of.tokenizer, t->p.teacher_temp,
                                     err);
    if (st == GGL_OK && llm_train_recorded_teacher(t->recorded) != teacher)
        st = ggl_fail(err, GGL_USAGE, "%s has what another teacher says", t->p.record);
    if (st == GGL_OK && t->p.record_top > 0 && llm_train_recorded_top(t->recorded) != p.top)
        st = ggl_fail(err, GGL_USAGE, "%s has %" PRId64 " tokens after each, not %" PRId64,
                      t->p.record, llm_train_recorded_top(t->recorded), p.top);
    if (st == GGL_OK)
        st = llm_train_check_recorded(t, t->recorded, err);
    if (st != GGL_OK && is_there)
        return ggl_within(err, st, "record another file, or remove this one");
    if (st == GGL_OK && llm_train_recorded_n_vocab(t->recorded) != n_vocab)
        st = ggl_fail(err, GGL_USAGE, "%s is of another teacher", t->p.record);
    t->of.teach = llm_train_recorded_teach;
    t->of.teacher = t->recorded;
    if (st == GGL_OK)
        t->of.teacher_file = llm_train_recorded_file(t->recorded);
    return st;
}
