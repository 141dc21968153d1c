/* The whole graph, run the usual way, and what rounding alone does to its outputs. */
#include <math.h>

#include "ggl/alloc.h"
#include "ggl/internal/graph.h"
#include "llm/internal/text_inputs.h"
#include "verify_impl.h"

/* --- what rounding alone does to the outputs -------------------------------------------------- */

/* Returns the distance of neighbouring numbers of the type near x; if the type has a scale, near
 * the row's largest. */
static float store_step(ggl_type type, float x, float largest) {
    switch (type) {
    case GGL_F32:
        return fabsf(x) * FLT_EPSILON;
    case GGL_F16:
        return fabsf(x) * 0x1p-10f;
    case GGL_BF16:
        return fabsf(x) * 0x1p-7f;
    default:
        return largest / (type == GGL_Q8_0 ? 127 : 8);
    }
}

static double difference(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) ? 0 : isfinite(a - b) ? fabs(a - b) : INFINITY;
}

/* Runs a cache node with one number in 64 of its rows moved by a step. This is what rounding may
 * do to a number that lies as near to the middle of two steps as f32 rounds: for f16 one in a
 * thousand. */
static ggl_status shake_cache(verify *v, ggl_tensor *t) {
    ggl_status st = GGL_OK;
    float *kept[2] = {NULL, NULL};
    for (int k = 0; k < 2 && k < t->n_src && st == GGL_OK; k++) {
        const ggl_tensor *x = t->src[k];
        if (!t->store[k] || !llm_verify_is_value(v, x))
            continue;
        size_t n = llm_node_count(&v->m, x);
        float largest = 0, *y = v->probe;
        kept[k] = ggl_calloc(n, sizeof *kept[k]);
        st = kept[k] ? llm_node_device_get(&v->shaken, x, kept[k], v->err)
                     : ggl_fail(v->err, GGL_NOMEM, "out of memory");
        for (size_t i = 0; i < n && st == GGL_OK; i++)
            largest = fmaxf(largest, fabsf(kept[k][i]));
        for (size_t i = 0; i < n && st == GGL_OK; i++) {
            float step = store_step(t->store[k]->type, kept[k][i], largest);
            double which = llm_verify_noise(v) * 64;
            y[i] = kept[k][i] + (which < -63 ? -step : which > 63 ? step : 0);
        }
        if (st == GGL_OK)
            st = llm_node_device_put(&v->shaken, x, y, v->err);
    }
    if (st == GGL_OK)
        st = llm_node_device_run(&v->shaken, t, v->err);
    /* in reverse: both may be rows of one value, and the first has the original */
    for (int k = 1; k >= 0; k--) {
        if (kept[k] && st == GGL_OK)
            st = llm_node_device_put(&v->shaken, t->src[k], kept[k], v->err);
        ggl_free(kept[k]);
    }
    return st;
}

/* Runs a node and multiplies each number of its value by 1 with a random rounding error. */
static ggl_status shake_node(verify *v, ggl_tensor *t) {
    if (t->op == GGL_OP_CACHE)
        return shake_cache(v, t);
    ggl_status st = llm_node_device_run(&v->shaken, t, v->err);
    if (st != GGL_OK || t->type != GGL_F32 || llm_verify_rounding_of(t) == VERIFY_EXACT)
        return st;
    st = llm_node_device_get(&v->shaken, t, v->got, v->err);
    for (size_t i = 0; i < llm_node_count(&v->m, t) && st == GGL_OK; i++) {
        float x = v->got[i] * (float)(1 + VERIFY_EPS * llm_verify_noise(v));
        v->got[i] = isfinite(x) ? x : v->got[i]; /* the largest numbers must not overflow */
    }
    return st == GGL_OK ? llm_node_device_put(&v->shaken, t, v->got, v->err) : st;
}

/* Adds to `rounding` how far the outputs move if every value is rounded differently. The chain
 * alone does not show that: in it the results of refused nodes are rounded to f32, while the
 * reference keeps double precision when it runs as a whole; and a number that a cache rounds to
 * the other side moves the outputs more than anything else. */
static ggl_status shake(verify *v, const int32_t *token) {
    ggl_status st = llm_node_device_init(&v->shaken, &v->m, v->exact.b, v->err);
    if (st == GGL_OK)
        st = llm_verify_set_inputs(v, &v->shaken, token);
    for (int i = 0; i < v->m.n_nodes && st == GGL_OK; i++)
        st = shake_node(v, v->m.node[i]);
    for (int k = 0; k < ggl_graph_n_outputs(v->g) && st == GGL_OK; k++) {
        const ggl_tensor *t = ggl_graph_get_output(v->g, k);
        st = llm_node_device_get(&v->shaken, t, v->got, v->err);
        for (size_t i = 0; i < llm_node_count(&v->m, t) && st == GGL_OK; i++) {
            double moved = difference((double)v->got[i], (double)v->value[t->id][i]);
            if (isfinite(moved)) /* otherwise nothing could depart */
                v->out->rounding = fmax(v->out->rounding, moved);
        }
    }
    return st;
}

/* Sets whole_departs. Another order of sums may differ by as much as rounding does. */
static void judge_whole(verify *v) {
    v->out->whole_departs =
        !(v->out->whole <= 2 * v->out->rounding + 16 * VERIFY_EPS * v->out->size) ||
        isinf(v->out->whole);
}

/* --- the whole graph -------------------------------------------------------------------------- */

static ggl_status run_whole(verify *v, ggl_sched *s, const int32_t *token) {
    const llm_text_inputs x = {.token = token, .n = v->m.n};
    ggl_status st = ggl_sched_alloc(s, v->err);
    if (st == GGL_OK)
        st = llm_text_inputs_set(&x, s, v->g, v->err);
    return st == GGL_OK ? ggl_sched_run(s, x.n, NULL, 0, v->err) : st;
}

ggl_status llm_verify_whole(verify *v, ggl_graph *g, const int32_t *token) {
    ggl_sched *s = NULL;
    ggl_backend *b[] = {v->fast.b, v->exact.b}; /* the reference runs what b refuses */
    ggl_sched_params p = {.size = sizeof p, .backend = b, .n_backends = v->out->n_refused ? 2 : 1};
    ggl_status st = ggl_sched_new(&s, g, &p, v->err);
    if (st == GGL_OK)
        st = run_whole(v, s, token);
    for (int k = 0; k < ggl_graph_n_outputs(g) && st == GGL_OK; k++) {
        const ggl_tensor *t = ggl_graph_get_output(g, k);
        const float *whole = ggl_sched_output(s, k), *want = v->value[t->id];
        st = llm_node_device_get(&v->chain, t, v->got, v->err);
        for (size_t i = 0; i < llm_node_count(&v->m, t) && st == GGL_OK; i++) {
            v->out->whole = fmax(v->out->whole, difference((double)whole[i], (double)v->got[i]));
            v->out->rounding =
                fmax(v->out->rounding, difference((double)v->got[i], (double)want[i]));
            v->out->size = fmax(v->out->size, fabs((double)want[i]));
            v->out->n_outputs++;
            v->out->n_nan_outputs += isnan(want[i]) != 0;
            v->out->n_infinite_outputs += want[i] == INFINITY;
        }
    }
    ggl_sched_free(s);
    judge_whole(v);
    if (st == GGL_OK && v->out->whole_departs) {
        st = shake(v, token);
        judge_whole(v);
    }
    return st;
}
