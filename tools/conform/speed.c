#include "speed.h"

#include <math.h>
#include <string.h>

#include "build.h"
#include "common/machine.h"
#include "measure/node_run.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_clock.h"
#include "ggl/sched.h"

enum { BATCHES = 3, MOST_RUNS = 1000 };

/* --- timing one node -------------------------------------------------------------------------- */

typedef struct timed {
    ggl_backend *b;
    ggl_plan *plan;
    ggl_buffer *const *region;
    int64_t n;
    /* if there is no plan: copies */
    ggl_buffer *from, *to;
    size_t size;
} timed;

static ggl_status start(const timed *t, ggl_error *err) {
    const ggl_backend_vtable *v = t->b->v;
    return t->plan ? v->run(t->b, t->plan, t->region, t->n, err)
                   : v->copy(t->b, t->to, t->from, &(ggl_copy_range){0, 0, t->size}, 1, err);
}

/* Measures the nanoseconds per run of `runs` that are started one after the other; waits only
 * once at the end, as a device may start late. */
static ggl_status time_runs(const timed *t, int runs, double *ns, ggl_error *err) {
    ggl_status st = GGL_OK;
    int64_t begin = ggl_os_clock();
    for (int i = 0; i < runs && st == GGL_OK; i++)
        st = start(t, err);
    if (st == GGL_OK)
        st = t->b->v->wait(t->b, err);
    *ns = (double)(ggl_os_clock() - begin) / runs;
    return st;
}

/* Sets *ns to the best of several measurements of about `seconds` in all. */
static ggl_status best_time(const timed *t, double seconds, double *ns, ggl_error *err) {
    double once;
    ggl_status st = time_runs(t, 1, &once, err);
    if (st == GGL_OK && once < seconds * 1e9)
        st = time_runs(t, 1, &once, err); /* the first may prepare something */
    double runs = seconds * 1e9 / BATCHES / fmax(once, 1);
    *ns = once;
    for (int i = 0; i < BATCHES && st == GGL_OK && runs >= 1; i++) {
        st = time_runs(t, (int)fmin(runs, MOST_RUNS), &once, err);
        *ns = fmin(*ns, once);
    }
    return st;
}

/* Computes the node's inputs, then times the node alone. */
static ggl_status time_node(node_device *d, const conform_build *c, ggl_tensor *node,
                            double seconds, double *ns, ggl_error *err) {
    ggl_plan *plan = NULL;
    ggl_status st = GGL_OK;
    for (int i = 0; i < c->n_inputs && st == GGL_OK; i++)
        st = llm_node_device_put(d, ggl_graph_find_input(c->g, c->input[i].name), c->input[i].data,
                                 err);
    for (int i = 0; i < d->m->n_nodes && st == GGL_OK && d->m->node[i] != node; i++)
        st = llm_node_device_run(d, d->m->node[i], err);
    if (st == GGL_OK)
        st = llm_node_device_compile(d, node, &plan, err);
    if (st == GGL_OK)
        st = best_time(&(timed){.b = d->b, .plan = plan, .region = d->region, .n = d->m->n},
                       seconds, ns, err);
    if (plan)
        d->b->v->plan_free(d->b, plan);
    return st;
}

/* --- the cost of a node ----------------------------------------------------------------------- */

static double bytes_of(const ggl_tensor *t, int64_t n) {
    double elements = (double)ggl_count(t) * (double)(ggl_is_batched(t) ? n : 1);
    const ggl_type_info *type = ggl_type_get(t->type);
    return elements * (double)type->size / (double)type->block;
}

static double bytes_of_node(const ggl_tensor *t, int64_t n) {
    double bytes = bytes_of(t, n);
    for (int i = 0; i < t->n_src; i++)
        if (t->src[i] && t->src[i]->op != GGL_OP_CACHE)
            bytes += i == 0 && t->op == GGL_OP_PICK
                         ? bytes_of(t->src[i], n) / (double)t->src[i]->ne[t->src[i]->n_dims - 1] *
                               (double)n
                         : bytes_of(t->src[i], n);
    return bytes;
}

