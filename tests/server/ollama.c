/* Ollama's API: requests and answers. */
#include "dialect_test.h"
#include "seed.h"

#include <math.h>

#define CHAT     (&api_ollama_chat)
#define GENERATE (&api_ollama_generate)
#define HI       "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"

TEST(reads_chats) {
    const ask *a =
        request(CHAT, "{\"model\": \"m:latest\", \"stream\": false, \"keep_alive\": \"5m\", "
                      "\"think\": \"high\", \"format\": {\"type\": \"object\"}, "
                      "\"logprobs\": true, \"top_logprobs\": 3, \"truncate\": false, \"messages\": "
                      "[{\"role\": \"system\", \"content\": \"S\"}, "
                      "{\"role\": \"user\", \"content\": \"U\", \"images\": []}, {\"role\": "
                      "\"assistant\", \"content\": \"\", \"thinking\": \"hm\", "
                      "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
                      "1}}}]}, {\"role\": \"tool\", \"tool_name\": \"f\", "
                      "\"content\": \"11\"}], \"tools\": [{\"type\": \"function\", \"function\": "
                      "{\"name\": \"f\", \"parameters\": {\"type\": "
                      "\"object\"}}}]}");
    REQUIRE_OK(status, &err);
    CHECK(a->kind == ASK_CHAT && !a->stream && a->n_top == 3 && !a->continues);
    CHECK(a->form == ASK_SCHEMA && str_is(a->form_text, "{\"type\": \"object\"}"));
    CHECK_STR(talk_text(a),
              "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": "
              "\"user\", \"content\": \"U\"}, {\"role\": "
              "\"assistant\", \"content\": \"\", \"reasoning_content\": \"hm\", "
              "\"tool_calls\": [{\"type\": \"function\", \"function\": "
              "{\"name\": \"f\", \"arguments\": {\"a\": 1}}}]}, {\"role\": \"tool\", "
              "\"content\": \"11\", \"name\": \"f\"}], \"enable_thinking\": true, "
              "\"reasoning_effort\": \"high\", \"tools\": [{\"type\": \"function\", "
              "\"function\": {\"name\": \"f\", \"parameters\": {\"type\": "
              "\"object\"}}}]}");
    a = request(CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"1+1?\"}, {\"role\": "
                      "\"assistant\", \"content\": \"It is\"}]}");
    CHECK(a && a->continues && a->stream && a->n_top == -1);
    a = request(CHAT, "{\"think\": false, " HI "}");
    REQUIRE_OK(status, &err);
    CHECK_HAS(talk_text(a), "\"enable_thinking\": false");
}

TEST(reads_options) {
    const ask *a = request(CHAT, "{" HI ", \"options\": {\"num_predict\": 9, \"temperature\": 0.5, "
                                 "\"top_k\": 3, \"top_p\": 0.25, \"min_p\": 0.125, "
                                 "\"typical_p\": 0.75, \"repeat_last_n\": 33, \"repeat_penalty\": "
                                 "1.5, \"presence_penalty\": 0.5, \"frequency_penalty\": 0.25, "
                                 "\"mirostat\": 2, \"mirostat_tau\": 4, \"mirostat_eta\": 0.5, "
                                 "\"seed\": 42, \"stop\": [\"\\n\", \"user:\"], \"num_ctx\": 1024, "
                                 "\"num_keep\": 5, \"num_batch\": 2, \"num_gpu\": 1, \"main_gpu\": "
                                 "0, \"use_mmap\": true, \"num_thread\": 8, \"numa\": false, "
                                 "\"penalize_newline\": true, \"draft_num_predict\": 4, \"tfs_z\": "
                                 "1.0, \"low_vram\": false}}");
    REQUIRE_OK(status, &err);
    const llm_sampler_params *p = &a->sampling;
    CHECK(a->n_max == 9 && a->n_stops == 2 && a->has_seed && p->seed == 42);
    CHECK(p->temp == 0.5f && p->top_k == 3 && p->top_p == 0.25f && p->min_p == 0.125f &&
          p->typ_p == 0.75f);
    CHECK(p->repeat_last_n == 33 && p->repeat_penalty == 1.5f && p->presence_penalty == 0.5f &&
          p->frequency_penalty == 0.25f);
    CHECK(p->mirostat == 2 && p->mirostat_tau == 4 && p->mirostat_eta == 0.5f);
    a = request(CHAT, "{" HI ", \"options\": {\"num_predict\": -2, \"seed\": -1}}");
    CHECK(a && a->n_max == -1 && !a->has_seed);
}

