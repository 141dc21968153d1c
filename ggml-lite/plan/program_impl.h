/* The data of the passes that turn a segment into a program, for the files of this folder:
 *
 *   flatten.c  Replaces calls that the backend does not know by their bodies, and puts a loop
 *              around recurrent bodies. Makes every tensor a view of a root: a tensor with memory
 *              of its own, which is either private (in the arena) or placed by the segment. Views
 *              cost no step.
 *   forms.c    Inserts the steps that make forms of operands, each once for all steps that read it.
 *   chains.c   Finds steps that the backend runs as one.
 *   waves.c    Sorts the steps into waves: steps of one wave do not depend on each other.
 *   groups.c   Finds steps of a wave that the backend runs as one.
 *   tails.c    Finds chains that the backend runs together with such a group.
 *   arena.c    Gives private roots arena offsets according to their lifetimes.
 *   operands.c Gives each step its operands.
 *
 * turns.c is for runs: the order of turns in a loop. */
#ifndef PLAN_PROGRAM_IMPL_H
#define PLAN_PROGRAM_IMPL_H

#include "ggl/internal/alloc.h"
#include "ggl/program.h"

/* Where a tensor's elements are: from byte `offset` of its root on, with strides nb[]. */
typedef struct value {
    const ggl_tensor *root; /* NULL: not resolved yet */
    size_t offset, nb[GGL_MAX_DIMS];
    ggl_type type;
} value;

/* The memory of a tensor that owns its elements, and its lifetime. */
typedef struct root {
    /* placed: the segment has placed it; else it is private and gets an offset in the arena.
     * in_loop: it is written inside a loop and has memory for one element of the batch. */
    bool placed, in_loop;
    bool is_form;    /* a step makes a form there */
    bool is_room;    /* it has the states of a body that runs in chunks */
    bool fused;      /* only the next link of its chain reads it, so it has no memory */
    bool taken_over; /* the last step that reads it writes its own result over it */
    bool waits;      /* only while it is placed: its offset is relative to its group's memory */
    int last; /* index of the last step that reads or writes it; its memory is free after that */
    int wave; /* the wave that writes it; 0: no step does */
    int read; /* of a variable: the last wave that reads it */
    size_t size;
    ggl_loc loc;
} root;

/* A step without operands. */
typedef struct item {
    ggl_step_kind kind;
    /* LOOP, END: the call. NODE: the node, or the copy's destination. FORM: the form's tensor */
    const ggl_tensor *node;
    const ggl_tensor *copy_of; /* the tensor that this step copies; NULL: it computes `node` */
    value from, to;            /* of a copy: source and destination */
    bool in_loop;
    int end, wave;          /* end: of a LOOP the index of its END, of an END that of its LOOP */
    const ggl_tensor *room; /* STATE, KEEP: the memory of a state that has no store */
    /* NODE: source form_src is read in a form, which this tensor stands for; NULL if none is */
    const ggl_tensor *reads_form;
    int form_src;
    /* FORM: what it is made from (the second may be NULL), and the first node that reads it */
    const ggl_tensor *form_of[2], *reader;
    int form; /* FORM: ggl_form.kind */
    /* In a chain of n_links (0: in none), it is the nth, and source link - 1 is the result of the
     * one before, which has the index `before` until chains are gathered; 0: no source is */
    int n_links, nth, link;
    size_t before;
    /* The first of a group of n_members steps or chains (0: of none); joined: it is in a group, but
     * not in its first member. */
    int n_members;
    bool joined;
    bool has_tail; /* the first of a group: a chain that runs with the group follows its members */
    /* A bit for each source that has no memory: in the chain that follows a group, the results of its members; in a loose chain,
     * the results of earlier links. */
    unsigned hidden;
} item;

typedef struct builder {
    const ggl_segment *s;
    const ggl_program_params *p;
    item *at;
    size_t n, cap;
    /* By tensor id. Ids from n_ids on are those of forms, which no graph has. */
    value *value;
    root *root;
    size_t n_ids, n_values, cap_value, cap_root; /* n_values: of the graph and of forms */
    ggl_arena arena;                             /* the tensors of forms */
    const ggl_tensor *loop; /* the recurrent call that is being flattened; NULL: none */
    int64_t chunk; /* of the nodes that run forward in chunks, while these are flattened; else 0 */
    const ggl_tensor *too_wide; /* the first node with more than GGL_MAX_SRC sources */
    bool no_memory, too_large;
} builder;

/* --- values.c --------------------------------------------------------------------------------- */

/* Sets nb[] to the strides of a tensor without gaps. */
void ggl_plan_dense(size_t *nb, ggl_type type, const int64_t *ne);
/* True if the segment assigns t no memory: only steps of this program use it. */
bool ggl_plan_is_private(const builder *b, const ggl_tensor *t);
/* Makes t a root: its elements get memory of their own, private or where the segment has placed
 * them. Private floats are stored as params.value_type. */
void ggl_plan_own_root(builder *b, const ggl_tensor *t);
/* Returns a new tensor for memory that no tensor of the graph stands for; its value and root are empty. NULL: out of memory. */
ggl_tensor *ggl_plan_new_tensor(builder *b);
/* Makes t a root that has states, which are f32 whatever the type of private values is. */
void ggl_plan_own_room(builder *b, const ggl_tensor *t);
/* Returns the value of t. Leaves and tensors of other segments are made roots on first use. Valid
 * until a form is added. */
const value *ggl_plan_value_of(builder *b, const ggl_tensor *t);
/* Sets src[] to the tensors that the step reads and returns how many, at most GGL_MAX_SRC. NULL
 * stands for an absent source and for one without a value: a cache, and the state that KEEP
 * writes. */
int ggl_plan_sources(const item *it, const ggl_tensor **src);
/* Returns where source k of the item, which is t, is. */
const value *ggl_plan_source_value(builder *b, const item *it, const ggl_tensor *t);
/* Returns the index of the END after which nothing of the loop with item i runs: of its own loop, or of the second one of a call that
 * runs in chunks. */
int ggl_plan_end_of_loop(const builder *b, int i);
/* Returns where the item writes its result. */
const value *ggl_plan_result_of(builder *b, const item *it);
/* True if the step reads or writes stores. Such steps keep their order among themselves. */
bool ggl_plan_uses_stores(const item *it);
/* False for steps that write no tensor: loops, their ends, CACHE and KEEP. */
bool ggl_plan_has_value(const item *it);

/* --- the passes, in this order ---------------------------------------------------------------- */

/* Pushes the steps of n nodes, and sets their values. Sets b->no_memory if out of memory. */
void ggl_plan_flatten(builder *b, ggl_tensor *const *node, int n);
/* Inserts the steps that make forms. Returns false if out of memory. */
bool ggl_plan_insert_forms(builder *b);
/* Finds chains, and puts the steps of each one after another. Returns false if out of memory. */
bool ggl_plan_find_chains(builder *b);
/* Sorts the items by wave (stable) and links each LOOP with its END. Returns false if out of
 * memory. */
bool ggl_plan_order_in_waves(builder *b);
/* Finds groups, and puts the members of each one after another. Returns false if out of memory. */
bool ggl_plan_find_groups(builder *b);
/* Finds tails of groups, and puts each after its group. Returns false if out of memory. */
bool ggl_plan_find_tails(builder *b);
/* Finds lifetimes, and gives each private root an offset in the arena. */
ggl_status ggl_plan_place(builder *b, size_t *arena_size, ggl_error *err);
/* Fills in *step: the item with its operands. */
void ggl_plan_make_step(builder *b, const item *it, ggl_step *step);

#endif
