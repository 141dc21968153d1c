/* llama.cpp's /completion and /infill: requests and answers. */
#include "unit/tokenizer_file.h" /* first: names of the next would be shadowed */

#include "dialect_test.h"
#include "seed.h"

#include <math.h>

#define D      (&api_llamacpp_completion)
#define INFILL (&api_llamacpp_infill)

TEST(reads_all_fields) {
    const ask *a =
        request(D, "{\"prompt\": \"Once\", \"model\": \"m\", \"n_predict\": 9, \"n_cmpl\": 2, "
                   "\"stream\": true, \"stop\": [\"a\"], \"temperature\": "
                   "0.5, \"dynatemp_range\": 0.25, \"dynatemp_exponent\": 2, \"top_k\": 3, "
                   "\"top_p\": 0.25, \"min_p\": 0.125, \"typical_p\": 0.75, "
                   "\"repeat_penalty\": 1.5, \"repeat_last_n\": 33, \"presence_penalty\": 0.5, "
                   "\"frequency_penalty\": 0.25, \"dry_multiplier\": 0.5, "
                   "\"dry_base\": 2, \"dry_allowed_length\": 3, \"dry_penalty_last_n\": 64, "
                   "\"dry_sequence_breakers\": [\"x\"], "
                   "\"xtc_probability\": 0.5, \"xtc_threshold\": 0.25, \"mirostat\": 0, "
                   "\"mirostat_tau\": 5, \"mirostat_eta\": 0.5, \"seed\": 42, "
                   "\"ignore_eos\": true, \"logit_bias\": [[1, 1.5], [2, false]], \"n_probs\": 3, "
                   "\"min_keep\": 0, \"t_max_predict_ms\": 1500, "
                   "\"id_slot\": -1, \"cache_prompt\": false, \"return_tokens\": true, "
                   "\"samplers\": [\"top_k\", \"temperature\"], "
                   "\"timings_per_token\": true, \"return_progress\": false, "
                   "\"post_sampling_probs\": true, \"n_keep\": 4, \"n_indent\": 0, "
                   "\"lora\": [], \"json_schema\": {\"type\": \"array\"}, \"response_fields\": "
                   "[\"content\"]}");
    REQUIRE_OK(status, &err);
    const llm_sampler_params *p = &a->sampling;
    CHECK(a->kind == ASK_TEXT && a->n_prompts == 1 && str_is(a->prompt[0].text, "Once"));
    CHECK(a->n_max == 9 && a->n_choices == 2 && a->stream && a->n_stops == 1 && a->n_top == 3 &&
          a->sampled_probs);
    CHECK(p->temp == 0.5f && p->dynatemp_range == 0.25f && p->dynatemp_exponent == 2 &&
          p->top_k == 3 && p->seed == 42);
    CHECK(p->dry_multiplier == 0.5f && p->dry_allowed_length == 3 && p->n_dry_breakers == 1 &&
          p->xtc_probability == 0.5f);
    CHECK(p->n_bias == 2 && p->n_stages == 2 && a->ignore_eos && a->no_cache && a->return_tokens &&
          a->seconds == 1.5);
    CHECK(a->form == ASK_SCHEMA && str_is(a->form_text, "{\"type\": \"array\"}"));
    a = request(D, "{\"prompt\": \"\", \"grammar\": \"root ::= \\\"a\\\"\"}");
    CHECK(a && a->form == ASK_GBNF && !a->return_tokens && a->n_top == -1);
}

TEST(reads_prompts) {
    const ask *a = request(D, "{\"prompt\": [1, 2, 3]}");
    CHECK(a && a->n_prompts == 1 && !a->prompt[0].text.s && a->prompt[0].n == 3 &&
          a->prompt[0].id[2] == 3);
    a = request(
        D, "{\"prompt\": [\"a\", [4, 5], {\"prompt_string\": \"b\", \"multimodal_data\": []}]}");
    REQUIRE_OK(status, &err);
    CHECK(a->n_prompts == 3 && str_is(a->prompt[0].text, "a") && a->prompt[1].n == 2 &&
          str_is(a->prompt[2].text, "b"));
    CHECK(refuses(D, "{\"prompt\": [1, \"a\"]}", "prompt: the model has no tokenizer"));
    REQUIRE(use_tokenizer(STORIES));
    a = request(D, "{\"prompt\": [[1, \"Once upon\"], \"x\"]}");
    REQUIRE_OK(status, &err);
    CHECK(a->n_prompts == 2 && a->prompt[0].n >= 2 && a->prompt[0].id[0] == 1);
    llm_tokens ids = {0};
    CHECK_OK(llm_tokenize(facts.tokenizer, "Once upon", 9, LLM_TOKENIZE_SPECIAL, &ids, &err), &err);
    CHECK(ids.n + 1 == a->prompt[0].n &&
          memcmp(ids.id, a->prompt[0].id + 1, ids.n * sizeof *ids.id) == 0);
    llm_tokens_fini(&ids);
    CHECK(refuses(INFILL, "{\"input_prefix\": \"a\", \"input_suffix\": \"b\"}",
                  "cannot fill in the middle"));
    forget_tokenizer();
}

