/* What ranks send their bytes with: the functions that a job of several processes needs from MPI, and no more. The plug-in
 * libggl-mpi.so has them (backends/mpi), so that nothing else is linked with MPI; a test may have its own.
 *
 * Messages of one sender, receiver and tag arrive in the order in which they were sent. No call waits: `test` says whether
 * what was begun is done, and lets everything else go on meanwhile.
 *
 * Threads: any number may call the functions at the same time; one request belongs to one at a time. */
#ifndef GGL_TRANSPORT_H
#define GGL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGL_TRANSPORT_VERSION 1
/* The function of the plug-in by which it is found: joins the job, once in a process. NULL, and the reason in `why`: it cannot.
 * The transport stays until the process ends. */
#define GGL_TRANSPORT_SYMBOL "ggl_transport_join"
typedef const struct ggl_transport *ggl_transport_join_fn(char *why, size_t size);

/* A message on its way. All zeros: there is none. */
typedef struct ggl_request {
    uintptr_t handle[2];
} ggl_request;

typedef struct ggl_transport {
    uint32_t version, size; /* GGL_TRANSPORT_VERSION, sizeof(ggl_transport) */
    int rank, n_ranks; /* of this process; rank 0 runs the program, the others compute for it */
    int n_local;       /* ranks on this machine, with this one */
    char host[64];     /* the machine's name */
    void *ctx;         /* for the functions */
    /* Begin to send `size` bytes, which must not change until that is done, or to receive at most as many. False: the
     * transport has failed. */
    bool (*send)(void *ctx, int rank, int tag, const void *data, size_t size, ggl_request *r);
    bool (*receive)(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r);
    /* Prepares a receiving that `start` begins, again and again, always into the same memory. */
    bool (*prepare)(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r);
    bool (*start)(void *ctx, ggl_request *r);
    /* 1: done (*size, unless NULL: the bytes received); 0: not yet; -1: failed. A request that is done and was not prepared is
     * gone. */
    int (*test)(void *ctx, ggl_request *r, size_t *size);
    /* Moves messages on that are under way, and waits at most `ns` nanoseconds for something to be done; may return at any time. */
    void (*idle)(void *ctx, long ns);
    /* Gives up a receiving. */
    void (*drop)(void *ctx, ggl_request *r);
    /* Leaves the job, and returns when all ranks have: the last call. */
    void (*leave)(void *ctx);
} ggl_transport;

#ifdef __cplusplus
}
#endif
#endif
