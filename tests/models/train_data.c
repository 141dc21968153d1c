/* What a model learns from: the items that files become, and which tokens of them count. */
#include "train/data.h"

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "test.h"

static ggl_error err;
static char notes[4096];

/* --- models ----------------------------------------------------------------------------------- */

typedef struct model {
    ggl_gguf *file;
    llm_tokenizer *t;
    llm_chat *chat;
} model;

static void model_fini(model *m) {
    llm_chat_free(m->chat);
    llm_tokenizer_free(m->t);
    ggl_gguf_close(m->file);
}

/* The model of a file, with a template in place of its own; NULL: its own. "": none. */
static bool model_open(model *m, const char *path, const char *template_text) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    const llm_chat_template with = {"test",
                                    {template_text, template_text ? strlen(template_text) : 0}};
    *m = (model){0};
    if (!CHECK_OK(ggl_gguf_open(&m->file, path, &params, &err), &err) ||
        !CHECK_OK(llm_tokenizer_new(&m->t, m->file, &err), &err))
        return false;
    return (template_text && !template_text[0]) ||
           CHECK_OK(llm_chat_new(&m->chat, m->file, m->t, template_text ? &with : NULL, &err),
                    &err);
}

#define CHAT_MODEL MODELS "/builtin/stories-chat.gguf" /* SentencePiece, with a template */
#define TEXT_MODEL DATA "/stories-qwen2.gguf" /* byte-level BPE, which begins texts with nothing */

/* --- data ------------------------------------------------------------------------------------- */

static void note(void *user, const char *text) {
    (void)user;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static train_data_params params_of(const model *m, int64_t n_ctx) {
    notes[0] = '\0';
    return (train_data_params){.tokenizer = m->t, .chat = m->chat, .n_ctx = n_ctx, .note = note};
}

/* Writes a file, in which a ' stands for a ". */
static const char *file_of(const char *name, const char *text) {
    const char *path = test_path(name);
    char *copy = strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    CHECK(test_write_file(path, copy, strlen(copy)));
    free(copy);
    return path;
}

static train_data *data_new(const train_data_params *p) {
    train_data *d = NULL;
    CHECK_OK(llm_train_data_new(&d, p, &err), &err);
    return d;
}

/* The data of a file; NULL: it cannot be read, which is a failure. */
static train_data *data_of(const train_data_params *p, const char *name, const char *text) {
    train_data *d = data_new(p);
    if (CHECK_OK(llm_train_data_read(d, file_of(name, text), &err), &err))
        return d;
    llm_train_data_free(d);
    return NULL;
}

/* Reading fails; the message has these words. */
static void refuse(const train_data_params *p, const char *name, const char *text,
                   ggl_status status, const char *words) {
    train_data *d = data_new(p);
    memset(&err, 0, sizeof err);
    CHECK_INT(llm_train_data_read(d, file_of(name, text), &err), status);
    CHECK_HAS(err.msg, words);
    llm_train_data_free(d);
}

/* The texts of the tokens; those that count between brackets. Valid until the 4th next call. */
static const char *shown(const train_data *d, const llm_tokenizer *t, int64_t k) {
    static char text[4][8192];
    static int next;
    char *out = text[next++ % 4];
    int32_t token[1024], target[1024];
    float weight[1024];
    size_t used = 0;
    bool inside = false;
    const int64_t n = llm_train_data_length(d, k);
    if (!CHECK(k < llm_train_data_n(d) && n <= 1024))
        return "";
    llm_train_data_get(d, k, token, target, weight);
    int64_t counted = 0;
    for (int64_t i = -1; i < n; i++) {
        const bool counts = i >= 0 && weight[i] > 0;
        const ggl_str s = llm_token_text(t, i < 0 ? token[0] : target[i], true);
        CHECK(i < 0 || i + 1 == n || target[i] == token[i + 1]);
        counted += counts;
        used += (size_t)snprintf(out + used, 8192 - used, "%s%.*s",
                                 counts == inside ? ""
                                 : counts         ? "["
                                                  : "]",
                                 (int)s.n, s.s);
        inside = counts;
    }
    snprintf(out + used, 8192 - used, "%s", inside ? "]" : "");
    CHECK_INT(counted, llm_train_data_counted(d, k));
    return out;
}

/* --- texts ------------------------------------------------------------------------------------ */

TEST(a_text_is_one_document) {
    model m;
    REQUIRE(model_open(&m, TEXT_MODEL, ""));
    const train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.txt", "Once upon a time.\n");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 1);
    CHECK_INT(llm_train_data_kind(d), TRAIN_TEXT);
    CHECK_STR(shown(d, m.t, 0), "Once[ upon a time.<|endoftext|>]");
    llm_train_data_free(d);
    model_fini(&m);
}

/* The same items as of a text whose lines end with LF; a CR elsewhere stays, and so does one in JSON. */
TEST(lines_of_windows) {
    static const char *const texts[][2] = {{"One day\r\n\r\nhe ran.\r\n", "One day\n\nhe ran.\n"},
                                           {"One\rday\r\n\rhe\r", "One\rday\n\rhe\r"},
                                           {"One\rday\r", NULL}};
    model m;
    REQUIRE(model_open(&m, TEXT_MODEL, ""));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const train_data_params p = params_of(&m, 64);
        train_data *d = data_of(&p, "a.txt", texts[i][0]);
        CHECK((strstr(notes, "a.txt: lines end with CR LF") != NULL) == (texts[i][1] != NULL));
        train_data *same = data_of(&p, "a.txt", texts[i][1] ? texts[i][1] : texts[i][0]);
        CHECK_STR(shown(d, m.t, 0), shown(same, m.t, 0));
        llm_train_data_free(d);
        llm_train_data_free(same);
    }
    const train_data_params p = params_of(&m, 64);
    train_data *d = data_of(&p, "a.jsonl", "{\"text\": \"One\\r\\nday\"}\r\n");
    CHECK_HAS(shown(d, m.t, 0), "\r\nday");
    CHECK_STR(notes, "");
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(documents_between_separators) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, ""));
    train_data_params p = params_of(&m, 512);
    p.separator = "<|endoftext|>";
    train_data *d =
        data_of(&p, "a.txt", "One day\n<|endoftext|>\r\n\n<|endoftext|>A cat<|endoftext|>\n");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 2);
    CHECK_STR(shown(d, m.t, 0), "<s>[ One day<|end|>]");
    CHECK_STR(shown(d, m.t, 1), "<s>[ A cat<|end|>]");
    CHECK_INT(llm_train_data_stats(d).n_empty, 1);
    CHECK_INT(llm_train_data_stats(d).n_records, 2);
    CHECK_HAS(notes, "a.txt: 1 without text was left out");
    llm_train_data_free(d);
    p.separator = "\n";
    d = data_of(&p, "lines", "a\r\nb\n\nc\r\n");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 3);
    CHECK_STR(shown(d, m.t, 0), "<s>[ a<|end|>]");
    CHECK_STR(shown(d, m.t, 2), "<s>[ c<|end|>]");
    llm_train_data_free(d);
    model_fini(&m);
}

