/* Labels that are compared after a prompt: they run at once when it has, in slots in which no sequence does. */
#include "common/least.h"
#include "engine_impl.h"
#include "ggl/alloc.h"
#include "run/session_room.h"

enum { FEW = 8 }; /* so many slots of ended sequences are emptied if too few are empty */

/* The slot of the sequence that has ended longest ago, and is not empty; -1: there is none. */
static int oldest(const llm_engine *e) {
    int found = -1;
    for (int i = 0; i < e->kept.n; i++)
        if (!e->kept.slot[i].by && llm_session_n_past(e->p.session, i) > 0 &&
            (found < 0 || e->kept.slot[i].last_use < e->kept.slot[found].last_use))
            found = i;
    return found;
}

/* Lists at most n empty slots. */
static size_t find_spare(llm_engine *e, int *spare, size_t n) {
    size_t n_found = 0;
    for (int i = 0; i < e->kept.n && n_found < n; i++)
        if (!e->kept.slot[i].by && llm_session_n_past(e->p.session, i) == 0)
            spare[n_found++] = i;
    for (int i; n_found < n && n_found < FEW && (i = oldest(e)) >= 0;) {
        llm_kept_adopt(&e->kept, i, NULL, 0);
        spare[n_found++] = i;
    }
    return n_found;
}

/* Makes room in the cache for the labels in n slots. */
static bool make_room(llm_engine *e, const task *t, size_t n) {
    const int64_t n_each =
        (t->q.n_kept % GGL_PAGE + llm_labels_depth(t->p.labels) + GGL_PAGE - 1) / GGL_PAGE;
    if (llm_session_n_free(e->p.session) == INT64_MAX)
        return true;
    llm_session_estimate(e->p.session);
    llm_session_estimate_pages(e->p.session, (int64_t)n * n_each);
    return llm_session_lacking(e->p.session) <= 0 || llm_kept_drop(&e->kept, -1);
}

static ggl_status run(llm_engine *e, const task *t, ggl_error *err) {
    int *spare = ggl_calloc((size_t)e->kept.n, sizeof *spare);
    if (!spare)
        return ggl_fail(err, GGL_NOMEM, "out of memory for labels");
    const llm_labels_place at = {.session = e->p.session,
                                 .slot = t->q.slot,
                                 .spare = spare,
                                 .n_spare = find_spare(e, spare, llm_labels_width(t->p.labels))};
    (void)make_room(e, t, at.n_spare);
    const ggl_status st = llm_labels_run(t->p.labels, &at, err);
    ggl_free(spare);
    return st;
}

static bool waits_for_labels(const task *t) {
    return t->p.labels && t->waits && !t->is_over;
}

bool llm_engine_has_labels(const llm_engine *e) {
    for (int i = 0; i < e->n_run; i++)
        if (waits_for_labels(e->run[i]))
            return true;
    return false;
}

/* True if another task runs that does not wait for its labels, too: it ends some time, and leaves room. */
static bool others_go_on(const llm_engine *e, const task *t) {
    for (int i = 0; i < e->n_run; i++)
        if (e->run[i] != t && e->run[i]->has_begun && !waits_for_labels(e->run[i]))
            return true;
    return false;
}

static int n_begun(const llm_engine *e) {
    int n = 0;
    for (int i = 0; i < e->n_run; i++)
        n += e->run[i]->has_begun;
    return n;
}

/* False: it waits until there is room, or has lost its place. */
static bool has_room(llm_engine *e, const task *t, bool is_stuck) {
    bool found = llm_labels_depth(t->p.labels) == 0 || make_room(e, t, 1);
    if (!found && !is_stuck && others_go_on(e, t))
        return false;
    while (!found && n_begun(e) > 1 && t->has_begun) { /* the last one gives up its place */
        (void)llm_engine_unblock(e);
        found = make_room(e, t, 1);
    }
    return t->has_begun;
}

void llm_engine_run_labels(llm_engine *e, bool is_stuck) {
    for (int i = 0; i < e->n_run && e->n_parts == 0; i++) {
        task *t = e->run[i];
        ggl_error err;
        if (!waits_for_labels(t) || !has_room(e, t, is_stuck))
            continue;
        if (run(e, t, &err) == GGL_OK)
            llm_task_over(t, LLM_END_MAX);
        else
            llm_task_failed(t, &err);
    }
}
