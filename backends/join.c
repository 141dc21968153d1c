/* Finds out whether mpirun has started this process, and joins its job. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/internal/backends.h"
#include "ranks/job.h"

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

/* Opens the plug-in: GGL_MPI names it, or it is beside this program or library, or in a folder lib/ggl or ggl near it. */
static void *open_plugin(char *why, size_t size) {
    static const char *const near[] = {"", "ggl/", "../lib/", GGL_PLUGIN_FOLDER "/"};
    const char *named = getenv("GGL_MPI");
    char self[PATH_MAX] = "", path[PATH_MAX + 64];
    Dl_info info;
    if (named && *named) {
        void *object = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        snprintf(why, size, "%s", object ? "" : dlerror());
        return object;
    }
    if (dladdr(PLUGIN, &info) && info.dli_fname && !realpath(info.dli_fname, self))
        self[0] = '\0';
    if (!self[0] && readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        self[0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    snprintf(why, size, "%s", "");
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        snprintf(path, sizeof path, "%s%s" PLUGIN, self, near[i]);
        if (access(path, R_OK) != 0)
            continue;
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (object)
            return object;
        snprintf(why, size, "%s", dlerror());
    }
    if (!*why)
        snprintf(why, size,
                 "there is no " PLUGIN " near %s: this build was made without MPI (Debian: "
                 "libopenmpi-dev, then cmake -DGGL_MPI=ON)",
                 self);
    return NULL;
}

/* Ends the job when the program ends. A rank that is lost never leaves it: then we do not, either, and mpirun ends all ranks. */
static void end_job(void) {
    job *j = ggl_current_job;
    const ggl_transport *t = j->t;
    const bool all = ggl_job_dismiss(j);
    ggl_current_job = NULL;
    ggl_job_leave(j);
    if (all)
        t->leave(t->ctx);
}

ggl_status ggl_ranks_begin(int *exit_code, void (*note)(const char *text), ggl_error *err) {
    char why[512];
    *exit_code = -1;
    if (!is_in_job() || ggl_current_job)
        return GGL_OK;
    void *object = open_plugin(why, sizeof why);
    ggl_transport_join_fn *join = NULL;
    if (object)
        *(void **)&join = dlsym(object, GGL_TRANSPORT_SYMBOL);
    if (!join)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "mpirun has started several of this program, which cannot be ranks of one job: %s. "
            "GGL_RANKS=off lets each run by itself",
            object ? "the plug-in has no function " GGL_TRANSPORT_SYMBOL : why);
    const ggl_transport *t = join(why, sizeof why);
    if (!t || t->version != GGL_TRANSPORT_VERSION || t->size != sizeof *t)
        return ggl_fail(err, GGL_UNSUPPORTED, "the job of mpirun cannot be joined: %s",
                        t ? "the plug-in is of another version" : why);
    if (t->n_ranks == 1)
        return GGL_OK;
    job *j;
    ggl_status st = ggl_job_join(&j, t, err);
    if (st == GGL_OK && t->rank == 0) {
        ggl_current_job = j;
        atexit(end_job);
        return GGL_OK;
    }
    if (st == GGL_OK) {
        *exit_code = ggl_job_serve(j, ggl_backend_open, note, err);
        st = *exit_code == 0 ? GGL_OK : GGL_DEVICE;
    }
    ggl_job_leave(j);
    if (st == GGL_OK)
        t->leave(t->ctx);
    return st;
}

int ggl_ranks_count(void) {
    return ggl_current_job ? ggl_current_job->t->n_ranks : 1;
}
