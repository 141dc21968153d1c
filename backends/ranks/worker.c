/* The other ranks: receives packets of orders, and answers them. Each device that rank 0 opens has a channel, and a thread. */
#include <stdio.h>
#include <string.h>

#include "execute.h"
#include "arriving.h"
#include "ggl/internal/os_clock.h"

typedef struct worker worker;

/* A channel and its thread. */
typedef struct post {
    station s;
    worker *w;
    char *packet; /* [PACKET_SIZE] */
    ggl_request packets;
    ggl_bytes answer;
    os_thread thread;
    bool has_thread;
    bool has_packets;      /* the receiving of packets is prepared */
    atomic_bool is_closed; /* the thread ends as soon as it has said so */
} post;

struct worker {
    job *j;
    ggl_open_fn *open;
    void (*note)(const char *text);
    post *at[MOST_CHANNELS];
};

/* --- cancelling --------------------------------------------------------------------------------- */

/* The backend's callback: true if rank 0 has given up the packet that is carried out. */
static bool is_cancelled(void *ctx) {
    station *s = ctx;
    const ggl_transport *t = s->j->t;
    while (s->has_cancels && t->test(t->ctx, &s->cancels, NULL) > 0) {
        s->cancelled = s->cancel_in > s->cancelled ? s->cancel_in : s->cancelled;
        s->has_cancels = t->start(t->ctx, &s->cancels);
    }
    return s->number <= s->cancelled;
}

/* --- packets ------------------------------------------------------------------------------------ */

static bool start_receiving(post *p) {
    const ggl_transport *t = p->s.j->t;
    return t->start(t->ctx, &p->packets);
}

static bool prepare(post *p, job *j, int k, worker *w) {
    const ggl_transport *t = j->t;
    station *s = &p->s;
    *s = (station){.j = j, .tag = TAG_CHANNELS + k * N_TAGS, .note = w->note};
    p->w = w;
    if (!(p->packet = ggl_calloc(PACKET_SIZE, 1)))
        return false;
    s->has_cancels = t->prepare(t->ctx, 0, s->tag + TAG_CANCEL, &s->cancel_in, sizeof s->cancel_in,
                                &s->cancels) &&
                     t->start(t->ctx, &s->cancels);
    p->has_packets = s->has_cancels && t->prepare(t->ctx, 0, s->tag + TAG_ORDERS, p->packet,
                                                  PACKET_SIZE, &p->packets);
    return p->has_packets && start_receiving(p);
}

/* Sends the answer to what has been carried out since the last one. */
static bool answer(post *p) {
    station *s = &p->s;
    const ggl_transport *t = s->j->t;
    const size_t n_error = s->failed.status == GGL_OK ? 0 : strlen(s->failed.msg);
    if (s->piece.failed || s->result.failed || s->result.n > MOST_RESULT)
        return false; /* what rank 0 expects cannot be sent */
    const answer_head h = {s->number, (uint32_t)s->failed.status, (uint32_t)s->piece.n,
                           (uint32_t)s->result.n, (uint32_t)n_error};
    p->answer.n = 0;
    ggl_put(&p->answer, &h, sizeof h);
    ggl_put(&p->answer, s->piece.at, s->piece.n);
    ggl_put(&p->answer, s->result.at, s->result.n);
    ggl_put(&p->answer, s->failed.msg, n_error);
    s->piece.n = s->result.n = 0;
    s->failed = (ggl_error){0};
    ggl_request r;
    return !p->answer.failed &&
           t->send(t->ctx, 0, s->tag + TAG_ANSWER, p->answer.at, p->answer.n, &r) &&
           ggl_job_wait(s->j, 0, &r, NULL, NULL) == GGL_OK;
}

static bool start_post(worker *w, ggl_reader *r, post *control);

