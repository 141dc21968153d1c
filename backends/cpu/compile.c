/* Compiles a segment: binds each step of its program to an operator, adds steps that prepare
 * operands which several steps share (quantized activations, tables of cosines), and places scratch
 * after the program's arena. */
#include <string.h>

#include "cpu.h"
#include "ggl/alloc.h"

/* A preparation: what a step has made from the operands a and b, for the steps first .. last. */
typedef struct prepared {
    int kind; /* as for ggl_cpu_prepare */
    ggl_operand a, b;
    double mag;
    bool
        valid; /* later steps may use it: a and b are unchanged, and no loop began or ended since */
    int first, last;  /* the step that makes it, and the last one that uses it */
    size_t row, size; /* bytes of a row, and of all rows */
    int slot;         /* the slot of memory that it gets in place_prepared */
} prepared;

struct cpu_compiler {
    const cpu_backend *b;
    const ggl_segment *s;
    cpu_step *step;
    size_t n_step, cap_step;
    prepared *prepared;
    size_t n_prepared, cap_prepared;
    bool in_loop;
};

int64_t ggl_cpu_compiler_n_max(const cpu_compiler *c) {
    return c->s->n_max;
}

const cpu_backend *ggl_cpu_compiler_backend(const cpu_compiler *c) {
    return c->b;
}

cpu_kept ggl_cpu_compiler_store(const cpu_compiler *c, const ggl_store *s) {
    return (cpu_kept){s, s ? c->s->store_loc[s->id] : 0};
}

/* Appends a step to the plan; false: out of memory. */
static bool push(cpu_compiler *c, const cpu_step *s) {
    if (!ggl_grow(&c->step, &c->cap_step, c->n_step + 1, sizeof *c->step))
        return false;
    c->step[c->n_step++] = *s;
    return true;
}

/* --- shared preparations ------------------------------------------------------------------- */

/* True if a and b are the same elements in the same shape. */
static bool same_operand(const ggl_operand *a, const ggl_operand *b) {
    return a->type == b->type && a->region == b->region && a->offset == b->offset &&
           a->loop == b->loop && memcmp(a->ne, b->ne, sizeof a->ne) == 0 &&
           memcmp(a->nb, b->nb, sizeof a->nb) == 0;
}

static size_t align64(size_t x) {
    return (x + 63) / 64 * 64;
}

/* Sets p->row and p->size, for the largest batch. */
static void size_prepared(const cpu_compiler *c, prepared *p) {
    int64_t rows = ggl_extents(p->a.ne, 1, GGL_MAX_DIMS, c->s->n_max), n = p->a.ne[0];
    if (p->kind == CPU_PREPARE_ROPE) {
        p->row = (size_t)n * 2 * sizeof(float);
        rows = ggl_extents(p->b.ne, GGL_BATCH_DIM, GGL_MAX_DIMS, c->s->n_max);
    } else {
        p->row = ggl_cpu_column_size((cpu_columns)p->kind, n);
    }
    p->size = align64(p->row * (size_t)rows); /* fits: it is a small multiple of GGL_MAX_ELEMENTS */
}

