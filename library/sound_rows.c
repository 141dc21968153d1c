/* Sound as a descriptor wants it: sound_rows.h. */
#include "sound_rows.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* Filters as floats, [*n]; NULL: they are computed. */
static ggl_status read_filters(const llm_arch_sound *s, int64_t n, float **out, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get((int)s->filter_type);
    *out = NULL;
    if (!s->filter)
        return GGL_OK;
    if (!type || !type->to_float || n % type->block != 0 || type->row_meta > 0)
        return ggl_fail(err, GGL_UNSUPPORTED, "filters of sound cannot have the type %s",
                        type ? type->name : "?");
    if (!(*out = ggl_calloc((size_t)n, sizeof **out)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
    type->to_float(s->filter, *out, n);
    return GGL_OK;
}

ggl_status llm_sound_rows_mel(llm_mel **out, const llm_arch_sound *s, int64_t n_mel,
                              ggl_error *err) {
    float *filter;
    ggl_status st = read_filters(s, n_mel * (s->window / 2 + 1), &filter, err);
    llm_mel_params p = llm_mel_default();
    p.rate = (int)s->rate;
    p.n_window = (int)s->window;
    p.n_step = (int)s->step;
    p.n_mel = (int)n_mel;
    p.range = s->range;
    p.filter = filter;
    if (st == GGL_OK)
        st = llm_mel_new(out, &p, err);
    ggl_free(filter);
    return st;
}

ggl_status llm_sound_rows_open(llm_sound **out, const llm_audio *audio, const char *name, int rate,
                               bool (*cancelled)(void *ctx), void *ctx, ggl_error *err) {
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
                                 .cancelled = cancelled,
                                 .cancelled_ctx = ctx};
    return llm_sound_open(out, name, &sp, err);
}
