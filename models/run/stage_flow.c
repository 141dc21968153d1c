/* Runs stages over rows that come piece by piece. Each stage runs as many of its rows as those before it allow, and of these only the rows that it still reads are kept. */
#include "stage_rows_impl.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/alloc.h"

/* True if all that stage k reads are rows of the one before, at places that do not depend on how many there are. */
static bool reads_rows_alone(const llm_stages *s, int k) {
    const llm_session *session = s->source[k].session;
    for (int i = 0; i < llm_session_n_rows_inputs(session); i++) {
        const llm_rows_input *in = llm_session_rows_input(session, i);
        if (in->part != LLM_ROWS_SELF || in->source != s->of[k].over)
            return false;
    }
    return true;
}

static bool stage_can_flow(const llm_stages *s, int k) {
    const llm_arch_rows_of *of = &s->of[k];
    if (of->is_input)
        return of->picture.patch == 0 && of->sound.after == 0;
    const bool in_order = of->count == 0 && of->block == 0 && of->ends == 0 && of->beyond == 0 &&
                          of->windows == 0 && of->step <= 1 && !of->is_plane && !of->asks;
    return in_order && (of->causal || llm_session_is_by_row(s->source[k].session)) &&
           reads_rows_alone(s, k);
}

bool llm_stages_can_flow(const llm_stages *s) {
    bool can = !s->is_read;
    for (int k = 0; k < s->n_sources && can; k++)
        can = stage_can_flow(s, k);
    return can;
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for rows that come piece by piece");
}

/* The numbers of a row of source k. */
static int64_t width(const llm_stage_rows *x) {
    return x->session ? llm_session_n_row(x->session) : x->n_row;
}

/* Forgets all rows. */
static ggl_status reset(llm_stages *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < s->n_sources; k++) {
        llm_stage_rows *x = &s->source[k];
        x->n = x->base = 0;
        if (!x->session || !s->of[k].causal)
            continue;
        const ggl_status cleared = llm_session_clear(x->session, 0, st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? cleared : st;
    }
    return st;
}

ggl_status llm_stages_begin(llm_stages *s, ggl_error *err) {
    if (!llm_stages_can_flow(s))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model's stages need their input as a whole: a row of one of them sees "
                        "all others");
    const ggl_status st = reset(s, err);
    s->is_flowing = st == GGL_OK;
    return st;
}

void llm_stages_end(llm_stages *s) {
    ggl_status st = s->is_flowing ? reset(s, NULL) : GGL_OK;
    (void)st; /* what begins next empties the slots again */
    s->is_flowing = false;
    for (int k = 0; k < s->n_sources; k++) {
        ggl_free(s->source[k].own);
        s->source[k].own = NULL;
        s->source[k].cap_own = 0;
    }
}

/* Returns how many rows of stage k can be made of those before it. */
static int64_t count_ready(const llm_stages *s, int k, bool is_last) {
    const llm_arch_rows_of *of = &s->of[k];
    const int64_t below = s->source[of->over].n;
    int64_t behind = of->from + 1; /* the first row needs so many */
    if (is_last)
        return llm_arch_rows_over(of, below);
    for (int i = 0; i < llm_session_n_rows_inputs(s->source[k].session); i++) {
        const llm_rows_input *in = llm_session_rows_input(s->source[k].session, i);
        const int64_t end = of->from + in->first + in->k;
        behind = end > behind ? end : behind;
    }
    return below < behind ? 0 : (below - behind) / of->every + 1;
}

/* Returns the first row of source k that a stage will still read. */
static int64_t first_needed(const llm_stages *s, int k) {
    int64_t least = s->source[k].n;
    for (int j = k + 1; j < s->n_sources; j++) {
        const llm_arch_rows_of *of = &s->of[j];
        if (of->is_input || of->over != k)
            continue;
        const int64_t next = s->source[j].n * of->every + of->from;
        for (int i = 0; i < llm_session_n_rows_inputs(s->source[j].session); i++) {
            const int64_t at = next + llm_session_rows_input(s->source[j].session, i)->first;
            least = at < least ? at : least;
        }
    }
    return least > 0 ? least : 0;
}

/* Drops rows that no stage reads any more. */
static void drop(llm_stages *s, int k) {
    llm_stage_rows *x = &s->source[k];
    const int64_t first = first_needed(s, k), gone = first - x->base, n_row = width(x);
    if (gone <= 0)
        return;
    memmove(x->own, x->own + gone * n_row, (size_t)((x->n - first) * n_row) * sizeof *x->own);
    x->base = first;
}

