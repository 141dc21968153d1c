/* Runs a model that `llm-arch compile` has written as tables in C, on a board without an operating system: without malloc, files and
 * threads. docs/small.md shows how to build it.
 *
 *     #include "plan.h"                                     // written beside plan.c
 *     static SMALL_ALIGNED char ram[PLAN_RAM];
 *
 *     small_begin(&plan, ram);
 *     const float *logits = small_step(&plan, ram, token, 0);
 *     token = small_greedy(logits, PLAN_N_VOCAB);
 *     logits = small_step(&plan, ram, token, 1);
 *
 * Logits have the bits that the CPU of the large engine gives (docs/numeric.md). A number of plans can be in one program; one runs at a
 * time. This header needs C99. */
#ifndef SMALL_H
#define SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMALL_ALIGNED __attribute__((aligned(16)))

struct ggl_type_info; /* a type of elements: ggl/types.h */

/* An operand: where its elements are. Element (i, j, k, l) is i nb[0] + j nb[1] + k nb[2] + l nb[3] bytes after the first. */
typedef struct small_view {
    const void *rom; /* in flash: the tensor; NULL: it is in RAM */
    uint32_t at;     /* the first element: bytes after rom, or from the beginning of RAM */
    const struct ggl_type_info *type;
    int32_t ne[4], nb[4];
} small_view;

/* What stays from token to token: rows of keys or values by position, or a state. */
typedef struct small_store {
    uint32_t at;
    uint32_t page_size; /* bytes of 64 positions */
    int32_t n_pages;    /* position p is in page p / 64 % n_pages */
    int32_t ne[2];      /* elements of a row, and heads */
    uint8_t kind;       /* ggl_store_kind */
    const struct ggl_type_info *type;
} small_store;

/* An operator with its operands. */
typedef struct small_op {
    void (*run)(const struct small_op *op, char *ram);
    void (*kernel)(void);          /* a function of one row, if the operator has several */
    const small_view *const *view; /* [0]: the result; then the sources; NULL: absent */
    const small_store *const *store;
    int32_t n[3]; /* numbers of the operator */
    float f[2];
    double d;
} small_op;

/* Ordered by their text: id[k] is the token whose text is the k-th. */
typedef struct small_text small_text;

typedef struct small_plan {
    const small_op *op;
    uint32_t n_op;
    const struct ggl_type_info *const *type; /* the types in use, and NULL */
    uint32_t stores, ram;                    /* bytes of RAM: where stores begin, and of all */
    uint32_t logits;
    int32_t n_vocab, n_ctx;
    const small_text *text; /* NULL: without a tokenizer */
} small_plan;

/* Begins a new text. ram: plan->ram bytes, at a multiple of 16. */
void small_begin(const small_plan *plan, char *ram);

/* Runs a token at position pos: 0 for the first of a text, then one more each time, below plan->n_ctx. Returns plan->n_vocab
 * logits, which are in `ram` until the next call; NULL: pos or token is out of range. */
const float *small_step(const small_plan *plan, char *ram, int32_t token, int32_t pos);

#ifdef __cplusplus
}
#endif
#endif
