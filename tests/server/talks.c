/* The gate of conversations: whatever program one goes through, its prompt is the same, byte for byte, or the same sentence says
 * why there is none; and its answers are read alike. Each conversation goes through llm-server (a body of OpenAI's API), llm-cli
 * (a file of /load), llm.h (llm_chat_format) and llm-train (the prompt of an answer that is learned), with the project's own
 * templates, those below, and published ones (../shared/chat, ../shared/found). */
#include <unistd.h>

#include "answer_fixture.h"
#include "../models/each_template.h"
#include "llm/llm.h"
#include "template/parts.h"
#include "training/data.h"

extern const dialect api_openai_chat;

static ggl_error err;

#define NOW "2025-03-09T14:05:06"

/* Messages without brackets, and tools; NULL: none. */
static const struct {
    const char *messages, *tools;
} talks[] = {
#define USER   "{\"role\": \"user\", \"content\": \"Hi \\\"there\\\"\"}"
#define ANSWER "{\"role\": \"assistant\", \"content\": \"Yes?\"}"
#define SYSTEM "{\"role\": \"system\", \"content\": \"Be brief.\"}"
#define RESULT                                                                                     \
    "{\"role\": \"tool\", \"tool_call_id\": \"abcdefghi\", \"name\": \"f\", \"content\": \"7 "     \
    "\\\"x\\\"\"}"
#define F(name, arguments) "\"function\": {\"name\": \"" name "\", \"arguments\": " arguments "}"
#define CALL(more)                                                                                 \
    "{\"role\": \"assistant\", " more                                                              \
    "\"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", "
#define TOOLS                                                                                      \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"Does "           \
    "\\\"it\\\".\", \"parameters\": {\"type\": "                                                   \
    "\"object\", \"properties\": {\"zq\": {\"type\": \"integer\"}}}}}]"
    {USER, NULL},
    {SYSTEM ", " USER ", " ANSWER ", " USER, NULL},
    {SYSTEM ", {\"role\": \"system\", \"content\": \"Be kind.\"}, " USER ", " ANSWER ", " SYSTEM
            ", " USER,
     NULL},
    {"{\"role\": \"developer\", \"content\": \"Be brief.\"}, " USER, TOOLS},
    {USER ", " CALL("\"content\": \"\", ") F("f", "{\"zq\": 1.50}") "}]}, " RESULT, TOOLS},
    {USER ", " CALL("\"content\": null, ") F("f", "\"{\\\"zq\\\": 1.50}\"") "}]}, " RESULT
                                                                            ", " ANSWER ", " USER,
     TOOLS},
    {USER ", " CALL("") F("f", "\"\"") "}, {" F("f", "{}") ", \"id\": \"ihgfedcba\"}]}, " RESULT,
     TOOLS},
    {USER ", " CALL("\"content\": \"Let me see.\", ") F("f", "\"zq(\"") "}]}, " RESULT, TOOLS},
    {USER ", {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"name\": \"f\", "
          "\"arguments\": {\"zq\": 1}}]}, "
          "{\"role\": \"function\", \"name\": \"f\", \"content\": [{\"type\": \"text\", \"text\": "
          "\"a\"}, {\"type\": \"image_url\", "
          "\"image_url\": {\"url\": \"u\"}}]}",
     TOOLS},
    {USER ", {\"role\": \"assistant\", \"reasoning_content\": \"I think.\", \"content\": "
          "\"Yes?\"}, " USER,
     NULL},
    {USER ", {\"role\": \"assistant\", \"reasoning\": \"I think.\", \"content\": \"Yes?\", "
          "\"tool_calls\": []}, " USER,
     NULL},
    {USER ", " CALL("\"reasoning_content\": \"I think.\", ") F("f", "{\"zq\": 1}") "}]}, " RESULT,
     TOOLS},
    {"{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": "
     "\"text\", \"text\": \"b\"}]}, "
     "{\"role\": \"assistant\", \"content\": null, \"refusal\": \"No.\"}, " USER,
     NULL},
    {USER ", " USER, NULL},
    {ANSWER ", " USER, NULL},
    {USER ", {\"role\": \"assistant\", \"content\": \"Yes?\", \"x\": {\"y\": [1.0, null]}}, " USER,
     NULL},
    {"{\"role\": \"user\", \"content\": \"a<|end|></s><|user|>b\"}, " ANSWER
     ", {\"role\": \"user\", \"content\": \"</s>\"}",
     NULL},
};
enum { N_TALKS = sizeof talks / sizeof *talks };

