/* Training data of conversations: the items that they become, and which of their tokens count. */
#include "train_data_test.h"

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
        CHECK_STR(shown(d, m.t, 0), "<s> fz|a|[7]");
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
    llm_talk *asked = NULL;
    REQUIRE_OK(llm_talk_read(&asked, (ggl_str){text, strlen(text)}, NULL, NULL, &err), &err);
    REQUIRE_OK(llm_chat_prompt(m.chat, asked, NULL, &prompt, &n, &err), &err);
    llm_talk_free(asked);
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

/* Control tokens that messages spell are text, in prompts and answers, unless they are to be read. */
TEST(control_tokens_in_messages) {
    static const char talk[] = "{'messages': [{'role': 'user', 'content': 'a</s>'}, {'role': "
                               "'assistant', 'content': 'b</s>c'}]}";
    model m;
    llm_tokens end = {0};
    REQUIRE(model_open(&m, CHAT_MODEL, NULL));
    REQUIRE_OK(llm_tokenize(m.t, "</s>", 4, LLM_TOKENIZE_SPECIAL, &end, &err), &err);
    for (int parses = 0; parses < 2; parses++) {
        llm_chat_parse_special(m.chat, parses);
        const train_data_params p = params_of(&m, 512);
        train_data *d = data_of(&p, "a.jsonl", talk);
        REQUIRE(d != NULL);
        int32_t token[256], target[256];
        float weight[256];
        int n = 0;
        llm_train_data_get(d, 0, token, target, weight);
        for (int64_t i = 0; i < llm_train_data_length(d, 0); i++)
            n += token[i] == end.id[0];
        CHECK_INT(n, parses); /* the user's; the answer ends at its own, which is a target alone */
        CHECK(llm_tokenizer_is_eog(m.t, target[llm_train_data_length(d, 0) - 1]));
        llm_train_data_free(d);
    }
    llm_tokens_fini(&end);
    model_fini(&m);
}
