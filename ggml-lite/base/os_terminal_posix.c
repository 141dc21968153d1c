/* os_terminal.h for POSIX. */
#include "ggl/internal/os_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

bool ggl_os_is_terminal(int fd) {
    return isatty(fd) == 1;
}

int ggl_os_terminal_columns(int fd) {
    struct winsize w = {0};
    return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}
