/* What a model hears of a sound, step by step: the rows that it reads, those that its stages make of them, and a sequence that goes on after
 * the first window. llm_transcribe does all of it. */
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "hearing.h"
#include "llm/steps.h"

/* Opens the sound, and computes the window at params.offset. */
static ggl_status open_at(hearing *h, llm_context *c, const char *path,
                          const llm_transcribe_params *params, int64_t *n, ggl_error *err) {
    llm_transcribe_params p = {.size = sizeof p};
    ggl_status st = GGL_READ_PARAMS(llm_transcribe_params, &p, params, err);
    *h = (hearing){0};
    p.vad_model = NULL; /* the window is that of the sound */
    llm_context_start(c);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st == GGL_OK)
        st = llm_hearing_open(h, c, path, &p, err);
    if (st == GGL_OK)
        st = llm_hearing_window(h, llm_hearing_rows_in(h, p.offset), INT64_MAX, n, err);
    if (st == GGL_OK && *n <= 0 && p.offset > 0)
        st = ggl_fail(err, GGL_USAGE, "%s: the sound ends before %g seconds", h->name, p.offset);
    return st;
}

ggl_status llm_hear(llm_context *c, const char *path, const llm_transcribe_params *params,
                    ggl_error *err) {
    hearing h;
    int64_t n;
    bool is_found;
    ggl_status st = open_at(&h, c, path, params, &n, err);
    if (st == GGL_OK)
        st = llm_stages_read(c->stages, 0, h.rows, h.n_window, &is_found, err);
    llm_hearing_close(&h);
    return st;
}

/* Copies rows for the caller. */
static ggl_status give(const float *rows, int64_t n, int64_t n_row, float **out, size_t *n_out,
                       size_t *n_row_out, ggl_error *err) {
    const size_t size = (size_t)(n * n_row) * sizeof *rows;
    if (!(*out = ggl_calloc(size + 1, 1)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for rows");
    memcpy(*out, rows, size);
    *n_out = (size_t)n;
    *n_row_out = (size_t)n_row;
    return GGL_OK;
}

/* Runs the stages as a model of their own, whose rows come out. */
static ggl_status run_stages(llm_context *c, const hearing *h, float **out, size_t *n,
                             size_t *n_row, ggl_error *err) {
    llm_arch_rows_of rows[LLM_ARCH_MAX_SOURCES];
    llm_stages *s = NULL;
    int n_rows = 0;
    const float *got = NULL;
    int64_t n_got = 0;
    ggl_status st = llm_model_rows(c->model, rows, &n_rows, err);
    llm_session_params p = c->session_params;
    p.only = st == GGL_OK ? rows[n_rows - 1].name : NULL;
    p.repack_cache = NULL;
    if (st == GGL_OK)
        st = llm_stages_new(&s, c->model, &p, 0, err);
    if (st == GGL_OK)
        st = llm_stages_run(s, h->rows, h->n_window, &got, &n_got, err);
    if (st == GGL_OK)
        st = give(got, n_got, llm_stages_n_row(s), out, n, n_row, err);
    llm_stages_free(s);
    return st;
}

ggl_status llm_heard_rows(llm_context *c, const char *path, const llm_transcribe_params *params,
                          float **row, size_t *n, size_t *n_row, ggl_error *err) {
    hearing h;
    int64_t n_sound;
    *row = NULL;
    *n = *n_row = 0;
    ggl_status st = open_at(&h, c, path, params, &n_sound, err);
    if (st == GGL_OK)
        st = run_stages(c, &h, row, n, n_row, err);
    llm_hearing_close(&h);
    return st;
}

ggl_status llm_sound_rows(llm_context *c, const char *path, const llm_transcribe_params *params,
                          bool (*each)(void *user, const float *row, size_t n, size_t n_row),
                          void *user, ggl_error *err) {
    hearing h;
    int64_t n = 0, at;
    ggl_status st = open_at(&h, c, path, params, &n, err);
    at = st == GGL_OK && params ? llm_hearing_rows_in(&h, params->offset) : 0;
    for (bool is_last = false; st == GGL_OK && !is_last;) {
        is_last = n <= 0; /* a window of silence follows the sound */
        const int64_t n_samples = llm_mel_stream_n_samples(h.stream);
        const int64_t all = (n_samples + h.n_window * h.how->step) / h.how->step;
        const int64_t n_rows =
            llm_mel_stream_has_ended(h.stream) && all - at < h.n_window ? all - at : h.n_window;
        if (n_rows > 0 && !each(user, h.rows, (size_t)n_rows, (size_t)h.n_mel))
            st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        at += h.n_window;
        if (st == GGL_OK && !is_last)
            st = llm_hearing_window(&h, at, INT64_MAX, &n, err);
    }
    llm_hearing_close(&h);
    return st;
}
