#include "sending.h"

/* A group has so many bytes, or a single weight; and in all so many bytes, or two groups, wait and are sent, so that progress is not
 * far ahead of what is done. */
enum { GROUP_SIZE = 8 << 20, MOST_SENDING = 64 << 20, FEWEST_GROUPS = 2 };

struct sent_group {
    queued q;
    size_t n, size;
    source from[MOST_ASKED];
    order_op op[MOST_ASKED];
    ggl_bytes head[MOST_ASKED];
};

/* --- the thread --------------------------------------------------------------------------------- */

static ggl_status send_one(channel *c, const sent_group *g, size_t i, ggl_error *err) {
    ggl_status st =
        ggl_channel_begin(c, g->op[i], g->head[i].n + ggl_source_size(&g->from[i]), err);
    if (st != GGL_OK)
        return st;
    ggl_put(&c->out, g->head[i].at, g->head[i].n);
    ggl_source_put(&g->from[i], &c->out);
    ggl_channel_end(c);
    st = ggl_source_send(&g->from[i], c, err);
    return st == GGL_OK ? ggl_channel_flush(c, false, NULL, err) : st;
}

/* Frees the group, and its room. */
static void drop(sending *x, sent_group *g) {
    if (!g)
        return;
    const size_t size = g->size;
    for (size_t i = 0; i < g->n; i++)
        ggl_bytes_fini(&g->head[i]);
    ggl_free(g);
    ggl_room_give(&x->room, size);
}

/* Sends the weights of the group that is asked for. */
static ggl_status send_asked(sending *x, ggl_error *err) {
    sent_group *g = x->asked;
    ggl_status st = GGL_OK;
    x->asked = NULL;
    for (size_t i = 0; g && i < g->n && st == GGL_OK; i++)
        st = send_one(x->c, g, i, err);
    drop(x, g);
    return st;
}

static bool has_stopped(sending *x) {
    ggl_os_mutex_lock(&x->lock);
    const bool stops = x->stops;
    ggl_os_mutex_unlock(&x->lock);
    return stops;
}

/* Asks for a group, sends the one before meanwhile, and hears the answer. The answer also tells errors, and that the rank has received
 * what came before. The last group is sent at once. */
static void carry_out(void *ctx, queued *item) {
    sending *x = ctx;
    sent_group *g = (sent_group *)item;
    uint64_t number = 0;
    ggl_error err = {0};
    if (has_stopped(x)) {
        drop(x, g);
        return;
    }
    ggl_status st = ggl_source_ask(g->from, g->n, x->c, &number, &err);
    if (st == GGL_OK)
        st = send_asked(x, &err);
    if (st == GGL_OK)
        st = ggl_source_hear(g->from, g->n, x->c, number, &err);
    drop(x, x->asked); /* if the asking has failed */
    x->asked = g;
    if (st == GGL_OK && ggl_queue_is_empty(&x->queue))
        st = send_asked(x, &err);
    if (st == GGL_OK)
        return;
    drop(x, x->asked);
    x->asked = NULL;
    ggl_os_mutex_lock(&x->lock);
    x->failed = err;
    x->failed.status = st;
    x->stops = true;
    ggl_os_mutex_unlock(&x->lock);
}

/* --- who adds ----------------------------------------------------------------------------------- */

static void make(sending *x, channel *c) {
    if (x->is_made)
        return;
    x->c = c;
    ggl_queue_init(&x->queue, carry_out, x);
    ggl_room_init(&x->room, MOST_SENDING, FEWEST_GROUPS);
    ggl_os_mutex_init(&x->lock);
    x->is_made = true;
}

static ggl_status take_failed(sending *x, ggl_error *err) {
    ggl_os_mutex_lock(&x->lock);
    const ggl_error e = x->failed;
    x->failed = (ggl_error){0};
    ggl_os_mutex_unlock(&x->lock);
    if (e.status != GGL_OK && err)
        *err = e;
    return e.status;
}

static void put_group(sending *x) {
    sent_group *g = x->next;
    x->next = NULL;
    if (!g)
        return;
    ggl_room_take(&x->room, g->size);
    ggl_queue_put(&x->queue, &g->q);
}

ggl_status ggl_sending_finish_all(sending *x, ggl_error *err) {
    put_group(x);
    ggl_queue_stop(&x->queue);
    x->is_on = x->stops = false;
    return take_failed(x, err);
}

ggl_status ggl_sending_add(sending *x, channel *c, order_op op, ggl_bytes *head, const void *data,
                           size_t size, ggl_error *err) {
    source from;
    ggl_status st = GGL_OK;
    make(x, c);
    while (st == GGL_OK && !ggl_source_find(&from, &x->files, data, size)) {
        st = ggl_sending_finish(x, err);
        if (st == GGL_OK)
            st = ggl_source_ask_file(&from, c, &x->files, err);
    }
    if (st == GGL_OK && !x->next && !(x->next = ggl_calloc(1, sizeof *x->next)))
        st = ggl_fail(err, GGL_NOMEM, "%s: out of memory for a weight", c->name);
    if (st != GGL_OK) {
        ggl_bytes_fini(head);
        return st;
    }
    sent_group *g = x->next;
    g->from[g->n] = from;
    g->op[g->n] = op;
    g->head[g->n++] = *head;
    *head = (ggl_bytes){0};
    g->size += size;
    x->is_on = true;
    if (g->n == MOST_ASKED || g->size >= GROUP_SIZE)
        put_group(x);
    return take_failed(x, err);
}

void ggl_sending_fini(sending *x) {
    (void)ggl_sending_finish(x, NULL);
    ggl_known_files_fini(&x->files);
    if (!x->is_made)
        return;
    ggl_queue_fini(&x->queue);
    ggl_room_fini(&x->room);
    ggl_os_mutex_destroy(&x->lock);
    x->is_made = false;
}
