/* os_child.h for Windows. */
#include "ggl/internal/os_child.h"

#include <windows.h>

#include <shellapi.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

#include "os_wide.h"

enum { PIPE_BYTES = 1 << 20, MOST_PATH = 4096 };

/* A child inherits all handles that are made for children: one is started at a time. */
static SRWLOCK starting = SRWLOCK_INIT;

static void close_fd(int *fd) {
    if (*fd >= 0)
        _close(*fd);
    *fd = -1;
}

/* Makes a pipe. theirs: the end that the child gets. Returns the descriptor of the other one; -1: errno. */
static int make_pipe(HANDLE *theirs, bool child_reads) {
    SECURITY_ATTRIBUTES given = {.nLength = sizeof given, .bInheritHandle = TRUE};
    HANDLE r, w;
    *theirs = NULL;
    if (!CreatePipe(&r, &w, &given, PIPE_BYTES)) {
        (void)ggl_os_failed();
        return -1;
    }
    HANDLE own = child_reads ? w : r;
    *theirs = child_reads ? r : w;
    (void)SetHandleInformation(own, HANDLE_FLAG_INHERIT, 0);
    const int fd = _open_osfhandle((intptr_t)own, _O_BINARY | _O_NOINHERIT);
    if (fd < 0)
        CloseHandle(own);
    return fd;
}

/* Appends an argument as programs of C take it apart: in quotes; each quote, and the backslashes before it, with a backslash more. */
static void put_argument(char *to, size_t *n, const char *s) {
    size_t slashes = 0;
    to[(*n)++] = '"';
    for (;; s++) {
        if (*s == '\\') {
            slashes++;
            to[(*n)++] = *s;
            continue;
        }
        if (!*s || *s == '"')
            for (; slashes > 0; slashes--)
                to[(*n)++] = '\\';
        slashes = 0;
        if (!*s)
            break;
        if (*s == '"')
            to[(*n)++] = '\\';
        to[(*n)++] = *s;
    }
    to[(*n)++] = '"';
    to[(*n)++] = ' ';
}

static wchar_t *command_line(const char *const argv[]) {
    size_t size = 1, n = 0;
    for (size_t i = 0; argv[i]; i++)
        size += 2 * strlen(argv[i]) + 3;
    char *line = calloc(size, 1);
    if (!line) {
        errno = ENOMEM;
        return NULL;
    }
    for (size_t i = 0; argv[i]; i++)
        put_argument(line, &n, argv[i]);
    wchar_t *w = ggl_os_wide(line);
    free(line);
    return w;
}

/* Finds a program among those of the system, then by PATH, but not in the current folder. NULL: there is none. */
static wchar_t *find_program(const char *name) {
    wchar_t *w = ggl_os_wide(name), folder[MAX_PATH], *to = calloc(MOST_PATH, sizeof *to);
    const UINT n = GetSystemDirectoryW(folder, MAX_PATH);
    const bool found =
        w && to &&
        ((n > 0 && n < MAX_PATH && SearchPathW(folder, w, L".exe", MOST_PATH, to, NULL) > 0) ||
         SearchPathW(_wgetenv(L"PATH"), w, L".exe", MOST_PATH, to, NULL) > 0);
    free(w);
    if (found)
        return to;
    free(to);
    errno = ENOENT;
    return NULL;
}

static int start(os_child *c, const wchar_t *program, const char *const argv[]) {
    HANDLE in, out = NULL, error = NULL;
    PROCESS_INFORMATION made = {0};
    wchar_t *line = command_line(argv);
    *c = (os_child){-1, -1, -1, -1};
    if (!line)
        return errno;
    c->in = make_pipe(&in, true);
    c->out = c->in >= 0 ? make_pipe(&out, false) : -1;
    c->error = c->out >= 0 ? make_pipe(&error, false) : -1;
    STARTUPINFOW how = {.cb = sizeof how,
                        .dwFlags = STARTF_USESTDHANDLES,
                        .hStdInput = in,
                        .hStdOutput = out,
                        .hStdError = error};
    int code = 0;
    if (c->error < 0 || !CreateProcessW(program, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL,
                                        NULL, &how, &made)) {
        if (c->error >= 0)
            (void)ggl_os_failed();
        code = errno ? errno : EIO;
    }
    free(line);
    HANDLE theirs[] = {in, out, error};
    for (int i = 0; i < 3; i++)
        if (theirs[i])
            CloseHandle(theirs[i]);
    if (code) {
        close_fd(&c->in);
        close_fd(&c->out);
        close_fd(&c->error);
        return code;
    }
    CloseHandle(made.hThread);
    c->process = (intptr_t)made.hProcess;
    return 0;
}

int ggl_os_child_start(os_child *c, const char *const argv[]) {
    wchar_t *program = find_program(argv[0]);
    *c = (os_child){-1, -1, -1, -1};
    if (!program)
        return errno;
    AcquireSRWLockExclusive(&starting);
    const int code = start(c, program, argv);
    ReleaseSRWLockExclusive(&starting);
    free(program);
    return code;
}

void ggl_os_child_tell(os_child *c, const void *data, size_t n) {
    const char *p = data;
    while (n > 0) {
        const int done = _write(c->in, p, n < 1 << 20 ? (unsigned)n : 1u << 20);
        if (done <= 0)
            break;
        p += done;
        n -= (size_t)done;
    }
    close_fd(&c->in);
}

/* Pipes cannot be waited for here: it looks again and again, at first without a pause, because much may come. */
int ggl_os_child_wait(int pipe, int ms) {
    enum { EAGER = 200 };
    HANDLE h = (HANDLE)_get_osfhandle(pipe);
    const ULONGLONG end = GetTickCount64() + (ULONGLONG)(ms < 0 ? 0 : ms);
    for (int turn = 0;; turn++) {
        DWORD n = 0;
        if (!PeekNamedPipe(h, NULL, 0, NULL, &n, NULL) || n > 0)
            return 1; /* or its end, which reading shows */
        if (ms >= 0 && GetTickCount64() >= end)
            return 0;
        if (turn < EAGER)
            (void)SwitchToThread();
        else
            Sleep(1);
    }
}

void ggl_os_child_stop(os_child *c) {
    (void)TerminateProcess((HANDLE)c->process, (UINT)-1);
}

int ggl_os_child_end(os_child *c) {
    DWORD code = (DWORD)-1;
    close_fd(&c->in);
    close_fd(&c->out);
    close_fd(&c->error);
    (void)WaitForSingleObject((HANDLE)c->process, INFINITE);
    (void)GetExitCodeProcess((HANDLE)c->process, &code);
    CloseHandle((HANDLE)c->process);
    return (int)code;
}

bool ggl_os_open_page(const char *address) {
    wchar_t *w = ggl_os_wide(address);
    const bool shown =
        w && (INT_PTR)ShellExecuteW(NULL, L"open", w, NULL, NULL, SW_SHOWNORMAL) > 32;
    free(w);
    return shown;
}
