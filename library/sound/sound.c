#include "sound.h"

#include <stdio.h>
#include <string.h>

#include "ffmpeg.h"
#include "ggl/alloc.h"
#include "ggl/internal/pass.h"
#include "resample.h"

enum {
    PART = 16384,
    HEAD = 12
}; /* samples that are decoded at a time; bytes that tell the kind of a file */

struct llm_sound {
    sound_bytes bytes;
    sound_decoder decoder;
    llm_resampler *resampler; /* NULL: the rate stays */
    int rate;
    float *frame; /* [n_part][n_channels] */
    int64_t n_part;
    int64_t n_frames; /* that were decoded */
    bool ended;
    char *name;
    char note[256], damage[64];
};

/* How files of other kinds begin: `n` bytes from byte `at` on, of which the bits of `mask` count. */
typedef struct sound_kind {
    const char *name;
    bool is_known; /* to libsndfile */
    int at, n;
    const char *bytes, *mask;
    const char *format; /* ffmpeg's name */
} sound_kind;

static const sound_kind kinds[] = {
    {"FLAC", true, 0, 4, "fLaC", NULL, "flac"},
    {"Ogg", true, 0, 4, "OggS", NULL, "ogg"},
    {"MP3", true, 0, 3, "ID3", NULL, "mp3"},
    {"MP3", true, 0, 2, "\xff\xe2", "\xff\xe6", "mp3"}, /* the sync word, and layer 3 */
    {"AIFF", true, 0, 4, "FORM", NULL, "aiff"},
    {"AU", true, 0, 4, ".snd", NULL, "au"},
    {"CAF", true, 0, 4, "caff", NULL, "caf"},
    {"big-endian WAV", true, 0, 4, "RIFX", NULL, "wav"},
    {"Wave64", true, 0, 4, "riff", NULL, "w64"},
    {"AAC", false, 0, 2, "\xff\xf0", "\xff\xf6", "aac"},
    {"MP4", false, 4, 4, "ftyp", NULL, "mov"},
    {"WebM or Matroska", false, 0, 4, "\x1a\x45\xdf\xa3", NULL, "matroska"},
    {"AMR", false, 0, 5, "#!AMR", NULL, "amr"},
    {"WMA", false, 0, 4, "\x30\x26\xb2\x75", NULL, "asf"},
    {"WavPack", false, 0, 4, "wvpk", NULL, "wv"},
};

static const sound_kind *kind_of(const unsigned char *head, size_t n_head) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t begin = (size_t)kinds[i].at;
        size_t n = (size_t)kinds[i].n, k = 0;
        while (begin + n <= n_head && k < n &&
               ((head[begin + k] ^ (unsigned char)kinds[i].bytes[k]) &
                (kinds[i].mask ? (unsigned char)kinds[i].mask[k] : 0xff)) == 0)
            k++;
        if (k == n)
            return &kinds[i];
    }
    return NULL;
}

static bool is_wav(const unsigned char *head, size_t n) {
    return n == HEAD && memcmp(head + 8, "WAVE", 4) == 0 &&
           (memcmp(head, "RIFF", 4) == 0 || memcmp(head, "RF64", 4) == 0 ||
            memcmp(head, "BW64", 4) == 0);
}

static ggl_status unknown_kind(const sound_bytes *b, const unsigned char *head, size_t n,
                               bool names_raw, ggl_error *err) {
    if (n == 0)
        return ggl_fail(err, GGL_FORMAT, "%s: is empty", b->name);
    if (n < HEAD && n >= 4 && memcmp(head, "RIFF", 4) == 0)
        return ggl_fail(err, GGL_FORMAT, "%s: ends after %zu bytes, within the header of a WAV",
                        b->name, n);
    char what[256];
    snprintf(
        what, sizeof what,
        "begins with \"%.*s\", as no kind of sound that is known here; %sffmpeg may know other "
        "kinds",
        (int)(n < 4 ? n : 4), (const char *)head,
        names_raw ? "samples without a header need --raw s16le or f32le, and " : "");
    return llm_sound_needs_ffmpeg(b, what, err);
}

static void close_decoder(llm_sound *s) {
    if (s->decoder.close)
        s->decoder.close(&s->decoder);
    s->decoder = (sound_decoder){0};
}

