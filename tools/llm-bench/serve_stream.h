/* Reads a streamed answer of a server that speaks OpenAI's API: server-sent events (WHATWG HTML,
 * section 9.2), each with a piece of the answer as JSON. Bytes may arrive in any pieces; time is
 * linear in their number. Nothing here trusts the server.
 *
 *     serve_answer a = {.arrived = on_token, .ctx = &clock};
 *     if (serve_answer_feed(&a, bytes, n, &err) != GGL_OK) ..
 *     if (serve_answer_end(&a, &err) == GGL_OK)
 *         printf("%.*s", (int)a.text.n, a.text.s);
 *     serve_answer_fini(&a); */
#ifndef TOOLS_BENCH_SERVE_STREAM_H
#define TOOLS_BENCH_SERVE_STREAM_H

#include <stdbool.h>

#include "ggl/status.h"

enum { SERVE_MAX_EVENT = 16 << 20, SERVE_MAX_ANSWER = 256 << 20 }; /* bytes */

/* Bytes that grow; all zeros: empty. */
typedef struct serve_bytes {
    char *s;
    size_t n, cap;
} serve_bytes;

/* Appends. GGL_LIMIT: there would be more than `most` bytes; GGL_NOMEM. */
GGL_NODISCARD ggl_status serve_bytes_add(serve_bytes *b, const char *s, size_t n, size_t most,
                                         ggl_error *err);
void serve_bytes_fini(serve_bytes *b);

typedef struct serve_answer {
    /* Set by the caller. Called for each event that has text of the answer, also if the text is
     * empty, as that of a special token. NULL: not called. */
    void (*arrived)(void *ctx);
    void *ctx;

    serve_bytes text; /* UTF-8; without reasoning and calls of tools, which only count as pieces */
    int64_t n_pieces; /* events with text */
    bool finished;    /* a finish_reason or [DONE] has come */
    /* The server's `usage`; negative: not reported. */
    int64_t prompt_tokens, cached_tokens, completion_tokens;

    bool begun, done, after_cr; /* the rest belongs to serve_stream.c */
    serve_bytes line, data;
} serve_answer;

/* Takes the next bytes. GGL_FORMAT: they are no such stream; GGL_IO: the server reports an error;
 * GGL_LIMIT: an event or the answer is too long; GGL_NOMEM. */
GGL_NODISCARD ggl_status serve_answer_feed(serve_answer *a, const char *bytes, size_t n,
                                           ggl_error *err);
/* Call it when the connection has closed. GGL_FORMAT: the answer is not complete. */
GGL_NODISCARD ggl_status serve_answer_end(const serve_answer *a, ggl_error *err);
/* Frees the memory, and makes *a ready for the next answer. */
void serve_answer_fini(serve_answer *a);

/* Writes what the body of an answer with an error status says: the message in its JSON, or its
 * first line; returns buf. */
const char *serve_error_text(const char *body, size_t n, char *buf, size_t size);

#endif
