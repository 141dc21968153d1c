/* os_watch.h for Linux, by epoll, and for macOS and the BSDs, by kqueue. */
#include "ggl/internal/os_watch.h"

#include <errno.h>
#include <unistd.h>

#include "ggl/internal/alloc.h"

#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct os_watch {
    int epoll, wake; /* an eventfd, whose number is 0 */
};

static void watch_for(const os_watch *w, os_socket s, uint64_t id, int how, uint32_t events) {
    struct epoll_event e = {.events = events | EPOLLONESHOT, .data.u64 = id};
    (void)epoll_ctl(w->epoll, how, (int)s, &e); /* besides always EPOLLHUP and EPOLLERR */
}

os_watch *ggl_os_watch_new(void) {
    struct epoll_event e = {.events = EPOLLIN};
    os_watch *w = ggl_calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll >= 0 && w->wake >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &e) == 0)
        return w;
    const int error = errno;
    ggl_os_watch_free(w);
    errno = error;
    return NULL;
}

void ggl_os_watch_free(os_watch *w) {
    if (!w)
        return;
    if (w->epoll >= 0)
        close(w->epoll);
    if (w->wake >= 0)
        close(w->wake);
    ggl_free(w);
}

void ggl_os_watch_add(os_watch *w, os_socket s, uint64_t id) {
    watch_for(w, s, id, EPOLL_CTL_ADD, EPOLLRDHUP);
}

void ggl_os_watch_on(os_watch *w, os_socket s, uint64_t id) {
    watch_for(w, s, id, EPOLL_CTL_MOD, 0);
}

void ggl_os_watch_remove(os_watch *w, os_socket s) {
    struct epoll_event e = {0};
    (void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, (int)s, &e);
}

void ggl_os_watch_wake(os_watch *w) {
    const uint64_t one = 1;
    (void)!write(w->wake, &one, sizeof one);
}

int ggl_os_watch_wait(os_watch *w, os_watch_event *e, int n, int ms) {
    enum { MOST = 64 };
    struct epoll_event event[MOST];
    const int n_found = epoll_wait(w->epoll, event, n < MOST ? n : MOST, ms);
    int n_set = 0;
    for (int i = 0; i < n_found; i++) {
        uint64_t count;
        if (event[i].data.u64 == 0)
            (void)!read(w->wake, &count, sizeof count);
        else
            e[n_set++] =
                (os_watch_event){event[i].data.u64, (event[i].events & (EPOLLHUP | EPOLLERR)) != 0};
    }
    return n_set;
}
#else
#include <sys/event.h>
#include <sys/time.h>
#include <sys/types.h>

struct os_watch {
    int queue;
};

enum { WAKE = 1 }; /* the number of the event that ends a wait */

static int change(const os_watch *w, uintptr_t what, int filter, int flags, unsigned more,
                  uint64_t id) {
    struct kevent e;
    EV_SET(&e, what, filter, flags, more, 0, (void *)(uintptr_t)id);
    return kevent(w->queue, &e, 1, NULL, 0, NULL);
}

os_watch *ggl_os_watch_new(void) {
    os_watch *w = ggl_calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->queue = kqueue();
    if (w->queue >= 0 && change(w, WAKE, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0) == 0)
        return w;
    const int error = errno;
    ggl_os_watch_free(w);
    errno = error;
    return NULL;
}

void ggl_os_watch_free(os_watch *w) {
    if (!w)
        return;
    if (w->queue >= 0)
        close(w->queue);
    ggl_free(w);
}

/* The event comes at each change, and counts if it says that there is an end. */
void ggl_os_watch_add(os_watch *w, os_socket s, uint64_t id) {
    (void)change(w, (uintptr_t)s, EVFILT_READ, EV_ADD | EV_CLEAR, 0, id);
}

void ggl_os_watch_on(os_watch *w, os_socket s, uint64_t id) {
    (void)change(w, (uintptr_t)s, EVFILT_READ, EV_DELETE, 0, id);
    (void)change(w, (uintptr_t)s, EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, id);
}

void ggl_os_watch_remove(os_watch *w, os_socket s) {
    (void)change(w, (uintptr_t)s, EVFILT_READ, EV_DELETE, 0, 0);
    (void)change(w, (uintptr_t)s, EVFILT_WRITE, EV_DELETE, 0, 0);
}

void ggl_os_watch_wake(os_watch *w) {
    (void)change(w, WAKE, EVFILT_USER, 0, NOTE_TRIGGER, 0);
}

int ggl_os_watch_wait(os_watch *w, os_watch_event *e, int n, int ms) {
    enum { MOST = 64 };
    struct kevent event[MOST];
    const struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
    const int n_found =
        kevent(w->queue, NULL, 0, event, n < MOST ? n : MOST, ms < 0 ? NULL : &wait);
    int n_set = 0;
    for (int i = 0; i < n_found; i++)
        if (event[i].filter != EVFILT_USER && (event[i].flags & EV_EOF))
            e[n_set++] = (os_watch_event){(uint64_t)(uintptr_t)event[i].udata,
                                          event[i].filter == EVFILT_WRITE || event[i].fflags != 0};
    return n_set;
}
#endif
