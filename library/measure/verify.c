#include "verify_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"

/* Measured on the reference models and made-up models of all descriptors: correct nodes stay
 * below 0.6 of either limit. */
#define MOST_UNITS 20.0 /* of the worst element */
#define MOST_RMS   5.0  /* of all together */
/* One disturbance of the inputs is enough for a node that is clearly right. One chance in a few that
 * large terms cancel is not, so any other is disturbed several times. */
#define CLEARLY_RIGHT 0.5
#define MORE_PROBES   8

/* --- comparing -------------------------------------------------------------------------------- */

static ggl_status add_result(verify *v, const verify_node *r) {
    if (!ggl_grow(&v->out->at, &v->cap, v->out->n + 1, sizeof *v->out->at))
        return ggl_fail(v->err, GGL_NOMEM, "out of memory");
    if (r->departure > 1 && v->out->first < 0)
        v->out->first = (int)v->out->n;
    v->out->at[v->out->n++] = *r;
    return GGL_OK;
}

/* Adds an element to r and returns its error. NaN equals NaN, and an infinity itself. */
static double compare_one(verify_node *r, double got, double want, double unit, size_t i,
                          size_t row) {
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    double e = fabs(got - want), x = e / unit;
    if (!isfinite(x))
        x = 1e30;
    if (x / MOST_UNITS > r->departure)
        *r = (verify_node){
            r->node, x / MOST_UNITS, e, unit, got, want, (int64_t)(i / row), (int64_t)(i % row),
            r->what};
    return x;
}

/* Compares the node's value in `got` with the reference's. The unit is the row's,
 * but an element that moved further has its own: models have a few elements that are a hundred times
 * as large as the others of their row, and rounded that much more coarsely. */
static verify_node compare_value(const verify *v, const ggl_tensor *t) {
    verify_node r = {.node = t, .what = "value"};
    size_t row = (size_t)ggl_count(t), n = llm_node_count(&v->m, t);
    const float *want = v->value[t->id];
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double got_i = (double)v->got[i], want_i = (double)want[i],
               unit = fmax(v->unit[i / row], (double)v->moved[i]) + VERIFY_EPS * fabs(want_i) / 4;
        if (t->type == GGL_I32) {
            got_i = ((const int32_t *)v->got)[i];
            want_i = ((const int32_t *)want)[i];
            unit = 1e-3;
        }
        double x = compare_one(&r, got_i, want_i, unit, i, row);
        sum += x * x;
    }
    r.departure = fmax(r.departure, sqrt(sum / (double)n) / MOST_RMS);
    return r;
}

/* Returns the error of a stored number that counts as one unit: the type's rounding, relative to
 * the row's largest number if the type has a scale. */
static double store_unit(ggl_type type, double want, double largest) {
    switch (type) {
    case GGL_F32:
        return fabs(want) * VERIFY_EPS / 4 + 1e-9;
    case GGL_F16:
        return fabs(want) * 0x1p-12 + 1e-9;
    case GGL_BF16:
        return fabs(want) * 0x1p-9 + 1e-9;
    default: /* one step of the codes is allowed, two are not */
        return largest / (type == GGL_Q8_0 ? 127 : 8) * 1.5 / MOST_UNITS + 1e-9;
    }
}

