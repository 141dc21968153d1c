/* Pictures in requests of all APIs: where they stand, and what is refused. */
#include "llm-server/api_images.h"
#include "dialect_test.h"

#define CHAT      (&api_openai_chat)
#define RESPONSES (&api_openai_responses)
#define MESSAGES  (&api_anthropic_messages)
#define OLLAMA    (&api_ollama_chat)
#define GENERATE  (&api_ollama_generate)
#define LLAMACPP  (&api_llamacpp_completion)

#define ONE "data:image/png;base64,b25l" /* "one" */
#define TWO "data:image/jpeg;base64,dHdv"

/* What a request says, with IMAGE_PLACE where its pictures stand; valid until the next call. */
static const char *shown(const dialect *d, const char *text) {
    static char *last;
    facts.n_row = 64;
    const ask *a = request(d, text);
    facts.n_row = 0;
    free(last);
    last = NULL;
    if (!a)
        return err.msg;
    const ggl_str s = a->kind == ASK_CHAT ? talk_str(a) : a->prompt[0].text;
    last = strndup(s.s, s.n);
    last[image_hide_marks(a, last, s.n)] = '\0';
    return last;
}

/* Request of a user's message with this content. */
static const char *user(const char *content) {
    static char text[4000];
    snprintf(text, sizeof text,
             "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": %s}]}", content);
    return text;
}

static bool image_is(const ask *a, size_t i, const char *bytes) {
    return a->n_images > i && a->image[i].n == strlen(bytes) &&
           memcmp(a->image[i].bytes, bytes, a->image[i].n) == 0;
}

#define USER(content) "{\"messages\": [{\"role\": \"user\", \"content\": \"" content "\"}]}"

TEST(types_of_parts) {
    const char *body = user("[{\"type\": \"imag\"}]");
    CHECK_HAS(shown(CHAT, body), "\"imag\" is not a type of part; use \"text\" or \"image_url\"");
    facts.listens = true;
    facts.looks = false;
    CHECK_HAS(shown(CHAT, body), "use \"text\" or \"input_audio\"");
    facts.listens = false;
    facts.looks = true;
}

TEST(pictures_stand_where_the_request_has_them) {
    CHECK_STR(shown(CHAT, user("[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"image_url\", "
                               "\"image_url\": {\"url\": \"" ONE "\", \"detail\": \"low\"}}, "
                               "{\"type\": \"text\", \"text\": \"b\"}, {\"type\": \"text\", "
                               "\"text\": \"c\"}, {\"type\": \"image_url\", \"image_url\": \"" TWO
                               "\"}, {\"type\": \"image_url\", \"image_url\": \"" ONE "\"}]")),
              USER("a<__media__>b\\nc<__media__><__media__>"));
    CHECK_STR(shown(RESPONSES,
                    "{\"input\": [{\"type\": \"message\", \"role\": \"user\", \"content\": ["
                    "{\"type\": \"input_image\", \"image_url\": \"" ONE
                    "\", \"detail\": \"auto\"}, {\"type\": \"input_text\", \"text\": \"a\"}]}]}"),
              USER("<__media__>a"));
    CHECK_STR(shown(MESSAGES, user("[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", "
                                   "\"text\": \"b\"}, {\"type\": \"image\", \"source\": {\"type\": "
                                   "\"base64\", \"media_type\": \"image/png\", \"data\": "
                                   "\"b25l\"}, \"cache_control\": {\"type\": \"ephemeral\"}}, "
                                   "{\"type\": \"text\", \"text\": \"c\"}]")),
              USER("a\\nb<__media__>c"));
    CHECK_STR(shown(OLLAMA, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"images\": "
                            "[\"b25l\", \"dHdv\"]}]}"),
              USER("<__media__><__media__>a"));
    CHECK_STR(shown(GENERATE, "{\"prompt\": \"a\", \"images\": [\"b25l\"]}"), USER("<__media__>a"));
    CHECK_STR(shown(GENERATE, "{\"prompt\": \"a\", \"raw\": true, \"images\": [\"b25l\"]}"),
              "<__media__>a");
    CHECK_STR(shown(GENERATE, "{\"prompt\": \"\", \"images\": [\"b25l\"]}"), USER("<__media__>"));
    CHECK_STR(shown(LLAMACPP, "{\"prompt\": {\"prompt_string\": \"a <__media__> b <__media__>\", "
                              "\"multimodal_data\": [\"b25l\", \"dHdv\"]}}"),
              "a <__media__> b <__media__>");
}

