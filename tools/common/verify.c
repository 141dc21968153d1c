#include "verify.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "node_run.h"
#include "progress.h"

/* Measured on the reference models and made-up models of all descriptors: correct nodes stay
 * below 0.6 of either limit. */
#define MOST_UNITS 20.0 /* of the worst element */
#define MOST_RMS   5.0  /* of all together */
/* One disturbance of the inputs is enough for a node that is clearly right. One chance in a few that
 * large terms cancel is not, so any other is disturbed several times. */
#define CLEARLY_RIGHT 0.5
#define MORE_PROBES   8
#define EPS           ((double)FLT_EPSILON)

typedef struct verify {
    const ggl_graph *g;
    node_map m;
    /* the reference; the backend with the reference's inputs; the backend with its own results
     * as inputs */
    node_device exact, fast, chain;
    /* the reference with the chain's inputs, for nodes that the backend refuses; open only if
     * there are any */
    node_device mirror;
    /* the reference with disturbed values; open only if the whole graph departs */
    node_device shaken;
    float **value;      /* [id]: what the reference computed */
    float *got, *probe; /* room for the largest value */
    float *moved;       /* the same: how far each element moved when the inputs were disturbed */
    double *unit;       /* [token] */
    uint64_t random;
    verify_result *out;
    size_t cap;
    ggl_error *err;
} verify;

/* Returns a number in [-1, 1), the same sequence on every machine. */
static double noise(verify *v) {
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(v->random >> 32) * 0x1p-31;
}

/* Returns 1/sqrt(3) or its negative: as large as noise() in the mean square, but never almost 0. A
 * result that one input dominates then moves as far as rounding that input may move it. */
static double noise_sign(verify *v) {
    return noise(v) < 0 ? -0.57735026918962573 : 0.57735026918962573;
}

/* --- rounding that is allowed ----------------------------------------------------------------- */

typedef enum rounding { EXACT, FLOAT, BF16, BYTES } rounding;

/* Returns how a backend may round the inputs of a node. */
static rounding rounding_of(const ggl_tensor *t) {
    if (t->op == GGL_OP_LINEAR) {
        ggl_type type = t->src[1]->type;
        return ggl_type_get(type)->quantized ? BYTES : type == GGL_BF16 ? BF16 : FLOAT;
    }
    return ggl_op_get(t->op).exact ? EXACT : FLOAT;
}

/* Returns the largest number of roundings one after the other in a sum: sixteen sums run side by
 * side. */
static double n_rounded(const verify *v, const ggl_tensor *t) {
    double n = 0;
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] && ggl_is_batched(t->src[k]))
            n = fmax(n, (double)t->src[k]->ne[0]);
    if (t->op == GGL_OP_ATTEND)
        n += (double)v->m.n;
    return 4 + n / 16;
}

/* Adds the error of 8-bit activations: blocks of 32 per row, steps of 1/127 of the block's
 * largest. */
static void disturb_bytes(verify *v, const float *x, float *y, size_t n, size_t row) {
    for (size_t at = 0; at < n; at += row)
        for (size_t b = 0; b < row; b += 32) {
            size_t end = b + 32 < row ? b + 32 : row;
            float most = 0;
            for (size_t i = b; i < end; i++)
                most = fmaxf(most, fabsf(x[at + i]));
            for (size_t i = b; i < end; i++)
                y[at + i] = x[at + i] + (float)(noise(v) * 0.5 * (double)most / 127);
        }
}

/* Copies the node's input x to y with as much noise as a backend may round it. */
static void disturb(verify *v, const ggl_tensor *node, const ggl_tensor *x, float *y) {
    rounding how = rounding_of(node);
    size_t n = node_count(&v->m, x);
    const float *from = v->value[x->id];
    if (how == BYTES) {
        disturb_bytes(v, from, y, n, (size_t)x->ne[0]);
        return;
    }
    double amount = how == BF16 ? 0x1p-9 : EPS * sqrt(n_rounded(v, node));
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)from[i] * (1 + amount * noise_sign(v)));
}

/* Clears the states of the recurrences in a body, so that it can be run again. */
static ggl_status clear_states(verify *v, node_device *d, const ggl_body *body) {
    ggl_status st = GGL_OK;
    for (int i = 0; body && i < body->n_node && st == GGL_OK; i++) {
        const ggl_tensor *t = body->node[i];
        if (t->op == GGL_OP_STATE && t->needed)
            st = node_device_clear(d, t->store[0], v->err);
        if (st == GGL_OK && t->body)
            st = clear_states(v, d, t->body);
    }
    return st;
}

