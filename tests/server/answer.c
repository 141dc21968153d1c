/* Answers: what clients get is what a sequence alone draws, streamed or whole, alone or among others. */
#include "../models/alone.h"
#include "answer_fixture.h"

#include <math.h>

#include "seed.h"

/* --- the oracle: a sequence alone ------------------------------------------------------------------- */

typedef struct plain_answer {
    char text[8192];
    int32_t id[FIXTURE_CTX + 1];
    double logprob[FIXTURE_CTX + 1];
    int n;
    bool by_eog;
} plain_answer;

/* Draws up to n_max tokens in another session. */
static bool plain(server *s, const char *prompt, bool special, llm_sampler_params sampling,
                  int64_t n_max, plain_answer *out) {
    llm_session_params sp = llm_session_default();
    llm_session *session = NULL;
    alone_seq a = {0};
    llm_sampler *sampler = NULL;
    llm_tokens ids = {0};
    ggl_error err = {0};
    int32_t id;
    sp.n_ctx = FIXTURE_CTX;
    sp.backend = &s->cpu;
    sp.n_backends = 1;
    sp.fold = s->reference;
    sampling.tokenizer = s->tokenizer;
    *out = (plain_answer){0};
    bool good =
        CHECK_OK(llm_session_new(&session, s->model, &sp, &err), &err) &&
        CHECK_OK(llm_session_alloc(session, &err), &err) &&
        CHECK_OK(llm_sampler_new(&sampler, &sampling, (int32_t)s->facts.n_vocab, FIXTURE_CTX, &err),
                 &err) &&
        alone_open(&a, &(llm_engine_params){.session = session},
                   &(llm_sequence_params){.sampler = sampler, .n_max = -1}, &err) &&
        CHECK_OK(llm_tokenize(s->tokenizer, prompt, strlen(prompt),
                              LLM_TOKENIZE_SPECIAL | (special ? 0 : LLM_TOKENIZE_BOS), &ids, &err),
                 &err) &&
        CHECK_OK(alone_prompt(&a, ids.id, ids.n, &err), &err);
    while (good && out->n < n_max && alone_next(&a, &id, &err) == GGL_OK) {
        const ggl_str text = llm_token_text(s->tokenizer, id, false);
        llm_logprob chosen = {.id = id};
        if ((out->by_eog = llm_tokenizer_is_eog(s->tokenizer, id)))
            break;
        llm_logprobs(a.logits, (int32_t)s->facts.n_vocab, &chosen, NULL, 0);
        out->logprob[out->n] = chosen.logprob;
        out->id[out->n++] = id;
        strncat(out->text, text.s, text.n);
    }
    llm_tokens_fini(&ids);
    alone_close(&a);
    llm_sampler_free(sampler);
    llm_session_free(session);
    return good;
}

static const char *const prompts[] = {
    "Once upon a time", "Lily and her dog", "The little frog", "One day, Tom found a red ball.",
    "Once upon a time, there was a little owl who was afraid of the dark."};

enum { N_PROMPTS = sizeof prompts / sizeof *prompts };

/* A random request for a text. Equal seeds give equal requests. */
static ask *random_ask(server *s, uint64_t seed, const char **prompt) {
    *prompt = prompts[test_random(&seed) % N_PROMPTS];
    ask *a = ask_text(s, *prompt);
    a->sampling.seed = test_random(&seed) % 1000;
    a->sampling.temp = test_random(&seed) % 3 ? 0.9f : 0;
    a->sampling.repeat_penalty = test_random(&seed) % 2 ? 1.1f : 1;
    a->n_max = 1 + (int64_t)(test_random(&seed) % 60);
    a->n_top = (int)(test_random(&seed) % 4) - 1;
    a->stream = test_random(&seed) % 2;
    return a;
}

