/* The steps of a training. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/params.h"
#include "training.h"

/* With a limit of minutes, the number of steps is settled when this share of them is over, but not before so many steps. */
#define SETTLED_SHARE 0.08
enum { SETTLED_STEPS = 5, WARMUP_UNSETTLED = 20 };

/* Draws of which it is counted how many steps they make: the steps of more are estimated by these, in a second. */
#define MOST_COUNTED 1e7

/* --- which items ------------------------------------------------------------------------------ */

/* Returns how many draws from `at` on make a step: as many as it has room for, but at least one. */
static int64_t n_draws(const llm_training *t, int64_t at) {
    const int64_t
        pass = llm_train_order_n(t->order),
        left = pass - at % pass,
        most = llm_train_is_contrast(t->kind) ? llm_train_step_groups(t, left)
               : t->p.n_seq                   ? t->p.n_seq
                                              : t->p.n_batch,
        /* texts that are compared with each other are different ones: none of the next pass */
        end = llm_train_is_contrast(t->kind) ? at + left : INT64_MAX,
        n = llm_train_order_batch(t->order, at, end, t->p.n_batch, most);
    return n > 0 ? n : 1;
}

int64_t *llm_train_items_of(const llm_training *t, int64_t first, int64_t n_drawn, int64_t *n) {
    *n = 0;
    for (int64_t k = 0; k < n_drawn; k++)
        *n += llm_train_data_group(t->data, llm_train_order_at(t->order, first + k));
    int64_t *item = ggl_calloc((size_t)*n, sizeof *item), used = 0;
    for (int64_t k = 0; k < n_drawn && item; k++) {
        const int64_t begin = llm_train_order_at(t->order, first + k),
                      size = llm_train_data_group(t->data, begin);
        for (int64_t i = 0; i < size; i++)
            item[used++] = begin + i;
    }
    return item;
}

int64_t llm_train_count_steps(const llm_training *t, double n_epochs) {
    const double all = n_epochs * (double)llm_train_order_n(t->order),
                 counted = all < MOST_COUNTED ? all : MOST_COUNTED;
    int64_t n = 0;
    for (int64_t at = 0; (double)at < counted; n++)
        at += n_draws(t, at);
    return counted < all ? (int64_t)((double)n * (all / counted)) : n;
}

double llm_train_n_learned(const llm_training *t) {
    const double pass = (double)llm_train_data_stats(t->data).n_tokens;
    if (t->step > 0)
        return (double)t->n_tokens / (double)t->step * (double)t->n_steps;
    if (t->n_steps == 0)
        return pass;
    const int64_t steps = llm_train_count_steps(t, 1);
    return pass / (double)(steps > 0 ? steps : 1) * (double)t->n_steps;
}

/* --- a step ----------------------------------------------------------------------------------- */

static double rate_of(const llm_training *t) {
    train_schedule s = {.rate = t->p.rate,
                        .end = t->p.rate_end,
                        .hold = t->p.rate_hold,
                        .fall = t->fall,
                        .n_steps = t->n_steps};
    s.n_warmup = t->p.n_warmup > 0   ? t->p.n_warmup
                 : t->p.n_warmup < 0 ? 0
                 : t->p.minutes > 0  ? WARMUP_UNSETTLED
                                     : t->n_steps / 30;
    return llm_train_rate(&s, t->step);
}

/* With a limit of minutes: settles the number of steps, when enough have run to tell, and once more after each measurement, as these take
 * time, too. */
static void settle(llm_training *t) {
    const double all = t->p.minutes * 60;
    if (!(t->p.minutes > 0) || t->step < SETTLED_STEPS || t->seconds < SETTLED_SHARE * all ||
        (t->n_steps > 0 && !t->has_measured))
        return;
    t->has_measured = false;
    const double left = (all - t->seconds) / (t->seconds / (double)t->step);
    t->n_steps = t->step + (left > 1 ? (int64_t)left : 1);
}

bool llm_train_has_time(const llm_training *t) {
    return !(t->p.minutes > 0 && t->seconds >= t->p.minutes * 60);
}