/* What clients send by default. */
TEST(reads_defaults) {
    CHECK(request(CHAT, "{" HI ", \"truncate\": true, \"shift\": true, \"options\": {\"num_ctx\": "
                        "131072, \"repetition_penalty\": 1.25}}"));
    CHECK(request(&api_ollama_embed, "{\"input\": \"a\", \"truncate\": true}")->truncates);
    CHECK(request(&api_ollama_embed, "{\"input\": \"a\"}")->truncates);
    CHECK(!request(&api_ollama_embed, "{\"input\": \"a\", \"truncate\": false}")->truncates);
    CHECK(!request(&api_ollama_embeddings, "{\"prompt\": \"a\"}")->truncates);
}

TEST(reads_prompts) {
    const ask *a = request(GENERATE, "{\"prompt\": \"Once\", \"system\": \"S\", \"format\": "
                                     "\"json\", \"context\": [], \"suffix\": \"\"}");
    REQUIRE_OK(status, &err);
    CHECK(a->kind == ASK_CHAT && a->stream && a->form == ASK_JSON);
    CHECK_STR(talk_text(a),
              "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": "
              "\"user\", \"content\": \"Once\"}]}");
    a = request(GENERATE, "{\"prompt\": \"Once\", \"raw\": true}");
    CHECK(a && a->kind == ASK_TEXT && a->n_prompts == 1 && str_is(a->prompt[0].text, "Once"));
    facts.has_chat = false;
    a = request(GENERATE, "{\"prompt\": \"Once\"}");
    CHECK(a && a->kind == ASK_TEXT);
    CHECK(refuses(GENERATE, "{\"prompt\": \"Once\", \"system\": \"S\"}", "no chat template"));
    facts.has_chat = true;
}

