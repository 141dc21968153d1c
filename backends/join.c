/* Finds out whether mpirun has started this process, and joins its job. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/backends.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_thread.h"
#include "ranks/job.h"
#include "ggl/internal/os_library.h"
#include "ggl/internal/os_process.h"

#define PLUGIN "libggl-mpi.so"
#ifndef GGL_PLUGIN_FOLDER /* of an installation, from the folder of programs */
#define GGL_PLUGIN_FOLDER "../lib/ggl"
#endif

/* Returns the value of an environment variable, a whole number; -1: it is not set, or none. */
static long number_of(const char *variable) {
    const char *s = getenv(variable);
    char *end;
    if (!s || !*s)
        return -1;
    const long x = strtol(s, &end, 10);
    return *end ? -1 : x;
}

/* True if a launcher of MPI has started several processes, of which this is one: Open MPI, MPICH and its kin, Slurm's srun. */
static bool is_in_job(void) {
    const char *off = getenv("GGL_RANKS");
    if (off && strcmp(off, "off") == 0)
        return false;
    return number_of("OMPI_COMM_WORLD_SIZE") > 1 || number_of("PMI_SIZE") > 1 ||
           (number_of("PMIX_RANK") >= 0 && number_of("SLURM_NTASKS") > 1);
}

bool ggl_ranks_has_launcher(void) {
    return number_of("OMPI_COMM_WORLD_SIZE") > 0;
}

/* Opens the plug-in: GGL_MPI names it, or it is beside this program or library, or in a folder lib/ggl or ggl near it. */
static void *open_plugin(char *why, size_t size) {
    static const char *const near[] = {"", "ggl/", "../lib/", GGL_PLUGIN_FOLDER "/"};
    const char *named = getenv("GGL_MPI");
    char self[OS_MOST_PATH] = "", path[OS_MOST_PATH + 64];
    if (named && *named) {
        void *object = ggl_os_library_open(named);
        snprintf(why, size, "%s", object ? "" : ggl_os_library_error());
        return object;
    }
    if (!ggl_os_library_of(PLUGIN, self, sizeof self) && !ggl_os_program_path(self, sizeof self))
        self[0] = '\0';
    char *slash = ggl_os_last_separator(self);
    if (slash)
        slash[1] = '\0';
    snprintf(why, size, "%s", "");
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        snprintf(path, sizeof path, "%s%s" PLUGIN, self, near[i]);
        if (!ggl_os_may_read(path))
            continue;
        void *object = ggl_os_library_open(path);
        if (object)
            return object;
        snprintf(why, size, "%s", ggl_os_library_error());
    }
    if (!*why)
        snprintf(why, size,
                 "there is no " PLUGIN " near %s: this build was made without MPI (Debian: "
                 "libopenmpi-dev, then cmake -DGGL_MPI=ON)",
                 self);
    return NULL;
}

/* --- a limit for joining and leaving ------------------------------------------------------------- */

/* MPI's own beginning and end wait for all ranks, for ever if one has ended or was stopped, and cannot be interrupted. */
typedef struct limit {
    os_mutex lock;
    os_cond ends;
    os_thread thread;
    double seconds;
    bool has_thread, is_done;
    const char *what;
} limit;

static void *watch(void *arg) {
    limit *l = arg;
    const int64_t until = ggl_os_clock() + (int64_t)(l->seconds * 1e9);
    ggl_os_mutex_lock(&l->lock);
    while (!l->is_done && ggl_os_cond_wait_until(&l->ends, &l->lock, until))
        ;
    if (!l->is_done) {
        fprintf(stderr,
                "the job of mpirun could not be %s in %.0f s: one of its ranks has ended, was "
                "stopped, or cannot be reached; start the job again (GGL_RANK_PATIENCE allows "
                "more time)\n",
                l->what, l->seconds);
        ggl_os_exit_now(1);
    }
    ggl_os_mutex_unlock(&l->lock);
    return NULL;
}

static void limit_begin(limit *l, const char *what) {
    enum { OF_PATIENCE = 20 };
    const double least = 1.5,
                 patience = ggl_job_patience(); /* a wrong one is an error soon (ggl_job_join) */
    l->seconds = OF_PATIENCE * (patience > least ? patience : least);
    l->is_done = false;
    l->what = what;
    ggl_os_mutex_init(&l->lock);
    ggl_os_cond_init(&l->ends);
    l->has_thread = ggl_os_thread_start(&l->thread, watch, l, 0);
}

static void limit_end(limit *l) {
    ggl_os_mutex_lock(&l->lock);
    l->is_done = true;
    ggl_os_cond_signal(&l->ends);
    ggl_os_mutex_unlock(&l->lock);
    if (l->has_thread)
        ggl_os_thread_join(l->thread);
    ggl_os_cond_destroy(&l->ends);
    ggl_os_mutex_destroy(&l->lock);
}

static void leave(const ggl_transport *t) {
    limit l;
    limit_begin(&l, "left");
    t->leave(t->ctx);
    limit_end(&l);
}

/* --- the job -------------------------------------------------------------------------------------- */

/* Ends the job when the program ends. A rank that is lost never leaves it: then we do not, either, and mpirun ends all ranks. */
static void end_job(void) {
    job *j = ggl_current_job;
    const ggl_transport *t = j->t;
    const bool all = ggl_job_dismiss(j);
    ggl_current_job = NULL;
    ggl_job_leave(j);
    if (all)
        leave(t);
}