bool ggl_cpu_prepare(cpu_compiler *c, cpu_step *s, int kind, const ggl_operand *a,
                     const ggl_operand *b, double mag) {
    const ggl_operand none = {.region = -1};
    if (!b)
        b = &none;
    for (size_t i = 0; i < c->n_prepared; i++) {
        const prepared *p = &c->prepared[i];
        if (p->valid && p->kind == kind && p->mag == mag && same_operand(&p->a, a) &&
            same_operand(&p->b, b)) {
            s->prepared = (int)i + 1;
            return true;
        }
    }
    if (!ggl_grow(&c->prepared, &c->cap_prepared, c->n_prepared + 1, sizeof *c->prepared))
        return false;
    prepared *p = &c->prepared[c->n_prepared++];
    *p = (prepared){.kind = kind,
                    .a = *a,
                    .b = *b,
                    .mag = mag,
                    .valid = true,
                    .first = (int)c->n_step,
                    .last = (int)c->n_step};
    size_prepared(c, p);
    s->prepared = (int)c->n_prepared;
    cpu_step make = {.kind = GGL_STEP_NODE,
                     .in_loop = c->in_loop,
                     .op = kind == CPU_PREPARE_ROPE ? &ggl_cpu_op_rope_table : &ggl_cpu_op_columns,
                     .node = s->node,
                     .dst = none,
                     .src = {*a, *b},
                     .n_src = 2,
                     .slot = none,
                     .prepared = s->prepared};
    if (kind == CPU_PREPARE_ROPE) {
        make.rope.n_terms = (int)a->ne[0];
        make.rope.mag = mag;
    } else {
        make.columns = (cpu_columns)kind;
    }
    return push(c, &make);
}

/* Invalidates the preparations that were made from operands which step s overwrites. */
static void forget_written(cpu_compiler *c, const cpu_step *s) {
    for (size_t i = 0; i < c->n_prepared; i++) {
        prepared *p = &c->prepared[i];
        if (ggl_cpu_overlap(&s->dst, &p->a, c->s->n_max) ||
            ggl_cpu_overlap(&s->dst, &p->b, c->s->n_max))
            p->valid = false;
    }
}

/* Invalidates all preparations; called where a loop begins or ends. */
static void forget_all(cpu_compiler *c) {
    for (size_t i = 0; i < c->n_prepared; i++)
        c->prepared[i].valid = false;
}

/* --- steps --------------------------------------------------------------------------------- */

/* Adds the program's step `from` to the plan, after the preparations that it needs. */
static ggl_status add_node(cpu_compiler *c, const ggl_step *from, ggl_error *err) {
    cpu_step s = {.kind = GGL_STEP_NODE,
                  .in_loop = c->in_loop,
                  .wave = from->wave,
                  .node = from->node,
                  .dst = from->dst,
                  .n_src = from->n_src};
    memcpy(s.src, from->src, sizeof s.src);
    for (int i = s.n_src; i < GGL_MAX_SRC; i++)
        s.src[i].region = -1;
    s.op = ggl_cpu_op_of(s.node);
    if (!s.op)
        return ggl_fail(err, GGL_UNSUPPORTED, "the CPU backend has no operator '%s'",
                        ggl_op_get(s.node->op).name);
    s.slot = ggl_step_slot(c->s, from);
    ggl_status st = s.op->compile ? s.op->compile(c, &s, err) : GGL_OK;
    if (st == GGL_OK && s.prepared)
        c->prepared[s.prepared - 1].last = (int)c->n_step;
    if (st == GGL_OK && !push(c, &s))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", s.node->name ? s.node->name : "a value");
    forget_written(c, &s);
    return GGL_OK;
}

/* Adds all steps of the program, and links each LOOP with its END by their new indices. */
static ggl_status add_steps(cpu_compiler *c, const ggl_program *p, ggl_error *err) {
    size_t loop = 0;
    for (int i = 0; i < p->n_step; i++) {
        const ggl_step *from = &p->step[i];
        if (from->kind == GGL_STEP_NODE) {
            ggl_status st = add_node(c, from, err);
            if (st != GGL_OK)
                return st;
            continue;
        }
        cpu_step s = {.kind = from->kind, .node = from->node, .end = (int)loop};
        forget_all(c);
        if (from->kind == GGL_STEP_LOOP)
            loop = c->n_step;
        else
            c->step[loop].end = (int)c->n_step;
        c->in_loop = from->kind == GGL_STEP_LOOP;
        if (!push(c, &s))
            return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    }
    return GGL_OK;
}

/* --- scratch ------------------------------------------------------------------------------- */

/* Gives preparations memory from offset *end on, which it advances. Preparations whose lifetimes do
 * not overlap share a slot of memory. Sets prepared_at and prepared_row of all steps; returns false
 * if out of memory, or if the sizes overflow. */
