/* The memory of requests and answers (memory.h): how much a request takes, and how much its answer may. */
#include <inttypes.h>
#include <stdio.h>

#include "answer_impl.h"

enum {
    SEAT_BYTES = 24, /* of a sampler, for each token of the vocabulary */
    BEAM_BYTES =
        12, /* of a beam, for each token of the context: its text, and the search's tree of all texts */
    JSON_TOP =
        100, /* an answer's text for a token with its log-probability, and a copy of it: about */
    JSON_TEXT = 3,    /* a byte of text, as it is collected, and as it is written */
    JSON_VECTOR = 28, /* a number of an embedding, the same */
    JSON_RANK = 100   /* a document without its text and score, the same */
};

void answers_limit(answers *x, memory *m) {
    x->memory = m;
    answer_grammars_limit(x->grammars, m);
}

void answers_keep(answers *x, stream_table *s) {
    x->streams = s;
}

void answers_store(answers *x, answer_store *s) {
    x->store = s;
}

int64_t job_n_diffused(const job *j, const job_prompt *p) {
    return llm_job_n_diffused(j->ask->n_max, j->x.facts->n_ctx, (int64_t)p->ids.n);
}

/* Bytes of what writes a text by diffusion (llm_diffuser), for the longest answer. */
static size_t diffuser_bytes(const job *j) {
    const llm_diffusion *d = &j->ask->diffusion;
    size_t n_most = 0;
    for (size_t i = 0; i < j->n_prompts; i++) {
        const int64_t n = job_n_diffused(j, &j->prompt[i]);
        n_most = n > 0 && (size_t)n > n_most ? (size_t)n : n_most;
    }
    if (d->n_block > 0 && (size_t)d->n_block < n_most)
        n_most = (size_t)d->n_block;
    return (size_t)j->x.facts->n_vocab *
           (SEAT_BYTES + (d->cfg_scale > 0 ? n_most * sizeof(float) : 0));
}

ggl_status job_hold_prompts(job *j, ggl_error *err) {
    ask *a = j->ask;
    size_t n = a->n_held_doc + (size_t)j->x.n_choices * sizeof *j->x.choice +
               a->n_rows * (size_t)j->x.facts->n_row * sizeof(float);
    for (size_t i = 0; i < j->n_prompts; i++)
        n += j->prompt[i].ids.cap * sizeof *j->prompt[i].ids.id +
             (j->prompt[i].owned ? j->prompt[i].text.n : 0);
    if (!ask_has_rows(a))
        n += (size_t)j->n_seats * (size_t)j->x.facts->n_vocab * SEAT_BYTES;
    n += (size_t)a->beams.n * (size_t)j->n_seats * (size_t)(j->x.facts->n_ctx + 1) * BEAM_BYTES;
    if (!ask_has_rows(a) && j->x.facts->diffuses)
        n += (size_t)j->n_seats * diffuser_bytes(j);
    a->held.of = j->answers->memory;
    if (memory_set(&a->held, n))
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM,
                    "no memory for the request: it needs %zu bytes, and requests hold %zu of the "
                    "%zu that they may have together (--request-memory); try again later",
                    n, memory_held(a->held.of, MEMORY_REQUESTS),
                    memory_most(a->held.of, MEMORY_REQUESTS));
}

/* The bytes of an answer for tokens whose log-probabilities are given, or for their ids alone. */
static double token_bytes(const job *j, double n) {
    const ask *a = j->ask;
    if (a->n_top < 0)
        return a->return_tokens ? n * (sizeof(answer_token) + JSON_TOP / 4) : 0;
    return n * (sizeof(answer_token) + (double)j->n_top * sizeof(llm_logprob) +
                (1 + (double)j->n_top) * JSON_TOP);
}

int64_t job_n_most(const job *j) {
    enum { MOST = 65536 };
    const int64_t n = j->ask->n_max, n_ctx = j->x.facts->n_ctx, most = n_ctx > MOST ? n_ctx : MOST;
    if (!j->x.facts->shifts)
        return n;
    return n < 0 ? n_ctx : n < most ? n : most;
}

