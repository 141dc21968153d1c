/* The jobs of a context, from the first one to the next call that changes the sequence. The context's engine runs them. */
#ifndef LIBRARY_RUNNING_JOBS_H
#define LIBRARY_RUNNING_JOBS_H

#include "context.h"

/* Sets the results of a job to those of one that has not begun. */
void llm_job_reset(llm_job *job);

/* Makes c->jobs, for which all slots must be free; llm_context_end_jobs frees them. step_ns: as of llm_engine_params. */
ggl_status llm_running_jobs_new(llm_context *c, int64_t step_ns, ggl_error *err);
/* The number of jobs that wait or run. */
size_t llm_running_jobs_n(const llm_jobs *all);
/* GGL_USAGE: a callback of a job calls this. */
ggl_status llm_running_jobs_check(const llm_jobs *all, ggl_error *err);
/* Hands a job, which was reset, to the engine. After a failure, which is the job's own, job->err says why. */
ggl_status llm_running_jobs_add(llm_jobs *all, llm_job *job);
/* Runs one step. GGL_CANCELLED: by llm_cancel; other failures are those of the jobs. */
ggl_status llm_running_jobs_step(llm_jobs *all, ggl_error *err);
bool llm_running_jobs_have(const llm_jobs *all, const llm_job *job);
/* Ends a job, if it is there. */
void llm_running_jobs_end(llm_jobs *all, const llm_job *job);

#endif
