/* Internals of the Vulkan backend: features of the device, memory, pipelines, and the interface
 * of operators. A plan is a list of steps; each step's operator turns it into one or more
 * dispatches. A plan is recorded into a command buffer at its first run and replayed after that.
 * More in docs/vulkan.md. */
#ifndef VULKAN_H
#define VULKAN_H

#include "ggl/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/program.h"
#include "loader.h"
#include "push.h"
#include "spec.h"

enum {
    VK_LEAST_BIND = 9,  /* buffers of a shader, without which a device is refused */
    VK_MAX_BIND = 14,   /* of attention to later rows, or by distance */
    VK_MAX_PUSH = 32,   /* words: the 128 bytes that every device supports */
    VK_MAX_LOCAL = 128, /* invocations per workgroup that every device supports */
    VK_MAX_GROUPS = 65535
};

typedef enum vk_shader {
#define SHADER(ID, file, defines) VK_SHADER_##ID,
#include "shaders.def"
#undef SHADER
    VK_SHADER_COUNT
} vk_shader;

/* --- the device ------------------------------------------------------------------------------- */

/* Features that are used: those of the device without those that the mask disables. The mask
 * uses these names. */
typedef struct vk_features {
    bool storage16; /* buffers of 16-bit numbers, which shaders convert to compute with */
    bool storage8;  /* the same for 8-bit numbers */
    bool subgroup;  /* subgroupAdd and similar functions in compute shaders; SUBGROUP */
    bool idot;      /* dot products of four bytes in one device instruction; IDOT */
    bool half;      /* the device converts f16, subnormal numbers included, exactly; HALF */
    bool matrix;    /* matrix units multiply f16 */
    bool import;    /* host memory can be used in place */
    bool peer;      /* other devices can copy from this one's memory, and it from theirs */
    bool map;       /* the device's memory can be mapped if it is also the host's */
    bool budget;    /* the driver reports how much memory is free */
    bool repack;    /* weights of products are repacked */
    bool fuse;      /* chains of steps are one dispatch */
    bool ahead;     /* a load takes so long that many should be under way */
    bool range;     /* bindings may be as large as the device allows; otherwise 64 KiB */
    bool pace;      /* submissions may be as long as the device's speed allows; otherwise short */
} vk_features;

/* The matrices that the device multiplies: M x K by K x N. */
typedef struct vk_matrix {
    uint32_t m, n, k;
} vk_matrix;

typedef struct vk_limits {
    uint32_t subgroup_size;
    uint32_t offset_align; /* alignment of a binding's start */
    uint32_t max_range;    /* most bytes of a binding */
    uint32_t shared_size;  /* bytes of shared memory of a workgroup */
    uint32_t local_size;   /* most invocations of a workgroup */
    uint32_t n_bind;       /* most buffers of a shader: VK_LEAST_BIND to VK_MAX_BIND */
    vk_matrix matrix;      /* with the feature */
    uint32_t units;        /* that run workgroups beside each other */
    size_t import_align;   /* alignment of imported host memory */
    uint32_t shared_kind;  /* of handles of its memory (share.h); 0 if none */
} vk_limits;

typedef struct vk_device vk_device;       /* device.c */
typedef struct vk_pipelines vk_pipelines; /* pipelines.c */
typedef struct vk_staging vk_staging;     /* memory.c */

typedef struct vk_backend {
    ggl_backend base;
    ggl_profile_fn *profile; /* NULL: do not measure */
    void *profile_ctx;
    vk_functions f;
    vk_features features;
    vk_limits limits;
    vk_device *device;
    vk_pipelines *pipelines;
    vk_staging *staging;
    ggl_buffer *codebooks; /* weights.c; VK_CODEBOOKS */
    ggl_buffer *nothing;   /* bound in place of absent operands */
    ggl_buffer *counters;  /* VK_COUNTERS; the next that a dispatch gets begin at this offset */
    size_t counters_at;
    /* made so far, for tests */
    uint64_t n_recordings, n_pipelines, n_submissions;
} vk_backend;

/* --- operators -------------------------------------------------------------------------------- */

typedef struct vk_recording vk_recording; /* recording.c */

/* Regions besides those of plans: the codebooks that some types use; a word with the size of
 * the batch that a recording runs; and words that are 0 before and after each dispatch (shaders/last.glsl). */
enum { VK_CODEBOOKS = -2, VK_BATCH_SIZE = -3, VK_COUNTERS = -4 };
enum { VK_COUNTERS_SIZE = 1 << 16, VK_MOST_COUNTERS = 1 << 12 }; /* bytes; words of a dispatch */

/* A range of a region that a dispatch uses. */
typedef struct vk_binding {
    int region; /* -1: an absent operand; a small buffer is bound, which must not be read */
    size_t offset, size;
    bool write;
    bool kept; /* a store, which other dispatches may write */
} vk_binding;

