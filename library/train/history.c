/* What the steps of a training have reported, and whether it has diverged. */
#include "history.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A training has diverged if the mean loss of about 20 steps is so many nats above the least that it has been, and half as much again. */
#define MOST_ABOVE 1.0
#define MOST_TIMES 1.5
enum { SMOOTH = 20 };

void llm_train_history_fini(train_history *h) {
    ggl_free(h->at);
    *h = (train_history){0};
}

static ggl_status append(train_history *h, const llm_training_report *r, ggl_error *err) {
    if (!ggl_grow(&h->at, &h->cap, (size_t)h->n + 1, sizeof *h->at))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the reports of %" PRId64 " steps",
                        h->n + 1);
    h->at[h->n++] = *r;
    if (isfinite(r->loss)) {
        const double n = h->n < SMOOTH ? (double)h->n : SMOOTH;
        h->smooth += (r->loss - h->smooth) / n;
    }
    if (h->n == 1 || h->smooth < h->least) {
        h->least = h->smooth;
        h->least_at = r->step;
    }
    return GGL_OK;
}

ggl_status llm_train_history_add(train_history *h, const llm_training_report *r, const char *advice,
                                 ggl_error *err) {
    const ggl_status st = append(h, r, err);
    if (st != GGL_OK)
        return st;
    if (!isfinite(r->loss) || !isfinite(r->norm))
        return ggl_fail(err, GGL_LIMIT,
                        "the training has diverged: in step %" PRId64
                        " the loss is %g and the length of the gradient %g, with a learning rate "
                        "of %.3g; %s",
                        r->step, r->loss, r->norm, r->rate, advice);
    if (h->n > SMOOTH && h->smooth > h->least + MOST_ABOVE && h->smooth > h->least * MOST_TIMES)
        return ggl_fail(err, GGL_LIMIT,
                        "the training has diverged: until step %" PRId64
                        " the mean loss fell to %.3f, and at step %" PRId64
                        " it is %.3f, with a learning rate of %.3g; %s",
                        h->least_at, h->least, r->step, h->smooth, r->rate, advice);
    return GGL_OK;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

/* The members of a report that are kept, in the order of a row. Steps count from 1 on. */
#define MEMBERS(X)                                                                                 \
    X(epoch) X(loss) X(accuracy) X(valid_loss) X(valid_accuracy) X(rate) X(norm) X(seconds) X(speed)

void llm_train_history_write(const train_history *h, llm_json_out *out) {
    llm_json_format(out, "[");
    for (int64_t i = 0; i < h->n; i++) {
        const llm_training_report *r = &h->at[i];
        llm_json_format(out, "%s[%lld", i ? ",\n" : "", (long long)r->n_tokens);
#define PUT(member)                                                                                \
    if (isfinite(r->member))                                                                       \
        llm_json_format(out, ",%.17g", r->member);                                                 \
    else                                                                                           \
        llm_json_format(out, ",null");
        MEMBERS(PUT)
#undef PUT
        llm_json_format(out, "]");
    }
    llm_json_format(out, "]");
}

ggl_status llm_train_history_read(train_history *h, const json_value *v, const char *name,
                                  ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!v || v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "%s: training.own has no history of its steps", name);
    for (uint32_t i = 0; i < v->n && st == GGL_OK; i++) {
        const json_value *row = &v->item[i];
        llm_training_report r = {.size = sizeof r, .step = (int64_t)i + 1};
        double *to[] = {
#define ADDRESS(member) &r.member,
            MEMBERS(ADDRESS)
#undef ADDRESS
        };
        enum { N = sizeof to / sizeof *to };
        bool fits = row->kind == JSON_ARRAY && row->n == N + 1 &&
                    row->item[0].kind == JSON_NUMBER && row->item[0].whole;
        r.n_tokens = fits ? (int64_t)row->item[0].number : 0;
        for (uint32_t k = 0; k < N && fits; k++) {
            const json_value *x = &row->item[k + 1];
            fits = x->kind == JSON_NUMBER || x->kind == JSON_NULL;
            *to[k] = x->kind == JSON_NUMBER ? x->number : (double)NAN;
        }
        st = fits ? append(h, &r, err)
                  : ggl_fail(err, GGL_FORMAT, "%s: step %u of its history is damaged", name, i + 1);
    }
    return st;
}