TEST(texts_are_those_alone) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (uint64_t seed = 0; seed < 12; seed++) {
        const char *prompt;
        plain_answer want;
        ask *a = random_ask(&s, seed, &prompt);
        const llm_sampler_params sampling = a->sampling;
        const int64_t n_max = a->n_max;
        http_reply *r = answer_alone(&s, a);
        REQUIRE(plain(&s, prompt, false, sampling, n_max, &want));
        char *got = content_of(r, 0), end[40];
        CHECK_INT(r->status, 200);
        CHECK(r->ended);
        CHECK_STR(got, want.text);
        snprintf(end, sizeof end, "F 0 %d x ", want.by_eog ? FINISH_STOP : FINISH_LENGTH);
        CHECK_HAS(r->body.s, end);
        free(got);
        reply_free(r);
    }
    server_close(&s);
}

/* A chat's prompt is that of the template. */
TEST(chats_are_those_alone) {
    server s = {0};
    plain_answer want;
    char *text = NULL;
    size_t n;
    REQUIRE(server_open(&s, 0));
    ask *a = ask_chat(&s, "Tell me a story about a frog.");
    const llm_sampler_params sampling = a->sampling;
    const llm_chat_params asks = {.end = LLM_CHAT_ASKS};
    REQUIRE_OK(llm_chat_prompt(s.chat, a->talk, &asks, &text, &n, &s.err), &s.err);
    http_reply *r = answer_alone(&s, a);
    REQUIRE(plain(&s, text, true, sampling, 60, &want));
    char *got = content_of(r, 0);
    CHECK(strlen(want.text) > 10);
    CHECK_STR(got, want.text);
    free(got);
    ggl_free(text);
    reply_free(r);
    server_close(&s);
}

/* 32 requests at once, in random order, give the bytes that each gives alone, and whole answers are streams. */
TEST(alone_and_among_others) {
    enum { N = 32 };
    server s = {0};
    http_reply *alone[N], *among[N];
    uint64_t pace = sample_seed();
    const uint64_t seed = pace;
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < N; i++) {
        const char *prompt;
        alone[i] = answer_alone(&s, random_ask(&s, seed + (uint64_t)i, &prompt));
    }
    for (int i = 0; i < N; i++) {
        const char *prompt;
        among[i] = start(&s, random_ask(&s, seed + (uint64_t)i, &prompt));
        server_run(&s, (int)(test_random(&pace) % 3));
    }
    server_run(&s, 100000);
    for (int i = 0; i < N; i++) {
        CHECK_STR(among[i]->body.s, alone[i]->body.s);
        reply_free(among[i]);
        reply_free(alone[i]);
    }
    CHECK_INT(answers_n(s.answers), 0);
    server_close(&s);
}

TEST(streams_are_whole_answers) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (uint64_t seed = 100; seed < 110; seed++) {
        char *text[2];
        for (int stream = 0; stream < 2; stream++) {
            const char *prompt;
            ask *a = random_ask(&s, seed, &prompt);
            a->stream = stream;
            a->n_choices = 1 + (int64_t)(seed % 3);
            a->echo = seed % 2;
            a->stop = &(ggl_str){"the", 3};
            a->n_stops = seed % 4 == 0;
            http_reply *r = answer_alone(&s, a);
            CHECK(r->streams == (stream == 1) && r->status == 200);
            CHECK_STR(r->media, stream ? "text/event-stream" : "application/json");
            text[stream] = joined(r);
            reply_free(r);
        }
        CHECK_STR(text[1], text[0]);
        free(text[0]);
        free(text[1]);
    }
    server_close(&s);
}