/* A vocabulary of letters and these marks; its ids: 3 for "a", and so on, then the marks. */
static void use_letters(const char *const marks[3]) {
    static const char *const letters[] = {"<unk>", "<s>", "</s>", "a", "b", "c", "\xe2\x96\x81"};
    ggl_str piece[10];
    float score[10] = {0};
    int32_t type[10] = {2, 3, 3, 1, 1, 1, 1, 3, 3, 3};
    for (int i = 0; i < 10; i++)
        piece[i] = str(i < 7 ? letters[i] : marks[i - 7]);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    llm_tokenizer *t = NULL;
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", piece, 10);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, 10);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, type, 10);
    put_u32(w, "tokenizer.ggml.bos_token_id", 1);
    put_bool(w, "tokenizer.ggml.add_bos_token", true);
    put_bool(w, "tokenizer.ggml.add_space_prefix", false);
    CHECK_OK(from_writer(&t, w, &err), &err);
    facts.tokenizer = t;
}

TEST(fills_in_the_middle) {
    static const char *const marks[][3] = {
        {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
        {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
        {"\xe2\x96\x81<PRE>", "\xe2\x96\x81<SUF>", "\xe2\x96\x81<MID>"}};
    static const int32_t want[] = {1, 7, 3, 4, 4, 8, 5, 9}, shorter[] = {1, 7, 3, 8, 5, 9};
    for (int i = 0; i < 3; i++) {
        use_letters(marks[i]);
        const ask *a = request(INFILL, "{\"input_prefix\": \"ab\", \"input_suffix\": \"c\", "
                                       "\"prompt\": \"b\", \"input_extra\": []}");
        REQUIRE_OK(status, &err);
        CHECK_INT(a->prompt[0].n, 8);
        CHECK(a->n_prompts == 1 && memcmp(a->prompt[0].id, want, sizeof want) == 0);
        a = request(&api_ollama_generate, "{\"prompt\": \"a\", \"suffix\": \"c\"}");
        REQUIRE_OK(status, &err);
        CHECK(a->kind == ASK_TEXT && a->prompt[0].n == 6 &&
              memcmp(a->prompt[0].id, shorter, sizeof shorter) == 0);
        forget_tokenizer();
    }
}

/* Other files come first, as far as there is room: the last ones. The file's own keys name the marks. */
TEST(other_files) {
    static const char *const none[] = {"d", "e", "f"};
    static const int32_t all[] = {7, 8, 9, 5, 6};
    static const struct {
        const int32_t *fim;
        const char *extra;
        int64_t n_ctx;
        size_t n;
        int32_t first[12];
        const char *ignored;
    } rows[] = {
        {all, "[]", 100, 6, {1, 7, 3, 8, 4, 9}, ""},
        {all, "[{\"text\": \"c\", \"filename\": \"a\"}]", 100, 0, {1, 5}, ""},
        {all, "[{\"text\": \"ab\", \"time\": 3, \"x\": 1}]", 100, 0, {1, 5}, "x"},
        {all,
         "[{\"text\": \"abcabcabc\"}, {\"text\": \"b\"}]",
         24,
         0,
         {1, 5},
         "input_extra.oldest"},
    };
    use_letters(none);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"input_prefix\": \"a\", \"input_suffix\": \"b\", \"n_predict\": 0, "
                 "\"input_extra\": %s}",
                 rows[i].extra);
        facts.fim = rows[i].fim;
        facts.n_ctx = rows[i].n_ctx;
        facts.strict_fields = false;
        const ask *a = request(INFILL, text);
        if (!CHECK_MSG(a, "%s: %s", text, err.msg))
            continue;
        const ask_prompt *p = &a->prompt[0];
        CHECK_STR(a->ignored.names, rows[i].ignored);
        for (size_t k = 0; rows[i].first[k]; k++)
            CHECK_INT(p->id[k], rows[i].first[k]);
        if (rows[i].n)
            CHECK_INT(p->n, rows[i].n);
        CHECK(p->n > 5 && p->id[p->n - 5] == 7 && p->id[p->n - 1] == 9);
    }
    CHECK(refuses(INFILL, "{\"input_extra\": [{}]}", "input_extra[0]: \"text\" is missing"));
    CHECK(refuses(INFILL, "{\"input_extra\": [{\"filename\": 1, \"text\": \"a\"}]}",
                  "input_extra[0]: \"filename\" must be a string, not a number"));
    CHECK(refuses(INFILL, "{\"input_extra\": [1]}", "input_extra[0]: an object is expected"));
    CHECK(refuses(INFILL, "{\"input_extra\": {}}", "\"input_extra\" must be a list"));
    facts.fim = NULL;
    CHECK(refuses(INFILL, "{\"input_prefix\": \"a\"}", "cannot fill in the middle"));
    facts.n_ctx = 4096;
    facts.strict_fields = true;
    forget_tokenizer();
}

