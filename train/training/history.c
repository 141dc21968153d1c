/* What the steps of a training have reported, and whether it has diverged. */
#include "history.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A training has diverged if the mean loss of about 20 steps is so many nats above the least that it has been, and half as much again. */
#define MOST_ABOVE 1.0
#define MOST_SHARE 0.5
#define MOST_FIRST 10.0 /* the first losses are at most so many times larger by chance */
enum { SMOOTH = 20, FIRST = 5 };

/* So many steps in a row without a gradient are no chance, unless all was learned by heart: then the loss is as good as 0. */
enum { MOST_STILL = 5 };
#define BY_HEART 0.01

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
    /* A mean of few steps may be low by chance: until there are enough, the largest loss of the first ones stands for it, unless these
     * explode. */
    const bool begins = h->n == 1 || (h->n <= FIRST && r->loss > h->least &&
                                      r->loss <= MOST_FIRST * (h->at[0].loss + 1));
    if (begins || (h->n >= SMOOTH && h->smooth < h->least)) {
        h->least = begins ? r->loss : h->smooth;
        h->least_at = r->step;
    }
    return GGL_OK;
}

/* How many of the last steps, up to MOST_STILL, had no gradient. */
static int n_still(const train_history *h) {
    int n = 0;
    while (n < MOST_STILL && n < h->n && h->at[h->n - 1 - n].norm == 0 &&
           h->at[h->n - 1 - n].loss > BY_HEART)
        n++;
    return n;
}

bool llm_train_history_is_finite(const llm_training_report *r) {
    return isfinite(r->loss) && isfinite(r->norm);
}

ggl_status llm_train_history_add(train_history *h, const llm_training_report *r, const char *advice,
                                 ggl_error *err) {
    const ggl_status st = append(h, r, err);
    if (st != GGL_OK)
        return st;
    const bool is_finite = llm_train_history_is_finite(r);
    if (!is_finite && r->step == 1)
        return ggl_fail(err, GGL_LIMIT,
                        "in step 1 the loss is %g and the length of the gradient %g, before "
                        "anything was learned: the rate is not the cause. %s",
                        r->loss, r->norm, advice);
    if (!is_finite)
        return ggl_fail(err, GGL_LIMIT,
                        "the training has diverged: in step %" PRId64
                        " the loss is %g and the length of the gradient %g, with a learning rate "
                        "of %.3g%s",
                        r->step, r->loss, r->norm, r->rate, advice);
    if (n_still(h) == MOST_STILL)
        return ggl_fail(err, GGL_LIMIT,
                        "nothing learns any more: the gradient has been 0 for %d steps, at a loss "
                        "of %.3f, with a learning rate of %.3g%s",
                        MOST_STILL, r->loss, r->rate, advice);
    if (h->n > SMOOTH && h->smooth > h->least + fmax(MOST_ABOVE, MOST_SHARE * fabs(h->least)))
        return ggl_fail(err, GGL_LIMIT,
                        "the training has diverged: at step %" PRId64
                        " the loss was %.3f, and at step %" PRId64
                        " its mean is %.3f, with a learning rate of %.3g%s",
                        h->least_at, h->least, r->step, h->smooth, r->rate, advice);
    return GGL_OK;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

/* A training may have more steps than a JSON document has values, so the reports are one string: of each, the bits of its members in this
 * order, as hexadecimal digits. Steps count from 1 on, and no step that is followed by another one was the last. */
#define WHOLE(X) X(n_tokens) X(n_steps)
#define NUMBERS(X)                                                                                 \
    X(epoch)                                                                                       \
    X(loss)                                                                                        \
    X(accuracy)                                                                                    \
    X(valid_loss) X(valid_accuracy) X(rate) X(norm) X(seconds) X(speed) X(seconds_left)
#define ONE(member) +1
enum { DIGITS = 16, MEMBERS = WHOLE(ONE) NUMBERS(ONE), ROW = MEMBERS * DIGITS };

static void put(uint64_t x, char **to) {
    for (int i = DIGITS - 1; i >= 0; i--)
        *(*to)++ = "0123456789abcdef"[x >> 4 * i & 15];
}

void llm_train_history_write(const train_history *h, llm_json_out *out) {
    llm_json_put_text(out, "\"");
    for (int64_t i = 0; i < h->n; i++) {
        const llm_training_report *r = &h->at[i];
        char row[ROW], *at = row;
        uint64_t bits;
#define PUT_WHOLE(member) put((uint64_t)r->member, &at);
#define PUT_NUMBER(member)                                                                         \
    memcpy(&bits, &r->member, sizeof bits);                                                        \
    put(bits, &at);
        WHOLE(PUT_WHOLE)
        NUMBERS(PUT_NUMBER)
        llm_json_put(out, row, sizeof row);
    }
    llm_json_put_text(out, "\"");
}

/* Takes a member. False: it has other characters. */
static bool take(const char **s, uint64_t *x) {
    *x = 0;
    for (int i = 0; i < DIGITS; i++) {
        const char c = *(*s)++;
        const bool is_letter = c >= 'a' && c <= 'f';
        if (!is_letter && !(c >= '0' && c <= '9'))
            return false;
        *x = *x << 4 | (uint64_t)(is_letter ? c - 'a' + 10 : c - '0');
    }
    return true;
}

static bool take_row(const char *s, llm_training_report *r) {
    uint64_t bits;
#define TAKE_WHOLE(member)                                                                         \
    if (!take(&s, &bits) || bits > INT64_MAX)                                                      \
        return false;                                                                              \
    r->member = (int64_t)bits;
#define TAKE_NUMBER(member)                                                                        \
    if (!take(&s, &bits))                                                                          \
        return false;                                                                              \
    memcpy(&r->member, &bits, sizeof bits);
    WHOLE(TAKE_WHOLE)
    NUMBERS(TAKE_NUMBER)
    return true;
}

ggl_status llm_train_history_read(train_history *h, const json_value *v, const char *name,
                                  ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!v || v->kind != JSON_STRING || v->n % ROW != 0)
        return ggl_fail(err, GGL_FORMAT, "%s: training.own has no history of its steps", name);
    for (int64_t i = 0; i < (int64_t)(v->n / ROW) && st == GGL_OK; i++) {
        llm_training_report r = {.size = sizeof r, .step = i + 1};
        st = take_row(v->s + i * ROW, &r)
                 ? append(h, &r, err)
                 : ggl_fail(err, GGL_FORMAT, "%s: step %" PRId64 " of its history is damaged", name,
                            i + 1);
    }
    return st;
}
