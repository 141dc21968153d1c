/* The built-in models that see and hear, opened by name. */
#include "library_test.h"
#include "llm/steps.h"

static const char shapes[] = EXAMPLES "/shapes.bmp", words[] = EXAMPLES "/words.wav";

/* builtin:shapes comes with its eye. */
TEST(shapes) {
    ggl_error err;
    char mark[LLM_IMAGE_MARK], asked[LLM_IMAGE_MARK + 64];
    written said = {.n = 0};
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c && llm_context_facts(c)->sees);
    REQUIRE_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    snprintf(asked, sizeof asked, "%sWhat is in the picture?", mark);
    const llm_message m = {.role = "user", .content = asked};
    const llm_generate_params p = greedy(40);
    REQUIRE_OK(llm_reply(c, &m, 1, &p, take, &said, &err), &err);
    CHECK_STR(said.s, "A red circle to the left of a blue triangle.");
    /* the picture's rows are tokens without a text */
    size_t n, n_text, n_rows = 0;
    char *text;
    const int32_t *id = llm_sequence(c, &n);
    for (size_t i = 0; i < n; i++)
        n_rows += id[i] < 0;
    REQUIRE_OK(llm_decode(c, id, n, 0, &text, &n_text, &err), &err);
    CHECK(n_rows > 0 && strstr(text, "What is in the picture?"));
    ggl_free(text);
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

/* A conversation with the shapes in OpenAI's form, after `before`; the caller frees it. */
static char *talk_of_shapes(const char *before, const char *question) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char b[3];
    FILE *f = fopen(shapes, "rb");
    if (!CHECK(f))
        return NULL;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *s = malloc((size_t)n * 4 / 3 + strlen(before) + strlen(question) + 300), *at = s;
    at += sprintf(at,
                  "{\"messages\": [{\"role\": \"user\", \"content\": [%s{\"type\": \"image_url\", "
                  "\"image_url\": {\"url\": \"data:image/bmp;base64,",
                  before);
    for (size_t k; (k = fread(b, 1, 3, f)) > 0; at += 4) {
        const unsigned v = (unsigned)b[0] << 16 | (k > 1 ? b[1] : 0u) << 8 | (k > 2 ? b[2] : 0u);
        for (int i = 0; i < 4; i++)
            at[i] = (size_t)i <= k ? digit[v >> (18 - 6 * i) & 63] : '=';
    }
    fclose(f);
    sprintf(at, "\"}}, {\"type\": \"text\", \"text\": \"%s\"}]}]}", question);
    return s;
}

/* Parts of contents in OpenAI's form. */
TEST(parts) {
    ggl_error err;
    char *message = NULL, *seen = NULL, *again = NULL, *prompt = NULL, mark[LLM_IMAGE_MARK],
         want[300];
    size_t n;
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    const llm_generate_params p = greedy(40);
    char *talk = talk_of_shapes("", "What is in the picture?");
    REQUIRE(c && talk);
    REQUIRE_OK(llm_chat_answer(c, talk, &p, NULL, NULL, &message, &n, &err), &err);
    CHECK_HAS(message, "\"A red circle to the left of a blue triangle.\"");
    REQUIRE_OK(llm_chat_see(c, talk, &seen, &n, &err), &err);
    REQUIRE_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    snprintf(want, sizeof want,
             "{\"messages\": [\n  {\"role\": \"user\", \"content\": \"%sWhat is in the "
             "picture?\"}\n ]}\n",
             mark);
    CHECK_STR(seen, want);
    CHECK_INT(strlen(seen), n);
    REQUIRE_OK(llm_chat_see(c, seen, &again, &n, &err), &err); /* texts stay as they are */
    CHECK_STR(again, want);
    REQUIRE_OK(llm_chat_format(c, again, true, &prompt, &n, NULL, &err), &err);
    CHECK_HAS(prompt, mark);
    ggl_free(message);
    REQUIRE_OK(llm_chat_answer(c, again, &p, NULL, NULL, &message, &n, &err), &err);
    CHECK_HAS(message, "\"A red circle to the left of a blue triangle.\"");
    ggl_free(prompt);
    ggl_free(again);
    ggl_free(seen);
    ggl_free(message);
    free(talk);
    llm_close(c);
}

/* A part that stands alone as a text is the mark of llm_see, without a line break after it. */
TEST(marks_as_parts) {
    ggl_error err;
    char *seen, mark[LLM_IMAGE_MARK], talk[600], want[300];
    size_t n;
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    REQUIRE_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err);
    snprintf(talk, sizeof talk,
             "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
             "\"a\"}, {\"type\": "
             "\"text\", \"text\": \"b\"}, {\"type\": \"text\", \"text\": \"%s\"}, {\"type\": "
             "\"text\", \"text\": \"c\"}]}]}",
             mark);
    REQUIRE_OK(llm_chat_see(c, talk, &seen, &n, &err), &err);
    snprintf(want, sizeof want,
             "{\"messages\": [\n  {\"role\": \"user\", \"content\": \"a\\nb%sc\"}\n ]}\n", mark);
    CHECK_STR(seen, want);
    ggl_free(seen);
    llm_close(c);
}

