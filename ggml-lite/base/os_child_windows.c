/* os_child.h for Windows. */
#include "ggl/internal/os_child.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

#include "os_wide.h"

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
    if (!CreatePipe(&r, &w, &given, 0)) {
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

int ggl_os_child_start(os_child *c, const char *const argv[]) {
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
    if (c->error < 0 ||
        !CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &how, &made)) {
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

/* Pipes cannot be waited for here: it looks again and again. */
int ggl_os_child_wait(int pipe, int ms) {
    enum { STEP = 5 };
    HANDLE h = (HANDLE)_get_osfhandle(pipe);
    for (int waited = 0;; waited += STEP) {
        DWORD n = 0;
        if (!PeekNamedPipe(h, NULL, 0, NULL, &n, NULL) || n > 0)
            return 1; /* or its end, which reading shows */
        if (waited >= ms)
            return 0;
        Sleep(STEP);
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
