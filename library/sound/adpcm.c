#include "adpcm.h"

#include <string.h>

#include "ggl/alloc.h"

typedef struct adpcm {
    sound_bytes *b;
    int format, n_block, n_samples; /* bytes and samples of each channel of a block */
    int64_t begin, n_bytes, at;     /* n_bytes -1: until the end; at: bytes that were read */
    int n_left; /* decoded samples of each channel that were not given yet: the last ones of `sample` */
    int n_decoded;
    int16_t *sample;      /* [n_samples][n_channels] */
    unsigned char *block; /* [n_block] */
} adpcm;

static int16_t clamp(int x) {
    return (int16_t)(x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x);
}

static int s16(const unsigned char *p) {
    return (int16_t)(p[0] | p[1] << 8);
}

/* --- IMA -------------------------------------------------------------------------------------- */

static const int16_t ima_steps[] = {
    7,     8,     9,     10,    11,    12,    13,    14,    16,    17,    19,   21,    23,
    25,    28,    31,    34,    37,    41,    45,    50,    55,    60,    66,   73,    80,
    88,    97,    107,   118,   130,   143,   157,   173,   190,   209,   230,  253,   279,
    307,   337,   371,   408,   449,   494,   544,   598,   658,   724,   796,  876,   963,
    1060,  1166,  1282,  1411,  1552,  1707,  1878,  2066,  2272,  2499,  2749, 3024,  3327,
    3660,  4026,  4428,  4871,  5358,  5894,  6484,  7132,  7845,  8630,  9493, 10442, 11487,
    12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};
enum { IMA_LAST = 88 };

/* How many samples of each channel n bytes of a block are. */
static int samples_in(const adpcm *a, int n_channels, int n) {
    const int left = n - (a->format == ADPCM_IMA ? 4 : 7) * n_channels;
    const int k =
        a->format == ADPCM_IMA ? 1 + left / (4 * n_channels) * 8 : 2 + left * 2 / n_channels;
    return left < 0 ? 0 : k < a->n_samples ? k : a->n_samples;
}

static void decode_ima(adpcm *a, int n_channels, int n_bytes) {
    static const int8_t change[] = {-1, -1, -1, -1, 2, 4, 6, 8};
    a->n_decoded = samples_in(a, n_channels, n_bytes);
    for (int c = 0; c < n_channels; c++) {
        const unsigned char *p = a->block + 4 * c;
        int x = s16(p), at = p[2] < IMA_LAST ? p[2] : IMA_LAST;
        a->sample[c] = (int16_t)x;
        for (int i = 1; i < a->n_decoded;
             i++) { /* 8 samples of a channel in 4 bytes, then those of the next one */
            const int k = i - 1;
            const unsigned char byte = a->block[4 * n_channels * (1 + k / 8) + 4 * c + k % 8 / 2];
            const int code = k % 2 ? byte >> 4 : byte & 15, step = ima_steps[at];
            const int by = (step >> 3) + (code & 1 ? step >> 2 : 0) + (code & 2 ? step >> 1 : 0) +
                           (code & 4 ? step : 0);
            x = clamp(code & 8 ? x - by : x + by);
            at += change[code & 7];
            at = at < 0 ? 0 : at > IMA_LAST ? IMA_LAST : at;
            a->sample[i * n_channels + c] = (int16_t)x;
        }
    }
}

/* --- Microsoft's ------------------------------------------------------------------------------- */