/* Opens a kind that is not read here: by libsndfile, if it knows it, or by ffmpeg. Without both, the message says what would help. */
static ggl_status open_other(llm_sound *s, const sound_kind *kind, int rate, ggl_error *err) {
    ggl_error why = {0}, of_program = {0};
    bool is_there;
    ggl_status st = kind->is_known
                        ? llm_sound_other(&s->decoder, &s->bytes, kind->name, &why)
                        : llm_sound_unreadable(&s->bytes, kind->name,
                                               "which is read by the program ffmpeg, where it is "
                                               "installed; or",
                                               &why);
    const bool is_refused = st == GGL_FORMAT; /* ffmpeg may know more, also of WAV */
    if (st != GGL_UNSUPPORTED && !is_refused)
        return st == GGL_OK ? st : ggl_pass(err, &why);
    close_decoder(s);
    st = llm_sound_ffmpeg(&s->decoder, &s->bytes, kind->format, kind->name, rate, &is_there,
                          &of_program);
    if (st == GGL_OK)
        return st;
    close_decoder(s);
    return ggl_pass(err, is_there && !is_refused ? &of_program : &why);
}

static ggl_status open_kind(llm_sound *s, int rate, bool names_raw, ggl_error *err) {
    unsigned char head[HEAD];
    size_t n = 0;
    ggl_status st = llm_sound_bytes_read(&s->bytes, head, sizeof head, &n, err);
    if (st == GGL_OK)
        st = llm_sound_bytes_seek(&s->bytes, 0, err);
    if (st != GGL_OK)
        return st;
    const sound_kind *kind = kind_of(head, n);
    if (kind)
        return open_other(s, kind, rate, err);
    if (!is_wav(head, n))
        return unknown_kind(&s->bytes, head, n, names_raw, err);
    bool other;
    char of_wav[SOUND_KIND];
    st = llm_sound_wav(&s->decoder, &s->bytes, &other, of_wav, err);
    const sound_kind wav = {.name = of_wav, .is_known = true, .format = "wav"};
    return other ? open_other(s, &wav, rate, err) : st;
}

static ggl_status open_raw(llm_sound *s, const llm_sound_params *p, ggl_error *err) {
    static const int encoding[] = {[LLM_SOUND_S16LE] = SOUND_S16, [LLM_SOUND_F32LE] = SOUND_F32};
    const int rate = p->raw_rate ? p->raw_rate : p->rate;
    if (p->raw > LLM_SOUND_F32LE || rate == 0)
        return ggl_fail(err, GGL_USAGE, "%s: raw samples of kind %d at %d Hz", s->bytes.name,
                        (int)p->raw, rate);
    return llm_sound_pcm(&s->decoder, &s->bytes, (sound_encoding)encoding[p->raw], rate,
                         p->raw_channels ? p->raw_channels : 1, -1, err);
}

static ggl_status open_all(llm_sound *s, const char *path, const llm_sound_params *p,
                           ggl_error *err) {
    ggl_status st = GGL_OK;
    if (p->data)
        llm_sound_bytes_memory(&s->bytes, p->data, p->n_data, s->name);
    else
        st = llm_sound_bytes_open(&s->bytes, strcmp(path, "-") == 0 ? path : s->name, err);
    s->bytes.cancelled = p->cancelled;
    s->bytes.cancelled_ctx = p->cancelled_ctx;
    if (st == GGL_OK)
        st = p->raw ? open_raw(s, p, err) : open_kind(s, p->rate, p->names_raw, err);
    if (st != GGL_OK)
        return st;
    s->rate = p->rate ? p->rate : s->decoder.rate;
    if (s->rate < SOUND_LEAST_RATE || s->rate > SOUND_MOST_RATE)
        return ggl_fail(err, GGL_USAGE, "%s: wanted are %d samples per second, not %d to %d",
                        s->bytes.name, s->rate, SOUND_LEAST_RATE, SOUND_MOST_RATE);
    if (s->rate != s->decoder.rate)
        st = llm_resampler_new(&s->resampler, s->decoder.rate, s->rate, err);
    s->n_part = PART / s->decoder.n_channels;
    s->frame = ggl_calloc((size_t)(s->n_part * s->decoder.n_channels), sizeof *s->frame);
    if (st == GGL_OK && !s->frame)
        st = ggl_fail(err, GGL_NOMEM, "%s: out of memory", s->bytes.name);
    return st;
}

