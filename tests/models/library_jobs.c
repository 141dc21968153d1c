/* llm_generate_jobs: many texts at once. */
#include "library_test.h"
#include "opening.h"
#include "tiny_model.h"

#include <dirent.h>
#include <stdlib.h>

enum { N = 7 };

static const char *const prompts[N] = {
    "Once upon a time", "One day", "Once upon a time, there", "The boy", "A dog",
    "Once upon a time", "Mia"};

typedef struct work {
    llm_job job[N];
    llm_generate_params p[N];
    written t[N];
    int32_t *id[N];
} work;

/* Fills in the jobs: each has its own length, and some have a seed, a stop or a grammar. */
static bool work_init(work *w, const llm_context *c) {
    static const char *const stop[] = {"."};
    ggl_error err;
    for (int i = 0; i < N; i++) {
        size_t n;
        w->p[i] = greedy(5 + 3 * i);
        if (i % 2 == 1) {
            w->p[i].temp = 1;
            w->p[i].seed = (uint64_t)i;
        }
        w->job[i] = (llm_job){.params = &w->p[i], .each = take, .user = &w->t[i]};
        if (!CHECK_OK(
                llm_encode(c, prompts[i], strlen(prompts[i]), LLM_ADD_SPECIAL, &w->id[i], &n, &err),
                &err))
            return false;
        w->job[i].id = w->id[i];
        w->job[i].n = n;
    }
    w->p[2].stop = stop;
    w->p[2].n_stop = 1;
    w->p[2].n_max = 60;
    w->p[4].grammar = "root ::= \" one\" | \" two\"";
    return true;
}

/* Some of the jobs are searches of beams: one cut off, one that takes all sequences and ends by itself, one that ends early. */
static void work_search(work *w) {
    w->p[1].n_beams = 2;
    w->p[3].n_beams = 3;
    w->p[3].n_max = 100;
    w->p[5].n_beams = 3;
    w->p[5].n_max = 0;
    w->p[5].length_penalty = 2;
    w->p[5].early_stopping = true;
}

static void work_free(work *w) {
    for (int i = 0; i < N; i++)
        ggl_free(w->id[i]);
    free(w);
}

static llm_context *open_parallel(int64_t n) {
    return open_with("builtin:stories", (llm_open_params){.n_parallel = n});
}

/* The end of a job's text by its grammar; and the struct's size, which is a part of the ABI of 0.2. */
TEST(a_cut_text_is_incomplete) {
    typedef struct of_0_3_0 {
        const char *prompt;
        const int32_t *id;
        size_t n;
        const llm_generate_params *params;
        llm_piece_fn *each;
        void *user;
        llm_finish finish;
        int32_t stop;
        int64_t n_reused, n_prompt, n_generated;
        ggl_error err;
    } of_0_3_0;
    if (sizeof(void *) == 8)
        CHECK_INT(sizeof(llm_job), sizeof(of_0_3_0));
    ggl_error err;
    llm_context *c = open_parallel(2);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    for (int i = 0; i < N; i++) {
        w->p[i] = greedy(i == 0 ? 2 : 60);
        w->p[i].grammar = "root ::= \" one, two, three, four, five\"";
        w->job[i].incomplete = i > 0;
    }
    w->p[1].grammar = NULL;
    w->p[2].grammar = "root ::= (";
    CHECK_OK(llm_generate_jobs(c, w->job, N, &err), &err);
    for (int i = 0; i < N; i++)
        CHECK_INT(w->job[i].incomplete, i == 0);
    work_free(w);
    llm_close(c);
}

