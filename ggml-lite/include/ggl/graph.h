/* Tensors and graphs. A graph is built once, node by node; every node's shape is checked when the
 * node is made. Only one extent is not known until a run: the batch. It is not among a value's own
 * dimensions and always outermost: ne[3] == GGL_N. All other extents are fixed when the graph is
 * built.
 *
 *     ggl_graph *g = ggl_graph_new(NULL);
 *     int64_t in[] = {64}, shape[] = {64, 32};
 *     ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, in, true);         // [64], batched
 *     ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, shape, data);     // [64, 32]
 *     ggl_tensor *y = ggl_linear(g, x, w, NULL);                             // [32], batched
 *     ggl_graph_output(g, "y", y);
 *     if (ggl_graph_finish(g, &err) != GGL_OK) ...
 *
 * Errors are sticky: a builder call that fails returns NULL, the graph keeps the first error, and
 * all later builder calls return NULL. So callers check once, with ggl_graph_finish or
 * ggl_graph_error.
 *
 * Threads: one thread at a time builds a graph; when it is finished, any number may read it.
 *
 * Tier: versioned (docs/library.md says what that promises). */
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
#define GGL_N         (-1) /* the size of the batch, which each run chooses */
#define GGL_MAX_NODES (1 << 20)
/* The most rows of relative positions of an ATTEND node. */
#define GGL_MAX_REL_ROWS (1 << 14)
#define GGL_PAGE         64 /* positions in a page of a store of rows */

typedef enum ggl_op {
#define OP(ID, name, signature, rule, result, bits, kind, text) GGL_OP_##ID,
#include "ggl/ops.def"
#undef OP
    GGL_OP_COUNT
} ggl_op;

typedef struct ggl_graph ggl_graph;
typedef struct ggl_tensor ggl_tensor;

/* --- the operator table ----------------------------------------------------------------------- */

typedef enum ggl_op_kind {
    GGL_KIND_LEAF,      /* inputs, weights, constants */
    GGL_KIND_ELEMENT,   /* arithmetic and functions of single elements */
    GGL_KIND_ROW,       /* sums and the like along a dimension */
    GGL_KIND_CHOICE,    /* order, and what an index chooses */
    GGL_KIND_MOVE,      /* the same numbers at other places, or as another type */
    GGL_KIND_PRODUCT,   /* linear */
    GGL_KIND_POSITION,  /* rotations by position */
    GGL_KIND_ATTENTION, /* cache and attend */
    GGL_KIND_STATE,     /* what passes from one element of the batch to the next */
    GGL_KIND_CALL       /* a composite: its body says what it is */
} ggl_op_kind;

typedef struct ggl_op_info {
    const char *name, *signature, *text;
    int n_params;  /* arguments in the signature */
    bool callable; /* a descriptor can call it by name */
    bool exact;    /* moves, compares or counts; backends give the same result */
    ggl_op_kind kind;
} ggl_op_info;

GGL_API ggl_op_info ggl_op_get(ggl_op op);

/* --- tensors ---------------------------------------------------------------------------------- */

typedef enum ggl_store_kind {
    GGL_STORE_KEYS,   /* a row for each position and head */
    GGL_STORE_VALUES, /* the same; in another layout */
    GGL_STORE_STATE   /* one f32 array for each slot */
} ggl_store_kind;

/* Memory that outlives a run: the keys or values of a KV cache, or a recurrent state, of all slots
 * (sequences). The states of the slots lie one after another. Rows lie in pages of 64 positions of
 * all heads. All slots share the pages; the graph's input "page" says which of them hold the
 * positions of a slot: see ggl_graph_n_pages. Only if all readers have a window, and windows for all
 * slots take fewer pages, is a store a ring: each slot has n_pos / 64 pages of its own, one slot's
 * after another's, and position p is stored at p % n_pos. In a page, each head has the bytes of 64
 * rows of the type (one of f32, f16, bf16, q8_0, q4_0), laid out as follows:
 *
 *     values, not quantized  element[64][dim]: 64 rows in the type's own layout
 *     keys, not quantized    element[dim][64]
 *     quantized              for each 32 dimensions: the codes, then f16 scale[64]
 *       keys, q8_0           u8 code[8][64][4]: [i][j][k] is dimension 4 i + k of position j
 *       values, q8_0         u8 code[16][32][4]: [j][i][k] is dimension i of position 4 j + k
 *       keys, q4_0           u8 code[4][64][4]: the same, with two codes in a byte
 *       values, q4_0         u8 code[16][16][4]: the same, with two codes in a byte
 *
 * The low half of such a byte has the dimension that is given above, the high half has the one 16
 * after it. Codes have 128 (q8_0) or 8 (q4_0) added, so they are not negative. A row of a quantized type is a whole number of blocks of 32. */
