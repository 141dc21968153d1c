/* Conformance cases for backends. A case builds a small graph around an operator, runs it on a
 * backend with random values from a seed, and compares the results with the reference backend's,
 * within a bound. A form gives the details of the graph (sizes, types, batch, values), so that a
 * form that fails can be made smaller as long as it still fails. To check a backend:
 *
 *     conform_result r;
 *     for (int k = 0; conform_kind_at(k); k++)
 *         for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
 *             const conform_case *info = &conform_kind_at(k)->cases[i];
 *             for (int variant = 0; variant < conform_n_variants(info); variant++)
 *                 if (conform_check(info, variant, backend, &r) == CONFORM_WRONG)
 *                     printf("%s: %s\n", r.form_text, r.text);
 *         } */
#ifndef TOOLS_CONFORM_CASE_H
#define TOOLS_CONFORM_CASE_H

#include "ggl/backends.h"

enum {
    CONFORM_SIZES = 10,
    CONFORM_INPUTS = 8,
    CONFORM_WEIGHTS = 8,
    CONFORM_TEXT = 320 /* size of a line for people, in bytes */
};

/* --- forms ------------------------------------------------------------------------------------ */

typedef enum conform_values {
    CONFORM_ORDINARY, /* random, around 1 in size */
    CONFORM_WHOLE,    /* whole numbers from -4 to 4 */
    CONFORM_ONES,
    CONFORM_NAN,  /* from here on: ordinary values and some special ones; NaN */
    CONFORM_INF,  /* infinities of both signs */
    CONFORM_TINY, /* zeros of both signs and subnormal numbers */
    CONFORM_HUGE, /* up to 3e38 */
    CONFORM_N_VALUES
} conform_values;

/* Options of a form, as the case's builder reads them. */
enum {
    CONFORM_BIAS = 1,
    CONFORM_NUMBER = 2,    /* one operand is a number in the graph */
    CONFORM_UNBATCHED = 4, /* one operand is the same for all tokens */
    CONFORM_VALUE = 8,     /* the matrix is computed instead of a weight */
    CONFORM_EQUALS = 16,   /* values are rounded down, so that some are equal */
    CONFORM_SCALE = 32,
    CONFORM_SINKS = 64,
    CONFORM_ALIBI = 128,
    CONFORM_PART = 256, /* the values' rows are a part of the keys' */
    CONFORM_TWICE = 512,
    CONFORM_SEES_ALL =
        1024, /* tokens see all of their sequence, or are added up: they are in one run */
    CONFORM_ALL = 2047
};

typedef struct conform_form {
    /* dimensions and numbers, as the case's builder reads them; 0: absent */
    int64_t size[CONFORM_SIZES];
    int64_t n;       /* tokens in all; 0: 5 */
    int64_t n_batch; /* at most in one run; 0: n */
    /* tokens in one run; 0: as many as possible; negative: as many as possible, but the last -chunk
     * ones one by one */
    int64_t chunk;
    int64_t n_slots;         /* sequences that take turns; 0: 1 */
    int64_t turn;            /* tokens of one sequence before the next one's; 0: 1 */
    int64_t view;            /* not 0: float inputs are slices that begin at this element */
    ggl_type type;           /* of weights */
    ggl_type type_k, type_v; /* of the rows that a cache keeps */
    unsigned with;           /* CONFORM_BIAS | .. */
    conform_values values;
    bool unnamed; /* composites have no names */
    bool alone;   /* only what the case tests runs on the backend, the rest on the reference */
    uint64_t seed;
    /* the rows of caches lie in pages in a random order with this seed; 0: one after another */
    uint64_t pages;
} conform_form;

/* --- cases ------------------------------------------------------------------------------------ */

typedef struct conform_build conform_build; /* build.h */
typedef ggl_tensor *conform_fn(conform_build *c);

typedef enum conform_types {
    CONFORM_AS_FORM,     /* those of the forms */
    CONFORM_ANY_WEIGHT,  /* each form with every type that a weight can have */
    CONFORM_NOT_F32,     /* the same without f32 */
    CONFORM_SOME_WEIGHT, /* f32, f16, bf16, q8_0, q4_0 */
    CONFORM_ANY_KEPT     /* each form with every pair of types for keys and values */
} conform_types;

/* |y - reference| may be up to `bound` times the largest |reference|, or times the typical size
 * of an output as given by the builder, if that is larger. */
