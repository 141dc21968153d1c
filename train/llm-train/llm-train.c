/* llm-train: lets a model learn. See docs/training.md. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "ggl/internal/file.h"
#include "ggl/internal/file_lock.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "new.h"
#include "options.h"
#include "show.h"

#define SHOWN_EACH 10.0 /* seconds between lines about steps */

typedef struct work {
    int rank; /* of a job of mpirun; 0: this process talks to the user */
    train_options o;
    llm_training *t;
    llm_training_facts facts;
    FILE *log;
    const char *what; /* the progress that is shown; NULL: none */
    double shown_at;
    int64_t shown;   /* steps */
    int64_t resumed; /* steps before this run */
    int64_t logged;  /* steps */
    bool log_lost;   /* the log could not be written, which was reported */
} work;

/* What a signal stops. */
static llm_training *running;

static void on_stop(void) {
    if (running)
        llm_training_cancel(running);
}

/* --- callbacks -------------------------------------------------------------------------------- */

static bool on_progress(void *user, const char *what, size_t done, size_t total) {
    work *w = user;
    if (w->what != what) {
        if (w->what)
            progress_end();
        w->what = what;
        progress_begin(NULL, (double)total, "%s", what);
    }
    progress_share(NULL, done, total);
    return !process_stopped;
}

static void end_progress(work *w) {
    if (w->what)
        progress_end();
    w->what = NULL;
}

static void on_note(void *user, const char *text) {
    (void)user;
    tool_note(TOOL, "%s", text);
}

static bool is_due(const work *w, const llm_training_report *r) {
    return w->shown < 3 || r->is_last || r->valid_loss == r->valid_loss || /* not NaN */
           ggl_os_seconds() - w->shown_at >= SHOWN_EACH;
}

/* Writes the reports of the steps until this one that are not in the log yet. */
static void log_until(work *w, int64_t step) {
    llm_training_report r = {.size = sizeof r};
    for (; w->log && w->logged < step && llm_training_past(w->t, w->logged, &r); w->logged++)
        train_log_step(w->log, &r);
    errno = 0;
    if (w->log && !w->log_lost && (fflush(w->log) != 0 || ferror(w->log))) {
        w->log_lost = true;
        tool_error_about(TOOL, 1, "--log %s cannot be written%s%s; the training goes on without it",
                         w->o.log, errno ? ": " : "", errno ? strerror(errno) : "");
    }
}

static bool on_step(void *user, const llm_training_report *r) {
    work *w = user;
    progress_set((double)r->step);
    log_until(w, r->step);
    if (!tool_is_quiet() && is_due(w, r)) {
        tool_begin_line();
        train_show_step(r);
        w->shown_at = ggl_os_seconds();
        w->shown++;
    }
    return !process_stopped; /* also by a signal that came before anything could be cancelled */
}

/* --- samples ---------------------------------------------------------------------------------- */

static bool print_piece(void *user, const char *piece, size_t n) {
    (void)user;
    return fwrite(piece, 1, n, stdout) == n && !process_stopped;
}

static ggl_status sample(llm_context *c, const work *w, const char *text, ggl_error *err) {
    llm_generate_params p = llm_generate_default_of(c);
    p.n_max = w->o.n_sample;
    p.seed = w->o.seed;
    tool_begin_line();
    printf("sample     %s\n", text);
    const llm_message message = {.role = "user", .content = text};
    const ggl_status st = llm_context_facts(c)->has_chat
                              ? llm_reply(c, &message, 1, &p, print_piece, NULL, err)
                              : llm_generate(c, text, &p, print_piece, NULL, err);
    printf("\n");
    fflush(stdout);
    return st;
}

/* Returns the tokens of a sample and its text at most. */
static int64_t most_ctx(int64_t n_positions) {
    enum { ENOUGH = 2048 };
    return n_positions > 0 && n_positions < ENOUGH ? n_positions : ENOUGH;
}

/* Writes with what was just written. What goes wrong with samples ends no training. */
static bool on_written(void *user, const llm_training_report *r) {
    const work *w = user;
    const llm_lora lora = {.path = w->o.out, .scale = 1};
    const bool is_adapter = w->o.lora || w->o.adapter;
    const llm_open_params p = {.size = sizeof p,
                               .n_ctx = most_ctx(w->facts.n_positions),
                               .n_threads = (int32_t)w->o.n_threads,
                               .arch = w->o.arch,
                               .chat_template = w->o.chat_template,
                               .no_repack = true,
                               .adapter = is_adapter ? &lora : NULL,
                               .n_adapters = is_adapter,
                               .mmproj =
                                   is_adapter ? w->o.mmproj : NULL}; /* it may be the eye's, too */
    ggl_error err = {0};
    llm_context *c = NULL;
    (void)r;
    if (w->o.samples.n == 0)
        return true;
    ggl_status st = llm_open(&c, is_adapter ? w->o.model : w->o.out, &p, &err);
    for (size_t i = 0; i < w->o.samples.n && st == GGL_OK; i++)
        st = sample(c, w, w->o.samples.s[i], &err);
    llm_close(c);
    if (st != GGL_OK && st != GGL_CANCELLED)
        tool_warning(TOOL, "no sample: %s", err.msg);
    return !process_stopped;
}