LONG_TEST(each_text_is_that_of_the_job_alone) {
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = 3, .n_ctx = 256});
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    work_search(w);
    CHECK_OK(llm_generate_jobs(c, w->job, N, &err), &err);
    size_t n;
    (void)llm_sequence(c, &n);
    CHECK_INT(n, 0);
    for (int i = 0; i < N; i++) {
        written alone = {.n = 0};
        llm_run_info run = {.size = sizeof run};
        const llm_job *j = &w->job[i];
        CHECK_OK(generate_ids(c, j->id, j->n, j->params, take, &alone, &err), &err);
        CHECK_OK(llm_last_run(c, &run, &err), &err);
        CHECK_STR(w->t[i].s, alone.s);
        CHECK_INT(j->err.status, GGL_OK);
        CHECK_INT(j->finish, run.finish);
        CHECK_INT(j->stop, run.stop);
        CHECK_INT(j->n_generated, run.n_generated);
        CHECK(j->n_prompt + j->n_reused == (int64_t)j->n);
    }
    CHECK_INT(w->job[2].finish, LLM_FINISH_STOP);
    CHECK_INT(w->job[4].finish, LLM_FINISH_END);
    CHECK_INT(w->job[3].finish, LLM_FINISH_LENGTH);
    CHECK_INT(w->job[5].finish, LLM_FINISH_END);
    work_free(w);
    llm_close(c);
}

/* Room for beams, and how a search is stopped: all that it had is free afterwards. */
TEST(beams_take_sequences) {
    ggl_error err;
    llm_context *c = open_parallel(3);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    work_search(w);
    w->p[3].n_beams = 4;
    CHECK_INT(llm_jobs_add(c, &w->job[3], &err), GGL_USAGE);
    CHECK_HAS(err.msg, "4 beams need as many sequences (n_parallel), but there are 3");
    size_t left;
    CHECK_OK(llm_jobs_add(c, &w->job[5], &err), &err);
    CHECK_OK(llm_jobs_add(c, &w->job[0], &err), &err);
    for (int k = 0; k < 6; k++)
        CHECK_OK(llm_jobs_step(c, &left, &err), &err);
    CHECK_INT(left, 2); /* jobs, not beams; the other one waits for a sequence */
    CHECK(w->t[0].n == 0 && w->t[5].n == 0);
    llm_jobs_end(c, &w->job[5]);
    CHECK_INT(w->job[5].finish, LLM_FINISH_CANCELLED);
    w->p[3].n_beams = 3;
    CHECK_OK(llm_jobs_add(c, &w->job[3], &err), &err);
    do
        REQUIRE_OK(llm_jobs_step(c, &left, &err), &err);
    while (left > 0);
    CHECK(w->t[0].n > 0 && w->t[3].n > 0);
    work_free(w);
    llm_close(c);
}

static bool refuse(void *user, const char *piece, size_t n) {
    (void)piece, (void)n;
    ++*(int *)user;
    return false;
}

/* What is wrong with one job leaves the others alone. */
/* A job takes a text, with the special tokens that it spells, as llm_generate does. */
TEST(jobs_take_texts) {
    enum { TEXTS = 3 };
    static const char *const texts[TEXTS] = {"Once upon a time", "</s>One day", ""};
    ggl_error err;
    llm_context *c = open_parallel(2);
    REQUIRE(c);
    const llm_generate_params p = greedy(12);
    llm_job job[2 * TEXTS];
    written t[2 * TEXTS], alone;
    int32_t *id[TEXTS];
    for (int k = 0; k < TEXTS; k++) {
        size_t n;
        REQUIRE_OK(llm_encode(c, texts[k], strlen(texts[k]), LLM_ADD_SPECIAL | LLM_READ_SPECIAL,
                              &id[k], &n, &err),
                   &err);
        job[k] = (llm_job){.prompt = texts[k], .params = &p, .each = take, .user = &t[k]};
        job[TEXTS + k] =
            (llm_job){.id = id[k], .n = n, .params = &p, .each = take, .user = &t[TEXTS + k]};
        t[k].n = t[TEXTS + k].n = 0;
    }
    CHECK_OK(llm_generate_jobs(c, job, 2 * TEXTS, &err), &err);
    for (int k = 0; k < TEXTS; k++) {
        generate(c, texts[k], &p, &alone);
        CHECK_OK(job[k].err.status, &job[k].err);
        CHECK(alone.n > 0 && t[k].n == alone.n && memcmp(t[k].s, alone.s, alone.n) == 0);
        CHECK(t[TEXTS + k].n == alone.n && memcmp(t[TEXTS + k].s, alone.s, alone.n) == 0);
        CHECK_INT(job[k].n_prompt + job[k].n_reused,
                  job[TEXTS + k].n_prompt + job[TEXTS + k].n_reused);
    }
    job[0].id = id[0];
    CHECK_INT(llm_jobs_add(c, &job[0], &err), GGL_USAGE);
    CHECK_STR(err.msg, "the job has a prompt, and 0 tokens (id) of one: give one of them");
    job[0] = (llm_job){.params = &p};
    CHECK_INT(llm_jobs_add(c, &job[0], &err), GGL_USAGE);
    CHECK_STR(err.msg, "the job has neither a prompt nor its tokens (id)");
    for (int k = 0; k < TEXTS; k++)
        ggl_free(id[k]);
    llm_close(c);
}

