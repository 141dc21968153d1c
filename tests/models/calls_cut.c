/* Calls in answers that are still being written, or were cut off: pieces of their arguments come early, and what could be a part of a call is
 * not shown. */
#include "calls_answers.h"

typedef struct begun {
    char name[2048], id[2048], args[2048];
} begun;

/* Reads an answer with partial calls: their pieces, joined, are the beginning of the arguments, and without BEGINS and PIECE
 * the parts are the same. *n_early: bytes of arguments that came before the call. */
static bool read_partial(const answer *a, size_t most, uint64_t *state, parts *p, size_t *n_early) {
    static begun b[64];
    int n_begun = 0, n_called = 0;
    llm_calls *c;
    llm_calls_kind last = LLM_CALLS_CALL;
    llm_calls_part part;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = value_of(a->tools),
                                     .partial = true};
    *p = (parts){0};
    *n_early = 0;
    if (llm_calls_new(&c, &params, &err) != GGL_OK)
        return false;
    const size_t n = strlen(a->text);
    bool ok = true;
    for (size_t i = 0, k; ok && i <= n; i += k) {
        k = i == n ? 1 : 1 + test_random(state) % most;
        k = i < n && k > n - i ? n - i : k;
        ok = (i < n ? llm_calls_add(c, a->text + i, k, &err) : llm_calls_finish(c, &err)) == GGL_OK;
        while (ok && llm_calls_next(c, &part)) {
            if (part.kind == LLM_CALLS_BEGINS) {
                if (!CHECK(n_begun < 64))
                    return false;
                b[n_begun] = (begun){0};
                snprintf(b[n_begun].name, sizeof b->name, "%.*s", (int)part.name.n, part.name.s);
                snprintf(b[n_begun++].id, sizeof b->id, "%.*s", (int)part.id.n, part.id.s);
                continue;
            }
            if (part.kind == LLM_CALLS_PIECE) {
                if (!CHECK(n_begun > 0))
                    return false;
                strncat(b[n_begun - 1].args, part.arguments.s, part.arguments.n);
                *n_early += part.arguments.n;
                continue;
            }
            if (part.kind == LLM_CALLS_CALL && part.has_begun) {
                const begun *x = &b[n_called++];
                if (!CHECK(n_called <= n_begun))
                    return false;
                /* an id may come after the arguments */
                CHECK_MSG(ggl_str_is(part.name, x->name), "%s: %s: %.*s, begun as %s", a->format,
                          a->text, (int)part.name.n, part.name.s, x->name);
                CHECK_MSG(!x->id[0] || ggl_str_is(part.id, x->id), "%s: id %s", a->text, x->id);
                CHECK_MSG(strncmp(part.arguments.s, x->args, strlen(x->args)) == 0,
                          "%s: '%s' does not begin %.*s", a->text, x->args, (int)part.arguments.n,
                          part.arguments.s);
            } else if (part.kind == LLM_CALLS_BROKEN || part.kind == LLM_CALLS_CALL)
                n_called = n_begun; /* what was begun before has no call */
            put_part(p, &part, &last);
        }
    }
    llm_calls_free(c);
    return ok;
}

TEST(calls_while_they_are_written) {
    uint64_t state = sample_seed() + 2;
    for (int i = 0; i < N_ANSWERS; i++)
        for (int k = 0; k < 20; k++) {
            parts p;
            size_t n;
            REQUIRE(read_partial(&answers[i], k == 0 ? 1 : 7, &state, &p, &n));
            if (!CHECK_STR(p.s, answers[i].want))
                return;
        }
}

/* Writes the character after one of the quotes as JSON may: \u and four digits. */
static void escape_one(char *s, size_t size, uint64_t *state) {
    const size_t n = strlen(s), first = test_random(state) % (n + 1);
    char *quote = strchr(s + first, '"');
    if (!quote || n + 6 > size || quote[1] < 'a' || quote[1] > 'z')
        return;
    char code[7];
    snprintf(code, sizeof code, "\\u%04x", (unsigned)quote[1]);
    memmove(quote + 7, quote + 2, strlen(quote + 2) + 1);
    memcpy(quote + 1, code, 6);
}

/* The same with pieces of answers removed, doubled and exchanged, and with escapes. */
TEST(broken_calls_while_they_are_written) {
    uint64_t state = sample_seed() + 3;
    for (int k = 0; k < 4000; k++) {
        char text[2048];
        answer a = answers[test_random(&state) % N_ANSWERS];
        const char *other = answers[test_random(&state) % N_ANSWERS].text;
        const size_t n = strlen(a.text), m = strlen(other), at = test_random(&state) % (n + 1),
                     from = test_random(&state) % (m + 1);
        snprintf(text, sizeof text, "%.*s%s%s", (int)at, a.text, other + from,
                 a.text + at + test_random(&state) % (n - at + 1));
        if (k % 3 == 0)
            escape_one(text, sizeof text, &state);
        a.text = text;
        parts whole, cut;
        size_t early;
        REQUIRE(read_answer(&a, 0, NULL, &whole) &&
                read_partial(&a, 1 + k % 9, &state, &cut, &early));
        if (!CHECK_STR(cut.s, whole.s)) {
            fprintf(stderr, "  %s: %s\n", a.format, text);
            return;
        }
    }
}