/* A measurement after a step does not make this step the last one: its report has said that there is another. */
bool llm_train_is_over(const llm_training *t) {
    return (t->n_steps > 0 && t->step >= t->n_steps) || t->out_of_time;
}

static void report_step(llm_training *t, const train_sum *sum, double rate, double norm,
                        int64_t n_tokens, double seconds, llm_training_report *r) {
    const double n = (double)llm_train_order_n(t->order);
    *r = (llm_training_report){.size = sizeof *r,
                               .step = t->step,
                               .n_steps = t->n_steps,
                               .epoch = (double)t->draw / n,
                               .loss = sum->loss / sum->n,
                               .accuracy = llm_train_accuracy(sum),
                               .valid_loss = NAN,
                               .valid_accuracy = NAN,
                               .rate = rate,
                               .norm = norm,
                               .n_tokens = t->n_tokens,
                               .seconds = t->seconds,
                               .speed = (double)n_tokens / (seconds > 0 ? seconds : 1e-9),
                               .seconds_left = NAN,
                               .is_last = llm_train_is_over(t)};
    if (t->n_steps > 0) /* with what has been measured so far */
        r->seconds_left = t->seconds / (double)t->step * (double)(t->n_steps - t->step);
    if (t->p.minutes > 0)
        r->seconds_left = fmin(t->n_steps > 0 ? r->seconds_left : INFINITY,
                               fmax(0, t->p.minutes * 60 - t->seconds));
}

/* Tells that a model which should know something by now writes no better than one that knows nothing: once on the way, and at the end. */
static void note_guessing(const llm_training *t, const train_sum *sum,
                          const llm_training_report *r) {
    enum { SOME = 20, MANY = 100 };
    static const double as_good = 0.999; /* a ruined model's loss differs from it by rounding */
    char text[256];
    const bool is_compared = t->kind == TRAIN_MATCHES;
    const double guessing =
        is_compared ? sum->guessing / sum->n : log((double)llm_trainer_n_vocab(t->trainer));
    const int64_t on_the_way = t->n_steps / 10 > MANY ? t->n_steps / 10 : MANY;
    const bool is_due = r->step == on_the_way || (r->is_last && r->step >= SOME),
               is_loss_of_tokens = (t->kind == TRAIN_TEXT || t->kind == TRAIN_ANSWERS) &&
                                   !t->of.teach && !t->p.loss && !t->p.draft;
    if (!t->p.note)
        return;
    if (is_compared && guessing == 0 && r->step == 1)
        t->p.note(t->p.user,
                  "the first step learned nothing: its texts are equal, at least up to the length "
                  "at which they are cut, so that none could be compared with another");
    if (!is_due || !(is_loss_of_tokens || is_compared) || guessing == 0 ||
        t->history.smooth < as_good * guessing || r->loss < as_good * guessing)
        return;
    snprintf(text, sizeof text,
             "after %" PRId64
             " steps the loss, %.2f, is no better than that of guessing, %.2f: the "
             "rate (%.3g) was too high and has ruined what learns, or is far too low",
             r->step, t->history.smooth, guessing, t->p.rate);
    t->p.note(t->p.user, text);
}

/* Writes what may help if the step has failed. */
static void advise(const llm_training *t, const llm_training_report *r, char *advice, size_t size) {
    const double most = t->p.rate,
                 smaller = fmin(most / 3, most > t->usual_rate ? t->usual_rate : INFINITY);
    char largest[40] = "";
    if (r->step == 1 && !llm_train_history_is_finite(r)) {
        snprintf(
            advice, size,
            "The model%s%s gives them: a file may be damaged (llm-gguf check finds weights that "
            "are NaN or infinite)%s",
            t->of.teach ? ", or the teacher," : "", t->p.loss ? ", or the loss function," : "",
            t->p.arch ? ", or its descriptor (arch, or --arch) is wrong" : "");
        return;
    }
    if (r->rate < most) /* in the warm-up, or near the end */
        snprintf(largest, sizeof largest, " (the largest is %.3g)", most);
    snprintf(advice, size, "%s; a smaller rate may help, such as %.1g", largest, smaller);
}

