/* The list of all answers, and the end of a job. */
#include <stdlib.h>

#include "answer_impl.h"
#include "common/clock.h"

answers *answers_new(void) {
    answers *x = ggl_calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->clock = llm_clock;
    answers_ping(x, ANSWERS_PING_SECONDS);
    x->grammars = answer_grammars_new();
    if (x->grammars)
        return x;
    ggl_free(x);
    return NULL;
}

void answers_free(answers *x) {
    if (x)
        answer_grammars_free(x->grammars);
    ggl_free(x);
}

ask *answer_new_ask(server *s, const http_request *q) {
    ask *a = ask_new(server_get_facts(s));
    if (!a)
        return NULL;
    a->store = server_answers(s)->store;
    a->owner = server_client(s, q);
    return a;
}

int64_t answers_now(const answers *x) {
    return x->clock(x->clock_ctx);
}

void answers_ping(answers *x, int64_t seconds) {
    x->ping_ns = seconds < 0 ? INT64_MAX : (seconds + (seconds == 0)) * INT64_C(1000000000);
}

size_t answers_n(const answers *x) {
    return x->n;
}

bool answers_run_for_nobody(const answers *x) {
    bool any = false;
    for (job *j = x->first; j; j = j->next) {
        if (j->n_running > 0 &&
            stream_log_is_wanted(j->log, !j->is_over && !http_reply_is_gone(j->reply)))
            return false;
        any |= j->n_running > 0;
    }
    return any;
}

const double answers_bound[ANSWERS_BOUNDS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                              1,    2.5,   5,    10,  30,   60};

const answers_times *answers_first_tokens(const answers *x) {
    return &x->first_tokens;
}

/* --- the end of jobs ---------------------------------------------------------------------------- */

void job_stop(job *j) {
    j->is_over = true;
    j->n_holds++;
    for (int i = 0; i < j->n_seats; i++)
        if (j->seat[i].is_added)
            llm_engine_cancel(j->engine, j->seat[i].id);
    j->n_holds--;
}

void job_fail(job *j, const api_error *e) {
    if (j->has_failed)
        return;
    j->has_failed = true;
    j->status = e->status;
    j->type = e->type;
    (void)ggl_fail(&j->failure, GGL_IO, "%s", e->message);
    job_stop(j);
}

void seat_clear(seat *s) {
    llm_calls_free(s->calls);
    ggl_free(s->echo);
    ggl_free(s->echo_top);
    s->calls = NULL;
    s->echo = NULL;
    s->echo_top = NULL;
    s->choice = -1;
}

void job_free(job *j) {
    for (int i = 0; j->seat && i < j->n_seats; i++) {
        seat *s = &j->seat[i];
        seat_clear(s);
        answer_text_fini(&s->text);
        llm_job_parts_fini(&s->parts);
        ggl_free(s->sum);
    }
    for (int i = 0; j->parts && !j->ask->stream && i < j->x.n_choices; i++)
        answer_parts_fini(&j->parts[i]);
    for (size_t i = 0; j->prompt && i < j->n_prompts; i++) {
        ggl_free(j->prompt[i].owned);
        llm_tokens_fini(&j->prompt[i].ids);
        llm_tokens_fini(&j->prompt[i].types);
        llm_labels_free(j->prompt[i].labels);
    }
    ggl_free(j->prompt);
    ggl_free(j->before);
    ggl_free(j->scale);
    ggl_free(j->x.choice);
    ggl_free(j->x.own);
    ggl_free(j->parts);
    ggl_free(j->embedding);
    ggl_free(j->seat);
    ggl_free(j->top);
    ggl_free(j->candidate);
    ggl_free(j->out.s);
    free(j->resume_id);
    stream_log_end(j->log);
    memory_force(&j->held, 0);
    memory_force(&j->matchers_held, 0);
    ask_free(j->ask);
    server_release(j->server); /* which may be freed now */
    ggl_free(j);
}
