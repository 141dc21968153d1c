/* Samples of 4 bits in WAV: IMA's and Microsoft's ADPCM ("New Multimedia Data Types and Data Techniques" 3.0, 1994). A block begins with whole samples, and each nibble after
 * them says how far the next sample is from what is expected. */
#ifndef LIBRARY_ADPCM_H
#define LIBRARY_ADPCM_H

#include "decoder.h"

enum { ADPCM_MS = 2, ADPCM_IMA = 0x11 }; /* formats of WAV */
enum { ADPCM_MOST_CHANNELS = 2 };

/* Reads samples of the bytes from where *b is on, n_bytes of them (-1: until the end), in blocks of n_block bytes. GGL_FORMAT: blocks of that size are not possible, or do not have n_samples (0: the
 * file does not say how many); GGL_UNSUPPORTED, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sound_adpcm(sound_decoder *d, sound_bytes *b, int format, int rate,
                                         int n_channels, int n_block, int n_samples,
                                         int64_t n_bytes, ggl_error *err);

#endif
