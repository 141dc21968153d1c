/* For tests of engines: small models, sequences with random parameters, and what each of them draws
 * alone. One file of a test program includes this. It may define FIXTURE_MEDIA, rows that stand for tokens (llm_session_params.media), and FIXTURE_ADAPTERS, an array of uses of adapters. */
#ifndef TESTS_ENGINE_TEST_H
#define TESTS_ENGINE_TEST_H

#include <stdatomic.h>

#include "alone.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "seed.h"
#include "test.h"
#include "tiny_model.h"

enum {
    VOCAB = TINY_VOCAB,
    CTX = 256,
    MOST_JOBS = 700,
    GUESSES = 4,
    MOST_GUESSERS = 8,
    MOST_CPUS = 3
};

/* A sequence, and what became of it. */
typedef struct job {
    struct fixture *f;
    uint64_t id; /* 0: it was not added */
    int32_t *prompt;
    size_t n_prompt;
    llm_sampler_params sampling;
    const llm_grammar *grammar; /* NULL: none */
    int64_t n_max;
    int64_t stop_at, cancel_at; /* tokens after which its callback does that; less than 0: never */
    bool shows_prompt;
    llm_beams_params beams; /* n 0: none */
    bool shifts;            /* and keeps n_keep */
    int64_t n_keep;
    llm_sampler *sampler;
    llm_matcher *matcher;
    int32_t token[CTX + 1];
    float *logits;   /* [n][VOCAB] */
    float *prompted; /* [n_prompted][VOCAB] */
    int64_t n, n_prompted;
    int64_t last_step; /* of the fixture, in which it drew last */
    bool has_ended;
    llm_end why;
    llm_sequence_stats stats;
    ggl_status status;
    char message[200];
} job;

typedef struct fixture {
    ggl_backend *cpu[MOST_CPUS], *reference;
    llm_model *model;
    llm_session *s, *alone;
    llm_engine *e;
    llm_prompt_folder *prompts;
    llm_vocab *vocab;
    llm_grammar *grammar[2];
    llm_guesser guesser;
    const llm_guesser *guessers[MOST_GUESSERS];
    job *job[MOST_JOBS];
    int n_jobs, n_ended;
    int32_t common[CTX]; /* what many prompts begin with */
    uint64_t seed;
    int most_beams; /* of random jobs; 0: they have none */
    int64_t now;
    atomic_int_least64_t polls_left; /* until a run is cancelled; less than 0: never */
    bool is_cancelled;               /* some run was, whose end may not be collected yet */
    int64_t n_steps, n_right, n_preempted, n_loaded;
    int64_t n_overlapped;     /* times that batches were under way between two calls */
    void (*on_token)(job *j); /* NULL: none */
    void (*on_end)(job *j);
    ggl_error err;
} fixture;

typedef struct fixture_params {
    int64_t n_ubatch, n_slots, n_rows, n_pool;
    int64_t n_step; /* llm_engine_params.n_ubatch */
    int n_parallel;
    size_t n_queue, n_queue_each;
    int n_backends; /* the layers are divided over them; 0: 1 */
    bool guesses;
    int64_t step_ns;
    size_t n_snapshot_bytes;
    int64_t (*clock)(void *ctx); /* NULL: one that steps move on */
    const char *folder;          /* of shared beginnings; NULL: none */
    uint64_t n_folder_bytes;
    void (*report)(void *ctx, const char *sentence); /* of the folder */
} fixture_params;

TEST_UNUSED static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

/* --- fixtures --------------------------------------------------------------------------------- */

static bool fixture_cancels(void *ctx) {
    fixture *f = ctx;
    const int64_t left = atomic_load(&f->polls_left);
    return left >= 0 && atomic_fetch_sub(&f->polls_left, 1) == 0;
}

/* A step takes a little, or long. */
static int64_t fixture_clock(void *ctx) {
    fixture *f = ctx;
    return f->now += below(f, 20) ? 1000 : 100000000;
}

