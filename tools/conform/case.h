/* Cases for backends. A case builds a small graph around one operator; the graph is fed seeded
 * values, run on a backend, and must be within a bound of what the reference backend computes. What
 * a graph is in detail is a form: sizes, types, batch, values; so a form that fails can be made
 * smaller while it still fails. To check a backend:
 *
 *     conform_result r;
 *     for (int k = 0; conform_kind_at(k); k++)
 *         for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
 *             const conform_case *info = &conform_kind_at(k)->cases[i];
 *             for (int variant = 0; variant < conform_n_variants(info); variant++)
 *                 if (conform_check(info, variant, backend, &r) == CONFORM_WRONG)
 *                     printf("%s: %s\n", r.form_text, r.text);
 *         }
 */
#ifndef TOOLS_CONFORM_CASE_H
#define TOOLS_CONFORM_CASE_H

#include "ggl/backends.h"

enum {
    CONFORM_SIZES = 10,
    CONFORM_INPUTS = 8,
    CONFORM_WEIGHTS = 8,
    CONFORM_TEXT = 320 /* bytes of a line for people */
};

/* --- forms ------------------------------------------------------------------------------------ */

typedef enum conform_values {
    CONFORM_ORDINARY, /* random, of a magnitude about 1 */
    CONFORM_WHOLE,    /* whole numbers of -4 .. 4 */
    CONFORM_ONES,
    CONFORM_NAN,  /* from here on some of an input's values are, ordinary ones among them: NaN */
    CONFORM_INF,  /* infinities of both signs */
    CONFORM_TINY, /* zeros of both signs and subnormal numbers */
    CONFORM_HUGE, /* up to 3e38 */
    CONFORM_N_VALUES
} conform_values;

/* What a case may have besides, as its builder says. */
enum {
    CONFORM_BIAS = 1,
    CONFORM_NUMBER = 2,    /* one operand is a number of the graph */
    CONFORM_UNBATCHED = 4, /* one operand is the same for all of the batch */
    CONFORM_VALUE = 8,     /* the matrix is computed, not a weight */
    CONFORM_EQUALS = 16,   /* values are rounded down, so that some are equal */
    CONFORM_SCALE = 32,
    CONFORM_SINKS = 64,
    CONFORM_ALIBI = 128,
    CONFORM_PART = 256, /* the rows of values are a part of those of keys */
    CONFORM_TWICE = 512,
    CONFORM_ALL = 1023
};

typedef struct conform_form {
    int64_t size[CONFORM_SIZES]; /* dimensions and numbers, as the case's builder reads them; 0:
                                    absent */
    int64_t n;                   /* of the batch, in all; 0: 5 */
    int64_t n_batch;             /* most in one run; 0: n */
    int64_t chunk;   /* in one run; 0: as many as possible; negative: so, but the last -chunk one by
                        one */
    int64_t n_slots; /* sequences that take turns; 0: 1 */
    int64_t view;    /* not 0: float inputs are slices that begin there */
    ggl_type type;   /* of weights */
    ggl_type type_k, type_v; /* of what a cache keeps */
    unsigned with;           /* CONFORM_BIAS | .. */
    conform_values values;
    bool unnamed; /* composites do not carry their names */
    bool alone;   /* what the graph has besides the case's operator runs on the reference */
    uint64_t seed;
} conform_form;

/* --- cases ------------------------------------------------------------------------------------ */

typedef struct conform_build conform_build; /* build.h */
typedef ggl_tensor *conform_fn(conform_build *c);

typedef enum conform_types {
    CONFORM_AS_FORM,     /* the forms' own */
    CONFORM_ANY_WEIGHT,  /* each form with every type that a weight can have */
    CONFORM_NOT_F32,     /* the same, but f32 */
    CONFORM_SOME_WEIGHT, /* f32, f16, bf16, q8_0, q4_0 */
    CONFORM_ANY_KEPT     /* each form with every pair of types of keys and values */
} conform_types;

/* |y - reference| may be `bound` times the largest |reference|, or times what the builder says that
 * an output is about, if that is larger. */
typedef struct conform_case {
    const char *name; /* of the case */
    ggl_op op;
    const char *call; /* CALL: the composite's name */
    conform_fn *build;
    const conform_form *form;
    int n_forms;
    double bound;
    double bound_bf16, bound_quantized; /* with such weights; 0: as bound */
    conform_types types;
    unsigned edges; /* 1 << CONFORM_NAN | ..: values that the first forms are run with, too */
    const conform_form *large; /* to be timed; NULL: it is not */
} conform_case;