static void decode_ms(adpcm *a, int n_channels, int n_bytes) {
    static const int expects[][2] = {{256, 0}, {512, -256}, {0, 0},     {192, 64},
                                     {240, 0}, {460, -208}, {392, -232}};
    static const int16_t change[] = {230, 230, 230, 230, 307, 409, 512, 614,
                                     768, 614, 512, 409, 307, 230, 230, 230};
    a->n_decoded = samples_in(a, n_channels, n_bytes);
    for (int c = 0; c < n_channels; c++) {
        const unsigned char *p = a->block;
        const int *by = expects[p[c] < 7 ? p[c] : 6];
        int step = s16(p + n_channels + 2 * c), last = s16(p + 3 * n_channels + 2 * c),
            before = s16(p + 5 * n_channels + 2 * c);
        a->sample[c] = (int16_t)before;
        a->sample[n_channels + c] = (int16_t)last;
        for (int i = 2; i < a->n_decoded; i++) {
            const int k = (i - 2) * n_channels + c;
            const unsigned char byte = p[7 * n_channels + k / 2];
            const int code = k % 2 ? byte & 15 : byte >> 4, far = code < 8 ? code : code - 16;
            /* the sum is below 2^25, and is rounded down as a shift does */
            const int sum = last * by[0] + before * by[1];
            const int wanted = sum >= 0 ? sum / 256 : -((-sum + 255) / 256);
            before = last;
            last = clamp(wanted + far * step);
            step = change[code] * step / 256;
            step = step < 16 ? 16 : step > 1 << 20 ? 1 << 20 : step;
            a->sample[i * n_channels + c] = (int16_t)last;
        }
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Decodes the next block; without one, n_left stays 0. */
static ggl_status next_block(sound_decoder *d, ggl_error *err) {
    adpcm *a = d->ctx;
    const int head = (a->format == ADPCM_IMA ? 4 : 7) * d->n_channels;
    size_t got = 0, wanted = (size_t)a->n_block;
    if (a->n_bytes >= 0 && (uint64_t)(a->n_bytes - a->at) < wanted)
        wanted = (size_t)(a->n_bytes - a->at);
    const ggl_status st = llm_sound_bytes_read(a->b, a->block, wanted, &got, err);
    if (st != GGL_OK)
        return st;
    a->at += (int64_t)got;
    if ((int)got < head)
        return GGL_OK;
    if (a->format == ADPCM_IMA)
        decode_ima(a, d->n_channels, (int)got);
    else
        decode_ms(a, d->n_channels, (int)got);
    a->n_left = a->n_decoded;
    return GGL_OK;
}

/* Samples of each channel in so many bytes, of which the last block may have fewer than the others. */
static int64_t frames_of(const adpcm *a, int n_channels, int64_t n_bytes) {
    return n_bytes / a->n_block * a->n_samples +
           samples_in(a, n_channels, (int)(n_bytes % a->n_block));
}

static ggl_status adpcm_read(sound_decoder *d, float *to, int64_t n, int64_t *got, ggl_error *err) {
    adpcm *a = d->ctx;
    const ggl_status st = a->n_left > 0 ? GGL_OK : next_block(d, err);
    *got = 0;
    if (st != GGL_OK)
        return st;
    if (a->n_left == 0 && a->n_bytes >= 0)
        d->n_lost = frames_of(a, d->n_channels, a->n_bytes) - frames_of(a, d->n_channels, a->at);
    const int64_t k = a->n_left < n ? a->n_left : n;
    const int16_t *from = a->sample + (size_t)(a->n_decoded - a->n_left) * (size_t)d->n_channels;
    for (int64_t i = 0; i < k * d->n_channels; i++)
        to[i] = (float)from[i] / 32768;
    a->n_left -= (int)k;
    *got = k;
    return GGL_OK;
}

static ggl_status adpcm_rewind(sound_decoder *d, ggl_error *err) {
    adpcm *a = d->ctx;
    a->at = 0;
    a->n_left = 0;
    return llm_sound_bytes_seek(a->b, a->begin, err);
}

static void adpcm_close(sound_decoder *d) {
    adpcm *a = d->ctx;
    if (a) {
        ggl_free(a->sample);
        ggl_free(a->block);
    }
    ggl_free(a);
}

ggl_status llm_sound_adpcm(sound_decoder *d, sound_bytes *b, int format, int rate, int n_channels,
                           int n_block, int n_samples, int64_t n_bytes, ggl_error *err) {
    const ggl_status st = llm_sound_check(b->name, rate, n_channels, err);
    if (st != GGL_OK)
        return st;
    if (n_channels > ADPCM_MOST_CHANNELS)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: ADPCM with %d channels, not 1 or 2", b->name,
                        n_channels);
    const int head = (format == ADPCM_IMA ? 4 : 7) * n_channels;
    const int most = format == ADPCM_IMA ? 1 + (n_block - head) / (4 * n_channels) * 8
                                         : 2 + (n_block - head) * 2 / n_channels;
    if (n_block < head || n_samples < 0 || n_samples > most || n_samples == 1)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: ADPCM with blocks of %d bytes and %d samples, which do not fit "
                        "together",
                        b->name, n_block, n_samples);
    adpcm *a = ggl_calloc(1, sizeof *a);
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
    *a = (adpcm){.b = b,
                 .format = format,
                 .n_block = n_block,
                 .n_samples = n_samples > 0 ? n_samples : most,
                 .begin = b->at,
                 .n_bytes = n_bytes};
    *d = (sound_decoder){.rate = rate,
                         .n_channels = n_channels,
                         .n_frames = -1,
                         .ctx = a,
                         .read = adpcm_read,
                         .rewind = adpcm_rewind,
                         .close = adpcm_close};
    a->sample = ggl_calloc((size_t)a->n_samples * (size_t)n_channels, sizeof *a->sample);
    a->block = ggl_calloc((size_t)n_block, 1);
    if (!a->sample || !a->block)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
    if (b->size >= 0) { /* what a pipe's header says shows at the end */
        const int64_t left = b->size > b->at ? b->size - b->at : 0;
        d->n_frames = frames_of(a, n_channels, n_bytes < 0 || n_bytes > left ? left : n_bytes);
        d->n_lost = n_bytes < 0 ? 0 : frames_of(a, n_channels, n_bytes) - d->n_frames;
    }
    return GGL_OK;
}
