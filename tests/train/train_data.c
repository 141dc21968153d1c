/* Training data of texts, prompts with answers, pairs and speech: the items that they become, and which of their tokens count. */
#include "alloc_fail.h"
#include "train_data_test.h"

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

/* --- what is read besides --------------------------------------------------------------------- */

static const llm_file_senses answers = {.text = true, .start = 5};

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
           GGL_FORMAT,
           "nothing to learn from: 1 without room in the context for what counts (line 1) was left "
           "out");
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

static ggl_status show(void *ctx, const llm_noticed_file *f, llm_shown_file *out, ggl_error *e) {
    (void)ctx;
    (void)f;
    *out = (llm_shown_file){.mark = "\x01", .part = ggl_calloc(1, sizeof *out->part), .n_parts = 1};
    if (!out->part)
        return ggl_fail(e, GGL_NOMEM, "out of memory for a picture");
    out->part[0] = (llm_shown_part){.n = 4, .n_made = 2, .first = -50};
    return GGL_OK;
}

static void let_go(void *ctx, const llm_shown_file *shown) {
    (void)ctx;
    (void)shown;
}

static const llm_marks marks = {.find = find_mark, .append = append_mark};
static const llm_file_senses sees = {
    .pictures = true, .marks = &marks, .show = show, .let_go = let_go};

/* A sound, whatever file it is. */
static ggl_status play(void *ctx, const llm_noticed_file *f, llm_shown_file *out, ggl_error *e) {
    *out = (llm_shown_file){.n_parts = 1, .part = ggl_calloc(1, sizeof *out->part)};
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
    const llm_file_senses hears = {.speech = &k, .show = play, .let_go = let_go};
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
           "1 without text (line 1) was left out");
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
    static const llm_file_senses *const senses[] = {NULL, NULL, &answers, &sees};
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
