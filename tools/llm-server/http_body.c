/* Bodies of requests, as they arrive: how long they may be, how much memory all have together, and what becomes of those
 * that are not wanted. All on the library's thread. */
#include <stdio.h>
#include <string.h>

#include "http_impl.h"

/* Bytes of a body that is too long, as multiples of its limit: up to the first the connection can be used again, up to the
 * second the client gets to read the answer, which is sent while it still writes. */
enum { KEEP_TIMES = 2, DROP_TIMES = 16, DROP_MORE = 1 << 20 };
enum { STALLED_MS = 2000 }; /* a body that received nothing for this time makes room for others */

static void drop(http_reply *r) {
    ggl_free(r->body);
    r->body = NULL;
    r->n_body = r->body_cap = 0;
    memory_force(&r->body_held, 0);
}

static void refuse(http_reply *r, int status, const char *sentence) {
    http_refuse(r, status, sentence);
    drop(r);
}

/* Returns the request whose body has come to a halt for longest; NULL if none has. */
static http_reply *find_stalled(http_server *s) {
    http_reply *oldest = NULL;
    ggl_os_mutex_lock(&s->lock);
    for (http_connection *c = s->connections; c; c = c->next) {
        http_reply *r = c->reply;
        if (r && r->body && !r->handed && (!oldest || r->arrived_at < oldest->arrived_at))
            oldest = r;
    }
    ggl_os_mutex_unlock(&s->lock);
    return oldest && http_now() - oldest->arrived_at >= STALLED_MS ? oldest : NULL;
}

/* Holds n bytes for a body. If memory is short, refuses other requests whose bodies have stopped
 * arriving. */
static bool hold(http_reply *r, size_t n) {
    while (!memory_set(&r->body_held, n)) {
        http_reply *stalled = find_stalled(r->server);
        if (!stalled || stalled == r)
            return false;
        refuse(stalled, 503, "the request's body stopped to arrive, and others need its memory");
        http_reply_send_now(stalled);
    }
    return true;
}

static void refuse_for_memory(http_reply *r) {
    char sentence[200];
    memory *m = r->server->p.memory;
    snprintf(sentence, sizeof sentence,
             "no memory for the request's body: bodies under way hold %zu of the %zu bytes that "
             "they may have together (--request-memory); try again later",
             memory_held(m, MEMORY_BODIES), memory_most(m, MEMORY_BODIES));
    refuse(r, 503, sentence);
}

void http_body_announced(http_reply *r, uint64_t n) {
    char sentence[200], flag[64];
    const size_t most = r->server->p.max_body,
                 most_of_all = memory_most(r->server->p.memory, MEMORY_BODIES);
    const bool is_short = most_of_all < most;
    if (n > (is_short ? most_of_all : most)) {
        snprintf(flag, sizeof flag, "--max-body %zu, in MiB", most >> 20);
        snprintf(sentence, sizeof sentence,
                 "the request's body has %llu bytes, at most %zu are allowed (%s)",
                 (unsigned long long)n, is_short ? most_of_all : most,
                 is_short ? "an eighth of --request-memory" : flag);
        refuse(r, 413, sentence);
    } else if (!hold(r, (size_t)n)) {
        refuse_for_memory(r);
    } else {
        r->n_announced = (size_t)n;
        memory_force(&r->body_held, 0); /* held as it arrives: a promise takes nothing */
    }
}

bool http_body_is_far_too_long(const http_reply *r, uint64_t n) {
    return n > KEEP_TIMES * (uint64_t)r->server->p.max_body + 65536;
}

/* Makes room for n bytes of the body: for half as much again, but not for more than was announced. */
static bool grow(http_reply *r, size_t n) {
    size_t wanted = r->body_cap + r->body_cap / 2 + 4096;
    if (n <= r->body_cap)
        return true;
    wanted = wanted > r->n_announced && n <= r->n_announced ? r->n_announced : wanted;
    wanted = wanted < n || !memory_set(&r->body_held, wanted) ? n : wanted;
    char *grown = hold(r, wanted) ? ggl_calloc(wanted, 1) : NULL;
    if (!grown)
        return false;
    if (r->n_body > 0)
        memcpy(grown, r->body, r->n_body);
    ggl_free(r->body);
    r->body = grown;
    r->body_cap = wanted;
    return true;
}

enum MHD_Result http_body_take(http_reply *r, const char *data, size_t *n) {
    const size_t most = r->server->p.max_body;
    r->n_arrived += *n;
    r->arrived_at = http_now();
    http_set_due(r->server, r->connection, r->n_arrived);
    if (r->connection->half_closed) /* no more comes, so that what has come gives no time for it */
        http_set_due(r->server, r->connection, 0);
    if (r->n_arrived > DROP_TIMES * (uint64_t)most + DROP_MORE)
        return MHD_NO;
    if (!r->refused && r->n_body + *n > most) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "the request's body has more than the %zu bytes that are allowed (--max-body "
                 "%zu, in MiB)",
                 most, most >> 20);
        refuse(r, 413, sentence);
    }
    if (!r->refused && !grow(r, r->n_body + *n))
        refuse_for_memory(r);
    if (r->refused && !r->sent_now && http_body_is_far_too_long(r, r->n_arrived))
        http_reply_send_now(r);
    if (!r->refused) {
        memcpy(r->body + r->n_body, data, *n);
        r->n_body += *n;
    }
    *n = 0;
    return MHD_YES;
}