typedef struct conform_kind {
    const char *name;
    const conform_case *cases;
    int n_cases;
} conform_kind;

extern const conform_kind conform_elementwise, conform_rows, conform_moves, conform_products,
    conform_attention, conform_kept, conform_spans, conform_composites, conform_recurrences;
/* All of these; NULL past the end. */
const conform_kind *conform_kind_at(int k);

/* Forms times types, then the first forms with edge values. */
int conform_n_variants(const conform_case *info);
conform_form conform_variant(const conform_case *info, int variant);
double conform_bound(const conform_case *info, const conform_form *form);

/* "+", "linear", "softmax" */
const char *conform_op_name(const conform_case *info);
/* "q4_0"; of what a cache keeps "f16, q8_0"; returns buf. */
const char *conform_type_name(const conform_case *info, const conform_form *form, char *buf,
                              size_t size);

/* --- running ---------------------------------------------------------------------------------- */

typedef struct conform_output {
    float *y; /* [n][row]; conform_output_fini */
    int64_t n, row;
    int64_t ne[GGL_MAX_DIMS]; /* of a row */
    /* "linear([64] x 20, q4_0 [64, 41], [41]), slices from 3": the form, as the graph has it */
    char text[CONFORM_TEXT];
    double about;             /* what an element is about, if the builder says so, else 0 */
    int covers[GGL_OP_COUNT]; /* operators that the graph has */
    bool built;               /* the graph is valid: an error is the backend's */
    bool by_body;             /* the backend does not know the composite's name */
    const char *refused; /* why the backend does not have the operator; NULL: it ran. y is NULL */
    const char *refused_op; /* which one: the case's own, or one of its body */
} conform_output;

/* Runs a form on a backend. What the graph has besides the case's operator runs on the reference
 * if the backend refuses it. */
GGL_NODISCARD ggl_status conform_run(const conform_case *info, const conform_form *form,
                                     ggl_backend *b, conform_output *out, ggl_error *err);
/* On a backend that is opened for it. */
GGL_NODISCARD ggl_status conform_run_on(const conform_case *info, const conform_form *form,
                                        const char *backend, const ggl_backend_params *params,
                                        conform_output *out, ggl_error *err);
void conform_output_fini(conform_output *out);

typedef enum conform_outcome {
    CONFORM_RIGHT,
    CONFORM_REFUSED,
    CONFORM_WRONG,
    CONFORM_FAILED, /* the backend returned an error */
    CONFORM_INVALID /* no graph can be built of this form, or there is no memory */
} conform_outcome;

typedef struct conform_result {
    conform_outcome outcome;
    conform_form form;
    double share; /* of the bound that the largest error takes; above 1: wrong */
    int64_t at;   /* WRONG: the worst element, of [n][row] */
    float got, want;
    int64_t n_wrong, count;       /* elements */
    bool by_body;                 /* RIGHT: the backend ran the composite's body */
    char form_text[CONFORM_TEXT]; /* as conform_output.text */
    char text[CONFORM_TEXT];      /* why it is refused, where it is wrong, how it failed */
} conform_result;

/* Compares with the reference; returns r->outcome. */
conform_outcome conform_check(const conform_case *info, int variant, ggl_backend *b,
                              conform_result *r);
conform_outcome conform_check_form(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r);
/* The same, and what the backend computed goes to *got, whose y is NULL if it computed nothing. The
 * caller frees it with conform_output_fini. */
conform_outcome conform_check_keep(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r, conform_output *got);
/* Of outputs that there are already. flushed: the reference's output for inputs whose subnormal
 * numbers are zeros, which is as good; NULL: none. */
conform_outcome conform_compare(const conform_case *info, const conform_form *form,
                                const conform_output *got, const conform_output *want,
                                const conform_output *flushed, conform_result *r);

/* A form that fails like *r (WRONG or FAILED), with as little as possible: fewer of the batch,
 * smaller sizes, plainer values, without what can be left out. *r becomes that form's result.
 * At most so many tries; returns how many there were. */
int conform_shrink(const conform_case *info, ggl_backend *b, conform_result *r, int most);

#endif
