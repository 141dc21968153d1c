/* Steps that overlap: with several backends, each of them can work on another batch. While there is nothing
 * to do but to generate, the running sequences are divided over as many batches as may be under way. A
 * step collects the oldest batch, and its sequences draw; the next step starts them again, after the
 * others. All other work waits until all batches are collected. So only this file and
 * llm_engine_end_all know of batches under way. */
#include "common/least.h"
#include "engine_impl.h"
#include "ggl/internal/pass.h"

bool llm_engine_overlaps(llm_engine *e) {
    if (llm_session_n_parts(e->p.session, e->n_run) < 2 ||
        llm_session_reads_text(e->p.session) || /* no batch may be under way while a text is read */
        llm_engine_now(e) >= e->deadline)
        return false;
    if (e->queue.n > 0 && e->n_run < e->p.n_parallel)
        return false; /* one may begin */
    for (int i = 0; i < e->n_run; i++)
        if (e->run[i]->reads || !e->run[i]->has_begun || e->run[i]->is_over ||
            e->run[i]->guesser >= 0 || e->run[i]->p.labels)
            return false;
    return llm_engine_has_room(e);
}

/* Fills the part with the next tokens of idle sequences: one of n equal shares, and no more than fit. It
 * starts after the sequences of the part before, so that all take turns if the parts are too small for all. */
static void fill(llm_engine *e, part *p, int n) {
    const int64_t most = least((e->n_run + n - 1) / n, least(e->n_rows, e->n_ubatch));
    e->n = e->n_want = e->n_prompt = e->n_generate = 0;
    e->prompt_depth = 0;
    e->filled = p;
    const int first = e->next < e->n_run ? e->next : 0;
    for (int k = 0; k < e->n_run && e->n < most; k++) {
        const int i = (first + k) % e->n_run;
        if (e->run[i]->is_under_way || e->run[i]->waits)
            continue;
        llm_engine_put(e, e->run[i], 1);
        e->next = i + 1;
    }
    p->n = e->n;
}

/* Ends the tasks of a part that has failed. */
static void fail(const part *p, const ggl_error *why) {
    for (int64_t i = 0; i < p->n; i++)
        llm_task_failed(p->owner[i], why);
}

/* Starts a batch of idle sequences, one of n. *any: there were some. */
static ggl_status start(llm_engine *e, int n, bool *any, ggl_error *err) {
    part *p = &e->part[(e->i_part + e->n_parts) % e->n_lanes];
    ggl_error why = {0};
    fill(e, p, n);
    *any = p->n > 0;
    if (!*any)
        return GGL_OK;
    const llm_batch b = {.n = p->n,
                         .token = e->token,
                         .slot = e->slot,
                         .share = e->shares,
                         .want = e->want,
                         .each = llm_engine_on_logits,
                         .ctx = p};
    const ggl_status st = llm_session_submit(e->p.session, &b, &p->ticket, &why);
    for (int64_t i = 0; i < p->n; i++)
        p->owner[i]->is_under_way = st == GGL_OK;
    e->n_parts += st == GGL_OK;
    if (st == GGL_OK)
        return st;
    fail(p, &why);
    (void)ggl_pass(err, &why);
    return st;
}

/* Collects the oldest batch; its sequences draw. */
static ggl_status collect(llm_engine *e, ggl_error *err) {
    part *p = &e->part[e->i_part];
    ggl_error why = {0};
    e->i_part = (e->i_part + 1) % e->n_lanes;
    e->n_parts--;
    const ggl_status st = llm_session_collect(e->p.session, p->ticket, &why);
    for (int64_t i = 0; i < p->n; i++)
        p->owner[i]->is_under_way = false;
    if (st == GGL_OK)
        return st;
    fail(p, &why);
    (void)ggl_pass(err, &why);
    return st;
}

ggl_status llm_engine_collect_all(llm_engine *e, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (e->n_parts > 0) {
        const ggl_status own = collect(e, st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? own : st;
    }
    return st;
}

ggl_status llm_engine_overlap(llm_engine *e, ggl_error *err) {
    const int64_t since = llm_engine_now(e);
    const int n = llm_session_n_parts(e->p.session, e->n_run);
    bool any = true;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && any && e->n_parts < n)
        st = start(e, n, &any, err);
    if (st == GGL_OK)
        st = collect(e, err);
    const int64_t ns = llm_engine_now(e) - since;
    e->stats.n_steps++;
    e->stats.busy_ns += ns;
    e->stats.generate_ns += ns;
    return st;
}
