#include <math.h>
#include <string.h>

#include "decoder.h"
#include "ggl/alloc.h"

enum { PART = 1 << 14 }; /* bytes that are read at a time, at least one frame */

static uint32_t u32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The sign bit is the highest of 32; the division is exact. */
static double scaled(uint32_t x) {
    return (double)(int32_t)x / 2147483648.0;
}

static double u8(const unsigned char *p) {
    return scaled((uint32_t)(p[0] ^ 0x80) << 24);
}

static double s16(const unsigned char *p) {
    return scaled((uint32_t)p[1] << 24 | (uint32_t)p[0] << 16);
}

static double s24(const unsigned char *p) {
    return scaled((uint32_t)p[2] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 8);
}

static double s32(const unsigned char *p) {
    return scaled(u32(p));
}

/* Mu-law: a sign, 3 bits for the segment and 4 for the place in it, all inverted; segments are twice as long as the one before. */
static double ulaw(const unsigned char *p) {
    const int u = p[0] ^ 0xff, x = (((u & 15) << 3) + 132) << (u >> 4 & 7);
    return (u & 0x80 ? 132 - x : x - 132) / 32768.0;
}

/* A-law, whose first two segments are as long as each other; every second bit is inverted. */
static double alaw(const unsigned char *p) {
    const int a = p[0] ^ 0x55, segment = a >> 4 & 7, x = ((a & 15) << 4) + 8;
    const int y = segment == 0 ? x : (x + 256) << (segment - 1);
    return (a & 0x80 ? y : -y) / 32768.0;
}

static double f32(const unsigned char *p) {
    const uint32_t bits = u32(p);
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static double f64(const unsigned char *p) {
    const uint64_t bits = u32(p) | (uint64_t)u32(p + 4) << 32;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const struct {
    int size;
    double (*value)(const unsigned char *p);
} encodings[] = {[SOUND_U8] = {1, u8},   [SOUND_S16] = {2, s16},   [SOUND_S24] = {3, s24},
                 [SOUND_S32] = {4, s32}, [SOUND_ULAW] = {1, ulaw}, [SOUND_ALAW] = {1, alaw},
                 [SOUND_F32] = {4, f32}, [SOUND_F64] = {8, f64}};

typedef struct pcm {
    sound_bytes *b;
    sound_encoding encoding;
    int64_t begin, n_bytes; /* -1: until the end */
    int64_t at;             /* bytes that were read */
    size_t n_frame, n_part; /* bytes */
    size_t n_kept;          /* of an incomplete frame, at the beginning of `part` */
    unsigned char part[];
} pcm;

static ggl_status pcm_read(sound_decoder *d, float *to, int64_t n, int64_t *got, ggl_error *err) {
    pcm *p = d->ctx;
    const size_t size = (size_t)encodings[p->encoding].size;
    const int64_t begin = p->at / (int64_t)p->n_frame;
    size_t some = 1;
    *got = 0;
    while (p->n_kept < p->n_frame && some > 0) { /* a pipe may give a part of a frame */
        size_t wanted = p->n_part - p->n_kept;
        if (wanted / p->n_frame > (uint64_t)n)
            wanted = (size_t)n * p->n_frame - p->n_kept;
        if (p->n_bytes >= 0 && (uint64_t)(p->n_bytes - p->at) < wanted)
            wanted = (size_t)(p->n_bytes - p->at);
        const ggl_status st = llm_sound_bytes_some(p->b, p->part + p->n_kept, wanted, &some, err);
        if (st != GGL_OK)
            return st;
        p->n_kept += some;
        p->at += (int64_t)some;
    }
    if (some == 0 && p->n_bytes >= 0)
        d->n_lost = p->n_bytes / (int64_t)p->n_frame - p->at / (int64_t)p->n_frame;
    d->is_cut = some == 0 && p->n_bytes < 0 && p->n_kept > 0;
    const size_t n_frames = p->n_kept / p->n_frame;
    const unsigned char *from = p->part;
    for (size_t i = 0; i < n_frames * (size_t)d->n_channels; i++, from += size) {
        const double x = encodings[p->encoding].value(from);
        to[i] = (float)x;
        if (!isfinite(to[i]))
            return ggl_fail(err, GGL_FORMAT, "%s: frame %lld has the sample %g, which is no sound",
                            p->b->name, (long long)(begin + (int64_t)i / d->n_channels), x);
    }
    p->n_kept -= n_frames * p->n_frame;
    memmove(p->part, from, p->n_kept);
    *got = (int64_t)n_frames;
    return GGL_OK;
}

static ggl_status pcm_rewind(sound_decoder *d, ggl_error *err) {
    pcm *p = d->ctx;
    const ggl_status st = llm_sound_bytes_seek(p->b, p->begin, err);
    if (st == GGL_OK)
        p->at = 0, p->n_kept = 0;
    return st;
}

static void pcm_close(sound_decoder *d) {
    ggl_free(d->ctx);
}

ggl_status llm_sound_pcm(sound_decoder *d, sound_bytes *b, sound_encoding encoding, int rate,
                         int n_channels, int64_t n_bytes, ggl_error *err) {
    const ggl_status st = llm_sound_check(b->name, rate, n_channels, err);
    if (st != GGL_OK)
        return st;
    const size_t n_frame = (size_t)n_channels * (size_t)encodings[encoding].size;
    const size_t n_part = n_frame < PART ? PART / n_frame * n_frame : n_frame;
    pcm *p = ggl_calloc(1, sizeof *p + n_part);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
    *p = (pcm){.b = b,
               .encoding = encoding,
               .begin = b->at,
               .n_bytes = n_bytes,
               .n_frame = n_frame,
               .n_part = n_part};
    *d = (sound_decoder){.rate = rate,
                         .n_channels = n_channels,
                         .n_frames = -1,
                         .ctx = p,
                         .read = pcm_read,
                         .rewind = pcm_rewind,
                         .close = pcm_close};
    if (b->size >= 0) { /* what a pipe's header says shows at the end */
        const int64_t left = b->size > b->at ? b->size - b->at : 0;
        d->n_frames = (n_bytes < 0 || n_bytes > left ? left : n_bytes) / (int64_t)n_frame;
        d->n_lost = n_bytes < 0 ? 0 : n_bytes / (int64_t)n_frame - d->n_frames;
    }
    return GGL_OK;
}
