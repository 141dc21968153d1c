/* Engines of models that see texts whole: a step runs as many whole texts as fit, whatever client they come from, and the
 * bits of each are those of the text alone. */
#include "ggl/backends.h"
#include "llm/internal/engine.h"
#include "seed.h"
#include "test.h"
#include "tiny_model.h"

#define ENCODER                                                                                    \
    "arch tiny\nlanguage 2\nstage text:\n  token_embd [16, n_vocab]\n  x = token_embd[token]\n"    \
    "  layer l < 2:\n    h = heads(x, 2)\n    x = x + attention(h, h, h)\n  return x\n"            \
    "embedding = text\nscore = text[0]\n"

enum { N = TINY_WIDTH, CTX = 48, UBATCH = 100, SLOTS = 8, JOBS = 300 };

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s, *alone;
    llm_engine *e;
    int polls_left; /* the session's run is cancelled after so many; less than 0: never */
    uint64_t seed;
    ggl_error err;
} fixture;

static bool is_cancelled(void *ctx) {
    fixture *f = ctx;
    return f->polls_left >= 0 && f->polls_left-- == 0;
}

static bool new_session(fixture *f, llm_session **s, int64_t n_slots) {
    const llm_session_params p = {.size = sizeof p,
                                  .n_ctx = CTX,
                                  .n_ubatch = UBATCH,
                                  .n_slots = n_slots,
                                  .embeddings = true,
                                  .type_k = GGL_F32,
                                  .type_v = GGL_F32,
                                  .backend = &f->cpu,
                                  .n_backends = 1,
                                  .fold = f->reference,
                                  .cancelled = is_cancelled,
                                  .cancelled_ctx = f};
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool setup_with(fixture *f, int64_t n_ubatch) {
    const char *path = test_path("engine_texts.gguf");
    const ggl_backend_params one = {.size = sizeof one, .n_threads = 1};
    *f = (fixture){.polls_left = -1, .seed = sample_seed()};
    if (!tiny_model_write(path, ENCODER, 0.4f) ||
        !CHECK_OK(ggl_backend_open(&f->cpu, "cpu", &one, &f->err), &f->err) ||
        !CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) ||
        !CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) ||
        !new_session(f, &f->s, SLOTS) || !new_session(f, &f->alone, 1))
        return false;
    const llm_engine_params p = {
        .size = sizeof p, .session = f->s, .n_parallel = SLOTS, .n_ubatch = n_ubatch};
    return CHECK(llm_session_sees_all(f->s)) &&
           CHECK_OK(llm_engine_new(&f->e, &p, &f->err), &f->err);
}

static bool setup(fixture *f) {
    return setup_with(f, 0);
}