/* A key that comes twice has its first value, while the call is written and at its end, however it is written. */
TEST(a_name_that_comes_twice) {
    static const char *const texts[] = {
        "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"name\": \"f\", "
        "\"arguments\": {\"a\": 1}}]</tool_call>",
        "<tool_call>{\"name\": \"f\", \"id\": \"x\", \"id\": \"y\", \"arguments\": "
        "{}}</tool_call>",
        "<tool_call>{\"n\\u0061me\": \"f\", \"name\": \"g\", \"arguments\": {\"a\": "
        "1}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"argum\\u0065nts\": {\"x\": 9}, \"arguments\": {\"a\": "
        "1}}</tool_call>"};
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const answer a = {"hermes", texts[i], "", 0, 0};
        parts whole, cut;
        size_t early;
        REQUIRE(read_answer(&a, 0, NULL, &whole) && read_partial(&a, 1, &state, &cut, &early));
        CHECK_STR(cut.s, whole.s);
    }
}

/* Byte by byte, almost all of the arguments comes before the call, in the formats whose arguments can be given early. */
TEST(arguments_come_early) {
    static const answer long_calls[] = {
        {"hermes",
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a long text\", \"n\": [1, "
         "2]}}</tool_call>",
         "", 0, A_STRING},
        {"hermes",
         "<tool_call>[{\"name\": \"f\", \"arguments\": {\"s\": \"a long text\"}}, {\"name\": "
         "\"g\", \"arguments\": {}}]</tool_call>",
         "", 0, 0},
        {"llama3", "{\"name\": \"f\", \"parameters\": {\"s\": \"a \\\"long\\\" text\"}}", "", 0,
         A_STRING},
        {"kimi-k2",
         "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"s\": \"a long "
         "text\"}<|tool_call_end|>",
         "", 0, 0},
        {"qwen3-coder",
         "<tool_call><function=f><parameter=s>\na "
         "long\ntext\n</parameter><parameter=n>\n5\n</parameter></function></tool_call>",
         "", 0, A_STRING},
        {"deepseek-v3.2",
         "<｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" string=\"true\">a long "
         "text</｜DSML｜parameter></｜DSML｜invoke>",
         "", 0, 0},
        {"minicpm5",
         "<function name=\"f\"><param name=\"s\"><![CDATA[a <long> text]]></param></function>", "",
         0, 0},
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof long_calls / sizeof *long_calls; i++) {
        parts p;
        size_t early;
        REQUIRE(read_partial(&long_calls[i], 1, &state, &p, &early));
        CHECK_MSG(early >= 15 && early + 10 > strlen(p.s) - 10, "%s: %zu of '%s' came early",
                  long_calls[i].format, early, p.s);
    }
}

/* What may be shown while a call is being written. */
TEST(a_call_in_progress) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params p = {.size = sizeof p, .format = str("hermes")};
    REQUIRE_OK(llm_calls_new(&c, &p, &err), &err);
    CHECK_OK(llm_calls_add(c, "Let me see. <too", 16, &err), &err);
    REQUIRE(llm_calls_next(c, &part) && part.kind == LLM_CALLS_CONTENT && part.begins);
    CHECK(ggl_str_is(part.text, "Let me see.") && !llm_calls_next(c, &part));
    CHECK(llm_calls_now(c) == LLM_CALLS_CONTENT);
    CHECK_OK(llm_calls_add(c, "l_call>{\"na", 11, &err), &err);
    CHECK(llm_calls_now(c) == LLM_CALLS_CALL && !llm_calls_next(c, &part));
    CHECK_OK(llm_calls_add(c, "me\": \"f\"}</tool_call>", 21, &err), &err);
    REQUIRE(llm_calls_next(c, &part) && part.kind == LLM_CALLS_CALL);
    CHECK(ggl_str_is(part.text, "<tool_call>{\"name\": \"f\"}</tool_call>"));
    CHECK(llm_calls_now(c) == LLM_CALLS_CONTENT);
    llm_calls_free(c);
}

/* Reads the first n bytes of an answer as one that was cut off. Writes its calls, one in a line, and without them
 * how the rest begins. */