TEST(refuses_what_it_does_not_do) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{}", "\"prompt\" is missing"},
        {"{\"prompt\": []}", "empty list"},
        {"{\"prompt\": 3}",
         "prompt: a prompt must be a string, a list of tokens, or an object with "
         "\"prompt_string\" or \"content\", not a number"},
        {"{\"prompt\": [100]}", "prompt: 100 is not a token; the vocabulary has 0 to 99"},
        {"{\"prompt\": [[-1], [2]]}", "prompt[0]: -1 is not a token"},
        {"{\"prompt\": [[1.5]]}", "1.5 is not a token"},
        {"{\"prompt\": [1, true]}", "cannot have true or false"},
        {"{\"prompt\": {\"prompt_string\": \"a\", \"multimodal_data\": [\"x\"]}}",
         "prompt: image input is not supported"},
        {"{\"prompt\": \"a\", \"n_predikt\": 1}", "did you mean \"n_predict\""},
        {"{\"prompt\": \"a\", \"n_predict\": -2}", "\"n_predict\" is -2"},
        {"{\"prompt\": \"a\", \"n_indent\": 4}", "\"n_indent\" is not supported"},
        {"{\"prompt\": \"a\", \"min_tokens\": 3}",
         "\"min_tokens\" is not supported: use \"ignore_eos\""},
        {"{\"prompt\": \"a\", \"guided_choice\": [\"x\"]}", "\"guided_choice\" is not supported"},
        {"{\"prompt\": \"a\", \"guided_json\": \"{}\"}", "\"guided_json\" must be a schema"},
        {"{\"prompt\": \"a\", \"lora\": [{\"id\": 0}]}", "\"lora\": [0]: \"scale\" is missing"},
        {"{\"prompt\": \"a\", \"min_keep\": 2}", "\"min_keep\" is not supported"},
        {"{\"prompt\": \"a\", \"mirostat\": 1}", "use 2"},
        {"{\"prompt\": \"a\", \"response_fields\": \"content\"}", "must be a list of names"},
        {"{\"prompt\": \"a\", \"response_fields\": [3]}", "must be a list of names"},
        {"{\"prompt\": \"a\", \"timings_per_token\": 3}", "must be true or false"},
        {"{\"prompt\": \"a\", \"grammar\": \"x\", \"json_schema\": {}}", "more than one field"},
        {"{\"prompt\": \"a\", \"logit_bias\": [[100, 1]]}", "100 is not a token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(refuses(D, cases[i].text, cases[i].words));
    CHECK(refuses(INFILL, "{\"prompt\": [1]}", "\"prompt\" must be a string"));
    CHECK(refuses(INFILL, "{\"input_suffix\": 3}", "\"input_suffix\" must be a string"));
}

