/* Writes the text of the progress line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/amounts.h"
#include "char_width.h"
#include "progress.h"

#define SHOWS_LEFT_AFTER 1.0 /* seconds; earlier estimates are too uncertain */

/* Appends to a line; text that does not fit is cut off. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add(char *line, const char *fmt, ...) {
    const size_t n = strlen(line);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, PROGRESS_LINE - n, fmt, args);
    va_end(args);
}

static bool is_bytes(const progress_job *j) {
    return j->unit && (strcmp(j->unit, PROGRESS_BYTES) == 0 || !strcmp(j->unit, PROGRESS_TRANSFER));
}

static void add_amount(char *line, const progress_job *j, double t) {
    char done[AMOUNT_TEXT], total[AMOUNT_TEXT];
    if (j->total <= 0)
        return;
    const double share = j->done < j->total ? j->done / j->total : 1;
    add(line, " %.0f %%", 100 * share);
    if (is_bytes(j))
        add(line, ", %s of %s", llm_amount_bytes(done, (uint64_t)j->done),
            llm_amount_bytes(total, (uint64_t)j->total));
    else if (j->unit)
        add(line, ", %.0f of %.0f %s", j->done, j->total, j->unit);
    if (j->unit && strcmp(j->unit, PROGRESS_TRANSFER) == 0 && t > j->t_begin &&
        j->done >= j->resumed)
        add(line, ", %s/s",
            llm_amount_bytes(done, (uint64_t)((j->done - j->resumed) / (t - j->t_begin))));
}

static void add_job(char *line, const progress_job *j, double t) {
    add(line, "%s", j->what);
    add_amount(line, j, t);
    add(line, *j->explained ? ", %s" : "%s", j->explained);
}

/* Appends the remaining time of the outermost job for which it can be estimated, else the elapsed time. */
static void add_time(char *line, const progress_job *job, int n, double t) {
    char text[AMOUNT_TEXT];
    for (int i = 0; i < n; i++) {
        const progress_job *j = &job[i];
        const double passed = t - j->t_begin, done = j->done - j->resumed;
        if (j->total <= 0)
            continue;
        if (done > 0 && passed >= SHOWS_LEFT_AFTER && j->done < j->total) {
            add(line, ", %s left", llm_amount_time(text, passed / done * (j->total - j->done)));
            return;
        }
    }
    if (n > 0 && job[n - 1].total <= 0)
        add(line, ", %s", llm_amount_time(text, t - job[n - 1].t_begin));
}

/* Cuts the line after `width` columns. */
static void cut(char *line, int width) {
    const size_t n = strlen(line);
    int columns = 0;
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c;
        k = char_read(line + i, n - i, &c);
        columns += char_width(c);
        if (columns > width) {
            line[i] = 0;
            return;
        }
    }
}

size_t progress_line(char buf[PROGRESS_LINE], const progress_job *job, int n, double t, int width) {
    *buf = 0;
    for (int i = 0; i < n; i++) {
        add(buf, i ? ": " : "");
        add_job(buf, &job[i], t);
    }
    add_time(buf, job, n, t);
    cut(buf, width);
    return strlen(buf);
}
