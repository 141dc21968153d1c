#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_process.h"
#include "ggl/program.h"
#include "ggl/version.h"
#include "orders.h"

/* Own beats are the clock by which others' silence is measured: a process that was stopped itself does not find the others
 * silent when it goes on. */
enum { BEAT_MS = 100, PATIENCE_MS = 1500 };

job *ggl_current_job;

/* --- waiting ----------------------------------------------------------------------------------- */

/* A message between processes of one machine takes a microsecond, over a network ten or a hundred: so a wait begins awake. It does not
 * yield: where a thread computes on the same processor, that would have it for milliseconds. Then it sleeps for a small part of the
 * time that it has lasted, at most a millisecond: what comes after a long computation may be seen a little later, but who waits takes
 * hardly any time from those who compute. */
static void rest(const job *j, pause_t *p) {
    enum { PARTS = 40, LEAST_NS = 20000, MOST_NS = 1000000 };
    const int64_t now = ggl_os_clock();
    p->begin = p->begin ? p->begin : now;
    const int64_t part = (now - p->begin) / PARTS;
    j->t->idle(j->t->ctx, part < LEAST_NS ? LEAST_NS : part < MOST_NS ? (long)part : MOST_NS);
}

void ggl_job_pause(job *j, pause_t *p) {
    enum { AWAKE_NS = 50000 };
    const int64_t now = ggl_os_clock();
    p->begin = p->begin ? p->begin : now;
    if (now - p->begin >= AWAKE_NS)
        rest(j, p);
    atomic_store(&j->waited, (long long)ggl_os_clock());
}

ggl_status ggl_job_fail_lost(job *j, int rank, ggl_error *err) {
    const hello *h = &j->peer[rank].of;
    atomic_store(&j->peer[rank].lost, true);
    return ggl_fail(
        err, GGL_DEVICE,
        "rank %d (process %d on %s) does not answer: it ended, was stopped, or cannot be "
        "reached; start the job again",
        rank, (int)h->pid, h->host);
}

ggl_status ggl_job_wait(job *j, int rank, ggl_request *r, size_t *size, ggl_error *err) {
    pause_t p = {0};
    for (;;) {
        const int done = j->t->test(j->t->ctx, r, size);
        if (done > 0)
            return GGL_OK;
        if (done < 0 || ggl_job_is_lost(j, rank))
            return ggl_job_fail_lost(j, rank, err);
        ggl_job_pause(j, &p);
    }
}

/* --- beats -------------------------------------------------------------------------------------- */

static void beat(job *j, int rank) {
    const ggl_transport *t = j->t;
    peer *p = &j->peer[rank];
    int got = 0;
    if (p->to_busy && t->test(t->ctx, &p->to, NULL) != 0)
        p->to_busy = false;
    if (!p->to_busy) {
        p->beat_out++;
        p->to_busy = t->send(t->ctx, rank, TAG_BEAT, &p->beat_out, sizeof p->beat_out, &p->to);
    }
    while ((got = t->test(t->ctx, &p->from, NULL)) > 0) {
        atomic_store(&p->silent, 0);
        if (!t->start(t->ctx, &p->from))
            break;
    }
    if (got < 0 || atomic_fetch_add(&p->silent, 1) >= j->patience)
        atomic_store(&p->lost, true);
}

static void *beat_all(void *arg) {
    job *j = arg;
    while (!atomic_load(&j->stops)) {
        for (int r = 0; r < j->t->n_ranks; r++)
            if (r != j->t->rank && j->peer[r].watched && !atomic_load(&j->peer[r].lost))
                beat(j, r);
        ggl_os_sleep(BEAT_MS * 1000000L);
    }
    return NULL;
}

/* --- moving data -------------------------------------------------------------------------------- */

void ggl_job_count_moving(job *j, int n) {
    if (!j->has_mover)
        return;
    ggl_os_mutex_lock(&j->moves);
    j->n_moving += n;
    j->n_begun += n > 0;
    if (n > 0)
        ggl_os_cond_signal(&j->begun);
    ggl_os_mutex_unlock(&j->moves);
}

