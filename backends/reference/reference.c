/* The functions of the backend. Memory is host memory; a plan is a program; a run executes its
 * steps one after another. */
#include "reference.h"

#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/types.h"

typedef struct plan {
    ggl_plan base;
    ggl_program program;
    const ggl_loc *store_loc;
    double *row, *attend;
    float *stored;
    bool f32; /* see step_args */
} plan;

/* --- operators -------------------------------------------------------------------------------- */

ref_fn *ggl_ref_op(ggl_op op) {
    static ref_fn *const table[GGL_OP_COUNT] = {
#define OP(ID, fn) [GGL_OP_##ID] = fn,
#include "ops.def"
    };
    return table[op];
}

static const char *refuses(const ggl_backend *b, const ggl_tensor *node) {
    (void)b;
    return ggl_ref_op(node->op) ? NULL : "there is no kernel for it";
}

/* --- plans ------------------------------------------------------------------------------------ */

static void plan_free(ggl_backend *b, ggl_plan *p) {
    (void)b;
    ggl_program_fini(&((plan *)p)->program);
    ggl_free(((plan *)p)->row);
    ggl_free(((plan *)p)->attend);
    ggl_free(((plan *)p)->stored);
    ggl_free(p);
}

static ggl_status compile_values(ggl_backend *b, const ggl_segment *s, ggl_type values,
                                 ggl_plan **out, ggl_error *err) {
    plan *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    const ggl_program_params params = {.refuses = refuses, .backend = b, .value_type = values};
    ggl_status st = ggl_program_build(&p->program, s, &params, err);
    int64_t longest = 1, attend = 1;
    for (int i = 0; i < p->program.n_step && st == GGL_OK; i++) {
        const ggl_step *step = &p->program.step[i];
        longest = step->dst.ne[0] > longest ? step->dst.ne[0] : longest;
        for (int k = 0; k < step->n_src; k++)
            longest = step->src[k].ne[0] > longest ? step->src[k].ne[0] : longest;
        const ggl_op op = step->node ? step->node->op : GGL_OP_COUNT;
        const int64_t scratch = op == GGL_OP_ATTEND ? ggl_ref_attend_scratch(step->node)
                                : op == GGL_OP_ATTEND_BACK
                                    ? ggl_ref_attend_back_scratch(step->node, p->program.n_max)
                                : op == GGL_OP_CHOOSE_ROWS ? ggl_ref_choose_rows_scratch(step->node)
                                                           : 0;
        attend = scratch > attend ? scratch : attend;
    }
    p->row = st == GGL_OK ? ggl_calloc((size_t)longest, (REF_ROWS + 1) * sizeof *p->row) : NULL;
    p->stored = st == GGL_OK ? ggl_calloc((size_t)longest, sizeof *p->stored) : NULL;
    p->attend = st == GGL_OK ? ggl_calloc((size_t)attend, sizeof *p->attend) : NULL;
    if (st == GGL_OK && (!p->row || !p->stored || !p->attend))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st != GGL_OK) {
        plan_free(b, &p->base);
        return st;
    }
    p->store_loc = s->store_loc;
    p->f32 = values == GGL_F32;
    p->base.arena_size = p->program.arena_size;
    *out = &p->base;
    return GGL_OK;
}

static ggl_status compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    return compile_values(b, s, GGL_F64, out, err);
}

static ggl_status compile_f32(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                              ggl_error *err) {
    return compile_values(b, s, GGL_F32, out, err);
}

static view resolve(const ggl_operand *o, ggl_buffer *const *region, int64_t n,
                    const ggl_turns *turns) {
    view v = {.type = o->type};
    if (o->region < 0)
        return v;
    v.data = region[o->region]->data + o->offset +
             (size_t)(o->in_chunk ? turns->in_chunk : turns->turn) * o->loop;
    memcpy(v.ne, o->ne, sizeof v.ne);
    memcpy(v.nb, o->nb, sizeof v.nb);
    if (v.ne[GGL_BATCH_DIM] == GGL_N)
        v.ne[GGL_BATCH_DIM] = n;
    return v;
}

