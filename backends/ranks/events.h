/* Rank 0: what a device of another rank does, and when. That rank's recorder keeps it (backends/trace wraps the device there), and rank 0
 * takes it in pieces, with the answer to each batch. Steps are reported to the profile of the device's opener, with nodes of the
 * opener's graphs; all else, such as the waits between orders, to a function for events. Times are those of this process's clock. */
#ifndef RANKS_EVENTS_H
#define RANKS_EVENTS_H

#include "../common/recorder.h"
#include "channel.h"

typedef struct far_events far_events;

/* Rank 0 has asked the rank to record, and the caller has the lock of its first channel, by which the clocks are compared. NULL: out
 * of memory, or the rank does not answer. */
far_events *ggl_events_open(channel *c, ggl_profile_fn *profile, void *ctx);
void ggl_events_close(far_events *v); /* NULL is fine */
/* Where what is no step goes; NULL: nowhere. */
void ggl_events_set(far_events *v, trace_event_fn *event, void *ctx);

/* All may be called with NULL, which does nothing. */
/* The rank has a graph, by that id, or forgets it. False: out of memory. */
bool ggl_events_add_graph(far_events *v, uint32_t id, const ggl_graph *g);
void ggl_events_drop_graph(far_events *v, uint32_t id);
/* Orders what is recorded, if a message for it pays, at the end of the packet that is being written. */
void ggl_events_order(far_events *v);
/* Reports what has come. GGL_LIMIT: the rank had no room for some steps, and there is only a profile, which cannot say so. */
ggl_status ggl_events_report(far_events *v, ggl_error *err);
/* Waits for all that is recorded so far, and reports it. A rank that is lost is no error here: others tell. */
ggl_status ggl_events_report_all(far_events *v, ggl_error *err);

#endif
