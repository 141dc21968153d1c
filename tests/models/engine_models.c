/* The engine with trained models of several families: with threads, guesses from the text, types of the KV
 * cache and whoever else runs, each sequence has the tokens and logits that it has alone on
 * one thread. */
#include "alone.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/internal/guess.h"
#include "seed.h"
#include "test.h"

enum { CTX = 192, JOBS = 24, MOST_DRAWN = 40, PARALLEL = 4, GUESSES = 6 };

typedef struct job {
    int32_t prompt[CTX];
    size_t n_prompt;
    llm_sampler_params sampling;
    llm_sampler *sampler;
    int32_t token[MOST_DRAWN];
    uint64_t digest; /* of all logits that tokens were drawn from */
    int n;
    llm_end why;
    bool has_ended;
} job;

typedef struct fixture {
    ggl_backend *cpu, *one_thread, *reference;
    llm_model *model;
    const llm_tokenizer *tokenizer;
    llm_session *s, *alone;
    llm_engine *e;
    llm_guess *guess[PARALLEL];
    job job[JOBS];
    int64_t n_vocab, n_guessed;
    uint64_t seed;
    ggl_error err;
} fixture;

static int below(fixture *f, int64_t n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

static uint64_t digest(uint64_t h, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

/* --- setup ------------------------------------------------------------------------------------ */

static bool session_open(fixture *f, llm_session **s, ggl_backend **b, ggl_type type,
                         const llm_session_params *sizes) {
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.n_ubatch = sizes->n_ubatch;
    p.n_rows = sizes->n_rows;
    p.n_slots = sizes->n_slots;
    p.type_k = p.type_v = type;
    p.backend = b;
    p.n_backends = 1;
    p.fold = f->reference;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool engine_open(fixture *f) {
    static const llm_guesser *guesser[PARALLEL];
    const llm_guess_params gp = {.size = sizeof gp, .n_max = GUESSES, .always = true};
    for (int i = 0; i < PARALLEL; i++) {
        if (!CHECK_OK(llm_guess_lookup(&f->guess[i], &gp, &f->err), &f->err))
            return false;
        guesser[i] = llm_guess_guesser(f->guess[i]);
    }
    const llm_engine_params p = {.size = sizeof p,
                                 .session = f->s,
                                 .tokenizer = f->tokenizer,
                                 .n_parallel = PARALLEL,
                                 .guesser = guesser,
                                 .n_guess_max = GUESSES};
    return CHECK_OK(llm_engine_new(&f->e, &p, &f->err), &f->err);
}

static bool setup(fixture *f, const char *path, int n_threads, ggl_type type) {
    const ggl_backend_params threads = {.size = sizeof threads, .n_threads = n_threads},
                             one = {.size = sizeof one, .n_threads = 1};
    const llm_session_params many = {
        .size = sizeof many, .n_ubatch = 32, .n_rows = 20, .n_slots = PARALLEL + 2};
    const llm_session_params single = {
        .size = sizeof single, .n_ubatch = 64, .n_rows = 1, .n_slots = 1};
    f->seed = sample_seed();
    const bool ok =
        CHECK_OK(ggl_backend_open(&f->cpu, "cpu", &threads, &f->err), &f->err) &&
        CHECK_OK(ggl_backend_open(&f->one_thread, "cpu", &one, &f->err), &f->err) &&
        CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
        CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) &&
        CHECK_OK(llm_model_tokenizer(f->model, &f->tokenizer, &f->err), &f->err) &&
        session_open(f, &f->s, &f->cpu, type, &many) &&
        session_open(f, &f->alone, &f->one_thread, type, &single);
    if (ok)
        f->n_vocab = llm_session_n_vocab(f->s);
    return ok && engine_open(f);
}

static void teardown(fixture *f) {
    llm_engine_free(f->e);
    for (int i = 0; i < PARALLEL; i++)
        llm_guess_free(f->guess[i]);
    for (int i = 0; i < JOBS; i++)
        llm_sampler_free(f->job[i].sampler);
    llm_session_free(f->s);
    llm_session_free(f->alone);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->one_thread);
    ggl_backend_close(f->reference);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static fixture *running; /* whose engine calls back */

static bool on_token(void *ctx, int32_t id, const float *logits) {
    job *j = ctx;
    j->digest = digest(j->digest, logits, running->n_vocab);
    j->token[j->n++] = id;
    return true;
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    job *j = ctx;
    j->has_ended = true;
    j->why = why;
    running->n_guessed += stats->n_guessed;
    CHECK_MSG(why != LLM_END_FAILED, "%s", err ? err->msg : "");
}

/* Some begin as another one does, or go on where it ended; some of their text repeats. */
static void make_job(fixture *f, int i) {
    job *j = &f->job[i];
    const job *other = &f->job[below(f, i + 1)];
    const size_t n_same = other != j && below(f, 3) ? other->n_prompt : 0;
    j->n_prompt = n_same + 2 + (size_t)below(f, 40);
    if (j->n_prompt > CTX - 10)
        j->n_prompt = CTX - 10;
    for (size_t k = 0; k < j->n_prompt; k++)
        j->prompt[k] = k < n_same                      ? other->prompt[k]
                       : k < n_same + (size_t)other->n ? other->token[k - n_same]
                       : k > 9 && below(f, 3)          ? j->prompt[k - 9]
                                                       : below(f, f->n_vocab);
    j->sampling = llm_sampler_default();
    j->sampling.temp = below(f, 2) ? 0.8f : 0;
    j->sampling.seed = test_random(&f->seed);
}

static void add_job(fixture *f, int i) {
    job *j = &f->job[i];
    uint64_t id;
    make_job(f, i);
    if (!CHECK_OK(llm_sampler_new(&j->sampler, &j->sampling, (int32_t)f->n_vocab, CTX, &f->err),
                  &f->err))
        return;
    const llm_sequence_params p = {.size = sizeof p,
                                   .prompt = j->prompt,
                                   .n_prompt = j->n_prompt,
                                   .sampler = j->sampler,
                                   .n_max = MOST_DRAWN,
                                   .client = (uint64_t)i % 3,
                                   .token = on_token,
                                   .ended = on_end,
                                   .ctx = j};
    CHECK_OK(llm_engine_add(f->e, &p, &id, &f->err), &f->err);
}

static bool run_all(fixture *f) {
    for (int i = 0; i < JOBS || llm_engine_n_running(f->e) > 0;) {
        if (i < JOBS && below(f, 3) == 0)
            add_job(f, i++);
        if (!CHECK_OK(llm_engine_step(f->e, &f->err), &f->err))
            return false;
    }
    return CHECK_INT(llm_engine_n_waiting(f->e), 0);
}

static bool same_alone(fixture *f, const job *j) {
    alone_seq a = {0};
    uint64_t h = 0;
    int32_t id = -1;
    const llm_sequence_params p = {.sampler = j->sampler, .n_max = -1};
    llm_sampler_reset(j->sampler);
    bool ok = CHECK(j->has_ended) &&
              alone_open(&a, &(llm_engine_params){.session = f->alone}, &p, &f->err) &&
              CHECK_OK(alone_prompt(&a, j->prompt, j->n_prompt, &f->err), &f->err);
    for (int i = 0; i < j->n && ok; i++) {
        ok = CHECK_OK(alone_next(&a, &id, &f->err), &f->err) &&
             CHECK_MSG(id == j->token[i], "token %d is %d alone, but %d in the engine", i, (int)id,
                       (int)j->token[i]);
        if (ok)
            h = digest(h, a.logits, f->n_vocab);
    }
    alone_close(&a);
    return ok && CHECK(h == j->digest) && CHECK(j->why != LLM_END_MAX || j->n == MOST_DRAWN) &&
           CHECK((j->why == LLM_END_EOG) == llm_tokenizer_is_eog(f->tokenizer, id));
}

static void check_model(const char *path, ggl_type type) {
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        static fixture f;
        f = (fixture){0};
        running = &f;
        bool ok = setup(&f, path, n_threads, type) && run_all(&f);
        for (int i = 0; i < JOBS && ok; i++)
            ok = same_alone(&f, &f.job[i]);
        CHECK(!ok || (f.n_guessed > 0 && llm_engine_get_stats(f.e).n_reused > 0));
        teardown(&f);
        if (!ok)
            return;
    }
}

TEST(builtin) {
    check_model(MODELS "/builtin/stories.gguf", GGL_F16);
}

TEST(builtin_chat) {
    check_model(MODELS "/builtin/stories-chat.gguf", GGL_Q8_0);
}

TEST(gpt2) {
    check_model(DATA "/stories-gpt2.gguf", GGL_F32);
}

TEST(qwen2) {
    check_model(DATA "/stories-qwen2.gguf", GGL_BF16);
}

TEST(qwen3) {
    check_model(DATA "/stories-qwen3.gguf", GGL_Q4_0);
}
