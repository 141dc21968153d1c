/* The private data of the CPU backend. A plan is a program (ggl/program.h) whose steps are bound to
 * operators of this backend. An operator divides its work into units, which the threads take in any
 * order. Forms of operands (columns of products, tables of cosines for rope) are made by steps of
 * their own, which the program has (ggl_form). */
#ifndef CPU_H
#define CPU_H

#include "../common/host_memory.h"
#include "ggl/internal/op_args.h"
#include "ggl/internal/turns.h"
#include "ggl/backends.h"
#include "ggl/program.h"
#include "kernels.h"
#include "nodes.h"
#include "share.h"
#include "threads.h"

struct cpu_task;

/* Gets each list of a run, divided into chunks for n_threads, and its tasks; NULL: its units are items of the batch. */
typedef void cpu_watch(void *ctx, const cpu_list *list, int n_threads, const struct cpu_task *task);

typedef struct cpu_backend {
    ggl_backend base;
    cpu_kernels k;
    cpu_nodes nodes;
    cpu_pool *pool;
    int n_threads, n_threads_batch; /* for batches of one, and for larger ones */
    ggl_profile_fn *profile;        /* NULL: steps are not timed */
    void *profile_ctx;
    bool f16_as_bf16; /* as in ggl_backend_params */
    bool share_all;   /* divide even the smallest steps among threads: for tests */
    cpu_watch *watch; /* NULL; or what runs call instead of running anything: for tests */
    void *watch_ctx;
} cpu_backend;

/* An operand with its address: element (i, j, k, l) at p + i*nb[0] + j*nb[1] + k*nb[2] + l*nb[3].
 */
typedef struct cpu_view {
    char *p; /* NULL: absent */
    int64_t ne[GGL_MAX_DIMS];
    size_t nb[GGL_MAX_DIMS];
} cpu_view;

typedef struct cpu_step cpu_step;

/* One run of one step. The operator's begin() sets n_units, cost, unit and step_nb. */
typedef struct cpu_task {
    const cpu_step *step;
    const cpu_backend *b;
    cpu_view dst, src[GGL_MAX_SRC];
    ggl_buffer *const *region; /* of the run */
    char *arena;
    const int32_t *slot;    /* recurrent calls: slot of each token, [n] */
    const ggl_turns *turns; /* of the loop that the step is in */
    int64_t n;              /* size of the batch; 1 in a loop */
    int n_threads;          /* threads that may take part */

    int64_t n_units;
    double cost; /* of a unit; a core does about 25 of cost in a ns (run.c) */
    union {
        int64_t extent[GGL_MAX_DIMS]; /* elementwise: the length of a run, and the other extents */
        int64_t n_picked;             /* pick: indices of an element */
        struct {
            int64_t n_groups;   /* groups of each store head */
            int64_t group_size; /* queries of a group */
            int64_t first_span; /* the first visible span */
            /* visible spans, each of which is a unit; 0: a unit does all spans of its group */
            int64_t n_spans;
        } attend;
        struct {
            int64_t n_rows;       /* of a unit */
            int64_t n_matrices;   /* that have columns */
            int64_t n_per_matrix; /* blocks of rows in each matrix */
            int64_t n_parts;      /* units of a block of rows: parts of the columns */
            bool in_groups;       /* the matrices are repacked: quant/rows16.h */
        } linear;
        struct {
            int64_t n_per_head, n_rows; /* units of a head, or of a group of heads; its rows */
        } recur;
    } unit;                          /* parameters of a unit */
    size_t step_nb[4][GGL_MAX_DIMS]; /* elementwise: strides of collapsed dimensions, dst first */
    char *shared;                    /* scratch of all threads, step->shared_size bytes */
    size_t thread_step;              /* bytes from one thread's scratch to the next */
} cpu_task;

typedef struct cpu_compiler cpu_compiler;

