/* The engine with rows of pictures in prompts: each sequence has the tokens and logits that it has alone, however prompts are cut
 * into pieces, shared and shifted. Rows of a picture that see each other are never parted. */
#include "llm/internal/media.h"

static llm_media *pictures;
#define FIXTURE_MEDIA pictures
#include "engine_test.h"

enum { PICTURES = 6 };

#define SEEING(given, attention)                                                                   \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = " given "\nh = heads(x, 2)\n" attention  \
    "logits = linear(x, token_embd)\n"
#define PLAIN  "x = x + attention(h, h, h)\n"
#define PLACES "t = rope_places(h, freqs(8, 100), 1, [2, 1, 1])\nx = x + attention(t, t, h)\n"

#define NEAR       "x = x + attention(h, h, h, window = 49)\n"
#define STATES_TOO PLAIN "x = x + flat(sum(transpose(recent(x, 3))))\n"

static const char *const models[] = {SEEING("given(token_embd[token])", PLAIN),
                                     SEEING("given(token_embd[token], together = 1)", PLAIN),
                                     SEEING("given(token_embd[token])", PLACES),
                                     SEEING("given(token_embd[token], together = 1)", PLACES),
                                     SEEING("given(token_embd[token], together = 1)", NEAR),
                                     SEEING("given(token_embd[token], together = 1)", STATES_TOO)};
enum { MODELS = sizeof models / sizeof *models };

static int32_t first_of[PICTURES];
static const int64_t rows_of[PICTURES] = {1, 2, 7, 16, 23, 24};

static bool draw_pictures(uint64_t seed) {
    ggl_error err = {0};
    if (!CHECK_OK(llm_media_new(&pictures, 1 << 20, &err), &err))
        return false;
    for (int k = 0; k < PICTURES; k++) {
        float row[24 * TINY_WIDTH];
        int32_t place[24 * 3];
        uint8_t id[LLM_MEDIA_ID] = {0};
        for (int i = 0; i < 24 * TINY_WIDTH; i++)
            row[i] = (float)(test_random(&seed) % 1000) / 1000 - 0.5f;
        for (int i = 0; i < 24; i++) { /* lines of four */
            place[3 * i] = 0;
            place[3 * i + 1] = i / 4;
            place[3 * i + 2] = i % 4;
        }
        for (int i = 0; i < 8; i++)
            id[i] = (uint8_t)test_random(&seed);
        const llm_media_rows rows = {.row = row,
                                     .n = rows_of[k],
                                     .n_row = TINY_WIDTH,
                                     .place = place,
                                     .n_pos = rows_of[k] > 4 ? 6 : 4};
        if (!CHECK_OK(llm_media_add(pictures, id, &rows, &first_of[k], &err), &err))
            return false;
    }
    return true;
}

/* A random job with pictures in its prompt, of which others may have the same. */
static job *job_seeing(fixture *f) {
    int32_t prompt[CTX];
    size_t n = 0;
    for (int k = below(f, 4) + 1; k > 0 && n + 60 < CTX; k--) {
        const int which = below(f, PICTURES);
        for (int i = below(f, 2) ? below(f, 20) : 0; i > 0; i--, n++)
            prompt[n] = f->common[n];
        for (int64_t i = 0; i < rows_of[which]; i++)
            prompt[n++] = (int32_t)(first_of[which] - i);
    }
    for (int i = below(f, 12); i >= 0; i--) /* a picture may be last */
        prompt[n++] = below(f, VOCAB);
    n -= below(f, 3) == 0 && n > 1 && prompt[n - 2] < 0;
    job *j = job_new(f, n, below(f, 30));
    memcpy(j->prompt, prompt, n * sizeof *prompt);
    j->sampling.temp = below(f, 2) ? 1.0f : 0;
    j->sampling.seed = test_random(&f->seed);
    j->stop_at = below(f, 6) == 0 ? below(f, 20) : -1;
    return j;
}

static void run_model(int k, uint64_t seed) {
    fixture f;
    if (draw_pictures(seed) && fixture_open(&f, models[k], seed)) {
        const fixture_params p = {.n_ubatch = 24,
                                  .n_slots = 4 + below(&f, 5),
                                  .n_rows = 8,
                                  .n_step = below(&f, 2) ? 24 : 1 + below(&f, 24),
                                  .n_parallel = 4,
                                  .n_queue = MOST_JOBS,
                                  .n_queue_each = MOST_JOBS,
                                  .step_ns = 1000000};
        if (fixture_start(&f, &p)) {
            bool ok = true;
            for (int i = 0; i < 60 && ok; i++) {
                ok = job_add(job_seeing(&f),
                             (llm_sequence_params){.size = sizeof(llm_sequence_params)});
                CHECK_MSG(ok, "%s", f.err.msg);
                for (int n = below(&f, 8); n > 0 && ok; n--)
                    ok = fixture_step(&f);
            }
            if (ok && fixture_finish(&f))
                CHECK_MSG(fixture_check(&f), "model %d, seed %llu", k, (unsigned long long)seed);
            for (int i = 0; i < f.n_jobs; i++)
                CHECK_MSG(f.job[i]->why != LLM_END_FAILED, "%s", f.job[i]->message);
            fixture_stop(&f);
        }
        fixture_close(&f);
    }
    llm_media_free(pictures);
    pictures = NULL;
}

