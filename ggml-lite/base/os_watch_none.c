/* os_watch.h for systems without sockets. */
#include "ggl/internal/os_watch.h"

#include <errno.h>
#include <stddef.h>

os_watch *ggl_os_watch_new(void) {
    errno = ENOSYS;
    return NULL;
}

/* --- what only a watch is asked that there is ------------------------------------------------- */

void ggl_os_watch_free(os_watch *w) {
    (void)w;
}

void ggl_os_watch_add(os_watch *w, os_socket s, uint64_t id) {
    (void)w, (void)s, (void)id;
}

void ggl_os_watch_on(os_watch *w, os_socket s, uint64_t id) {
    (void)w, (void)s, (void)id;
}

void ggl_os_watch_remove(os_watch *w, os_socket s) {
    (void)w, (void)s;
}

void ggl_os_watch_wake(os_watch *w) {
    (void)w;
}

int ggl_os_watch_wait(os_watch *w, os_watch_event *e, int n, int ms) {
    (void)w, (void)e, (void)n, (void)ms;
    return 0;
}
