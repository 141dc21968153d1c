#include "channel.h"

#include <stdio.h>
#include <string.h>

/* --- opening ------------------------------------------------------------------------------------ */

/* Gives up data that is on its way: a rank that was only slow may still send, but its caller soon frees the memory. */
static void drop_data(channel *c) {
    int n = 0;
    for (size_t i = 0; i < c->n_waited; i++)
        if (!c->waited[i].to) {
            c->j->t->drop(c->j->t->ctx, &c->waited[i].r);
            n++;
        }
    c->n_waited = 0;
    ggl_job_count_moving(c->j, -n);
}

/* Takes a message of data that has come or gone from the list. */
static void end_data(channel *c, size_t i) {
    memmove(c->waited + i, c->waited + i + 1, (--c->n_waited - i) * sizeof *c->waited);
    ggl_job_count_moving(c->j, -1);
}

static ggl_status lost(channel *c, ggl_error *err) {
    drop_data(c);
    return ggl_job_fail_lost(c->j, c->rank, err);
}

ggl_status ggl_channel_init(channel *c, job *j, int rank, int k, uint64_t number, const char *name,
                            ggl_error *err) {
    const ggl_transport *t = j->t;
    *c = (channel){.j = j, .rank = rank, .tag = TAG_CHANNELS + k * N_TAGS, .number = number};
    c->answered = c->cancel = number - 1;
    snprintf(c->name, sizeof c->name, "%s", name);
    bool ok = (c->answer = ggl_calloc(PACKET_SIZE, 1)) && ggl_put_room(&c->out, PACKET_SIZE);
    c->out.n = 0;
    for (int i = 0; i < N_PACKETS && ok; i++)
        ok = (c->packet[i] = ggl_calloc(PACKET_SIZE, 1));
    if (!ok)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the orders to rank %d", rank);
    if (!t->prepare(t->ctx, rank, c->tag + TAG_ANSWER, c->answer, PACKET_SIZE, &c->answers))
        return lost(c, err);
    c->has_answers = true;
    return t->start(t->ctx, &c->answers) ? GGL_OK : lost(c, err);
}

void ggl_channel_fini(channel *c) {
    const ggl_transport *t = c->j->t;
    drop_data(c);
    if (c->has_answers)
        t->drop(t->ctx, &c->answers);
    for (int i = 0; i < N_PACKETS; i++)
        if (!c->on_way[i] || t->test(t->ctx, &c->sent[i], NULL) != 0) /* else it may be read yet */
            ggl_free(c->packet[i]);
    ggl_free(c->answer);
    ggl_bytes_fini(&c->out);
}

/* --- answers ------------------------------------------------------------------------------------ */

/* Copies the pieces of the answer to where they belong. False: the answer does not fit. */
static bool take_pieces(channel *c, uint64_t number, ggl_reader *r) {
    size_t left = 0;
    for (size_t i = 0; i < c->n_waited; i++) {
        waited *w = &c->waited[i];
        if (w->to && w->number <= number)
            ggl_get_to(r, w->to, w->size);
        else
            c->waited[left++] = *w;
    }
    c->n_waited = left;
    return !r->failed && r->at == r->end;
}

static ggl_status take_answer(channel *c, size_t size, ggl_error *err) {
    ggl_reader r = {c->answer, c->answer + size, false};
    answer_head h;
    ggl_get_to(&r, &h, sizeof h);
    const char *piece = ggl_get(&r, h.n_inline), *result = ggl_get(&r, h.n_result),
               *message = ggl_get(&r, h.n_error);
    ggl_reader pieces = {piece, piece ? piece + h.n_inline : NULL, false};
    if (r.failed || r.at != r.end || h.number < c->answered || h.number >= c->number ||
        h.status >= GGL_STATUS_COUNT || h.n_result > sizeof c->result ||
        !take_pieces(c, h.number, &pieces))
        return ggl_fail(err, GGL_DEVICE, "%s: an answer that does not fit its orders", c->name);
    c->answered = h.number;
    c->n_result = h.n_result;
    memcpy(c->result, result, h.n_result);
    if (h.status != GGL_OK && c->failed.status == GGL_OK) {
        (void)ggl_fail(&c->failed, (ggl_status)h.status, "%s: %.*s", c->name, (int)h.n_error,
                       message);
        c->failed_number = h.number;
    }
    return c->j->t->start(c->j->t->ctx, &c->answers) ? GGL_OK : lost(c, err);
}

