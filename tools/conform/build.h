/* Functions for the builders of cases. */
#ifndef TOOLS_CONFORM_BUILD_H
#define TOOLS_CONFORM_BUILD_H

#include <math.h>

#include "case.h"

typedef enum conform_fill {
    FILL_ANY,
    FILL_POSITIVE,
    FILL_SMALL,
    FILL_INDEX, /* from here on i32: numbers below `range` */
    FILL_POS,   /* positions for `range` slots that take turns: 0 0 1 1 .. for two */
    FILL_SLOT,
    FILL_END /* the number of tokens of the slot */
} conform_fill;

typedef struct conform_input {
    char name[16];
    bool batched, is_index;
    int64_t count; /* elements per token */
    void *data;    /* values for the whole run */
} conform_input;

/* Groups of nodes: CASE_OWN has those that the case tests, CASE_OTHER the rest of its graph. */
enum { CASE_OTHER, CASE_OWN };

struct conform_build {
    ggl_graph *g;
    conform_form f;
    ggl_op op;  /* the operator that the case tests */
    bool flush; /* subnormal numbers among the values become zeros */
    /* typical size of an output, to measure errors by; 0: only by the largest output */
    double about;
    uint64_t seed;
    conform_input input[CONFORM_INPUTS];
    int n_inputs;
    void *weight[CONFORM_WEIGHTS];
    int n_weights;
    bool no_memory;
};

/* Makes an input with values; case_value: a float input with a value per token. The dimensions
 * end at the first 0. */
ggl_tensor *case_input(conform_build *c, bool batched, conform_fill fill, int64_t range, int n_dims,
                       const int64_t *ne);
ggl_tensor *case_weight(conform_build *c, ggl_type type, int n_dims, const int64_t *ne);
/* Returns k rounded up to whole blocks of the form's type. */
int64_t case_blocks(const conform_build *c, int64_t k);
/* Like ggl_graph_op, ggl_linear and ggl_body_end. */
ggl_tensor *case_node(conform_build *c, ggl_op o, ggl_tensor *const *src, int n_src,
                      const double *num, int n_num);
ggl_tensor *case_linear(conform_build *c, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias);
ggl_tensor *case_call(conform_build *c, const char *name, ggl_tensor *result, const double *num,
                      int n_num);
ggl_tensor *case_op(conform_build *c, ggl_op o, ggl_tensor *a, ggl_tensor *b, ggl_tensor *d,
                    int n_num, const double *num);
/* Make the inputs of positions, slots and ends, for the form's number of slots. */
ggl_tensor *case_positions(conform_build *c);
void case_slots(conform_build *c);
void case_ends(conform_build *c);

/* Returns the next number of a sequence (splitmix64), the same on every machine. */
uint64_t conform_draw(uint64_t *state);

/* Builds the graph and finishes it; folding it is left to the caller. GGL_USAGE: the case has no
 * such form. */
GGL_NODISCARD ggl_status conform_build_graph(conform_build *c, const conform_case *info,
                                             const conform_form *form, bool flush, ggl_error *err);
/* Frees values, weights and graph. */
void conform_build_fini(conform_build *c);
/* Returns the last node of the case's operator, or NULL if only a body has it. */
ggl_tensor *conform_node(const conform_case *info, const ggl_graph *g);
/* Writes conform_output.text; call it before the graph is folded. */
void conform_say(const conform_case *info, const conform_build *c, char *buf, size_t size);
/* Returns the form that is timed, with the types of another form. */
conform_form conform_large(const conform_case *info, const conform_form *typed);
/* Returns why the backend refuses what the case tests, or NULL; *op becomes the operator that it
 * lacks. *by_body: it runs the body of a composite. */
const char *conform_refusal(const conform_case *info, const ggl_graph *g, const ggl_backend *b,
                            const char **op, bool *by_body);

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }
#define VALUE(c, ...) case_input(c, true, FILL_ANY, 0, DIMS(__VA_ARGS__))
#define OP0(c, o, n_num, ...)                                                                      \
    case_op(c, GGL_OP_##o, NULL, NULL, NULL, n_num, (double[]){__VA_ARGS__})
#define OP1(c, o, a)    case_op(c, GGL_OP_##o, a, NULL, NULL, 0, NULL)
#define OP2(c, o, a, b) case_op(c, GGL_OP_##o, a, b, NULL, 0, NULL)
#define OP1N(c, o, a, n_num, ...)                                                                  \
    case_op(c, GGL_OP_##o, a, NULL, NULL, n_num, (double[]){__VA_ARGS__})
#define OP2N(c, o, a, b, n_num, ...)                                                               \
    case_op(c, GGL_OP_##o, a, b, NULL, n_num, (double[]){__VA_ARGS__})
#define NUMBER(c, x) ggl_graph_number((c)->g, x)

/* --- tables ----------------------------------------------------------------------------------- */

#define FORM_LIST(list) .form = list, .n_forms = (int)(sizeof(list) / sizeof *(list))
#define KIND(name, list)                                                                           \
    const conform_kind conform_##name = {#name, list, (int)(sizeof(list) / sizeof *(list))}

#define EDGE(which) (1u << CONFORM_##which)
#define EDGES       (EDGE(NAN) | EDGE(INF) | EDGE(TINY) | EDGE(HUGE))

/* Bounds. Elementwise: a few roundings. Rows and products of length n: n/16 roundings in each of
 * sixteen sums, whose terms may cancel. bf16: activations have 8 bits. Quantized: activations
 * have 7 bits, with one scale per 32. Halves: columns have 11 bits. */
#define ELEMENTWISE 1e-6
#define ROWS        4e-6
#define OF_BF16     1e-2
#define QUANTIZED   3e-2
#define OF_HALVES   2e-3

#endif