static bool place_prepared(cpu_compiler *c, size_t *end) {
    typedef struct slot {
        size_t size, at;
        int busy_until;
    } slot;
    slot *slots = ggl_calloc(c->n_prepared + 1, sizeof *slots);
    int n = 0;
    bool fits = true;
    if (!slots)
        return false;
    for (size_t i = 0; i < c->n_prepared; i++) { /* in order of .first */
        prepared *p = &c->prepared[i];
        int k = 0;
        while (k < n && slots[k].busy_until >= p->first)
            k++;
        n += k == n;
        slots[k].busy_until = p->last;
        slots[k].size = slots[k].size > p->size ? slots[k].size : p->size;
        p->slot = k;
    }
    for (int k = 0; k < n; k++) {
        slots[k].at = *end;
        fits = fits && ggl_size_add(*end, slots[k].size, end);
    }
    for (size_t i = 0; i < c->n_step; i++) {
        cpu_step *s = &c->step[i];
        if (!s->prepared)
            continue;
        const prepared *p = &c->prepared[s->prepared - 1];
        s->prepared_at = slots[p->slot].at;
        s->prepared_row = p->row;
    }
    ggl_free(slots);
    return fits;
}

/* Places preparations, then scratch that all threads share, then each thread's own, after the
 * program's arena, and sets plan->base.arena_size. Steps reuse the same scratch one after another.
 * Returns false if out of memory, or if the sizes overflow. */
static bool place_scratch(cpu_compiler *c, cpu_plan *plan) {
    size_t end = align64(plan->program.arena_size), shared = 0, thread = 0;
    if (!place_prepared(c, &end))
        return false;
    for (size_t i = 0; i < c->n_step; i++) {
        shared = c->step[i].shared_size > shared ? c->step[i].shared_size : shared;
        thread = c->step[i].thread_size > thread ? c->step[i].thread_size : thread;
    }
    plan->thread_step = align64(thread);
    for (size_t i = 0; i < c->n_step; i++) {
        c->step[i].shared_at = end;
        c->step[i].thread_at = end + align64(shared);
    }
    int64_t threads = cpu_max(c->b->n_threads, c->b->n_threads_batch);
    size_t all_threads;
    return ggl_size_mul(plan->thread_step, (size_t)threads, &all_threads) &&
           ggl_size_add(end, align64(shared), &end) &&
           ggl_size_add(end, all_threads, &plan->base.arena_size);
}

/* --- plans --------------------------------------------------------------------------------- */

void ggl_cpu_plan_free(ggl_backend *b, ggl_plan *p) {
    (void)b;
    cpu_plan *plan = (cpu_plan *)p;
    if (!plan)
        return;
    ggl_program_fini(&plan->program);
    ggl_free(plan->step);
    ggl_free(plan);
}

ggl_status ggl_cpu_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    *out = NULL;
    cpu_plan *plan = ggl_calloc(1, sizeof *plan);
    if (!plan)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    const ggl_program_params params = {.refuses = ggl_cpu_refuses,
                                       .backend = b,
                                       .in_place = ggl_cpu_in_place,
                                       .value_type = GGL_F32};
    cpu_compiler c = {.b = (const cpu_backend *)b, .s = s};
    ggl_status st = ggl_program_build(&plan->program, s, &params, err);
    if (st == GGL_OK)
        st = add_steps(&c, &plan->program, err);
    if (st == GGL_OK && !place_scratch(&c, plan))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st == GGL_OK)
        ggl_cpu_group(c.step, c.n_step, s->n_max);
    plan->step = c.step;
    plan->n_step = (int)c.n_step;
    ggl_free(c.prepared);
    if (st != GGL_OK) {
        ggl_cpu_plan_free(b, &plan->base);
        return st;
    }
    *out = &plan->base;
    return GGL_OK;
}