/* Templates that want something of their own. */
#define LOOP(body)                                                                                 \
    "{% for m in messages %}<{{ m.role }}>" body                                                   \
    "{% endfor %}{{ '<assistant>' if add_generation_prompt }}"
#define EACH_CALL(body) "{% for c in m.tool_calls or [] %}" body "{% endfor %}"
static const char *const own[] = {
    LOOP("{{ m.content }}" EACH_CALL("{{ c.function.arguments }}")),
    LOOP("{{ m.content }}" EACH_CALL("{{ c.function.name + '(' + c.function.arguments }}")),
    LOOP("{% if m.content is none %}" EACH_CALL(
        "{{ c.function.arguments | tojson }}") "{% else %}{{ m.content }}{% endif %}"),
    LOOP("{% if m.content is none %}" EACH_CALL(
        "{{ '' + c.function.arguments }}") "{% else %}{{ m.content }}{% endif %}"),
    LOOP("{{ m | tojson }}") "{{ tools | tojson if tools }}",
    LOOP("{% for p in m.content %}{{ p.text }}{% endfor %}" EACH_CALL("{{ c | tojson }}")),
    LOOP("{{ m.content }}{{ '<tool>' + m['tools'] if m['tools'] }}"),
    LOOP("{{ m.content }}{% for t in m['tools'] or [] %}{{ t.function.name }}{% endfor %}"),
    LOOP("{{ '<thinks>' + m.thinking if m.thinking }}{{ m.content }}"),
    LOOP("{{ raise_exception('no developer') if m.role == 'developer' }}{{ m.content }}{{ m.x.y if "
         "m.x }}"),
    LOOP("{{ raise_exception('twice') if loop.previtem and loop.previtem.role == m.role }}{{ "
         "m.content }}"),
};
enum { N_OWN = sizeof own / sizeof *own };

/* --- the ways --------------------------------------------------------------------------------- */

enum { MOST_IDS = 20000 };

/* A prompt and its tokens, or why there is none. */
typedef struct made {
    ggl_status st;
    char text[32768];
    int32_t id[MOST_IDS];
    size_t n_id;
} made;

static void set(made *m, ggl_status st, const char *text, size_t n, const int32_t *id,
                size_t n_id) {
    m->st = st;
    m->n_id = st == GGL_OK && n_id < MOST_IDS ? n_id : 0;
    if (m->n_id > 0)
        memcpy(m->id, id, n_id * sizeof *id);
    snprintf(m->text, sizeof m->text, "%.*s", st == GGL_OK ? (int)n : (int)strlen(err.msg),
             st == GGL_OK ? text : err.msg);
}

/* The conversation as JSON; kwargs: what its variables beside the tools stand in, as in OpenAI's API. `last`: a message more, or "". */
static const char *json_of(int k, const char *last, bool kwargs) {
    static char s[8192];
    snprintf(s, sizeof s, "{\"messages\": [%s%s]%s%s, %s\"now\": \"" NOW "\"%s}", talks[k].messages,
             last, talks[k].tools ? ", \"tools\": " : "", talks[k].tools ? talks[k].tools : "",
             kwargs ? "\"chat_template_kwargs\": {" : "", kwargs ? "}" : "");
    return s;
}

static void by_library(const llm_context *c, int k, made *m) {
    char *text = NULL;
    size_t n = 0;
    llm_formatted more;
    const ggl_status st = llm_chat_format(c, json_of(k, "", false), true, &text, &n, &more, &err);
    set(m, st, text, n, more.id, more.n_id);
    ggl_free(more.id);
    ggl_free(more.notes);
    ggl_free(text);
}