/* A dispatch, as described by an operator. */
typedef struct vk_call {
    vk_shader shader;
    vk_spec spec;                 /* specialization constants: VK_SPEC sets which, and n_spec */
    int n_spec;                   /* words */
    vk_binding bind[VK_MAX_BIND]; /* storage buffers: set 0, binding 0, 1, .. */
    int n_bind;
    vk_push push;       /* push constants: VK_PUSH sets which, and n_push */
    int n_push;         /* words */
    uint32_t groups[3]; /* 0 counts as 1 */
    /* All subgroups are full, with limits.subgroup_size invocations: spec.word[0] is a multiple
     * of it. Only with features.matrix. */
    bool full_subgroups;
} vk_call;

/* The work of an operator: a step and a range of the batch's elements. Usually these are all
 * tokens; in a loop, one per turn; and a few at a time if an operand is larger than a binding.
 * Operators use only n: ggl_vk_bind finds the first token. */
typedef struct vk_emit {
    vk_backend *b;
    const ggl_step *step;
    ggl_operand slot;         /* for a recurrent composite: each token's slot; region -1: none */
    int64_t n;                /* number of tokens */
    int64_t first;            /* the first token; 0 in a loop */
    int64_t turn;             /* turn of a loop */
    size_t scratch;           /* offset of the step's scratch in the arena */
    const ggl_loc *store_loc; /* by store id */
    int64_t n_slots;
    vk_recording *recording; /* NULL while compiling */
    struct vk_count *count;  /* NULL: dispatches are not counted */
} vk_emit;

/* Returns extent d of an operand: n if it is the batch. */
int64_t ggl_vk_extent(const vk_emit *e, const ggl_operand *o, int d);
/* Return the number of elements, and of rows. */
int64_t ggl_vk_count(const vk_emit *e, const ggl_operand *o);
int64_t ggl_vk_rows(const vk_emit *e, const ggl_operand *o);
/* Returns the stride along d in elements (block types: bytes); 0 if the extent is 1, so that the
 * operand is repeated. */
uint32_t ggl_vk_stride(const vk_emit *e, const ggl_operand *o, int d);
/* True if the operand's elements are contiguous. */
bool ggl_vk_is_dense(const vk_emit *e, const ggl_operand *o);

/* Binds operand o as the next binding. Returns the offset to add to addresses in it, because
 * bindings begin only at multiples of limits.offset_align: in elements, for block types in
 * bytes. An absent operand may be bound, too. */
uint32_t ggl_vk_bind(vk_emit *e, vk_call *c, const ggl_operand *o, bool write);
/* Binds `size` bytes of o from `offset` on, for weights larger than limits.max_range. */
uint32_t ggl_vk_bind_part(vk_emit *e, vk_call *c, const ggl_operand *o, size_t offset, size_t size,
                          bool write);
/* Binds bytes of a region, such as scratch (GGL_REGION_ARENA). Returns the offset in bytes. */
uint32_t ggl_vk_bind_bytes(vk_emit *e, vk_call *c, int region, size_t offset, size_t size,
                           bool write);
/* Binds n counters, at most VK_MOST_COUNTERS, from the binding's first word on. */
void ggl_vk_bind_counters(vk_emit *e, vk_call *c, size_t n);
/* Binds all slots of a store. Returns the offset in bytes. */
uint32_t ggl_vk_bind_store(vk_emit *e, vk_call *c, const ggl_store *s, bool write);

/* Returns the bytes from the operand's first element to the end of its last. */
size_t ggl_vk_span(const vk_emit *e, const ggl_operand *o);
/* Binds n operands of one region as the next binding; operand i takes size[i] bytes. Returns the
 * binding's size; if it is more than ggl_vk_most_bound(), the call cannot be emitted. at[i]: what to
 * add to addresses in operand i, in bytes. Operands may be absent, but then all are. */
size_t ggl_vk_bind_together(vk_emit *e, vk_call *c, const ggl_operand *const *o, const size_t *size,
                            int n, bool write, uint32_t *at);

/* The words of a shader's specialization constants. */
#define VK_N_SPEC(shader) (int)(sizeof(vk_spec_##shader) / sizeof(uint32_t))
/* In the initializer of a call: the specialization constants of a shader (spec.h). Those that are
 * not given are 0. */
#define VK_SPEC(shader, ...) .spec.shader = {__VA_ARGS__}, .n_spec = VK_N_SPEC(shader)
/* Makes the call push the constants of a shader (push.h), and returns where they are; all are 0 at first. */
#define VK_PUSH(c, shader)                                                                         \
    ((c)->n_push = (int)(sizeof(c)->push.shader / sizeof(uint32_t)), &(c)->push.shader)
/* Writes the strides of an operand: all four; those of dimensions 1 to 3. */
void ggl_vk_strides(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS]);
void ggl_vk_outer_strides(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS - 1]);
/* Writes the extents of dimensions 1 to 3. */
void ggl_vk_outer_extents(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS - 1]);

/* Returns the workgroups of `local` invocations for this number of items, at most VK_MAX_GROUPS;
 * shaders loop over any further items. */
uint32_t ggl_vk_groups(int64_t items, uint32_t local);

/* While compiling: notes the pipeline and checks the call against the device's limits. While
 * recording: records it, after a barrier if it reads or overwrites what calls since the last
 * barrier have written. */
ggl_status ggl_vk_dispatch(vk_emit *e, const vk_call *c, ggl_error *err);

