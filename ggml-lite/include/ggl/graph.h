/* Tensors and graphs. A graph is built once, node by node; every node's shape is checked when it is
 * made. All values may have one extent that is known only at each run: the batch (a language
 * model's tokens). It is not part of a value's own dimensions and always outermost: ne[3] == GGL_N.
 * Everything else is fixed when the graph is built.
 *
 *     ggl_graph *g = ggl_graph_new(NULL);
 *     int64_t in[] = {64}, shape[] = {64, 32};
 *     ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, in, true);         // [64], batched
 *     ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, shape, data);     // [64, 32]
 *     ggl_tensor *y = ggl_linear(g, x, w, NULL);                             // [32], batched
 *     ggl_graph_output(g, "y", y);
 *     if (ggl_graph_finish(g, &err) != GGL_OK) ...
 *
 * Errors are sticky: a builder call that fails returns NULL and leaves the first error in the
 * graph; NULL operands make later calls return NULL. So a builder reads straight down and checks
 * once, in ggl_graph_finish or ggl_graph_error. */
#ifndef GGL_GRAPH_H
#define GGL_GRAPH_H

#include "ggl/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GGL_MAX_DIMS
#define GGL_MAX_DIMS 4
#endif
#define GGL_BATCH_DIM 3    /* the dimension that may be GGL_N */
#define GGL_N         (-1) /* "as many as the run says" */
#define GGL_MAX_NODES (1 << 20)
#define GGL_PAGE      64 /* positions in a page of a store of rows */

typedef enum ggl_op {
#define OP(ID, name, signature, rule, result, text) GGL_OP_##ID,
#include "ggl/ops.def"
#undef OP
    GGL_OP_COUNT
} ggl_op;

typedef struct ggl_graph ggl_graph;
typedef struct ggl_tensor ggl_tensor;

/* --- the operator table ----------------------------------------------------------------------- */

typedef enum ggl_param_kind {
    GGL_PARAM_TENSOR,
    GGL_PARAM_NUMBER,
    GGL_PARAM_SUPPLIED
} ggl_param_kind;

typedef struct ggl_param { /* one argument of an operator, read off its signature */
    ggl_param_kind kind;
    char name[16];
    bool optional;   /* '?', or there is a default */
    bool variadic;   /* '#size..' */
    double fallback; /* the default; NaN: absent */
} ggl_param;

typedef struct ggl_op_info {
    const char *name, *signature, *text;
    int n_params;
    bool callable; /* by name, from a descriptor */
} ggl_op_info;

GGL_API ggl_op_info ggl_op_get(ggl_op op);
GGL_API ggl_param ggl_op_param(ggl_op op, int k);
/* The operator of that name or symbol; GGL_OP_COUNT: none. */
GGL_API ggl_op ggl_op_find(const char *name);

/* --- tensors ---------------------------------------------------------------------------------- */

typedef enum ggl_store_kind {
    GGL_STORE_KEYS,   /* rows by position, those of a page with positions side by side */
    GGL_STORE_VALUES, /* rows by position, one after another */
    GGL_STORE_STATE   /* one array for each slot, f32 */
} ggl_store_kind;

/* What a sequence keeps between runs. Each slot has slot_size bytes. Rows lie in pages of 64
 * positions, and in these by head: [n_pos / 64][n_head][page of 64 rows], a page having the bytes
 * of 64 rows of the type (f32, f16, bf16, q8_0, q4_0; ggl_store_can_keep) in any case:
 *
 *     values               64 rows in the type's own layout
 *     keys, not quantized  element[dim][64]
 *     keys, q8_0           for each 32 dimensions: i8 code[32][64], f16 scale[64]
 *     keys, q4_0           for each 32 dimensions: u8 code[16][64], f16 scale[64]; the low half of
 *                          code[i] is dimension i, the high half dimension i + 16
 *
 * Rows of quantized types have whole blocks of 32. Position p lies at p % n_pos, so that a store is
 * a ring if n_pos is less than the largest position. */
