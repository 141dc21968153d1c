/* The engine's thread and its mailbox. */
#include <inttypes.h>
#include <stdio.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"
#include "server_impl.h"

#define TOOL "llm-server"

/* --- the mailbox ------------------------------------------------------------------------------ */

/* Runs all messages. */
static void read_messages(server *s) {
    ggl_os_mutex_lock(&s->lock);
    message *m = s->first;
    s->first = NULL;
    s->last = &s->first;
    ggl_os_mutex_unlock(&s->lock);
    while (m) {
        message *next = m->next;
        m->fn(m->ctx, s->engine);
        ggl_free(m);
        m = next;
    }
}

/* Waits for a message; if answers are in progress, for a second at most. Returns false if the server ends. */
static bool wait_for_message(server *s, bool has_answers) {
    const int64_t until = ggl_os_clock() + 1000000000;
    ggl_os_mutex_lock(&s->lock);
    bool in_time = true;
    while (!s->first && !s->ends && in_time) {
        if (has_answers)
            in_time = ggl_os_cond_wait_until(&s->has_message, &s->lock, until);
        else
            ggl_os_cond_wait(&s->has_message, &s->lock);
    }
    const bool ends = s->ends;
    ggl_os_mutex_unlock(&s->lock);
    return !ends;
}

static bool is_ending(server *s) {
    ggl_os_mutex_lock(&s->lock);
    const bool ends = s->ends;
    ggl_os_mutex_unlock(&s->lock);
    return ends;
}

/* --- the engine's thread ---------------------------------------------------------------------- */

/* Notes what others want to know of the engine. */
static void look(server *s) {
    const llm_engine_stats x = llm_engine_get_stats(s->engine);
    const int64_t now = ggl_os_clock();
    s->n_waiting = llm_engine_n_waiting(s->engine);
    rate_note(&s->prompt_rate, now, x.n_prompt);
    rate_note(&s->drawn_rate, now, x.n_drawn);
}

static void serve(server *s) {
    llm_engine *e = s->engine;
    ggl_error err = {0};
    bool goes_on = true;
    s->engine_thread = ggl_os_thread_number();
    while (goes_on) {
        read_messages(s);
        answers_tick(s->answers, e);
        look(s);
        if (llm_engine_n_running(e) + (int64_t)llm_engine_n_waiting(e) == 0) {
            goes_on = wait_for_message(s, answers_n(s->answers) > 0);
            continue;
        }
        const ggl_status st = llm_engine_step(e, &err);
        if (st != GGL_OK && st != GGL_CANCELLED) /* that is a step for nobody */
            ggl_fprint(stderr, TOOL ": a step failed: %s\n", err.msg);
        goes_on = !is_ending(s);
    }
    looks_end(s->looks);
    if (s->facts
            .hears) /* its thread has the session; that of an ear waits for texts in the engine */
        turn_queue_end(s->speech);
    read_messages(s); /* those that came before the end; what they begin ends with the engine */
    llm_engine_free(e);
    s->engine = NULL;
    turn_queue_end(s->speech);
    answers_end(s->answers);
}

static void *run(void *arg) {
    server *s = arg;
    tool_copy_errors(s->error, sizeof s->error);
    s->exit_code = server_load(s);
    tool_copy_errors(NULL, 0);
    if (s->exit_code < 0)
        s->is_ready = true;
    s->changed(s->changed_ctx);
    if (s->exit_code < 0)
        serve(s);
    return NULL;
}

ggl_status server_start(server *s, ggl_error *err) {
    s->has_thread = ggl_os_thread_start(&s->thread, run, s, 0);
    return s->has_thread ? GGL_OK : ggl_fail(err, GGL_NOMEM, "no thread could be started");
}

void server_stop(server *s) {
    ggl_os_mutex_lock(&s->lock);
    s->ends = true;
    ggl_os_cond_signal(&s->has_message);
    ggl_os_mutex_unlock(&s->lock);
    s->aborts = !s->is_ready;
    if (s->has_thread)
        ggl_os_thread_join(s->thread);
    s->has_thread = false;
}

server *server_new(server_options *o, model *m, memory *account, stream_table *kept,
                   answer_store *store, void (*changed)(void *ctx), void *ctx) {
    server *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->model_row = m;
    s->o = o;
    s->last = &s->first;
    s->changed = changed;
    s->changed_ctx = ctx;
    s->exit_code = -1;
    s->answers = answers_new();
    if (s->answers) {
        answers_limit(s->answers, account);
        answers_keep(s->answers, kept);
        answers_store(s->answers, store);
        answers_ping(s->answers, o->ping);
    }
    ggl_os_mutex_init(&s->lock);
    ggl_os_mutex_init(&s->vocab_lock);
    ggl_os_cond_init(&s->has_message);
    if (s->answers)
        return s;
    server_free(s);
    return NULL;
}

void server_free(server *s) {
    if (!s)
        return;
    server_unload(s);
    answers_free(s->answers);
    llm_vocab_free(s->vocab);
    ggl_os_cond_destroy(&s->has_message);
    ggl_os_mutex_destroy(&s->vocab_lock);
    ggl_os_mutex_destroy(&s->lock);
    ggl_free(s);
}