TEST(loads) {
    const char *const texts[] = {"{\"model\": \"m\"}", "{\"model\": \"m\", \"prompt\": \"\"}"};
    for (int i = 0; i < 2; i++) {
        const ask *a = request(GENERATE, texts[i]);
        REQUIRE_OK(status, &err);
        CHECK(a->is_empty);
        made_up *m = make_answer(a);
        m->x.n_choices = 0;
        CHECK_STR(whole_text(GENERATE, m),
                  "{\"model\": \"m\", \"created_at\": \"2025-11-21T23:00:00Z\", \"response\": "
                  "\"\", \"done\": true, "
                  "\"done_reason\": \"load\"}");
    }
    const ask *a = request(CHAT, "{\"messages\": []}");
    CHECK(a && a->is_empty);
    static const struct {
        const char *keep, *reason;
    } cases[] = {{"0", "unload"},        {"\"0\"", "unload"}, {"\"0s\"", "unload"},
                 {"\"0h0m\"", "unload"}, {"300", "load"},     {"-1", "load"},
                 {"\"10m\"", "load"},    {"\"\"", "load"},    {"\"0.5s\"", "load"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[80], reason[40];
        snprintf(text, sizeof text, "{\"keep_alive\": %s}", cases[i].keep);
        snprintf(reason, sizeof reason, "\"done_reason\": \"%s\"", cases[i].reason);
        a = request(GENERATE, text);
        REQUIRE_OK(status, &err);
        made_up *m = make_answer(a);
        m->x.n_choices = 0;
        CHECK_HAS(whole_text(GENERATE, m), reason);
    }
}

TEST(reads_embeddings) {
    CHECK(refuses(&api_ollama_embed, "{\"input\": [1]}", "a string or a list of strings"));
    CHECK(refuses(&api_ollama_embed, "{}", "\"input\" is missing"));
    facts.n_embd = 2;
    const ask *a = request(&api_ollama_embed, "{\"input\": [\"a\", \"b\"], \"truncate\": false}");
    CHECK(a && a->kind == ASK_EMBED && a->n_prompts == 2 && str_is(a->prompt[1].text, "b"));
    const float v[] = {1, -0.5f, 0.1f, 0};
    made_up *m = make_answer(a);
    m->x.n_choices = 2;
    m->x.embedding = v;
    CHECK_STR(
        whole_text(&api_ollama_embed, m),
        "{\"model\": \"toy\", \"embeddings\": [[1, -0.5], [0.100000001, 0]], \"total_duration\": "
        "1500000000, \"load_duration\": 0, \"prompt_eval_count\": 20}");
    a = request(&api_ollama_embeddings, "{\"prompt\": \"a\"}");
    REQUIRE(a && a->kind == ASK_EMBED && a->n_prompts == 1);
    m->x.ask = a;
    CHECK_STR(whole_text(&api_ollama_embeddings, m), "{\"embedding\": [1, -0.5]}");
}

TEST(refuses_what_it_does_not_do) {
    static const struct {
        const dialect *d;
        const char *text, *words;
    } cases[] = {
        {CHAT, "3", "object"},
        {CHAT, "{" HI ", \"tool\": []}", "unknown field \"tool\"; did you mean \"tools\"?"},
        {CHAT, "{" HI ", \"prompt\": \"x\"}", "unknown field \"prompt\""},
        {CHAT, "{\"messages\": {}}", "\"messages\" must be a list"},
        {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"images\": [\"iVBO\"]}]}",
         "messages[0]: images[0]: image input is not supported"},
        {CHAT, "{\"messages\": [{\"role\": \"robot\", \"content\": \"\"}]}",
         "\"assistant\" or \"tool\", not \"robot\""},
        {&api_ollama_embed, "{\"input\": \"a\", \"dimensions\": -1}",
         "\"dimensions\" must be an integer from 0 (all) to 4, not -1"},
        {CHAT, "{\"messages\": [{\"content\": \"\"}]}", "\"role\" is missing"},
        {CHAT,
         "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": "
         "\"f\", \"arguments\": \"{}\"}}]}]}",
         "messages[0]: tool_calls[0]: \"arguments\" must be an object, not a string"},
        {CHAT, "{" HI ", \"tools\": [{\"type\": \"x\", \"function\": {\"name\": \"f\"}}]}",
         "tools[0]: \"type\" must be \"function\""},
        {CHAT, "{" HI ", \"tools\": [{\"function\": {}}]}", "tools[0]: \"name\" is missing"},
        {CHAT, "{" HI ", \"think\": \"much\"}", "or \"max\", not \"much\""},
        {CHAT, "{" HI ", \"format\": \"xml\"}",
         "\"format\" must be \"json\" or a schema, not \"xml\""},
        {CHAT, "{" HI ", \"top_logprobs\": 3}", "\"top_logprobs\" needs \"logprobs\": true"},
        {CHAT, "{" HI ", \"logprobs\": 3}", "\"logprobs\" must be true or false"},
        {CHAT, "{" HI ", \"logprobs\": true, \"top_logprobs\": 21}", "from 0 to 20"},
        {CHAT, "{" HI ", \"options\": 3}", "options: a JSON object is expected"},
        {CHAT, "{" HI ", \"options\": {\"num_ctx\": -1}}", "\"num_ctx\" must be a number"},
        {CHAT, "{" HI ", \"keep_alive\": []}", "\"keep_alive\" must be a duration"},
        {CHAT, "{" HI ", \"options\": {\"num_predikt\": 1}}",
         "options: unknown field \"num_predikt\"; did you mean \"num_predict\"?"},
        {CHAT, "{" HI ", \"options\": {\"penalize_newline\": false}}",
         "options: \"penalize_newline\" is not supported"},
        {CHAT, "{" HI ", \"options\": {\"tfs_z\": 0.5}}", "options: \"tfs_z\" is not supported"},
        {CHAT, "{" HI ", \"options\": {\"mirostat\": 1}}", "use 2"},
        {CHAT, "{" HI ", \"options\": {\"num_predict\": 1.5}}", "\"num_predict\" must be"},
        {GENERATE, "{\"prompt\": 3}", "\"prompt\" must be a string, not a number"},
        {GENERATE, "{\"prompt\": \"x\", \"images\": [\"a\"]}",
         "images[0]: image input is not supported"},
        {GENERATE, "{\"prompt\": \"x\", \"template\": \"{{ .Prompt }}\"}",
         "\"template\" is not supported: start the server"},
        {GENERATE, "{\"prompt\": \"x\", \"context\": [1, 2]}",
         "\"context\" is not supported: use /api/chat"},
        {GENERATE, "{\"prompt\": \"x\", \"raw\": true, \"system\": \"S\"}",
         "write it into the prompt"},
        {GENERATE, "{\"prompt\": \"x\", \"suffix\": \"y\"}", "cannot fill in the middle"},
        {GENERATE, "{\"prompt\": \"x\", \"raw\": 1}", "\"raw\" must be true or false"},
    };
    facts.n_embd = 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(refuses(cases[i].d, cases[i].text, cases[i].words));
    const ask *a = request(&api_ollama_embed, "{\"input\": []}");
    CHECK(a && a->is_empty);
    facts.n_embd = 0;
}

TEST(writes_a_chat) {
    made_up *m = make_answer(request(CHAT, "{\"model\": \"m\", \"stream\": false, " HI "}"));
    add_part(m, PART_REASONING, "hm");
    add_part(m, PART_CONTENT, "A");
    add_call(m, "c1", "f", "{\"a\": 1}");
    add_call(m, "c2", "g", "{}")->call = 1;
    m->choice.finish = FINISH_CALLS;
    CHECK_STR(whole_text(CHAT, m),
              "{\"model\": \"m\", \"created_at\": \"2025-11-21T23:00:00Z\", \"message\": "
              "{\"role\": \"assistant\", \"content\": \"A\", "
              "\"thinking\": \"hm\", \"tool_calls\": [{\"id\": \"c1\", \"function\": {\"index\": "
              "0, \"name\": \"f\", \"arguments\": {\"a\": "
              "1}}}, {\"id\": \"c2\", \"function\": {\"index\": 1, \"name\": \"g\", \"arguments\": "
              "{}}}]}, \"done\": true, \"done_reason\": "
              "\"stop\", \"total_duration\": 1500000000, \"load_duration\": 0, "
              "\"prompt_eval_count\": 20, \"prompt_eval_duration\": "
              "500000000, \"eval_count\": 5, \"eval_duration\": 1000000000}");
    m->choice.finish = FINISH_LENGTH;
    CHECK_HAS(whole_text(CHAT, m), "\"done_reason\": \"length\"");
}

TEST(writes_logprobs) {
    const llm_logprob top[] = {{3, -0.25}, {4, -INFINITY}};
    const answer_token t = {.id = 3, .text = str("\xc3"), .logprob = -0.25, .top = top, .n_top = 2};
    made_up *m = make_answer(request(
        GENERATE, "{\"prompt\": \"x\", \"raw\": true, \"logprobs\": true, \"top_logprobs\": 2}"));
    answer_part *p = add_part(m, PART_CONTENT, "A");
    p->token = &t;
    p->n_tokens = 1;
    const char *text = whole_text(GENERATE, m);
    const json_value *v = parsed(text, strlen(text));
    CHECK(at_is(v, "logprobs/0/logprob", "-0.25"));
    CHECK(at_is(v, "logprobs/0/token", "\"\xef\xbf\xbd\""));
    CHECK(at_is(v, "logprobs/0/bytes", "[195]"));
    CHECK(at_is(v, "logprobs/0/top_logprobs/1/logprob", "-9999"));
    CHECK(at_is(v, "response", "\"A\""));
}

/* Joins the lines of a stream: the text of a member of all. */
static void join_lines(const char *text, const char *path, const char *calls, llm_json_out *out,
                       llm_json_out *all_calls) {
    for (const char *at = text; *at;) {
        const char *end = strchr(at, '\n');
        REQUIRE(end);
        const json_value *v = parsed(at, (size_t)(end - at));
        REQUIRE(v);
        const json_value *s = at_path(v, path), *c = at_path(v, calls);
        if (s)
            llm_json_put(out, s->s, s->n);
        if (c)
            llm_json_put_value(all_calls, &c->item[0]);
        CHECK(at_is(v, "done", end[1] ? "false" : "true"));
        at = end + 1;
    }
}

TEST(streams_say_the_same) {
    static const char *const words[] = {"a", "b\n", "\xc3\xa9", "\"", "\\"};
    uint64_t state = sample_seed();
    for (int i = 0; i < 200; i++) {
        made_up *m = make_answer(request(CHAT, "{" HI "}"));
        llm_json_out content = {0}, thinking = {0}, calls = {0}, calls2 = {0};
        const int n = (int)next_number(&state, 12);
        for (int k = 0; k < n; k++)
            if (next_number(&state, 5) == 0)
                add_call(m, "id", "f", "{\"x\": 1}")->call = k;
            else
                add_part(m, next_number(&state, 3) ? PART_CONTENT : PART_REASONING,
                         words[next_number(&state, 5)]);
        const char *text = stream_text(CHAT, m);
        join_lines(text, "message/content", "message/tool_calls", &content, &calls);
        join_lines(text, "message/thinking", "message/tool_calls", &thinking, &calls2);
        text = whole_text(CHAT, m);
        const json_value *v = parsed(text, strlen(text)), *s = at_path(v, "message/content"),
                         *t = at_path(v, "message/thinking");
        CHECK(s && s->n == content.n && (s->n == 0 || memcmp(s->s, content.s, s->n) == 0));
        CHECK((t ? t->n : 0) == thinking.n &&
              (thinking.n == 0 || memcmp(t->s, thinking.s, t->n) == 0));
        llm_json_out want = {0};
        const json_value *c = at_path(v, "message/tool_calls");
        for (size_t k = 0; c && k < c->n; k++)
            llm_json_put_value(&want, &c->item[k]);
        CHECK_STR(calls.s ? calls.s : "", want.s ? want.s : "");
        ggl_free(want.s);
        ggl_free(content.s);
        ggl_free(thinking.s);
        ggl_free(calls.s);
        ggl_free(calls2.s);
    }
}

TEST(writes_errors) {
    const api_error e = {.status = 404, .type = "not_found", .message = "no \"x\""};
    llm_json_out out = {0};
    CHAT->error(&e, false, &out);
    CHECK_STR(written(&out), "{\"error\": \"no \\\"x\\\"\"}");
    CHAT->error(&e, true, &out);
    CHECK_STR(written(&out), "{\"error\": \"no \\\"x\\\"\"}\n");
}