static ggl_status step(llm_training *t, llm_training_report *r, ggl_error *err) {
    const double began = ggl_os_seconds(), rate = rate_of(t);
    const int64_t n_drawn = n_draws(t, t->draw);
    int64_t n, n_tokens = 0, *item = llm_train_items_of(t, t->draw, n_drawn, &n);
    double norm = NAN;
    train_sum sum;
    char advice[240];
    ggl_status st = item ? llm_train_group_learn(t, item, n, &sum, err)
                         : ggl_fail(err, GGL_NOMEM, "out of memory for a step");
    for (int64_t i = 0; i < n && st == GGL_OK; i++)
        n_tokens += llm_train_data_length(t->data, item[i]);
    ggl_free(item);
    if (st == GGL_OK)
        st = llm_trainer_step(t->trainer, rate, &norm, err);
    if (st != GGL_OK) { /* gradients of a part of the items */
        llm_trainer_forget(t->trainer);
        return st;
    }
    const double seconds = ggl_os_seconds() - began;
    t->step++;
    t->draw += n_drawn;
    t->n_tokens += n_tokens;
    t->seconds += seconds;
    t->out_of_time = !llm_train_has_time(t);
    if (!t->group || t->group->rank == 0)
        settle(t);
    report_step(t, &sum, rate, norm, n_tokens, seconds, r);
    advise(t, r, advice, sizeof advice);
    const ggl_status added = llm_train_history_add(&t->history, r, advice, err);
    if (added == GGL_OK)
        note_guessing(t, &sum, r);
    return added;
}

ggl_status llm_train_step(llm_training *t, llm_training_report *r, ggl_error *err) {
    if (llm_train_is_over(t))
        return ggl_fail(err, GGL_USAGE,
                        "the training is over: there is no step after step %" PRId64, t->step);
    const ggl_status st = llm_train_group_step(t, err);
    return st == GGL_OK ? step(t, r, err) : st;
}

ggl_status llm_train_follow_step(llm_training *t, ggl_error *err) {
    llm_training_report r;
    return step(t, &r, err);
}

ggl_status llm_training_step(llm_training *t, llm_training_report *report, ggl_error *err) {
    llm_training_report r = {.size = sizeof r};
    ggl_status st = report ? GGL_WRITE_PARAMS(llm_training_report, report, &r, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    atomic_store(&t->stops, false);
    st = llm_train_step(t, &r, err);
    if (report && (st == GGL_OK || st == GGL_LIMIT))
        st = GGL_WRITE_PARAMS(llm_training_report, report, &r, NULL) == GGL_OK ? st : GGL_USAGE;
    return st;
}

void llm_training_cancel(llm_training *t) {
    atomic_store(&t->stops, true);
}

/* --- measuring -------------------------------------------------------------------------------- */

ggl_status llm_train_evaluate(llm_training *t, double *loss, double *accuracy, ggl_error *err) {
    const double began = ggl_os_seconds();
    train_sum sum = {0};
    if (!t->valid && llm_train_order_n_valid(t->order) == 0)
        return ggl_fail(err, GGL_NOT_FOUND, "no items are held back to measure the model on");
    ggl_status st = llm_train_choose_measured(t, llm_train_n_learned(t), err);
    if (st == GGL_OK)
        st = llm_train_measure(t, t->valid ? t->valid : t->data, t->measured.item, t->measured.n,
                               &sum, err);
    t->seconds += ggl_os_seconds() - began;
    t->has_measured = true;
    if (st == GGL_OK) {
        *loss = sum.loss / sum.n;
        if (accuracy)
            *accuracy = llm_train_accuracy(&sum);
    }
    return st;
}

ggl_status llm_training_evaluate(llm_training *t, double *loss, double *accuracy, ggl_error *err) {
    atomic_store(&t->stops, false);
    return llm_train_evaluate(t, loss, accuracy, err);
}

bool llm_training_past(const llm_training *t, int64_t k, llm_training_report *report) {
    return k >= 0 && k < t->history.n &&
           GGL_WRITE_PARAMS(llm_training_report, report, &t->history.at[k], NULL) == GGL_OK;
}