/* Each token but the first is a target once, whatever the length of the pieces. */
TEST(long_documents_are_cut) {
    model m;
    const char text[] =
        "Once upon a time there was a little boy who liked to watch the birds by the sea.";
    llm_tokens all = {0};
    REQUIRE(model_open(&m, CHAT_MODEL, ""));
    CHECK_OK(llm_tokenize(m.t, text, strlen(text), LLM_TOKENIZE_BOS, &all, &err), &err);
    CHECK_OK(llm_tokens_append(&all, llm_tokenizer_eos(m.t), &err), &err);
    for (int64_t n_ctx = 1; n_ctx <= (int64_t)all.n + 1; n_ctx++) {
        const train_data_params p = params_of(&m, n_ctx);
        train_data *d = data_of(&p, "a.txt", text);
        REQUIRE(d != NULL);
        int64_t at = 0;
        for (int64_t k = 0; k < llm_train_data_n(d); k++) {
            int32_t token[64], target[64];
            float weight[64];
            const int64_t n = llm_train_data_length(d, k);
            CHECK(n >= 1 && n <= n_ctx && llm_train_data_begins(d, k) == (k == 0));
            CHECK_INT(llm_train_data_counted(d, k), n);
            llm_train_data_get(d, k, token, target, weight);
            for (int64_t i = 0; i < n; i++, at++)
                CHECK(token[i] == all.id[at] && target[i] == all.id[at + 1] && weight[i] == 1);
        }
        CHECK_INT(at, (int64_t)all.n - 1);
        CHECK_INT(llm_train_data_stats(d).n_counted, at);
        CHECK_INT(llm_train_data_stats(d).n_cut, 0);
        llm_train_data_free(d);
    }
    llm_tokens_fini(&all);
    model_fini(&m);
}

/* A text that was rendered before has its tokens already. */
TEST(marks_in_texts) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, ""));
    train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.jsonl", "{'text': '<s><|user|>a<|end|>'}");
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0), "<s>[<|user|> a<|end|>]");
    llm_train_data_free(d);
    p.plain = true;
    d = data_of(&p, "a.txt", "<|end|>");
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0), "<s>[ <|end|><|end|>]");
    CHECK(llm_train_data_length(d, 0) > 2);
    llm_train_data_free(d);
    model_fini(&m);
}

/* --- prompts with answers --------------------------------------------------------------------- */

TEST(prompts_and_completions) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.jsonl",
                            "{'prompt': 'One day', 'completion': ' he ran.', 'other': [1, {}]}\n"
                            "\n"
                            "{'prompt': 'One day, ', 'completion': 'he ran.'}\r\n"
                            "{'prompt': '', 'completion': 'he ran.'}\n"
                            "{'prompt': 'a', 'completion': ' \\n'}\n");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 3);
    CHECK_INT(llm_train_data_kind(d), TRAIN_ANSWERS);
    CHECK_STR(shown(d, m.t, 0), "<s> One day[ he ran.<|end|>]");
    CHECK_STR(shown(d, m.t, 1), "<s> One day, [he ran.<|end|>]"); /* not "  he" */
    CHECK_STR(shown(d, m.t, 2), "<s>[ he ran.<|end|>]");
    CHECK_INT(llm_train_data_stats(d).n_empty, 1);
    llm_train_data_free(d);
    p.all = true;
    d = data_of(&p, "b.jsonl", "{'prompt': 'One day', 'completion': ' he ran.'}");
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0), "<s>[ One day he ran.<|end|>]");
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(instructions) {
    model m;
    static const char text[] = "[{'instruction': 'Add.', 'input': '1 and 2', 'output': '3'},\n"
                               " {'instruction': 'Say a.', 'input': '', 'output': 'a'}]";
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.json", text);
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0), "<s><|user|> Add.\n\n1 and 2<|end|><|assistant|>[ 3<|end|>]");
    CHECK_STR(shown(d, m.t, 1), "<s><|user|> Say a.<|end|><|assistant|>[ a<|end|>]");
    llm_train_data_free(d);
    p.chat = NULL;
    d = data_of(&p, "a.json", text);
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0),
              "<s> Below is an instruction that describes a task, paired with an input that "
              "provides further context. Write a response that appropriately completes the "
              "request.\n\n### Instruction:\nAdd.\n\n### Input:\n1 and 2\n\n### Response:\n"
              "[3<|end|>]");
    CHECK_STR(shown(d, m.t, 1),
              "<s> Below is an instruction that describes a task. Write a response that "
              "appropriately completes the request.\n\n### Instruction:\nSay a.\n\n### "
              "Response:\n[a<|end|>]");
    llm_train_data_free(d);
    model_fini(&m);
}

/* --- conversations ---------------------------------------------------------------------------- */

/* A model whose template is plain, so that what is expected can be read. */
#define PLAIN                                                                                      \
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '</s>' if m.role == 'assistant' else " \
    "'' }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"

static void check_talk(const char *name, const char *text, const char *want) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, name, text);
    if (d && CHECK_INT(llm_train_data_n(d), 1))
        CHECK_STR(shown(d, m.t, 0), want);
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(forms_of_conversations) {
    check_talk("a.jsonl",
               "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': "
               "'b'}]}",
               "<s> user: a\nassistant:[ b</s>]");
    check_talk("a.ndjson",
               "{'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'a'}]}, "
               "{'role': 'assistant', 'content': 'b'}, {'role': 'user', 'content': 'c'}, "
               "{'role': 'assistant', 'content': 'd'}, {'role': 'user', 'content': 'e'}]}",
               "<s> user: a\nassistant:[ b</s>] \nuser: c\nassistant:[ d</s>]");
    check_talk("a.json",
               "{\n  'system': 's',\n  'conversations': [\n    {'from': 'human', 'value': 'a'},\n"
               "    {'from': 'gpt', 'value': 'b'}]\n}\n",
               "<s> system: s\nuser: a\nassistant:[ b</s>]");
    check_talk("a",
               " [ {'prompt': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': "
               "'b'}, {'role': 'user', 'content': 'c'}], 'completion': [{'role': 'assistant', "
               "'content': 'd'}]} ] ",
               "<s> user: a\nassistant: b</s> \nuser: c\nassistant:[ d</s>]");
}

