#include "watch.h"

#include <stdarg.h>

bool llm_watch_stopped(const hub_watch *w) {
    return w->stopped && w->stopped(w->user);
}

static void tell(const hub_watch *w, const hub_event *e) {
    if (w->event)
        w->event(w->user, e);
}

void llm_watch_say(const hub_watch *w, hub_event_kind kind, const char *fmt, ...) {
    ggl_error said;
    va_list args;
    va_start(args, fmt);
    (void)ggl_failv(&said, GGL_OK, fmt, args);
    va_end(args);
    tell(w, &(hub_event){.kind = kind, .text = said.msg});
}

void llm_watch_begin(watch_work *p, const hub_watch *w, const char *verb, const char *name,
                     uint64_t done, uint64_t size) {
    *p = (watch_work){w,
                      {.kind = HUB_BEGINS, .verb = verb, .name = name, .done = done, .size = size}};
    tell(w, &p->e);
}

void llm_watch_go_on(watch_work *p, uint64_t done) {
    p->e.kind = HUB_GOES_ON;
    p->e.done = done;
    tell(p->w, &p->e);
}

void llm_watch_start_over(watch_work *p) {
    p->e.kind = HUB_STARTS_OVER;
    p->e.done = 0;
    tell(p->w, &p->e);
}

void llm_watch_end(watch_work *p) {
    p->e.kind = HUB_ENDS;
    tell(p->w, &p->e);
}