/* Carries out a packet, and answers it. *ends: the channel is closed. False: rank 0 is lost, or the packet is damaged. */
static bool carry_out(post *p, size_t size, bool *ends) {
    station *s = &p->s;
    ggl_reader r = {p->packet, p->packet + size, false};
    packet_head h;
    ggl_get_to(&r, &h, sizeof h);
    if (r.failed || h.size != (size_t)(r.end - r.at))
        return false;
    s->number = h.number;
    order_head o = {0};
    while (r.at < r.end && !s->is_lost) {
        ggl_get_to(&r, &o, sizeof o);
        const char *body = ggl_get(&r, o.size);
        if (r.failed)
            return false;
        ggl_reader b = {body, body + o.size, false};
        if (o.op == ORDER_CLOSE) {
            *ends = true;
            atomic_store(&p->is_closed, true);
            if (o.size > 0) /* the first channel's */
                s->j->is_torn = ggl_get_u32(&b) == 0;
        } else if (o.op == ORDER_OPEN && !s->b) {
            (void)start_post(p->w, &b, p);
        } else if (o.op == ORDER_CLOCK && !s->b) {
            s->result.n = 0;
            ggl_put_u64(&s->result, ggl_os_clock() - s->j->began);
        } else if (s->b) {
            ggl_station_execute(s, o.op, &b);
        } else {
            return false;
        }
    }
    const bool ends_it = o.op != ORDER_HAS; /* else weights may be loaded meanwhile */
    if (h.has_answer)
        ggl_arriving_settle(s, ends_it);
    if (h.has_answer && ends_it && s->b && s->b->async) { /* the answer says that all is done */
        ggl_error err = {0};
        ggl_station_note(s, s->b->v->wait(s->b, &err), &err);
    }
    return !s->is_lost && (!h.has_answer || answer(p));
}

/* Receives packets until the channel is closed. False: rank 0 is lost. */
static bool receive_all(post *p) {
    bool ends = false;
    while (!ends) {
        size_t size = 0;
        const uint64_t since = ggl_station_since(&p->s);
        if (ggl_job_wait(p->s.j, 0, &p->packets, &size, NULL) != GGL_OK)
            return false;
        ggl_station_span(&p->s, "idle", since, size);
        if (!carry_out(p, size, &ends) || (!ends && !start_receiving(p)))
            return false;
    }
    return true;
}

static void post_fini(post *p) {
    const ggl_transport *t = p->s.j->t;
    if (p->s.has_cancels)
        t->drop(t->ctx, &p->s.cancels);
    if (p->has_packets)
        t->drop(t->ctx, &p->packets);
    ggl_arriving_fini(&p->s);
    ggl_station_fini(&p->s);
    ggl_bytes_fini(&p->answer);
    ggl_free(p->packet);
    ggl_free(p);
}