TEST(rows_of_pictures) {
    for (int k = 0; k < MODELS; k++)
        for (uint64_t i = 0; i < (TEST_SANITIZED ? 1 : 4); i++)
            run_model(k, sample_seed() * 16 + i);
}

/* A full context drops tokens from its middle, and of a picture only all of its rows. */
static void run_shifts(int k, uint64_t seed) {
    fixture f;
    if (draw_pictures(seed) && fixture_open(&f, models[k], seed)) {
        const fixture_params p = {.n_ubatch = 24,
                                  .n_slots = 6,
                                  .n_pool = 2 * CTX,
                                  .n_rows = 8,
                                  .n_step = 24,
                                  .n_parallel = 4,
                                  .n_queue = MOST_JOBS,
                                  .n_queue_each = MOST_JOBS,
                                  .step_ns = 1000000};
        if (fixture_start(&f, &p)) {
            bool ok = true;
            for (int i = 0; i < 12 && ok; i++) {
                job *j = job_new(&f, CTX - 20 - below(&f, 40), 200);
                for (size_t at = (size_t)below(&f, 30); at + 30 < j->n_prompt;
                     at += 24 + (size_t)below(&f, 40))
                    for (int which = below(&f, PICTURES), r = 0; r < rows_of[which]; r++)
                        j->prompt[at + (size_t)r] = (int32_t)(first_of[which] - r);
                j->shifts = true;
                j->n_keep = i % 3 ? below(&f, CTX) : -1;
                ok = job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)});
                CHECK_MSG(ok, "%s", f.err.msg);
            }
            if (ok && fixture_finish(&f))
                CHECK_MSG(fixture_check(&f), "model %d, seed %llu", k, (unsigned long long)seed);
            for (int i = 0; i < f.n_jobs; i++)
                CHECK_MSG(f.job[i]->why != LLM_END_FAILED, "model %d: keep %d: %s", k,
                          (int)f.job[i]->n_keep, f.job[i]->message);
            fixture_stop(&f);
        }
        fixture_close(&f);
    }
    llm_media_free(pictures);
    pictures = NULL;
}

TEST(full_contexts_shift) {
    for (int k = 0; k < MODELS; k++)
        run_shifts(k, sample_seed() * 16);
}

/* A piece that ends within a picture whose rows see each other, and outputs there, are refused; a picture that is larger than a ubatch, too. */
TEST(pictures_stay_whole) {
    fixture f;
    REQUIRE(draw_pictures(7) && fixture_open(&f, models[1], 7));
    const fixture_params p = {.n_ubatch = 23, .n_slots = 1, .n_rows = 4};
    REQUIRE(fixture_session(&f, &f.s, &p));
    int32_t id[30] = {1, 2, 3};
    for (int i = 0; i < 24; i++)
        id[3 + i] = first_of[4] - i;
    CHECK_INT(llm_session_whole_rows(f.s, id, 26, 3), 3);
    CHECK_INT(llm_session_whole_rows(f.s, id, 26, 10), 3);
    CHECK_INT(llm_session_whole_rows(f.s, id, 26, 26), 26);
    CHECK_INT(llm_session_whole_rows(f.s, id + 3, 23, 5), 23);
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 10, .token = id}, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "ends a text, but all of its rows see each other");
    bool want[30] = {[10] = true};
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 26, .token = id, .want = want}, &f.err),
              GGL_UNSUPPORTED);
    CHECK_HAS(f.err.msg, "only the last one has an output");
    CHECK_OK(llm_session_eval(f.s, &(llm_batch){.n = 26, .token = id}, &f.err), &f.err);
    for (int i = 0; i < 24; i++)
        id[i] = first_of[5] - i;
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 24, .token = id}, &f.err), GGL_LIMIT);
    CHECK_HAS(f.err.msg, "raise n_ubatch");
    fixture_stop(&f);
    fixture_close(&f);
    llm_media_free(pictures);
    pictures = NULL;
}
