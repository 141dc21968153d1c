/* From tokens to parts: however a text is cut into tokens, its parts are the same. */
#include "llm-server/answer_text.h"

#include "ggl/internal/show.h"
#include "llm-server/answer_parts.h"
#include "llm/internal/model.h"
#include "seed.h"
#include "test.h"

static llm_model *model;
static const llm_tokenizer *tokenizer;
static ggl_error err;

static bool open_tokenizer(void) {
    return CHECK_OK(llm_model_open(&model, BUILTIN_CHAT_MODEL, NULL, &err), &err) &&
           CHECK_OK(llm_model_tokenizer(model, &tokenizer, &err), &err);
}

/* Tokens whose texts together are the text, each chosen at random from those that fit. */
static llm_tokens cut_at_random(const char *text, size_t n, uint64_t *seed) {
    llm_tokens ids = {0};
    const int32_t n_vocab = llm_tokenizer_n_vocab(tokenizer);
    for (size_t at = 0; at < n;) {
        int32_t best = -1, n_fit = 0;
        for (int32_t id = 0; id < n_vocab; id++) {
            const ggl_str s = llm_token_text(tokenizer, id, false);
            const bool fits = s.n > 0 && s.n <= n - at && memcmp(s.s, text + at, s.n) == 0;
            n_fit += fits;
            if (fits && test_random(seed) % (uint64_t)n_fit == 0)
                best = id;
        }
        if (!CHECK(best >= 0) || !ggl_grow(&ids.id, &ids.cap, ids.n + 1, sizeof *ids.id))
            break;
        ids.id[ids.n++] = best;
        at += llm_token_text(tokenizer, best, false).n;
    }
    return ids;
}

typedef struct taken {
    answer_parts parts;
    bool clean; /* all texts are UTF-8 */
} taken;

static bool take(void *ctx, const answer_part *part) {
    taken *t = ctx;
    for (size_t i = 0, size; i < part->text.n; i += size)
        if ((size = ggl_utf8_length(part->text.s + i, part->text.n - i)) == 0) {
            t->clean = false;
            break;
        }
    return answer_parts_add(&t->parts, part);
}

/* Reads tokens; the result is freed by answer_parts_fini. */
static answer_part *read_tokens(taken *out, answer_text_params p, const llm_tokens *ids,
                                size_t *n_parts) {
    answer_text t = {0};
    *out = (taken){.clean = true};
    p.tokenizer = tokenizer;
    p.take = take;
    p.ctx = out;
    if (p.stops)
        llm_stop_reset(p.stops);
    answer_text_begin(&t, &p);
    for (size_t i = 0; i < ids->n; i++) {
        const answer_token token = {.id = ids->id[i], .logprob = -(double)i};
        CHECK_OK(answer_text_token(&t, &token, &err), &err);
    }
    CHECK_OK(answer_text_end(&t, false, &err), &err);
    answer_text_fini(&t);
    CHECK(out->clean);
    return answer_parts_end(&out->parts, n_parts);
}

/* Bytes that are no UTF-8 become U+FFFD each. */
static void plain_clean(const char *s, size_t n, answer_bytes *out) {
    out->n = 0;
    answer_bytes_add(out, "", 0);
    for (size_t i = 0; i < n;) {
        const size_t size = ggl_utf8_length(s + i, n - i);
        answer_bytes_add(out, size ? s + i : "\xef\xbf\xbd", size ? size : 3);
        i += size ? size : 1;
    }
}

TEST(characters) {
    static const char *const pieces[] = {"a",    " b", "\xc3\xa4",         "\xe2\x82\xac",
                                         "\xff", "\n", "\xf0\x9f\x98\x80", "\xe2\x82",
                                         "\x80", "x",  "\xed\xa0\x80",     "\xf0\x9f"};
    uint64_t seed = sample_seed();
    REQUIRE(open_tokenizer());
    for (int round = 0; round < 300; round++) {
        char text[256] = "";
        answer_bytes want = {0};
        taken got;
        size_t n_parts;
        for (int i = 0; i < 24; i++)
            strcat(text, pieces[test_random(&seed) % (sizeof pieces / sizeof *pieces)]);
        llm_tokens ids = cut_at_random(text, strlen(text), &seed);
        plain_clean(text, strlen(text), &want);
        const answer_part *part =
            read_tokens(&got, (answer_text_params){.n_top = 0}, &ids, &n_parts);
        if (CHECK(n_parts == 1 && part[0].kind == PART_CONTENT))
            CHECK_STR(part[0].text.s, want.s);
        answer_parts_fini(&got.parts);
        llm_tokens_fini(&ids);
        ggl_free(want.s);
    }
    llm_model_free(model);
}