/* A stop string that is any piece of the text ends it where it first occurs. */
TEST(stop_strings) {
    server s = {0};
    plain_answer want;
    uint64_t seed = sample_seed();
    REQUIRE(server_open(&s, 0));
    ask *a = ask_text(&s, prompts[0]);
    const llm_sampler_params sampling = a->sampling;
    ask_free(a);
    REQUIRE(plain(&s, prompts[0], false, sampling, 60, &want));
    const size_t n = strlen(want.text);
    REQUIRE(n > 60);
    for (int i = 0; i < 40; i++) {
        const size_t at = test_random(&seed) % (n - 20);
        char stop[24] = "";
        memcpy(stop, want.text + at, 1 + test_random(&seed) % 19);
        a = ask_text(&s, prompts[0]);
        a->stop = (ggl_str[]){{"never in a story", 16}, {stop, strlen(stop)}};
        a->n_stops = 2;
        a->stop_in_text = i % 3 == 0;
        a->stream = i % 2;
        http_reply *r = answer_alone(&s, a);
        char *got = content_of(r, 0), end[20];
        const char *found = strstr(want.text, stop);
        const size_t length = (size_t)(found - want.text) + (i % 3 == 0 ? strlen(stop) : 0);
        CHECK_MSG(strlen(got) == length && memcmp(got, want.text, length) == 0,
                  "stop '%s': '%s' of '%s'", stop, got, want.text);
        snprintf(end, sizeof end, "F 0 %d x%02x", FINISH_STOP_STRING, (unsigned)stop[0]);
        CHECK_HAS(r->body.s, end);
        free(got);
        reply_free(r);
    }
    server_close(&s);
}

/* The choices of a request are those of single requests with the next seeds; six use the seats of four. */
TEST(many_choices) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    ask *a = ask_text(&s, prompts[1]);
    a->n_choices = 6;
    a->sampling.temp = 1;
    http_reply *r = answer_alone(&s, a);
    CHECK_HAS(r->body.s, "\nF 5 ");
    for (int i = 0; i < 6; i++) {
        a = ask_text(&s, prompts[1]);
        a->sampling.temp = 1;
        a->sampling.seed = 1 + (uint64_t)i;
        http_reply *one = answer_alone(&s, a);
        char *got = content_of(r, i), *want = content_of(one, 0);
        CHECK_STR(got, want);
        free(got);
        free(want);
        reply_free(one);
    }
    reply_free(r);
    server_close(&s);
}

/* Log-probabilities are the model's; with the echo they begin at the prompt's second token. */
TEST(log_probabilities) {
    server s = {0};
    plain_answer want;
    REQUIRE(server_open(&s, 0));
    ask *a = ask_text(&s, prompts[2]);
    const llm_sampler_params sampling = a->sampling;
    a->n_top = 0;
    a->n_max = 8;
    http_reply *r = answer_alone(&s, a);
    char *all = joined(r), line[1024] = "";
    REQUIRE(plain(&s, prompts[2], false, sampling, 8, &want));
    for (int i = 0; i < want.n; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %d:%a", (int)want.id[i],
                 want.logprob[i]);
    strcat(line, "\n");
    CHECK_HAS(all, line);
    free(all);
    reply_free(r);
    a = ask_text(&s, prompts[2]);
    a->n_top = 2;
    a->n_max = 0;
    a->echo = true;
    r = answer_alone(&s, a);
    char *text = content_of(r, 0);
    CHECK_STR(text, prompts[2]);
    CHECK_HAS(r->body.s, ":nan ");
    CHECK(!strstr(strstr(r->body.s, ":nan ") + 4, "nan"));
    free(text);
    reply_free(r);
    server_close(&s);
}

