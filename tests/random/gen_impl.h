/* Within the generator: gen.c puts nodes into a program and chooses which, gen_ops.c has the
 * operators, gen_bodies.c calls and states, gen_script.c the tokens. */
#ifndef RANDOM_GEN_IMPL_H
#define RANDOM_GEN_IMPL_H

#include <math.h>

#include "gen.h"
#include "weights.h"

enum { MOST_VALUE = 768 }; /* elements of a computed value */

typedef struct gen {
    r_program *p;
    r_source *s;
    int body;      /* the BEGIN of the innermost open body; -1: none */
    int recurrent; /* of the open bodies so many have states: no state within */
    int group;
} gen;

/* --- gen.c ------------------------------------------------------------------------------------ */

int choose(gen *g, int n);
bool chance(gen *g, int one_in);
#define ONE_OF(g, ...)                                                                             \
    ((const int[]){__VA_ARGS__}[choose(g, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))])

enum {
    AVOID_UNBATCHED_PICK, /* matrices chosen by an index that is not batched */
    AVOID_NESTED_STATE,   /* a recurrent call in a plain body */
    AVOID_UNBATCHED_ROWS, /* a cache of keys or values that are not batched */
    /* chosen matrices that are not f32, read by something else than a product */
    AVOID_PICKED_VALUES,
    AVOID_SHARED_PICK,  /* chosen matrices with several readers */
    AVOID_PICK_OF_VIEW, /* chosen from a part of a weight */
    AVOID_CONST_VIEW,   /* a constant reshaped or split */
    AVOID_PICK_OF_FOUR  /* matrices chosen from a weight of four dimensions */
};
bool avoids(int what);

/* Room for so many more nodes. */
bool has_room(const gen *g, int n);
const r_node *node(const gen *g, int i);
/* A node with these sources (-1: absent) and numbers, of the shape of src[0]; where a source is
 * batched, so is it. */
int add(gen *g, r_op op, int n_src, const int *src, int n_num, const double *num);
void set_shape(gen *g, int i, int n_dims, const int *ne);
void set_magnitude(gen *g, int i, double m);

int input(gen *g, int n_dims, const int *ne, bool batched);
int index_input(gen *g, int k, int limit, bool batched); /* k = 0: one index, without a dimension */
int weight(gen *g, int n_dims, const int *ne, int type, double spread);
int constant(gen *g, int n_dims, const int *ne, double spread);
int number_of(gen *g, double v);

/* What may be read where the generator stands. */
bool visible(const gen *g, int i);
/* One of the visible nodes for which `fits` holds, rather a late one; -1: there is none. */
typedef bool fits_fn(const gen *g, int i, int a, int b);
int find(gen *g, fits_fn *fits, int a, int b);
/* Floats that are computed or given: of a .. b dimensions. */
fits_fn is_float;
/* A float with at least a dimension, made if there is none. */
int any_row(gen *g);
int any_float(gen *g);
/* Of one dimension, of n elements (0: any number). */
int any_vector(gen *g, int n);

/* --- gen_ops.c -------------------------------------------------------------------------------- */

/* x; while views of constants are open, something computed in the place of one. */
int no_constant(gen *g, int x);
int unary(gen *g, r_op op, int x);
int binary(gen *g, r_op op, int a, int b);
int reshape(gen *g, int x, int n_dims, const int *ne);
int split(gen *g, int x, int dim, int first, int size);
int concat(gen *g, int a, int b, int dim);
int transpose(gen *g, int x, int a, int b);
int sum(gen *g, int x, int dim);
int amax(gen *g, int x, int dim);
int pick(gen *g, int x, int index);
int linear(gen *g, int x, int w, int bias);
/* x [n] to [out], by a matrix of any kind; perhaps one that is there already. */
int project(gen *g, int x, int out);
/* Smaller, if it is large. */
int tamed(gen *g, int x);
/* Any operator on whatever is there; -1: it did not fit. */
int make_any(gen *g, bool top);

/* --- gen_bodies.c ----------------------------------------------------------------------------- */

int make_known(gen *g);     /* a composite that backends know by name */
int make_unknown(gen *g);   /* a body of random operators */
int make_recurrent(gen *g); /* a body with states */

/* --- gen_script.c ----------------------------------------------------------------------------- */

void make_script(gen *g);

#endif