static const char hermes[] = "<think>\nLet me see.</think>\nI look it up.\n<tool_call>\n{\"name\": "
                             "\"look_up\", \"arguments\": {\"word\": \"\xc3\xa4\"}}\n</tool_call>";

/* Reads `hermes` with parameters. */
static answer_part *read_calls(taken *got, answer_text_params p, uint64_t *seed, size_t *n_parts) {
    const llm_calls_params c = {
        .size = sizeof c, .format = {"hermes", 6}, .no_calls = !p.has_tools};
    llm_tokens ids = cut_at_random(hermes, sizeof hermes - 1, seed);
    CHECK_OK(llm_calls_new(&p.calls, &c, &err), &err);
    p.marks = LLM_CALLS_ALL_TOKENS;
    answer_part *part = read_tokens(got, p, &ids, n_parts);
    llm_calls_free(p.calls);
    llm_tokens_fini(&ids);
    return part;
}

/* Calls in pieces, joined. A whole call, and the first piece, have the name. */
typedef struct joined {
    char text[512];
    int n_begun, n_pieces, n_ended;
} joined;

static bool join(void *ctx, const answer_part *part) {
    joined *j = ctx;
    if (part->kind != PART_CALL)
        return true;
    CHECK(part->is_continued == (part->name.n == 0));
    CHECK_INT(part->call, j->n_begun - part->is_continued);
    CHECK(part->is_continued == (j->n_begun > j->n_ended));
    snprintf(j->text + strlen(j->text), sizeof j->text - strlen(j->text), "%.*s%.*s%s",
             (int)part->name.n, part->name.s, (int)part->arguments.n, part->arguments.s,
             part->goes_on ? "" : ";");
    j->n_begun += !part->is_continued;
    j->n_ended += !part->goes_on;
    j->n_pieces++;
    return true;
}

TEST(calls_in_pieces) {
    static const struct {
        const char *format, *text, *want;
    } row[] = {
        {"hermes",
         "So <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": \"a long "
         "text\"}]}}</tool_call> and"
         "<tool_call>[{\"name\": \"g\", \"arguments\": {}}, {\"name\": \"h\", \"arguments\": "
         "{\"x\": 1}}, "
         "{\"arguments\": {\"y\": 2}, \"name\": \"i\"}]</tool_call>",
         "f{\"a\":[1,{\"b\":\"a long text\"}]};g{};h{\"x\":1};i{\"y\":2};"},
        {"hermes",
         "<tool_call>[{\"arguments\": {\"y\": 2}, \"name\": \"i\"}, {\"name\": \"h\", "
         "\"arguments\": "
         "{\"x\": 1}}]</tool_call>",
         "i{\"y\":2};h{\"x\":1};"},
        {"hermes",
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}, oh no</tool_call>."
         "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
         "f{\"a\":1};g{};"},
        {"glm", "<tool_call>f<arg_key>a</arg_key><arg_value>x y</arg_value></tool_call>",
         "f{\"a\":\"x y\"};"},
        {"gemma4", "<|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|>", "f{\"a\":\"x\"};"},
    };
    uint64_t seed = sample_seed();
    REQUIRE(open_tokenizer());
    for (size_t i = 0; i < 20 * sizeof row / sizeof *row; i++) {
        const char *text = row[i / 20].text;
        const llm_calls_params c = {.size = sizeof c,
                                    .format = {row[i / 20].format, strlen(row[i / 20].format)},
                                    .partial = true};
        joined j = {0};
        answer_text t = {0};
        answer_text_params p = {.tokenizer = tokenizer,
                                .marks = LLM_CALLS_ALL_TOKENS,
                                .has_tools = true,
                                .take = join,
                                .ctx = &j};
        llm_tokens ids = cut_at_random(text, strlen(text), &seed);
        REQUIRE_OK(llm_calls_new(&p.calls, &c, &err), &err);
        answer_text_begin(&t, &p);
        for (size_t k = 0; k < ids.n; k++)
            CHECK_OK(answer_text_token(&t, &(answer_token){.id = ids.id[k]}, &err), &err);
        CHECK_OK(answer_text_end(&t, false, &err), &err);
        CHECK_STR(j.text, row[i / 20].want);
        CHECK(j.n_begun == j.n_ended && (i >= 20 || j.n_pieces > 8));
        answer_text_fini(&t);
        llm_calls_free(p.calls);
        llm_tokens_fini(&ids);
    }
    llm_model_free(model);
}

