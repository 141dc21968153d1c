#include "stops.h"

#include "ggl/internal/alloc.h"
#include "common/texts.h"

ggl_status stops_init(stops *s, const stops_options *o, bool escape, ggl_error *err) {
    const size_t n = o->reverse.n + o->stop.n;
    *s = (stops){.n_reverse = o->reverse.n};
    if (n == 0)
        return GGL_OK;
    const char **args = ggl_calloc(n, sizeof *args);
    for (size_t i = 0; i < n && args; i++)
        args[i] = i < o->reverse.n ? o->reverse.s[i] : o->stop.s[i - o->reverse.n];
    ggl_str *texts = args ? read_texts(args, n, escape) : NULL;
    const ggl_status st = texts ? llm_stop_new(&s->strings, texts, n, err)
                                : ggl_fail(err, GGL_NOMEM, "out of memory for stop strings");
    ggl_free(args);
    ggl_free(texts);
    return st;
}

void stops_fini(stops *s) {
    llm_stop_free(s->strings);
    ggl_free(s->waiting);
    ggl_free(s->hidden);
}

/* Prints the first n of the waiting bytes, and removes them. */
static void release(stops *s, text_stream *out, size_t n) {
    if (n == 0)
        return;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && s->hidden[end] == s->hidden[i];)
            end++;
        if (!s->hidden[i])
            text_stream_put(out, s->waiting + i, end - i);
    }
    memmove(s->waiting, s->waiting + n, s->n - n);
    memmove(s->hidden, s->hidden + n, (s->n - n) * sizeof *s->hidden);
    s->n -= n;
}

ggl_status stops_put(stops *s, text_stream *out, ggl_str text, bool hidden, ggl_error *err) {
    if (text.n == 0)
        return GGL_OK;
    if (!s->strings) {
        if (!hidden)
            text_stream_put(out, text.s, text.n);
        return GGL_OK;
    }
    if (!ggl_grow(&s->waiting, &s->cap, s->n + text.n, 1) ||
        !ggl_grow(&s->hidden, &s->cap_hidden, s->n + text.n, sizeof *s->hidden))
        return ggl_fail(err, GGL_NOMEM, "out of memory for stop strings");
    memcpy(s->waiting + s->n, text.s, text.n);
    for (size_t i = 0; i < text.n; i++)
        s->hidden[s->n++] = hidden;
    release(s, out, llm_stop_read(s->strings, text.s, text.n));
    const int32_t found = llm_stop_found(s->strings);
    s->found = found >= 0;
    if (s->found && (size_t)found < s->n_reverse)
        release(s, out, llm_stop_held(s->strings));
    return GGL_OK;
}

void stops_reset(stops *s) {
    if (s->strings)
        llm_stop_reset(s->strings);
    s->found = false;
    s->n = 0;
}

void stops_end(stops *s, text_stream *out) {
    if (!s->found)
        release(s, out, s->n);
}
