/* The result of a test of one server: rates and times of its answers. */
#ifndef TOOLS_BENCH_SERVE_ROW_H
#define TOOLS_BENCH_SERVE_ROW_H

#include "fields.h"
#include "serve_load.h"

typedef struct serve_times { /* in ms; NaN if none were measured */
    double median, p99;
} serve_times;

typedef struct serve_row {
    const serve_server *server;
    serve_load load;
    int64_t seed;               /* of the command line */
    int64_t n_prompt, n_shared; /* tokens that were asked for */
    char time[32];
    size_t n_ok, n_failed,
        n_short; /* answers; of those that succeeded, the ones with too few tokens */
    double prompt, cached, answer, pieces; /* tokens of all answers; NaN: not reported */
    double seconds;
    double prompt_rate, answer_rate; /* tokens per second */
    serve_times first, between;      /* to the first token; between neighboring pieces */
    serve_times per_token, whole;    /* of an answer: from its first token, by token; to its end */
    /* By turn of a conversation [load.n_turns], medians over all conversations: the time to the first
     * token, the prompt's tokens, and those of them that the server had kept; NaN: not known. */
    double *turn_first, *turn_prompt, *turn_cached;
    double round_rate[SERVE_MAX_ROUNDS]; /* [n_rounds] tokens of answers per second */
    int n_rounds;
} serve_row;

/* Computes the row from a log, which is sorted on the way; `row` has server, load, n_prompt and
 * n_shared. False: out of memory. Ends with
 * serve_row_fini. */
bool serve_row_take(serve_row *row, serve_log *log);
void serve_row_fini(serve_row *row);

enum { SERVE_MAX_FIELDS = 64 };
/* Writes the fields, which borrow from the row; returns how many. */
int serve_row_fields(const serve_row *r, bench_field out[SERVE_MAX_FIELDS]);
/* Writes "16" (clients) or "0.5/s" (a rate); returns buf. */
const char *serve_load_text(const serve_load *l, char *buf, size_t size);
/* Returns the number of clients, or the rate. */
double serve_load_size(const serve_load *l);

#endif