TEST(calls) {
    uint64_t seed = sample_seed();
    REQUIRE(open_tokenizer());
    for (int round = 0; round < 50; round++) {
        taken got;
        size_t n;
        const answer_part *part =
            read_calls(&got, (answer_text_params){.has_tools = true}, &seed, &n);
        if (!CHECK_INT(n, 3))
            break;
        CHECK(part[0].kind == PART_REASONING && ggl_str_is(part[0].text, "Let me see."));
        CHECK(part[1].kind == PART_CONTENT && ggl_str_is(part[1].text, "I look it up."));
        CHECK(part[2].kind == PART_CALL && ggl_str_is(part[2].name, "look_up"));
        CHECK(ggl_str_is(part[2].arguments, "{\"word\":\"\xc3\xa4\"}"));
        answer_parts_fini(&got.parts);
        /* without tools the call is text */
        part = read_calls(&got, (answer_text_params){.has_tools = false}, &seed, &n);
        CHECK_INT(n, 2);
        CHECK_HAS(part[1].text.s, "\"arguments\": {\"word\"");
        answer_parts_fini(&got.parts);
    }
    llm_model_free(model);
}

/* A stop string within a mark of calls ends the answer before the call. */
TEST(stops_and_calls) {
    const ggl_str strings[] = {{"_call>", 6}};
    uint64_t seed = sample_seed();
    answer_text_params p = {.has_tools = true, .keeps_tokens = true};
    REQUIRE(open_tokenizer());
    REQUIRE_OK(llm_stop_new(&p.stops, strings, 1, &err), &err);
    for (int round = 0; round < 50; round++) {
        taken got;
        size_t n;
        const answer_part *part = read_calls(&got, p, &seed, &n);
        if (!CHECK_INT(n, 2))
            break;
        CHECK_HAS(part[1].text.s, "I look it up.");
        CHECK(ggl_utf8_length(part[1].text.s, 1) == 1 && !strstr(part[1].text.s, "_call"));
        answer_parts_fini(&got.parts);
    }
    llm_stop_free(p.stops);
    llm_model_free(model);
}

/* Each token comes once, in order, and those of a stop string are left out. */
TEST(tokens) {
    static const char text[] = "Once there was a frog. The end. Not shown.";
    const ggl_str strings[] = {{"The end", 7}};
    uint64_t seed = sample_seed();
    llm_stop *stop = NULL;
    REQUIRE(open_tokenizer());
    REQUIRE_OK(llm_stop_new(&stop, strings, 1, &err), &err);
    for (int round = 0; round < 100; round++) {
        const answer_text_params p = {.stops = round % 2 ? stop : NULL, .keeps_tokens = true};
        taken got;
        size_t n_parts, n_shown = 0;
        llm_tokens ids = cut_at_random(text, sizeof text - 1, &seed);
        const answer_part *part = read_tokens(&got, p, &ids, &n_parts);
        if (!CHECK_INT(n_parts, 1))
            break;
        for (size_t i = 0; i < part[0].n_tokens; i++) {
            CHECK_INT(part[0].token[i].id, ids.id[i]);
            CHECK(part[0].token[i].logprob == -(double)i);
            n_shown += part[0].token[i].text.n;
        }
        CHECK(round % 2 ? n_shown >= part[0].text.n && n_shown < part[0].text.n + 12
                        : part[0].n_tokens == ids.n);
        answer_parts_fini(&got.parts);
        llm_tokens_fini(&ids);
    }
    llm_stop_free(stop);
    llm_model_free(model);
}

/* Control tokens are no text, but stop strings see them. */
TEST(control_tokens) {
    uint64_t seed = 1;
    size_t n_parts;
    taken got;
    llm_stop *stop = NULL;
    REQUIRE(open_tokenizer());
    const int32_t control = llm_tokenizer_eos(tokenizer);
    const ggl_str mark = llm_token_text(tokenizer, control, true);
    REQUIRE(control >= 0 && mark.n > 2);
    llm_tokens ids = cut_at_random("ab", 2, &seed);
    REQUIRE(ggl_grow(&ids.id, &ids.cap, ids.n + 1, sizeof *ids.id));
    ids.id[ids.n++] = control;
    const answer_part *part = read_tokens(&got, (answer_text_params){.n_top = 0}, &ids, &n_parts);
    CHECK(n_parts == 1 && ggl_str_is(part[0].text, "ab"));
    answer_parts_fini(&got.parts);
    char text[64] = "b";
    strncat(text, mark.s, mark.n);
    REQUIRE_OK(llm_stop_new(&stop, (ggl_str[]){{text, strlen(text)}}, 1, &err), &err);
    part = read_tokens(&got, (answer_text_params){.stops = stop}, &ids, &n_parts);
    CHECK(n_parts == 1 && ggl_str_is(part[0].text, "a"));
    answer_parts_fini(&got.parts);
    llm_stop_free(stop);
    llm_tokens_fini(&ids);
    llm_model_free(model);
}