/* Joins the job by the plug-in's function. */
static ggl_status join_job(job **j, ggl_transport_join_fn *join, ggl_error *err) {
    char why[512] = "";
    limit l;
    limit_begin(&l, "joined");
    const ggl_transport *t = join(why, sizeof why);
    ggl_status st = GGL_OK;
    if (!t || t->version != GGL_TRANSPORT_VERSION || t->size != sizeof *t)
        st = ggl_fail(err, GGL_UNSUPPORTED, "the job of mpirun cannot be joined: %s",
                      t ? "the plug-in is of another version" : why);
    else if (t->n_ranks > 1)
        st = ggl_job_join(j, t, err);
    limit_end(&l);
    return st;
}

/* Finds the plug-in, and joins the job. *j NULL, and GGL_OK: there is none. */
static ggl_status begin(job **j, ggl_error *err) {
    char why[512];
    *j = NULL;
    if (!is_in_job() || ggl_current_job)
        return GGL_OK;
    void *object = open_plugin(why, sizeof why);
    ggl_transport_join_fn *join = NULL;
    if (object)
        *(void **)&join = ggl_os_library_find(object, GGL_TRANSPORT_SYMBOL);
    if (!join)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "mpirun has started several of this program, which cannot be ranks of one job: %s. "
            "GGL_RANKS=off lets each run by itself",
            object ? "the plug-in has no function " GGL_TRANSPORT_SYMBOL : why);
    return join_job(j, join, err);
}

ggl_status ggl_ranks_begin(int *exit_code, void (*note)(const char *text), ggl_error *err) {
    job *j = NULL;
    *exit_code = -1;
    ggl_status st = begin(&j, err);
    if (!j)
        return st;
    const ggl_transport *t = j->t;
    if (st == GGL_OK && t->rank == 0) {
        ggl_current_job = j;
        atexit(end_job);
        return GGL_OK;
    }
    if (st == GGL_OK) {
        /* who ends a program tells all of its processes at once, but rank 0 may have something to finish with us */
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN);
        *exit_code = ggl_job_serve(j, ggl_backend_open, note, err);
        st = *exit_code == 0 ? GGL_OK : GGL_DEVICE;
    }
    const bool is_torn = j->is_torn;
    ggl_job_leave(j);
    if (st == GGL_OK && !is_torn)
        leave(t);
    return st;
}

/* --- peers ----------------------------------------------------------------------------------------- */

/* Leaves the job when the program ends; not if a rank is lost, which never does. */
static void end_peers(void) {
    job *j = ggl_current_job;
    const ggl_transport *t = j->t;
    bool all = true;
    for (int r = 0; r < t->n_ranks; r++)
        all &= !ggl_job_is_lost(j, r);
    ggl_current_job = NULL;
    ggl_job_leave(j);
    if (all)
        leave(t);
}

ggl_status ggl_ranks_begin_peers(int *rank, int *n_ranks, ggl_error *err) {
    job *j = NULL;
    *rank = 0;
    *n_ranks = 1;
    ggl_status st = begin(&j, err);
    if (st != GGL_OK || !j) {
        ggl_job_leave(j);
        return st;
    }
    ggl_current_job = j;
    *rank = j->t->rank;
    *n_ranks = j->t->n_ranks;
    atexit(end_peers);
    return GGL_OK;
}

enum { MOST_AT_ONCE = 1 << 26 }; /* bytes of a message */

/* Moves the bytes in messages of at most MOST_AT_ONCE. */
static ggl_status move(int rank, char *data, size_t size, bool sends, ggl_error *err) {
    job *j = ggl_current_job;
    ggl_status st = j ? GGL_OK : ggl_fail(err, GGL_USAGE, "this process is in no job of ranks");
    for (size_t at = 0, n, got; at < size && st == GGL_OK; at += n) {
        ggl_request r = {0};
        n = size - at < MOST_AT_ONCE ? size - at : MOST_AT_ONCE;
        got = n;
        const bool begun = sends ? j->t->send(j->t->ctx, rank, TAG_PEER, data + at, n, &r)
                                 : j->t->receive(j->t->ctx, rank, TAG_PEER, data + at, n, &r);
        st = begun ? ggl_job_wait(j, rank, &r, sends ? NULL : &got, err)
                   : ggl_job_fail_lost(j, rank, err);
        if (st == GGL_OK && got != n)
            st = ggl_fail(err, GGL_DEVICE, "rank %d sent %zu bytes, not %zu", rank, got, n);
    }
    return st;
}

ggl_status ggl_ranks_send(int rank, const void *data, size_t size, ggl_error *err) {
    return move(rank, (char *)data, size, true, err); /* which is only read */
}

ggl_status ggl_ranks_receive(int rank, void *data, size_t size, ggl_error *err) {
    return move(rank, data, size, false, err);
}

bool ggl_ranks_are_lost(ggl_error *err) {
    job *j = ggl_current_job;
    for (int r = 1; j && r < j->t->n_ranks; r++)
        if (atomic_load(&j->peer[r].n_open) > 0 && ggl_job_is_lost(j, r))
            return ggl_job_fail_lost(j, r, err) != GGL_OK;
    return false;
}

int ggl_ranks_count(void) {
    return ggl_current_job ? ggl_current_job->t->n_ranks : 1;
}
