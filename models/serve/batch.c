/* What runs in a batch, and what is drawn from its results. */
#include "engine_impl.h"

#include <string.h>

#include "run/session_room.h"

/* True if logits, an embedding or a score are to be shown for the prompt's token at pos. */
static bool is_shown(const task *t, int64_t pos) {
    const int64_t end = t->p.embedded ? t->embed_end : t->n_begin;
    return llm_task_shows(t) && pos >= t->n_prompted && pos < end;
}

void llm_engine_put(llm_engine *e, task *t, int64_t n) {
    const seq *q = &t->q;
    t->first = e->n;
    t->from = q->n_kept;
    t->n_before = q->n;
    t->n_rows = 0;
    t->n_piece = llm_seq_fill(q, e->token + e->n, n);
    for (int64_t i = 0; i < t->n_piece; i++) {
        const int64_t at = e->n + i, pos = t->from + i;
        e->slot[at] = q->slot;
        if (e->shares)
            e->shares[at] = q->share;
        if (e->seen)
            e->seen[at] = t->p.n_seen;
        if (e->type)
            e->type[at] = t->type ? t->type[pos] : 0;
        e->filled->owner[at] = t;
        const bool is_row = t->p.embedded && is_shown(t, pos);
        e->want_embedding[at] = is_row && t->p.pooling != LLM_POOL_RANK;
        e->want_score[at] = is_row && t->p.pooling == LLM_POOL_RANK;
        e->want[at] = !t->p.embedded &&
                      (pos >= q->n - 1 ||
                       (is_shown(t, pos) && llm_session_may_want(e->p.session, e->token[at])));
        e->n_want += e->want[at] || is_row;
    }
    e->n += t->n_piece;
    llm_session_estimate_append(e->p.session, q->slot, t->n_piece);
    *(t->reads ? &e->n_prompt : &e->n_generate) += t->n_piece;
    if (t->reads) /* the mean position of a piece is that of its middle */
        e->prompt_depth += (double)t->n_piece * ((double)t->from + (double)t->n_piece / 2);
}

/* Ends a sequence if the token just drawn is to be its last. */
static void decide(const llm_engine *e, task *t, int32_t id, bool goes_on) {
    if (e->p.tokenizer && !t->p.ignore_eog && llm_tokenizer_is_eog(e->p.tokenizer, id))
        llm_task_over(t, LLM_END_EOG);
    else if (!goes_on)
        llm_task_over(t, LLM_END_STOPPED);
    else if (t->q.n_drawn == t->p.n_max)
        llm_task_over(t, LLM_END_MAX);
    else if (t->q.n > t->q.n_ctx && t->p.shift)
        t->is_full = true;
    else if (t->q.n > t->q.n_ctx)
        llm_task_over(t, LLM_END_CONTEXT);
}

void llm_engine_draw(llm_engine *e, task *t, const float *logits) {
    ggl_error err;
    int32_t id;
    if (t->p.n_max == 0) {
        llm_task_over(t, LLM_END_MAX);
    } else if (llm_seq_draw(&t->q, logits, &id, &err) != GGL_OK) {
        llm_task_failed(t, &err);
    } else if (id < 0) {
        llm_task_over(t, LLM_END_EOG);
    } else {
        e->stats.n_drawn++;
        t->stats.t_last = llm_engine_now(e);
        decide(e, t, id, !t->p.token || t->p.token(t->p.ctx, id, logits));
    }
}

/* The task's last token has run. */
static void end_prompt(llm_engine *e, task *t) {
    const bool is_first = t->reads && t->q.n_drawn == 0;
    llm_seq_ran(&t->q);
    t->reads = false;
    if (is_first)
        t->stats.t_prompt = llm_engine_now(e);
}

void llm_engine_on_row(void *ctx, int64_t i, const float *row) {
    const part *p = ctx;
    llm_engine *e = p->e;
    task *t = p->owner[i];
    const int64_t pos = t->from + i - t->first;
    if (!t->is_over) {
        t->n_prompted = pos + 1;
        t->p.embedded(t->p.ctx, pos, row);
    }
    if (pos == t->embed_end - 1) {
        end_prompt(e, t);
        llm_task_over(t, LLM_END_MAX);
    }
}

void llm_engine_put_pass(llm_engine *e, task *t) {
    const bool *want;
    const int32_t *id = llm_diffuser_pass(t->diffuser, &want);
    const int64_t n = t->q.n;
    t->first = e->n;
    t->from = 0;
    t->n_piece = t->n_before = n;
    memcpy(e->token + e->n, id, (size_t)n * sizeof *id);
    for (int64_t i = 0; i < n; i++) {
        e->slot[e->n + i] = t->q.slot;
        if (e->shares)
            e->shares[e->n + i] = t->q.share;
        e->seen[e->n + i] = e->type[e->n + i] = 0;
        e->filled->owner[e->n + i] = t;
        e->want[e->n + i] = want[i];
        e->want_embedding[e->n + i] = e->want_score[e->n + i] = false;
        e->n_want += want[i];
    }
    e->n += n;
    e->n_prompt += t->reads ? t->n_begin : 0;
    e->n_generate += n - (t->reads ? t->n_begin : 0);
    llm_session_estimate_append(e->p.session, t->q.slot, n);
}

void llm_engine_end_pass(llm_engine *e, task *t) {
    ggl_error err;
    if (t->reads)
        t->stats.t_prompt = llm_engine_now(e);
    t->reads = false;
    ggl_status st = llm_session_clear(e->p.session, t->q.slot, &err); /* for the next pass */
    if (st == GGL_OK)
        st = llm_diffuser_end_pass(t->diffuser, &err);
    if (st != GGL_OK) {
        llm_task_failed(t, &err);
        return;
    }
    const int32_t *id = llm_diffuser_text(t->diffuser);
    const int64_t n = llm_diffuser_n_settled(t->diffuser);
    while (t->n_given < n && !t->is_over) {
        const int32_t next = id[t->n_given++];
        t->q.n_drawn++;
        e->stats.n_drawn++;
        t->stats.t_last = llm_engine_now(e);
        decide(e, t, next, !t->p.token || t->p.token(t->p.ctx, next, NULL));
    }
}

void llm_engine_on_logits(void *ctx, int64_t i, const float *logits) {
    const part *p = ctx;
    llm_engine *e = p->e;
    task *t = p->owner[i];
    if (t->diffuser) {
        llm_diffuser_logits(t->diffuser, i - t->first, logits);
        return;
    }
    const int64_t pos = t->from + i - t->first, row = pos - (t->n_before - 1);
    if (!t->is_over && is_shown(t, pos)) {
        t->n_prompted = pos + 1;
        t->p.prompted(t->p.ctx, pos, logits);
    }
    if (row == 0)
        end_prompt(e, t);
    if (t->p.asked && row >= 0) {
        t->row[row] = logits;
        t->n_rows = row + 1;
    } else if (row == 0 && t->group && !t->is_over) {
        llm_group_logits(e, t, logits);
    } else if (row == 0 && t->p.labels && !t->is_over) {
        llm_labels_begin(t->p.labels, logits);
        t->waits = true;
    } else if (row >= 0 && t->q.at == row && !t->is_over) {
        llm_engine_draw(e, t, logits);
    }
}