static size_t count_of(const char *text, const char *word) {
    size_t n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

/* A long prompt with its log-probabilities: a stream gets it in pieces while it runs, and a whole answer is left to
 * a worker. Both have the same tokens. */
TEST(long_echoes) {
    server s = {0};
    char prompt[1200] = "Once";
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < 250; i++)
        strcat(prompt, i % 3 ? " a" : " cat");
    http_reply *r[2];
    char *all[2];
    for (int streams = 0; streams < 2; streams++) {
        ask *a = ask_text(&s, prompt);
        a->n_top = 4;
        a->n_max = 5;
        a->echo = true;
        a->stream = streams;
        r[streams] = answer_alone(&s, a);
        all[streams] = joined(r[streams]);
        CHECK(r[streams]->ended);
        CHECK_INT(r[streams]->n_later, !streams);
    }
    CHECK_STR(all[0], all[1]);
    CHECK(count_of(r[1]->body.s, "\nP ") >= 250 / ANSWER_ECHO_PIECE);
    size_t longest = 0;
    for (const char *at = r[1]->body.s; *at; at += strcspn(at, "\n") + 1)
        longest = strcspn(at, "\n") > longest ? strcspn(at, "\n") : longest;
    CHECK(longest < r[1]->body.n / 2);
    for (int i = 0; i < 2; i++) {
        free(all[i]);
        reply_free(r[i]);
    }
    server_close(&s);
}

/* Greedy: the sampler has one candidate, of probability 1. */
TEST(probabilities_of_the_sampler) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    ask *a = ask_text(&s, prompts[3]);
    a->n_top = 3;
    a->n_max = 1;
    a->sampling.temp = 0;
    a->sampled_probs = true;
    http_reply *r = answer_alone(&s, a);
    CHECK_HAS(r->body.s, ":0x0p+0:");
    CHECK_HAS(r->body.s, "=0x0p+0\n");
    reply_free(r);
    server_close(&s);
}

TEST(answers_by_grammar) {
    static const char schema[] = "{\"type\": \"object\", \"properties\": {\"name\": {\"enum\": "
                                 "[\"Tom\", \"Lily\"]}}, \"required\": [\"name\"], "
                                 "\"additionalProperties\": false}";
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < 4; i++) {
        ask *a = ask_chat(&s, "Who are you?");
        a->form = ASK_SCHEMA;
        a->form_text = (ggl_str){schema, sizeof schema - 1};
        a->sampling.seed = (uint64_t)i;
        a->n_choices = 1 + i;
        a->stream = i % 2;
        http_reply *r = answer_alone(&s, a);
        for (int k = 0; k <= i; k++) {
            char *got = content_of(r, k);
            CHECK_MSG(strstr("{\"name\": \"Tom\"} {\"name\": \"Lily\"} {\"name\":\"Tom\"} "
                             "{\"name\":\"Lily\"}",
                             got),
                      "'%s'", got);
            free(got);
        }
        reply_free(r);
    }
    CHECK_INT(answer_grammars_n_compiled(s.answers->grammars), 1);
    ask *a = ask_text(&s, "Yes or no?");
    a->form = ASK_GBNF;
    a->form_text = (ggl_str){"root ::= \"yes\" | \"no\"", 21};
    http_reply *r = answer_alone(&s, a);
    char *got = content_of(r, 0);
    CHECK(strcmp(got, "yes") == 0 || strcmp(got, "no") == 0);
    CHECK_HAS(r->body.s, "F 0 0 x ");
    free(got);
    reply_free(r);
    CHECK_INT(answer_grammars_n_compiled(s.answers->grammars), 2);
    server_close(&s);
}

/* --- wrong requests ----------------------------------------------------------------------------- */

