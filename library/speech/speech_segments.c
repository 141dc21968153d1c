#include "speech_segments.h"

static int64_t ms_of(const speech_tokens *t, int32_t id) {
    return (int64_t)(id - t->first_time) * SPEECH_MS_PER_TOKEN;
}

/* True if token k is a time, and ends a segment: the next one is a time, too. */
static bool is_cut(const speech_tokens *t, const int32_t *id, size_t n, size_t k) {
    return k + 1 < n && speech_is_time(t, id[k]) && speech_is_time(t, id[k + 1]);
}

/* A text without a pair of times is one segment, which ends at its last time, if it has a later one than 0. */
static int64_t cut_none(const speech_tokens *t, const int32_t *id, size_t n, int64_t window_ms,
                        bool (*each)(void *ctx, const speech_segment *s), void *ctx) {
    speech_segment s = {.end_ms = window_ms, .id = id, .n = n};
    for (size_t k = 0; k < n; k++)
        if (speech_is_time(t, id[k]) && ms_of(t, id[k]) > 0)
            s.end_ms = ms_of(t, id[k]);
    (void)each(ctx, &s);
    return window_ms;
}

int64_t llm_speech_cut(const speech_tokens *t, const int32_t *id, size_t n, int64_t window_ms,
                       bool (*each)(void *ctx, const speech_segment *s), void *ctx) {
    /* one time at the end: nothing is spoken after it */
    const bool ends_alone =
        n >= 1 && speech_is_time(t, id[n - 1]) && !(n >= 2 && speech_is_time(t, id[n - 2]));
    size_t from = 0;
    for (size_t k = 0; k < n; k++) {
        const bool is_last = from > 0 && ends_alone && k + 1 == n;
        if (!is_last && !is_cut(t, id, n, k))
            continue;
        const speech_segment s = {.start_ms = ms_of(t, id[from]),
                                  .end_ms = ms_of(t, id[k]),
                                  .id = id + from,
                                  .n = k + 1 - from};
        from = k + 1;
        if (!each(ctx, &s))
            return window_ms;
    }
    if (from == 0)
        return cut_none(t, id, n, window_ms, each, ctx);
    return ends_alone ? window_ms : ms_of(t, id[from - 1]);
}
