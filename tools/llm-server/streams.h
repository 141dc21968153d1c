/* Streams that clients may resume, as in llama.cpp's server: what a stream has sent is kept for some time under an id that
 * the client chose (X-Conversation-Id), so that a page that was reloaded gets it again, and then what follows.
 *
 *     stream_log *l = streams_begin(s, id, owner, "text/event-stream");  // NULL: it is not kept
 *     stream_log_write(l, bytes, n);                                     // besides the reply's own http_reply_write
 *     if (!stream_log_is_wanted(l, reply_is_gone)) ...                   // nobody reads it
 *     stream_log_end(l);
 *
 * Memory: of MEMORY_STREAMS; a stream keeps at least the last three quarters of STREAM_BYTES. Where that memory or STREAMS_KEPT is used up, streams that
 * have ended are forgotten, the oldest first of the client that has most, and then the stream itself loses what it has sent so far, or is not kept. Any thread; a log is written by one
 * at a time. */
#ifndef LLM_SERVER_STREAMS_H
#define LLM_SERVER_STREAMS_H

#include "common/json_write.h"
#include "http.h"

enum {
    STREAM_ID = 256,
    STREAM_BYTES = 1 << 20,
    STREAMS_KEPT = 2000, /* in all: each request looks through them */
    STREAMS_DESCRIBED = 1000
};

typedef struct stream_table stream_table;
typedef struct stream_log stream_log;

/* seconds: how long a stream is kept after its end, and goes on while it is not read; 0 if none is kept. NULL: out of memory. */
stream_table *streams_new(memory *m, int64_t seconds);
/* After all logs were ended. NULL is fine. */
void streams_free(stream_table *s);
/* Forgets streams whose time is over. */
void streams_expire(stream_table *s);

/* Begins a stream in place of one with the same id, which is cancelled. owner: only requests of the same owner find it.
 * NULL: it is not kept, because the id is empty or longer than STREAM_ID, or for lack of memory. */
stream_log *streams_begin(stream_table *s, const char *id, uint64_t owner, const char *media_type);
/* NULL is fine in all of these. */
void stream_log_write(stream_log *l, const char *bytes, size_t n);
/* False: it was cancelled, or has not been read for the time of the streams. is_read: the request's own client is there. */
bool stream_log_is_wanted(stream_log *l, bool is_read);
bool stream_log_is_cancelled(stream_log *l);
/* Ends all that read it, and gives it back. */
void stream_log_end(stream_log *l);

/* Answers with the stream's bytes from number `from` on, now and as they come; ends r, then or later. GGL_NOT_FOUND: there is
 * no such stream; GGL_LIMIT: these bytes are not kept any more. On failure r is untouched. */
GGL_NODISCARD ggl_status streams_read(stream_table *s, const char *id, uint64_t owner,
                                      uint64_t from, http_reply *r, ggl_error *err);
/* Ends a stream and its answer, and forgets it. Unknown ids are ignored. */
void streams_cancel(stream_table *s, const char *id, uint64_t owner);
/* Appends an object for each stream of this id, or of id::ANYTHING; *n counts them, up to STREAMS_DESCRIBED. */
void streams_describe(stream_table *s, ggl_str id, uint64_t owner, llm_json_out *out, size_t *n);

#endif