typedef struct ggl_store {
    int id, group;
    const char *name;
    ggl_store_kind kind;
    ggl_type type;
    int64_t ne[3];    /* rows: dim, n_head, 1; state: its shape */
    int64_t n_pos;    /* rows: positions of a slot, a multiple of 64; state: 1 */
    bool ring;        /* rows: each slot has pages of its own */
    size_t page_size; /* rows: bytes of a page, with all heads */
    size_t slot_size; /* bytes of a state, or of n_pos positions; a multiple of 64 */
    size_t size;      /* bytes of all slots */
    bool of_stage;    /* it has rows of the graph's stage (ggl_rows) */
    bool is_read;     /* of a stage: main rows read it, so it is needed after the stage's run */
} ggl_store;

/* The body of a call. param[i] stands for the call's source i. Nodes come after their sources; those
 * that neither the result nor a KEEP depends on are left out. The result is a node, a param or a
 * leaf. A recurrent body was built with a state: it runs for one element of the batch after another. */
typedef struct ggl_body {
    ggl_tensor **param;
    int n_param;
    ggl_tensor **node;
    int n_node;
    ggl_tensor *result;
    bool recurrent;
    /* chunk > 0: it is recurrent, and runs back over the batch, as gradients do (ggl/internal/gradient.h). Its first n_forward
     * nodes run forward over the batch. Then, from the last chunk of the batch to the first, these run over the chunk again, which
     * has `chunk` elements or is the last one, and the other nodes run from its last element to its first: these may read states
     * of the first nodes, as they were for the same element. States begin with zeros for each slot, and end with the run, so they
     * have no store; a KEEP writes each of them. 0: all nodes run for the first element, then for the next one. */
    int n_forward;
    int64_t chunk;
} ggl_body;

/* The rows that a batched value has one element for. Most graphs have one kind, the elements of the batch that a run computes. A
 * graph may also have a stage: rows of texts that are read whole, each in a run of its own (ggl_sched_run_stage), before the
 * main rows that read them. Inputs whose names begin with "stage." belong to it, and so does all that is computed from them.
 * Caches of its rows are read by attention of the main rows, which finds slot and number of rows in the inputs "read.slot" and
 * "read.end". Only attention joins the two. */
typedef enum ggl_rows {
    GGL_ROWS_MAIN,
    GGL_ROWS_STAGE,
    GGL_ROWS_READ, /* of inputs alone: where main rows find a stage's */
    GGL_ROWS_COUNT
} ggl_rows;

struct ggl_tensor {
    ggl_op op;
    ggl_type type;
    int id;     /* unique in the graph, bodies included */
    int n_dims; /* without the batch; 0: one number (for each element of the batch) */
    /* Extents, innermost first; 1 from n_dims on. ne[3] is GGL_N if the value depends on the batch.
     * Values have at most 3 dimensions; weights and views of them have up to 4. */
    int64_t ne[GGL_MAX_DIMS];
    /* The expression that a dimension came from, such as "n_ff", for messages; may be NULL. */
    const char *dim_name[GGL_MAX_DIMS];
    int group;                 /* the part of the graph, for placement on backends; -1: none */
    const char *name, *origin; /* "blk.3 q", "llama.arch:31"; may be NULL */
    ggl_tensor **src;          /* in the order of the signature's tensors; NULL: absent */
    int n_src;
    double *num; /* in the order of the signature's numbers; NaN: absent */
    int n_num;
    /* WEIGHT: the elements in host memory, borrowed. CONST: ne[0]*..*ne[3] values of `type`, owned
     * by the graph. */
    const void *data;
    size_t size;         /* bytes of data */
    ggl_store *store[2]; /* CACHE: keys, values (NULL: values are the leading part of the keys).
                            STATE: the state; NULL: it ends with the run (ggl_body.chunk) */
    ggl_body *body;      /* CALL */
    const char *call;    /* CALL: the name by which backends may know it: one of the prelude's, or
                            "own:NAME" for an op that a descriptor declares itself; NULL: none */
    int scope;           /* for the builder: number of the body that the node is in; 0: none */
    ggl_rows rows;       /* if it is batched, or a CACHE; never GGL_ROWS_READ */

    /* Facts that the builder derives (graph/facts.c), so that code that plans or runs a graph need
     * not. */

