/* The CPU backend's insides. A plan is a program (ggl/program.h) whose steps are bound to operators
 * of this backend; an operator cuts its work into units that threads share out. What several steps
 * need of one operand (quantized activations, rope's cosines) becomes a step of its own before the
 * first. */
#ifndef CPU_H
#define CPU_H

#include "ggl/backends.h"
#include "ggl/program.h"
#include "kernels.h"
#include "threads.h"

struct ggl_buffer {
    char *data;
    size_t size;
    bool owned;
    bool huge; /* huge pages have been asked for */
};

typedef struct cpu_backend {
    ggl_backend base;
    cpu_kernels k;
    cpu_pool *pool;
    int n_threads, n_threads_batch; /* for runs of one, and of more than one, of the batch */
    ggl_profile_fn *profile;        /* NULL: steps are not timed */
    void *profile_ctx;
    bool f16_as_bf16; /* as ggl_backend_params */
    bool share_all;   /* even the smallest steps are shared out: for tests */
} cpu_backend;

/* An operand with its address: element (i, j, k, l) at p + i*nb[0] + j*nb[1] + k*nb[2] + l*nb[3].
 */
typedef struct cpu_view {
    char *p; /* NULL: absent */
    int64_t ne[GGL_MAX_DIMS];
    size_t nb[GGL_MAX_DIMS];
} cpu_view;

typedef struct cpu_step cpu_step;

/* One run of one step. begin() fills the lower part. */
typedef struct cpu_task {
    const cpu_step *step;
    const cpu_backend *b;
    cpu_view dst, src[GGL_MAX_SRC];
    char *stores; /* GGL_REGION_STORES */
    char *arena;
    const int32_t *slot; /* of recurrent calls */
    int64_t n;           /* of the batch; 1 in a loop */
    int n_threads;       /* that may take part */

    int64_t n_units;
    double cost; /* of a unit, in elementary steps of some 0.1 ns: decides whether threads pay */
    int64_t unit[GGL_MAX_DIMS];      /* the operator's own: what a unit is */
    size_t step_nb[4][GGL_MAX_DIMS]; /* elementwise: strides of collapsed dimensions, dst first */
    char *shared;                    /* step->shared_size bytes */
    char *prepared;                  /* what the step makes, or uses: rows of step->prepared_row */
    size_t thread_step;
} cpu_task;

typedef struct cpu_compiler cpu_compiler;

typedef struct cpu_op {
    bool by_item; /* of the batch, item l of the result needs no more than item l of the sources and
                     what is not batched */
    bool in_place; /* the result may be written over a source of the same shape */
    /* Checks what refuses() cannot, sets parameters and sizes. NULL: nothing to do. */
    ggl_status (*compile)(cpu_compiler *c, cpu_step *s, ggl_error *err);
    void (*begin)(cpu_task *t);
    void (*run)(const cpu_task *t, int64_t first, int64_t last, int thread);
    void (*end)(
        const cpu_task *t); /* on the calling thread, when all units are done; may be NULL */
} cpu_op;

enum { CPU_TOGETHER = 4 /* steps side by side, at most */ };

struct cpu_step {
    ggl_step_kind kind;
    int end;        /* LOOP: index of its END; END: of its LOOP */
    int wave;       /* as ggl_step */
    int n_together; /* of a NODE: it and so many steps less one behind it run side by side */
    int items;      /* if not 0, they run by items instead: so many at a time (group.c) */
    bool in_loop;
    const cpu_op *op;
    const ggl_tensor *node;
    ggl_operand dst, src[GGL_MAX_SRC];
    int n_src;

    /* parameters, by operator */
    cpu_unary unary;
    cpu_binary binary;
    cpu_recur_kind recur;
    float number[3]; /* eps; scale, cap */
    int64_t window;  /* 0: none */
    double mag;
    int dim;        /* the dimension along which */
    int batch_of_w; /* linear: matrices go with dimension 3 (1), with dimension 2 of x (0) */
    const ggl_store *store[2];
    size_t store_at[2];               /* of slot 0 in GGL_REGION_STORES */
    ggl_operand slot;                 /* of recurrent calls; region -1: none */
    int prepared;                     /* index of what this step makes, or uses, +1; 0: none */
    size_t prepared_at, prepared_row; /* offset in the arena, and bytes of one row */
    int n_terms;                      /* prepare: pairs of a rope table */

    size_t shared_size, thread_size; /* scratch, for all threads and for each */
    size_t shared_at, thread_at;     /* in the arena; thread t's at thread_at + t * thread_step */
};

typedef struct cpu_plan {
    size_t arena_size; /* as ggl_plan */
    ggl_program program;
    cpu_step *step;
    int n_step;
    size_t thread_step;
    double shareable; /* work of the last run that threads could share */
} cpu_plan;