static void *run_post(void *arg) {
    post *p = arg;
    if (!receive_all(p)) /* no more beats, so that rank 0 does not wait in vain */
        atomic_store(&p->s.j->peer[0].lost, true);
    return NULL;
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Takes a text of an order; NULL for NULL. */
static const char *take_text(ggl_reader *r, char *to, size_t size) {
    const ggl_str s = ggl_get_text(r);
    if (!s.s)
        return NULL;
    snprintf(to, size, "%.*s", (int)s.n, s.s);
    return to;
}

/* Frees channel k for another device if it is closed. */
static bool is_free(worker *w, uint32_t k) {
    post *p = w->at[k];
    if (!p)
        return true;
    if (p->has_thread && !atomic_load(&p->is_closed))
        return false;
    if (p->has_thread)
        ggl_os_thread_join(p->thread);
    post_fini(p);
    w->at[k] = NULL;
    return true;
}

/* Opens the device. If rank 0 wants to know what it does, it is traced to memory. */
static ggl_status open_device(post *p, const char *name, bool records, ggl_backend_params *params,
                              ggl_error *err) {
    char log[RECORDER_NAME];
    station *s = &p->s;
    ggl_status st = GGL_OK;
    if (records && !(s->events = ggl_calloc(EVENTS_SIZE, 1)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a trace");
    if (records && st == GGL_OK)
        st = ggl_recorder_keep(&s->log, s->j->began, MOST_EVENTS, log, err);
    if (records)
        params->trace = log;
    return st == GGL_OK ? p->w->open(&s->b, name, params, err) : st;
}

/* Opens the backend of a new channel, and tells rank 0 what it is, or why it cannot. */
static bool start_post(worker *w, ggl_reader *r, post *control) {
    char device[128], mask[512];
    ggl_backend_params params = {.size = sizeof params};
    ggl_error err = {0};
    const uint32_t k = ggl_get_u32(r);
    const char *name = take_text(r, device, sizeof device);
    params.n_threads = (int)ggl_get_u32(r);
    params.n_threads_batch = (int)ggl_get_u32(r);
    params.f16_as_bf16 = ggl_get_u32(r) != 0;
    params.mask = take_text(r, mask, sizeof mask);
    const bool records = ggl_get_u32(r) != 0;
    post *p = NULL;
    ggl_status st = GGL_OK;
    if (r->failed || !name || k == 0 || k >= MOST_CHANNELS || !is_free(w, k))
        st = ggl_fail(&err, GGL_DEVICE, "an order to open a device that is damaged");
    else if (strncmp(name, "rank", 4) == 0)
        st = ggl_fail(&err, GGL_NOT_FOUND, "%s: a rank has devices, not ranks", name);
    else if (!(p = ggl_calloc(1, sizeof *p)) || !prepare(p, w->j, (int)k, w))
        st = ggl_fail(&err, GGL_NOMEM, "out of memory for a device");
    if (st == GGL_OK)
        st = open_device(p, name, records, &params, &err);
    if (st == GGL_OK) {
        p->s.b->cancelled = is_cancelled;
        p->s.b->cancelled_ctx = &p->s;
        w->at[k] = p;
        p->has_thread = ggl_os_thread_start(&p->thread, run_post, p, 0);
        if (!p->has_thread) {
            w->at[k] = NULL;
            st = ggl_fail(&err, GGL_NOMEM, "no thread could be started for a device");
        }
    }
    ggl_bytes *out = &control->s.result;
    out->n = 0;
    if (st == GGL_OK) {
        const ggl_backend *b = p->s.b;
        ggl_put_text(out, b->description);
        ggl_put_text(out, b->v->repack_size ? b->v->repack_layout : NULL);
        ggl_put_u64(out, b->memory);
        ggl_put_u64(out, b->max_buffer);
        ggl_put_u32(out, b->software);
        ggl_put_u32(out, b->looks_back);
        ggl_put(out, b->alike, sizeof b->alike);
        ggl_put_u32(out, b->async);
    } else {
        control->s.failed = err;
        control->s.failed.status = st;
        if (p)
            post_fini(p);
    }
    return st == GGL_OK;
}

int ggl_job_serve(job *j, ggl_open_fn *open, void (*note)(const char *text), ggl_error *err) {
    worker w = {.j = j, .open = open, .note = note};
    post *control = ggl_calloc(1, sizeof *control);
    if (!control || !prepare(control, j, 0, &w)) {
        ggl_free(control);
        return (int)ggl_fail(err, GGL_NOMEM, "rank %d: out of memory", j->t->rank) != 0;
    }
    const bool ended = receive_all(control);
    /* a program may end without having closed its devices: their threads wait for nothing any more */
    atomic_store(&j->peer[0].lost, true);
    for (int k = 1; k < MOST_CHANNELS; k++)
        if (w.at[k] && w.at[k]->has_thread)
            ggl_os_thread_join(w.at[k]->thread);
    for (int k = 1; k < MOST_CHANNELS; k++)
        if (w.at[k])
            post_fini(w.at[k]);
    post_fini(control);
    if (!ended)
        (void)ggl_fail(err, GGL_DEVICE, "rank %d: rank 0 does not answer any more", j->t->rank);
    return ended ? 0 : 1;
}
