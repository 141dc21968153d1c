/* The file of repacked weights, params.cache. */
#ifndef GGL_SCHED_REPACK_FILE_H
#define GGL_SCHED_REPACK_FILE_H

#include "base/os_file.h"
#include "schedule.h"

typedef struct repack_file {
    os_map map; /* repacked weights of an earlier run; the devices' regions may lie in it */
    ggl_cache_use use;
    char note[256];
    size_t first, end; /* of the regions of all devices in the file */
    size_t next,
        n_checked; /* pieces whose digests were compared, from number `next` on, which is taken modulo their number */
    bool has_run;
} repack_file;

/* Sets at[k] to the offset in the file of device k's first region of repacked weights, and returns the
 * file's size. */
size_t ggl_repack_file_size(const schedule *s, size_t *at);
/* Returns the offset in the file of piece number `piece` of the device's repacked weights, from that of its
 * first one. If that is their number: where a further one would begin. */
size_t ggl_repack_file_offset(const device *d, size_t piece);
/* If there is no file params.cache yet, and none can be written, notes why, and sets params.cache to NULL: so that nothing waits
 * for a file that will not come. */
void ggl_repack_file_check(repack_file *f, schedule *s);
/* Maps params.cache if it holds exactly what this run would write; else notes the reason, unless
 * there is no such file. */
void ggl_repack_file_open(repack_file *f, const schedule *s);
/* Before a run with outputs: compares a part of the mapped file with its digests, unless it is the first such run. GGL_IO: it is damaged,
 * and so it is then each time. Which part is the first one differs from start to start, so that short runs, too, find all in the end. */
ggl_status ggl_repack_file_check_some(repack_file *f, ggl_error *err);
/* Writes params.cache from the devices' repacked regions; a failure is only noted. */
void ggl_repack_file_write(repack_file *f, const schedule *s);

#endif
