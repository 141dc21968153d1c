/* Many texts at once: all of a list, or as they come. */
#include "running_jobs.h"

#include "arrays.h"

enum { STEP_NS = 1000000000 }; /* nobody waits for single tokens, so prompts run in long pieces */

/* Begins jobs, which end what was generated before. */
static ggl_status jobs_new(llm_context *c, int64_t step_ns, ggl_error *err) {
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st == GGL_OK)
        st = llm_context_erase(c, err);
    if (st == GGL_OK)
        st = llm_running_jobs_new(c, step_ns, err);
    if (st == GGL_OK)
        llm_guessing_pause(c->guessing, true); /* jobs are not guessed */
    return st;
}

/* Runs the jobs. Twice as many as run at once are known to the engine, which has memory for each. */
static ggl_status run(llm_context *c, llm_job *job, size_t n, ggl_error *err) {
    llm_jobs *all = c->jobs;
    const size_t most = 2 * (size_t)llm_session_n_slots(c->session);
    size_t next = 0;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && (next < n || llm_running_jobs_n(all) > 0)) {
        while (next < n && llm_running_jobs_n(all) < most)
            (void)llm_running_jobs_add(all, &job[next++]); /* its failure is its own */
        st = llm_running_jobs_step(all, err);
    }
    if (next == n && llm_running_jobs_n(all) == 0)
        return GGL_OK;
    for (; next < n; next++) {
        job[next].finish = LLM_FINISH_CANCELLED;
        (void)ggl_fail(&job[next].err, GGL_CANCELLED, "stopped by the caller");
    }
    return st;
}

ggl_status llm_generate_jobs(llm_context *c, llm_job *job, size_t n, ggl_error *err) {
    ggl_status st = llm_need_array("job", job, n, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        llm_job_reset(&job[i]);
    if (st == GGL_OK)
        st = jobs_new(c, STEP_NS, err);
    if (st != GGL_OK)
        return st;
    st = run(c, job, n, err);
    const ggl_status ended = llm_context_end_jobs(c, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? ended : st;
}

ggl_status llm_jobs_add(llm_context *c, llm_job *job, ggl_error *err) {
    ggl_error own;
    ggl_error *e = err ? err : &own;
    if (c->jobs && llm_running_jobs_have(c->jobs, job))
        return ggl_fail(err, GGL_USAGE, "this job was added before, and has not ended");
    llm_job_reset(job);
    ggl_status st = GGL_OK;
    if (!c->jobs)
        st = jobs_new(c, 0, e);
    else if ((st = llm_running_jobs_check(c->jobs, e)) == GGL_OK &&
             llm_running_jobs_n(c->jobs) == 0) {
        atomic_store(&c->cancelled, false); /* it came when there was nothing to cancel */
        c->is_ending = false;
    }
    if (st == GGL_OK) {
        st = llm_running_jobs_add(c->jobs, job);
        *e = job->err;
    } else {
        job->finish = LLM_FINISH_ERROR;
        job->err = *e;
    }
    return st;
}

ggl_status llm_jobs_step(llm_context *c, size_t *n, ggl_error *err) {
    *n = 0;
    if (!c->jobs || llm_running_jobs_n(c->jobs) == 0)
        return GGL_OK;
    ggl_status st = llm_running_jobs_check(c->jobs, err);
    if (st != GGL_OK)
        return st;
    llm_context_go_on(c);
    st = llm_running_jobs_step(c->jobs, err);
    if (st == GGL_OK)
        *n = llm_running_jobs_n(c->jobs);
    else
        (void)llm_context_end_jobs(c, NULL);
    return st;
}

void llm_jobs_end(llm_context *c, llm_job *job) {
    if (c->jobs)
        llm_running_jobs_end(c->jobs, job);
}