/* Tells the other rank to stop if the user wants that. */
static void ask_cancelled(channel *c) {
    const ggl_transport *t = c->j->t;
    if (!c->cancelled || c->answered >= c->cancellable || c->cancel >= c->cancellable ||
        !c->cancelled(c->cancelled_ctx))
        return;
    if (c->is_cancelling && t->test(t->ctx, &c->cancels, NULL) == 0)
        return;
    c->cancel = c->cancellable;
    c->is_cancelling =
        t->send(t->ctx, c->rank, c->tag + TAG_CANCEL, &c->cancel, sizeof c->cancel, &c->cancels);
}

/* Takes answers that have come, and pauses if there are none. */
static ggl_status go_on(channel *c, pause_t *p, ggl_error *err) {
    size_t size = 0;
    const int got = c->j->t->test(c->j->t->ctx, &c->answers, &size);
    if (got < 0 || ggl_job_is_lost(c->j, c->rank))
        return lost(c, err);
    if (got > 0)
        return take_answer(c, size, err);
    ask_cancelled(c);
    ggl_job_pause(c->j, p);
    return GGL_OK;
}

/* Waits for a request; answers are taken meanwhile, because the other rank may have to send them before it receives. */
static ggl_status wait_request(channel *c, ggl_request *r, ggl_error *err) {
    pause_t p = {0};
    ggl_status st = GGL_OK;
    int done;
    while ((done = c->j->t->test(c->j->t->ctx, r, NULL)) == 0 && st == GGL_OK)
        st = go_on(c, &p, err);
    return done < 0 ? lost(c, err) : st;
}

/* --- packets ------------------------------------------------------------------------------------ */

ggl_status ggl_channel_flush(channel *c, bool has_answer, uint64_t *number, ggl_error *err) {
    const int k = (int)(c->number % N_PACKETS);
    const packet_head h = {c->number, (uint32_t)c->out.n, has_answer};
    ggl_status st = c->out.failed || sizeof h + c->out.n > PACKET_SIZE
                        ? ggl_fail(err, GGL_LIMIT, "%s: an order is too long", c->name)
                        : GGL_OK;
    if (number)
        *number = c->number;
    if (st == GGL_OK && ggl_job_is_lost(c->j, c->rank))
        st = lost(c, err);
    if (st == GGL_OK && c->on_way[k])
        st = wait_request(c, &c->sent[k], err);
    if (st != GGL_OK)
        return st;
    memcpy(c->packet[k], &h, sizeof h);
    memcpy(c->packet[k] + sizeof h, c->out.at, c->out.n);
    c->on_way[k] = c->j->t->send(c->j->t->ctx, c->rank, c->tag + TAG_ORDERS, c->packet[k],
                                 sizeof h + c->out.n, &c->sent[k]);
    c->number++;
    c->out.n = 0;
    c->n_inline = has_answer ? 0 : c->n_inline;
    return c->on_way[k] ? GGL_OK : lost(c, err);
}

ggl_status ggl_channel_poll(channel *c, uint64_t number, bool *done, ggl_error *err) {
    const ggl_transport *t = c->j->t;
    ggl_status st = GGL_OK;
    if (c->polled != number)
        c->polling = (pause_t){0};
    c->polled = number;
    *done = false;
    if (c->answered < number)
        st = go_on(c, &c->polling, err);
    if (st != GGL_OK || c->answered < number)
        return st;
    while (c->n_waited > 0 && c->waited[0].number <= number && !c->waited[0].to) {
        const int got = t->test(t->ctx, &c->waited[0].r, NULL);
        if (got < 0)
            return lost(c, err);
        if (got == 0)
            return go_on(c, &c->polling, err);
        end_data(c, 0);
    }
    *done = true;
    return GGL_OK;
}

/* Waits until the packet is answered, and its data and that of those before it has come and gone; errors stay to be told. */
static ggl_status wait_answered(channel *c, uint64_t number, ggl_error *err) {
    bool done = false;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !done)
        st = ggl_channel_poll(c, number, &done, err);
    return st;
}