static void teardown(fixture *f) {
    llm_engine_free(f->e);
    llm_session_free(f->s);
    llm_session_free(f->alone);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static int below(fixture *f, int64_t n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

typedef struct job {
    fixture *f;
    uint64_t id;
    int32_t token[CTX];
    int64_t n_tokens, first, end, n; /* n: rows so far */
    llm_pooling pooling;
    float row[CTX][N];
    bool has_ended;
    llm_end why;
    int64_t at; /* steps when it ended */
} job;

static void on_row(void *ctx, int64_t i, const float *row) {
    job *j = ctx;
    CHECK_INT(i, j->first + j->n++);
    memcpy(j->row[i], row, sizeof j->row[i]);
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    job *j = ctx;
    CHECK(!j->has_ended && stats->n_prompt == j->n_tokens && stats->n_reused == 0);
    CHECK((why == LLM_END_FAILED) == (err != NULL));
    j->has_ended = true;
    j->why = why;
    j->at = llm_engine_get_stats(j->f->e).n_steps;
}

/* Many begin alike, which must not matter. */
static void add(fixture *f, job *j, int64_t n, llm_pooling pooling, uint64_t client) {
    *j = (job){.f = f, .n_tokens = n, .pooling = pooling};
    for (int64_t i = 0; i < n; i++)
        j->token[i] = i < 20 ? (int32_t)(i % 5) : below(f, TINY_VOCAB);
    llm_embed_range(f->s, pooling, 0, n, &j->first, &j->end);
    const llm_sequence_params p = {.size = sizeof p,
                                   .prompt = j->token,
                                   .n_prompt = (size_t)n,
                                   .client = client,
                                   .embedded = on_row,
                                   .pooling = pooling,
                                   .ended = on_end,
                                   .ctx = j};
    CHECK_OK(llm_engine_add(f->e, &p, &j->id, &f->err), &f->err);
}

static bool finish(fixture *f) {
    while (llm_engine_n_running(f->e) + (int)llm_engine_n_waiting(f->e) > 0)
        if (!CHECK_OK(llm_engine_step(f->e, &f->err), &f->err))
            return false;
    return true;
}

static void compare(void *ctx, int64_t i, const float *row) {
    job *j = ctx;
    CHECK_MSG(memcmp(row, j->row[i], sizeof j->row[i]) == 0,
              "row %d of a text of %d tokens has other bits", (int)i, (int)j->n_tokens);
}

/* Compares the rows with those of the text alone. */
static void check_alone(fixture *f, job *j) {
    bool want[CTX] = {false};
    for (int64_t i = j->first; i < j->end; i++)
        want[i] = true;
    const bool scores = j->pooling == LLM_POOL_RANK;
    const llm_batch b = {.n = j->n_tokens,
                         .token = j->token,
                         .want_embedding = scores ? NULL : want,
                         .want_score = scores ? want : NULL,
                         .each_embedding = compare,
                         .each_score = compare,
                         .ctx = j};
    CHECK_INT(j->n, j->end - j->first);
    CHECK_OK(llm_session_clear(f->alone, 0, &f->err), &f->err);
    CHECK_OK(llm_session_eval(f->alone, &b, &f->err), &f->err);
}

TEST(same_bits_as_alone) {
    static job jobs[JOBS];
    fixture f;
    bool ok = setup(&f);
    for (int i = 0; ok && i < JOBS; i++) {
        add(&f, &jobs[i], 1 + below(&f, below(&f, 2) ? CTX : 12), (llm_pooling)(i % LLM_POOL_COUNT),
            (uint64_t)below(&f, 3));
        if (below(&f, 20) == 0)
            llm_engine_cancel(f.e, jobs[i].id);
        for (int k = below(&f, 8) == 0 ? below(&f, 4) : 0; k > 0; k--)
            CHECK_OK(llm_engine_step(f.e, &f.err), &f.err);
    }
    ok = ok && finish(&f);
    int n = 0;
    for (int i = 0; ok && i < JOBS; i++) {
        CHECK(jobs[i].has_ended);
        if (jobs[i].why == LLM_END_MAX)
            check_alone(&f, &jobs[i]);
        else
            CHECK(jobs[i].why == LLM_END_CANCELLED && jobs[i].n == 0);
        n += jobs[i].why == LLM_END_MAX;
    }
    CHECK(!ok || n > JOBS / 2);
    CHECK(!ok || llm_engine_get_stats(f.e).n_steps < n / 2); /* texts share steps */
    for (int k = 0; ok && k < SLOTS; k++)
        CHECK(llm_engine_slot(f.e, k).use == LLM_SLOT_EMPTY);
    teardown(&f);
}

/* Texts of any client fill a step, as many as fit whole; clients take turns. */
TEST(steps) {
    static job jobs[12];
    fixture f;
    if (setup(&f)) {
        for (int i = 0; i < 10; i++)
            add(&f, &jobs[i], 24, LLM_POOL_MEAN, 1);
        add(&f, &jobs[10], 48, LLM_POOL_CLS, 2);
        add(&f, &jobs[11], 5, LLM_POOL_RANK, 3);
        CHECK_OK(llm_engine_step(f.e, &f.err), &f.err); /* 24 + 48 + 5: one of each client */
        CHECK(jobs[0].has_ended && !jobs[1].has_ended && jobs[10].has_ended && jobs[11].has_ended);
        CHECK(finish(&f));
        CHECK_INT(jobs[9].at, 1 + 3); /* 4 of 24 in a ubatch of 100, which are never cut */
        for (int i = 0; i < 10; i++)
            add(&f, &jobs[i], 3, LLM_POOL_MEAN, 1);
        CHECK(finish(&f));
        CHECK_INT(jobs[7].at, 5); /* as many as there are slots */
        CHECK_INT(jobs[9].at, 6);
    }
    teardown(&f);
}

/* Steps may be shorter than the longest text, which then runs alone. */
TEST(short_steps) {
    static job jobs[4];
    fixture f;
    if (setup_with(&f, 30)) {
        add(&f, &jobs[0], 20, LLM_POOL_MEAN, 0);
        add(&f, &jobs[1], 10, LLM_POOL_MEAN, 0);
        add(&f, &jobs[2], 48, LLM_POOL_MEAN, 0);
        add(&f, &jobs[3], 1, LLM_POOL_MEAN, 0);
        CHECK(finish(&f));
        for (int i = 0; i < 4; i++)
            check_alone(&f, &jobs[i]);
        CHECK(jobs[0].at == 1 && jobs[1].at == 1 && jobs[2].at == 2 && jobs[3].at == 3);
    }
    teardown(&f);
}

TEST(failures) {
    static job jobs[4];
    const int32_t token[CTX + 1] = {0};
    fixture f;
    uint64_t id;
    if (setup(&f)) {
        llm_sampler *sampler = NULL;
        const llm_sampler_params sp = llm_sampler_default();
        CHECK_OK(llm_sampler_new(&sampler, &sp, TINY_VOCAB, CTX, &f.err), &f.err);
        llm_sequence_params p = {
            .size = sizeof p, .prompt = token, .n_prompt = 4, .sampler = sampler, .n_max = 2};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        CHECK(strstr(f.err.msg, "gives no logits, so it cannot write texts"));
        p = (llm_sequence_params){
            .size = sizeof p, .prompt = token, .n_prompt = CTX + 1, .embedded = on_row};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_LIMIT);
        for (int i = 0; i < 3; i++)
            add(&f, &jobs[i], 20, LLM_POOL_MEAN, 0);
        f.polls_left = 1;
        CHECK_INT(llm_engine_step(f.e, &f.err), GGL_CANCELLED);
        f.polls_left = -1;
        for (int i = 0; i < 3; i++)
            CHECK(jobs[i].has_ended && jobs[i].why == LLM_END_FAILED);
        add(&f, &jobs[3], 20, LLM_POOL_NONE, 0);
        CHECK(finish(&f));
        check_alone(&f, &jobs[3]);
        llm_sampler_free(sampler);
    }
    teardown(&f);
}