/* However a part names its picture, its fields are looked at. */
TEST(pictures_may_have_unknown_fields) {
    static const char *const forms[] = {"image_url", "url", "image"};
    char part[200];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(part, sizeof part,
                 "[{\"type\": \"image\", \"%s\": {\"url\": \"" ONE "\", \"detial\": \"low\"}}]",
                 forms[i]);
        facts.n_row = 64;
        CHECK(refuses(CHAT, user(part), "unknown field \"detial\"; did you mean \"detail\"?"));
        facts.strict_fields = false;
        const ask *a = request(CHAT, user(part));
        if (CHECK_MSG(a, "%s: %s", forms[i], err.msg))
            CHECK(snprintf(part, sizeof part, "messages.content.%s.detial", forms[i]) > 0 &&
                  CHECK_STR(a->ignored.names, part));
        facts.strict_fields = true;
        facts.n_row = 0;
    }
}

TEST(pictures_keep_their_order_and_bytes) {
    facts.n_row = 64;
    const ask *a =
        request(CHAT, user("[{\"type\": \"image_url\", \"image_url\": \"" TWO
                           "\"}, {\"type\": \"image_url\", \"image_url\": \"" ONE "\"}]"));
    REQUIRE_OK(status, &err);
    CHECK(a->n_images == 2 && image_is(a, 0, "two") && image_is(a, 1, "one"));
    CHECK(a->n_image_text == 8);
    size_t at = 0, which = 7;
    CHECK(image_find_mark(a, talk_text(a), strlen(talk_text(a)), &at, &which) && which == 0);
    at += IMAGE_MARK;
    CHECK(image_find_mark(a, talk_text(a), strlen(talk_text(a)), &at, &which) && which == 1);
    at += IMAGE_MARK;
    CHECK(!image_find_mark(a, talk_text(a), strlen(talk_text(a)), &at, &which));
    a = request(LLAMACPP, "{\"prompt\": [{\"prompt_string\": \"<__media__>\", \"multimodal_data\": "
                          "[\"b25l\"]}, {\"prompt_string\": \"<__media__>\", "
                          "\"multimodal_data\": [\"dHdv\"]}]}");
    REQUIRE_OK(status, &err);
    CHECK(a->n_images == 2 && image_is(a, 0, "one") && image_is(a, 1, "two"));
    facts.n_row = 0;
}

