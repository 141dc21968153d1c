/* Creates and frees a scheduler. */
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "sched_impl.h"

ggl_status ggl_sched_new(ggl_sched **out, ggl_graph *g, const ggl_sched_params *params,
                         ggl_error *err) {
    ggl_sched_params own = {.size = sizeof own};
    const ggl_sched_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(ggl_sched_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    if (!g->finished)
        return ggl_fail(err, GGL_USAGE, "the graph is not finished");
    if (p->n_backends < 1)
        return ggl_fail(err, GGL_USAGE, "no backend");
    ggl_sched *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_sched_no_memory(err);
    s->g = g;
    s->params = *p;
    s->is_idle = true;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->cancel_lock, NULL);
    pthread_mutex_init(&s->watch_lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->n_batch = ggl_graph_get_params(g)->n_batch;
    s->n_rows = p->n_rows > 0 && p->n_rows < s->n_batch ? p->n_rows : s->n_batch;
    s->dev = ggl_calloc((size_t)p->n_backends, sizeof *s->dev);
    s->n_dev = s->dev ? p->n_backends : 0;
    for (int i = 0; i < s->n_dev; i++)
        pthread_cond_init(&s->dev[i].wake, NULL);
    ggl_status st = s->dev ? ggl_sched_build(s, err) : ggl_sched_no_memory(err);
    if (st != GGL_OK) {
        ggl_sched_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

/* Frees the device's buffers and tables, but not the backend, which is borrowed. */
static void device_free(device *d) {
    pthread_cond_destroy(&d->wake);
    if (d->n_regions > 0)
        d->region[GGL_REGION_IO] = NULL; /* one of io[], freed below */
    for (int i = 0; i < d->n_regions; i++)
        if (d->region[i])
            d->b->v->free(d->b, d->region[i]);
    for (int i = 0; i < MAX_LANES; i++) {
        if (d->io[i])
            d->b->v->free(d->b, d->io[i]);
        if (d->host[i])
            d->b->v->free(d->b, d->host[i]);
    }
    for (int k = 0; d->peer && k < d->s->n_dev; k++)
        for (int i = 0; i < MAX_LANES; i++)
            if (d->peer[k][i])
                d->b->v->free(d->b, d->peer[k][i]);
    ggl_free(d->peer);
    ggl_free(d->region);
    ggl_free(d->copies.at);
    ggl_free(d->stores.at);
    ggl_free(d->repacks.at);
    ggl_free(d->imports);
    ggl_free(d->loc[TRUNK]);
    ggl_free(d->loc[TAIL]);
    ggl_free(d->life[TRUNK]);
    ggl_free(d->life[TAIL]);
    ggl_free(d->store_loc);
    ggl_free(d->repacked);
    ggl_free(d->read_otherwise);
    ggl_free(d->repack.at);
    ggl_free(d->consts.at);
    ggl_free(d->copied.at);
}

void ggl_sched_free(ggl_sched *s) {
    if (!s)
        return;
    ggl_sched_stop_threads(s);
    for (int i = 0; i < s->n_dev && s->allocated; i++) /* batches may be in flight */
        (void)s->dev[i].b->v->wait(s->dev[i].b, NULL);
    for (size_t i = 0; i < s->n_segs; i++) {
        segment *seg = &s->seg[i];
        for (int k = 0; k < 2; k++)
            if (seg->plan[k])
                s->dev[seg->backend].b->v->plan_free(s->dev[seg->backend].b, seg->plan[k]);
        ggl_free(seg->nodes.at);
        ggl_free(seg->move);
        ggl_free(seg->departing);
        ggl_free(seg->watched.at);
    }
    for (int i = 0; i < s->n_dev; i++)
        device_free(&s->dev[i]);
    for (int lane = 0; lane < s->n_lanes; lane++) {
        ggl_free(s->flight[lane].row);
        ggl_free(s->flight[lane].seen);
        ggl_free(s->host_block[lane]);
    }
    ggl_free(s->dev);
    ggl_free(s->seg);
    ggl_free(s->out);
    ggl_free(s->backend);
    ggl_free(s->fallback);
    ggl_free(s->in_trunk);
    ggl_free(s->is_early);
    ggl_free(s->watched);
    ggl_free(s->shown);
    ggl_free(s->operand);
    ggl_free(s->input);
    ggl_free(s->input_at);
    ggl_free(s->input_n);
    ggl_free(s->stale);
    ggl_os_map_close(&s->cache);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->cancel_lock);
    pthread_mutex_destroy(&s->watch_lock);
    pthread_mutex_destroy(&s->lock);
    ggl_free(s);
}