/* Changes an ask so that it is wrong. */
static void too_long(ask *a) {
    char *text = ggl_arena_alloc(&a->arena, 6000, 1);
    for (int i = 0; i < 1000; i++)
        memcpy(text + 6 * i, " hello", 6);
    a->prompt[0].text = (ggl_str){text, 6000};
}
static void wrong_token(ask *a) {
    static const int32_t ids[] = {1, 1 << 20};
    a->prompt[0] = (ask_prompt){.id = ids, .n = 2};
}
static void no_tokens(ask *a) {
    a->prompt[0] = (ask_prompt){.n = 0};
}
static void no_prompts(ask *a) {
    a->n_prompts = 0;
}
static void wrong_grammar(ask *a) {
    a->form = ASK_GBNF;
    a->form_text = (ggl_str){"root ::= [", 10};
}
static void wrong_schema(ask *a) {
    a->form = ASK_SCHEMA;
    a->form_text = (ggl_str){"{\"type\": 1}", 11};
}
static void huge_schema(ask *a) {
    a->form = ASK_SCHEMA;
    a->form_text = (ggl_str){a->prompt[0].text.s, GRAMMAR_MAX_TEXT + 1};
}
static void long_schema(ask *a) {
    a->form = ASK_SCHEMA;
    a->form_text = (ggl_str){"{\"type\": \"string\", \"minLength\": 9000}", 37};
    a->n_max = 300;
}
static void unlimited_schema(ask *a) {
    long_schema(a);
    a->n_max = -1;
}
static void hostile_schema(ask *a) {
    static const char text[] =
        "{\"patternProperties\": {\"^.{0,8}a.*c\": {}, \"^.{0,9}a.*c\": {\"type\": \"null\"}, "
        "\"^.{0,10}a.*c\": {}, \"^.{0,11}a.*c\": {\"type\": \"null\"}, \"^.{0,12}a.*c\": {}, "
        "\"^.{0,13}a.*c\": {\"type\": \"null\"}, \"^.{0,14}a.*c\": {}, "
        "\"^.{0,15}a.*c\": {\"type\": \"null\"}}}";
    a->form = ASK_SCHEMA;
    a->form_text = (ggl_str){text, sizeof text - 1};
}
static void many_stops(ask *a) {
    a->n_stops = ANSWER_MAX_STOPS + 1;
    a->stop = ggl_arena_alloc(&a->arena, a->n_stops, sizeof *a->stop);
}
static void many_breakers(ask *a) {
    a->sampling.n_dry_breakers = ANSWER_MAX_BREAKERS + 1;
    a->sampling.dry_breakers =
        ggl_arena_alloc(&a->arena, a->sampling.n_dry_breakers, sizeof(ggl_str));
}
static void long_breaker(ask *a) {
    static const ggl_str one[] = {{"", ANSWER_MAX_BREAKER_BYTES + 1}}; /* only its length is read */
    a->sampling.dry_breakers = one;
    a->sampling.n_dry_breakers = 1;
}
static void much_echo(ask *a) {
    static int32_t ids[500];
    for (int i = 0; i < 500; i++)
        ids[i] = 5;
    a->prompt[0] = (ask_prompt){.id = ids, .n = 500};
    a->echo = true;
    a->n_top = 100;
    a->n_choices = 5;
}
static void many_choices(ask *a) {
    a->n_choices = ANSWER_MAX_CHOICES + 1;
}
static void wrong_sampling(ask *a) {
    a->sampling.top_p = -1;
}
static void wrong_count(ask *a) {
    a->n_max = -2;
}
static void wrong_slot(ask *a) {
    a->only_slot = 2 * FIXTURE_PARALLEL;
}
static void vectors(ask *a) {
    a->kind = ASK_EMBED;
}

static const struct {
    void (*change)(ask *a);
    const char *message;
} wrong[] = {
    {too_long, "X 400 too_long the prompt of "},
    {too_long, " tokens is too large: it exceeds the available context size, the maximum context "
               "length is 512 "},
    {wrong_token, "X 400 invalid_request token 1048576 of the prompt is not in the vocabulary of "},
    {no_tokens, "X 400 invalid_request the prompt is empty"},
    {no_prompts, "X 400 invalid_request there is no prompt"},
    {wrong_grammar, "X 400 invalid_request grammar:1:"},
    {wrong_schema, "X 400 invalid_request schema: "},
    {huge_schema, "the schema has 1048577 bytes, but may have at most 1048576"},
    {long_schema, "X 400 invalid_request the shortest answer that fits the schema takes "},
    {long_schema, " tokens, but max_tokens is 300"},
    {unlimited_schema, " tokens, but after the prompt the context has room for "},
    {hostile_schema, "X 400 invalid_request schema: "},
    {hostile_schema, "the grammar takes more than 2097152 steps; make it simpler"},
    {many_stops, "X 400 invalid_request 513 stop strings of 0 bytes are too many"},
    {many_breakers, "X 400 invalid_request 513 breakers of 0 bytes are too many"},
    {long_breaker, "1 breakers of 65537 bytes are too many: at most 512 of 65536"},
    {much_echo, "log-probabilities of 500 tokens of prompts, 100 of each, in 5 answers are too"},
    {many_choices, "1 prompts of 4097 choices each are too many"},
    {wrong_sampling, "top_p"},
    {wrong_count, "X 400 invalid_request"},
    {wrong_slot, "there is no slot 8: the server has slots 0 to 7"},
    {vectors, "X 501 unsupported this server gives no embeddings; start it with --embeddings"},
};