ggl_status llm_sound_open(llm_sound **out, const char *path, const llm_sound_params *params,
                          ggl_error *err) {
    *out = NULL;
    llm_sound *s = ggl_calloc(1, sizeof *s);
    const size_t n = strlen(path) + 1;
    if (s)
        s->bytes.fd = -1;
    if (!s || !(s->name = ggl_calloc(n, 1))) {
        ggl_free(s);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    }
    memcpy(s->name, path, n);
    const ggl_status st = open_all(s, path, params, err);
    if (st == GGL_OK)
        *out = s;
    else
        llm_sound_close(s);
    return st;
}

void llm_sound_close(llm_sound *s) {
    if (!s)
        return;
    if (s->decoder.close)
        s->decoder.close(&s->decoder);
    llm_sound_bytes_close(&s->bytes);
    llm_resampler_free(s->resampler);
    ggl_free(s->frame);
    ggl_free(s->name);
    ggl_free(s);
}

/* Decodes at most n frames to x[*got], their channels mixed; x may be s->frame. */
static ggl_status read_mixed(llm_sound *s, float *x, int64_t n, int64_t *got, ggl_error *err) {
    const int n_channels = s->decoder.n_channels;
    *got = 0;
    if (s->ended)
        return GGL_OK;
    const ggl_status st =
        s->decoder.read(&s->decoder, s->frame, n < s->n_part ? n : s->n_part, got, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < *got; i++) {
        double sum = 0;
        for (int c = 0; c < n_channels; c++)
            sum += (double)s->frame[i * n_channels + c];
        x[i] = (float)(sum / n_channels);
    }
    s->n_frames += *got;
    s->ended = *got == 0;
    return GGL_OK;
}

ggl_status llm_sound_read(llm_sound *s, float *to, int64_t n, int64_t *got, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!s->resampler)
        return read_mixed(s, to, n, got, err);
    for (;;) {
        *got = llm_resampler_take(s->resampler, to, n);
        if (*got > 0 || s->ended)
            return GGL_OK;
        int64_t n_more = 0;
        st = read_mixed(s, s->frame, s->n_part, &n_more, err);
        if (st == GGL_OK)
            st = n_more > 0 ? llm_resampler_add(s->resampler, s->frame, n_more, err)
                            : llm_resampler_end(s->resampler, err);
        if (st != GGL_OK)
            return st;
    }
}

ggl_status llm_sound_rewind(llm_sound *s, ggl_error *err) {
    const ggl_status st = s->decoder.rewind(&s->decoder, err);
    if (st != GGL_OK)
        return st;
    if (s->resampler)
        llm_resampler_reset(s->resampler);
    s->n_frames = 0;
    s->ended = false;
    return GGL_OK;
}

bool llm_sound_can_rewind(const llm_sound *s) {
    return s->bytes.size >= 0;
}

int llm_sound_rate(const llm_sound *s) {
    return s->rate;
}

int64_t llm_sound_n_samples(const llm_sound *s) {
    const int64_t n = s->ended ? s->n_frames : s->decoder.n_frames;
    return n < 0 || !s->resampler ? n : llm_resampler_n_output(s->resampler, n);
}

const char *llm_sound_note(llm_sound *s) {
    const sound_decoder *d = &s->decoder;
    char *const note = s->note;
    const size_t room = sizeof s->note;
    int n = 0;
    *note = '\0';
    if (s->resampler || d->n_channels > 1)
        n = snprintf(note, room, "%d Hz, %d channel%s:", d->rate, d->n_channels,
                     d->n_channels > 1 ? "s" : "");
    if (s->resampler)
        n += snprintf(note + n, room - (size_t)n, " resampled to %d Hz", s->rate);
    if (d->n_channels > 1)
        snprintf(note + n, room - (size_t)n, "%s channels mixed", s->resampler ? "," : "");
    return note;
}

const char *llm_sound_damage(llm_sound *s) {
    const long long n = (long long)s->decoder.n_lost;
    *s->damage = '\0';
    if (n > 0)
        snprintf(s->damage, sizeof s->damage, "it ends %lld samples before its header says", n);
    else if (s->decoder.is_cut)
        snprintf(s->damage, sizeof s->damage, "it ends in the middle of a sample");
    return s->damage;
}

const char *llm_sound_library(void) {
    return llm_sound_other_library();
}
