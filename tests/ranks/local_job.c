#include "local_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_LOCAL = 4 };

typedef struct message {
    struct message *next;
    int from, to, tag;
    size_t size;
    char data[];
} message;

/* A receiving that was begun or prepared. */
typedef struct receiving {
    int from, tag;
    void *data;
    size_t size;
    bool is_prepared, is_started;
} receiving;

typedef struct local_rank {
    local_job *of;
    ggl_transport t;
    pthread_t thread;
    bool has_thread, silent;
    int n_left; /* messages of data to it until it falls silent; 0: it does not */
    bool fails; /* all that it begins or waits for, so that it ends */
    int code;
} local_rank;

struct local_job {
    pthread_mutex_t lock;
    pthread_cond_t comes;
    message *first;
    local_rank rank[MOST_LOCAL];
    int n;
    size_t n_data; /* bytes that rank 0 has sent */
};

static void (*change_hello)(hello *h);
static void (*_Atomic change_data)(char *data, size_t size); /* threads of all ranks read it */

/* What the other ranks have said to the user. */
static struct {
    pthread_mutex_t lock;
    int n;
    char last[512];
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(const char *text) {
    pthread_mutex_lock(&notes.lock);
    notes.n++;
    snprintf(notes.last, sizeof notes.last, "%s", text);
    pthread_mutex_unlock(&notes.lock);
}

int local_job_notes(char *last, size_t size) {
    pthread_mutex_lock(&notes.lock);
    const int n = notes.n;
    snprintf(last, size, "%s", notes.last);
    pthread_mutex_unlock(&notes.lock);
    return n;
}

void local_job_change_data(void (*change)(char *data, size_t size)) {
    change_data = change;
}

size_t local_job_data(const local_job *l) {
    return l->n_data;
}

void local_job_change_hello(void (*change)(hello *h)) {
    change_hello = change;
}

/* --- the transport ------------------------------------------------------------------------------ */

static bool local_send(void *ctx, int rank, int tag, const void *data, size_t size,
                       ggl_request *r) {
    local_rank *self = ctx;
    local_job *l = self->of;
    memset(r, 0, sizeof *r);
    message *m = malloc(sizeof *m + size);
    if (!m)
        return false;
    *m = (message){.from = self->t.rank, .to = rank, .tag = tag, .size = size};
    if (size)
        memcpy(m->data, data, size);
    if (tag == TAG_HELLO && self->t.rank > 0 && change_hello)
        change_hello((hello *)m->data);
    const bool is_data =
        self->t.rank == 0 && tag >= TAG_CHANNELS && (tag - TAG_CHANNELS) % N_TAGS == TAG_DATA;
    void (*const change)(char *, size_t) = change_data;
    if (is_data && change)
        change(m->data, size);
    pthread_mutex_lock(&l->lock);
    l->n_data += is_data ? size : 0;
    local_rank *other = &l->rank[rank];
    if (is_data && other->n_left > 0 && --other->n_left == 0)
        other->silent = true;
    message **end = &l->first;
    while (*end)
        end = &(*end)->next;
    if (self->silent)
        free(m);
    else
        *end = m;
    pthread_cond_broadcast(&l->comes);
    pthread_mutex_unlock(&l->lock);
    return true;
}

static bool begin(int rank, int tag, void *data, size_t size, bool is_prepared, ggl_request *r) {
    receiving *x = malloc(sizeof *x);
    if (x)
        *x = (receiving){rank, tag, data, size, is_prepared, !is_prepared};
    *r = (ggl_request){{(uintptr_t)x, 1}};
    return x;
}

static bool local_receive(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r) {
    (void)ctx;
    return begin(rank, tag, data, size, false, r);
}

static bool local_prepare(void *ctx, int rank, int tag, void *data, size_t size, ggl_request *r) {
    (void)ctx;
    return begin(rank, tag, data, size, true, r);
}

static bool local_start(void *ctx, ggl_request *r) {
    (void)ctx;
    ((receiving *)r->handle[0])->is_started = true;
    return true;
}

static int local_test(void *ctx, ggl_request *r, size_t *size) {
    local_rank *self = ctx;
    local_job *l = self->of;
    receiving *x = (receiving *)r->handle[0];
    if (!r->handle[1]) /* a sending, which is done at once */
        return 1;
    if (!x->is_started)
        return 0;
    pthread_mutex_lock(&l->lock);
    const bool fails = self->fails;
    message **at = &l->first;
    while (*at && ((*at)->from != x->from || (*at)->to != self->t.rank || (*at)->tag != x->tag))
        at = &(*at)->next;
    message *m = fails ? NULL : *at;
    if (m)
        *at = m->next;
    pthread_mutex_unlock(&l->lock);
    if (!m)
        return fails ? -1 : 0;
    const int done = m->size <= x->size ? 1 : -1;
    if (done > 0 && m->size)
        memcpy(x->data, m->data, m->size);
    if (size)
        *size = m->size;
    free(m);
    x->is_started = false;
    if (!x->is_prepared) {
        free(x);
        memset(r, 0, sizeof *r);
    }
    return done;
}

/* Sleeps until any message comes, a hundred times as long at most: there is nothing else to wait for. */
static void local_idle(void *ctx, long ns) {
    local_job *l = ((local_rank *)ctx)->of;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ns < 1000000 ? 100 * ns : 100000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&l->lock);
    pthread_cond_timedwait(&l->comes, &l->lock, &t);
    pthread_mutex_unlock(&l->lock);
}