/* Moves on what has begun: often at first, and more seldom if that takes long, because then it waits for a computation. Who waits moves
 * it on, too, at most so long after the last time. */
static void *move_all(void *arg) {
    enum { SOON_NS = 300000 };
    job *j = arg;
    pause_t p = {0};
    uint64_t n_seen = 0;
    ggl_os_mutex_lock(&j->moves);
    while (!atomic_load(&j->stops)) {
        if (j->n_moving == 0) {
            ggl_os_cond_wait(&j->begun, &j->moves);
            continue;
        }
        if (j->n_begun != n_seen)
            p = (pause_t){0};
        n_seen = j->n_begun;
        ggl_os_mutex_unlock(&j->moves);
        if ((long long)ggl_os_clock() - atomic_load(&j->waited) > SOON_NS)
            rest(j, &p);
        else
            ggl_os_sleep(SOON_NS);
        ggl_os_mutex_lock(&j->moves);
    }
    ggl_os_mutex_unlock(&j->moves);
    return NULL;
}

/* --- joining ------------------------------------------------------------------------------------ */

static hello own_hello(const ggl_transport *t) {
    hello h = {.magic = "ggl job",
               .abi = GGL_BACKEND_ABI,
               .order = 0x01020304,
               .sizes = (uint32_t)(ORDERS_VERSION << 24 | sizeof(ggl_store) << 16 |
                                   GGL_OP_COUNT << 8 | GGL_TYPE_COUNT),
               .pid = (int32_t)ggl_os_pid()};
    snprintf(h.version, sizeof h.version, "%s", ggl_version());
    snprintf(h.host, sizeof h.host, "%s", t->host);
    return h;
}

/* Checks that the rank is the same build as we are. */
static ggl_status check_hello(const job *j, int rank, ggl_error *err) {
    const hello own = own_hello(j->t), *h = &j->peer[rank].of;
    if (memcmp(own.magic, h->magic, sizeof own.magic) != 0 || own.order != h->order)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "rank %d is another program, or has another byte order", rank);
    if (strncmp(own.version, h->version, sizeof own.version) != 0 || own.abi != h->abi ||
        own.sizes != h->sizes)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "rank %d on %.63s has version %.47s (interface %u), and rank %d has %s (%u): all "
            "ranks must run the same build",
            rank, h->host, h->version, (unsigned)h->abi, j->t->rank, own.version,
            (unsigned)own.abi);
    return GGL_OK;
}

/* Exchanges hellos with a rank. */
static ggl_status greet(job *j, int rank, ggl_error *err) {
    const hello own = own_hello(j->t);
    const ggl_transport *t = j->t;
    ggl_request to = {0}, from = {0};
    if (!t->send(t->ctx, rank, TAG_HELLO, &own, sizeof own, &to) ||
        !t->receive(t->ctx, rank, TAG_HELLO, &j->peer[rank].of, sizeof own, &from))
        return ggl_fail(err, GGL_DEVICE, "rank %d cannot be reached", rank);
    ggl_status st = ggl_job_wait(j, rank, &to, NULL, err);
    if (st == GGL_OK)
        st = ggl_job_wait(j, rank, &from, NULL, err);
    j->peer[rank].of.host[sizeof own.host - 1] = j->peer[rank].of.version[sizeof own.version - 1] =
        '\0';
    return st == GGL_OK ? check_hello(j, rank, err) : st;
}

double ggl_job_patience(void) {
    const char *s = getenv("GGL_RANK_PATIENCE");
    if (!s)
        return PATIENCE_MS * 1e-3;
    const double x =
        *s && ggl_number_length(s, strlen(s)) == strlen(s) ? ggl_number_value(s, strlen(s)) : -1;
    return x >= 0.5 && x <= 86400 ? x : -1;
}