static void by_server(server *s, const char *json, made *m) {
    job_prompt p = {0};
    const char *param = NULL;
    ask *a = ask_new(&s->facts);
    ggl_status st = llm_json_parse(&a->doc, json, strlen(json), "request", &err);
    if (st == GGL_OK)
        st = api_openai_chat.read(a, &s->facts, &param, &err);
    if (st == GGL_OK)
        st = answer_chat_prompt(s, a, &p, &param, &err);
    set(m, st, p.text.s, p.text.n, p.ids.id, p.ids.n);
    llm_tokens_fini(&p.ids);
    ggl_free(p.owned);
    ask_free(a);
}

/* As llm-cli reads what it has saved. */
static void by_file(const llm_chat *chat, const llm_tokenizer *t_of, int k, made *m) {
    const char *json = json_of(k, "", false);
    llm_chat_made known = {0};
    llm_tokens ids = {0};
    const llm_chat_params asks = {.end = LLM_CHAT_ASKS, .made = &known};
    llm_talk *t = NULL, *again = NULL;
    char *saved = NULL, *text = NULL;
    size_t n = 0;
    ggl_status st = llm_talk_read(&t, (ggl_str){json, strlen(json)}, NULL, NULL, &err);
    if (st == GGL_OK)
        st = llm_talk_json(t, &saved, &n, &err);
    if (st == GGL_OK)
        st = llm_talk_read(&again, (ggl_str){saved, n}, NULL, NULL, &err);
    if (st == GGL_OK)
        st = llm_chat_prompt(chat, again, &asks, &text, &n, &err);
    if (st == GGL_OK)
        st = llm_tokenize_given(t_of, &known.given, text, n, LLM_TOKENIZE_SPECIAL, &ids, &err);
    set(m, st, text, n, ids.id, ids.n);
    llm_tokens_fini(&ids);
    llm_chat_made_fini(&known);
    ggl_free(saved);
    ggl_free(text);
    llm_talk_free(t);
    llm_talk_free(again);
}

/* True if the tokens of the last item begin with those of the prompt: its labels are those of the answer that is added. */
static bool is_learned(const llm_chat *chat, const llm_tokenizer *t, int k, const made *want) {
    const train_data_params p = {.tokenizer = t, .chat = chat, .n_ctx = 20000};
    const char *json = json_of(k, ", {\"role\": \"assistant\", \"content\": \"Zqz.\"}", true);
    train_data *d = NULL;
    static int32_t token[20000], target[20000];
    static float weight[20000];
    bool same = true;
    CHECK(test_write_file(test_path("talk.jsonl"), json, strlen(json)));
    if (!CHECK_OK(llm_train_data_new(&d, &p, &err), &err))
        return false;
    const ggl_status st = llm_train_data_read(d, test_path("talk.jsonl"), &err);
    if (st == GGL_OK) {
        llm_train_data_get(d, llm_train_data_n(d) - 1, token, target, weight);
        for (size_t i = 0; i + 1 < want->n_id && same; i++)
            same = token[i] == want->id[i] && target[i] == want->id[i + 1];
        same = same && want->n_id > 0 && weight[want->n_id - 1] == 1;
    } else { /* what is asked for is not what is shown: such an answer is not learned */
        same = st == GGL_UNSUPPORTED || (st == GGL_USAGE && strstr(err.msg, "refuses this"));
    }
    llm_train_data_free(d);
    return same || (printf("%s\n", err.msg), false);
}

/* --- templates ---------------------------------------------------------------------------------- */

static void same(const char *name, int k, const char *way, const made *got, const made *want) {
    CHECK_MSG(got->n_id == want->n_id &&
                  memcmp(got->id, want->id, want->n_id * sizeof *want->id) == 0,
              "%s, conversation %d: %s gives other tokens than llm_chat_format of\n%s", name, k,
              way, want->text);
    CHECK_MSG(got->st == want->st && strcmp(got->text, want->text) == 0,
              "%s, conversation %d: %s gives\n  (%d) %s\nand llm_chat_format\n  (%d) %s", name, k,
              way, got->st, got->text, want->st, want->text);
}

