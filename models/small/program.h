/* A model as a program for one token, and what the runtime in small/ calls for each of its steps. */
#ifndef MODELS_SMALL_PROGRAM_H
#define MODELS_SMALL_PROGRAM_H

#include <stdio.h>

#include "ggl/program.h"
#include "llm/internal/small.h"

/* Inputs are at the beginning of RAM, as small_inputs of small/step.h has them, and then the logits; each leaf is a region of its own,
 * from SMALL_FIRST_LEAF on. */
enum { SMALL_LOGITS = 16, SMALL_FIRST_LEAF = GGL_REGION_WEIGHT };

typedef struct small_program {
    ggl_graph *graph;
    llm_arch_result built;
    ggl_program program;
    ggl_loc *loc, *store_loc; /* by id of tensors and stores */
    const ggl_tensor **leaf;  /* [n_leaves]: weights and constants, by region - SMALL_FIRST_LEAF */
    size_t n_leaves, cap_leaves;
    const ggl_tensor *logits;
    int64_t n_ctx;
    size_t arena, scratch, stores, ram; /* where these begin in RAM, and its bytes */
} small_program;

/* The function of the runtime that a step calls, with its numbers. */
typedef struct small_call {
    const char *run; /* small_op_<run> */
    char kernel[32]; /* small_<kernel>; "": none */
    int n_views;     /* the result, and sources; those that the step lacks are absent */
    bool squares;    /* the second source is the first one */
    const ggl_store *store[2];
    int64_t n[3];
    double f[2], d;
    size_t scratch; /* bytes; its place in RAM is n[1] */
} small_call;

/* Builds the program of a model. *p is freed by small_program_fini, also after an error. */
ggl_status llm_small_program(small_program *p, const llm_small_source *source, ggl_error *err);
void llm_small_program_fini(small_program *p);

/* ops.c. Sets *out to what a step calls; LOOP and END have none. GGL_UNSUPPORTED: the message names the operator. */
ggl_status llm_small_call(const ggl_step *s, small_call *out, ggl_error *err);
/* Members of ggl_program_params. */
const char *llm_small_refuses(const ggl_backend *b, const ggl_tensor *node);
bool llm_small_in_place(const ggl_tensor *node);
ggl_form llm_small_form(const ggl_backend *b, const ggl_step *s);

/* words.c. What was written of a tokenizer. */
typedef struct llm_small_words {
    char why[256]; /* not empty: the runtime cannot have this tokenizer, and nothing was written */
    size_t size;   /* bytes of tables */
    size_t work_each,
        work; /* small_encode needs at most work_each bytes for each byte of text, and work besides */
} llm_small_words;

/* Writes the tables of a tokenizer, the last of which is named `words`. GGL_NOMEM. */
ggl_status llm_small_put_words(FILE *f, const llm_tokenizer *t, llm_small_words *out,
                               ggl_error *err);

/* Writes a number of C with all its bits, whatever the locale; returns buf. */
const char *llm_small_number(double x, char buf[64]);

#endif
