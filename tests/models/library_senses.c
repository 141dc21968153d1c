/* The built-in models that see and hear, opened by name. */
#include "library_test.h"

static const char shapes[] = EXAMPLES "/shapes.bmp", words[] = EXAMPLES "/words.wav";

/* builtin:shapes comes with its eye. */
TEST(shapes) {
    ggl_error err;
    char mark[LLM_IMAGE_MARK], asked[LLM_IMAGE_MARK + 64];
    written said = {.n = 0};
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c && llm_context_sees(c));
    REQUIRE_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    snprintf(asked, sizeof asked, "%sWhat is in the picture?", mark);
    const llm_message m = {.role = "user", .content = asked};
    const llm_generate_params p = greedy(40);
    REQUIRE_OK(llm_reply(c, &m, 1, &p, take, &said, &err), &err);
    CHECK_STR(said.s, "A red circle to the left of a blue triangle.");
    llm_close(c);
}

/* Two pictures in one text are more than it has learned to see, and its file says so. */
TEST(two_pictures) {
    ggl_error err;
    char mark[LLM_IMAGE_MARK], asked[2 * LLM_IMAGE_MARK + 64];
    written said = {.n = 0};
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    REQUIRE_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    snprintf(asked, sizeof asked, "%s%sWhat is in the pictures?", mark, mark);
    const llm_message m = {.role = "user", .content = asked};
    const llm_generate_params p = greedy(40);
    CHECK_INT(llm_reply(c, &m, 1, &p, take, &said, &err), GGL_LIMIT);
    CHECK_STR(err.msg, "the model takes 1 picture at a time, but the text has 2");
    llm_close(c);
}

/* A cancel ends a call that looks, and none after it. */
TEST(cancelled) {
    ggl_error err;
    char mark[LLM_IMAGE_MARK];
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    llm_cancel(c);
    CHECK_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    llm_close(c);
}

/* A cancel of what was begun is none of a call that looks, however often, and has its effect when that goes on. */
TEST(cancelled_before) {
    static const char text[] = "What is in the picture?";
    ggl_error err;
    char mark[LLM_IMAGE_MARK];
    const char *piece;
    size_t n, n_id;
    int32_t *id = NULL;
    const llm_generate_params p = greedy(40);
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    REQUIRE_OK(llm_encode(c, text, strlen(text), LLM_ADD_SPECIAL, &id, &n_id, &err), &err);
    REQUIRE_OK(llm_begin(c, id, n_id, &p, &err), &err);
    llm_cancel(c);
    for (int i = 0; i < 2; i++)
        CHECK_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    CHECK_INT(llm_next(c, &piece, &n, &err), GGL_CANCELLED);
    llm_job job = {.id = id, .n = n_id, .params = &p};
    REQUIRE_OK(llm_jobs_add(c, &job, &err), &err);
    llm_cancel(c);
    for (int i = 0; i < 2; i++)
        CHECK_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    CHECK_INT(llm_jobs_step(c, &n, &err), GGL_CANCELLED);
    CHECK_INT(job.finish, LLM_FINISH_CANCELLED);
    /* what was abandoned is not ended a second time */
    REQUIRE_OK(llm_begin(c, id, n_id, &p, &err), &err);
    llm_cancel(c);
    CHECK_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    REQUIRE_OK(llm_begin(c, id, n_id, &p, &err), &err);
    CHECK_OK(llm_next(c, &piece, &n, &err), &err);
    llm_close(c);
    ggl_free(id);
}

typedef struct parts {
    size_t done;
    int n, most;
} parts;

/* Counts the sessions whose weights are prepared: each begins at 0. */
static bool count(void *user, size_t done, size_t total) {
    parts *p = user;
    (void)total;
    p->n += p->n == 0 || done < p->done;
    p->done = done;
    return p->n <= p->most;
}

/* The eye's weights are prepared like the model's, and that can be stopped. */
TEST(progress) {
    ggl_error err;
    llm_context *c;
    parts p = {.most = 9};
    llm_open_params op = {.size = sizeof op, .progress = count, .user = &p};
    REQUIRE_OK(llm_open(&c, "builtin:shapes", &op, &err), &err);
    CHECK(
        p.n !=
        1); /* those of the eye's stages, too; 0: this processor reads weights as they are in the file */
    llm_close(c);
    if (p.n == 0)
        return;
    p = (parts){.most = 1};
    CHECK_INT(llm_open(&c, "builtin:shapes", &op, &err), GGL_CANCELLED);
    CHECK(!c);
}

/* The text models that see nothing have no eye. */
TEST(others) {
    llm_context *c = open_with("builtin:chat", (llm_open_params){0});
    CHECK(c && !llm_context_sees(c));
    llm_close(c);
}

static bool keep(void *user, const llm_speech *piece) {
    written *t = user;
    return take(t, piece->text, piece->n) && take(t, ";", 1);
}

TEST(words) {
    ggl_error err;
    written said = {.n = 0};
    llm_context *c;
    const llm_open_params op = {.size = sizeof op, .n_parallel = 5, .n_threads = 2};
    REQUIRE_OK(llm_open(&c, "builtin:words", &op, &err), &err);
    const llm_transcribe_params p = {.size = sizeof p, .each = keep, .user = &said};
    REQUIRE_OK(llm_transcribe(c, words, &p, &err), &err);
    CHECK_STR(said.s, " seven blue lamp stop;");
    llm_close(c);
}