/* --- the training ----------------------------------------------------------------------------- */

static int draw(const work *w) {
    drawing d = {0};
    if (!w->o.svg)
        return -1;
    d.title = w->o.out;
    train_curve(&d, w->t);
    return drawing_save(&d, TOOL, "--svg", w->o.svg) ? 1 : -1;
}

/* Says why it ended early, or that it may have ended too early. */
static void advise(const work *w) {
    llm_training_report r = {.size = sizeof r}, last = r;
    double before = NAN, valid = NAN, best = INFINITY;
    int64_t best_at = 0;
    for (int64_t k = 0; llm_training_past(w->t, k, &r); k++) {
        last = r;
        if (!isfinite(r.valid_loss))
            continue;
        before = valid;
        valid = r.valid_loss;
        if (valid < best) {
            best = valid;
            best_at = r.step;
        }
    }
    if (w->o.patience > 0 && last.step < last.n_steps)
        tool_say(TOOL,
                 "ended at step %" PRId64 " of %" PRId64
                 ": no measurement was better than that of step %" PRId64,
                 last.step, last.n_steps, best_at);
    else if (valid < 0.98 * before)
        tool_note(TOOL,
                  "the loss of what it does not learn from still fell at the end, from %.3f to "
                  "%.3f: more --epochs, or a higher -lr than %.2g, may teach more",
                  before, valid, w->facts.rate);
}

/* Says how the training ended. Returns the exit code. */
static int conclude(work *w, ggl_status st, const ggl_error *err) {
    const int drawn = draw(w);
    if (st == GGL_OK) {
        tool_say(TOOL, "wrote %s%s%s", w->o.out, w->o.mmproj_out ? " and " : "",
                 w->o.mmproj_out ? w->o.mmproj_out : "");
        advise(w);
        return drawn < 0 ? 0 : drawn;
    }
    if (st == GGL_CANCELLED && process_stopped) {
        if (w->o.save && ggl_file_exists(w->o.save))
            tool_say(TOOL, "interrupted: the same command with --resume goes on from %s",
                     w->o.save);
        return process_stop_code();
    }
    if (st == GGL_LIMIT && w->o.save && ggl_file_exists(w->o.save))
        return tool_error(TOOL, 1, "%s; %s has what was learned until the last checkpoint",
                          err->msg, w->o.out);
    return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err->msg);
}

static int learn(work *w) {
    ggl_error err = {0};
    const llm_training_run_params run = {.size = sizeof run,
                                         .out = w->o.out,
                                         .save = w->o.save,
                                         .save_every = w->o.save ? w->o.save_every : INT64_MAX,
                                         .save_minutes = w->o.save_minutes,
                                         .valid_every = w->o.valid_every,
                                         .best = w->o.best,
                                         .patience = w->o.patience,
                                         .f32 = w->o.f32,
                                         .each = on_step,
                                         .written = on_written,
                                         .user = w};
    progress_begin("steps", (double)w->facts.n_steps, "training");
    progress_resume((double)w->resumed);
    running = w->t;
    process_set_hooks(on_stop, NULL);
    const ggl_status st = process_stopped ? GGL_CANCELLED : llm_training_run(w->t, &run, &err);
    process_set_hooks(NULL, NULL);
    running = NULL;
    progress_end();
    log_until(w, INT64_MAX);
    return conclude(w, st, &err);
}