typedef struct cpu_op {
    /* Item l (element l of the batch) of the result is computed from item l of the batched sources
     * and from sources that are not batched. */
    bool by_item;
    bool in_place; /* the result may be written over a source of the same shape */
    /* Returns the form in which the step reads a source. NULL: it reads all as they are. */
    ggl_form (*form)(const cpu_backend *b, const ggl_step *s);
    /* Checks types and shapes that refuses() does not, and sets the step's parameters and scratch
     * sizes. NULL: nothing to do. */
    ggl_status (*compile)(cpu_compiler *c, cpu_step *s, ggl_error *err);
    /* Called on the calling thread before a run: divides the work into t->n_units units. */
    void (*begin)(cpu_task *t);
    /* Runs units first .. last - 1 on thread `thread`; several threads call it at the same time. */
    void (*run)(const cpu_task *t, int64_t first, int64_t last, int thread);
    /* Returns whether the step uses scratch that all threads share, so that no other step can run
     * beside it. NULL: it does not. */
    bool (*alone)(const ggl_step *s);
    /* Calls b->base.reads for the weights in the task, after begin(). NULL: there are none, or few bytes. */
    void (*reads)(const cpu_task *t);
    /* Called on the calling thread when all units are done; no other step runs beside this one
     * then. May be NULL. */
    void (*end)(const cpu_task *t);
} cpu_op;

/* A store that a step reads or writes. */
typedef struct cpu_kept {
    const ggl_store *store; /* NULL: absent */
    ggl_loc at;
} cpu_kept;

struct cpu_step {
    ggl_step_kind kind;
    int end;        /* LOOP: index of its END; END: index of its LOOP */
    int n_members;  /* as in ggl_step */
    int n_together; /* NODE: number of steps in the group that begins here (group.c) */
    int items;      /* 0: the group runs side by side; else by items, this many at a time */
    bool in_loop;
    const cpu_op *op;
    const ggl_tensor *node;
    ggl_operand dst, src[GGL_MAX_SRC];
    int n_src;

    ggl_operand slot; /* recurrent calls: slots of the tokens; region -1: none */
    int form;         /* the form that the step makes, for node and others; 0: it computes node */

    /* Parameters of the operator, which sets and reads only its own. */
    union {
        cpu_unary unary;
        cpu_binary binary;
        struct {
            int dim; /* sum, amax, split, concat, pick: the dimension along which they work */
        } along;
        struct {
            float eps; /* rms; l2: squared */
        } norm;
        struct {         /* rope, and its table */
            int n_terms; /* pairs in a row of the table */
            double mag;  /* of the table: factor of cosines and sines */
        } rope;
        struct {
            bool bf16;         /* of products of gradients: they are of pairs of bf16 */
            bool batch_of_w;   /* the outer index of a matrix is y's dimension 3, not 2 */
            const bool *waits; /* while true, the matrices are at `original`; NULL: never */
            ggl_loc original;
            /* may_skip: the only reader is a `where` that takes those rows alone for which this holds, or (if_not) does not */
            bool may_skip, if_not;
            ggl_operand taken;
        } linear;
        struct {              /* cache, which sets `kept` only, and attend */
            cpu_kept kept[2]; /* keys, values; the latter may be absent */
            float scale, cap; /* cap 0: none */
            int64_t window;   /* positions that are visible; 0: all */
            int most;         /* queries of a group */
        } attend;
        cpu_kept state; /* state, keep, recent, short_conv */
        struct {
            cpu_kept state;
            cpu_recur_kind kind;
        } recur;
    };

    size_t shared_size, thread_size; /* bytes of scratch, for all threads and for each */
    size_t shared_at, thread_at; /* offsets in the arena; thread t's at thread_at + t*thread_step */
};

typedef struct cpu_plan {
    ggl_plan base;
    ggl_program program;
    cpu_step *step;
    int n_step;
    size_t thread_step;
    double shareable; /* cost of the steps in the last run that were worth dividing among threads */
} cpu_plan;

/* The form of rope's tables; the other forms are a cpu_columns. */
enum { CPU_FORM_ROPE = CPU_N_COLUMNS };

/* For the compile() of operators: the largest batch, and the backend. */
int64_t ggl_cpu_compiler_n_max(const cpu_compiler *c);
const cpu_backend *ggl_cpu_compiler_backend(const cpu_compiler *c);
/* Returns the store and its place; s may be NULL. */
cpu_kept ggl_cpu_compiler_store(const cpu_compiler *c, const ggl_store *s);

/* ggl_backend_vtable.compile. */
ggl_status ggl_cpu_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err);
/* Finds products of which the only reader may take no row: sets linear.may_skip (takers.c). False: out of memory. */
bool ggl_cpu_find_takers(cpu_compiler *c);
/* Groups the steps: sets n_together and items of all (group.c). */
void ggl_cpu_group(cpu_step *step, size_t n_step, int64_t n_max);

