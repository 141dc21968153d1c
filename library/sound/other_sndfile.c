/* FLAC, MP3, Ogg and others, by libsndfile, which reads our bytes. */
#include <math.h>
#include <sndfile.h>

#include "decoder.h"
#include "ggl/alloc.h"
#include "ggl/internal/pass.h"

typedef struct other {
    sound_bytes *b;
    SNDFILE *file;
    ggl_error err;    /* of the bytes: libsndfile takes a read that fails for the end */
    int64_t n_frames; /* that were read */
} other;

static sf_count_t size_of(void *ctx) {
    return ((other *)ctx)->b->size;
}

static sf_count_t seek(sf_count_t at, int whence, void *ctx) {
    other *o = ctx;
    const int64_t from = whence == SEEK_CUR ? o->b->at : whence == SEEK_END ? o->b->size : 0;
    if (at < -from || at > INT64_MAX / 2 - from ||
        llm_sound_bytes_seek(o->b, from + at, &o->err) != GGL_OK)
        return -1;
    return o->b->at;
}

static sf_count_t read_bytes(void *to, sf_count_t n, void *ctx) {
    other *o = ctx;
    size_t got = 0;
    if (n > 0 && llm_sound_bytes_read(o->b, to, (size_t)n, &got, &o->err) != GGL_OK)
        return 0;
    return (sf_count_t)got;
}

static sf_count_t write_bytes(const void *from, sf_count_t n, void *ctx) {
    (void)from, (void)n, (void)ctx;
    return 0;
}

static sf_count_t tell(void *ctx) {
    return ((other *)ctx)->b->at;
}

static SF_VIRTUAL_IO io = {size_of, seek, read_bytes, write_bytes, tell};

static ggl_status other_read(sound_decoder *d, float *to, int64_t n, int64_t *got, ggl_error *err) {
    other *o = d->ctx;
    *got = sf_readf_float(o->file, to, n);
    if (o->err.status != GGL_OK)
        return ggl_pass(err, &o->err);
    if (*got == 0 && sf_error(o->file) != SF_ERR_NO_ERROR)
        return ggl_fail(err, GGL_FORMAT, "%s: after frame %lld: %s", o->b->name,
                        (long long)o->n_frames, sf_strerror(o->file));
    for (int64_t i = 0; i < *got * d->n_channels; i++)
        if (!isfinite(to[i]))
            return ggl_fail(err, GGL_FORMAT, "%s: frame %lld has the sample %g, which is no sound",
                            o->b->name, (long long)(o->n_frames + i / d->n_channels),
                            (double)to[i]);
    o->n_frames += *got;
    if (*got == 0 && d->n_frames > o->n_frames)
        d->n_lost = d->n_frames - o->n_frames;
    return GGL_OK;
}

/* Opens the file anew: libsndfile has kinds that it cannot go back in, such as GSM 6.10. */
static ggl_status other_rewind(sound_decoder *d, ggl_error *err) {
    other *o = d->ctx;
    SF_INFO about = {0};
    const ggl_status st = llm_sound_bytes_seek(o->b, 0, err);
    if (st != GGL_OK)
        return st;
    sf_close(o->file);
    o->n_frames = 0;
    o->file = sf_open_virtual(&io, SFM_READ, &about, o);
    return o->file ? GGL_OK
                   : ggl_fail(err, GGL_FORMAT, "%s: cannot be read twice: %s", o->b->name,
                              sf_strerror(NULL));
}

static void other_close(sound_decoder *d) {
    other *o = d->ctx;
    if (o && o->file)
        sf_close(o->file);
    ggl_free(o);
}

ggl_status llm_sound_other(sound_decoder *d, sound_bytes *b, const char *kind, ggl_error *err) {
    SF_INFO about = {0};
    if (b->size < 0)
        return llm_sound_unreadable(
            b, kind, "which can be read from a file, but not from a pipe: save it, or", err);
    ggl_status st = llm_sound_bytes_seek(b, 0, err);
    if (st != GGL_OK)
        return st;
    other *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
    *d =
        (sound_decoder){.ctx = o, .read = other_read, .rewind = other_rewind, .close = other_close};
    o->b = b;
    o->file = sf_open_virtual(&io, SFM_READ, &about, o);
    if (!o->file && sf_error(NULL) == SF_ERR_UNRECOGNISED_FORMAT)
        return llm_sound_unreadable(b, kind, "which libsndfile does not know:", err);
    if (!o->file)
        return ggl_fail(err, GGL_FORMAT, "%s: is %s, which libsndfile cannot read: %s", b->name,
                        kind, sf_strerror(NULL));
    d->rate = about.samplerate;
    d->n_channels = about.channels;
    /* some files do not tell their length, for which there is a largest number */
    d->n_frames = about.frames < 0 || about.frames > INT64_MAX / 2 ? -1 : about.frames;
    return llm_sound_check(b->name, about.samplerate, about.channels, err);
}

const char *llm_sound_other_library(void) {
    return sf_version_string();
}
