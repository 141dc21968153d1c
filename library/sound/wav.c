/* WAV: chunks of an identifier, a size and so many bytes, padded to an even number. "Multimedia Programming Interface and Data
 * Specifications" 1.0 (1991) has the format, ITU-R BS.2088 that of RF64 and BW64. */
#include <stdio.h>
#include <string.h>

#include "adpcm.h"

enum {
    TAG_PCM = 1,
    TAG_FLOAT = 3,
    TAG_ALAW = 6,
    TAG_ULAW = 7,
    TAG_EXTENSIBLE = 0xfffe,
    STREAM = -1
};

/* What the header says; a chunk that was not seen has the place 0. */
typedef struct header {
    bool is_long; /* RF64 or BW64, whose sizes are in a chunk "ds64" */
    int64_t riff_size;
    int64_t long_size; /* of the data, by ds64 */
    int64_t format_at, data_at;
    int64_t data_size;
    int tag, n_channels, bits, n_frame; /* n_frame: bytes of a frame, or of a block */
    int n_block;                        /* samples of a block; 0: the header does not say */
    int64_t rate;
} header;

static int64_t number(const unsigned char *p, int n) {
    uint64_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return (int64_t)x;
}

/* Reads the first `least` bytes of a chunk and those that follow up to `most`, if it has them. */
static ggl_status read_chunk(sound_bytes *b, const char *id, int64_t size, size_t least,
                             size_t most, unsigned char *to, ggl_error *err) {
    size_t got;
    if (size < (int64_t)least)
        return ggl_fail(err, GGL_FORMAT, "%s: the chunk '%s' has %lld bytes, not %zu or more",
                        b->name, id, (long long)size, least);
    const size_t n = size < (int64_t)most ? (size_t)size : most;
    const ggl_status st = llm_sound_bytes_read(b, to, n, &got, err);
    if (st == GGL_OK && got < n)
        return ggl_fail(err, GGL_FORMAT, "%s: ends within its chunk '%s', after %zu of %lld bytes",
                        b->name, id, got, (long long)size);
    return st;
}

static ggl_status read_long_sizes(header *h, sound_bytes *b, int64_t size, ggl_error *err) {
    unsigned char p[16]; /* sizes of the file and of the data */
    const ggl_status st = read_chunk(b, "ds64", size, sizeof p, sizeof p, p, err);
    if (st == GGL_OK) {
        h->riff_size = number(p, 8);
        h->long_size = number(p + 8, 8);
    }
    return st;
}

static ggl_status read_format(header *h, sound_bytes *b, int64_t size, ggl_error *err) {
    /* The identifier of a kind of samples: its tag, and then these bytes. */
    static const unsigned char tail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                           0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    unsigned char p[40] = {0};
    const ggl_status st = read_chunk(b, "fmt ", size, 16, sizeof p, p, err);
    if (st != GGL_OK)
        return st;
    h->tag = (int)number(p, 2);
    h->n_channels = (int)number(p + 2, 2);
    h->rate = number(p + 4, 4);
    h->n_frame = (int)number(p + 12, 2);
    h->bits = (int)number(p + 14, 2);
    h->n_block = size >= 20 ? (int)number(p + 18, 2) : 0;
    if (h->tag != TAG_EXTENSIBLE)
        return GGL_OK;
    if (size < (int64_t)sizeof p)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: the chunk 'fmt ' has %lld bytes, not the 40 of its format 0xfffe",
                        b->name, (long long)size);
    if (memcmp(p + 26, tail, sizeof tail) == 0)
        h->tag = (int)number(p + 24, 2);
    return GGL_OK;
}

/* Goes through the chunks until both format and data are known. */
static ggl_status read_chunks(header *h, sound_bytes *b, ggl_error *err) {
    for (int64_t at = 12;;) {
        unsigned char p[8];
        size_t got = 0;
        ggl_status st = llm_sound_bytes_seek(b, at, err);
        if (st == GGL_OK)
            st = llm_sound_bytes_read(b, p, sizeof p, &got, err);
        if (st != GGL_OK || got < sizeof p)
            return st;
        const int64_t size = number(p + 4, 4);
        if (memcmp(p, "ds64", 4) == 0 && h->is_long) {
            st = read_long_sizes(h, b, size, err);
        } else if (memcmp(p, "fmt ", 4) == 0 && !h->format_at) {
            h->format_at = at + 8;
            st = read_format(h, b, size, err);
        } else if (memcmp(p, "data", 4) == 0 && !h->data_at) {
            h->data_at = at + 8;
            h->data_size = h->is_long && size == UINT32_MAX ? h->long_size : size;
            if (!h->format_at && b->size < 0)
                return ggl_fail(err, GGL_UNSUPPORTED,
                                "%s: the samples come before their format, the chunk 'fmt ', which "
                                "only a file allows: save it, and read that",
                                b->name);
        }
        if (st != GGL_OK || (h->format_at && h->data_at))
            return st;
        const int64_t skip = at + 8 == h->data_at && h->data_size > size ? h->data_size : size;
        if (skip > INT64_MAX / 2 - at)
            return GGL_OK; /* no file is so long: what comes behind it is not there */
        at += 8 + skip + skip % 2;
    }
}