static void local_drop(void *ctx, ggl_request *r) {
    (void)ctx;
    if (r->handle[1])
        free((receiving *)r->handle[0]);
    memset(r, 0, sizeof *r);
}

static void local_leave(void *ctx) {
    (void)ctx;
}

/* --- the job ------------------------------------------------------------------------------------ */

static void *run_rank(void *arg) {
    local_rank *self = arg;
    ggl_error err = {0};
    job *j;
    self->code = 1;
    if (ggl_job_join(&j, &self->t, &err) == GGL_OK)
        self->code = ggl_job_serve(j, ggl_backend_open, note, &err);
    if (err.status != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    ggl_job_leave(j);
    return NULL;
}

local_job *local_job_open(int n_ranks, ggl_error *err) {
    local_job *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->comes, NULL);
    notes.n = 0;
    l->n = n_ranks < MOST_LOCAL ? n_ranks : MOST_LOCAL;
    for (int k = 0; k < l->n; k++) {
        local_rank *self = &l->rank[k];
        self->of = l;
        self->t = (ggl_transport){.version = GGL_TRANSPORT_VERSION,
                                  .rank = k,
                                  .n_ranks = l->n,
                                  .n_local = l->n,
                                  .host = "here",
                                  .ctx = self,
                                  .send = local_send,
                                  .receive = local_receive,
                                  .prepare = local_prepare,
                                  .start = local_start,
                                  .test = local_test,
                                  .idle = local_idle,
                                  .drop = local_drop,
                                  .leave = local_leave};
        if (k > 0)
            self->has_thread = pthread_create(&self->thread, NULL, run_rank, self) == 0;
    }
    if (ggl_job_join(&ggl_current_job, &l->rank[0].t, err) == GGL_OK)
        return l;
    (void)local_job_close(l);
    return NULL;
}

void local_job_silence(local_job *l, int rank) {
    pthread_mutex_lock(&l->lock);
    l->rank[rank].silent = true;
    pthread_mutex_unlock(&l->lock);
}

void local_job_silence_after(local_job *l, int rank, int n) {
    pthread_mutex_lock(&l->lock);
    l->rank[rank].n_left = n;
    pthread_mutex_unlock(&l->lock);
}

bool local_job_close(local_job *l) {
    bool ok = ggl_job_dismiss(ggl_current_job);
    for (int k = 1; k < l->n; k++) {
        pthread_mutex_lock(&l->lock);
        l->rank[k].fails = l->rank[k].silent;
        pthread_cond_broadcast(&l->comes);
        pthread_mutex_unlock(&l->lock);
        if (l->rank[k].has_thread)
            pthread_join(l->rank[k].thread, NULL);
        ok = ok && l->rank[k].code == 0;
    }
    ggl_job_leave(ggl_current_job);
    ggl_current_job = NULL;
    while (l->first) {
        message *m = l->first;
        l->first = m->next;
        free(m);
    }
    pthread_cond_destroy(&l->comes);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return ok;
}