ggl_status ggl_channel_begin(channel *c, order_op op, size_t size, ggl_error *err) {
    const size_t all = sizeof(order_head) + size;
    ggl_status st = GGL_OK;
    if (c->n_waited > MOST_PIECES) { /* so that an order's own piece, or data, always has room */
        uint64_t number;
        st = ggl_channel_flush(c, true, &number, err);
        st = st == GGL_OK ? wait_answered(c, number, err) : st;
    }
    if (st == GGL_OK && sizeof(packet_head) + c->out.n + all > PACKET_SIZE)
        st = ggl_channel_flush(c, false, NULL, err);
    c->order = c->out.n;
    const order_head h = {op, 0};
    ggl_put(&c->out, &h, sizeof h);
    return st;
}

void ggl_channel_end(channel *c) {
    const uint32_t size = (uint32_t)(c->out.n - c->order - sizeof(order_head));
    memcpy(c->out.at + c->order + offsetof(order_head, size), &size, sizeof size);
}

/* Returns the error of a packet up to that number, which is then told. */
static ggl_status take_failed(channel *c, uint64_t number, ggl_error *err) {
    const ggl_error e = c->failed;
    if (e.status == GGL_OK || c->failed_number > number)
        return GGL_OK;
    c->failed = (ggl_error){0};
    if (err)
        *err = e;
    return e.status;
}

ggl_status ggl_channel_wait(channel *c, uint64_t number, ggl_error *err) {
    const ggl_status st = wait_answered(c, number, err);
    return st == GGL_OK ? take_failed(c, number, err) : st;
}

ggl_status ggl_channel_call(channel *c, ggl_reader *result, ggl_error *err) {
    uint64_t number;
    ggl_status st = ggl_channel_flush(c, true, &number, err);
    if (st == GGL_OK)
        st = ggl_channel_wait(c, number, err);
    if (result)
        *result = (ggl_reader){c->result, c->result + (st == GGL_OK ? c->n_result : 0), false};
    return st;
}

/* --- data --------------------------------------------------------------------------------------- */

/* Makes room for one more message of data, by waiting for the oldest one. */
static ggl_status make_room(channel *c, ggl_error *err) {
    size_t i = 0;
    if (c->n_waited < MOST_WAITED)
        return GGL_OK;
    ggl_status st = ggl_channel_flush(c, false, NULL, err);
    while (i < c->n_waited && c->waited[i].to)
        i++;
    if (st == GGL_OK)
        st = wait_request(c, &c->waited[i].r, err);
    if (st == GGL_OK)
        end_data(c, i);
    return st;
}

static ggl_status move(channel *c, void *data, size_t size, bool sends, ggl_error *err) {
    const ggl_transport *t = c->j->t;
    ggl_status st = GGL_OK;
    for (size_t at = 0; at < size && st == GGL_OK; at += DATA_PIECE) {
        const size_t n = size - at < DATA_PIECE ? size - at : DATA_PIECE;
        char *from = (char *)data + at;
        st = make_room(c, err);
        if (st != GGL_OK)
            break;
        waited *w = &c->waited[c->n_waited];
        *w = (waited){.number = c->number, .size = n};
        const bool ok = sends ? t->send(t->ctx, c->rank, c->tag + TAG_DATA, from, n, &w->r)
                              : t->receive(t->ctx, c->rank, c->tag + TAG_DATA, from, n, &w->r);
        if (!ok)
            return lost(c, err);
        c->n_waited++;
        ggl_job_count_moving(c->j, 1);
    }
    return st;
}

ggl_status ggl_channel_send(channel *c, const void *data, size_t size, ggl_error *err) {
    return move(c, (void *)(uintptr_t)data, size, true, err);
}

ggl_status ggl_channel_receive(channel *c, void *to, size_t size, ggl_error *err) {
    return move(c, to, size, false, err);
}

ggl_status ggl_channel_send_all(channel *c, const void *data, size_t size, ggl_error *err) {
    const ggl_transport *t = c->j->t;
    ggl_status st = ggl_channel_flush(c, false, NULL, err);
    for (size_t at = 0; at < size && st == GGL_OK; at += DATA_PIECE) {
        const size_t n = size - at < DATA_PIECE ? size - at : DATA_PIECE;
        ggl_request r;
        if (!t->send(t->ctx, c->rank, c->tag + TAG_DATA, (const char *)data + at, n, &r))
            return lost(c, err);
        st = wait_request(c, &r, err);
    }
    return st;
}

void ggl_channel_expect(channel *c, void *to, size_t size) {
    c->waited[c->n_waited++] = (waited){.number = c->number, .to = to, .size = size};
    c->n_inline += size;
}
