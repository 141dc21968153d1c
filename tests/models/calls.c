/* Calls in answers (llm/internal/calls.h): what is found in answers of each format; what is broken is never lost; hostile
 * answers take linear time. calls_cut.c has what is found before an answer is complete. */
#include "alloc_fail.h"
#include "calls_answers.h"
#include "ggl/alloc.h"
#include "steps.h"

TEST(answers_of_all_formats) {
    for (int i = 0; i < N_ANSWERS; i++) {
        parts p;
        REQUIRE(
            CHECK_MSG(read_answer(&answers[i], 0, NULL, &p), "%s: %s", answers[i].format, err.msg));
        if (!CHECK_STR(p.s, answers[i].want))
            fprintf(stderr, "  %s\n", answers[i].text);
    }
}

TEST(every_format_has_an_answer) {
    ggl_str name;
    int n = 0;
    for (; (name = llm_calls_format_name(n)).n > 0; n++) {
        bool found = false;
        for (int i = 0; i < N_ANSWERS && !found; i++)
            found = ggl_str_is(name, answers[i].format);
        CHECK_MSG(found, "no answer for %.*s", (int)name.n, name.s);
    }
    CHECK(n > 30);
}

/* However an answer is cut, its parts are the same. */
TEST(pieces_do_not_matter) {
    uint64_t state = sample_seed();
    for (int i = 0; i < N_ANSWERS; i++)
        for (int k = 0; k < 60; k++) {
            parts p;
            const size_t most = k == 0 ? 1 : k % 2 ? 3 : 20;
            REQUIRE(read_answer(&answers[i], most, &state, &p));
            if (!CHECK_STR(p.s, answers[i].want))
                return;
        }
}

/* Answers with a piece removed, doubled or replaced by one of another: also then pieces do not
 * matter, and whatever is not a mark or white space is in some part. */
TEST(broken_answers_in_pieces) {
    uint64_t state = sample_seed() + 1;
    for (int k = 0; k < 4000; k++) {
        char text[2048];
        answer a = answers[test_random(&state) % N_ANSWERS];
        const char *other = answers[test_random(&state) % N_ANSWERS].text;
        const size_t n = strlen(a.text), m = strlen(other), at = test_random(&state) % (n + 1),
                     from = test_random(&state) % (m + 1);
        const size_t gone = test_random(&state) % (n - at + 1),
                     more = test_random(&state) % (m - from + 1);
        snprintf(text, sizeof text, "%.*s%.*s%s", (int)at, a.text, (int)more, other + from,
                 a.text + at + gone);
        a.text = text;
        parts whole, cut;
        REQUIRE(read_answer(&a, 0, NULL, &whole) && read_answer(&a, 1 + k % 9, &state, &cut));
        if (!CHECK_STR(cut.s, whole.s)) {
            fprintf(stderr, "  %s: %s\n", a.format, text);
            return;
        }
    }
}

