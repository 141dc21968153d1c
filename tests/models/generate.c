/* Generators: whatever prompts follow each other, whatever is guessed, cancelled or shifted, the tokens
 * are those that a loop gives which runs the whole sequence again for every token. */
#include "llm/internal/generate.h"

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
    llm_generator *g;
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

static bool open_generator(fixture *f, bool guesses) {
    llm_sampler_params sp = llm_sampler_default();
    sp.seed = test_random(&f->seed);
    sp.repeat_penalty = 1.1f;
    sp.repeat_last_n = 20;
    const llm_guesser guesser = {.guess = guess, .outcome = outcome, .self = f};
    const llm_generator_params p = {.size = sizeof p,
                                    .session = f->s,
                                    .slot = 1,
                                    .shift = f->shift,
                                    .n_keep = f->n_keep,
                                    .guesser = guesses ? &guesser : NULL,
                                    .n_guess_max = GUESSES};
    llm_generator_params with = p;
    if (!CHECK_OK(llm_sampler_new(&f->sampler, &sp, VOCAB, CTX, &f->err), &f->err) ||
        !CHECK_OK(llm_sampler_new(&f->plain_sampler, &sp, VOCAB, CTX, &f->err), &f->err))
        return false;
    with.sampler = f->sampler;
    return CHECK_OK(llm_generator_new(&f->g, &with, &f->err), &f->err);
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

static void close_generator(fixture *f) {
    llm_generator_free(f->g);
    llm_sampler_free(f->sampler);
    llm_sampler_free(f->plain_sampler);
    f->g = NULL;
    f->sampler = f->plain_sampler = NULL;
    f->n = 0;
}

static void teardown(fixture *f) {
    close_generator(f);
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
    const llm_prompt p = {.id = f->token, .n = (size_t)f->n};
    if (below(f, 6) == 0) { /* cancelled somewhere, then tried again */
        f->polls_left = below(f, 8);
        ggl_status st = llm_generator_prompt(f->g, &p, &f->err);
        f->polls_left = -1;
        CHECK(st == GGL_OK || st == GGL_CANCELLED);
    }
    return CHECK_OK(llm_generator_prompt(f->g, &p, &f->err), &f->err);
}

static bool check_next(fixture *f, int step) {
    int32_t want = -1, id = -2;
    const bool more = plain_next(f, &want);
    ggl_status st = GGL_OK;
    if (below(f, 10) == 0) { /* a cancelled run draws nothing, or the token */
        f->polls_left = below(f, 6);
        st = llm_generator_next(f->g, &id, &f->err);
        f->polls_left = -1;
        if (st == GGL_CANCELLED)
            st = llm_generator_next(f->g, &id, &f->err);
    } else {
        st = llm_generator_next(f->g, &id, &f->err);
    }
    if (!more)
        return CHECK_INT(st, GGL_LIMIT) && false;
    size_t n;
    const int32_t *token = llm_generator_tokens(f->g, &n);
    return CHECK_OK(st, &f->err) &&
           CHECK_MSG(id == want, "step %d: token %d was drawn after %d tokens, but must be %d",
                     step, (int)id, (int)f->n - 1, (int)want) &&
           CHECK_INT(n, f->n) && CHECK(memcmp(token, f->token, n * sizeof *token) == 0) &&
           CHECK(memcmp(llm_generator_logits(f->g), llm_session_logits(f->fresh),
                        VOCAB * sizeof(float)) == 0);
}

static void same_tokens(const char *text) {
    fixture f;
    bool ok = setup(&f, text, sample_seed());
    int64_t n_right = 0;
    for (int round = 0; ok && round < 12; round++) {
        f.shift = round % 3 != 0;
        f.n_keep = below(&f, 3) == 0 ? -1 : below(&f, CTX);
        ok = open_generator(&f, round % 2 == 0);
        for (int turn = 0; ok && turn < 8; turn++) {
            ok = new_prompt(&f);
            const int n = below(&f, turn % 4 == 3 ? 2 * CTX : 20);
            for (int step = 0; ok && step < n && (f.shift || f.n <= CTX); step++)
                ok = check_next(&f, step);
            if (ok && !f.shift && f.n > CTX)
                (void)check_next(&f, n);
        }
        const llm_generator_stats stats =
            ok ? llm_generator_get_stats(f.g) : (llm_generator_stats){0};
        CHECK_INT(stats.n_guessed, f.n_guessed);
        CHECK_INT(stats.n_right, f.n_right);
        n_right += f.n_right;
        f.n_guessed = f.n_right = 0;
        close_generator(&f);
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
    if (setup(&f, MODEL(ALL), 1) && open_generator(&f, false)) {
        CHECK_OK(llm_generator_prompt(f.g, &(llm_prompt){.id = first, .n = 6}, &f.err), &f.err);
        CHECK_INT(llm_generator_get_stats(f.g).n_reused, 0);
        CHECK_OK(llm_generator_next(f.g, &id, &f.err), &f.err);
        CHECK_OK(llm_generator_prompt(f.g, &(llm_prompt){.id = second, .n = 7}, &f.err), &f.err);
        CHECK_INT(llm_generator_get_stats(f.g).n_reused, 4);
        CHECK_INT(llm_generator_get_stats(f.g).n_prompt, 3);
        CHECK_OK(llm_generator_prompt(f.g, &(llm_prompt){.id = second, .n = 7}, &f.err), &f.err);
        CHECK_INT(llm_generator_get_stats(f.g).n_reused, 6);
        CHECK_OK(llm_session_cut(f.s, 1, 3, &f.err), &f.err);
        CHECK_INT(llm_generator_adopt(f.g, second, 7, &f.err), GGL_USAGE);
        CHECK_OK(llm_generator_adopt(f.g, second, 3, &f.err), &f.err);
        CHECK_OK(llm_generator_prompt(f.g, &(llm_prompt){.id = first, .n = 6}, &f.err), &f.err);
        CHECK_INT(llm_generator_get_stats(f.g).n_reused, 3);
    }
    teardown(&f);
}

TEST(refusals) {
    fixture f;
    int32_t id;
    const int32_t wrong[] = {1, VOCAB}, many[CTX + 1] = {0};
    if (setup(&f, MODEL(ALL), 1) && open_generator(&f, false)) {
        CHECK_INT(llm_generator_next(f.g, &id, &f.err), GGL_USAGE);
        CHECK_INT(llm_generator_prompt(f.g, &(llm_prompt){.id = wrong}, &f.err), GGL_USAGE);
        CHECK_INT(llm_generator_prompt(f.g, &(llm_prompt){.id = wrong, .n = 2}, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "token 8 is not in the vocabulary of 8");
        CHECK_INT(llm_generator_prompt(f.g, &(llm_prompt){.id = many, .n = CTX + 1}, &f.err),
                  GGL_LIMIT);
        CHECK_HAS(f.err.msg, "the prompt has 97 tokens, but the context only 96");
        llm_generator *g;
        llm_generator_params p = {
            .size = sizeof p, .session = f.s, .sampler = f.sampler, .n_keep = -2};
        CHECK_INT(llm_generator_new(&g, &p, &f.err), GGL_USAGE);
        CHECK(!g);
        p = (llm_generator_params){.size = sizeof(llm_generator_params),
                                   .session = f.s,
                                   .sampler = f.sampler,
                                   .slot = SLOTS};
        CHECK_INT(llm_generator_new(&g, &p, &f.err), GGL_USAGE);
    }
    teardown(&f);
}
