/* A step: which tokens run. */
#include "engine_impl.h"
#include "common/least.h"
#include "ggl/internal/pass.h"
#include "run/session_room.h"

/* --- the batch -------------------------------------------------------------------------------- */

static bool is_reading(const task *t) {
    return t->reads && t->has_begun && !t->is_over;
}

/* Removes wrong guesses from the slots of tasks that generate. Returns the number of these tasks. */
static int go_back(llm_engine *e) {
    int n = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        ggl_error err;
        if (!llm_task_generates(t))
            continue;
        if (llm_seq_go_back(&t->q, t->q.n - 1, &err) != GGL_OK)
            llm_task_failed(t, &err);
        n++;
    }
    return n;
}

/* Returns how many tokens of the ubatch the tasks that generate may take. One is left for prompts, if there are any. If the
 * ubatch has only one token, both take turns. */
static int64_t room_to_generate(const llm_engine *e) {
    bool any_reads = false;
    for (int i = 0; i < e->n_run; i++)
        any_reads |= is_reading(e->run[i]);
    if (!any_reads)
        return e->n_ubatch;
    return e->n_ubatch > 1 ? e->n_ubatch - 1 : e->stats.n_steps % 2;
}

/* Returns the most guesses, or tokens that a grammar forces, for each of n sequences that generate, so that the rows of logits suffice and half of
 * the ubatch is left for prompts, if there are any. */
static int64_t most_guesses(const llm_engine *e, int n, int64_t n_room) {
    const int64_t n_tokens = n_room < e->n_ubatch ? e->n_ubatch / 2 : e->n_ubatch;
    const int64_t most = n > 0 ? least(e->n_rows, n_tokens) / n - 1 : 0;
    /* batches that overlap on several devices have one token of each sequence */
    const bool overlaps = llm_session_n_parts(e->p.session, e->p.n_parallel) > 1;
    int64_t n_ahead = 0;
    for (int i = 0; i < e->n_run; i++)
        if (e->run[i]->guesser >= 0 || (e->run[i]->q.matcher && !overlaps))
            n_ahead = e->run[i]->q.n_ahead_max > n_ahead ? e->run[i]->q.n_ahead_max : n_ahead;
    return most > 0 ? least(most, n_ahead) : 0;
}

/* Appends the last token of a sequence that generates, and guesses. */
static void put_next(llm_engine *e, task *t, int64_t n_guess, int64_t n_room) {
    ggl_error err;
    n_room = least(n_room, llm_task_next(t, n_guess));
    n_room = llm_engine_most_piece(e, t, n_room);
    if (n_room == 0)
        return; /* it is alone, and its cache is full */
    if (llm_seq_guess(&t->q, n_room - 1, &err) != GGL_OK)
        llm_task_failed(t, &err);
    else
        llm_engine_put(e, t, n_room);
}

/* Appends the next tokens of all tasks that generate. If there is no room for some, these come first in the next
 * step. */
static void put_generating(llm_engine *e, int64_t n_guess) {
    const int64_t n_room = room_to_generate(e); /* now: prompts may have made room for others */
    const int n = e->n_run, first = e->next < n ? e->next : 0;
    e->next = 0;
    for (int k = 0; k < n; k++) {
        task *t = e->run[(first + k) % n];
        if (!llm_task_generates(t))
            continue;
        if (e->n >= n_room) {
            e->next = (first + k) % n;
            return;
        }
        put_next(e, t, n_guess, n_room - e->n);
    }
}

/* Returns how many tokens of its prompt a task can run in this step. */
static int64_t wanted_piece(const llm_engine *e, const task *t) {
    const int64_t n = llm_task_until_stop(t);
    if (!llm_task_shows(t))
        return n;
    const int64_t n_rows = e->n_rows - e->n_want, n_before = t->n_prompted - t->q.n_kept;
    return least(n, (n_before > 0 ? n_before : 0) + (n_rows > 1 ? n_rows : 1));
}

/* Returns how many tokens of a prompt to run in this step, about n: there are pages for them, and pictures stay whole. */
static int64_t piece_of(llm_engine *e, const task *t, int64_t n) {
    const int32_t *token = t->q.token + t->q.n_kept;
    const int64_t n_token = llm_task_todo(t), most = e->n_most - e->n;
    n = llm_engine_most_piece(e, t, least(n, most)); /* the piece before may have become longer */
    const int64_t whole = llm_session_whole_rows(e->p.session, token, n_token, n);
    if (whole <= n)
        return whole;
    return whole <= most && llm_engine_most_piece(e, t, whole) == whole ? whole : 0;
}

/* Fills the rest of the batch with pieces of prompts. */
static void put_prompts(llm_engine *e) {
    int n = 0;
    if (e->asked && e->p.whole_prompts && is_reading(e->asked)) {
        const int64_t n_piece = piece_of(e, e->asked, llm_task_until_stop(e->asked));
        if (n_piece > 0)
            llm_engine_put(e, e->asked, n_piece);
        return;
    }
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        if (is_reading(t))
            e->share[n++] =
                (room_share){.client = t->p.client,
                             .want = wanted_piece(e, t),
                             .left = llm_task_todo(t),
                             .token_ns = llm_room_token_ns(&e->room, (double)t->q.n_kept)};
    }
    llm_room_for_prompts(&e->room, e->share, n, e->n_ubatch - e->n, e->n_generate);
    n = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!is_reading(t))
            continue;
        const int64_t n_piece = piece_of(e, t, e->share[n++].get);
        if (n_piece > 0)
            llm_engine_put(e, t, n_piece);
    }
}

