/* os_process.h for Windows. */
#include "ggl/internal/os_process.h"

/* in this order */
#include <windows.h>

#include <psapi.h>
#include <shellapi.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os_wide.h"

long ggl_os_pid(void) {
    return (long)GetCurrentProcessId();
}

bool ggl_os_program_path(char *out, size_t size) {
    wchar_t name[4096];
    const DWORD n = GetModuleFileNameW(NULL, name, sizeof name / sizeof *name);
    char *path = n > 0 && n < sizeof name / sizeof *name ? ggl_os_narrow(name) : NULL;
    const bool found = path && snprintf(out, size, "%s", path) < (int)size;
    free(path);
    if (!found)
        out[0] = '\0';
    ggl_os_use_slashes(out);
    return found;
}

const char *ggl_os_program_name(void) {
    static char name[256];
    char path[4096];
    if (!name[0] && ggl_os_program_path(path, sizeof path)) {
        const char *slash = strrchr(path, '/');
        snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
        char *end = strrchr(name, '.');
        if (end)
            *end = '\0';
    }
    return name;
}

const char *ggl_os_home(void) {
    static char home[4096];
    const wchar_t *w = _wgetenv(L"USERPROFILE");
    char *s = !home[0] && w ? ggl_os_narrow(w) : NULL;
    if (s) {
        ggl_os_use_slashes(s);
        snprintf(home, sizeof home, "%s", s);
    }
    free(s);
    return home[0] ? home : NULL;
}

void ggl_os_take_arguments(int *argc, char ***argv) {
    int n = 0;
    wchar_t **w = CommandLineToArgvW(GetCommandLineW(), &n);
    char **to = w ? calloc((size_t)n + 1, sizeof *to) : NULL;
    bool good = to != NULL;
    for (int i = 0; i < n && good; i++)
        good = (to[i] = ggl_os_narrow(w[i])) != NULL;
    if (good) {
        *argc = n;
        *argv = to;
    }
    LocalFree(w);
}

char **ggl_os_environment(void) {
    return _environ;
}

static UINT pages[2]; /* code pages of the console, as they were */
static void restore_pages(void);

void ggl_os_exit_now(int code) {
    restore_pages();
    _exit(code);
}

int64_t ggl_os_peak_memory(void) {
    PROCESS_MEMORY_COUNTERS m = {.cb = sizeof m};
    return GetProcessMemoryInfo(GetCurrentProcess(), &m, sizeof m) ? (int64_t)m.PeakWorkingSetSize
                                                                   : 0;
}

uint64_t ggl_os_heap(void) {
    return 0; /* it would have to walk through all of it */
}

/* RtlGenRandom of advapi32.dll, which all versions have. */
BOOLEAN NTAPI SystemFunction036(void *to, ULONG n);

