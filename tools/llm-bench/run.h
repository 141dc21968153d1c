/* Runs one test on a model and fills its row. */
#ifndef TOOLS_BENCH_RUN_H
#define TOOLS_BENCH_RUN_H

#include "common/placement.h"
#include "limits.h"
#include "llm/model.h"
#include "options.h"

/* Borrows from both. */
placement_options bench_placement(const bench_options *o, const bench_where *w);

typedef struct bench_setup { /* what tests share */
    const bench_options *o;
    llm_model *model;
    double load_ns; /* of opening it */
    bool *noted;    /* its notes were printed */
    bench_limits limits;
    const char *cpu;
} bench_setup;

/* row->profile is the caller's (bench_row_free). Errors name what could not be done. */
GGL_NODISCARD ggl_status bench_run(bench_row *row, const bench_setup *s, const bench_test *t,
                                   ggl_error *err);
void bench_row_free(bench_row *row); /* NULL is fine */

#endif