/* A list of texts, each with its vectors: one, or those of its tokens. */
TEST(writes_embeddings) {
    const float v[] = {1, -0.5f, 0.25f, 0, 3, 4};
    facts.n_embd = 2;
    CHECK(refuses(&api_llamacpp_embedding, "{}", "\"input\" is missing"));
    CHECK(refuses(&api_llamacpp_embedding, "{\"input\": \"a\", \"encoding_format\": \"base64\"}",
                  "\"encoding_format\" must be \"float\""));
    CHECK(refuses(&api_llamacpp_embedding, "{\"input\": \"a\", \"embd_normalize\": 0}",
                  "\"embd_normalize\" must be 2"));
    CHECK(request(&api_llamacpp_embedding, "{\"input\": \"a\", \"embd_normalize\": -1}"));
    const ask *a = request(&api_llamacpp_embedding, "{\"content\": [\"a\", [1, 2]], "
                                                    "\"embd_normalize\": 2}");
    CHECK(a && a->kind == ASK_EMBED && a->n_prompts == 2 && a->prompt[1].n == 2);
    made_up *m = make_answer(a);
    answer_choice c[] = {{.n_vectors = 1}, {.index = 1, .first_vector = 1, .n_vectors = 2}};
    m->x.choice = c;
    m->x.n_choices = 2;
    m->x.embedding = v;
    CHECK_STR(
        whole_text(&api_llamacpp_embedding, m),
        "[{\"index\":0,\"embedding\":[[1,-0.5]]},{\"index\":1,\"embedding\":[[0.25,0],[3,4]]}]");
    facts.all_vectors = true;
    m->x.ask = request(&api_llamacpp_embeddings, "{\"input\": \"a\", \"embd_normalize\": -1}");
    REQUIRE(m->x.ask);
    CHECK_STR(
        whole_text(&api_llamacpp_embeddings, m),
        "[{\"index\":0,\"embedding\":[[1,-0.5]]},{\"index\":1,\"embedding\":[[0.25,0],[3,4]]}]");
    CHECK(refuses(&api_ollama_embed, "{\"input\": \"a\"}", "--pooling none"));
    facts.all_vectors = false;
    facts.n_embd = 0;
}