TEST(wrong_parts) {
    static const struct {
        const char *part, *said;
        ggl_status st;
    } wrong[] = {
        {"{\"type\": \"image_url\"}", "a picture needs \"image_url\"", GGL_USAGE},
        {"{\"type\": \"image_url\", \"image_url\": 7}", "a picture needs \"image_url\"", GGL_USAGE},
        {"{\"type\": \"input_image\", \"image_url\": \"https://example.com/a.png\"}",
         "nothing is downloaded, but it is 'https://example.com/a.png'", GGL_USAGE},
        {"{\"type\": \"image_url\", \"image_url\": \"data:image/png;base64,\"}",
         "a picture has no bytes", GGL_USAGE},
        {"{\"type\": \"image_url\", \"image_url\": \"data:image/png;base64,AAA\"}",
         "a picture is not base64: it has 3 characters", GGL_USAGE},
        {"{\"type\": \"image_url\", \"image_url\": \"data:image/png;base64,A!AA\"}",
         "character 1 does not belong there", GGL_USAGE},
        {"{\"type\": \"image_url\", \"image_url\": \"data:image/png;base64,AAAA\"}", "the picture",
         GGL_UNSUPPORTED},
        {"{\"type\": \"input_audio\", \"input_audio\": {\"data\": \"AAAA\"}}",
         "\"input_audio\" is not supported: the model reads only text, unless it is opened with an "
         "ear",
         GGL_UNSUPPORTED},
        {"{\"type\": \"file\"}", "\"file\" is not supported", GGL_UNSUPPORTED},
    };
    llm_context *c = open_with("builtin:shapes", (llm_open_params){0});
    REQUIRE(c);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char talk[400], *out;
        size_t n;
        ggl_error err;
        snprintf(talk, sizeof talk,
                 "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
                 "\"text\": \"a\"}, %s]}]}",
                 wrong[i].part);
        CHECK_INT(llm_chat_see(c, talk, &out, &n, &err), wrong[i].st);
        CHECK_HAS(err.msg, "messages[0]: content[1]: ");
        CHECK_HAS(err.msg, wrong[i].said);
        CHECK(!out && n == 0);
        CHECK_INT(llm_chat_answer(c, talk, NULL, NULL, NULL, &out, &n, &err), wrong[i].st);
        CHECK_HAS(err.msg, wrong[i].said);
    }
    char *out;
    size_t n;
    ggl_error err;
    CHECK_INT(llm_chat_see(c, NULL, &out, &n, &err), GGL_USAGE);
    CHECK_INT(llm_chat_see(c, "{", &out, &n, &err), GGL_FORMAT);
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
    CHECK(c && !llm_context_facts(c)->sees);
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
    llm_transcribe_params p = llm_transcribe_default();
    p.each = keep;
    p.user = &said;
    REQUIRE_OK(llm_transcribe(c, words, &p, &err), &err);
    CHECK_STR(said.s, " seven blue lamp stop;");
    llm_close(c);
}

/* Bytes need no name, and what has neither bytes nor a path is refused. */
TEST(words_without_a_name) {
    ggl_error err;
    static unsigned char bytes[1 << 18];
    written said = {.n = 0};
    llm_context *c;
    const llm_open_params op = {.size = sizeof op, .n_parallel = 5, .n_threads = 2};
    REQUIRE_OK(llm_open(&c, "builtin:words", &op, &err), &err);
    FILE *f = fopen(words, "rb");
    REQUIRE(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    REQUIRE(n > 0 && n < sizeof bytes);
    llm_transcribe_params p = llm_transcribe_default();
    p.data = bytes;
    p.n_data = n;
    p.each = keep;
    p.user = &said;
    REQUIRE_OK(llm_transcribe(c, NULL, &p, &err), &err);
    CHECK_STR(said.s, " seven blue lamp stop;");
    p.offset = 100;
    CHECK_INT(llm_transcribe(c, NULL, &p, &err), GGL_USAGE);
    CHECK_STR(err.msg, "the sound: the sound ends before 100 seconds");
    CHECK_INT(llm_hear(c, NULL, &p, &err), GGL_USAGE);
    CHECK_STR(err.msg, "the sound: the sound ends before 100 seconds");
    p.data = NULL;
    CHECK_INT(llm_transcribe(c, NULL, &p, &err), GGL_USAGE);
    CHECK_STR(err.msg, "a sound needs a path or data");
    CHECK_INT(llm_hear(c, NULL, NULL, &err), GGL_USAGE);
    llm_close(c);
}
