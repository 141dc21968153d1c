/* What the system's layer does on Windows alone. */
#include "ggl/internal/os_terminal.h"
#include "test.h"

#include <windows.h>

TEST(names_have_rules) {
    static const char *const good[] = {"a",
                                       "a.gguf",
                                       "C:\\x\\a.gguf",
                                       "C:a",
                                       "..",
                                       "a/.",
                                       ("gr\xc3\xb6\xc3\x9f"
                                        "e"),
                                       "NUL",
                                       "a b",
                                       ".a"};
    static const char *const bad[] = {"a?b", "a*", "x\\a|b", "x/a:b", "a\"",
                                      "<a>", "a.", "a ",     "a\tb"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(!ggl_os_name_rule(good[i]), "'%s' breaks a rule", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(ggl_os_name_rule(bad[i]), "'%s' breaks no rule", bad[i]);
}

/* The filter of crashes is called as the system would call it. */
TEST(a_crash_gives_the_console_back) {
    DWORD before = 0, edit = 0, after = 0;
    HANDLE in = CreateFileW(L"CONIN$", GENERIC_READ | GENERIC_WRITE,
                            FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL),
           out = CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE,
                             FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    (void)SetStdHandle(STD_INPUT_HANDLE, in);
    (void)SetStdHandle(STD_OUTPUT_HANDLE, out);
    if (!GetConsoleMode(in, &before))
        SKIP("there is no console");
    REQUIRE(ggl_os_terminal_begin());
    ggl_os_terminal_set(OS_TERMINAL_EDIT);
    REQUIRE(GetConsoleMode(in, &edit) && edit != before);
    LPTOP_LEVEL_EXCEPTION_FILTER filter = SetUnhandledExceptionFilter(NULL);
    REQUIRE(filter != NULL);
    EXCEPTION_RECORD record = {.ExceptionCode = (DWORD)EXCEPTION_ACCESS_VIOLATION};
    EXCEPTION_POINTERS crash = {.ExceptionRecord = &record};
    CHECK_INT(filter(&crash), EXCEPTION_CONTINUE_SEARCH);
    CHECK(GetConsoleMode(in, &after) && after == before);
}