static void same_status(const char *name, int k, const char *way, const made *got,
                        const made *want) {
    if (want->st == GGL_OK || got->st == GGL_OK)
        same(name, k, way, got, want);
    else
        CHECK_MSG(strcmp(got->text, want->text) == 0, "%s, conversation %d: %s: %s, not %s", name,
                  k, way, got->text, want->text);
}

static int n_shown; /* calls that prompts show */

static void check_template(const char *name, const char *text, const llm_tokenizer *t) {
    static made want, got;
    const llm_chat_template with = {"chat_template", {text, strlen(text)}};
    const llm_open_params p = {.size = sizeof p, .n_ctx = 64, .chat_template = text};
    llm_context *c = NULL;
    server s = {.tokenizer = t, .facts = {.n_vocab = 1000, .has_chat = true}};
    if (!CHECK_MSG(llm_open(&c, "builtin:chat", &p, &err) == GGL_OK, "%s: %s", name, err.msg))
        return;
    ggl_gguf *file = NULL; /* its tokens are variables */
    REQUIRE_OK(ggl_gguf_open(&file, CHAT_MODEL, NULL, &err), &err);
    REQUIRE_OK(llm_chat_new(&s.chat, file, t, &with, &err), &err);
    for (int k = 0; k < N_TALKS; k++) {
        by_library(c, k, &want);
        n_shown += strstr(talks[k].messages, "1.50") && strstr(want.text, "1.5");
        by_server(&s, json_of(k, "", true), &got);
        same_status(name, k, "llm-server", &got, &want);
        by_file(s.chat, t, k, &got);
        same(name, k, "llm-cli", &got, &want);
        if (want.st == GGL_OK)
            CHECK_MSG(is_learned(s.chat, t, k, &want), "%s, conversation %d: llm-train", name, k);
        else
            CHECK_MSG(strncmp(want.text, "messages[", 9) == 0 || !strstr(text, "loop"), "%s: %s",
                      name, want.text);
    }
    llm_chat_free(s.chat);
    ggl_gguf_close(file);
    llm_close(c);
}

static llm_tokenizer *open_tokenizer(void) {
    ggl_gguf *file = NULL;
    llm_tokenizer *t = NULL;
    if (!CHECK_OK(ggl_gguf_open(&file, CHAT_MODEL, NULL, &err), &err) ||
        !CHECK_OK(llm_tokenizer_new(&t, file, &err), &err))
        abort();
    ggl_gguf_close(file);
    return t;
}

TEST(own_templates) {
    llm_tokenizer *t = open_tokenizer();
    char name[32];
    n_shown = 0;
    for (int i = 0; i < N_OWN; i++) {
        snprintf(name, sizeof name, "own template %d", i);
        check_template(name, own[i], t);
    }
    CHECK_MSG(n_shown >= 12, "only %d calls are shown", n_shown);
    llm_tokenizer_free(t);
}

static void check_copy(void *ctx, const char *name, ggl_str text) {
    char *copy = strndup(text.s, text.n);
    check_template(name, copy, ctx);
    free(copy);
}

TEST(built_in_templates) {
    llm_tokenizer *t = open_tokenizer();
    each_built_in(TEST_SANITIZED ? 7 : 1, check_copy, t);
    llm_tokenizer_free(t);
}

TEST(published_templates) {
    if (!has_published_templates())
        SKIP_NOT_SHIPPED("published chat templates");
    llm_tokenizer *t = open_tokenizer();
    n_shown = 0;
    each_published(check_copy, t);
    CHECK_MSG(n_shown >= 8, "only %d calls are shown", n_shown);
    llm_tokenizer_free(t);
}

/* --- pictures ----------------------------------------------------------------------------------- */

static ggl_status show(void *ctx, bool is_sound, const unsigned char *bytes, size_t n,
                       ggl_str *mark, ggl_error *e) {
    (void)ctx, (void)is_sound, (void)bytes, (void)n, (void)e;
    *mark = (ggl_str){"<__media__>", 11};
    return GGL_OK;
}

