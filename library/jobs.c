/* Many texts at once, over one model's weights. */
#include <string.h>

#include "context.h"
#include "generation.h"
#include "llm/internal/engine.h"

enum { STEP_NS = 1000000000 }; /* nobody waits for single tokens, so prompts run in long pieces */

/* The jobs of a call, and where it is. */
typedef struct jobs {
    llm_context *c;
    llm_engine *engine;
} jobs;

/* A job that waits in the engine or runs. */
typedef struct running {
    jobs *all;
    llm_job *job;
    generation *g;
    ggl_status st; /* why it was ended by `take`; the message is job->err */
} running;

/* --- one job ---------------------------------------------------------------------------------- */

/* Passes the text to the caller. */
static ggl_status give(running *r) {
    const llm_job *j = r->job;
    const char *piece;
    size_t n;
    const bool ended = r->g->finish != LLM_FINISH_NONE;
    while ((ended || llm_stopped_text_has(&r->g->text)) &&
           (piece = llm_stopped_text_give(&r->g->text, ended, &n)) != NULL)
        if (j->each && !j->each(j->user, piece, n))
            return ggl_fail(&r->job->err, GGL_CANCELLED, "stopped by the caller");
    return GGL_OK;
}

static bool take(void *ctx, int32_t id, const float *logits) {
    running *r = ctx;
    r->st = llm_generation_take(r->g, r->all->c, id, logits, &r->job->err);
    if (r->g->finish != LLM_FINISH_NONE)
        (void)llm_stopped_text_end(&r->g->text, NULL);
    if (r->st == GGL_OK)
        r->st = give(r);
    return r->st == GGL_OK && r->g->finish == LLM_FINISH_NONE;
}

static const llm_finish finish_of[] = {[LLM_END_EOG] = LLM_FINISH_END,
                                       [LLM_END_MAX] = LLM_FINISH_LENGTH,
                                       [LLM_END_CONTEXT] = LLM_FINISH_CONTEXT,
                                       [LLM_END_STOPPED] = LLM_FINISH_CANCELLED,
                                       [LLM_END_CANCELLED] = LLM_FINISH_CANCELLED,
                                       [LLM_END_DEADLINE] = LLM_FINISH_CANCELLED,
                                       [LLM_END_FAILED] = LLM_FINISH_ERROR};

static void set_result(running *r, const llm_sequence_stats *stats) {
    llm_job *j = r->job;
    j->finish = r->st == GGL_OK          ? r->g->finish
                : r->st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                                         : LLM_FINISH_ERROR;
    j->stop = r->g->text.found;
    j->n_reused = stats->n_reused;
    j->n_prompt = stats->n_prompt - stats->n_reused;
    j->n_generated = r->g->n_generated;
}

static void running_free(running *r) {
    llm_generation_free(r->all->c, r->g);
    ggl_free(r);
}

static void ended(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    running *r = ctx;
    if (r->st == GGL_OK && err)
        r->st = ggl_fail(&r->job->err, err->status, "%s", err->msg);
    else if (r->st == GGL_OK && (why == LLM_END_CANCELLED || why == LLM_END_FAILED))
        r->st = ggl_fail(&r->job->err, GGL_CANCELLED, "stopped by the caller");
    if (r->st == GGL_OK && r->g->finish == LLM_FINISH_NONE) {
        r->g->finish = finish_of[why];
        (void)llm_stopped_text_end(&r->g->text, NULL);
        r->st = give(r);
    }
    set_result(r, stats);
    running_free(r);
}

/* Hands a job to the engine. After a failure, which is the job's own, job->err says why. */
static void begin(jobs *all, llm_job *job) {
    running *r = ggl_calloc(1, sizeof *r);
    job->finish = LLM_FINISH_ERROR; /* unless it is set again */
    if (!r) {
        (void)ggl_fail(&job->err, GGL_NOMEM, "out of memory");
        return;
    }
    r->all = all;
    r->job = job;
    ggl_status st = llm_generation_new(&r->g, all->c, job->params, job->id, job->n, &job->err);
    if (st == GGL_OK && r->g->p.same_sampler)
        st = ggl_fail(&job->err, GGL_USAGE, "same_sampler: each job has a sampler of its own");
    if (st == GGL_OK) {
        const llm_sequence_params p = {.size = sizeof p,
                                       .prompt = job->id,
                                       .n_prompt = job->n,
                                       .sampler = r->g->sampler,
                                       .matcher = r->g->kept ? r->g->kept->matcher : NULL,
                                       .n_max = r->g->p.n_max > 0 ? r->g->p.n_max : -1,
                                       .ignore_eog = r->g->p.ignore_end,
                                       .token = take,
                                       .ended = ended,
                                       .ctx = r};
        uint64_t id;
        st = llm_engine_add(all->engine, &p, &id, &job->err);
    }
    if (st != GGL_OK)
        running_free(r);
}

/* --- all of them ------------------------------------------------------------------------------ */

static size_t n_under_way(const jobs *all) {
    return (size_t)llm_engine_n_running(all->engine) + llm_engine_n_waiting(all->engine);
}

/* Runs the jobs. Twice as many as run at once are known to the engine, which has memory for each. */
static ggl_status run(jobs *all, llm_job *job, size_t n, ggl_error *err) {
    const size_t most = 2 * (size_t)llm_session_n_slots(all->c->session);
    size_t next = 0;
    while (next < n || n_under_way(all) > 0) {
        while (next < n && n_under_way(all) < most)
            begin(all, &job[next++]);
        /* a failure is also that of the jobs in the step, which have it */
        const ggl_status st = llm_engine_step(all->engine, NULL);
        if (st == GGL_CANCELLED || atomic_load(&all->c->cancelled))
            break;
    }
    if (next == n && n_under_way(all) == 0)
        return GGL_OK;
    for (; next < n; next++) {
        job[next].finish = LLM_FINISH_CANCELLED;
        (void)ggl_fail(&job[next].err, GGL_CANCELLED, "stopped by the caller");
    }
    return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
}

ggl_status llm_generate_jobs(llm_context *c, llm_job *job, size_t n, ggl_error *err) {
    jobs all = {.c = c};
    for (size_t i = 0; i < n; i++) {
        job[i].finish = LLM_FINISH_NONE;
        job[i].stop = -1;
        job[i].n_reused = job[i].n_prompt = job[i].n_generated = 0;
        job[i].err = (ggl_error){.status = GGL_OK};
    }
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st != GGL_OK)
        return st;
    const llm_engine_params p = {.size = sizeof p,
                                 .session = c->session,
                                 .tokenizer = c->tokenizer,
                                 .n_parallel = (int)llm_session_n_slots(c->session),
                                 .step_ns = STEP_NS};
    st = llm_engine_new(&all.engine, &p, err);
    if (st == GGL_OK)
        st = run(&all, job, n, err);
    llm_engine_free(all.engine); /* ends the jobs that are left */
    for (int k = 0; k < (int)llm_session_n_slots(c->session); k++) {
        const ggl_status cleared = llm_session_clear(
            c->session, k, st == GGL_OK ? err : NULL); /* the first failure counts */
        st = st == GGL_OK ? cleared : st;
    }
    c->ids.n = 0;
    return st;
}