TEST(faults_of_one_job) {
    ggl_error err;
    int n_pieces = 0;
    static const int32_t long_prompt[200];
    llm_context *c = open_parallel(2);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    w->p[0].n_max = -1;
    w->job[1].each = refuse;
    w->job[1].user = &n_pieces;
    w->job[3].id = long_prompt;
    w->job[3].n = 200;
    w->p[5].n_max = 0;
    w->p[6].same_sampler = true;
    written before = {.n = 0};
    const llm_generate_params alone = greedy(3); /* whose sampler job 6 cannot have */
    CHECK_OK(llm_generate(c, "One", &alone, take, &before, &err), &err);
    CHECK_OK(llm_generate_jobs(c, w->job, N, &err), &err);
    CHECK_INT(w->job[6].err.status, GGL_USAGE);
    CHECK_HAS(w->job[6].err.msg, "same_sampler");
    CHECK_INT(w->job[0].err.status, GGL_USAGE);
    CHECK_HAS(w->job[0].err.msg, "n_max must be 0 (no limit) or more, but is -1");
    CHECK_INT(w->job[0].finish, LLM_FINISH_ERROR);
    CHECK_INT(w->job[1].err.status, GGL_CANCELLED);
    CHECK_INT(w->job[1].finish, LLM_FINISH_CANCELLED);
    CHECK_INT(n_pieces, 1);
    CHECK_INT(w->job[3].err.status, GGL_LIMIT);
    CHECK_HAS(w->job[3].err.msg, "200");
    CHECK_INT(w->job[5].finish, LLM_FINISH_CONTEXT);
    CHECK(w->job[2].err.status == GGL_OK && w->t[2].n > 0 && w->t[4].n > 0);
    CHECK_OK(llm_generate_jobs(c, NULL, 0, &err), &err);
    work_free(w);
    llm_close(c);
}

static bool cancel(void *user, const char *piece, size_t n) {
    (void)piece, (void)n;
    llm_cancel(user);
    return true;
}

TEST(cancelled) {
    ggl_error err;
    llm_context *c = open_parallel(2);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    w->job[0].each = cancel;
    w->job[0].user = c;
    CHECK_INT(llm_generate_jobs(c, w->job, N, &err), GGL_CANCELLED);
    for (int i = 0; i < N; i++) {
        CHECK_INT(w->job[i].err.status, GGL_CANCELLED);
        CHECK_INT(w->job[i].finish, LLM_FINISH_CANCELLED);
    }
    for (int i = 0; i < N; i++)
        w->t[i].n = 0;
    w->job[0].each = NULL;
    CHECK_OK(llm_generate_jobs(c, w->job, N, &err), &err);
    CHECK_INT(w->job[6].finish, LLM_FINISH_LENGTH);
    work_free(w);
    llm_close(c);
}

TEST(wrong_numbers) {
    ggl_error err;
    llm_context *c;
    const llm_open_params p = {.size = sizeof p, .n_parallel = 100000};
    CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "n_parallel");
}

/* A full context drops tokens in a job, too. */
TEST(full_contexts_shift) {
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = 2, .n_ctx = 48});
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    for (int i = 0; i < 2; i++) {
        w->p[i] = greedy(150);
        w->p[i].shift = w->p[i].ignore_end = true;
        w->p[i].n_keep = 3 * i;
    }
    CHECK_OK(llm_generate_jobs(c, w->job, 2, &err), &err);
    for (int i = 0; i < 2; i++) {
        written alone = {.n = 0};
        const llm_job *j = &w->job[i];
        CHECK_INT(j->n_generated, 150);
        CHECK_OK(generate_ids(c, j->id, j->n, j->params, take, &alone, &err), &err);
        CHECK_STR(w->t[i].s, alone.s);
    }
    work_free(w);
    llm_close(c);
}