/* Answers that count more and less than others: each token as often as the message says. */
TEST(answers_count_as_often_as_they_say) {
    static const char two[] =
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': 'b', "
        "'weight': %s}, {'role': 'user', 'content': 'c'}, {'role': 'assistant', 'content': 'd', "
        "'weight': %s}]}";
    static const struct {
        const char *said[2];
        float weight[2];
    } as[] = {{{"2", "0.5"}, {2, 0.5f}}, {{"1", "1"}, {1, 1}}, {{"0", "3"}, {0, 3}}};
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    uint64_t digest[3] = {0};
    for (int i = 0; i < 3; i++) {
        char text[512];
        float weight[512];
        int32_t token[512];
        snprintf(text, sizeof text, two, as[i].said[0], as[i].said[1]);
        train_data *d = data_of(&p, "a.jsonl", text);
        if (!d || !CHECK_INT(llm_train_data_n(d), 1)) {
            llm_train_data_free(d);
            break;
        }
        CHECK_STR(shown(d, m.t, 0), i < 2 ? "<s> user: a\nassistant:[ b</s>] \nuser: c\n"
                                            "assistant:[ d</s>]"
                                          : "<s> user: a\nassistant: b</s> \nuser: c\n"
                                            "assistant:[ d</s>]");
        llm_train_data_get(d, 0, token, NULL, weight);
        const int64_t n = llm_train_data_length(d, 0);
        double sum = 0;
        int answer = -1;
        for (int64_t k = 0; k < n; k++) {
            sum += (double)weight[k];
            answer += weight[k] != 0 && (k == 0 || weight[k - 1] == 0);
            if (i < 2 && weight[k] != 0)
                CHECK(answer >= 0 && answer < 2 && weight[k] == as[i].weight[answer]);
            else
                CHECK(weight[k] == 0 || weight[k] == as[i].weight[1]);
        }
        CHECK(sum == llm_train_data_weight(d, 0));
        digest[i] = llm_train_data_digest(d);
        llm_train_data_free(d);
    }
    CHECK(digest[0] != digest[1] && digest[0] != digest[2]);
    model_fini(&m);
}

TEST(answers_that_do_not_count) {
    static const char form[] =
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': "
        "'assistant', 'content': 'b', %s}, {'role': 'user', 'content': 'c'}, "
        "{'role': 'assistant', 'content': 'd', %s}]}";
    static const char *const off[] = {"'weight': 0", "'weight': 0.0", "'train': false"},
                             *const on[] = {"'weight': 1", "'train': true", "'weight': null"};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, form, off[i], on[i]);
        check_talk("a.jsonl", text, "<s> user: a\nassistant: b</s> \nuser: c\nassistant:[ d</s>]");
        snprintf(text, sizeof text, form, on[i], off[i]);
        check_talk("a.jsonl", text, "<s> user: a\nassistant:[ b</s>]");
    }
    check_talk("a.jsonl",
               "{'conversations': [{'from': 'human', 'value': 'a'}, {'from': 'gpt', 'value': 'b', "
               "'weight': 0}, {'from': 'human', 'value': 'c'}, {'from': 'gpt', 'value': 'd'}]}",
               "<s> user: a\nassistant: b</s> \nuser: c\nassistant:[ d</s>]");
    /* an answer without text, and one that follows nothing */
    check_talk("a.jsonl",
               "{'messages': [{'role': 'assistant', 'content': 'x'}, {'role': 'user', 'content': "
               "'a'}, {'role': 'assistant', 'content': ''}, {'role': 'user', 'content': 'c'}, "
               "{'role': 'assistant', 'content': 'd'}]}",
               "<s> assistant: x</s> \nuser: a\nassistant: </s> \nuser: c\nassistant:[ d</s>]");
}

TEST(all_of_a_conversation) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    p.all = true;
    train_data *d = data_of(&p, "a.jsonl",
                            "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
                            "'content': 'b'}, {'role': 'user', 'content': 'c'}]}");
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, m.t, 0), "<s>[ user: a\nassistant: b</s> \nuser: c\n]");
    llm_train_data_free(d);
    model_fini(&m);
}

/* Tools, and variables of the template; calls with arguments that are texts. */
TEST(tools_and_variables) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL,
                       "{{ tools[0].function.name if tools }}{{ mood }}{% for m in messages %}|{{ "
                       "m.content }}{{ m.tool_calls[0].function.arguments.x if m.tool_calls }}{% "
                       "endfor %}{{ '|' if add_generation_prompt }}"));
    const train_data_params p = params_of(&m, 512);
    static const char form[] =
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': null, "
        "'tool_calls': [{'type': 'function', 'function': {'name': 'f', 'arguments': '{\\'x\\': "
        "7}'}}]}], 'tools': %s, 'chat_template_kwargs': {'mood': 'z'}}";
    static const char *const tools[] = {
        "[{'type': 'function', 'function': {'name': 'f', 'parameters': {}}}]",
        "'[{\\'type\\': \\'function\\', \\'function\\': {\\'name\\': \\'f\\', \\'parameters\\': "
        "{}}}]'"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, form, tools[i]);
        train_data *d = data_of(&p, "a.jsonl", text);
        REQUIRE(d != NULL);
        CHECK_STR(shown(d, m.t, 0), "<s> fz|a|[None7]");
        CHECK_HAS(notes, "ends answers with no token");
        llm_train_data_free(d);
    }
    char text[1024];
    snprintf(text, sizeof text, form, "[3]");
    refuse(&p, "a.jsonl", text, GGL_FORMAT, "a.jsonl:1: ");
    model_fini(&m);
}

/* Reasoning of earlier turns is dropped: each answer becomes an item, with the tokens that it has when it is asked for. */
#define DROPS                                                                                      \
    "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content and loop.last %}({{ "        \
    "m.reasoning_content }}){% endif %}{{ m.content }}<|end|>{% endfor %}{% if "                   \
    "add_generation_prompt %}<|assistant|>{% endif %}"

TEST(templates_that_change_earlier_turns) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, DROPS));
    const train_data_params p = params_of(&m, 512);
    train_data *d =
        data_of(&p, "a.jsonl",
                "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
                "'reasoning_content': 'r', 'content': 'b'}, {'role': 'user', 'content': 'c'}, "
                "{'role': 'assistant', 'reasoning_content': 'q', 'content': 'd'}]}");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 2);
    CHECK_INT(llm_train_data_stats(d).n_records, 1);
    CHECK_STR(shown(d, m.t, 0), "<s><|user|> a<|end|><|assistant|>[ (r)b<|end|>]");
    CHECK_STR(
        shown(d, m.t, 1),
        "<s><|user|> a<|end|><|assistant|> b<|end|><|user|> c<|end|><|assistant|>[ (q)d<|end|>]");
    CHECK(llm_train_data_begins(d, 0) && !llm_train_data_begins(d, 1));
    llm_train_data_free(d);
    model_fini(&m);
}

