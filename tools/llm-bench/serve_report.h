/* Prints the results of `llm-bench serve`: a table for people, or md, csv, json. */
#ifndef TOOLS_BENCH_SERVE_REPORT_H
#define TOOLS_BENCH_SERVE_REPORT_H

#include "serve_options.h"
#include "serve_row.h"

typedef struct serve_report {
    FILE *out;
    serve_format format;
    size_t n_servers;
    size_t n;                   /* rows so far */
    int64_t n_prompt, n_answer; /* of the table being printed */
} serve_report;

void serve_report_begin(serve_report *r, FILE *out, const serve_options *o,
                        const serve_server *server);
/* Prints the rows of one test, one for each server. */
void serve_report_rows(serve_report *r, const serve_row *row);
/* Prints what the rows of a test leave open: failures, answers that were too short, pieces of
 * several tokens. To stderr. */
void serve_report_notes(const serve_row *row, size_t n_servers, serve_log *const *log);
void serve_report_end(serve_report *r);

#endif