static void read_cut(const answer *a, size_t n, bool demanded, char *calls, char *rest,
                     size_t size) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params params = {.size = sizeof params,
                                     .format = str(a->format),
                                     .prompt = str(a->prompt),
                                     .tools = value_of(a->tools),
                                     .demanded = demanded};
    calls[0] = rest[0] = '\0';
    if (!CHECK_OK(llm_calls_new(&c, &params, &err), &err))
        return;
    CHECK_OK(llm_calls_add(c, a->text, n, &err), &err);
    CHECK_OK(llm_calls_cut(c, &err), &err);
    while (llm_calls_next(c, &part)) {
        const bool is_call = part.kind == LLM_CALLS_CALL;
        char *to = is_call ? calls : rest;
        const size_t at = strlen(to);
        if (is_call)
            snprintf(to + at, size - at, "%.*s%.*s\n", (int)part.name.n, part.name.s,
                     (int)part.arguments.n, part.arguments.s);
        else
            snprintf(to + at, size - at, "%.*s", (int)part.text.n, part.text.s);
    }
    llm_calls_free(c);
}

/* Wherever an answer is cut off, its calls are those with which the whole one begins. */
TEST(cut_answers_have_no_other_calls) {
    static char whole[1 << 14], calls[1 << 14], rest[1 << 14];
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const size_t n = strlen(answers[i].text);
        if (n > 2000)
            continue;
        read_cut(&answers[i], n, false, whole, rest, sizeof whole);
        for (size_t k = 0; k < n && whole[0]; k++) { /* not of those that break off after a call */
            read_cut(&answers[i], k, k % 2, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(calls, whole, strlen(calls)) == 0, "%s: '%.*s' has the calls\n%s",
                      answers[i].format, (int)k, answers[i].text, calls);
        }
    }
}

/* Of a list, the calls that are complete stay. */
TEST(cut_lists_have_what_is_complete) {
    static const answer list = {"hermes",
                                "<tool_call>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, "
                                "{\"name\": \"g\", \"arguments\": "
                                "{\"b\": 2}}]</tool_call>",
                                "", 0, 0};
    char calls[256], rest[256];
    const size_t first = (size_t)(strstr(list.text, ", {\"name\": \"g\"") - list.text),
                 second = (size_t)(strstr(list.text, "]<") - list.text);
    for (size_t k = 0; k <= strlen(list.text); k++) {
        read_cut(&list, k, false, calls, rest, sizeof calls);
        CHECK_STR(calls, k < first ? "" : k < second ? "f{\"a\":1}\n" : "f{\"a\":1}\ng{\"b\":2}\n");
        CHECK_STR(rest, "");
    }
}

/* No mark and no part of a call becomes content. */
TEST(cut_answers_show_no_marks) {
    static const struct {
        answer a;
        const char *rest;
    } cut[] = {
        {{"hermes", "I look.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", 0,
          0},
         "I look.\n"},
        {{"mistral", "So.[TOOL_CALLS]f[ARGS]{\"a\": [1, 2]}", "", 0, 0}, "So."},
        {{"qwen3-coder",
          "Hm.<tool_call><function=f><parameter=a>1</parameter></function></tool_call>", "", 0, 0},
         "Hm."},
        {{"kimi-k2",
          "A.<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "",
          0, 0},
         "A."},
    };
    char calls[256], rest[256];
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const size_t n = strlen(cut[i].a.text);
        for (size_t k = 0; k <= n; k++) {
            read_cut(&cut[i].a, k, false, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(rest, cut[i].rest, strlen(rest)) == 0, "'%.*s' shows '%s'", (int)k,
                      cut[i].a.text, rest);
        }
        CHECK_MSG(calls[0], "'%s' has no call", cut[i].a.text);
    }
}

/* The same for calls without marks, if calls were demanded; otherwise they may be content. */
TEST(cut_answers_show_no_demanded_call) {
    static const answer cut[] = {
        {"llama3",
         "{\"name\": \"f\", \"parameters\": {\"a\": [1]}}; {\"name\": \"g\", \"parameters\": {}}",
         "", 0, 0},
        {"json", "<think>Hm.</think>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]", "",
         0, 0},
        {"llama4", "[f(a=1), g()]", "", 0, 0},
        {"lfm2.5", "[f(a=1), g()]", "", 0, "[{\"name\": \"f\"}, {\"name\": \"g\"}]"},
    };
    char calls[256], rest[256];
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const size_t n = strlen(cut[i].text);
        for (size_t k = 0; k <= n; k++) {
            read_cut(&cut[i], k, true, calls, rest, sizeof calls);
            CHECK_MSG(strncmp(rest, "Hm.", strlen(rest)) == 0, "'%.*s' shows '%s'", (int)k,
                      cut[i].text, rest);
        }
        CHECK_MSG(calls[0], "'%s' has no call", cut[i].text);
        read_cut(&cut[i], n - 2, false, calls, rest, sizeof calls);
        CHECK_MSG(rest[0], "'%s' shows nothing", cut[i].text);
    }
}