typedef struct conform_case {
    const char *name; /* the case's name */
    ggl_op op;
    const char *call; /* for CALL: the composite's name */
    conform_fn *build;
    const conform_form *form;
    int n_forms;
    double bound;
    double bound_bf16;      /* the bound for bf16 weights; 0: `bound` */
    double bound_quantized; /* that for quantized weights or keys, as their products may round the
                             * other factor to bytes; 0: `bound` */
    double
        bound_halves; /* for weights of f16 on matrix units (conform_output.halves); 0: `bound` */
    conform_types types;
    /* 1 << CONFORM_NAN | ..: special values that the first forms are also run with */
    unsigned edges;
    const conform_form *large; /* the form that is timed; NULL: none */
} conform_case;

typedef struct conform_kind {
    const char *name;
    const conform_case *cases;
    int n_cases;
} conform_kind;

extern const conform_kind conform_elementwise, conform_rows, conform_moves, conform_products,
    conform_attention, conform_kept, conform_spans, conform_composites, conform_recurrences;
/* Returns the k-th kind of cases; NULL past the end. */
const conform_kind *conform_kind_at(int k);

/* A case's variants are its forms times the types, then the first forms with special values. */
int conform_n_variants(const conform_case *info);
conform_form conform_variant(const conform_case *info, int variant);
double conform_bound(const conform_case *info, const conform_form *form, bool halves);

/* "+", "linear", "softmax" */
const char *conform_op_name(const conform_case *info);
/* Writes "q4_0", or "f16, q8_0" for what a cache keeps; returns buf. */
const char *conform_type_name(const conform_case *info, const conform_form *form, char *buf,
                              size_t size);

/* --- running ---------------------------------------------------------------------------------- */

typedef struct conform_output {
    float *y; /* [n][row]; free with conform_output_fini */
    int64_t n, row;
    int64_t ne[GGL_MAX_DIMS]; /* of a row */
    /* the form as the graph has it: "linear([64] x 20, q4_0 [64, 41], [41]), slices from 3" */
    char text[CONFORM_TEXT];
    double about;             /* typical size of an element, if the builder gives it; else 0 */
    int covers[GGL_OP_COUNT]; /* how often the graph has each operator */
    bool built;               /* the graph is valid: an error comes from the backend */
    bool by_body;             /* the backend does not know the composite's name */
    bool halves;              /* the backend may round columns to f16, for matrix units */
    /* why the backend refuses what the case tests, with y NULL; NULL: it ran */
    const char *refused;
    const char *refused_op; /* the operator that is refused: the case's own, or one of its body */
} conform_output;

/* Runs a form on a backend. The reference runs the other nodes of the graph that the backend
 * refuses. */
GGL_NODISCARD ggl_status conform_run(const conform_case *info, const conform_form *form,
                                     ggl_backend *b, conform_output *out, ggl_error *err);
/* The same on a backend that is opened for it. */
GGL_NODISCARD ggl_status conform_run_on(const conform_case *info, const conform_form *form,
                                        const char *backend, const ggl_backend_params *params,
                                        conform_output *out, ggl_error *err);
void conform_output_fini(conform_output *out);

typedef enum conform_outcome {
    CONFORM_RIGHT,
    CONFORM_REFUSED,
    CONFORM_WRONG,
    CONFORM_FAILED, /* the backend returned an error */
    CONFORM_INVALID /* the form has no valid graph, or out of memory */
} conform_outcome;

typedef struct conform_result {
    conform_outcome outcome;
    conform_form form;
    double share; /* the largest error as a share of the bound; above 1: wrong */
    int64_t at;   /* WRONG: index of the worst element in [n][row] */
    float got, want;
    int64_t n_wrong, count;       /* elements */
    bool by_body;                 /* RIGHT: the backend ran the body of the composite */
    char form_text[CONFORM_TEXT]; /* as in conform_output.text */
    char text[CONFORM_TEXT];      /* why it was refused, where it is wrong, or how it failed */
} conform_result;

/* Compare the results with the reference's; return r->outcome. */
conform_outcome conform_check(const conform_case *info, int variant, ggl_backend *b,
                              conform_result *r);
conform_outcome conform_check_form(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r);
/* The same, and *got becomes what the backend computed; got->y is NULL if it computed nothing.
 * The caller frees it with conform_output_fini. */
conform_outcome conform_check_keep(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r, conform_output *got);
/* Compares outputs. flushed: the reference's output with subnormal inputs replaced by zeros,
 * which is also right; NULL: none. */
conform_outcome conform_compare(const conform_case *info, const conform_form *form,
                                const conform_output *got, const conform_output *want,
                                const conform_output *flushed, conform_result *r);

/* Searches for a smaller form that fails like *r (WRONG or FAILED): fewer tokens, smaller sizes,
 * plainer values, fewer options. *r becomes that form's result. Makes at most `most` tries;
 * returns how many. */
int conform_shrink(const conform_case *info, ggl_backend *b, conform_result *r, int most);

#endif