/* Whether x is a computed f32 value that can be disturbed. */
static bool is_value(const verify *v, const ggl_tensor *x) {
    return x && x->type == GGL_F32 && x->op != GGL_OP_INPUT && node_is_placed(&v->m, x);
}

/* Runs the node with disturbed inputs, and adds to unit[token] the mean square of how far the
 * result moves, and to `moved` how far each element does. Restores the inputs. */
static ggl_status probe_once(verify *v, ggl_tensor *t) {
    ggl_status st = clear_states(v, &v->exact, t->body);
    for (int k = 0; k < t->n_src && st == GGL_OK; k++)
        if (is_value(v, t->src[k])) {
            disturb(v, t, t->src[k], v->probe);
            st = node_device_put(&v->exact, t->src[k], v->probe, v->err);
        }
    if (st == GGL_OK)
        st = node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = node_device_get(&v->exact, t, v->probe, v->err);
    size_t row = (size_t)ggl_count(t), n = node_count(&v->m, t);
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        double d = (double)v->probe[i] - (double)v->value[t->id][i];
        if (!isfinite(d))
            continue;
        v->unit[i / row] += d * d / (double)row;
        v->moved[i] = fmaxf(v->moved[i], (float)fabs(d));
    }
    for (int k = 0; k < t->n_src && st == GGL_OK; k++)
        if (is_value(v, t->src[k]))
            st = node_device_put(&v->exact, t->src[k], v->value[t->src[k]->id], v->err);
    return st;
}

static double rms(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += isfinite(x[i]) ? (double)x[i] * (double)x[i] : 0;
    return sqrt(sum / (double)n);
}

/* Returns what a composite may round inside, for a token: its inner values are as large as those
 * that it reads. In gelu(-4), for example, the factor 1 + tanh is a small difference of two
 * ones, so that f32 is off by more than any rounding of x explains. 0 for other nodes and for
 * recurrences. */
static double rounded_inside(const verify *v, const ggl_tensor *t, size_t token) {
    double most = 0;
    for (int i = 0; t->body && i < t->body->n_node; i++)
        if (t->body->node[i]->op == GGL_OP_STATE)
            return 0;
    for (int k = 0; t->body && k < t->n_src; k++)
        if (is_value(v, t->src[k])) {
            size_t row = (size_t)ggl_count(t->src[k]);
            most = fmax(most, rms(v->value[t->src[k]->id] + token * row, row));
        }
    return EPS / 16 * most;
}

/* Sets unit[token] for a node: how far its result may be off. */
static ggl_status probe(verify *v, ggl_tensor *t, int n_probes) {
    size_t row = (size_t)ggl_count(t), rows = node_count(&v->m, t) / row;
    memset(v->unit, 0, rows * sizeof *v->unit);
    memset(v->moved, 0, row * rows * sizeof *v->moved);
    if (rounding_of(t) == EXACT)
        return GGL_OK;
    ggl_status st = GGL_OK;
    for (int k = 0; k < n_probes && st == GGL_OK; k++)
        st = probe_once(v, t);
    if (st == GGL_OK)
        st = node_device_put(&v->exact, t, v->value[t->id], v->err);
    double kept = 0; /* the cache's rows are not disturbed, but their sum rounds too */
    if (t->op == GGL_OP_ATTEND && is_value(v, t->src[1]->src[1])) {
        const ggl_tensor *rows_kept = t->src[1]->src[1];
        kept = EPS * rms(v->value[rows_kept->id], node_count(&v->m, rows_kept));
    }
    for (size_t i = 0; i < rows; i++)
        v->unit[i] = sqrt(v->unit[i] / n_probes) + EPS * rms(v->value[t->id] + i * row, row) +
                     kept + rounded_inside(v, t, i);
    return st;
}

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
    size_t row = (size_t)ggl_count(t), n = node_count(&v->m, t);
    const float *want = v->value[t->id];
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double got_i = (double)v->got[i], want_i = (double)want[i],
               unit = fmax(v->unit[i / row], (double)v->moved[i]) + EPS * fabs(want_i) / 4;
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
        return fabs(want) * EPS / 4 + 1e-9;
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
    ggl_status st = a && b && want ? node_device_get_store(&v->exact, s, a, v->err)
                                   : ggl_fail(v->err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = node_device_get_store(&v->fast, s, b, v->err);
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
                   (t->op == GGL_OP_ATTEND && ggl_refusal(v->fast.b, t->src[1], NULL));
    for (int i = 0; t->op == GGL_OP_CACHE && !refused && i < v->m.n_nodes; i++)
        refused = v->m.node[i]->op == GGL_OP_ATTEND && v->m.node[i]->src[1] == t &&
                  ggl_refusal(v->fast.b, v->m.node[i], NULL);
    return refused;
}

