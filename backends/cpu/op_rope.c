/* rope: makes a table of cosines and sines for each token, once for all steps with the same
 * frequencies and positions, and rotates rows with it. */
#include <string.h>

#include "cpu.h"
#include "ggl/internal/math.h"

/* src[0]: positions; src[1]: r frequencies, f32 or f64. Row l of the table has r pairs (cosine,
 * sine) for token l, times mag. A unit is a row. */
static ggl_status table_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c, (void)err;
    s->rope.n_terms = (int)s->src[1].ne[0];
    s->rope.mag = s->node->num[0];
    return GGL_OK;
}

static void table_begin(cpu_task *t) {
    t->n_units = t->dst.ne[3];
    t->cost = 800 * (double)t->step->rope.n_terms;
}

static void table_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *pos = &t->src[0], *f = &t->src[1];
    for (int64_t l = first; l < last; l++) {
        double at = *(const int32_t *)(pos->p + (size_t)l * pos->nb[3]);
        float *cs = (float *)(t->dst.p + (size_t)l * t->dst.nb[3]);
        for (int i = 0; i < t->step->rope.n_terms; i++) {
            double angle =
                at * (t->step->src[1].type == GGL_F64 ? ((const double *)f->p)[i]
                                                      : (double)((const float *)f->p)[i]);
            cs[2 * i] = (float)(ggl_cos(angle) * t->step->rope.mag);
            cs[2 * i + 1] = (float)(ggl_sin(angle) * t->step->rope.mag);
        }
    }
}

const cpu_op ggl_cpu_op_rope_table = {
    .compile = table_compile, .begin = table_begin, .run = table_run};

/* The positions, as a table. */
static ggl_form rope_form(const cpu_backend *b, const ggl_step *s) {
    (void)b;
    return (ggl_form){.kind = CPU_FORM_ROPE,
                      .src = 2,
                      .with = 1,
                      .row_size = (size_t)s->src[ROPE_HALF_F].ne[0] * 2 * sizeof(float),
                      .num = s->node->num[ROPE_HALF_MAG]};
}

static ggl_status rope_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    const ggl_operand *f = &s->src[ROPE_HALF_F];
    if (s->src[0].type != GGL_F32 || (f->type != GGL_F32 && f->type != GGL_F64) ||
        s->src[ROPE_HALF_AT].type != GGL_I32)
        return ggl_fail(err, GGL_UNSUPPORTED, "rope of %s with frequencies of %s",
                        ggl_type_get(s->src[0].type)->name, ggl_type_get(f->type)->name);
    s->rope.n_terms = (int)f->ne[0];
    return GGL_OK;
}

/* A unit is a row of dst. */
static void rope_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->dst);
    t->cost = 10 + 3 * (double)t->dst.ne[0];
}

static void rope_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    int64_t r = t->step->rope.n_terms, n = t->dst.ne[0], rows = ggl_extents(t->dst.ne, 1, 3, 1);
    bool half = t->step->node->op == GGL_OP_ROPE_HALF;
    for (int64_t u = first; u < last; u++) {
        int64_t l = t->src[2].ne[3] == 1 ? 0 : u / rows;
        const float *cs = (const float *)(t->src[2].p + (size_t)l * t->src[2].nb[3]);
        const float *x = (const float *)cpu_row(&t->src[0], t->dst.ne, u);
        float *y = (float *)cpu_row(&t->dst, t->dst.ne, u);
        (half ? t->b->k.rope_half : t->b->k.rope_pair)(y, x, cs, r);
        memcpy(y + 2 * r, x + 2 * r, (size_t)(n - 2 * r) * sizeof *y);
    }
}

const cpu_op ggl_cpu_op_rope = {
    .form = rope_form, .compile = rope_compile, .begin = rope_begin, .run = rope_run};
