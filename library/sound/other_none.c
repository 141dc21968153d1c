/* Builds without libsndfile: files of other kinds than WAV are refused. */
#include <stddef.h>

#include "decoder.h"

ggl_status llm_sound_other(sound_decoder *d, sound_bytes *b, const char *kind, ggl_error *err) {
    (void)d;
    return llm_sound_unreadable(b, kind,
#ifdef LLM_WITHOUT_LIBRARIES /* WebAssembly */
                                "which is not read in WebAssembly:",
#else
                                "which this build reads by the program ffmpeg, where it is "
                                "installed, or built with libsndfile (Debian, Ubuntu: "
                                "libsndfile1-dev); or",
#endif
                                err);
}

const char *llm_sound_other_library(void) {
    return NULL;
}