/* Where a model sees, marks stand in the same places. */
TEST(pictures) {
    static const char json[] = "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                               "\"text\", \"text\": \"a\"}, {\"type\": "
                               "\"image_url\", \"image_url\": {\"url\": "
                               "\"data:image/png;base64,b25l\"}}, {\"type\": \"text\", "
                               "\"text\": \"b\"}, {\"type\": \"text\", \"text\": \"c\"}]}]}";
    static made got;
    const llm_part_marks marks = {.pictures = true, .show = show};
    const llm_part_reader reader = llm_part_marks_reader(&marks);
    const llm_chat_params asks = {.end = LLM_CHAT_ASKS};
    llm_tokenizer *t = open_tokenizer();
    for (int i = 0; i < N_OWN; i++) {
        const llm_chat_template with = {"chat_template", {own[i], strlen(own[i])}};
        server s = {.tokenizer = t, .facts = {.n_row = 64, .looks = true, .has_chat = true}};
        llm_talk *talk = NULL;
        char *text = NULL;
        size_t n = 0;
        REQUIRE_OK(llm_chat_new(&s.chat, NULL, NULL, &with, &err), &err);
        REQUIRE_OK(llm_talk_read(&talk, (ggl_str){json, sizeof json - 1}, NULL, &reader, &err),
                   &err);
        REQUIRE_OK(llm_chat_prompt(s.chat, talk, &asks, &text, &n, &err), &err);
        by_server(&s, json, &got);
        CHECK_STR(got.text, text);
        CHECK(strstr(text, "a<__media__>b"));
        ggl_free(text);
        llm_talk_free(talk);
        llm_chat_free(s.chat);
    }
    llm_tokenizer_free(t);
}

/* --- answers ------------------------------------------------------------------------------------ */

/* What the parts of an answer are for llm-server and llm-cli, as llm_chat_parse writes them. */
static void read_answer(const llm_chat *chat, const char *given, char out[4096]) {
    llm_calls_params p = llm_chat_answers(chat);
    llm_calls_part part;
    llm_calls *c = NULL;
    char text[2][1024] = {"", ""};
    REQUIRE_OK(llm_calls_new(&c, &p, &err), &err);
    CHECK_OK(llm_calls_add(c, given, strlen(given), &err), &err);
    CHECK_OK(llm_calls_finish(c, &err), &err);
    while (llm_calls_next(c, &part))
        if (part.kind != LLM_CALLS_CALL)
            strncat(text[part.kind == LLM_CALLS_REASONING], part.text.s, part.text.n);
    llm_calls_free(c);
    llm_json_out json = {0};
    llm_json_put_text(&json, "{\"role\": \"assistant\"");
    if (text[1][0])
        llm_json_format(&json, ", 'reasoning_content': %.*s", LLM_JSON_TEXT(text[1]));
    llm_json_format(&json, ", 'content': %.*s}", LLM_JSON_TEXT(text[0]));
    snprintf(out, 4096, "%s", json.s);
    ggl_free(json.s);
}

/* A model may think though its template shows nothing of it. */
TEST(answers) {
    const char *const texts[] = {"{{ messages[0].content }}", own[0],
                                 "{{ messages[0].content }}<think></think>",
                                 "{# <tool_call> {\"name\": #}{{ messages[0].content }}"};
    static const char *const given[] = {"<think>\nHm.\n</think>\n\nYes.", "Yes.", "<think>Hm."};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const llm_open_params p = {.size = sizeof p, .n_ctx = 64, .chat_template = texts[i]};
        const llm_chat_template with = {"t", {texts[i], strlen(texts[i])}};
        llm_context *c = NULL;
        llm_chat *chat = NULL;
        REQUIRE_OK(llm_open(&c, "builtin:chat", &p, &err), &err);
        REQUIRE_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err);
        for (size_t k = 0; k < sizeof given / sizeof *given; k++) {
            char want[4096], *got = NULL;
            size_t n;
            read_answer(chat, given[k], want);
            REQUIRE_OK(llm_chat_parse(c, given[k], strlen(given[k]), NULL, &got, &n, &err), &err);
            CHECK_STR(got, want);
            CHECK(k == 1 || strstr(got, "\"reasoning_content\": \"Hm.\""));
            ggl_free(got);
        }
        llm_chat_free(chat);
        llm_close(c);
    }
}
