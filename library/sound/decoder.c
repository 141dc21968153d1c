#include "decoder.h"

#include <stdio.h>

ggl_status llm_sound_check(const char *name, int64_t rate, int64_t n_channels, ggl_error *err) {
    if (rate < SOUND_LEAST_RATE || rate > SOUND_MOST_RATE)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %lld samples per second, not %d to %d", name,
                        (long long)rate, SOUND_LEAST_RATE, SOUND_MOST_RATE);
    if (n_channels < 1 || n_channels > SOUND_MOST_CHANNELS)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %lld channels, not 1 to %d", name,
                        (long long)n_channels, SOUND_MOST_CHANNELS);
    return GGL_OK;
}

ggl_status llm_sound_needs_ffmpeg(const sound_bytes *b, const char *what, ggl_error *err) {
    const bool is_input = b->fd == 0;
    return ggl_fail(err, GGL_UNSUPPORTED, "%s: %s: ffmpeg -i %s -ar 16000 -ac 1 %s", b->name, what,
                    is_input ? "-" : b->name, is_input ? "-f wav -" : "out.wav");
}

ggl_status llm_sound_unreadable(const sound_bytes *b, const char *kind, const char *reason,
                                ggl_error *err) {
    char what[256];
    snprintf(what, sizeof what, "is %s, %s convert it", kind, reason);
    return llm_sound_needs_ffmpeg(b, what, err);
}
