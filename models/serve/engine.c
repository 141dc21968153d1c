/* The engine: how sequences come, and what can be asked. leave.c has how they end. */
#include "common/amounts.h"
#include "engine_impl.h"

#include <inttypes.h>

#include "common/clock.h"
#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "run/session_room.h"

enum { STEP_NS = 50000000, SNAPSHOT_BYTES = 256 << 20 };

/* --- creation --------------------------------------------------------------------------------- */

static ggl_status check(const llm_engine_params *p, ggl_error *err) {
    if (!p->session)
        return ggl_fail(err, GGL_USAGE, "an engine needs a session");
    const int64_t n_slots = llm_session_n_slots(p->session);
    if (p->n_parallel < 1 || p->n_parallel > n_slots)
        return ggl_fail(err, GGL_USAGE,
                        "n_parallel is %d, but the session has slots for 1 to %" PRId64
                        " sequences at once",
                        p->n_parallel, n_slots);
    if (p->n_guessers < 0 || p->n_guessers > p->n_parallel)
        return ggl_fail(err, GGL_USAGE, "n_guessers is %d, of %d sequences", p->n_guessers,
                        p->n_parallel);
    if (p->n_ubatch < 0 || p->step_ns < 0 || p->n_guess_max < 0)
        return ggl_fail(err, GGL_USAGE,
                        "n_ubatch (%" PRId64 "), step_ns (%" PRId64 ") and n_guess_max (%" PRId64
                        ") must be 0 or more",
                        p->n_ubatch, p->step_ns, p->n_guess_max);
    return GGL_OK;
}

void llm_engine_set_work(llm_engine *e, int64_t step_ns, llm_prompt_folder *prompts) {
    e->room.step_ns = step_ns > 0 ? step_ns : STEP_NS;
    e->p.prompts = prompts;
}

static ggl_status init(llm_engine *e, const llm_engine_params *p, ggl_error *err) {
    const int64_t n_most = llm_session_n_ubatch(p->session);
    e->p = *p;
    if (!e->p.clock)
        e->p.clock = llm_clock;
    e->sees_all = llm_session_sees_all(p->session);
    e->n_ubatch = p->n_ubatch > 0 && p->n_ubatch < n_most ? p->n_ubatch : n_most;
    e->n_rows = llm_session_n_rows(p->session);
    llm_engine_set_work(e, p->step_ns, p->prompts);
    e->deadline = INT64_MAX;
    /* a picture whose rows see each other is not parted, and may be more than there is room for */
    const bool together = llm_session_built(p->session)->given_together;
    const int64_t n_ctx = llm_session_n_ctx(p->session);
    e->n_most = e->sees_all ? n_most : e->n_ubatch + (together ? n_most : 0);
    if (p->whole_prompts && e->n_most < n_ctx)
        e->n_most = n_ctx;
    const size_t n = (size_t)e->n_most, n_parallel = (size_t)p->n_parallel;
    e->run = ggl_calloc(n_parallel, sizeof(task *));
    e->idle_guesser = ggl_calloc(n_parallel, sizeof *e->idle_guesser);
    e->share = ggl_calloc(n_parallel, sizeof *e->share);
    e->token = ggl_calloc(n, sizeof *e->token);
    e->slot = ggl_calloc(n, sizeof *e->slot);
    e->shares = llm_session_n_tasks(p->session) > 0 ? ggl_calloc(n, sizeof(float *)) : NULL;
    e->seen = e->sees_all ? ggl_calloc(n, sizeof *e->seen) : NULL;
    e->type = e->sees_all ? ggl_calloc(n, sizeof *e->type) : NULL;
    e->want = ggl_calloc(n, sizeof *e->want);
    e->want_embedding = ggl_calloc(n, sizeof *e->want_embedding);
    e->want_score = ggl_calloc(n, sizeof *e->want_score);
    e->n_lanes = llm_session_n_lanes(p->session);
    e->part = ggl_calloc((size_t)e->n_lanes, sizeof *e->part);
    bool has_parts = e->part;
    for (int i = 0; i < e->n_lanes && has_parts; i++) {
        e->part[i] = (part){.e = e, .owner = ggl_calloc(n, sizeof(task *))};
        has_parts = e->part[i].owner;
    }
    e->filled = e->part;
    if ((llm_session_n_tasks(p->session) > 0 && !e->shares) ||
        (e->sees_all && (!e->seen || !e->type)) || !e->run || !e->idle_guesser || !e->share ||
        !e->token || !e->slot || !e->want || !e->want_embedding || !e->want_score || !has_parts)
        return ggl_fail(err, GGL_NOMEM, "out of memory for an engine of %d sequences",
                        p->n_parallel);
    const int n_guessers = p->n_guessers > 0 ? p->n_guessers : p->n_parallel;
    while (p->guesser && e->n_idle_guessers < n_guessers) { /* the first is lent first */
        e->idle_guesser[e->n_idle_guessers] = n_guessers - 1 - e->n_idle_guessers;
        e->n_idle_guessers++;
    }
    const size_t n_bytes = p->n_snapshot_bytes > 0 ? p->n_snapshot_bytes : SNAPSHOT_BYTES;
    const ggl_status st = llm_kept_init(&e->kept, p->session, n_bytes, err);
    e->n_pool = llm_session_n_free(p->session);
    e->n_pool_read = llm_session_room_to_read(p->session);
    return st;
}

