/* Repacked weights, and the file that keeps them for the next run. */
#ifndef GGL_SCHED_REPACK_H
#define GGL_SCHED_REPACK_H

#include "memory.h"
#include "repack_file.h"

/* Decides which weights are repacked and where the copies go; call after segments are cut. */
ggl_status ggl_sched_repack_place(schedule *s, ggl_error *err);
/* Allocates the memory of repacked weights and fills it, from params.cache or by repacking. */
ggl_status ggl_sched_repack(schedule *s, repack_file *file, loading *l, ggl_error *err);

#endif
