/* Private calls for graphs: arguments of operators, walks over nodes, and the memory of stores.
 *
 * Threads: as ggl/graph.h says. */
#ifndef GGL_INTERNAL_GRAPH_H
#define GGL_INTERNAL_GRAPH_H

#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/op_args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ggl_param_kind {
    GGL_PARAM_TENSOR,
    GGL_PARAM_NUMBER,
    GGL_PARAM_SUPPLIED
} ggl_param_kind;

/* One argument of an operator, as its signature in ops.def declares it. */
typedef struct ggl_param {
    ggl_param_kind kind;
    char name[16];
    bool optional;     /* '?', or it has a default */
    bool variadic;     /* '#size..': one or more numbers */
    double fallback;   /* the default; NaN: none */
    char supplied[16]; /* the input that stands for an argument that is not given; "": none does */
} ggl_param;

/* Returns argument k (0 .. n_params-1) of the operator. */
GGL_INTERNAL_API ggl_param ggl_op_param(ggl_op op, int k);
/* Returns true if source i_src of the operator is an input that the graph supplies ('@'), or that the caller gives in place of one. */
bool ggl_op_supplies(ggl_op op, int i_src);
/* Returns the operator with that name or symbol; GGL_OP_COUNT if none. */
GGL_INTERNAL_API ggl_op ggl_op_find(const char *name);

/* Like ggl_value_bytes, for a value of these extents stored as `type`. */
GGL_NODISCARD bool ggl_extents_bytes(ggl_type type, const int64_t ne[GGL_MAX_DIMS], int64_t n,
                                     size_t *out);
/* Writes the shape without the batch, such as "[n_ff = 96, 4]", to buf; returns buf. */
GGL_INTERNAL_API const char *ggl_shape_text(const ggl_tensor *t, char *buf, size_t size);

/* Rounds constants from f64 to f32, except rope frequencies. Folding or the scheduler calls it; the
 * second call does nothing. */
GGL_NODISCARD ggl_status ggl_graph_settle(ggl_graph *g, ggl_error *err);

GGL_INTERNAL_API const ggl_graph_params *ggl_graph_get_params(const ggl_graph *g);

/* Sets the origin (copied) of all nodes that are made from now on. */
void ggl_graph_set_origin(ggl_graph *g, const char *origin);
/* Sets dim_name[dim] of t, which is copied. */
void ggl_tensor_set_dim_name(ggl_graph *g, ggl_tensor *t, int dim, const char *name);

int ggl_graph_n_ids(const ggl_graph *g); /* ids are 0 .. n-1 */
GGL_INTERNAL_API int ggl_graph_n_nodes(
    const ggl_graph *g); /* top-level nodes and leaves, in order */
GGL_INTERNAL_API ggl_tensor *ggl_graph_node(const ggl_graph *g, int i);
GGL_INTERNAL_API int ggl_graph_n_outputs(const ggl_graph *g);
GGL_INTERNAL_API ggl_tensor *ggl_graph_get_output(const ggl_graph *g, int i);
/* Makes t the i-th output instead of the one that it is: that one then needs no memory of its own. t: as ggl_graph_output. */
GGL_INTERNAL_API bool ggl_graph_replace_output(ggl_graph *g, int i, const char *name,
                                               ggl_tensor *t);
GGL_INTERNAL_API ggl_tensor *ggl_graph_find_input(const ggl_graph *g, const char *name);
GGL_INTERNAL_API int ggl_graph_n_inputs(const ggl_graph *g);
GGL_INTERNAL_API ggl_tensor *ggl_graph_get_input(const ggl_graph *g, int i);
GGL_INTERNAL_API int ggl_graph_n_stores(const ggl_graph *g);
ggl_store *ggl_graph_store(const ggl_graph *g, int i);

/* A weight whose elements may change: by the program between runs, and in a run by ggl_graph_assign. Several graphs may have
 * variables with the same memory, but their runs must not overlap, and a graph that
 * assigns a variable must have no other one with its memory. Backends that cannot use it where it lies cannot read it. */
GGL_INTERNAL_API ggl_tensor *ggl_graph_variable(ggl_graph *g, const char *name, ggl_type type,
                                                int n_dims, const int64_t *ne, void *data);
