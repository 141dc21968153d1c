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

static bool has(stream_table *s, uint64_t owner, int k) {
    ggl_error err;
    char id[32];
    snprintf(id, sizeof id, "s%d", k);
    return streams_read(s, id, owner, 0, NULL, &err) == GGL_OK;
}

static stream_log *begin_of(stream_table *s, uint64_t owner, int k) {
    char id[32];
    snprintf(id, sizeof id, "s%d", k);
    return streams_begin(s, id, owner, "text/event-stream");
}

static bool is_there(stream_table *s, int k) {
    return has(s, 1, k);
}

static stream_log *begin(stream_table *s, int k) {
    return begin_of(s, 1, k);
}

/* A stream of n bytes that has ended. */
static void put(stream_table *s, uint64_t owner, int k, size_t n) {
    static const char bytes[STREAM_BYTES];
    stream_log *l = begin_of(s, owner, k);
    CHECK(l);
    stream_log_write(l, bytes, n);
    stream_log_end(l);
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

/* A client's streams take the place of its own, or of those of a client that has more. */
TEST(clients_with_few_streams_keep_them) {
    stream_table *s = streams_new(NULL, 300);
    REQUIRE(s);
    put(s, 7, 0, 1);
    put(s, 8, 0, 1);
    for (int k = 0; k < 2 * STREAMS_KEPT; k++)
        put(s, 1, k, 1);
    CHECK(has(s, 7, 0) && has(s, 8, 0));
    put(s, 7, 1, 1); /* the other has more */
    CHECK(has(s, 7, 0) && has(s, 7, 1) && has(s, 8, 0) && !has(s, 1, STREAMS_KEPT + 2));
    CHECK(has(s, 1, STREAMS_KEPT + 3) && has(s, 1, 2 * STREAMS_KEPT - 1));
    streams_free(s);
    /* the same for memory: one long stream is more than many short ones */
    memory *m = memory_new((size_t)64 << 20);
    s = streams_new(m, 300);
    REQUIRE(s && m);
    for (int k = 0; k < 3; k++)
        put(s, 7, k, 100000);
    for (int k = 0; k < 50; k++)
        put(s, 1, k, 400000);
    CHECK(has(s, 7, 0) && has(s, 7, 1) && has(s, 7, 2));
    CHECK(!has(s, 1, 0) && has(s, 1, 49));
    streams_free(s);
    CHECK_INT(memory_held(m, MEMORY_STREAMS), 0);
    memory_free(m);
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
