/* Sequences whose tokens are asked for: whatever prompts follow each other, whatever is guessed, cancelled or shifted, the tokens
 * are those that a loop gives which runs the whole sequence again for every token. */
#include "alone.h"

#include <math.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/gguf.h"
#include "seed.h"
#include "test.h"
#include "tiny_model.h"

enum { VOCAB = TINY_VOCAB, CTX = 96, UBATCH = 16, SLOTS = 2, GUESSES = 5 };

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s, *fresh;
    llm_sampler *sampler, *plain_sampler;
    alone_seq a;
    llm_guesser guesser;
    const llm_guesser *guessers[1];
    int32_t token[CTX + 1], oracle[CTX + 1]; /* the sequence as it should be; what will be drawn */
    int64_t n, n_prompt, n_oracle, n_keep;
    int64_t n_guessed, n_right; /* as reported to the guesser */
    int32_t told[CTX];          /* the sequence that it saw last */
    uint64_t seed;
    int64_t polls_left; /* until a run is cancelled; negative: never */
    bool shift;
    ggl_error err;
} fixture;

static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

static bool cancelled(void *ctx) {
    fixture *f = ctx;
    return f->polls_left >= 0 && f->polls_left-- == 0;
}

/* Guesses at random: with 8 tokens, some runs of guesses are right. Some are no tokens at all. */
static int64_t guess(void *self, const int32_t *id, size_t n, size_t n_same, int32_t *out,
                     int64_t n_max) {
    fixture *f = self;
    CHECK(n_same <= n && memcmp(f->told, id, n_same * sizeof *id) == 0);
    memcpy(f->told, id, n * sizeof *id);
    CHECK(n_max > 0 && (int64_t)n + n_max <= CTX && n_max <= GUESSES);
    const int64_t n_out = below(f, (int)n_max + 1);
    for (int64_t i = 0; i < n_out; i++)
        out[i] = below(f, 60) == 0 ? VOCAB
                 : below(f, 3)     ? (id[n - 1] + (int32_t)i) % 2
                                   : below(f, VOCAB);
    return n_out;
}

static void outcome(void *self, int64_t n_guessed, int64_t n_right) {
    fixture *f = self;
    CHECK(n_guessed > 0 && n_right >= 0 && n_right <= n_guessed);
    f->n_guessed += n_guessed;
    f->n_right += n_right;
}