/* Stores what the reference computed. */
static ggl_status take_value(verify *v, const ggl_tensor *t) {
    size_t n = node_count(&v->m, t);
    float *x = v->value[t->id] = ggl_calloc(n, sizeof *x);
    if (!x)
        return ggl_fail(v->err, GGL_NOMEM, "out of memory for %zu values", n);
    ggl_status st = node_device_get(&v->exact, t, x, v->err);
    for (size_t i = 0; i < n && st == GGL_OK && t->type == GGL_F32 && !v->out->first_nan; i++)
        if (isnan(x[i]))
            v->out->first_nan = t;
    return st;
}

static ggl_status copy_value(verify *v, node_device *to, node_device *from, const ggl_tensor *t) {
    ggl_status st = node_device_get(from, t, v->got, v->err);
    return st == GGL_OK ? node_device_put(to, t, v->got, v->err) : st;
}

/* Handles a node that the backend refuses: it gets the reference's value. In the chain the
 * reference computes it from the chain's own values; exact values would restart the chain's
 * rounding at each such node, which then could not bound that of the whole run. */
static ggl_status take_reference(verify *v, ggl_tensor *t) {
    v->out->n_refused++;
    ggl_status st = node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = node_device_run(&v->mirror, t, v->err);
    if (st != GGL_OK || t->op == GGL_OP_CACHE)
        return st;
    st = take_value(v, t);
    if (st == GGL_OK)
        st = node_device_put(&v->fast, t, v->value[t->id], v->err);
    return st == GGL_OK ? copy_value(v, &v->chain, &v->mirror, t) : st;
}

/* Runs one node on all devices and compares its value or its cache. */
static ggl_status verify_one(verify *v, ggl_tensor *t) {
    if (v->mirror.m && is_refused(v, t))
        return take_reference(v, t);
    ggl_status st = node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = node_device_run(&v->fast, t, v->err);
    if (st == GGL_OK)
        st = node_device_run(&v->chain, t, v->err);
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
        st = node_device_get(&v->fast, t, v->got, v->err);
    verify_node r = {.departure = INFINITY};
    const int n_probes[] = {1, MORE_PROBES};
    for (int k = 0; k < 2 && st == GGL_OK && !(r.departure <= CLEARLY_RIGHT); k++) {
        st = probe(v, t, n_probes[k]);
        r = compare_value(v, t);
    }
    if (st == GGL_OK)
        st = add_result(v, &r);
    if (st == GGL_OK && v->mirror.m)
        st = copy_value(v, &v->mirror, &v->chain, t);
    return st == GGL_OK ? node_device_put(&v->fast, t, v->value[t->id], v->err) : st;
}

static ggl_status set_input(verify *v, node_device *d, const char *name, const int32_t *data) {
    const ggl_tensor *t = ggl_graph_find_input(v->g, name);
    return t ? node_device_put(d, t, data, v->err) : GGL_OK;
}

