/* Elementwise operators. Dimensions that are adjacent in memory in all operands are joined, so that
 * kernels get long runs of elements. A unit is a piece of a run, at most SEGMENT elements. */
#include <string.h>

#include "cpu.h"

enum { SEGMENT = 4096 };

/* Joins dimensions and sets the task's units. t->unit.extent[0] becomes the length of a run, t->unit.extent[1..3]
 * the outer extents; t->step_nb[0] the strides of dst, t->step_nb[1..] those of the sources, where
 * a stride of 0 repeats an element. In a run, elements are 4 bytes apart, or (sources) one element
 * repeats. */
static void collapse(cpu_task *t, int n_src, double cost_of_one) {
    int64_t ne[GGL_MAX_DIMS + 1] = {1, 1, 1, 1, 1};
    size_t nb[4][GGL_MAX_DIMS + 1] = {{0}};
    int n = 0; /* dimensions so far, the last one open for joining */
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        if (t->dst.ne[d] == 1)
            continue;
        size_t step[4];
        bool joins = n > 0, dense = true;
        for (int i = 0; i <= n_src; i++) {
            const cpu_view *v = i == 0 ? &t->dst : &t->src[i - 1];
            step[i] = v->ne[d] == 1 ? 0 : v->nb[d];
            joins = joins && step[i] == nb[i][n - 1] * (size_t)ne[n - 1];
            dense = dense && (step[i] == sizeof(float) || (step[i] == 0 && i > 0));
        }
        if (joins) {
            ne[n - 1] *= t->dst.ne[d];
            continue;
        }
        if (n == 0 && !dense) { /* runs of one element */
            for (int i = 0; i <= n_src; i++)
                nb[i][0] = i == 0 ? sizeof(float) : 0;
            n = 1;
        }
        ne[n] = t->dst.ne[d];
        for (int i = 0; i <= n_src; i++)
            nb[i][n] = step[i];
        n++;
    }
    /* never five dimensions: rows are dense, so a run is inserted only if dimension 0 has size 1 */
    memcpy(t->unit.extent, ne, sizeof t->unit.extent);
    for (int i = 0; i <= n_src; i++)
        memcpy(t->step_nb[i], nb[i], sizeof t->step_nb[i]);
    int64_t segments = (ne[0] + SEGMENT - 1) / SEGMENT;
    t->n_units = segments * ggl_extents(ne, 1, GGL_MAX_DIMS, 1);
    t->cost = cost_of_one * (double)cpu_min(ne[0], SEGMENT);
}

/* Sets p[0] to the address of unit u in dst, and p[1..n_src] to those in the sources; returns the
 * unit's number of elements. */
static int64_t piece(const cpu_task *t, int64_t u, int n_src, char **p) {
    int64_t segments = (t->unit.extent[0] + SEGMENT - 1) / SEGMENT;
    int64_t at[4] = {u % segments * SEGMENT};
    u /= segments;
    for (int d = 1; d < GGL_MAX_DIMS; d++) {
        at[d] = u % t->unit.extent[d];
        u /= t->unit.extent[d];
    }
    for (int i = 0; i <= n_src; i++) {
        p[i] = i == 0 ? t->dst.p : t->src[i - 1].p;
        for (int d = 0; d < GGL_MAX_DIMS; d++)
            p[i] += (size_t)at[d] * t->step_nb[i][d];
    }
    return cpu_min(SEGMENT, t->unit.extent[0] - at[0]);
}

/* Fails unless all sources are f32. */
static ggl_status floats_only(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    for (int i = 0; i < s->n_src; i++)
        if (s->src[i].region >= 0 && s->src[i].type != GGL_F32)
            return ggl_fail(err, GGL_UNSUPPORTED, "'%s' does not support %s values",
                            ggl_op_get(s->node->op).name, ggl_type_get(s->src[i].type)->name);
    return GGL_OK;
}

/* --- unary --------------------------------------------------------------------------------- */