/* Refuses to write what another training writes, and to lose what an interrupted one has left. Nothing is read or written before. */
static int look_for_state(const work *w) {
    ggl_error err = {0};
    ggl_file_lock *lock = NULL;
    if (!w->o.plan && w->o.out && ggl_file_lock_open(&lock, w->o.out, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s",
                          err.msg); /* while it runs, its state is no one's to go on with */
    ggl_file_lock_close(lock);
    if (w->o.resume || w->o.plan || !w->o.save || !ggl_file_exists(w->o.save))
        return -1;
    return tool_error_about(TOOL, 2,
                            "%s is there: an interrupted training has left it. --resume goes on "
                            "with it; remove it to begin again",
                            w->o.save);
}

/* Goes on with it, if it is there. */
static int resume(work *w) {
    ggl_error err = {0};
    llm_training_report r = {.size = sizeof r};
    if (!w->o.resume || !w->o.save)
        return -1;
    if (!ggl_file_exists(w->o.save)) {
        tool_note(TOOL, "--resume: there is no %s; the training begins%s", w->o.save,
                  ggl_file_exists(w->o.out) ? " anew, and replaces the result that is there" : "");
        return -1;
    }
    if (llm_training_resume(w->t, w->o.save, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    while (llm_training_past(w->t, w->resumed, &r))
        w->resumed++;
    tool_say(TOOL, "goes on after step %" PRId64, w->resumed);
    return -1;
}

/* Opens the log, with the steps so far; the last one may be measured yet. */
static int open_log(work *w) {
    if (!w->o.log)
        return -1;
    w->log = ggl_os_fopen(w->o.log, "w");
    if (!w->log)
        return tool_error_about(TOOL, 1, "--log %s cannot be written", w->o.log);
    log_until(w, w->resumed - 1);
    return -1;
}

/* Refuses samples of what writes no texts, before it learns anything. */
static int check_samples(const work *w) {
    if (w->o.samples.n == 0)
        return -1;
    if (!w->facts.writes)
        return tool_error(TOOL, 2,
                          "--sample is for what goes on with texts: this makes vectors or scores, "
                          "writes down speech, or guesses for another model");
    if (w->o.mmproj)
        tool_note(TOOL, "a sample answers a text alone: llm-cli shows pictures and sounds to the "
                        "result");
    return -1;
}

/* Few texts may be so few steps that nothing is learned: a step takes as many tokens as it has room for, also the same ones again. */
static void note_few_steps(const work *w) {
    enum { FEW = 5 };
    const int64_t n = w->facts.n_steps;
    if (n > 0 && n < FEW && w->o.n_steps == 0 && !(w->o.minutes > 0) && !(w->o.epochs > 0))
        tool_note(TOOL,
                  "%" PRId64
                  " step%s, in which a model learns little: --epochs learns the data more often, "
                  "and --steps N takes N steps",
                  n, n == 1 ? " is all" : "s are all");
}

static int train(work *w) {
    ggl_error err = {0};
    llm_training_params p = train_params_of(&w->o);
    if (w->rank == 0) {
        p.progress = on_progress;
        p.note = on_note;
        p.user = w;
    }
    const ggl_status st = llm_training_open(&w->t, w->o.model, &p, &err);
    end_progress(w);
    if (st == GGL_CANCELLED && process_stopped)
        return process_stop_code();
    if (st != GGL_OK)
        return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
    if (w->rank > 0)
        return llm_training_follow(w->t, &err) == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
    w->facts.size = sizeof w->facts;
    if (llm_training_describe(w->t, &w->facts, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (w->o.plan || !tool_is_quiet())
        train_show_facts(&w->facts, w->o.lora || w->o.adapter);
    note_few_steps(w);
    if (w->o.record && !w->o.plan)
        tool_say(TOOL, "what the teacher says is in %s", w->o.record);
    int code = check_samples(w);
    if (code >= 0 || w->o.plan || !w->o.out)
        return code < 0 ? 0 : code;
    code = resume(w);
    if (code < 0)
        code = open_log(w);
    return code < 0 ? learn(w) : code;
}

/* Joins the job, if there is one. What is wrong with the options is said by rank 0 alone; and rank 0 decides when all end. */
static int join(work *w) {
    ggl_error err = {0};
    if (llm_training_join(&w->rank, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (w->rank == 0)
        return -1;
    tool_set_quiet(true);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    return ggl_os_drop_stream(stderr) ? -1 : 1;
}

int main(int argc, char **argv) {
    static work w;
    process_begin(&argc, &argv);
    const args_command *c = argc > 1 ? args_find_command(train_commands, argv[1]) : NULL;
    if (c)
        return tool_finish(TOOL, c->run(argc - 1, argv + 1));
    int code = join(&w);
    if (code < 0)
        code = train_options_read(&w.o, argc, argv);
    if (code < 0 && w.rank == 0)
        code = look_for_state(&w);
    if (code < 0) {
        if (w.rank == 0)
            process_wait_for_stop();
        code = train(&w);
    }
    llm_training_close(w.t);
    const bool lost = w.log && fclose(w.log) != 0 && !w.log_lost;
    if (lost)
        tool_error_about(TOOL, 1, "--log %s: it could not be written to its end", w.o.log);
    if (code == 0 && (lost || w.log_lost))
        code = 1;
    train_options_fini(&w.o);
    return tool_finish(TOOL, code);
}
