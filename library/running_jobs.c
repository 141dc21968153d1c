/* Texts that are generated at once, over one model's weights. */
#include <string.h>

#include "cache_settings.h"
#include "generation.h"
#include "ggl/internal/pass.h"
#include "running_jobs.h"
#include "llm/internal/engine.h"

/* A job that waits in the engine or runs. */
typedef struct running {
    llm_jobs *all;
    struct running *next, *before;
    llm_job *job;
    int32_t *read; /* the tokens of job->prompt; NULL: the job has them */
    const int32_t *prompt;
    size_t n_prompt;
    generation *g;
    uint64_t id;   /* of the engine */
    ggl_status st; /* why it was ended by `take`; the message is job->err */
} running;

struct llm_jobs {
    llm_context *c;
    llm_prompt_folder *prompts;    /* NULL: none */
    char also[LLM_CACHE_SETTINGS]; /* what they depend on */
    running *first;
    bool is_inside; /* in llm_engine_step, whose callbacks must not free the jobs */
};

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

static void set_result(running *r, const llm_sequence_stats *stats) {
    llm_job *j = r->job;
    j->finish = r->st == GGL_OK          ? r->g->finish
                : r->st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                                         : LLM_FINISH_ERROR;
    j->stop = r->g->text.found;
    j->n_reused = stats->n_reused;
    j->n_prompt = stats->n_prompt - stats->n_reused;
    j->n_generated = r->g->n_generated;
    j->incomplete = llm_generation_is_incomplete(r->g);
}

static void running_free(running *r) {
    if (r->next)
        r->next->before = r->before;
    if (r->before)
        r->before->next = r->next;
    else if (r->all->first == r)
        r->all->first = r->next;
    llm_generation_free(r->g);
    ggl_free(r->read);
    ggl_free(r);
}

static void ended(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    running *r = ctx;
    if (r->st == GGL_OK && err)
        r->st = ggl_pass(&r->job->err, err);
    else if (r->st == GGL_OK && (why == LLM_END_CANCELLED || why == LLM_END_FAILED))
        r->st = ggl_fail(&r->job->err, GGL_CANCELLED, "stopped by the caller");
    if (r->st == GGL_OK && r->g->finish == LLM_FINISH_NONE) {
        r->g->finish = llm_generation_finish(why);
        (void)llm_stopped_text_end(&r->g->text, NULL);
        r->st = give(r);
    }
    set_result(r, stats);
    running_free(r);
}

void llm_job_reset(llm_job *job) {
    job->finish = LLM_FINISH_NONE;
    job->stop = -1;
    job->n_reused = job->n_prompt = job->n_generated = 0;
    job->err = (ggl_error){.status = GGL_OK};
    job->incomplete = false;
}

/* Gets the tokens of a job's prompt. */
static ggl_status read_prompt(running *r) {
    llm_job *j = r->job;
    r->prompt = j->id;
    r->n_prompt = j->n;
    if (!j->prompt)
        return GGL_OK;
    if (j->id || j->n > 0)
        return ggl_fail(&j->err, GGL_USAGE,
                        "the job has a prompt, and %zu tokens (id) of one: give one of them", j->n);
    const ggl_status st =
        llm_encode(r->all->c, j->prompt, strlen(j->prompt), LLM_ADD_SPECIAL | LLM_READ_SPECIAL,
                   &r->read, &r->n_prompt, &j->err);
    r->prompt = r->read;
    return st;
}

/* Checks what a job has beside its parameters. */
static ggl_status check_job(const running *r) {
    llm_job *j = r->job;
    if (!j->prompt && !j->id && r->g->p.n_read == 0)
        return ggl_fail(&j->err, GGL_USAGE, "the job has neither a prompt nor its tokens (id)");
    return r->g->p.same_sampler
               ? ggl_fail(&j->err, GGL_USAGE, "same_sampler: each job has a sampler of its own")
               : GGL_OK;
}