/* --- one step at a time ----------------------------------------------------------------------- */

/* Jobs that come between steps, in any order and after any number of them, have the texts that they have alone. */
TEST(jobs_come_between_steps) {
    ggl_error err;
    llm_context *c = open_parallel(3);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    work_search(w);
    static const int after[N] = {0, 0, 1, 4, 4, 9, 30}; /* steps */
    size_t left = 0;
    CHECK_OK(llm_jobs_step(c, &left, &err), &err); /* without jobs, it does nothing */
    CHECK_INT(left, 0);
    int next = 0;
    for (int i = 0; i < 400 && (next < N || left > 0); i++) {
        while (next < N && after[next] <= i) {
            CHECK_OK(llm_jobs_add(c, &w->job[next], &err), &err);
            CHECK_INT(w->job[next++].finish, LLM_FINISH_NONE);
        }
        CHECK_OK(llm_jobs_step(c, &left, &err), &err);
        size_t n = 0;
        for (int k = 0; k < next; k++)
            n += w->job[k].finish == LLM_FINISH_NONE;
        CHECK_INT(left, n);
    }
    for (int i = 0; i < N; i++) {
        written alone = {.n = 0};
        const llm_job *j = &w->job[i];
        CHECK_OK(generate_ids(c, j->id, j->n, j->params, take, &alone, &err), &err);
        CHECK_STR(w->t[i].s, alone.s);
        CHECK_INT(j->err.status, GGL_OK);
    }
    work_free(w);
    llm_close(c);
}

typedef struct inside {
    llm_context *c;
    llm_job *other;
    ggl_status eval, add, step, generate;
} inside;

/* Calls functions that a callback of a job must not call, whose statuses are kept, and then ends another job. */
static bool call_all(void *user, const char *piece, size_t n) {
    inside *in = user;
    const int32_t id = 1;
    size_t left;
    llm_job job = {.id = &id, .n = 1};
    (void)piece, (void)n;
    in->eval = llm_eval(in->c, &id, 1, false, NULL, NULL);
    in->add = llm_jobs_add(in->c, &job, NULL);
    in->step = llm_jobs_step(in->c, &left, NULL);
    in->generate = llm_generate_jobs(in->c, &job, 1, NULL);
    llm_jobs_end(in->c, in->other);
    return true;
}

TEST(callbacks_of_jobs) {
    ggl_error err;
    llm_context *c = open_parallel(2);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    inside in = {.c = c, .other = &w->job[6]};
    w->job[0].each = call_all;
    w->job[0].user = &in;
    size_t left = 1;
    CHECK_OK(llm_jobs_add(c, &w->job[0], &err), &err);
    CHECK_OK(llm_jobs_add(c, &w->job[6], &err), &err);
    while (left > 0)
        REQUIRE(CHECK_OK(llm_jobs_step(c, &left, &err), &err));
    CHECK_INT(in.eval, GGL_USAGE);
    CHECK_INT(in.add, GGL_USAGE);
    CHECK_INT(in.step, GGL_USAGE);
    CHECK_INT(in.generate, GGL_USAGE);
    CHECK_INT(w->job[0].finish, LLM_FINISH_LENGTH);
    CHECK_INT(w->job[6].finish, LLM_FINISH_CANCELLED);
    CHECK_INT(w->job[6].err.status, GGL_CANCELLED);
    work_free(w);
    llm_close(c);
}