    /* The weight whose memory holds the elements: for a WEIGHT the weight itself, for RESHAPE and
     * SPLIT of a view that view's weight. NULL: not a view. A view needs no memory and no step. */
    ggl_tensor *view_of;
    bool dense;       /* a view without gaps between its elements */
    bool gather;      /* PICK of whole matrices from a stack [in, out, n] that does not depend on
                            the batch. A LINEAR reads stack and index itself: see ggl_read */
    bool keeps_state; /* CALL: its body, or a body nested in it, is recurrent */
    /* WEIGHT: its elements may change between runs, and runs may write them (ggl/internal/gradient.h) */
    bool variable;
    bool assigned; /* WEIGHT: a node of this graph is written to it */
    /* The variable to whose memory the value is written, as it is computed; NULL: it has memory of its own */
    ggl_tensor *into;
    /* Set by ggl_graph_finish, and again by ggl_sched_new. */
    bool needed;   /* an output depends on it */
    bool computed; /* a backend computes it: it is needed, not a leaf, not a view, and not a gather
                      that only products read. Its type is f32 or i32 */
};

static inline bool ggl_is_batched(const ggl_tensor *t) {
    return t->ne[GGL_BATCH_DIM] == GGL_N;
}
/* True for inputs, weights and constants, which no backend computes. */
static inline bool ggl_is_leaf(const ggl_tensor *t) {
    return t->op == GGL_OP_INPUT || t->op == GGL_OP_WEIGHT || t->op == GGL_OP_CONST;
}
/* True if t is a weight, a view of one, or a gather of a weight's matrices. */
static inline bool ggl_is_of_weight(const ggl_tensor *t) {
    return t->view_of || (t->gather && t->src[0]->view_of);
}
/* True for the two products with a matrix, which is src[1]. */
static inline bool ggl_is_product(const ggl_tensor *t) {
    return t->op == GGL_OP_LINEAR || t->op == GGL_OP_LINEAR_BACK;
}
/* The tensors that the step of a node reads: their number, and the k-th, NULL if it is absent. They
 * are node->src, except that a product whose matrix is a gather reads the stack (k = 1) and the
 * index (k = 3) instead. */
GGL_API int ggl_n_reads(const ggl_tensor *node);
GGL_API ggl_tensor *ggl_read(const ggl_tensor *node, int k);

/* The most elements of a weight, or of a value for the largest batch; the builder checks it. So
 * products of extents fit into int64_t. Sums of sizes may overflow and must be checked. */
#define GGL_MAX_ELEMENTS ((int64_t)1 << 48)
/* Returns the product of extents first .. end-1, with n in place of GGL_N. It cannot overflow; all
 * products of extents should be computed here. */
static inline int64_t ggl_extents(const int64_t *ne, int first, int end, int64_t n) {
    int64_t count = 1;
    for (int d = first; d < end; d++)
        count *= ne[d] == GGL_N ? n : ne[d];
    return count;
}
/* Returns the number of elements of t; of a batched t, for one element of the batch. */
static inline int64_t ggl_count(const ggl_tensor *t) {
    return ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1);
}
/* Sets *out to the bytes of t, in its type, for a batch of n (any n if t is not batched). Returns
 * false if a row is not a whole number of blocks, or if the size does not fit into size_t. */
GGL_API GGL_NODISCARD bool ggl_value_bytes(const ggl_tensor *t, int64_t n, size_t *out);
/* Writes a description of the node to buf, such as "blk.2 q = rope_pair(..)" or
 * "group 0 linear(.., blk.0.ffn_up.weight)"; returns buf. */
GGL_API const char *ggl_node_text(const ggl_tensor *t, char *buf, size_t size);

/* --- building --------------------------------------------------------------------------------- */

typedef struct ggl_graph_params {
    size_t size;     /* sizeof(ggl_graph_params) */
    int64_t n_pos;   /* positions in the KV cache (the context length); default 4096 */
    int64_t n_batch; /* the largest batch of a run; makes ring stores larger; default 512 */
    int64_t n_slots; /* sequences that are stored at the same time; default 1 */
    int64_t n_pool;  /* positions that all slots share, in whole pages; 0: n_pos for each slot */
    ggl_type type_k, type_v; /* types of cached keys and values; default f16 */
    /* How many of the slots, the last ones, hold rows of the stage, and only those; the others then have only main rows, and each
     * kind has pages of its own. 0: all slots may have both. */
    int64_t n_stage_slots;
    int64_t n_stage_pool; /* positions that these share, as n_pool */
} ggl_graph_params;

GGL_API void ggl_graph_fill_default(ggl_graph_params *p, size_t size); /* for ggl_graph_default */
static inline ggl_graph_params ggl_graph_default(void) {
    ggl_graph_params p;
    ggl_graph_fill_default(&p, sizeof p);
    return p;
}
/* Returns an empty graph; params NULL: the defaults. Returns NULL if out of memory; wrong params
 * make the graph's first error. */
GGL_API ggl_graph *ggl_graph_new(const ggl_graph_params *params);
GGL_API void ggl_graph_free(ggl_graph *g);
/* Returns the status of the first error, and copies it to *err; GGL_OK if there is none. */
GGL_API ggl_status ggl_graph_error(const ggl_graph *g, ggl_error *err);

