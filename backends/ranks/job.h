/* The job that this process is a rank of, started by mpirun: rank 0 runs a program, the others compute for it what its
 * backends "rank1", "rank2" .. are asked for.
 *
 *   job.c      joins the job, watches whether the other ranks live, and waits for messages
 *   channel.c  rank 0: the orders to one device of another rank, and the answers
 *   proxy.c    rank 0: the backend that passes each call on
 *   sending.c  rank 0: weights on their way
 *   worker.c   the other ranks: receives orders, one thread for each device
 *   execute.c  carries them out on a backend of its own
 *   station.c  what that device holds, and its messages
 *   sources.c  where the other ranks get weights from
 *   arriving.c weights that have come, on their way to that device
 *   queue.c    a thread that carries out one thing after the other
 *   events.c   rank 0: when the other ranks did what, if that is recorded
 *   clock.c    rank 0: how far their clocks are from its own
 *
 * Every rank beats: it sends a few bytes to the others that it talks to, ten times a second, from a thread of its own. A rank
 * that has been silent for too long is lost: it ended, was stopped, or cannot be reached. Waits end with an error then. */
#ifndef RANKS_JOB_H
#define RANKS_JOB_H

#include <stdatomic.h>

#include "ggl/backends.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/transport.h"

enum { MOST_RANKS = 1024, MOST_CHANNELS = 64 /* of a rank */ };

/* The tags of messages. Those of a channel follow TAG_CHANNELS, N_TAGS for each. */
enum { TAG_BEAT = 1, TAG_HELLO, TAG_PEER, TAG_CHANNELS = 16 };
enum { TAG_ORDERS, TAG_ANSWER, TAG_DATA, TAG_CANCEL, N_TAGS };

/* What ranks tell each other first. They must be of the same build, as they exchange structs. */
typedef struct hello {
    char magic[8];
    char version[48]; /* of the program */
    uint32_t abi, order, sizes;
    int32_t pid;
    char host[64];
} hello;

/* A channel's number is used again after its device is closed. The numbers of its packets go on, so that nothing of the old
 * device, such as a late cancelling, means the new one. */
typedef struct channel_use {
    bool is_open;
    uint64_t number; /* of its first packet */
} channel_use;

typedef struct peer {
    hello of;
    bool watched;      /* it beats, and is beaten to */
    atomic_int silent; /* own beats since it beat last */
    atomic_bool lost;
    ggl_request from, to; /* beats */
    bool to_busy;
    uint32_t beat_in, beat_out;
    /* rank 0: */
    channel_use *channel; /* [MOST_CHANNELS] */
    uint64_t n_opened;    /* devices, in all */
    atomic_int n_open;    /* those that are now */
} peer;

typedef struct job {
    const ggl_transport *t;
    uint64_t began; /* ns of ggl_os_clock(): where this rank's time begins */
    peer *peer;     /* [n_ranks] */
    int patience;   /* own beats without one of the rank, after which it is lost */
    os_thread thread;
    bool has_thread;
    /* Rank 0: messages of data that are under way are moved on by a thread while nobody waits for any, because whoever has begun them
     * computes. */
    atomic_llong waited; /* when somebody has waited last (ggl_os_clock) */
    os_thread mover;
    bool has_mover;
    int n_moving;     /* under `moves` */
    uint64_t n_begun; /* under `moves`: in all */
    os_mutex moves;
    os_cond begun;
    bool is_torn; /* another rank is lost, so MPI cannot be left, which waits for all */
    atomic_bool stops;
    os_mutex lock; /* of channels, and of the first one to each rank */
} job;

/* Joins the job of the transport: exchanges hellos with rank 0, or with all ranks. *out must be freed by ggl_job_leave also after an
 * error. GGL_UNSUPPORTED: a rank is another build; GGL_DEVICE, GGL_NOMEM. */
ggl_status ggl_job_join(job **out, const ggl_transport *t, ggl_error *err);
/* Returns the seconds of silence after which a rank is lost (GGL_RANK_PATIENCE); -1: the variable has no possible value. */
double ggl_job_patience(void);
/* Ends the beats, and frees the job; the transport is not left. */
void ggl_job_leave(job *j);
/* Counts messages of data that begin, n > 0, or end, n < 0. */
void ggl_job_count_moving(job *j, int n);
/* Begins to watch a rank, and to beat for it. */
ggl_status ggl_job_watch(job *j, int rank, ggl_error *err);
static inline bool ggl_job_is_lost(const job *j, int rank) {
    return atomic_load(&j->peer[rank].lost);
}
/* Fails because the rank is lost; it is from now on. */
ggl_status ggl_job_fail_lost(job *j, int rank, ggl_error *err);

/* A wait for something that another thread or rank does: sleeps longer the longer it lasts. */
typedef struct pause {
    int64_t begin; /* nanoseconds; 0: it has not begun */
} pause_t;
void ggl_job_pause(job *j, pause_t *p);
/* Waits for a request with that rank. *size may be NULL. */
ggl_status ggl_job_wait(job *j, int rank, ggl_request *r, size_t *size, ggl_error *err);

/* The job that ggl_rank_open uses; NULL: this process is in none. */
extern job *ggl_current_job;

/* worker.c: carries out the orders of rank 0 until it ends the job. Backends are opened by `open`; `note` (may be NULL) is told what the user may
 * want to know. Returns the exit code. */
typedef ggl_status ggl_open_fn(ggl_backend **out, const char *name, const ggl_backend_params *p,
                               ggl_error *err);
int ggl_job_serve(job *j, ggl_open_fn *open, void (*note)(const char *text), ggl_error *err);

/* Rank 0: tells all ranks that the job ends. False: a rank did not answer. */
bool ggl_job_dismiss(job *j);

#endif
