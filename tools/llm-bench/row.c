#include "row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/commit.h"

const char *bench_test_text(const bench_test *t, char *buf, unsigned size) {
    char prompt[32] = "", gen[32] = "", depth[32] = "", sequences[32] = "";
    if (t->n_prompt > 0)
        snprintf(prompt, sizeof prompt, "pp%" PRId64, t->n_prompt);
    if (t->n_gen > 0)
        snprintf(gen, sizeof gen, "%stg%" PRId64, t->n_prompt > 0 ? "+" : "", t->n_gen);
    if (t->n_depth > 0)
        snprintf(depth, sizeof depth, " @ d%" PRId64, t->n_depth);
    if (t->n_sequences > 1)
        snprintf(sequences, sizeof sequences, " x%" PRId64, t->n_sequences);
    snprintf(buf, size, "%s%s%s%s%s%s", prompt, gen, sequences, depth, t->guesses ? " " : "",
             t->guesses ? t->guesses : "");
    return buf;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool bench_where_equal(const bench_where *a, const bench_where *b) {
    return same_text(a->devices, b->devices) && same_text(a->split, b->split);
}

bool bench_test_alike(const bench_test *a, const bench_test *b) {
    return a->n_prompt == b->n_prompt && a->n_gen == b->n_gen && a->n_depth == b->n_depth &&
           a->n_batch == b->n_batch && a->n_ubatch == b->n_ubatch && a->n_threads == b->n_threads &&
           a->n_sequences == b->n_sequences && a->type_k == b->type_k && a->type_v == b->type_v &&
           same_text(a->guesses, b->guesses);
}

bool bench_test_equal(const bench_test *a, const bench_test *b) {
    return strcmp(a->model, b->model) == 0 && bench_test_alike(a, b);
}

/* A value that is 0 if it is not known. */
static bench_field known(const char *key, double x) {
    return bench_number(key, x > 0 ? x : NAN);
}

static double share(int64_t n, int64_t of) {
    return of > 0 ? (double)n / (double)of : NAN;
}

double bench_guesses_per_step(const bench_guesses *g) {
    return share(g->n_tokens, g->n_tokens - g->n_right);
}

double bench_guesses_right(const bench_guesses *g) {
    return share(g->n_right, g->n_guessed);
}

double bench_guesses_declined(const bench_guesses *g) {
    return share(g->n_declined, g->n_steps);
}

static int guess_fields(const bench_row *r, bench_field *out) {
    const bench_guesses *g = r->guesses;
    const bench_field fields[] = {
        bench_text("guesses", r->test.guesses),
        bench_text("draft_filename", g->draft),
        bench_number("plain_avg_ts", g->s_plain.mean),
        bench_number("plain_median_ts", g->s_plain.median),
        bench_number("ratio", g->s_ratio.median),
        bench_number("q1_ratio", g->s_ratio.q1),
        bench_number("q3_ratio", g->s_ratio.q3),
        bench_number("tokens_per_step", bench_guesses_per_step(g)),
        bench_whole("n_tokens", (double)g->n_tokens),
        bench_whole("n_guessed", (double)g->n_guessed),
        bench_whole("n_right", (double)g->n_right),
        bench_number("share_right", bench_guesses_right(g)),
        bench_number("share_declined", bench_guesses_declined(g)),
        bench_whole("n_texts", g->n_texts),
        bench_whole("n_texts_differ", g->n_differ),
        bench_numbers("samples_plain_ts", g->plain, r->n),
    };
    const int n = (int)(sizeof fields / sizeof *fields);
    for (int i = 0; i < n; i++)
        out[i] = fields[i];
    return n;
}

int bench_row_fields(const bench_row *r, bench_field out[BENCH_MAX_FIELDS]) {
    const bench_test *t = &r->test;
    const bench_field fields[] = {
        bench_text("build_commit", *tool_commit ? tool_commit : "unknown"),
        bench_whole("build_number", (double)tool_commit_number),
        bench_text("cpu_info", r->cpu),
        bench_text("gpu_info", r->device),
        bench_text("backends", r->backend),
        bench_text("isa", r->isa),
        bench_text("model_filename", t->model),
        bench_text("model_type", r->model_type),
        bench_whole("model_size", r->model_size),
        bench_whole("model_n_params", r->n_params),
        bench_whole("n_batch", (double)t->n_batch),
        bench_whole("n_ubatch", (double)t->n_ubatch),
        bench_whole("n_threads", (double)t->n_threads),
        bench_text("cpu_mask", "0x0"),
        bench_text("type_k", r->types[0]),
        bench_text("type_v", r->types[1]),
        bench_whole("n_gpu_layers", r->n_gpu_layers),
        bench_whole("n_prompt", (double)t->n_prompt),
        bench_whole("n_gen", (double)t->n_gen),
        bench_whole("n_depth", (double)t->n_depth),
        bench_whole("n_sequences", (double)t->n_sequences),
        bench_text("test_time", r->time),
        bench_whole("avg_ns", r->s_ns.mean),
        bench_whole("stddev_ns", r->s_ns.stddev),
        bench_number("avg_ts", r->s_ts.mean),
        bench_number("stddev_ts", r->s_ts.stddev),
        bench_number("median_ts", r->s_ts.median),
        bench_number("q1_ts", r->s_ts.q1),
        bench_number("q3_ts", r->s_ts.q3),
        bench_number("min_ts", r->s_ts.min),
        bench_number("max_ts", r->s_ts.max),
        known("gb_per_s", r->gb),
        known("gmac_per_s", r->gmac),
        known("limit_gb_per_s", r->limit.read_gb),
        known("limit_int8_gmac_per_s", r->limit.int8_gmac),
        known("limit_f32_gmac_per_s", r->limit.f32_gmac),
        known("limit_bf16_gmac_per_s", r->limit.bf16_gmac),
        known("percent_of_limit", r->percent),
        known("percent_of_first", r->of_first),
        bench_whole("peak_memory", r->peak_memory),
        bench_whole("load_ns", r->load_ns),
        bench_whole("first_token_ns", r->first_token_ns),
        bench_wholes("samples_ns", r->ns, r->n),
        bench_numbers("samples_ts", r->ts, r->n),
    };
    int n = (int)(sizeof fields / sizeof *fields);
    for (int i = 0; i < n; i++)
        out[i] = fields[i];
    return r->guesses ? n + guess_fields(r, out + n) : n;
}