/* Makes room for m more rows. */
static ggl_status make_room(llm_stage_rows *x, int64_t m, ggl_error *err) {
    const size_t n = (size_t)((x->n - x->base + m) * width(x));
    return ggl_grow(&x->own, &x->cap_own, n + 1, sizeof *x->own) ? GGL_OK : no_memory(err);
}

static void keep_row(void *ctx, int slot, int64_t pos, int32_t token, const float *row) {
    llm_stage_rows *x = ctx;
    const int64_t n_row = width(x), at = (x->of->causal ? pos : x->n + pos) - x->base;
    (void)slot, (void)token;
    memcpy(x->own + at * n_row, row, (size_t)n_row * sizeof *row);
}

/* Runs the next m rows of stage k. */
static ggl_status run_rows(llm_stages *s, int k, int64_t m, ggl_error *err) {
    llm_stage_rows *x = &s->source[k];
    const llm_stage_rows *below = &s->source[s->of[k].over];
    llm_arch_rows_of of = s->of[k]; /* of the rows that are kept below */
    of.from += x->n * of.every - below->base;
    ggl_status st = make_room(x, m, err);
    for (int i = 0; i < llm_session_n_rows_inputs(x->session) && st == GGL_OK; i++) {
        s->gathered[i] = llm_session_input_place(x->session, i);
        if (!s->gathered[i])
            return ggl_fail(err, GGL_USAGE, "the stages have no memory yet: llm_stages_alloc");
        llm_rows_gather(&(llm_rows_piece){&of, &x->windows, 0, m},
                        llm_session_rows_input(x->session, i), NULL, below->own,
                        below->n - below->base, width(below), s->gathered[i]);
    }
    if (st != GGL_OK)
        return st;
    llm_session_hear(x->session, keep_row, x);
    st = llm_session_eval(x->session,
                          &(llm_batch){.n = m, .input = (const float *const *)s->gathered}, err);
    if (!s->of[k].causal) {
        const ggl_status cleared = llm_session_clear(x->session, 0, st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? cleared : st;
    }
    x->n += st == GGL_OK ? m : 0;
    return st;
}

/* Runs the rows of stage k that can be made now. */
static ggl_status run_stage(llm_stages *s, int k, bool is_last, ggl_error *err) {
    llm_stage_rows *x = &s->source[k];
    const int64_t n = count_ready(s, k, is_last);
    ggl_status st = GGL_OK;
    while (x->n < n && st == GGL_OK)
        st = run_rows(s, k, n - x->n < x->at_once ? n - x->n : x->at_once, err);
    return st;
}

/* Appends rows to the input k. */
static ggl_status add_input(llm_stages *s, int k, const float *input, int64_t n, ggl_error *err) {
    llm_stage_rows *x = &s->source[k];
    if (n > s->n_most - x->n)
        return ggl_fail(err, GGL_LIMIT,
                        "the input has more than %" PRId64 " rows, for which the stages were made",
                        s->n_most);
    const ggl_status st = make_room(x, n, err);
    if (st == GGL_OK && n > 0)
        memcpy(x->own + (x->n - x->base) * x->n_row, input, (size_t)(n * x->n_row) * sizeof *input);
    x->n += st == GGL_OK ? n : 0;
    return st;
}

ggl_status llm_stages_flow(llm_stages *s, const float *input, int64_t n, bool is_last,
                           const float **rows, int64_t *n_rows, ggl_error *err) {
    ggl_status st = GGL_OK;
    *rows = NULL;
    *n_rows = 0;
    if (!s->is_flowing)
        return ggl_fail(err, GGL_USAGE, "no input was begun: call llm_stages_begin first");
    llm_stage_rows *last = &s->source[s->n_sources - 1];
    const int64_t before = last->n;
    drop(s, s->n_sources - 1); /* the caller has read what the last call gave */
    for (int k = 0; k < s->n_sources && st == GGL_OK; k++)
        st = s->of[k].is_input ? add_input(s, k, input, n, err) : run_stage(s, k, is_last, err);
    for (int k = 0; k + 1 < s->n_sources; k++)
        drop(s, k);
    if (st == GGL_OK) {
        *rows = last->own;
        *n_rows = last->n - before;
    }
    return st;
}
