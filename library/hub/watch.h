/* What the caller of hub.h sees of the work, and how he stops it. */
#ifndef HUB_WATCH_H
#define HUB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"

/* What happens while a model comes. Texts are escaped for a terminal, and valid during the call. */
typedef enum hub_event_kind {
    HUB_SAYS,    /* text: what is done now, or again */
    HUB_NOTES,   /* text: the result may not be the expected one */
    HUB_WARNS,   /* text: something of the repository is left out */
    HUB_BEGINS,  /* work on a file begins: `verb` "downloading" or "checking", name, done, size */
    HUB_GOES_ON, /* done of the last HUB_BEGINS has grown */
    HUB_STARTS_OVER, /* nothing of it is done any more */
    HUB_ENDS         /* it has ended, well or not */
} hub_event_kind;

typedef struct hub_event {
    hub_event_kind kind;
    const char *text;
    const char *verb, *name;
    uint64_t done, size; /* bytes */
} hub_event;

/* How to see what happens, and to stop it. Members may be NULL. */
typedef struct hub_watch {
    void (*event)(void *user, const hub_event *e);
    bool (*stopped)(void *user); /* asked often; true: give up with GGL_CANCELLED */
    void *user;
} hub_watch;

bool llm_watch_stopped(const hub_watch *w);
/* Passes on a sentence; arguments of %s are escaped for a terminal. kind: HUB_SAYS, HUB_NOTES or HUB_WARNS. */
void llm_watch_say(const hub_watch *w, hub_event_kind kind, const char *fmt, ...) GGL_PRINTF(3, 4);

/* Work on a file. */
typedef struct watch_work {
    const hub_watch *w;
    hub_event e;
} watch_work;
/* verb and name stay the caller's. */
void llm_watch_begin(watch_work *p, const hub_watch *w, const char *verb, const char *name,
                     uint64_t done, uint64_t size);
void llm_watch_go_on(watch_work *p, uint64_t done);
void llm_watch_start_over(watch_work *p);
void llm_watch_end(watch_work *p);

#endif
