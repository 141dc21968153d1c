/* Creates, allocates and frees a scheduler. */
#include "ggl/internal/graph.h"
#include "ggl/internal/os_clock.h"
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
    s->plan.g = g;
    s->plan.params = *p;
    ggl_os_mutex_init(&s->watching.lock);
    s->plan.n_batch = ggl_graph_get_params(g)->n_batch;
    s->plan.n_rows = p->n_rows > 0 && p->n_rows < s->plan.n_batch ? p->n_rows : s->plan.n_batch;
    s->plan.dev = ggl_calloc((size_t)p->n_backends, sizeof *s->plan.dev);
    s->plan.n_dev = s->plan.dev ? p->n_backends : 0;
    for (int i = 0; i < s->plan.n_dev; i++)
        s->plan.dev[i].b = p->backend[i];
    ggl_repack_file_check(&s->repack_file, &s->plan);
    ggl_status st = ggl_flights_init(s) && s->plan.dev ? ggl_schedule_build(&s->plan, err)
                                                       : ggl_sched_no_memory(err);
    if (st != GGL_OK) {
        ggl_sched_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

ggl_status ggl_sched_alloc(ggl_sched *s, ggl_error *err) {
    schedule *plan = &s->plan;
    if (s->allocated)
        return GGL_OK;
    for (int i = 0; i < plan->n_dev; i++)
        ggl_sched_begin_late(&plan->dev[i]);
    ggl_loading_begin(&s->loading, plan);
    if (!ggl_inputs_init(&s->inputs, plan) || !ggl_watching_alloc(&s->watching, plan) ||
        !ggl_host_memory_init(&s->host, plan) || !ggl_flights_alloc(&s->flights, plan))
        return ggl_fail(err, GGL_NOMEM, "out of memory for inputs and outputs");
    ggl_status st = ggl_devices_alloc(plan, &s->host, &s->loading, err);
    if (st == GGL_OK)
        st = ggl_sched_join_peers(plan, err);
    if (st == GGL_OK) {
        ggl_sched_repack_open(plan, &s->repack_file);
        const bool ok =
            ggl_stream_start(&s->stream, plan) &&
            (ggl_stream_is_on(&s->stream) || ggl_ahead_start(&s->ahead, plan, &s->repack_file));
        st = ok ? GGL_OK : ggl_sched_no_memory(err);
    }
    if (st == GGL_OK)
        st = ggl_sched_repack(plan, &s->repack_file, &s->loading, err);
    if (st == GGL_OK)
        st = ggl_sched_start_threads(s, err);
    if (st != GGL_OK) {
        ggl_ahead_stop(&s->ahead);
        ggl_stream_stop(&s->stream);
        return st;
    }
    ggl_inputs_own_pages(&s->inputs, plan);
    s->allocated = true;
    return GGL_OK;
}

size_t ggl_sched_streamed(const ggl_sched *s, size_t *kept, size_t *chosen) {
    const stream *x = &s->stream;
    const bool is_on = ggl_stream_is_on(x);
    *kept = is_on ? x->kept_size + x->plan.chosen : 0;
    *chosen = 0;
    for (size_t i = 0; i < x->n_stacks && is_on; i++)
        *chosen += x->stack[i].size;
    return is_on ? x->size : 0;
}

size_t ggl_sched_late_size(const ggl_sched *s) {
    size_t left = 0;
    for (int k = 0; k < s->plan.n_dev; k++)
        left += s->plan.dev[k].repack.left;
    return left;
}

double ggl_sched_present(const ggl_sched *s) {
    return ggl_ahead_present(&s->ahead);
}

double ggl_sched_late_seconds(const ggl_sched *s) {
    int64_t ns = 0;
    for (int k = 0; k < s->plan.n_dev; k++)
        ns += atomic_load(&s->plan.dev[k].repack.spent_ns);
    return (double)ns * 1e-9;
}

ggl_status ggl_sched_repack_some(ggl_sched *s, double seconds, size_t *left, ggl_error *err) {
    const double end = ggl_os_seconds() + seconds;
    if (!s->allocated)
        return ggl_fail(
            err, GGL_USAGE,
            "weights are repacked before memory is allocated: call ggl_sched_alloc first");
    ggl_status st = ggl_sched_finish(s, err);
    for (int k = 0; k < s->plan.n_dev && st == GGL_OK; k++)
        st = ggl_sched_repack_until(&s->plan, &s->plan.dev[k], end, err);
    if (left)
        *left = ggl_sched_late_size(s);
    return st;
}

void ggl_sched_free(ggl_sched *s) {
    if (!s)
        return;
    ggl_ahead_stop(&s->ahead);
    ggl_sched_stop_threads(s);
    for (int i = 0; i < s->plan.n_dev && s->allocated; i++) /* batches may be in flight */
        (void)s->plan.dev[i].b->v->wait(s->plan.dev[i].b, NULL);
    ggl_stream_stop(&s->stream);
    ggl_flights_fini(&s->flights, &s->plan);
    ggl_schedule_fini(&s->plan);
    ggl_host_memory_fini(&s->host);
    ggl_inputs_fini(&s->inputs);
    ggl_free(s->watching.shown);
    ggl_free(s->watching.operand);
    ggl_os_mutex_destroy(&s->watching.lock);
    ggl_os_map_close(&s->repack_file.map);
    ggl_free(s);
}

ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data, size_t size, int64_t n,
                         ggl_error *err) {
    if (!s->allocated && ggl_graph_find_input(s->plan.g, input))
        return ggl_fail(err, GGL_USAGE,
                        "input '%s' is set before memory is allocated: call ggl_sched_alloc first",
                        input);
    return ggl_inputs_set(&s->inputs, &s->plan, input, data, size, n, err);
}

void *ggl_sched_input_place(ggl_sched *s, const char *input) {
    return s->allocated ? ggl_inputs_place(&s->inputs, &s->plan, input) : NULL;
}

ggl_cache_use ggl_sched_cache_use(const ggl_sched *s) {
    return s->repack_file.use;
}

const char *ggl_sched_cache_note(const ggl_sched *s) {
    return s->repack_file.note;
}