static double macs_of_node(const ggl_tensor *t, int64_t n) {
    if (t->op == GGL_OP_LINEAR)
        return (double)ggl_count(t) * (double)t->src[0]->ne[0] * (double)n;
    if (t->op == GGL_OP_LINEAR_BACK)
        return (double)ggl_count(t) * (double)t->src[0]->ne[0] * (double)n;
    if (t->op == GGL_OP_OUTER_SUM) /* each column in one matrix */
        return (double)(t->ne[0] * t->ne[1]) * (double)n *
               (double)ggl_extents(t->src[0]->ne, 1, GGL_BATCH_DIM, 1);
    if (t->op == GGL_OP_ATTEND_BACK) /* five products */
        return (double)(3 * t->src[0]->ne[0] + 2 * t->src[2]->ne[0]) * (double)t->src[0]->ne[1] *
               (double)n * (double)(n + 1) / 2;
    if (t->op == GGL_OP_ATTEND) /* all tokens up to its own */
        return (double)(t->src[0]->ne[0] + t->ne[0]) * (double)t->ne[1] * (double)n *
               (double)(n + 1) / 2;
    return 0;
}

/* --- timing an operator ----------------------------------------------------------------------- */

/* Checks that the backend has all nodes: a substitute for a refused node would be timed, or
 * fail. */
static ggl_status has_all(const ggl_backend *b, const ggl_graph *g, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        const ggl_tensor *part;
        if (t->needed && !ggl_is_leaf(t) && ggl_refusal(b, t, &part))
            return ggl_fail(err, GGL_UNSUPPORTED, "the backend does not have '%s'",
                            part->call ? part->call : ggl_op_get(part->op).name);
    }
    return GGL_OK;
}

/* Times the last node of the case's operator in a form; GGL_UNSUPPORTED: refused. */
static ggl_status time_form(const conform_case *info, const conform_form *f, ggl_backend *b,
                            double seconds, conform_speed *out, ggl_error *err) {
    conform_build c;
    node_map m = {0};
    node_device d = {0};
    ggl_backend *reference = NULL;
    ggl_status st = ggl_backend_open(&reference, "reference", NULL, err);
    if (st != GGL_OK)
        return st;
    st = conform_build_graph(&c, info, f, false, err);
    if (st == GGL_OK) {
        conform_say(info, &c, out->text, sizeof out->text);
        st = ggl_graph_fold(c.g, reference, err);
    }
    ggl_tensor *node = st == GGL_OK ? conform_node(info, c.g) : NULL;
    if (st == GGL_OK && !node)
        st = ggl_fail(err, GGL_NOT_FOUND, "%s has no operator to time", info->name);
    if (st == GGL_OK)
        st = has_all(b, c.g, err);
    if (st == GGL_OK)
        st = llm_node_map_init(&m, c.g, f->n, err);
    if (st == GGL_OK && b->max_buffer && m.io_size > b->max_buffer)
        st = ggl_fail(err, GGL_LIMIT, "buffers of this backend are too small to time it");
    if (st == GGL_OK)
        st = llm_node_device_init(&d, &m, b, err);
    if (st == GGL_OK && node->op == GGL_OP_LINEAR)
        st = llm_node_device_repack(&d, err);
    if (st == GGL_OK) {
        st = time_node(&d, &c, node, seconds, &out->ns, err);
        out->bytes = bytes_of_node(node, f->n);
        out->macs = macs_of_node(node, f->n);
    }
    if (d.b)
        llm_node_device_fini(&d);
    llm_node_map_fini(&m);
    conform_build_fini(&c);
    ggl_backend_close(reference);
    return st;
}

/* Times the reference. It is slow, so it gets a part of the batch if time is in proportion to
 * it. */
static ggl_status time_reference(const conform_case *info, const conform_form *f,
                                 conform_speed *out, ggl_error *err) {
    enum { PART = 32 };
    conform_form part = *f;
    conform_speed s = {0};
    ggl_backend *reference = NULL;
    if (info->op != GGL_OP_ATTEND && f->n >= PART)
        part.n = part.n_batch = f->n / PART;
    ggl_status st = ggl_backend_open(&reference, "reference", NULL, err);
    if (st == GGL_OK)
        st = time_form(info, &part, reference, 0, &s, err);
    ggl_backend_close(reference);
    out->reference_ns = s.ns * (double)f->n / (double)part.n;
    return st;
}

