/* A task whose tokens are asked for. It runs alone, so the logits of its last batch stay until the next one. */
#include "common/least.h"
#include "engine_impl.h"

bool llm_asked_has_row(const task *t) {
    return t->q.at >= 0 && t->q.at < t->n_rows && !t->is_over;
}

static bool on_progress(void *ctx, int64_t n_done, int64_t n) {
    const part *p = ctx;
    task *t = p->e->asked;
    (void)n; /* of this piece */
    t->is_stopped = !t->p.progress(t->p.ctx, t->from + n_done - t->n_held, t->n_before - t->n_held);
    return !t->is_stopped;
}

ggl_status llm_asked_eval(llm_engine *e, task *t, llm_batch *b, ggl_error *err) {
    seq *q = &t->q;
    const int64_t n = t->n_before - t->n_held, end = t->from + t->n_piece;
    t->is_stopped = false;
    if (t->reads && t->p.progress && n > 1) {
        b->progress = on_progress;
        if (t->from == t->n_held && !t->p.progress(t->p.ctx, 0, n))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    }
    ggl_status st = llm_session_eval(e->p.session, b, err);
    const int64_t n_past = llm_session_n_past(e->p.session, q->slot);
    if (st == GGL_OK && (n_past < end || (t->is_stopped && end < t->n_before)))
        st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    if (st != GGL_OK)
        q->n_kept = least(n_past, q->n);
    else if (q->at == 0 && t->n_rows == 1)
        t->row[0] = llm_session_logits(e->p.session); /* also of a batch of several ubatches */
    return st;
}

void llm_asked_keep_later(task *t) {
    const int64_t n = t->q.n - 1;
    if (t->p.keeps && !t->p.prompted && n > 0 && llm_prompt_cache_wants_copy(t->p.keeps) &&
        (t->q.n_kept == n || llm_task_add_stop(t, n)))
        t->keep_at = n;
    if (t->q.n_kept == n)
        llm_asked_keep(t);
}

void llm_asked_keep(task *t) {
    ggl_error err;
    if (t->keep_at == 0 || t->q.n_kept != t->keep_at)
        return;
    t->keep_at = 0;
    if (llm_prompt_cache_keep_copy(t->p.keeps, t->q.token, &err) != GGL_OK)
        llm_task_failed(t, &err);
}
