/* os_child.h for systems without other programs. */
#include "ggl/internal/os_child.h"

#include <errno.h>

int ggl_os_child_start(os_child *c, const char *const argv[]) {
    (void)argv;
    *c = (os_child){-1, -1, -1, -1};
    return ENOSYS;
}

/* --- what only a child that was started is asked ---------------------------------------------- */

void ggl_os_child_tell(os_child *c, const void *data, size_t n) {
    (void)c, (void)data, (void)n;
}

int ggl_os_child_wait(int pipe, int ms) {
    (void)pipe, (void)ms;
    errno = ENOSYS;
    return -1;
}

void ggl_os_child_stop(os_child *c) {
    (void)c;
}

int ggl_os_child_end(os_child *c) {
    (void)c;
    return -1;
}

bool ggl_os_open_page(const char *address) {
    (void)address;
    return false;
}