/* Makes each run write value, which is not batched, to the f32 variable's memory. Nodes that read the variable must be made
 * before, and see what it was before the run; value itself may be made of it. Returns false on failure, with the graph's error set. */
GGL_INTERNAL_API bool ggl_graph_assign(ggl_graph *g, ggl_tensor *variable, ggl_tensor *value);

/* The rows that an element of the batch sees: positions first .. end-1 of its slot. Backends, the scheduler
 * and tests ask ggl_visible_rows, so that what an element sees is decided here alone (and, for shaders, in
 * attend.glsl of backends/vulkan/shaders). */
typedef struct ggl_visible {
    int64_t slot, first, end;
} ggl_visible;

/* Returns the rows that an element at this position and slot sees through the window (0: all). end 0: it
 * sees itself and those before it. Otherwise its slot has `end` rows, all of which see each other, through
 * a window up to window / 2 positions away on both sides. */
static inline ggl_visible ggl_visible_rows(int64_t pos, int64_t slot, int64_t window, int64_t end) {
    const int64_t back = end > 0 ? window / 2 : window - 1;
    ggl_visible v = {slot, window > 0 && pos > back ? pos - back : 0, end > 0 ? end : pos + 1};
    if (window > 0 && end > 0 && pos + back + 1 < end)
        v.end = pos + back + 1;
    if (v.first >= v.end) /* a position behind the slot's end sees the last row */
        v.first = v.end - 1;
    return v;
}

/* Narrows what an element sees to the rows within[0] .. within[1] - 1 (rounded down); at least one row stays. NULL: to none of them. */
static inline ggl_visible ggl_visible_within(ggl_visible v, const float *within) {
    if (!within)
        return v;
    const double last = (double)v.end - 1;
    if (within[0] > (double)v.first) /* false for NaN */
        v.first = within[0] < last ? (int64_t)within[0] : v.end - 1;
    if (within[1] < last + 1)
        v.end = within[1] >= (double)v.first + 1 ? (int64_t)within[1] : v.first + 1;
    return v;
}

/* Returns the cache whose rows the node reads; NULL: it reads none. */
static inline ggl_tensor *ggl_cache_of(const ggl_tensor *t) {
    return t->op == GGL_OP_ATTEND        ? t->src[ATTEND_KV]
           : t->op == GGL_OP_CHOOSE_ROWS ? t->src[CHOOSE_ROWS_KV]
                                         : NULL;
}

/* Returns which source of the node is the table of pages; -1: none. */
static inline int ggl_page_source(const ggl_tensor *t) {
    return t->op == GGL_OP_CACHE         ? CACHE_PAGE
           : t->op == GGL_OP_ATTEND      ? ATTEND_PAGE
           : t->op == GGL_OP_CHOOSE_ROWS ? CHOOSE_ROWS_PAGE
                                         : -1;
}

/* Rows are chosen in groups of `every` of the slot's positions. An element takes `best` of the first n groups, and all positions after those
 * up to its own, its tail. */
typedef struct ggl_choice {
    int64_t n, best;
} ggl_choice;

/* Returns what an element at this position chooses among: the groups that it sees whole; but with `near`, those before its nearest groups, of
 * which its own is one, and which are counted among the best. With none of these, its own may be a group that it does not see whole. */
static inline ggl_choice ggl_choice_at(const ggl_tensor *choose_rows, int64_t pos) {
    const int64_t every = (int64_t)choose_rows->num[CHOOSE_ROWS_EVERY],
                  best = (int64_t)choose_rows->num[CHOOSE_ROWS_BEST], seen = pos / every + 1;
    const double own = choose_rows->num[CHOOSE_ROWS_NEAR];
    ggl_choice all = {(pos + 1) / every, best};
    if (own != own) /* absent */
        return all;
    const int64_t taken = own < (double)seen ? (int64_t)own : seen;
    all.n = seen - taken;
    all.best = best - taken;
    return all;
}

/* True if the score of a group is the largest of its keys'; false: that of its last key. */
static inline bool ggl_choice_is_of_all(const ggl_tensor *choose_rows) {
    const double own = choose_rows->num[CHOOSE_ROWS_NEAR];
    return own == own;
}

