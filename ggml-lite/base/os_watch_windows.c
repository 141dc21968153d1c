/* os_watch.h for Windows. One event of the system stands for all sockets and for waking; the thread that waits then asks each socket what has happened. A wait for an
 * event for each socket would end at 64 of them. */
#include "ggl/internal/os_watch.h"

#include <errno.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"

typedef struct watched {
    SOCKET socket;
    uint64_t id;
} watched;

struct os_watch {
    HANDLE changed;
    os_mutex lock; /* of the sockets */
    watched *at;
    size_t n, cap;
};

os_watch *ggl_os_watch_new(void) {
    os_watch *w = ggl_calloc(1, sizeof *w);
    if (w)
        w->changed = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (w && w->changed) {
        ggl_os_mutex_init(&w->lock);
        return w;
    }
    ggl_free(w);
    errno = ENOMEM;
    return NULL;
}

void ggl_os_watch_free(os_watch *w) {
    if (!w)
        return;
    (void)CloseHandle(w->changed);
    ggl_os_mutex_destroy(&w->lock);
    ggl_free(w->at);
    ggl_free(w);
}

void ggl_os_watch_add(os_watch *w, os_socket s, uint64_t id) {
    ggl_os_mutex_lock(&w->lock);
    if (ggl_grow(&w->at, &w->cap, w->n + 1, sizeof *w->at)) {
        w->at[w->n++] = (watched){.socket = (SOCKET)s, .id = id};
        (void)WSAEventSelect((SOCKET)s, w->changed, FD_CLOSE);
    }
    ggl_os_mutex_unlock(&w->lock);
}

/* The system tells of each end once, so nothing is to be changed. */
void ggl_os_watch_on(os_watch *w, os_socket s, uint64_t id) {
    (void)w;
    (void)s;
    (void)id;
}

void ggl_os_watch_remove(os_watch *w, os_socket s) {
    ggl_os_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++)
        if (w->at[i].socket == (SOCKET)s) {
            (void)WSAEventSelect((SOCKET)s, NULL, 0);
            w->at[i] = w->at[--w->n];
            break;
        }
    ggl_os_mutex_unlock(&w->lock);
}

void ggl_os_watch_wake(os_watch *w) {
    (void)SetEvent(w->changed);
}

int ggl_os_watch_wait(os_watch *w, os_watch_event *e, int n, int ms) {
    int n_set = 0;
    (void)WaitForSingleObject(w->changed, ms < 0 ? INFINITE : (DWORD)ms);
    ggl_os_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++) {
        WSANETWORKEVENTS found;
        if (n_set == n) {
            (void)SetEvent(w->changed); /* the rest is asked next time */
            break;
        }
        if (WSAEnumNetworkEvents(w->at[i].socket, NULL, &found) == 0 &&
            (found.lNetworkEvents & FD_CLOSE)) /* without an error: the client sends nothing more */
            e[n_set++] = (os_watch_event){w->at[i].id, found.iErrorCode[FD_CLOSE_BIT] != 0};
    }
    ggl_os_mutex_unlock(&w->lock);
    return n_set;
}