/* Jobs end by llm_jobs_end, llm_cancel, any other call, and llm_close; the context can be used afterwards. */
TEST(jobs_are_ended) {
    ggl_error err;
    llm_context *c = open_parallel(2);
    work *w = c ? calloc(1, sizeof *w) : NULL;
    REQUIRE(w && work_init(w, c));
    size_t left;
    for (int i = 0; i < 4; i++) /* two of them wait */
        CHECK_OK(llm_jobs_add(c, &w->job[i], &err), &err);
    CHECK_OK(llm_jobs_step(c, &left, &err), &err);
    CHECK_INT(llm_jobs_add(c, &w->job[1], &err), GGL_USAGE); /* it runs */
    CHECK_HAS(err.msg, "added before");
    CHECK_INT(w->job[1].finish, LLM_FINISH_NONE);
    llm_jobs_end(c, &w->job[1]);
    llm_jobs_end(c, &w->job[3]);
    llm_jobs_end(c, &w->job[3]);
    llm_jobs_end(c, &w->job[6]); /* was never added */
    CHECK_INT(w->job[1].finish, LLM_FINISH_CANCELLED);
    CHECK_INT(w->job[3].finish, LLM_FINISH_CANCELLED);
    CHECK_OK(llm_jobs_step(c, &left, &err), &err);
    CHECK_INT(left, 2);
    llm_cancel(c);
    CHECK_INT(llm_jobs_step(c, &left, &err), GGL_CANCELLED);
    CHECK_INT(left, 0);
    CHECK_INT(w->job[0].finish, LLM_FINISH_CANCELLED);
    CHECK_INT(w->job[2].finish, LLM_FINISH_CANCELLED);

    written text = {.n = 0}, again = {.n = 0};
    const llm_generate_params p = greedy(12);
    CHECK_OK(llm_generate(c, "One day", &p, take, &text, &err), &err);
    CHECK_OK(llm_jobs_add(c, &w->job[4], &err), &err);
    CHECK_OK(llm_jobs_step(c, &left, &err), &err);
    CHECK_OK(llm_generate(c, "One day", &p, take, &again, &err), &err);
    CHECK_INT(w->job[4].finish, LLM_FINISH_CANCELLED);
    CHECK_STR(again.s, text.s);

    w->job[5].n = 0;
    CHECK_INT(llm_jobs_add(c, &w->job[5], &err), GGL_USAGE);
    CHECK_INT(w->job[5].finish, LLM_FINISH_ERROR);
    CHECK_STR(w->job[5].err.msg, err.msg);
    CHECK_OK(llm_jobs_add(c, &w->job[6], NULL), NULL);
    llm_close(c);
    CHECK_INT(w->job[6].finish, LLM_FINISH_CANCELLED);
    work_free(w);
}

/* Several devices compute batches between the steps. A job of such a batch ends at once, too. */
TEST(jobs_of_several_devices) {
    enum { MANY = 8 };
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = MANY,
                                                                    .device = "cpu,reference",
                                                                    .split = "cpu=2,reference=3"});
    llm_job job[MANY] = {{0}};
    written text[MANY] = {{.n = 0}};
    const llm_generate_params p = greedy(40);
    int32_t *id;
    size_t n, left;
    REQUIRE(c);
    REQUIRE_OK(llm_encode(c, "Once upon a time", 16, LLM_ADD_SPECIAL, &id, &n, &err), &err);
    for (int i = 0; i < MANY; i++) {
        job[i] = (llm_job){.id = id, .n = n, .params = &p, .each = take, .user = &text[i]};
        CHECK_OK(llm_jobs_add(c, &job[i], &err), &err);
    }
    for (int k = 0; k < 10; k++)
        CHECK_OK(llm_jobs_step(c, &left, &err), &err);
    for (int i = 0; i < MANY; i += 2) {
        llm_jobs_end(c, &job[i]);
        CHECK_INT(job[i].finish, LLM_FINISH_CANCELLED);
        job[i] = (llm_job){0}; /* nothing writes into it any more */
    }
    do
        REQUIRE_OK(llm_jobs_step(c, &left, &err), &err);
    while (left > 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(job[i].finish, i % 2 ? LLM_FINISH_LENGTH : LLM_FINISH_NONE);
        CHECK(i % 2 == 0 || strcmp(text[i].s, text[1].s) == 0);
    }
    ggl_free(id);
    llm_close(c);
}

/* --- models that read a text before they write ---------------------------------------------------- */

/* An encoder and a decoder; what is written depends on the text that was read, on what was written, and on places. */
static const char reader[] =
    "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nf = freqs(8, 1000)\n"
    "stage e:\n  y = token_embd[token]\n  k = rope_half(heads(y, 2), f)\n"
    "  return y + attention(k, k, k)\n"
    "x = token_embd[token]\nq = rope_half(heads(x, 2), f)\nx = x + attention(q, q, q)\n"
    "r = cache(heads(e, 2), heads(e * 2, 2))\nx = x + flat(attend(heads(x, 2), r))\n"
    "logits = linear(x, token_embd)\n";

