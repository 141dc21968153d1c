/* Runs stages over rows one after the other. */
#include "stage_rows_impl.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/show.h"
#include "common/sha256.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the stages of a model");
}

/* --- making ----------------------------------------------------------------------------------- */

/* Makes the session of stage k, which has n rows; that of the last one is also the session of the tokens that read it. */
static ggl_status make_session(llm_stages *s, int k, const llm_model *m,
                               const llm_session_params *p, ggl_error *err) {
    llm_session **out = &s->source[k].session;
    const int64_t n = s->source[k].n_run;
    const bool is_last = k + 1 == s->n_sources;
    if (*out) /* the caller's */
        return GGL_OK;
    llm_session_params own = *p;
    if (is_last && s->is_read) {
        own.n_read = n;
    } else {
        own.n_ctx = own.n_ubatch = own.n_rows = n;
        own.n_slots = 1;
        /* of the last one of a model without tokens, all outputs are made */
        own.only = is_last && !s->is_within ? NULL : s->of[k].name;
    }
    s->source[k].at_once = n;
    if (s->of[k].causal) { /* what a piece stores is as exact as what one that runs at once has */
        own.in_pieces = true;
        own.n_pool = (n + GGL_PAGE - 1) / GGL_PAGE * GGL_PAGE;
        own.type_k = own.type_v = GGL_F32;
        if (n > LLM_STAGE_PIECE)
            s->source[k].at_once = own.n_ubatch = own.n_rows = LLM_STAGE_PIECE;
    }
    ggl_status st = llm_session_new(out, m, &own, err);
    if (st == GGL_OK && n > LLM_STAGE_PIECE && !own.in_pieces && !(is_last && s->is_read) &&
        llm_session_is_by_row(*out)) {
        llm_session_free(*out);
        s->source[k].at_once = own.n_ubatch = own.n_rows = LLM_STAGE_PIECE;
        own.in_pieces = true;
        st = llm_session_new(out, m, &own, err);
    }
    return st;
}

static ggl_status no_rows(const llm_arch_rows_of *of, int64_t n, ggl_error *err) {
    return ggl_fail(err, GGL_USAGE,
                    "the input has %" PRId64 " rows, of which the stage '%s' makes none", n,
                    of->name);
}

static ggl_status make_sessions(llm_stages *s, const llm_model *m, const llm_session_params *p,
                                ggl_error *err) {
    ggl_status st = GGL_OK;
    int n_inputs = 0;
    for (int k = 0; k < s->n_sources && st == GGL_OK; k++) {
        llm_stage_rows *x = &s->source[k];
        const llm_arch_rows_of *of = &s->of[k];
        x->of = of;
        x->n_row = ggl_extents(of->ne, 0, of->n_dims, 1);
        x->n = llm_rows_made(s->of, k, s->n_most);
        x->n_run = llm_rows_run(of, x->n);
        n_inputs += of->is_input;
        if (!of->is_input)
            st = x->n < 1 ? no_rows(of, s->n_most, err) : make_session(s, k, m, p, err);
    }
    if (st == GGL_OK && n_inputs != 1)
        st = ggl_fail(err, GGL_UNSUPPORTED, "the model has %d inputs of rows", n_inputs);
    return st;
}