/* ngrams reads whole numbers below 2^64 as four digits to the base 2^16, the lowest first. */
enum { GGL_N_DIGITS = 4 };

/* Returns x rounded down; NaN and what is below 0: 0; what is above `most`: most. */
static inline uint64_t ggl_whole_to(float x, uint64_t most) {
    return !(x >= 1) ? 0 : x < (float)most ? (uint64_t)x : most;
}

static inline uint64_t ggl_from_digits(const float *digit) {
    uint64_t x = 0;
    for (int k = GGL_N_DIGITS; k-- > 0;)
        x = x << 16 | ggl_whole_to(digit[k], 0xffff);
    return x;
}

/* Returns a number of what is hashed: f32 has the whole numbers up to 2^24. */
static inline uint64_t ggl_hashed_number(float x) {
    return ggl_whole_to(x, (uint64_t)1 << 24);
}

/* Returns the index, below `rows`, that a hash chooses of the `into` ones from `first` on. */
static inline int64_t ggl_hashed_index(uint64_t hash, uint64_t into, uint64_t first, int64_t rows) {
    const uint64_t i = (into > 0 ? hash % into : 0) + first;
    return i < (uint64_t)rows ? (int64_t)i : rows - 1;
}

/* Returns how many rows an element reads by a row of n chosen positions: those before the first that is below 0, and one at least. */
static inline int64_t ggl_n_chosen(const float *chosen, int64_t n) {
    int64_t i = 0;
    while (i < n && !(chosen[i] < 0))
        i++;
    return i > 0 ? i : 1;
}

/* Returns the position that a number of a row of chosen positions means to an element at `pos`: rounded down; its own, if it sees no such one. */
static inline int64_t ggl_chosen_position(float x, int64_t pos) {
    return x >= 0 && (double)x < (double)pos + 1 ? (int64_t)x : pos;
}

/* Returns the window of an ATTEND node; 0: all positions. */
int64_t ggl_attend_window(const ggl_tensor *attend);

/* True for a product that takes long to compute, in a graph that has to be folded (ggl/internal/fold.h); and for sums of squares, which
 * the backend for products makes of weights without unpacking them as a whole, as it does in a run. */
static inline bool ggl_is_large_product(const ggl_tensor *t) {
    if (t->op == GGL_OP_CALL)
        return !ggl_is_batched(t) && t->call && strcmp(t->call, "sum_squares") == 0;
    return t->op == GGL_OP_LINEAR && !ggl_is_batched(t) &&
           (double)ggl_count(t) * (double)t->src[0]->ne[0] >= 1 << 24;
}

/* Returns the row, of n, that an element of an ATTEND node's rel_row means: rounded down, and at most the first or last. NaN: 0. */
static inline int64_t ggl_relative_row(double x, int64_t n) {
    return x >= (double)n ? n - 1 : x >= 0 ? (int64_t)x : 0;
}

/* Returns ggl_graph_n_pages of the slots for these rows. */
int64_t ggl_graph_n_pages_of(const ggl_graph *g, ggl_rows rows);

/* Returns true if stores can hold rows of that type. */
bool ggl_store_can_keep(ggl_type type);
/* Sets *out to the bytes of the pages that hold the first n_pos positions of a slot; for a state,
 * to the bytes of the state. Returns false if they do not fit into size_t. */
bool ggl_store_size(const ggl_store *s, int64_t n_pos, size_t *out);
/* Finds the bytes of a slot from position `first` (a multiple of 64) up to position n_pos - 1 that
 * lie together, in whole pages, or a whole state: returns their number, and sets *at to their offset
 * in the store. step: bytes from a page to the next one (ggl_loc). */
size_t ggl_store_run(const ggl_store *s, size_t step, const int32_t *table, int64_t slot,
                     int64_t first, int64_t n_pos, size_t *at);
/* Decodes dimensions first .. first + n-1 of all positions of a page of keys to
 * out[dimension - first][position]. first is a multiple of 32; n is at most 32. */
void ggl_keys_unpack(ggl_type type, const void *page, int64_t first, int n, float (*out)[GGL_PAGE]);

#ifdef __cplusplus
}
#endif
#endif
