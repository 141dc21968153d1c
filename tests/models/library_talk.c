/* Conversations with pictures: what they hold, and what a cancel ends. */
#include "context.h"
#include "library_test.h"
#include "llm/steps.h"
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

static bool cancel(void *user, size_t done, size_t total) {
    (void)done, (void)total;
    llm_cancel(user);
    return true;
}

static ggl_status look(llm_context *c, ggl_error *err) {
    char mark[LLM_IMAGE_MARK];
    return llm_see(c, &(llm_image){.path = EXAMPLES "/shapes.bmp"}, mark, err);
}

static ggl_status look_at_rows(llm_context *c, ggl_error *err) {
    float *row;
    size_t n, n_row;
    return llm_image_rows(c, &(llm_image){.path = EXAMPLES "/shapes.bmp"}, &row, &n, &n_row, err);
}

static ggl_status write_own(llm_context *c, ggl_error *err) {
    int32_t *id;
    return llm_own_text(c, 32, 500, cancel, c, &id, err);
}

/* With a text of its own, which llm_own_text would write. */
static ggl_status collect(llm_context *c, ggl_error *err) {
    llm_imatrix *m = NULL;
    const llm_imatrix_params p = {
        .size = sizeof p, .n_window = 32, .n_directions = -1, .progress = cancel, .user = c};
    ggl_status st = llm_imatrix_begin(&m, err);
    if (st == GGL_OK)
        st = llm_imatrix_run(m, c, NULL, 0, &p, NULL, err);
    llm_imatrix_end(m);
    return st;
}

static ggl_status verify(llm_context *c, ggl_error *err) {
    const llm_verify_params p = {.size = sizeof p, .progress = cancel, .user = c};
    llm_verify_result r = {.size = sizeof r};
    return llm_verify(c, &p, &r, err);
}

static const struct {
    ggl_status (*call)(llm_context *c, ggl_error *err);
    const char *name;
    int n; /* the stopper's; 0: the call cancels by itself */
} calls[] = {{look, "llm_see", 1},
             {look_at_rows, "llm_image_rows", 1},
             {look_again, "llm_chat_see", 1},
             {write_own, "llm_own_text", 0},
             {collect, "llm_imatrix_run", 0},
             {verify, "llm_verify", 0}};

/* Makes a call that is cancelled. */
static void cancel_call(llm_context *c, size_t k) {
    ggl_error err;
    stopper s = {.c = c, .n = calls[k].n};
    c->asks = stop;
    c->asks_ctx = &s;
    if (!CHECK_INT(calls[k].call(c, &err), GGL_CANCELLED))
        printf("%s\n", calls[k].name);
    c->asks = NULL;
}

/* A cancel that ends a call does not end what was begun before, too. */
TEST(cancelled_beside) {
    ggl_error err;
    const char *piece;
    size_t n, n_id;
    int32_t *id = NULL;
    const llm_generate_params p = greedy(40);
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    show(c, talk_of("0", question), NULL);
    REQUIRE_OK(llm_encode(c, "What is it?", 11, LLM_ADD_SPECIAL, &id, &n_id, &err), &err);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        REQUIRE_OK(llm_begin(c, id, n_id, &p, &err), &err);
        cancel_call(c, k);
        CHECK_OK(llm_next(c, &piece, &n, &err), &err);
        llm_cancel(c); /* of what was begun: it is remembered */
        cancel_call(c, k);
        CHECK_INT(llm_next(c, &piece, &n, &err), GGL_CANCELLED);
        llm_job job = {.id = id, .n = n_id, .params = &p};
        REQUIRE_OK(llm_jobs_add(c, &job, &err), &err);
        cancel_call(c, k);
        CHECK_OK(llm_jobs_step(c, &n, &err), &err);
        llm_jobs_end(c, &job);
    }
    ggl_free(id);
    llm_close(c);
}
