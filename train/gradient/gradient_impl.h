/* Gradients, for the files of this folder:
 *
 *   sums.c      what is known of each tensor, and how gradients add up
 *   copy.c      copies nodes: of bodies to the top level, and those that are computed again
 *   text.c      makes nodes of the texts of gradients.def
 *   rules.c     the rules that are no texts, and the table of all
 *   recur.c     the gradient of a recurrence
 *   gradient.c  walks through the graph, from the result to what it is made of */
#ifndef GGL_GRADIENT_IMPL_H
#define GGL_GRADIENT_IMPL_H

#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "graph/graph_impl.h"

/* The gradient of a part of a value, as splits give it. */
typedef struct grad_part {
    struct grad_part *next;
    int dim;
    int64_t first, size;
    ggl_tensor *d;
} grad_part;

enum { GRAD_MAX_SRC = 16 };

/* What is known of a tensor. */
typedef struct grad_note {
    bool active;      /* one of those by which we differentiate is a part of it */
    ggl_tensor *d;    /* its gradient, as far as its readers have been visited; NULL: none yet */
    grad_part *parts; /* more of it */
    ggl_tensor *copy; /* of a body's node or parameter: what stands for it at the top level */
    ggl_tensor *negative; /* -t, if t is not batched; NULL: nobody has asked for it yet */
    ggl_tensor *again;    /* what computes it again, for gradients; NULL: nothing does yet */
    bool
        is_light; /* it is computed again wherever a gradient needs it, as that costs next to nothing */
    bool
        is_kept; /* it is never computed again: nodes of another group read it, or that would not pay */
    ggl_tensor *
        original; /* of what computes another node again, or is a copy of a leaf: that one, to which gradients belong */
} grad_note;

typedef struct grad_work {
    ggl_graph *g;
    grad_note *note; /* by tensor id */
    size_t n_notes, cap_notes;
    bool
        in_body; /* in a body, which computes one element of the batch: nothing is added up over the batch */
    bool bf16;     /* ggl_grad_params.bf16 */
    int64_t chunk; /* ggl_grad_params.chunk */
    bool *again;   /* by group + 1: its values are computed again */
    int n_groups;
} grad_work;

/* Returns what is known of t: valid until the next node is made. NULL: out of memory, with the graph's error set. */
grad_note *ggl_grad_note(grad_work *w, const ggl_tensor *t);
bool ggl_grad_is_active(grad_work *w, const ggl_tensor *t);

/* Adds d to the gradient of t, a source of the node `reader`, after sums over all dimensions in which t is the same. Does
 * nothing if t is not active. d NULL: an error, which the graph has. */
void ggl_grad_add(grad_work *w, const ggl_tensor *reader, ggl_tensor *t, ggl_tensor *d);
/* Adds the sum over the batch of x dy^T (GGL_OP_OUTER_SUM, of n matrices, 0: one) to the gradient of t: the sum has the shape ne[n_dims],
 * and as many elements as t. bf16: as the operator says. Returns the new gradient. */
ggl_tensor *ggl_grad_outer(grad_work *w, ggl_tensor *t, ggl_tensor *x, ggl_tensor *dy,
                           ggl_tensor *i, int64_t n, int n_dims, const int64_t *ne, bool bf16);
/* Adds d to the gradient of elements first .. first + d->ne[dim] - 1 of t along dim. */
void ggl_grad_add_part(grad_work *w, ggl_tensor *t, int dim, int64_t first, ggl_tensor *d);

/* Returns the value of t for a gradient: t, or a copy that is computed again. */
ggl_tensor *ggl_grad_value(grad_work *w, ggl_tensor *t);
/* Copies a call's body to the top level: the copies are in note.copy of its nodes. Returns what stands for the result. */
ggl_tensor *ggl_grad_inline(grad_work *w, const ggl_tensor *call);

/* Begins a call with these sources, whose parameters stand for those of `call`, then for more[]. Sets notes of the parameters; returns them, NULL on
 * error. */
ggl_tensor **ggl_grad_begin_body(grad_work *w, const ggl_tensor *call, ggl_tensor *const *more,
                                 int n_more);
/* Copies the nodes of the call's body, whose parameters have copies; leaves out states that have one, and what is kept. Returns false on error. */
bool ggl_grad_copy_body(grad_work *w, const ggl_body *b, bool without_states);
/* Returns the copy of a body's node or parameter; x itself if it is a leaf. */
ggl_tensor *ggl_grad_copy_of(grad_work *w, ggl_tensor *x);
void ggl_grad_set_copy(grad_work *w, const ggl_tensor *t, ggl_tensor *copy);

/* gradient_recur.c: makes the gradients of a recurrent call. visit: visits n nodes, the last one first; activate: finds out whether a node is
 * active. */
typedef void grad_visit_fn(grad_work *w, ggl_tensor *const *node, int n);
void ggl_grad_recurrence(grad_work *w, ggl_tensor *t, ggl_tensor *dy, grad_visit_fn *visit,
                         void (*activate)(grad_work *, const ggl_tensor *));

/* The rule of an operator or composite. */
typedef void grad_fn(grad_work *w, ggl_tensor *t, ggl_tensor *dy);
typedef struct grad_rule {
    enum { GRAD_MISSING, GRAD_TEXT, GRAD_BY, GRAD_FLAT, GRAD_NONE } kind;
    const char *text, *signature; /* GRAD_TEXT; GRAD_NONE: text says why */
    grad_fn *by;
} grad_rule;
/* Returns the rule of the node's operator, or, for a call, of its composite; NULL: it has none of its own. */
const grad_rule *ggl_grad_rule_of(const ggl_tensor *t);
/* Adds to the gradients of t's sources what the rule's text says. */
void ggl_grad_apply(grad_work *w, const grad_rule *rule, ggl_tensor *t, ggl_tensor *dy);
/* True if the rule's text needs the elements of x, a source of t, for the gradients of sources that are active, or of all. */
bool ggl_grad_reads(grad_work *w, const grad_rule *rule, const ggl_tensor *t, const ggl_tensor *x,
                    bool all);

/* Shorthands: nodes of one or two sources. */
static inline ggl_tensor *grad_op1(grad_work *w, ggl_op op, ggl_tensor *x, const double *num,
                                   int n_num) {
    return ggl_graph_op(w->g, op, &x, 1, num, n_num);
}
ggl_tensor *ggl_grad_reshape(grad_work *w, ggl_tensor *x, int n_dims, const int64_t *ne);
/* Returns x repeated along dimensions in which `like` has more, in the shape of `like`. */
ggl_tensor *ggl_grad_as_large(grad_work *w, ggl_tensor *x, const ggl_tensor *like);

#define GRADIENT_BY(ID, function) grad_fn ggl_grad_##function;
#include "gradients.def"

#endif