enum { N_READERS = 24, LONGEST_READ = 60 };

typedef struct reading {
    int32_t text[LONGEST_READ], begin[3];
    llm_generate_params p;
    drawn all, alone;
} reading;

/* Texts of 1 to 60 tokens. Some answers fill their context and go on; some go on from a beginning. */
static void reading_init(reading *r, llm_job *job, int k, int64_t n_text) {
    uint32_t x = 77u + (uint32_t)k;
    for (int64_t i = 0; i < n_text + 3; i++) {
        x = x * 1664525u + 1013904223u;
        *(i < n_text ? &r->text[i] : &r->begin[i - n_text]) = (int32_t)(x >> 29);
    }
    r->p = greedy(k % 6 == 5 ? 150 : 5 + k);
    r->p.temp = k % 3 == 0 ? 0 : 1.5f;
    r->p.seed = (uint64_t)k;
    r->p.shift = k % 6 == 5;
    r->p.n_keep = k % 12 == 5 ? -1 : 2;
    r->p.ignore_end = true;
    r->p.token = keep_token;
    r->p.user = &r->all;
    *job = (llm_job){.id = r->text, .n = (size_t)n_text, .params = &r->p};
    if (k % 4 == 3) {
        r->p.read = r->text;
        r->p.n_read = (size_t)n_text;
        job->id = r->begin;
        job->n = 3;
    }
}

static void readers_of(int64_t n_parallel) {
    static reading r[N_READERS];
    llm_job job[N_READERS];
    ggl_error err;
    memset(r, 0, sizeof r);
    llm_context *c = open_with(test_path("reader.gguf"),
                               (llm_open_params){.n_ctx = 64, .n_parallel = n_parallel});
    REQUIRE(c);
    for (int k = 0; k < N_READERS; k++) {
        reading_init(&r[k], &job[k], k, 1 + (k * 37) % LONGEST_READ);
        r[k].p.n_beams = n_parallel > 1 && k % 4 == 2 ? 2 + k % 3 : 0;
    }
    CHECK_OK(llm_generate_jobs(c, job, N_READERS, &err), &err);
    for (int k = 0; k < N_READERS; k++) {
        CHECK_OK(job[k].err.status, &job[k].err);
        r[k].p.user = &r[k].alone;
        CHECK_OK(generate_ids(c, job[k].id, job[k].n, &r[k].p, NULL, NULL, &err), &err);
        CHECK_INT(r[k].all.n, r[k].p.n_max);
        CHECK_INT(r[k].alone.n, r[k].p.n_max);
        CHECK(memcmp(r[k].all.id, r[k].alone.id, sizeof r[k].all.id) == 0);
    }
    llm_close(c);
}

/* Generates k tokens after `begin`, for the text that is read. */
static bool write_on(llm_context *c, const reading *r, size_t n_text, const int32_t *begin,
                     size_t n_begin, int64_t k, drawn *out, llm_run_info *run) {
    ggl_error err;
    llm_generate_params p = r->p;
    *out = (drawn){.n = 0};
    *run = (llm_run_info){.size = sizeof *run};
    p.n_max = k;
    p.shift = false;
    p.read = r->text;
    p.n_read = n_text;
    p.user = out;
    return CHECK_OK(generate_ids(c, begin, n_begin, &p, NULL, NULL, &err), &err) &&
           CHECK_OK(llm_last_run(c, run, &err), &err);
}