TEST(wrong_requests) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ask *a = ask_text(&s, prompts[0]);
        wrong[i].change(a);
        a->stream = i % 2;
        http_reply *r = answer_alone(&s, a);
        CHECK_HAS(r->body.s, wrong[i].message);
        CHECK(r->status >= 400 && r->ended && !r->streams && !strchr(r->body.s, 'B'));
        reply_free(r);
    }
    CHECK_INT(answers_n(s.answers), 0);
    server_close(&s);
}

/* The last message is continued where it ends. */
TEST(continued_messages) {
    static const char talk[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story.\"}, {\"role\": "
        "\"assistant\", \"content\": \"Once upon a time, there was a red dragon named\"}]}";
    server s = {0};
    REQUIRE(server_open(&s, 0));
    ask *a = ask_chat(&s, "hi");
    ask_set_talk(a, talk);
    a->continues = true;
    a->n_max = 0;
    a->echo = true;
    http_reply *r = answer_alone(&s, a);
    char *text = content_of(r, 0);
    const size_t n = strlen(text);
    CHECK_MSG(n > 12 && strcmp(text + n - 12, "dragon named") == 0, "'%s'", text);
    reply_free(r);
    /* the space before the next word is a part of the answer */
    plain_answer want;
    a = ask_chat(&s, "hi");
    ask_set_talk(a, talk);
    a->continues = true;
    const llm_sampler_params sampling = a->sampling;
    r = answer_alone(&s, a);
    char *got = content_of(r, 0);
    REQUIRE(plain(&s, text, true, sampling, 60, &want));
    CHECK(got[0] == ' ');
    CHECK_MSG(strncmp(got, want.text, strlen(got)) == 0, "'%s' and '%s'", got, want.text);
    free(got);
    free(text);
    reply_free(r);
    a = ask_chat(&s, "");
    a->continues = true;
    r = answer_alone(&s, a);
    CHECK_HAS(r->body.s, "X 400 invalid_request messages[0] (user): the last message cannot be "
                         "continued: it has no text");
    reply_free(r);
    server_close(&s);
}

/* The message is found even if its text is also in the template's marks, and as a list of parts. */
TEST(short_continued_messages) {
    static const char *const talks[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Go on.\"}, {\"role\": \"assistant\", "
        "\"content\": \"e\"}]}",
        "{\"messages\": [{\"content\": \"Go on.\", \"role\": \"user\"}, {\"content\": [{\"type\": "
        "\"text\", \"text\": \"e\"}], \"role\": \"assistant\"}]}"};
    static const char text[] = "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string "
                               "%}{{ m.content }}{% else %}"
                               "{{ m.content[0].text }}{% endif %}<|end e|>{% endfor %}";
    const llm_chat_template with = {"ends", {text, sizeof text - 1}};
    server s = {0};
    REQUIRE(server_open(&s, 0));
    llm_chat_free(s.chat);
    REQUIRE_OK(llm_chat_new(&s.chat, NULL, NULL, &with, &s.err), &s.err);
    for (int i = 0; i < 2; i++) {
        ask *a = ask_chat(&s, "hi");
        ask_set_talk(a, talks[i]);
        a->continues = a->echo = true;
        a->n_max = 0;
        http_reply *r = answer_alone(&s, a);
        char *got = content_of(r, 0);
        CHECK_STR(got, "<|user|>Go on.<|end e|><|assistant|>e");
        free(got);
        reply_free(r);
    }
    server_close(&s);
}

/* --- clients and limits ------------------------------------------------------------------------- */

/* Clients that go at random points free everything, and change no other answer. */
TEST(clients_that_go) {
    enum { N = 24 };
    server s = {0};
    http_reply *r[N], *want;
    uint64_t seed = sample_seed();
    REQUIRE(server_open(&s, 0));
    want = answer_alone(&s, ask_text(&s, prompts[4]));
    for (int i = 0; i < N; i++) {
        ask *a = ask_text(&s, prompts[4]);
        a->stream = i % 2;
        a->n_choices = 1 + i % 6;
        r[i] = start(&s, a);
        r[i]->gone_after = i % 2 ? 1 + (int)(test_random(&seed) % 20) : 0;
        server_run(&s, (int)(test_random(&seed) % 5));
        const int who = (int)(test_random(&seed) % (uint64_t)(i + 1));
        r[who]->gone |= who % 3 == 0;
    }
    server_run(&s, 100000);
    CHECK_INT(answers_n(s.answers), 0);
    for (int i = 0; i < N; i++) {
        CHECK(r[i]->ended);
        if (!r[i]->gone && i % 2 == 0) {
            char *got = content_of(r[i], 0), *text = content_of(want, 0);
            CHECK_STR(got, text);
            free(got);
            free(text);
        }
        reply_free(r[i]);
    }
    CHECK(s.count[COUNT_GONE] > 5);
    reply_free(want);
    server_close(&s);
}

/* A step may end in its middle once nobody waits for what it computes. */
TEST(steps_for_nobody) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    CHECK(!answers_run_for_nobody(s.answers));
    http_reply *a = start(&s, ask_text(&s, prompts[4])), *b = start(&s, ask_text(&s, prompts[3]));
    server_run(&s, 1);
    CHECK(answers_n(s.answers) == 2 && !answers_run_for_nobody(s.answers));
    a->gone = true;
    CHECK(!answers_run_for_nobody(s.answers));
    b->gone = true;
    CHECK(answers_run_for_nobody(s.answers));
    server_run(&s, 100000);
    CHECK(answers_n(s.answers) == 0 && !answers_run_for_nobody(s.answers));
    reply_free(a);
    reply_free(b);
    server_close(&s);
}

