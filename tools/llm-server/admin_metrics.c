/* GET /metrics, for Prometheus. Names of llama.cpp's server where it has them, and our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "api_pieces.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_process.h"
#include "server_impl.h"

enum { MOST_SLOT_USES = 4 };

/* What is read on the engine's thread. */
typedef struct numbers {
    model *m;  /* NULL: requests that named no model */
    server *s; /* NULL: it is not loaded */
    llm_engine_stats stats;
    answers_times first;
    int n_running;
    size_t n_waiting;
    int64_t n_cached, n_free, n_past_max, slots[MOST_SLOT_USES];
    double prompt_rate, drawn_rate;
    llm_prompt_folder_stats shared;
} numbers;

static void read_numbers(void *ctx, llm_engine *e) {
    numbers *n = ctx;
    n->stats = llm_engine_get_stats(e);
    n->first = *answers_first_tokens(server_answers(n->s));
    if (n->s->prompts)
        n->shared = llm_prompt_folder_get_stats(n->s->prompts);
    n->prompt_rate = rate_get(&n->s->prompt_rate, ggl_os_clock(), n->stats.n_prompt);
    n->drawn_rate = rate_get(&n->s->drawn_rate, ggl_os_clock(), n->stats.n_drawn);
    if (n->s->facts.hears) { /* whose thread has the session */
        size_t n_running, n_waiting;
        turn_queue_count(n->s->speech, &n_running, &n_waiting);
        n->n_running = (int)n_running;
        n->n_waiting = n_waiting;
        n->n_free = INT64_MAX;
        n->slots[n_running ? LLM_SLOT_GENERATES : LLM_SLOT_EMPTY]++;
        return;
    }
    n->n_running = llm_engine_n_running(e);
    n->n_waiting = llm_engine_n_waiting(e);
    n->n_cached = llm_session_n_cached(llm_opened_session(n->s->ctx));
    n->n_free = llm_session_n_free(llm_opened_session(n->s->ctx));
    for (int i = 0; i < (int)llm_opened_session_params(n->s->ctx)->n_slots; i++) {
        const llm_slot_info slot = llm_engine_slot(e, i);
        n->slots[slot.use]++;
        n->n_past_max = slot.n_past > n->n_past_max ? slot.n_past : n->n_past_max;
    }
}

typedef struct metric {
    const char *name, *type, *help;
    double value;
    bool is_absent; /* of this model */
} metric;

enum { MOST_METRICS = 48 };