/* Leaves: inputs (f32 or i32), weights, constants (f64). Names and constants are copied; a weight's
 * data is borrowed until the graph is freed. Operators with @pos or @slot in their signature read
 * the input of that name, which must be made before them: i32, no dimensions, batched. */
GGL_API ggl_tensor *ggl_graph_input(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                                    const int64_t *ne, bool batched);
GGL_API ggl_tensor *ggl_graph_weight(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                                     const int64_t *ne, const void *data);
GGL_API ggl_tensor *ggl_graph_const(ggl_graph *g, int n_dims, const int64_t *ne,
                                    const double *data);
/* A constant without dimensions. */
static inline ggl_tensor *ggl_graph_number(ggl_graph *g, double value) {
    return ggl_graph_const(g, 0, NULL, &value);
}

/* Adds a node for any operator. Sources and numbers are in the order of its signature, without @pos
 * and @slot; NULL stands for an absent tensor, NaN for an absent number. Checks the arguments and
 * infers the shape; error messages use dim_name where it is set. */
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

/* Composites: calls with a body. Nodes made between begin and end belong to the body, in which
 * params stand for the call's sources. A STATE node makes the body recurrent. Backends may have a
 * kernel for `name` (NULL: none), to which num[] is passed (such as eps or k). A name without "own:"
 * is a promise that the body is the prelude's.
 *
 *     ggl_tensor **p = ggl_body_begin(g, &x, 1);
 *     if (p) {
 *         .. nodes that read p[0], and the last of them, y ..
 *         ggl_tensor *call = ggl_body_end(g, "silu", y, NULL, 0);
 *     }
 *
 * begin returns the params, valid until end; end returns the call. Both return NULL on error; after
 * a begin that failed there is nothing to end. Bodies nest. If a node of the body reads a value from
 * outside, the value is made a source of the call with a param of its own; leaves are read directly.
 * ggl/compose.h has functions for the composites for which backends have kernels. */
GGL_API ggl_tensor **ggl_body_begin(ggl_graph *g, ggl_tensor *const *src, int n_src);
GGL_API ggl_tensor *ggl_body_end(ggl_graph *g, const char *name, ggl_tensor *result,
                                 const double *num, int n_num);
/* Makes t an output with this name; returns t. t must be f32 and computed: no i32, leaf, view of a
 * weight, or cache. ggl_unary(g, GGL_OP_CAST, t) makes such a value of an i32 or of an input. */
GGL_API ggl_tensor *ggl_graph_output(ggl_graph *g, const char *name, ggl_tensor *t);

/* Sets the group of all nodes that are made from now on. */
GGL_API void ggl_graph_set_group(ggl_graph *g, int group);
/* Names a tensor in messages and listings; the name is copied. */
GGL_API void ggl_tensor_set_name(ggl_graph *g, ggl_tensor *t, const char *name);

/* Ends building: marks the nodes that outputs need, sizes the stores, and, if some share pages, adds
 * the input "page" (ggl_graph_n_pages). Returns the first error of all builder calls. Afterwards nothing
 * can be added to the graph. */
GGL_API GGL_NODISCARD ggl_status ggl_graph_finish(ggl_graph *g, ggl_error *err);

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns how many pages all slots share, in each store of rows that is not a ring; 0: there are no
 * such stores. With slots for a stage's rows alone (n_stage_slots), these share other pages than the rest, numbered from 0 as well,
 * and this is the larger of both numbers. Then a finished graph has an input "page", i32[pages of a slot, n_slots]: for each
 * slot, in the order of positions, the pages that hold them. A slot has at most the pages of n_pos
 * positions, or all pages if these are fewer. A page may belong to several slots, as
 * long as none of them writes to it. CACHE and ATTEND read it. */
GGL_API int64_t ggl_graph_n_pages(const ggl_graph *g);

/* --- rows of a store -------------------------------------------------------------------------- */

/* Returns the number of the page that holds position pos of a slot; it begins that many times
 * the step of the store's place (ggl_loc) after the store. table: the slot's row of the input "page"; not read for a ring. */
GGL_API int64_t ggl_store_page(const ggl_store *s, const int32_t *table, int64_t slot, int64_t pos);
/* Encodes a row (with the type's from_float) into the store, or decodes it: head h of position pos.
 * page: the page that holds pos, in host memory; row: f32[dim]. */
GGL_API void ggl_store_put(const ggl_store *s, void *page, int64_t pos, int64_t h,
                           const float *row);
GGL_API void ggl_store_get(const ggl_store *s, const void *page, int64_t pos, int64_t h,
                           float *row);

#ifdef __cplusplus
}
#endif
#endif