/* Sets the inputs of a device, if it is open. */
static ggl_status set_inputs(verify *v, node_device *d, const int32_t *token, int32_t *scratch) {
    if (!d->m)
        return GGL_OK;
    ggl_status st = set_input(v, d, "token", token);
    memset(scratch, 0, (size_t)v->m.n * sizeof *scratch);
    if (st == GGL_OK)
        st = set_input(v, d, "slot", scratch);
    for (int32_t i = 0; i < v->m.n; i++)
        scratch[i] = i;
    return st == GGL_OK ? set_input(v, d, "pos", scratch) : st;
}

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
        if (!t->store[k] || !is_value(v, x))
            continue;
        size_t n = node_count(&v->m, x);
        float largest = 0, *y = v->probe;
        kept[k] = ggl_calloc(n, sizeof *kept[k]);
        st = kept[k] ? node_device_get(&v->shaken, x, kept[k], v->err)
                     : ggl_fail(v->err, GGL_NOMEM, "out of memory");
        for (size_t i = 0; i < n && st == GGL_OK; i++)
            largest = fmaxf(largest, fabsf(kept[k][i]));
        for (size_t i = 0; i < n && st == GGL_OK; i++) {
            float step = store_step(t->store[k]->type, kept[k][i], largest);
            double which = noise(v) * 64;
            y[i] = kept[k][i] + (which < -63 ? -step : which > 63 ? step : 0);
        }
        if (st == GGL_OK)
            st = node_device_put(&v->shaken, x, y, v->err);
    }
    if (st == GGL_OK)
        st = node_device_run(&v->shaken, t, v->err);
    /* in reverse: both may be rows of one value, and the first has the original */
    for (int k = 1; k >= 0; k--) {
        if (kept[k] && st == GGL_OK)
            st = node_device_put(&v->shaken, t->src[k], kept[k], v->err);
        ggl_free(kept[k]);
    }
    return st;
}

/* Runs a node and multiplies each number of its value by 1 with a random rounding error. */
static ggl_status shake_node(verify *v, ggl_tensor *t) {
    if (t->op == GGL_OP_CACHE)
        return shake_cache(v, t);
    ggl_status st = node_device_run(&v->shaken, t, v->err);
    if (st != GGL_OK || t->type != GGL_F32 || rounding_of(t) == EXACT)
        return st;
    st = node_device_get(&v->shaken, t, v->got, v->err);
    for (size_t i = 0; i < node_count(&v->m, t) && st == GGL_OK; i++) {
        float x = v->got[i] * (float)(1 + EPS * noise(v));
        v->got[i] = isfinite(x) ? x : v->got[i]; /* the largest numbers must not overflow */
    }
    return st == GGL_OK ? node_device_put(&v->shaken, t, v->got, v->err) : st;
}

/* Adds to `rounding` how far the outputs move if every value is rounded differently. The chain
 * alone does not show that: in it the results of refused nodes are rounded to f32, while the
 * reference keeps double precision when it runs as a whole; and a number that a cache rounds to
 * the other side moves the outputs more than anything else. */
