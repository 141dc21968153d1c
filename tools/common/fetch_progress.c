#include "fetch_progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "ggl/show.h"
#include "process.h"

enum { MOST_NAME = 20 }; /* bytes of a name's end in the line, which fits 80 columns */

void fetch_progress_begin(fetch_progress *p, const char *tool, const char *verb, const char *name,
                          uint64_t begin, uint64_t size) {
    *p = (fetch_progress){.tool = tool,
                          .verb = verb,
                          .name = name,
                          .begin = begin,
                          .size = size,
                          .t_begin = process_seconds(),
                          .on_terminal = tool_shows_progress()};
    p->quarter = size > 0 ? (int)(4 * (double)begin / (double)size) : 0;
}

/* Writes how long the rest takes: "1 h 05 min", "3 min 20 s", "12 s". */
static const char *left_text(char *buf, size_t size, double seconds) {
    const long s = seconds < 1e7 ? (long)(seconds + 0.5) : 9999999;
    if (s >= 3600)
        snprintf(buf, size, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(buf, size, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(buf, size, "%ld s", s);
    return buf;
}

void fetch_progress_show(fetch_progress *p, uint64_t done) {
    const double now = process_seconds(), passed = now - p->t_begin;
    const double share = p->size > 0 ? (double)done / (double)p->size : 1;
    const double speed = passed > 0 ? (double)(done - p->begin) / passed : 0;
    char a[FETCH_SIZE_TEXT], b[FETCH_SIZE_TEXT], c[FETCH_SIZE_TEXT], left[40] = "";
    /* in a pipe, downloads of seconds need no lines between */
    const bool due = p->on_terminal ? now - p->t_shown >= 0.2 && passed >= 0.3
                                    : passed >= 5 && (int)(4 * share) > p->quarter;
    if (!due || done == p->size || tool_is_quiet())
        return;
    p->t_shown = now;
    p->quarter = (int)(4 * share);
    p->shown = true;
    if (speed > 0)
        left_text(left, sizeof left, (double)(p->size - done) / speed);
    if (!p->on_terminal) {
        ggl_fprint(stderr, "%s: %s %s: %.0f %%, %s of %s, %s/s, %s left\n", p->tool, p->verb,
                   p->name, 100 * share, fetch_size_text(a, done), fetch_size_text(b, p->size),
                   fetch_size_text(c, (uint64_t)speed), left);
        return;
    }
    const size_t n = strlen(p->name);
    size_t from = n > MOST_NAME ? n - MOST_NAME : 0;
    while (((unsigned char)p->name[from] & 0xc0) == 0x80) /* not within a character */
        from++;
    ggl_fprint(stderr, "\r\033[K%s%s %3.0f %%  %s of %s  %s/s  %s left", from ? ".." : "",
               p->name + from, 100 * share, fetch_size_text(a, done), fetch_size_text(b, p->size),
               fetch_size_text(c, (uint64_t)speed), left);
    fflush(stderr);
    tool_set_line(TOOL_LINE_PROGRESS);
}

void fetch_progress_end(fetch_progress *p) {
    if (p->on_terminal && p->shown)
        tool_begin_line();
}

const char *fetch_size_text(char buf[FETCH_SIZE_TEXT], uint64_t n) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const double x = (double)n / units[i].unit;
        if (x >= 1) {
            snprintf(buf, FETCH_SIZE_TEXT, "%.*f %s",
                     x < 10    ? 2
                     : x < 100 ? 1
                               : 0,
                     x, units[i].name);
            return buf;
        }
    }
    snprintf(buf, FETCH_SIZE_TEXT, "%d bytes", (int)n);
    return buf;
}