ggl_status conform_time(const conform_case *info, const conform_form *typed, ggl_backend *b,
                        double seconds, conform_speed *out, ggl_error *err) {
    *out = (conform_speed){0};
    if (!info->large)
        return ggl_fail(err, GGL_NOT_FOUND, "%s has no large form", info->name);
    const conform_form f = conform_large(info, typed);
    ggl_status st = time_form(info, &f, b, seconds, out, err);
    return st == GGL_OK ? time_reference(info, &f, out, err) : st;
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Returns the 1e9 bytes per second, read and written, of a copy; 0: it failed. */
static double copy_rate(ggl_backend *b, double seconds) {
    size_t size = (size_t)(bench_brief() ? 4 : 256) << 20;
    timed t = {.b = b};
    double ns = 0;
    ggl_error err;
    if (b->max_buffer && size > b->max_buffer)
        size = b->max_buffer / 64 * 64;
    if (b->memory && size > b->memory / 8)
        size = b->memory / 8 / 64 * 64;
    ggl_status st = b->v->alloc(b, GGL_REGION_IO, size, NULL, &t.from, &err);
    if (st == GGL_OK)
        st = b->v->alloc(b, GGL_REGION_ARENA, size, NULL, &t.to, &err);
    t.size = size;
    if (st == GGL_OK)
        st = best_time(&t, seconds, &ns, &err);
    if (t.to)
        b->v->free(b, t.to);
    if (t.from)
        b->v->free(b, t.from);
    return st == GGL_OK && ns > 0 ? 2 * (double)size / ns : 0;
}

static const conform_case *case_of(const conform_kind *k, ggl_op op) {
    for (int i = 0; i < k->n_cases; i++)
        if (k->cases[i].op == op)
            return &k->cases[i];
    return NULL;
}

/* Times the large form with its batch multiplied by `times`, or with a part of that if the
 * backend takes too long, as the reference does. ns is 0 if it cannot be timed. */
static conform_speed speed_of(const conform_case *info, ggl_type type, int times, ggl_backend *b,
                              double seconds) {
    enum { PART = 32 };
    conform_speed s = {0}, part = {0};
    ggl_error err;
    conform_form f = conform_large(info, &(conform_form){.type = type}), small = f;
    f.n = f.n_batch = times * f.n;
    small.n = small.n_batch = f.n >= PART ? f.n / PART : 1;
    if (time_form(info, &small, b, 0, &part, &err) != GGL_OK)
        return (conform_speed){0};
    if (part.ns * (double)f.n / (double)small.n > seconds * 1e9)
        return part;
    return time_form(info, &f, b, seconds, &s, &err) == GGL_OK ? s : (conform_speed){0};
}

conform_limits conform_measure_limits(ggl_backend *b, double seconds) {
    static const ggl_op moves[] = {GGL_OP_ABS, GGL_OP_ADD};
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    conform_limits l = {.memory_gb = copy_rate(b, seconds)};
    conform_speed s = speed_of(case_of(&conform_rows, GGL_OP_SUM), GGL_F32, 2, b, seconds);
    if (s.ns > 0)
        l.memory_gb = fmax(l.memory_gb, s.bytes / s.ns);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        s = speed_of(case_of(&conform_elementwise, moves[i]), GGL_F32, 2, b, seconds);
        if (s.ns > 0)
            l.memory_gb = fmax(l.memory_gb, s.bytes / s.ns);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        s = speed_of(case_of(&conform_products, GGL_OP_LINEAR), types[i], 1, b, seconds);
        if (s.ns > 0)
            l.product_gmac = fmax(l.product_gmac, s.macs / s.ns);
    }
    return l;
}

double conform_percent(const conform_speed *s, const conform_limits *l) {
    double limit = s->macs > 0 ? l->product_gmac : l->memory_gb;
    double work = s->macs > 0 ? s->macs : s->bytes;
    return limit > 0 && s->ns > 0 ? 100 * work / s->ns / limit : 0;
}