static ggl_status shake(verify *v, const int32_t *token, int32_t *scratch) {
    ggl_status st = node_device_init(&v->shaken, &v->m, v->exact.b, v->err);
    if (st == GGL_OK)
        st = set_inputs(v, &v->shaken, token, scratch);
    for (int i = 0; i < v->m.n_nodes && st == GGL_OK; i++)
        st = shake_node(v, v->m.node[i]);
    for (int k = 0; k < ggl_graph_n_outputs(v->g) && st == GGL_OK; k++) {
        const ggl_tensor *t = ggl_graph_get_output(v->g, k);
        st = node_device_get(&v->shaken, t, v->got, v->err);
        for (size_t i = 0; i < node_count(&v->m, t) && st == GGL_OK; i++) {
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
        !(v->out->whole <= 2 * v->out->rounding + 16 * EPS * v->out->size) || isinf(v->out->whole);
}

/* --- the whole graph -------------------------------------------------------------------------- */

static ggl_status run_whole(verify *v, ggl_sched *s, const int32_t *token, int32_t *scratch) {
    int64_t n = v->m.n;
    ggl_status st = ggl_sched_alloc(s, v->err);
    for (int k = 0; k < 3 && st == GGL_OK; k++) {
        const char *const name[] = {"token", "pos", "slot"};
        for (int32_t i = 0; i < n; i++)
            scratch[i] = k == 0 ? token[i] : k == 1 ? i : 0;
        if (ggl_graph_find_input(v->g, name[k]))
            st = ggl_sched_set(s, name[k], scratch, (size_t)n * sizeof *scratch, n, v->err);
    }
    return st == GGL_OK ? ggl_sched_run(s, n, NULL, 0, v->err) : st;
}

static ggl_status verify_whole(verify *v, ggl_graph *g, const int32_t *token, int32_t *scratch) {
    ggl_sched *s = NULL;
    ggl_backend *b[] = {v->fast.b, v->exact.b}; /* the reference runs what b refuses */
    ggl_sched_params p = {.size = sizeof p, .backend = b, .n_backends = v->out->n_refused ? 2 : 1};
    ggl_status st = ggl_sched_new(&s, g, &p, v->err);
    if (st == GGL_OK)
        st = run_whole(v, s, token, scratch);
    for (int k = 0; k < ggl_graph_n_outputs(g) && st == GGL_OK; k++) {
        const ggl_tensor *t = ggl_graph_get_output(g, k);
        const float *whole = ggl_sched_output(s, k), *want = v->value[t->id];
        st = node_device_get(&v->chain, t, v->got, v->err);
        for (size_t i = 0; i < node_count(&v->m, t) && st == GGL_OK; i++) {
            v->out->whole = fmax(v->out->whole, difference((double)whole[i], (double)v->got[i]));
            v->out->rounding =
                fmax(v->out->rounding, difference((double)v->got[i], (double)want[i]));
            v->out->size = fmax(v->out->size, fabs((double)want[i]));
            v->out->n_outputs++;
            v->out->n_nan_outputs += isnan(want[i]) != 0;
        }
    }
    ggl_sched_free(s);
    judge_whole(v);
    if (st == GGL_OK && v->out->whole_departs) {
        st = shake(v, token, scratch);
        judge_whole(v);
    }
    return st;
}

/* --- entry points ----------------------------------------------------------------------------- */

static ggl_status verify_init(verify *v, ggl_backend *b, ggl_backend *reference, int n) {
    ggl_status st = node_map_init(&v->m, v->g, n, v->err);
    if (st == GGL_OK)
        st = node_device_init(&v->exact, &v->m, reference, v->err);
    if (st == GGL_OK)
        st = node_device_init(&v->fast, &v->m, b, v->err);
    if (st == GGL_OK)
        st = node_device_init(&v->chain, &v->m, b, v->err);
    size_t most = 1;
    bool refuses = false;
    for (int i = 0; i < v->m.n_nodes && st == GGL_OK; i++)
        refuses = refuses || is_refused(v, v->m.node[i]);
    if (st == GGL_OK && refuses)
        st = node_device_init(&v->mirror, &v->m, reference, v->err);
    for (int i = 0; i < v->m.n_nodes; i++)
        if (v->m.node[i]->op != GGL_OP_CACHE && node_count(&v->m, v->m.node[i]) > most)
            most = node_count(&v->m, v->m.node[i]);
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
    node_device_fini(&v->exact);
    node_device_fini(&v->fast);
    node_device_fini(&v->chain);
    node_device_fini(&v->mirror);
    node_device_fini(&v->shaken);
    node_map_fini(&v->m);
}

ggl_status verify_graph(verify_result *out, ggl_graph *g, ggl_backend *b, ggl_backend *reference,
                        const int32_t *token, int n, ggl_error *err) {
    ggl_error own = {0};
    verify v = {.g = g, .out = out, .err = err ? err : &own, .random = 1};
    *out = (verify_result){.first = -1};
    int32_t *scratch = ggl_calloc((size_t)n, sizeof *scratch);
    ggl_status st =
        scratch ? verify_init(&v, b, reference, n) : ggl_fail(v.err, GGL_NOMEM, "out of memory");
    node_device *open[] = {&v.exact, &v.fast, &v.chain, &v.mirror};
    for (size_t i = 0; i < sizeof open / sizeof *open && st == GGL_OK; i++)
        st = set_inputs(&v, open[i], token, scratch);
    progress_begin("nodes", v.m.n_nodes, "comparing");
    for (int i = 0; i < v.m.n_nodes && st == GGL_OK; i++) {
        progress_set(i);
        st = verify_one(&v, v.m.node[i]);
        char text[128];
        if (st != GGL_OK)
            st = ggl_within(v.err, st, "%s", ggl_node_text(v.m.node[i], text, sizeof text));
    }
    progress_end();
    progress_begin(NULL, 0, "comparing the whole run");
    if (st == GGL_OK)
        st = verify_whole(&v, g, token, scratch);
    progress_end();
    verify_fini(&v);
    ggl_free(scratch);
    if (st != GGL_OK)
        verify_result_fini(out);
    return st;
}

void verify_result_fini(verify_result *r) {
    ggl_free(r->at);
    *r = (verify_result){.first = -1};
}