/* A sequence that has read a text is saved with it, and goes on in another context; all answers to a text read it once. */
TEST(text_that_was_read) {
    static reading r[3];
    static drawn all, part, rest;
    ggl_error err;
    llm_job job[3];
    llm_run_info run;
    size_t n, n_text;
    const char *model = test_path("reader-save.gguf"), *file = test_path("reader.saved");
    REQUIRE(tiny_model_write(model, reader, 0.7f));
    memset(r, 0, sizeof r);
    reading_init(&r[0], &job[0], 3, 50);
    llm_context *c = open_with(model, (llm_open_params){.n_ctx = 64});
    REQUIRE(c && write_on(c, &r[0], 50, r[0].begin, 3, 30, &all, &run));
    CHECK_INT(run.n_reused, 0);
    REQUIRE(write_on(c, &r[0], 50, r[0].begin, 3, 12, &part, &run));
    CHECK(memcmp(part.id, all.id, 12 * sizeof *all.id) == 0 && run.n_reused == 2);
    REQUIRE_OK(llm_save(c, file, &err), &err);
    llm_close(c);
    c = open_with(model, (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    CHECK(llm_sequence_read(c, &n_text) == NULL && n_text == 0);
    REQUIRE_OK(llm_restore(c, file, &err), &err);
    int32_t held[64];
    const int32_t *id = llm_sequence(c, &n), *text = llm_sequence_read(c, &n_text);
    REQUIRE(n == 15 && n_text == 50 && memcmp(text, r[0].text, 50 * sizeof *text) == 0);
    memcpy(held, id, n * sizeof *id);
    r[0].p.seed = 3;
    REQUIRE(write_on(c, &r[0], 50, held, n, 18, &rest, &run));
    CHECK(run.n_reused == 14 && run.n_prompt == 1);
    drawn again;
    REQUIRE_OK(llm_truncate(c, 0, &err), &err);
    REQUIRE(write_on(c, &r[0], 2, held, n, 18, &again, &run));
    CHECK(run.n_reused == 0 && memcmp(again.id, rest.id, 18 * sizeof *rest.id) != 0);
    REQUIRE(write_on(c, &r[0], 50, held, n, 18, &again, &run));
    CHECK(run.n_reused == 0 && memcmp(again.id, rest.id, 18 * sizeof *rest.id) == 0);
    llm_close(c);

    /* jobs of one prompt: the second finds the text in the slot of the first, which still runs */
    c = open_with(model, (llm_open_params){.n_ctx = 64, .n_parallel = 2});
    REQUIRE(c);
    for (int k = 0; k < 3; k++) {
        reading_init(&r[k], &job[k], 3 * k, 50);
        memcpy(r[k].text, r[0].text, sizeof r[k].text);
        r[k].p.read = NULL;
        job[k] = (llm_job){.id = r[k].text, .n = 50, .params = &r[k].p};
    }
    REQUIRE_OK(llm_generate_jobs(c, job, 3, &err), &err);
    for (int k = 0; k < 3; k++) {
        CHECK_INT(job[k].n_reused, k ? 49 : 0);
        CHECK_INT(job[k].n_prompt, k ? 1 : 50);
    }
    llm_close(c);
    c = open_with(model, (llm_open_params){.n_ctx = 64});
    for (int k = 0; c && k < 3; k++) {
        r[k].p.user = &r[k].alone;
        REQUIRE_OK(generate_ids(c, r[k].text, 50, &r[k].p, NULL, NULL, &err), &err);
        CHECK(r[k].alone.n == r[k].all.n &&
              memcmp(r[k].alone.id, r[k].all.id, sizeof r[k].all.id) == 0);
    }
    llm_close(c);
}

typedef struct handover {
    drawn all; /* the first member: the callbacks' user */
    int32_t begin[3];
    int n_calls, n_rows;
} handover;

static void on_row(void *user, int64_t i, const float *logits) {
    handover *h = user;
    CHECK(i == h->n_rows++ && isfinite(logits[0]));
}

static bool hand_over(void *user, const int32_t **id, size_t *n) {
    handover *h = user;
    *id = h->begin;
    *n = 3;
    return h->n_calls++ == 0;
}

/* What goes on after a full context has read the same text. */
TEST(full_contexts_that_read_a_text) {
    static reading r;
    static drawn on;
    ggl_error err;
    llm_job job;
    llm_run_info run = {.size = sizeof run};
    handover h = {.begin = {1, 2, 3}};
    REQUIRE(tiny_model_write(test_path("reader.gguf"), reader, 0.7f));
    memset(&r, 0, sizeof r);
    reading_init(&r, &job, 0, 50);
    r.p.n_max = 0;
    r.p.shift = false;
    r.p.full = hand_over;
    r.p.user = &h;
    llm_context *c = open_with(test_path("reader.gguf"), (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    REQUIRE_OK(generate_ids(c, r.text, 50, &r.p, NULL, NULL, &err), &err);
    REQUIRE_OK(llm_last_run(c, &run, &err), &err);
    CHECK(run.finish == LLM_FINISH_CONTEXT && h.n_calls == 2);
    CHECK_INT(run.n_prompt, 50 + 3);
    REQUIRE(h.all.n == 64 + 62); /* after 1 token, and after 3 */
    r.p.full = NULL;

    /* of the prompt, the model has the logits after its own start token */
    r.p.n_max = 20;
    r.p.prompt_logits = on_row;
    h.all.n = 0;
    on = h.all;
    REQUIRE_OK(generate_ids(c, r.text, 50, &r.p, NULL, NULL, &err), &err);
    CHECK(h.n_rows == 1 && h.all.n == 20 && memcmp(h.all.id, on.id, 20 * sizeof *on.id) == 0);
    r.p.prompt_logits = NULL;
    h.all = on;
    REQUIRE(write_on(c, &r, 50, h.begin, 3, 62, &on, &run));
    CHECK(memcmp(h.all.id + 64, on.id, 62 * sizeof *on.id) == 0);
    llm_close(c);
}

TEST(jobs_that_read_a_text) {
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("reader.gguf"), reader, 0.7f));
    readers_of(5);
    readers_of(1);

    /* what cannot be read */
    int32_t id[65] = {0}, wrong = 8;
    drawn d = {.n = 0};
    llm_generate_params p = greedy(2);
    p.token = keep_token;
    p.user = &d;
    llm_job job = {.id = id, .n = 65, .params = &p};
    llm_context *c = open_with(test_path("reader.gguf"), (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_LIMIT);
    job.n = 2;
    p.read = id;
    p.n_read = 65;
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "65 tokens; 1 to 64");
    p.read = &wrong;
    p.n_read = 1;
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_USAGE);
    p.n_read = 0;
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_USAGE);
    llm_close(c);
    c = open_with("builtin:stories", (llm_open_params){.n_parallel = 1});
    REQUIRE(c);
    p.read = id;
    p.n_read = 1;
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "reads no text");
    llm_close(c);
}