/* The date is that of the data, not of the day. */
TEST(dates) {
    static const char talk[] =
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
        "'content': 'b'}]}",
                      own[] =
                          "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
                          "'content': 'b'}], 'chat_template_kwargs': {'now': "
                          "'2024-05-06T00:00:00'}}";
    model m;
    REQUIRE(
        model_open(&m, CHAT_MODEL,
                   "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}|{{ m.content }}{% endfor "
                   "%}{{ '|' if add_generation_prompt }}"));
    train_data_params p = params_of(&m, 512);
    for (int i = 0; i < 3; i++) {
        p.now = i == 1 ? "2025-03-09T14:05:06" : NULL;
        train_data *d = data_of(&p, "a.jsonl", i == 2 ? own : talk);
        REQUIRE(d != NULL);
        CHECK_STR(shown(d, m.t, 0), i == 0   ? "<s> 2026-01-01|a|[b]"
                                    : i == 1 ? "<s> 2025-03-09|a|[b]"
                                             : "<s> 2024-05-06|a|[b]");
        llm_train_data_free(d);
    }
    model_fini(&m);
}

/* The prompt begins a reasoning, which the template does not show: what the model shall write is made of the message. */
TEST(reasoning_that_prompts_begin) {
    static const char *const message[] = {
        "'content': '<think>\\nr s\\n</think>\\n\\nb'",
        "'content': 'r s</think>b'",
        "'content': 'b', 'reasoning_content': '\\nr s '",
        "'content': '<think></think>b'",
    };
    static const char *const want[] = {"r s\n</think>\n\nb", "r s\n</think>b", "r s\n</think>\n\nb",
                                       "</think>b"};
    for (int trims = 0; trims < 2; trims++) {
        model m;
        char text[1024], whole[512];
        snprintf(text, sizeof text,
                 "{%% for m in messages %%}<|{{ m.role }}|>{{ m.content.split('</think>')[-1]%s "
                 "}}<|end|>{%% endfor %%}{%% if add_generation_prompt %%}<|assistant|><think>\n{%% "
                 "endif %%}",
                 trims ? " | trim" : "");
        REQUIRE(model_open(&m, CHAT_MODEL, text));
        const train_data_params p = params_of(&m, 512);
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof text,
                     "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', %s}]}",
                     message[i]);
            train_data *d = data_of(&p, "a.jsonl", text);
            REQUIRE(d != NULL);
            snprintf(whole, sizeof whole, "<s><|user|> a<|end|><|assistant|> <think>\n[%s<|end|>]",
                     want[i]);
            CHECK_STR(shown(d, m.t, 0), whole);
            llm_train_data_free(d);
        }
        refuse(&p, "a.jsonl",
               "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': "
               "'b'}]}",
               GGL_UNSUPPORTED, "\"reasoning_content\"");
        model_fini(&m);
    }
}

/* So it does if an answer has other tokens in a later prompt than when it is written: here "b" and then "\u2581b". */
TEST(answers_with_other_tokens_later) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL,
                       "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if "
                       "add_generation_prompt %}assistant: {% endif %}"));
    const train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.jsonl",
                            "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
                            "'content': 'b'}, {'role': 'user', 'content': 'c'}, {'role': "
                            "'assistant', 'content': 'd'}]}");
    REQUIRE(d != NULL);
    CHECK_INT(llm_train_data_n(d), 2);
    CHECK_STR(shown(d, m.t, 0), "<s> user: a\nassistant: [b\n]");
    CHECK_STR(shown(d, m.t, 1), "<s> user: a\nassistant: b\nuser: c\nassistant: [d\n]");
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(templates_that_hide_where_answers_begin) {
    model m;
    static const char talk[] = "{'text': 'ok'}\n{'messages': [{'role': 'user', 'content': 'a'}, "
                               "{'role': 'assistant', 'content': 'b'}]}";
    REQUIRE(model_open(&m, CHAT_MODEL,
                       "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{% if "
                       "add_generation_prompt %}assistant: <think>{% endif %}"));
    train_data_params p = params_of(&m, 512);
    refuse(&p, "a.jsonl", talk, GGL_UNSUPPORTED, "a.jsonl:2: messages[1]: the chat template asks");
    CHECK_HAS(err.msg, "<think>");
    model_fini(&m);
    REQUIRE(model_open(&m, CHAT_MODEL,
                       "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"));
    p = params_of(&m, 512);
    refuse(&p, "a.jsonl", talk, GGL_UNSUPPORTED, "leaves this answer out");
    model_fini(&m);
    REQUIRE(model_open(&m, CHAT_MODEL, "{{ raise_exception('no!') }}{{ messages }}"));
    p = params_of(&m, 512);
    refuse(&p, "a.jsonl", talk, GGL_USAGE, "a.jsonl:2: ");
    CHECK_HAS(err.msg, "no!");
    model_fini(&m);
    REQUIRE(model_open(&m, CHAT_MODEL, ""));
    p = params_of(&m, 512);
    refuse(&p, "a.jsonl", talk, GGL_UNSUPPORTED, "a.jsonl:2: a conversation needs a chat template");
    model_fini(&m);
}

/* --- long ones -------------------------------------------------------------------------------- */

TEST(long_conversations) {
    model m;
    static const char talk[] =
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': 'b b "
        "b'}, "
        "{'role': 'user', 'content': 'c'}, {'role': 'assistant', 'content': 'd'}]}\n";
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.jsonl", talk);
    REQUIRE(d != NULL);
    const int64_t whole = llm_train_data_length(d, llm_train_data_n(d) - 1);
    llm_train_data_free(d);
    for (int64_t n_ctx = 1; n_ctx <= whole; n_ctx++)
        for (int drop = 0; drop < 2; drop++) {
            p = params_of(&m, n_ctx);
            p.drop_long = drop;
            d = data_new(&p);
            const ggl_status st = llm_train_data_read(d, file_of("a.jsonl", talk), &err);
            const train_data_stats s = llm_train_data_stats(d);
            CHECK_INT(st, s.n_items > 0 ? GGL_OK : GGL_FORMAT);
            CHECK(s.n_items > 0 || strstr(err.msg, "a.jsonl: there is nothing to learn from: "));
            CHECK(!drop || s.n_cut == 0);
            CHECK(n_ctx == whole ? s.n_cut + s.n_long == 0 : s.n_cut + s.n_long > 0);
            for (int64_t k = 0; k < s.n_items; k++)
                CHECK(llm_train_data_length(d, k) <= n_ctx && llm_train_data_counted(d, k) > 0);
            llm_train_data_free(d);
        }
    model_fini(&m);
}