typedef struct ggl_store {
    int id, group;
    const char *name;
    ggl_store_kind kind;
    ggl_type type;
    int64_t ne[3];    /* rows: dim, n_head, 1; state: its shape */
    int64_t n_pos;    /* rows: positions kept, a multiple of 64; state: 1 */
    size_t slot_size; /* bytes; a multiple of 64 */
} ggl_store;

/* The body of a call: params in the order of the call's sources; nodes in order; the result is one
 * of them (or a param). A recurrent body has states and is defined token after token. */
typedef struct ggl_body {
    ggl_tensor **param;
    int n_param;
    ggl_tensor **node;
    int n_node;
    ggl_tensor *result;
    bool recurrent;
} ggl_body;

struct ggl_tensor {
    ggl_op op;
    ggl_type type;
    int id;     /* unique in the graph, bodies included */
    int n_dims; /* of the value, without the batch; 0: one number (for each of the batch) */
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims; ne[3] is GGL_N if it depends on
                                 the batch. Values have at most 3 dimensions; weights and views of
                                 them have 4 */
    const char *dim_name[GGL_MAX_DIMS]; /* the expression a dimension came from, for messages; may
                                           be NULL */
    int group; /* which part of the model (layer); -1: none. Where it runs is decided by group */
    const char *name, *origin; /* "blk.3 q", "llama.arch:31"; may be NULL */
    ggl_tensor **src;          /* in the order of the signature's tensors; an absent one is NULL */
    int n_src;
    double *num; /* in the order of the signature's numbers; an absent one is NaN */
    int n_num;
    /* WEIGHT: bytes in host memory.  CONST: data is ne[0]*..*ne[3] values of `type`, owned by the
     * graph. */
    const void *data;
    size_t size;
    ggl_store *store[2]; /* CACHE: keys, values (NULL: values are the leading part of the keys).
                            STATE: the state */
    ggl_body *body;      /* CALL */
    const char *call;    /* CALL: the name backends may know; NULL: none */
    int scope;           /* the builder's: which body it was made in; 0: none */

    /* Facts that the builder finds out about a node (graph/facts.c). Everything that plans or runs a
     * graph reads these, and derives none of them again. */
    /* the weight whose elements these are, where they lie: a WEIGHT itself, RESHAPE and SPLIT of a
     * view. NULL: no view. A view needs no memory and no step; whoever reads it reads the weight */
    ggl_tensor *view_of;
    bool dense;       /* a view without gaps between its elements */
    bool gather;      /* PICK of whole matrices from a stack [in, out, n] that is the same for the
                            whole batch. LINEAR reads stack and index itself: see ggl_read */
    bool keeps_state; /* CALL: there is a STATE in its body, or in a body within it */
    /* Set by ggl_graph_finish, and again by ggl_graph_fold and ggl_sched_new. */
    bool needed;   /* an output depends on it */
    bool computed; /* a backend computes it: needed, no leaf, no view, and no gather that only
                      products read. Computed numbers are f32, or i32 */
};

static inline bool ggl_is_batched(const ggl_tensor *t) {
    return t->ne[GGL_BATCH_DIM] == GGL_N;
}
/* Nothing computes it. */
static inline bool ggl_is_leaf(const ggl_tensor *t) {
    return t->op == GGL_OP_INPUT || t->op == GGL_OP_WEIGHT || t->op == GGL_OP_CONST;
}
/* True if t is a weight, a view of one, or a gather of its matrices. */
static inline bool ggl_is_of_weight(const ggl_tensor *t) {
    return t->view_of || (t->gather && t->src[0]->view_of);
}
/* The tensors that the step of a node reads: how many, and the k-th, NULL if it is absent. They are
 * node->src, except that a LINEAR whose matrix is a gather reads the stack as read 1 and the index as
 * read 3. */
GGL_API int ggl_n_reads(const ggl_tensor *node);
GGL_API ggl_tensor *ggl_read(const ggl_tensor *node, int k);

/* Extents are bounded when a node is made: a weight, or a value for the largest batch, has at most
 * GGL_MAX_ELEMENTS elements. So products of extents fit into int64_t. Sums of sizes do not have to,
 * and are checked. */
