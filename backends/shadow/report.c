#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"
#include "shadow.h"

/* How far a result may be off, relative to the largest element of its value. Limits are several
 * times the differences between correct backends, so that a reported fault is certain. */
#define BOUND_EXACT 1e-6 /* numbers that only move or are compared: denormals may be flushed */
#define BOUND_FLOAT 1e-3 /* another order of sums, another exp */
/* Weights of 16 bits: a backend may round activations to bf16, half a step of 2^-8 each. */
#define BOUND_HALF 2e-2
/* Quantized weights, and keys: the CPU rounds activations and queries to 8 bits, in blocks of 32 with
 * steps of a 127th of the largest; each is off by up to 0.4 % of that, a product by some 1 % of the
 * largest result. */
#define BOUND_BYTES 5e-2

static double bound_of(const ggl_tensor *t) {
    double bound = ggl_op_get(t->op).exact ? BOUND_EXACT : BOUND_FLOAT;
    if (t->op == GGL_OP_LINEAR) {
        ggl_type w = t->src[LINEAR_W]->type;
        bound = ggl_type_get(w)->quantized      ? BOUND_BYTES
                : w == GGL_F16 || w == GGL_BF16 ? BOUND_HALF
                                                : BOUND_FLOAT;
    }
    const ggl_store *keys = t->op == GGL_OP_ATTEND ? t->src[ATTEND_KV]->store[0] : NULL;
    if (keys && ggl_type_get(keys->type)->quantized)
        bound = BOUND_BYTES;
    for (int i = 0; t->body && i < t->body->n_node; i++)
        bound = fmax(bound, bound_of(t->body->node[i]));
    return bound;
}

/* --- comparing -------------------------------------------------------------------------------- */

static double number_at(const ggl_tensor *t, const void *data, size_t i) {
    return t->type == GGL_I32 ? ((const int32_t *)data)[i] : (double)((const float *)data)[i];
}

