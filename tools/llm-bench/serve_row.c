#include "serve_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/machine.h"
#include "ggl/alloc.h"
#include "stats.h"

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static serve_times times_of(double *x, size_t n) {
    if (n == 0)
        return (serve_times){NAN, NAN};
    qsort(x, n, sizeof *x, by_value);
    return (serve_times){bench_quantile(x, n, 0.5), bench_quantile(x, n, 0.99)};
}

/* What is known of a sample: NaN if it is not. */
static double first_of(const serve_sample *s) {
    return s->first_ms;
}

static double end_of(const serve_sample *s) {
    return s->end_ms;
}

static double prompt_of(const serve_sample *s) {
    return s->prompt_tokens >= 0 ? (double)s->prompt_tokens : NAN;
}

static double cached_of(const serve_sample *s) {
    return s->cached_tokens >= 0 ? (double)s->cached_tokens : NAN;
}

static double answer_of(const serve_sample *s) {
    return (double)serve_sample_answer(s);
}

static double pieces_of(const serve_sample *s) {
    return (double)s->n_pieces;
}

static double per_token_of(const serve_sample *s) {
    int64_t n = serve_sample_answer(s);
    return n > 1 ? (s->end_ms - s->first_ms) / (double)(n - 1) : NAN;
}

typedef double (*value_of)(const serve_sample *s);
enum { ALL_TURNS = -1 };

/* Collects a value of all samples of a turn, as far as it is known; returns how many. */
static size_t collect(const serve_log *log, value_of of, int64_t turn, double *x) {
    size_t n = 0;
    for (size_t i = 0; i < log->n_samples; i++) {
        const serve_sample *s = &log->sample[i];
        double v = of(s);
        if ((turn == ALL_TURNS || (size_t)turn == s->turn) && !isnan(v))
            x[n++] = v;
    }
    return n;
}

static double sum_of(const serve_log *log, value_of of, double *x) {
    size_t n = collect(log, of, ALL_TURNS, x);
    double sum = n > 0 ? 0 : NAN;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* Allocates and sets the medians of each turn; false: out of memory. */
static bool take_turns(serve_row *row, const serve_log *log, double *x) {
    const value_of of[] = {first_of, prompt_of, cached_of};
    const size_t n = row->load.n_turns;
    row->turn_first = ggl_calloc(3 * n, sizeof *row->turn_first);
    if (!row->turn_first)
        return false;
    row->turn_prompt = row->turn_first + n;
    row->turn_cached = row->turn_prompt + n;
    for (size_t i = 0; i < 3 * n; i++)
        row->turn_first[i] = times_of(x, collect(log, of[i / n], (int64_t)(i % n), x)).median;
    return true;
}

void serve_row_fini(serve_row *row) {
    ggl_free(row->turn_first);
    row->turn_first = row->turn_prompt = row->turn_cached = NULL;
}

static void take_rounds(serve_row *row, const serve_log *log) {
    row->n_rounds = (int)log->n_rounds;
    row->seconds = 0;
    for (size_t i = 0; i < log->n_rounds; i++) {
        const serve_round *r = &log->round[i];
        row->seconds += r->seconds;
        row->round_rate[i] = r->seconds > 0 ? (double)r->answer / r->seconds : 0;
    }
    row->prompt_rate = row->seconds > 0 ? row->prompt / row->seconds : NAN;
    row->answer_rate = row->seconds > 0 && row->n_ok > 0 ? row->answer / row->seconds : NAN;
}

bool serve_row_take(serve_row *row, serve_log *log) {
    double *x = ggl_calloc(log->n_samples, sizeof *x);
    if (!x || !take_turns(row, log, x)) {
        ggl_free(x);
        return false;
    }
    bench_time_text(row->time, sizeof row->time);
    row->n_ok = log->n_samples;
    row->n_failed = log->n_failed;
    row->n_short = 0;
    for (size_t i = 0; i < log->n_samples; i++)
        row->n_short += serve_sample_answer(&log->sample[i]) < row->load.n_answer;
    row->prompt = sum_of(log, prompt_of, x);
    row->cached = sum_of(log, cached_of, x);
    row->answer = sum_of(log, answer_of, x);
    row->pieces = sum_of(log, pieces_of, x);
    row->first = times_of(x, collect(log, first_of, ALL_TURNS, x));
    row->whole = times_of(x, collect(log, end_of, ALL_TURNS, x));
    row->per_token = times_of(x, collect(log, per_token_of, ALL_TURNS, x));
    row->between = times_of(log->gap, log->n_gaps);
    take_rounds(row, log);
    ggl_free(x);
    return true;
}

/* --- fields ----------------------------------------------------------------------------------- */

int serve_row_fields(const serve_row *r, bench_field out[SERVE_MAX_FIELDS]) {
    const serve_load *l = &r->load;
    const bench_field fields[] = {
        bench_text("url", r->server->url),
        bench_text("model", r->server->model),
        bench_text("endpoint", l->chat ? "chat/completions" : "completions"),
        bench_text("test_time", r->time),
        bench_whole("seed", (double)r->seed),
        bench_whole("n_clients", l->n_clients > 0 ? (double)l->n_clients : NAN),
        bench_number("rate", l->n_clients > 0 ? NAN : l->rate),
        bench_whole("n_prompt", (double)r->n_prompt),
        bench_whole("n_gen", (double)l->n_answer),
        bench_whole("n_shared", (double)r->n_shared),
        bench_whole("n_turns", (double)l->n_turns),
        bench_whole("n_rounds", r->n_rounds),
        bench_whole("n_answers", (double)r->n_ok),
        bench_whole("n_failed", (double)r->n_failed),
        bench_whole("n_short", (double)r->n_short),
        bench_whole("prompt_tokens", r->prompt),
        bench_whole("cached_tokens", r->cached),
        bench_whole("completion_tokens", r->answer),
        bench_whole("pieces", r->pieces),
        bench_number("seconds", r->seconds),
        bench_number("prompt_ts", r->prompt_rate),
        bench_number("completion_ts", r->answer_rate),
        bench_number("first_token_ms", r->first.median),
        bench_number("first_token_ms_99", r->first.p99),
        bench_number("between_tokens_ms", r->between.median),
        bench_number("between_tokens_ms_99", r->between.p99),
        bench_number("per_token_ms", r->per_token.median),
        bench_number("per_token_ms_99", r->per_token.p99),
        bench_number("answer_ms", r->whole.median),
        bench_number("answer_ms_99", r->whole.p99),
        bench_numbers("samples_ts", r->round_rate, r->n_rounds),
        bench_numbers("turn_first_token_ms", r->turn_first, (int)l->n_turns),
        bench_numbers("turn_prompt_tokens", r->turn_prompt, (int)l->n_turns),
        bench_numbers("turn_cached_tokens", r->turn_cached, (int)l->n_turns),
    };
    int n = (int)(sizeof fields / sizeof *fields);
    memcpy(out, fields, sizeof fields);
    return n;
}

double serve_load_size(const serve_load *l) {
    return l->n_clients > 0 ? (double)l->n_clients : l->rate;
}

const char *serve_load_text(const serve_load *l, char *buf, size_t size) {
    snprintf(buf, size, l->n_clients > 0 ? "%.0f" : "%g/s", serve_load_size(l));
    return buf;
}
