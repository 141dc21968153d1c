/* The Vulkan backend's insides: what a device can, memory, pipelines, and what operators are made
 * of. A plan is a list of steps; each step's operator turns it into one or more dispatches. It is
 * recorded into a command buffer when a run meets it for the first time, and replayed after that.
 * docs/vulkan.md tells the rest. */
#ifndef VULKAN_H
#define VULKAN_H

#include "ggl/backends.h"
#include "ggl/program.h"
#include "loader.h"

enum {
    VK_MAX_BIND = 8,
    VK_MAX_SPEC = 8,
    VK_MAX_PUSH = 32,   /* words: the 128 bytes that every device has */
    VK_MAX_LOCAL = 128, /* invocations of a workgroup that every device has */
    VK_MAX_GROUPS = 65535
};

typedef enum vk_shader {
#define SHADER(ID, file, defines) VK_SHADER_##ID,
#include "shaders.def"
#undef SHADER
    VK_SHADER_COUNT
} vk_shader;

/* --- the device ------------------------------------------------------------------------------- */

/* What may be used: what the device has, less what the mask takes away. The names are the mask's.
 */
typedef struct vk_features {
    bool storage16; /* buffers of 16-bit numbers, which shaders convert but do not calculate with */
    bool storage8;  /* likewise of 8-bit numbers */
    bool subgroup;  /* subgroupAdd and its like in compute shaders; SUBGROUP */
    bool idot;      /* dot products of four bytes, in one instruction of the device; IDOT */
    bool import;    /* host memory can be used in place */
    bool map;       /* the device's own memory can be mapped where it is the host's, too */
    bool budget;    /* the driver tells how much memory is free */
    bool range;     /* bindings may be as large as the device has them, else of 64 KiB */
} vk_features;

typedef struct vk_limits {
    uint32_t subgroup_size;
    uint32_t offset_align; /* bindings begin at multiples of it */
    uint32_t max_range;    /* bytes of one binding */
    size_t import_align;   /* of imported host memory */
} vk_limits;

typedef struct vk_device vk_device;       /* device.c */
typedef struct vk_pipelines vk_pipelines; /* pipelines.c */
typedef struct vk_staging vk_staging;     /* memory.c */

typedef struct vk_backend {
    ggl_backend base;
    ggl_profile_fn *profile; /* NULL: nothing is measured */
    void *profile_ctx;
    vk_functions f;
    vk_features features;
    vk_limits limits;
    vk_device *device;
    vk_pipelines *pipelines;
    vk_staging *staging;
    ggl_buffer *codebooks; /* weights.c; VK_CODEBOOKS */
    ggl_buffer *nothing;   /* what is bound for an absent operand */
} vk_backend;

/* --- operators -------------------------------------------------------------------------------- */

typedef struct vk_recording vk_recording; /* recording.c */

/* A region of the backend's own, besides those of plans: what types with codebooks look up. */
enum { VK_CODEBOOKS = -2 };

/* Bytes of a region that a dispatch touches. */
typedef struct vk_binding {
    int region; /* -1: an absent operand: something small is bound that nothing may read */
    size_t offset, size;
    bool write;
} vk_binding;

/* One dispatch, as an operator asks for it. */
typedef struct vk_call {
    vk_shader shader;
    uint32_t spec[VK_MAX_SPEC]; /* specialisation constants 0, 1, ..; 0 is the workgroup's size */
    int n_spec;
    vk_binding bind[VK_MAX_BIND]; /* storage buffers: set 0, binding 0, 1, .. */
    int n_bind;
    uint32_t push[VK_MAX_PUSH]; /* push constants */
    int n_push;
    uint32_t groups[3]; /* 0 counts as 1 */
} vk_call;

/* What an operator works on: a step, and which items of the batch. Usually all of them; in a loop
 * one for each turn; and a few at a time where an operand would be more than one binding can
 * hold. Operators see none of this but n: ggl_vk_bind finds the place of the first item. */
