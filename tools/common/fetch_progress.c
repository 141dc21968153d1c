#include "fetch_progress.h"

#include <stdio.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"
#include "process.h"
#include "progress.h"
#include "report.h"

enum { MOST_NAME = 20 }; /* bytes of a name's end in the line, which fits 80 columns */

/* Returns the end of a name. */
static const char *end_of(const char *name) {
    const size_t n = strlen(name);
    const char *s = name + (n > MOST_NAME ? n - MOST_NAME : 0);
    while (((unsigned char)*s & 0xc0) == 0x80) /* not within a character */
        s++;
    return s;
}

void fetch_progress_begin(fetch_progress *p, const char *tool, const char *verb, const char *name,
                          uint64_t begin, uint64_t size) {
    *p = (fetch_progress){.tool = tool,
                          .verb = verb,
                          .name = name,
                          .begin = begin,
                          .size = size,
                          .t_begin = ggl_os_seconds(),
                          .on_terminal = tool_shows_progress()};
    p->quarter = size > 0 ? (int)(4 * (double)begin / (double)size) : 0;
    progress_begin(PROGRESS_TRANSFER, (double)size, "%s%s", end_of(name) > name ? ".." : "",
                   end_of(name));
    progress_resume((double)begin);
}

void fetch_progress_restart(fetch_progress *p) {
    p->begin = 0;
    p->quarter = 0;
    p->t_begin = ggl_os_seconds();
    progress_resume(0);
}

void fetch_progress_show(fetch_progress *p, uint64_t done) {
    const double passed = ggl_os_seconds() - p->t_begin;
    const double share = p->size > 0 ? (double)done / (double)p->size : 1;
    const double speed = passed > 0 && done > p->begin ? (double)(done - p->begin) / passed : 0;
    char a[AMOUNT_TEXT], b[AMOUNT_TEXT], c[AMOUNT_TEXT], left[AMOUNT_TEXT] = "";
    progress_set((double)done);
    /* in a pipe, a download of a few seconds needs no further lines */
    if (p->on_terminal || passed < 5 || (int)(4 * share) <= p->quarter || done == p->size ||
        tool_is_quiet())
        return;
    p->quarter = (int)(4 * share);
    if (speed > 0)
        llm_amount_time(left, (double)(p->size - done) / speed);
    ggl_fprint(stderr, "%s: %s %s: %.0f %%, %s of %s, %s/s, %s left\n", p->tool, p->verb, p->name,
               100 * share, llm_amount_bytes(a, done), llm_amount_bytes(b, p->size),
               llm_amount_bytes(c, (uint64_t)speed), left);
}

void fetch_progress_end(fetch_progress *p) {
    (void)p;
    progress_end();
}
