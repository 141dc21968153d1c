/* Sound as a descriptor wants it: sound_rows.h. */
#include "sound_rows.h"

#include <math.h>
#include <string.h>

#include "ggl/internal/alloc.h"

/* Weights of the file as floats, [n]; *out is NULL if it has none: they are computed. */
static ggl_status read_weights(const llm_arch_weights *w, int64_t n, float **out, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get((int)w->type);
    *out = NULL;
    if (!w->data)
        return GGL_OK;
    if (!type || !type->to_float || n % type->block != 0 || type->row_meta > 0)
        return ggl_fail(err, GGL_UNSUPPORTED, "filters of sound cannot have the type %s",
                        type ? type->name : "?");
    if (!(*out = ggl_calloc((size_t)n, sizeof **out)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
    type->to_float(w->data, *out, n);
    return GGL_OK;
}

/* The parameters, as the descriptor has them. */
static llm_mel_params params_of(const llm_arch_sound *s, int64_t n_mel) {
    static const llm_mel_edges edges[] = {[LLM_EDGES_BEGIN] = MEL_EDGE_BEGIN,
                                          [LLM_EDGES_BOTH] = MEL_EDGE_BOTH,
                                          [LLM_EDGES_ZEROS] = MEL_EDGE_ZEROS};
    llm_mel_params p = llm_mel_default();
    p.rate = (int)s->rate;
    p.n_window = (int)s->window;
    p.n_fft = (int)s->fft;
    p.n_step = (int)s->step;
    p.n_mel = (int)n_mel;
    p.htk = s->scale == LLM_SCALE_HTK;
    p.edges = edges[s->edges];
    p.symmetric = s->symmetric;
    p.magnitude = s->magnitude;
    p.natural = s->log != LLM_LOG_TEN;
    p.added = s->log == LLM_LOG_E_ADDED;
    p.emphasis = s->emphasis;
    p.least = s->least;
    p.range = s->range;
    if (s->level != LLM_LEVEL_LARGEST) { /* the logarithm itself */
        p.range = (double)INFINITY;
        p.offset = 0;
        p.scale = 1;
    }
    return p;
}

ggl_status llm_sound_rows_mel(llm_mel **out, const llm_arch_sound *s, int64_t n_mel,
                              ggl_error *err) {
    float *filter = NULL, *taper = NULL;
    ggl_status st = read_weights(&s->filters, n_mel * (s->fft / 2 + 1), &filter, err);
    if (st == GGL_OK)
        st = read_weights(&s->taper, s->window, &taper, err);
    llm_mel_params p = params_of(s, n_mel);
    p.filter = filter;
    p.window = taper;
    if (st == GGL_OK)
        st = llm_mel_new(out, &p, err);
    ggl_free(filter);
    ggl_free(taper);
    return st;
}

ggl_status llm_sound_rows_open(llm_sound **out, const llm_audio *audio, const char *name, int rate,
                               bool names_raw, bool (*cancelled)(void *ctx), void *ctx,
                               ggl_error *err) {
    static const char *const kinds[] = {
        [LLM_SOUND_NOT_RAW] = "", [LLM_SOUND_S16LE] = "s16le", [LLM_SOUND_F32LE] = "f32le"};
    int raw = 0;
    while (audio->raw && raw < 3 && strcmp(kinds[raw], audio->raw) != 0)
        raw++;
    if (raw == 3)
        return ggl_fail(err, GGL_USAGE, "raw is '%s'; it can be s16le or f32le", audio->raw);
    const llm_sound_params sp = {.rate = rate,
                                 .raw = (llm_sound_raw)raw,
                                 .raw_rate = audio->raw_rate,
                                 .raw_channels = audio->raw_channels,
                                 .data = audio->data,
                                 .n_data = audio->n,
                                 .names_raw = names_raw,
                                 .cancelled = cancelled,
                                 .cancelled_ctx = ctx};
    return llm_sound_open(out, name, &sp, err);
}
