/* How far the result of a node may be off: see verify.h. */
#include <math.h>
#include <string.h>

#include "verify_impl.h"

/* Returns a number in [-1, 1), the same sequence on every machine. */
double llm_verify_noise(verify *v) {
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(v->random >> 32) * 0x1p-31;
}

/* Returns 1/sqrt(3) or its negative: as large as llm_verify_noise() in the mean square, but never almost
 * 0. A result that one input dominates then moves as far as rounding that input may move it. */
static double noise_sign(verify *v) {
    return llm_verify_noise(v) < 0 ? -0.57735026918962573 : 0.57735026918962573;
}

/* --- rounding that is allowed ----------------------------------------------------------------- */

verify_rounding llm_verify_rounding_of(const ggl_tensor *t) {
    if (t->op == GGL_OP_LINEAR) {
        ggl_type type = t->src[1]->type;
        return ggl_type_get(type)->quantized ? VERIFY_BYTES
               : type == GGL_BF16            ? VERIFY_BF16
                                             : VERIFY_FLOAT;
    }
    return ggl_op_get(t->op).exact ? VERIFY_EXACT : VERIFY_FLOAT;
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
                y[at + i] = x[at + i] + (float)(llm_verify_noise(v) * 0.5 * (double)most / 127);
        }
}

/* Copies the node's input x to y with as much noise as a backend may round it. */
static void disturb(verify *v, const ggl_tensor *node, const ggl_tensor *x, float *y) {
    verify_rounding how = llm_verify_rounding_of(node);
    size_t n = llm_node_count(&v->m, x);
    const float *from = v->value[x->id];
    if (how == VERIFY_BYTES) {
        disturb_bytes(v, from, y, n, (size_t)x->ne[0]);
        return;
    }
    double amount = how == VERIFY_BF16 ? 0x1p-9 : VERIFY_EPS * sqrt(n_rounded(v, node));
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)from[i] * (1 + amount * noise_sign(v)));
}

/* Clears the states of the recurrences in a body, so that it can be run again. */
static ggl_status clear_states(verify *v, node_device *d, const ggl_body *body) {
    ggl_status st = GGL_OK;
    for (int i = 0; body && i < body->n_node && st == GGL_OK; i++) {
        const ggl_tensor *t = body->node[i];
        if (t->op == GGL_OP_STATE)
            st = llm_node_device_clear(d, t->store[0], v->err);
        if (st == GGL_OK && t->body)
            st = clear_states(v, d, t->body);
    }
    return st;
}

bool llm_verify_is_value(const verify *v, const ggl_tensor *x) {
    return x && x->type == GGL_F32 && x->op != GGL_OP_INPUT && llm_node_is_placed(&v->m, x);
}

/* Runs the node with disturbed inputs, and adds to unit[token] the mean square of how far the
 * result moves, and to `moved` how far each element does. Restores the inputs. */
static ggl_status probe_once(verify *v, ggl_tensor *t) {
    ggl_status st = clear_states(v, &v->exact, t->body);
    for (int k = 0; k < t->n_src && st == GGL_OK; k++)
        if (llm_verify_is_value(v, t->src[k])) {
            disturb(v, t, t->src[k], v->probe);
            st = llm_node_device_put(&v->exact, t->src[k], v->probe, v->err);
        }
    if (st == GGL_OK)
        st = llm_node_device_run(&v->exact, t, v->err);
    if (st == GGL_OK)
        st = llm_node_device_get(&v->exact, t, v->probe, v->err);
    size_t row = (size_t)ggl_count(t), n = llm_node_count(&v->m, t);
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        double d = (double)v->probe[i] - (double)v->value[t->id][i];
        if (!isfinite(d))
            continue;
        v->unit[i / row] += d * d / (double)row;
        v->moved[i] = fmaxf(v->moved[i], (float)fabs(d));
    }
    for (int k = 0; k < t->n_src && st == GGL_OK; k++)
        if (llm_verify_is_value(v, t->src[k]))
            st = llm_node_device_put(&v->exact, t->src[k], v->value[t->src[k]->id], v->err);
    return st;
}

static double rms(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += isfinite(x[i]) ? (double)x[i] * (double)x[i] : 0;
    return sqrt(sum / (double)n);
}

/* Returns the rounding error allowed inside a composite, for a token: its inner values are as large
 * as its operands. In gelu(-4), for example, the factor 1 + tanh is a small difference of two ones,
 * so that f32 is off by more than any rounding of x explains. 0 for other nodes and for
 * recurrences. */
static double rounded_inside(const verify *v, const ggl_tensor *t, size_t token) {
    double most = 0;
    for (int i = 0; t->body && i < t->body->n_node; i++)
        if (t->body->node[i]->op == GGL_OP_STATE)
            return 0;
    for (int k = 0; t->body && k < t->n_src; k++)
        if (llm_verify_is_value(v, t->src[k])) {
            size_t row = (size_t)ggl_count(t->src[k]);
            most = fmax(most, rms(v->value[t->src[k]->id] + token * row, row));
        }
    return VERIFY_EPS / 16 * most;
}

/* Sets unit[token] for a node: how far its result may be off. */
ggl_status llm_verify_probe(verify *v, ggl_tensor *t, int n_probes) {
    size_t row = (size_t)ggl_count(t), rows = llm_node_count(&v->m, t) / row;
    memset(v->unit, 0, rows * sizeof *v->unit);
    memset(v->moved, 0, row * rows * sizeof *v->moved);
    if (llm_verify_rounding_of(t) == VERIFY_EXACT)
        return GGL_OK;
    ggl_status st = GGL_OK;
    for (int k = 0; k < n_probes && st == GGL_OK; k++)
        st = probe_once(v, t);
    if (st == GGL_OK)
        st = llm_node_device_put(&v->exact, t, v->value[t->id], v->err);
    double kept = 0; /* the cache's rows are not disturbed, but their sum rounds too */
    if (t->op == GGL_OP_ATTEND && llm_verify_is_value(v, t->src[1]->src[1])) {
        const ggl_tensor *rows_kept = t->src[1]->src[1];
        kept = VERIFY_EPS * rms(v->value[rows_kept->id], llm_node_count(&v->m, rows_kept));
    }
    for (size_t i = 0; i < rows; i++)
        v->unit[i] = sqrt(v->unit[i] / n_probes) +
                     VERIFY_EPS * rms(v->value[t->id] + i * row, row) + kept +
                     rounded_inside(v, t, i);
    return st;
}
