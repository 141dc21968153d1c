/* Which columns of a model's weights matter: importance matrices. */
#include "importance.h"

#include <inttypes.h>

#include "common/amounts.h"
#include "arrays.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h"
#include "context.h"
#include "copies.h"
#include "ggl/internal/pass.h"
#include "measure/collect.h"
#include "measure/own_text.h"
#include "measure/scores.h"
#include "measuring.h"

struct llm_imatrix {
    imatrix *all; /* what was added; NULL: nothing */
    collector **
        collector; /* [n_collectors]: of the sessions that collect, one for each copy of the model */
    int n_collectors;
    bool output; /* what they collect */
    int n_directions;
    collected *sums;  /* of the text that runs, as far as its windows are taken; NULL: none runs */
    const char *name; /* of it */
    int64_t n_window; /* of it; 0: none runs */
};

ggl_status llm_imatrix_begin(llm_imatrix **out, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    return *out ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Frees the collectors, after the sessions. */
static void end_collecting(llm_imatrix *m) {
    for (int k = 0; k < m->n_collectors; k++)
        llm_collector_free(m->collector[k]);
    ggl_free(m->collector);
    m->collector = NULL;
    m->n_collectors = 0;
}

void llm_imatrix_end(llm_imatrix *m) {
    if (!m)
        return;
    llm_imatrix_free(m->all);
    end_collecting(m);
    ggl_free(m);
}

imatrix *llm_imatrix_take(llm_imatrix *m) {
    imatrix *all = m->all;
    m->all = NULL;
    return all;
}

/* --- files ------------------------------------------------------------------------------------ */

static llm_imatrix_file file_of(const imatrix *m) {
    llm_imatrix_file f = {.tells_window = llm_imatrix_tells_chunk_size(m),
                          .n_weights = (int64_t)llm_imatrix_n(m)};
    for (size_t i = 0; i < llm_imatrix_n(m); i++)
        f.n_directed += llm_imatrix_at(m, i)->n_sketch > 0;
    return f;
}

/* Adds a matrix, which becomes m's if it is the first. */
static ggl_status add(llm_imatrix *m, imatrix *more, const char *path, ggl_error *err) {
    if (!m->all) {
        m->all = more;
        return GGL_OK;
    }
    const ggl_status st = llm_imatrix_merge(m->all, more, err);
    llm_imatrix_free(more);
    return st == GGL_OK ? st : ggl_within(err, st, "%s", path);
}

ggl_status llm_imatrix_read(llm_imatrix *m, const char *path, int64_t n_window,
                            llm_imatrix_file *file, ggl_error *err) {
    imatrix *more = NULL;
    ggl_status st = file ? CHECK_RESULT(llm_imatrix_file, file, err) : GGL_OK;
    if (st == GGL_OK && n_window < 0)
        return ggl_fail(err, GGL_USAGE, "n_window must be 0 or more, but is %" PRId64, n_window);
    if (st == GGL_OK)
        st = llm_imatrix_open(&more, path, n_window, err);
    if (st != GGL_OK)
        return st;
    const llm_imatrix_file f = file_of(more);
    if (file)
        st = GGL_WRITE_PARAMS(llm_imatrix_file, file, &f, err);
    return st == GGL_OK ? add(m, more, path, err) : st;
}

ggl_status llm_imatrix_check(const llm_imatrix *m, const llm_context *c, const char *name,
                             ggl_error *err) {
    name = name ? name : "the files that were added";
    for (size_t i = 0; m->all && i < llm_imatrix_n(m->all); i++) {
        const imatrix_entry *e = llm_imatrix_at(m->all, i);
        const ggl_gguf_tensor *t = ggl_gguf_find_tensor(llm_model_file(c->model), e->name.s);
        if (t && llm_imatrix_fits(e, t->ne[0], t->ne[2]))
            continue;
        if (!t && ggl_str_is(e->name, "output.weight")) /* it may be token_embd.weight here */
            continue;
        if (!t)
            return ggl_fail(err, GGL_USAGE, "%s are not of this model, which has no '%s'", name,
                            e->name.s);
        return ggl_fail(err, GGL_USAGE,
                        "%s are not of this model: '%s' has %" PRId64 " columns there, and %" PRId64
                        " in the model",
                        name, e->name.s, e->n_col, t->ne[0]);
    }
    return GGL_OK;
}

/* --- the matrix ------------------------------------------------------------------------------- */

/* Sets *out to what was added and what the text has given so far. */
static ggl_status sum_up(const llm_imatrix *m, imatrix **out, ggl_error *err) {
    imatrix *own = NULL;
    ggl_status st = llm_imatrix_new(&own, m->n_window, err);
    if (st == GGL_OK)
        st = llm_collector_put(m->collector[0], m->sums, own, err);
    if (st == GGL_OK && m->name)
        st = llm_imatrix_add_dataset(own, m->name, err);
    if (st == GGL_OK)
        st = llm_imatrix_new(out, m->n_window, err);
    if (st == GGL_OK && m->all)
        st = llm_imatrix_merge(*out, m->all, err);
    if (st == GGL_OK)
        st = llm_imatrix_merge(*out, own, err);
    llm_imatrix_free(own);
    return st;
}

ggl_status llm_imatrix_save(const llm_imatrix *m, const char *path, ggl_error *err) {
    imatrix *with = NULL;
    ggl_status st = GGL_OK;
    if (m->n_window > 0 || !m->all)
        st = m->n_window > 0 ? sum_up(m, &with, err) : llm_imatrix_new(&with, IMATRIX_CHUNK, err);
    if (st == GGL_OK)
        st = llm_imatrix_write(with ? with : m->all, path, err);
    llm_imatrix_free(with);
    return st;
}

int64_t llm_imatrix_windows(const llm_imatrix *m) {
    return m->all ? llm_imatrix_n_chunks(m->all) : 0;
}

bool llm_imatrix_get(const llm_imatrix *m, size_t i, llm_imatrix_entry *entry) {
    if (!m->all || i >= llm_imatrix_n(m->all))
        return false;
    const imatrix_entry *e = llm_imatrix_at(m->all, i);
    *entry = (llm_imatrix_entry){.name = e->name.s,
                                 .n_col = e->n_col,
                                 .n_mat = e->n_mat,
                                 .sum2 = e->sum2,
                                 .count = e->count,
                                 .n_directions = e->n_sketch};
    return true;
}

/* --- sessions --------------------------------------------------------------------------------- */

ggl_status llm_imatrix_watch_copy(void *matrix, int k, llm_session_params *sp, ggl_error *err) {
    llm_imatrix *m = matrix;
    if (k >= m->n_collectors) {
        size_t cap = (size_t)m->n_collectors;
        if (!ggl_grow(&m->collector, &cap, (size_t)k + 1, sizeof *m->collector))
            return ggl_fail(err, GGL_NOMEM, "out of memory to collect sums");
        while (m->n_collectors <= k)
            m->collector[m->n_collectors++] = NULL;
    }
    llm_collector_free(m->collector[k]);
    m->collector[k] = NULL;
    const ggl_status st = llm_collector_new(&m->collector[k], m->output, m->n_directions, err);
    if (st == GGL_OK)
        sp->watch = llm_collector_watch(m->collector[k]);
    return st;
}

ggl_status llm_imatrix_watch(llm_imatrix *m, const llm_imatrix_params *params, int64_t n_window,
                             llm_session_params *sp, ggl_error *err) {
    const int32_t n = params->n_directions;
    end_collecting(m);
    m->output = params->output;
    m->n_directions = n == 0 ? COLLECTOR_DIRECTIONS : n < 0 ? 0 : n;
    const ggl_status st = llm_imatrix_watch_copy(m, 0, sp, err);
    if (st != GGL_OK)
        return st;
    sp->n_ctx = n_window;
    sp->n_slots = 1;
    sp->n_rows = sp->n_ubatch < SCORES_ROWS ? sp->n_ubatch : SCORES_ROWS;
    return GGL_OK;
}

void llm_own_text_watch(llm_session_params *sp, int64_t n_window) {
    llm_own_text_session(sp, n_window);
}

/* Returns the session that a tool has opened for this; NULL: there is none. */
static llm_session *given_session(const llm_context *c) {
    return c->opened == LLM_OPENED_WEIGHTS ? c->session : NULL;
}

/* Makes another session of the context's model, with its placement and adapters. */
static ggl_status make_session(llm_session **out, llm_context *c, llm_session_params *sp,
                               ggl_error *err) {
    sp->embeddings = false;
    ggl_status st = llm_placement_session(c->placement, out, c->model, sp, err);
    return st == GGL_OK ? llm_session_alloc(*out, err) : st;
}

/* --- the model's own text --------------------------------------------------------------------- */

/* Sets *n_window to the size of windows where the caller gives none. */
static ggl_status find_window(const llm_context *c, int64_t *n_window, ggl_error *err) {
    const int64_t own = llm_model_n_ctx(c->model);
    if (!c->tokenizer)
        return ggl_pass(err, &c->why_no_tokenizer);
    const ggl_status st = llm_check_window(*n_window, err);
    if (st == GGL_OK && *n_window == 0)
        *n_window = own >= LEAST_WINDOW && own < TEXT_CHUNK_SIZE ? own : TEXT_CHUNK_SIZE;
    return st;
}

static ggl_status write_text(llm_context *c, int64_t n_window, size_t n,
                             bool (*progress)(void *, size_t, size_t), void *user, int32_t **id,
                             ggl_error *err) {
    text_chunks text = {.n_ctx = n_window};
    const int64_t n_chunks = ((int64_t)n + n_window - 1) / n_window;
    llm_session_params sp = c->session_params;
    llm_session *session = NULL;
    llm_own_text_session(&sp, n_window);
    ggl_status st = given_session(c) ? GGL_OK : make_session(&session, c, &sp, err);
    if (st == GGL_OK)
        st = llm_own_text_write(&text, session ? session : c->session, c->tokenizer, n_chunks,
                                progress, user, err);
    llm_session_free(session);
    *id = text.tokens.id;
    return st;
}

/* llm_own_text within a call that has begun. */
static ggl_status own_text(llm_context *c, int64_t n_window, size_t n,
                           bool (*progress)(void *user, size_t done, size_t total), void *user,
                           int32_t **id, ggl_error *err) {
    *id = NULL;
    if (n == 0 || n > INT32_MAX)
        return ggl_fail(err, GGL_USAGE, "n must be 1 to %d, but is %zu", INT32_MAX, n);
    ggl_status st = llm_context_check_writes(c, false, err);
    if (st == GGL_OK)
        st = find_window(c, &n_window, err);
    if (st == GGL_OK)
        st = write_text(c, n_window, n, progress, user, id, err);
    if (st != GGL_OK) {
        ggl_free(*id);
        *id = NULL;
    }
    return st;
}

ggl_status llm_own_text(llm_context *c, int64_t n_window, size_t n,
                        bool (*progress)(void *user, size_t done, size_t total), void *user,
                        int32_t **id, ggl_error *err) {
    llm_context_start_beside(c);
    return llm_context_end_beside(c, own_text(c, n_window, n, progress, user, id, err));
}

/* --- a text ----------------------------------------------------------------------------------- */

/* What a window has given that is not taken yet. */
typedef struct place {
    collected *sums;
    scores_rows rows;
} place;

/* What a call of llm_imatrix_run needs. */
typedef struct run {
    llm_imatrix *m;
    llm_context *c;
    llm_imatrix_params p;
    int64_t n_window, end; /* the windows p.first_chunk .. end - 1 are run */
    text_chunks text;      /* without tokens if the caller has them */
    int32_t *own;          /* the model's own text; NULL: none */
    const int32_t *token;
    llm_session **session; /* [copies]: made for this; NULL: the tool's */
    scores *scores;
    place *place; /* [n_places] */
    size_t n_places;
    window_progress share; /* of the windows that run */
    bool begun;            /* the matrix has sums of this text */
    bool ends;             /* the caller wants no more windows */
} run;

static ggl_status check(const run *r, const char *text, ggl_error *err) {
    const llm_imatrix_params *p = &r->p;
    if (text && p->id)
        return ggl_fail(err, GGL_USAGE, "a text and its tokens (id) cannot be given together");
    if (p->first_chunk < 0 || p->n_chunks < 0 || p->first_chunk > INT32_MAX ||
        p->n_chunks > INT32_MAX)
        return ggl_fail(err, GGL_USAGE,
                        "first_chunk and n_chunks must be 0 to %d, but are %" PRId64
                        " and %" PRId64,
                        INT32_MAX, p->first_chunk, p->n_chunks);
    if (p->n_directions < -1 || p->n_directions > GGL_MAX_DIRECTIONS ||
        (p->n_directions > 0 && p->n_directions % 4 != 0))
        return ggl_fail(err, GGL_USAGE,
                        "n_directions must be -1, or a multiple of 4 up to %d, but is %" PRId32,
                        GGL_MAX_DIRECTIONS, p->n_directions);
    if (llm_arch_reads_text(llm_model_arch(r->c->model)))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model reads a text and writes another, so a text alone shows nothing "
                        "of what is important to it");
    return r->m->n_window > 0 ? ggl_fail(err, GGL_USAGE, "a text is being added to this matrix")
                              : llm_need_array("id", p->id, p->n_id, err);
}