ggl_status llm_engine_new(llm_engine **out, const llm_engine_params *params, ggl_error *err) {
    llm_engine_params own = {.size = sizeof own};
    const llm_engine_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_engine_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    ggl_status st = check(p, err);
    if (st != GGL_OK)
        return st;
    llm_engine *e = ggl_calloc(1, sizeof *e);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "out of memory for an engine");
    st = init(e, p, err);
    if (st != GGL_OK) {
        llm_engine_free(e);
        return st;
    }
    *out = e;
    return GGL_OK;
}

static void leave_cancelled(void *ctx, task *t) {
    llm_engine_leave(ctx, t, LLM_END_CANCELLED);
}

void llm_engine_cancel_all(llm_engine *e) {
    e->is_busy = true;
    for (int i = 0; i < e->n_run; i++)
        llm_task_over(e->run[i], LLM_END_CANCELLED);
    (void)llm_engine_collect_all(e, NULL);
    llm_queue_each(&e->queue, leave_cancelled, e);
    llm_engine_end_all(e);
    e->is_busy = false;
}

void llm_engine_free(llm_engine *e) {
    if (!e)
        return;
    e->is_closing = true;
    llm_engine_cancel_all(e);
    llm_queue_fini(&e->queue);
    llm_table_fini(&e->ids);
    llm_kept_fini(&e->kept);
    ggl_free(e->run);
    ggl_free(e->idle_guesser);
    ggl_free(e->share);
    ggl_free(e->token);
    ggl_free(e->slot);
    ggl_free(e->shares);
    ggl_free(e->seen);
    ggl_free(e->type);
    ggl_free(e->want);
    ggl_free(e->want_embedding);
    ggl_free(e->want_score);
    for (int i = 0; i < e->n_lanes && e->part; i++)
        ggl_free(e->part[i].owner);
    ggl_free(e->part);
    ggl_free(e);
}

/* --- how sequences come ----------------------------------------------------------------------- */

/* Checks that the KV cache has room for the prompt, and for the text that it reads. */
static ggl_status check_room(const llm_engine *e, const llm_sequence_params *p, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(e->p.session);
    const bool reads_prompt = llm_session_reads_text(e->p.session) && !p->read;
    const int64_t most = reads_prompt ? e->n_pool_read : e->n_pool;
    if (p->n_prompt > (uint64_t)most && n_ctx < most)
        return ggl_fail(err, GGL_LIMIT, "the %s has %zu tokens, but the context only %" PRId64,
                        reads_prompt ? "text that the model is to read" : "prompt", p->n_prompt,
                        n_ctx);
    if (p->n_prompt > (uint64_t)most)
        return ggl_fail(err, GGL_LIMIT,
                        "the prompt has %zu tokens, but the KV cache has room for only %" PRId64,
                        p->n_prompt, most);
    if (p->read && p->n_read > (uint64_t)e->n_pool_read && p->n_read <= (uint64_t)n_ctx)
        return ggl_fail(err, GGL_LIMIT,
                        "the text that the model is to read has %zu tokens, but the KV cache has "
                        "room for only %" PRId64,
                        p->n_read, e->n_pool_read);
    return GGL_OK;
}