TEST(full_queues) {
    enum { N = 12 };
    server s = {0};
    http_reply *r[N];
    int n_refused = 0;
    REQUIRE(server_open(&s, 2));
    for (int i = 0; i < N; i++) {
        ask *a = ask_text(&s, prompts[i % N_PROMPTS]);
        a->n_choices = 1 + 5 * (i == 0); /* more than the queue has room for */
        a->stream = i % 2;
        r[i] = start(&s, a);
    }
    server_run(&s, 100000);
    for (int i = 0; i < N; i++) {
        CHECK(r[i]->ended && (r[i]->status == 200 || r[i]->status == 429));
        if (r[i]->status == 429) {
            n_refused++;
            CHECK_STR(r[i]->retry_after, "1");
            CHECK_HAS(r[i]->body.s, "X 429 rate_limit");
        }
        reply_free(r[i]);
    }
    CHECK(n_refused > 5 && n_refused < N);
    CHECK_INT(s.count[COUNT_REJECTED], n_refused);
    server_close(&s);
}

TEST(deadlines) {
    server s = {.now = 1};
    REQUIRE(server_open(&s, 0));
    ask *a = ask_text(&s, prompts[0]);
    a->seconds = 0.1; /* of a clock that goes on 1 ms at each look */
    a->n_max = -1;
    http_reply *r = answer_alone(&s, a);
    char end[24];
    snprintf(end, sizeof end, "F 0 %d x ", FINISH_DEADLINE);
    CHECK_HAS(r->body.s, end);
    reply_free(r);
    a = ask_text(&s, prompts[0]);
    a->seconds = 0.1;
    r = start(&s, a);
    s.now += 200000000;
    server_run(&s, 100000);
    CHECK_HAS(r->body.s, "X 504 timeout");
    CHECK_INT(r->status, 504);
    reply_free(r);
    server_close(&s);
}