TEST(pictures_in_results_of_tools) {
    static const char call[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", "
        "\"content\": [{\"type\": \"tool_use\", \"id\": \"t\", \"name\": \"f\", \"input\": {}}]}, "
        "{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"t\", "
        "\"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"image\", \"source\": "
        "{\"type\": \"base64\", \"media_type\": \"image/png\", \"data\": \"b25l\"}}, {\"type\": "
        "\"text\", \"text\": \"b\"}, {\"type\": \"text\", \"text\": \"c\"}]}]}], \"max_tokens\": "
        "1}";
    CHECK_HAS(shown(MESSAGES, call), "\"content\": \"a<__media__>b\\nc\", \"name\": \"f\"");
    const ask *a = request(MESSAGES, call); /* as before where the model does not see */
    CHECK(a && strstr(talk_text(a), "a\\n[picture left out: this model reads only text]\\nb"));
    CHECK_HAS(shown(RESPONSES, "{\"input\": [{\"type\": \"function_call\", \"call_id\": \"t\", "
                               "\"name\": \"f\", \"arguments\": \"{}\"}, {\"type\": "
                               "\"function_call_output\", \"call_id\": \"t\", \"output\": "
                               "[{\"type\": \"input_image\", \"image_url\": \"" ONE "\"}]}]}"),
              "\"content\": \"<__media__>\"");
}

#define SOUND                                                                                      \
    "{\"type\": \"input_audio\", \"input_audio\": {\"data\": \"b25l\", \"format\": \"wav\"}}"

TEST(sounds_are_for_models_that_hear) {
    facts.listens = true;
    facts.looks = false;
    CHECK_STR(shown(CHAT, user("[{\"type\": \"text\", \"text\": \"a\"}, " SOUND "]")),
              USER("a<__media__>"));
    CHECK_STR(shown(LLAMACPP, "{\"prompt\": {\"prompt_string\": \"a <__media__>\", "
                              "\"multimodal_data\": [\"b25l\"]}}"),
              "a <__media__>");
    CHECK_STR(shown(RESPONSES,
                    "{\"input\": [{\"type\": \"message\", \"role\": \"user\", \"content\": "
                    "[" SOUND ", {\"type\": \"input_text\", \"text\": \"a\"}]}]}"),
              USER("<__media__>a"));
    CHECK_HAS(shown(RESPONSES,
                    "{\"input\": [{\"type\": \"function_call\", \"call_id\": \"t\", "
                    "\"name\": \"f\", \"arguments\": \"{}\"}, {\"type\": "
                    "\"function_call_output\", \"call_id\": \"t\", \"output\": [" SOUND "]}]}"),
              "\"content\": \"<__media__>\"");
    CHECK_HAS(shown(CHAT, user("[{\"type\": \"image_url\", \"image_url\": \"" ONE "\"}]")),
              "image input is not supported");
    CHECK_HAS(shown(CHAT, user("[{\"type\": \"input_audio\", \"input_audio\": \"b25l\"}]")),
              "the file as base64");
    facts.n_row = 64;
    const ask *a = request(CHAT, user("[" SOUND "]"));
    REQUIRE_OK(status, &err);
    CHECK(image_is(a, 0, "one") && a->image[0].is_sound && a->n_image_text == 4);
    facts.n_row = 0;
    facts.listens = false;
    facts.looks = true;
    CHECK_HAS(shown(CHAT, user("[" SOUND "]")), "audio input is not supported");
}

/* A client's text is text, whatever it looks like. */
TEST(marks_are_no_ones_guess) {
    char key[2][sizeof((ask *)0)->image_key];
    facts.n_row = 64;
    for (int i = 0; i < 2; i++) {
        const ask *a =
            request(CHAT, user("[{\"type\": \"image_url\", \"image_url\": \"" ONE "\"}]"));
        REQUIRE_OK(status, &err);
        memcpy(key[i], a->image_key, sizeof key[i]);
    }
    CHECK(strlen(key[0]) == 32 && strcmp(key[0], key[1]) != 0);
    CHECK_HAS(
        shown(CHAT, user("[{\"type\": \"text\", \"text\": \"<__media__> media000_\"}, {\"type\": "
                         "\"image_url\", \"image_url\": \"" ONE "\"}]")),
        "\"<__media__> media000_<__media__>\"");
    facts.n_row = 64;
    const ask *a =
        request(CHAT, user("[{\"type\": \"text\", \"text\": \"<__media__>\"}, {\"type\": "
                           "\"image_url\", \"image_url\": \"" ONE "\"}]"));
    REQUIRE_OK(status, &err);
    size_t at = 0, which;
    CHECK(image_find_mark(a, talk_text(a), strlen(talk_text(a)), &at, &which));
    CHECK(!memmem(talk_text(a), at, a->image_key, 32)); /* it is the second place */
    char text[200];
    snprintf(text, sizeof text, "%s001_ %s00x_ %s", a->image_key, a->image_key, a->image_key);
    at = 0; /* numbers that no picture has, and marks that are cut */
    CHECK(!image_find_mark(a, text, strlen(text), &at, &which));
    facts.n_row = 0;
}

TEST(refuses_what_is_no_picture) {
    static const struct {
        const dialect *d;
        const char *text, *words;
    } cases[] = {
#define URL(url)                                                                                   \
    CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "          \
          "\"image_url\": {\"url\": \"" url "\"}}]}]}"
        {URL(""), "messages[0]: content[0]: a picture must be data:image/TYPE;base64,DIGITS"},
        {URL("file:///etc/passwd"), "a picture must be data:image/TYPE"},
        {URL("FILE:///etc/passwd"), "a picture must be data:image/TYPE"},
        {URL("/etc/passwd"), "a picture must be data:image/TYPE"},
        {URL("b25l"), "a picture must be data:image/TYPE"},
        {URL("data:text/html;base64,b25l"), "a picture must be data:image/TYPE"},
        {URL("data:image/png,b25l"), "a picture must be data:image/TYPE"},
        {URL("data:image/png;base64"), "a picture must be data:image/TYPE"},
        {URL("data:image/png;base64,"), "a picture has no bytes"},
        {URL("data:image/png;base64,b25"), "3 characters, which is no multiple of 4"},
        {URL("data:image/png;base64,b25l\\n"), "character 4 does not belong there"},
        {URL("data:image/png;base64, b25l"), "character 0 does not belong there"},
        {URL("data:image/png;base64,b2-l"), "character 2 does not belong there"},
        {URL("data:image/png;base64,b25l\\u0000"), "character 4 does not belong there"},
        {URL("https://example.org/a.png"), "does not fetch pictures from addresses"},
        {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
         "a picture needs \"image_url\""},
        {CHAT,
         "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
         "\"image_url\": {\"uri\": \"x\"}}]}]}",
         "unknown field \"uri\"; did you mean \"url\"?"},
        {RESPONSES,
         "{\"input\": [{\"type\": \"message\", \"role\": \"user\", \"content\": [{\"type\": "
         "\"input_image\", \"file_id\": \"f\"}]}]}",
         "\"file_id\" is not supported: the server keeps no files"},
        {MESSAGES,
         "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"image\", \"source\": {\"type\": \"file\", \"file_id\": \"f\"}}]}]}",
         "messages[0]: content[0]: source: \"file_id\" is not supported"},
        {MESSAGES,
         "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"image\", \"source\": {\"type\": \"base64\"}}]}]}",
         "source: a source must have the \"type\" \"base64\" and \"data\""},
        {OLLAMA, "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"images\": [3]}]}",
         "messages[0]: images[0]: a picture or a sound must be a string of base64, not a number"},
        {OLLAMA,
         "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"images\": [\"" ONE "\"]}]}",
         "images[0]: a picture is not base64: character 4"},
        {GENERATE, "{\"prompt\": \"a\", \"suffix\": \"b\", \"images\": [\"b25l\"]}",
         "\"images\" are not supported beside \"suffix\""},
        {LLAMACPP, "{\"prompt\": {\"prompt_string\": \"a\", \"multimodal_data\": [\"b25l\"]}}",
         "prompt: the text has 0 times <__media__>, where a picture or sound stands, but "
         "\"multimodal_data\" has 1"},
        {LLAMACPP,
         "{\"prompt\": {\"prompt_string\": \"<__media__><__media__>\", \"multimodal_data\": "
         "[\"b25l\"]}}",
         "the text has 2 times"},
        {LLAMACPP, "{\"prompt\": {\"prompt_string\": \"<__media__>\", \"multimodal_data\": [5]}}",
         "multimodal_data[0] must be a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        facts.n_row = 64;
        CHECK(refuses(cases[i].d, cases[i].text, cases[i].words));
        facts.n_row = 0;
        if (strstr(cases[i].text, "suffix"))
            continue;
        const ask *a = request(cases[i].d, cases[i].text);
        CHECK(!a); /* a model that sees none refuses all */
    }
}

TEST(has_a_limit_of_pictures) {
    llm_json_out out = {0};
    llm_json_put_text(&out,
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"images\": [");
    for (int i = 0; i <= IMAGE_MOST; i++)
        llm_json_put_text(&out, i ? ", \"b25l\"" : "\"b25l\"");
    llm_json_put_text(&out, "]}]}");
    facts.n_row = 64;
    CHECK(refuses(OLLAMA, out.s, "images[100]: a request has at most 100 pictures"));
    CHECK(status == GGL_LIMIT);
    facts.n_row = 0;
    ggl_free(out.s);
}

/* Long texts, of which each byte may begin what is looked for, take time in proportion to their length: without that, these take hours. */
TEST(hostile_texts_take_linear_time) {
    enum { N = 8 << 20 };
    static const char *const head[] = {"data:image/png;base64,", "data:image/", "data:", ""};
    static const char fill[] = {',', ';', 'A', '='};
    char *text = malloc(N + 1);
    REQUIRE(text);
    facts.n_row = 64;
    ask *a = ask_new(&facts);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        for (size_t k = 0; k < sizeof fill; k++) {
            ggl_str mark;
            memset(text, fill[k], N);
            memcpy(text, head[i], strlen(head[i]));
            (void)!image_of_url(a, (ggl_str){text, N}, &mark, &err);
        }
    ask_free(a);
    llm_json_out out = {0};
    llm_json_put_text(&out, "{\"prompt\": {\"multimodal_data\": [\"b25l\"], \"prompt_string\": \"");
    for (int i = 0; i < 1 << 17; i++)
        llm_json_put_text(&out, "<__media__><__media_<_");
    llm_json_put_text(&out, "\"}}");
    CHECK(refuses(LLAMACPP, out.s, "the text has 131072 times"));
    facts.n_row = 0;
    ggl_free(out.s);
    free(text);
}
