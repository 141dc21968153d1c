/* Statuses and error messages: see ggl/status.h. */
#include "ggl/status.h"

#include "ggl/internal/show.h"
#include "show_impl.h"

#include <stdio.h>
#include <string.h>

const char *ggl_status_text(ggl_status s) {
    static const char *const texts[GGL_STATUS_COUNT] = {
#define STATUS(NAME, text) [GGL_##NAME] = text,
#include "ggl/status.def"
#undef STATUS
    };
    return (unsigned)s < GGL_STATUS_COUNT ? texts[s] : "unknown status";
}

/* Ends a message that was cut to fit into size bytes with "..."; wanted: its full length. */
static void mark_cut(char *msg, size_t size, size_t wanted) {
    if (wanted >= size)
        memcpy(msg + ggl_utf8_cut(msg, strlen(msg), size - 4), "...", 4);
}

ggl_status ggl_failv(ggl_error *err, ggl_status s, const char *fmt, va_list args) {
    if (!err)
        return s;
    /* formatted in a buffer, because an argument may be err->msg itself */
    char msg[sizeof err->msg];
    int n = ggl_vformat_raw(msg, sizeof msg, err->msg, fmt, args);
    if (n < 0)
        snprintf(msg, sizeof msg, "%s", ggl_status_text(s));
    else
        mark_cut(msg, sizeof msg, (size_t)n);
    err->status = s;
    memcpy(err->msg, msg, strlen(msg) + 1);
    return s;
}

ggl_status ggl_fail(ggl_error *err, ggl_status s, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    ggl_failv(err, s, fmt, args);
    va_end(args);
    return s;
}

ggl_status ggl_within(ggl_error *err, ggl_status s, const char *fmt, ...) {
    if (!err)
        return s;
    char msg[sizeof err->msg];
    va_list args;
    va_start(args, fmt);
    int n = ggl_vformat_raw(msg, sizeof msg, err->msg, fmt, args);
    va_end(args);
    size_t at = n < 0 ? 0 : (size_t)n < sizeof msg ? (size_t)n : sizeof msg - 1;
    int m = snprintf(msg + at, sizeof msg - at, "%s%s", at > 0 ? ": " : "", err->msg);
    mark_cut(msg, sizeof msg, at + (m < 0 ? 0 : (size_t)m));
    err->status = s;
    memcpy(err->msg, msg, strlen(msg) + 1);
    return s;
}
