/* The command line of a measurement: lists of values, and all combinations of them. */
#ifndef TOOLS_BENCH_OPTIONS_H
#define TOOLS_BENCH_OPTIONS_H

#include "common/open_options.h"
#include "lists.h"
#include "row.h"

typedef enum bench_format {
    BENCH_MD,
    BENCH_CSV,
    BENCH_JSON,
    BENCH_JSONL,
    BENCH_SQL,
    BENCH_NONE
} bench_format;

typedef struct bench_options {
    /* compare: OLD, or OLD and NEW, the latter as a positional argument */
    arg_list models, compare;
    arg_list texts; /* files that are continued where guesses are measured, */
    char **text;    /* [texts.n]: and what is in them, once it was read (bench_guesses_read), */
    size_t *n_text; /* of so many bytes */
    open_options open;
    bench_list prompt, gen, depth, threads, batch, ubatch, sequences, type_k, type_v;
    bool types_given; /* of the KV cache, by the user */
    bench_list pair;  /* pp, tg, pp, tg, .. */
    bench_where *where;
    size_t n_where;
    int64_t reps, delay;
    const char *plot;
    const char *compare_old, *compare_new, *alternation;
    double confidence, tolerance;
    int format, format_err; /* bench_format */
    const char *guesses;    /* as bench_test */
    bool progress, no_warmup, no_limits, profile;
} bench_options;

/* Reads the command line. Returns -1, or an exit code. */
int bench_options_read(bench_options *o, int argc, char **argv, const args_command *commands);
void bench_options_fini(bench_options *o);

/* Lists every combination in order: models outermost, then threads, batches, types, depths,
 * sequences. The caller frees *tests. False: out of memory. */
bool bench_options_tests(const bench_options *o, bench_test **tests, size_t *n);

#endif
