/* Until when a client may send or read; see http_impl.h. */

#include "ggl/internal/os_clock.h"
#include "http_impl.h"

enum {
    LEAST_RATE = 16384, /* bytes per second of a client that sends or reads */
    LAST_MS = 1000      /* for what a client has sent before it stopped sending */
};

int64_t http_now(void) {
    return ggl_os_clock() / 1000000;
}

void http_set_due(const http_server *s, http_connection *c, uint64_t n_bytes) {
    bool half_closed;
    do { /* the watcher, too, sets it, after half_closed: what it sets must not be replaced by the time of an open one */
        half_closed = c->half_closed;
        const int64_t wait = half_closed ? LAST_MS : 2000 * (int64_t)s->p.timeout_s;
        c->due = http_now() + wait + (int64_t)((double)n_bytes / (LEAST_RATE / 1000.0));
    } while (c->half_closed != half_closed);
}