#define GGL_MAX_ELEMENTS ((int64_t)1 << 48)
/* Elements of one of the batch; of all, if t does not depend on it. */
GGL_API int64_t ggl_count(const ggl_tensor *t);
/* The product of extents first .. end-1; n takes the place of GGL_N. Products of extents are taken
 * here, where they are known to fit. */
static inline int64_t ggl_extents(const int64_t *ne, int first, int end, int64_t n) {
    int64_t count = 1;
    for (int d = first; d < end; d++)
        count *= ne[d] == GGL_N ? n : ne[d];
    return count;
}
/* Bytes of t, in its type, for n of the batch (of all, if it does not depend on the batch). The
 * memory of every value is sized here. False: a row is no whole number of blocks, or *out would wrap. */
GGL_API GGL_NODISCARD bool ggl_value_bytes(const ggl_tensor *t, int64_t n, size_t *out);
/* The same for a value of these extents that is stored in another type. */
GGL_API GGL_NODISCARD bool ggl_extents_bytes(ggl_type type, const int64_t ne[GGL_MAX_DIMS],
                                             int64_t n, size_t *out);
/* "[n_ff = 96, 4]", with the batch left out; returns buf. */
GGL_API const char *ggl_shape_text(const ggl_tensor *t, char *buf, size_t size);
/* "blk.2 q = rope_pair(..)", "blk.0 linear(.., blk.0.ffn_up.weight)", for people; returns buf. */
GGL_API const char *ggl_node_text(const ggl_tensor *t, char *buf, size_t size);

/* --- building --------------------------------------------------------------------------------- */

typedef struct ggl_graph_params {
    int64_t n_pos;           /* positions a store of rows keeps (the context); default 4096 */
    int64_t n_batch;         /* most of the batch in one run: rings are larger by it; default 512 */
    int64_t n_slots;         /* sequences; default 1 */
    ggl_type type_k, type_v; /* of stored rows; default f16 */
} ggl_graph_params;

GGL_API ggl_graph_params ggl_graph_default(void);
GGL_API ggl_graph *ggl_graph_new(
    const ggl_graph_params *params); /* NULL params: defaults. NULL: out of memory */
GGL_API void ggl_graph_free(ggl_graph *g);
GGL_API const ggl_graph_params *ggl_graph_get_params(const ggl_graph *g);
/* The first error, or GGL_OK. */
GGL_API ggl_status ggl_graph_error(const ggl_graph *g, ggl_error *err);

/* Leaves. Names are copied; a weight's data is borrowed until the graph is freed. A name that an
 * operator wants (@pos,
 * @slot) must have been declared as input before: i32, no dimensions, batched. */
GGL_API ggl_tensor *ggl_graph_input(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                                    const int64_t *ne, bool batched);
GGL_API ggl_tensor *ggl_graph_weight(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                                     const int64_t *ne, const void *data);
GGL_API ggl_tensor *ggl_graph_number(ggl_graph *g, double value);
GGL_API ggl_tensor *ggl_graph_const(ggl_graph *g, int n_dims, const int64_t *ne,
                                    const double *data);

/* Any operator: sources and numbers in the order of its signature (supplied ones left out); absent
 * tensors NULL, absent numbers NaN. The shape is checked; the message speaks of dim_name where
 * there are any. */
GGL_API ggl_tensor *ggl_graph_op(ggl_graph *g, ggl_op op, ggl_tensor *const *src, int n_src,
                                 const double *num, int n_num);
static inline ggl_tensor *ggl_unary(ggl_graph *g, ggl_op op, ggl_tensor *x) {
    return ggl_graph_op(g, op, &x, 1, NULL, 0);
}
static inline ggl_tensor *ggl_binary(ggl_graph *g, ggl_op op, ggl_tensor *a, ggl_tensor *b) {
    ggl_tensor *src[2];
    src[0] = a;
    src[1] = b;
    return ggl_graph_op(g, op, src, 2, NULL, 0);
}
static inline ggl_tensor *ggl_linear(ggl_graph *g, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias) {
    ggl_tensor *src[3];
    src[0] = x;
    src[1] = w;
    src[2] = bias;
    return ggl_graph_op(g, GGL_OP_LINEAR, src, 3, NULL, 0);
}

