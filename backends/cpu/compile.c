/* Compiles a segment: binds each step of its program to an operator, and places scratch after the
 * program's arena. */
#include <string.h>

#include "compiler.h"
#include "ggl/internal/alloc.h"

/* Appends a step to the plan; false: out of memory. */
static bool push(cpu_compiler *c, const cpu_step *s) {
    if (!ggl_grow(&c->step, &c->cap_step, c->n_step + 1, sizeof *c->step))
        return false;
    c->step[c->n_step++] = *s;
    return true;
}

/* --- steps --------------------------------------------------------------------------------- */

/* Adds the program's step `from` to the plan. */
static ggl_status add_node(cpu_compiler *c, const ggl_step *from, ggl_error *err) {
    cpu_step s = {.kind = GGL_STEP_NODE,
                  .in_loop = c->in_loop,
                  .n_members = from->n_members,
                  .form = from->form,
                  .node = from->node,
                  .dst = from->dst,
                  .n_src = from->n_src};
    memcpy(s.src, from->src, sizeof s.src);
    for (int i = s.n_src; i < GGL_MAX_SRC; i++)
        s.src[i].region = -1;
    s.op = ggl_cpu_op_of_step(from);
    if (!s.op)
        return ggl_fail(err, GGL_UNSUPPORTED, "the CPU backend has no operator '%s'",
                        ggl_op_get(s.node->op).name);
    s.slot = ggl_step_slot(c->s, from);
    if (s.op == &ggl_cpu_op_linear) {
        s.linear.waits = from->original.waits;
        s.linear.original = from->original.loc;
    }
    ggl_status st = s.op->compile ? s.op->compile(c, &s, err) : GGL_OK;
    if (st == GGL_OK && !push(c, &s))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", s.node->name ? s.node->name : "a value");
    return GGL_OK;
}

/* Adds all steps of the program, and links each LOOP with its END by their new indices. */
static ggl_status add_steps(cpu_compiler *c, const ggl_program *p, ggl_error *err) {
    size_t loop = 0;
    for (int i = 0; i < p->n_step; i++) {
        const ggl_step *from = &p->step[i];
        if (from->kind == GGL_STEP_NODE || from->kind == GGL_STEP_FORM) {
            ggl_status st = add_node(c, from, err);
            if (st != GGL_OK)
                return st;
            continue;
        }
        cpu_step s = {.kind = from->kind,
                      .node = from->node,
                      .end = (int)loop,
                      .n_members = 1,
                      .n_src = from->n_src};
        if (s.n_src > 0)
            s.src[0] = from->src[0];
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

static size_t align64(size_t x) {
    return (x + 63) / 64 * 64;
}

/* Places scratch that all threads share, then each thread's own, after the program's arena, and
 * sets plan->base.arena_size. Steps reuse the same scratch one after another. Returns false if the
 * sizes overflow. */
static bool place_scratch(cpu_compiler *c, cpu_plan *plan) {
    size_t end = align64(plan->program.arena_size), shared = 0, thread = 0;
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
    return ggl_size_mul(plan->thread_step, (uint64_t)threads, &all_threads) &&
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
                                       .form = ggl_cpu_form,
                                       .joins = ggl_cpu_joins,
                                       .value_type = GGL_F32};
    cpu_compiler c = {.b = (const cpu_backend *)b, .s = s};
    ggl_status st = ggl_program_build(&plan->program, s, &params, err);
    if (st == GGL_OK)
        st = add_steps(&c, &plan->program, err);
    if (st == GGL_OK && !(ggl_cpu_find_takers(&c) && place_scratch(&c, plan)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st == GGL_OK)
        ggl_cpu_group(c.step, c.n_step, s->n_max);
    plan->step = c.step;
    plan->n_step = (int)c.n_step;
    if (st != GGL_OK) {
        ggl_cpu_plan_free(b, &plan->base);
        return st;
    }
    *out = &plan->base;
    return GGL_OK;
}
