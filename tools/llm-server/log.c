#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "common/report.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"

/* It is said once that lines are lost. */
static atomic_flag has_failed = ATOMIC_FLAG_INIT;

void log_line(FILE *log, const char *format, ...) {
    char when[40] = "", text[1024];
    struct tm tm;
    const int64_t now = (int64_t)time(NULL);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (ggl_os_utc_parts(now, &tm))
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (log == stderr)
        tool_begin_line();
    (void)ggl_fprint(log, "%s %s\n", when, text);
    if (fflush(log) != 0 && !atomic_flag_test_and_set(&has_failed)) {
        (void)ggl_fprint(stderr, "llm-server: the log cannot be written (%s); the server goes on\n",
                         strerror(errno));
    }
    clearerr(log); /* the next line may have room */
}
