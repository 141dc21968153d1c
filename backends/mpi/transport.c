/* The plug-in libggl-mpi.so: MPI as ranks need it (ggl/internal/transport.h). One lock stands before all calls, and no call
 * waits, so that MPI need not be built for several threads at once. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/transport.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(uintptr_t), "a request fits into a handle");

enum { RECEIVES = 1 /* handle[1] */, TAG_OF_NOTHING = 0 };

static os_mutex lock = OS_MUTEX_INIT;
static MPI_Comm comm;

static MPI_Request request_of(const ggl_request *r) {
    MPI_Request q;
    memcpy(&q, &r->handle[0], sizeof q);
    return q;
}

static void keep(ggl_request *r, MPI_Request q, uintptr_t kind) {
    memset(r, 0, sizeof *r);
    memcpy(&r->handle[0], &q, sizeof q);
    r->handle[1] = kind;
}

static bool mpi_send(void *ctx, int rank, int tag, const void *data, size_t size, ggl_request *r) {
    (void)ctx;
    MPI_Request q = MPI_REQUEST_NULL;
    ggl_os_mutex_lock(&lock);
    const int e = MPI_Isend(data, (int)size, MPI_BYTE, rank, tag, comm, &q);
    ggl_os_mutex_unlock(&lock);
    keep(r, q, 0);
    return e == MPI_SUCCESS;
}

static bool mpi_receive(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r) {
    (void)ctx;
    MPI_Request q = MPI_REQUEST_NULL;
    ggl_os_mutex_lock(&lock);
    const int e = MPI_Irecv(data, (int)size, MPI_BYTE, rank, tag, comm, &q);
    ggl_os_mutex_unlock(&lock);
    keep(r, q, RECEIVES);
    return e == MPI_SUCCESS;
}

static bool mpi_prepare(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r) {
    (void)ctx;
    MPI_Request q = MPI_REQUEST_NULL;
    ggl_os_mutex_lock(&lock);
    const int e = MPI_Recv_init(data, (int)size, MPI_BYTE, rank, tag, comm, &q);
    ggl_os_mutex_unlock(&lock);
    keep(r, q, RECEIVES);
    return e == MPI_SUCCESS;
}

static bool mpi_start(void *ctx, ggl_request *r) {
    (void)ctx;
    MPI_Request q = request_of(r);
    ggl_os_mutex_lock(&lock);
    const int e = MPI_Start(&q);
    ggl_os_mutex_unlock(&lock);
    keep(r, q, RECEIVES);
    return e == MPI_SUCCESS;
}

static int mpi_test(void *ctx, ggl_request *r, size_t *size) {
    (void)ctx;
    MPI_Request q = request_of(r);
    MPI_Status status;
    int done = 0, count = 0;
    ggl_os_mutex_lock(&lock);
    int e = MPI_Test(&q, &done, &status);
    if (e == MPI_SUCCESS && done && size)
        e = MPI_Get_count(&status, MPI_BYTE, &count);
    ggl_os_mutex_unlock(&lock);
    const uintptr_t kind = r->handle[1];
    keep(r, q, kind);
    if (e != MPI_SUCCESS)
        return -1;
    if (done && size)
        *size = (size_t)count;
    return done;
}

/* MPI moves long messages only while it is called. */
static void mpi_idle(void *ctx, long ns) {
    int there;
    (void)ctx;
    ggl_os_mutex_lock(&lock);
    (void)MPI_Iprobe(MPI_ANY_SOURCE, TAG_OF_NOTHING, comm, &there, MPI_STATUS_IGNORE);
    ggl_os_mutex_unlock(&lock);
    ggl_os_sleep(ns);
}

static void mpi_drop(void *ctx, ggl_request *r) {
    enum { TRIALS = 1000 };
    (void)ctx;
    MPI_Request q = request_of(r);
    MPI_Status status;
    int done = 0;
    ggl_os_mutex_lock(&lock);
    if (q != MPI_REQUEST_NULL && MPI_Test(&q, &done, &status) == MPI_SUCCESS && !done &&
        r->handle[1] == RECEIVES) {
        /* what is cancelled must still be seen to end, or MPI keeps it; that cannot last, but where half of it has come */
        (void)MPI_Cancel(&q);
        for (int i = 0; i < TRIALS && q != MPI_REQUEST_NULL && !done; i++)
            (void)MPI_Test(&q, &done, &status);
    }
    if (q != MPI_REQUEST_NULL)
        (void)MPI_Request_free(&q);
    ggl_os_mutex_unlock(&lock);
    memset(r, 0, sizeof *r);
}

static void mpi_leave(void *ctx) {
    (void)ctx;
    ggl_os_mutex_lock(&lock);
    (void)MPI_Finalize();
    ggl_os_mutex_unlock(&lock);
}

static ggl_transport transport = {
    .version = GGL_TRANSPORT_VERSION,
    .size = sizeof(ggl_transport),
    .send = mpi_send,
    .receive = mpi_receive,
    .prepare = mpi_prepare,
    .start = mpi_start,
    .test = mpi_test,
    .idle = mpi_idle,
    .drop = mpi_drop,
    .leave = mpi_leave,
};

/* Returns the number of ranks on this machine. */
static int count_local(void) {
    MPI_Comm local;
    int n = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) !=
        MPI_SUCCESS)
        return 1;
    (void)MPI_Comm_size(local, &n);
    (void)MPI_Comm_free(&local);
    return n;
}

__attribute__((visibility("default"))) ggl_transport_join_fn ggl_transport_join;
const ggl_transport *ggl_transport_join(char *why, size_t size) {
    int level = 0, n = 0, there = 0;
    char name[MPI_MAX_PROCESSOR_NAME];
    if (MPI_Initialized(&there) != MPI_SUCCESS || there) {
        snprintf(why, size, "the program has begun to use MPI itself");
        return NULL;
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_SERIALIZED) {
        snprintf(why, size, "this MPI does not allow calls by more than one thread");
        return NULL;
    }
    if (MPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(comm, &transport.rank) != MPI_SUCCESS ||
        MPI_Comm_size(comm, &transport.n_ranks) != MPI_SUCCESS ||
        MPI_Get_processor_name(name, &n) != MPI_SUCCESS) {
        snprintf(why, size, "MPI does not say which rank this is");
        return NULL;
    }
    transport.n_local = count_local();
    snprintf(transport.host, sizeof transport.host, "%.63s", name);
    return &transport;
}