/* last: the session of the tokens that read the last stage, if the caller has it, else NULL. */
static ggl_status make(llm_stages **out, const llm_model *m, const llm_session_params *params,
                       int64_t n, llm_session *last, ggl_error *err) {
    llm_session_params own = llm_session_default();
    ggl_status st = GGL_READ_PARAMS(llm_session_params, &own, params, err);
    *out = NULL;
    if (st != GGL_OK)
        return st;
    llm_stages *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    s->is_lent = last != NULL;
    st = llm_model_rows(m, s->of, &s->n_sources, err);
    s->is_within =
        s->n_sources > 0 && own.only && strcmp(own.only, s->of[s->n_sources - 1].name) == 0;
    s->is_read = llm_arch_reads_text(llm_model_arch(m)) && !s->is_within;
    if (st == GGL_OK && s->n_sources == 0)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the model reads texts, and no rows: it has no stage over an input");
    s->n_most = n ? n : s->of[0].most;
    if (st == GGL_OK && s->n_most < 1)
        st = ggl_fail(err, GGL_USAGE,
                      "%s does not say how many rows its input has at most, so the caller must",
                      llm_arch_name(llm_model_arch(m)));
    if (st == GGL_OK)
        s->source[s->n_sources - 1].session = last;
    if (st == GGL_OK)
        st = make_sessions(s, m, &own, err);
    if (st != GGL_OK) {
        llm_stages_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

ggl_status llm_stages_plan(llm_stages **out, const llm_model *m, const llm_session_params *params,
                           int64_t n, ggl_error *err) {
    return make(out, m, params, n, NULL, err);
}

ggl_status llm_stages_plan_before(llm_stages **out, const llm_model *m,
                                  const llm_session_params *params, llm_session *last,
                                  ggl_error *err) {
    return make(out, m, params, 0, last, err);
}

/* True if stage k has a session that is not the caller's. */
static bool has_own(const llm_stages *s, int k) {
    return s->source[k].session && !(s->is_lent && k + 1 == s->n_sources);
}

ggl_status llm_stages_alloc(llm_stages *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < s->n_sources && st == GGL_OK; k++)
        if (has_own(s, k))
            st = llm_session_alloc(s->source[k].session, err);
    return st;
}

static ggl_status make_ready(llm_stages **out, const llm_model *m, const llm_session_params *params,
                             int64_t n, llm_session *last, ggl_error *err) {
    ggl_status st = make(out, m, params, n, last, err);
    if (st == GGL_OK)
        st = llm_stages_alloc(*out, err);
    if (st != GGL_OK) {
        llm_stages_free(*out);
        *out = NULL;
    }
    return st;
}

ggl_status llm_stages_new(llm_stages **out, const llm_model *m, const llm_session_params *params,
                          int64_t n, ggl_error *err) {
    return make_ready(out, m, params, n, NULL, err);
}

ggl_status llm_stages_before(llm_stages **out, const llm_model *m, const llm_session_params *params,
                             llm_session *last, ggl_error *err) {
    return make_ready(out, m, params, 0, last, err);
}

void llm_stages_free(llm_stages *s) {
    if (!s)
        return;
    for (int k = 0; k < s->n_sources; k++) {
        if (has_own(s, k))
            llm_session_free(s->source[k].session);
        ggl_free(s->source[k].own);
        llm_rows_windows_fini(&s->source[k].windows);
    }
    ggl_free(s);
}

int64_t llm_stages_n_input(const llm_stages *s) {
    int k = 0;
    while (!s->of[k].is_input)
        k++;
    return s->source[k].n_row;
}

const llm_arch_sound *llm_stages_sound(const llm_stages *s) {
    int k = 0;
    while (!s->of[k].is_input)
        k++;
    return s->of[k].sound.rate ? &s->of[k].sound : NULL;
}

void llm_stages_place(llm_stages *s, const llm_row_places *places) {
    s->places = places;
}

int64_t llm_stages_n_most(const llm_stages *s) {
    return s->n_most;
}

static const llm_stage_rows *last_of(const llm_stages *s) {
    return &s->source[s->n_sources - 1];
}

llm_session *llm_stages_last(const llm_stages *s) {
    return last_of(s)->session;
}

int64_t llm_stages_n_row(const llm_stages *s) {
    return llm_session_n_row(llm_stages_last(s));
}

/* --- sizes ------------------------------------------------------------------------------------ */

void llm_stages_memory(const llm_stages *s, int backend, ggl_memory *out) {
    *out = (ggl_memory){0};
    for (int k = 0; k < s->n_sources; k++) {
        ggl_memory m;
        if (!has_own(s, k) ||
            !ggl_sched_memory(llm_session_sched(s->source[k].session), backend, &m))
            continue;
        ggl_memory_add(out, &m);
    }
}

size_t llm_stages_row_bytes(const llm_stages *s) {
    int64_t n = 0;
    for (int k = 0; k < s->n_sources; k++) {
        const llm_stage_rows *x = &s->source[k];
        n += x->n * (x->session ? llm_session_n_row(x->session) : x->n_row);
    }
    return (size_t)n * sizeof(float);
}

void llm_stages_print(const llm_stages *s, FILE *out, bool nodes) {
    for (int k = 0; k < s->n_sources; k++)
        if (has_own(s, k)) {
            ggl_fprint(out, "stage        %s, of at most %" PRId64 " rows\n", s->of[k].name,
                       s->source[k].n);
            ggl_sched_print(llm_session_sched(s->source[k].session), out, nodes);
        }
}

/* --- running ---------------------------------------------------------------------------------- */

static void keep_row(void *ctx, int slot, int64_t pos, int32_t token, const float *row) {
    llm_stage_rows *x = ctx;
    const int64_t n_row = llm_session_n_row(x->session), first = x->of->causal ? 0 : x->first,
                  at = llm_rows_kept(x->of, &x->windows, first + pos, x->n);
    (void)slot, (void)token;
    if (at >= 0)
        memcpy(x->own + at * n_row, row, (size_t)n_row * sizeof *row);
}

/* Gathers what the next m rows of stage `at` read. */
static ggl_status gather_inputs(llm_stages *s, int at, int64_t m, ggl_error *err) {
    llm_stage_rows *x = &s->source[at];
    const llm_arch_rows_of *of = &s->of[at];
    const int n_inputs = llm_session_n_rows_inputs(x->session);
    if (m > llm_session_n_ubatch(x->session))
        return ggl_fail(err, GGL_LIMIT,
                        "the stage '%s' has %" PRId64 " rows, but its session reads %" PRId64
                        " at once (n_read)",
                        of->name, m, llm_session_n_ubatch(x->session));
    const ggl_status st =
        of->windows > 0 && x->first == 0
            ? llm_rows_find_windows(of, &s->of[of->over], s->places, x->n, &x->windows, err)
            : GGL_OK;
    if (st != GGL_OK)
        return st;
    for (int k = 0; k < n_inputs; k++) {
        const llm_rows_input *in = llm_session_rows_input(x->session, k);
        s->gathered[k] = llm_session_input_place(x->session, k);
        if (!s->gathered[k])
            return ggl_fail(err, GGL_USAGE, "the stages have no memory yet: llm_stages_alloc");
        const llm_stage_rows *from = &s->source[in->source];
        llm_rows_gather(&(llm_rows_piece){of, &x->windows, x->first, m}, in, s->places, from->row,
                        llm_rows_readable(s->of, at, s->n_input), from->n_row, s->gathered[k]);
    }
    return GGL_OK;
}

/* Runs m rows of stage `at`, from x->first on. */
static ggl_status run_rows(llm_stages *s, int at, int64_t m, ggl_error *err) {
    llm_stage_rows *x = &s->source[at];
    const llm_batch b = {.n = m, .input = (const float *const *)s->gathered};
    ggl_status st = gather_inputs(s, at, m, err);
    if (st == GGL_OK)
        st = llm_session_eval(x->session, &b, err);
    if (st == GGL_OK && x->of->causal && x->first + m < x->n_run) /* the next piece goes on */
        return GGL_OK;
    const ggl_status cleared = llm_session_clear(x->session, 0, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? cleared : st;
}

static ggl_status run_stage(llm_stages *s, int at, ggl_error *err) {
    llm_stage_rows *x = &s->source[at];
    const size_t n_own = (size_t)(x->n * llm_session_n_row(x->session));
    if (!ggl_grow(&x->own, &x->cap_own, n_own, sizeof *x->own))
        return no_memory(err);
    ggl_status st = GGL_OK;
    llm_session_hear(x->session, keep_row, x);
    for (x->first = 0; x->first < x->n_run && st == GGL_OK; x->first += x->at_once)
        st = run_rows(s, at, x->n_run - x->first < x->at_once ? x->n_run - x->first : x->at_once,
                      err);
    x->row = x->own;
    return st;
}

/* Runs the stages over n rows, and gathers what the last one reads; that one runs only if no tokens read it. */
static ggl_status run(llm_stages *s, const float *input, int64_t n, ggl_error *err) {
    if (n > s->n_most)
        return ggl_fail(err, GGL_LIMIT,
                        "the input has %" PRId64 " rows, but the stages were made for %" PRId64, n,
                        s->n_most);
    if (s->is_flowing)
        return ggl_fail(err, GGL_USAGE,
                        "the stages run rows that come piece by piece: end these first");
    ggl_status st = GGL_OK;
    s->n_input = n;
    for (int k = 0; k < s->n_sources && st == GGL_OK; k++) {
        llm_stage_rows *x = &s->source[k];
        const llm_arch_rows_of *of = &s->of[k];
        x->n = llm_rows_made(s->of, k, n);
        x->n_run = llm_rows_run(of, x->n);
        if (x->n < 1)
            return no_rows(of, n, err);
        if (of->is_input) {
            x->row = input;
            continue;
        }
        x->first = 0;
        st = s->is_read && k + 1 == s->n_sources ? gather_inputs(s, k, x->n_run, err)
                                                 : run_stage(s, k, err);
    }
    /* the last stage, which is large, has what it reads */
    for (int k = 0; k + 1 < s->n_sources; k++) {
        ggl_free(s->source[k].own);
        s->source[k].own = NULL;
        s->source[k].cap_own = 0;
    }
    return st;
}

ggl_status llm_stages_run(llm_stages *s, const float *input, int64_t n, const float **out,
                          int64_t *n_out, ggl_error *err) {
    if (s->is_read)
        return ggl_fail(err, GGL_USAGE,
                        "the model's tokens read its stages, which give no rows (llm_stages_read)");
    const ggl_status st = run(s, input, n, err);
    *out = last_of(s)->row;
    *n_out = last_of(s)->n;
    return st;
}

/* Which rows these are: the hexadecimal digits of their digest, four to a word. */
static void identify(const float *input, size_t n, int32_t id[LLM_ROWS_ID]) {
    sha256 sum;
    char hex[SHA256_HEX];
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, input, n * sizeof *input);
    llm_sha256_end(&sum, hex);
    memcpy(id, hex, SHA256_HEX - 1);
}
_Static_assert(LLM_ROWS_ID * sizeof(int32_t) == SHA256_HEX - 1, "an id is a digest");

ggl_status llm_stages_read(llm_stages *s, int slot, const float *input, int64_t n, bool *is_found,
                           ggl_error *err) {
    llm_session *last = last_of(s)->session;
    int32_t id[LLM_ROWS_ID];
    *is_found = false;
    if (!s->is_read)
        return ggl_fail(err, GGL_USAGE, "the model has no tokens that read its stages");
    if (n < 1 || n > s->n_most)
        return run(s, input, n, err); /* which says why not */
    identify(input, (size_t)(n * llm_stages_n_input(s)), id);
    ggl_status st = llm_session_find_read(last, slot, id, LLM_ROWS_ID, is_found, err);
    if (st != GGL_OK || *is_found)
        return st;
    st = run(s, input, n, err);
    return st == GGL_OK ? llm_session_read_rows(last, slot, (const float *const *)s->gathered,
                                                last_of(s)->n, id, err)
                        : st;
}