/* ggl_backend_vtable.run, plan_free, describe and refuses; ggl_program_params.in_place, form and
 * joins. */
ggl_status ggl_cpu_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                       ggl_error *err);
void ggl_cpu_plan_free(ggl_backend *b, ggl_plan *p);
void ggl_cpu_describe(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size);
bool ggl_cpu_in_place(const ggl_tensor *node);
bool ggl_cpu_joins(const ggl_backend *b, const ggl_step *const *member, int n,
                   const ggl_step *next);
ggl_form ggl_cpu_form(const ggl_backend *b, const ggl_step *step);
const char *ggl_cpu_refuses(const ggl_backend *b, const ggl_tensor *node);

/* repack.c: quantized weights in the row-interleaved layout, f16 as rows of bf16. */
/* Returns the bytes of a repacked matrix with n_rows of k elements; 0: it is not repacked. */
size_t ggl_cpu_repacked_matrix_size(const cpu_backend *b, ggl_type type, int64_t n_rows, int64_t k);
size_t ggl_cpu_repack_size(const ggl_backend *b, const ggl_tensor *w);
ggl_status ggl_cpu_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                          ggl_error *err);
int64_t ggl_cpu_repack_rows(const ggl_backend *b, const ggl_tensor *w);
#define CPU_REPACK_LAYOUT "rows16 4" /* the number changes whenever the bytes change */

/* Returns the operator of a node, or, for a call, that of its composite; NULL if none. */
const cpu_op *ggl_cpu_op_of(const ggl_tensor *node);
/* Returns the operator that makes a form. */
const cpu_op *ggl_cpu_op_of_form(int form);
/* Returns the operator of a program's step; NULL if none. */
const cpu_op *ggl_cpu_op_of_step(const ggl_step *s);

/* Declares the operators of ops.def; some appear in several rows. */
#define OP(ID, op)        extern const cpu_op op;
#define COMPOSITE(ID, op) extern const cpu_op op;
#include "ops.def"
/* Forms (op_linear.c, op_rope.c). */
extern const cpu_op ggl_cpu_op_columns, ggl_cpu_op_rope_table;

/* Returns the store's first byte. */
static inline char *cpu_store(const cpu_task *t, const cpu_kept *k) {
    return t->region[k->at.region]->data + k->at.offset;
}

/* Returns the state of a slot. */
static inline char *cpu_slot(const cpu_task *t, const cpu_kept *k, int64_t slot) {
    return cpu_store(t, k) + (size_t)slot * k->store->slot_size;
}

/* Returns the thread's scratch: step->thread_size bytes, 64-byte aligned. */
static inline char *cpu_thread_scratch(const cpu_task *t, int thread) {
    return t->arena + t->step->thread_at + (size_t)thread * t->thread_step;
}

/* True if the units of a stack of matrices are in the order of their rows, and for the same rows in that of the matrices: on several
 * nodes of memory each node then has the same rows of all matrices, whichever of them a run needs. */
static inline bool cpu_rows_first(const cpu_backend *b) {
    return b->nodes.n > 1;
}

static inline int64_t cpu_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t cpu_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Returns the address of row r in v, which broadcasts to the shape of[]. Rows are numbered over
 * dimensions 1 to 3 of of[], dimension 1 fastest. */
static inline char *cpu_row(const cpu_view *v, const int64_t *of, int64_t r) {
    int64_t j = r % of[1], k = r / of[1] % of[2], l = r / of[1] / of[2];
    return v->p + (v->ne[1] == 1 ? 0 : (size_t)j * v->nb[1]) +
           (v->ne[2] == 1 ? 0 : (size_t)k * v->nb[2]) + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]);
}

/* Returns the bytes from each row to the next one, if there are several and they are the same for all, as numbered above; else 0. */
static inline size_t cpu_row_step(const cpu_view *v, const int64_t *of) {
    size_t step = 0;
    int64_t n = 1; /* rows so far */
    for (int d = 1; d < GGL_MAX_DIMS; n *= of[d++]) {
        if (of[d] == 1)
            continue;
        if (v->ne[d] != of[d] || (n > 1 && v->nb[d] != step * (size_t)n))
            return 0;
        step = n == 1 ? v->nb[d] : step;
    }
    return step;
}

static inline int64_t cpu_n_rows(const cpu_view *v) {
    return ggl_extents(v->ne, 1, GGL_MAX_DIMS, 1);
}

#endif