/* What the prompt has begun of an answer, and how the answer goes on. */
TEST(answers_that_go_on) {
    static const struct {
        const char *format, *prompt, *begun, *text, *want;
    } row[] = {
        {"hermes", "assistant\n<think>\n", "I'm", " thinking\n</think>\n\nHello",
         "( thinking \"Hello"},
        {"hermes", "assistant\n", "<think>\nI'm ", "thinking</think>Hello", "(thinking \"Hello"},
        {"hermes", "assistant\n", "<think>\nSo\n</think>\n\nHello, ", "world </think>",
         "\"world </think>"},
        {"hermes", "<think>", "\n\n</think>\n\nHello", ", <b>", "\", <b>"},
        {"hermes", "assistant\n<think>\n", "", "So</think>Hello", "(So \"Hello"},
        {"harmony", "<|start|>assistant", "<|channel|>analysis<|message|>I'm",
         " thinking<|end|><|start|>assistant<|channel|>final<|message|>Hello",
         "( thinking \"Hello"},
        {"gemma4", "<|turn>model\n", "<|channel>thought\nI'm", " here<channel|>Hello",
         "( here \"Hello"},
        {"hermes", "assistant\n", "So<tool_call>{\"name\": \"f\", ", "\"arguments\": {}}", "f{}"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t most = 1; most < 200; most += 150) {
            llm_calls *c;
            llm_calls_kind last = LLM_CALLS_CALL;
            char prompt[256];
            parts p = {0};
            snprintf(prompt, sizeof prompt, "%s%s", row[i].prompt, row[i].begun);
            const llm_calls_params params = {.size = sizeof params,
                                             .format = str(row[i].format),
                                             .prompt = str(prompt),
                                             .n_begun = strlen(row[i].begun)};
            REQUIRE_OK(llm_calls_new(&c, &params, &err), &err);
            const size_t n = strlen(row[i].text);
            for (size_t k = 0; k < n; k += most) {
                CHECK_OK(llm_calls_add(c, row[i].text + k, most < n - k ? most : n - k, &err),
                         &err);
                drain(c, &p, &last);
            }
            CHECK_OK(llm_calls_finish(c, &err), &err);
            drain(c, &p, &last);
            llm_calls_free(c);
            CHECK_STR(p.s, row[i].want);
        }
}

static void check_format(const char *template_text, const char *want) {
    const ggl_str got = llm_calls_format(str(template_text));
    CHECK_MSG(ggl_str_is(got, want), "%s: %.*s, expected %s", template_text, (int)got.n, got.s,
              want);
}

TEST(the_format_follows_from_the_template) {
    check_format("", "plain");
    check_format("{{ messages }}", "reasoning");
    check_format("<think> </think>", "reasoning");
    check_format("return {\"name\": ..} within <tool_call></tool_call>", "hermes");
    check_format("<tool_call>\n<function=example>\n<parameter=x>", "qwen3-coder");
    check_format("<tool_call>{name}\n<arg_key>{key}</arg_key>", "glm");
    check_format("'<|python_tag|>' + x", "llama3");
    check_format("Respond in the format {\"name\": function name, \"parameters\": dictionary}",
                 "llama3");
    check_format("[AVAILABLE_TOOLS] [TOOL_CALLS]", "mistral");
    check_format("<|start|>assistant<|channel|>final<|message|>", "harmony");
    check_format("<|tool_call|>", "granite");
    check_format("<|tool_call|>[]<|/tool_call|>", "phi4-mini");
    check_format("<｜tool▁call▁begin｜>function", "deepseek");
    check_format("{%- set ns_token = ']<]minimax[>[' %}<mm:think><tool_call>", "minimax-m3");
    check_format("List of tools: [<|tool_call_start|>", "lfm2");
    check_format("\"List of tools: [\" <think>", "lfm2.5");
    check_format("<function name=\"' ~ f ~ '\"><param name=\"", "minicpm5");
    check_format("<|function_call|> <|role_sep|> function call <|message_sep|>", "gigachat3.1");
    check_format("'role': 'function call' <|role_sep|>\n <|message_sep|>", "gigachat3");
    check_format("'<atem:function_calls>\n<atem:invoke name=\"'", "muse");
    check_format("'<|open|>' + tag '<|sep|>' '<|close|>' <|end_of_msg|>", "kimi-k3");
    check_format("<ifm|tool_calls><ifm|tool_call>{{ name }}<ifm|arg_key>", "k2-horizon");
    check_format("<|channel|> <|message|> <rfl:parameter name=", "harmony-xml");
    check_format("{# chat_format=llm-jp-harmony-v1 #}<|channel|> <|message|>", "llm-jp-harmony");
    check_format("<role>ASSISTANT</role><tool_call><arg_key>", "ling3");
    check_format("Here are my reasoning steps:\n [BEGIN FINAL RESPONSE] <tool_calls>", "apriel");
}

TEST(wrong_parameters) {
    llm_calls *c;
    llm_calls_params p = {.size = sizeof p, .format = str("nothing")};
    CHECK(llm_calls_new(&c, &p, &err) == GGL_NOT_FOUND && !c);
    CHECK_HAS(err.msg, "there is no call format \"nothing\"; there are minimax-m3, muse, ");
    p = (llm_calls_params){.size = sizeof(llm_calls_params), .tools = value_of("{}")};
    CHECK(llm_calls_new(&c, &p, &err) == GGL_FORMAT && !c);
    CHECK_HAS(err.msg, "tools: an object, expected an array");
    p = (llm_calls_params){.size = sizeof(llm_calls_params), .max_size = 4};
    REQUIRE_OK(llm_calls_new(&c, &p, &err), &err);
    CHECK_OK(llm_calls_add(c, "abcd", 4, &err), &err);
    CHECK(llm_calls_add(c, "e", 1, &err) == GGL_LIMIT);
    llm_calls_free(c);
    llm_calls_free(NULL);
}

/* Answers that begin with a text and repeat a piece; the steps grow like their length, whether they come whole or byte
 * by byte. */
static uint64_t steps_of(const char *format, const char *begin, const char *piece, size_t times,
                         bool bytes) {
    llm_calls *c;
    llm_calls_part part;
    const llm_calls_params p = {
        .size = sizeof p, .format = str(format), .tools = value_of(A_STRING)};
    const size_t n = strlen(piece);
    if (!CHECK_OK(llm_calls_new(&c, &p, &err), &err))
        return 0;
    ggl_n_steps = 0;
    if (begin && !CHECK_OK(llm_calls_add(c, begin, strlen(begin), &err), &err))
        return 0;
    for (size_t i = 0; i < times; i++)
        for (size_t k = 0; k < n; k += bytes ? 1 : n)
            if (!CHECK_OK(llm_calls_add(c, piece + k, bytes ? 1 : n, &err), &err))
                return 0;
    CHECK_OK(llm_calls_finish(c, &err), &err);
    while (llm_calls_next(c, &part))
        ;
    llm_calls_free(c);
    return ggl_n_steps;
}

LONG_TEST(hostile_answers_take_linear_time) {
    static const char *const hostile[][3] = {
        /* the third begins the answer */
        {"hermes", "<tool_call>{\""},
        {"hermes", "<tool_call>{\"a"},
        {"hermes", "<tool_call>"},
        {"hermes", "<tool_call> {"},
        {"hermes", "<tool_call>{\"name\":\"f\"}"},
        {"hermes", " "},
        {"hermes", "<"},
        {"hermes", "<tool_call"},
        {"llama3", "{<|python_tag|>"},
        {"llama3", "{\"a\":1};"},
        {"llama3", ";{"},
        {"llama3", "["},
        {"llama3", "<|eot_id|>{\""},
        {"json", "<think></think>{\""},
        {"mistral", "[TOOL_CALLS]"},
        {"mistral", "[TOOL_CALLS]f[ARGS]{"},
        {"mistral", "[TOOL_CALLS]f"},
        {"qwen3-coder", "<tool_call><function=f><parameter=a>"},
        {"qwen3-coder", "<tool_call><function=f>"},
        {"glm", "<tool_call>f<arg_key>"},
        {"llama4", "[f("},
        {"llama4", "[ f"},
        {"olmo3", "<function_calls>f(a='"},
        {"harmony", "<|start|>assistant to=f "},
        {"gemma4", "<|tool_call>call:f{<|\"|>"},
        {"command-r7b", "<|START_ACTION|>[[[["},
        {"minimax-m3", NS "<invoke name=\"f\">" NS "<o>"},
        {"minimax-m3", NS "<invoke name=\"f\">" NS "<s>" NS "</invoke>"},
        {"minicpm5", "<function name=\"f\"><param name=\"s\"><![CDATA["},
        {"lfm2.5", "[f("},
        {"lfm2.5", "[f(s=\"x\")]"},
        {"hermes", "<think><tool_call>{\""},
        {"hermes", "<think><tool_call>{\"name\":\"f\"}</tool_call>"},
        {"hermes", "<think><tool_call>{\"name\":\"f\"}</tool_call>x"},
        {"kimi-k2", "<think><|tool_calls_section_begin|>"},
        {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"\\"},
        {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\" \" "},
        {"hermes", "}} "},
        {"qwen3-coder", "<function=f><parameter=s>\n</parameter> "},
        {"qwen3-coder", "<tool_call><function=f><parameter=s>\n<parameter=b>"},
        {"qwen3-coder", "<function=f><parameter=s></function> "},
        {"minimax-m2", "<invoke name=\"f\"><parameter name=\"s\"><parameter name=\""},
        {"muse", "<|start|>assistant to="},
        {"muse", "<atem:invoke name=\"f\"></atem:parameter>"},
        {"kimi-k3", "<|open|>call tool=\"f"},
        {"kimi-k3", "<|open|>call tool=\"f\"<|sep|><|open|>argument key=\""},
        {"muse", " ", "<atem:invoke name=\"f\"><atem:parameter name=\"s"},
        {"minimax-m2", "\n",
         "<minimax:tool_call><invoke name=\"f\"><parameter name=\"s\">x</parameter>"},
        {"glm", " ", "<tool_call>f<arg_key>s</arg_key>"},
        {"glm", " ", "<tool_call>f<arg_key>s"},
        {"k2-horizon", "<ifm|tool_call>f<ifm|arg_key>a<ifm|arg_type>"},
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (int bytes = 0; bytes < 2; bytes++) {
            const uint64_t small =
                steps_of(hostile[i][0], hostile[i][2], hostile[i][1], 500, bytes);
            test_linear(hostile[i][1], small,
                        steps_of(hostile[i][0], hostile[i][2], hostile[i][1], 4000, bytes), 8);
        }
}

/* Many calls in one object: {"f0": {}, "f1": {}, ..}. */
static uint64_t steps_of_map(int n_calls) {
    char *text = malloc((size_t)n_calls * 20 + 100), *end = text;
    end += sprintf(end, "<|tools_prefix|>{");
    for (int i = 0; i < n_calls; i++)
        end += sprintf(end, "%s\"f%d\": {}", i ? ", " : "", i);
    sprintf(end, "}<|tools_suffix|>");
    const uint64_t n = steps_of("apertus", NULL, text, 1, false);
    free(text);
    return n;
}

TEST(maps_of_calls_take_linear_time) {
    const uint64_t small = steps_of_map(200);
    test_linear("a map of calls", small, steps_of_map(1600), 10);
}

static bool reads(void *arg) {
    parts p;
    return read_answer(arg, 0, NULL, &p);
}

/* Each failing allocation is reported as such. */
TEST(no_memory_for_formats) {
    for (int k = 1;; k++) {
        llm_calls *c;
        const llm_calls_params p = {.size = sizeof p, .format = {"hermes", 6}};
        alloc_fail_at(k);
        const ggl_status st = llm_calls_new(&c, &p, &err);
        const bool failed = alloc_has_failed();
        alloc_fail_at(0);
        llm_calls_free(c);
        CHECK_INT(st, failed ? GGL_NOMEM : GGL_OK);
        if (!failed)
            break;
    }
}

TEST(every_allocation_fails_in_turn) {
    long failed = 0;
    for (int i = 0; i < N_ANSWERS; i++) {
        answer a = answers[i];
        (void)value_of(a.tools); /* its memory is the test's */
        const long n = alloc_fail_each(reads, &a);
        if (!CHECK_MSG(n > 0, "%s: %ld", a.text, n))
            return;
        failed += n;
    }
    CHECK(failed > 4 * N_ANSWERS);
}