static double per(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* Fills in the metrics that llama.cpp's server has, too. Returns their number. */
static int fill_known(metric *out, const numbers *n) {
    const llm_engine_stats *e = &n->stats;
    const double prompt_s = (double)e->prompt_ns * 1e-9, drawn_s = (double)e->generate_ns * 1e-9;
    const bool shares = n->s && n->s->prompts;
    const double n_places = n->s ? (double)n->s->facts.n_parallel : 1;
    const metric row[] = {
        {"llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
         (double)e->n_prompt, false},
        {"llamacpp:prompt_tokens_cached_total", "counter",
         "Tokens of prompts that were in the cache.", (double)e->n_reused, false},
        {"llamacpp:prompt_seconds_total", "counter", "Time that prompts took.", prompt_s, false},
        {"llamacpp:tokens_predicted_total", "counter", "Tokens that were generated.",
         (double)e->n_drawn, false},
        {"llamacpp:tokens_predicted_seconds_total", "counter", "Time that generated tokens took.",
         drawn_s, false},
        {"llamacpp:n_decode_total", "counter", "Steps of the engine.", (double)e->n_steps, false},
        {"llamacpp:n_tokens_max", "counter", "Tokens of the longest sequence in the cache.",
         (double)n->n_past_max, false},
        {"llamacpp:spec_decode_num_draft_tokens_total", "counter", "Tokens that were guessed.",
         (double)e->n_guessed, false},
        {"llamacpp:spec_decode_num_accepted_tokens_total", "counter", "Guesses that were right.",
         (double)e->n_right, false},
        {"llamacpp:spec_decode_num_drafts_total", "counter", "Steps of a sequence with guesses.",
         (double)e->n_drafts, false},
        {"llamacpp:n_busy_slots_per_decode", "gauge", "Tokens generated in a step, on average.",
         per((double)e->n_drawn, (double)e->n_steps), false},
        {"llamacpp:prompt_tokens_seconds", "gauge", "Tokens of prompts per second.",
         per((double)e->n_prompt, prompt_s), false},
        {"llamacpp:predicted_tokens_seconds", "gauge", "Generated tokens per second.",
         per((double)e->n_drawn, drawn_s), false},
        {"llamacpp:kv_cache_tokens", "gauge", "Tokens in the cache; shared ones count once.",
         (double)n->n_cached, false},
        {"llamacpp:requests_processing", "gauge", "Sequences that run.", n->n_running, false},
        {"llamacpp:requests_deferred", "gauge", "Sequences that wait.", (double)n->n_waiting,
         false},
        {"llm_places", "gauge", "Sequences that may run at once.", n_places, false},
        {"llm_queue_limit", "gauge", "Sequences that may wait.", n->s ? (double)n->s->n_queue : 0,
         false},
        {"llm_load", "gauge",
         "Sequences that run or wait, for each that may run at once: above 1, some wait.",
         (n->n_running + (double)n->n_waiting) / n_places, false},
        {"llm_prompt_tokens_per_second", "gauge",
         "Tokens of prompts that were computed, per second of the last half minute.",
         n->prompt_rate, false},
        {"llm_tokens_per_second", "gauge",
         "Tokens that were generated, per second of the last half minute.", n->drawn_rate, false},
        {"llm_prompt_tokens_reused_total", "counter", "Tokens of prompts that were in the cache.",
         (double)e->n_reused, false},
        {"llm_prompts_loaded_total", "counter", "Beginnings that were loaded from files.",
         (double)n->shared.n_loaded, !shares},
        {"llm_prompt_tokens_loaded_total", "counter",
         "Their tokens, which count as reused as well.", (double)n->shared.n_loaded_tokens,
         !shares},
        {"llm_prompts_saved_total", "counter", "Beginnings that were saved to files.",
         (double)n->shared.n_saved, !shares},
        {"llm_prompts_removed_total", "counter", "Files that made room for others.",
         (double)n->shared.n_removed, !shares},
        {"llm_prompts_failed_total", "counter", "Files that could not be written or used.",
         (double)n->shared.n_failed, !shares},
        {"llm_sequences_total", "counter", "Sequences that have ended.", (double)e->n_ended, false},
        {"llm_sequences_failed_total", "counter", "Sequences that failed.", (double)e->n_failed,
         false},
        {"llm_sequences_cancelled_total", "counter", "Sequences that were cancelled.",
         (double)e->n_cancelled, false},
        {"llm_preemptions_total", "counter", "How often a sequence made room for another.",
         (double)e->n_preempted, false},
        {"llm_tokens_guessed_total", "counter", "Tokens that were guessed.", (double)e->n_guessed,
         false},
        {"llm_tokens_guessed_right_total", "counter", "Guesses that were right.",
         (double)e->n_right, false},
        {"llm_busy_seconds_total", "counter", "Time in steps.", (double)e->busy_ns * 1e-9, false},
        {"llm_cache_tokens_free", "gauge", "Tokens for which pages of the cache are free.",
         (double)n->n_free, n->n_free == INT64_MAX},
        {"llm_remembered_bytes", "gauge",
         "Texts of prompts that are remembered with their tokens, at most 16 MiB.",
         n->s ? (double)llm_tokenizer_remembered(server_tokenizer(n->s)) : 0, false}};
    const int n_rows = sizeof row / sizeof *row;
    for (int i = 0; i < n_rows; i++) {
        out[i] = row[i];
        out[i].is_absent |= !n->s;
    }
    return n_rows;
}

/* Fills in what is counted for models that are not loaded, too. */
static int fill_counts(metric *out, const models *t, const numbers *n) {
    const model_status x = n->m ? model_get_status(n->m) : (model_status){0};
    const metric row[] = {
        {"llm_requests_total", "counter", "Requests to endpoints.",
         (double)models_get_count(t, n->m, COUNT_REQUESTS), false},
        {"llm_request_errors_total", "counter", "Requests refused as wrong.",
         (double)models_get_count(t, n->m, COUNT_ERRORS), false},
        {"llm_requests_rejected_total", "counter", "Requests refused because the queue was full.",
         (double)models_get_count(t, n->m, COUNT_REJECTED), false},
        {"llm_clients_gone_total", "counter",
         "Clients that disconnected before their answer was complete.",
         (double)models_get_count(t, n->m, COUNT_GONE), false},
        {"llm_model_loaded", "gauge", "Whether the model is loaded.", x.state == MODEL_LOADED,
         !n->m},
        {"llm_model_loads_total", "counter", "How often the model was loaded, or should have been.",
         (double)x.n_loads, !n->m},
        {"llm_model_requests", "gauge", "Requests that use the model.", x.n_uses, !n->m},
        {"llm_model_requests_waiting", "gauge", "Requests that wait for the model to be loaded.",
         (double)x.n_waiting, !n->m}};
    memcpy(out, row, sizeof row);
    return sizeof row / sizeof *row;
}

/* Writes the labels of a value: `more`, which may be "", and the model's if there are several. */
static void put_labels(llm_json_out *out, const models *t, const numbers *n, const char *more) {
    const bool is_single = models_is_single(t);
    if (is_single && !*more)
        return;
    llm_json_format(out, "{%s%s", more, is_single ? "" : *more ? ",model=" : "model=");
    if (!is_single)
        admin_put_string(out,
                         n->m ? model_name(n->m) : ""); /* with the escapes of JSON, which fit */
    llm_json_put_text(out, "}");
}

static void put_head(llm_json_out *out, const char *name, const char *type, const char *help) {
    llm_json_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Writes each metric with its values for all models. row: [n][MOST_METRICS]. */
static void put_metrics(llm_json_out *out, const models *t, const numbers *n, size_t n_models,
                        const metric *row, int n_metrics) {
    for (int i = 0; i < n_metrics; i++) {
        bool has_head = false;
        for (size_t k = 0; k < n_models; k++) {
            const metric *x = &row[k * MOST_METRICS + (size_t)i];
            if (x->is_absent)
                continue;
            if (!has_head)
                put_head(out, x->name, x->type, x->help);
            has_head = true;
            llm_json_put_text(out, x->name);
            put_labels(out, t, &n[k], "");
            llm_json_format(out, " %.17g\n", x->value);
        }
    }
}

static void put_slots(llm_json_out *out, const models *t, const numbers *n, size_t n_models) {
    static const char *const uses[MOST_SLOT_USES] = {[LLM_SLOT_EMPTY] = "use=\"empty\"",
                                                     [LLM_SLOT_KEPT] = "use=\"kept\"",
                                                     [LLM_SLOT_PROMPT] = "use=\"prompt\"",
                                                     [LLM_SLOT_GENERATES] = "use=\"generates\""};
    put_head(out, "llm_slots", "gauge", "Slots by their use.");
    for (size_t k = 0; k < n_models; k++)
        for (int i = 0; n[k].s && i < MOST_SLOT_USES; i++) {
            llm_json_put_text(out, "llm_slots");
            put_labels(out, t, &n[k], uses[i]);
            llm_json_format(out, " %lld\n", (long long)n[k].slots[i]);
        }
}

static void put_histogram(llm_json_out *out, const models *t, const numbers *n, const char *name) {
    unsigned long long sum = 0;
    char le[40];
    for (int i = 0; i <= ANSWERS_BOUNDS; i++) {
        sum += n->first.n[i];
        if (i < ANSWERS_BOUNDS)
            snprintf(le, sizeof le, "le=\"%g\"", answers_bound[i]);
        else
            snprintf(le, sizeof le, "le=\"+Inf\"");
        llm_json_format(out, "%s_bucket", name);
        put_labels(out, t, n, le);
        llm_json_format(out, " %llu\n", sum);
    }
    llm_json_format(out, "%s_sum", name);
    put_labels(out, t, n, "");
    llm_json_format(out, " %.9g\n%s_count", n->first.sum, name);
    put_labels(out, t, n, "");
    llm_json_format(out, " %llu\n", sum);
}

static void put_first_tokens(llm_json_out *out, const models *t, const numbers *n,
                             size_t n_models) {
    static const char name[] = "llm_time_to_first_token_seconds";
    put_head(out, name, "histogram", "From a request to the first token of its answer.");
    for (size_t k = 0; k < n_models; k++)
        if (n[k].s)
            put_histogram(out, t, &n[k], name);
}

static void put_memory(llm_json_out *out, memory *m) {
    put_head(out, "llm_request_memory_bytes", "gauge", "Memory that requests hold.");
    for (int i = 0; i < N_MEMORY_USES; i++)
        llm_json_format(out, "llm_request_memory_bytes{use='%s'} %zu\n", memory_name((memory_use)i),
                        memory_held(m, (memory_use)i));
    put_head(out, "llm_request_memory_limit_bytes", "gauge",
             "Memory that requests may hold together.");
    llm_json_format(out, "llm_request_memory_limit_bytes %zu\n", memory_most_of_all(m));
}

/* The metrics of all models, or of the one that the query names; none is loaded for that. */
static void put_all(llm_json_out *out, models *t, const model *only) {
    const model_list *l = models_get_list(t);
    const size_t n_rows = l->n + !models_is_single(t);
    numbers *n = ggl_calloc(n_rows, sizeof *n);
    metric *row = ggl_calloc(n_rows, MOST_METRICS * sizeof *row);
    size_t k = 0;
    int n_metrics = 0;
    out->failed |= !n || !row;
    for (size_t i = 0; i < n_rows && !out->failed; i++) {
        model *m = i < l->n ? l->at[i] : NULL;
        if (only && m != only)
            continue;
        n[k] = (numbers){.m = m, .s = m ? model_peek(m) : NULL};
        if (n[k].s && !server_on_engine(n[k].s, read_numbers, &n[k])) {
            model_unpeek(n[k].s);
            n[k].s = NULL;
        }
        metric *x = &row[k++ * MOST_METRICS];
        n_metrics = fill_known(x, &n[k - 1]);
        n_metrics += fill_counts(x + n_metrics, t, &n[k - 1]);
    }
    if (!out->failed) {
        put_metrics(out, t, n, k, row, n_metrics);
        put_slots(out, t, n, k);
        put_first_tokens(out, t, n, k);
    }
    for (size_t i = 0; n && i < k; i++)
        if (n[i].s)
            model_unpeek(n[i].s);
    ggl_free(row);
    ggl_free(n);
}

void admin_metrics(models *t, const http_request *q, http_reply *r) {
    const char *name = q->parameter(q, "model");
    llm_json_out out = {0};
    ggl_error err = {0};
    const model *only = name ? models_find(t, name, &err) : NULL;
    if (name && !only) {
        answer_failed(request_errors(q), err.status, &err, "model", r);
        return;
    }
    put_all(&out, t, only);
    put_memory(&out, models_memory(t));
    put_head(&out, "llm_ready", "gauge", "Whether GET /ready says that requests should come.");
    llm_json_format(&out, "llm_ready %d\n", models_get_readiness(t) == MODELS_READY);
    const double heap = (double)ggl_os_heap();
    if (heap > 0) {
        put_head(&out, "llm_heap_bytes", "gauge",
                 "Memory that is allocated and not freed, without mapped files.");
        llm_json_format(&out, "llm_heap_bytes %.17g\n", heap);
    }
    char start[32];
    snprintf(start, sizeof start, "%lld", (long long)models_get_began(t));
    http_reply_header(r, "Process-Start-Time-Unix", start);
    http_reply_begin(r, out.failed ? 500 : 200, "text/plain; version=0.0.4; charset=utf-8", false);
    http_reply_write(r, out.s, out.n);
    http_reply_end(r);
    ggl_free(out.s);
}
