/* Loads a server: clients that send requests and read the streamed answers, all in one thread.
 *
 *     serve_log log = {0};
 *     st = serve_load_run(http, &server, &load, &log, &err);
 *     printf("%zu answers, %zu failures\n", log.n_samples, log.n_failed);
 *     serve_log_fini(&log); */
#ifndef TOOLS_BENCH_SERVE_LOAD_H
#define TOOLS_BENCH_SERVE_LOAD_H

#include "serve_http.h"
#include "serve_stream.h"

typedef struct serve_server {
    const char *url;  /* as the user gave it */
    const char *name; /* for people; NULL: not given */
    const char *key;  /* NULL: none */
    char base[1024];  /* ends with "/v1" */
    char model[256];
} serve_server;

/* One test. A conversation has n_turns requests, each of which repeats what was said before. */
typedef struct serve_load {
    bool chat; /* /chat/completions; else /completions */
    bool ignore_eos;
    double temperature;
    const char *const *field; /* [n_fields] "NAME=JSON", borrowed */
    size_t n_fields;
    size_t n_clients; /* each begins a conversation when its last one has ended; 0: see rate */
    double rate;      /* conversations that begin per second, at random times */
    size_t n_talks;   /* conversations of each client; with a rate, of all */
    size_t n_turns;   /* 1 or more */
    size_t n_words;   /* of each turn's new text */
    size_t n_shared;  /* words that begin all conversations */
    int64_t n_answer; /* tokens */
    uint64_t seed;    /* of all texts and times */
} serve_load;

/* A request that succeeded. */
typedef struct serve_sample {
    size_t turn;             /* from 0 */
    double first_ms, end_ms; /* from sending the request to the first token, and to the end */
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* negative: not reported */
    int64_t n_pieces;
} serve_sample;

typedef struct serve_round {
    double seconds;         /* from the first request to the end of the last answer */
    int64_t prompt, answer; /* tokens of all answers that succeeded */
} serve_round;

enum { SERVE_FAILURES = 4, SERVE_MAX_ROUNDS = 100 };

typedef struct serve_log {
    serve_sample *sample;
    double *gap; /* [n_gaps] ms between neighboring pieces of an answer */
    size_t n_samples, n_gaps, cap_samples, cap_gaps;
    size_t n_failed;
    struct {
        char text[256];
        size_t n;
    } failure[SERVE_FAILURES]; /* different ones, in the order of the first of each */
    serve_round round[SERVE_MAX_ROUNDS];
    size_t n_rounds;
} serve_log;

/* Runs a load once, which adds a round to the log. Requests that fail are counted there, and end
 * their conversation. GGL_NOMEM, GGL_IO: the run could not go on. */
GGL_NODISCARD ggl_status serve_load_run(serve_http *http, const serve_server *server,
                                        const serve_load *load, serve_log *log, ggl_error *err);
void serve_log_fini(serve_log *log);

/* Returns the tokens of an answer: the server's number, or, if it reports none, the pieces. */
int64_t serve_sample_answer(const serve_sample *s);

#endif
