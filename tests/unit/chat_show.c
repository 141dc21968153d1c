/* Answers as they are shown: reasoning is dimmed, hidden or plain, however the text is cut. */
#include <fcntl.h>

#include "llm-cli/chat_options.h"
#include "llm-cli/chat_show.h"
#include "test.h"

static const char *format = "reasoning"; /* of answers */
static bool tools;
static char found[1024]; /* calls in the last answer */

/* Shows text in pieces of `part` bytes; out gets what is written to standard output. */
static void show(const char *prompt, const char *text, size_t part, int reasoning, bool looks,
                 char out[1024]) {
    const int saved = dup(1);
    int ends[2];
    text_stream stream = {0};
    chat_show s;
    if (!CHECK(saved >= 0 && pipe(ends) == 0))
        return;
    fflush(stdout);
    dup2(ends[1], 1);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ggl_error err = {0};
    const chat_show_params p = {.out = &stream,
                                .reasoning = reasoning,
                                .has_looks = looks,
                                .has_tools = tools,
                                .calls = {.size = sizeof(llm_calls_params),
                                          .format = {format, strlen(format)},
                                          .prompt = {prompt, strlen(prompt)}}};
    CHECK_OK(chat_show_begin(&s, &p, &err), &err);
    for (size_t i = 0, n = strlen(text); i < n; i += part)
        CHECK_OK(chat_show_put(&s, text + i, n - i < part ? n - i : part, &err), &err);
    CHECK_OK(chat_show_end(&s, false, &err), &err);
    snprintf(found, sizeof found, "%.*s", (int)s.n_found, s.found ? s.found : "");
    chat_show_fini(&s);
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    close(ends[1]);
    const ssize_t n = read(ends[0], out, 1023);
    out[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

#define DIM  "\033[2m"
#define BACK "\033[0m"

TEST(reasoning) {
    static const struct {
        const char *prompt, *text, *shown, *dim, *plain, *hidden;
    } cases[] = {
        {"", "Hi there.", "Hi there.", "Hi there.", "Hi there.", "Hi there."},
        {"", " \nHi\n", " \nHi\n", " \nHi\n", " \nHi\n", " \nHi\n"},
        {"", "<think>\nSo.\n\nOr?\n</think>\n\nHi", "<think>\nSo.\n\nOr?\n</think>\n\nHi",
         DIM "So.\n\nOr?" BACK "\n\nHi", "So.\n\nOr?\n\nHi", "Hi"},
        {"x<think>\n", "So.</think>Hi", "So.</think>Hi", DIM "So." BACK "\n\nHi", "So.\n\nHi",
         "Hi"},
        {"", "<think>\n\n</think>\n\nHi", "<think>\n\n</think>\n\nHi", "Hi", "Hi", "Hi"},
        {"", "<thin>k", "<thin>k", "<thin>k", "<thin>k", "<thin>k"},
        {"", "<thi nk>", "<thi nk>", "<thi nk>", "<thi nk>", "<thi nk>"},
        {"", "a <think>b</think>", "a <think>b</think>", "a\n\n" DIM "b" BACK, "a\n\nb", "a"},
        {"", "<think>a</th</think>b", "<think>a</th</think>b", DIM "a</th" BACK "\n\nb",
         "a</th\n\nb", "b"},
        {"", "<think>\xc3\xa9 < 3", "<think>\xc3\xa9 < 3", DIM "\xc3\xa9 < 3" BACK, "\xc3\xa9 < 3",
         ""},
        {"", "<think>a</think>", "<think>a</think>", DIM "a" BACK, "a", ""},
        {"", "<", "<", "<", "<", "<"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t part = 1; part < 9; part++) {
            char got[1024];
            show(cases[i].prompt, cases[i].text, part, REASONING_SHOW, true, got);
            CHECK_STR(got, cases[i].shown);
            show(cases[i].prompt, cases[i].text, part, REASONING_DIM, true, got);
            CHECK_STR(got, cases[i].dim);
            show(cases[i].prompt, cases[i].text, part, REASONING_DIM, false, got);
            CHECK_STR(got, cases[i].plain);
            show(cases[i].prompt, cases[i].text, part, REASONING_HIDE, false, got);
            CHECK_STR(got, cases[i].hidden);
        }
}

TEST(calls) {
    static const char text[] =
        "I'll look.<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>"
        "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>Done";
    char got[1024];
    format = "hermes";
    for (size_t part = 1; part < 9; part++) {
        tools = true;
        show("", text, part, REASONING_DIM, true, got);
        CHECK_STR(got, "I'll look.\n\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n"
                       "{\"name\": \"g\", \"arguments\": {}}\nDone");
        CHECK_STR(
            found,
            "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\":1}}}, "
            "{\"type\": \"function\", \"function\": {\"name\": \"g\", \"arguments\": {}}}");
        tools = false; /* they are text */
        show("", text, part, REASONING_SHOW, true, got);
        CHECK_STR(got, text);
    }
}