/* Compares the rows that a cache keeps. They are rounded once, so that errors are small. */
static ggl_status compare_store(verify *v, const ggl_tensor *t, const ggl_store *s) {
    verify_node r = {.node = t, .what = s->kind == GGL_STORE_KEYS ? "keys" : "values"};
    size_t d = (size_t)s->ne[0];
    char *a = ggl_calloc(s->size, 1), *b = ggl_calloc(s->size, 1);
    float *want = ggl_calloc(2 * d, sizeof *want), *got = want ? want + d : NULL;
    ggl_status st = a && b && want ? llm_node_device_get_store(&v->exact, s, a, v->err)
                                   : ggl_fail(v->err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = llm_node_device_get_store(&v->fast, s, b, v->err);
    for (int64_t p = 0; p < v->m.n && st == GGL_OK; p++) {
        const size_t page = (size_t)ggl_store_page(s, v->m.page, 0, p) * s->page_size;
        for (int64_t h = 0; h < s->ne[1]; h++) {
            /* A float: gcc 12 for ARM fails to widen to double in such a loop (an internal
             * compiler error). */
            float largest = 0;
            ggl_store_get(s, a + page, p, h, want);
            ggl_store_get(s, b + page, p, h, got);
            for (size_t i = 0; i < d; i++)
                largest = fmaxf(largest, fabsf(want[i]));
            for (size_t i = 0; i < d; i++)
                compare_one(&r, (double)got[i], (double)want[i],
                            store_unit(s->type, (double)want[i], (double)largest),
                            (size_t)(p * s->ne[1] + h) * d + i, d * (size_t)s->ne[1]);
        }
    }
    ggl_free(a);
    ggl_free(b);
    ggl_free(want);
    return st == GGL_OK ? add_result(v, &r) : st;
}

/* --- node by node ----------------------------------------------------------------------------- */

/* Returns whether the backend refuses the node. Attention and its cache are refused together, as
 * rows are kept where they are read. */
static bool is_refused(const verify *v, const ggl_tensor *t) {
    bool refused = ggl_refusal(v->fast.b, t, NULL) ||
                   (ggl_cache_of(t) && ggl_refusal(v->fast.b, ggl_cache_of(t), NULL));
    for (int i = 0; t->op == GGL_OP_CACHE && !refused && i < v->m.n_nodes; i++)
        refused = ggl_cache_of(v->m.node[i]) == t && ggl_refusal(v->fast.b, v->m.node[i], NULL);
    return refused;
}

/* Stores what the reference computed. */
static ggl_status take_value(verify *v, const ggl_tensor *t) {
    size_t n = llm_node_count(&v->m, t);
    float *x = v->value[t->id] = ggl_calloc(n, sizeof *x);
    if (!x)
        return ggl_fail(v->err, GGL_NOMEM, "out of memory for %zu values", n);
    ggl_status st = llm_node_device_get(&v->exact, t, x, v->err);
    for (size_t i = 0; i < n && st == GGL_OK && t->type == GGL_F32 && !v->out->first_nan; i++) {
        if (!(x[i] < INFINITY) && !v->out->first_not_finite)
            v->out->first_not_finite = t;
        if (isnan(x[i]))
            v->out->first_nan = t;
    }
    return st;
}

static ggl_status copy_value(verify *v, node_device *to, node_device *from, const ggl_tensor *t) {
    ggl_status st = llm_node_device_get(from, t, v->got, v->err);
    return st == GGL_OK ? llm_node_device_put(to, t, v->got, v->err) : st;
}

/* Handles a node that the backend refuses: it gets the reference's value. In the chain the
 * reference computes it from the chain's own values; exact values would restart the chain's
 * rounding at each such node, which then could not bound that of the whole run. */
static ggl_status take_reference(verify *v, ggl_tensor *t) {
    v->out->n_refused++;
    ggl_status st = llm_node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = llm_node_device_run(&v->mirror, t, v->err);
    if (st != GGL_OK || t->op == GGL_OP_CACHE)
        return st;
    st = take_value(v, t);
    if (st == GGL_OK)
        st = llm_node_device_put(&v->fast, t, v->value[t->id], v->err);
    return st == GGL_OK ? copy_value(v, &v->chain, &v->mirror, t) : st;
}

/* Runs one node on all devices and compares its value or its cache. */
static ggl_status verify_one(verify *v, ggl_tensor *t) {
    if (v->mirror.m && is_refused(v, t))
        return take_reference(v, t);
    ggl_status st = llm_node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = llm_node_device_run(&v->fast, t, v->err);
    if (st == GGL_OK)
        st = llm_node_device_run(&v->chain, t, v->err);
    if (st == GGL_OK && t->op == GGL_OP_CACHE) {
        for (int k = 0; k < 2 && st == GGL_OK; k++)
            if (t->store[k])
                st = compare_store(v, t, t->store[k]);
        return st;
    }
    if (st != GGL_OK)
        return st;
    st = take_value(v, t);
    if (st == GGL_OK)
        st = llm_node_device_get(&v->fast, t, v->got, v->err);
    verify_node r = {.departure = INFINITY};
    const int n_probes[] = {1, MORE_PROBES};
    for (int k = 0; k < 2 && st == GGL_OK && !(r.departure <= CLEARLY_RIGHT); k++) {
        st = llm_verify_probe(v, t, n_probes[k]);
        r = compare_value(v, t);
    }
    if (st == GGL_OK)
        st = add_result(v, &r);
    if (st == GGL_OK && v->mirror.m)
        st = copy_value(v, &v->mirror, &v->chain, t);
    return st == GGL_OK ? llm_node_device_put(&v->fast, t, v->value[t->id], v->err) : st;
}

/* --- entry points ----------------------------------------------------------------------------- */

static ggl_status verify_init(verify *v, ggl_backend *b, ggl_backend *reference, int n) {
    ggl_status st = llm_node_map_init(&v->m, v->g, n, v->err);
    if (st == GGL_OK)
        st = llm_node_device_init(&v->exact, &v->m, reference, v->err);
    if (st == GGL_OK)
        st = llm_node_device_init(&v->fast, &v->m, b, v->err);
    if (st == GGL_OK)
        st = llm_node_device_init(&v->chain, &v->m, b, v->err);
    size_t most = 1;
    bool refuses = false;
    for (int i = 0; i < v->m.n_nodes && st == GGL_OK; i++)
        refuses = refuses || is_refused(v, v->m.node[i]);
    if (st == GGL_OK && refuses)
        st = llm_node_device_init(&v->mirror, &v->m, reference, v->err);
    for (int i = 0; i < v->m.n_nodes; i++)
        if (v->m.node[i]->op != GGL_OP_CACHE && llm_node_count(&v->m, v->m.node[i]) > most)
            most = llm_node_count(&v->m, v->m.node[i]);
    v->value = ggl_calloc((size_t)ggl_graph_n_ids(v->g), sizeof *v->value);
    v->got = ggl_calloc(most, sizeof *v->got);
    v->probe = ggl_calloc(most, sizeof *v->probe);
    v->moved = ggl_calloc(most, sizeof *v->moved);
    v->unit = ggl_calloc((size_t)n, sizeof *v->unit);
    if (st == GGL_OK && !(v->value && v->got && v->probe && v->moved && v->unit))
        st = ggl_fail(v->err, GGL_NOMEM, "out of memory");
    return st;
}

static void verify_fini(verify *v) {
    for (int i = 0; v->value && i < ggl_graph_n_ids(v->g); i++)
        ggl_free(v->value[i]);
    ggl_free(v->value);
    ggl_free(v->got);
    ggl_free(v->probe);
    ggl_free(v->moved);
    ggl_free(v->unit);
    llm_node_device_fini(&v->exact);
    llm_node_device_fini(&v->fast);
    llm_node_device_fini(&v->chain);
    llm_node_device_fini(&v->mirror);
    llm_node_device_fini(&v->shaken);
    llm_node_map_fini(&v->m);
}

static ggl_status ask(const verify *v, const verify_watch *w, int done) {
    const bool goes_on =
        !w || !w->progress || w->progress(w->ctx, (size_t)done, (size_t)v->m.n_nodes);
    return goes_on ? GGL_OK : ggl_fail(v->err, GGL_CANCELLED, "cancelled");
}

static ggl_status verify_nodes(verify *v, const verify_watch *watch) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < v->m.n_nodes && st == GGL_OK; i++) {
        st = ask(v, watch, i);
        if (st != GGL_OK)
            break;
        st = verify_one(v, v->m.node[i]);
        char text[128];
        if (st != GGL_OK)
            st = ggl_within(v->err, st, "%s", ggl_node_text(v->m.node[i], text, sizeof text));
    }
    return st == GGL_OK ? ask(v, watch, v->m.n_nodes) : st;
}

ggl_status llm_verify_graph(verify_result *out, ggl_graph *g, ggl_backend *b,
                            ggl_backend *reference, const int32_t *token, int n,
                            const verify_watch *watch, ggl_error *err) {
    ggl_error own = {0};
    verify v = {.g = g, .out = out, .err = err ? err : &own, .random = 1};
    *out = (verify_result){.first = -1};
    ggl_status st = verify_init(&v, b, reference, n);
    node_device *open[] = {&v.exact, &v.fast, &v.chain, &v.mirror};
    for (size_t i = 0; i < sizeof open / sizeof *open && st == GGL_OK; i++)
        st = llm_verify_set_inputs(&v, open[i], token);
    if (st == GGL_OK)
        st = verify_nodes(&v, watch);
    if (st == GGL_OK)
        st = llm_verify_whole(&v, g, token);
    verify_fini(&v);
    if (st != GGL_OK)
        llm_verify_result_fini(out);
    return st;
}

void llm_verify_result_fini(verify_result *r) {
    ggl_free(r->at);
    *r = (verify_result){.first = -1};
}