/* A stream that waits for long says that it is alive. */
TEST(streams_stay_alive) {
    enum { N = FIXTURE_PARALLEL + 1 };
    server s = {.now = 1};
    http_reply *r[N];
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < N; i++) {
        ask *a = ask_text(&s, prompts[4]);
        a->stream = true;
        r[i] = start(&s, a);
    }
    for (int i = 0; i < 4; i++) {
        s.now += 6000000000;
        server_run(&s, 1);
    }
    CHECK_STR(r[N - 1]->body.s, "B\nA\nA\n"); /* the first one begins it */
    CHECK(!strstr(r[0]->body.s, "A\n"));
    server_run(&s, 100000);
    for (int i = 0; i < N; i++) {
        CHECK(r[i]->ended);
        reply_free(r[i]);
    }
    server_close(&s);
}

/* The server ends: streams that have begun get an error event, all others a status. */
TEST(the_server_ends) {
    server s = {0};
    http_reply *r[6];
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < 6; i++) {
        ask *a = ask_text(&s, prompts[0]);
        a->stream = i % 2;
        a->n_choices = 3;
        r[i] = start(&s, a);
    }
    server_run(&s, 3);
    llm_engine_free(s.engine);
    s.engine = NULL;
    s.ends = true;
    int n_begun = 0;
    for (int i = 0; i < 6; i++) {
        const bool has_begun = i % 2 && strncmp(r[i]->body.s, "B\n", 2) == 0;
        n_begun += has_begun;
        CHECK(r[i]->ended);
        CHECK_INT(r[i]->status, has_begun ? 200 : 503);
        CHECK_HAS(r[i]->body.s, has_begun ? "X 503 overloaded the server is ending 1\n"
                                          : "X 503 overloaded the server is ending 0\n");
        CHECK_INT(count_of(r[i]->body.s, "X "), 1);
        reply_free(r[i]);
    }
    CHECK(n_begun > 0 && n_begun < 3);
    http_reply *late = start(&s, ask_text(&s, prompts[0]));
    CHECK_INT(late->status, 503);
    CHECK(late->ended);
    reply_free(late);
    server_close(&s);
}

/* Whenever the server ends, every request is answered: also one whose first choice has just ended, and whose second
 * one has no room in the queue. */
TEST(the_server_ends_at_any_step) {
    enum { N = FIXTURE_PARALLEL + 1, SHORT = N - 2 };
    for (int n_steps = 1; n_steps < 8; n_steps++) {
        server s = {0};
        http_reply *r[N];
        REQUIRE(server_open(&s, 1));
        for (int i = 0; i < N; i++) {
            ask *a = ask_text(&s, prompts[i % N_PROMPTS]);
            a->n_choices = 1 + (i == SHORT);
            a->n_max = i == SHORT ? 3 : 60;
            a->ignore_eos = true;
            a->stream = n_steps % 2;
            r[i] = start(&s, a);
            server_run(&s, i < N - 1);
        }
        server_run(&s, n_steps);
        llm_engine_free(s.engine);
        s.engine = NULL;
        answers_end(s.answers);
        CHECK_INT(answers_n(s.answers), 0);
        for (int i = 0; i < N; i++) {
            CHECK(r[i]->ended && r[i]->status != 429);
            reply_free(r[i]);
        }
        server_close(&s);
    }
}
