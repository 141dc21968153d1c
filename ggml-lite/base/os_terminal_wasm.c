/* os_terminal.h for WebAssembly: WASI says whether a descriptor is a terminal, and nothing more, so lines are not edited. */
#include "ggl/internal/os_terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ggl_os_is_terminal(int fd) {
    return isatty(fd) == 1;
}

int ggl_os_terminal_columns(int fd) {
    (void)fd;
    return 0;
}

bool ggl_os_terminal_is_own(void) {
    return false;
}

bool ggl_os_terminal_draws(void) {
    const char *name = getenv("TERM");
    return name && *name && strcmp(name, "dumb") != 0;
}

bool ggl_os_terminal_begin(void) {
    return false;
}

/* --- what only a terminal that was taken is asked --------------------------------------------- */

void ggl_os_terminal_set(os_terminal_mode mode) {
    (void)mode;
}

os_terminal_mode ggl_os_terminal_get(void) {
    return OS_TERMINAL_SHELL;
}

void ggl_os_terminal_wake(void) {}

bool ggl_os_terminal_wait(int ms) {
    (void)ms;
    return false;
}

int64_t ggl_os_terminal_read(void *to, size_t n) {
    (void)to, (void)n;
    errno = ENOSYS;
    return -1;
}

bool ggl_os_terminal_is_resized(void) {
    return false;
}

bool ggl_os_terminal_goes_on(void) {
    return false;
}

void ggl_os_terminal_suspend(void) {}

void ggl_os_terminal_size(int *columns, int *lines) {
    *columns = *lines = 0;
}
