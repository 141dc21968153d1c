/* All steps of a training, with measurements and checkpoints. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/file.h"
#include "ggl/internal/file_lock.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/params.h"
#include "training.h"

/* A run of llm_training_run. */
typedef struct course {
    llm_training *t;
    llm_training_run_params p;
    double saved_at;   /* seconds, by the clock */
    double best;       /* the least loss that was measured; infinite: none */
    int64_t no_better; /* measurements in a row that were no better */
    bool lost_data;    /* the last step could not read what it was to learn from */
} course;

static bool is_measured_after(const course *c, const llm_training_report *r) {
    const llm_training *t = c->t;
    const int64_t every = c->p.valid_every > 0                      ? c->p.valid_every
                          : c->p.valid_every < 0 || t->n_steps == 0 ? 0
                          : t->n_steps >= 10                        ? t->n_steps / 10
                                                                    : 1;
    if (!t->valid && llm_train_order_n_valid(t->order) == 0)
        return false;
    return r->is_last || (every > 0 && r->step % every == 0);
}

/* Counts what the measurement says. */
static void judge(course *c, double loss) {
    const bool better = loss < c->best;
    c->no_better = better ? 0 : c->no_better + 1;
    c->best = better ? loss : c->best;
}

static ggl_status measure(course *c, llm_training_report *r, ggl_error *err) {
    llm_training *t = c->t;
    const ggl_status st = llm_train_evaluate(t, &r->valid_loss, &r->valid_accuracy, err);
    if (st != GGL_OK)
        return st;
    judge(c, r->valid_loss);
    r->seconds = t->seconds;
    r->is_last |= c->p.patience > 0 && c->no_better >= c->p.patience;
    t->history.at[t->history.n - 1] = *r;
    return st;
}

static ggl_status write_out(course *c, const llm_training_report *r, ggl_error *err) {
    ggl_status st = llm_training_write(c->t, c->p.out, c->p.f32, err);
    if (st == GGL_OK && c->p.written && !c->p.written(c->p.user, r))
        st = ggl_fail(err, GGL_CANCELLED, "cancelled");
    return st;
}

/* Writes the result and the state as they are now. */
static ggl_status checkpoint(course *c, const llm_training_report *r, ggl_error *err) {
    const double began = ggl_os_seconds();
    ggl_status st = c->p.out && !c->p.best ? write_out(c, r, err) : GGL_OK;
    if (st == GGL_OK && c->p.save)
        st = llm_training_save(c->t, c->p.save, err);
    c->saved_at = ggl_os_seconds();
    c->t->seconds += c->saved_at - began;
    return st;
}

static bool is_saved_after(const course *c, const llm_training_report *r) {
    const double minutes = c->p.save_minutes > 0 ? c->p.save_minutes : LLM_TRAIN_SAVE_MINUTES;
    if (c->p.save_every > 0)
        return r->step % c->p.save_every == 0;
    return ggl_os_seconds() - c->saved_at >= minutes * 60;
}

/* What is due after a step. A measurement that was cancelled is still due when the training goes on. */
static ggl_status follow(course *c, llm_training_report *r, ggl_error *err) {
    const double best = c->best;
    ggl_status st = is_measured_after(c, r) ? measure(c, r, err) : GGL_OK;
    const bool ends = st == GGL_OK && c->p.each && !c->p.each(c->p.user, r);
    if (st == GGL_OK && c->p.out && c->p.best && c->best < best)
        st = write_out(c, r, err);
    if (st == GGL_OK && ends)
        st = ggl_fail(err, GGL_CANCELLED, "cancelled");
    if (st == GGL_OK && !r->is_last && is_saved_after(c, r))
        st = checkpoint(c, r, err);
    return st;
}

static ggl_status go_on(course *c, llm_training_report *r, ggl_error *err) {
    const ggl_status st = llm_train_step(c->t, r, err);
    c->lost_data = st == GGL_IO || st == GGL_FORMAT; /* a picture is gone, or another one */
    if (st == GGL_LIMIT && c->p.each)
        c->p.each(c->p.user, r);
    return st == GGL_OK ? follow(c, r, err) : st;
}

