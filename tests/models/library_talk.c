/* Conversations with pictures: what they hold, and what a cancel ends. */
#include "context.h"
#include "library_test.h"
#include "noticing.h"

/* Writes a part that shows picture number k, and returns its length. */
static int put_picture(char *to, int k) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char file[64] = "P6 4 4 255\n"; /* and 48 bytes of colours */
    int n = 0;
    for (int i = 11; i < 59; i++)
        file[i] = (unsigned char)(5 * i + 40 * k);
    n += sprintf(to, "{\"type\": \"image\", \"image\": \"data:image/ppm;base64,");
    for (int i = 0; i < 60; i += 3) { /* the last byte is not read */
        const unsigned v = (unsigned)file[i] << 16 | (unsigned)file[i + 1] << 8 | file[i + 2];
        for (int d = 18; d >= 0; d -= 6)
            to[n++] = digit[v >> d & 63];
    }
    return n + sprintf(to + n, "\"}");
}

/* A conversation of the pictures whose numbers are in `which` ("011"), and then of `last`, a part. */
static const char *talk_of(const char *which, const char *last) {
    static char s[8192];
    int n = sprintf(s, "{\"messages\": [{\"role\": \"user\", \"content\": [");
    for (; *which; which++) {
        n += put_picture(s + n, *which - '0');
        n += sprintf(s + n, ", ");
    }
    sprintf(s + n, "%s]}]}", last);
    return s;
}

static const char question[] = "{\"type\": \"text\", \"text\": \"What is it?\"}";

/* Shows a conversation; mark: that of its first picture, if it has one. */
static void show(llm_context *c, const char *talk, char mark[LLM_IMAGE_MARK]) {
    char *seen = NULL;
    size_t n;
    ggl_error err;
    REQUIRE_OK(llm_chat_see(c, talk, &seen, &n, &err), &err);
    const char *at = strstr(seen, "<__media:");
    if (mark && CHECK(at))
        snprintf(mark, LLM_IMAGE_MARK, "%s", at);
    ggl_free(seen);
}

/* Opens the shapes so that what nobody holds is gone at once. */
static llm_context *open_shapes(void) {
    ggl_error err;
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    if (!c)
        return NULL;
    llm_media_free(c->eye->media); /* the session's, which runs nothing here */
    if (!CHECK_OK(llm_media_new(&c->eye->media, 0, &err), &err))
        abort();
    return c;
}

static bool is_there(llm_context *c, const char *mark) {
    int32_t *id = NULL;
    size_t n;
    ggl_error err;
    const ggl_status st = llm_encode(c, mark, strlen(mark), LLM_READ_SPECIAL, &id, &n, &err);
    CHECK(st == GGL_OK || st == GGL_USAGE);
    ggl_free(id);
    return st == GGL_OK;
}

/* What a conversation names is held, however its JSON writes the mark, and what it does not is let go. */
TEST(named) {
    char first[LLM_IMAGE_MARK], second[LLM_IMAGE_MARK], last[200];
    llm_context *c = open_shapes();
    REQUIRE(c);
    show(c, talk_of("0", question), first);
    CHECK(is_there(c, first));
    snprintf(last, sizeof last, "{\"type\": \"text\", \"text\": \"\\u003c%s\"}", first + 1);
    show(c, talk_of("1", last), second);
    CHECK(strcmp(first, second) != 0);
    CHECK(is_there(c, first) && is_there(c, second));
    snprintf(last, sizeof last, "{\"type\": \"text\", \"text\": \"%s\"}", second);
    show(c, talk_of("", last), NULL);
    CHECK(!is_there(c, first) && is_there(c, second));
    show(c, talk_of("", question), NULL);
    CHECK(!is_there(c, second) && c->n_shown == 0);
    llm_close(c);
}

/* Equal pictures are held once, of one conversation and of one after the other. */
TEST(equal) {
    char mark[LLM_IMAGE_MARK];
    llm_context *c = open_shapes();
    REQUIRE(c);
    show(c, talk_of("0102010", question), mark);
    CHECK_INT(c->n_shown, 3);
    show(c, talk_of("00", question), mark);
    CHECK_INT(c->n_shown, 1);
    CHECK(is_there(c, mark));
    show(c, talk_of("", question), NULL);
    CHECK(!is_there(c, mark));
    llm_close(c);
}

/* A call that fails holds what was held, and nothing else. */
TEST(failures_let_go_of_nothing) {
    char first[LLM_IMAGE_MARK], second[LLM_IMAGE_MARK], *seen;
    size_t n;
    ggl_error err;
    llm_context *c = open_shapes();
    REQUIRE(c);
    show(c, talk_of("1", question), second);
    show(c, talk_of("0", question), first);
    CHECK_INT(llm_chat_see(c, "{", &seen, &n, &err), GGL_FORMAT);
    CHECK(is_there(c, first));
    CHECK_INT(llm_chat_see(c, talk_of("101", "{\"type\": \"txet\"}"), &seen, &n, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "content[3]");
    CHECK(is_there(c, first) && !is_there(c, second));
    CHECK_INT(c->n_shown, 1);
    show(c, talk_of("", question), NULL);
    CHECK(!is_there(c, first));
    llm_close(c);
}

/* Cancels a context when it is asked the n-th time whether it is cancelled. */
typedef struct stopper {
    llm_context *c;
    int n;
} stopper;

static bool stop(void *ctx) {
    stopper *s = ctx;
    if (--s->n == 0)
        llm_cancel(s->c);
    return false;
}

static ggl_status look_again(llm_context *c, ggl_error *err) { /* the eye has seen these */
    char *seen;
    size_t n;
    return llm_chat_see(c, talk_of("000", question), &seen, &n, err);
}

TEST(cancelled) {
    ggl_error err;
    llm_context *c = open_shapes();
    REQUIRE(c);
    show(c, talk_of("0", question), NULL);
    stopper s = {.c = c, .n = 1};
    c->asks = stop;
    c->asks_ctx = &s;
    CHECK_INT(look_again(c, &err), GGL_CANCELLED);
    CHECK_HAS(err.msg, "stopped by the caller");
    CHECK_INT(c->n_shown, 1);
    llm_close(c);
}