/* Composites. Nodes made between begin and end belong to the body: its params stand for the call's
 * sources. A state makes it recurrent. `name` is what a backend may know it by (NULL: none), num
 * what the kernel needs besides (eps, k).
 *
 *     ggl_tensor *p = ggl_body_begin(g, &x, 1)[0];
 *     .. nodes that read p, and the last of them, y ..
 *     ggl_tensor *call = ggl_body_end(g, "silu", y, NULL, 0);
 *
 * begin returns the params (valid until end), NULL on error; end returns the call. Bodies nest. A
 * value of outside that is used within becomes one more source of the call, and a param, by itself;
 * leaves need not. */
GGL_API ggl_tensor **ggl_body_begin(ggl_graph *g, ggl_tensor *const *src, int n_src);
GGL_API ggl_tensor *ggl_body_end(ggl_graph *g, const char *name, ggl_tensor *result,
                                 const double *num, int n_num);
GGL_API ggl_tensor *ggl_graph_output(ggl_graph *g, const char *name, ggl_tensor *t);

/* For all nodes made from here on: the group, and the text that says where they come from (copied).
 */
GGL_API void ggl_graph_set_group(ggl_graph *g, int group);
GGL_API void ggl_graph_set_origin(ggl_graph *g, const char *origin);
GGL_API void ggl_tensor_set_name(ggl_graph *g, ggl_tensor *t, const char *name); /* copied */
GGL_API void ggl_tensor_set_dim_name(ggl_graph *g, ggl_tensor *t, int dim,
                                     const char *name); /* copied */

/* Marks what is needed, sizes the stores (rings where all readers have windows), inserts nothing.
 * After it the graph can only be read, folded, and freed. */
GGL_API GGL_NODISCARD ggl_status ggl_graph_finish(ggl_graph *g, ggl_error *err);

/* --- reading ---------------------------------------------------------------------------------- */

GGL_API int ggl_graph_n_ids(const ggl_graph *g);   /* ids are 0 .. n-1 */
GGL_API int ggl_graph_n_nodes(const ggl_graph *g); /* top-level nodes and leaves, in order */
GGL_API ggl_tensor *ggl_graph_node(const ggl_graph *g, int i);
GGL_API int ggl_graph_n_outputs(const ggl_graph *g);
GGL_API ggl_tensor *ggl_graph_get_output(const ggl_graph *g, int i);
GGL_API ggl_tensor *ggl_graph_find_input(const ggl_graph *g, const char *name);
GGL_API int ggl_graph_n_inputs(const ggl_graph *g);
GGL_API ggl_tensor *ggl_graph_get_input(const ggl_graph *g, int i);
GGL_API int ggl_graph_n_stores(const ggl_graph *g);
GGL_API ggl_store *ggl_graph_store(const ggl_graph *g, int i);

/* --- rows of a store -------------------------------------------------------------------------- */

/* Whether rows may be kept in that type. */
GGL_API bool ggl_store_can_keep(ggl_type type);
/* Bytes of the first n_pos positions of a slot (whole pages), or of a state. False: too many. */
GGL_API bool ggl_store_size(const ggl_store *s, int64_t n_pos, size_t *out);
/* Bytes from the start of a slot to the page of head h that has position pos. */
GGL_API size_t ggl_store_page(const ggl_store *s, int64_t pos, int64_t h);
/* Head h of position pos, rounded as the type's from_float does; and what it decodes to. slot: the
 * slot's bytes in host memory; row: f32[dim]. */
GGL_API void ggl_store_put(const ggl_store *s, void *slot, int64_t pos, int64_t h,
                           const float *row);
GGL_API void ggl_store_get(const ggl_store *s, const void *slot, int64_t pos, int64_t h,
                           float *row);
/* Dimensions first .. first + n-1 of all positions of a page of keys: out[i][position]. first is a
 * multiple of 32; n at most 32. */
GGL_API void ggl_keys_unpack(ggl_type type, const void *page, int64_t first, int n,
                             float (*out)[GGL_PAGE]);

#ifdef __cplusplus
}
#endif
#endif