/* A conversation of many turns takes no time that grows with their square: prompts that are too long are not all tried. */
TEST(very_long_conversations) {
    enum { TURNS = 2000, ROOM = TURNS * 160 };
    static const char *const templates[] = {PLAIN, DROPS};
    char *text = malloc(ROOM);
    size_t used = (size_t)snprintf(text, ROOM, "{'messages': [{'role': 'system', 'content': 's'}");
    for (int i = 0; i < TURNS; i++)
        used += (size_t)snprintf(text + used, ROOM - used,
                                 ", {'role': 'user', 'content': 'a'}, {'role': 'assistant', "
                                 "'content': 'b', 'reasoning_content': 'r'}");
    snprintf(text + used, ROOM - used, "]}");
    for (int i = 0; i < 4; i++) {
        model m;
        REQUIRE(model_open(&m, CHAT_MODEL, templates[i / 2]));
        train_data_params p = params_of(&m, 64);
        p.drop_long = i % 2;
        train_data *d = data_new(&p);
        const ggl_status st = llm_train_data_read(d, file_of("a.jsonl", text), &err);
        const train_data_stats s = llm_train_data_stats(d);
        CHECK_INT(st, s.n_items > 0 ? GGL_OK : GGL_FORMAT);
        CHECK(s.n_items < 20 && s.n_cut + s.n_long > 0);
        if (i >= 2) /* each answer is an item */
            CHECK_INT(s.n_items + s.n_long, TURNS);
        llm_train_data_free(d);
        model_fini(&m);
    }
    free(text);
}

/* --- pairs ------------------------------------------------------------------------------------ */

static void check_pair(const char *text, const char *chosen, const char *rejected) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    train_data *d = data_of(&p, "a.jsonl", text);
    if (d && CHECK_INT(llm_train_data_n(d), 2)) {
        CHECK_INT(llm_train_data_kind(d), TRAIN_PAIRS);
        CHECK_INT(llm_train_data_stats(d).n_records, 1);
        CHECK_STR(shown(d, m.t, 0), chosen);
        CHECK_STR(shown(d, m.t, 1), rejected);
    }
    llm_train_data_free(d);
    model_fini(&m);
}

TEST(pairs) {
    check_pair("{'prompt': 'One day', 'chosen': ' he ran.', 'rejected': ' he sat.'}",
               "<s> One day[ he ran.<|end|>]", "<s> One day[ he sat.<|end|>]");
    check_pair("{'chosen': 'One day he ran.', 'rejected': 'One day he rode.'}",
               "<s> One day he[ ran.<|end|>]", "<s> One day he[ rode.<|end|>]");
    static const char chosen[] = "<s> user: a\nassistant:[ b</s>]",
                      rejected[] = "<s> user: a\nassistant:[ c</s>]";
    check_pair("{'prompt': [{'role': 'user', 'content': 'a'}], 'chosen': [{'role': 'assistant', "
               "'content': 'b'}], 'rejected': [{'role': 'assistant', 'content': 'c'}]}",
               chosen, rejected);
    check_pair("{'chosen': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': "
               "'b'}], 'rejected': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
               "'content': 'c'}]}",
               chosen, rejected);
    check_pair("{'prompt': 'a', 'chosen': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', "
               "'content': 'b'}], 'rejected': [{'role': 'user', 'content': 'a'}, {'role': "
               "'assistant', 'content': 'c'}]}",
               chosen, rejected);
    check_pair("{'prompt': 'a', 'chosen': [{'role': 'assistant', 'content': 'b'}], 'rejected': "
               "[{'role': 'assistant', 'content': 'c'}]}",
               chosen, rejected);
}

TEST(pairs_that_are_left_out) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 12);
    train_data *d = data_of(&p, "a.jsonl",
                            "{'prompt': 'a', 'chosen': ' b', 'rejected': ' b'}\n"
                            "{'prompt': 'a', 'chosen': '', 'rejected': ' b'}\n"
                            "{'prompt': 'a b c d e f g h i j k l m n', 'chosen': ' b', 'rejected': "
                            "' c'}\n"
                            "{'prompt': 'a', 'chosen': ' b c d e f g h i j k l m n', 'rejected': "
                            "' c'}\n");
    REQUIRE(d != NULL);
    const train_data_stats s = llm_train_data_stats(d);
    CHECK(s.n_items == 2 && s.n_same == 1 && s.n_empty == 1 && s.n_long == 1 && s.n_cut == 1);
    llm_train_data_free(d);
    model_fini(&m);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

