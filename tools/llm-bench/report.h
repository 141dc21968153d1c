/* Prints rows: a table for people, or csv, json, json lines, sql. */
#ifndef TOOLS_BENCH_REPORT_H
#define TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "options.h"

typedef struct bench_report {
    FILE *out;
    bench_format format;
    const bench_options *o; /* md: determines which columns are shown */
    size_t n;
    const char *model; /* md: the model of the table being printed; NULL: none yet */
} bench_report;

void bench_report_begin(bench_report *r, FILE *out, bench_format format, const bench_options *o);
void bench_report_row(bench_report *r, const bench_row *row);
/* Prints what follows the table; takes all rows again. */
void bench_report_end(bench_report *r, bench_row *const *rows, size_t n);

#endif