static void run_step(const plan *p, const ggl_step *step, ggl_buffer *const *region, int64_t n,
                     const ggl_turns *turns) {
    step_args a = {.node = step->node,
                   .region = region,
                   .turns = turns,
                   .store_loc = p->store_loc,
                   .f32 = p->f32,
                   .row = p->row,
                   .stored = p->stored,
                   .attend = p->attend};
    a.dst = resolve(&step->dst, region, n, turns);
    for (int i = 0; i < step->n_src; i++)
        a.src[i] = resolve(&step->src[i], region, n, turns);
    ggl_ref_op(step->node->op)(&a);
}

/* Runs the loop that begins at step `first`, and the one after it if its body runs in chunks. Returns the index of the last step. */
static int run_loop(const plan *p, int first, ggl_buffer *const *region, int64_t n) {
    const ggl_step *step = p->program.step, *loop = step + first;
    const int second = loop->node->body->chunk > 0 ? loop->end + 1 : first;
    const ggl_turns outside = {0};
    ggl_turns t;
    ggl_turns_begin(
        &t, loop->node->body,
        loop->n_src > 0 ? (const int32_t *)resolve(&loop->src[0], region, n, &outside).data : NULL,
        n, p->program.n_max);
    while (ggl_turns_next(&t))
        for (int part = t.backward ? second : first, k = part + 1; k < step[part].end; k++)
            run_step(p, &step[k], region, n, &t);
    return step[second].end;
}

static ggl_status run(ggl_backend *b, ggl_plan *base, ggl_buffer *const *region, int64_t n,
                      ggl_error *err) {
    const plan *p = (const plan *)base;
    const ggl_turns outside = {0};
    for (int i = 0; i < p->program.n_step; i++) {
        if (b->cancelled && b->cancelled(b->cancelled_ctx))
            return ggl_fail(err, GGL_CANCELLED, "the run was stopped");
        const ggl_step *step = &p->program.step[i];
        if (step->kind == GGL_STEP_NODE)
            run_step(p, step, region, n, &outside);
        else
            i = run_loop(p, i, region, n);
    }
    return GGL_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

static ggl_status buffer_alloc(ggl_backend *b, int region, size_t size, const void *host,
                               ggl_buffer **out, ggl_error *err) {
    (void)b;
    (void)region;
    ggl_buffer *buf = ggl_calloc(1, sizeof *buf);
    if (buf)
        *buf = (ggl_buffer){host ? (char *)host : ggl_calloc(size, 1), size, !host, false};
    if (!buf || !buf->data) {
        ggl_free(buf);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes", size);
    }
    *out = buf;
    return GGL_OK;
}

static void buffer_free(ggl_backend *b, ggl_buffer *buf) {
    (void)b;
    if (buf->owned)
        ggl_free(buf->data);
    ggl_free(buf);
}

static void close_backend(ggl_backend *b) {
    ggl_free(b);
}

/* By the type of values between operators. */
#define VTABLE(compile_)                                                                           \
    {                                                                                              \
        .close = close_backend, .alloc = buffer_alloc, .free = buffer_free, .upload = host_upload, \
        .download = host_download, .copy = host_copy, .clear = host_clear, .refuses = refuses,     \
        .compile = compile_, .run = run, .wait = host_wait, .plan_free = plan_free,                \
    }
static const ggl_backend_vtable vtable = VTABLE(compile), vtable_f32 = VTABLE(compile_f32);
#undef VTABLE

const char *ggl_reference_mask_name(int k);
const char *ggl_reference_mask_name(int k) {
    return k == 0 ? "f64" : NULL;
}

/* True if the mask contains the word f64. "all" means instruction sets, which the reference does not
 * use. */
static bool masks_f64(const char *mask) {
    for (size_t n; mask && *mask; mask += n + (mask[n] != 0)) {
        n = strcspn(mask, ", ");
        if (n == 3 && memcmp(mask, "f64", 3) == 0)
            return true;
    }
    return false;
}

ggl_status ggl_reference_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);
ggl_status ggl_reference_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err) {
    const bool narrow = params && masks_f64(params->mask);
    *out = ggl_calloc(1, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    **out = (ggl_backend){.v = narrow ? &vtable_f32 : &vtable,
                          .name = "reference",
                          .description = "double precision, one thread",
                          .lazy = true};
    if (narrow)
        strcpy((*out)->description, "double precision, f32 in sums and between operators");
    return GGL_OK;
}
