/* A program on the engine, in one of the ways that must not matter, and what comes out held against
 * the judge and against the other ways. */
#ifndef RANDOM_RUN_H
#define RANDOM_RUN_H

#include "ggl/backends.h"
#include "judge.h"
#include "program.h"
#include "ranks/local_job.h"

enum { R_MOST_BACKENDS = 3, R_MOST_VARIANTS = 20 };

/* The backends that a run may use; opened once. */
typedef enum r_engine {
    R_CPU,      /* one thread, vectors as the machine has them */
    R_CPU_3,    /* three threads that share every step */
    R_PORTABLE, /* two threads, portable code */
    R_REFERENCE,
    R_LATE,   /* as R_CPU, but a run is done only when something waits for it, as on a device */
    R_RANK_1, /* as R_CPU and R_CPU_3, in other ranks of a job: all bytes pass through messages */
    R_RANK_2,
    R_SPOILED, /* for tests of the test: NULL, or one with a fault, which takes R_CPU's place */
    R_ENGINES
} r_engine;

/* What a variant does otherwise than the first one. */
typedef enum r_how {
    R_FOLD = 1,   /* folds the other half of the programs */
    R_CHUNKS = 2, /* the tokens in pieces of random sizes, else as many at once as there may be */
    R_SOME = 4,   /* only some rows of the outputs are wanted, in some pieces none */
    R_PIECES = R_CHUNKS | R_SOME,
    R_NO_REPACK = 8,
    R_DIVIDED = 32, /* products are divided among the engines, which work side by side */
    R_FLIGHTS = 16  /* several batches are under way at once, and collected in any order */
} r_how;

typedef struct r_variant {
    const char *name;
    int engine[R_MOST_BACKENDS], n_engines; /* nodes are spread over these */
    judge_kind judge;
    int how;           /* of r_how */
    const char *equal; /* an earlier variant whose bits these must be; NULL: none */
} r_variant;

extern const r_variant r_variants[];
extern const int r_n_variants;

typedef struct r_bench {
    ggl_backend *engine[R_ENGINES], *under_late;
    local_job *job;
    /* For tests of the test: the judge goes by the program, the engine runs this one. NULL: the
     * same. */
    const r_program *instead;
    /* only ways with threads, and the first, whose bits theirs must be; no judge */
    bool only_threads;
    bool other_judge; /* judges the CPU as if it did not round activations */
} r_bench;

bool r_bench_open(r_bench *b, ggl_error *err);
void r_bench_close(r_bench *b);

typedef enum r_fault { R_RIGHT, R_REFUSED, R_WRONG, R_DIFFERS, R_CRASHED } r_fault;

typedef struct r_result {
    r_fault fault;
    int variant;    /* that failed */
    char text[768]; /* how */
    long n_numbers, n_unknown,
        n_loose; /* compared; left open by the judge; bounds above a 20th of the row's largest */
} r_result;

/* Runs all variants, or the one with that name (and what it must equal); true: all as they must
 * be. */
bool r_check(r_bench *b, const r_program *p, const char *only, r_result *out);
/* The same in a process of its own with backends of its own, so that a crash is a result. */
bool r_check_apart(const r_program *p, const char *only, r_result *out);

#endif
