/* Watches the sockets of a server for clients that go. One thread waits; any thread may add, remove and wake at the same time. */
#ifndef GGL_INTERNAL_OS_WATCH_H
#define GGL_INTERNAL_OS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/internal/os_socket.h"

typedef struct os_watch os_watch;

typedef struct os_watch_event {
    uint64_t id;
    bool is_over; /* nothing can be sent any more; false: the client sends nothing any more */
} os_watch_event;

/* NULL: errno; no descriptors are left. */
os_watch *ggl_os_watch_new(void);
void ggl_os_watch_free(os_watch *w); /* NULL is allowed */
/* Watches the socket, whose events have that number, not 0. Its first event is the last until ggl_os_watch_on. A socket that cannot be watched, for want of memory, has
 * none. */
void ggl_os_watch_add(os_watch *w, os_socket s, uint64_t id);
/* After an event with !is_over: watches for the other one. */
void ggl_os_watch_on(os_watch *w, os_socket s, uint64_t id);
/* Before the socket is closed. An event that a waiting thread has already got may still be on its way. */
void ggl_os_watch_remove(os_watch *w, os_socket s);
/* Ends the wait, or the next one. */
void ggl_os_watch_wake(os_watch *w);
/* Waits for at most ms milliseconds (-1: any time), and returns how many of the n events it has set; 0 also after ggl_os_watch_wake. */
int ggl_os_watch_wait(os_watch *w, os_watch_event *e, int n, int ms);

#endif