ggl_status job_check_size(const job *j, const char **param, ggl_error *err) {
    const ask *a = j->ask;
    const double n_choices = (double)j->n_prompts * (double)a->n_choices,
                 most = (double)memory_most_of_one(j->answers->memory);
    const int64_t n_ctx = j->x.facts->n_ctx, n_most = job_n_most(j),
                  n_max = n_most < n_ctx || j->x.facts->shifts ? n_most : n_ctx;
    if (ask_has_rows(a)) /* job_hold_vectors */
        return GGL_OK;
    const double n = token_bytes(j, n_choices * (double)(n_max > 0 ? n_max : 0));
    *param = a->n_top >= 0 ? "logprobs" : "n";
    if (a->stream || n <= most)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%.0f answers of up to %" PRId64
                    " tokens, with %zu log-probabilities for each, would take %.0f MiB, more than "
                    "the %.0f MiB that one answer may (an eighth of --request-memory); ask for "
                    "less, or for a stream",
                    n_choices, n_max, a->n_top >= 0 ? j->n_top + 1 : 0, n / 1048576,
                    most / 1048576);
}

ggl_status job_hold_vectors(job *j, int64_t n_vectors, ggl_error *err) {
    const ask *a = j->ask;
    const double most = (double)memory_most_of_one(j->answers->memory);
    double n = (double)n_vectors * (double)answer_width(&j->x) *
               (a->compares ? (double)sizeof(float) : JSON_VECTOR);
    for (size_t i = 0; a->returns_texts && i < a->n_prompts; i++)
        n += (double)a->prompt[i].text.n * JSON_TEXT;
    if (a->kind == ASK_RANK)
        n += (double)n_vectors * JSON_RANK;
    if (n > most && a->kind == ASK_RANK)
        return ggl_fail(err, GGL_LIMIT,
                        "%" PRId64 " ranked documents would take %.0f MiB, more than the %.0f MiB "
                        "that one answer may (an eighth of --request-memory); send fewer at once",
                        n_vectors, n / 1048576, most / 1048576);
    if (n > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%" PRId64 " embeddings of %" PRId64
                        " numbers would take %.0f MiB, more than the %.0f MiB that one answer may "
                        "(an eighth of --request-memory); send fewer at once",
                        n_vectors, j->x.facts->n_embd, n / 1048576, most / 1048576);
    j->held.of = j->answers->memory;
    if (memory_set(&j->held, (size_t)n))
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM,
                    "no memory for the answer: all answers hold the %zu MiB that they may have "
                    "together (--request-memory); try again later",
                    memory_most(j->held.of, MEMORY_ANSWERS) >> 20);
}

ggl_status job_hold_matchers(job *j, ggl_error *err) {
    const size_t n = j->seat[0].parts.matcher ? llm_matcher_size(j->seat[0].parts.matcher) : 0;
    j->matchers_held.of = j->answers->memory;
    if (memory_set(&j->matchers_held, n))
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM,
                    "no memory for the grammar: grammars hold all of the %zu MiB that they may "
                    "have together (--request-memory); try again later",
                    memory_most(j->matchers_held.of, MEMORY_GRAMMARS) >> 20);
}

bool job_hold_part(job *j, const answer_part *part) {
    enum { STEP = 65536 };
    char text[300];
    const size_t most = memory_most_of_one(j->answers->memory);
    j->n_bytes += part->text.n * JSON_TEXT + part->arguments.n * JSON_TEXT + sizeof *part +
                  (size_t)token_bytes(j, (double)part->n_tokens);
    j->held.of = j->answers->memory;
    if (j->n_bytes <= j->held.n ||
        (j->n_bytes <= most && memory_set(&j->held, j->n_bytes + (most >= 8 * STEP ? STEP : 0))) ||
        (j->n_bytes <= most && memory_set(&j->held, j->n_bytes)))
        return true;
    const bool alone = j->n_bytes > most;
    snprintf(text, sizeof text,
             alone ? "the answer has become longer than the %zu MiB that one may take (an eighth "
                     "of --request-memory); ask for less, or for a stream"
                   : "no memory for the answer: all answers hold the %zu MiB that they may have "
                     "together (--request-memory); try again later, or ask for a stream",
             (alone ? most : memory_most(j->held.of, MEMORY_ANSWERS)) >> 20);
    const api_error e = {.status = alone ? 400 : 503,
                         .type = alone ? "invalid_request" : "overloaded",
                         .message = text};
    job_fail(j, &e);
    return false;
}