/* What steps share: see compile.c. */
enum { CPU_PREPARE_ROPE = CPU_N_COLUMNS };

/* Makes sure that what `kind`, a cpu_columns or the above, makes of the operand (of two for rope:
 * frequencies, positions) exists before step s, whose prepared_at and prepared_row are set when all
 * is compiled. */
GGL_NODISCARD bool ggl_cpu_prepare(cpu_compiler *c, cpu_step *s, int kind, const ggl_operand *a,
                                   const ggl_operand *b, double mag);
int64_t ggl_cpu_compiler_n_max(const cpu_compiler *c);
const cpu_backend *ggl_cpu_compiler_backend(const cpu_compiler *c);
size_t ggl_cpu_compiler_store(const cpu_compiler *c, const ggl_store *s); /* offset of slot 0 */

ggl_status ggl_cpu_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err);
/* group.c: sets n_together and items of all steps. */
void ggl_cpu_group(cpu_step *step, size_t n_step, int64_t n_max);
/* Whether two operands share memory, in a plan for a batch of n_max. */
bool ggl_cpu_overlap(const ggl_operand *a, const ggl_operand *b, int64_t n_max);

ggl_status ggl_cpu_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                       ggl_error *err);
void ggl_cpu_plan_free(ggl_backend *b, ggl_plan *p);
bool ggl_cpu_in_place(const ggl_tensor *node);
const char *ggl_cpu_refuses(const ggl_backend *b, const ggl_tensor *node);

/* repack.c: quantized weights in the row-interleaved layout, f16 as rows of bf16. */
/* Bytes of a matrix of n_rows of k elements in that layout; 0: it has none. */
size_t ggl_cpu_repacked_matrix_size(const cpu_backend *b, ggl_type type, int64_t n_rows, int64_t k);
size_t ggl_cpu_repack_size(const ggl_backend *b, const ggl_tensor *w);
ggl_status ggl_cpu_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                          ggl_error *err);
#define CPU_REPACK_LAYOUT "rows16 3" /* another number when bytes change */

/* The operator of a node, by op or, of a call, by name; NULL: none. */
const cpu_op *ggl_cpu_op_of(const ggl_tensor *node);

/* op_elementwise.c */
extern const cpu_op ggl_cpu_op_unary, ggl_cpu_op_binary, ggl_cpu_op_where, ggl_cpu_op_cast;
bool ggl_cpu_unary_of(const ggl_tensor *node,
                      cpu_unary *out); /* operators and composites that are one unary kernel */
/* op_rows.c */
extern const cpu_op ggl_cpu_op_sum, ggl_cpu_op_amax, ggl_cpu_op_rank, ggl_cpu_op_topk,
    ggl_cpu_op_softmax, ggl_cpu_op_rms, ggl_cpu_op_center, ggl_cpu_op_l2, ggl_cpu_op_normalised,
    ggl_cpu_op_weighted;
/* op_move.c */
extern const cpu_op ggl_cpu_op_copy, ggl_cpu_op_split, ggl_cpu_op_concat, ggl_cpu_op_repeat,
    ggl_cpu_op_transpose, ggl_cpu_op_pick, ggl_cpu_op_iota;
/* op_linear.c, op_rope.c, op_attend.c, op_state.c, op_recur.c */
extern const cpu_op ggl_cpu_op_linear, ggl_cpu_op_columns, ggl_cpu_op_rope, ggl_cpu_op_rope_table,
    ggl_cpu_op_cache, ggl_cpu_op_attend, ggl_cpu_op_state, ggl_cpu_op_keep, ggl_cpu_op_recent,
    ggl_cpu_op_conv, ggl_cpu_op_recur;

/* This thread's scratch, step->thread_size bytes, 64-byte aligned. */
static inline char *cpu_thread_scratch(const cpu_task *t, int thread) {
    return t->arena + t->step->thread_at + (size_t)thread * t->thread_step;
}

static inline int64_t cpu_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t cpu_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Row r (of cpu_n_rows, dimension 1 fastest) of the shape `of`, in a view that
 * broadcasts to it. */
static inline char *cpu_row(const cpu_view *v, const int64_t *of, int64_t r) {
    int64_t j = r % of[1], k = r / of[1] % of[2], l = r / of[1] / of[2];
    return v->p + (v->ne[1] == 1 ? 0 : (size_t)j * v->nb[1]) +
           (v->ne[2] == 1 ? 0 : (size_t)k * v->nb[2]) + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]);
}

static inline int64_t cpu_n_rows(const cpu_view *v) {
    return ggl_extents(v->ne, 1, GGL_MAX_DIMS, 1);
}

#endif
