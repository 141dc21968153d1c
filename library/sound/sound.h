/* Reads sound: one channel of samples at a wanted rate, in parts, so that memory does not grow with the length.
 *
 *     llm_sound *s;
 *     float x[4096];
 *     int64_t n = 1;
 *     st = llm_sound_open(&s, "talk.wav", &(llm_sound_params){.rate = 16000}, &err);
 *     while (st == GGL_OK && n > 0) {
 *         st = llm_sound_read(s, x, 4096, &n, &err);
 *         ..
 *     }
 *     llm_sound_close(s);
 *
 * WAV files (also RF64 and BW64) are read with integers of 8, 16, 24 and 32 bits and floats of 32 and 64, from pipes as well, whose header need not
 * tell the size. A build with libsndfile also reads FLAC, MP3, Ogg (Vorbis, Opus), AIFF and others, from files and memory. Channels are
 * mixed: their mean. The rate is changed by resample.h. A file that ends early is read up to there, and llm_sound_damage says so.
 *
 * Threads: a sound belongs to one at a time. */
#ifndef LIBRARY_SOUND_H
#define LIBRARY_SOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"

/* Samples without a header. */
typedef enum llm_sound_raw {
    LLM_SOUND_NOT_RAW,
    LLM_SOUND_S16LE, /* integers of 16 bits, little-endian */
    LLM_SOUND_F32LE  /* floats of -1 to 1 */
} llm_sound_raw;

typedef struct llm_sound_params {
    int rate; /* wanted, in Hz; 0: the sound's own */
    llm_sound_raw raw;
    int raw_rate, raw_channels; /* of raw samples; 0: `rate`, and 1 */
    const void *data;           /* NULL: the file `path`. The bytes of a file, borrowed */
    size_t n_data;
    bool (*cancelled)(
        void *
            ctx); /* asked while a pipe or ffmpeg is waited for; true ends that with GGL_CANCELLED. NULL: it is not asked */
    void *cancelled_ctx;
    bool
        names_raw; /* the caller has the option --raw, which the message about an unknown kind names */
} llm_sound_params;

typedef struct llm_sound llm_sound;

/* Opens a file, with "-" standard input, or the bytes of `params`, for which path is a name in messages. GGL_USAGE: params; GGL_IO;
 * GGL_UNSUPPORTED: what kind of sound it is, and what reads it; GGL_FORMAT: it is damaged, or no sound; GGL_NOMEM. Messages begin with
 * the path. *out is NULL then. */
GGL_NODISCARD ggl_status llm_sound_open(llm_sound **out, const char *path,
                                        const llm_sound_params *params, ggl_error *err);
void llm_sound_close(llm_sound *s); /* NULL is fine */

/* Reads at most n samples, n > 0. *got is 0 at the end only; a pipe gives what has arrived. The same samples, however they are cut into parts.
 * GGL_FORMAT: a sample that is no number; GGL_IO; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sound_read(llm_sound *s, float *to, int64_t n, int64_t *got,
                                        ggl_error *err);
/* Goes back to the beginning. GGL_UNSUPPORTED: a pipe of which more than a little was read; GGL_IO. */
GGL_NODISCARD ggl_status llm_sound_rewind(llm_sound *s, ggl_error *err);
bool llm_sound_can_rewind(const llm_sound *s); /* false: a pipe or a device */

int llm_sound_rate(const llm_sound *s); /* of the samples that are read, in Hz */
/* The number of samples that are read in all; -1: it is not known yet, of a pipe. Of damaged files that are not WAV it is what their header
 * says, until the end was read. */
int64_t llm_sound_n_samples(const llm_sound *s);
/* What is wrong with a sound that is read up to its end all the same: "it ends 512 samples before its header says", of each channel, at its own rate, or "it ends in the middle of a sample";
 * "": nothing. Of a pipe, it is known after the end. Valid until the next call. */
const char *llm_sound_damage(llm_sound *s);
/* What was done to the sound: "44100 Hz, 2 channels: resampled to 16000 Hz, channels mixed", or parts of that, or "". Valid until the next call. */
const char *llm_sound_note(llm_sound *s);

/* The library by which the build reads more than WAV, "libsndfile-1.2.0"; NULL: none. */
const char *llm_sound_library(void);

#endif
