/* The memory that ggl_sched_alloc allocates: the devices' buffers, and the lanes' host memory. */
#ifndef GGL_SCHED_MEMORY_H
#define GGL_SCHED_MEMORY_H

#include "schedule.h"

typedef struct host_memory {
    char *at
        [MAX_LANES]; /* by lane, [host_size]: images of the io regions, then outputs of the trunk */
    void *block[MAX_LANES]; /* the memory that has at[] at a multiple of HOST_PAGE */
} host_memory;

bool ggl_host_memory_init(host_memory *h, const schedule *s);
void ggl_host_memory_fini(host_memory *h);

/* Bytes of weights, for params.progress. */
typedef struct loading {
    size_t done, total;
} loading;

/* Sets the total from what the devices upload and repack. */
void ggl_loading_begin(loading *l, const schedule *s);
/* Reports `size` more bytes of loaded weights to params.progress. GGL_CANCELLED if that returns
 * false. */
ggl_status ggl_loading_add(loading *l, const schedule *s, size_t size, ggl_error *err);

/* Loads the weights of a list that each device has. Devices take turns, since one that is asynchronous loads while another one has
 * its turn; so several are loaded at the same time. */
typedef ggl_status ggl_load_fn(schedule *s, device *d, const ggl_tensor *t, loading *l,
                               ggl_error *err);
ggl_status ggl_loading_each(loading *l, schedule *s, const node_list *(*of)(const device *d),
                            ggl_load_fn *load, ggl_error *err);
/* Waits until all weights are there. */
ggl_status ggl_loading_end(const schedule *s, ggl_error *err);

/* Allocates all buffers of the devices except those of repacked weights, and fills them. */
ggl_status ggl_devices_alloc(schedule *s, const host_memory *h, loading *l, ggl_error *err);

/* --- peers.c --- */

/* Lets devices copy from each other where they can. */
ggl_status ggl_sched_join_peers(schedule *s, ggl_error *err);

#endif