static double largest(const ggl_tensor *t, const void *data, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double x = fabs(number_at(t, data, i));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

/* Returns a copy of an operand's value in the run, which the caller frees; NULL if it cannot be
 * read. */
static void *read_operand(const probe *r, const ggl_tensor *x) {
    bool is_value = x->op != GGL_OP_WEIGHT && x->op != GGL_OP_CONST && r->loc[x->id].region >= 0;
    void *values = is_value ? ggl_calloc(ggl_shadow_size(x, r->n), 1) : NULL;
    if (values && ggl_probe_read(r, x, values, NULL) == GGL_OK)
        return values;
    ggl_free(values);
    return NULL;
}

/* Returns the size that drift is relative to: the largest element of the value; for a sum, whose
 * terms may cancel, at least the largest term. */
static double scale_of(const probe *r, const ggl_tensor *t, const void *want, const void *operand) {
    double scale = largest(t, want, ggl_shadow_size(t, r->n) / 4);
    if (t->op == GGL_OP_SUM && operand)
        scale = fmax(scale, largest(t->src[0], operand, ggl_shadow_size(t->src[0], r->n) / 4));
    return scale > 0 ? scale : 1;
}

/* Returns how large an element of a product would be if its terms had random signs. The terms'
 * rounding errors are relative to this, even where the terms cancel. 0: not known. */
static double product_scale(const ggl_tensor *t, const float *x, size_t at) {
    const ggl_tensor *w = t->op == GGL_OP_LINEAR && x ? t->src[LINEAR_W] : NULL;
    if (!w || w->op != GGL_OP_WEIGHT || w->n_dims > 2)
        return 0;
    const ggl_type_info *type = ggl_type_get(w->type);
    const char *row =
        (const char *)w->data + at % (size_t)t->ne[0] * ggl_row_size(w->type, w->ne[0]);
    const size_t n_in = (size_t)w->ne[0], i_column = at / (size_t)t->ne[0];
    const float *column = x + i_column * n_in;
    float block[256];
    double sum = 0;
    for (int64_t i = 0; i < w->ne[0]; i += type->block) {
        ggl_to_float(type, row, w->ne[0], i, type->block, block);
        for (int64_t e = 0; e < type->block; e++) {
            double term = (double)block[e] * (double)column[i + e];
            sum += term * term;
        }
    }
    return isfinite(sum) ? sqrt(sum) : 0;
}

static double drift_of(double got, double want, double scale) {
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    double d = fabs(got - want) / scale;
    return isfinite(d) ? d : INFINITY;
}

static const char *operator_of(const ggl_tensor *t) {
    return t->call ? t->call : t->op == GGL_OP_CALL ? "a body" : ggl_op_get(t->op).name;
}

static drift *drift_for(shadow *b, const ggl_tensor *t) {
    drift *d = b->drift;
    for (size_t i = 0; i < b->n_drifts; i++, d++)
        if (strncmp(d->name, operator_of(t), sizeof d->name - 1) == 0)
            return d;
    if (!ggl_grow(&b->drift, &b->cap_drifts, b->n_drifts + 1, sizeof *b->drift))
        return NULL;
    d = &b->drift[b->n_drifts++];
    *d = (drift){0};
    snprintf(d->name, sizeof d->name, "%s", operator_of(t));
    return d;
}

static void note_fault(shadow *b, const ggl_tensor *t, const ggl_shadow_fault *f) {
    ggl_shadow_result *r = &b->result;
    bool first = r->n_faults++ == 0,
         worst = first || f->drift / f->bound > r->worst.drift / r->worst.bound;
    ggl_shadow_fault named = *f;
    if (!worst)
        return;
    ggl_node_text(t, named.node, sizeof named.node);
    snprintf(named.origin, sizeof named.origin, "%s", t->origin ? t->origin : "");
    r->worst = named;
    if (first)
        r->first = named;
}

/* The element that is off most. */
static ggl_shadow_fault find_worst(const probe *r, const ggl_tensor *t, const void *got,
                                   const void *want, const void *operand) {
    size_t row = (size_t)ggl_count(t), n = ggl_shadow_size(t, r->n) / 4;
    double all = scale_of(r, t, want, operand);
    ggl_shadow_fault f = {.bound = bound_of(t), .scale = all, .run = r->b->result.n_runs};
    for (size_t i = 0; i < n; i++) {
        double g = number_at(t, got, i), w = number_at(t, want, i), scale = all;
        if (drift_of(g, w, scale) > f.bound)
            scale = fmax(scale, product_scale(t, operand, i));
        double d = drift_of(g, w, scale);
        if (d > f.drift) {
            f.drift = d;
            f.scale = scale;
            f.item = (int64_t)(i / row);
            f.element = (int64_t)(i % row);
            f.got = g;
            f.want = w;
        }
    }
    return f;
}

static void compare(const probe *r, const ggl_tensor *t, const void *got, const void *want) {
    shadow *b = r->b;
    bool cancels = t->op == GGL_OP_SUM || t->op == GGL_OP_LINEAR;
    void *operand = cancels ? read_operand(r, t->src[0]) : NULL;
    ggl_shadow_fault f = find_worst(r, t, got, want, operand);
    ggl_free(operand);
    drift *d = drift_for(b, t);
    if (d) {
        d->n++;
        d->bound = fmax(d->bound, f.bound);
        d->largest = fmax(d->largest, f.drift);
    }
    b->result.n_nodes++;
    b->result.largest = fmax(b->result.largest, f.drift);
    if (f.drift > f.bound)
        note_fault(b, t, &f);
}

void ggl_shadow_skip(shadow *b, int n_nodes, const ggl_error *why) {
    b->result.n_skipped += n_nodes;
    snprintf(b->result.why, sizeof b->result.why, "%.*s", (int)sizeof b->result.why - 1, why->msg);
}

void ggl_shadow_compare(const probe *r, ggl_tensor *node) {
    size_t size = ggl_shadow_size(node, r->n);
    void *got = ggl_calloc(size, 1), *want = ggl_calloc(size, 1);
    ggl_error err = {0};
    ggl_status st = got && want ? ggl_probe_read(r, node, got, &err)
                                : ggl_fail(&err, GGL_NOMEM, "out of memory to compare");
    if (st == GGL_OK)
        st = ggl_shadow_again(r, node, want, &err);
    if (st == GGL_OK)
        compare(r, node, got, want);
    else
        ggl_shadow_skip(r->b, 1, &err);
    ggl_free(got);
    ggl_free(want);
}

/* --- reports ---------------------------------------------------------------------------------- */

ggl_shadow_result ggl_shadow_get(const ggl_backend *b) {
    return ((const shadow *)b)->result;
}

static void print_fault(FILE *out, const char *which, const ggl_shadow_fault *f) {
    fprintf(out,
            "%s: %s%s%s\n  run %" PRId64 ", item %" PRId64 " of the batch, element %" PRId64
            ": %.9g, not %.9g: off by %.2g of the largest, %.3g; the bound is %.2g\n",
            which, f->node, f->origin[0] ? ", " : "", f->origin, f->run, f->item, f->element,
            f->got, f->want, f->drift, f->scale, f->bound);
}

bool ggl_shadow_report(const ggl_backend *base, FILE *out) {
    const shadow *b = (const shadow *)base;
    const ggl_shadow_result *r = &b->result;
    fprintf(out,
            "%s against %s: %" PRId64 " nodes checked in %" PRId64 " of %" PRId64 " runs, %" PRId64
            " beyond their bounds\n",
            b->w.inner->name, b->trusted->name, r->n_nodes, r->n_checked_runs, r->n_runs,
            r->n_faults);
    if (r->n_nodes == 0)
        fprintf(out,
                "  nothing was checked: a larger share of the runs, or more runs, are needed\n");
    for (size_t i = 0; i < b->n_drifts; i++)
        fprintf(out, "  %-24s %6" PRId64 " nodes, drift up to %.2g%s\n", b->drift[i].name,
                b->drift[i].n, b->drift[i].largest,
                b->drift[i].largest > b->drift[i].bound ? ": too much" : "");
    if (r->n_skipped)
        fprintf(out, "  %" PRId64 " nodes could not be checked: %s\n", r->n_skipped, r->why);
    if (r->n_faults) {
        print_fault(out, "first", &r->first);
        print_fault(out, "worst", &r->worst);
    }
    return r->n_faults == 0;
}