TEST(wrong_lines) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{'text': 'a'}\n{'txt': 'b', 'n': 3}\n",
         "a.jsonl:2: the object has the keys \"txt\", \"n\"; expected is one with \"text\"; "},
        {"{'text': 'a'}\n\n{'text': 'b'\n{'text': 'c'}\n", "a.jsonl:3:13: "},
        {"{'text': 'a'}\n[1]\n", "a.jsonl:2: an object is expected, not an array"},
        {"{'text': 'a'}\n{'text': 3}\n", "a.jsonl:2: \"text\" must be a string, not a number"},
        {"{'text': 'a\\ud800'}\n", "a.jsonl:1:"},
        {"{'text': 'a\xff'}\n", "a.jsonl:1:12: this is not valid UTF-8"},
        {"{'text': null}\n", "a.jsonl:1: the object has the keys \"text\""},
        {"{}\n", "a.jsonl:1: the object has no keys"},
        {"[{'text': 'a'}\n {'text': 'b'}]\n", "a.jsonl:2:2: a comma is expected"},
        {"[{'text': 'a'},\n {'text': 'b',}]\n", "a.jsonl:2:15: "},
        {"[{'text': 'a'},\n]\n", "a.jsonl:2:1: an element of the list is missing"},
        {"[{'text': 'a'}\n", "a.jsonl:2:1: the list is not closed"},
        {"[{'text': 'a'}]\n x", "a.jsonl:2:2: nothing may follow the list"},
        {"[]", "a.jsonl: there is nothing to learn from"},
        {" \n", "a.jsonl: there is nothing to learn from"},
        {"{'text': ' '}", "a.jsonl: there is nothing to learn from: 1 without text"},
        {"{'messages': 'a'}", "a.jsonl:1: \"messages\" must be a list of messages, not a string"},
        {"{'messages': []}", "a.jsonl:1: the conversation has no messages"},
        {"{'messages': [3]}", "a.jsonl:1: messages[0]: a message must be an object"},
        {"{'messages': [{'content': 'a'}]}", "messages[0]: a message must be an object"},
        {"{'messages': [{'role': 'user'}]}", "messages[0]: the \"content\" must be a string"},
        {"{'messages': [{'role': 'user', 'content': [{'type': 'image', 'url': 'x'}]}]}",
         "messages[0]: content[0]: the model was opened without an eye"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': NaN}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': -1}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not -1"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': 1e-9}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not 1e-9"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': 1001}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not 1001"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'train': 0}]}",
         "\"train\" must be true or false, not a number"},
        {"{'messages': [{'role': 'user', 'content': 'a'}]}",
         "nothing to learn from: 1 without an answer that counts"},
        {"{'conversations': [{'from': 'martian', 'value': 'a'}]}",
         "conversations[0]: \"from\" is \"martian\""},
        {"{'conversations': [{'value': 'a'}]}", "conversations[0]: a turn must be an object"},
        {"{'prompt': 'a', 'completion': ['b']}", "must both be strings, or both lists"},
        {"{'prompt': 'a', 'completion': 'b', 'label': false}", "\"label\""},
        {"{'prompt': 'a', 'chosen': 'b', 'rejected': []}", "must both be strings, or both lists"},
        {"{'chosen': 'b', 'rejected': 'c'}", "do not begin alike"},
        {"{'chosen': [{'role': 'user', 'content': 'a'}], 'rejected': [{'role': 'user', 'content': "
         "'b'}]}",
         "do not begin with the same message"},
        {"{'text': 'a'}\n{'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}",
         "a.jsonl:2: this is a pair"},
        {"{'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}\n{'text': 'a'}",
         "a.jsonl:2: this is a text, and what comes before is a pair"},
        {"{'messages': [{'role': 'user', 'content': 'a'}], 'chat_template_kwargs': 3}",
         "\"chat_template_kwargs\" must be an object"},
    };
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_data *d = data_new(&p);
        memset(&err, 0, sizeof err);
        const ggl_status st = llm_train_data_read(d, file_of("a.jsonl", rows[i].text), &err);
        CHECK_MSG(st == GGL_FORMAT || st == GGL_UNSUPPORTED, "%s: status %d", rows[i].text,
                  (int)st);
        CHECK_HAS(err.msg, rows[i].words);
        CHECK(strncmp(err.msg, test_folder(), strlen(test_folder())) == 0);
        llm_train_data_free(d);
    }
    model_fini(&m);
}

TEST(wrong_files) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    refuse(&p, "a.parquet", "PAR1xxxx", GGL_UNSUPPORTED, "read_parquet");
    refuse(&p, "a.jsonl", "\x1f\x8b\x08", GGL_UNSUPPORTED, "gzip");
    refuse(&p, "a.txt", "", GGL_FORMAT, "empty");
    refuse(&p, "a.txt", "a\nb\xe9", GGL_FORMAT, "a.txt:2: the byte 0xe9 is not UTF-8");
    refuse(&p, "a.jsonl", "version https://git-lfs.github.com/spec/v1\n", GGL_UNSUPPORTED,
           "this is a Git LFS pointer, which is not read; 'git lfs pull'");
    CHECK(test_write_file(test_path("zero.txt"), "a\n\0b", 4));
    train_data *d = data_new(&p);
    CHECK_INT(llm_train_data_read(d, test_path("zero.txt"), &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "zero.txt:2: a byte 0x00: this is no text");
    CHECK_INT(llm_train_data_read(d, test_path("none.txt"), &err), GGL_IO);
    CHECK_INT(llm_train_data_read(d, test_folder(), &err), GGL_IO);
    CHECK_INT(llm_train_data_n(d), 0);
    llm_train_data_free(d);
    llm_train_data_free(NULL);
    for (int64_t n = -1; n < 1; n++) {
        p.n_ctx = n;
        CHECK_INT(llm_train_data_new(&d, &p, &err), GGL_USAGE);
        CHECK(!d);
    }
    p = params_of(&m, 512);
    p.separator = "";
    CHECK_INT(llm_train_data_new(&d, &p, &err), GGL_USAGE);
    model_fini(&m);
}

/* Deep and long JSON is refused, or read, in linear time. */
TEST(hostile_lines) {
    enum { DEEP = 200000 };
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    char *text = malloc(DEEP + 64);
    for (int form = 0; form < 3; form++) {
        memset(text, form == 1 ? '{' : '[', DEEP);
        memcpy(text, form == 2 ? "{'a':" : "{'x':", 5);
        text[form == 0 ? DEEP : DEEP - 1] = '\0';
        refuse(&p, "a.jsonl", text, form == 1 ? GGL_FORMAT : GGL_LIMIT, "a.jsonl:1:");
    }
    memset(text, 'a', DEEP);
    memcpy(text, "{'text': '", 10);
    memcpy(text + DEEP, "'}", 3);
    train_data *d = data_of(&p, "a.jsonl", text);
    llm_train_data_free(d);
    free(text);
    model_fini(&m);
}

static bool stop(void *user, size_t done, size_t total) {
    (void)user;
    CHECK(done <= total);
    return false;
}

TEST(reading_can_be_stopped) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    p.progress = stop;
    refuse(&p, "a.jsonl", "{'text': 'a'}", GGL_CANCELLED, "cancelled");
    refuse(&p, "a.txt", "a", GGL_CANCELLED, "cancelled");
    model_fini(&m);
}

/* --- digests ---------------------------------------------------------------------------------- */

static uint64_t digest_of(const model *m, const char *text) {
    const train_data_params p = params_of(m, 512);
    train_data *d = data_of(&p, "a.jsonl", text);
    const uint64_t digest = d ? llm_train_data_digest(d) : 0;
    llm_train_data_free(d);
    return digest;
}

TEST(digests) {
    static const char *const text[] = {
        "{'text': 'One day he ran.'}",
        "{'text': 'One day he sat.'}",
        "{'prompt': 'One day', 'completion': ' he ran.'}",
        "{'prompt': 'One', 'completion': ' day he ran.'}",
        "{'text': 'One day he ran.'}\n{'text': 'One day he ran.'}",
    };
    enum { N = sizeof text / sizeof *text };
    model m;
    uint64_t digest[N];
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    for (int i = 0; i < N; i++) {
        digest[i] = digest_of(&m, text[i]);
        CHECK(digest[i] == digest_of(&m, text[i]));
        for (int k = 0; k < i; k++)
            CHECK(digest[i] != digest[k]);
    }
    model_fini(&m);
}