ggl_status llm_running_jobs_add(llm_jobs *all, llm_job *job) {
    job->finish = LLM_FINISH_ERROR; /* unless it is set again */
    running *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(&job->err, GGL_NOMEM, "out of memory");
    *r = (running){.all = all, .next = all->first, .job = job};
    if (r->next)
        r->next->before = r;
    all->first = r;
    ggl_status st = read_prompt(r);
    if (st == GGL_OK)
        st = llm_generation_new(&r->g, all->c, job->params, r->prompt, r->n_prompt, &job->err);
    if (st == GGL_OK)
        st = check_job(r);
    if (st == GGL_OK) {
        llm_sequence_params p = {.size = sizeof p,
                                 .prompt = r->prompt,
                                 .n_prompt = r->n_prompt,
                                 .read = r->g->p.read,
                                 .n_read = r->g->p.n_read,
                                 .no_guesses = true,
                                 .token = take,
                                 .ended = ended,
                                 .ctx = r};
        llm_job_describe(&r->g->parts, &p);
        st = llm_engine_add(all->c->engine, &p, &r->id, &job->err);
    }
    if (st != GGL_OK)
        running_free(r);
    if (st == GGL_OK || st == GGL_CANCELLED)
        job->finish = st == GGL_OK ? LLM_FINISH_NONE : LLM_FINISH_CANCELLED;
    return st;
}

/* --- all of them ------------------------------------------------------------------------------ */

static ggl_status open_prompts(llm_jobs *all, ggl_error *err) {
    llm_context *c = all->c;
    (void)llm_cache_settings(all->also, c->adapter, c->n_adapters, c->placement);
    const llm_prompt_folder_params p = {
        .size = sizeof p,
        .path = c->prompt_folder,
        .n_bytes = (uint64_t)c->prompt_folder_size,
        .cache = {
            .size = sizeof p.cache, .model = c->model, .session = c->session, .also = all->also}};
    const ggl_status st = llm_prompt_folder_new(&all->prompts, &p, err);
    return st == GGL_OK ? GGL_OK : ggl_within(err, st, "prompt_folder");
}

static void close_prompts(llm_jobs *all) {
    llm_prompt_folder_free(all->prompts);
    all->prompts = NULL;
}

ggl_status llm_running_jobs_new(llm_context *c, int64_t step_ns, ggl_error *err) {
    llm_jobs *all = ggl_calloc(1, sizeof *all);
    if (!all)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    all->c = c;
    const ggl_status opened = c->prompt_folder ? open_prompts(all, err) : GGL_OK;
    if (opened != GGL_OK) {
        ggl_free(all);
        return opened;
    }
    llm_engine_set_work(c->engine, step_ns, all->prompts);
    c->jobs = all;
    return GGL_OK;
}

size_t llm_running_jobs_n(const llm_jobs *all) {
    return (size_t)llm_engine_n_running(all->c->engine) + llm_engine_n_waiting(all->c->engine);
}

ggl_status llm_running_jobs_check(const llm_jobs *all, ggl_error *err) {
    return all->is_inside ? ggl_fail(err, GGL_USAGE, "a callback of a job cannot use its context")
                          : GGL_OK;
}

ggl_status llm_running_jobs_step(llm_jobs *all, ggl_error *err) {
    all->is_inside = true;
    const ggl_status st =
        llm_engine_step(all->c->engine, NULL); /* its failures are also those of the jobs in it */
    all->is_inside = false;
    return st == GGL_CANCELLED || atomic_load(&all->c->cancelled)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

/* Returns what runs the job; NULL: it was not added, or has ended. */
static const running *find(const llm_jobs *all, const llm_job *job) {
    const running *r = all->first;
    while (r && r->job != job)
        r = r->next;
    return r;
}

bool llm_running_jobs_have(const llm_jobs *all, const llm_job *job) {
    return find(all, job) != NULL;
}

void llm_running_jobs_end(llm_jobs *all, const llm_job *job) {
    const running *r = find(all, job);
    const bool was_inside = all->is_inside;
    all->is_inside = true; /* callbacks run, also those of others in its batch */
    if (r)
        llm_engine_cancel(all->c->engine, r->id);
    all->is_inside = was_inside;
}

ggl_status llm_context_end_jobs(llm_context *c, ggl_error *err) {
    llm_jobs *all = c->jobs;
    ggl_status st = all ? llm_running_jobs_check(all, err) : GGL_OK;
    if (!all || st != GGL_OK)
        return st;
    all->is_inside = true;
    llm_engine_cancel_all(c->engine);
    llm_engine_set_work(c->engine, 0, NULL);
    close_prompts(all);
    c->jobs = NULL;
    c->is_ending = false;
    ggl_free(all);
    llm_guessing_pause(c->guessing, false);
    c->ids.n = 0;
    return llm_context_erase(c, err);
}
