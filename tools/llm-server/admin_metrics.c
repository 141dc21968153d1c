/* GET /metrics, for Prometheus. Names of llama.cpp's server where it has them, and our own. */
#include <stdlib.h>

#include "admin.h"
#include "api_pieces.h"
#include "server_impl.h"

#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
#include <malloc.h>
/* Bytes that the program has allocated and not freed; 0: not known. */
static double heap_bytes(void) {
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}
#else
static double heap_bytes(void) {
    return 0;
}
#endif

enum { MOST_SLOT_USES = 4 };

/* What is read on the engine's thread. */
typedef struct numbers {
    server *s;
    llm_engine_stats stats;
    answers_times first;
    int n_running;
    size_t n_waiting;
    int64_t n_cached, n_free, n_past_max, slots[MOST_SLOT_USES];
} numbers;

static void read_numbers(void *ctx, llm_engine *e) {
    numbers *n = ctx;
    n->stats = llm_engine_get_stats(e);
    n->first = *answers_first_tokens(server_answers(n->s));
    n->n_running = llm_engine_n_running(e);
    n->n_waiting = llm_engine_n_waiting(e);
    n->n_cached = llm_session_n_cached(n->s->session);
    n->n_free = llm_session_n_free(n->s->session);
    for (int i = 0; i < (int)n->s->params.n_slots; i++) {
        const llm_slot_info slot = llm_engine_slot(e, i);
        n->slots[slot.use]++;
        n->n_past_max = slot.n_past > n->n_past_max ? slot.n_past : n->n_past_max;
    }
}