/* --- the model's own template ----------------------------------------------------------------- */

/* The prompt of each answer has the tokens that llm_chat_prompt and llm_tokenize give. */
TEST(prompts_are_those_of_use) {
    static const char talk[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, "
        "{\"role\": \"user\", \"content\": \"Tell me a story.\"}%s]%s}",
                      answer[] = ", {\"role\": \"assistant\", \"content\": \"Once upon a time.\"}";
    model m;
    char text[512], *prompt = NULL;
    size_t n = 0;
    llm_tokens want = {0};
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    snprintf(text, sizeof text, talk, "", ", \"add_generation_prompt\": true");
    const ggl_str vars = {text, strlen(text)};
    REQUIRE_OK(llm_chat_prompt(m.chat, &vars, 1, NULL, &prompt, &n, &err), &err);
    REQUIRE_OK(llm_tokenize(m.t, prompt, n, LLM_TOKENIZE_SPECIAL, &want, &err), &err);
    ggl_free(prompt);
    const train_data_params p = params_of(&m, 512);
    char whole[512];
    snprintf(whole, sizeof whole, talk, answer, "");
    train_data *d = data_of(&p, "a.jsonl", whole);
    REQUIRE(d != NULL);
    int32_t token[256], target[256];
    float weight[256];
    llm_train_data_get(d, 0, token, target, weight);
    CHECK(memcmp(token, want.id, want.n * sizeof *token) == 0);
    for (int64_t i = 0; i < llm_train_data_length(d, 0); i++)
        CHECK(weight[i] == (i + 1 >= (int64_t)want.n));
    CHECK(llm_tokenizer_is_eog(m.t, target[llm_train_data_length(d, 0) - 1]));
    llm_tokens_fini(&want);
    llm_train_data_free(d);
    model_fini(&m);
}

/* --- what is read besides --------------------------------------------------------------------- */

static const train_senses answers = {.text = true, .start = 5};

/* Texts that are answered: the one is read, and the other follows the token with which answers begin. */
TEST(answered_texts) {
    static const char *const same[] = {
        "{'source': 'One day', 'target': 'he ran'}",
        "{'prompt': 'One day', 'completion': 'he ran'}", "{'input': 'One day', 'output': 'he ran'}",
        "{'instruction': 'One day', 'input': '', 'output': 'he ran'}"};
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 12);
    llm_tokens read = {0}, written = {0};
    p.senses = &answers;
    CHECK_OK(llm_tokenize(m.t, "One day", 7, LLM_TOKENIZE_BOS, &read, &err), &err);
    CHECK_OK(llm_tokenize(m.t, "he ran", 6, LLM_TOKENIZE_BOS, &written, &err), &err);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int32_t token[64], target[64], text[64];
        float weight[64];
        train_data *d = data_of(&p, "a.jsonl", same[i]);
        REQUIRE(d && llm_train_data_n(d) == 1 && llm_train_data_reading(d, 0) == 0);
        REQUIRE(llm_train_data_length(d, 0) == (int64_t)written.n + 1);
        CHECK_INT(llm_train_data_counted(d, 0), (int64_t)written.n + 1);
        llm_train_data_get(d, 0, token, target, weight);
        CHECK(token[0] == 5 && memcmp(target, written.id, written.n * sizeof *target) == 0);
        CHECK_INT(target[written.n], llm_tokenizer_eos(m.t));
        REQUIRE(llm_train_data_reading_length(d, 0) == (int64_t)read.n);
        llm_train_data_get_text(d, 0, text);
        CHECK(memcmp(text, read.id, read.n * sizeof *text) == 0);
        llm_train_data_free(d);
    }
    /* what is read is cut, or left out */
    train_data *d =
        data_of(&p, "a.jsonl", "{'source': 'a b c d e f g h i j k l m n o p q r', 'target': 'he'}");
    REQUIRE(d);
    CHECK_INT(llm_train_data_reading_length(d, 0), 12);
    CHECK_INT(llm_train_data_stats(d).n_cut, 1);
    llm_train_data_free(d);
    p.drop_long = true;
    refuse(&p, "a.jsonl", "{'source': 'a b c d e f g h i j k l m n o p q r', 'target': 'he'}",
           GGL_FORMAT, "nothing to learn from: 1 without room in the context");
    refuse(&p, "a.jsonl", "{'messages': []}", GGL_FORMAT, "reads a text and writes another one");
    refuse(&p, "a.jsonl", "{'source': 'a', 'target': 7}", GGL_FORMAT,
           "\"target\" must be a string");
    refuse(&p, "a.txt", "One day", GGL_UNSUPPORTED, "this is a text, but the model reads a text");
    llm_tokens_fini(&read);
    llm_tokens_fini(&written);
    model_fini(&m);
}

/* A picture of two rows, whatever file it is; its mark is a byte. */
static bool find_mark(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    const char *p = *at < n ? memchr(text + *at, 1, n - *at) : NULL;
    (void)ctx;
    *at = p ? (size_t)(p - text) : n;
    *size = 1;
    return p != NULL;
}

static ggl_status append_mark(void *ctx, const llm_tokenizer *t, const char *mark, llm_tokens *out,
                              ggl_error *e) {
    const ggl_status st = llm_tokens_append(out, -50, e);
    (void)ctx;
    (void)t;
    (void)mark;
    return st == GGL_OK ? llm_tokens_append(out, -51, e) : st;
}

static ggl_status show(void *ctx, const llm_noticed_file *f, train_shown *out, ggl_error *e) {
    (void)ctx;
    (void)f;
    *out = (train_shown){.mark = "\x01", .part = ggl_calloc(1, sizeof *out->part), .n_parts = 1};
    if (!out->part)
        return ggl_fail(e, GGL_NOMEM, "out of memory for a picture");
    out->part[0] = (train_shown_part){.n = 4, .n_made = 2, .first = -50};
    return GGL_OK;
}

static void let_go(void *ctx, const train_shown *shown) {
    (void)ctx;
    (void)shown;
}

static const llm_marks marks = {.find = find_mark, .append = append_mark};
static const train_senses sees = {
    .pictures = true, .marks = &marks, .show = show, .let_go = let_go};

/* A sound, whatever file it is. */
static ggl_status play(void *ctx, const llm_noticed_file *f, train_shown *out, ggl_error *e) {
    *out = (train_shown){.n_parts = 1, .part = ggl_calloc(1, sizeof *out->part)};
    (void)ctx;
    if (!out->part)
        return ggl_fail(e, GGL_NOMEM, "out of memory for a sound");
    out->part[0].n = 8;
    out->id[0] = (uint8_t)(f->offset * 10);
    return GGL_OK;
}