/* Lets the model write as many windows as are wanted. */
static ggl_status take_own(run *r, size_t *n, ggl_error *err) {
    const int64_t wanted =
        r->p.n_chunks > 0 ? r->p.first_chunk + r->p.n_chunks : OWN_TEXT_TOKENS / r->n_window;
    *n = (size_t)(wanted * r->n_window);
    const ggl_status st = own_text(r->c, r->n_window, *n, r->p.progress, r->p.user, &r->own, err);
    r->token = r->own;
    return st;
}

/* Gets the tokens and their number. */
static ggl_status take_tokens(run *r, const char *text, size_t n_text, size_t *n, ggl_error *err) {
    r->text.n_ctx = r->n_window;
    if (!text && !r->p.id)
        return take_own(r, n, err);
    if (text) {
        const ggl_status st = llm_text_chunks_take(&r->text, r->c->tokenizer,
                                                   (ggl_str){text, n_text}, r->p.read_special, err);
        *n = r->text.tokens.n;
        r->token = r->text.tokens.id;
        return st;
    }
    *n = r->p.n_id;
    r->token = r->p.id;
    return llm_check_tokens(r->token, *n, llm_tokenizer_n_vocab(r->c->tokenizer), err);
}

static ggl_status choose_windows(run *r, const char *text, size_t n_text, ggl_error *err) {
    size_t n = 0;
    const ggl_status st = take_tokens(r, text, n_text, &n, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_all = (int64_t)n / r->n_window, first = r->p.first_chunk;
    const int64_t least = text ? 2 : 1; /* windows; a text of the model's own may have one */
    if (n_all < least)
        return ggl_fail(err, GGL_LIMIT,
                        "the text has %zu token%s; with windows of %" PRId64 " at least %" PRId64
                        " are needed",
                        n, llm_amount_s((int64_t)n), r->n_window, least * r->n_window);
    if (first >= n_all)
        return ggl_fail(err, GGL_LIMIT,
                        "first_chunk is %" PRId64 ", but the text has only %" PRId64 " windows",
                        first, n_all);
    r->end = r->p.n_chunks > 0 && r->p.n_chunks < n_all - first ? first + r->p.n_chunks : n_all;
    return GGL_OK;
}

/* --- its windows ------------------------------------------------------------------------------ */

/* Tells how many tokens have run. */
static bool tell_tokens(void *ctx) {
    const run *r = ctx;
    const int64_t n_taken = r->scores->chunk - r->p.first_chunk;
    return !r->p.progress ||
           r->p.progress(r->p.user, llm_window_tokens(&r->share, n_taken, r->n_window),
                         (size_t)((r->end - r->p.first_chunk) * r->n_window));
}

static bool on_progress(void *ctx, int copy, double share) {
    run *r = ctx;
    llm_window_progress_set(&r->share, copy, share);
    return llm_copies_n(r->c) > 1 || tell_tokens(r);
}

static llm_imatrix_result result_of(const run *r) {
    const ppl_stats *s = &r->scores->stats;
    const mean ppl = s->n > 0 ? llm_ppl_value(s) : (mean){0};
    llm_imatrix_result out = {.size = sizeof out,
                              .n_window = r->n_window,
                              .n_chunks = r->scores->chunk - r->p.first_chunk,
                              .n_wanted = r->end - r->p.first_chunk,
                              .n_scored = (int64_t)s->n,
                              .ppl = ppl.value,
                              .ppl_error = ppl.error};
    out.n_missed = llm_collector_n_missed(r->m->collector[0], &out.missed);
    return out;
}

/* Reports where the run is. False: it ends here. */
static bool tell(const run *r) {
    const llm_imatrix_result so_far = result_of(r);
    return !r->p.each || r->p.each(r->p.user, &so_far);
}

/* Makes sessions that collect, one for each copy of the model. */
static ggl_status make_sessions(run *r, ggl_error *err) {
    llm_session_params sp = r->c->session_params;
    bool is_own;
    ggl_status st = llm_imatrix_watch(r->m, &r->p, r->n_window, &sp, err);
    if (st != GGL_OK)
        return st;
    sp.embeddings = false;
    r->session = ggl_calloc((size_t)llm_copies_n(r->c), sizeof *r->session);
    if (!r->session)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    st = llm_placement_session(r->c->placement, &r->session[0], r->c->model, &sp, err);
    if (st == GGL_OK)
        st = llm_copies_make(r->c, &sp, llm_imatrix_watch_copy, r->m, r->session, err);
    return st == GGL_OK ? llm_copies_alloc(r->c, r->session, &is_own, err) : st;
}

/* Makes what collects, and the sums. */
static ggl_status begin_collecting(run *r, ggl_error *err) {
    ggl_status st = given_session(r->c) ? GGL_OK : make_sessions(r, err);
    const int n = llm_copies_n(r->c);
    if (st == GGL_OK)
        st = llm_collected_new(&r->m->sums, r->m->collector[0], err);
    r->begun = true;
    for (int k = 1; k < n && st == GGL_OK; k++)
        if (!llm_collector_same(r->m->collector[0], r->m->collector[k]))
            st = ggl_fail(err, GGL_UNSUPPORTED,
                          "%s and %s divide the model's operations in other ways, so what they "
                          "collect cannot be added: use devices of one kind",
                          llm_copies_name(r->c, 0), llm_copies_name(r->c, k));
    if (st != GGL_OK)
        return st;
    r->n_places = n == 1 ? 1 : 2 * (size_t)n; /* each takes as much as the matrix */
    r->place = ggl_calloc(r->n_places, sizeof *r->place);
    return r->place ? llm_window_progress_init(&r->share, n, err)
                    : ggl_fail(err, GGL_NOMEM, "out of memory");
}

static ggl_status run_window(void *ctx, int copy, size_t i, size_t at, ggl_error *err) {
    run *r = ctx;
    place *p = &r->place[at];
    collector *c = r->m->collector[copy];
    ggl_status st = p->sums ? GGL_OK : llm_collected_new(&p->sums, c, err);
    if (st != GGL_OK)
        return st;
    llm_collected_clear(p->sums);
    llm_collector_into(c, p->sums);
    st = llm_scores_run(
        r->scores, copy, r->session ? r->session[copy] : llm_copies_session(r->c, copy),
        r->p.first_chunk + (int64_t)i, llm_copies_n(r->c) > 1 ? &p->rows : NULL, err);
    llm_collector_into(c, NULL);
    llm_window_progress_set(&r->share, copy, 1);
    return st;
}

static ggl_status take_window(void *ctx, size_t i, size_t at, ggl_error *err) {
    run *r = ctx;
    (void)i;
    llm_collected_add(r->m->sums, r->place[at].sums);
    const ggl_status st = llm_collector_check(r->m->collector[0], r->m->sums, err);
    llm_scores_add(r->scores, llm_copies_n(r->c) > 1 ? &r->place[at].rows : NULL);
    llm_window_progress_taken(&r->share);
    if (st != GGL_OK)
        return ggl_within(err, st, "chunk %" PRId64, r->scores->chunk);
    r->ends = !tell(r);
    return r->ends ? ggl_fail(err, GGL_CANCELLED, "no more windows are wanted") : GGL_OK;
}

static ggl_status run_windows(run *r, ggl_error *err) {
    const int most = llm_placement_params(r->c->placement)->n_threads, n = llm_copies_n(r->c);
    const scores_params sp = {
        .n_copies = n,
        .n_vocab = llm_session_n_vocab(r->session ? r->session[0] : r->c->session),
        .token = r->token,
        .bos = r->text.bos,
        .n_ctx = r->n_window,
        .first_chunk = r->p.first_chunk,
        .n_chunk = r->end,
        .n_threads = llm_share_threads(most > 0 ? most : ggl_backend_allowed_cpus(), n),
        .without = r->p.no_perplexity,
        .runs_last = true,
        .progress = on_progress,
        .ctx = r};
    ggl_status st = llm_scores_new(&r->scores, &sp, err);
    if (st != GGL_OK || !tell(r))
        return st;
    st = llm_copies_run(r->c,
                        &(llm_copies_work){.n = (size_t)(r->end - r->p.first_chunk),
                                           .n_places = r->n_places,
                                           .run = run_window,
                                           .take = take_window,
                                           .progress = tell_tokens,
                                           .ctx = r},
                        err);
    return r->ends ? GGL_OK : st;
}

/* Adds what was collected. */
static ggl_status keep(run *r, ggl_error *err) {
    imatrix *all = NULL;
    if (r->scores->chunk == r->p.first_chunk)
        return GGL_OK;
    const ggl_status st = sum_up(r->m, &all, err);
    if (st != GGL_OK) {
        llm_imatrix_free(all);
        return st;
    }
    llm_imatrix_free(r->m->all);
    r->m->all = all;
    return GGL_OK;
}

static ggl_status run_text(run *r, const char *text, size_t n, ggl_error *err) {
    ggl_status st = check(r, text, err);
    if (st == GGL_OK)
        st = find_window(r->c, &r->n_window, err);
    if (st == GGL_OK)
        st = llm_imatrix_check(r->m, r->c, NULL, err);
    if (st == GGL_OK)
        st = llm_text_chunks_find_bos(&r->text, r->c->tokenizer, err);
    if (st == GGL_OK)
        st = choose_windows(r, text, n, err);
    if (st == GGL_OK)
        st = begin_collecting(r, err);
    if (st != GGL_OK)
        return st;
    r->m->n_window = r->n_window;
    r->m->name = r->p.name;
    st = run_windows(r, err);
    if (st == GGL_OK)
        st = keep(r, err);
    r->m->n_window = 0;
    return st;
}

/* Frees the sums, and closes sessions that were made for this, with what looks into them. */
static void end_run(run *r) {
    for (size_t k = 0; r->place && k < r->n_places; k++) {
        llm_collected_free(r->place[k].sums);
        llm_scores_rows_fini(&r->place[k].rows);
    }
    ggl_free(r->place);
    llm_window_progress_fini(&r->share);
    if (r->begun) {
        llm_collected_free(r->m->sums);
        r->m->sums = NULL;
    }
    if (!r->session)
        return;
    llm_copies_free(r->c, r->session);
    llm_session_free(r->session[0]);
    ggl_free(r->session);
    end_collecting(r->m);
}

ggl_status llm_imatrix_run(llm_imatrix *m, llm_context *c, const char *text, size_t n,
                           const llm_imatrix_params *params, llm_imatrix_result *result,
                           ggl_error *err) {
    run r = {.m = m, .c = c, .p = {.size = sizeof r.p}, .text.bos = -1};
    llm_context_start_beside(c);
    ggl_status st = GGL_READ_PARAMS(llm_imatrix_params, &r.p, params, err);
    if (st == GGL_OK && result)
        st = CHECK_RESULT(llm_imatrix_result, result, err);
    r.n_window = r.p.n_window;
    if (st == GGL_OK)
        st = run_text(&r, text, n, err);
    if (st == GGL_OK && result) {
        llm_imatrix_result of = result_of(&r);
        of.missed = NULL; /* of the session */
        st = GGL_WRITE_PARAMS(llm_imatrix_result, result, &of, err);
    }
    llm_scores_free(r.scores);
    end_run(&r);
    llm_text_chunks_fini(&r.text);
    ggl_free(r.own);
    return llm_context_end_beside(c, st);
}
