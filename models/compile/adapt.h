/* What applying adapters to a graph knows, shared by adapt.c and the files adapt_*.c. */
#ifndef LLM_ARCH_ADAPT_H
#define LLM_ARCH_ADAPT_H

#include "adapter.h"
#include "compile.h"

/* The change of one weight by one pair, as leaves of the graph. */
typedef struct arch_change {
    ggl_tensor *rows;    /* [rank, out] or [rank, out, n] */
    ggl_tensor *columns; /* [in, rank] or [in, rank, n]; flipped: [rank, in] */
    bool flipped;
    ggl_tensor *w; /* the weight */
    ggl_tensor *
        magnitude; /* the lengths of its changed rows, all in one dimension; NULL: they are not given */
    ggl_tensor *
        size; /* magnitude / |W + D| (adapt_size.c), cut as the weight's rows are; NULL: not made yet */
    double scale;
    int task; /* of llm_adapter_use */
    const llm_adapter *adapter;
    const arch_pair *pair;
    size_t next; /* 1 + the index of the weight's next change; 0: none */
} arch_change;

/* `rows` and `magnitude` of a change whose data is known when all parts of the source tensor are placed. */
typedef struct arch_later {
    ggl_tensor *rows, *columns, *magnitude;
    const arch_pair *from;
    arch_part part;
} arch_later;

/* A node that several products may share: columns times x, scaled; without x: columns flipped. */
typedef struct arch_shared {
    const ggl_tensor *x, *columns;
    double scale;
    int scope; /* the body that it is in */
    ggl_tensor *t;
} arch_shared;

/* A token's share of a task, times a scale. */
typedef struct arch_share {
    ggl_tensor *t; /* NULL: not made yet */
    double scale;
} arch_share;

/* How the products with a weight, and the lookups of its rows, are scaled. */
typedef struct arch_scaling {
    const ggl_tensor *w;
    size_t n, n_scaled;       /* products and lookups; those multiplied by `factor` */
    const ggl_tensor *factor; /* NULL if none is scaled */
    bool unknown;             /* by different factors, or in a way that is not known */
    const char *whole;        /* the tensor that w is a part of, or stands in for; NULL: none */
} arch_scaling;

struct arch_adapt {
    const llm_adapter_use *use;
    size_t n;
    ggl_tensor *task; /* the input [n_tasks]; NULL: no adapter is for a task */
    arch_share share[LLM_ARCH_MAX_TASKS];
    bool **hit; /* for each use and pair: it changes a weight */
    arch_change *change;
    size_t n_change, cap_change;
    /* by id of a WEIGHT: 0: not looked up yet, 1: no change, else 2 + the index of the first one */
    size_t *first;
    size_t cap_first;
    const ggl_tensor **source; /* by id of a PARAM: the call's source */
    size_t cap_source;
    ggl_tensor **product; /* by id of an adapted product or lookup: the same without changes */
    size_t cap_product;
    arch_scaling *scaling; /* by id of a WEIGHT */
    size_t cap_scaling;
    arch_later *later;
    size_t n_later, cap_later;
    arch_shared *shared;
    size_t n_shared, cap_shared;
    bool *
        read; /* by id, for pairs that change nothing: a node reads the tensor; NULL: not looked for yet */
    /* of control vectors: loops over layers that hand on a row, outside of stages and in one; and the layers of the longest */
    int n_loops[2];
    int64_t n_layers;
};

/* Reports an error about an adapter or a control vector: its file's name comes first. Returns false. */
bool llm_arch_adapt_refuse(arch_eval *ev, ggl_status st, const llm_adapter *a, const char *fmt, ...)
    GGL_PRINTF(4, 5);
/* adapt_change.c */
/* Returns the weight that t is, or is cut from; NULL: none. */
ggl_tensor *llm_arch_adapt_weight(const arch_eval *ev, const ggl_tensor *t);
/* Returns 1 + the index of the first change of what t is cut from; 0: it has none, or ev has an
 * error. */
size_t llm_arch_adapt_changes(arch_eval *ev, const ggl_tensor *t);
/* Returns how products with the weight are scaled, valid until the next call. NULL: reported. */
arch_scaling *llm_arch_adapt_scaling(arch_eval *ev, ggl_tensor *w);

/* adapt_size.c */
/* Returns by what the changed rows are multiplied, [out] or [out, n], of a change with magnitudes. Made at the top level. NULL:
 * reported. */
ggl_tensor *llm_arch_adapt_size(arch_eval *ev, arch_place p, arch_change *c);

/* adapt_factor.c */
/* Remembers that sum is the product or lookup t with the changes of its weight. False: reported. */
bool llm_arch_adapt_note(arch_eval *ev, ggl_tensor *t, const ggl_tensor *sum);
/* Takes a new multiplication or division. If it multiplies an adapted product by a factor of the weight,
 * returns a node in which the changes are added after that; else t. NULL: reported. */
ggl_tensor *llm_arch_adapt_scaled(arch_eval *ev, arch_place p, ggl_tensor *t);
/* Refuses a product with an input that is multiplied by the factor of the product's weight. Returns t;
 * NULL: reported. */
ggl_tensor *llm_arch_adapt_check_input(arch_eval *ev, arch_place p, ggl_tensor *t);

#endif