/* Goes back to where a training is that has run before. */
static ggl_status take_up(course *c, llm_training_report *r, ggl_error *err) {
    const llm_training *t = c->t;
    for (int64_t i = 0; i < t->history.n; i++)
        if (isfinite(t->history.at[i].valid_loss))
            judge(c, t->history.at[i].valid_loss);
    if (t->history.n > 0)
        *r = t->history.at[t->history.n - 1];
    r->n_steps = t->n_steps;
    r->is_last = llm_train_is_over(t) || (c->p.patience > 0 && c->no_better >= c->p.patience);
    return t->history.n > 0 && is_measured_after(c, r) && isnan(r->valid_loss) ? follow(c, r, err)
                                                                               : GGL_OK;
}

/* Keeps what was learned when the training is cancelled: its last whole step. */
static ggl_status keep(course *c, ggl_error *err) {
    ggl_error own = {0};
    ggl_status st = c->p.save ? llm_training_save(c->t, c->p.save, &own) : GGL_OK;
    if (st == GGL_OK && c->p.out && !c->p.best && c->t->step > 0)
        st = llm_training_write(c->t, c->p.out, c->p.f32, &own);
    if (st == GGL_OK)
        return GGL_CANCELLED;
    return ggl_fail(err, st, "%s", own.msg);
}

static ggl_status finish(course *c, const llm_training_report *r, ggl_error *err) {
    /* Without a measurement none was the best. */
    const bool write = c->p.out && (!c->p.best || isinf(c->best));
    const ggl_status st = write ? write_out(c, r, err) : GGL_OK;
    ggl_error own;
    if (st == GGL_OK && c->p.save)
        remove(c->p.save);
    else if (st != GGL_OK && c->p.save && llm_training_save(c->t, c->p.save, &own) == GGL_OK)
        return ggl_within(err, st, "what was learned is in %s", c->p.save);
    return st;
}

/* What cannot be written would be found out only after the steps until then. */
static ggl_status check_files(const course *c, ggl_error *err) {
    ggl_status st = c->p.out ? llm_train_check_eye(c->t, err) : GGL_OK;
    if (st == GGL_OK && c->p.out)
        st = llm_train_check_write(c->t, c->p.f32, err);
    if (st == GGL_OK && c->p.out)
        st = ggl_new_file_check(c->p.out, err);
    if (st == GGL_OK && c->p.out && c->t->p.mmproj_out)
        st = ggl_new_file_check(c->t->p.mmproj_out, err);
    if (st == GGL_OK && c->p.save)
        st = ggl_new_file_check(c->p.save, err);
    return st == GGL_OK ? llm_train_check_room(c->t, &c->p, err) : st;
}

/* Runs it while no other process writes the same files. */
static ggl_status run(course *c, ggl_error *err) {
    llm_training_report r = {.size = sizeof r};
    ggl_status st = check_files(c, err);
    if (st != GGL_OK)
        return st;
    atomic_store(&c->t->stops, false);
    st = take_up(c, &r, err);
    while (st == GGL_OK && !r.is_last)
        st = go_on(c, &r, err);
    if (c->lost_data && c->t->step > 0) {
        ggl_error own;
        llm_trainer_forget(c->t->trainer);
        const bool is_kept = keep(c, &own) == GGL_CANCELLED;
        return is_kept ? ggl_within(err, st, "after step %" PRId64 ", which is kept", c->t->step)
                       : st;
    }
    if (st == GGL_CANCELLED)
        return keep(c, err);
    return st == GGL_OK ? finish(c, &r, err) : st;
}

ggl_status llm_training_run(llm_training *t, const llm_training_run_params *params,
                            ggl_error *err) {
    course c = {.t = t, .p = {.size = sizeof c.p}, .saved_at = ggl_os_seconds(), .best = INFINITY};
    ggl_file_lock *lock = NULL, *lock_eye = NULL;
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = GGL_READ_PARAMS(llm_training_run_params, &c.p, params, err);
    if (st == GGL_OK && (c.p.best || c.p.patience > 0) && !t->valid &&
        llm_train_order_n_valid(t->order) == 0)
        st = ggl_fail(err, GGL_USAGE,
                      "best (--best) and patience (--patience) go by measurements, and there is "
                      "nothing to measure: "
                      "valid_file (--valid) or valid_share (--valid-share) gives something");
    const char *locked = c.p.out ? c.p.out : c.p.save;
    if (st == GGL_OK && locked)
        st = ggl_file_lock_open(&lock, locked, err);
    if (st == GGL_OK && c.p.out && t->p.mmproj_out)
        st = ggl_file_lock_open(&lock_eye, t->p.mmproj_out, err);
    if (st == GGL_OK)
        st = run(&c, err);
    ggl_file_lock_close(lock_eye);
    ggl_file_lock_close(lock);
    return st;
}
