/* Runs one test on a model and fills its row. */
#ifndef TOOLS_BENCH_RUN_H
#define TOOLS_BENCH_RUN_H

#include "limits.h"
#include "opening.h"
#include "options.h"

/* How a model is opened for one placement; borrows from both. */
llm_opening bench_opening(bench_options *o, const bench_where *w);

typedef struct bench_setup { /* what tests have in common */
    bench_options *o;
    llm_context *ctx;      /* with the model alone, between tests */
    llm_opening opening;   /* of the model alone */
    double load_ns;        /* time for opening the model */
    int64_t *noted_length; /* of the longest text so far */
    bool *noted;           /* its notes were printed */
    bench_limits limits;
    const char *cpu;
    bench_row *const *row; /* those measured so far */
    size_t n_rows;
} bench_setup;

/* Runs a test. Free row->profile with bench_row_free. Errors name what failed. *equal: an earlier row, which
 * differs only in the -ngl that was typed: the layers are where they were, and nothing was measured;
 * else NULL. */
GGL_NODISCARD ggl_status bench_run(bench_row *row, const bench_row **equal, const bench_setup *s,
                                   const bench_test *t, ggl_error *err);
void bench_row_free(bench_row *row); /* NULL is fine */

#endif