bool ggl_os_random(void *to, size_t n) {
    for (size_t at = 0; at < n; at += 256)
        if (!SystemFunction036((char *)to + at, n - at < 256 ? (ULONG)(n - at) : 256))
            return false;
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

size_t ggl_os_page_size(void) {
    SYSTEM_INFO i;
    GetSystemInfo(&i);
    return i.dwPageSize;
}

int ggl_os_n_processors(void) {
    const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 ? (int)n : 1;
}

size_t ggl_os_last_cache(void) {
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION at[256];
    DWORD size = sizeof at;
    size_t most = 0;
    if (!GetLogicalProcessorInformation(at, &size))
        return 0;
    for (size_t i = 0; i < size / sizeof *at; i++)
        if (at[i].Relationship == RelationCache && at[i].Cache.Size > most)
            most = at[i].Cache.Size;
    return most;
}

static MEMORYSTATUSEX memory(void) {
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    (void)GlobalMemoryStatusEx(&m);
    return m;
}

uint64_t ggl_os_memory(void) {
    return memory().ullTotalPhys;
}

uint64_t ggl_os_memory_left(void) {
    return memory().ullAvailPhys;
}

uint64_t ggl_os_limit_addresses(void) {
    return UINT64_MAX;
}

uint64_t ggl_os_allow_files(uint64_t n) {
    (void)n;
    return UINT64_MAX; /* sockets are handles, which only memory limits */
}

/* --- how it ends ------------------------------------------------------------------------------ */

static void (*on_stop)(int number);

static BOOL WINAPI on_event(DWORD event) {
    on_stop(event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT ? SIGINT : SIGTERM);
    if (event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT)
        Sleep(
            INFINITE); /* when this returns, the system ends the process, which may be at work still */
    return TRUE;
}

void ggl_os_on_stop(void (*stop)(int number)) {
    on_stop = stop;
    (void)SetConsoleCtrlHandler(on_event, TRUE);
    (void)signal(SIGTERM, stop);
}

void ggl_os_hold_stops(bool holds) {
    (void)holds; /* events come in threads of their own */
}

void ggl_os_end_by(int number) {
    ggl_os_exit_now(128 + number);
}

static void (*lost_page)(const void *address);

static LONG CALLBACK on_exception(EXCEPTION_POINTERS *e) {
    const EXCEPTION_RECORD *r = e->ExceptionRecord;
    if (r->ExceptionCode == (DWORD)EXCEPTION_IN_PAGE_ERROR && r->NumberParameters > 1)
        lost_page((const void *)r->ExceptionInformation[1]);
    return EXCEPTION_CONTINUE_SEARCH;
}

void ggl_os_on_lost_page(void (*lost)(const void *address)) {
    lost_page = lost;
    (void)AddVectoredExceptionHandler(1, on_exception);
}

void ggl_os_wait_for_end(void) {
    for (;;)
        Sleep(INFINITE);
}

void ggl_os_signals_hold(os_signals *s) {
    (void)s; /* events come in threads of their own */
}

void ggl_os_signals_release(const os_signals *s) {
    (void)s;
}

/* They are the console's, which other programs use later. */
static void restore_pages(void) {
    if (!pages[0] || !pages[1])
        return;
    (void)SetConsoleOutputCP(pages[0]);
    (void)SetConsoleCP(pages[1]);
}

static LPTOP_LEVEL_EXCEPTION_FILTER next_filter;

static LONG WINAPI on_crash(EXCEPTION_POINTERS *e) {
    restore_pages();
    return next_filter ? next_filter(e) : EXCEPTION_CONTINUE_SEARCH;
}

/* Bytes pass as they are, and a console shows UTF-8 and escape sequences. */
void ggl_os_begin_streams(void) {
    DWORD mode;
    for (int fd = 0; fd <= 2; fd++)
        (void)_setmode(fd, _O_BINARY);
    (void)setvbuf(stderr, NULL, _IONBF, 0); /* wine would keep what goes to a file or a pipe */
    pages[0] = GetConsoleOutputCP();
    pages[1] = GetConsoleCP();
    (void)atexit(restore_pages);
    next_filter = SetUnhandledExceptionFilter(on_crash);
    (void)SetConsoleOutputCP(CP_UTF8);
    (void)SetConsoleCP(CP_UTF8);
    for (int fd = 1; fd <= 2; fd++) {
        HANDLE h = (HANDLE)_get_osfhandle(fd);
        if (GetConsoleMode(h, &mode))
            (void)SetConsoleMode(h, mode | ENABLE_PROCESSED_OUTPUT |
                                        ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
}

bool ggl_os_set_cpus(const uint64_t *set, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (set[i] != 0) {
            errno = ENOSYS; /* of a group of 64 processors, there is one mask */
            return false;
        }
    if (SetProcessAffinityMask(GetCurrentProcess(), (DWORD_PTR)set[0]))
        return true;
    errno = GetLastError() == ERROR_INVALID_PARAMETER ? EINVAL : EACCES;
    return false;
}

bool ggl_os_set_priority(int priority) {
    static const DWORD of[] = {BELOW_NORMAL_PRIORITY_CLASS, NORMAL_PRIORITY_CLASS,
                               ABOVE_NORMAL_PRIORITY_CLASS, HIGH_PRIORITY_CLASS,
                               REALTIME_PRIORITY_CLASS};
    const int k = priority < -1 ? 0 : priority > 3 ? 4 : priority + 1;
    return SetPriorityClass(GetCurrentProcess(), of[k]) || ggl_os_failed();
}

/* --- bells ------------------------------------------------------------------------------------ */

/* The handle of an event, which a wait resets. */
os_bell *ggl_os_bell_new(void) {
    os_bell *b = (os_bell *)CreateEventW(NULL, FALSE, FALSE, NULL);
    if (!b)
        (void)ggl_os_failed();
    return b;
}

void ggl_os_bell_free(os_bell *b) {
    if (b)
        (void)CloseHandle((HANDLE)b);
}

void ggl_os_bell_ring(os_bell *b) {
    (void)SetEvent((HANDLE)b);
}

void ggl_os_bell_wait(os_bell *b, int ms) {
    (void)WaitForSingleObject((HANDLE)b, ms < 0 ? INFINITE : (DWORD)ms);
}
