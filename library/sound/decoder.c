#include "decoder.h"

ggl_status llm_sound_check(const char *name, int64_t rate, int64_t n_channels, ggl_error *err) {
    if (rate < SOUND_LEAST_RATE || rate > SOUND_MOST_RATE)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %lld samples per second, not %d to %d", name,
                        (long long)rate, SOUND_LEAST_RATE, SOUND_MOST_RATE);
    if (n_channels < 1 || n_channels > SOUND_MOST_CHANNELS)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %lld channels, not 1 to %d", name,
                        (long long)n_channels, SOUND_MOST_CHANNELS);
    return GGL_OK;
}

ggl_status llm_sound_unreadable(const sound_bytes *b, const char *kind, const char *reason,
                                ggl_error *err) {
    const char *const path = b->fd == 0 ? "-" : b->name;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: is %s, %s convert it: ffmpeg -i %s -ar 16000 -ac 1 out.wav", b->name, kind,
                    reason, path);
}
