#include "faulty.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/graph.h"

enum { MOST_SPOILED = 8, MOST_REGIONS = 16 };

typedef struct faulty {
    ggl_backend base;
    ggl_backend *real;
    fault_kind kind;
    ggl_op op;
    ggl_type type;
    /* FAULT_ASYNC: the requested run */
    ggl_plan *waiting;
    ggl_buffer *region[MOST_REGIONS];
    int64_t n;
} faulty;

typedef struct faulty_plan {
    ggl_plan base;
    ggl_plan *real;
    const ggl_tensor *spoiled[MOST_SPOILED]; /* results that others can see */
    ggl_loc loc[MOST_SPOILED];
    int n_spoiled, n_regions;
    ggl_tensor other[MOST_SPOILED]; /* FAULT_CONFUSED: what is computed instead */
    int n_other;
} faulty_plan;

static faulty *faulty_of(const ggl_backend *b) {
    return (faulty *)b;
}

static ggl_backend *real_of(const ggl_backend *b) {
    return faulty_of(b)->real;
}

/* --- what is passed on ------------------------------------------------------------------------ */

static ggl_status f_wait(ggl_backend *b, ggl_error *err) {
    faulty *f = faulty_of(b);
    ggl_plan *p = f->waiting;
    f->waiting = NULL;
    ggl_status st = p ? f->real->v->run(f->real, p, f->region, f->n, err) : GGL_OK;
    return st == GGL_OK ? f->real->v->wait(f->real, err) : st;
}

static ggl_status f_alloc(ggl_backend *b, int region, size_t size, const void *host,
                          ggl_buffer **out, ggl_error *err) {
    return real_of(b)->v->alloc(real_of(b), region, size, host, out, err);
}
static void f_free(ggl_backend *b, ggl_buffer *buf) {
    real_of(b)->v->free(real_of(b), buf);
}
static ggl_status f_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                           size_t size, ggl_error *err) {
    ggl_status st = f_wait(b, err);
    return st == GGL_OK ? real_of(b)->v->upload(real_of(b), dst, offset, src, size, err) : st;
}
static ggl_status f_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                             size_t size, ggl_error *err) {
    ggl_status st = f_wait(b, err);
    return st == GGL_OK ? real_of(b)->v->download(real_of(b), src, offset, dst, size, err) : st;
}
static ggl_status f_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                         const ggl_copy_range *range, size_t n, ggl_error *err) {
    ggl_status st = f_wait(b, err);
    return st == GGL_OK ? real_of(b)->v->copy(real_of(b), dst, src, range, n, err) : st;
}
static ggl_status f_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                          ggl_error *err) {
    ggl_status st = f_wait(b, err);
    return st == GGL_OK ? real_of(b)->v->clear(real_of(b), buf, offset, size, err) : st;
}

/* --- faults ----------------------------------------------------------------------------------- */

static bool is_target(const faulty *f, const ggl_tensor *t) {
    return t->op == f->op &&
           (f->type == GGL_TYPE_LIMIT || (t->n_src > 1 && t->src[1] && t->src[1]->type == f->type));
}

static const char *f_refuses(const ggl_backend *b, const ggl_tensor *t) {
    const faulty *f = faulty_of(b);
    if (f->kind == FAULT_REFUSES && is_target(f, t))
        return "no such weights today";
    if (f->kind == FAULT_UNKNOWN && t->op == f->op)
        return "not written yet";
    return f->real->v->refuses(f->real, t);
}

static bool reads_slice(const ggl_tensor *t) {
    for (int i = 0; i < t->n_src; i++)
        if (t->src[i] && t->src[i]->op == GGL_OP_SPLIT)
            return true;
    return false;
}

static void find_spoiled(const faulty *f, faulty_plan *p, const ggl_segment *s) {
    for (int i = 0; i < s->n_node && p->n_spoiled < MOST_SPOILED; i++) {
        const ggl_tensor *t = s->node[i];
        if (!is_target(f, t) || s->loc[t->id].region < 0 || t->type != GGL_F32)
            continue;
        if ((f->kind == FAULT_VIEW && !reads_slice(t)) ||
            (f->kind == FAULT_BIAS && !(t->n_src > 2 && t->src[2])))
            continue;
        p->spoiled[p->n_spoiled] = t;
        p->loc[p->n_spoiled++] = s->loc[t->id];
    }
}

/* i: of all elements of a run. */
static void spoil_element(fault_kind kind, const ggl_tensor *t, int64_t i, float *x) {
    int64_t row = t->ne[0];
    switch (kind) {
    case FAULT_BATCH:
        *x += i >= ggl_count(t) ? 0.5f : 0;
        return;
    case FAULT_TAIL:
        *x += row % 16 != 0 && i % row == row - 1 ? 0.5f : 0;
        return;
    case FAULT_VIEW:
    case FAULT_BIAS:
        *x += 0.5f;
        return;
    case FAULT_NAN:
        *x = isnan(*x) ? 0 : *x;
        return;
    case FAULT_FLUSH:
        *x = fabsf(*x) < FLT_MIN ? 0 : *x;
        return;
    default:
        return;
    }
}