static bool session_open(fixture *f, llm_session **s, int64_t n_slots) {
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.n_ubatch = UBATCH;
    p.n_rows = GUESSES + 1;
    p.n_slots = n_slots;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    p.cancelled = n_slots > 1 ? cancelled : NULL;
    p.cancelled_ctx = f;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool open_engine(fixture *f, bool guesses) {
    llm_sampler_params sp = llm_sampler_default();
    sp.seed = test_random(&f->seed);
    sp.repeat_penalty = 1.1f;
    sp.repeat_last_n = 20;
    f->guesser = (llm_guesser){.guess = guess, .outcome = outcome, .self = f};
    f->guessers[0] = &f->guesser;
    const llm_engine_params e = {.session = f->s,
                                 .guesser = guesses ? f->guessers : NULL,
                                 .n_guess_max = GUESSES,
                                 .whole_prompts = below(f, 2)};
    if (!CHECK_OK(llm_sampler_new(&f->sampler, &sp, VOCAB, CTX, &f->err), &f->err) ||
        !CHECK_OK(llm_sampler_new(&f->plain_sampler, &sp, VOCAB, CTX, &f->err), &f->err))
        return false;
    const llm_sequence_params p = {
        .sampler = f->sampler, .n_max = -1, .shift = f->shift, .n_keep = f->n_keep, .in_slot = 2};
    return alone_open(&f->a, &e, &p, &f->err);
}

static bool setup(fixture *f, const char *text, uint64_t seed) {
    *f = (fixture){.polls_left = -1, .seed = seed};
    const char *path = test_path("generate.gguf");
    return tiny_model_write(path, text, 0.4f) &&
           CHECK_OK(ggl_backend_open(
                        &f->cpu, "cpu",
                        &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                        &f->err),
                    &f->err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
           CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) &&
           session_open(f, &f->s, SLOTS) && session_open(f, &f->fresh, 1);
}

static void close_engine(fixture *f) {
    alone_close(&f->a);
    llm_sampler_free(f->sampler);
    llm_sampler_free(f->plain_sampler);
    f->sampler = f->plain_sampler = NULL;
    f->n = 0;
}

static void teardown(fixture *f) {
    close_engine(f);
    llm_session_free(f->s);
    llm_session_free(f->fresh);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

/* Draws a token the plain way. False: the context is full and does not shift. */
static bool plain_next(fixture *f, int32_t *id) {
    if (f->n > CTX) {
        if (!f->shift)
            return false;
        int64_t keep = f->n_keep < 0 ? f->n_prompt : f->n_keep;
        if (keep > CTX / 2)
            keep = CTX / 2;
        const int64_t n_drop = (f->n - keep + 1) / 2;
        for (int64_t i = keep; i + n_drop < f->n; i++)
            f->token[i] = f->token[i + n_drop];
        f->n -= n_drop;
    }
    CHECK_OK(llm_session_clear(f->fresh, 0, &f->err), &f->err);
    CHECK_OK(llm_session_eval(f->fresh, &(llm_batch){.n = f->n, .token = f->token}, &f->err),
             &f->err);
    *id = llm_sampler_next(f->plain_sampler, llm_session_logits(f->fresh), NULL);
    llm_sampler_accept(f->plain_sampler, *id);
    f->token[f->n++] = *id;
    return true;
}

/* A prompt that shares a beginning with the sequence, often all of it. */
static bool new_prompt(fixture *f) {
    int64_t keep = below(f, 3) == 0 ? f->n : below(f, (int)f->n + 1);
    if (keep > CTX - 8)
        keep = CTX - 8 - below(f, 40);
    f->n = keep + below(f, 4) + (keep == 0);
    for (int64_t i = keep; i < f->n; i++)
        f->token[i] = below(f, VOCAB);
    f->n_prompt = f->n;
    llm_sampler_forget(f->plain_sampler);
    for (int64_t i = 0; i < f->n; i++)
        llm_sampler_accept(f->plain_sampler, f->token[i]);
    if (below(f, 6) == 0) { /* cancelled somewhere, then tried again */
        f->polls_left = below(f, 8);
        ggl_status st = alone_prompt(&f->a, f->token, (size_t)f->n, &f->err);
        f->polls_left = -1;
        CHECK(st == GGL_OK || st == GGL_CANCELLED);
    }
    return CHECK_OK(alone_prompt(&f->a, f->token, (size_t)f->n, &f->err), &f->err);
}

static bool check_next(fixture *f, int step) {
    int32_t want = -1, id = -2;
    const bool more = plain_next(f, &want);
    size_t n;
    f->polls_left = below(f, 10) == 0 ? below(f, 6) : -1;
    ggl_status st = alone_next(&f->a, &id, &f->err);
    f->polls_left = -1;
    if (st == GGL_CANCELLED) { /* nothing was drawn, and the tokens so far are the next prompt */
        const int32_t *held = alone_tokens(&f->a, &n);
        f->n_prompt = (int64_t)n;
        st = alone_prompt(&f->a, held, n, &f->err);
        st = st == GGL_OK ? alone_next(&f->a, &id, &f->err) : st;
    }
    if (!more)
        return CHECK_INT(st, GGL_LIMIT) && false;
    const int32_t *token = alone_tokens(&f->a, &n);
    return CHECK_OK(st, &f->err) &&
           CHECK_MSG(id == want, "step %d: token %d was drawn after %d tokens, but must be %d",
                     step, (int)id, (int)f->n - 1, (int)want) &&
           CHECK_INT(n, f->n) && CHECK(memcmp(token, f->token, n * sizeof *token) == 0) &&
           CHECK(memcmp(f->a.logits, llm_session_logits(f->fresh), VOCAB * sizeof(float)) == 0);
}

static void same_tokens(const char *text) {
    fixture f;
    bool ok = setup(&f, text, sample_seed());
    int64_t n_right = 0;
    for (int round = 0; ok && round < 12; round++) {
        f.shift = round % 3 != 0;
        f.n_keep = below(&f, 3) == 0 ? -1 : below(&f, CTX);
        ok = open_engine(&f, round % 2 == 0);
        for (int turn = 0; ok && turn < 8; turn++) {
            ok = new_prompt(&f);
            const int n = below(&f, turn % 4 == 3 ? 2 * CTX : 20);
            for (int step = 0; ok && step < n && (f.shift || f.n <= CTX); step++)
                ok = check_next(&f, step);
            if (ok && !f.shift && f.n > CTX)
                (void)check_next(&f, n);
        }
        alone_end(&f.a);
        const llm_engine_stats stats = ok ? llm_engine_get_stats(f.a.e) : (llm_engine_stats){0};
        CHECK_INT(stats.n_guessed, f.n_guessed);
        CHECK_INT(stats.n_right, f.n_right);
        n_right += f.n_right;
        f.n_guessed = f.n_right = 0;
        close_engine(&f);
    }
    CHECK(n_right > 0);
    teardown(&f);
}

TEST(caches) {
    same_tokens(MODEL(ALL));
}

TEST(windows) {
    same_tokens(MODEL(WINDOW));
}

TEST(states) {
    same_tokens(MODEL(STATES));
}

TEST(all) {
    same_tokens(MODEL(ALL STATES WINDOW));
}

/* What is common is not run again; a slot that was restored is adopted. */
TEST(beginnings_are_reused) {
    fixture f;
    int32_t id;
    const int32_t first[] = {1, 2, 3, 4, 5, 6}, second[] = {1, 2, 3, 4, 7, 1, 2};
    if (setup(&f, MODEL(ALL), 1) && open_engine(&f, false)) {
        CHECK_OK(alone_prompt(&f.a, first, 6, &f.err), &f.err);
        CHECK_INT(alone_stats(&f.a).n_reused, 0);
        CHECK_OK(alone_next(&f.a, &id, &f.err), &f.err);
        CHECK_OK(alone_prompt(&f.a, second, 7, &f.err), &f.err);
        CHECK_INT(alone_stats(&f.a).n_reused, 4);
        CHECK_OK(alone_prompt(&f.a, second, 7, &f.err), &f.err);
        CHECK_INT(alone_stats(&f.a).n_reused, 6);
        CHECK_INT(llm_engine_adopt(f.a.e, 1, second, 7, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "a sequence runs in slot 1");
        alone_end(&f.a);
        CHECK_OK(llm_session_cut(f.s, 1, 3, &f.err), &f.err);
        CHECK_INT(llm_engine_adopt(f.a.e, 1, second, 7, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "the slot holds 3 tokens, but 7 are given");
        CHECK_OK(llm_engine_adopt(f.a.e, 1, second, 3, &f.err), &f.err);
        CHECK_OK(alone_prompt(&f.a, first, 6, &f.err), &f.err);
        CHECK_INT(alone_stats(&f.a).n_reused, 3);
    }
    teardown(&f);
}

/* Nothing is run before it is asked for: a step runs one batch or draws one token. */
TEST(nothing_runs_ahead) {
    fixture f;
    int32_t id;
    const int32_t prompt[40] = {1, 2, 3};
    if (setup(&f, MODEL(ALL), 1) && open_engine(&f, false)) {
        CHECK_OK(alone_prompt(&f.a, prompt, 40, &f.err), &f.err);
        for (int n = 0; n < 5; n++) {
            CHECK_INT(llm_session_n_past(f.s, 1), n == 0 ? 40 : 39 + n);
            CHECK_OK(alone_next(&f.a, &id, &f.err), &f.err);
        }
        CHECK_INT(alone_stats(&f.a).n_drawn, 5);
    }
    teardown(&f);
}

typedef struct told {
    alone_seq a; /* the first member: the callbacks' ctx */
    int n;
    int64_t n_done, n_all, stop_at;
} told;

static bool on_progress(void *ctx, int64_t n_done, int64_t n) {
    told *t = ctx;
    CHECK(t->n == 0 ? n_done == 0 : n_done > t->n_done);
    t->n++;
    t->n_done = n_done;
    t->n_all = n;
    return n_done != t->stop_at;
}

/* Progress counts what has to run, and can stop it. What has run by then is kept. */
TEST(progress) {
    for (int whole = 0; whole < 2; whole++) {
        fixture f;
        told t = {.stop_at = -1};
        const int32_t prompt[50] = {1, 2, 3, 4};
        if (setup(&f, MODEL(ALL), 1) && open_engine(&f, false) &&
            alone_open(
                &t.a, &(llm_engine_params){.session = f.s, .whole_prompts = whole},
                &(llm_sequence_params){.sampler = f.sampler, .n_max = -1, .progress = on_progress},
                &f.err)) {
            CHECK_OK(alone_prompt(&t.a, prompt, 20, &f.err), &f.err);
            CHECK_INT(t.n, 3); /* ubatches of 16 */
            CHECK_INT(t.n_done, 20);
            CHECK_INT(t.n_all, 20);
            t.n = 0;
            t.stop_at = 16;
            CHECK_INT(alone_prompt(&t.a, prompt, 50, &f.err), GGL_CANCELLED);
            CHECK_INT(t.n_all, 30);
            CHECK_INT(llm_session_n_past(f.s, 0), 36);
            t.n = 0;
            t.stop_at = 0;
            CHECK_INT(alone_prompt(&t.a, prompt, 50, &f.err), GGL_CANCELLED);
            CHECK_INT(t.n_all, 14);
            CHECK_INT(t.n, 1);
        }
        alone_close(&t.a);
        teardown(&f);
    }
}

TEST(refusals) {
    fixture f;
    uint64_t id;
    const int32_t wrong[] = {1, VOCAB}, many[CTX + 1] = {0};
    if (setup(&f, MODEL(ALL), 1) && open_engine(&f, false)) {
        CHECK_INT(alone_prompt(&f.a, wrong, 0, &f.err), GGL_USAGE);
        CHECK_INT(alone_prompt(&f.a, wrong, 2, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "token 8 is not in the vocabulary of 8");
        CHECK_INT(alone_prompt(&f.a, many, CTX + 1, &f.err), GGL_LIMIT);
        CHECK_HAS(f.err.msg, "the prompt has 97 tokens, but the context only 96");
        CHECK_OK(alone_prompt(&f.a, many, 9, &f.err), &f.err);
        const llm_sequence_params p = {
            .size = sizeof p, .prompt = many, .n_prompt = 3, .sampler = f.plain_sampler};
        CHECK_INT(llm_engine_add(f.a.e, &p, &id, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "runs alone, but 1 other waits or runs");
        alone_end(&f.a);
        CHECK_OK(llm_engine_add(f.a.e, &p, &id, &f.err), &f.err);
        CHECK_INT(alone_prompt(&f.a, many, 9, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "runs alone, but 1 other waits or runs");
        llm_engine_cancel(f.a.e, id);
        const llm_beams_params beams = {.n = 2};
        f.a.p.beams = &beams;
        CHECK_INT(alone_prompt(&f.a, many, 9, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "without beams and diffusion");
    }
    teardown(&f);
}
