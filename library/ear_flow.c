#include "ear_flow.h"

#include <math.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "sound/mel_stream.h"

enum {
    PIECE = 256,  /* rows of the spectrogram that are made at once */
    SILENT = 4096 /* samples of silence that are added at once */
};

struct ear_flow {
    llm_eye *ear;
    llm_mel_stream *mel;
    float *row;     /* [PIECE][n_input] of the spectrogram */
    int64_t n_mel;  /* rows of it so far */
    int64_t n_rows; /* of the ear */
    int64_t n_most;
    int32_t first; /* the id of the first one */
    bool is_held, has_ended;
    char mark[LLM_IMAGE_MARK];
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a sound that comes piece by piece");
}

ggl_status llm_ear_flow_check(const llm_eye *ear, ggl_error *err) {
    const llm_arch_sound *how = llm_eye_sound(ear);
    const char *why =
        how->added == 0 ? "its rows do not stand beside the words, one for each"
        : how->is_samples || how->apart || how->whole ? "it hears whole windows"
        : how->level == LLM_LEVEL_BANDS || (how->level == LLM_LEVEL_LARGEST && isnan(how->largest))
            ? "its spectrogram depends on the loudest, or on all, of the sound"
        : !ear->stages || !llm_stages_can_flow(ear->stages) ? "its rows see later ones"
                                                            : NULL;
    return why ? ggl_fail(err, GGL_UNSUPPORTED,
                          "the ear needs a sound as a whole, or a part of it, because %s: write it "
                          "down without live (--live), or open a model such as Voxtral Realtime",
                          why)
               : GGL_OK;
}

/* Makes the rows' place in the table, under an id that no other sound has. */
static ggl_status hold_rows(ear_flow *f, ggl_error *err) {
    static const char what[] = "a sound that comes piece by piece";
    llm_eye *e = f->ear;
    uint8_t id[LLM_MEDIA_ID], own[LLM_MEDIA_ID];
    char hex[SHA256_HEX];
    sha256 sum;
    const uint64_t number = ++e->n_flows;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, &e->digest, sizeof e->digest);
    llm_sha256_add(&sum, what, sizeof what);
    llm_sha256_add(&sum, &number, sizeof number);
    llm_sha256_end(&sum, hex);
    (void)llm_eye_digest(hex, id);
    llm_ear_set_windows(id, 1);
    llm_eye_part_id(id, 0, own);
    const llm_media_rows rows = {
        .n = f->n_most, .n_row = llm_stages_n_row(e->stages), .n_pos = f->n_most};
    const ggl_status st = llm_media_add(e->media, own, &rows, &f->first, err);
    f->is_held = st == GGL_OK;
    llm_eye_mark(id, f->mark);
    return st;
}

/* Adds samples of silence. */
static ggl_status add_silence(ear_flow *f, int64_t n, ggl_error *err) {
    static const float silence[SILENT];
    ggl_status st = GGL_OK;
    for (int64_t some; n > 0 && st == GGL_OK; n -= some) {
        some = n < SILENT ? n : SILENT;
        st = llm_mel_stream_add(f->mel, silence, some, err);
    }
    return st;
}

ggl_status llm_ear_flow_new(ear_flow **out, llm_eye *ear, int64_t n, ggl_error *err) {
    ear_flow *f = *out = ggl_calloc(1, sizeof *f);
    if (!f)
        return no_memory(err);
    f->ear = ear;
    f->n_most = llm_eye_rows_made(ear, llm_ear_rows_in(ear, llm_ear_filled(ear, n)));
    f->row = ggl_calloc((size_t)(PIECE * ear->n_input), sizeof *f->row);
    ggl_status st = f->row ? llm_mel_stream_new(&f->mel, ear->mel, err) : no_memory(err);
    if (st == GGL_OK)
        st = hold_rows(f, err);
    if (st == GGL_OK)
        st = llm_stages_begin(ear->stages, err);
    if (st == GGL_OK)
        st = add_silence(f, llm_eye_sound(ear)->lead, err);
    if (st != GGL_OK) {
        llm_ear_flow_free(f);
        *out = NULL;
    }
    return st;
}

void llm_ear_flow_free(ear_flow *f) {
    if (!f)
        return;
    llm_stages_end(f->ear->stages);
    if (f->is_held)
        llm_media_release(f->ear->media, f->first);
    llm_mel_stream_free(f->mel);
    ggl_free(f->row);
    ggl_free(f);
}

const char *llm_ear_flow_mark(const ear_flow *f) {
    return f->mark;
}

int64_t llm_ear_flow_n_rows(const ear_flow *f) {
    return f->n_rows;
}

bool llm_ear_flow_has_ended(const ear_flow *f) {
    return f->has_ended;
}

/* Runs the ear over the next n rows of the spectrogram. */
static ggl_status run(ear_flow *f, int64_t n, bool is_last, ggl_error *err) {
    const llm_eye *e = f->ear;
    const float *row = NULL;
    int64_t n_rows = 0;
    ggl_status st =
        llm_mel_stream_rows(f->mel, f->n_mel, n, llm_eye_sound(e)->largest, f->row, err);
    if (st == GGL_OK)
        st = llm_stages_flow(e->stages, f->row, n, is_last, &row, &n_rows, err);
    if (st != GGL_OK)
        return st;
    f->n_mel += n;
    llm_mel_stream_drop(f->mel, f->n_mel);
    llm_media_fill(e->media, f->first, f->n_rows, row, n_rows);
    f->n_rows += n_rows;
    return GGL_OK;
}

/* Ends the samples, as llm_listen fills a sound. */
static ggl_status end_samples(ear_flow *f, ggl_error *err) {
    const int64_t lead = llm_eye_sound(f->ear)->lead, n = llm_mel_stream_n_samples(f->mel);
    const ggl_status st = add_silence(f, llm_ear_filled(f->ear, n - lead) - n, err);
    llm_mel_stream_end(f->mel);
    return st;
}

ggl_status llm_ear_flow_hear(ear_flow *f, const float *sample, int64_t n, bool is_last,
                             ggl_error *err) {
    ggl_status st = llm_mel_stream_add(f->mel, sample, n, err);
    if (st == GGL_OK && is_last)
        st = end_samples(f, err);
    if (st != GGL_OK)
        return st;
    const int64_t all = is_last ? llm_ear_rows_in(f->ear, llm_mel_stream_n_samples(f->mel))
                                : llm_mel_stream_n_rows(f->mel);
    do {
        const int64_t left = all - f->n_mel, some = left < PIECE ? left : PIECE;
        if (some > 0 || is_last)
            st = run(f, some > 0 ? some : 0, is_last && some == left, err);
    } while (st == GGL_OK && f->n_mel < all);
    f->has_ended = st == GGL_OK && is_last;
    return st;
}