TEST(writes_an_answer) {
    made_up *m =
        make_answer(request(D, "{\"prompt\": \"Once\", \"n_predict\": 5, \"stop\": [\"END\"]}"));
    add_part(m, PART_CONTENT, "A");
    add_part(m, PART_CONTENT, "\"b\"");
    m->choice.finish = FINISH_STOP_STRING;
    m->choice.stop = str("END");
    m->choice.prompt = str("<s>Once");
    static const float scale[] = {0.5f, 0};
    m->x.scale = scale;
    m->x.n_scales = 2;
    const char *text = whole_text(D, m);
    const json_value *v = parsed(text, strlen(text));
    static const char *const want[][2] = {
        {"index", "0"},
        {"content", "\"A\\\"b\\\"\""},
        {"tokens", "[]"},
        {"id_slot", "3"},
        {"stop", "true"},
        {"model", "\"toy\""},
        {"prompt", "\"<s>Once\""},
        {"tokens_predicted", "5"},
        {"tokens_evaluated", "20"},
        {"tokens_cached", "12"},
        {"truncated", "false"},
        {"stop_type", "\"word\""},
        {"stopping_word", "\"END\""},
        {"completion_probabilities", ""},
        {"timings/cache_n", "12"},
        {"timings/prompt_n", "8"},
        {"timings/prompt_ms", "500.000"},
        {"timings/predicted_n", "5"},
        {"timings/predicted_per_second", "4"},
        {"generation_settings/n_ctx", "4096"},
        {"generation_settings/seed", "7"},
        {"generation_settings/n_predict", "5"},
        {"generation_settings/top_k", "40"},
        {"generation_settings/stop", "[\"END\"]"},
        {"generation_settings/samplers/0", "\"penalties\""},
        {"generation_settings/lora", "[{\"id\": 0, \"scale\": 0.5}, {\"id\": 1, \"scale\": 0}]"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        CHECK(at_is(v, want[i][0], want[i][1]));
    const struct {
        finish f;
        bool full;
        const char *type, *cut;
    } ends[] = {{FINISH_STOP, false, "\"eos\"", "false"},
                {FINISH_LENGTH, false, "\"limit\"", "false"},
                {FINISH_LENGTH, true, "\"limit\"", "true"},
                {FINISH_DEADLINE, false, "\"limit\"", "false"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        m->choice.finish = ends[i].f;
        m->choice.context_full = ends[i].full;
        text = whole_text(D, m);
        v = parsed(text, strlen(text));
        CHECK(at_is(v, "stop_type", ends[i].type) && at_is(v, "truncated", ends[i].cut) &&
              at_is(v, "stopping_word", "\"\""));
    }
}

TEST(writes_wanted_fields) {
    made_up *m = make_answer(
        request(D, "{\"prompt\": \"a\", \"response_fields\": [\"content\", "
                   "\"generation_settings/n_predict\", \"no/such\", \"timings\", \"content/x\"]}"));
    add_part(m, PART_CONTENT, "A");
    const char *text = whole_text(D, m);
    const json_value *v = parsed(text, strlen(text));
    const json_value *n = llm_json_get(v, "generation_settings/n_predict");
    CHECK(v && v->n == 3 && at_is(v, "content", "\"A\"") && n && n->number == -1 &&
          at_is(v, "timings/cache_n", "12"));
}

/* has_new_line is about the whole text, also at the end of a stream. */
TEST(writes_line_breaks) {
    for (int i = 0; i < 4; i++) {
        const bool streams = i % 2, has = i / 2;
        made_up *m = make_answer(
            request(D, streams ? "{\"prompt\": \"a\", \"stream\": true}" : "{\"prompt\": \"a\"}"));
        llm_json_out out = {0};
        answer_part p = {.kind = PART_CONTENT, .text = str(has ? "a\nb" : "ab")};
        if (streams) {
            D->part(&m->x, &m->choice, &p, &out);
            out.n = 0;
            D->end_choice(&m->x, &m->choice, &out);
        } else {
            add_part(m, PART_CONTENT, has ? "a\nb" : "ab");
            D->whole(&m->x, &out);
        }
        CHECK_HAS(out.s, has ? "\"has_new_line\": true" : "\"has_new_line\": false");
        ggl_free(out.s);
    }
}

TEST(writes_probabilities) {
    const llm_logprob top[] = {{3, -0.25}, {4, -INFINITY}};
    const answer_token t = {
        .id = 3, .text = str("h\xc3"), .logprob = -0.25, .top = top, .n_top = 2};
    const char *const texts[] = {
        "{\"prompt\": \"a\", \"n_probs\": 2, \"return_tokens\": true}",
        "{\"prompt\": \"a\", \"n_probs\": 2, \"post_sampling_probs\": true}"};
    for (int i = 0; i < 2; i++) {
        made_up *m = make_answer(request(D, texts[i]));
        answer_part *p = add_part(m, PART_CONTENT, "h");
        p->token = &t;
        p->n_tokens = 1;
        const char *text = whole_text(D, m);
        const json_value *v = parsed(text, strlen(text));
        CHECK(at_is(v, "tokens", i ? "[]" : "[3]"));
        CHECK(at_is(v, "completion_probabilities/0/id", "3"));
        CHECK(at_is(v, "completion_probabilities/0/bytes", "[104, 195]"));
        CHECK(at_is(v, "completion_probabilities/0/logprob", i ? "" : "-0.25"));
        CHECK(at_is(v, "completion_probabilities/0/top_logprobs/1/logprob", i ? "" : "-9999"));
        const json_value *prob = at_path(v, "completion_probabilities/0/prob");
        CHECK(i ? prob && fabs(prob->number - exp(-0.25)) < 1e-12 : !prob);
        CHECK(at_is(v, "completion_probabilities/0/top_probs/1/prob", i ? "0" : ""));
    }
}

TEST(writes_several) {
    made_up *m = make_answer(request(D, "{\"prompt\": [\"a\", \"b\"]}"));
    add_part(m, PART_CONTENT, "A");
    answer_choice two[2] = {m->choice, m->choice};
    two[1].index = 1;
    m->x.choice = two;
    m->x.n_choices = 2;
    const char *text = whole_text(D, m);
    const json_value *v = parsed(text, strlen(text));
    CHECK(v && v->kind == JSON_ARRAY && v->n == 2 && at_is(v, "1/index", "1") &&
          at_is(v, "0/content", "\"A\""));
}

TEST(streams_say_the_same) {
    static const char *const words[] = {"a", "b\n", "\xc3\xa9", "\"", "\\"};
    uint64_t state = sample_seed();
    const answer_token t = {.id = 3, .text = str("h"), .logprob = -0.25};
    for (int i = 0; i < 200; i++) {
        made_up *m = make_answer(
            request(D, "{\"prompt\": \"a\", \"stream\": true, \"timings_per_token\": true}"));
        llm_json_out got = {0}, want = {0};
        const int n = (int)next_number(&state, 20);
        size_t n_ids = 0;
        for (int k = 0; k < n; k++) {
            answer_part *p = add_part(m, PART_CONTENT, words[next_number(&state, 5)]);
            p->token = &t;
            p->n_tokens = 1;
            llm_json_put(&want, p->text.s, p->text.n);
        }
        const char *text = stream_text(D, m);
        REQUIRE(strncmp(text, ":\n\n", 3) == 0);
        for (const char *at = text + 3; *at;) {
            const char *end = strstr(at, "\n\n");
            REQUIRE(end && strncmp(at, "data: ", 6) == 0);
            const json_value *v = parsed(at + 6, (size_t)(end - at - 6)),
                             *s = at_path(v, "content");
            REQUIRE(s);
            llm_json_put(&got, s->s, s->n);
            n_ids += at_path(v, "tokens")->n;
            CHECK(at_is(v, "stop", end[2] ? "false" : "true") && at_is(v, "timings/cache_n", "12"));
            at = end + 2;
        }
        CHECK_STR(got.s ? got.s : "", want.s ? want.s : "");
        CHECK_INT(n_ids, n);
        ggl_free(got.s);
        ggl_free(want.s);
    }
}

TEST(writes_errors) {
    const api_error e = {.status = 503, .type = "overloaded", .message = "busy"};
    llm_json_out out = {0};
    D->error(&e, false, &out);
    CHECK_STR(
        written(&out),
        "{\"error\": {\"code\": 503, \"message\": \"busy\", \"type\": \"unavailable_error\"}}");
    D->error(&e, true, &out);
    CHECK_STR(written(&out), "data: {\"error\": {\"code\": 503, \"message\": \"busy\", \"type\": "
                             "\"unavailable_error\"}}\n\n");
}

/* Documents with their scores, the best first, in two forms. */
TEST(writes_ranks) {
    static const float v[] = {-1, 7, 2, 7, 2, 7}; /* of two numbers, the first counts */
    static const char two[] =
        "{\"query\": \"q\", \"documents\": [\"a\", {\"text\": \"b\"}, \"c\"], "
        "\"top_n\": 2, \"return_documents\": true}";
    facts.n_score = 2;
    const ask *a = request(&api_rerank, two);
    CHECK(a && a->kind == ASK_RANK && a->n_prompts == 3 && str_is(a->query, "q") &&
          str_is(a->prompt[1].text, "b"));
    made_up *m = make_answer(a);
    m->x.n_choices = 3;
    m->x.embedding = v;
    CHECK_STR(
        whole_text(&api_rerank, m),
        "{\"model\":\"toy\",\"object\":\"list\",\"usage\":{\"prompt_tokens\":20,"
        "\"total_tokens\":20},\"results\":[{\"index\":1,\"relevance_score\":2,\"document\":{"
        "\"text\":\"b\"}},{\"index\":2,\"relevance_score\":2,\"document\":{\"text\":\"c\"}}]}");
    a = request(&api_rerank, "{\"query\": \"q\", \"texts\": [\"a\", \"b\", \"c\"], "
                             "\"return_text\": true, \"raw_scores\": true, \"top_n\": 1}");
    m->x.ask = a;
    CHECK_STR(whole_text(&api_rerank, m), "[{\"index\":1,\"text\":\"b\",\"score\":2}]");
    m->x.ask = request(&api_rerank, "{\"query\": \"q\", \"texts\": [\"a\", \"b\", \"c\"]}");
    CHECK_HAS(whole_text(&api_rerank, m), "{\"index\":0,\"score\":0.268941421}]");
    CHECK(refuses(&api_rerank, "{\"query\": \"q\", \"documents\": [\"a\"], \"texts\": [\"a\"]}",
                  "two forms"));
    CHECK(refuses(&api_rerank, "{\"query\": \"q\", \"documents\": [\"a\", 1]}", "documents[1]"));
    CHECK(refuses(&api_rerank, "{\"query\": \"q\"}", "\"documents\" is missing"));
    CHECK(refuses(&api_rerank, "{\"documents\": [\"a\"]}", "\"query\" is missing"));
    facts.n_score = 0;
}