typedef struct vk_op {
    /* Emits the step's dispatches. Called when a plan is compiled, with its largest batch, and
     * for each recording. */
    ggl_status (*emit)(vk_emit *e, ggl_error *err);
    /* Returns the bytes of scratch for n tokens; NULL: none. */
    size_t (*scratch)(const vk_backend *b, const ggl_step *step, int64_t n);
    /* Returns the form in which the step reads a source; NULL: it reads all as they are. */
    ggl_form (*form)(const vk_backend *b, const ggl_step *step);
    /* Returns how many of the n steps of a chain, whose first step has this operator, emit() emits
     * together; 1: only the first. NULL: always 1. (ggl_program_params.chain) */
    int (*chain)(const vk_backend *b, const ggl_step *step, int n);
    /* Returns whether emit() emits `next` together with the n steps member[]. Their operators all have
     * this function, and the same emit(). NULL: it never does. (ggl_program_params.joins) */
    bool (*joins)(const vk_backend *b, const ggl_step *const *member, int n, const ggl_step *next);
    /* Returns whether emit() emits this chain with the n steps member[] before it, which have this
     * operator. NULL: it never does. (ggl_program_params.tail) */
    bool (*tail)(const vk_backend *b, const ggl_step *const *member, int n, const ggl_step *chain);
    /* Returns why this node cannot run, or NULL. A NULL function: any node can. */
    const char *(*refuses)(const vk_backend *b, const ggl_tensor *node);
    /* each element of the result may overwrite the same element of a source */
    bool in_place;
} vk_op;

/* Returns the operator for a node, from ops.def; NULL: none. */
const vk_op *ggl_vk_op_of(const ggl_tensor *node);
/* Returns the operator that emits a step: that of its node, of its form, or of the loose chain that it begins. NULL: none. */
const vk_op *ggl_vk_op_of_step(const ggl_step *step);
const char *ggl_vk_refuses(const ggl_backend *b, const ggl_tensor *node);
bool ggl_vk_in_place(const ggl_tensor *node);
ggl_form ggl_vk_form(const ggl_backend *b, const ggl_step *step);
int ggl_vk_chain(const ggl_backend *b, const ggl_step *step, int n);
int ggl_vk_loose_chain(const ggl_backend *b, const ggl_step *step, int n);
bool ggl_vk_joins(const ggl_backend *b, const ggl_step *const *member, int n, const ggl_step *next);
bool ggl_vk_tail(const ggl_backend *b, const ggl_step *const *member, int n, const ggl_step *chain);
/* Returns how many entries of a program the step takes, with all members and links, and a tail. */
int ggl_vk_n_entries(const ggl_step *step);
/* Returns the chain after the members of a group; NULL if none. */
const ggl_step *ggl_vk_tail_of(const ggl_step *step);
/* Chains (ggl_step.n_links). Returns the operand of a link with two sources that is not the result
 * of the link before. */
const ggl_operand *ggl_vk_other(const ggl_step *link);
/* Returns the link that makes a form, which is the last; NULL if none. */
const ggl_step *ggl_vk_form_link(const ggl_step *step);
/* For vk_op.chain. True if the second of n links applies a binary operator to the first one's result,
 * which nothing else reads, and to f32 values. */
bool ggl_vk_feeds(const ggl_step *step, int n, ggl_op op);
/* Returns so_far links, or one more if the next of the n links makes a form, and rows of the last one's result are whole
 * blocks: the form's rows may be several of them. */
int ggl_vk_and_form(const ggl_step *step, int n, int so_far);
/* Emits rotations, stores, chains of both, and groups of these (op_cache.c). */
ggl_status ggl_vk_emit_rows(vk_emit *e, ggl_error *err);
/* vk_op.joins of rotations and stores. */
bool ggl_vk_rows_join(const vk_backend *b, const ggl_step *const *member, int n,
                      const ggl_step *next);
/* Emits a rotation by itself (op_rope.c). */
ggl_status ggl_vk_emit_rope(vk_emit *e, const ggl_step *step, ggl_error *err);
/* A sum and its norm, whose chain begins with the operator of the sum (op_rows.c). */
ggl_status ggl_vk_emit_add_norm(vk_emit *e, ggl_error *err);
int ggl_vk_add_norm_chain(const vk_backend *b, const ggl_step *step, int n);
/* The kind of an elementwise operator (shaders/kinds.h), and whether it is a function of one number. */
uint32_t ggl_vk_kind_of(const ggl_tensor *node);
bool ggl_vk_is_unary(const ggl_tensor *node);
/* For vk_op.refuses of operators that take only f32. */
const char *ggl_vk_refuses_all_but_f32(const vk_backend *b, const ggl_tensor *node);

/* Declares the operators of ops.def; some appear in several rows. */
#define OP(ID, op)        extern const vk_op op;
#define COMPOSITE(ID, op) extern const vk_op op;
#include "ops.def"
/* Makes the only form that there is: columns rounded to bytes. */
extern const vk_op ggl_vk_op_round;
/* Loose chains: the choice of experts and their shares. */
extern const vk_op ggl_vk_op_route;

#endif
