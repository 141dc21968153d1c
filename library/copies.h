/* Whole copies of a model on several devices (split "copies"), which compute the inputs of one call at the same time. Copy 0 is
 * the placement and the session of the context; calls that have one sequence use it alone. A context without copies has one. */
#ifndef LIBRARY_COPIES_H
#define LIBRARY_COPIES_H

#include "llm/llm.h"
#include "place/fit.h"

typedef struct llm_copies llm_copies;

/* Sets what the session of copy k has of its own, such as `watch`. */
typedef ggl_status llm_copy_fn(void *ctx, int k, llm_session_params *sp, ggl_error *err);

/* True if the choice is for copies. */
bool llm_copies_are_chosen(const llm_placement_choice *choice);
/* Opens the devices, also c->placement. has_eye: the context is to have one. GGL_USAGE, GGL_NOT_FOUND, GGL_DEVICE, GGL_NOMEM. */
ggl_status llm_copies_open(llm_context *c, const llm_placement_choice *choice,
                           const ggl_backend_params *params, bool has_eye, ggl_error *err);
/* Closes them, but for c->placement. Their sessions are closed. */
void llm_copies_close(llm_context *c);

int llm_copies_n(const llm_context *c);
/* "copies on cpu,rank1"; NULL: the context was opened without. */
const char *llm_copies_text(const llm_context *c);
const char *llm_copies_name(const llm_context *c,
                            int k); /* the device; not of a context without copies */
llm_placement *llm_copies_placement(const llm_context *c, int k);
llm_session *llm_copies_session(const llm_context *c, int k); /* NULL: not made yet */

/* Lets the loading of the context's own session end if that of another copy fails; before it is made. */
void llm_copies_watch_loading(llm_context *c, llm_session_params *sp);
/* Makes sessions of the copies from 1 on, as *sp and `own` say (NULL: nothing else): session[llm_copies_n]. After a failure there
 * are none. Statuses of llm_placement_session; the message names the device. */
ggl_status llm_copies_make(llm_context *c, const llm_session_params *sp, llm_copy_fn *own,
                           void *ctx, llm_session **session, ggl_error *err);
/* Makes those of the context, whose own is made, with a context that fits into the memory of all; n_ctx_asked: it is to be as
 * it is. */
ggl_status llm_copies_plan(llm_context *c, llm_copy_fn *own, void *ctx, bool n_ctx_asked,
                           ggl_error *err);
/* Allocates the sessions [llm_copies_n], all at the same time. *is_own: what went wrong did so with
 * session[0]; of others the message names the device, with advice. */
ggl_status llm_copies_alloc(llm_context *c, llm_session *const *session, bool *is_own,
                            ggl_error *err);
/* Frees sessions from 1 on. */
void llm_copies_free(const llm_context *c, llm_session **session);
/* Takes them in place of those that the context has, which are freed; NULL: none. */
void llm_copies_take(llm_context *c, llm_session **session);
/* All sessions of the context, in *session [llm_copies_n], for ggl_free. GGL_NOMEM. */
ggl_status llm_copies_list(const llm_context *c, llm_session ***session, ggl_error *err);

/* Inputs of a call, each of which a copy that is free computes. */
typedef struct llm_copies_work {
    size_t n; /* inputs */
    /* How many of them may be computed, or wait until those before them are taken, at the same time; at most so many places
     * have results. At least one for each copy. */
    size_t n_places;
    /* Computes input i, in a thread of the copy, or of the caller if there is only one copy. Its result belongs to place i % n_places. */
    ggl_status (*run)(void *ctx, int copy, size_t i, size_t place, ggl_error *err);
    /* Takes the result, in the order of the inputs, and in the thread of the caller. */
    ggl_status (*take)(void *ctx, size_t i, size_t place, ggl_error *err);
    /* Called now and then in the thread of the caller, while several copies compute. False: the call ends with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx);
    void *ctx;
} llm_copies_work;

/* Takes all results, or ends with the error of the first input, in their order, that has one; those before it are taken. */
ggl_status llm_copies_run(llm_context *c, const llm_copies_work *w, ggl_error *err);

#endif
