/* Logs of streams, without HTTP: which are kept, and which are forgotten. */
#include "llm-server/streams.h"
#include "test.h"

/* Nobody reads here. */
void http_reply_header(http_reply *r, const char *name, const char *value) {
    (void)r, (void)name, (void)value;
}
void http_reply_begin(http_reply *r, int status, const char *media_type, bool streams) {
    (void)r, (void)status, (void)media_type, (void)streams;
}
void http_reply_write(http_reply *r, const char *bytes, size_t n) {
    (void)r, (void)bytes, (void)n;
}
static bool has_room = true;
bool http_reply_reserve(http_reply *r, size_t n) {
    (void)r, (void)n;
    return has_room;
}
void http_reply_end(http_reply *r) {
    (void)r;
}
bool http_reply_is_gone(http_reply *r) {
    (void)r;
    return false;
}

static bool is_there(stream_table *s, int k) {
    ggl_error err;
    char id[32];
    snprintf(id, sizeof id, "s%d", k);
    return streams_read(s, id, 1, 0, NULL, &err) == GGL_OK;
}

static stream_log *begin(stream_table *s, int k) {
    char id[32];
    snprintf(id, sizeof id, "s%d", k);
    return streams_begin(s, id, 1, "text/event-stream");
}

/* A client may not make others wait by the number of its streams: those that ended first make room. */
TEST(so_many_are_kept) {
    stream_table *s = streams_new(NULL, 300);
    REQUIRE(s);
    stream_log *runs = begin(s, 0);
    for (int k = 1; k < STREAMS_KEPT + 3; k++) {
        stream_log *l = begin(s, k);
        CHECK(l);
        stream_log_write(l, "x", 1);
        stream_log_end(l);
    }
    CHECK(is_there(s, 0)); /* it has not ended */
    CHECK(!is_there(s, 1) && !is_there(s, 3) && is_there(s, 4) && is_there(s, STREAMS_KEPT + 2));
    stream_log_end(runs);
    CHECK(is_there(s, 0));
    streams_free(s);
}

/* If none has ended, a further one is not kept; one of the same id takes the place of the old one. */
TEST(streams_that_go_on_stay) {
    stream_table *s = streams_new(NULL, 300);
    stream_log *l[STREAMS_KEPT];
    REQUIRE(s);
    for (int k = 0; k < STREAMS_KEPT; k++)
        CHECK((l[k] = begin(s, k)) != NULL);
    CHECK(!begin(s, STREAMS_KEPT));
    stream_log *again = begin(s, 7);
    CHECK(again && stream_log_is_cancelled(l[7]) && !stream_log_is_cancelled(again));
    for (int k = 0; k < STREAMS_KEPT; k++)
        stream_log_end(l[k]);
    stream_log_end(again);
    CHECK(is_there(s, 7) && is_there(s, 8));
    streams_free(s);
}

/* A client gets no stream that would not fit the memory of answers. */
TEST(a_replay_must_fit) {
    stream_table *s = streams_new(NULL, 300);
    stream_log *l = begin(s, 0);
    ggl_error err;
    REQUIRE(l);
    stream_log_write(l, "abc", 3);
    has_room = false;
    CHECK_INT(streams_read(s, "s0", 1, 0, NULL, &err), GGL_NOMEM);
    CHECK_HAS(err.msg, "3 bytes of a stream");
    CHECK_INT(streams_read(s, "s0", 1, 3, NULL, &err), GGL_OK);
    has_room = true;
    CHECK_INT(streams_read(s, "s0", 1, 0, NULL, &err), GGL_OK);
    stream_log_end(l);
    streams_free(s);
}

/* A full log loses its first bytes, and never more than a quarter before the last ones. */
TEST(a_full_log) {
    stream_table *s = streams_new(NULL, 300);
    stream_log *l = begin(s, 0);
    static char piece[1000];
    ggl_error err;
    REQUIRE(l);
    for (uint64_t n = 0; n < 3 * STREAM_BYTES; n += sizeof piece) {
        stream_log_write(l, piece, sizeof piece);
        const uint64_t all = n + sizeof piece, keeps = STREAM_BYTES / 4 * 3 - sizeof piece;
        CHECK_INT(streams_read(s, "s0", 1, all < keeps ? 0 : all - keeps, NULL, &err), GGL_OK);
        CHECK(all <= STREAM_BYTES ||
              streams_read(s, "s0", 1, all - STREAM_BYTES - 1, NULL, &err) == GGL_LIMIT);
    }
    stream_log_end(l);
    streams_free(s);
}
