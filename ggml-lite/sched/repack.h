/* Repacked weights, and the file that keeps them for the next run. */
#ifndef GGL_SCHED_REPACK_H
#define GGL_SCHED_REPACK_H

#include "flight.h"
#include "memory.h"
#include "repack_file.h"

/* Decides which weights are repacked and where the copies go; call after segments are cut. */
ggl_status ggl_sched_repack_place(schedule *s, ggl_error *err);
/* Maps params.cache, if it can be used. */
void ggl_sched_repack_open(schedule *s, repack_file *file);
/* Allocates the memory of repacked weights and fills it, from that file or by repacking, but for copies that are
 * made late. */
ggl_status ggl_sched_repack(schedule *s, repack_file *file, loading *l, ggl_error *err);
/* True if a device may still read the original of the weight t: for runs, or to repack it. asks: the device whose thread
 * asks; NULL: no device runs yet. */
bool ggl_sched_still_read(const schedule *s, const ggl_tensor *t, const device *asks);
/* Notes that the device's copy of the weight is made. Drops the original's pages if no device needs
 * them any more. */
void ggl_sched_repacked(const schedule *s, device *d, const ggl_tensor *t);

/* True if the device's copy of the weight is made between runs. */
bool ggl_sched_repacks_late(const device *d, const ggl_tensor *t);

/* --- repack_late.c: copies that are made between runs --- */

/* Counts what is to be repacked late: d->repack.left. */
void ggl_sched_begin_late(device *d);
/* Before a run of the flight on the device. If it is the flight's first one there, and the flight has
 * outputs: repacks for about the time that the batch will take, by the last such one's; before the
 * first, nothing. Ends early if `stops` (may be NULL) returns true. */
ggl_status ggl_sched_repack_before(const schedule *s, device *d, const flight *f,
                                   bool (*stops)(void *ctx), void *ctx, ggl_error *err);
/* Repacks for the device until the time `end`, but at least a part of some megabytes. */
ggl_status ggl_sched_repack_until(const schedule *s, device *d, double end, ggl_error *err);

#endif
