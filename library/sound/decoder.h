/* What reads a kind of sound: WAV and raw samples by code of this folder, other kinds by libsndfile, if the build has it.
 *
 * Threads: a decoder belongs to one at a time. */
#ifndef LIBRARY_SOUND_DECODER_H
#define LIBRARY_SOUND_DECODER_H

#include "bytes.h"

typedef struct sound_decoder {
    int rate, n_channels;
    int64_t n_frames; /* a frame is a sample of each channel; -1: until the end */
    int64_t n_lost;   /* promised by the header, and not there; of a pipe, after its end */
    bool is_cut;      /* after its end: without a header that says so, it ends within a frame */
    void *ctx;
    /* Reads at most n frames into to[n][n_channels]; *got is 0 at the end only. GGL_FORMAT, GGL_IO. */
    ggl_status (*read)(struct sound_decoder *d, float *to, int64_t n, int64_t *got, ggl_error *err);
    ggl_status (*rewind)(struct sound_decoder *d, ggl_error *err);
    void (*close)(struct sound_decoder *d);
} sound_decoder;

enum { SOUND_LEAST_RATE = 1000, SOUND_MOST_RATE = 1000000, SOUND_MOST_CHANNELS = 1024 };

/* How samples are stored, little-endian. */
typedef enum sound_encoding {
    SOUND_U8,
    SOUND_S16,
    SOUND_S24,
    SOUND_S32,
    SOUND_ULAW, /* ITU-T G.711, of telephones */
    SOUND_ALAW,
    SOUND_F32,
    SOUND_F64
} sound_encoding;

/* Samples without a header, from where `b` stands, which is borrowed: n_bytes, or until the end if that is -1. GGL_NOMEM, and the errors of
 * llm_sound_check. */
GGL_NODISCARD ggl_status llm_sound_pcm(sound_decoder *d, sound_bytes *b, sound_encoding encoding,
                                       int rate, int n_channels, int64_t n_bytes, ggl_error *err);

/* A WAV file: RIFF, and RF64 or BW64, which have no limit of 4 GiB; with samples of a sound_encoding. `b` stands anywhere. *other is set to
 * true with GGL_UNSUPPORTED if the samples have another encoding, which `kind` then names. GGL_UNSUPPORTED, too: rate or channels, and a
 * pipe with samples before their format. GGL_FORMAT, GGL_IO, GGL_NOMEM. */
enum { SOUND_KIND = 64 };
GGL_NODISCARD ggl_status llm_sound_wav(sound_decoder *d, sound_bytes *b, bool *other,
                                       char kind[SOUND_KIND], ggl_error *err);

/* What libsndfile knows (other_sndfile.c); in a build without it, an error (other_none.c). `kind`: what the file is, for messages.
 * GGL_UNSUPPORTED: the build has no libsndfile, or it does not know this kind, or a pipe, which cannot go back; GGL_FORMAT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sound_other(sound_decoder *d, sound_bytes *b, const char *kind,
                                         ggl_error *err);
/* "libsndfile-1.2.0"; NULL: the build has none. */
const char *llm_sound_other_library(void);
/* GGL_UNSUPPORTED: "talk.m4a: ", what is wrong with it, and the command that converts it: to a file, or a pipe in a pipe. */
GGL_NODISCARD ggl_status llm_sound_needs_ffmpeg(const sound_bytes *b, const char *what,
                                                ggl_error *err);
/* The same with "is MP4, " and the reason. */
GGL_NODISCARD ggl_status llm_sound_unreadable(const sound_bytes *b, const char *kind,
                                              const char *reason, ggl_error *err);

/* Checks rate and channels. GGL_UNSUPPORTED. */
GGL_NODISCARD ggl_status llm_sound_check(const char *name, int64_t rate, int64_t n_channels,
                                         ggl_error *err);

#endif