static ggl_status set_patience(job *j, ggl_error *err) {
    /* a user may stop rank 0, and let it go on; when it ends, mpirun ends the others */
    const int least = j->t->rank > 0 ? 10 * PATIENCE_MS / BEAT_MS : 0;
    const double seconds = ggl_job_patience();
    if (seconds < 0)
        return ggl_fail(err, GGL_USAGE,
                        "GGL_RANK_PATIENCE: '%s' is no number of seconds from 0.5 to 86400",
                        getenv("GGL_RANK_PATIENCE"));
    j->patience = (int)(seconds * 1000 / BEAT_MS);
    j->patience = j->patience > least ? j->patience : least;
    return GGL_OK;
}

ggl_status ggl_job_watch(job *j, int rank, ggl_error *err) {
    peer *p = &j->peer[rank];
    const ggl_transport *t = j->t;
    if (!t->prepare(t->ctx, rank, TAG_BEAT, &p->beat_in, sizeof p->beat_in, &p->from) ||
        !t->start(t->ctx, &p->from))
        return ggl_job_fail_lost(j, rank, err);
    p->watched = true;
    return GGL_OK;
}

ggl_status ggl_job_join(job **out, const ggl_transport *t, ggl_error *err) {
    job *j = *out = ggl_calloc(1, sizeof *j);
    if (!j)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a job");
    j->t = t;
    j->began = ggl_os_clock();
    ggl_os_mutex_init(&j->lock);
    ggl_os_mutex_init(&j->moves);
    ggl_os_cond_init(&j->begun);
    if (!(j->peer = ggl_calloc((size_t)t->n_ranks, sizeof *j->peer)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a job of %d ranks", t->n_ranks);
    ggl_status st = set_patience(j, err);
    for (int r = 1; st == GGL_OK && t->rank == 0 && r < t->n_ranks; r++)
        if (!(j->peer[r].channel = ggl_calloc(MOST_CHANNELS, sizeof *j->peer[r].channel)))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a job of %d ranks", t->n_ranks);
    if (st == GGL_OK && t->n_ranks > MOST_RANKS)
        st = ggl_fail(err, GGL_LIMIT, "a job of %d ranks; at most %d are supported", t->n_ranks,
                      MOST_RANKS);
    /* every other rank talks with rank 0 alone */
    for (int r = t->rank == 0 ? 1 : 0; r < (t->rank == 0 ? t->n_ranks : 1) && st == GGL_OK; r++) {
        st = greet(j, r, err);
        if (st == GGL_OK)
            st = ggl_job_watch(j, r, err);
    }
    if (st != GGL_OK)
        return st;
    if (!ggl_os_thread_start(&j->thread, beat_all, j, 0))
        return ggl_fail(err, GGL_NOMEM, "the thread that watches the ranks could not be started");
    j->has_thread = true;
    j->has_mover = t->rank == 0 && ggl_os_thread_start(&j->mover, move_all, j, 0);
    return GGL_OK; /* without the mover, data waits for whoever has begun it */
}

void ggl_job_leave(job *j) {
    if (!j)
        return;
    ggl_os_mutex_lock(&j->moves);
    atomic_store(&j->stops, true);
    ggl_os_cond_signal(&j->begun);
    ggl_os_mutex_unlock(&j->moves);
    if (j->has_mover)
        ggl_os_thread_join(j->mover);
    if (j->has_thread)
        ggl_os_thread_join(j->thread);
    for (int r = 0; j->peer && r < j->t->n_ranks; r++) {
        if (j->peer[r].watched)
            j->t->drop(j->t->ctx, &j->peer[r].from);
        ggl_free(j->peer[r].channel);
    }
    ggl_os_mutex_destroy(&j->lock);
    ggl_os_mutex_destroy(&j->moves);
    ggl_os_cond_destroy(&j->begun);
    ggl_free(j->peer);
    ggl_free(j);
}