/* Fills the batch with the whole texts of the tasks that run, all of which fit. */
static void put_texts(llm_engine *e) {
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (t->diffuser && t->has_begun && !t->is_over)
            llm_engine_put_pass(e, t);
        else if (is_reading(t))
            llm_engine_put(e, t, t->q.n);
    }
}

/* --- the step --------------------------------------------------------------------------------- */

static ggl_status run(llm_engine *e, ggl_error *err) {
    llm_batch b = {.n = e->n,
                   .token = e->token,
                   .slot = e->slot,
                   .type = e->type,
                   .seen = e->seen,
                   .share = e->shares,
                   .want = e->want,
                   .want_embedding =
                       llm_session_n_embd(e->p.session) > 0 ? e->want_embedding : NULL,
                   .want_score = llm_session_n_score(e->p.session) > 0 ? e->want_score : NULL,
                   .each = llm_engine_on_logits,
                   .each_embedding = llm_engine_on_row,
                   .each_score = llm_engine_on_row,
                   .ctx = e->filled};
    ggl_error why;
    const ggl_status st =
        e->asked ? llm_asked_eval(e, e->asked, &b, &why) : llm_session_eval(e->p.session, &b, &why);
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (t->n_piece == 0)
            continue;
        if (st != GGL_OK)
            llm_task_failed(t, &why);
        else if (t->diffuser)
            llm_engine_end_pass(e, t);
        else if (t->from + t->n_piece < t->n_before)
            t->q.n_kept = t->from + t->n_piece;
    }
    if (st != GGL_OK)
        (void)ggl_pass(err, &why);
    return st;
}

static void count_time(llm_engine *e, int64_t ns) {
    const double share = (double)e->n_prompt / (double)e->n;
    const int64_t prompt_ns = (int64_t)((double)ns * share);
    llm_room_learn(&e->room, ns, e->n_prompt, e->prompt_depth, e->n_generate);
    e->stats.n_steps++;
    e->stats.n_prompt += e->n_prompt;
    e->stats.busy_ns += ns;
    e->stats.prompt_ns += prompt_ns;
    e->stats.generate_ns += ns - prompt_ns;
}

/* Fills the batch. */
static void fill(llm_engine *e) {
    e->n = e->n_want = e->n_prompt = e->n_generate = 0;
    e->prompt_depth = 0;
    e->filled = e->part;
    for (int i = 0; i < e->n_run; i++)
        e->run[i]->n_piece = 0;
    if (e->sees_all) {
        llm_session_estimate(e->p.session);
        put_texts(e);
        return;
    }
    const int n_generating = go_back(e);
    const int64_t n_most = most_guesses(e, n_generating, room_to_generate(e));
    const int64_t n_guess = llm_engine_make_room(e, n_most);
    llm_session_estimate(e->p.session); /* from now on, of the batch */
    put_generating(e, n_guess);
    put_prompts(e);
}

/* Takes snapshots of the states after prompts, and where pieces were made to end. */
static void take_snapshots(llm_engine *e) {
    for (int i = 0; i < e->n_run && e->kept.has_states; i++) {
        const task *t = e->run[i];
        const int64_t n = t->from + t->n_piece;
        bool is_stop = n == t->n_before && t->n_before == t->stats.n_prompt;
        for (int k = 0; k < t->n_stops; k++)
            is_stop |= n == t->stop[k];
        if (t->n_piece > 0 && is_stop && t->why != LLM_END_FAILED)
            llm_kept_take_snapshot(&e->kept, &t->q, n);
    }
}

/* Saves beginnings at which a piece was made to end. */
static void save_beginnings(llm_engine *e) {
    if (e->asked)
        llm_asked_keep(e->asked);
    for (int i = 0; i < e->n_run && e->p.prompts; i++) {
        task *t = e->run[i];
        if (t->save_at == 0 || t->n_piece == 0 || t->from + t->n_piece < t->save_at)
            continue;
        if (t->from + t->n_piece == t->save_at && t->why != LLM_END_FAILED)
            llm_prompt_folder_save(e->p.prompts, t->q.slot, t->q.token, t->save_at);
        t->save_at = 0;
    }
}

static ggl_status step(llm_engine *e, ggl_error *err) {
    if (e->n_parts > 0) {
        const ggl_status collected = llm_engine_collect_all(e, err);
        if (collected != GGL_OK)
            return collected;
        llm_engine_end_all(e);
    }
    const int64_t now = llm_engine_now(e);
    if (e->asked && e->asked->is_full)
        (void)llm_task_shift(e->asked);
    llm_engine_admit(e, now);
    fill(e);
    while (e->n == 0 && !llm_engine_has_labels(e) && llm_engine_unblock(e))
        fill(e);
    if (e->n == 0)
        return GGL_OK;
    const ggl_status st = run(e, err);
    if (st != GGL_OK)
        return st;
    take_snapshots(e);
    save_beginnings(e);
    count_time(e, llm_engine_now(e) - now);
    return st;
}

ggl_status llm_engine_step(llm_engine *e, ggl_error *err) {
    if (e->is_busy)
        return ggl_fail(err, GGL_USAGE, "a callback of a step cannot begin another step");
    e->is_busy = true;
    ggl_status st = GGL_OK;
    if (e->asked && llm_asked_has_row(e->asked))
        llm_engine_draw(e, e->asked, e->asked->row[e->asked->q.at]);
    else
        st = llm_engine_overlaps(e) ? llm_engine_overlap(e, err) : step(e, err);
    llm_engine_run_labels(e, e->n == 0);
    llm_engine_end_all(e);
    e->is_busy = false;
    return st;
}