typedef struct vk_emit {
    vk_backend *b;
    const ggl_step *step;
    ggl_operand slot; /* of a recurrent composite: which slot each item is of; region -1: none */
    int64_t n;        /* items of the batch */
    int64_t first;    /* the first of them; in a loop 0 */
    int64_t turn;     /* of a loop */
    size_t scratch;   /* offset of the step's scratch in the arena */
    const size_t *store_loc; /* by store id: offset of slot 0 in GGL_REGION_STORES */
    int64_t n_slots;
    vk_recording *recording; /* NULL while compiling */
} vk_emit;

/* Extent d of an operand: n where it is the batch. */
int64_t ggl_vk_extent(const vk_emit *e, const ggl_operand *o, int d);
/* Elements, and rows, of it. */
int64_t ggl_vk_count(const vk_emit *e, const ggl_operand *o);
int64_t ggl_vk_rows(const vk_emit *e, const ggl_operand *o);
/* From one element to the next along d, in elements (of a block type: bytes); 0 where there is but
 * one, so that it serves all. */
uint32_t ggl_vk_stride(const vk_emit *e, const ggl_operand *o, int d);
/* Whether the operand's elements follow each other without gaps. */
bool ggl_vk_is_dense(const vk_emit *e, const ggl_operand *o);

/* Binds operand o as the next binding, and returns what must be added to addresses in it, as a
 * binding can only begin at multiples of limits.offset_align: in elements, of a block type in
 * bytes. An absent operand may be bound, too. */
uint32_t ggl_vk_bind(vk_emit *e, vk_call *c, const ggl_operand *o, bool write);
/* Likewise `size` bytes of it from `offset` on: of weights that are more than limits.max_range. */
uint32_t ggl_vk_bind_part(vk_emit *e, vk_call *c, const ggl_operand *o, size_t offset, size_t size,
                          bool write);
/* Likewise bytes of a region, such as scratch (GGL_REGION_ARENA); in bytes. */
uint32_t ggl_vk_bind_bytes(vk_emit *e, vk_call *c, int region, size_t offset, size_t size,
                           bool write);
/* All slots of a store; in bytes. */
uint32_t ggl_vk_bind_store(vk_emit *e, vk_call *c, const ggl_store *s, bool write);

/* The next push constant. */
void ggl_vk_push(vk_call *c, uint32_t x);
void ggl_vk_push_float(vk_call *c, float x);
/* The strides of an operand: four words. */
void ggl_vk_push_strides(const vk_emit *e, vk_call *c, const ggl_operand *o);

/* Workgroups of `local` invocations for so many items, at most VK_MAX_GROUPS: shaders go on to the
 * items beyond by a loop. */
uint32_t ggl_vk_groups(int64_t items, uint32_t local);

/* While compiling: makes the pipeline and checks the call against the device's limits. While
 * recording: records it, behind a barrier if it reads or overwrites what the calls since the last
 * one have written. */
ggl_status ggl_vk_dispatch(vk_emit *e, const vk_call *c, ggl_error *err);

typedef struct vk_op {
    /* Called when a plan is compiled, for as large a batch as it will have, and again for each
     * recording. */
    ggl_status (*emit)(vk_emit *e, ggl_error *err);
    /* Bytes of scratch for a batch of n; NULL: none. */
    size_t (*scratch)(const vk_backend *b, const ggl_step *step, int64_t n);
    /* Why the node cannot be run, though its operator can; NULL: it can always. */
    const char *(*refuses)(const vk_backend *b, const ggl_tensor *node);
    /* Each element of the result may be written over the element of a source at its place. */
    bool in_place;
} vk_op;

/* The operator or composite, by ops.def; NULL: there is none. */
const vk_op *ggl_vk_op_of(const ggl_tensor *node);
const char *ggl_vk_refuses(const ggl_backend *b, const ggl_tensor *node);
bool ggl_vk_in_place(const ggl_tensor *node);
/* What several operators have for vk_op.refuses. */
const char *ggl_vk_refuses_all_but_f32(const vk_backend *b, const ggl_tensor *node);

/* One declaration for each operator of ops.def; some stand in several rows. */
#define OP(ID, op)        extern const vk_op op;
#define COMPOSITE(ID, op) extern const vk_op op;
#include "ops.def"
#undef OP
#undef COMPOSITE

#endif