static ggl_status spoil(ggl_backend *b, const ggl_tensor *t, ggl_loc loc, ggl_buffer *buf,
                        int64_t n, ggl_error *err) {
    size_t count = (size_t)ggl_count(t) * (size_t)(ggl_is_batched(t) ? n : 1);
    float *x = ggl_calloc(count, sizeof *x);
    if (!x)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = f_download(b, buf, loc.offset, x, count * sizeof *x, err);
    for (size_t i = 0; i < count; i++)
        spoil_element(faulty_of(b)->kind, t, (int64_t)i, &x[i]);
    if (st == GGL_OK)
        st = f_upload(b, buf, loc.offset, x, count * sizeof *x, err);
    ggl_free(x);
    return st;
}

static ggl_status f_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    const faulty *f = faulty_of(b);
    faulty_plan *p = ggl_calloc(1, sizeof *p);
    ggl_tensor **node = ggl_calloc((size_t)s->n_node + 1, sizeof *node);
    if (!p || !node) {
        ggl_free(p);
        ggl_free(node);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    ggl_segment changed = *s;
    memcpy(node, s->node, (size_t)s->n_node * sizeof *node);
    changed.node = node;
    for (int i = 0; i < s->n_node && f->kind == FAULT_CONFUSED && p->n_other < MOST_SPOILED; i++)
        if (node[i]->op == GGL_OP_TANH) {
            p->other[p->n_other] = *node[i];
            p->other[p->n_other].op = GGL_OP_SIGMOID;
            node[i] = &p->other[p->n_other++];
        }
    find_spoiled(f, p, s);
    ggl_status st = f->real->v->compile(f->real, &changed, &p->real, err);
    ggl_free(node);
    if (st != GGL_OK) {
        ggl_free(p);
        return st;
    }
    p->base.arena_size = p->real->arena_size;
    p->n_regions = GGL_REGION_WEIGHT;
    for (int i = 0; i < ggl_graph_n_ids(s->graph); i++) {
        int region = s->loc[i].region;
        p->n_regions = region >= p->n_regions ? region + 1 : p->n_regions;
    }
    for (int i = 0; s->store_loc && i < ggl_graph_n_stores(s->graph); i++) {
        int region = s->store_loc[i].region;
        p->n_regions = region >= p->n_regions ? region + 1 : p->n_regions;
    }
    *out = &p->base;
    return GGL_OK;
}

static ggl_status f_run(ggl_backend *b, ggl_plan *plan, ggl_buffer *const *region, int64_t n,
                        ggl_error *err) {
    faulty *f = faulty_of(b);
    faulty_plan *p = (faulty_plan *)plan;
    if (f->kind == FAULT_FAILS && p->n_spoiled > 0 && n > 3)
        return ggl_fail(err, GGL_IO, "the device is tired");
    ggl_status st = f_wait(b, err);
    if (st == GGL_OK && f->kind == FAULT_ASYNC && p->n_regions <= MOST_REGIONS) {
        memcpy(f->region, region, (size_t)p->n_regions * sizeof *region);
        f->waiting = p->real;
        f->n = n;
        return GGL_OK;
    }
    if (st == GGL_OK)
        st = f->real->v->run(f->real, p->real, region, n, err);
    for (int i = 0; i < p->n_spoiled && st == GGL_OK; i++)
        st = spoil(b, p->spoiled[i], p->loc[i], region[p->loc[i].region], n, err);
    return st;
}

static void f_plan_free(ggl_backend *b, ggl_plan *plan) {
    real_of(b)->v->plan_free(real_of(b), ((faulty_plan *)plan)->real);
    ggl_free(plan);
}

/* --- the backend ------------------------------------------------------------------------------ */

static const ggl_backend_vtable faulty_vtable = {
    .alloc = f_alloc,
    .free = f_free,
    .upload = f_upload,
    .download = f_download,
    .copy = f_copy,
    .clear = f_clear,
    .refuses = f_refuses,
    .compile = f_compile,
    .run = f_run,
    .wait = f_wait,
    .plan_free = f_plan_free,
};

ggl_backend *faulty_open(ggl_backend *b, fault_kind kind, ggl_op op, ggl_type type) {
    faulty *f = ggl_calloc(1, sizeof *f);
    if (!f)
        return NULL;
    *f = (faulty){.base = {.v = &faulty_vtable, .name = "faulty", .description = "with a fault"},
                  .real = b,
                  .kind = kind,
                  .op = op,
                  .type = type};
    f->base.async = kind == FAULT_ASYNC;
    return &f->base;
}

void faulty_close(ggl_backend *b) {
    ggl_free(b);
}
