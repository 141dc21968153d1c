/* os_terminal.h for Windows. */
#include "ggl/internal/os_terminal.h"

#include <windows.h>

#include <errno.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

bool ggl_os_is_terminal(int fd) {
    DWORD mode;
    return _isatty(fd) && GetConsoleMode((HANDLE)_get_osfhandle(fd), &mode);
}

int ggl_os_terminal_columns(int fd) {
    CONSOLE_SCREEN_BUFFER_INFO i;
    return GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &i)
               ? i.srWindow.Right - i.srWindow.Left + 1
               : 0;
}

/* Consoles have no TERM. */
bool ggl_os_terminal_is_own(void) {
    DWORD all[2];
    return GetConsoleProcessList(all, 2) == 1;
}

bool ggl_os_terminal_draws(void) {
    const char *name = getenv("TERM");
    return !name || strcmp(name, "dumb") != 0;
}

/* --- editing ---------------------------------------------------------------------------------- */

enum { N_MODES = 3 };

static struct {
    HANDLE in, out, wake; /* wake: an event */
    DWORD input[N_MODES], output[2];
    volatile LONG mode, resized;
    char rest[8]; /* bytes of a character that did not fit */
    size_t n_rest;
    wchar_t high; /* the first half of a pair */
} term;

static LPTOP_LEVEL_EXCEPTION_FILTER next_filter;

static LONG WINAPI on_crash(EXCEPTION_POINTERS *e) {
    ggl_os_terminal_set(OS_TERMINAL_SHELL);
    return next_filter ? next_filter(e) : EXCEPTION_CONTINUE_SEARCH;
}

static void on_abort(int number) {
    (void)number;
    ggl_os_terminal_set(OS_TERMINAL_SHELL);
}

/* The console belongs to the shell, too, which would get it in this program's mode. */
static void restore_at_a_crash(void) {
    const LPTOP_LEVEL_EXCEPTION_FILTER before = SetUnhandledExceptionFilter(on_crash);
    if (before != on_crash)
        next_filter = before;
    (void)signal(SIGABRT, on_abort); /* abort() goes on after it */
}

bool ggl_os_terminal_begin(void) {
    term.in = GetStdHandle(STD_INPUT_HANDLE);
    term.out = GetStdHandle(STD_OUTPUT_HANDLE);
    if (!GetConsoleMode(term.in, &term.input[OS_TERMINAL_SHELL]) ||
        !GetConsoleMode(term.out, &term.output[0]))
        return false;
    term.wake = CreateEventW(NULL, FALSE, FALSE, NULL);
    const DWORD keys = ENABLE_VIRTUAL_TERMINAL_INPUT | ENABLE_WINDOW_INPUT;
    term.input[OS_TERMINAL_EDIT] = keys;
    term.input[OS_TERMINAL_QUIET] = keys | ENABLE_PROCESSED_INPUT;
    term.output[1] = term.output[0] | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
    restore_at_a_crash();
    return term.wake != NULL;
}

void ggl_os_terminal_set(os_terminal_mode mode) {
    static const char on[] = "\033[?2004h", off[] = "\033[?2004l"; /* marks around pasted text */
    const os_terminal_mode before = (os_terminal_mode)term.mode;
    DWORD n;
    term.mode = (LONG)mode;
    (void)SetConsoleMode(term.out, term.output[mode != OS_TERMINAL_SHELL]);
    if (mode == OS_TERMINAL_EDIT && before != OS_TERMINAL_EDIT)
        (void)WriteFile(term.out, on, sizeof on - 1, &n, NULL);
    if (mode != OS_TERMINAL_EDIT && before == OS_TERMINAL_EDIT)
        (void)WriteFile(term.out, off, sizeof off - 1, &n, NULL);
    (void)SetConsoleMode(term.in, term.input[mode]);
}

os_terminal_mode ggl_os_terminal_get(void) {
    return (os_terminal_mode)term.mode;
}

void ggl_os_terminal_wake(void) {
    if (term.wake)
        (void)SetEvent(term.wake);
}

/* A character comes when a key goes down, or, if it was typed as a number, when Alt goes up. */
static bool is_character(const INPUT_RECORD *r) {
    const KEY_EVENT_RECORD *k = &r->Event.KeyEvent;
    return r->EventType == KEY_EVENT && k->uChar.UnicodeChar &&
           (k->bKeyDown || k->wVirtualKeyCode == VK_MENU);
}

/* Returns whether there is a key, and drops other events; notes new sizes. */
static bool has_key(void) {
    INPUT_RECORD r;
    DWORD n = 0;
    while (PeekConsoleInputW(term.in, &r, 1, &n) && n > 0) {
        if (is_character(&r))
            return true;
        if (r.EventType == WINDOW_BUFFER_SIZE_EVENT)
            term.resized = 1;
        (void)ReadConsoleInputW(term.in, &r, 1, &n);
    }
    return false;
}

bool ggl_os_terminal_wait(int ms) {
    const ULONGLONG end = GetTickCount64() + (ULONGLONG)(ms < 0 ? 0 : ms);
    HANDLE of[] = {term.in, term.wake};
    while (term.n_rest == 0 && !has_key()) {
        const ULONGLONG now = GetTickCount64();
        if (term.resized || (ms >= 0 && now >= end))
            return false;
        if (WaitForMultipleObjects(2, of, FALSE, ms < 0 ? INFINITE : (DWORD)(end - now)) !=
            WAIT_OBJECT_0)
            return has_key();
    }
    return true;
}

/* Puts a unit of UTF-16 into the buffer as UTF-8, once it is a character. */
static void put_unit(wchar_t c) {
    wchar_t text[2] = {c, 0};
    int n = 1;
    if (c >= 0xd800 && c < 0xdc00) {
        term.high = c;
        return;
    }
    if (c >= 0xdc00 && c < 0xe000) {
        text[0] = term.high;
        term.high = 0;
        text[1] = c;
        n = 2;
    }
    const int size =
        WideCharToMultiByte(CP_UTF8, 0, text, n, term.rest, sizeof term.rest, NULL, NULL);
    term.n_rest = size > 0 ? (size_t)size : 0;
}

int64_t ggl_os_terminal_read(void *to, size_t n) {
    char *out = to;
    size_t used = 0;
    for (;;) {
        while (term.n_rest > 0 && used < n) {
            out[used++] = term.rest[0];
            memmove(term.rest, term.rest + 1, --term.n_rest);
        }
        if (used == n || (used > 0 && !has_key()))
            return (int64_t)used;
        INPUT_RECORD r;
        DWORD got;
        if (!ReadConsoleInputW(term.in, &r, 1, &got)) {
            errno = EIO;
            return used > 0 ? (int64_t)used : -1;
        }
        if (r.EventType == WINDOW_BUFFER_SIZE_EVENT)
            term.resized = 1;
        if (is_character(&r))
            put_unit(r.Event.KeyEvent.uChar.UnicodeChar);
    }
}

bool ggl_os_terminal_is_resized(void) {
    return InterlockedExchange(&term.resized, 0) != 0;
}

bool ggl_os_terminal_goes_on(void) {
    return false;
}

void ggl_os_terminal_suspend(void) {}

void ggl_os_terminal_size(int *columns, int *lines) {
    CONSOLE_SCREEN_BUFFER_INFO i;
    *columns = *lines = 0;
    if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &i))
        return;
    *columns = i.srWindow.Right - i.srWindow.Left + 1;
    *lines = i.srWindow.Bottom - i.srWindow.Top + 1;
}
