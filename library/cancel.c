/* Which call a cancel ends: the one that is being made, or what was begun before. */
#include "running_jobs.h"

void llm_cancel(llm_context *c) {
    if (c)
        atomic_store(&c->cancelled, true);
}

bool llm_context_is_asked_to_end(const llm_context *c) {
    return atomic_load(&c->cancelled) || (c->asks && c->asks(c->asks_ctx));
}

bool llm_context_is_cancelled(void *ctx) {
    const llm_context *c = ctx;
    return atomic_load(&c->stops) || llm_context_is_asked_to_end(c);
}

void llm_context_start_beside(llm_context *c) {
    const bool goes_on = c->generation || (c->jobs && llm_running_jobs_n(c->jobs) > 0);
    if (atomic_exchange(&c->cancelled, false) && goes_on)
        c->is_ending = true;
}

ggl_status llm_context_end_beside(llm_context *c, ggl_status st) {
    if (st == GGL_CANCELLED)
        atomic_store(&c->cancelled, false);
    return st;
}

void llm_context_go_on(llm_context *c) {
    if (c->is_ending)
        atomic_store(&c->cancelled, true);
    c->is_ending = false;
}