/* --- files of prompts ---------------------------------------------------------------------------- */

/* Runs jobs whose prompts are a long text, which others have, too, and an end of their own. */
static void tell(llm_context *c, const char *const *ends, written *t) {
    enum { BOTH = 2 };
    llm_generate_params p = greedy(12);
    llm_job job[BOTH];
    int32_t *id[BOTH] = {NULL};
    ggl_error err;
    for (int k = 0; k < BOTH; k++) {
        char text[1000] = "";
        size_t n = 0;
        for (int i = 0; i < 8; i++)
            strcat(text,
                   "Once upon a time, there was a little girl named Lily. She liked the sun. ");
        strcat(text, ends[k]);
        CHECK_OK(llm_encode(c, text, strlen(text), LLM_ADD_SPECIAL, &id[k], &n, &err), &err);
        job[k] = (llm_job){.id = id[k], .n = n, .params = &p, .each = take, .user = &t[k]};
    }
    CHECK_OK(llm_generate_jobs(c, job, BOTH, &err), &err);
    for (int k = 0; k < BOTH; k++)
        ggl_free(id[k]);
}

static int count_prompts(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, ".prompt") != NULL;
    closedir(d);
    return n;
}

/* Jobs share beginnings by the files of a folder, and write what they write without. */
TEST(beginnings_are_shared) {
    static const char *const ends[] = {"One day", "Then a dog", "Her cat"};
    static written with[4], without[4];
    llm_context *c;
    ggl_error err;
    llm_open_params p = {.size = sizeof p, .n_parallel = 2, .prompt_folder = test_folder()};
    for (int round = 0; round < 4; round++) {
        p.prompt_folder = round < 2 ? test_folder() : NULL;
        if (!CHECK_OK(llm_open(&c, "builtin:stories", &p, &err), &err))
            return;
        tell(c, ends + round % 2, round < 2 ? with + 2 * round : without + 2 * (round - 2));
        llm_close(c);
        CHECK_INT(count_prompts(test_folder()), 1);
    }
    for (int i = 0; i < 4; i++)
        CHECK(with[i].n > 0 && strcmp(with[i].s, without[i].s) == 0);
    p.prompt_folder = "/no/such/folder";
    CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "prompt_folder: /no/such/folder is not a folder");
}