/* A row of slots.def for a unary kernel. */
#define OF_OP(NAME)                                                                                \
    { GGL_OP_##NAME, GGL_COMPOSITE_NONE }
#define OF_COMPOSITE(NAME)                                                                         \
    { GGL_OP_CALL, GGL_COMPOSITE_##NAME }

/* Sets *out to the kernel of the node, an operator or a composite; false if none. */
static bool unary_of(const ggl_tensor *node, cpu_unary *out) {
    static const struct {
        ggl_op op;
        ggl_composite composite;
    } of_kernel[CPU_N_UNARY] = {
#define UNARY_SLOT(NAME, of, where) [CPU_##NAME] = OF_##of(NAME),
#include "slots.def"
    };
    const ggl_composite composite =
        node->op == GGL_OP_CALL ? ggl_composite_of(node) : GGL_COMPOSITE_NONE;
    for (int i = 0; i < CPU_N_UNARY; i++)
        if (of_kernel[i].op == node->op && of_kernel[i].composite == composite) {
            *out = (cpu_unary)i;
            return true;
        }
    return false;
}

static ggl_status unary_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    if (!unary_of(s->node, &s->unary))
        return ggl_fail(err, GGL_UNSUPPORTED, "'%s'", ggl_op_get(s->node->op).name);
    return floats_only(c, s, err);
}

static void unary_begin(cpu_task *t) {
    cpu_unary f = t->step->unary;
    collapse(t, 1,
             f == CPU_SIN || f == CPU_COS                                       ? 300
             : f == CPU_SQRT || f == CPU_FLOOR || f == CPU_ABS || f == CPU_RELU ? 3
                                                                                : 15);
}

static void unary_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    cpu_unary_fn *f = t->b->k.unary[t->step->unary];
    for (int64_t u = first; u < last; u++) {
        char *p[2];
        int64_t n = piece(t, u, 1, p);
        f((float *)p[0], (const float *)p[1], n);
    }
}

const cpu_op ggl_cpu_op_unary = {.by_item = true,
                                 .in_place = true,
                                 .compile = unary_compile,
                                 .begin = unary_begin,
                                 .run = unary_run};

/* --- binary -------------------------------------------------------------------------------- */

/* True if t is the constant 2. */
static bool is_two(const ggl_tensor *t) {
    const float two = 2;
    return t->op == GGL_OP_CONST && t->type == GGL_F32 && t->size == sizeof two &&
           memcmp(t->data, &two, sizeof two) == 0;
}

static ggl_status binary_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    static const cpu_binary of[GGL_OP_COUNT] = {
#define BINARY_SLOT(NAME, where) [GGL_OP_##NAME] = CPU_##NAME,
#include "slots.def"
    };
    s->binary = of[s->node->op];
    /* x ** 2 has the bits of x * x: docs/numeric.md, section 2 */
    if (s->binary == CPU_POW && is_two(s->node->src[1])) {
        s->binary = CPU_MUL;
        s->src[1] = s->src[0];
    }
    return floats_only(c, s, err);
}

static void binary_begin(cpu_task *t) {
    collapse(t, 2, t->step->binary == CPU_POW ? 500 : 3);
}

static void binary_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    cpu_binary_fn *f = t->b->k.binary[t->step->binary];
    for (int64_t u = first; u < last; u++) {
        char *p[3];
        int64_t n = piece(t, u, 2, p);
        f((float *)p[0], (const float *)p[1], t->step_nb[1][0] != 0, (const float *)p[2],
          t->step_nb[2][0] != 0, n);
    }
}

const cpu_op ggl_cpu_op_binary = {.by_item = true,
                                  .in_place = true,
                                  .compile = binary_compile,
                                  .begin = binary_begin,
                                  .run = binary_run};

/* --- where --------------------------------------------------------------------------------- */

static void where_begin(cpu_task *t) {
    collapse(t, 3, 10);
}

static void where_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        char *p[4];
        int64_t n = piece(t, u, 3, p), step[4];
        for (int i = 0; i < 4; i++)
            step[i] = t->step_nb[i][0] != 0;
        float *y = (float *)p[0];
        const float *c = (const float *)p[1], *a = (const float *)p[2], *b = (const float *)p[3];
        for (int64_t i = 0; i < n; i++)
            y[i] = c[i * step[1]] == 0.0f ? b[i * step[3]] : a[i * step[2]];
    }
}

const cpu_op ggl_cpu_op_where = {.by_item = true,
                                 .in_place = true,
                                 .compile = floats_only,
                                 .begin = where_begin,
                                 .run = where_run};

/* --- cast ---------------------------------------------------------------------------------- */

static ggl_status cast_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    const ggl_type_info *type = ggl_type_get(s->src[0].type);
    return type && type->to_float
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED, "a cast from type %d is not supported",
                          (int)s->src[0].type);
}

/* A unit is a row of dst. */
static void rows_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->dst);
    t->cost = 5 * (double)t->dst.ne[0];
}

static void cast_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    ggl_type type = t->step->src[0].type;
    void (*convert)(const void *, float *, int64_t) =
        t->b->k.to_f32[type] ? t->b->k.to_f32[type] : ggl_type_get(type)->to_float;
    for (int64_t r = first; r < last; r++)
        convert(cpu_row(&t->src[0], t->dst.ne, r), (float *)cpu_row(&t->dst, t->dst.ne, r),
                t->dst.ne[0]);
}

const cpu_op ggl_cpu_op_cast = {
    .by_item = true, .compile = cast_compile, .begin = rows_begin, .run = cast_run};