/* Programs that write to a pipe do not know the size: they leave 0 or a large number, in the data and in the whole. is_pipe: then 2 GiB and
 * what is almost as much are such a number, as recorders write it (arecord: 0x80000000). */
static int64_t data_size(const header *h, bool is_pipe) {
    const int64_t large = is_pipe ? INT32_MAX / 4096 * 4096 - 4096 : INT64_MAX / 2;
    const bool is_unknown = h->riff_size == UINT32_MAX || h->riff_size > INT64_MAX / 2 ||
                            h->riff_size + 8 <= h->data_at;
    if (h->data_size < 0 || h->data_size == UINT32_MAX || h->data_size > large)
        return STREAM;
    return h->data_size == 0 && is_unknown ? STREAM : h->data_size;
}

/* The encoding of samples of `width` bytes; -1: none. Fewer bits than the bytes have stand at the top. */
static int encoding_of(int tag, int width) {
    static const struct {
        int tag, width, encoding;
    } known[] = {{TAG_PCM, 1, SOUND_U8},    {TAG_PCM, 2, SOUND_S16},   {TAG_PCM, 3, SOUND_S24},
                 {TAG_PCM, 4, SOUND_S32},   {TAG_FLOAT, 4, SOUND_F32}, {TAG_FLOAT, 8, SOUND_F64},
                 {TAG_ALAW, 1, SOUND_ALAW}, {TAG_ULAW, 1, SOUND_ULAW}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].tag == tag && known[i].width == width)
            return known[i].encoding;
    return -1;
}

static const char *tag_name(int tag) {
    static const struct {
        int tag;
        const char *name;
    } known[] = {{TAG_ALAW, " (A-law)"}, {TAG_ULAW, " (mu-law)"}, {0x31, " (GSM 6.10)"},
                 {0x50, " (MPEG)"},      {0x55, " (MP3)"},        {0xff, " (AAC)"},
                 {0x161, " (WMA)"},      {0xf1ac, " (FLAC)"},     {TAG_PCM, " (PCM)"},
                 {TAG_FLOAT, " (float)"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].tag == tag)
            return known[i].name;
    return "";
}

static ggl_status open_samples(sound_decoder *d, const header *h, sound_bytes *b, bool *other,
                               char kind[SOUND_KIND], ggl_error *err) {
    ggl_status st = llm_sound_check(b->name, h->rate, h->n_channels, err);
    if (st != GGL_OK)
        return st;
    if (h->tag == ADPCM_MS || h->tag == ADPCM_IMA) {
        st = llm_sound_bytes_seek(b, h->data_at, err);
        return st == GGL_OK && h->bits == 4
                   ? llm_sound_adpcm(d, b, h->tag, (int)h->rate, h->n_channels, h->n_frame,
                                     h->n_block, data_size(h, b->size < 0), err)
               : st != GGL_OK ? st
                              : ggl_fail(err, GGL_UNSUPPORTED, "%s: ADPCM of %d bits; 4 are read",
                                         b->name, h->bits);
    }
    const int n_frame = h->n_frame ? h->n_frame : (h->bits + 7) / 8 * h->n_channels;
    const int width = n_frame % h->n_channels ? 0 : n_frame / h->n_channels;
    const int encoding = encoding_of(h->tag, width);
    if (encoding < 0 && h->tag != TAG_PCM && h->tag != TAG_FLOAT && h->tag != TAG_ALAW &&
        h->tag != TAG_ULAW) {
        snprintf(kind, SOUND_KIND, "WAV with samples of format 0x%04x%s", (unsigned)h->tag,
                 tag_name(h->tag));
        *other = true;
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %s", b->name, kind);
    }
    if (encoding < 0 || h->bits < 1 || h->bits > 8 * width)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: WAV of format 0x%04x%s with %d bits, %d channels and %d bytes for "
                        "each frame, which do not fit together",
                        b->name, (unsigned)h->tag, tag_name(h->tag), h->bits, h->n_channels,
                        n_frame);
    st = llm_sound_bytes_seek(b, h->data_at, err);
    return st == GGL_OK ? llm_sound_pcm(d, b, (sound_encoding)encoding, (int)h->rate, h->n_channels,
                                        data_size(h, b->size < 0), err)
                        : st;
}

ggl_status llm_sound_wav(sound_decoder *d, sound_bytes *b, bool *other, char kind[SOUND_KIND],
                         ggl_error *err) {
    unsigned char p[12];
    size_t got = 0;
    header h = {0};
    *other = false;
    ggl_status st = llm_sound_bytes_seek(b, 0, err);
    if (st == GGL_OK)
        st = llm_sound_bytes_read(b, p, sizeof p, &got, err);
    if (st == GGL_OK && got < sizeof p)
        return ggl_fail(err, GGL_FORMAT, "%s: ends after %zu bytes, within the header of a WAV",
                        b->name, got);
    h.is_long = memcmp(p, "RIFF", 4) != 0;
    h.riff_size = number(p + 4, 4);
    if (st == GGL_OK)
        st = read_chunks(&h, b, err);
    if (st != GGL_OK)
        return st;
    if (!h.format_at || !h.data_at)
        return ggl_fail(err, GGL_FORMAT, "%s: WAV without a chunk '%s'", b->name,
                        h.format_at ? "data" : "fmt ");
    return open_samples(d, &h, b, other, kind, err);
}
