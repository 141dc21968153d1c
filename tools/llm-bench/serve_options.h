/* The command line of `llm-bench serve`. */
#ifndef TOOLS_BENCH_SERVE_OPTIONS_H
#define TOOLS_BENCH_SERVE_OPTIONS_H

#include "common/args.h"
#include "lists.h"

typedef enum serve_format { SERVE_PLAIN, SERVE_MD, SERVE_CSV, SERVE_JSON } serve_format;

enum { SERVE_MAX_SERVERS = 2 };

typedef struct serve_options {
    const char *url[SERVE_MAX_SERVERS], *key[SERVE_MAX_SERVERS], *model[SERVE_MAX_SERVERS];
    const char *name[SERVE_MAX_SERVERS];
    size_t n_servers;
    bench_list clients, prompt, gen;
    double *rate; /* [n_rates]; none: loads are numbers of clients */
    size_t n_rates;
    int64_t n_requests, rounds, shared, turns, timeout;
    int64_t seed;
    double temperature;
    arg_list field;
    const char *plot;
    int format; /* serve_format */
    bool chat, no_ignore_eos, words, progress;
} serve_options;

/* Reads the command line. Returns -1, or an exit code. */
int serve_options_read(serve_options *o, int argc, char **argv);
void serve_options_fini(serve_options *o);

#endif
