/* Searches of beams: each beam is a task of its own in run[], and takes the slot of another one when the search says so. */
#include <string.h>

#include "common/least.h"
#include "engine_impl.h"
#include "ggl/alloc.h"

/* --- creation --------------------------------------------------------------------------------- */

static ggl_status make_beams(llm_engine *e, const task *t, const llm_beams_params *p,
                             ggl_error *err) {
    llm_beams_params own = *p;
    const int64_t most = t->q.n_ctx - t->q.n + 1; /* the last token does not run */
    own.n_max = t->p.n_max < 0 ? most : least(t->p.n_max, most);
    own.ignore_end = t->p.ignore_eog;
    return llm_beams_new(&t->group->beams, &own, e->p.tokenizer, (int32_t)t->q.n_vocab,
                         t->q.writable, err);
}

ggl_status llm_group_new(llm_engine *e, task *t, const llm_sequence_params *params,
                         ggl_error *err) {
    llm_sequence_params p = *params;
    group *g = t->group = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %d beams", (int)p.beams->n);
    *g = (group){.n = 1, .n_left = 1, .member = {t}};
    ggl_status st = make_beams(e, t, p.beams, err);
    p.in_slot = 0;
    while (g->n < p.beams->n && st == GGL_OK) {
        task *m;
        st = llm_task_new(&m, e->p.session, &p, NULL, 0, err);
        if (st != GGL_OK)
            break;
        m->group = g;
        m->place = g->n;
        m->waits = true;
        g->member[g->n++] = m;
    }
    return st;
}

ggl_status llm_group_make_room(task *t, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < llm_group_n(t) && st == GGL_OK; i++)
        st = llm_task_make_room(t->group ? t->group->member[i] : t, err);
    return st;
}

/* --- places ----------------------------------------------------------------------------------- */

static void join(llm_engine *e, task *m) {
    const task *first = m->group->member[0];
    m->turn = first->turn;
    m->node.key = first->node.key;
    llm_engine_insert(e, m);
}

void llm_group_resume(llm_engine *e, task *t) {
    group *g = t->group;
    if (!g)
        return;
    llm_beams_again(g->beams); /* the texts run again, and give the same logits */
    for (int i = 0; i < g->n; i++)
        g->member[i]->waits = true;
    g->n_left = llm_beams_n(g->beams);
    for (int i = 0; i < g->n_left; i++) {
        task *m = g->member[llm_beams_at(g->beams, i).place];
        m->waits = false;
        if (m != t)
            join(e, m);
    }
}

void llm_group_leave(llm_engine *e, task *t) {
    for (int i = 1; i < llm_group_n(t); i++) {
        task *m = t->group->member[i];
        if (m->where != TASK_RUNS)
            continue;
        llm_engine_take_out(e, m);
        if (m->has_begun)
            llm_kept_give_back(&e->kept, &m->q);
        m->has_begun = false;
        m->n_stops = 0;
        m->where = TASK_WAITS;
    }
}

bool llm_group_is_under_way(const task *t) {
    bool any = t->is_under_way;
    for (int i = 0; t->group && i < t->group->n; i++)
        any |= t->group->member[i]->is_under_way;
    return any;
}

/* --- steps ------------------------------------------------------------------------------------ */

void llm_group_logits(llm_engine *e, task *t, const float *logits) {
    llm_beams_logits(t->group->beams, t->place, logits);
    t->group->member[0]->stats.t_last = llm_engine_now(e);
    t->waits = true;
    t->group->n_left--;
}

/* Gives the caller a token. Returns false if the caller wants no more of this text. */
static bool give(llm_engine *e, task *t, int32_t id) {
    t->q.n_drawn++;
    e->stats.n_drawn++;
    return !t->p.token || t->p.token(t->p.ctx, id, NULL);
}

/* Gives the caller a text. why: the reason of its end, if it was cut off. Returns the reason. */
static llm_end give_text(llm_engine *e, task *t, int32_t rank, llm_end why) {
    size_t n;
    int32_t end;
    const int32_t *id = llm_beams_best(t->group->beams, rank, &n, &end);
    bool goes_on = true;
    t->q.n_drawn = 0;
    for (size_t i = 0; i < n && goes_on && !t->is_over; i++)
        goes_on = give(e, t, id[i]);
    if (!goes_on)
        return LLM_END_STOPPED;
    if (end < 0 || t->is_over)
        return why;
    (void)give(e, t, end);
    return LLM_END_EOG;
}

/* Gives the caller the best texts, and ends the group. */
static void finish(llm_engine *e, task *t, llm_end why) {
    const int32_t n = t->p.n_texts > 1 ? t->p.n_texts : 1;
    llm_end last = why;
    for (int32_t k = 0; k < n && !t->is_over; k++) {
        last = give_text(e, t, k, why);
        t->stats.n_drawn = t->q.n_drawn;
        if (k + 1 < n && !t->is_over)
            t->p.text_ended(t->p.ctx, last, &t->stats);
    }
    for (int i = 0; i < t->group->n; i++)
        llm_task_over(t->group->member[i], last);
}

void llm_group_cut(llm_engine *e, task *t, llm_end why) {
    ggl_error err;
    if (llm_beams_cut(t->group->beams, &err) != GGL_OK)
        llm_task_failed(t, &err);
    finish(e, t, why);
}

/* Lets the beams have the tokens that the search has chosen. */
static ggl_status go_on(llm_engine *e, group *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    g->n_left = llm_beams_n(g->beams);
    for (int i = 0; i < g->n_left && st == GGL_OK; i++) {
        const llm_beam x = llm_beams_at(g->beams, i);
        task *m = g->member[x.place];
        const task *from = g->member[x.parent];
        if (m == from)
            continue;
        if (m->where != TASK_RUNS)
            join(e, m);
        memcpy(m->q.token, from->q.token, (size_t)from->q.n * sizeof *m->q.token);
        m->q.n = from->q.n;
        m->reads = false;
        m->has_begun = true;
        st = llm_kept_copy(&e->kept, &m->q, &from->q, err);
        m->stats.slot = m->q.slot;
        e->kept.slot[m->q.slot].id = m->node.key;
    }
    for (int i = 0; i < g->n_left; i++) {
        const llm_beam x = llm_beams_at(g->beams, i);
        task *m = g->member[x.place];
        m->q.token[m->q.n++] = x.token;
        m->waits = false;
    }
    return st;
}

static void step(llm_engine *e, task *t) {
    ggl_error err;
    bool is_done;
    ggl_status st = llm_beams_step(t->group->beams, &is_done, &err);
    if (st == GGL_OK && !is_done)
        st = go_on(e, t->group, &err);
    if (st != GGL_OK)
        llm_task_failed(t, &err);
    else if (is_done)
        finish(e, t, LLM_END_MAX);
}

void llm_group_step_all(llm_engine *e) {
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!t->group || t->place > 0 || t->group->n_left > 0)
            continue;
        bool any_over = false;
        for (int k = 0; k < t->group->n; k++)
            any_over |= t->group->member[k]->is_over;
        if (!any_over)
            step(e, t);
    }
}