static void put_metric(llm_json_out *out, const char *name, const char *type, const char *help,
                       double value) {
    put_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

static double per(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* Writes the metrics that llama.cpp's server has, too. */
static void put_known(llm_json_out *out, const numbers *n) {
    const llm_engine_stats *e = &n->stats;
    const double prompt_s = (double)e->prompt_ns * 1e-9, drawn_s = (double)e->generate_ns * 1e-9;
    const struct {
        const char *name, *type, *help;
        double value;
    } row[] = {
        {"llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
         (double)e->n_prompt},
        {"llamacpp:prompt_seconds_total", "counter", "Time that prompts took.", prompt_s},
        {"llamacpp:tokens_predicted_total", "counter", "Tokens that were generated.",
         (double)e->n_drawn},
        {"llamacpp:tokens_predicted_seconds_total", "counter", "Time that generated tokens took.",
         drawn_s},
        {"llamacpp:n_decode_total", "counter", "Steps of the engine.", (double)e->n_steps},
        {"llamacpp:n_tokens_max", "counter", "Tokens of the longest sequence in the cache.",
         (double)n->n_past_max},
        {"llamacpp:n_busy_slots_per_decode", "gauge", "Tokens generated in a step, on average.",
         per((double)e->n_drawn, (double)e->n_steps)},
        {"llamacpp:prompt_tokens_seconds", "gauge", "Tokens of prompts per second.",
         per((double)e->n_prompt, prompt_s)},
        {"llamacpp:predicted_tokens_seconds", "gauge", "Generated tokens per second.",
         per((double)e->n_drawn, drawn_s)},
        {"llamacpp:kv_cache_tokens", "gauge", "Tokens in the cache; shared ones count once.",
         (double)n->n_cached},
        {"llamacpp:requests_processing", "gauge", "Sequences that run.", n->n_running},
        {"llamacpp:requests_deferred", "gauge", "Sequences that wait.", (double)n->n_waiting}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        put_metric(out, row[i].name, row[i].type, row[i].help, row[i].value);
}

static double count(const numbers *n, server_counter which) {
    return (double)server_get_count(n->s, which);
}

static void put_own(llm_json_out *out, const numbers *n) {
    const llm_engine_stats *e = &n->stats;
    const struct {
        const char *name, *help;
        double value;
    } row[] = {
        {"llm_requests_total", "Requests to endpoints.", count(n, COUNT_REQUESTS)},
        {"llm_request_errors_total", "Requests refused as wrong.", count(n, COUNT_ERRORS)},
        {"llm_requests_rejected_total", "Requests refused because the queue was full.",
         count(n, COUNT_REJECTED)},
        {"llm_clients_gone_total", "Clients that disconnected before their answer was complete.",
         count(n, COUNT_GONE)},
        {"llm_prompt_tokens_reused_total", "Tokens of prompts that were in the cache.",
         (double)e->n_reused},
        {"llm_sequences_total", "Sequences that have ended.", (double)e->n_ended},
        {"llm_sequences_failed_total", "Sequences that failed.", (double)e->n_failed},
        {"llm_sequences_cancelled_total", "Sequences that were cancelled.", (double)e->n_cancelled},
        {"llm_preemptions_total", "How often a sequence made room for another.",
         (double)e->n_preempted},
        {"llm_tokens_guessed_total", "Tokens that were guessed.", (double)e->n_guessed},
        {"llm_tokens_guessed_right_total", "Guesses that were right.", (double)e->n_right},
        {"llm_busy_seconds_total", "Time in steps.", (double)e->busy_ns * 1e-9}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        put_metric(out, row[i].name, "counter", row[i].help, row[i].value);
    if (n->n_free < INT64_MAX)
        put_metric(out, "llm_cache_tokens_free", "gauge",
                   "Tokens for which pages of the cache are free.", (double)n->n_free);
    const double heap = heap_bytes();
    if (heap > 0)
        put_metric(out, "llm_heap_bytes", "gauge",
                   "Memory that is allocated and not freed, without mapped files.", heap);
}

static void put_memory(llm_json_out *out, memory *m) {
    llm_json_put_text(out, "# HELP llm_request_memory_bytes Memory that requests hold.\n"
                           "# TYPE llm_request_memory_bytes gauge\n");
    for (int i = 0; i < N_MEMORY_USES; i++)
        put_format(out, "llm_request_memory_bytes{use=\"%s\"} %zu\n", memory_name((memory_use)i),
                   memory_held(m, (memory_use)i));
    put_metric(out, "llm_request_memory_limit_bytes", "gauge",
               "Memory that requests may hold together.", (double)memory_most_of_all(m));
}

static void put_slots(llm_json_out *out, const numbers *n) {
    static const char *const uses[MOST_SLOT_USES] = {[LLM_SLOT_EMPTY] = "empty",
                                                     [LLM_SLOT_KEPT] = "kept",
                                                     [LLM_SLOT_PROMPT] = "prompt",
                                                     [LLM_SLOT_GENERATES] = "generates"};
    llm_json_put_text(out, "# HELP llm_slots Slots by their use.\n# TYPE llm_slots gauge\n");
    for (int i = 0; i < MOST_SLOT_USES; i++)
        put_format(out, "llm_slots{use=\"%s\"} %lld\n", uses[i], (long long)n->slots[i]);
}

static void put_first_tokens(llm_json_out *out, const answers_times *t) {
    static const char name[] = "llm_time_to_first_token_seconds";
    unsigned long long sum = 0;
    put_format(out,
               "# HELP %s From a request to the first token of its answer.\n# TYPE %s histogram\n",
               name, name);
    for (int i = 0; i < ANSWERS_BOUNDS; i++) {
        sum += t->n[i];
        put_format(out, "%s_bucket{le=\"%g\"} %llu\n", name, answers_bound[i], sum);
    }
    sum += t->n[ANSWERS_BOUNDS];
    put_format(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name, sum, name,
               t->sum, name, sum);
}

void admin_metrics(server *s, const http_request *q, http_reply *r) {
    numbers n = {.s = s};
    llm_json_out out = {0};
    (void)q;
    if (!server_on_engine(s, read_numbers, &n)) {
        admin_send(&out, r); /* nothing: an error */
        return;
    }
    put_known(&out, &n);
    put_own(&out, &n);
    put_slots(&out, &n);
    put_memory(&out, server_memory(s));
    put_first_tokens(&out, &n.first);
    http_reply_begin(r, out.failed ? 500 : 200, "text/plain; version=0.0.4; charset=utf-8", false);
    http_reply_write(r, out.s, out.n);
    http_reply_end(r);
    ggl_free(out.s);
}
