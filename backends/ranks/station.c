#include "station.h"

/* Keeps the first error. */
void ggl_station_note(station *s, ggl_status st, const ggl_error *err) {
    if (st == GGL_OK || s->failed.status != GGL_OK)
        return;
    s->failed = *err;
    s->failed.status = st;
}

bool ggl_station_ok(const station *s) {
    return s->failed.status == GGL_OK;
}

void ggl_station_fail(station *s, ggl_status st, const char *what) {
    ggl_error err = {0};
    ggl_station_note(s, ggl_fail(&err, st, "%s", what), &err);
}

/* While weights are loaded, the row has what the thread does that loads them, and spans of a row must not overlap. */
uint64_t ggl_station_since(const station *s) {
    return s->log && !s->arriving.is_on ? ggl_recorder_now(s->log) : 0;
}

void ggl_station_span(station *s, const char *name, uint64_t since, size_t bytes) {
    if (since > 0 && !s->arriving.is_on)
        ggl_recorder_write(s->log, &(trace_event){.phase = 'X',
                                                  .name = name,
                                                  .kind = "rank",
                                                  .begin = since,
                                                  .end = ggl_recorder_now(s->log),
                                                  .arg = {{"bytes", NULL, bytes}}});
}

bool ggl_station_move(station *s, void *data, size_t size, bool sends) {
    const ggl_transport *t = s->j->t;
    const uint64_t since = ggl_station_since(s);
    for (size_t at = 0; at < size && !s->is_lost; at += DATA_PIECE) {
        const size_t n = size - at < DATA_PIECE ? size - at : DATA_PIECE;
        char *p = (char *)data + at;
        ggl_request r;
        const bool begun = sends ? t->send(t->ctx, 0, s->tag + TAG_DATA, p, n, &r)
                                 : t->receive(t->ctx, 0, s->tag + TAG_DATA, p, n, &r);
        s->is_lost = !begun || ggl_job_wait(s->j, 0, &r, NULL, NULL) != GGL_OK;
    }
    ggl_station_span(s, sends ? "send" : "receive", since, size);
    return !s->is_lost;
}

void ggl_station_drop_buffer(station *s, held_buffer *h) {
    if (h->b)
        s->b->v->free(s->b, h->b);
    ggl_free(h->owned);
    *h = (held_buffer){0};
}

void ggl_station_drop_graph(held_graph *h) {
    ggl_graph_free(h->g);
    ggl_free(h->tensor);
    *h = (held_graph){0};
}

void ggl_station_drop_plan(station *s, held_plan *h) {
    if (h->p)
        s->b->v->plan_free(s->b, h->p);
    ggl_free(h->store_loc);
    *h = (held_plan){0};
}

void ggl_station_fini(station *s) {
    for (size_t i = 0; s->b && i < s->cap_plans; i++)
        ggl_station_drop_plan(s, &s->plan[i]);
    for (size_t i = 0; i < s->cap_graphs; i++)
        ggl_station_drop_graph(&s->graph[i]);
    for (size_t i = 0; s->b && i < s->cap_buffers; i++)
        ggl_station_drop_buffer(s, &s->buffer[i]);
    ggl_backend_close(s->b);
    if (s->log)
        (void)ggl_recorder_close(s->log, NULL);
    ggl_free(s->events);
    for (size_t i = 0; i < s->n_files; i++) {
        ggl_file_map_close(&s->file[i]->map);
        ggl_free(s->file[i]->path);
        ggl_free(s->file[i]);
    }
    ggl_free(s->file);
    ggl_free(s->found);
    ggl_free(s->buffer);
    ggl_free(s->graph);
    ggl_free(s->plan);
    ggl_free(s->region);
    ggl_free(s->data);
    ggl_bytes_fini(&s->piece);
    ggl_bytes_fini(&s->result);
}

/* Receives data to, or sends it from, memory that only the backend reaches. h NULL: the data is received and forgotten, or
 * zeros are sent. */
void ggl_station_move_through(station *s, held_buffer *h, uint64_t offset, uint64_t size,
                              bool sends) {
    if (!s->data)
        s->data = ggl_calloc(DATA_PIECE, 1);
    if (!s->data) { /* without it the ranks would no longer agree on what comes next */
        s->is_lost = true;
        return;
    }
    for (uint64_t at = 0; at < size && !s->is_lost; at += DATA_PIECE) {
        const size_t n = size - at < DATA_PIECE ? (size_t)(size - at) : DATA_PIECE;
        ggl_error err = {0};
        if (sends && h)
            ggl_station_note(
                s, s->b->v->download(s->b, h->b, (size_t)(offset + at), s->data, n, &err), &err);
        if (ggl_station_move(s, s->data, n, sends) && !sends && h && ggl_station_ok(s))
            ggl_station_note(
                s, s->b->v->upload(s->b, h->b, (size_t)(offset + at), s->data, n, &err), &err);
    }
}

char *ggl_station_receive(station *s, uint64_t size) {
    char *at = size < SIZE_MAX ? ggl_calloc((size_t)size + 1, 1) : NULL;
    if (at) {
        (void)ggl_station_move(s, at, (size_t)size, false);
    } else {
        ggl_station_fail(s, GGL_NOMEM, "out of memory for what rank 0 sends");
        ggl_station_move_through(s, NULL, 0, size, false);
    }
    return at;
}