static void append(llm_tokens *to, const llm_tokenizer *t, const char *text) {
    CHECK_OK(llm_tokenize(t, text, strlen(text), 0, to, &err), &err);
}

/* Checks that the item has these tokens, of which the first `n_orders` do not count. */
static void check_speech(const train_data_params *p, const char *line, const llm_tokens *wanted,
                         size_t n_orders) {
    train_data *d = data_of(p, "a.jsonl", line);
    int32_t token[64], target[64];
    float weight[64];
    if (!CHECK(d && llm_train_data_n(d) == 1))
        return;
    const int64_t n = llm_train_data_length(d, 0);
    if (CHECK_INT(n, (int64_t)wanted->n - 1)) {
        llm_train_data_get(d, 0, token, target, weight);
        CHECK(token[0] == wanted->id[0] && memcmp(target, wanted->id + 1, (size_t)n * 4) == 0);
        for (int64_t i = 0; i < n; i++)
            CHECK_INT(weight[i], i + 1 >= (int64_t)n_orders);
        CHECK_INT(llm_train_data_reading(d, 0), 0);
        CHECK_INT(llm_train_data_reading_length(d, 0), 8);
    }
    llm_train_data_free(d);
}

/* What a model that knows languages and times is told, and what it shall write down. */
TEST(speech_lines) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    /* a language's token is <|CODE|>: of any token the letters between */
    int32_t language = 300;
    while (llm_token_text(m.t, language, true).n != 6)
        language++;
    speech_tokens k = {.tokenizer = m.t,
                       .n_vocab = llm_tokenizer_n_vocab(m.t),
                       .end = 3,
                       .start = 10,
                       .translate = 11,
                       .transcribe = 12,
                       .no_times = 13,
                       .no_speech = 14,
                       .first_time = 100,
                       .n_times = 101,
                       .first_language = language,
                       .n_languages = 1};
    const train_senses hears = {.speech = &k, .show = play, .let_go = let_go};
    train_data_params p = params_of(&m, 60);
    char line[500], code[3] = {0};
    llm_tokens plain = {0}, times = {0};
    p.senses = &hears;
    memcpy(code, llm_token_text(m.t, language, true).s + 2, 2);
    const int32_t orders[] = {10, language, 11, 13}, timed[] = {10, language, 12, 100};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(llm_tokens_append(&plain, orders[i], &err), &err);
        CHECK_OK(llm_tokens_append(&times, timed[i], &err), &err);
    }
    append(&plain, m.t, " One day");
    CHECK_OK(llm_tokens_append(&plain, 3, &err), &err);
    snprintf(line, sizeof line,
             "{'audio': '" CHAT_MODEL
             "', 'transcript': ' One day ', 'lang': '%s', 'task': 'translate'}",
             code);
    check_speech(&p, line, &plain, 4);
    append(&times, m.t, " One");
    CHECK_OK(llm_tokens_append(&times, 120, &err), &err);
    CHECK_OK(llm_tokens_append(&times, 120, &err), &err);
    append(&times, m.t, " day");
    CHECK_OK(llm_tokens_append(&times, 131, &err), &err);
    CHECK_OK(llm_tokens_append(&times, 3, &err), &err);
    snprintf(line, sizeof line,
             "{'audio_filepath': '" CHAT_MODEL
             "', 'offset': 2, 'duration': 1, 'language': '%s', 'segments': [{'start': 2, 'end': "
             "2.4, 'text': 'One'}, {'start': 2.4, 'end': 2.62, 'text': 'day'}]}",
             code);
    check_speech(&p, line, &times, 3);
    const int32_t nothing[] = {10, language, 12, 14, 3};
    llm_tokens silence = {0};
    for (int i = 0; i < 5; i++)
        CHECK_OK(llm_tokens_append(&silence, nothing[i], &err), &err);
    snprintf(line, sizeof line, "{'audio': '" CHAT_MODEL "', 'language': '%s', 'segments': []}",
             code);
    check_speech(&p, line, &silence, 3);
    llm_tokens_fini(&silence);
    refuse(&p, "a.jsonl", "{'audio': '" CHAT_MODEL "', 'text': 'One day'}", GGL_FORMAT,
           "the model knows 1 languages: say which one is spoken");
    refuse(&p, "a.jsonl", "{'audio': '" CHAT_MODEL "', 'text': 'One day', 'language': 'Elvish'}",
           GGL_FORMAT, "the model does not know the language 'Elvish'");
    refuse(&p, "a.jsonl", "{'audio': '" CHAT_MODEL "', 'text': ' '}", GGL_FORMAT,
           "1 without text was left out");
    llm_tokens_fini(&plain);
    llm_tokens_fini(&times);
    model_fini(&m);
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool read_all(void *arg) {
    static const char *const text[] = {
        "{\"text\": \"a b\"}\n{\"prompt\": \"a\", \"completion\": \" b\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": "
        "\"assistant\", \"content\": \"d\"}], \"tools\": []}\n"
        "{\"instruction\": \"a\", \"output\": \"b\"}\n",
        "{\"prompt\": \"a\", \"chosen\": [{\"role\": \"assistant\", \"content\": \"b\"}], "
        "\"rejected\": [{\"role\": \"assistant\", \"content\": \"c\"}]}",
        "{\"source\": \"a b\", \"target\": \"c\"}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>a\"}, {\"role\": "
        "\"assistant\", "
        "\"content\": \"b\"}, {\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}, "
        "{\"role\": \"assistant\", \"content\": \"b\"}], \"images\": "
        "[\"data:a;base64,AAAA\", {\"path\": \"" CHAT_MODEL "\"}]}"};
    static const train_senses *const senses[] = {NULL, NULL, &answers, &sees};
    const model *m = arg;
    bool ok = true;
    for (int i = 0; i < 4 && ok; i++) {
        train_data_params p = params_of(m, 64);
        p.senses = senses[i];
        llm_tokenizer_set_marks(m->t, p.senses == &sees ? &marks : NULL);
        train_data *d = NULL;
        memset(&err, 0, sizeof err);
        ggl_status st = llm_train_data_new(&d, &p, &err);
        if (st == GGL_OK)
            st = llm_train_data_add(d, "a.jsonl", (ggl_str){text[i], strlen(text[i])}, &err);
        CHECK(st == GGL_OK || st == GGL_NOMEM);
        CHECK(st == GGL_OK || strstr(err.msg, "memory"));
        llm_train_data_free(d);
        ok = st == GGL_OK;
    }
    return ok;
}

TEST(failing_allocations) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    CHECK(alloc_fail_each(read_all, &m) > 100);
    model_fini(&m);
}