ggl_status llm_engine_add(llm_engine *e, const llm_sequence_params *params, uint64_t *id,
                          ggl_error *err) {
    llm_sequence_params own = {.size = sizeof own};
    const llm_sequence_params *p = &own;
    *id = 0;
    const ggl_status is_read = GGL_READ_PARAMS(llm_sequence_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    if (e->is_closing)
        return ggl_fail(err, GGL_USAGE, "the engine is being freed; add sequences to another one");
    if (e->p.n_queue > 0 && e->queue.n >= e->p.n_queue)
        return ggl_fail(err, GGL_LIMIT, "%zu sequence%s waiting, which is the limit; try later",
                        e->queue.n, e->queue.n == 1 ? " is" : "s are");
    const size_t n_own = e->p.n_queue_each > 0 ? llm_queue_n_of(&e->queue, p->client) : 0;
    if (e->p.n_queue_each > 0 && n_own >= e->p.n_queue_each)
        return ggl_fail(err, GGL_LIMIT,
                        "%zu sequence%s of this client %s waiting, which is the limit for one; try "
                        "later",
                        n_own, llm_amount_s((int64_t)n_own), n_own == 1 ? "is" : "are");
    const ggl_status has_room = check_room(e, p, err);
    if (has_room != GGL_OK)
        return has_room;
    const int n_others = llm_engine_n_running(e) + (int)e->queue.n;
    if (n_others > 0 && (p->asked || e->asked))
        return ggl_fail(err, GGL_USAGE,
                        "a sequence whose tokens are asked for runs alone, but %d other%s",
                        n_others, n_others == 1 ? " waits or runs" : "s wait or run");
    task *t;
    const llm_guesser *guesser = e->p.guesser ? e->p.guesser[0] : NULL;
    if (p->beams && p->beams->n > e->p.n_parallel)
        return ggl_fail(err, GGL_LIMIT,
                        "%d beams need as many sequences, but there are places for %d at once",
                        (int)p->beams->n, e->p.n_parallel);
    ggl_status st = llm_task_new(&t, e->p.session, p, p->beams || p->no_guesses ? NULL : guesser,
                                 e->p.n_guess_max, err);
    if (st != GGL_OK)
        return st;
    if (p->beams && p->n_max != 0)
        st = llm_group_new(e, t, p, err);
    if (st == GGL_OK && (!llm_table_reserve(&e->ids) || !llm_queue_add(&e->queue, t)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a list of %zu sequences", e->ids.n);
    if (st != GGL_OK) {
        llm_task_free(t);
        return st;
    }
    *id = t->node.key = ++e->last_id;
    llm_table_put(&e->ids, &t->node);
    e->asked = p->asked ? t : NULL;
    t->stats.t_added = llm_engine_now(e);
    if (p->deadline && p->deadline < e->deadline)
        e->deadline = p->deadline;
    return GGL_OK;
}

/* --- how they end ----------------------------------------------------------------------------- */

void llm_engine_cancel(llm_engine *e, uint64_t id) {
    task *t = llm_table_find(&e->ids, id);
    if (!t)
        return;
    if (t->where == TASK_WAITS)
        llm_engine_leave(e, t, LLM_END_CANCELLED);
    llm_task_over(t, LLM_END_CANCELLED);
    if (e->is_busy)
        return;
    e->is_busy = true;
    if (llm_group_is_under_way(t))
        (void)llm_engine_collect_all(e, NULL); /* a failure is that of the sequences in the batch */
    llm_engine_end_all(e);
    e->is_busy = false;
}

/* --- looking ---------------------------------------------------------------------------------- */

int llm_engine_n_running(const llm_engine *e) {
    int n = 0;
    for (int i = 0; i < e->n_run; i++)
        n += !llm_task_is_beam(e->run[i]);
    return n;
}

size_t llm_engine_n_waiting(const llm_engine *e) {
    return e->queue.n;
}

llm_engine_stats llm_engine_get_stats(const llm_engine *e) {
    return e->stats;
}

const int32_t *llm_engine_tokens(const llm_engine *e, int slot, int64_t *n) {
    const kept_slot *k = &e->kept.slot[slot];
    *n = k->by ? k->by->n : k->n_all;
    for (int i = 0; i < e->n_run; i++)
        if (&e->run[i]->q == k->by && e->run[i]->diffuser)
            *n = 0; /* they are settled in any order, and are no sequence before the end */
    return k->by ? k->by->token : k->token;
}

llm_slot_info llm_engine_slot(const llm_engine *e, int slot) {
    llm_slot_info info = {.use = LLM_SLOT_EMPTY};
    if (slot < 0 || slot >= e->kept.n)
        return info;
    const kept_slot *k = &e->kept.slot[slot];
    const task *t = k->by ? llm_table_find(&e->ids, k->id) : NULL;
    info.n_past = llm_session_n_past(e->p.session, slot);
    info.id = k->id;
    info.n_shared = llm_session_n_shared(e->p.session, slot);
    if (info.n_past > 0)
        info.use = LLM_SLOT_KEPT;
    if (t) {
        info.use = t->reads ? LLM_SLOT_PROMPT : LLM_SLOT_GENERATES;
        info.stats = t->stats;
        info.stats.n_drawn = t->q.n_drawn;
        info.stats.n_guessed = t->q.n_guessed;
        info.stats.n_right = t->q.n_right;
        info.stats.n_nan = t->q.n_nan;
        info.n_left = t->p.n_max < 0 || t->group ? -1 : t->p.n_max - t->q.n_drawn;
    }
    return info;
}