/* With 8 tokens, some guesses are right. */
static int64_t fixture_guess(void *self, const int32_t *id, size_t n, size_t n_same, int32_t *out,
                             int64_t n_max) {
    fixture *f = self;
    CHECK(n_same <= n && n_max > 0 && n_max <= GUESSES && (int64_t)n + n_max <= CTX);
    const int64_t n_out = below(f, (int)n_max + 1);
    for (int64_t i = 0; i < n_out; i++)
        out[i] = below(f, 60) == 0 ? VOCAB
                 : below(f, 3)     ? (id[n - 1] + (int32_t)i) % 2
                                   : below(f, VOCAB);
    return n_out;
}

static void fixture_outcome(void *self, int64_t n_guessed, int64_t n_right) {
    fixture *f = self;
    CHECK(n_right >= 0 && n_right <= n_guessed);
    f->n_right += n_right;
}

static int fixture_n_backends;

/* Layer l is on backend l, and what follows the layers on the last one. */
static int fixture_place(void *ctx, int layer, int n_layer, const char *weight) {
    const int last = fixture_n_backends - 1, k = layer < 0 ? 0 : layer < n_layer ? layer : last;
    (void)ctx;
    return weight ? -1 : k < last ? k : last;
}

static bool fixture_session(fixture *f, llm_session **s, const fixture_params *p) {
    llm_session_params sp = llm_session_default();
    sp.n_ctx = CTX;
    sp.n_ubatch = p->n_ubatch;
    sp.n_rows = p->n_rows;
    sp.n_slots = p->n_slots;
    sp.n_pool = p->n_pool;
    sp.backend = f->cpu;
    sp.n_backends = fixture_n_backends = p->n_backends > 0 ? p->n_backends : 1;
    sp.place = fixture_place;
    sp.fold = f->reference;
#ifdef FIXTURE_MEDIA
    sp.media = FIXTURE_MEDIA;
#endif
#ifdef FIXTURE_ADAPTERS
    sp.adapter = FIXTURE_ADAPTERS;
    sp.n_adapters = sizeof FIXTURE_ADAPTERS / sizeof *FIXTURE_ADAPTERS;
#endif
    sp.cancelled = fixture_cancels;
    sp.cancelled_ctx = f;
    return CHECK_OK(llm_session_new(s, f->model, &sp, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool fixture_grammars(fixture *f) {
    static const char *const text[] = {"root ::= [ab]+ \"c\"?",
                                       "root ::= (\"ab\" | \"cde\"){2,12}"};
    static const char *const word[VOCAB] = {"a", "b", "c", "d", "ab", "e", "", "cd"};
    ggl_str token[VOCAB];
    for (int i = 0; i < VOCAB; i++)
        token[i] = (ggl_str){word[i], strlen(word[i])};
    const bool is_eog[VOCAB] = {[6] = true};
    bool ok = CHECK_OK(llm_vocab_from_texts(&f->vocab, token, is_eog, VOCAB, &f->err), &f->err);
    for (int i = 0; i < 2 && ok; i++)
        ok = CHECK_OK(llm_grammar_from_gbnf(&f->grammar[i], text[i], strlen(text[i]), "g", &f->err),
                      &f->err);
    return ok;
}

/* A model from the text, a session for a sequence alone, the grammars. */
TEST_UNUSED static bool fixture_open(fixture *f, const char *text, uint64_t seed) {
    *f = (fixture){.polls_left = -1, .seed = seed};
    const char *path = test_path("engine.gguf");
    const ggl_backend_params one = {.size = sizeof one, .n_threads = 1};
    for (int i = 0; i < CTX; i++)
        f->common[i] = below(f, VOCAB);
    return tiny_model_write(path, text, 0.4f) &&
           CHECK_OK(ggl_backend_open(&f->cpu[0], "cpu", &one, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->cpu[1], "cpu1", &one, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->cpu[2], "cpu2", &one, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
           CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) &&
           fixture_session(f, &f->alone,
                           &(fixture_params){.n_ubatch = 64, .n_slots = 1, .n_rows = 1}) &&
           fixture_grammars(f);
}

/* Starts an engine in a session of its own. */
TEST_UNUSED static bool fixture_start(fixture *f, const fixture_params *p) {
    f->guesser = (llm_guesser){.guess = fixture_guess, .outcome = fixture_outcome, .self = f};
    for (int i = 0; i < MOST_GUESSERS; i++)
        f->guessers[i] = &f->guesser;
    if (!fixture_session(f, &f->s, p))
        return false;
    const llm_prompt_folder_params fp = {
        .size = sizeof fp,
        .path = p->folder,
        .n_bytes = p->n_folder_bytes,
        .n_copy_bytes = p->n_folder_bytes,
        .cache = {.size = sizeof fp.cache, .model = f->model, .session = f->s},
        .report = p->report};
    if (p->folder && !CHECK_OK(llm_prompt_folder_new(&f->prompts, &fp, &f->err), &f->err))
        return false;
    const llm_engine_params ep = {.size = sizeof ep,
                                  .session = f->s,
                                  .prompts = f->prompts,
                                  .n_parallel = p->n_parallel,
                                  .n_queue = p->n_queue,
                                  .n_queue_each = p->n_queue_each,
                                  .n_ubatch = p->n_step,
                                  .step_ns = p->step_ns,
                                  .n_snapshot_bytes = p->n_snapshot_bytes,
                                  .guesser = p->guesses ? f->guessers : NULL,
                                  .n_guess_max = GUESSES,
                                  .clock = p->clock ? p->clock : fixture_clock,
                                  .clock_ctx = f};
    return CHECK_OK(llm_engine_new(&f->e, &ep, &f->err), &f->err);
}

static void job_free(job *j) {
    llm_sampler_free(j->sampler);
    llm_matcher_free(j->matcher);
    ggl_free(j->prompt);
    ggl_free(j->logits);
    ggl_free(j->prompted);
    ggl_free(j);
}

TEST_UNUSED static void fixture_stop(fixture *f) {
    llm_engine_free(f->e);
    llm_prompt_folder_free(f->prompts);
    llm_session_free(f->s);
    f->e = NULL;
    f->prompts = NULL;
    f->s = NULL;
    for (int i = 0; i < f->n_jobs; i++)
        job_free(f->job[i]);
    f->n_jobs = f->n_ended = 0;
}

TEST_UNUSED static void fixture_close(fixture *f) {
    fixture_stop(f);
    llm_session_free(f->alone);
    llm_vocab_free(f->vocab);
    for (int i = 0; i < 2; i++)
        llm_grammar_free(f->grammar[i]);
    llm_model_free(f->model);
    for (int i = 0; i < MOST_CPUS; i++)
        ggl_backend_close(f->cpu[i]);
    ggl_backend_close(f->reference);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static job *job_new(fixture *f, size_t n_prompt, int64_t n_max) {
    job *j = f->job[f->n_jobs++] = ggl_calloc(1, sizeof *j);
    *j = (job){.f = f, .n_prompt = n_prompt, .n_max = n_max, .stop_at = -1, .cancel_at = -1};
    j->prompt = ggl_calloc(n_prompt, sizeof *j->prompt);
    j->logits = ggl_calloc((CTX + 1) * VOCAB, sizeof *j->logits);
    j->prompted = ggl_calloc(n_prompt * VOCAB, sizeof *j->prompted);
    j->sampling = llm_sampler_default();
    return j;
}

/* A greedy job whose n tokens depend on `what`. */
TEST_UNUSED static job *job_plain(fixture *f, int what, size_t n, int64_t n_max) {
    job *j = job_new(f, n, n_max);
    for (size_t i = 0; i < n; i++)
        j->prompt[i] = (int32_t)((i * i + i / 7 + (size_t)what * (i + 3)) % VOCAB);
    j->sampling.temp = 0;
    return j;
}

/* A prompt that often begins as others do, with a sampler, a grammar and an end at random. */
TEST_UNUSED static job *job_random(fixture *f) {
    const int n_common = below(f, 3) ? below(f, below(f, 2) ? 70 : 200) : 0;
    const job *other = f->n_jobs > 0 ? f->job[below(f, f->n_jobs)] : NULL;
    job *j = job_new(f, (size_t)(n_common + 1 + below(f, 50)),
                     below(f, 8) ? below(f, below(f, 3) ? 40 : 200) : -1);
    for (size_t i = 0; i < j->n_prompt; i++) /* the next turn of another, perhaps */
        j->prompt[i] = (int)i < n_common              ? f->common[i]
                       : other && i < other->n_prompt ? other->prompt[i]
                       : other && i < other->n_prompt + (size_t)other->n
                           ? other->token[i - other->n_prompt]
                           : below(f, VOCAB);
    j->sampling.temp = below(f, 3) ? 1.0f : 0;
    j->sampling.seed = test_random(&f->seed);
    j->sampling.repeat_penalty = below(f, 2) ? 1.1f : 1;
    j->sampling.repeat_last_n = 20;
    j->grammar = below(f, 4) == 0 ? f->grammar[below(f, 2)] : NULL;
    j->stop_at = below(f, 6) == 0 ? below(f, 20) : -1;
    j->cancel_at = below(f, 10) == 0 ? below(f, 20) : -1;
    j->shows_prompt = below(f, 8) == 0;
    j->shifts = j->n_max >= 0 && below(f, 3) == 0;
    j->n_keep = below(f, 3) ? below(f, 150) : -1;
    if (f->most_beams > 0 && below(f, 4) == 0 && j->n_max >= 0) {
        j->beams =
            (llm_beams_params){1 + below(f, f->most_beams + 1), 1 - below(f, 3), below(f, 2), 1, 0};
        j->n_max %= 40;
        j->grammar = NULL;
        j->shows_prompt = j->shifts = false;
    }
    return j;
}

static void job_on_prompted(void *ctx, int64_t i, const float *logits) {
    job *j = ctx;
    if (CHECK_INT(i, j->n_prompted) && CHECK(i < (int64_t)j->n_prompt))
        memcpy(j->prompted + i * VOCAB, logits, VOCAB * sizeof *logits);
    j->n_prompted++;
}

static bool job_on_token(void *ctx, int32_t id, const float *logits) {
    job *j = ctx;
    CHECK(!j->has_ended);
    if (CHECK((logits != NULL) == (j->beams.n == 0)) && logits)
        memcpy(j->logits + j->n * VOCAB, logits, VOCAB * sizeof *logits);
    j->token[j->n++] = id;
    j->last_step = j->f->n_steps;
    if (j->f->on_token)
        j->f->on_token(j);
    if (j->n == j->cancel_at)
        llm_engine_cancel(j->f->e, j->id);
    return j->n != j->stop_at;
}

static void job_on_end(void *ctx, llm_end why, const llm_sequence_stats *stats,
                       const ggl_error *err) {
    job *j = ctx;
    CHECK(!j->has_ended);
    j->has_ended = true;
    j->why = why;
    j->stats = *stats;
    CHECK((why == LLM_END_FAILED) == (err != NULL));
    if (err)
        snprintf(j->message, sizeof j->message, "%.150s", err->msg);
    CHECK_INT(stats->n_drawn, j->n);
    j->f->n_ended++;
    if (j->f->on_end)
        j->f->on_end(j);
}

static bool job_tools(job *j) {
    fixture *f = j->f;
    return CHECK_OK(llm_sampler_new(&j->sampler, &j->sampling, VOCAB, CTX, &f->err), &f->err) &&
           (!j->grammar ||
            CHECK_OK(llm_matcher_new(&j->matcher, j->grammar, f->vocab, &f->err), &f->err));
}

/* `p`: what the job does not know. The engine's status is also left in the job. */
TEST_UNUSED static bool job_add(job *j, llm_sequence_params p) {
    fixture *f = j->f;
    if (!j->sampler && !job_tools(j))
        return false;
    p.prompt = j->prompt;
    p.n_prompt = j->n_prompt;
    p.sampler = j->sampler;
    p.matcher = j->matcher;
    p.beams = j->beams.n > 0 ? &j->beams : NULL;
    p.n_max = j->n_max;
    p.shift = j->shifts;
    p.n_keep = j->n_keep;
    p.prompted = j->shows_prompt ? job_on_prompted : NULL;
    p.token = job_on_token;
    p.ended = job_on_end;
    p.ctx = j;
    j->status = llm_engine_add(f->e, &p, &j->id, &f->err);
    return j->status == GGL_OK;
}

TEST_UNUSED static bool fixture_step(fixture *f) {
    f->n_steps++;
    const ggl_status st = llm_engine_step(f->e, &f->err);
    f->n_overlapped += llm_session_eval(f->s, &(llm_batch){.n = 0}, NULL) == GGL_USAGE;
    return (st == GGL_CANCELLED && f->is_cancelled) || CHECK_OK(st, &f->err);
}

/* Steps until all have ended. */
TEST_UNUSED static bool fixture_finish(fixture *f) {
    for (int i = 0; llm_engine_n_running(f->e) + (int)llm_engine_n_waiting(f->e) > 0; i++)
        if (!CHECK(i < 100000) || !fixture_step(f))
            return false;
    return true;
}

/* --- what it draws alone ----------------------------------------------------------------------- */

typedef struct job_alone {
    alone_seq a; /* the first member: the callbacks' ctx */
    const job *j;
    bool same;
} job_alone;

static void job_compare_prompted(void *ctx, int64_t i, const float *logits) {
    job_alone *a = ctx;
    if (i < a->j->n_prompted)
        a->same &= memcmp(a->j->prompted + i * VOCAB, logits, VOCAB * sizeof *logits) == 0;
}

/* The reason why it ended fits what it did alone after the last token. */
static bool job_check_end(const job *j, ggl_status st, int32_t id) {
    switch (j->why) {
    case LLM_END_EOG:
        return CHECK(st == GGL_OK && id == -1);
    case LLM_END_MAX:
        return CHECK_INT(j->n, j->n_max);
    case LLM_END_CONTEXT:
        return CHECK_INT(st, GGL_LIMIT);
    case LLM_END_STOPPED:
        return CHECK_INT(j->n, j->stop_at);
    case LLM_END_FAILED:
    case LLM_END_CANCELLED:
    case LLM_END_DEADLINE:
        return true;
    }
    return CHECK(!"a reason to end");
}

static bool job_compare(job_alone *a) {
    const job *j = a->j;
    fixture *f = j->f;
    int32_t id = 0;
    ggl_status st = GGL_OK;
    bool ok = CHECK_OK(alone_prompt(&a->a, j->prompt, j->n_prompt, &f->err), &f->err) &&
              CHECK_MSG(a->same, "job %d: other logits of the prompt", (int)j->id);
    for (int64_t i = 0; ok && i < j->n; i++) {
        ok = CHECK_OK(alone_next(&a->a, &id, &f->err), &f->err) &&
             CHECK_MSG(id == j->token[i], "job %d: token %d is %d alone, but %d in the engine",
                       (int)j->id, (int)i, (int)id, (int)j->token[i]) &&
             CHECK_MSG(memcmp(a->a.logits, j->logits + i * VOCAB, VOCAB * sizeof(float)) == 0,
                       "job %d: other logits before token %d", (int)j->id, (int)i);
    }
    if (ok && (j->why == LLM_END_EOG || j->why == LLM_END_CONTEXT))
        st = alone_next(&a->a, &id, &f->err);
    return ok && job_check_end(j, st, id);
}

/* --- what a search of beams alone finds -------------------------------------------------------- */

static void job_score(void *ctx, int64_t i, const float *logits) {
    const llm_beam *x = (const llm_beam *)((void **)ctx)[1];
    (void)i;
    llm_beams_logits(((void **)ctx)[0], x->place, logits);
}

/* Runs all of a text. */
static bool job_run_text(job *j, llm_beams *b, llm_beam x, const int32_t *id, size_t n) {
    const llm_batch batch = {
        .n = (int64_t)n, .token = id, .each = job_score, .ctx = (void *[]){b, &x}};
    return CHECK_OK(llm_session_clear(j->f->alone, 0, &j->f->err), &j->f->err) &&
           CHECK_OK(llm_session_eval(j->f->alone, &batch, &j->f->err), &j->f->err);
}

/* Compares the tokens with those of a search that runs each text anew, and copies no slots. */
static bool job_check_beams(job *j) {
    static int32_t text[2][LLM_MAX_BEAMS][2 * CTX];
    fixture *f = j->f;
    llm_beams *b = NULL;
    llm_beams_params p = j->beams;
    size_t n = j->n_prompt, n_best;
    int32_t end;
    const int64_t most = CTX + 1 - (int64_t)n, n_max = j->n_max < most ? j->n_max : most;
    p.n_max = j->why == LLM_END_CONTEXT || j->why == LLM_END_DEADLINE
                  ? j->n
                  : n_max; /* the text was cut off there */
    if (j->why == LLM_END_MAX && !CHECK_INT(j->n, p.n_max))
        return false;
    if (p.n_max == 0 || j->n == 0)
        return CHECK_INT(j->n, 0);
    bool is_done = false,
         ok = CHECK_OK(llm_beams_new(&b, &p, NULL, VOCAB, NULL, &f->err), &f->err) &&
              job_run_text(j, b, (llm_beam){0, 0, 0}, j->prompt, n);
    memcpy(text[0][0], j->prompt, n * sizeof *j->prompt);
    while (ok && CHECK_OK(llm_beams_step(b, &is_done, &f->err), &f->err) && !is_done) {
        memcpy(text[1], text[0], sizeof text[0]);
        for (int i = 0; i < llm_beams_n(b) && ok; i++) {
            const llm_beam x = llm_beams_at(b, i);
            memcpy(text[0][x.place], text[1][x.parent], n * sizeof(int32_t));
            text[0][x.place][n] = x.token;
            ok = job_run_text(j, b, x, text[0][x.place], n + 1);
        }
        n++;
    }
    const int32_t *best = ok ? llm_beams_best(b, 0, &n_best, &end) : NULL;
    ok = ok && CHECK(best && (int64_t)n_best >= j->n) &&
         CHECK_MSG(memcmp(best, j->token, (size_t)j->n * sizeof *best) == 0,
                   "job %d: other tokens of %d beams", (int)j->id, (int)p.n);
    llm_beams_free(b);
    return ok;
}

/* Compares tokens and logits with those that it has alone, and why it ended. */
TEST_UNUSED static bool job_check(job *j) {
    fixture *f = j->f;
    job_alone a = {.j = j, .same = true};
    if (!CHECK(j->has_ended))
        return false;
    if (j->beams.n > 0)
        return job_check_beams(j);
    llm_sampler_reset(j->sampler);
    if (j->matcher)
        llm_matcher_reset(j->matcher);
    const llm_sequence_params p = {.sampler = j->sampler,
                                   .matcher = j->matcher,
                                   .n_max = j->n_max,
                                   .shift = j->shifts,
                                   .n_keep = j->n_keep,
                                   .prompted = j->n_prompted > 0 ? job_compare_prompted : NULL};
    const bool ok =
        alone_open(&a.a, &(llm_engine_params){.session = f->alone}, &p, &f->err) && job_compare(&a);
    alone_close(&a.a);
    return ok;
}

/* job_check for all that were added. */
TEST_UNUSED static bool fixture_check(fixture *f) {
    f->polls_left = -1;
    for (int i = 0; i < f->n_jobs; i++)
        if (f->job[i]->id != 0 && !job_check(f->job[i]))
            return false;
    return true;
}

#endif
